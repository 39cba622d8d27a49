"""Ways of one fact and of two in a row against loops over questions and facts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from splime.paths.chains import count_chains, find_ways, thinned
from splime.paths.counting import FactCounts, facts_by_entity, sample_questions
from splime.paths.relative import LEFT_OUT, IntervalScopes, Times
from tests.paths.test_counting import ENTITIES, PREDICATES, Row, cells_of, make, relatives, rows_of

Counted = dict[int, tuple[int, int]]


def literally(rows: list[Row], relative: IntervalScopes, about: int) -> tuple[Counted, Counted]:
    """Begins and ends by cell: of one fact for each predicate asked about, and of two in a row."""
    whenever, kinds = Times.of(make(rows)), len(relative)
    scopes = relative.scopes(whenever, whenever).tolist()
    directed = [(s, p, o, i) for i, (s, p, o, *_) in enumerate(rows)]
    directed += [(o, p + PREDICATES, s, i) for i, (s, p, o, *_) in enumerate(rows)]
    of_one: Counter[int] = Counter()
    of_two: Counter[int] = Counter()
    one_right, two_right = Counter(of_one), Counter(of_two)
    for a, p, b, hidden in directed:
        if p != about:
            continue
        seen = [
            (u, r * kinds + scopes[i][hidden], z, rows[i])
            for u, r, z, i in directed
            if rows[i] != rows[hidden] and scopes[i][hidden] != LEFT_OUT
        ]
        for u, cell, z, first in seen:
            if u != a:
                continue
            of_one[cell] += 1
            one_right[cell] += z == b
            for v, other, w, second in seen:
                if v == z and second != first:
                    key = cell * 2 * PREDICATES * kinds + other
                    of_two[key] += 1
                    two_right[key] += w == b
    return (
        {cell: (count, one_right[cell]) for cell, count in of_one.items()},
        {cell: (count, two_right[cell]) for cell, count in of_two.items()},
    )


@given(
    rows=rows_of,
    relative=relatives,
    about=st.integers(0, 2 * PREDICATES - 1),
    support=st.sampled_from([1, 3]),
)
def test_ways_and_chains_are_those_of_loops(
    rows: list[Row], relative: IntervalScopes, about: int, support: int
) -> None:
    facts, whole = make(rows), (PREDICATES, relative)
    graph = facts_by_entity(facts, ENTITIES, PREDICATES)
    random, name = np.random.default_rng(0), about % PREDICATES
    both = sample_questions(facts, graph, *whole, random, about=name)
    questions = both.about(about)
    one, two = literally(rows, relative, about)
    ways = find_ways(questions, graph, *whole)
    right = {cell: ends for cell, (_, ends) in one.items() if ends}
    assert Counter(ways.cell.tolist()) == right
    counted = cells_of(FactCounts.of(facts, ENTITIES, *whole, about=name))
    kinds = len(relative)
    assert one == {
        r * kinds + k: tuple(values[:2])
        for (p, r, k), values in counted.items()
        if p == about and values[0]
    }
    ways = find_ways(questions, graph, *whole, two=True)
    assert Counter(ways.cell.tolist()) == {cell: ends for cell, (_, ends) in two.items() if ends}
    chains = count_chains(ways, questions, graph, *whole, support=support)
    assert {cell: (begins, ends) for cell, begins, ends in zip(*chains[:3], strict=True)} == {
        cell: both for cell, both in two.items() if both[1] >= support
    }


@given(rows=rows_of, relative=relatives)
def test_a_way_names_its_facts(rows: list[Row], relative: IntervalScopes) -> None:
    facts, whole = make(rows), (PREDICATES, relative)
    graph = facts_by_entity(facts, ENTITIES, PREDICATES)
    questions = sample_questions(facts, graph, *whole, np.random.default_rng(0))
    source = np.repeat(np.arange(ENTITIES), np.diff(graph.starts))
    for two in (False, True):
        for q, first, second, _ in zip(*find_ways(questions, graph, *whole, two=two), strict=True):
            assert source[first] == questions.given[q]
            last = second if two else first
            assert graph.target[last] == questions.answer[q]
            assert second == -1 or source[second] == graph.target[first]
            used = {graph.group[at] for at in (first, second) if at >= 0}
            assert len(used | {questions.group[q]}) == 2 + two


@pytest.mark.parametrize("most", [1, 3, 100])
def test_of_entities_with_many_facts_some_are_drawn(most: int) -> None:
    rows = [(0, 0, i, i, i, 0) for i in range(1, 6)] + [(4, 1, 5, 1, 2, 0)]
    graph = facts_by_entity(make(rows), 7, 2)
    part, kept = thinned(graph, most)
    size = np.minimum(np.diff(graph.starts), most)
    assert np.diff(part.starts).tolist() == size.tolist()
    for mine, whole in zip(part[1:], graph[1:], strict=True):
        assert mine.tolist() == whole[kept].tolist()
    source = np.repeat(np.arange(7), np.diff(graph.starts))
    assert source[kept].tolist() == np.repeat(np.arange(7), size).tolist()
