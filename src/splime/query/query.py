"""Questions to a run: who, what, which relation, when, what is near; and how sure answers are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch

from splime.analysis.calibration import Calibration, Calibrations, make_cases
from splime.errors import UsageError, check_name, checked
from splime.graph import Fact, Facts, SplitName, check_split
from splime.progress import Progress, silent
from splime.query.answers import Answer, Answers, Options, answer, dates
from splime.query.evidence import Evidence, make_evidence, path_scorer
from splime.query.many import answer_tables
from splime.query.questions import (
    ASKED,
    Question,
    find_name,
    quoted,
    read_question,
    read_questions,
    read_time,
)
from splime.runs import Run
from splime.scoring.queries import Scoring
from splime.scoring.scoping import KINDS, Kind
from splime.scoring.scorer import memory_errors
from splime.segmentation import Scopes
from splime.static import Aggregate
from splime.times import When, format_ticks
from splime.vocabulary import Vocabulary

_KINDS: tuple[Kind, ...] = (
    *("object", "subject", "object", "predicate", "subject", "predicate", "time", "time"),
)
"""What the example questions ask for."""
_DRAWN = 200
"""Facts of test among which they look for some that can be asked about."""
_SHOWN = 5
"""Answers that are shown beside the right one."""
_REASONS = 3
"""Chains of facts that are shown for an answer."""


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

    @checked
    def __init__(
        self,
        run: Run | str | Path,
        *,
        aggregate: Aggregate | None = None,
        memory: int | None = None,
    ) -> None:
        self.run = run = Run.of(run)
        self._ahead = run.settings.past is not None
        self.scoring = run.scoring(aggregate, memory)
        self._calibrations = Calibrations(run, self.scoring)

    @checked
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
        return self.answer(question, facts, Options(limit, known, best))

    def read(
        self,
        names: tuple[str, str, str],
        time: str | None = None,
        at: When | None = None,
        during: tuple[When, When] | None = None,
    ) -> tuple[Question, Facts]:
        """A question to the run as `answer` takes it."""
        return read_question(self.run.graph, names, time, at, during, ahead=self._ahead)

    def answer(self, question: Question, facts: Facts, options: Options) -> Answers:
        """Answer a question that was read."""
        kind: Kind = question.kind  # type: ignore[assignment]
        with torch.inference_mode(), memory_errors():
            calibration = self._calibration(kind, options.best)
            answers = answer(self.scoring, kind, facts, options, calibration.temperature)
        rows = answers.rows(self.scoring, kind, facts)
        [doubt] = self.scoring.doubts.reasons(kind, facts)
        remarks = [f"no probabilities: {doubt}" if doubt else str(calibration)]
        if kind == "time":
            known = self.scoring.known
            _, stating = known.pairs(kind, facts)
            if (known.undated & known.learned(np.arange(len(known.facts))))[stating].any():
                remarks = ["no probabilities: train states this without a time, for all times"]
            # Where entities are cut too, the answers are spans, of which there are more.
            predicates_only = self.run.segmentation.entities is None
            predicates_only &= self.scoring.has_absolute_scopes
            scopes = len(self.run.segmentation.predicates.of_name(int(facts.predicate[0])))
            if predicates_only and scopes == 1:
                remarks.insert(
                    0,
                    f"this run has not cut {question.predicate}: to it all times are the same, and"
                    " it cannot tell when",
                )
            elif predicates_only and len(rows) < scopes:
                remarks.insert(0, f"{len(rows)} of {scopes} scopes")
        temperature = None if doubt else calibration.temperature
        return Answers(question, rows, temperature, tuple(remarks), doubt)

    @checked
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
        if answer is None:
            with torch.inference_mode(), memory_errors():
                answer = self.answer(question, facts, Options(1)).rows[0].name
        return make_evidence(self.run, question, facts, answer, most)

    @checked
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
        limit = Options(limit).limit
        timestamps = begin = end = None
        if at is not None or during is not None:
            ticks = np.array(read_time(graph.timeline, at, during))
            begin, end = format_ticks(ticks, graph.timeline.granularity)
            first, last = graph.timeline.index(ticks).tolist()
            timestamps = (first, last)
        rows = _near(self.run, self.scoring, names, name, timestamps, limit)
        doubt = self._doubt(names, names.id(name), timestamps)
        remarks = [doubt] if doubt else []
        remarks.append("scores are cosines of vectors")
        cut = self.run.scoping.entities is not None or self.run.model.time_of is not None
        if names is graph.entities and not cut and timestamps is not None:
            remarks.append("this run has not cut entities: they are the same at all times")
        entity, predicate = (name, None) if names is graph.entities else (None, name)
        question = Question("near", entity, predicate, None, begin, end)
        return Answers(question, rows, None, tuple(remarks), doubt)

    def _doubt(self, names: Vocabulary, number: int, times: tuple[int, int] | None) -> str:
        """What train does not have of a name, at some timestamps."""
        doubts, ids = self.scoring.doubts, np.array([number])
        kind = "subject" if names is self.run.graph.entities else "predicate"
        parts = [doubts.about(kind, number)] if doubts.names(kind, ids)[0] else []
        if kind == "predicate" and times is not None:
            first, last = times
            if doubts.outside(ids, np.array([first]), np.array([last]))[0]:
                parts.append(doubts.when(number, first, last))
        return "; ".join(parts)

    @checked
    def ask_many(self, questions: Any, **options: Any) -> pa.Table:
        """Answer all questions of a file (.tsv, .csv, .parquet) or of an Arrow-compatible table.

        Columns are subject, predicate, object and at (or begin and end), with `?` for what is
        asked for. An empty time is the whole time of the graph; where all three names are given,
        the question is when. The options are those of `answer_blocks`.
        """
        return pa.concat_tables(self.answer_blocks(questions, **options))

    @checked
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
        options = Options(limit, known, best)
        temperatures = {
            kind: self._calibration(kind, best).temperature
            for number, kind in enumerate(KINDS)
            if (asked.kind == number).any()
        }
        return answer_tables(self.scoring, asked, options, temperatures, progress)

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


@checked
def ask(
    run: Run | str | Path,
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
    aggregate: Aggregate | None = None,
    device: str = "auto",
) -> Answers:
    """Ask a run, or the one in a folder, one question: `Query.ask` says how.

    Without a `?` and a time it asks when. For many questions to one run make a `Query`, which
    looks only once at what all of them need.
    """
    if time is None and at is None and during is None and ASKED not in (subject, predicate, object):
        time = ASKED
    query = Query(Run.of(run, device=device), aggregate=aggregate)
    return query.ask(
        subject, predicate, object, time, at=at, during=during, limit=limit, known=known, best=best
    )


def _near(
    run: Run,
    scoring: Scoring,
    names: Vocabulary,
    name: str,
    timestamps: tuple[int, int] | None,
    limit: int | None,
) -> list[Answer]:
    """The other names by the cosine of their vectors.

    At a time a name is the mean of its scopes' vectors over the timestamps. Without one, the mean
    over all time is compared with every scope of the others. Entities that move in time are their
    means over the timestamps, or over all time.
    """
    if not run.has_vectors:
        raise UsageError(
            f"{run.path}: splime has scores but no vectors of this model; only questions about"
            " facts can be asked"
        )
    model, scoping, doubts = run.model, scoring.scoping, scoring.doubts
    places = [names.id(name)]
    scopes: Scopes | None = scoping.static.predicates
    with torch.inference_mode():
        if names is run.graph.entities:
            scopes, fallback = scoping.entities, scoping.entity_fallback
            vectors = model.entities.vectors()
            if model.time_of is not None:
                first, last = timestamps or (0, len(run.graph.timeline) - 1)
                times = torch.arange(first, last + 1, device=vectors.device)
                moved = model.at(vectors, times[0])
                for time in times[1:]:
                    moved = moved + model.at(vectors, time)
                vectors = moved
        else:
            fallback = scoping.predicate_fallback
            forth = model.predicates.vectors()[: len(fallback)]  # those after them are inverses
            vectors = model.predicate_vectors(forth)
        if scopes is not None and timestamps is None:
            places = [*scopes.of_name(places[0])]
        elif scopes is not None and timestamps is not None:
            every = np.arange(len(names), dtype=np.int32)
            total = torch.zeros(len(every), vectors.shape[1], device=vectors.device)
            for time in range(timestamps[0], timestamps[1] + 1):
                total += vectors[fallback[scopes.at(every, np.full(len(every), time))]]
            vectors = total
        score = torch.cosine_similarity(vectors, vectors[places].mean(0)[None], dim=1)
        score[places] = -torch.inf
        count = int((score > -torch.inf).sum())
        top = torch.topk(score, min(limit or count, count))

    kind = "subject" if names is run.graph.entities else "predicate"

    def answer(rank: int, place: int, score: float) -> Answer:
        source = place if scopes is None or timestamps is not None else int(scopes.sources[place])
        lacking = doubts.names(kind, np.array([source]))[0]
        remark = doubts.about(kind, source, "the answer") if lacking else None
        if scopes is None:
            return Answer(rank, names[place], score, None, (), None, None, None, remark)
        used = np.array([place])
        if timestamps is not None:
            low, high = scopes.find(*(np.array([x], np.int32) for x in (place, *timestamps)))
            used = np.unique(fallback[np.arange(low[0], high[0] + 1)])
        labels = tuple(scopes.labels.take(pa.array(used)).to_pylist())
        [begin], [end] = dates(scopes.timeline, scopes.first[used[:1]], scopes.last[used[-1:]])
        own = labels[0] if timestamps is None else names[place]
        return Answer(rank, own, score, None, labels, begin, end, None, remark)

    return [
        answer(rank, int(place), float(value))
        for rank, (value, place) in enumerate(zip(*top, strict=True), start=1)
    ]


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
        Bin(int(own.sum()), float(sure[own].mean()), float(right[own].mean()))
        for own in (number == one for one in range(bins))
        if own.any()
    ]
    error = sum(one.questions * abs(one.probability - one.right) for one in made) / len(cases)
    loss = torch.mean(whole - cases.target() / temperature)
    return Reliability(kind, split, temperature, len(cases), error, float(loss), made)


class Example(NamedTuple):
    """A fact of test, asked for one of its parts."""

    truth: str | None
    """The name that was left out; None where the time was."""
    answers: dict[str, Answers]
    """The first answers of each run that can tell, and the right one."""
    evidence: dict[str, list[Evidence]]
    """Why the best answer, and why the right one, of each run that knows."""


class Examples(NamedTuple):
    """Questions about facts of test, and how the answers were calibrated."""

    questions: list[Example]
    notes: list[str]


def ask_examples(runs: Mapping[str, Run]) -> Examples:
    """Ask the first run, and beside it the first one without cuts (else the last).

    When a fact held is asked only of runs that have cut its predicate, and of facts with a time.
    """
    best, *others = runs
    plain = [name for name in others if not runs[name].is_cut]
    queries = {name: Query(runs[name]) for name in (best, *(plain[:1] or others[-1:]))}
    graph = runs[best].graph
    drawn = np.random.default_rng(0).permutation(len(graph.test))[:_DRAWN]
    facts = list(replace(graph, test=graph.test.take(drawn)).rows("test"))
    questions = []
    for kind in _KINDS:
        for fact in facts:
            able = {name: query for name, query in queries.items() if _can_tell(kind, query, fact)}
            if able:
                asked = {name: _ask_for(kind, query, fact) for name, query in able.items()}
                truth = None if kind == "time" else getattr(fact, kind)
                answers = {name: each for name, (each, _) in asked.items()}
                evidence = {name: each for name, (_, each) in asked.items()}
                questions.append(Example(truth, answers, evidence))
                facts.remove(fact)
                break
    notes = [f"{name}, objects: {query.calibration('object')}" for name, query in queries.items()]
    return Examples(questions, notes)


def _can_tell(kind: Kind, query: Query, fact: Fact) -> bool:
    """Whether a run can answer a question about a fact."""
    if kind != "time":
        return True
    cuts = query.run.segmentation
    dated = fact.begin is not None or fact.end is not None
    if not query.scoring.has_absolute_scopes:
        return dated
    return dated and (cuts.entities is not None or len(cuts.scopes_of(fact.predicate)) > 1)


def _ask_for(kind: Kind, query: Query, fact: Fact) -> tuple[Answers, list[Evidence]]:
    """Ask for what of a fact is of a kind, at the time at which it holds, and why.

    The right answer is given whatever its rank; of the right times at least the best one.
    """
    evidence: list[Evidence] = []
    subject, predicate, object_ = (
        "?" if name == kind else quoted(part)
        for name, part in zip(("subject", "predicate", "object"), fact[:3], strict=True)
    )
    graph, names = query.run.graph, (subject, predicate, object_)
    if kind == "time":
        answers = query.answer(*query.read(names, "?"), Options(None))
        right = next((row.rank for row in answers if row.known is not None), 0)
        shown = [row for row in answers if row.rank <= _SHOWN or row.rank == right]
    else:
        begin, end = format_ticks(
            np.array([graph.timeline.first, graph.timeline.last]), graph.timeline.granularity
        )
        dated = fact.begin is not None or fact.end is not None
        during = (fact.begin or begin, fact.end or end) if dated else None
        also = query.run.scoping.names(kind).id(getattr(fact, kind))
        question = query.read(names, during=during)
        answers = query.answer(*question, Options(_SHOWN, also=also))
        shown = answers.rows
        if kind != "predicate" and path_scorer(query.run.scorer) is not None:
            why = dict.fromkeys((shown[0].name, getattr(fact, kind)))
            evidence = [make_evidence(query.run, *question, name, _REASONS) for name in why]
    calibration = str(query.calibration(kind))  # which the notes have
    remarks = tuple(remark for remark in answers.remarks if remark != calibration)
    return replace(answers, rows=shown, remarks=remarks), evidence
