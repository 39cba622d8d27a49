"""Questions to a run: who, what, which relation, when, and what is near."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from splime.analysis.calibration import Calibration, Calibrations
from splime.errors import UsageError, check_name
from splime.progress import Progress, silent
from splime.query.answers import Answers, Options, answer
from splime.query.many import answer_tables
from splime.query.near import near
from splime.query.questions import Question, find_name, read_question, read_questions, read_time
from splime.runs import Run
from splime.scoring.known import KINDS, Kind
from splime.scoring.queries import Aggregate, Scoring, check_aggregate
from splime.scoring.scorer import memory_errors
from splime.times import When, format_ticks

KNOWN = ("mark", "drop")
"""What becomes of answers that are known."""
_PAPER = "the best scoped predicates of all are not all candidates at that time"


class Query:
    """Asks a trained run.

    Args:
        run: an opened run.
        aggregate: how scores of the scopes of an interval become one, as in `evaluate_facts`.
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
        self, run: Run, *, aggregate: Aggregate = "mean", memory: int | None = None
    ) -> None:
        check_aggregate(aggregate)
        self.run, self._aggregate, self._memory = run, aggregate, memory

    @cached_property
    def scoring(self) -> Scoring:
        """The scores of the run."""
        return Scoring(self.run.scorer, self.run.scoping, self._aggregate, self._memory)

    @cached_property
    def _calibrations(self) -> Calibrations:
        return Calibrations(self.run, self.scoring)

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
            at: the time that is asked about; without any it is the whole time of the graph.
            during: its begin and end instead.
            limit: the number of answers; None for all.
            known: `mark` answers that a fact of any split states at that time, or `drop` them.
            best: for predicates the paper's way: of so many best scoped predicates (25) those
                that overlap the time. None ranks all predicates by their scopes at the time.
        """
        question, facts = read_question(
            self.run.graph, (subject, predicate, object), time, at, during
        )
        kind: Kind = question.kind  # type: ignore[assignment]
        options = _options(limit, known, best)
        if best is not None and kind != "predicate":
            raise UsageError("best is for questions that ask which predicate")
        with torch.inference_mode(), memory_errors():
            calibration = self._calibration(kind, best)
            answers = answer(self.scoring, kind, facts, options, calibration.temperature)
        rows = answers.rows(self.scoring.known)
        remarks = [str(calibration)]
        if kind == "time":
            remarks = self._about_time(int(facts.predicate[0]), len(rows), calibration)
        return Answers(question, rows, calibration.temperature, tuple(remarks))

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
        limit = _options(limit, "mark", None).limit
        timestamps = begin = end = None
        if at is not None or during is not None:
            ticks = np.array(read_time(graph.timeline, at, during))
            begin, end = format_ticks(ticks, graph.timeline.granularity)
            first, last = graph.timeline.index(ticks).tolist()
            timestamps = (first, last)
        rows = near(self.run, names, name, timestamps, limit)
        remarks = ["scores are cosines of vectors"]
        if names is graph.entities and self.run.scoping.entities is None and timestamps is not None:
            remarks.append("this run has not cut entities: they are the same at all times")
        entity, predicate = (name, None) if names is graph.entities else (None, name)
        return Answers(
            Question("near", entity, predicate, None, begin, end), rows, remarks=tuple(remarks)
        )

    def ask_many(
        self,
        questions: Any,
        *,
        limit: int | None = 10,
        known: str = "mark",
        best: int | None = None,
        progress: Progress = silent,
    ) -> pa.Table:
        """Answer all questions of a file (.tsv, .csv, .parquet) or of an Arrow-compatible table.

        Columns are subject, predicate, object and at (or begin and end), with `?` for what is
        asked for. An empty time is the whole time of the graph; where all three names are given,
        the question is when.
        """
        tables = self.answer_blocks(
            questions, limit=limit, known=known, best=best, progress=progress
        )
        return pa.concat_tables(tables)

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
        asked = read_questions(questions, self.run.graph)
        options = _options(limit, known, best)
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
            return Calibration(None, 0, _PAPER)
        return self.calibration(kind)

    def _about_time(self, predicate: int, shown: int, calibration: Calibration) -> list[str]:
        scopes = self.run.segmentation.predicates
        count = len(scopes.cuts_of(predicate)) + 1
        if self.run.segmentation.entities is not None:
            return [str(calibration)]
        if count > 1:
            some = [f"{shown} of {count} scopes"] if shown < count else []
            return [*some, str(calibration)]
        name = scopes.names[predicate]
        return [
            f"this run has not cut {name}: to it all times are the same, and it cannot tell when"
        ]


def _options(limit: int | None, known: str, best: int | None) -> Options:
    check_name("way to treat known answers", known, KNOWN)
    for name, number in (("limit", limit), ("best", best)):
        whole = isinstance(number, int) and not isinstance(number, bool)
        if number is not None and (not whole or number < 1):
            raise UsageError(f"{name} is a number from 1 on, not {number!r}")
    return Options(limit, known == "drop", best)
