"""All methods on the three published datasets, compared with literal loops in the same run.

The loops are those of the paper's pseudocode in tests/methods/oracle.py (for change points: dense
signatures made with sets, then ruptures). Each runs in a process of its own and is stopped after
--limit seconds. The results also have the seconds of the authors' code, measured separately: CPU
seconds of one core with loading, on a machine of the same kind (icews14 in 208 buckets there, in
365 days here).

    SPLIME_DATA=… python benchmarks/transforms.py
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from record import write_results

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "transforms.json"
sys.path.insert(0, str(ROOT))

SETTINGS: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
    "yago11k": {
        "vanilla": ("vanilla", {}),
        "timestamp": ("timestamp", {}),
        "merge": ("merge", {"shrink": 2}),
        "split time": ("split", {"by": "time", "grow": 20}),
        "split count": ("split", {"by": "count", "grow": 25}),
        "random": ("random", {"predicates": 200}),
        "change points": (
            "changepoint",
            {"proximity": "preferential_attachment", "epsilon": 5, "min_size": 2},
        ),
    },
    "wikidata12k": {
        "vanilla": ("vanilla", {}),
        "timestamp": ("timestamp", {}),
        "merge": ("merge", {"shrink": 4}),
        "split time": ("split", {"by": "time", "grow": 10}),
        "split count": ("split", {"by": "count", "grow": 25}),
        "random": ("random", {"predicates": 423}),
        "change points": (
            "changepoint",
            {"proximity": "preferential_attachment", "epsilon": 2.5, "min_size": 2},
        ),
    },
    "icews14": {
        "vanilla": ("vanilla", {}),
        "timestamp": ("timestamp", {}),
        "merge": ("merge", {"shrink": 1.5}),
        "split time": ("split", {"by": "time", "grow": 20}),
        "split count": ("split", {"by": "count", "grow": 25}),
        "random": ("random", {"predicates": 3_500}),
        "change points": (
            "changepoint",
            {"proximity": "adamic_adar", "epsilon": 25, "min_size": 2},
        ),
    },
}
AUTHORS = {
    "yago11k": [15, 18, 19, 50, 90, 45, 397],
    "wikidata12k": [24, 27, 36, 70, 144, 83, 608],
    "icews14": [11, 16, 19, 1_500, 1_500, 557, 174],
}


def fast(dataset: str, name: str) -> dict[str, float]:
    """CPU seconds of a method: the transform alone, and with loading."""
    import splime

    splime.load("demo")  # imports are not part of it
    method, parameters = SETTINGS[dataset][name]
    start = time.process_time()
    graph = splime.load(dataset)
    loading = time.process_time() - start
    seconds = []
    for _ in range(5):
        start = time.process_time()
        static = splime.make_method(method, **parameters, fit_on="all").fit_transform(graph)
        seconds.append(time.process_time() - start)
    return {
        "seconds": round(statistics.median(seconds), 4),
        "first": round(seconds[0], 4),
        "loading": round(loading, 4),
        "predicates": len(static.predicates),
    }


def slow(dataset: str, name: str) -> float:
    """CPU seconds of the literal loops."""
    import splime
    from splime.graph import Facts
    from tests.methods import oracle

    graph = splime.load(dataset)
    facts = graph.facts()
    begin, end = (times.tolist() for times in graph.timestamps(facts))
    by_name: dict[int, list[tuple[int, int, int]]] = {}
    for number, predicate in enumerate(facts.predicate.tolist()):
        by_name.setdefault(predicate, []).append((begin[number], end[number], number))
    _, parameters = SETTINGS[dataset][name]
    start = time.process_time()
    if name == "vanilla":
        _ = [
            (s, p, o) for s, p, o in zip(facts.subject, facts.predicate, facts.object, strict=True)
        ]
    elif name == "timestamp":
        oracle.timestamp(by_name)
    elif name == "merge":
        timestamped = sum(map(len, oracle.timestamp(by_name).values()))
        goal = len(by_name) + int((timestamped - len(by_name)) / parameters["shrink"])
        oracle.merge(by_name, goal)
    elif name.startswith("split"):
        where = oracle.middle if parameters["by"] == "time" else oracle.balance
        goal = parameters["grow"] * len(by_name)
        oracle.split(by_name, where, lambda predicates, _: predicates >= goal)
    elif name == "random":
        oracle.random(by_name, parameters["predicates"], 0)
    else:
        assert isinstance(facts, Facts)
        _dense_change_points(graph, parameters)
    return time.process_time() - start


def _dense_change_points(graph: Any, parameters: dict[str, Any]) -> None:
    """Dense signatures made with sets, then ruptures, as the paper describes it."""
    import ruptures

    facts = graph.facts()
    begin, end = graph.timestamps(facts)
    for predicate in range(len(graph.predicates)):
        rows = np.flatnonzero(facts.predicate == predicate).tolist()
        links: dict[int, set[tuple[int, int]]] = {}
        for row in rows:
            pair = sorted((int(facts.subject[row]), int(facts.object[row])))
            for t in range(int(begin[row]), int(end[row]) + 1):
                links.setdefault(t, set()).add((pair[0], pair[1]))
        pairs = {pair: at for at, pair in enumerate(sorted(set().union(*links.values())))}
        signal = np.zeros((len(links), len(pairs)))
        for at, t in enumerate(sorted(links)):
            near: dict[int, set[int]] = {}
            for a, b in links[t]:
                near.setdefault(a, {a}).add(b)
                near.setdefault(b, {b}).add(a)
            for a, b in links[t]:
                if parameters["proximity"] == "adamic_adar":
                    if near[a] != near[b]:
                        common = near[a] & near[b]
                        signal[at, pairs[a, b]] = sum(1 / np.log(len(near[z])) for z in common)
                else:
                    signal[at, pairs[a, b]] = len(near[a]) * len(near[b])
            signal[at] /= np.linalg.norm(signal[at]) or 1
        if len(signal) > parameters["min_size"]:
            search = ruptures.BottomUp(model="rbf", jump=1, min_size=parameters["min_size"])
            search.fit(signal).predict(epsilon=parameters["epsilon"])


def in_process(kind: str, dataset: str, name: str, limit: float) -> Any:
    command = [sys.executable, __file__, "--measure", kind, dataset, name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description="all methods against the literal loops")
    parser.add_argument("--limit", type=float, default=300, help="seconds for each of the loops")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        kind, dataset, name = arguments.measure
        print(json.dumps(fast(dataset, name) if kind == "fast" else slow(dataset, name)))
        return
    rows = []
    for dataset, settings in SETTINGS.items():
        for (name, _), authors in zip(settings.items(), AUTHORS[dataset], strict=True):
            ours = in_process("fast", dataset, name, 600)
            loops = in_process("slow", dataset, name, arguments.limit)
            row = {"dataset": dataset, "method": name, **ours, "loops": loops, "authors": authors}
            row["ratio_to_loops"] = round((loops or arguments.limit) / ours["seconds"])
            row["ratio_to_authors"] = round(authors / (ours["first"] + ours["loading"]))
            rows.append(row)
            print(json.dumps(row), flush=True)
    command = f"python benchmarks/transforms.py --limit {arguments.limit:g}"
    write_results(RESULTS, command, limit=arguments.limit, results=rows)


if __name__ == "__main__":
    main()
