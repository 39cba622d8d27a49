"""The facts of a graph that look wrong, the most doubtful first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Unpack

import msgspec
import numpy as np
import pyarrow as pa
import torch

from splime.analysis.calibration import Cases, fit_temperature
from splime.analysis.hidden import FEWEST, HiddenFacts, Trust
from splime.errors import UsageError, check_name, counted, visible
from splime.evaluation.metrics import Floats
from splime.graph import Fact, Facts, Names
from splime.io.unfinished import SAVE, Unfinished
from splime.paths.relative import IntervalScopes
from splime.paths.scorer import PathScorer
from splime.progress import Progress, duration, silent
from splime.query.answers import percent
from splime.query.doubting.aliases import Aliases, find_aliases
from splime.query.doubting.asked import ANSWERED, WAYS, answered, ask, plan, statements_of
from splime.query.doubting.judging import PRIOR, judge, said_of
from splime.query.doubting.overlaps import Overlaps, find_overlaps
from splime.query.doubting.times import TimeFit
from splime.query.evidence import Step, make_evidence
from splime.query.predicted import check_suffix, read_facts, write_predictions
from splime.query.predicting import chosen_ids, fingerprint
from splime.query.questions import ASKED, Question
from splime.reading import LOG
from splime.runs import Run
from splime.runs.graph_run import GraphRun, open_source
from splime.scoring.scoping import SIDES
from splime.scoring.scorer import memory_errors
from splime.shown import Rows
from splime.times import Ints, format_ticks

if TYPE_CHECKING:
    from splime.keywords import Reading

OVERLAP, NAME = "overlap", "name"
DOUBTS = (*WAYS, OVERLAP, NAME)
"""Kinds of doubt: a wrong object, subject, predicate or time; an object too many at a time; one
thing under two names."""
LIMIT = 1000
_BOUNDED, _REACH = 15_000, 2_000
"""Of a graph with more facts a question reads so many, the nearest ones."""
_MEASURED = 8
_OTHERS = 8
"""Predicates that a fact could have instead."""
_CALIBRATED = 60
"""Facts that the probabilities of predicates are calibrated on."""
_BEGINS = 400
"""Times that a fact could have instead."""
_Instead: TypeAlias = tuple[str | None, float | None, str | None]
"""What is more probable, its probability, and why."""
_TEXT, _NUMBER = pa.large_string(), pa.float64()
SCHEMA = pa.schema(
    [
        *((name, _TEXT) for name in ("kind", "subject", "predicate", "object", "begin", "end")),
        ("doubt", _NUMBER),
        ("instead", _TEXT),
        ("probability", _NUMBER),
        ("evidence", _TEXT),
    ]
)


class Doubt(NamedTuple):
    """A fact that looks wrong; or two entities that look like one."""

    kind: str
    """What is doubtful, one of `DOUBTS`."""
    subject: str
    """Of a name: the entity with fewer facts."""
    predicate: str | None
    object: str | None
    """Of a name: the other entity."""
    begin: str | None
    end: str | None
    doubt: float
    """How probably it is wrong, if one in a hundred facts is in each of the ways."""
    instead: str | None
    """What would be more probable: a name, or the begin of a time."""
    probability: float | None
    """Of that."""
    evidence: str | None = None
    """What speaks for it, or against the fact."""


@dataclass(frozen=True)
class Doubts(Rows[Doubt]):
    """Facts that look wrong, the most doubtful first."""

    rows: list[Doubt]
    facts: int
    """That were hidden and asked for."""
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        lines = [f"{counted(len(self), 'doubt')} about {counted(self.facts, 'fact')}"]
        for row in self.rows[:10]:
            lines.append(f"{percent(row.doubt):>7}  {row.kind:9}  {stated(row)}")
        return visible("\n".join([*lines, *["…"] * (len(self) > 10), *self.remarks]))

    def to_table(self) -> pa.Table:
        """As an Arrow table: a row for each."""
        return pa.Table.from_pylist([row._asdict() for row in self.rows], schema=SCHEMA)

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        rows = [row._asdict() for row in self.rows]
        return {"facts": self.facts, "doubts": rows, "remarks": list(self.remarks)}


def stated(row: Doubt) -> str:
    """What is doubted, in words."""
    if row.kind == NAME:
        return f"{row.subject} and {row.object} may be one"
    begin, end = row.begin or "?", row.end or "?"
    when = "without time" if begin == end == "?" else begin if begin == end else f"{begin}..{end}"
    return f"{row.subject} {row.predicate} {row.object}, {when}"


def read_doubts(path: str | Path) -> list[Doubt]:
    """The doubts in a file that was written; an error where it is another one."""
    table = read_facts(Path(path), SCHEMA)
    return [Doubt(**row) for row in table.to_pylist()]


def doubts(
    source: Any,
    *,
    out: str | Path | None = None,
    kind: Names | None = None,
    predicate: Names | None = None,
    entity: Names | None = None,
    limit: int = LIMIT,
    evidence: bool = False,
    progress: Progress = silent,
    device: str = "auto",
    weights: str | None = None,
    **reading: Unpack[Reading],
) -> Doubts:
    """The facts of a graph that the others speak against, the most doubtful first.

    Each fact is hidden and asked for: it is absent from the question, from its evidence, its
    neighbours and all counts, and so is what states the same at the same time.

    Args:
        source: a graph, a file, the name of a dataset, or a run of the path model (or its folder).
        out: a file (.csv, .parquet, .jsonl) that they are written to. What is done is kept beside
            it until then, so that the same call goes on where one was interrupted.
        kind: only these kinds of doubt: object, subject, predicate, time, overlap, name.
        predicate: only facts of these predicates.
        entity: only facts of these entities.
        limit: at most so many.
        evidence: whether to look for the facts that speak for something else.
        progress: called after each fact.
        device: where to compute: auto, cpu or cuda.
        weights: the version of the weights that a graph is answered by.
        **reading: how to read the facts, as `splime.load` has it.

    >>> import splime
    >>> some = splime.load("demo").where(predicate="holdsOffice")
    >>> found = doubts(some, kind="overlap")
    >>> found.facts, len(found)
    (345, 0)
    """
    kinds = DOUBTS if kind is None else (kind,) if isinstance(kind, str) else tuple(kind)
    for one in kinds:
        check_name("kind of doubt", one, DOUBTS)
    if limit < 1:
        raise UsageError(f"limit is how many doubts are listed, from 1 on, not {limit}")
    path = None if out is None else Path(out)
    if path is not None:
        check_suffix(path)
    with memory_errors():
        run = readable(open_source(source, device=device, weights=weights, **reading))
        work = Doubting(run, kinds, chosen_ids(entity, run.graph, "entity"))
        work.choose(None if predicate is None else chosen_ids(predicate, run.graph, "predicate"))
        work.limit = limit
        kept = Unfinished(path, work.fingerprint(evidence), Answered, Answered())
        try:
            work.ask(kept, progress)
            found = work.found(kept, evidence, progress)
        finally:
            kept.save()
    if path is not None:
        write_predictions(found.to_table(), path)
        kept.remove()
    return found


def readable(run: Run) -> Run:
    """A run that answers from all facts of the graph, each question from a bounded number."""
    if run.settings.forecasts:
        raise UsageError(
            f"{run.path}: this run forecasts: it knows only facts before a time; give its facts"
        )
    graph = run.graph
    whole = replace(graph, train=graph.facts(), valid=Facts.empty(), test=Facts.empty())
    if isinstance(run, GraphRun):
        if len(whole.train) <= _BOUNDED:
            return run if len(graph.train) == len(graph) else run.of_graph(whole)
        return run.of_graph(whole, reach=_REACH)
    if not run.scoring().can_hide:
        raise UsageError(
            f"{run.path}: this model has learned its facts by heart, and none can be hidden from"
            " it; give the facts themselves, or a run of the path model (--model path)"
        )
    return run._on(whole)


class Answered(msgspec.Struct):
    """What is done."""

    rows: bytes = b""
    """`ANSWERED` of what was asked, as numbers of 8 bytes."""
    evidence: list[_Instead] = msgspec.field(default_factory=list)
    """Of the first doubtful facts."""

    def __post_init__(self) -> None:
        if len(self.rows) % (8 * len(ANSWERED)):
            raise ValueError("its rows are not whole")

    def answered(self) -> Floats:
        """As rows of numbers."""
        return np.frombuffer(self.rows).reshape(-1, len(ANSWERED))


class Doubtful(NamedTuple):
    """Facts in the order of doubt."""

    fact: Ints
    kind: Ints
    """The place in `DOUBTS`."""
    doubt: Floats
    row: Ints
    """Where it was asked."""
    other: Ints
    """Of an overlap: the other fact; else -1."""


class Doubting:
    """A graph whose facts are hidden and asked for.

    `kinds` of doubt are looked for, about some entities (`choose` says which facts).
    """

    def __init__(self, run: Run, kinds: Sequence[str], entities: Ints) -> None:
        self.run, self.graph, self.entities = run, run.graph, entities
        self.scoring = run.scoring()
        self.scorer: PathScorer = self.scoring.scorer
        self.known, self.statements = self.scorer.known, self.scorer.statements
        self.names, self.limit = NAME in kinds, LIMIT
        self.overlaps = OVERLAP in kinds
        self.remarks: list[str] = []
        self.ways = self._ways(kinds)

    def choose(self, predicates: Ints | None = None, facts: Ints | None = None) -> None:
        """Look at the facts of some predicates, or with these numbers, once each statement."""
        known, first = self.known, statements_of(self.scorer)
        self.names &= predicates is None
        wanted = np.isin(known.subject, self.entities) | np.isin(known.object, self.entities)
        if predicates is not None:
            wanted &= np.isin(known.predicate, predicates)
        if facts is not None:
            first = np.intersect1d(first, facts)
        self.chosen = first[wanted[first]]
        asked = self.chosen
        if not self.ways:  # only which of two is more probable is to be asked
            some = self.overlapping.fact if self.overlaps and self.trust.works else asked[:0]
            asked = np.intersect1d(asked, np.unique(some))
        self.asked, self.starts = plan(self.scorer, self.graph, asked, wrong=bool(self.ways))

    def fingerprint(self, evidence: bool) -> str:
        """Of everything that decides about the result."""
        about = (self.ways, self.overlaps, self.names, self.limit, evidence)
        return fingerprint(self.run, *about, self.chosen.tolist(), self.entities.tolist())

    @cached_property
    def overlapping(self) -> Overlaps:
        """Facts that must not hold at once."""
        return find_overlaps(self.known, len(self.graph.predicates))

    @cached_property
    def trust(self) -> Trust:
        """How far answers of the model can be trusted."""
        return HiddenFacts(self.run, self.scoring).trust()

    def _ways(self, kinds: Sequence[str]) -> list[int]:
        """The ways in which facts are judged, if the model can be trusted and there are times."""
        statements = len(np.unique(self.statements))
        if statements < FEWEST:
            raise UsageError(
                f"{self.run.path}: {counted(statements, 'different fact')} cannot tell what is"
                f" usual; {FEWEST} are needed at least"
            )
        ways = [number for number, way in enumerate(WAYS) if way in kinds]
        if len(np.unique(self.known.begin[~self.known.timeless])) < 2:
            self.remarks.append(
                "the facts have no times, or all the same: nothing can be said about times"
            )
            ways = [number for number in ways if WAYS[number] != "time"]
        if ways and not self.trust.works:
            names = ", ".join(WAYS[number] for number in ways)
            self.remarks.append(f"nothing is said about {names}: {self.trust}")
            ways = []
        return ways

    @cached_property
    def temperatures(self) -> Floats:
        """Of objects and of subjects."""
        calibrations = self.trust.calibrations
        return np.array([calibrations[k].temperature or 1.0 for k in SIDES])

    # Asking

    def ask(self, kept: Unfinished[Answered], progress: Progress) -> None:
        """Hide each fact and ask for it."""
        total, done = int(self.starts[-1]), len(kept.done.answered())
        if done >= total:
            return
        if done:
            LOG.info(f"going on after {done:,} of {counted(total, 'fact')}")
        self._tell_cost(total - done, done)
        rows = bytearray(kept.done.rows)
        places = (self.scoring, self.asked, self.starts, self.temperatures)
        try:
            for stop, found in ask(*places, done):
                rows += found.tobytes()
                progress("asking", stop, total)
                if kept.due(SAVE):
                    kept.done = Answered(bytes(rows))
                    kept.save()
        finally:
            kept.done = Answered(bytes(rows), kept.done.evidence)

    def _tell_cost(self, left: int, done: int) -> None:
        """Say how long it may take: a few facts are asked for, and their time is extrapolated."""
        places = (self.scoring, self.asked, self.starts, self.temperatures)
        seconds = []
        for number, _ in enumerate(ask(*places, done)):
            seconds.append(time.perf_counter())
            if number == _MEASURED:
                break
        each = (seconds[-1] - seconds[0]) / max(len(seconds) - 1, 1)
        bound = self.scorer.model.reach
        reads = f", each from the {bound:,} nearest others" if bound else ""
        about = f"{counted(len(self.chosen), 'fact')}, {left:,} to ask for with wrong ones{reads}"
        statements = len(np.unique(self.asked.statement[done:]))
        LOG.info(f"{about}, about {duration(each * statements)}")

    # Judging

    @cached_property
    def times(self) -> TimeFit:
        """How well times fit."""
        relative = self.scorer.relative
        given = relative.edges if isinstance(relative, IntervalScopes) else None
        edges = given or IntervalScopes.edges_for(self.graph)
        return TimeFit(self.known, self.statements, self.graph, edges)

    def judge(self, rows: Floats) -> Doubtful:
        """The chosen facts in the order of doubt."""
        asked = self.asked
        at = np.flatnonzero((asked.way < 0) & np.isin(asked.fact, self.chosen))
        number = np.full(len(self.known), -1)
        number[asked.fact[at]] = np.arange(len(at))
        doubt = np.zeros((len(at), len(DOUBTS)))
        if self.ways:
            ends = np.concatenate([self.known.subject, self.known.object])
            degree = np.bincount(ends, minlength=len(self.graph.entities))
            of_times = self.times.answered(asked.facts, asked.statement)
            said = said_of(rows, of_times, asked.facts, degree)
            doubt[:, self.ways] = judge(said, asked, at, len(self.graph.predicates))[:, self.ways]
        other = np.full(len(at), -1)
        if self.overlaps:
            self._overlaps(rows, number, doubt, other)
        total = 1 - (1 - doubt[:, : len(WAYS)].sum(1)) * (1 - doubt[:, len(WAYS)])
        order = np.lexsort((asked.fact[at], -total.round(9)))
        order = order[total[order] > 0][: self.limit]
        kind = doubt.argmax(1)
        return Doubtful(asked.fact[at[order]], kind[order], total[order], at[order], other[order])

    def _overlaps(self, rows: Floats, number: Ints, doubt: Floats, other: Ints) -> None:
        """Which of two facts that must not hold at once is the less probable one."""
        found = self.overlapping
        names = ", ".join(self.graph.predicates[one] for one in found.predicates.tolist())
        self.remarks.append(f"one object at a time: {names or 'no predicate'}")
        place = np.full(len(self.known), -1)
        stated = np.flatnonzero(self.asked.way < 0)
        place[self.asked.fact[stated]] = stated
        for fact, partner, usual in zip(*found[:3], strict=True):
            if number[fact] < 0:
                continue
            wrong = 0.5
            if len(rows) and place[partner] >= 0:
                apart = rows[place[fact], 0] - rows[place[partner], 0]
                wrong = 1 / (1 + np.exp(np.clip(apart, -30, 30)))
            # As many are right as overlap, beside those that are wrong: each of these overlaps.
            doubt[number[fact], len(WAYS)] = wrong * min(1.0, 2 * PRIOR / usual)
            other[number[fact]] = partner

    # What is found

    def found(self, kept: Unfinished[Answered], evidence: bool, progress: Progress) -> Doubts:
        """The doubts by name, with what would be more probable."""
        best = self.judge(kept.done.answered())
        done = kept.done.evidence
        for place in self.scorer.each_hidden(best.fact, len(done)):
            done.append(self._explained(best, place, kept.done.answered(), evidence))
            progress("what is more probable", place + 1, len(best.fact))
            kept.save(SAVE)
        facts = list(replace(self.graph, train=self.known.take(best.fact)).rows("train"))
        kinds = [DOUBTS[kind] for kind in best.kind.tolist()]
        rows = [
            Doubt(kind, *fact, sure, *more)
            for kind, fact, sure, more in zip(kinds, facts, best.doubt.tolist(), done, strict=True)
        ]
        if self.names:
            rows += self._names()
            rows.sort(key=lambda row: -row.doubt)
        about = f"answered {self.run.basis}" if self.run.basis else ""
        remarks = [*self.remarks, about, str(self.trust) if self.ways else ""]
        return Doubts(rows[: self.limit], len(self.chosen), tuple(filter(None, remarks)))

    def _names(self) -> list[Doubt]:
        """The pairs of entities that look like one."""
        pairs: Aliases = find_aliases(self.graph, self.known)
        ours = np.isin(pairs.one, self.entities) | np.isin(pairs.other, self.entities)
        rows, entities = [], self.graph.entities
        for one, other, sure in zip(*(column[ours][: self.limit] for column in pairs), strict=True):
            pair = (entities[int(one)], None, entities[int(other)], None, None)
            why = self._shared(int(one), int(other))
            rows.append(Doubt(NAME, *pair, float(sure), entities[int(other)], float(sure), why))
        return rows

    def _shared(self, one: int, other: int) -> str | None:
        """What both have."""
        known, shared = self.known, []
        for own, far, text in (
            (known.subject, known.object, "{} {}"),
            (known.object, known.subject, "{1} {0}"),
        ):
            mine, theirs = (
                {(int(known.predicate[row]), int(far[row])) for row in np.flatnonzero(own == each)}
                for each in (one, other)
            )
            for which, name in sorted(mine & theirs):
                words = (self.graph.predicates[which], self.graph.entities[name])
                shared.append(text.format(*words))
        return f"both: {'; '.join(shared[:3])}" if shared else None

    def _explained(self, best: Doubtful, place: int, rows: Floats, evidence: bool) -> _Instead:
        """What is more probable than a doubtful fact, how probable it is, and why."""
        fact, kind = best.fact[[place]], DOUBTS[best.kind[place]]
        own, statement = self.known.take(fact), self.statements[fact]
        if kind == OVERLAP:
            return self._partner(best, place, evidence)
        if kind == "time":
            return self._time(own, statement, evidence)
        if kind == "predicate":
            return self._predicate(own, statement, evidence)
        said = dict(zip(ANSWERED, rows[best.row[place]], strict=True))
        name = self.graph.entities[int(said[f"other_{kind}"])]
        sure = float(np.exp(said[f"best_{kind}"]))
        if said[f"best_{kind}"] <= -99:
            return None, None, None
        return name, sure, self._why(own, kind, name) if evidence else None

    def _partner(self, best: Doubtful, place: int, evidence: bool) -> _Instead:
        other = self.known.take(best.other[[place]])
        text = self._step(other, "at the same time") if evidence else None
        return self.graph.entities[int(other.object[0])], None, text

    def _step(self, fact: Facts, scope: str) -> str:
        named: Fact = next(iter(replace(self.graph, train=fact).rows("train")))
        return str(Step(named, scope))

    def _time(self, own: Facts, statement: Ints, evidence: bool) -> _Instead:
        dated = self.known.begin[~self.known.timeless]
        shares = np.linspace(0, 1, _BEGINS)
        begins = np.unique(np.quantile(dated, shares, method="nearest"))
        _, sure, begin, _ = self.times.answered(own, statement, begins)[0]
        [date] = format_ticks(np.array([int(begin)]), self.graph.timeline.granularity)
        if not evidence:
            return date, float(np.exp(sure)), None
        against, scope = self.times.against(own, statement)
        if against < 0:
            return date, float(np.exp(sure)), None
        other = self.known.take(np.flatnonzero(self.statements == against)[:1])
        return date, float(np.exp(sure)), self._step(other, self.times.relative.name(scope))

    def _why(self, own: Facts, kind: str, answer: str) -> str | None:
        """The chain that leads to another answer, while the fact is hidden."""
        granularity, graph = self.graph.timeline.granularity, self.graph
        dates = [format_ticks(ticks, granularity)[0] for ticks in (own.begin, own.end)]
        names = [graph.entities[int(own.subject[0])], graph.predicates[int(own.predicate[0])]]
        names.append(graph.entities[int(own.object[0])])
        names[0 if kind == "subject" else 2] = ASKED
        question = Question(kind, names[0], names[1], names[2], dates[0], dates[1])
        reasons = make_evidence(self.run, question, own, answer, 1).reasons
        return str(reasons[0]) if reasons else None

    # Which predicate instead

    def _predicate(self, own: Facts, statement: Ints, evidence: bool) -> _Instead:
        others, scores = self._predicates(own, statement)
        if not len(others):
            return None, None, None
        shares = torch.from_numpy(scores / self._of_predicates).softmax(0).numpy()
        best = int(shares[1:].argmax()) + 1
        which = int(others[best])
        why = None
        if evidence:
            meant = replace(own, predicate=np.array([which], np.int32))
            why = self._why(meant, "object", self.graph.entities[int(own.object[0])])
        return self.graph.predicates[which], float(shares[best]), why

    def _predicates(self, own: Facts, statement: Ints) -> tuple[Ints, Floats]:
        """The own predicate and likely others between two entities, and how well they fit."""
        known, count = self.known, len(self.graph.predicates)
        away = self.statements != statement[0]
        usual = np.bincount(known.predicate, minlength=count) / len(known)
        fits = np.zeros(count)
        for name in ("subject", "object"):
            at = away & (getattr(known, name) == getattr(own, name)[0])
            fits += np.log(np.bincount(known.predicate[at], minlength=count) + usual)
        order = np.argsort(-fits, kind="stable")
        order = order[(order != own.predicate[0]) & (usual[order] > 0)][:_OTHERS]
        if not len(order):
            return order, np.empty(0)
        which = np.append(own.predicate[0], order).astype(np.int32)
        asked = replace(own.take(np.zeros(len(which), np.int64)), predicate=which)
        rows = answered(self.scoring, asked, own, self.temperatures)
        return which.astype(np.int64), (rows[:, 0] + rows[:, 3]) / 2

    @cached_property
    def _of_predicates(self) -> float:
        """The temperature of predicates."""
        drawn = np.random.default_rng(0).permutation(np.unique(self.asked.fact))[:_CALIBRATED]
        found = [
            self._predicates(self.known.take(row), self.statements[row])[1]
            for row in (drawn[[place]] for place in self.scorer.each_hidden(drawn))
        ]
        scores = torch.full((len(found), 1 + _OTHERS), -torch.inf)
        for row, one in enumerate(found):
            scores[row, : len(one)] = torch.from_numpy(one)
        at = np.arange(len(found))
        return fit_temperature(Cases(scores, at, 0 * at, torch.ones(len(found))))
