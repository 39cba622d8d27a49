"""Evaluate a run, and keep the figures and the ranks in its folder."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from splime.errors import DataError, SplimeError, check_name
from splime.evaluation import Evaluation, Metrics, evaluate_triples
from splime.evaluation.protocols import Options, evaluate_scoped
from splime.io.files import locked, read_json, write_json, written_beside
from splime.runs import folder as files
from splime.runs.run import Run

PROTOCOLS = ("fact", "triple", "predicate")
_WAIT = 10.0  # seconds, for another evaluation that writes its figures


def evaluate(
    run: Run,
    protocol: str = "fact",
    *,
    split: str = "test",
    warn: Callable[[str], None] = warnings.warn,
    **options: Any,
) -> Evaluation:
    """Evaluate a run by a protocol; figures and ranks are kept in its folder.

    The options are those of `evaluate_facts`, `evaluate_triples` and `evaluate_predicates`. Where
    the folder cannot be written, the figures are only returned, and `warn` is told why.
    """
    check_name("protocol", protocol, PROTOCOLS)
    if protocol == "triple":
        options.setdefault("distinct", run.settings.distinct)
        found = evaluate_triples(run.scorer, run.static, split=split, **options)  # type: ignore[arg-type]
    else:
        chosen = Options(split=split, **options)  # type: ignore[arg-type]
        found = evaluate_scoped(protocol, run.scorer, run.scoping, chosen)  # type: ignore[arg-type]
    try:
        _keep(run.path, found)
    except SplimeError as error:
        warn(f"the figures are not kept: {error}")
    return found


def evaluations(run: Run) -> list[Evaluation]:
    """What was evaluated before, without the ranks."""
    path = run.path / files.METRICS
    try:
        return [Evaluation.from_json(one) for one in _stored(run.path).values()]
    except (DataError, TypeError) as error:
        raise DataError(f"{path}: not the metrics of a run: {error}") from None


def kept(
    run: Run, protocol: str = "fact", *, split: str = "test", filter: str = "inter"
) -> Evaluation | None:
    """What `evaluate` with these arguments kept in the folder, with the ranks; None if it did not.

    Ranks that are damaged, or that do not give the figures beside them, are a DataError.
    """
    triple = protocol == "triple"
    wanted = {
        "protocol": protocol,
        "split": split,
        "leak_filter": filter if triple else None,
        "aggregate": None if triple else "mean",
        "ties": "worst" if triple else "mean",
    }
    for found in evaluations(run):
        if any(getattr(found, name) != value for name, value in wanted.items()):
            continue
        if triple and ("repeated" in found.left_out) != run.settings.distinct:
            continue
        path = run.path / f"ranks-{key(found)}.parquet"
        return _with_ranks(path, found) if path.exists() else None
    return None


def _with_ranks(path: Path, found: Evaluation) -> Evaluation:
    import pyarrow.parquet as pq

    asked = _asked(found.protocol)
    try:
        table = pq.read_table(path)
        facts = table["fact"].to_numpy()
        ranks = {
            name: np.stack([table[f"{name}_{what}"].to_numpy() for what in asked], axis=1)
            for name in found.filters
        }
        for name, each in ranks.items():
            if not (each.size == found.queries and each.min(initial=1) >= 1):
                raise ValueError(f"not the ranks of {found.queries:,} queries")
            there, figures = Metrics.of(each), found.metrics[name]["both"]
            if not math.isclose(there.mrr, figures.mrr) or there.queries != figures.queries:
                raise ValueError(f"their MRR is {there.mrr:.4f}, and {files.METRICS} has another")
    except (OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
        raise DataError(
            f"{path}: not the ranks of this run: {error}; remove it, and they are made again"
        ) from None
    return replace(found, ranks=ranks, facts=facts)


def _stored(folder: Path) -> dict[str, Any]:
    path = folder / files.METRICS
    return read_json(path) if path.exists() else {}


def _keep(folder: Path, found: Evaluation) -> None:
    """Add an evaluation to the metrics; the same one again takes the place of the old one."""
    name = key(found)
    with locked(folder, wait=_WAIT):
        stored = _stored(folder)
        _write_ranks(folder / f"ranks-{name}.parquet", found)
        write_json(folder / files.METRICS, {**stored, name: found.to_json()})


def key(found: Evaluation) -> str:
    """The name of an evaluation: all that makes it another one."""
    repeated = None
    if found.protocol == "triple" and "repeated" not in found.left_out:
        repeated = "repeated"  # triples that occur again are ranked again
    parts = [
        found.protocol,
        found.split,
        found.leak_filter,
        repeated,
        found.aggregate,
        found.ties,
    ]
    return "-".join(part for part in parts if part)


def _write_ranks(path: Path, found: Evaluation) -> None:
    """A row for each fact or triple: its position in the split, and its ranks."""
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {"fact": np.asarray(found.facts)}
    for name, ranks in found.ranks.items():
        for column, what in enumerate(_asked(found.protocol)):
            columns[f"{name}_{what}"] = np.ascontiguousarray(ranks[:, column])
    with written_beside(path) as beside:
        pq.write_table(pa.table(columns), beside, compression="zstd")


def _asked(protocol: str) -> tuple[str, ...]:
    return ("predicate",) if protocol == "predicate" else ("object", "subject")
