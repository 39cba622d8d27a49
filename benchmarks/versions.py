"""Compare this version with another checkout of splime, in alternating processes.

python benchmarks/versions.py --base ../splime-0.1    # a checkout of the version to compare with

Both do the same work through the public interface. The result is the ratio of the smallest seconds
of processor time; on a shared machine the seconds themselves say little.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
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
        start = time.process_time()
        result = work()
        seconds[name] = time.process_time() - start
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
            out, cuts = Path(home) / name, splime.Split(grow=20)
            run = timed(
                f"train {name}",
                lambda out=out, cuts=cuts, more=settings: splime.train(graph, cuts, out, **more),
            )
        for protocol in ("fact", "triple", "predicate"):
            timed(f"evaluate, protocol {protocol}", lambda p=protocol: splime.evaluate(run, p))
        demo, out = splime.load("demo"), Path(home) / "path"
        few: dict[str, Any] = {"model": "path", "preset": "quick", "epochs": 1}
        if importlib.util.find_spec("splime.paths.counted"):
            few |= {"messages": "learned"}  # as before there were counted ones
        path = timed("train path", lambda: splime.train(demo, None, out, **few))
        timed("evaluate path", lambda: splime.evaluate(path, questions=500))
        for name, asked in (("ComplEx", run), ("path", path)):
            query, fact = splime.Query(asked), next(asked.graph.rows("test"))
            question = (fact.subject, fact.predicate, "?")
            query.ask(*question, at=fact.begin)  # calibrates
            timed(
                f"twenty questions, {name}",
                lambda query=query, question=question, at=fact.begin: [
                    query.ask(*question, at=at) for _ in range(20)
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
        ratio = min(this) / min(base)
        results[name] = {"base": base, "this": this, "ratio": round(ratio, 3)}
        print(f"{name:32} {min(base):7.2f} s {min(this):7.2f} s   ratio {ratio:.2f}")
    if given.out is not None:
        given.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
