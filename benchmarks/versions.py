"""Compare this version with another checkout of splime, in alternating processes.

python benchmarks/versions.py --base ../splime-0.1    # a checkout of the version to compare with

Both do the same work through the public interface. The result is the ratio of the medians; on a
shared machine the seconds themselves say little.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]


def measure() -> dict[str, float]:
    """The seconds of each task, in this process."""
    import splime

    seconds: dict[str, float] = {}

    def timed(name: str, work: Any) -> Any:
        start = time.perf_counter()
        result = work()
        seconds[name] = time.perf_counter() - start
        return result

    graph = timed("load yago11k", lambda: splime.load("yago11k"))
    events = timed("load icews14", lambda: splime.load("icews14"))
    methods = {
        "timestamp": splime.Timestamp(),
        "split": splime.Split(grow=20),
        "merge": splime.Merge(shrink=1.5),
        "changepoint": splime.ChangePointSplit(epsilon=25, proximity="adamic_adar"),
    }
    for name, method in methods.items():
        timed(f"transform icews14, {name}", lambda method=method: method.fit_transform(events))
    with tempfile.TemporaryDirectory() as home:
        trainings: dict[str, dict[str, Any]] = {
            "TransE, preset paper": {"preset": "paper", "epochs": 2},
            "ComplEx": {"model": "complex", "dimension": 100, "epochs": 4, "validate_every": 2},
        }
        for name, settings in trainings.items():
            run = splime.train(graph, splime.Split(grow=20), Path(home) / name, **settings)
            seconds[f"train {name}"] = run.about["seconds"]
        for protocol in ("fact", "triple", "predicate"):
            timed(f"evaluate, protocol {protocol}", lambda p=protocol: splime.evaluate(run, p))
        query = splime.Query(run)
        fact = next(graph.rows("test"))
        timed(
            "twenty questions",
            lambda: [
                query.ask(fact.subject, fact.predicate, "?", at=fact.begin) for _ in range(20)
            ],
        )
    return seconds


def call(source: Path) -> dict[str, float]:
    """Measure with one version."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure"],
        env={**os.environ, "PYTHONPATH": str(source / "src")},
        capture_output=True,
        text=True,
        check=True,
        cwd=tempfile.gettempdir(),
    )
    seconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def main() -> None:
    """Measure both in turns, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", action="store_true")
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure()))
        return
    rounds = [(call(given.base), call(HERE)) for _ in range(given.rounds)]
    results = {}
    for name in rounds[0][0]:
        base, this = ([pair[side][name] for pair in rounds] for side in (0, 1))
        ratio = statistics.median(this) / statistics.median(base)
        results[name] = {"base": base, "this": this, "ratio": round(ratio, 3)}
        print(f"{name:32} {min(base):7.2f} s {min(this):7.2f} s   ratio of medians {ratio:.2f}")
    if given.out is not None:
        given.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
