"""What the page shows, as plain values: answers at all times, facts, rules, maps, metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from inspect import signature
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.table import Table

import splime
from splime.analysis.backtest import read_backtest
from splime.analysis.comparing import run_names
from splime.analysis.embeddings import project
from splime.analysis.existence import Existence
from splime.analysis.hidden import Measured
from splime.analysis.rules import rules as find_rules
from splime.errors import SplimeError, UsageError, check_name, counted
from splime.explorer.asking import TIMES, PageQuery, interval_of, time_text
from splime.explorer.examples import find_examples
from splime.graph import SPLITS, Fact, Facts, TemporalGraph
from splime.progress import Progress, silent
from splime.query.answers import percent
from splime.query.doubting import read_doubts
from splime.query.questions import ASKED, quoted
from splime.reporting.results import evaluation_tables
from splime.reporting.trust import trust_tables
from splime.runs import Run, evaluations
from splime.scoring.scoping import KINDS, NAMES, SIDES, Kind
from splime.times import Ints, format_ticks, tick_range
from splime.vocabulary import Vocabulary

_NAMES, _PREDICATES, _FACTS, _REASONS, _TESTS, _DOUBTS = 20, 500, 200, 12, 100, 500
_ASKS = ("ask", "times", "why")
"""The parts that ask a model."""
_PARTS = (*_ASKS, "about", "names", "facts", "predicate", "rules", "map", "metrics")


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
        self.queries = {
            name: PageQuery(run, existence) for name, run in zip(names, runs, strict=True)
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
        """The runs, the times, and some questions to begin with."""
        graph = self.graph
        return {
            "version": splime.__version__,
            "name": graph.name or "facts",
            "facts": len(graph),
            "runs": {name: _describe(query.run) for name, query in self.queries.items()},
            "sources": self._sources,
            "explains": [name for name, query in self.queries.items() if query.explains],
            "times": graph.timeline.labels(),
            "starts": graph.timeline.starts.tolist(),
            "ends": graph.timeline.ends.tolist(),
            "predicates": self._frequent(),
            "examples": self._examples,
            "tests": self._tests,
            "test": bool(len(graph.test)),
            "backtest": self._backtest,
            "doubts": [
                {
                    **row._asdict(),
                    "time": time_text(row.begin or row.end or "", row.end or row.begin or ""),
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
        return find_examples([*self.queries.values()], self._tests)

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
        return query.spans(names) if kind == "time" else query.answers(kind, names, time)

    def times(
        self, run: str, ask: str, subject: str, predicate: str, object: str, time: str
    ) -> dict[str, Any]:
        """The answers to a question at its time and at all others, as many as are affordable."""
        check_name("kind of question", ask, NAMES)
        query, kind, names = self._read(run, ask, (subject, predicate, object))
        return query.answers(kind, names, time, around=True)

    def _read(
        self, run: str, ask: str, given: tuple[str, str, str]
    ) -> tuple[PageQuery, Kind, tuple[str, str, str]]:
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
        if kind in SIDES and query.explains:
            evidence = query.why(*names, answer=answer, **interval_of(time))
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
            _, asked = query.read(names, None, **interval_of(time))
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
        time = time_text(begin or "", end or "")
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
                "time": time_text(begin, end) if fact.begin or fact.end else "",
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


def _percents(measured: Measured) -> list[str]:
    """MRR, and how many right answers come first and among ten."""
    return [f"{measured.mrr:.3f}", percent(measured.first), percent(measured.ten)]


def _plain(labels: pa.Array) -> pa.Array:
    """Names as people type them: in small letters, with spaces."""
    return pc.replace_substring(pc.utf8_lower(labels), "_", " ")


def _describe(run: Run) -> str:
    model = run.settings.model
    return f"{model}, cuts of {run.method_name}" if run.is_cut else model


def _table(table: Table) -> dict[str, Any]:
    """A table of the terminal as plain text."""
    cells = zip(*(column.cells for column in table.columns), strict=True)
    return {
        "title": str(table.title or ""),
        "head": [str(column.header) for column in table.columns],
        "rows": [[str(cell) for cell in row] for row in cells],
    }
