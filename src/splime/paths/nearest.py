"""The facts that are read for a question where their number is bounded: the nearest ones.

Nearest in steps from the given entity; in the last step that is reached, nearest in time. Entities
that no such fact reaches share one state: nothing distinguishes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN
from splime.paths.facts import DirectedFacts
from splime.paths.processor import compiled
from splime.paths.relative import LEFT_OUT, Times
from splime.times import Ints

_FAR = np.iinfo(np.int64).max // 4


@dataclass(frozen=True, eq=False)
class Nearest:
    """The facts of some questions side by side, over rows that are the entities of one question.

    All questions are one column: predicate (or time) p of a question is p x questions + question.
    """

    facts: DirectedFacts
    number: Tensor
    """Of each directed fact, in the graph."""
    question: Tensor
    """Of each row."""
    entity: Tensor
    """Of each row; the last row of a question stands for all that are not reached, and has -1."""
    given: Tensor
    """The row of each question's given entity."""

    def spread(self, scores: Tensor, entities: int) -> Tensor:
        """Scores of rows as scores [questions, entities]."""
        reached = self.entity >= 0
        every = scores[~reached].unsqueeze(1).repeat(1, entities)
        return every.index_put((self.question[reached], self.entity[reached]), scores[reached])


@compiled
def _choose(  # type: ignore[no-untyped-def]
    given, q_begin, q_end, scopes, starts, target, time, number, begin, end, weights,
    entities, steps, most,
):  # fmt: skip
    """Places in the order, rows of source and target, and the entities of the rows."""
    place = np.full(entities, -1, np.int32)
    entity = np.empty(min(most + 1, entities), np.int32)
    chosen, source = np.empty(most, np.int32), np.empty(most, np.int32)
    reached = np.empty(most, np.int32)
    facts = len(weights) // 2
    place[given], entity[0] = 0, given
    first, rows, taken = 0, 1, 0
    for _ in range(steps):
        last, left = rows, most - taken
        # First how far the candidates are, then which of them are near enough.
        apart = np.empty(16, np.int64)
        count = 0
        limit, extra = _FAR, 0
        for choosing in range(2):
            if choosing == 1 and count > left:
                limit = np.partition(apart[:count], left)[left]
                extra = left - np.sum(apart[:count] < limit)
            for row in range(first, last):
                u = entity[row]
                for i in range(starts[u], starts[u + 1]):
                    v, n = target[i], number[i]
                    at = place[v]
                    # What an earlier step read, and the second way of a fact within this step.
                    if 0 <= at < first or (first <= at < last and n >= facts):
                        continue
                    if weights[n] == 0 or scopes[time[i]] == LEFT_OUT:
                        continue
                    gap = max(q_begin - end[time[i]], begin[time[i]] - q_end, 0)
                    if choosing == 0:
                        if count == len(apart):
                            longer = np.empty(2 * count, np.int64)
                            longer[:count] = apart
                            apart = longer
                        apart[count] = gap
                        count += 1
                        continue
                    if gap > limit or (gap == limit and extra == 0):
                        continue
                    if gap == limit:
                        extra -= 1
                    if at < 0:
                        at = rows
                        place[v], entity[rows] = at, v
                        rows += 1
                    chosen[taken], source[taken], reached[taken] = i, row, at
                    taken += 1
        first = last
        if taken == most:
            break
    return chosen[:taken], source[:taken], reached[:taken], entity[:rows]


def nearest(
    facts: DirectedFacts,
    given: Tensor,
    scopes: Tensor,
    times: Times,
    weights: Tensor,
    steps: int,
    most: int,
) -> Nearest:
    """At most so many facts for each question, within so many steps of its given entity.

    `scopes` and `times` are those of the questions. Facts without weight, and those that a question
    must not see, are not counted.
    """
    order = facts.on_processor.outgoing
    begin, end = facts.on_processor.times.points()
    timeless = facts.on_processor.times.unknown == BEGIN_UNKNOWN | END_UNKNOWN
    columns = (order.starts, order.target, order.time, order.number)
    fixed = [
        column.numpy()
        for column in (
            *columns, begin.masked_fill(timeless, -_FAR), end.masked_fill(timeless, _FAR),
            weights.cpu(),
        )
    ]  # fmt: skip
    asked = [column.cpu().tolist() for column in (given, *times.points())]
    seen = scopes.T.contiguous().cpu().numpy()
    parts = [
        _choose(*one, seen[question], *fixed, facts.entities, steps, most)
        for question, one in enumerate(zip(*asked, strict=True))
    ]
    return _one_graph(facts, parts, given.device)


def _one_graph(
    facts: DirectedFacts, parts: Sequence[tuple[Ints, ...]], device: torch.device
) -> Nearest:
    """The facts of all questions as those of one graph, with predicates and times of their own."""
    order, count, size = facts.on_processor.outgoing, len(parts), facts.facts
    rows = np.array([len(part[3]) + 1 for part in parts])
    first = rows.cumsum() - rows
    question = np.repeat(np.arange(count), [len(part[0]) for part in parts])
    chosen, source, target = (
        np.concatenate([part[column] for part in parts]) for column in range(3)
    )
    source, target = source + first[question], target + first[question]
    predicate, time, number = (
        column.numpy()[chosen].astype(np.int64)
        for column in (order.predicate, order.time, order.number)
    )

    def both(one: Ints, other: Ints, kind: type = np.int64) -> Tensor:
        return torch.from_numpy(np.concatenate([one, other]).astype(kind)).to(device)

    turned = (predicate + facts.predicates) % (2 * facts.predicates)
    nearby = DirectedFacts(
        int(rows.sum()),
        facts.predicates * count,
        len(chosen),
        both(source, target, np.int32),
        both(predicate * count + question, turned * count + question, np.int32),
        both(target, source, np.int32),
        both(time * count + question, time * count + question, np.int32),
        facts.times,
    )
    entity = np.concatenate([np.append(part[3], -1) for part in parts]).astype(np.int64)
    return Nearest(
        nearby,
        both(number, (number + size) % (2 * size)),
        torch.from_numpy(np.repeat(np.arange(count), rows)).to(device),
        torch.from_numpy(entity).to(device),
        torch.from_numpy(first).to(device),
    )
