"""Questions of the page: answered at all times at once where that takes a moment."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from splime.analysis.existence import Existence
from splime.errors import UsageError
from splime.graph import Facts
from splime.progress import silent
from splime.query import Calibration, Query
from splime.query.answers import AnswerOptions
from splime.query.many import answer_tables
from splime.query.questions import ASKED, Asked, read_during
from splime.reporting.answers import beside_best
from splime.runs import Run
from splime.scoring.queries import Block, Scoring
from splime.scoring.scoping import KINDS, Kind

ANSWERS = 10
"""Answers to a question at a time, and as many that no fact states."""
_KNOWN = 50
"""Answers among which those that no fact states are looked for, beyond the first ones."""
TIMES = 400
"""Timestamps that a question is answered at, at once, if that is not too much work."""
_SCORES = 1 << 23
"""Scores that one request may take."""
_TIMED, _SPANS = 128, 1_000
"""Questions to a model that is asked at a time itself, and takes longer for each; those to say
when cannot be divided."""


class PageQuery(Query):
    """A query that never takes minutes, and shares what only the facts decide."""

    def __init__(self, run: Run, existence: dict[str, Existence] | None = None) -> None:
        super().__init__(run, memory=1 << 28)
        self._existence = {} if existence is None else existence

    def calibration(self, kind: Kind) -> Calibration:
        """Where it takes one question to the model for each predicate or time, only a kept one."""
        if self.scoring.questions_for(kind) == 1:
            return super().calibration(kind)
        why = "to calibrate them takes long with this model; splime ask does it once"
        return self._calibrations.kept(kind) or Calibration(None, 0, why)

    @property
    def explains(self) -> bool:
        """Whether the facts are known that answers to who and what rest on."""
        return self.scoring.explainer is not None

    @property
    def tells_when(self) -> bool:
        """Whether it can say when in a moment."""
        return self.scoring.scoping is not None or self.scoring.questions_for("time") <= _SPANS

    def spans(self, names: tuple[str, str, str]) -> dict[str, Any]:
        """When something holds: scopes (or timestamps) in the order of time."""
        if not self.tells_when:
            raise UsageError("this model would take too long to say when; splime ask answers it")
        answers = self.ask(*names, ASKED, limit=TIMES)
        spans = [
            {**row._asdict(), "known": row.known and str(row.known), "share": share}
            for row, share in zip(answers.timeline(), beside_best(answers), strict=True)
        ]
        return {"kind": "time", "remarks": list(answers.remarks), "spans": spans}

    def answers(
        self, kind: Kind, names: tuple[str, str, str], time: str, *, around: bool | None = None
    ) -> dict[str, Any]:
        """The answers at a time, and at the timestamps around it, or at it if it is one.

        Unless it is said, those around it are answered where they are asked with one question.
        """
        timeline, when = self.run.graph.timeline, interval_of(time)
        _, facts = self.read(names, None, **when)
        there = self.there_is_one(*names, **when)
        later = self.later(facts)
        query = later or self
        scoring = query.scoring
        if around is None:
            around = scoring.scoping is not None
        place = int(timeline.index(facts.begin)[0])
        most = 0 if later else min(len(timeline), self._affordable(kind))
        alone = (timeline.starts[place], timeline.ends[place]) == (facts.begin[0], facts.end[0])
        count = min(most, len(timeline) if around else int(alone))
        first = int(np.clip(place - count // 2, 0, len(timeline) - count))
        # The time that is asked about, which need not be a timestamp, and then all timestamps.
        every = replace(
            facts.take(np.zeros(1 + count, np.int64)),
            begin=np.append(facts.begin, timeline.starts[first : first + count]),
            end=np.append(facts.end, timeline.ends[first : first + count]),
        )
        calibration = query.calibration(kind)
        asked = Asked(np.full(1 + count, KINDS.index(kind)), every)
        temperatures: dict[Kind, float | None] = {kind: calibration.temperature}
        truths = _Truths(scoring, kind, every)
        known = np.bincount(scoring.known.answers(kind, every).question)
        limit = ANSWERS + min(int(known.max(initial=0)), _KNOWN)
        options = AnswerOptions(limit, watch=truths.see)
        tables = answer_tables(scoring, asked, options, temperatures, silent)
        here, *others = _by_question(pa.concat_tables(tables), 1 + count, kind)
        [doubt] = scoring.coverage.reasons(kind, facts)
        remarks = [f"no probabilities: {doubt}" if doubt else str(calibration)]
        if query.run.basis:
            remarks.append(f"answered {query.run.basis}")
        stated = None
        if there is not None:
            # With a row for the time that was asked about, and then for each timestamp.
            of = (facts.object if kind == "subject" else facts.subject, facts.predicate)
            at = np.arange(first, first + count)
            rows = self.existence(kind).over_time(int(of[0][0]), int(of[1][0]), at)
            stated = [[*there], *zip(rows[0].round(4).tolist(), rows[1].tolist(), strict=True)]
        return {
            "kind": kind,
            "remarks": remarks,
            "stated": stated,
            "ahead": later is not None,
            "place": place,
            "last": int(timeline.index(facts.end)[0]),
            "first": first,
            "count": count,
            "more": count < most,
            "here": here,
            # From which timestamp on the answers are so, without those that change nothing.
            "steps": [
                {**step, "from": at}
                for at, (before, step) in enumerate(pairwise([{}, *others]), first)
                if step != before
            ],
            # By timestamp; -1 is the time that was asked about.
            "truths": [[first + at - 1 if at else -1, *rest] for at, *rest in truths.ranks],
        }

    def _affordable(self, kind: Kind) -> int:
        """How many timestamps one request may be answered at."""
        if self.scoring.scoping is None:
            return max(1, _TIMED // self.scoring.questions_for(kind))
        return int(np.clip(_SCORES // len(self.scoring.names(kind)), 1, TIMES))


def time_text(begin: str, end: str) -> str:
    """What `interval_of` reads."""
    return begin if begin == end else f"{begin}..{end}"


def interval_of(time: str) -> dict[str, Any]:
    """The time of a question: none, a date, or two with dots between them."""
    if ".." in time:
        return {"during": read_during(time)}
    return {"at": time.strip() or None}


def _by_question(table: pa.Table, count: int, kind: Kind) -> list[dict[str, Any]]:
    """The answers to each question, and the scopes that they were scored by.

    They are the first ones, and the first ones that no fact states.
    """
    names = ("question", "rank", "answer", "score", "probability", "known", "remark", "scope")
    columns = []
    for column in map(table.column, names):
        # Numbers of single precision have their digits, not those of double precision.
        is_number = pa.types.is_floating(column.type)
        columns.append(column.cast(pa.string()).cast(pa.float64()) if is_number else column)
    steps: list[dict[str, Any]] = [{"scope": None, "rows": []} for _ in range(count)]
    new = [0] * count
    for question, *row, scope in zip(*(column.to_pylist() for column in columns), strict=True):
        step, [rank, *_, known, _] = steps[question - 1], row
        new[question - 1] += known is None
        if rank > ANSWERS and (known is not None or new[question - 1] > ANSWERS):
            continue
        step["scope"] = scope
        step["rows"].append([*row, scope] if kind == "predicate" else row)
    return steps


class _Truths:
    """The answers that test states at the times of questions, each with the question, its rank, and
    its rank among those that no other fact states then."""

    def __init__(self, scoring: Scoring, kind: Kind, asked: Facts) -> None:
        known = scoring.known
        self._names = scoring.names(kind)
        self._question, fact = known.pairs(kind, asked)
        self._ids = getattr(known.facts, kind)[fact]
        self._right = fact >= len(known.facts) - len(known.graph.test)
        self.ranks: list[list[Any]] = []

    def see(self, block: Block) -> None:
        """Take them from the scores of some questions."""
        wanted = np.isin(block.rows, self._question[self._right])
        rows = block.scores[torch.from_numpy(wanted)].cpu().numpy()
        for scores, number in zip(rows, block.rows[wanted], strict=True):
            same = self._question == number
            for answer in np.unique(self._ids[same & self._right]).tolist():
                # Equal scores are in the order of ids, as among the answers.
                above = scores > scores[answer]
                above[:answer] |= scores[:answer] == scores[answer]
                rank = 1 + int(above.sum())
                others = int(above[np.unique(self._ids[same])].sum())
                self.ranks.append([int(number), self._names[answer], rank, rank - others])
