"""Time some steps of AmpliGraph 2's TransE for `training.py`, in an environment of its own.

    /venv/bin/python benchmarks/ampligraph_epoch.py train.npy 30

The environment has `ampligraph` (2.2.0 needs TensorFlow 2.15, and Python 3.11 at most).
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 500


def peak_mb() -> float:
    """As in record.py, which needs packages that this environment does not have."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


class Done(Exception):  # noqa: N818
    """Enough steps are done."""


def main() -> None:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    tensorflow: Any = import_module("tensorflow")
    features: Any = import_module("ampligraph.latent_features")
    losses: Any = import_module("ampligraph.latent_features.loss_functions")
    path, steps = Path(sys.argv[1]), int(sys.argv[2])
    triples = np.load(path).astype(str)
    before = peak_mb()
    ends: list[float] = []

    class Clock(tensorflow.keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, *_: Any, **__: Any) -> None:
            ends.append(time.perf_counter())
            if len(ends) > steps:
                raise Done

    model = features.ScoringBasedEmbeddingModel(eta=500, k=100, scoring_type="TransE", seed=0)
    model.compile(
        optimizer=tensorflow.keras.optimizers.Adam(learning_rate=1e-3),
        loss=losses.SelfAdversarialLoss({"margin": 3.0, "alpha": 0.5}),
        entity_relation_initializer="glorot_normal",
    )
    with contextlib.suppress(Done):
        model.fit(triples, batch_size=BATCH, epochs=1, callbacks=[Clock()], verbose=False)
    seconds = np.diff(ends[1:])  # the first steps compile
    found = {
        "step_s": statistics.median(seconds.tolist()),
        "steps": len(ends),
        "peak_mb": peak_mb(),
        "before_mb": before,
        "versions": {
            "ampligraph": import_module("ampligraph").__version__,
            "tensorflow": tensorflow.__version__,
        },
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
