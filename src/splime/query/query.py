"""Questions to a run: who, what, which relation, when, what is near; and how sure answers are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
import pyarrow as pa
import torch

from splime.analysis.calibration import Calibration, Calibrations, make_cases
from splime.analysis.existence import Existence
from splime.analysis.hidden import HiddenFacts, Trust
from splime.errors import UsageError, check_name
from splime.graph import Facts, SplitName, TemporalGraph, check_split
from splime.progress import Progress, silent
from splime.query.answers import AnswerOptions, Answers, ThereIsOne, answer
from splime.query.evidence import Evidence, make_evidence
from splime.query.many import answer_tables
from splime.query.near import Span, near_names
from splime.query.questions import Question, find_name, read_question, read_questions, read_time
from splime.runs import Run
from splime.scoring.scoping import KINDS, SIDES, Kind
from splime.scoring.scorer import memory_errors
from splime.static import Aggregate
from splime.times import When, format_ticks


class Query:
    """Asks a trained run.

    Args:
        run: a run, or its folder.
        aggregate: how scores of the scopes of an interval become one, as in `evaluate_facts`; by
            default as the run was trained.
        memory: the number of bytes that blocks of scores may take.

    >>> import splime, tempfile
    >>> graph = splime.load("demo")
    >>> with tempfile.TemporaryDirectory() as here:
    ...     run = splime.train(graph, splime.Split(grow=5), here, dimension=8, epochs=2)
    ...     answers = Query(run).ask("Sara Finnby", "livesIn", "?", at=1982, limit=3)
    >>> answers.question.text, len(answers)
    ('What: Sara Finnby livesIn ? at 1982', 3)
    """

    def __init__(
        self,
        run: Run | TemporalGraph | str | Path,
        *,
        aggregate: Aggregate | None = None,
        memory: int | None = None,
    ) -> None:
        self.run = run = Run.of(run)
        self._ahead = run.settings.forecasts
        self.scoring = run.scoring(aggregate, memory)
        self._hidden = HiddenFacts(run, self.scoring)
        self._calibrations = Calibrations(run, self.scoring, self._hidden.calibration)
        self._existence: dict[str, Existence] = {}

    def ask(
        self,
        subject: str,
        predicate: str,
        object: str,
        time: str | None = None,
        *,
        at: When | None = None,
        during: tuple[When, When] | None = None,
        limit: int | None = 10,
        known: str = "mark",
        best: int | None = None,
    ) -> Answers:
        """Answer one question: the `?` among subject, predicate, object and time says what for.

        Without a `?` and a time it asks when.

        Args:
            subject: the name of an entity, or `?` to ask who.
            predicate: the name of a predicate, or `?` to ask which.
            object: the name of an entity, or `?` to ask what.
            time: `?` to ask when.
            at: the time that is asked about; without any it is the whole time of the graph. A run
                that forecasts (`past`) may be asked about times after it, and without any is asked
                about the first one.
            during: its begin and end instead.
            limit: the number of answers; None for all.
            known: `mark` answers that a fact of any split states at that time, or `drop` them.
            best: for predicates the paper's way: of so many best scoped predicates (25) those
                that overlap the time. None ranks all predicates by their scopes at the time.
        """
        question, facts = self.read((subject, predicate, object), time, at, during)
        if best is not None and question.kind != "predicate":
            raise UsageError("best is for questions that ask which predicate")
        return self.answer(question, facts, AnswerOptions(limit, known, best))

    def read(
        self,
        names: tuple[str, str, str],
        time: str | None = None,
        at: When | None = None,
        during: tuple[When, When] | None = None,
    ) -> tuple[Question, Facts]:
        """A question to the run as `answer` takes it."""
        timed = (at, during) != (None, None)
        ahead = self._ahead or (timed and self.run.forecast is not None)
        return read_question(self.run.graph, names, time, at, during, ahead=ahead)

    def answer(self, question: Question, facts: Facts, options: AnswerOptions) -> Answers:
        """Answer a question that was read."""
        if later := self.later(facts):
            return later.answer(question, facts, options)
        kind: Kind = question.kind  # type: ignore[assignment]
        with torch.inference_mode(), memory_errors():
            calibration = self._calibration(kind, options.best)
            answers = answer(self.scoring, kind, facts, options, calibration.temperature)
        rows = answers.rows(self.scoring, kind, facts)
        [doubt] = self.scoring.coverage.reasons(kind, facts)
        remarks = [f"no probabilities: {doubt}" if doubt else str(calibration)]
        if kind == "time":
            known = self.scoring.known
            _, stating = known.pairs(kind, facts)
            if (known.undated[stating] & known.learned(stating)).any():
                remarks = ["no probabilities: train states this without a time, for all times"]
            # Where entities are cut too, the answers are spans, of which there are more.
            scoping = self.scoring.scoping
            predicates_only = scoping is not None and scoping.entities is None
            scopes = len(self.run.segmentation.predicates.of_name(int(facts.predicate[0])))
            if predicates_only and scopes == 1:
                remarks.insert(
                    0,
                    f"this run has not cut {question.predicate}: to it all times are the same, and"
                    " it cannot say when",
                )
            elif predicates_only and len(rows) < scopes:
                remarks.insert(0, f"{len(rows)} of {scopes} scopes")
        remarks += self._out_of_place(question, facts, [row.name for row in rows[:1]])
        if self.run.ignores_time and kind != "time" and not question.whole:
            remarks.append("this run ignores time: its answers are the same at all times")
        if self.run.basis:
            remarks.append(f"answered {self.run.basis}")
        temperature = None if doubt else calibration.temperature
        return Answers(question, rows, temperature, tuple(remarks), doubt)

    def _out_of_place(self, question: Question, facts: Facts, names: list[str]) -> list[str]:
        """Remarks where the given name, or the best answer, is unlike all that train has there."""
        if question.kind not in SIDES:
            return []
        sides: dict[Kind, list[str]] = {"subject": [], "object": []}
        entities, [predicate] = self.run.graph.entities, facts.predicate.tolist()
        for kind, called in sides.items():
            [given] = getattr(facts, kind).tolist()
            ids = entities.ids(pa.array(names, entities.labels.type))
            ids = ids if kind == question.kind else np.array([given])
            strange = self.scoring.coverage.out_of_place(predicate, kind)[ids]
            called += [entities[at] for at in ids[strange].tolist()]
        about = self.run.graph.predicates[predicate]
        return [
            f"train has nothing like {found[0]} as {kind} of {about}"
            for kind, found in sides.items()
            if found
        ]

    def why(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        answer: str | None = None,
        at: When | None = None,
        during: tuple[When, When] | None = None,
        most: int = 5,
    ) -> Evidence:
        """The facts that an answer rests on, as chains from the given entity to it.

        The question is one that `ask` answers with entities; without an `answer` it is the best
        one. Only a run of the path model knows which facts its answers rest on.
        """
        question, facts = self.read((subject, predicate, object), None, at, during)
        if later := self.later(facts):
            return later.why(
                subject, predicate, object, answer=answer, at=at, during=during, most=most
            )
        if answer is None:
            answer = self.answer(question, facts, AnswerOptions(1)).rows[0].name
        return make_evidence(self.run, question, facts, answer, most)

    def there_is_one(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        at: When | None = None,
        during: tuple[When, When] | None = None,
    ) -> ThereIsOne | None:
        """How probable it is that the graph states a fact that is asked for at all.

        The question is one that `ask` answers with entities; there is no estimate for others, for
        forecasts, for names that train hardly knows, and where the graph's own facts do not bear
        one out.
        """
        question, facts = self.read((subject, predicate, object), None, at, during)
        if question.kind not in SIDES or self._ahead or self.later(facts):
            return None
        kind: Kind = question.kind
        existence = self.existence(kind)
        if not existence.works or self.scoring.coverage.reasons(kind, facts)[0]:
            return None
        given = facts.object if question.kind == "subject" else facts.subject
        ids = (given.astype(np.int64), facts.predicate.astype(np.int64))
        times = (int(facts.begin[0]), int(facts.end[0]))
        stated = existence.holding(int(given[0]), int(facts.predicate[0]), *times)
        return ThereIsOne(float(existence.estimate(*ids, *times)[0]), stated)

    def prepare(self, progress: Progress = silent) -> None:
        """Make what the first questions would wait for; where that is possible, it is kept."""
        for done, kind in enumerate(KINDS):
            progress("calibrating", done, len(KINDS), kind)
            self.calibration(kind)
            if kind in SIDES:
                self.existence(kind)
        progress("calibrating", len(KINDS), len(KINDS))

    def existence(self, kind: str) -> Existence:
        """What estimates whether there is a fact whose object, or subject, is asked for."""
        if kind not in self._existence:
            self._existence[kind] = Existence(self.run.graph, kind)
        return self._existence[kind]

    @cached_property
    def forecast(self) -> Query | None:
        """The same for the time after the facts; None where the run itself answers for it."""
        return None if self.run.forecast is None else type(self)(self.run.forecast)

    def later(self, facts: Facts) -> Query | None:
        """What answers questions about the time after the facts."""
        last = int(self.run.graph.train.end.max(initial=self.run.graph.timeline.first))
        return self.forecast if int(facts.begin.min()) > last else None

    def near(
        self,
        name: str,
        *,
        at: When | None = None,
        during: tuple[When, When] | None = None,
        kind: str | None = None,
        limit: int | None = 10,
    ) -> Answers:
        """The entities or predicates near one of that name, by the cosine of their vectors.

        At a time every name is what it is at that time. Without one, a name is the mean over all
        time, and is compared with all scoped ones.
        """
        graph = self.run.graph
        names = find_name(graph, name, kind)
        number = names.id(name)
        span = begin = end = None
        if at is not None or during is not None:
            ticks = np.array(read_time(graph.timeline, at, during))
            begin, end = format_ticks(ticks, graph.timeline.granularity)
            first, last = graph.timeline.index(ticks).tolist()
            span = (first, last)
        limit = AnswerOptions(limit).limit  # checked
        rows = near_names(self.run, self.scoring, number, names, span, limit)
        doubt = self._doubt(names.kind, number, span)
        remarks = [*filter(None, [doubt]), "scores are cosines of vectors"]
        cut = self.run.scoping.entities is not None or self.run.model.time_of is not None
        entity, predicate = (name, None) if names.kind == "entity" else (None, name)
        if entity and not cut and span is not None:
            remarks.append("this run has not cut entities: they are the same at all times")
        question = Question("near", entity, predicate, None, begin, end)
        return Answers(question, rows, None, tuple(remarks), doubt)

    def _doubt(self, kind: str, number: int, span: Span | None) -> str:
        """What train does not have of a name, at some timestamps."""
        coverage, ids = self.scoring.coverage, np.array([number])
        parts = [coverage.about(kind, number)] if coverage.names(kind, ids)[0] else []
        if kind == "predicate" and span and coverage.outside(ids, *np.array(span)[:, None])[0]:
            parts.append(coverage.when(number, *span))
        return "; ".join(parts)

    def ask_many(self, questions: Any, **options: Any) -> pa.Table:
        """Answer all questions of a file (.tsv, .csv, .parquet) or of an Arrow-compatible table.

        Columns are subject, predicate, object and at (or begin and end), with `?` for what is
        asked for. An empty time is the whole time of the graph; where all three names are given,
        the question is when. The options are those of `answer_blocks`.
        """
        return pa.concat_tables(self.answer_blocks(questions, **options))

    def answer_blocks(
        self,
        questions: Any,
        *,
        limit: int | None = 10,
        known: str = "mark",
        best: int | None = None,
        progress: Progress = silent,
    ) -> Iterator[pa.Table]:
        """The tables that `ask_many` puts together, one after the other."""
        asked = read_questions(questions, self.run.graph, ahead=self._ahead)
        options = AnswerOptions(limit, known, best)
        temperatures = {
            kind: self._calibration(kind, best).temperature
            for number, kind in enumerate(KINDS)
            if (asked.kind == number).any()
        }
        return answer_tables(self.scoring, asked, options, temperatures, progress)

    @cached_property
    def trust(self) -> Trust | None:
        """What hiding facts of the graph says about answers; None for a trained run."""
        if self.run.learned_from_facts:
            return None
        with memory_errors():
            return self._hidden.trust()

    def calibration(self, kind: Kind) -> Calibration:
        """How probabilities of a kind of answer (object, subject, predicate, time) are made."""
        check_name("kind of question", kind, KINDS)
        with torch.inference_mode(), memory_errors():
            return self._calibrations.of(kind)

    def _calibration(self, kind: Kind, best: int | None) -> Calibration:
        if kind == "predicate" and best is not None:
            why = "the best scoped predicates of all are not all candidates at that time"
            return Calibration(None, 0, why)
        return self.calibration(kind)


class AskedTime(TypedDict, total=False):
    """When the fact holds that is asked about: `at` a time, or `during` an interval."""

    at: When | None
    during: tuple[When, When] | None


class Asking(AskedTime, total=False):
    """The options of `Query.ask`."""

    limit: int | None
    known: str
    best: int | None


def ask(
    run: Run | str | Path,
    subject: str,
    predicate: str,
    object: str,
    time: str | None = None,
    *,
    aggregate: Aggregate | None = None,
    device: str = "auto",
    **options: Unpack[Asking],
) -> Answers:
    """Ask a run, or the one in a folder, one question: `Query.ask` says how, and its options.

    For many questions to one run make a `Query`, which looks only once at what all of them need.

    >>> import splime
    >>> splime.ask("demo", "Sara Finnby", "livesIn", "?", at=1982)[0].name
    'Melcourt'
    """
    query = Query(Run.of(run, device=device), aggregate=aggregate)
    return query.ask(subject, predicate, object, time, **options)


class Bin(NamedTuple):
    """Questions whose best answer has about the same probability."""

    questions: int
    probability: float
    """The mean probability of their best answers."""
    right: float
    """The share of those that are right."""


@dataclass(frozen=True)
class Reliability:
    """Whether the best answers to questions are right as often as their probabilities say."""

    kind: Kind
    split: SplitName
    temperature: float
    questions: int
    error: float
    """The expected calibration error: the mean over questions of |probability - right| in bins."""
    loss: float
    """The mean of -log probability of the right answers."""
    bins: list[Bin]


def reliability(
    query: Query,
    kind: Kind,
    *,
    split: SplitName = "test",
    temperature: float | None = None,
    bins: int = 10,
) -> Reliability:
    """The calibration error of a kind of question on a split, at most 2,000 facts of it.

    Without a temperature it is the fitted one.
    """
    check_name("kind of question", kind, KINDS)
    check_split(split)
    if temperature is None:
        fitted = query.calibration(kind)
        if fitted.temperature is None:
            raise UsageError(f"{fitted}")
        temperature = fitted.temperature
    cases = make_cases(query.scoring, kind, split, 2000)
    if not len(cases):
        raise UsageError(f"{split} has no facts to ask about")
    logits = cases.scores.double() / temperature
    whole = logits.logsumexp(1)
    best = logits.max(1)
    sure = (best.values - whole).exp().numpy()
    right = np.zeros(len(cases))
    hit = best.indices.numpy()[cases.row] == cases.column
    right[cases.row[hit]] = cases.share.numpy()[hit]
    number = np.minimum((sure * bins).astype(int), bins - 1)
    made = [
        Bin(int(inside.sum()), float(sure[inside].mean()), float(right[inside].mean()))
        for inside in (number == one for one in range(bins))
        if inside.any()
    ]
    error = sum(one.questions * abs(one.probability - one.right) for one in made) / len(cases)
    loss = torch.mean(whole - cases.target() / temperature)
    return Reliability(kind, split, temperature, len(cases), error, float(loss), made)
