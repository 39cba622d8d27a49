"""Counts of a graph against loops over questions, facts and neighbours, as they are defined."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Facts
from splime.paths import counting
from splime.paths.counting import ABOUT, NUMBERS, FactCounts, statement_groups
from splime.paths.relative import LEFT_OUT, IntervalScopes, Times
from tests.paths.test_relative import known, spans, times

ENTITIES, PREDICATES = 6, 2
RELATIVE = IntervalScopes("year", (1, 3, 6))
E = 0.01

Row = tuple[int, int, int, int, int, int]


def make(rows: list[Row]) -> Facts:
    """Facts of (subject, predicate, object, begin, end, unknown)."""
    s, p, o, begin, end, unknown = np.array(rows, np.int64).reshape(-1, 6).T
    ids: Any = [np.array(column, np.int32) for column in (s, p, o)]
    return Facts(
        ids[0], ids[1], ids[2], np.array(begin), np.array(end), np.array(unknown, np.uint8)
    )


@st.composite
def a_fact(draw: st.DrawFn) -> Row:
    """An instant, an interval, or a fact with an unknown side; at few times, so that many touch."""
    s, o = draw(st.integers(0, ENTITIES - 2)), draw(st.integers(0, ENTITIES - 2))
    begin, unknown = draw(st.integers(0, 9)), draw(st.sampled_from([0, 0, 0, 1, 2, 3]))
    end = begin + draw(st.sampled_from([0, 0, 1, 4]))
    return s, draw(st.integers(0, PREDICATES - 1)), o, begin, end, unknown


# The last entity has no facts; some facts are stated twice.
rows_of = st.lists(a_fact(), max_size=14).map(lambda rows: rows + rows[:2])
relatives = st.builds(
    IntervalScopes,
    st.just("year"),
    st.sampled_from([(1,), (1, 3, 6), (1, 2, 3, 4, 5, 6, 8)]),
    past=st.booleans(),
    begin_only=st.booleans(),
)


def literally(
    rows: list[Row], relative: IntervalScopes, most: int, predicates: int = PREDICATES
) -> tuple[dict[Any, list[int]], Any, list[int]]:
    """Counts of cells (asked predicate, predicate, scope), what is usual, and questions."""
    count, whenever = len(rows), Times.of(make(rows))
    scopes = relative.scopes(whenever, whenever).tolist()
    directed = [(s, p, o, i) for i, (s, p, o, *_) in enumerate(rows)]
    directed += [(o, p + predicates, s, i) for i, (s, p, o, *_) in enumerate(rows)]
    random = np.random.default_rng(0)
    asked = random.permutation(2 * count)[:most].tolist()
    drawn = [directed[n][0] for n in random.integers(0, max(2 * count, 1), len(asked))]
    others = [directed[asked[n]][2] for n in random.permutation(len(asked))]
    cells: dict[Any, list[int]] = defaultdict(lambda: [0] * 6)
    usual = np.zeros(2 * predicates * len(relative), int)
    questions = [0] * 2 * predicates
    for number, one, another in zip(asked, drawn, others, strict=True):
        a, p, b, hidden = directed[number]
        seen = [fact for fact in directed if rows[fact[3]] != rows[hidden]]
        then = [fact for fact in seen if scopes[fact[3]][hidden] != LEFT_OUT]
        near = {e: {z for u, _, z, _ in then if u == e} for e in (a, b, another)}
        questions[p] += 1
        for u, r, z, i in seen:
            k = scopes[i][hidden]
            if k == LEFT_OUT:
                continue
            if u == a:
                found = [1, z == b, z in near[b], z in near[another], 0, 0]
                cells[p, r, k] = [x + y for x, y in zip(cells[p, r, k], found, strict=True)]
            if u == b:
                found = [0, 0, 0, 0, 1, z in near[a]]
                cells[p, r, k] = [x + y for x, y in zip(cells[p, r, k], found, strict=True)]
            if u == one:
                usual[r * len(relative) + k] += 1
    return dict(cells), usual, questions


def cells_of(counts: FactCounts) -> dict[Any, list[int]]:
    return {
        (p, *divmod(int(counts.cell[at]), counts.scopes)): counts.values[at].tolist()
        for p in range(len(counts.asked))
        for at in range(counts.starts[p], counts.starts[p + 1])
    }


@given(rows=rows_of, relative=relatives, most=st.sampled_from([5, 1000]))
@settings(max_examples=60)
def test_counts_are_those_of_a_loop(rows: list[Row], relative: IntervalScopes, most: int) -> None:
    counts = FactCounts.of(make(rows), ENTITIES, PREDICATES, relative, most=most)
    cells, usual, asked = literally(rows, relative, most)
    assert cells_of(counts) == cells
    assert counts.usual.tolist() == usual.tolist()
    assert counts.asked.tolist() == asked
    assert sum(asked) == min(most, 2 * len(rows))
    for p in range(2 * PREDICATES):  # cells are in their order
        assert (np.diff(counts.cell[counts.starts[p] : counts.starts[p + 1]]) > 0).all()


@given(rows=rows_of, seed=st.integers(0, 99), data=st.data())
def test_names_and_the_order_of_facts_do_not_matter(rows: list[Row], seed: int, data: Any) -> None:
    """But for what is drawn at random by the numbers of facts: chance, and what is usual."""
    random, whole = np.random.default_rng(seed), (ENTITIES, PREDICATES, RELATIVE)
    entities, predicates = random.permutation(ENTITIES), random.permutation(PREDICATES)
    renamed: Any = [(int(entities[s]), int(predicates[p]), int(entities[o]), *at)
               for s, p, o, *at in rows]  # fmt: skip
    directed = [*predicates.tolist(), *(predicates + PREDICATES).tolist()]
    plain, other = FactCounts.of(make(rows), *whole), FactCounts.of(make(renamed), *whole)
    expected = {(directed[p], directed[r], k): v for (p, r, k), v in cells_of(plain).items()}
    assert cells_of(other) == expected
    by_predicate = other.usual.reshape(2 * PREDICATES, -1)[directed]
    assert np.array_equal(by_predicate, plain.usual.reshape(2 * PREDICATES, -1))
    shuffled = cells_of(FactCounts.of(make(data.draw(st.permutations(rows))), *whole))
    fixed = [0, 1, 2, 4, 5]
    assert {cell: [v[at] for at in fixed] for cell, v in shuffled.items()} == {
        cell: [v[at] for at in fixed] for cell, v in cells_of(plain).items()
    }


@given(facts=st.lists(spans(), min_size=1), questions=st.lists(spans(), min_size=1), like=relatives)
def test_a_scope_is_that_of_relative_scopes(facts: Any, questions: Any, like: Any) -> None:
    expected, edges = like.scopes(times(questions), times(facts)).tolist(), np.array(like.edges)
    for row, fact in zip(expected, facts, strict=True):
        timeless = fact[2] == BEGIN_UNKNOWN | END_UNKNOWN
        for wanted, question in zip(row, questions, strict=True):
            begin, end = known(question)
            asked = (begin, begin if like.begin_only else end)
            assert counting.scope_of(*known(fact), timeless, *asked, edges, like.past) == wanted


def test_a_fact_is_not_counted_for_its_own_question() -> None:
    fact = (0, 0, 1, 5, 7, 0)
    other = (0, 0, 1, 5, 8, 0)
    for rows in ([fact], [fact, fact], [fact] * 3):
        counts = FactCounts.of(make(rows), ENTITIES, PREDICATES, RELATIVE)
        assert len(counts.cell) == counts.usual.sum() == 0
        assert counts.asked.tolist() == [len(rows), 0, len(rows), 0]
    # At another time it is another fact; a duplicate is a fact for others.
    cells = cells_of(FactCounts.of(make([fact, fact, other]), ENTITIES, PREDICATES, RELATIVE))
    same_begin = RELATIVE.names().index("same begin")
    begins, ends, *_ = cells[0, 0, same_begin]
    assert (begins, ends) == (4, 4)  # each of two sees `other`, which sees both


def test_facts_that_state_the_same_are_in_a_group() -> None:
    rows = [(0, 0, 1, 5, 7, 0), (0, 0, 1, 5, 7, 2), (0, 0, 1, 5, 7, 0), (1, 0, 0, 5, 7, 0)]
    groups = statement_groups(make(rows)).tolist()
    assert groups[0] == groups[2]
    assert len({*groups}) == 3


def test_counts_do_not_depend_on_the_number_of_threads() -> None:
    random = np.random.default_rng(0)
    begin = random.integers(0, 30, 400)
    columns: Any = random.integers(0, [40, 9, 40], (400, 3)).T.astype(np.int32)
    unknown = random.choice([0, 0, 0, 1, 2, 3], 400).astype(np.uint8)
    s, p, o = columns
    facts = Facts(s, p, o, begin, begin + random.integers(0, 5, 400), unknown)
    before = torch.get_num_threads()
    found: list[tuple[Any, ...]] = []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            counts = FactCounts.of(facts, 40, 9, RELATIVE)
            found.append((counts.starts, counts.cell, counts.values, counts.usual, counts.asked))
    finally:
        torch.set_num_threads(before)
    for others in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], others, strict=True))


def test_of_facts_with_many_neighbours_fewer_questions_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    star = make([(0, 0, i, i, i, 0) for i in range(1, 40)])
    assert FactCounts.of(star, 40, 1, RELATIVE).asked.sum() == 78
    # Each question looks at the 39 facts of the one end and the one of the other.
    monkeypatch.setattr(counting, "PAIRS", 400)
    assert FactCounts.of(star, 40, 1, RELATIVE).asked.sum() == 78
    monkeypatch.setattr(counting, "_FEWEST", 3)
    assert 9 <= FactCounts.of(star, 40, 1, RELATIVE).asked.sum() <= 10
    monkeypatch.setattr(counting, "PAIRS", 1)
    assert FactCounts.of(star, 40, 1, RELATIVE).asked.sum() == 3
    # So with as many predicates that what is looked at is hardly ever the same.
    monkeypatch.setattr(counting, "PAIRS", 4_000)
    monkeypatch.setattr(counting, "CELLS", 400)
    assert 9 <= FactCounts.of(star, 40, 100, RELATIVE).asked.sum() <= 10
    assert FactCounts.of(star, 40, 1, RELATIVE).asked.sum() == 78


def features_literally(
    cells: dict[Any, list[int]], usual: Any, asked: list[int], kinds: int, p: int
) -> tuple[list[list[float]], list[float]]:
    """The numbers of all facts for questions about p, and the numbers of p."""
    log, directed = math.log, len(asked)
    own = {(r, k): values for (q, r, k), values in cells.items() if q == p}
    all_begins, all_ends, all_answer = (sum(v[at] for v in own.values()) for at in (0, 1, 4))
    n, rows = max(asked[p], 1), []
    for r in range(directed):
        for k in range(kinds):
            a, h1, h2, chance, c, g2 = own.get((r, k), [0] * 6)
            c0 = usual[r * kinds + k] / max(sum(asked), 1)
            row = [
                log((h1 + 0.2) / (a + 4)) + 3,
                log(1 + h1) / 3,
                log(a / n + E) + 2,
                log(c / n + E) + 2,
                log(c / n + E) - log(c0 + E),
                log(a / n + E) - log(c0 + E),
                log(h1 / n + E) + 3,
                log((h2 + 0.5) / (a + 2)) + 2,
                log((h2 + 0.5) / (a + 2)) - log((chance + 0.5) / (a + 2)),
                log((g2 + 0.5) / (c + 2)) + 2,
                log(1 + a) / 5 - 1,
                log(1 + c) / 5 - 1,
                2 if r == p else 0,
                2 if abs(r - p) == directed // 2 else 0,
                log(c0 + E) + 2,
                log((h1 + 0.2) / (a + 4)) - log((all_ends + 0.2) / (all_begins + 4)),
            ]
            rows.append([min(max(x / 1.5, -4), 4) for x in row])
    about = [
        log(1 + asked[p]) / 5 - 1,
        log(1 + all_begins / n) / 3 - 1,
        log(1 + all_answer / n) / 3 - 1,
        log(all_ends / n + E) / 2 + 1,
    ]
    return rows, about


@given(rows=rows_of, past=st.booleans())
@settings(max_examples=10)
def test_features_are_the_formulas(rows: list[Row], past: bool) -> None:
    relative = IntervalScopes("year", (1, 3), past=past)
    asked = [3, 0, 2]
    facts, about = FactCounts.of(make(rows), ENTITIES, PREDICATES, relative).features(asked)
    expected = [
        features_literally(*literally(rows, relative, 1000), len(relative), p) for p in asked
    ]
    assert facts.shape == (3, 2 * PREDICATES * len(relative), NUMBERS)
    assert about.shape == (3, ABOUT)
    for mine, wanted in zip((facts, about), zip(*expected, strict=True), strict=True):
        torch.testing.assert_close(mine, torch.tensor(wanted), rtol=1e-4, atol=1e-4)


LOOP, SAME = (0, 0, 0, 4, 4, 0), (0, 0, 1, 4, 4, 0)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [SAME],
        [LOOP],
        [LOOP, LOOP],
        [(0, 0, i, 4, 4, 0) for i in range(6)],
        [(i, i % 2, i, i, i, i % 4) for i in range(6)],
        [(0, 0, 1, 0, 0, 3)] * 2 + [(1, 0, 0, 0, 0, 3)],
    ],
    ids=["none", "one", "a loop", "a loop twice", "one tick", "loops", "timeless"],
)
@pytest.mark.parametrize("past", [False, True])
def test_the_smallest_graphs_have_features(rows: list[Row], past: bool) -> None:
    relative, predicates = IntervalScopes("year", (1, 3), past=past), 1 + any(r[1] for r in rows)
    counts = FactCounts.of(make(rows), ENTITIES, predicates, relative)
    assert cells_of(counts) == literally(rows, relative, 1000, predicates)[0]
    for asked in ([*range(2 * predicates)], list[int]()):
        for part in counts.features(asked):
            assert len(part) == len(asked)
            assert bool(part.isfinite().all())
