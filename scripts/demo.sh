#!/bin/sh
# Install splime and run the main job on the embedded dataset: what is in it, what leaks, and what time
# is worth. A static model is trained without time and with every method of the paper, and then the path
# model; the comparison is printed, and everything is in runs/demo, with pictures in
# runs/demo/report.html. At the end one question, with the facts that its answer rests on.
set -eu
cd "$(dirname "$0")/.."
echo "installing into .venv …"
sh scripts/setup.sh plot,train
.venv/bin/splime inspect demo
.venv/bin/splime ask demo "Sara Finnby" livesIn "?" --at 1982 --limit 3 --why   # without training
.venv/bin/splime run demo --model complex --model path --preset quick --out runs/demo
.venv/bin/splime ask runs/demo/runs/path "Sara Finnby" livesIn "?" --at 1982 --limit 3 --why
echo "(here splime is .venv/bin/splime)"
