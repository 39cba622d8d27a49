"""From questions to answers: scored, ranked, and given names, scopes and dates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from splime.arrays import expand
from splime.evaluation.scorer import Ids
from splime.graph import Facts
from splime.query.best import Best, best_of
from splime.query.known import KnownAnswers, KnownFacts
from splime.query.question import Kind, question_facts
from splime.query.scoring import Block, Scoring
from splime.query.spans import Spans, known_spans, span_block, spans_of
from splime.times import Bools, Ints, format_ticks

# Spans are found from a number for each question and timestamp, so many at a time.
_SPANNED = 1 << 20


@dataclass(frozen=True)
class Options:
    """What a person chooses about answers."""

    limit: int | None = 10
    drop: bool = False
    """Leave out what is known."""
    best: int | None = None
    """Predicates: only the scopes among so many best of all, as in the paper."""


class Found(NamedTuple):
    """Answers to questions of one kind: a row each, by question and rank."""

    best: Best
    names: pa.Array
    scopes: pa.ListArray
    """The names of the scoped predicates that served."""
    begin: list[str]
    """The first date of the first of them."""
    end: list[str]


class Answering:
    """Answers questions of a run, many of one kind at once."""

    def __init__(self, scoring: Scoring) -> None:
        self.scoring = scoring

    @cached_property
    def known(self) -> KnownFacts:
        """The facts of all splits."""
        return KnownFacts(self.scoring.run.graph)

    def blocks(self, kind: Kind, facts: Facts) -> Iterator[tuple[Block, KnownAnswers]]:
        """The scores of questions for names, with what is known of each block."""
        for block in self.scoring.blocks(kind, facts):
            yield block, self.known.answers(kind, facts.take(block.rows))

    def answer(
        self, kind: Kind, facts: Facts, options: Options, temperature: float | None
    ) -> Found:
        """The best answers to some questions."""
        if kind == "time":
            return self._times(facts, options, temperature)
        if kind == "predicate" and options.best is not None:
            return self._best_scopes(facts, options, options.best)
        best = Best.concat(
            [
                best_of(
                    block, known, limit=options.limit, drop=options.drop, temperature=temperature
                )
                for block, known in self.blocks(kind, facts)
            ]
        )
        # What serves a question depends on the answer only if that is the predicate.
        by_answer = kind == "predicate"
        asked = facts.take(best.question) if by_answer else facts
        predicate: Ids = best.id if by_answer else facts.predicate
        served = question_facts(asked.subject, predicate, asked.object, asked.begin, asked.end)
        count, piece = self.scoring.serving(served)
        start = count.cumsum() - count
        if not by_answer:
            start, count = start[best.question], count[best.question]
        graph = self.scoring.run.graph
        names = (graph.predicates if by_answer else graph.entities).labels
        return self._found(best, names.take(pa.array(best.id)), piece, start, count)

    def _best_scopes(self, facts: Facts, options: Options, most: int) -> Found:
        """The paper's way: the best of all scoped predicates, of which those at the time stay."""
        scopes = self.scoring.setting.static.predicates
        best = Best.concat(
            [
                best_of(block, KnownAnswers.none(), limit=most)
                for block in self.scoring.scoped_predicates(facts)
            ]
        )
        begin, end = (scopes.timeline.index(ticks) for ticks in (facts.begin, facts.end))
        best = best.take(
            np.flatnonzero(self._overlaps(best.id, begin[best.question], end[best.question]))
        )
        piece = best.id
        best = best._replace(id=scopes.sources[piece].astype(np.int64))
        # Every source once, for its best scope.
        key = best.question * len(scopes.names) + best.id
        first = np.sort(np.unique(key, return_index=True)[1])
        best, piece = best.take(first), piece[first]
        known = self.known.answers("predicate", facts)
        fact = dict(zip(zip(known.question, known.id, strict=True), known.fact, strict=True))
        pairs = zip(best.question, best.id, strict=True)
        best = best._replace(fact=np.array([fact.get(pair, -1) for pair in pairs], np.int64))
        kept = best.fact < 0 if options.drop else np.ones(len(piece), bool)
        best, piece = best.take(np.flatnonzero(kept)), piece[kept]
        if options.limit is not None:
            kept = best.rank <= options.limit
            best, piece = best.take(np.flatnonzero(kept)), piece[kept]
        one = np.ones(len(piece), np.int64)
        names = scopes.names.labels.take(pa.array(best.id))
        return self._found(best, names, piece, np.arange(len(piece)), one)

    def _overlaps(self, piece: Ints, begin: Ids, end: Ids) -> Bools:
        """Whether pieces, from one of their cuts to the next, meet intervals of timestamps."""
        scopes = self.scoring.setting.static.predicates
        source = scopes.sources[piece]
        after = piece - source  # the position of the cut that ends a piece
        ends = np.append(scopes.cuts, 2 * len(scopes.timeline))
        left = np.where(piece > scopes.starts[source], ends[after - 1], -1)
        right = np.where(after < scopes.offsets[source + 1], ends[after], ends[-1])
        found: Bools = (left <= 2 * end) & (right >= 2 * begin)
        return found

    def _times(self, facts: Facts, options: Options, temperature: float | None) -> Found:
        """The spans of triples, from the most to the least likely."""
        scopes = self.scoring.setting.static.predicates
        step = max(1, _SPANNED // len(scopes.timeline))
        parts: list[Best] = []
        rows: list[Spans] = []
        for start in range(0, len(facts), step):
            some = facts.take(np.arange(start, min(start + step, len(facts))))
            spans = spans_of(self.scoring, some)
            known = known_spans(self.known, some, spans)
            block = span_block(self.scoring, spans, len(some))
            best = best_of(
                block, known, limit=options.limit, drop=options.drop, temperature=temperature
            )
            lone = np.bincount(spans.question, minlength=len(some)) == 1
            best.probability[lone[best.question]] = np.nan  # it cannot be another one
            first = np.searchsorted(spans.question, best.question)
            rows.append(Spans(*(column[first + best.id] for column in spans)))
            parts.append(best._replace(question=best.question + start))
        spans = Spans(*(np.concatenate(column) for column in zip(*rows, strict=True)))
        best = Best.concat(parts)
        served = np.arange(len(spans.scope))
        names = scopes.labels.take(pa.array(spans.scope))
        found = self._found(best, names, spans.predicate, served, np.ones(len(served), np.int64))
        if self.scoring.setting.entities is None:
            return found._replace(
                begin=self._dates(scopes.first[spans.scope], "starts"),
                end=self._dates(scopes.last[spans.scope], "ends"),
            )
        return found._replace(
            begin=self._dates(spans.begin, "starts"), end=self._dates(spans.end, "ends")
        )

    def _found(self, best: Best, names: pa.Array, piece: Ints, start: Ints, count: Ints) -> Found:
        """Answers with their scopes: `count` pieces of each, from `start` on."""
        scopes = self.scoring.setting.static.predicates
        _, at = expand(start, count)
        labels = scopes.labels.take(pa.array(piece[at]))
        offsets = pa.array(np.append(0, count.cumsum()), pa.int32())
        first, last = scopes.first[piece[start]], scopes.last[piece[start + count - 1]]
        return Found(
            best,
            names,
            pa.ListArray.from_arrays(offsets, labels),
            self._dates(first, "starts"),
            self._dates(last, "ends"),
        )

    def _dates(self, timestamps: Ids, which: str) -> list[str]:
        timeline = self.scoring.setting.graph.timeline
        return format_ticks(getattr(timeline, which)[timestamps], timeline.granularity)
