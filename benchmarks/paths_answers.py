"""Answers of the path model: what they cost, and what a bound costs.

    python benchmarks/paths_answers.py growth                   # random facts, 10^4 to 10^7
    python benchmarks/paths_answers.py reach RUN …              # runs on ICEWS14, several bounds
    python benchmarks/paths_answers.py asking RUN               # `ask` with evidence, YAGO11k
    python benchmarks/paths_answers.py exploring RUN            # what `splime explore` answers

growth: random facts over a tenth as many entities and 230 predicates in 365 days; the i-th entity
(or predicate) has a share of i^-0.8 of them, so few have most. The model is not trained (4 layers,
dimension 32). Every point is a process of its own; CPU seconds of one thread, the median of five
single questions, and a batch of 32 once.

reach: MRR of the same queries of test for every bound, set on trained runs.

asking: questions about facts of test, each asked and explained, with one thread unless
OMP_NUM_THREADS says otherwise, in CPU seconds and on the clock; the gradients of the
evidence also by the plain formulas. The command line is measured as a whole, with its imports.

exploring: the same questions as the page of `splime explore` asks them: the answer at the time
asked about, and then the answers at all times; with as many threads as OMP_NUM_THREADS says.

Results are kept in results/paths_answers.json, a part for each of the four.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import splime
from paths import random_facts
from record import peak_mb, write_results
from splime.evaluation.protocols import EvaluationOptions, evaluate_scoring
from splime.explorer import Explorer
from splime.graph import Facts
from splime.paths.evidence import passing
from splime.paths.model import LearnedPathModel, Start, Starter
from splime.paths.relative import EventScopes, Times
from splime.paths.scorer import PathScorer
from splime.reporting.style import make_figure, save_picture, series_style
from splime.scoring.scoping import NAMES
from splime.scoring.timed import TimedScoring
from splime.settings import PathSettings

RESULTS = Path(__file__).parent / "results" / "paths_answers.json"
FACTS = (10**4, 10**5, 10**6, 10**7)
REACH, BOUNDS = (None, 10**5, 10**3), (30_000, 10_000, 3_000, 1_000, 300, 100, 30)
PREDICATES, DAYS, BATCH = 230, 365, 32


def point(facts: int, reach: int | None) -> dict[str, Any]:
    """One question and a batch, in this process."""
    settings = PathSettings(relative="events:1,2,4,8,15,31,91", dimension=32)
    known, entities = random_facts(facts, facts // 10, PREDICATES, DAYS), facts // 10
    graph: Any = SimpleNamespace(
        train=known,
        entities=range(entities),
        predicates=range(PREDICATES),
        timeline=SimpleNamespace(granularity="day"),
    )
    scopes = EventScopes("day", (1, 2, 4, 8, 15, 31, 91))
    model = LearnedPathModel(PREDICATES, len(scopes), layers=4, width=32, reach=reach).eval()
    # Kernels are compiled, or loaded, before anything is measured.
    small: Any = SimpleNamespace(**{**vars(graph), "train": known.take(np.arange(100))})
    PathScorer(model, small, settings).entities("object", known.take(np.arange(2)))
    data_mb = peak_mb()
    started = time.process_time()
    scorer = PathScorer(model, graph, settings)
    scorer.entities("object", known.take(np.arange(1)))  # the orders are made when first needed
    opened = time.process_time() - started
    ask = np.random.default_rng(1).choice(facts, 5 + BATCH, replace=False)
    ones = []
    for one in ask[:5]:
        started = time.process_time()
        scorer.entities("object", known.take(np.array([one])))
        ones.append(time.process_time() - started)
    one_mb = peak_mb()
    started = time.process_time()
    scorer.entities("object", known.take(ask[5:]))
    return {
        "facts": facts,
        "entities": entities,
        "reach": reach,
        "open s": round(opened, 2),
        "one s": round(statistics.median(ones), 4),
        "batch s": round(time.process_time() - started, 3),
        "facts MB": round(data_mb),
        "one peak MB": round(one_mb),
        "batch peak MB": round(peak_mb()),
    }


def growth(options: argparse.Namespace) -> list[dict[str, Any]]:
    """All points, each in a process of its own, and their picture."""
    rows = []
    for facts in options.facts:
        for reach in (each for each in REACH if each is None or each < facts):
            given = [str(facts), str(reach or 0)]
            command = [sys.executable, __file__, "point", *given]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            print(rows[-1], flush=True)
    plot(rows, options.out.with_name("paths_growth.png"))
    return rows


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    figure = make_figure(9, 3.6)
    seconds, memory = figure.subplots(1, 2)
    colors = [series_style(number)["color"] for number in range(3)]
    for reach, line in zip(REACH, ("o-", "s--", "^:"), strict=True):
        name = "all facts" if reach is None else f"reach {reach:,}"
        there = [row for row in rows if row["reach"] == reach]
        at = [row["facts"] for row in there]
        kinds = (("one s", "one question"), ("batch s", "batch of 32"))
        for (key, what), color in zip(kinds, colors, strict=False):
            values = [row[key] for row in there]
            seconds.loglog(at, values, line, color=color, label=f"{what}, {name}", markersize=4)
        values = [row["batch peak MB"] for row in there]
        memory.loglog(at, values, line, color=colors[2], label=name, markersize=4)
    seconds.set_ylabel("CPU seconds")
    memory.set_ylabel("peak MB, all included")
    megabytes = (500, 1000, 2000)
    memory.set_yticks(megabytes, [f"{one:,}" for one in megabytes])
    for panel in (seconds, memory):
        panel.set_xlabel("facts")
        panel.grid(alpha=0.3)
        panel.minorticks_off()
        panel.legend(frameon=False, fontsize=8)
    figure.suptitle(
        "random facts, 10 to an entity; 4 layers, dimension 32; one thread", fontsize=10
    )
    save_picture(figure, path)


def path_scorer(run: splime.Run) -> PathScorer:
    scorer = run.scorer
    assert isinstance(scorer, PathScorer), f"{run.path} is no run of the path model"
    scorer.model.eval()
    return scorer


def starter(scorer: PathScorer, graph: splime.TemporalGraph) -> Starter:
    """What questions to a scorer begin with."""
    return scorer.model.starter(scorer.known, graph, scorer.relative)


def reach(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Metrics of one run with several bounds."""
    run = splime.Run(options.run, device="cpu")
    scorer, rows = path_scorer(run), []
    for bound in (None, *options.bounds):
        scorer.model.reach = bound
        started = time.process_time()
        scoring = TimedScoring(scorer, run.graph)
        evaluation = evaluate_scoring(
            scoring, "fact", EvaluationOptions(questions=options.questions)
        )
        used = time.process_time() - started
        metrics = evaluation.metrics["exact"]["both"]
        rows.append(
            {
                "reach": bound,
                "MRR": round(metrics.mrr, 4),
                "Hits@1": round(metrics.hits1, 4),
                "Hits@10": round(metrics.hits10, 4),
                "queries": evaluation.queries,
                "CPU ms a question": round(1e3 * used / evaluation.queries, 1),
            }
        )
        print(rows[-1], flush=True)
    return rows


def sample(run: splime.Run, count: int) -> Facts:
    """Facts of test that have a time."""
    facts = run.graph.test
    dated = facts.take(np.flatnonzero(facts.unknown < 3))
    return dated.take(np.random.default_rng(0).permutation(len(dated))[:count])


def asking(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of `ask` and `why`, first and later, and of the command as a whole."""
    started = time.process_time()
    query = splime.Query(splime.Run(options.run, device="cpu"))
    query.calibration("object")  # kept in the folder of the run
    seconds: dict[str, Any] = {"open": round(time.process_time() - started, 3)}
    run, scorer = query.run, path_scorer(query.run)
    graph = run.graph
    facts = sample(run, options.questions)
    taken, clock = [], []
    for fact in replace(graph, test=facts).rows("test"):
        asked = (fact.subject, fact.predicate, "?")
        during = (fact.begin or fact.end, fact.end or fact.begin)
        started, began = time.process_time(), time.perf_counter()
        best = query.ask(*asked, during=during)[0].name  # type: ignore[arg-type]
        between = time.process_time()
        query.why(*asked, during=during, answer=best)  # type: ignore[arg-type]
        clock.append(time.perf_counter() - began)
        taken.append((between - started, time.process_time() - between))
    ask, why = np.array(taken[1:]).T
    seconds["first, with evidence"] = round(sum(taken[0]), 3)
    for name, values in (("ask", ask), ("evidence", why), ("both", ask + why)):
        seconds[name] = spread(values)
    ratios, begin_with = [], starter(scorer, graph)
    for number in range(8):
        own = facts.take(np.array([number]))
        start = begin_with(torch.from_numpy(own.predicate.astype(np.int64)), None)
        scopes = scorer.read.scopes(scorer.relative, Times.of(own))
        inputs = (int(own.subject[0]), start, scopes, int(own.object[0]))
        started = time.process_time()
        passed = passing(scorer.model, scorer.read, *inputs)
        between = time.process_time()
        plain = plain_gradients(scorer, *inputs)
        ratios.append((time.process_time() - between) / (between - started))
        mine = torch.zeros_like(plain).index_add(0, passed.number, passed.gradient)
        assert float((mine - plain).norm()) <= 1e-3 * float(plain.norm()) + 1e-6
    seconds["plain gradients, ratio"] = round(statistics.median(ratios), 1)
    first = next(iter(replace(graph, test=facts).rows("test")))
    begin, end = first.begin or first.end, first.end or first.begin
    command = [
        *(sys.executable, "-m", "splime", "ask", str(options.run), first.subject, first.predicate),
        *("?", "--during", f"{begin}..{end}", "--why"),
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    seconds["the command as a whole"] = round(used, 2)
    about = {"data": graph.name, "layers": scorer.model.layers, "dimension": scorer.model.width}
    threads = {"threads": torch.get_num_threads(), "questions": len(taken)}
    return {**about, **threads, "CPU s": seconds, "both, s on the clock": spread(clock[1:])}


def spread(seconds: Any) -> dict[str, float]:
    return {
        "median": round(float(np.median(seconds)), 4),
        "largest": round(float(np.max(seconds)), 4),
    }


def exploring(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of the parts of `splime explore`, once each was asked for."""
    run = splime.Run(options.run, device="cpu")
    explorer = Explorer([run])
    explorer.prepare()
    [name], scorer = explorer.queries, path_scorer(run)
    tests = [fact for fact in explorer.answer("about", {})["tests"] if fact["time"]]
    about = {"data": run.graph.name, "layers": scorer.model.layers, "dimension": scorer.model.width}
    rows: dict[str, Any] = {}
    parts = {"ask": ("object", "subject", "predicate", "time"), "times": ("object", "subject")}
    for part, kinds in parts.items():
        for kind in kinds:
            taken = []
            for fact in tests[: options.questions]:
                names = {key: "" if key == kind else fact[key] for key in NAMES}
                when = "" if kind == "time" else fact["time"]
                given = {"run": name, "ask": kind, **names, "time": when}
                started, began = time.process_time(), time.perf_counter()
                explorer.answer(part, given)
                taken.append((time.process_time() - started, time.perf_counter() - began))
            cpu, clock = np.array(taken[1:]).T
            rows[f"{part}, {kind}"] = {"CPU s": spread(cpu), "s on the clock": spread(clock)}
    sizes = {"timestamps": len(run.graph.timeline), "threads": torch.get_num_threads()}
    return {**about, **sizes, "questions": min(options.questions, len(tests)), **rows}


def plain_gradients(
    scorer: PathScorer, given: int, start: Start, scopes: torch.Tensor, answer: int
) -> torch.Tensor:
    """What `passing` adds up to, by the plain formulas over all facts."""
    weights = scorer.read.weights()
    total = torch.zeros_like(weights)
    for share in (torch.arange(8) + 0.5) / 8:
        grown = (weights * share).requires_grad_()
        asked = (torch.tensor([given]), start, scopes, grown)
        scores = scorer.model(scorer.read, *asked, plain=True)
        total += torch.autograd.grad(scores[0, answer], grown)[0] / 8
    return total


WAYS: dict[str, Any] = {"reach": reach, "asking": asking, "exploring": exploring}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("growth", *WAYS, "point"))
    parser.add_argument("runs", nargs="*", help="the folders of runs")
    parser.add_argument("--facts", type=int, nargs="*", default=FACTS)
    parser.add_argument("--bounds", type=int, nargs="*", default=BOUNDS)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.what == "point":
        print(json.dumps(point(int(options.runs[0]), int(options.runs[1]) or None)))
        return
    kept = json.loads(options.out.read_text()) if options.out.exists() else {}
    parts = {name: kept[name] for name in ("growth", *WAYS) if name in kept}
    if options.what == "growth":
        parts["growth"] = growth(options)
    else:
        parts[options.what] = []
        for run in options.runs:
            options.run = run
            command = splime.Run(options.run, device="cpu").about.get("command", "")
            result = WAYS[options.what](options)
            print(json.dumps(result, indent=1))
            parts[options.what].append(
                {
                    "run": command.partition(" --out ")[0],
                    "torch": torch.__version__,
                    "result": result,
                }
            )
    write_results(options.out, "python benchmarks/paths_answers.py WHAT [RUN …]", **parts)


if __name__ == "__main__":
    main()
