#!/bin/sh
# Install splime with what its tests need, and run them (doctests too).
set -eu
cd "$(dirname "$0")/.."
echo "installing into .venv …"
sh scripts/setup.sh dev
.venv/bin/python -m pytest -q
