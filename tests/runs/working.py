"""What the workers of `test_workers.py` do, in processes of their own: starting them is slow.

RANK=… WORLD_SIZE=… MASTER_ADDR=… MASTER_PORT=… python -m tests.runs.working GRAPH FOLDER
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import splime
from splime import collective
from splime.errors import Interrupted, SplimeError
from splime.evaluation import Evaluation
from splime.graph import TemporalGraph
from splime.runs import Run, evaluate, train
from tests.runs.small import StopAfter

ENTITIES = 61
SAMPLED = {"negatives": 8, "epochs": 2, "batch_size": 40, "validate_every": 1}
ALL = {"loss": "softmax", "epochs": 2, "batch_size": 40, "validate_every": 1}
TRAININGS: dict[str, dict[str, Any]] = {
    "transe": {"model": "transe", "dimension": 6, **SAMPLED},
    "own negatives": {"model": "transe", "dimension": 6, **SAMPLED, "share": "none"},
    "transe against all": {"model": "transe", "dimension": 6, **ALL},
    "complex": {"model": "complex", "dimension": 6, **ALL},
    # So few of the entities in a batch that gradients are sparse.
    "sparse": {
        "model": "complex",
        "dimension": 6,
        "loss": "sampled_softmax",
        "avoid_known": True,
        "negatives": 2,
        "batch_size": 2,
        "epochs": 1,
    },
    "moving": {"model": "hyte", "dimension": 6, **SAMPLED, "unit": "clip"},
    "moving against all": {"model": "hyte", "dimension": 6, **ALL, "l2": 0.01},
    "path": {
        "model": "path",
        "messages": "learned",
        "dimension": 16,
        "layers": 2,
        "dropout": 0.0,
        "batch_size": 9,
        "steps": 6,
    },
}
PROTOCOLS = ("fact", "triple", "predicate")
ERRORS: dict[str, dict[str, Any]] = {
    "pykeen": {"model": "TransE", "engine": "pykeen"},
    "small batches": {"model": "transe", "batch_size": 1},
}
CHECKPOINT = 5
"""After so many steps a training is stopped."""


def small_graph() -> TemporalGraph:
    draw, rows = random.Random(3), []
    for _ in range(180):
        subject, predicate, begin = draw.randrange(ENTITIES), draw.randrange(3), draw.randrange(16)
        names = (f"e{subject}", f"p{predicate}", f"e{(subject + 5 * predicate + 1) % ENTITIES}")
        rows.append((*names, 1990 + begin, 1990 + begin + draw.randrange(3)))
    rows += [(f"e{k}", "p0", f"e{(k + 1) % ENTITIES}", 1990, 1991) for k in range(ENTITIES)]
    return splime.read({"train": rows[40:], "valid": rows[:20], "test": rows[20:40]})


def train_one(graph: TemporalGraph, name: str, out: Path, **how: Any) -> Run:
    settings = {**TRAININGS[name], **how}
    timed = settings["model"] in ("path", "hyte")
    return train(graph, None if timed else splime.Split(grow=2), out, device="cpu", **settings)


def metrics(evaluation: Evaluation) -> dict[str, float]:
    return {name: each["both"].mrr for name, each in evaluation.metrics.items()}


def errors(graph: TemporalGraph, folder: Path) -> dict[str, str]:
    messages = {}
    for name, settings in ERRORS.items():
        with pytest.raises(SplimeError) as error:
            train(graph, None, folder / "errors", device="cpu", **settings)
        messages[name] = str(error.value)
        collective.wait()
    assert not (folder / "errors").exists()
    return messages


def main() -> None:
    graph, folder = splime.load(sys.argv[1]), Path(sys.argv[2])
    collective.join("cpu")
    assert collective.size() == 2
    for name in TRAININGS:
        train_one(graph, name, folder / name)
    measured = {
        protocol: metrics(evaluate(folder / "complex", protocol, device="cpu"))
        for protocol in PROTOCOLS
    }
    measured["path"] = metrics(evaluate(folder / "path", device="cpu"))
    measured["moving"] = metrics(evaluate(folder / "moving", device="cpu"))
    stopped = folder / "stopped"
    for name in ("transe", "complex"):  # Adam, and Adagrad
        watch = StopAfter(CHECKPOINT if collective.rank() == 0 else 10**9)
        with pytest.raises(Interrupted):
            train_one(graph, name, stopped / name, watch=watch)
        collective.wait()
        if collective.rank() == 0:
            shutil.copytree(stopped / name, folder / "resumed" / name)
        collective.wait()
        train_one(graph, name, folder / "resumed" / name)
    messages = errors(graph, folder)
    if collective.rank() == 0:
        (folder / "measured.json").write_text(json.dumps({"metrics": measured, "errors": messages}))
    collective.leave()


if __name__ == "__main__":
    main()
