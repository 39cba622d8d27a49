"""Graphs that are broken on purpose: as many facts in each way as are said, and no others."""

from __future__ import annotations

import json

import numpy as np

import splime
from experiments import doubts
from experiments.commands import STORED
from splime.graph import Facts
from splime.query.doubting import DOUBTS, NAME, OVERLAP


def rows(facts: Facts) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in facts.columns()), strict=True))


def test_a_broken_graph() -> None:
    graph = splime.load("demo")
    broken = doubts.make_broken(graph)
    facts, made, kind = graph.facts(), broken.graph.train, broken.kind
    assert len(made) == len(kind) == len(facts) + (kind == DOUBTS.index(OVERLAP)).sum()
    first, names = slice(0, len(facts)), broken.graph.entities
    for number, way in enumerate(DOUBTS[:4]):
        at = np.flatnonzero(kind == number)
        assert len(at) == 100
        for name in ("subject", "predicate", "object"):
            given, now = (getattr(each, name)[at] for each in (facts, made))
            if name == "predicate":
                assert (given != now).all() == (way == name)
            else:
                differ = [graph.entities[a] != names[b] for a, b in zip(given, now, strict=True)]
                assert all(differ) if way == name else not any(differ)
        assert (made.begin[at] != facts.begin[at]).any() == (way == "time")
    right = np.flatnonzero(kind[first] < 0)
    assert (made.begin[right] == facts.begin[right]).all()
    assert [names[n] for n in made.object[right]] == [
        graph.entities[n] for n in facts.object[right]
    ]
    twins = {name for pair in broken.twins for name in pair}
    moved = np.flatnonzero(kind == DOUBTS.index(NAME))
    assert all({names[made.subject[n]], names[made.object[n]]} & twins for n in moved)
    again = doubts.make_broken(graph)
    assert rows(again.graph.train) == rows(made)


def test_what_is_found_among_the_first() -> None:
    wrong = np.array([True, False, True, False])
    found = doubts._found(np.array([4.0, 3.0, 2.0, 1.0]), wrong)
    assert (found.k, found.precision, found.recall, found.chance) == (2, 0.5, 1.0, 0.5)


def test_stored_figures_are_better_than_chance_and_say_what_was_asked() -> None:
    records = json.loads((STORED / doubts.FILE).read_text("utf-8"))
    assert records.keys() <= doubts.TITLES.keys()
    for record in records.values():
        assert record["asked"] <= record["facts"]
        ours = record["found"]["any of these"]["all doubts"]
        assert ours["precision"] > 3 * ours["chance"]
