#!/bin/sh
# Install splime and run the main job on the embedded dataset: what is in it and what leaks, then what
# time is worth: a static model without time, and the same model on predicates cut in time.
set -eu
cd "$(dirname "$0")/.."
echo "installing into .venv …"
sh scripts/setup.sh plot,train
.venv/bin/splime inspect demo --plot demo.png
for method in vanilla "split --grow 5"; do
    run=runs/demo-${method%% *}
    # shellcheck disable=SC2086  # the method and its parameters are words
    .venv/bin/splime train demo --method $method --model complex --dimension 50 --epochs 30 --out "$run"
    .venv/bin/splime evaluate "$run"
done
