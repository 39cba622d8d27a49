"""A million facts: every method, training, evaluation, questions and the report, with goals.

    python benchmarks/load.py                        # all parts, about 15 minutes on two cores
    python benchmarks/load.py --only methods,ask     # some of them; other results stay as they are
    python benchmarks/load.py --folder DIR           # keep the data and the run, and use them again

The facts are drawn at random with a seed: 10^6 facts of 10^5 entities, 250 predicates and 5,000
days. Names follow Zipf's law, half of the facts are instants and the others last 30 days on
average. Each line of the table is a process of its own; its CPU seconds count where the machine is
shared. `train` makes the run that the parts after it need, and `evaluate` its metrics.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from record import peak_mb, write_results

RESULTS = Path(__file__).parent / "results" / "load.json"
FACTS, ENTITIES, PREDICATES, DAYS, SEED = 10**6, 10**5, 250, 5_000, 0
EVENTS = 500_000
SCOPES = 17_000
TARGETS = ("predicates", "entities", "both")
METHODS = ("vanilla", "random", "timestamp", "split", "merge", "changepoint")
_FIRST_DAY = 10_957  # 2000-01-01

Measured = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One line of the table: what is measured, in how many seconds and MB it should end, and what
    bounds it."""

    name: str
    part: str
    measure: Callable[[Path], Measured]
    seconds: float
    megabytes: float
    bound: str


def zipf(rng: np.random.Generator, names: int, size: int, power: float = 0.8) -> np.ndarray:
    """Ids drawn by Zipf's law, which few of them have often and most seldom."""
    weight = 1 / np.arange(10, names + 10) ** power
    return rng.choice(names, size, p=weight / weight.sum())


def make_data(path: Path) -> None:
    """Draw the facts, and save them as Parquet."""
    import pyarrow.parquet as pq

    rng = np.random.default_rng(SEED)
    begin = rng.integers(0, DAYS, FACTS)
    length = np.where(rng.random(FACTS) < 0.5, 0, rng.geometric(1 / 30, FACTS))
    end = np.minimum(begin + length, DAYS - 1)
    columns = {
        "subject": (zipf(rng, ENTITIES, FACTS), "entity"),
        "predicate": (zipf(rng, PREDICATES, FACTS), "predicate"),
        "object": (zipf(rng, ENTITIES, FACTS), "entity"),
    }
    table = {
        name: pa.array(np.char.add(f"{kind} ", ids.astype(str))).dictionary_encode()
        for name, (ids, kind) in columns.items()
    }
    for name, days in (("begin", begin), ("end", end)):
        table[name] = pa.array((days + _FIRST_DAY).astype("M8[D]"))
    split = rng.choice(3, FACTS, p=(0.8, 0.1, 0.1))
    table["split"] = pa.array(np.array(["train", "valid", "test"])[split])
    pq.write_table(pa.table(table), path)


def make_events(path: Path) -> None:
    """Events with a timestamp each: milliseconds since some moment."""
    import pyarrow.parquet as pq

    rng = np.random.default_rng(SEED)
    at = rng.choice(10**9, EVENTS, replace=False)
    names = (("subject", ENTITIES), ("predicate", PREDICATES), ("object", ENTITIES))
    table = {name: pa.array(zipf(rng, most, EVENTS).astype(str)) for name, most in names}
    pq.write_table(pa.table({**table, "begin": at, "end": at}), path)


class Watch:
    """Seconds and CPU seconds since it was made."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def read(self) -> Measured:
        cpu_s = time.process_time() - self.cpu
        return {"seconds": time.perf_counter() - self.wall, "cpu_s": cpu_s}


def read_graph(folder: Path) -> Any:
    import splime

    return splime.read(folder / "facts.parquet")


def fit(folder: Path, name: str, target: str) -> Measured:
    """Choose cuts, and apply them."""
    from splime.methods import METHODS as KINDS, make_method

    graph = read_graph(folder)
    method = make_method(name, **KINDS[name].standard, target=target)
    watch = Watch()
    static = method.fit_transform(graph)
    spent = watch.read()
    scopes = [static.predicates, *filter(None, [static.segmentation.entities])]
    return {**spent, "scopes": sum(map(len, scopes)), "triples": len(static)}


def fit_events(folder: Path) -> Measured:
    """`vanilla` on events in milliseconds."""
    import splime

    graph = splime.read(folder / "events.parquet", granularity="step", split="none")
    watch = Watch()
    static = splime.Vanilla().fit_transform(graph)
    return {**watch.read(), "timestamps": len(graph.timeline), "triples": len(static)}


def train(folder: Path) -> Measured:
    """An epoch of ComplEx with its default settings but the dimension; without a checkpoint."""
    import splime

    graph = read_graph(folder)
    cuts = splime.Split(predicates=SCOPES).fit(graph)
    watch = Watch()
    run = splime.train(
        graph, cuts, folder / "run", model="complex", dimension=50, epochs=1, validate_every=0
    )
    about = {"loss": run.settings.loss, "scopes": len(run.segmentation.predicates)}
    return {**watch.read(), **about}


def evaluate(folder: Path, questions: int | Literal["all"] | None) -> Measured:
    """Rank by protocol `fact`: the default sample, or all questions."""
    import splime

    run = splime.Run(folder / "run")
    _ = run.scorer, run.scoping
    watch = Watch()
    evaluation = splime.evaluate(run, questions=questions)
    return {
        **watch.read(),
        "queries": evaluation.queries,
        "mrr": evaluation.metrics["exact"]["both"].mrr,
    }


def ask(folder: Path, *, first: bool) -> Measured:
    """The first answer of the program, from its start; or later ones in the same process."""
    watch = Watch()
    if first:
        (folder / "run" / "calibration.json").unlink(missing_ok=True)
    import splime

    run = splime.Run(folder / "run")
    query = splime.Query(run)
    graph, seconds = run.graph, []
    for row in range(1 if first else 21):
        later = Watch()
        subject = graph.entities[graph.test.subject[row]]
        query.ask(subject, graph.predicates[graph.test.predicate[row]], "?", at="2005-05-05")
        seconds.append(later.read())
    if first:
        return watch.read()
    return {key: float(np.median([each[key] for each in seconds[1:]])) for key in seconds[0]}


def report(folder: Path) -> Measured:
    """The page about the run, which was evaluated before."""
    import splime
    from splime.reporting.showing import write_page

    run = splime.Run(folder / "run")
    watch = Watch()
    write_page([run], folder / "report.html")
    return watch.read()


def cases() -> list[Case]:
    """Everything that is measured, in its order."""
    bounds = {
        "vanilla": "reading the facts once",
        "random": "the cuts one by one, a few numpy calls each",
        "timestamp": "the triples themselves: one for each timestamp of a fact",
        "split": "the cuts one by one, a few numpy calls each",
        "merge": "the scopes of timestamping, which it starts from",
        "changepoint": "signatures and their products, timestamp by timestamp",
    }
    made = [
        Case(
            f"{name}, {target}",
            "methods",
            partial(fit, name=name, target=target),
            30 if name == "changepoint" else 60,
            4_000,
            bounds[name],
        )
        for name in METHODS
        for target in TARGETS
    ]
    return [
        *made,
        Case("vanilla, events in ms", "methods", fit_events, 60, 1_000, bounds["vanilla"]),
        Case("an epoch, ComplEx 50", "train", train, 120, 4_000,
             "scores of the batch and its negatives"),
        Case("evaluate, as it is by default", "evaluate", lambda f: evaluate(f, None), 60, 4_000,
             "the entities, read once for each block of questions"),
        Case("evaluate, all questions", "evaluate", lambda f: evaluate(f, "all"), 240, 4_000,
             "the product of questions and entities"),
        Case("ask, the first answer", "ask", lambda f: ask(f, first=True), 5, 2_000,
             "importing PyTorch, opening the graph and the model"),
        Case("ask, later answers", "ask", lambda f: ask(f, first=False), 0.3, 2_000,
             "the scores of all entities"),
        Case(f"report, {SCOPES:,} scopes", "report", report, 30, 4_000,
             "the evaluation and the pictures"),
    ]  # fmt: skip


def main() -> None:
    """Make the data, measure each case in a process of its own, and print a table."""
    parts = list(dict.fromkeys(case.part for case in cases()))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default=",".join(parts), help=f"some of {','.join(parts)}")
    parser.add_argument("--match", default="", help="only cases whose name has this in it")
    parser.add_argument("--folder", type=Path, help="where data and run are kept; else nowhere")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--limit", type=float, default=600, help="most seconds of a process")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        [case] = [case for case in cases() if case.name == given.measure]
        print(
            json.dumps(
                {**case.measure(given.folder), "cpu": time.process_time(), "peak_mb": peak_mb()}
            )
        )
        return
    chosen = given.only.split(",")
    if unknown := set(chosen) - set(parts):
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(parts)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name, make in (("facts", make_data), ("events", make_events)):
            if not (folder / f"{name}.parquet").exists():
                make(folder / f"{name}.parquet")
        results = {}
        if given.out.exists():  # of cases that are not measured now
            results = {each["case"]: each for each in json.loads(given.out.read_text())["results"]}
        for case in cases():
            if case.part in chosen and given.match in case.name:
                results[case.name] = run_case(case, folder, given.limit)
                print(line(results[case.name]), flush=True)
                kept = [results[each.name] for each in cases() if each.name in results]
                sizes = {"facts": FACTS, "entities": ENTITIES, "predicates": PREDICATES}
                write_results(given.out, "python benchmarks/load.py", **sizes, results=kept)


def run_case(case: Case, folder: Path, limit: float) -> Measured:
    """Measure a case in a process; what fails is a line of the table too."""
    goal = {"case": case.name, "part": case.part, "goal_s": case.seconds,
            "goal_mb": case.megabytes, "bound": case.bound}  # fmt: skip
    command = [sys.executable, __file__, "--folder", str(folder), "--measure", case.name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {**goal, "failed": f"more than {limit:g} s"}
    except subprocess.CalledProcessError as error:
        return {**goal, "failed": (error.stderr.splitlines() or ["killed"])[-1]}
    return {**goal, **json.loads(done.stdout.splitlines()[-1])}


def line(result: Measured) -> str:
    """A result as a row of the table in README.md."""
    if "failed" in result:
        return f"| {result['case']} | {result['failed']} |"
    megabytes, goal = f"{result['peak_mb']:,.0f}", f"{result['goal_mb']:,.0f}"
    return (
        f"| {result['case']} | {result['seconds']:.2f} s | {result['cpu_s']:.2f} s"
        f" | {result['goal_s']:g} s | {megabytes} MB | {goal} MB | {result['bound']} |"
    )


if __name__ == "__main__":
    main()
