#!/bin/sh
# Install splime with what its tests need, and run them on all cores: those of plain `pytest`
# (doctests too) and those marked `system`; then show how much of the code they run.
set -eu
cd "$(dirname "$0")/.."
echo "installing into .venv …"
sh scripts/setup.sh dev
HYPOTHESIS_PROFILE=steady .venv/bin/python -m pytest -q -m "not slow" --cov --cov-report=
echo "lines of code that the tests run: $(.venv/bin/coverage report --format=total) %"
