"""Evaluate a run, and keep metrics and ranks in its folder."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pyarrow as pa

from splime import collective
from splime.errors import DataError, SplimeError
from splime.evaluation import Evaluation, EvaluationOptions, Metrics
from splime.evaluation.protocols import PROTOCOLS, Questions, default_questions, evaluate_scoring
from splime.graph import SplitName
from splime.io.files import atomic_write, locked, read_json, write_json
from splime.io.parquet import read_table
from splime.io.sealed import sealed_writer
from splime.leakage import LeakFilter
from splime.runs import folder as files
from splime.runs.run import Run

if TYPE_CHECKING:
    from splime.keywords import Evaluating

__all__ = ["PROTOCOLS", "evaluate", "evaluations", "kept", "kept_of_members", "key"]

_UPDATED = "updated"
"""Where metrics say which facts they were measured over, if the run was updated before."""
_WAIT = 10.0  # seconds, for another evaluation that writes its metrics


def evaluate(
    run: Run | str | Path,
    protocol: str = "fact",
    *,
    device: str = "auto",
    warn: Callable[[str], None] = warnings.warn,
    **options: Unpack[Evaluating],
) -> Evaluation:
    """Evaluate a run by a protocol; metrics and ranks are kept in its folder.

    Where the folder cannot be written, the metrics are only returned, and `warn` gets the reason.
    Those of a run over other facts (`Run.over`) are only returned, too.

    Args:
        run: a run, or its folder.
        protocol: fact, triple or predicate.
        device: where to compute, if the run is given by its folder: cpu, cuda or auto.
        warn: gets the reason why metrics are not kept.
        **options: split (test or valid), filter and distinct (of protocol triple), aggregate (of
            the others), ties, bootstrap, questions, seed, memory and progress, as
            `EvaluationOptions` has them. Where None, distinct and aggregate are as the run was
            trained.

    >>> import splime, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     run = splime.train("demo", "split", here, dimension=8, epochs=1)
    ...     evaluation = evaluate(run, questions=200)
    >>> evaluation.queries, sorted(evaluation.metrics)
    (200, ['exact', 'overlap', 'static'])
    """
    began, run = perf_counter(), Run.of(run, device=device)
    chosen = EvaluationOptions(**options).of_protocol(protocol, **_as_trained(run))
    evaluation = evaluate_scoring(run.scoring(), protocol, chosen)
    evaluation = replace(
        evaluation,
        past=None if protocol == "triple" else run.past,
        seconds=perf_counter() - began,  # with what it takes to open the model
    )
    if not run.own_facts or collective.rank():
        return evaluation
    try:
        _keep(run, evaluation)
    except SplimeError as error:
        warn(f"the metrics are not kept: {error}")
    return evaluation


def _as_trained(run: Run) -> dict[str, Any]:
    """The options that follow from how a run was trained, where others are not given."""
    distinct = run.settings.values().get("distinct", True)
    return {"distinct": distinct, "aggregate": run.settings.default_aggregate}


def evaluations(run: Run) -> list[Evaluation]:
    """What was evaluated before, without the ranks."""
    path = run.path / files.METRICS
    try:
        stored = [{**one} for one in _stored(run.path).values()]
        return [Evaluation.from_json(one) for one in stored if one.pop(_UPDATED, "") == _facts(run)]
    except (DataError, TypeError) as error:
        raise DataError(f"{path}: not the metrics of a run: {error}") from None


def kept(
    run: Run,
    protocol: str = "fact",
    *,
    split: SplitName = "test",
    filter: LeakFilter | None = None,
    questions: Questions = None,
) -> Evaluation | None:
    """What `evaluate` with these arguments kept in the folder, with the ranks; None if it did not.

    Ranks that are damaged, or that do not give the metrics beside them, are a DataError.
    """
    if not run.own_facts:
        return None
    options = EvaluationOptions(split, filter).of_protocol(protocol, **_as_trained(run))
    wanted = (protocol, split, options.filter, options.aggregate, options.ties)
    for found in evaluations(run):
        about = (found.protocol, found.split, found.leak_filter, found.aggregate, found.ties)
        distinct = "repeated" in found.left_out if protocol == "triple" else None
        if about == wanted and distinct == options.distinct and _asks(found, questions):
            path = run.path / f"ranks-{key(found)}.parquet"
            return _with_ranks(path, found) if path.exists() else None
    return None


def kept_of_members(run: Run, evaluation: Evaluation) -> dict[str, Evaluation]:
    """The same evaluation of each member of a combination, where its folder has it."""
    return {
        f"{number}: {member.config['settings']['model']}": found
        for number, member in enumerate(run.members, 1)
        for found in evaluations(member)
        if key(found) == key(evaluation)
    }


def _asks(evaluation: Evaluation, questions: Questions) -> bool:
    """Whether an evaluation ranked the queries that one with this argument would."""
    sample = evaluation.sample
    if questions is None:
        queries = evaluation.queries if sample is None else sample.of
        questions = default_questions(queries, evaluation.candidates)
    if sample is None:
        return questions == "all" or evaluation.queries <= questions
    return (sample.queries, sample.seed) == (questions, 0)


def _with_ranks(path: Path, evaluation: Evaluation) -> Evaluation:
    asked = _asked(evaluation.protocol)
    try:
        table = read_table(path)
        facts = table["fact"].to_numpy()
        ranks = {
            name: np.stack([table[f"{name}_{what}"].to_numpy() for what in asked], axis=1)
            for name in evaluation.filters
        }
        for name, column in ranks.items():
            if not (column.size == evaluation.queries and column.min(initial=1) >= 1):
                raise ValueError(f"not the ranks of {evaluation.queries:,} queries")
            there, stored = Metrics.of(column), evaluation.metrics[name]["both"]
            if not math.isclose(there.mrr, stored.mrr) or there.queries != stored.queries:
                raise ValueError(f"their MRR is {there.mrr:.4f}, and {files.METRICS} has another")
    except (DataError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
        raise DataError(
            f"{path}: not the ranks of this run: {error}; remove it, and they are made again"
        ) from None
    return replace(evaluation, ranks=ranks, facts=facts)


def _stored(folder: Path) -> dict[str, Any]:
    path = folder / files.METRICS
    return read_json(path) if path.exists() else {}


def _facts(run: Run) -> str:
    """What tells the facts of a run that was updated from those it had before."""
    return "" if run.updates is None else str(run.updates.data["sha256"])


def _keep(run: Run, evaluation: Evaluation) -> None:
    """Add an evaluation to the metrics; the same one again takes the place of the old one."""
    name, folder, facts = key(evaluation), run.path, _facts(run)
    with locked(folder, wait=_WAIT):
        stored = _stored(folder)
        _write_ranks(folder / f"ranks-{name}.parquet", evaluation)
        made = evaluation.to_json() | ({_UPDATED: facts} if facts else {})
        write_json(folder / files.METRICS, {**stored, name: made})


def key(evaluation: Evaluation) -> str:
    """The name of an evaluation: all that makes it another one."""
    repeated = None
    if evaluation.protocol == "triple" and "repeated" not in evaluation.left_out:
        repeated = "repeated"  # triples that occur again are ranked again
    one, sample = evaluation, evaluation.sample
    parts = [one.protocol, one.split, one.leak_filter, repeated, one.aggregate, one.ties]
    if sample is not None:
        parts.append(f"{sample.queries}-seed-{sample.seed}")
    return "-".join(filter(None, parts))


def _write_ranks(path: Path, evaluation: Evaluation) -> None:
    """A row for each fact or triple: its position in the split, and its ranks."""
    columns: dict[str, Any] = {"fact": np.asarray(evaluation.facts)}
    for name, ranks in evaluation.ranks.items():
        for column, what in enumerate(_asked(evaluation.protocol)):
            columns[f"{name}_{what}"] = np.ascontiguousarray(ranks[:, column])
    table = pa.table(columns)
    with (
        atomic_write(path) as beside,
        sealed_writer(beside, table.schema, compression="zstd") as writer,
    ):
        writer.write_table(table)


def _asked(protocol: str) -> tuple[str, ...]:
    return ("predicate",) if protocol == "predicate" else ("object", "subject")
