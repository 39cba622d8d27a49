#!/bin/sh
# Make a virtual environment in .venv and install splime into it: sh scripts/setup.sh EXTRAS
# PYTHON names the interpreter to use, if it is not python3.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "splime needs Python 3.11 or newer; name one with PYTHON=…" >&2
    exit 1
fi
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check \
    --constraint constraints.txt --editable ".[$1]"
