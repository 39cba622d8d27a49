"""What the page shows, as plain values: answers at all times, facts, scopes, maps, metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from inspect import signature
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from rich.table import Table

import splime
from splime.analysis.comparing import run_names
from splime.analysis.embeddings import project
from splime.errors import SplimeError, UsageError, check_name, counted
from splime.graph import SPLITS, Facts, TemporalGraph
from splime.progress import Progress, silent
from splime.query import Calibration, Query
from splime.query.answers import AnswerOptions
from splime.query.doubting import read_doubts
from splime.query.many import answer_tables
from splime.query.questions import ASKED, Asked, quoted, read_during
from splime.reporting.answers import beside_best
from splime.reporting.results import evaluation_tables
from splime.runs import Run, evaluations
from splime.scoring.queries import Block, Scoring
from splime.scoring.scoping import KINDS, NAMES, SIDES, Kind
from splime.times import Ints, format_ticks
from splime.vocabulary import Vocabulary

ANSWERS = 10
"""Answers to a question at a time."""
TIMES = 400
"""Timestamps that a question is answered at, at once, if that is not too much work."""
_SCORES = 1 << 23
"""Scores that one request may take."""
_TIMED, _SPANS = 64, 1_000
"""Questions to a model that is asked at a time itself, and takes longer for each; those to say
when cannot be divided."""
_NAMES, _FACTS, _REASONS, _TESTS, _DOUBTS = 20, 200, 12, 100, 500
_ASKS = ("ask", "times", "why")
"""The parts that ask a model."""
_PARTS = (*_ASKS, "about", "names", "entity", "predicate", "map", "metrics")


class _Query(Query):
    """A query that never takes minutes."""

    def calibration(self, kind: Kind) -> Calibration:
        """Where it takes one question to the model for each predicate or time, only a kept one."""
        if self.scoring.questions_for(kind) == 1:
            return super().calibration(kind)
        why = "to calibrate them takes long with this model; splime ask does it once"
        return self._calibrations.kept(kind) or Calibration(None, 0, why)


class Explorer:
    """Runs on the same facts, and what can be asked of them.

    `answer` takes the name of a part and its arguments as text; all that it gives can be written
    as JSON. `doubts` is a file that `splime doubts` has written.
    """

    def __init__(self, runs: Sequence[Run], doubts: str | Path | None = None) -> None:
        names = run_names(runs)
        first, *others = runs
        for name, run in zip(names[1:], others, strict=True):
            if run.config["data"]["sha256"] != first.config["data"]["sha256"]:
                raise UsageError(
                    f"{name} is a run on other facts than {names[0]}; explore them one by one"
                )
            run.graph = first.graph  # the same, and read already
        self.graph: TemporalGraph = first.graph
        self._doubts = [] if doubts is None else read_doubts(doubts)[:_DOUBTS]
        self.queries = {
            name: _Query(run, memory=1 << 28) for name, run in zip(names, runs, strict=True)
        }
        # One question at a time: it takes all cores, and memory for its scores. What else there is
        # to see need not wait for it.
        self._locks = {name: Lock() for name in _PARTS} | dict.fromkeys(_ASKS, Lock())

    def answer(self, part: str, given: Mapping[str, str]) -> dict[str, Any]:
        """One part of what there is to see; wrong arguments are a `UsageError`."""
        check_name("part", part, _PARTS)
        function = getattr(self, part)
        expected = signature(function)
        try:
            expected.bind(**given)
        except TypeError as error:
            raise UsageError(f"{part} takes {', '.join(expected.parameters)}: {error}") from None
        if "run" in given:
            check_name("run", given["run"], self.queries)
        with self._locks[part]:
            reply: dict[str, Any] = function(**given)
        return reply

    def about(self) -> dict[str, Any]:
        """The runs, the times, and some facts of test to begin with."""
        graph = self.graph
        drawn = np.random.default_rng(0).permutation(len(graph.test))[:_TESTS]
        return {
            "version": splime.__version__,
            "name": graph.name or "facts",
            "facts": len(graph),
            "runs": {name: _describe(query.run) for name, query in self.queries.items()},
            "times": graph.timeline.labels(),
            "tests": self._rows(len(self._facts) - 1 - drawn),
            "doubts": [
                {
                    **row._asdict(),
                    "time": _time(row.begin or row.end or "", row.end or row.begin or ""),
                    "ask": row.kind if row.kind in KINDS else "object",
                }
                for row in self._doubts
            ],
        }

    def prepare(self, progress: Progress = silent) -> None:
        """Make what the first questions would wait for: temperatures, which the runs then keep."""
        for query in self.queries.values():
            query.prepare(progress)

    # Names

    @cached_property
    def _facts(self) -> Facts:
        return self.graph.facts()

    @cached_property
    def _searched(self) -> dict[str, tuple[Vocabulary, pa.Array, Ints]]:
        """Names as they are compared, and how many facts each has."""
        graph, facts = self.graph, self._facts
        return {
            names.kind: (names, _plain(names.labels), np.bincount(ids, minlength=len(names)))
            for names, ids in (
                (graph.entities, np.concatenate([facts.subject, facts.object])),
                (graph.predicates, facts.predicate),
            )
        }

    def names(self, kind: str, text: str) -> dict[str, Any]:
        """Names with a text in them: those that begin with it first, then by number of facts."""
        check_name("kind of name", kind, self._searched)
        names, plain, count = self._searched[kind]
        wanted = _plain(pa.array([text.strip()], pa.large_string()))[0].as_py()
        at = np.flatnonzero(pc.match_substring(plain, wanted).to_numpy(zero_copy_only=False))
        begins = pc.starts_with(plain.take(pa.array(at)), wanted).to_numpy(zero_copy_only=False)
        best = at[np.lexsort((at, -count[at], ~begins.astype(bool)))[:_NAMES]]
        return {"names": [[names[int(each)], int(count[each])] for each in best]}

    # Questions

    def ask(
        self, run: str, ask: str, subject: str, predicate: str, object: str, time: str
    ) -> dict[str, Any]:
        """The answers to a question at its time, and at all others as `times` gives them.

        Where these take longer, there is `more` to ask for afterwards.
        """
        query, kind, names = self._read(run, ask, (subject, predicate, object))
        scoring = query.scoring
        if kind == "time":
            if scoring.scoping is None and scoring.questions_for(kind) > _SPANS:
                raise UsageError(
                    "this model would take too long to say when; splime ask answers it"
                )
            return _when(query, names)
        return self._answers(query, kind, names, time, around=scoring.scoping is not None)

    def times(
        self, run: str, ask: str, subject: str, predicate: str, object: str, time: str
    ) -> dict[str, Any]:
        """The answers to a question at its time and at all others, as many as are affordable."""
        check_name("kind of question", ask, NAMES)
        query, kind, names = self._read(run, ask, (subject, predicate, object))
        return self._answers(query, kind, names, time, around=True)

    def _answers(
        self, query: Query, kind: Kind, names: tuple[str, str, str], time: str, *, around: bool
    ) -> dict[str, Any]:
        """The answers at a time, and at the timestamps around it, or at it if it is one."""
        scoring, timeline = query.scoring, self.graph.timeline
        _, facts = query.read(names, None, **_interval(time))
        place = int(timeline.index(facts.begin)[0])
        most = min(len(timeline), self._affordable(scoring, kind))
        alone = (timeline.starts[place], timeline.ends[place]) == (facts.begin[0], facts.end[0])
        count = most if around else int(alone)
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
        options = AnswerOptions(ANSWERS, watch=truths.see)
        tables = answer_tables(scoring, asked, options, temperatures, silent)
        here, *others = _by_question(pa.concat_tables(tables), 1 + count, kind)
        [doubt] = scoring.coverage.reasons(kind, facts)
        there = query.there_is_one(*names, **_interval(time))
        return {
            "kind": kind,
            "remarks": [
                f"no probabilities: {doubt}" if doubt else str(calibration),
                *([] if there is None else [str(there)]),
            ],
            "place": place,
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

    def _affordable(self, scoring: Scoring, kind: Kind) -> int:
        """How many timestamps one request may be answered at."""
        if scoring.scoping is None:
            return max(1, _TIMED // scoring.questions_for(kind))
        return int(np.clip(_SCORES // len(scoring.names(kind)), 1, TIMES))

    def _read(
        self, run: str, ask: str, given: tuple[str, str, str]
    ) -> tuple[Query, Kind, tuple[str, str, str]]:
        """A query, what it asks for, and the names as a question has them."""
        check_name("kind of question", ask, KINDS)
        subject, predicate, object_ = (
            ASKED if part == ask else quoted(name) for part, name in zip(NAMES, given, strict=True)
        )
        return self.queries[run], ask, (subject, predicate, object_)  # type: ignore[return-value]

    def why(
        self, run: str, ask: str, subject: str, predicate: str, object: str, time: str, answer: str
    ) -> dict[str, Any]:
        """The facts that an answer rests on, or those nearest to it that the model learned from."""
        query, kind, names = self._read(run, ask, (subject, predicate, object))
        if kind in ("object", "subject") and query.scoring.explainer is not None:
            evidence = query.why(*names, answer=answer, **_interval(time))
            return {"reasons": evidence.to_json()["reasons"]}
        if kind == "time":
            _, facts = query.read(names, ASKED)
        else:
            _, facts = query.read(names, None, **_interval(time))
            names_of = query.scoring.names(kind)
            given: dict[str, Any] = {kind: np.array([names_of.id(answer)], np.int32)}
            facts = replace(facts, **given)
        return {"nearest": self._rows(self._nearest(facts))}

    def _nearest(self, fact: Facts) -> Ints:
        """Facts of train with a predicate and one of two entities: those with both first, then in
        the order of their distance in time."""
        train = self.graph.train
        subject, same, object_ = (getattr(train, name) == getattr(fact, name) for name in NAMES)
        rows = np.flatnonzero(same & (subject | object_))
        far = np.maximum(train.begin - fact.end, fact.begin - train.end).clip(min=0)[rows]
        return rows[np.lexsort((rows, far, ~(subject & object_)[rows]))[:_REASONS]]

    # Looking

    def entity(self, name: str) -> dict[str, Any]:
        """The facts of an entity, in the order of time."""
        facts, number = self._facts, self.graph.entities.id(name)
        rows = np.flatnonzero((facts.subject == number) | (facts.object == number))
        order = np.lexsort((rows, facts.end[rows], facts.begin[rows]))
        return {"facts": self._rows(rows[order[:_FACTS]]), "all": len(rows)}

    def _rows(self, rows: Ints) -> list[dict[str, Any]]:
        """Facts of all splits: names and dates, the time to ask about, timestamps, and split."""
        graph, facts = self.graph, self._facts.take(rows)
        upto = np.cumsum([len(part) for _, part in graph.splits()])
        of_split = np.searchsorted(upto, rows, side="right").tolist()
        # Unknown times are filled with those of the graph.
        dates = (
            format_ticks(each, graph.timeline.granularity) for each in (facts.begin, facts.end)
        )
        shown = replace(graph, train=facts).rows("train")
        columns = (shown, *dates, *(each.tolist() for each in graph.timestamps(facts)), of_split)
        return [
            {
                **fact._asdict(),
                "time": _time(begin, end) if fact.begin or fact.end else "",
                "first": first,
                "last": last,
                "split": SPLITS[split],
            }
            for fact, begin, end, first, last, split in zip(*columns, strict=True)
        ]

    def predicate(self, run: str, name: str) -> dict[str, Any]:
        """How many facts of a predicate hold at each timestamp, and its scopes in a run."""
        query, number = self.queries[run], self.graph.predicates.id(name)
        facts = self.graph.train.take(self.graph.train.predicate == number)
        steps = np.zeros(len(self.graph.timeline) + 1, np.int64)
        for times, change in zip(self.graph.timestamps(facts), (1, -1), strict=True):
            np.add.at(steps, times + (change < 0), change)
        scopes, remark = query.run.segmentation.predicates, ""
        numbers = scopes.of_name(number)
        if query.scoring.scoping is None:
            remark = "this model has no absolute scopes: its scopes are relative to the question"
        elif len(numbers) == 1:
            remark = f"this run has not cut {name}"
        elif len(numbers) > TIMES:
            remark = f"{name} has {counted(len(numbers), 'scope')}, too many to draw"
        drawn = [
            [scopes.labels[at].as_py(), *map(int, (scopes.first[at], scopes.last[at]))]
            for at in (() if remark else numbers)
        ]
        return {"held": steps.cumsum()[:-1].tolist(), "scopes": drawn, "remark": remark}

    def map(self, run: str) -> dict[str, Any]:
        """Scoped predicates on a flat map, each with a question about one of its facts."""
        try:
            return self._map(self.queries[run].run)
        except SplimeError as error:
            return {"remark": f"there is no map of this run: {error}"}

    def _map(self, run: Run) -> dict[str, Any]:
        projection = project(run)
        scopes, numbers = run.segmentation.predicates, projection.scopes
        used, triple = np.unique(run.static.train.predicate, return_index=True)
        facts = run.static.train.fact[triple[np.searchsorted(used, numbers)]]
        low = projection.positions.min(axis=0)
        size = max(float(np.ptp(projection.positions, axis=0).max()), 1e-9)
        places = ((projection.positions - low) / size).round(4).tolist()
        subjects = self.graph.entities.labels.take(pa.array(self.graph.train.subject[facts]))
        columns = zip(
            scopes.labels.take(pa.array(numbers)).to_pylist(),
            scopes.sources[numbers].tolist(),
            scopes.middle[numbers].tolist(),
            subjects.to_pylist(),
            places,
            strict=True,
        )
        return {
            "predicates": {
                at: scopes.names[at] for at in np.unique(scopes.sources[numbers]).tolist()
            },
            "points": [[*place, *rest] for *rest, place in columns],
        }

    def metrics(self, run: str) -> dict[str, Any]:
        """The tables of the evaluations that a run has."""
        kept = evaluations(self.queries[run].run)
        parts = (part for each in kept for part in evaluation_tables(each, strata=True))
        shown = [_table(part) if isinstance(part, Table) else str(part) for part in parts]
        return {"parts": shown or ["this run was not evaluated yet; splime evaluate does it"]}


def _plain(labels: pa.Array) -> pa.Array:
    """Names as people type them: in small letters, with spaces."""
    return pc.replace_substring(pc.utf8_lower(labels), "_", " ")


def _describe(run: Run) -> str:
    model = run.settings.model
    return f"{model}, cuts of {run.method_name}" if run.is_cut else model


def _time(begin: str, end: str) -> str:
    """What `_interval` reads."""
    return begin if begin == end else f"{begin}..{end}"


def _interval(time: str) -> dict[str, Any]:
    """The time of a question: none, a date, or two with dots between them."""
    if ".." in time:
        return {"during": read_during(time)}
    return {"at": time.strip() or None}


def _when(query: Query, names: tuple[str, str, str]) -> dict[str, Any]:
    """When something holds: scopes (or timestamps) in the order of time."""
    answers = query.ask(*names, ASKED, limit=TIMES)
    spans = [
        {**row._asdict(), "known": row.known and str(row.known), "share": share}
        for row, share in zip(answers.timeline(), beside_best(answers), strict=True)
    ]
    return {"kind": "time", "remarks": list(answers.remarks), "spans": spans}


def _by_question(table: pa.Table, count: int, kind: Kind) -> list[dict[str, Any]]:
    """The answers to each question, and the scopes that they were scored by."""
    names = ("question", "rank", "answer", "score", "probability", "known", "remark", "scope")
    columns = []
    for column in map(table.column, names):
        # Numbers of single precision have their digits, not those of double precision.
        is_number = pa.types.is_floating(column.type)
        columns.append(column.cast(pa.string()).cast(pa.float64()) if is_number else column)
    steps: list[dict[str, Any]] = [{"scope": None, "rows": []} for _ in range(count)]
    for question, *row, scope in zip(*(column.to_pylist() for column in columns), strict=True):
        step = steps[question - 1]
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


def _table(table: Table) -> dict[str, Any]:
    """A table of the terminal as plain text."""
    cells = zip(*(column.cells for column in table.columns), strict=True)
    return {
        "title": str(table.title or ""),
        "head": [str(column.header) for column in table.columns],
        "rows": [[str(cell) for cell in row] for row in cells],
    }
