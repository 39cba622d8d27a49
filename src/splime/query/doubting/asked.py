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

from splime.arrays import changes
from splime.evaluation.metrics import Floats
from splime.graph import Facts, TemporalGraph
from splime.paths.scorer import PathScorer
from splime.query.doubting.times import shifted
from splime.scoring.queries import Scoring
from splime.scoring.scoping import SIDES
from splime.times import Bools, Ints

Way: TypeAlias = Literal["object", "subject", "predicate", "time"]
WAYS: tuple[Way, ...] = get_args(Way)
"""In which a fact can be wrong."""
_SHARE = 10
"""The tenth part of a graph is left out of counts at once."""
_PLANTED = 500
"""Facts that are made wrong in each way, at most."""


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
    for kind, temperature in zip(SIDES, temperatures, strict=True):
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
