"""How far probabilities of answers can be trusted, before they are calibrated and after: stored."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from experiments.tables import ResultTable
from splime.io.files import write_json
from splime.methods import Method, Split, Timestamp
from splime.query import Query, reliability
from splime.runs import train
from splime.scoring.scoping import KINDS

FILE = "calibration.json"
METHODS: dict[str, Method] = {"split": Split(grow=5), "timestamp": Timestamp()}


def measure() -> dict[str, Any]:
    """The error and the loss on test of ComplEx with dimension 50 on `demo`, by the method."""
    records: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, method in METHODS.items():
            out = Path(folder) / name
            run = train("demo", method, out, model="complex", dimension=50, device="cpu")
            for kind in KINDS:
                found = {
                    "uncalibrated": reliability(Query(run), kind, temperature=1.0),
                    "calibrated": reliability(Query(run), kind),
                }
                records.setdefault(kind, {})[name] = {
                    how: {"error": each.error, "loss": each.loss, "temperature": each.temperature}
                    for how, each in found.items()
                }
    return records


def store(folder: Path, records: dict[str, Any]) -> None:
    """Keep them."""
    write_json(folder / FILE, records)


def tables(folder: Path) -> list[ResultTable]:
    """What is stored."""
    path = folder / FILE
    records: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    rows = [
        (
            kind,
            *(
                f"{each['error']:.3f} ({each['loss']:.2f})".removeprefix("0")
                for of_kind in by_method.values()
                for each in of_kind.values()
            ),
        )
        for kind, by_method in records.items()
    ]
    hows = [f"{name}: {how}" for name in METHODS for how in ("uncalibrated", "calibrated")]
    return [ResultTable("", ("question for", *hows), rows, [], words=1)]
