"""What the page shows, as plain values: answers at all times, facts, rules, maps, metrics."""

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
from splime.analysis.backtest import read_backtest
from splime.analysis.comparing import run_names
from splime.analysis.embeddings import project
from splime.analysis.existence import Existence
from splime.analysis.hidden import SIDES, Measured
from splime.analysis.rules import rules as find_rules
from splime.errors import SplimeError, UsageError, check_name, counted
from splime.graph import SPLITS, Fact, Facts, TemporalGraph
from splime.progress import Progress, silent
from splime.query import Calibration, Query
from splime.query.answers import AnswerOptions, percent
from splime.query.doubting import read_doubts
from splime.query.many import answer_tables
from splime.query.questions import ASKED, Asked, quoted, read_during
from splime.reporting.answers import beside_best
from splime.reporting.results import evaluation_tables
from splime.reporting.trust import trust_tables
from splime.runs import Run, evaluations
from splime.scoring.queries import Block, Scoring
from splime.scoring.scoping import KINDS, NAMES, Kind
from splime.times import Ints, format_ticks, tick_range
from splime.vocabulary import Vocabulary

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
_NAMES, _PREDICATES, _FACTS, _REASONS, _TESTS, _DOUBTS = 20, 500, 200, 12, 100, 500
_TRIED, _EXPLAINED = 16, 8
"""Facts among which questions to begin with are found, and those whose evidence is looked at."""
_ASKS = ("ask", "times", "why")
"""The parts that ask a model."""
_PARTS = (*_ASKS, "about", "names", "facts", "predicate", "rules", "map", "metrics")


class _Query(Query):
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


class Explorer:
    """Runs on the same facts, and what can be asked of them.

    `answer` takes the name of a part and its arguments as text; all that it gives can be written
    as JSON. `doubts` and `backtest` are files that these commands have written; `sources` are the
    runs as a command names them.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        doubts: str | Path | None = None,
        backtest: str | Path | None = None,
        *,
        sources: Sequence[str] = (),
    ) -> None:
        names = run_names(runs)
        self._sources = dict(zip(names, sources or [str(run.path) for run in runs], strict=True))
        first, *others = runs
        for name, run in zip(names[1:], others, strict=True):
            if not _same_facts(run, first):
                raise UsageError(
                    f"{name} is a run on other facts than {names[0]}; explore them one by one"
                )
            run.graph = first.graph  # the same, and read already
        self.graph: TemporalGraph = first.graph
        self._doubts = [] if doubts is None else read_doubts(doubts)[:_DOUBTS]
        self._backtest = None if backtest is None else read_backtest(backtest).to_json()
        existence: dict[str, Existence] = {}
        self.queries = {name: _Query(run, existence) for name, run in zip(names, runs, strict=True)}
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
        """The runs, the times, and some questions to begin with."""
        graph = self.graph
        return {
            "version": splime.__version__,
            "name": graph.name or "facts",
            "facts": len(graph),
            "runs": {name: _describe(query.run) for name, query in self.queries.items()},
            "sources": self._sources,
            "explains": [name for name, query in self.queries.items() if _explains(query)],
            "times": graph.timeline.labels(),
            "predicates": self._frequent(),
            "examples": self._examples,
            "tests": self._tests,
            "test": bool(len(graph.test)),
            "backtest": self._backtest,
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
        self.about()

    def _frequent(self) -> list[str]:
        """Predicates with the most facts of train first, some of them."""
        counts = np.bincount(self.graph.train.predicate, minlength=len(self.graph.predicates))
        most = np.argsort(-counts, kind="stable")[:_PREDICATES]
        return [self.graph.predicates[at] for at in most[counts[most] > 0].tolist()]

    # Questions to begin with

    @cached_property
    def _tests(self) -> list[dict[str, Any]]:
        """Facts of test to ask about; without any, facts of train, just after (or before) their
        time, which is when the graph does not say it."""
        graph, random = self.graph, np.random.default_rng(0)
        if len(graph.test):
            drawn = random.permutation(len(graph.test))[:_TESTS]
            return self._rows(len(self._facts) - 1 - drawn)
        rows = self._rows(random.permutation(len(graph.train))[:_TESTS])
        times = graph.timeline.labels()
        for row in rows:
            beside = (row["last"] + 1, row["first"] - 1)
            at = next((at for at in beside if 0 <= at < len(times)), None)
            if at is not None and row["time"]:
                row["time"] = times[at]
        return rows

    @cached_property
    def _examples(self) -> list[dict[str, str]]:
        """Questions for an object, a subject and a time, with right answers where there are any."""
        queries = [*self.queries.values()]
        query = next(filter(_explains, queries), queries[0])
        found: list[dict[str, str]] = []
        rows = [row for row in self._tests if row["time"]][:_TRIED]
        for kind in (*SIDES, "time"):
            if kind == "time" and self._refuses_when(query):
                continue
            used = {question["predicate"] for question in found}
            sure = [self._sure(query, kind, row) for row in rows]
            best = sorted(
                (at for at in range(len(rows)) if sure[at]),
                key=lambda at: (rows[at]["predicate"] in used, -sure[at]),
            )
            # The longer a chain of facts, the more it shows.
            length = {at: _chain_length(query, kind, rows[at]) for at in best[:_EXPLAINED]}
            best.sort(key=lambda at: -length.get(at, 0.0))
            found += [_asked_about(rows[at], kind) for at in best[:1]]
        if rows and not found:
            found.append(_asked_about(rows[0], "object"))
        return found

    def _sure(self, query: Query, kind: Kind, row: Mapping[str, Any]) -> float:
        """How probable the best answer about a fact is; 0 unless it is right.

        Without facts of test it need only be new, and there should be an answer at all.
        """
        names, when = _names_asked(row, kind), _interval(row["time"])
        if kind == "time":
            return float(query.ask(*names, ASKED, limit=1)[0].known is not None)
        best = query.ask(*names, **when, limit=1)[0]
        sure = best.probability or 1e-9
        if len(self.graph.test):
            return sure if best.name == row[kind] else 0.0
        there = query.there_is_one(*names, **when)
        return sure * (best.known is None) * (1.0 if there is None else there.probability)

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
            if self._refuses_when(query):
                raise UsageError(
                    "this model would take too long to say when; splime ask answers it"
                )
            return _when(query, names)
        return self._answers(query, kind, names, time, around=scoring.scoping is not None)

    def _refuses_when(self, query: Query) -> bool:
        return query.scoring.scoping is None and query.scoring.questions_for("time") > _SPANS

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
        timeline, when = self.graph.timeline, _interval(time)
        _, facts = query.read(names, None, **when)
        there = query.there_is_one(*names, **when)
        if later := query.later(facts):
            query, around = later, False
        scoring = query.scoring
        place = int(timeline.index(facts.begin)[0])
        most = 0 if later else min(len(timeline), self._affordable(scoring, kind))
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
            rows = query.existence(kind).over_time(int(of[0][0]), int(of[1][0]), at)
            stated = [[*there], *zip(rows[0].round(4).tolist(), rows[1].tolist(), strict=True)]
        return {
            "kind": kind,
            "remarks": remarks,
            "stated": stated,
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
        """The facts that an answer rests on, or those nearest to it that the model learned from.

        With what chains of them add to the score, as places among them with relative scopes.
        """
        query, kind, names = self._read(run, ask, (subject, predicate, object))
        if kind in SIDES and _explains(query):
            evidence = query.why(*names, answer=answer, **_interval(time))
            steps = [step for reason in evidence.reasons for step in reason.steps]
            facts = list(dict.fromkeys(step.fact for step in steps))
            chains = [
                [one.contribution, [[facts.index(step.fact), step.scope] for step in one.steps]]
                for one in evidence.reasons
            ]
            return {"facts": [self._placed(fact) for fact in facts], "chains": chains}
        if kind == "time":
            _, asked = query.read(names, ASKED)
        else:
            _, asked = query.read(names, None, **_interval(time))
            names_of = query.scoring.names(kind)
            given: dict[str, Any] = {kind: np.array([names_of.id(answer)], np.int32)}
            asked = replace(asked, **given)
        return {"facts": self._rows(self._nearest(asked)), "chains": None}

    def _placed(self, fact: Fact) -> dict[str, Any]:
        """A fact with its timestamps, and the time to ask about."""
        timeline = self.graph.timeline
        begin, end = fact.begin or fact.end, fact.end or fact.begin
        first, last = 0, len(timeline) - 1
        if begin is not None and end is not None:
            unit = timeline.granularity
            ticks = np.array([tick_range(begin, unit)[0], tick_range(end, unit)[1]])
            first, last = timeline.index(ticks).tolist()
        time = _time(begin or "", end or "")
        return {**fact._asdict(), "time": time, "first": first, "last": last}

    def _nearest(self, fact: Facts) -> Ints:
        """Facts of train with a predicate and one of two entities: those with both first, then in
        the order of their distance in time."""
        train = self.graph.train
        subject, same, object_ = (getattr(train, name) == getattr(fact, name) for name in NAMES)
        rows = np.flatnonzero(same & (subject | object_))
        far = np.maximum(train.begin - fact.end, fact.begin - train.end).clip(min=0)[rows]
        return rows[np.lexsort((rows, far, ~(subject & object_)[rows]))[:_REASONS]]

    # Looking

    def facts(self, kind: str, name: str) -> dict[str, Any]:
        """The facts of an entity, or of a predicate, in the order of time."""
        check_name("kind of name", kind, self._searched)
        facts = self._facts
        if kind == "entity":
            number = self.graph.entities.id(name)
            rows = np.flatnonzero((facts.subject == number) | (facts.object == number))
        else:
            rows = np.flatnonzero(facts.predicate == self.graph.predicates.id(name))
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

    def rules(self, predicate: str) -> dict[str, Any]:
        """What the counts of the graph say about a predicate; a few rules of each without one."""
        source = next((q.run for q in self.queries.values() if q.run.reads_facts), self.graph)
        return find_rules(source, predicate or None, examples=int(bool(predicate))).to_json()

    def map(self, run: str) -> dict[str, Any]:
        """Scoped predicates on a flat map, each with a question about one of its facts."""
        try:
            return self._map(self.queries[run].run)
        except SplimeError as error:
            return {"remark": f"there is no map of {run}: {error}"}

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
        """A summary of how right the answers of a run are, and the tables of its evaluations."""
        query = self.queries[run]
        trust = query.trust
        kept = evaluations(query.run) if query.run.own_facts else []
        parts: list[Any] = [] if trust is None else [*trust_tables(trust)]
        parts += [part for each in kept for part in evaluation_tables(each, strata=True)]
        summary = [] if trust is None else [["hidden facts", *_percents(trust.all)]]
        for each in kept:
            for filter_ in each.filters[:1]:
                both = each.metrics[filter_]["both"]
                measured = Measured(both.queries, both.mrr, both.hits1, both.hits10)
                title = f"{each.split}, protocol {each.protocol}, filter {filter_}"
                summary.append([title, *_percents(measured)])
        shown = [_table(part) if isinstance(part, Table) else str(part) for part in parts]
        remark = "this run was not evaluated yet; splime evaluate does it"
        return {"summary": summary, "parts": shown or [remark]}


def _same_facts(one: Run, other: Run) -> bool:
    """Whether two runs are on the same facts, by checksums or, without these, by the facts."""
    sums = [run.config["data"]["sha256"] for run in (one, other)]
    if all(sums):
        return bool(sums[0] == sums[1])
    graphs = one.graph, other.graph
    vocabularies = zip(*((g.entities.labels, g.predicates.labels) for g in graphs), strict=True)
    return (
        all(a.equals(b) for a, b in vocabularies)
        and graphs[0].timeline.labels() == graphs[1].timeline.labels()
        and all(
            len(a) == len(b) and all(map(np.array_equal, a.columns(), b.columns()))
            for (_, a), (_, b) in zip(*(g.splits() for g in graphs), strict=True)
        )
    )


def _explains(query: Query) -> bool:
    return query.scoring.explainer is not None


def _names_asked(row: Mapping[str, Any], kind: Kind) -> tuple[str, str, str]:
    """The names of a question about a fact."""
    one, which, other = (ASKED if name == kind else quoted(row[name]) for name in NAMES)
    return one, which, other


def _asked_about(row: Mapping[str, Any], kind: Kind) -> dict[str, str]:
    """A question about a fact, as the page has it."""
    names = {name: "" if name == kind else row[name] for name in NAMES}
    return {"ask": kind, **names, "time": "" if kind == "time" else row["time"]}


def _chain_length(query: Query, kind: Kind, row: Mapping[str, Any]) -> float:
    """How many facts in a row the best answer rests on, on average."""
    if kind not in SIDES or not _explains(query):
        return 0.0
    reasons = query.why(*_names_asked(row, kind), **_interval(row["time"])).reasons
    whole = sum(reason.contribution for reason in reasons)
    return sum(one.contribution * len(one.steps) for one in reasons) / whole if whole > 0 else 0.0


def _percents(measured: Measured) -> list[str]:
    """MRR, and how many right answers come first and among ten."""
    return [f"{measured.mrr:.3f}", percent(measured.first), percent(measured.ten)]


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


def _table(table: Table) -> dict[str, Any]:
    """A table of the terminal as plain text."""
    cells = zip(*(column.cells for column in table.columns), strict=True)
    return {
        "title": str(table.title or ""),
        "head": [str(column.header) for column in table.columns],
        "rows": [[str(cell) for cell in row] for row in cells],
    }
