"""What the other facts of a graph say about each of its facts.

Every fact is hidden and asked for: its object, its subject, its time. What wrong facts would look
like is learned from the graph itself. Some of its facts are made wrong on purpose, in one way after
the other, and asked for in the same manner; a logistic regression for each way tells them from the
facts as they are stated. So a fact that nothing speaks for or against is not doubtful where many
facts are so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import torch

from splime.analysis.calibration import Cases, fit_temperature
from splime.analysis.existence import fit_logistic
from splime.arrays import changes
from splime.evaluation.metrics import Floats
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, Facts, Ids, TemporalGraph
from splime.paths.counting import FactsByEntity, facts_by_entity, scope_of
from splime.paths.processor import compiled
from splime.paths.relative import IntervalScopes
from splime.paths.scorer import PathScorer
from splime.scoring.queries import Scoring
from splime.scoring.scoping import Kind
from splime.times import Bools, Ints

Way: TypeAlias = Literal["object", "subject", "predicate", "time"]
WAYS: tuple[Way, ...] = get_args(Way)
"""In which a fact can be wrong."""
PRIOR = 0.01
"""How many of the facts are supposed to be wrong in each way."""
_SHARE = 10
"""The tenth part of a graph is left out of counts at once."""
_PLANTED = 500
"""Facts that are made wrong in each way, at most."""
_SHIFTED = 20_000
"""Facts that the signs of a wrong time are learned from, at most."""
_TIMES = 24
"""At which a fact could be instead."""
_CALIBRATED = 500
"""Facts that the probabilities of times are calibrated on."""
_TABLE = 1 << 22
"""Places of signs; in graphs with many predicates some share one."""
_FOLDS = 2
_RIDGE = 1e-3
_TIMELESS = BEGIN_UNKNOWN | END_UNKNOWN
_SIGNS = 6
_FITTED, _BLOCK = 20_000, 1 << 14
"""Stated facts that the regressions are fitted on, at most; facts that are judged at a time."""
_SMOOTH, _COMPARED = 20.0, 7
"""How near what is usual for a predicate is to what is usual for all; of how many numbers."""


class AskedFacts(NamedTuple):
    """What is to be asked: facts as they are stated, and some of them made wrong."""

    facts: Facts
    fact: Ints
    """Of each: the number of the fact that it is, or was."""
    statement: Ints
    """What that fact states, which is hidden."""
    way: Ints
    """In which it is wrong; -1 where it is as stated."""

    def take(self, rows: Any) -> AskedFacts:
        """Some of them, by positions, a mask or a slice."""
        return AskedFacts(self.facts.take(rows), *(column[rows] for column in self[1:]))


ANSWERED = ("object", "best_object", "other_object", "subject", "best_subject", "other_subject")
"""What is known of a fact that was asked for: log-probabilities of the name that it has and of the
best other one, and the number of that one."""


def statements_of(scorer: PathScorer) -> Ints:
    """The first fact of each statement."""
    return np.unique(scorer.statements, return_index=True)[1]


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


def make_wrong(
    facts: Facts, way: Way, known: Facts, graph: TemporalGraph, random: np.random.Generator
) -> Facts:
    """The facts with another object, subject, predicate or time, drawn from the graph's facts.

    Another object or subject is one that the predicate has elsewhere.
    """
    drawn = random.integers(0, max(len(known), 1), len(facts))
    if way == "time":
        return shifted(facts, known.begin[drawn], graph)
    if way != "predicate":
        order = np.argsort(known.predicate, kind="stable")
        starts = np.searchsorted(known.predicate[order], np.arange(len(graph.predicates) + 1))
        low, high = starts[facts.predicate], starts[facts.predicate + 1]
        drawn = order[low + (random.random(len(facts)) * (high - low)).astype(np.int64)]
    return replace(facts, **{way: getattr(known, way)[drawn]})


def plan(
    scorer: PathScorer, graph: TemporalGraph, chosen: Ints, *, wrong: bool = True
) -> tuple[AskedFacts, Ints]:
    """What to ask to judge the chosen facts, in its order, and where each part of it begins.

    Beside them are others that are made `wrong`. While a part is asked for, its statements are left
    out of counts.
    """
    random = np.random.default_rng(0)
    known, statements = scorer.known, scorer.statements
    planted = random.permutation(statements_of(scorer))[: _PLANTED * wrong]
    stated = np.union1d(chosen, planted)
    facts, fact, way = [known.take(stated)], [stated], [np.full(len(stated), -1)]
    for number, one in enumerate(WAYS):
        right = known.take(planted)
        moved = make_wrong(right, one, known, graph, random)
        differs = changed(right, moved)
        facts.append(moved.take(differs))
        fact.append(planted[differs])
        way.append(np.full(int(differs.sum()), number))
    numbers = np.concatenate(fact)
    asked = AskedFacts(Facts.concat(facts), numbers, statements[numbers], np.concatenate(way))
    part = random.permutation(int(statements.max(initial=0)) + 1) % _SHARE
    # Facts of a predicate together, for messages are made for each predicate that is asked about.
    order = np.lexsort((asked.statement, known.predicate[numbers], part[asked.statement]))
    asked = asked.take(order)
    return asked, np.searchsorted(part[asked.statement], np.arange(_SHARE + 1))


def changed(facts: Facts, others: Facts) -> Bools:
    """Which facts differ from others at the same place."""
    pairs = zip(facts.columns(), others.columns(), strict=True)
    return np.asarray(np.any([one != other for one, other in pairs], axis=0))


def ask(
    scoring: Scoring, asked: AskedFacts, starts: Ints, temperatures: Floats, first: int
) -> Iterator[tuple[int, Floats]]:
    """Ask for each from a place on, hidden: where it ends, and the columns `ANSWERED` of it.

    Those that hide the same statement are asked for together.
    """
    scorer: PathScorer = scoring.scorer
    ends = np.append(np.flatnonzero(changes(asked.statement)), len(asked.way))
    for start, end in pairwise(starts.tolist()):
        low = max(first, start)
        if low >= end:
            continue
        with scorer.hiding(np.unique(asked.statement[start:end])) as hide:
            while low < end:
                stop = int(ends[np.searchsorted(ends, low, side="right")])
                hide(int(asked.statement[low]))
                hidden = scorer.known.take(asked.fact[low : low + 1])
                facts = asked.facts.take(slice(low, stop))
                yield stop, answered(scoring, facts, hidden, temperatures)
                low = stop


@torch.inference_mode()
def answered(scoring: Scoring, facts: Facts, hidden: Facts, temperatures: Floats) -> Floats:
    """The columns `ANSWERED`; what the hidden fact states is not known."""
    rows = []
    kinds: tuple[Kind, ...] = ("object", "subject")
    for kind, temperature in zip(kinds, temperatures, strict=True):
        scores = scoring.scorer.entities(kind, facts).double().cpu() / temperature
        right = getattr(facts, kind).astype(np.int64)
        known = scoring.known.answers(kind, facts)
        other = (known.id != right[known.question]) & (known.id != getattr(hidden, kind)[0])
        scores[known.question[other], known.id[other]] = -torch.inf
        scores = scores.log_softmax(1)
        at = torch.arange(len(facts)), torch.from_numpy(right)
        own = scores[at].clone()
        scores[at] = -torch.inf
        best = scores.max(1)
        # With two entities there may be no other answer.
        rows += [own, best.values.clamp(min=-99.0), best.indices.double()]
    return torch.stack(rows, 1).numpy().round(6)


# Signs of a wrong time: facts at a subject or an object in a scope relative to the time


@compiled
def _see(  # type: ignore[no-untyped-def]
    subject, object_, predicate, own, q_begin, q_end, fold,
    starts, of_predicate, _target, group, begin, end, timeless, edges, kinds, mark, table, found,
):  # fmt: skip
    """Count the signs of each question in its fold's table, or add up what they say of the others.

    A sign is counted once for a question. Where there is no room in `found` they are counted.
    """
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
        self._graph, self._edges = graph, np.array(edges, np.int64)
        self.relative = IntervalScopes(graph.timeline.granularity, edges)
        entities, predicates = len(graph.entities), len(graph.predicates)
        self._by_entity: FactsByEntity = facts_by_entity(known, entities, predicates)
        self._mark = np.zeros(2 * predicates * len(self.relative), np.int64)
        random = np.random.default_rng(0)
        self._fold = random.permutation(int(statements.max(initial=0)) + 1) % _FOLDS
        dated = np.flatnonzero(known.unknown != _TIMELESS)
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
        self._line = fit_logistic(x, right, np.ones(len(x)), np.append(0, np.full(_SIGNS, _RIDGE)))
        few = slice(0, _CALIBRATED)
        scores = torch.from_numpy(self.scores(facts.take(few), own[few], self.begins))
        first = np.zeros(len(scores), np.int64)
        cases = Cases(scores, np.arange(len(scores)), first, torch.ones(len(scores)))
        self.temperature = fit_temperature(cases)

    @property
    def works(self) -> bool:
        """Whether there are several times."""
        return len(self.begins) > 1

    def _columns(self, facts: Facts, own: Ints) -> tuple[Any, ...]:
        begin = np.where(facts.unknown == BEGIN_UNKNOWN, facts.end, facts.begin)
        end = np.where(facts.unknown == END_UNKNOWN, facts.begin, facts.end)
        columns = (facts.subject, facts.object, facts.predicate)
        names = (column.astype(np.int64) for column in columns)
        asked = (*names, own, begin, end, self._fold[own])
        return (*asked, *self._by_entity, self._edges, len(self.relative), self._mark)

    def against(self, facts: Facts, own: Ints) -> tuple[int, int]:
        """The fact that speaks most against the time of one, and its scope; -1 if none does."""
        starts, predicate, _, group, begin, end, timeless = self._by_entity
        kinds, least, found = len(self.relative), 0.0, (-1, -1)
        *names, _, q_begin, q_end, fold = (column[0] for column in self._columns(facts, own)[:7])
        for side, entity in enumerate(names[:2]):
            for i in range(starts[entity], starts[entity + 1]):
                if group[i] == own[0]:
                    continue
                time = (begin[i], end[i], timeless[i])
                k = int(scope_of(*time, q_begin, q_end, self._edges, False))
                cell = predicate[i] * kinds + k
                place = ((names[2] * 2 + side) * len(self._mark) + cell) % _TABLE
                if self._says[fold, place] < least:
                    least, found = float(self._says[fold, place]), (int(group[i]), k)
        return found

    def _count(self, facts: Facts, own: Ints) -> Any:
        table = np.zeros((_FOLDS, _TABLE), np.float32)
        _see(*self._columns(facts, own), table, np.zeros((0, 0)))
        return table

    def _signs(self, facts: Facts, own: Ints) -> Floats:
        found = np.zeros((len(facts), _SIGNS))
        _see(*self._columns(facts, own), self._says, found)
        found[:, 0] = np.log1p(found[:, 0])
        return np.concatenate([np.ones((len(facts), 1)), found], axis=1)

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
        found[(facts.unknown == _TIMELESS) | np.isinf(found[:, 1])] = 0
        return found


class Judge:
    """How much more likely facts are among wrong ones than among those that are stated."""

    def __init__(self, said: Floats, predicate: Ids, way: Ints) -> None:
        random = np.random.default_rng(0)
        stated = np.flatnonzero(way < 0)
        stated = np.sort(random.permutation(stated)[:_FITTED])
        rows = np.concatenate([stated, np.flatnonzero(way >= 0)])
        said, predicate, way = said[rows], predicate[rows], way[rows]
        count = np.bincount(predicate[way < 0], minlength=int(predicate.max(initial=0)) + 1)
        every = said[way < 0].mean(0)
        self._usual = np.tile(_SMOOTH * every, (len(count), 1))
        np.add.at(self._usual, predicate[way < 0], said[way < 0])
        self._usual = (self._usual / (count + _SMOOTH)[:, None])[:, :_COMPARED]
        self._scales = [(0.0, 1.0), (0.0, 1.0)]
        for step in range(2):
            x = self._features(said, predicate, step)[way < 0]
            self._scales[step] = x.mean(0), np.maximum(x.std(0), 1e-6)
        x, self._lines = self._features(said, predicate, 2), {}
        ridge = np.append(0, np.full(x.shape[1] - 1, 10 * _RIDGE))
        for number in np.unique(way[way >= 0]).tolist():
            chosen = (way < 0) | (way == number)
            right = way[chosen] == number
            weight = np.where(right, 1 / right.sum(), 1 / max((~right).sum(), 1))
            self._lines[number] = fit_logistic(x[chosen], right, weight, ridge)

    def _features(self, said: Floats, predicate: Ids, step: int) -> Floats:
        """What is said, also beside what is usual for the predicate, and products of all pairs."""
        x = np.concatenate([said, said[:, :_COMPARED] - self._usual[predicate]], axis=1)
        if step == 0:
            return x
        x = _scaled(x, self._scales[0])
        one, other = np.triu_indices(x.shape[1])
        products = x[:, one] * x[:, other]
        if step == 1:
            return np.asarray(products)
        return np.concatenate([np.ones((len(x), 1)), x, _scaled(products, self._scales[1])], axis=1)

    def probabilities(self, said: Floats, predicate: Ids) -> Floats:
        """A column for each way: how probably a fact is wrong, if `PRIOR` of them are so."""
        found = np.zeros((len(said), len(WAYS)))
        for start in range(0, len(said), _BLOCK):
            some = slice(start, start + _BLOCK)
            x = self._features(said[some], predicate[some], 2)
            for way, line in self._lines.items():
                found[some, way] = PRIOR * np.exp((x @ line).clip(-30, 30))
        return np.asarray(found / (1 + found.sum(1, keepdims=True)))


def _scaled(x: Floats, scale: Any) -> Floats:
    return np.asarray(((x - scale[0]) / scale[1]).clip(-8, 8))


def said_of(rows: Floats, times: Floats, facts: Facts, degree: Ints) -> Floats:
    """What the others say of facts: numbers for `Judge`, from `ANSWERED` and of their times."""
    of_object, best_object, _, of_subject, best_subject, _ = rows.T
    of_time, best_time, _, fits = times.T
    beside = of_object - best_object, of_subject - best_subject
    return np.stack(
        [
            of_object,
            beside[0],
            of_subject,
            beside[1],
            of_time,
            of_time - best_time,
            fits,
            np.log1p(degree[facts.subject]),
            np.log1p(degree[facts.object]),
            np.minimum(of_object, of_subject),
            np.minimum(*beside),
        ],
        axis=1,
    )
