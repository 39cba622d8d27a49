"""How well the time of a fact fits the facts around its subject and its object.

A sign is a fact of the subject, or of the object, in a scope relative to the time: which signs
speak for a time is counted from facts at their own times and at others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from splime.analysis.calibration import Cases, fit_temperature
from splime.analysis.regression import fit_logistic, with_ones
from splime.evaluation.metrics import Floats
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Facts, TemporalGraph
from splime.paths.counting import FactsByEntity, ScopeEdges, facts_by_entity, scope_of
from splime.paths.processor import compiled
from splime.paths.relative import IntervalScopes
from splime.times import Ints

_SHIFTED = 20_000
"""Facts that the signs of a wrong time are learned from, at most."""
_TIMES = 24
"""At which a fact could be instead."""
_CALIBRATED = 500
"""Facts that the probabilities of times are calibrated on."""
_TABLE = 1 << 22
"""Places of signs; in graphs with many predicates some share one."""
_FOLDS = 2
_SIGNS = 6


def shifted(facts: Facts, begin: Ints, graph: TemporalGraph) -> Facts:
    """The same facts with other begins; they last as long, within the graph's time."""
    first, last = graph.timeline.first, graph.timeline.last
    no_begin, no_end = ((facts.unknown & bit) > 0 for bit in (BEGIN_UNKNOWN, END_UNKNOWN))
    length = np.where(no_begin | no_end, 0, facts.end - facts.begin)
    begin = np.minimum(begin, last - length).clip(min=first)
    return replace(
        facts,
        begin=np.where(no_begin, facts.begin, begin),
        end=np.where(no_end, facts.end, begin + length),
    )


class _AskedTimes(NamedTuple):
    """Facts whose time is asked for, as compiled code reads them."""

    subject: Ints
    object: Ints
    predicate: Ints
    group: Ints
    begin: Ints
    end: Ints
    fold: Ints


@compiled
def _see(  # type: ignore[no-untyped-def]
    asked, graph, scopes, mark, table, found
):
    """Count the signs of each question in its fold's table, or add up what they say of the others.

    A sign is counted once for a question. Where there is no room in `found` they are counted.
    """
    subject, object_, predicate, own, q_begin, q_end, fold = asked
    starts, of_predicate, _, group, begin, end, timeless = graph
    edges, kinds, _ = scopes
    size, counting = table.shape[1], len(found) == 0
    for q in range(len(subject)):
        for side in range(2):
            entity = subject[q] if side == 0 else object_[q]
            stamp = 2 * q + side + 1
            for i in range(starts[entity], starts[entity + 1]):
                if group[i] == own[q]:
                    continue
                k = scope_of(begin[i], end[i], timeless[i], q_begin[q], q_end[q], edges, False)
                cell = of_predicate[i] * kinds + k
                if mark[cell] == stamp:
                    continue
                mark[cell] = stamp
                place = ((predicate[q] * 2 + side) * len(mark) + cell) % size
                if counting:
                    table[fold[q], place] += 1
                    continue
                value = table[fold[q], place]
                found[q, 0] += 1
                found[q, 1] += max(value, 0)
                found[q, 2] += min(value, 0)
                found[q, 3] = max(found[q, 3], value)
                found[q, 4] = min(found[q, 4], value)
                if of_predicate[i] % (len(mark) // (2 * kinds)) == predicate[q]:
                    found[q, 5] += value
    mark[:] = 0


class TimeFit:
    """How well the time of a fact fits the other facts of its subject and its object."""

    def __init__(
        self, known: Facts, statements: Ints, graph: TemporalGraph, edges: tuple[int, ...]
    ) -> None:
        self._graph = graph
        self.relative = IntervalScopes(graph.timeline.granularity, edges)
        self._scopes = ScopeEdges.of(self.relative)
        entities, predicates = len(graph.entities), len(graph.predicates)
        self._by_entity: FactsByEntity = facts_by_entity(known, entities, predicates)
        self._mark = np.zeros(2 * predicates * len(self.relative), np.int64)
        random = np.random.default_rng(0)
        self._fold = random.permutation(int(statements.max(initial=0)) + 1) % _FOLDS
        dated = np.flatnonzero(~known.timeless)
        self.begins = np.empty(0, np.int64)
        self._line, self.temperature = np.zeros(_SIGNS + 1), 1.0
        self._says = np.zeros((_FOLDS, _TABLE))
        if len(np.unique(known.begin[dated])) < 2:
            return  # there is no other time
        shares = np.linspace(0, 1, _TIMES)
        self.begins = np.unique(np.quantile(known.begin[dated], shares, method="nearest"))
        some = random.permutation(dated)[:_SHIFTED]
        facts, own = known.take(some), statements[some]
        moved = shifted(facts, known.begin[random.choice(dated, len(some))], graph)
        counts = [self._count(one, own) for one in (facts, moved)]
        # A fold is judged by what was counted in the others.
        outside = [count.sum(0) - count for count in counts]
        self._says = np.log(outside[0] + 1.0) - np.log(outside[1] + 1.0)
        x = self._signs(Facts.concat([facts, moved]), np.tile(own, 2))
        right = np.arange(len(x)) < len(facts)
        self._line = fit_logistic(x, right, np.ones(len(x)))
        few = slice(0, _CALIBRATED)
        scores = torch.from_numpy(self.scores(facts.take(few), own[few], self.begins))
        first = np.zeros(len(scores), np.int64)
        cases = Cases(scores, np.arange(len(scores)), first, torch.ones(len(scores)))
        self.temperature = fit_temperature(cases)

    @property
    def works(self) -> bool:
        """Whether there are several times."""
        return len(self.begins) > 1

    def _asked(self, facts: Facts, own: Ints) -> _AskedTimes:
        subject, object_, predicate = (
            column.astype(np.int64) for column in (facts.subject, facts.object, facts.predicate)
        )
        return _AskedTimes(subject, object_, predicate, own, *facts.known_times(), self._fold[own])

    def against(self, facts: Facts, own: Ints) -> tuple[int, int]:
        """The fact that speaks most against the time of one, and its scope; -1 if none does."""
        starts, predicate, _, group, begin, end, timeless = self._by_entity
        subject, object_, which, _, q_begin, q_end, fold = (
            row[0] for row in self._asked(facts, own)
        )
        (edges, kinds, _), least, found = self._scopes, 0.0, (-1, -1)
        for side, entity in enumerate((subject, object_)):
            for i in range(starts[entity], starts[entity + 1]):
                if group[i] == own[0]:
                    continue
                k = int(scope_of(begin[i], end[i], timeless[i], q_begin, q_end, edges, False))
                cell = predicate[i] * kinds + k
                place = ((which * 2 + side) * len(self._mark) + cell) % _TABLE
                if self._says[fold, place] < least:
                    least, found = float(self._says[fold, place]), (int(group[i]), k)
        return found

    def _count(self, facts: Facts, own: Ints) -> Any:
        table = np.zeros((_FOLDS, _TABLE), np.float32)
        self._see(facts, own, table, np.zeros((0, 0)))
        return table

    def _signs(self, facts: Facts, own: Ints) -> Floats:
        found = np.zeros((len(facts), _SIGNS))
        self._see(facts, own, self._says, found)
        found[:, 0] = np.log1p(found[:, 0])
        return with_ones(found)

    def _see(self, facts: Facts, own: Ints, table: Any, found: Floats) -> None:
        _see(self._asked(facts, own), self._by_entity, self._scopes, self._mark, table, found)

    def score(self, facts: Facts, own: Ints) -> Floats:
        """The log-odds that facts are at their times rather than at others."""
        return self._signs(facts, own) @ self._line

    def scores(self, facts: Facts, own: Ints, begins: Ints) -> Floats:
        """The same at the facts' own times, and then where they would begin at others."""
        columns = [self.score(facts, own)]
        for begin in begins:
            moved = shifted(facts, np.full(len(facts), begin), self._graph)
            same = moved.begin == facts.begin
            columns.append(np.where(same, -np.inf, self.score(moved, own)))
        return np.stack(columns, 1)

    def answered(self, facts: Facts, own: Ints, begins: Ints | None = None) -> Floats:
        """Log-probabilities of the own time and the best other, its begin, and the score."""
        begins = self.begins if begins is None else begins
        scores = self.scores(facts, own, begins)
        logs = torch.from_numpy(scores / self.temperature).log_softmax(1).numpy()
        if logs.shape[1] == 1:
            return np.zeros((len(facts), 4))
        best = logs[:, 1:].argmax(1)
        found = np.stack([logs[:, 0], logs[:, 1:].max(1), begins[best], scores[:, 0]], 1)
        # Of some there is no other time: they have none, or all of it.
        found[facts.timeless | np.isinf(found[:, 1])] = 0
        return found
