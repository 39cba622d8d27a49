#!/bin/sh
# Install splime and run the main job on the embedded dataset: what is in it, and what leaks.
set -eu
cd "$(dirname "$0")/.."
echo "installing into .venv …"
sh scripts/setup.sh plot
.venv/bin/splime inspect demo --plot demo.png
