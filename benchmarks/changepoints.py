"""Does ChangePointSplit find the known changes of the synthetic world? And what does it cost?

Precision and recall over ten worlds, to the year, for the interval predicates (livesIn, playsFor,
memberOf) and for all nine predicates; then the cost of one large predicate.

    python benchmarks/changepoints.py
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import splime
from record import write_results
from splime.methods import ChangePointSplit

RESULTS = Path(__file__).parent / "results" / "changepoints.json"
INTERVALS = ("livesIn", "playsFor", "memberOf")
SEEDS = range(10)


def quality(**parameters: Any) -> dict[str, Any]:
    from experiments.world import World

    counts = {kind: np.zeros(3, int) for kind in ("intervals", "all")}
    for seed in SEEDS:
        world = World(seed=seed)
        segmentation = ChangePointSplit(**parameters).fit(splime.read(world.table()))
        for predicate, planted in world.planted().items():
            found = {int(scope.begin) for scope in segmentation.scopes_of(predicate)[1:]}
            row = np.array([len(planted), len(found), len(found & set(planted))])
            counts["all"] += row
            if predicate in INTERVALS:
                counts["intervals"] += row
    result: dict[str, Any] = dict(parameters)
    for kind, (planted_count, found_count, hits) in counts.items():
        result[f"{kind}_recall"] = round(float(hits / planted_count), 3)
        result[f"{kind}_precision"] = round(float(hits / max(found_count, 1)), 3)
    return result


def large(timestamps: int, pairs: int) -> dict[str, Any]:
    """One large predicate, in which every pair holds for about 20 timestamps."""
    rng = np.random.default_rng(0)
    begin = rng.integers(0, timestamps, pairs)
    end = np.minimum(begin + rng.integers(0, 40, pairs), timestamps - 1)
    subject, object_ = np.arange(pairs), pairs + rng.integers(0, pairs // 20, pairs)
    found: dict[str, Any] = {"timestamps": timestamps, "pairs": pairs}
    for proximity in ("jaccard", "adamic_adar", "preferential_attachment"):
        start = time.process_time()
        method = ChangePointSplit(proximity=proximity, epsilon=50.0)
        method.change_points(begin, end, subject, object_)
        found[proximity] = round(time.process_time() - start, 2)
    return found


def main() -> None:
    settings: list[dict[str, Any]] = [
        *(
            {"proximity": p, "penalty": 3.0}
            for p in ("jaccard", "adamic_adar", "preferential_attachment")
        ),
        *({"proximity": "adamic_adar", "penalty": x} for x in (1.0, 2.0, 4.0)),
        *({"proximity": "adamic_adar", "epsilon": x} for x in (10.0, 20.0, 30.0)),
    ]
    found = {"quality": [quality(**parameters) for parameters in settings]}
    found["large"] = [large(1_000, 100_000)]
    print(json.dumps(found, indent=1))
    write_results(RESULTS, "python benchmarks/changepoints.py", **found)


if __name__ == "__main__":
    main()
