"""Take facts away from a graph, and look how many of the first facts that it predicts they are.

All splits together are one graph, without training. A tenth of the facts that hold in a year are
taken away. Chance is the most frequent object of the predicate, for questions (a subject and a
predicate) drawn at random from all for which there may be an answer.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import splime
from record import write_results
from splime.analysis.existence import Existence
from splime.graph import Facts

RESULTS = Path(__file__).parent / "results" / "predicting.json"
FIRST = 100


def measure(data: str, year: int, share: float, seed: int = 0) -> dict[str, Any]:
    """How many of the first facts were taken away."""
    graph = splime.load(data)
    facts = graph.facts()
    tick, _ = graph.timeline.interval(year, year)
    holding = np.flatnonzero((facts.begin <= tick) & (facts.end >= tick))
    random = np.random.default_rng(seed)
    away = random.choice(holding, int(share * len(holding)), replace=False)
    left = facts.take(~np.isin(np.arange(len(facts)), away))
    asked = replace(graph, train=left, valid=Facts.empty(), test=Facts.empty())
    names = list(replace(graph, train=facts.take(away)).rows("train"))
    gone = {fact[:3] for fact in names} - {fact[:3] for fact in asked.at(year).rows()}
    pairs = {fact[:2] for fact in gone}
    started = time.perf_counter()
    found = splime.predict(asked, at=year, limit=FIRST, evidence=False)
    seconds = time.perf_counter() - started
    hits = [row[:3] in gone for row in found]
    return {
        "data": data,
        "year": year,
        "facts taken away": len(gone),
        "of the first": len(found),
        "were taken away": sum(hits),
        "of the first ten": sum(hits[:10]),
        "subject and predicate right": sum(row[:2] in pairs for row in found),
        "by their probabilities": round(sum(row.probability for row in found), 1),
        "by chance": float(f"{chance(asked, gone, tick):.2g}"),
        "questions asked": found.questions,
        "Brier": {
            name: {"estimates": round(one.brier, 4), "base rate": round(one.base, 4)}
            for name, one in found.checks.items()
        },
        "seconds": round(seconds, 1),
    }


def chance(graph: splime.TemporalGraph, gone: set[tuple[str, str, str]], tick: int) -> float:
    """How many would be expected of random questions, with the most frequent answers."""
    existence, everyone = Existence(graph), np.arange(len(graph.entities))
    questions = len(existence.candidates(everyone, tick, tick)[0])
    frequent: dict[str, Counter[str]] = {}
    for fact in graph.rows():
        frequent.setdefault(fact.predicate, Counter())[fact.object] += 1
    best = {predicate: counts.most_common(1)[0][0] for predicate, counts in frequent.items()}
    right = sum(best.get(predicate) == object_ for _, predicate, object_ in gone)
    return FIRST * right / questions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", nargs="*", default=["demo", "yago11k"])
    parser.add_argument("--year", type=int, default=1990)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = []
    for data in options.data:
        results.append(measure(data, options.year, options.share))
        print("\n".join(f"{name}: {value}" for name, value in results[-1].items()), end="\n\n")
    write_results(options.out, "python benchmarks/predicting.py", results=results)


if __name__ == "__main__":
    main()
