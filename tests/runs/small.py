"""A small graph whose objects change with the time, and small trainings on it."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import splime
from splime.cli.main import main
from splime.graph import TemporalGraph
from splime.methods import Method
from splime.runs import Epoch, Run, train
from splime.segmentation import Segmentation

CUTS = splime.Split(grow=2)
SETTINGS: dict[str, Any] = {
    "model": "distmult",
    "dimension": 4,
    "batch_size": 32,
    "epochs": 6,
    "validate_every": 2,
}


def small_graph(seed: int = 0, *, test: int = 15) -> TemporalGraph:
    draw = random.Random(seed)
    rows = []
    for _ in range(105 + test):
        subject, predicate, begin = draw.randrange(12), draw.randrange(3), draw.randrange(16)
        object_ = (subject + 3 * predicate + begin // 4) % 12
        end = None if draw.random() < 0.1 else 1990 + begin + draw.randrange(3)
        names = (f"entity {subject}", f"p{predicate}", f"entity {object_}")
        rows.append((*names, 1990 + begin, end))
    splits = {"train": rows[:90], "valid": rows[90:105], "test": rows[105:]}
    return splime.read(splits, granularity="year")


def small_run(
    graph: TemporalGraph, out: Path, cuts: Method | Segmentation | None = CUTS, **settings: Any
) -> Run:
    """A run with small settings, unless others are given."""
    watch, save_seconds = settings.pop("watch", None), settings.pop("save_seconds", 60.0)
    chosen = {**SETTINGS, **settings}
    return train(graph, cuts, out, watch=watch, save_seconds=save_seconds, **chosen)


class StopAfter:
    """Watches a training, and asks to stop after so many steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.told: list[tuple[int, int, int, int]] = []
        self.epochs: list[tuple[Epoch, bool]] = []

    def step(self, epoch: int, epochs: int, step: int, steps: int, loss: float) -> None:
        assert loss == loss
        self.left -= 1
        self.told.append((epoch, epochs, step, steps))

    def epoch(self, found: Epoch, best: bool) -> None:
        self.epochs.append((found, best))

    def stop(self) -> bool:
        return self.left <= 0


class Called(NamedTuple):
    code: int
    out: str
    err: str


def call(*arguments: object, program: Callable[[], None] = main, **environment: str) -> Called:
    """The command line, in this process: importing PyTorch takes longer than all that it does."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["splime", *map(str, arguments)]),
        mock.patch.dict(os.environ, environment),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            program()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
    return Called(code, out.getvalue(), err.getvalue())


def call_program(*arguments: object, **environment: str) -> Called:
    """The command line as a person starts it, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "splime", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1", **environment},
    )
    return Called(done.returncode, done.stdout, done.stderr)
