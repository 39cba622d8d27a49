"""Run cases, several at once where there is room, and remember what they give."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, TypeAlias

from experiments import algorithm_2
from experiments.published import resolved
from experiments.rivals import KEPT, STRATA, pack
from experiments.rows import METRICS, RANKS, SIXTEEN, Case, Combination, Results
from splime.datasets import DATASETS, load
from splime.errors import Interrupted, SplimeError, WriteError
from splime.evaluation import Evaluation
from splime.graph import END_UNKNOWN, SPLITS, SplitName, TemporalGraph
from splime.methods import make_method
from splime.progress import Progress, silent
from splime.runs import Run, combine, evaluate, is_finished, train
from splime.runs.parallel import check_left, map_trainings
from splime.splitting import split_graph
from splime.workers import Parallel

Record: TypeAlias = dict[str, Any]

_FACT: Mapping[str, Any] = {"end_before_begin": "repair", "bucket_on": "train"}
_POINT = {**_FACT, "first": "end", "last": "begin"}
READINGS: Mapping[str, Mapping[str, Any]] = {
    # As behind the paper's metrics: the datasets' own rules, buckets from all splits.
    "paper": {},
    # Protocol `fact`: every fact of valid and test is asked for, and time is learned from train.
    "fact": _FACT,
    # The same, but a fact with an unknown end holds only at the time that is known of it.
    "point": _POINT,
    # With finer time: smaller buckets, or every year a timestamp.
    "fact-100": {**_FACT, "bucket": 100},
    "point-100": {**_POINT, "bucket": 100},
    "fact-years": {"end_before_begin": "repair", "bucket": None},
    # As in the paper, but every year is a timestamp.
    "years": {"bucket": None},
    # As in the paper, without facts whose end is unknown: nowhere, or not in valid and test.
    "ended": {},
    "ended-test": {},
    # Protocol `fact`, but the last facts are valid and test: a question is about the future.
    "forecast": _FACT,
}
# Readings that are made from others.
_MADE_FROM = {"ended": "paper", "ended-test": "paper", "forecast": "fact"}
_ENDED: Mapping[str, tuple[SplitName, ...]] = {"ended": SPLITS, "ended-test": ("valid", "test")}
_DIGITS = 6
UNFINISHED = "unfinished"


def load_graph(dataset: str, reading: str, data: Path | None = None) -> TemporalGraph:
    """A dataset, read in one of the ways; from a file of `data` where the dataset is not at hand.

    The files are called DATASET-READING.parquet; one is enough for readings made from others.
    """
    in_package = dataset in DATASETS and not DATASETS[dataset].checksums  # a file of the package
    if data is not None and not in_package:
        graph = load(str(data / f"{dataset}-{_MADE_FROM.get(reading, reading)}.parquet"))
    else:
        options = dict(READINGS[reading])
        if "bucket" not in DATASETS[dataset].options:
            options.pop("bucket_on", None)
        graph = load(dataset, **options)
    if reading == "forecast":
        graph = split_graph(graph, "time", valid=0.1, test=0.096, allow_unseen=True)
    for split in _ENDED.get(reading, ()):
        facts = getattr(graph, split)
        ended = facts.take((facts.unknown & END_UNKNOWN) == 0)
        graph = replace(graph, **{split: ended})
    return graph.compact() if reading in _ENDED else graph


def run_cases(
    cases: Sequence[Case],
    results: Results,
    *,
    data: Path | None = None,
    parallel: Parallel | None = None,
    keep: Mapping[str, Path] | None = None,
    progress: Progress = silent,
) -> None:
    """Run cases; each is remembered as soon as it is done.

    A case that fails does not keep the others from being run; it is an error in the end. One that
    was stopped resumes, from the folder `unfinished` beside the results; but not on a Ray cluster,
    whose machines may not see that folder.

    Args:
        cases: what to run.
        results: what was run before, and where to remember more.
        data: a folder with graphs saved as DATASET-READING.parquet, where the datasets themselves
            are not at hand.
        parallel: where to run them, and how many at once; by default one by one, in this process.
        keep: folders to leave runs in, by the keys of their cases.
        progress: called after each case.
    """
    failed: list[tuple[Case, SplimeError]] = []
    kept = {key: folder.absolute() for key, folder in (keep or {}).items()}
    parallel = parallel or Parallel()
    unfinished = None if parallel.engine == "ray" else results.path.parent.absolute() / UNFINISHED
    run = partial(
        _run,
        data=data and data.absolute(),
        device=parallel.device,
        keep=kept,
        unfinished=unfinished,
    )
    for done, (number, record) in enumerate(map_trainings(run, cases, parallel), 1):
        case = cases[number]
        if isinstance(record, SplimeError):
            failed.append((case, record))
        else:
            if case.key() in kept:
                check_left(is_finished(kept[case.key()]), kept[case.key()])
            results.add(case, record)
        progress("trainings", done, len(cases), str(case))
    if failed:
        case, first = failed[0]
        raise SplimeError(
            f"{len(failed)} of {len(cases)} trainings failed, the others are in {results.path};"
            f" the first ({case}): {first}"
        ) from first


def _run(
    case: Case,
    *,
    data: Path | None,
    device: str,
    keep: Mapping[str, Path],
    unfinished: Path | None,
) -> Record | SplimeError:
    """The record of a case, or what went wrong: other cases may do better."""
    try:
        if isinstance(case, Combination):
            members = [keep[member.key()] for member in case.members]
            return run_combination(case, members, device=device)
        if unfinished is None or case.key() in keep:
            return run_case(case, data=data, device=device, keep=keep.get(case.key()))
        folder = unfinished / case.key()
        record = run_case(case, data=data, device=device, keep=folder)
        rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # others are there
            unfinished.rmdir()
        return record
    except (WriteError, Interrupted):
        raise  # nor would the others
    except SplimeError as error:
        return error
    except Exception as error:
        failed = SplimeError(f"{type(error).__name__}: {error}")
        failed.__cause__ = error
        return failed


def run_case(
    case: Case, *, data: Path | None = None, device: str = "auto", keep: Path | None = None
) -> Record:
    """Train and evaluate one case; the folder of the run is left where `keep` says, if it does."""
    graph = load_graph(case.dataset, case.reading, data)
    if case.method == algorithm_2.NAME:
        # What it makes is no segmentation, so it is trained on as it is.
        graph = algorithm_2.algorithm_2(graph, **case.parameters)
        method = make_method("vanilla")
    else:
        method = make_method(case.method, **case.parameters)
    cuts = method.fit(graph)
    with tempfile.TemporaryDirectory() if keep is None else nullcontext(keep) as folder:
        run = train(graph, cuts, folder, device=device, **resolved(case.training))
        return _record(run, case)


def run_combination(case: Combination, members: Sequence[Path], *, device: str = "auto") -> Record:
    """Combine runs that are there, and evaluate what comes of it."""
    with tempfile.TemporaryDirectory() as folder:
        run = combine(members, Path(folder) / "run", device=device)
        weights = [round(weight, _DIGITS) for weight in run.config["settings"]["weights"]]
        valid = round(run.about["valid"]["mrr"], _DIGITS)
        return {**_record(run, case), "valid": valid, "weights": weights}


def _record(run: Run, case: Case) -> Record:
    about = ("device", "versions", "started", "seconds", "parameters", "triples")
    curve = [
        [each.epoch, round(each.valid, _DIGITS)] for each in run.history if each.valid is not None
    ]
    return {
        "figures": [_evaluate(run, options) for options in case.evaluations],
        "predicates": len(run.segmentation.predicates),
        "epochs": len(run.history),
        "valid": max((mrr for _, mrr in curve), default=None),
        "curve": curve,
        **{name: run.about[name] for name in about if name in run.about},
    }


def _evaluate(run: Run, options: Mapping[str, Any]) -> Record:
    if options["protocol"] == "questions":
        return {"answers": _answer_questions(run)}
    if options["protocol"] == "smoothness":
        return _measure_smoothness(run)
    keep = options.get("keep", False)
    asked = {name: value for name, value in options.items() if name != "keep"}
    evaluation = evaluate(run, **asked)
    metrics = {}
    for name, sides in evaluation.metrics.items():
        both = {metric: getattr(sides["both"], metric) for metric in METRICS}
        apart = {side: by_side.mrr for side, by_side in sides.items() if side != "both"}
        metrics[name] = {key: round(value, _DIGITS) for key, value in (both | apart).items()}
    record: Record = {"queries": evaluation.queries, "metrics": metrics}
    return {**record, **(_kept(evaluation) if keep else {})}


def _kept(evaluation: Evaluation) -> Record:
    """What a comparison of models needs beside the metrics."""
    strata = {
        name: {
            kind: {group: round(stratum.mrr, _DIGITS) for group, stratum in of[kind].items()}
            for kind in STRATA
        }
        for name, of in evaluation.strata.items()
        if name in KEPT
    }
    reciprocals = {name: pack(evaluation.ranks[name]) for name in KEPT}
    if reciprocals["overlap"] == reciprocals["exact"]:
        del reciprocals["overlap"]  # of instants
    return {"strata": strata, RANKS: reciprocals}


def _answer_questions(run: Run) -> list[list[str]]:
    """The first two predicates of each answer, without brackets.

    As the paper asked: of the 25 best scoped predicates those that overlap the time.
    """
    from splime.query import Query

    query, last = Query(run), int(run.graph.timeline.last)
    names = []
    for question in SIXTEEN:
        subject, object_ = (f"<{name}>" for name in (question.subject, question.object))
        during = (min(question.begin, last), min(question.end, last))
        answers = query.ask(subject, "?", object_, during=during, best=25, limit=2)
        names.append([answer.name.strip("<>") for answer in answers])
    return names


def _measure_smoothness(run: Run) -> Record:
    """Of all predicates together, and of each its number of scopes and its smoothness."""
    from splime.analysis import smoothness

    measured = smoothness(run)
    return {
        "overall": None if measured.overall is None else round(measured.overall, 4),
        "predicates": {
            name: [predicate.scopes, round(predicate.ratio, 4)]
            for name, predicate in measured.predicates.items()
        },
    }
