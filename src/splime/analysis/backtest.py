"""Forecasts as they would have been made, against what happened.

For each window of time the facts that began before it are all that is known: they alone are
counted, asked and read, and an end that lies in the window or later is not known. The facts that
begin in the window are asked for, and come out beside two baselines that learn nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
import numpy as np
import pyarrow as pa
import torch

from splime import __version__
from splime.analysis.calibration import Cases, fit_temperature, make_cases_of
from splime.analysis.hidden import Measured, ranks_of
from splime.errors import UsageError, counted
from splime.graph import BEGIN_UNKNOWN, Facts, TemporalGraph
from splime.io.files import write_json
from splime.io.unfinished import Unfinished
from splime.periods import begins
from splime.progress import Progress, silent
from splime.reading import LOG
from splime.runs.graph_run import GraphRun, open_source
from splime.scoring.queries import Scoring
from splime.scoring.scoping import SIDES
from splime.scoring.scorer import memory_errors
from splime.scoring.timed import TimedScoring
from splime.settings import LatestSettings
from splime.shown import Shown, Tabular
from splime.timeline import Timeline
from splime.times import Ints, When, format_ticks
from splime.training.latest import LatestScorer
from splime.training.recurrency import RecurrencyScorer

if TYPE_CHECKING:
    from splime.keywords import Reading

PATH, RECURRENCY, LATEST = "path", "recurrency", "latest"
FORECASTERS = (PATH, RECURRENCY, LATEST)
"""The model, and the baselines: what held lately or often, and the latest fact."""
QUESTIONS = 400
"""In a window, at most; half ask for an object, half for a subject."""
_MANY = 1_000


class BacktestWindow(msgspec.Struct, frozen=True):
    """What was forecast for a stretch of time, and what happened."""

    begin: str
    end: str
    """Its last tick."""
    facts: int
    """How many began in it."""
    known: int
    """How many began before it."""
    metrics: dict[str, Measured]
    """Of each of `FORECASTERS`."""
    probability: float | None
    """Of the answers that came first, their mean; None in the first window, from which the
    temperature of the next one comes."""
    temperature: float


@dataclass(frozen=True)
class Backtest(Shown, Tabular):
    """Forecasts for several windows of time."""

    source: str
    windows: list[BacktestWindow]

    def __len__(self) -> int:
        return len(self.windows)

    def __iter__(self) -> Iterator[BacktestWindow]:
        return iter(self.windows)

    def mean(self, forecaster: str) -> Measured:
        """The metrics over all questions of all windows."""
        rows = [window.metrics[forecaster] for window in self]
        weights = np.array([row.questions for row in rows], float)
        shares = np.array([row[1:] for row in rows])
        return Measured(int(weights.sum()), *(weights @ shares / max(weights.sum(), 1)).tolist())

    def __repr__(self) -> str:
        means = ", ".join(f"{name} {self.mean(name).mrr:.3f}" for name in FORECASTERS)
        return f"Backtest({self.source}: {counted(len(self), 'window')}, MRR {means})"

    def to_table(self) -> pa.Table:
        """As an Arrow table: a row for each window and forecaster."""
        rows = [
            {
                "begin": window.begin,
                "end": window.end,
                "facts": window.facts,
                "known": window.known,
                "forecaster": name,
                **window.metrics[name]._asdict(),
                "probability": window.probability if name == PATH else None,
            }
            for window in self
            for name in FORECASTERS
        ]
        return pa.Table.from_pylist(rows)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        windows = msgspec.to_builtins(self.windows)
        for window in windows:
            named = zip(window["metrics"], window["metrics"].values(), strict=True)
            window["metrics"] = {name: Measured(*row)._asdict() for name, row in named}
        return {"source": self.source, "windows": windows}


def backtest(
    source: Any,
    *,
    begin: When | None = None,
    every: str | int = "",
    questions: int = QUESTIONS,
    out: str | Path | None = None,
    device: str = "auto",
    weights: str | None = None,
    progress: Progress = silent,
    **reading: Unpack[Reading],
) -> Backtest:
    """Make forecasts as they would have been made, window by window, and see what happened.

    Args:
        source: a graph, a file, or the name of a dataset; facts of all splits count.
        begin: where the first window begins; by default after three quarters of the facts.
        every: how long a window is: a number of ticks, day, week, month, quarter, year, `2 weeks`;
            by default the time after `begin` becomes ten windows.
        questions: at most so many in each window, drawn at random with a fixed seed.
        out: a file (.json) for the result. What is done is kept beside it until then, so that the
            same call goes on where one was interrupted.
        device: where to compute: auto, cpu or cuda.
        weights: the version of the shipped weights; by default the latest.
        progress: called after each window.
        **reading: how to read the facts, as `splime.load` has it.

    >>> found = backtest("demo", begin=2018, every="year", questions=20)
    >>> [(window.begin, window.end) for window in found]
    [('2018', '2018'), ('2019', '2019'), ('2020', '2020')]
    """
    if questions < 2:
        raise UsageError(f"questions is a number from 2 on, not {questions}")
    path = None if out is None else Path(out)
    if path is not None and path.suffix.lower() != ".json":
        raise UsageError(f"{path}: a backtest is written as .json")
    run = open_source(source, device=device, weights=weights, **reading)
    if not isinstance(run, GraphRun):
        raise UsageError(f"{run.path}: a run has learned from its future; give its facts instead")
    graph, facts = run.graph, _dated(run.graph)
    edges = window_edges(facts, graph.timeline, begin, every)
    about = (__version__, run.weights.sha256, edges.tolist(), questions)
    what = hashlib.sha256(json.dumps([*about, len(facts)]).encode())
    for column in facts.columns():
        what.update(np.ascontiguousarray(column).tobytes())
    work = Unfinished(path, what.hexdigest(), list[BacktestWindow], [])
    if work.done:
        LOG.info(f"{path}: going on after {counted(len(work.done), 'window')}")
    windows = len(edges) - 1
    progress("backtest", len(work.done), windows, "windows")
    with memory_errors():
        for number in range(len(work.done), windows):
            before = work.done[-1].temperature if work.done else None
            span = (int(edges[number]), int(edges[number + 1]))
            asked = _drawn(facts, span, questions // 2, number)
            if len(asked):
                work.done.append(_window(run, facts, span, asked, before))
                work.save()
            progress("backtest", number + 1, windows, "windows")
    if not work.done:
        raise UsageError("no fact begins in the windows; choose an earlier begin (--from)")
    found = Backtest(graph.name or "facts", work.done)
    if path is not None:
        write_json(path, found.to_json())
        work.remove()
    return found


def _dated(graph: TemporalGraph) -> Facts:
    """The facts whose begin is known, of all splits."""
    facts = graph.facts()
    return facts.take((facts.unknown & BEGIN_UNKNOWN) == 0)


def known_before(facts: Facts, tick: int) -> Facts:
    """What is known at a tick: facts that began before, without ends that are yet to come."""
    known = facts.take(facts.begin < tick)
    return replace(known, end=np.minimum(known.end, tick))


def window_edges(facts: Facts, timeline: Timeline, begin: When | None, every: str | int) -> Ints:
    """Where windows begin, and where the last one ends."""
    if not len(facts) or facts.begin.min() == facts.begin.max():
        raise UsageError("a backtest needs facts that begin at different times")
    last = int(facts.begin.max()) + 1
    if begin is None:
        first = max(int(np.quantile(facts.begin, 0.75)), int(facts.begin.min()) + 1)
    else:
        first = timeline.interval(begin, begin)[0]
    if not facts.begin.min() < first < last:
        dates = format_ticks(np.array([facts.begin.min() + 1, last - 1]), timeline.granularity)
        raise UsageError(
            f"begin (--from) lies between {dates[0]} and {dates[1]}, so that there are facts before"
            " and after it"
        )
    edges = np.unique(np.linspace(first, last, 11).astype(np.int64)[:-1])
    if every:
        edges = begins(first, last, every, timeline.granularity)
    if len(edges) > _MANY:
        raise UsageError(f"{len(edges):,} windows are too many; choose a longer every (--every)")
    return np.append(edges, last)


def _drawn(facts: Facts, span: tuple[int, int], most: int, seed: int) -> Facts:
    """The facts that begin in a window, or some of them."""
    rows = np.flatnonzero((facts.begin >= span[0]) & (facts.begin < span[1]))
    return facts.take(np.sort(np.random.default_rng(seed).permutation(rows)[: max(most, 1)]))


def _window(
    run: GraphRun, facts: Facts, span: tuple[int, int], asked: Facts, temperature: float | None
) -> BacktestWindow:
    """One window: forecasts from what was known before it."""
    known, empty = known_before(facts, span[0]), Facts.empty()
    happened = facts.take((facts.begin >= span[0]) & (facts.begin < span[1]))
    graph = replace(run.graph, train=known, valid=empty, test=happened)
    ahead = GraphRun(graph, weights=run.weights, past="train", device=run.device.type)
    scorings: dict[str, Scoring] = {PATH: ahead.scoring()}
    scorings |= {
        RECURRENCY: TimedScoring(_recurrency(graph, span, len(asked)), graph),
        LATEST: TimedScoring(LatestScorer(graph, _settings(LATEST)), graph),
    }
    metrics, own = {}, []
    for name, scoring in scorings.items():
        cases = [make_cases_of(scoring, kind, asked, every=True) for kind in SIDES]
        metrics[name] = Measured.of(np.concatenate([ranks_of(one) for one in cases]))
        own += cases if name == PATH else []
    scores = torch.cat([one.scores for one in own]).double()
    column = np.concatenate([one.column for one in own])
    both = Cases(scores, np.arange(len(scores)), column, torch.ones(len(scores)))
    said = None
    if temperature is not None:
        said = float((scores / temperature).softmax(1).max(1).values.mean())
    begin, end = format_ticks(np.array([span[0], span[1] - 1]), graph.timeline.granularity)
    return BacktestWindow(
        begin, end, len(happened), len(known), metrics, said, fit_temperature(both)
    )


def _recurrency(graph: TemporalGraph, span: tuple[int, int], most: int) -> RecurrencyScorer:
    """The baseline, with what suits the time as long as the window before it."""
    settings, earlier = _settings(RECURRENCY), 2 * span[0] - span[1]
    before = known_before(graph.train, earlier)
    lately = _drawn(graph.train, (earlier, span[0]), most, 0)
    scorer = RecurrencyScorer(graph, settings)
    if len(before) and len(lately):
        past = replace(graph, train=before, valid=lately, test=Facts.empty())
        chosen = RecurrencyScorer(past, settings)
        chosen.choose(lately)
        scorer.decay, scorer.weight = chosen.decay, chosen.weight
    return scorer


def _settings(model: str) -> LatestSettings:
    return LatestSettings(model=model, past="train")
