"""Ways from the given entity of a question to its answer, over one known fact or two in a row.

A cell (r, k) is a directed predicate and its scope relative to the question, as in
`paths/counting.py`. Of two facts the second begins where the first ends, and states something else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from splime.arrays import grouped
from splime.paths.counting import FactsByEntity, Questions, ScopeEdges, scope_of
from splime.paths.processor import compiled
from splime.paths.relative import LEFT_OUT, IntervalScopes
from splime.times import Ints

FACTS = 100
"""Of an entity with more facts, so many, drawn at random, are looked at for chains."""
QUESTIONS = 4_000
"""That chains are counted from, at most, for the object and for the subject each."""


class Ways(NamedTuple):
    """Ways that end at the answer, by question; facts are positions in `FactsByEntity`."""

    question: Ints
    first: Ints
    second: Ints
    """-1 where there is one fact."""
    cell: Ints
    """Of the first fact; of two, times the number of cells, and the second's is added."""


class Counted(NamedTuple):
    """How often facts in some cells, or two in a row, begin at given entities, and end right."""

    cell: Ints
    """As of `Ways`."""
    begins: Ints
    ends: Ints
    pairs: Ints
    """How many different given entities and answers those that end right are of."""

    def take(self, rows: Ints) -> Counted:
        """Some of them, by their positions."""
        return Counted(*(column[rows] for column in self))


@compiled
def _find(  # type: ignore[no-untyped-def]
    questions, graph, scopes, cells, two, out
):
    """How many ways lead to answers; the first of them are written down."""
    _, given, answer, group, q_begin, q_end, _ = questions
    starts, predicate, target, of, begin, end, timeless = graph
    (edges, kinds, past), found = scopes, 0
    for q in range(len(given)):
        for i in range(starts[given[q]], starts[given[q] + 1]):
            z = target[i]
            if of[i] == group[q] or (not two and z != answer[q]):
                continue
            k = scope_of(begin[i], end[i], timeless[i], q_begin[q], q_end[q], edges, past)
            if k == LEFT_OUT:
                continue
            cell = np.int64(predicate[i] * kinds + k)
            if not two:
                if found < len(out):
                    out[found] = (q, i, -1, cell)
                found += 1
                continue
            for j in range(starts[z], starts[z + 1]):
                if target[j] != answer[q] or of[j] == group[q] or of[j] == of[i]:
                    continue
                k = scope_of(begin[j], end[j], timeless[j], q_begin[q], q_end[q], edges, past)
                if k == LEFT_OUT:
                    continue
                if found < len(out):
                    out[found] = (q, i, j, cell * cells + predicate[j] * kinds + k)
                found += 1
    return found


@compiled
def _begin(  # type: ignore[no-untyped-def]
    questions, graph, scopes, wanted, is_first, is_second, begins
):
    """Add up the two facts in a row in wanted cells, wherever they end."""
    _, given, _, group, q_begin, q_end, _ = questions
    starts, predicate, target, of, begin, end, timeless = graph
    (edges, kinds, past), cells = scopes, len(is_first)
    for q in range(len(given)):
        for i in range(starts[given[q]], starts[given[q] + 1]):
            k = scope_of(begin[i], end[i], timeless[i], q_begin[q], q_end[q], edges, past)
            if of[i] == group[q] or k == LEFT_OUT or not is_first[predicate[i] * kinds + k]:
                continue
            cell, z = np.int64(predicate[i] * kinds + k) * cells, target[i]
            for j in range(starts[z], starts[z + 1]):
                if of[j] == group[q] or of[j] == of[i]:
                    continue
                k = scope_of(begin[j], end[j], timeless[j], q_begin[q], q_end[q], edges, past)
                if k == LEFT_OUT or not is_second[predicate[j] * kinds + k]:
                    continue
                key = cell + predicate[j] * kinds + k
                at = np.searchsorted(wanted, key)
                if at < len(wanted) and wanted[at] == key:
                    begins[at] += 1


def thinned(graph: FactsByEntity, most: int = FACTS, seed: int = 0) -> tuple[FactsByEntity, Ints]:
    """At most so many facts of each entity, drawn at random; and where they were."""
    size = np.diff(graph.starts)
    source = np.repeat(np.arange(len(size)), size)
    order = np.lexsort((np.random.default_rng(seed).random(len(source)), source))
    kept = np.sort(order[np.arange(len(source)) - graph.starts[source] < most])
    starts = np.searchsorted(source[kept], np.arange(len(graph.starts)))
    columns: Any = (column[kept] for column in graph[1:])
    return FactsByEntity(starts, *columns), kept


def find_ways(
    questions: Questions,
    graph: FactsByEntity,
    predicates: int,
    relative: IntervalScopes,
    *,
    two: bool = False,
) -> Ways:
    """All ways over one fact, or two in a row, that end at the answer."""
    fixed = (questions, graph, ScopeEdges.of(relative), 2 * predicates * len(relative), two)
    out = np.empty((0, 4), np.int64)
    out = np.empty((_find(*fixed, out), 4), np.int64)
    _find(*fixed, out)
    return Ways(*out.T)


def count_pairs(ways: Ways, questions: Questions, cell: Ints) -> Ints:
    """The different given entities and answers of the ways in each of some cells."""
    ends = (questions.given[ways.question], questions.answer[ways.question])
    found = np.sort(ways.cell[grouped([ways.cell, *ends])[1]])
    return np.searchsorted(found, cell, "right") - np.searchsorted(found, cell)


def count_chains(
    ways: Ways,
    questions: Questions,
    graph: FactsByEntity,
    predicates: int,
    relative: IntervalScopes,
    *,
    support: int,
) -> Counted:
    """Count two facts in a row, in cells in which they end right at least so often."""
    number, row = grouped([ways.cell])
    ends = np.bincount(number, minlength=len(row))
    wanted, ends = ways.cell[row][ends >= support], ends[ends >= support]
    cells = 2 * predicates * len(relative)
    is_first, is_second = np.zeros(cells, bool), np.zeros(cells, bool)
    is_first[wanted // cells] = is_second[wanted % cells] = True
    begins = np.zeros(len(wanted), np.int64)
    _begin(questions, graph, ScopeEdges.of(relative), wanted, is_first, is_second, begins)
    return Counted(wanted, begins, ends, count_pairs(ways, questions, wanted))
