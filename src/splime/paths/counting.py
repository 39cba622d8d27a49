"""Counts of a graph: how often facts in a relative scope lead to the answers of a predicate.

For questions made of facts, each without itself, and for each predicate p that is asked about:

    begins      facts (r, k) at the given entity
    ends        those whose other end is the answer
    near        those whose other end is a neighbour of the answer
    chance      those whose other end is a neighbour of another question's answer
    at_answer   facts (r, k) at the answer
    back        those whose other end is a neighbour of the given entity
    usual       facts (r, k) at an entity drawn by its number of facts

where r is the directed predicate of a fact and k its scope relative to the question. Of a forecast,
neighbours by later facts are none. FactCounts belong
to predicates and scopes, so they cost as much for a graph of any size, once they are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from splime.arrays import grouped
from splime.graph import Facts
from splime.paths.processor import compiled, inlined
from splime.paths.relative import LEFT_OUT, IntervalScopes
from splime.times import Bools, Ints

QUESTIONS = 24_000
"""That counts are made from, at most."""
PAIRS, CELLS = 200_000_000, 16_000_000
"""Facts that all questions together look at, about; of larger graphs fewer questions are made.
With thousands of predicates nearly each may be a cell of its own: then so many as fit in memory."""
_FEWEST = 2_000
"""Questions that are always made, where there are so many facts."""
NUMBERS, ABOUT = 16, 4
"""How many numbers describe a fact's predicate and scope for a question, and its predicate."""
BEGINS, ENDS, NEAR, CHANCE, AT_ANSWER, BACK = range(6)
_SMALL = 0.01


class FactsByEntity(NamedTuple):
    """Facts both ways, by source: those of entity e are at starts[e] to starts[e + 1]."""

    starts: Ints
    predicate: Ints
    target: Ints
    group: Ints
    """The same for facts that state the same at the same time."""
    begin: Ints
    end: Ints
    timeless: Bools


class Questions(NamedTuple):
    """Facts that are asked for their object or their subject."""

    predicate: Ints
    """Directed: the inverse one where the subject is asked for."""
    given: Ints
    answer: Ints
    group: Ints
    """The statement that is asked for, which is left out."""
    begin: Ints
    end: Ints
    fact: Ints
    """The number of the fact."""

    def about(self, predicate: int, most: int | None = None) -> Questions:
        """Those about a directed predicate, at most so many."""
        rows = np.flatnonzero(self.predicate == predicate)[:most]
        return Questions(*(column[rows] for column in self))


def statement_groups(facts: Facts) -> Ints:
    """A number for each fact, the same for those that state the same at the same time."""
    return grouped([*facts.columns()])[0]


def facts_by_entity(facts: Facts, entities: int, predicates: int) -> FactsByEntity:
    """All facts, both ways."""
    begin, end = facts.known_times()
    source = np.concatenate([facts.subject, facts.object]).astype(np.int64)
    order = np.argsort(source, kind="stable")
    fact = order % max(len(facts), 1)
    starts = np.searchsorted(source[order], np.arange(entities + 1))
    predicate = np.concatenate([facts.predicate, facts.predicate + predicates]).astype(np.int64)
    target = np.concatenate([facts.object, facts.subject]).astype(np.int64)
    return FactsByEntity(
        starts,
        predicate[order],
        target[order],
        statement_groups(facts)[fact],
        begin[fact],
        end[fact],
        facts.timeless[fact],
    )


@inlined
def scope_of(  # type: ignore[no-untyped-def]
    begin, end, timeless, q_begin, q_end, edges, past
):
    """What `IntervalScopes` gives, with its constants: the relations follow the bins."""
    bins = len(edges)
    if past and (timeless or begin >= q_begin):
        return LEFT_OUT
    if timeless or (past and end >= q_begin):
        return 2 * bins + 3
    if end < q_begin:
        return np.searchsorted(edges, q_begin - end, "right") - 1
    if begin > q_end:
        return bins + np.searchsorted(edges, begin - q_end, "right") - 1
    if begin == q_begin:
        return 2 * bins + (0 if end == q_end else 1)
    if end == q_end:
        return 2 * bins + 2
    if begin < q_begin:
        return 2 * bins + (3 if end > q_end else 5)
    return 2 * bins + (4 if end < q_end else 5)


class ScopeEdges(NamedTuple):
    """Relative scopes as compiled code reads them."""

    edges: Ints
    kinds: int
    past: bool

    @classmethod
    def of(cls, relative: IntervalScopes) -> ScopeEdges:
        """Those of intervals."""
        return cls(np.array(relative.edges, np.int64), len(relative), relative.past)


@compiled
def _count(  # type: ignore[no-untyped-def]
    rows, questions, other, graph, scopes, near, values, used, touched
):
    """Add up the counts of questions about one predicate; how many cells are not empty."""
    # Unpacked once: to look into a tuple for each fact would take ten times as long.
    _, given, answer, group, q_begin, q_end, _ = questions
    starts, predicate, target, of, begin, end, timeless = graph
    (edges, kinds, past), cells = scopes, 0
    for q in rows:
        asked, a, b, c, mark = group[q], given[q], answer[q], other[q], q + 1
        # Neighbours by all other facts are marked, so that each fact is looked at once.
        for row in range(3):
            u = b if row == 0 else c if row == 1 else a
            for i in range(starts[u], starts[u + 1]):
                if of[i] != asked and not (past and (timeless[i] or begin[i] >= q_begin[q])):
                    near[row, target[i]] = mark
        for side in range(2):
            u = a if side == 0 else b
            for i in range(starts[u], starts[u + 1]):
                if of[i] == asked:
                    continue
                k = scope_of(begin[i], end[i], timeless[i], q_begin[q], q_end[q], edges, past)
                if k == LEFT_OUT:
                    continue
                cell, z = predicate[i] * kinds + k, target[i]
                if not used[cell]:
                    used[cell] = True
                    touched[cells] = cell
                    cells += 1
                if side == 0:
                    values[cell, BEGINS] += 1
                    values[cell, ENDS] += z == b
                    values[cell, NEAR] += near[0, z] == mark
                    values[cell, CHANCE] += near[1, z] == mark
                else:
                    values[cell, AT_ANSWER] += 1
                    values[cell, BACK] += near[2, z] == mark
    return cells


@compiled
def _count_usual(  # type: ignore[no-untyped-def]
    usual, drawn, questions, graph, scopes
):
    _, _, _, group, q_begin, q_end, _ = questions
    starts, predicate, _, of, begin, end, timeless = graph
    edges, kinds, past = scopes
    for q in range(len(drawn)):
        for i in range(starts[drawn[q]], starts[drawn[q] + 1]):
            if of[i] != group[q]:
                k = scope_of(begin[i], end[i], timeless[i], q_begin[q], q_end[q], edges, past)
                if k != LEFT_OUT:
                    usual[predicate[i] * kinds + k] += 1


def _count_block(
    block: Sequence[int], parts: Sequence[Ints], columns: tuple[Any, ...], entities: int, cells: int
) -> list[tuple[Any, Any]]:
    """The cells of some predicates that are not empty, and their counts."""
    near = np.zeros((3, entities), np.int64)
    values, used = np.zeros((cells, 6), np.int32), np.zeros(cells, bool)
    touched = np.empty(cells, np.int32)
    found = []
    for p in block:
        count = _count(parts[p], *columns, near, values, used, touched)
        at = np.sort(touched[:count])
        found.append((at, values[at]))
        values[at], used[at] = 0, False
    return found


class Features(NamedTuple):
    """What the counts say about some predicates, as numbers of about the same size."""

    facts: Tensor
    """[predicates, 2 x predicates x scopes, NUMBERS]: of each directed predicate and scope."""
    about: Tensor
    """[predicates, ABOUT]: of the predicates that are asked about."""


@dataclass(frozen=True, eq=False)
class FactCounts:
    """What was counted; cells (r, k) are r x scopes + k, and those without counts are left out."""

    scopes: int
    starts: Ints
    """Where the cells of each directed predicate begin, and where those of the last one end."""
    cell: npt.NDArray[np.int32]
    values: npt.NDArray[np.int32]
    """[cells, 6]: begins, ends, near, chance, at_answer, back."""
    usual: Ints
    asked: Ints
    """How many questions there were about each directed predicate."""

    @classmethod
    def of(
        cls,
        facts: Facts,
        entities: int,
        predicates: int,
        relative: IntervalScopes,
        *,
        most: int = QUESTIONS,
        seed: int = 0,
        about: int | None = None,
    ) -> FactCounts:
        """Those of some facts: of all of them as questions, both ways, or of a sample.

        With `about` of the facts of one predicate.
        """
        graph, directed = facts_by_entity(facts, entities, predicates), 2 * predicates
        kinds, random = len(relative), np.random.default_rng(seed)
        questions = sample_questions(
            facts, graph, predicates, relative, random, most=most, about=about
        )
        drawn = np.concatenate([facts.subject, facts.object])[
            random.integers(0, max(2 * len(facts), 1), len(questions.given))
        ].astype(np.int64)
        other = questions.answer[random.permutation(len(questions.answer))]
        usual, scopes = np.zeros(directed * kinds, np.int64), ScopeEdges.of(relative)
        _count_usual(usual, drawn, questions, graph, scopes)
        asked = np.bincount(questions.predicate, minlength=directed)
        ordered = np.argsort(questions.predicate, kind="stable")
        parts = np.split(ordered, asked.cumsum()[:-1])
        columns = (questions, other, graph, scopes)

        def count(block: Sequence[int]) -> list[tuple[Any, Any]]:
            return _count_block(block, parts, columns, entities, directed * kinds)

        threads = torch.get_num_threads()
        blocks = np.array_split(np.arange(directed), min(4 * threads, directed))
        with ThreadPoolExecutor(threads) as pool:
            counted = [one for block in pool.map(count, blocks) for one in block]
        sizes = [len(cells) for cells, _ in counted]
        return cls(
            kinds,
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([cells for cells, _ in counted]),
            np.concatenate([values for _, values in counted]),
            usual,
            asked,
        )

    @cached_property
    def _of_predicates(self) -> npt.NDArray[np.float64]:
        """[predicates, 3]: begins, ends and at_answer of all cells."""
        sums = np.zeros((len(self.values) + 1, 3))
        np.cumsum(self.values[:, [BEGINS, ENDS, AT_ANSWER]], axis=0, out=sums[1:])
        return np.diff(sums[self.starts], axis=0)

    def features(self, predicates: Sequence[int], device: torch.device | str = "cpu") -> Features:
        """The numbers for questions about some predicates."""
        return Features(self.facts(predicates, device), self.about(predicates, device))

    def facts(self, predicates: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        """[predicates, 2 x predicates x scopes, NUMBERS]: those that describe facts."""
        size, count = len(self.usual), len(predicates)
        dense = np.zeros((count, size, 6), np.float32)
        for row, p in enumerate(predicates):
            inside = slice(self.starts[p], self.starts[p + 1])
            dense[row, self.cell[inside]] = self.values[inside]
        begins, ends, near, chance, at_answer, back = torch.from_numpy(dense).to(device).unbind(-1)
        asked, totals = self._of(predicates, device)
        n = asked.clamp(min=1).unsqueeze(1)
        usual = torch.from_numpy(self.usual / max(self.asked.sum(), 1)).float().to(device)
        usual = (usual + _SMALL).log().expand(count, size)
        r = torch.arange(size, device=device) // self.scopes
        own, half = torch.tensor([*predicates], device=device).unsqueeze(1), len(self.asked) // 2
        leads = ((ends + 0.2) / (begins + 4)).log()
        lead = ((totals[:, 1] + 0.2) / (totals[:, 0] + 4)).log().unsqueeze(1)
        of_given, of_answer = (begins / n + _SMALL).log(), (at_answer / n + _SMALL).log()
        nearly = ((near + 0.5) / (begins + 2)).log()
        numbers = (
            leads + 3,
            ends.log1p() / 3,
            of_given + 2,
            of_answer + 2,
            of_answer - usual,
            of_given - usual,
            (ends / n + _SMALL).log() + 3,
            nearly + 2,
            nearly - ((chance + 0.5) / (begins + 2)).log(),
            ((back + 0.5) / (at_answer + 2)).log() + 2,
            begins.log1p() / 5 - 1,
            at_answer.log1p() / 5 - 1,
            2.0 * (r == own),
            2.0 * (r == (own + half) % (2 * half)),
            usual + 2,
            leads - lead,
        )
        return (torch.stack(numbers, -1) / 1.5).clamp(-4, 4)

    def about(self, predicates: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        """[predicates, ABOUT]: those that describe the predicates that are asked about."""
        asked, totals = self._of(predicates, device)
        n = asked.clamp(min=1)
        numbers = (
            asked.log1p() / 5 - 1,
            (totals[:, 0] / n).log1p() / 3 - 1,
            (totals[:, 2] / n).log1p() / 3 - 1,
            (totals[:, 1] / n + _SMALL).log() / 2 + 1,
        )
        return torch.stack(numbers, -1)

    def _of(self, predicates: Sequence[int], device: torch.device | str) -> tuple[Tensor, Tensor]:
        """How many questions there were about predicates, and the totals of their cells."""
        columns = (self.asked[[*predicates]], self._of_predicates[[*predicates]])
        asked, totals = (torch.from_numpy(column).float().to(device) for column in columns)
        return asked, totals


def sample_questions(
    facts: Facts,
    graph: FactsByEntity,
    predicates: int,
    relative: IntervalScopes,
    random: np.random.Generator,
    *,
    most: int = QUESTIONS,
    about: int | None = None,
) -> Questions:
    """Both questions about each fact, of one predicate where it is given, or a sample of them."""
    order = random.permutation(2 * len(facts))
    if about is not None:
        order = order[facts.predicate[order % max(len(facts), 1)] == about]
    order = order[:most]
    ends = np.concatenate([facts.subject, facts.object]).astype(np.int64)
    others = np.concatenate([facts.object, facts.subject]).astype(np.int64)
    degree = np.diff(graph.starts)
    cost = np.cumsum((degree[ends] + degree[others])[order])
    pairs = PAIRS if 4 * predicates**2 * len(relative) <= CELLS else CELLS
    number = order[: max(_FEWEST, int(np.searchsorted(cost, pairs)))]
    fact, inverse = number % max(len(facts), 1), number >= len(facts)
    begin, end = (ticks[fact] for ticks in facts.known_times())
    return Questions(
        facts.predicate[fact] + predicates * inverse.astype(np.int64),
        ends[number],
        others[number],
        statement_groups(facts)[fact],
        begin,
        begin if relative.begin_only else end,
        fact,
    )
