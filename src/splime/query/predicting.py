"""The facts that a graph does not state, from the most to the least probable one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Unpack

import msgspec
import numpy as np
import pyarrow as pa
import torch

from splime import __version__
from splime.analysis.calibration import Calibration
from splime.analysis.coming import Coming
from splime.analysis.existence import Check, Existence
from splime.errors import UsageError, check_kind, counted
from splime.evaluation.metrics import Floats
from splime.graph import Facts, Names, TemporalGraph
from splime.io.unfinished import SAVE, Unfinished
from splime.periods import after
from splime.progress import Progress, silent
from splime.query.answers import AnswerOptions, best_of, percent
from splime.query.evidence import make_evidence
from splime.query.predicted import SCHEMA, check_suffix, write_predictions
from splime.query.query import Query
from splime.query.questions import ASKED, Question, find_name, question_facts
from splime.reading import LOG
from splime.runs import Run
from splime.runs.graph_run import open_source
from splime.scoring.scoping import keyed
from splime.scoring.scorer import memory_errors
from splime.shown import Rows
from splime.times import Bools, Ints, When, format_ticks
from splime.vocabulary import Vocabulary

if TYPE_CHECKING:
    from splime.keywords import Reading

LIMIT = 1000
_BLOCK = 64
"""Questions between two looks at whether others can be among the best."""
_ENTITIES = 1 << 12
"""Whose questions are looked for at once."""
_MOST = 1 << 20
"""Questions that are kept, the likeliest to have an answer."""


class Prediction(NamedTuple):
    """A fact that the graph does not state."""

    subject: str
    predicate: str
    object: str
    time: str
    probability: float
    """The product of the other two."""
    if_there_is_one: float
    """That this is the object, if the subject has one (more) then."""
    there_is_one: float
    """How often a graph like this one states one (more) in such a case."""
    evidence: str | None = None
    """The chain of facts that it rests on most; only a path model knows it."""


@dataclass(frozen=True)
class Predictions(Rows[Prediction]):
    """Facts that a graph does not state, from the most to the least probable one."""

    rows: list[Prediction]
    time: str
    """That is asked about."""
    questions: int
    """Subjects and predicates whose object was asked for."""
    calibration: Calibration
    """Of the objects."""
    checks: dict[str, Check]
    """Of the estimates whether there is a fact, on cases that were held out."""
    there_is_one: str = "stated in this table, as far as its other facts tell"
    """What that probability is of."""

    def __repr__(self) -> str:
        lines = [f"{counted(len(self), 'fact')} that the graph does not state, {self.time}"]
        for row in self.rows[:10]:
            lines.append(f"{percent(row.probability):>7}  {' '.join(row[:3])}")
        return "\n".join([*lines, *["…"] * (len(self) > 10)])

    def to_table(self) -> pa.Table:
        """As an Arrow table: a row for each fact."""
        return pa.Table.from_pylist([row._asdict() for row in self.rows], schema=SCHEMA)

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        checks: dict[str, Any] = {
            name: {**check._asdict(), "bins": [one._asdict() for one in check.bins]}
            for name, check in self.checks.items()
        }
        return {
            "time": self.time,
            "questions": self.questions,
            "facts": [row._asdict() for row in self.rows],
            "probability_of_objects": msgspec.to_builtins(self.calibration),
            "stated_in_this_table": checks,
        }


def predict(
    source: Any,
    *,
    out: str | Path | None = None,
    predicate: Names | None = None,
    entity: Names | None = None,
    at: When | None = None,
    next: str | int | None = None,
    new: bool = False,
    least: float = 0.0,
    limit: int = LIMIT,
    evidence: bool = True,
    progress: Progress = silent,
    device: str = "auto",
    weights: str | None = None,
    **reading: Unpack[Reading],
) -> Predictions:
    """The most probable facts that a graph does not state, with probability and evidence.

    Args:
        source: a graph, a file, the name of a dataset, a run or its folder; or a `Query`, which
            keeps what several calls need.
        out: a file (.csv, .parquet, .jsonl) that they are written to. What is done is kept beside
            it until then, so that the same call goes on where one was interrupted.
        predicate: only facts of these predicates.
        entity: only facts of these subjects.
        at: the time that is asked about; by default the last one of the graph.
        next: forecast what begins in so much time after the graph's: 7, week, 2 months.
        new: only facts that the graph does not state at any other time.
        least: only facts at least as probable.
        limit: at most so many facts.
        evidence: whether to look for the facts that each one rests on.
        progress: called after each block of questions.
        device: where to compute: auto, cpu or cuda.
        weights: the version of the weights that a graph is answered by.
        **reading: how to read the facts, as `splime.load` has it.

    >>> import splime
    >>> some = splime.load("demo").where(predicate="livesIn")
    >>> found = predict(some, at=1990, entity="Sara Finnby", limit=3, evidence=False)
    >>> len(found), found[0].subject, found[0].predicate
    (3, 'Sara Finnby', 'livesIn')
    """
    options = AnswerOptions(limit, "drop")
    check_kind("least", least, float)
    if not 0 <= least <= 1:
        raise UsageError(f"least is a probability, from 0 to 1, not {least}")
    path = None if out is None else Path(out)
    if path is not None:
        check_suffix(path)
    with memory_errors():
        if not isinstance(source, Query):
            source = Query(open_source(source, device=device, weights=weights, **reading))
        asking = _Asking(*_question(source, at, next), options, least, (predicate, entity), new)
        asking.choose(progress)
        work = Unfinished(path, asking.fingerprint(), _State, _State())
        if work.done.questions:
            LOG.info(f"{path}: going on after {counted(work.done.questions, 'question')}")
        try:
            asking.ask(work, progress)
            if evidence:
                asking.explain(work, progress)
        finally:
            work.save()
    found = asking.found(work)
    if path is not None:
        write_predictions(found.to_table(), path)
        work.remove()
    return found


def _question(query: Query, at: When | None, next: str | int | None) -> tuple[Query, int, int]:
    """What is asked, and about which ticks."""
    run = query.run
    timeline = run.graph.timeline
    if next is not None:
        if at is not None:
            raise UsageError("next (--next) is a time after the graph's; leave out at (--at)")
        if not (ahead := query.forecast or query).run.settings.forecasts:
            raise UsageError(
                f"{run.path}: this run does not forecast; give its facts, or a run that was trained"
                " with past (--past)"
            )
        return ahead, timeline.last + 1, after(timeline.last, next, timeline.granularity)
    if run.settings.forecasts:
        raise UsageError(
            f"{run.path}: this run forecasts: it knows only facts before a time, and cannot fill in"
            " what a graph does not state; say for how long with next (--next), or give a graph"
        )
    if at is None:
        return query, timeline.last, timeline.last
    return query, *timeline.interval(at, at)


class _Best(NamedTuple):
    """The most probable facts so far, best first."""

    subject: Ints
    predicate: Ints
    object: Ints
    probability: Floats
    if_there: Floats
    there: Floats

    @classmethod
    def concat(cls, parts: Sequence[_Best]) -> _Best:
        """Those of all parts."""
        columns: Any = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cls(*columns)

    def with_others(self, others: _Best, most: int) -> _Best:
        """The best of these and others; equal ones in the order of names."""
        both = _Best.concat([self, others])
        order = np.lexsort((both.object, both.predicate, both.subject, -both.probability))[:most]
        columns: Any = (column[order] for column in both)
        return _Best(*columns)


class _State(msgspec.Struct):
    """What is done."""

    questions: int = 0
    """How many were asked for the best facts."""
    best: list[list[float]] = msgspec.field(default_factory=lambda: [[] for _ in _Best._fields])
    evidence: list[str | None] = msgspec.field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.best) != len(_Best._fields) or len(set(map(len, self.best))) != 1:
            raise ValueError("its columns differ in length")

    def facts(self) -> _Best:
        """The best facts."""
        columns = [np.array(column, np.int64) for column in self.best[:3]]
        columns += [np.array(column, np.float64) for column in self.best[3:]]
        return _Best(*columns)  # type: ignore[arg-type]


_Work: TypeAlias = Unfinished[_State]


class _Asking:
    """The questions to a run, and their answers."""

    def __init__(
        self,
        query: Query,
        begin: int,
        end: int,
        options: AnswerOptions,
        least: float,
        chosen: tuple[Names | None, Names | None],
        new: bool,
    ) -> None:
        self.query, self.graph, self.least, self.new = query, query.run.graph, least, new
        self.begin, self.end = begin, end
        self.dates = format_ticks(np.array([begin, end]), self.graph.timeline.granularity)
        self.time = self.dates[0] if self.begin == self.end else "..".join(self.dates)
        self.limit: int = options.limit or LIMIT
        self.predicates = chosen_ids(chosen[0], self.graph, "predicate")
        self.entities = chosen_ids(chosen[1], self.graph, "entity")
        self.calibration = query.calibration("object")
        if self.calibration.temperature is None:
            raise UsageError(f"{query.run.path}: {self.calibration}")
        self.existence: Existence | Coming
        if query.run.settings.forecasts:
            self.existence = Coming(self.graph, begin, end)
        else:
            self.existence = query.existence("object")

    # Which questions

    def choose(self, progress: Progress) -> None:
        """The questions, from the likeliest to have an answer to the least likely."""
        graph, entities = self.graph, self.entities
        wanted = np.zeros(len(graph.predicates), bool)
        wanted[self.predicates] = True
        kept = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        for start in range(0, len(entities), _ENTITIES):
            some = entities[start : start + _ENTITIES]
            subject, which = self.existence.candidates(some, self.begin, self.end)
            facts = self._facts(subject, which)
            fits = wanted[which] & ~self.query.scoring.coverage.asked("object", facts)
            subject, which = subject[fits], which[fits]
            # Rounded, so that an interrupted work finds the same order on another processor.
            there = self.existence.estimate(subject, which, self.begin, self.end).round(9)
            likely = there >= max(self.least, np.finfo(float).tiny)
            new = subject[likely], which[likely], there[likely]
            both = [np.concatenate(columns) for columns in zip(kept, new, strict=True)]
            order = np.lexsort((both[1], both[0], -both[2]))[:_MOST]
            kept = (both[0][order], both[1][order], both[2][order])
            progress("looking for questions", start + len(some), len(entities))
        self.subject, self.predicate, self.there = kept

    def _facts(self, subject: Ints, predicate: Ints) -> Facts:
        size = len(subject)
        ticks = (np.full(size, tick, np.int64) for tick in (self.begin, self.end))
        return question_facts(subject, predicate, np.zeros(size, np.int64), *ticks)

    def fingerprint(self) -> str:
        """Of everything that decides about the result."""
        chosen = (self.predicates.tolist(), self.entities.tolist())
        return fingerprint(
            self.query.run, self.begin, self.end, self.least, self.limit, self.new, *chosen
        )

    # Asking them

    def _answers(self, some: slice) -> _Best:
        """The answers to some questions that no fact states."""
        scoring, facts = self.query.scoring, self._facts(self.subject[some], self.predicate[some])
        each = min(self.limit, int(1 / self.least) if self.least else self.limit)
        options, parts = AnswerOptions(each, "drop"), []
        there = self.there[some]
        with torch.inference_mode():
            for block in scoring.blocks("object", facts):
                known = scoring.known.answers("object", facts.take(block.rows))
                best = best_of(block, known, options, self.calibration.temperature)
                doubtful = scoring.coverage.answers("object", best.id, facts.take(best.question))
                probability = best.probability * there[best.question]
                good = (probability > 0) & (probability >= self.least) & ~doubtful
                if self.new:
                    good &= ~self._stated(facts.take(best.question), best.id)
                at = best.question[good]
                subject, predicate = (column[some][at] for column in (self.subject, self.predicate))
                sure = best.probability[good]
                parts.append(
                    _Best(subject, predicate, best.id[good], probability[good], sure, there[at])
                )
        return _Best.concat(parts)

    def _stated(self, facts: Facts, answer: Ints) -> Bools:
        """Whether the graph states facts with these objects at any time."""
        answered = replace(facts, object=answer.astype(facts.object.dtype))
        asked, stated = (keyed("time", one, self.graph).key for one in (answered, self.graph.train))
        return np.isin(asked, stated)

    def ask(self, work: _Work, progress: Progress) -> None:
        """Ask until no other question can have one of the best answers."""
        total, best, asked = len(self.there), work.done.facts(), work.done.questions
        progress("asking", asked, total)
        while asked < total:
            full = len(best.object) == self.limit
            if full and self.there[asked] < best.probability[-1]:
                break
            some = slice(asked, min(asked + _BLOCK, total))
            best, asked = best.with_others(self._answers(some), self.limit), some.stop
            columns = [column.tolist() for column in best]
            work.done = _State(asked, columns, work.done.evidence)  # at once, if interrupted
            progress("asking", asked, total)
            work.save(SAVE)
        progress("asking", asked, asked)

    def explain(self, work: _Work, progress: Progress) -> None:
        """Look for the facts that each of the best rests on."""
        if self.query.scoring.explainer is None:
            return
        evidence, best = work.done.evidence, work.done.facts()
        total = len(best.object)
        progress("evidence", len(evidence), total)
        for row in range(len(evidence), total):
            evidence.append(self._why(best, row))
            progress("evidence", row + 1, total)
            work.save(SAVE)

    def _why(self, best: _Best, row: int) -> str | None:
        names = self._names(best, row)
        question = Question("object", names[0], names[1], ASKED, self.dates[0], self.dates[1])
        facts = self._facts(best.subject[[row]], best.predicate[[row]])
        reasons = make_evidence(self.query.run, question, facts, names[2], 1).reasons
        return str(reasons[0]) if reasons else None

    def _names(self, best: _Best, row: int) -> tuple[str, str, str]:
        entities = self.graph.entities
        which = self.graph.predicates[best.predicate[row]]
        return entities[best.subject[row]], which, entities[best.object[row]]

    def found(self, work: _Work) -> Predictions:
        """The best answers by name."""
        best, asked = work.done.facts(), work.done.questions
        evidence = work.done.evidence or [None] * len(best.object)
        estimates = (best.probability.tolist(), best.if_there.tolist(), best.there.tolist())
        rows = [
            Prediction(*self._names(best, row), self.time, *sure, evidence[row])
            for row, sure in enumerate(zip(*estimates, strict=True))
        ]
        checks = {name: check for name, check in self.existence.checks.items() if check}
        found = Predictions(rows, self.time, asked, self.calibration, checks)
        if isinstance(self.existence, Coming):
            of = "of a subject and predicate seen before, one begins then"
            found = replace(found, there_is_one=of)
        return found


def fingerprint(run: Run, *options: Any) -> str:
    """Of a run, its graph, and the options of a piece of work."""
    asked = [__version__, run.config, run.about["versions"], *options]
    found = hashlib.sha256(json.dumps(asked, default=str, sort_keys=True).encode())
    for name in sorted(run.tensors):
        found.update(run.tensors[name].cpu().contiguous().numpy().tobytes())
    for split, facts in run.graph.splits():
        found.update(f"{split}{len(facts)}".encode())
        for column in facts.columns():
            found.update(np.ascontiguousarray(column).tobytes())
    for names in (run.graph.entities, run.graph.predicates):
        found.update(json.dumps(list(names)).encode())
    return found.hexdigest()


def chosen_ids(names: Names | None, graph: TemporalGraph, kind: str) -> Ints:
    """The ids of some names, or of all."""
    if names is None:
        return np.arange(len(graph.predicates if kind == "predicate" else graph.entities))
    given = [names] if isinstance(names, str) else list(names)
    return np.unique([find_name(graph, name, kind).id(name) for name in given]).astype(np.int64)


def split_names(text: str, vocabulary: Vocabulary) -> list[str]:
    """The names in a text with commas between them; a name may have commas itself.

    >>> split_names("fine, arrest or jail,visit", Vocabulary(["fine, arrest or jail"], kind="x"))
    ['fine, arrest or jail', 'visit']
    """
    parts, names = text.split(","), []
    while parts:
        sizes = range(len(parts), 0, -1)
        joined = ((",".join(parts[:size]).strip(), size) for size in sizes)
        name, size = next((one for one in joined if one[0] in vocabulary), (parts[0].strip(), 1))
        names += [name] * bool(name)
        parts = parts[size:]
    return names
