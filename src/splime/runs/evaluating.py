"""Evaluate a run, and keep metrics and ranks in its folder."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from splime import collective
from splime.errors import DataError, SplimeError, UsageError, check_name, checked
from splime.evaluation import Evaluation, Metrics, evaluate_triples
from splime.evaluation.protocols import (
    Options,
    Questions,
    default_questions,
    evaluate_scoped,
)
from splime.evaluation.ranking import Estimate, Ties
from splime.graph import SplitName
from splime.io.files import locked, read_json, write_json, written_beside
from splime.io.sealed import check_seal, sealed_writer
from splime.leakage import LeakFilter
from splime.progress import Progress, silent
from splime.runs import folder as files
from splime.runs.run import Run
from splime.scoring.timed import TimedScorer
from splime.static import Aggregate

PROTOCOLS = ("fact", "triple", "predicate")
_WAIT = 10.0  # seconds, for another evaluation that writes its metrics


@checked
def evaluate(
    run: Run | str | Path,
    protocol: str = "fact",
    *,
    split: SplitName = "test",
    filter: LeakFilter | None = None,
    distinct: bool | None = None,
    aggregate: Aggregate | None = None,
    ties: Ties | None = None,
    bootstrap: int | None = None,
    questions: Questions = None,
    seed: int = 0,
    memory: int | None = None,
    device: str = "auto",
    shard: bool = False,
    progress: Progress = silent,
    estimate: Estimate | None = None,
    warn: Callable[[str], None] = warnings.warn,
) -> Evaluation:
    """Evaluate a run by a protocol; metrics and ranks are kept in its folder.

    Where the folder cannot be written, the metrics are only returned, and `warn` gets the reason.
    Those of a run over other facts (`Run.over`) are only returned, too.

    Args:
        run: a run, or its folder.
        protocol: fact, triple or predicate.
        split: valid or test.
        filter: triple: the leak filter (none, intra, inter or both). None is inter.
        distinct: triple: whether repeated triples count once. None is as the run was trained.
        aggregate: fact, predicate: how scores of several scopes become one (mean, ends, begin, max
            or sum). None is as the run was trained.
        ties: the rank among equal scores: mean, worst or best. None is the protocol's.
        bootstrap: the number of bootstrap samples for confidence intervals.
        questions: how many queries to rank, or all; None is all, unless there are very many.
        seed: of the bootstrap, and of the facts that are drawn where not all are ranked.
        memory: the number of bytes that blocks of scores may take.
        device: where to compute, if the run is given by its folder: cpu, cuda or auto.
        shard: whether workers (`splime.collective.join`) divide the vectors of entities, if the run
            is given by its folder; else they divide the queries.
        progress: is told how many queries are ranked.
        estimate: is called with the seconds that all will take.
        warn: is told why metrics are not kept.
    """
    check_name("protocol", protocol, PROTOCOLS)
    run = Run.of(run, device=device, shard=shard)
    own = {"filter": filter, "distinct": distinct}
    for name, value in own.items() if protocol != "triple" else [("aggregate", aggregate)]:
        if value is not None:
            raise UsageError(f"protocol {protocol} has no option {name}")
    options: dict[str, Any] = {
        "split": split,
        "memory": memory,
        "bootstrap": bootstrap,
        "seed": seed,
        "progress": progress,
        "estimate": estimate,
        "questions": questions,
        **({} if ties is None else {"ties": ties}),
    }
    if protocol == "triple":
        if run.settings.each == "ends":
            raise UsageError(
                f"{run.path}: this model has predicates of begins and of ends, and triples have"
                " neither; choose the protocol fact or predicate"
            )
        if isinstance(run.scorer, TimedScorer):
            raise UsageError(
                f"{run.path}: this model knows time itself and scores no triples without it; choose"
                " the protocol fact or predicate"
            )
        options["filter"] = filter or "inter"
        options["distinct"] = run.settings.distinct if distinct is None else distinct
        evaluation = evaluate_triples(run.scorer, run.static, **options)
    else:
        chosen = Options(aggregate=aggregate or run.settings.asked, **options)
        evaluation = evaluate_scoped(protocol, run.scorer, run.scoping, chosen)  # type: ignore[arg-type]
        evaluation = replace(evaluation, past=run.settings.past)
    if not run.own_facts or collective.rank():
        return evaluation
    try:
        _keep(run.path, evaluation)
    except SplimeError as error:
        warn(f"the metrics are not kept: {error}")
    return evaluation


def evaluations(run: Run) -> list[Evaluation]:
    """What was evaluated before, without the ranks."""
    path = run.path / files.METRICS
    try:
        return [Evaluation.from_json(one) for one in _stored(run.path).values()]
    except (DataError, TypeError) as error:
        raise DataError(f"{path}: not the metrics of a run: {error}") from None


def kept(
    run: Run,
    protocol: str = "fact",
    *,
    split: str = "test",
    filter: str = "inter",
    questions: Questions = None,
) -> Evaluation | None:
    """What `evaluate` with these arguments kept in the folder, with the ranks; None if it did not.

    Ranks that are damaged, or that do not give the metrics beside them, are a DataError.
    """
    if not run.own_facts:
        return None
    triple = protocol == "triple"
    wanted = {
        "protocol": protocol,
        "split": split,
        "leak_filter": filter if triple else None,
        "aggregate": None if triple else run.settings.asked,
        "ties": "worst" if triple else "mean",
    }
    for evaluation in evaluations(run):
        if any(getattr(evaluation, name) != value for name, value in wanted.items()):
            continue
        if not _asks(evaluation, questions):
            continue
        if triple and ("repeated" in evaluation.left_out) != run.settings.distinct:
            continue
        path = run.path / f"ranks-{key(evaluation)}.parquet"
        return _with_ranks(path, evaluation) if path.exists() else None
    return None


def kept_of_members(run: Run, evaluation: Evaluation) -> dict[str, Evaluation]:
    """The same evaluation of each member of a combination, where its folder has it."""
    own = {}
    for number, member in enumerate(run.members, 1):
        for each in evaluations(member):
            if key(each) == key(evaluation):
                own[f"{number}: {member.config['settings']['model']}"] = each
    return own


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
    import pyarrow.parquet as pq

    asked = _asked(evaluation.protocol)
    try:
        check_seal(path)
        table = pq.read_table(path)
        facts = table["fact"].to_numpy()
        ranks = {
            name: np.stack([table[f"{name}_{what}"].to_numpy() for what in asked], axis=1)
            for name in evaluation.filters
        }
        for name, each in ranks.items():
            if not (each.size == evaluation.queries and each.min(initial=1) >= 1):
                raise ValueError(f"not the ranks of {evaluation.queries:,} queries")
            there, stored = Metrics.of(each), evaluation.metrics[name]["both"]
            if not math.isclose(there.mrr, stored.mrr) or there.queries != stored.queries:
                raise ValueError(f"their MRR is {there.mrr:.4f}, and {files.METRICS} has another")
    except (DataError, OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
        raise DataError(
            f"{path}: not the ranks of this run: {error}; remove it, and they are made again"
        ) from None
    return replace(evaluation, ranks=ranks, facts=facts)


def _stored(folder: Path) -> dict[str, Any]:
    path = folder / files.METRICS
    return read_json(path) if path.exists() else {}


def _keep(folder: Path, evaluation: Evaluation) -> None:
    """Add an evaluation to the metrics; the same one again takes the place of the old one."""
    name = key(evaluation)
    with locked(folder, wait=_WAIT):
        stored = _stored(folder)
        _write_ranks(folder / f"ranks-{name}.parquet", evaluation)
        write_json(folder / files.METRICS, {**stored, name: evaluation.to_json()})


def key(evaluation: Evaluation) -> str:
    """The name of an evaluation: all that makes it another one."""
    repeated = None
    if evaluation.protocol == "triple" and "repeated" not in evaluation.left_out:
        repeated = "repeated"  # triples that occur again are ranked again
    sample = evaluation.sample
    parts = [
        evaluation.protocol,
        evaluation.split,
        evaluation.leak_filter,
        repeated,
        evaluation.aggregate,
        evaluation.ties,
        f"{sample.queries}-seed-{sample.seed}" if sample else None,
    ]
    return "-".join(part for part in parts if part)


def _write_ranks(path: Path, evaluation: Evaluation) -> None:
    """A row for each fact or triple: its position in the split, and its ranks."""
    columns: dict[str, Any] = {"fact": np.asarray(evaluation.facts)}
    for name, ranks in evaluation.ranks.items():
        for column, what in enumerate(_asked(evaluation.protocol)):
            columns[f"{name}_{what}"] = np.ascontiguousarray(ranks[:, column])
    table = pa.table(columns)
    with (
        written_beside(path) as beside,
        sealed_writer(beside, table.schema, compression="zstd") as writer,
    ):
        writer.write_table(table)


def _asked(protocol: str) -> tuple[str, ...]:
    return ("predicate",) if protocol == "predicate" else ("object", "subject")
