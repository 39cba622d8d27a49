"""Run cases, several at once where there is room, and remember what they give."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from splime.errors import SplimeError
from splime.experiments import algorithm_2
from splime.experiments.case import Case
from splime.experiments.figures import FIGURES
from splime.experiments.questions import QUESTIONS, answer_questions
from splime.experiments.readings import load_graph
from splime.experiments.results import Results
from splime.experiments.smoothness import SMOOTHNESS, measure
from splime.methods import make_method
from splime.runs import Run, evaluate, train

Advance: TypeAlias = Callable[[int, int, str], None]
"""Takes how many cases are done, how many there are, and the one that was done last."""
Record: TypeAlias = dict[str, Any]

_ABOUT = ("device", "versions", "started", "seconds", "parameters", "triples")
_DIGITS = 6


def run_cases(
    cases: Sequence[Case],
    results: Results,
    *,
    data: Path | None = None,
    device: str = "auto",
    processes: int = 1,
    keep: Mapping[str, Path] | None = None,
    advance: Advance | None = None,
) -> None:
    """Run cases; each is remembered as soon as it is done.

    A case that fails does not keep the others from being run; it is an error in the end.

    Args:
        cases: what to run.
        results: what was run before, and where to remember more.
        data: a folder with graphs saved as DATASET-READING.parquet, where the datasets themselves
            are not at hand.
        device: cpu, cuda or auto.
        processes: how many cases to run at once.
        keep: folders to leave runs in, by the keys of their cases.
        advance: is told of progress.
    """
    failed: list[tuple[Case, Exception]] = []
    jobs = [_Job(case, data, device, (keep or {}).get(case.key())) for case in cases]
    for done, (case, found) in enumerate(_records(jobs, processes), 1):
        if isinstance(found, Exception):
            failed.append((case, found))
        else:
            results.add(case, found)
        if advance is not None:
            advance(done, len(jobs), str(case))
    if failed:
        case, error = failed[0]
        raise SplimeError(
            f"{len(failed)} of {len(jobs)} trainings failed, the others are in {results.path};"
            f" the first ({case}): {error}"
        ) from error


class _Job(NamedTuple):
    case: Case
    data: Path | None
    device: str
    keep: Path | None


def _records(jobs: Sequence[_Job], processes: int) -> Iterator[tuple[Case, Record | Exception]]:
    """Each case with its record, or with what went wrong, as soon as it is done."""
    if processes <= 1:
        for job in jobs:
            yield job.case, _try(job)
        return
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // processes)))
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        futures = {pool.submit(_try, job): job.case for job in jobs}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _try(job: _Job) -> Record | Exception:
    try:
        return run_case(job.case, data=job.data, device=job.device, keep=job.keep)
    except Exception as error:  # whatever it is, other cases may do better
        return error


def run_case(
    case: Case, *, data: Path | None = None, device: str = "auto", keep: Path | None = None
) -> Record:
    """Train and evaluate one case; the folder of the run is left where `keep` says, if it does."""
    graph = load_graph(case.dataset, case.reading, data)
    if case.method == algorithm_2.NAME:
        # What it makes is no segmentation, so the pieces are trained on as they are.
        graph = algorithm_2.algorithm_2(graph, **case.parameters)
        method = make_method("vanilla")
    else:
        method = make_method(case.method, **case.parameters)
    cuts = method.fit(graph)
    with tempfile.TemporaryDirectory() if keep is None else nullcontext(keep) as folder:
        run = train(graph, cuts, folder, device=device, **case.training)
        return record_of(run, case)


def record_of(run: Run, case: Case) -> Record:
    """What is remembered of a case: its figures, and what they were made with."""
    figures = [_evaluated(run, options) for options in case.evaluations]
    looks = [one.valid for one in run.history if one.valid is not None]
    return {
        "figures": figures,
        "predicates": len(run.segmentation.predicates),
        "epochs": len(run.history),
        "valid": round(max(looks), _DIGITS) if looks else None,
        **{name: run.about[name] for name in _ABOUT if name in run.about},
    }


def _evaluated(run: Run, options: Mapping[str, Any]) -> Record:
    if options["protocol"] == QUESTIONS:
        return {"answers": answer_questions(run)}
    if options["protocol"] == SMOOTHNESS:
        return measure(run)
    found = evaluate(run, **options)
    metrics = {}
    for name, sides in found.metrics.items():
        both = {figure: getattr(sides["both"], figure) for figure in FIGURES}
        apart = {side: each.mrr for side, each in sides.items() if side != "both"}
        metrics[name] = {key: round(value, _DIGITS) for key, value in (both | apart).items()}
    return {"queries": found.queries, "metrics": metrics}
