"""Estimates whether a graph states a fact at a time: calibrated, and without what they ask for."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import splime
from splime.analysis import existence
from splime.analysis.existence import ALL, OTHER_TIMES, Check, Existence
from splime.errors import UsageError
from splime.graph import TemporalGraph

LAST = 2020


def careers(people: int = 40, seed: int = 0) -> TemporalGraph:
    """Who is born plays each year from twenty on, with a year off now and then, until death."""
    draw, rows = random.Random(seed), []
    for number in range(people):
        name, born, lived = f"person {number}", draw.randrange(1950, 1980), draw.randrange(25, 60)
        rows.append((name, "bornIn", f"town {draw.randrange(4)}", born, born))
        died = born + lived
        if died <= LAST:
            rows.append((name, "diedIn", f"town {draw.randrange(4)}", died, died))
        for year in range(born + 20, min(died, LAST), 2):
            if draw.random() < 0.9:
                end = min(year + 1, died, LAST)
                rows.append((name, "playsFor", f"club {draw.randrange(5)}", year, end))
    return splime.read(rows, split="none", granularity="year")


@pytest.fixture(scope="module")
def graph() -> TemporalGraph:
    return careers()


@pytest.fixture(scope="module")
def stated(graph: TemporalGraph) -> Existence:
    return Existence(graph)


def dates(graph: TemporalGraph, predicate: str) -> dict[str, int]:
    facts = graph.where(predicate=predicate).rows()
    return {fact.subject: int(fact.begin or 0) for fact in facts}


def test_it_is_better_than_the_base_rate(stated: Existence) -> None:
    for name in (OTHER_TIMES, ALL):
        check = stated.checks[name]
        assert check is not None
        assert check.questions > 500
        assert check.brier < 0.5 * check.base
        assert all(0 <= part.probability <= 1 for part in check.bins)
        assert sum(part.questions for part in check.bins) == check.questions
        often = [part for part in check.bins if part.questions > 200]
        assert all(abs(part.probability - part.stated) < 0.15 for part in often)


def test_the_dead_do_not_play(graph: TemporalGraph, stated: Existence) -> None:
    died, born = dates(graph, "diedIn"), dates(graph, "bornIn")

    def estimates(predicate: str, asked: list[tuple[str, int]]) -> list[float]:
        return [stated.one(name, predicate, year) for name, year in asked[:10]]

    dead = [(name, year + 3) for name, year in died.items() if year < LAST - 3]
    assert len(dead) > 8
    assert max(estimates("playsFor", dead)) < 0.1
    assert max(estimates("diedIn", [(name, year - 5) for name, year in died.items()])) < 0.1
    unborn = [(name, 1950) for name, year in born.items() if year > 1960]
    assert max(estimates("playsFor", unborn)) < 0.1
    plays = {
        (fact.subject, year)
        for fact in graph.where(predicate="playsFor").rows()
        for year in range(int(fact.begin or 0), int(fact.end or 0) + 1)
    }
    off = [
        (name, year)
        for name, first in born.items()
        for year in range(first + 24, min(died.get(name, LAST), LAST) - 4)
        if (name, year) not in plays
    ]
    assert np.mean(estimates("playsFor", off)) > 0.6


def test_estimates_of_one_question_and_of_many(graph: TemporalGraph, stated: Existence) -> None:
    everyone = np.arange(len(graph.entities))
    subject, predicate = stated.candidates(everyone, 1990, 1990)
    assert len({*zip(subject.tolist(), predicate.tolist(), strict=True)}) == len(subject)
    had = {(int(s), int(p)) for s, p, *_ in graph.facts().array()}
    assert had <= {*zip(subject.tolist(), predicate.tolist(), strict=True)}
    many = stated.estimate(subject, predicate, 1990, 1990)
    assert ((many >= 0) & (many <= 1)).all()
    for row in range(0, len(subject), 40):
        names = graph.entities[subject[row]], graph.predicates[predicate[row]]
        assert stated.one(*names, 1990) == pytest.approx(many[row])
    wide = stated.estimate(subject, predicate, 1985, 1990)
    assert (wide >= many - 1e-12).all()  # at the likeliest time of the interval


def test_what_is_hidden_changes_nothing_of_how_it_is_seen(
    graph: TemporalGraph, stated: Existence
) -> None:
    """The features of a fact that is hidden are those of a graph that never stated it."""
    facts, full = graph.facts(), stated
    chosen = facts.predicate == graph.predicates.id("playsFor")
    number = int(np.flatnonzero(chosen)[7])
    other = np.arange(len(facts)) != number
    without = Existence(splime.TemporalGraph(
        facts.take(other), graph.valid, graph.test,
        graph.entities, graph.predicates, graph.timeline,
    ))  # fmt: skip
    entity, predicate, at = (
        np.array([int(column[number])], np.int64)
        for column in (facts.subject, facts.predicate, graph.timestamps(facts)[0])
    )
    seen = (each._of_pair.around(_place(each, entity, predicate), at) for each in (full, without))
    hidden, absent = seen
    assert (hidden.now[0] - 1, hidden.before[0], hidden.after[0]) == tuple(c[0] for c in absent)
    # Counts of other folds do not have it either, and the fold of an entity depends on no fact.
    assert np.array_equal(full._fold, without._fold)
    rows = existence._Cases(entity, predicate, at, np.zeros(1, np.int64))
    one, two = (each._features(rows) for each in (full, without))
    np.testing.assert_allclose(one, two, atol=0.05)  # how frequent a predicate is, changes a bit


def _place(stated: Existence, entity: Any, predicate: Any) -> Any:
    return np.searchsorted(stated._pairs, entity * 2 * stated._predicates + predicate)


def test_facts_around_a_time_are_those_of_a_loop(graph: TemporalGraph, stated: Existence) -> None:
    facts, draw = graph.facts(), random.Random(1)
    begin, end = graph.timestamps(facts)
    for _ in range(200):
        s, p, t = draw.randrange(len(graph.entities)), draw.randrange(3), draw.randrange(60)
        own = (facts.subject == s) & (facts.predicate == p)
        found = stated._own(*(np.array([each], np.int64) for each in (s, p, t)))
        over, to_come = end[own & (end < t)], begin[own & (begin > t)]
        expected = (
            int((own & (begin <= t) & (end >= t)).sum()),
            t - over.max() if len(over) else 0,
            to_come.min() - t if len(to_come) else 0,
        )
        assert tuple(int(column[0]) for column in found) == expected


def test_for_subjects_facts_are_turned_round(graph: TemporalGraph) -> None:
    graph = careers(12)
    turned = [(f.object, f.predicate, f.subject, f.begin, f.end) for f in graph.rows()]
    other = splime.read(turned, split="none", granularity="year")
    one, two = Existence(graph, "subject"), Existence(other)
    for club in ("club 0", "club 3"):
        assert one.one(club, "playsFor", 1990) == pytest.approx(two.one(club, "playsFor", 1990))


def test_a_sample_of_moments_is_about_as_good(
    graph: TemporalGraph, stated: Existence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(existence, "_MOMENTS", 3000)
    sampled, all_ = Existence(graph).checks[ALL], stated.checks[ALL]
    assert sampled is not None
    assert all_ is not None
    assert sampled.base == pytest.approx(all_.base, rel=0.2)  # the weights are right
    assert sampled.brier < 0.6 * sampled.base


def test_of_entities_with_many_kinds_of_facts_there_are_fewer_moments(
    graph: TemporalGraph, stated: Existence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(existence, "_KINDS", 5_000)
    few, all_ = Existence(graph).checks[ALL], stated.checks[ALL]
    assert few is not None
    assert all_ is not None
    assert 0 < few.questions < all_.questions / 2
    assert few.base == pytest.approx(all_.base, rel=0.2)
    assert few.brier < 0.6 * few.base


def test_how_many_are_estimated_at_once_does_not_matter(
    graph: TemporalGraph, stated: Existence, monkeypatch: pytest.MonkeyPatch
) -> None:
    entity = np.arange(len(graph.entities))
    wanted = stated.estimate(entity, np.zeros_like(entity), 1980, 1985)
    for block, at_once in ((7, 1 << 20), (1 << 14, 5), (1, 1)):
        monkeypatch.setattr(existence, "_BLOCK", block)
        monkeypatch.setattr(existence, "_AT_ONCE", at_once)
        assert (
            stated.estimate(entity, np.zeros_like(entity), 1980, 1985).tolist() == wanted.tolist()
        )


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "p", "b", 1990, 1990)],
        [("a", "p", "b", None, None), ("b", "q", "a", 1990, None)],
        [("a", "p", "a", 1990, 1991)] * 3,
        [(f"e{n}", "p", "b", 1990, 2000) for n in range(20)],
    ],
    ids=["one fact", "no times", "one loop", "always"],
)
def test_tiny_graphs(rows: list[Any]) -> None:
    graph = splime.read(rows, split="none", granularity="year")
    stated = Existence(graph)
    estimate = stated.one(rows[0][0], "p", 1990)
    assert 0 <= estimate <= 1


def test_names_and_times_that_do_not_exist(stated: Existence) -> None:
    with pytest.raises(UsageError, match="Did you mean person 1"):
        stated.one("persn 1", "playsFor", 1990)
    with pytest.raises(UsageError, match="outside of the graph's time"):
        stated.one("person 1", "playsFor", 1800)


def test_the_check_is_that_of_a_loop() -> None:
    estimate, right = np.array([0.1, 0.15, 0.9, 1.0]), np.array([False, True, True, True])
    check = Check.of(estimate, right, np.array([1.0, 1.0, 1.0, 3.0]))
    assert check is not None
    assert check.brier == pytest.approx((0.01 + 0.85**2 + 0.01) / 6)
    assert check.base == pytest.approx(5 / 6 * 1 / 6)
    assert [(part.questions, part.stated) for part in check.bins] == [(2, 0.5), (2, 1.0)]
    assert Check.of(estimate[:0], right[:0], estimate[:0]) is None
