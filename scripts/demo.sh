#!/bin/sh
# Install splime and run the main job on the embedded dataset: what is in it, what leaks, and what time
# is worth. A static model is trained without time and with every method of the paper; the comparison is
# printed, and everything is in runs/demo, with pictures in runs/demo/report.html.
set -eu
cd "$(dirname "$0")/.."
echo "installing into .venv …"
sh scripts/setup.sh plot,train
.venv/bin/splime inspect demo
.venv/bin/splime run demo --model complex --dimension 50 --epochs 20 --validate-every 5 --out runs/demo
echo "(here splime is .venv/bin/splime)"
