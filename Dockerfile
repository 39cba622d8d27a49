# An image with the program splime, training and pictures.
#
#   docker build --tag splime .
#   docker run --rm splime                                        # splime inspect demo
#   docker run --rm --volume "$PWD:/work" --user "$(id -u):$(id -g)" splime \
#       run demo --model complex --preset quick --out runs/demo
FROM python:3.13-slim
WORKDIR /splime
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --constraint constraints.txt '.[train,plot,serve]'
# Whoever runs it may write here: caches of matplotlib and numba, and downloaded datasets.
ENV HOME=/tmp
WORKDIR /work
ENTRYPOINT ["splime"]
CMD ["inspect", "demo"]
