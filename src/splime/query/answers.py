"""From questions to answers: scored, ranked, and given names, scopes and dates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch

from splime.arrays import expand
from splime.errors import UsageError, check_name, counted, visible
from splime.evaluation.metrics import Floats
from splime.graph import Facts
from splime.query.questions import Question
from splime.scoring.queries import Block, Scoring, Spans
from splime.scoring.scoping import Kind, KnownAnswers, KnownFact
from splime.scoring.scorer import Ids
from splime.shown import Rows
from splime.timeline import Timeline
from splime.times import Ints, format_ticks

# Spans are made from a number for each question and timestamp, so many at a time.
_SPANNED = 1 << 20


class Answer(NamedTuple):
    """One answer."""

    rank: int
    name: str
    """Of an entity, a predicate, or (when) a scoped predicate."""
    score: float
    probability: float | None
    """None where it cannot be calibrated, and where train states the answer."""
    scopes: tuple[str, ...]
    """The scoped predicates that it was scored by, in the order of time."""
    begin: str | None
    """The first date of those scopes."""
    end: str | None
    known: KnownFact | None
    remark: str | None = None
    """Why the answer is one that the model hardly knows; then it has no probability."""


@dataclass(frozen=True)
class Answers(Rows[Answer]):
    """The answers to a question, from the best to the worst."""

    question: Question
    rows: list[Answer]
    temperature: float | None = None
    """What scores are divided by before they become probabilities."""
    remarks: tuple[str, ...] = ()
    """What one should know to read them: how probabilities were made, or why there are none."""
    doubt: str = ""
    """What of the question train does not have, so that the model cannot know it."""

    def __repr__(self) -> str:
        lines = [self.question.text]
        width = max((len(row.name) for row in self.rows), default=0)
        for row in self.rows:
            sure = "" if row.probability is None else f"  {percent(row.probability)}"
            known = "" if row.known is None else f"  known: {row.known}"
            dates = f"  {row.begin}..{row.end}" if self.question.kind == "time" else ""
            remark = f"  {row.remark}" if row.remark else ""
            shown = f"{row.rank:3}  {row.name:{width}}  {row.score:9.4g}{dates}{sure}{known}"
            lines.append(shown + remark)
        return visible("\n".join([*lines, *self.remarks]))

    def timeline(self) -> list[Answer]:
        """The answers in the order of time, for a question that asks when."""
        return sorted(self.rows, key=lambda row: [*map(_date, (row.begin, row.end))])

    def to_table(self) -> pa.Table:
        """As an Arrow table: a row for each answer, with the question's number 1."""
        from splime.query.many import SCHEMA

        names = ("subject", "predicate", "object", "begin", "end")
        asked = [1, *(getattr(self.question, name) for name in names)]
        rows = []
        for *answer, scopes, begin, end, known, remark in self.rows:
            scope, fact = ", ".join(scopes) or None, None if known is None else str(known)
            remarks = "; ".join(filter(None, (self.doubt, remark))) or None
            row = (*asked, *answer, scope, begin, end, fact, remarks)
            rows.append(dict(zip(SCHEMA.names, row, strict=True)))
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        answers = [
            {**row._asdict(), "known": None if row.known is None else row.known._asdict()}
            for row in self.rows
        ]
        return {
            "question": asdict(self.question),
            "answers": answers,
            "temperature": self.temperature,
            "remarks": list(self.remarks),
        }


class ThereIsOne(NamedTuple):
    """Whether a graph states a fact that was asked for at all: an answer supposes that."""

    probability: float
    stated: int
    """Such facts that it states at that time; the probability is of one more."""

    def __str__(self) -> str:
        sure = percent(self.probability)
        if self.stated:
            stated = counted(self.stated, "such fact")
            return f"this table states {stated}; probability of another: {sure}"
        return f"probability that this table states such a fact at all: {sure}"


def percent(probability: float) -> str:
    """A probability for people.

    >>> percent(0.4242), percent(0.00012)
    ('42.4 %', '< 0.1 %')
    """
    return f"{100 * probability:.1f} %" if probability >= 0.001 else "< 0.1 %"


def _date(text: str | None) -> tuple[int, str]:
    """Years and steps sort as numbers, longer dates as text."""
    try:
        return int(text or 0), ""
    except ValueError:
        return 0, text or ""


@dataclass(frozen=True)
class AnswerOptions:
    """What a person chooses about answers."""

    limit: int | None = 10
    known: str = "mark"
    """What becomes of answers that are known: `mark` them or `drop` them."""
    best: int | None = None
    """Predicates: only scopes among this many best ones of all, as in the paper."""
    also: int | None = None
    """The id of an answer that is given whatever its rank."""
    watch: Callable[[Block], None] | None = None
    """Sees all scores of entities or predicates, before known answers are left out."""

    def __post_init__(self) -> None:
        check_name("way to treat known answers", self.known, ("mark", "drop"))
        for name, number in (("limit", self.limit), ("best", self.best)):
            whole = isinstance(number, int) and not isinstance(number, bool)
            if number is not None and (not whole or number < 1):
                raise UsageError(f"{name} is a number from 1 on, not {number!r}")


class Best(NamedTuple):
    """Candidates, by question and from the best to the worst."""

    question: Ints
    id: Ints
    score: Floats
    probability: Floats
    """NaN where there is none: without a temperature, of what train states, and where it does not
    have what is asked or answered."""
    fact: Ints
    """The fact that states the answer, -1 if none does."""
    rank: Ints
    """From 1 for each question."""

    def take(self, rows: Ints) -> Best:
        """Some of them, by positions."""
        return Best(*(column[rows] for column in self))  # type: ignore[arg-type]

    @classmethod
    def concat(cls, blocks: list[Best]) -> Best:
        """Those of different questions together, in the order of the questions."""
        together = cls(*(np.concatenate(column) for column in zip(*blocks, strict=True)))
        return together.take(np.argsort(together.question, kind="stable"))


class NamedAnswers(NamedTuple):
    """Answers to questions of one kind: a row each, by question and rank."""

    best: Best
    names: pa.Array
    scopes: pa.ListArray
    """The names of the scoped predicates that they were scored by."""
    begin: Sequence[str | None]
    """The first date of those scopes."""
    end: Sequence[str | None]

    def rows(self, scoring: Scoring, kind: Kind, facts: Facts) -> list[Answer]:
        """The answers to one question."""
        columns = zip(
            self.best.rank.tolist(),
            self.names.to_pylist(),
            self.best.score.tolist(),
            self.best.probability.tolist(),
            self.scopes.to_pylist(),
            self.begin,
            self.end,
            scoring.known.describe(self.best.fact),
            scoring.coverage.remarks(kind, self.best.id, facts.take(self.best.question)),
            strict=True,
        )
        return [
            Answer(rank, name, score, None if sure != sure else sure, tuple(scopes), *rest)
            for rank, name, score, sure, scopes, *rest in columns
        ]


def answer(
    scoring: Scoring, kind: Kind, facts: Facts, options: AnswerOptions, temperature: float | None
) -> NamedAnswers:
    """The best answers to some questions of one kind."""
    if kind == "time":
        named = _times(scoring, facts, options, temperature)
    elif kind == "predicate" and options.best is not None:
        named = _best_scopes(scoring, facts, options, options.best)
    else:
        named = _ranked(scoring, kind, facts, options, temperature)
    best, coverage = named.best, scoring.coverage
    doubtful = coverage.asked(kind, facts)[best.question]
    doubtful |= coverage.answers(kind, best.id, facts.take(best.question))
    best.probability[doubtful] = np.nan
    return named


def _ranked(
    scoring: Scoring, kind: Kind, facts: Facts, options: AnswerOptions, temperature: float | None
) -> NamedAnswers:
    """The best of all entities or predicates."""
    by_block = []
    for block in scoring.blocks(kind, facts):
        if options.watch is not None:
            options.watch(block)
        known = scoring.known.answers(kind, facts.take(block.rows))
        by_block.append(best_of(block, known, options, temperature))
    best = Best.concat(by_block)
    if options.also is not None:
        shown = best.id == options.also
        shown |= best.rank <= (options.limit or len(best.rank))
        best = best.take(np.flatnonzero(shown))
    # The scopes of a question depend on the answer only if that is the predicate.
    by_answer = kind == "predicate"
    if by_answer:
        facts = replace(facts.take(best.question), predicate=best.id.astype(np.int32))
    count, scope = scoring.scopes_of(facts)
    start = count.cumsum() - count
    if not by_answer:
        start, count = start[best.question], count[best.question]
    names = scoring.names(kind).labels.take(pa.array(best.id))
    return _named(scoring, best, names, scope, start, count)


def _best_scopes(scoring: Scoring, facts: Facts, options: AnswerOptions, most: int) -> NamedAnswers:
    """The paper's way: the best of all scoped predicates, of which those at the time stay."""
    if scoring.scoping is None:
        raise UsageError("this model has no scoped predicates to choose the best of")
    scopes, asked = scoring.scoping.static.predicates, scoring.scoping.cut(facts)
    known, limit = scoring.known.answers("predicate", facts), AnswerOptions(most)
    none = KnownAnswers(known.question[:0], known.id[:0], known.fact[:0], known.learned[:0])
    best = Best.concat([best_of(b, none, limit) for b in scoring.scoped_predicates(facts)])
    # Scopes reach from one of their cuts to the next, and those must meet the interval.
    source = scopes.sources[best.id]
    cut = best.id - source  # the position of the cut that ends a scope
    cuts = np.append(scopes.cuts, 2 * len(scopes.timeline))
    left = np.where(best.id > scopes.starts[source], cuts[cut - 1], -1)
    right = np.where(cut < scopes.offsets[source + 1], cuts[cut], cuts[-1])
    begin, end = asked.begin[best.question], asked.end[best.question]
    best = best.take(np.flatnonzero((left <= 2 * end) & (right >= 2 * begin)))
    # Every source once, for its best scope.
    key = best.question * len(scopes.names) + scopes.sources[best.id]
    best = best.take(np.sort(np.unique(key, return_index=True)[1]))
    at = _places(known, best.question, scopes.sources[best.id], len(scopes.names))
    best = best._replace(fact=np.append(known.fact, -1)[at])
    if options.known == "drop":
        best = best.take(np.flatnonzero(best.fact < 0))
    best = best._replace(rank=_ranks(best.question))
    if options.limit is not None:
        best = best.take(np.flatnonzero(best.rank <= options.limit))
    scope = best.id
    best = best._replace(id=scopes.sources[scope].astype(np.int64))
    names = scopes.names.labels.take(pa.array(best.id))
    return _named(scoring, best, names, scope, np.arange(len(scope)))


def _times(
    scoring: Scoring, facts: Facts, options: AnswerOptions, temperature: float | None
) -> NamedAnswers:
    """The spans of triples, from the most to the least likely."""
    timeline = scoring.graph.timeline
    step = max(1, _SPANNED // len(timeline))
    by_block: list[Best] = []
    rows: list[Spans] = []
    for start in range(0, len(facts), step):
        some = facts.take(np.arange(start, min(start + step, len(facts))))
        spans = scoring.spans_of(some)
        known = scoring.known_spans(some, spans)
        best = best_of(scoring.span_block(spans, len(some)), known, options, temperature)
        lone = np.bincount(spans.question, minlength=len(some)) == 1
        best.probability[lone[best.question]] = np.nan  # it cannot be another one
        at = np.searchsorted(spans.question, best.question) + best.id
        rows.append(Spans(*(column[at] for column in spans)))
        by_block.append(best._replace(question=best.question + start))
    spans = Spans(*(np.concatenate(column) for column in zip(*rows, strict=True)))
    names = scoring.labels.take(pa.array(spans.scope))
    named = _named(scoring, Best.concat(by_block), names, spans.predicate, np.arange(len(names)))
    times: tuple[Ids, Ids] = spans.begin, spans.end
    if scoring.scoping is not None and scoring.scoping.entities is None:
        scopes = scoring.scoping.static.predicates
        times = scopes.first[spans.scope], scopes.last[spans.scope]
    begin, end = dates(timeline, *times)
    return named._replace(begin=begin, end=end)


def _named(
    scoring: Scoring,
    best: Best,
    names: pa.Array,
    scope: Ints,
    start: Ints,
    count: Ints | None = None,
) -> NamedAnswers:
    """Answers with their scopes: `count` of each (or one), from `start` on."""
    count = np.ones(len(start), np.int64) if count is None else count
    labels = scoring.labels.take(pa.array(scope[expand(start, count)[1]]))
    offsets = pa.array(np.append(0, count.cumsum()), pa.int32())
    listed = pa.ListArray.from_arrays(offsets, labels)
    if scoring.scoping is None:
        return NamedAnswers(best, names, listed, [None] * len(best.id), [None] * len(best.id))
    scopes = scoring.scoping.static.predicates
    begin, end = scopes.first[scope[start]], scopes.last[scope[start + count - 1]]
    return NamedAnswers(best, names, listed, *dates(scopes.timeline, begin, end))


def dates(timeline: Timeline, begin: Ids, end: Ids) -> tuple[list[str], list[str]]:
    """The first date of some timestamps, and the last date of others."""
    first, last = timeline.starts[begin], timeline.ends[end]
    return format_ticks(first, timeline.granularity), format_ticks(last, timeline.granularity)


def best_of(
    block: Block, known: KnownAnswers, options: AnswerOptions, temperature: float | None = None
) -> Best:
    """The best candidates of each row of a block, in which known answers may be left out.

    `known` are the known answers to the questions of the block, by their positions in it. The
    probability is a softmax of score / temperature over all candidates that train does not state.
    """
    scores, weight = block.scores, block.weight
    row, ids = (torch.as_tensor(column).to(scores.device) for column in (known.question, known.id))
    limit = options.limit if options.also is None else None
    most = min(limit or scores.shape[1], scores.shape[1])
    top = None if options.known == "drop" else torch.topk(scores, most, dim=1)
    learned, stated = (
        torch.as_tensor(mask).to(scores.device) for mask in (known.learned, known.fact >= 0)
    )
    before = scores[row, ids]
    scores[row[learned], ids[learned]] = -torch.inf
    if temperature is not None:
        whole = (scores / (weight * temperature)[:, None]).logsumexp(1).double().cpu().numpy()
    if top is None:
        scores[row, ids] = before.masked_fill(stated, -torch.inf)
        top = torch.topk(scores, most, dim=1)
    values, best = (column.cpu().numpy() for column in top)
    means = values.astype(np.float64) / weight.cpu().numpy().astype(np.float64)[:, None]
    probability = np.full(means.shape, np.nan)
    if temperature is not None:
        with np.errstate(invalid="ignore"):  # where train states all answers
            probability = np.exp(means / temperature - whole[:, None])
    question = np.repeat(np.arange(len(best)), most)
    at = _places(known, question, best.ravel(), scores.shape[1])
    # The last is of those that are not known.
    fact, seen = np.append(known.fact, -1)[at], np.append(known.learned, False)[at]
    probability = np.where(seen, np.nan, probability.ravel()).clip(max=1.0)
    flat = values.ravel()
    # What is -inf is no candidate or was left out; equal ones are in the order of ids.
    order = np.lexsort((best.ravel(), -flat, question))
    order = order[flat[order] > -np.inf]
    question = question[order]
    places, score = best.ravel()[order], means.ravel()[order]
    ranks, rows = _ranks(question), block.rows[question]
    return Best(rows, places, score, probability[order], fact[order], ranks)


def _ranks(question: Ints) -> Ints:
    """From 1 for each question, of answers that are sorted by it."""
    return np.arange(1, len(question) + 1) - np.searchsorted(question, question)


def _places(known: KnownAnswers, question: Ints, ids: Ids, width: int) -> Ints:
    """Where pairs of question and id stand among what is known, -1 if they do not."""
    if not len(known.question):
        return np.full(len(question), -1, np.int64)
    keys = known.question * width + known.id
    key = question * width + ids
    at = np.searchsorted(keys, key).clip(max=len(keys) - 1)
    return np.where(keys[at] == key, at, -1)
