#!/bin/sh
# Install splime with what its tests need, and run them (doctests too) on all cores; then show how
# much of the code they run.
set -eu
cd "$(dirname "$0")/.."
echo "installing into .venv …"
sh scripts/setup.sh dev
.venv/bin/python -m pytest -q -n auto --cov --cov-report=
echo "lines of code that the tests run: $(.venv/bin/coverage report --format=total) %"
