"""Evaluate a run, and keep the figures and the ranks in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from splime.errors import DataError, UsageError, nearest
from splime.evaluation import (
    Evaluation,
    evaluate_facts,
    evaluate_predicates,
    evaluate_triples,
)
from splime.io.files import written_beside
from splime.runs import folder as files
from splime.runs.run import Run

PROTOCOLS: Mapping[str, str] = {
    "fact": "the fair one: every fact asks for its object and its subject, none is left out",
    "triple": "the paper's: the transformed triples that the leak filter leaves",
    "predicate": "which predicate links two entities at a time",
}


def evaluate(
    run: Run, protocol: str = "fact", *, split: str = "test", **options: Any
) -> Evaluation:
    """Evaluate a run by a protocol; figures and ranks are kept in its folder.

    The options are those of `evaluate_facts`, `evaluate_triples` and `evaluate_predicates`.
    """
    if protocol not in PROTOCOLS:
        raise UsageError(
            f"there is no protocol {protocol!r}; there are {', '.join(PROTOCOLS)}."
            f"{nearest(protocol, PROTOCOLS)}"
        )
    if protocol == "triple":
        options.setdefault("distinct", run.settings.distinct)
        found = evaluate_triples(run.scorer, run.static, split=split, **options)  # type: ignore[arg-type]
    else:
        by_facts = evaluate_facts if protocol == "fact" else evaluate_predicates
        found = by_facts(run.scorer, run.graph, run.segmentation, split=split, **options)  # type: ignore[arg-type]
    with files.locked(run.path):
        _keep(run.path, found)
    return found


def evaluations(run: Run) -> list[Evaluation]:
    """What was evaluated before."""
    path = run.path / files.METRICS
    if not path.exists():
        return []
    stored = files.read_json(path)
    if not isinstance(stored, dict):
        raise DataError(f"{path}: not the metrics of a run")
    return [Evaluation.from_json(one) for one in stored.values()]


def _keep(folder: Path, found: Evaluation) -> None:
    """Add an evaluation to the metrics; the same one again takes the place of the old one."""
    path = folder / files.METRICS
    stored = files.read_json(path) if path.exists() else {}
    name = key(found)
    _write_ranks(folder / f"ranks-{name}.parquet", found)
    files.write_json(path, {**stored, name: found.to_json()})


def key(found: Evaluation) -> str:
    """The name of an evaluation: all that makes it another one."""
    parts = [found.protocol, found.split, found.leak_filter, found.aggregate, found.ties]
    return "-".join(part for part in parts if part)


def _write_ranks(path: Path, found: Evaluation) -> None:
    """A row for each fact or triple: its position in the split, and its ranks."""
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {"fact": np.asarray(found.facts)}
    for name, ranks in found.ranks.items():
        asked = ("predicate",) if ranks.shape[1] == 1 else ("object", "subject")
        for column, what in enumerate(asked):
            columns[f"{name}_{what}"] = np.ascontiguousarray(ranks[:, column])
    with written_beside(path) as beside:
        pq.write_table(pa.table(columns), beside, compression="zstd")
