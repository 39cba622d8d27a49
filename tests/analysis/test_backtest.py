"""Backtests: nothing of the future is seen, windows are those of the calendar, and work resumes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import splime
from splime.analysis.backtest import FORECASTERS, Backtest, backtest, known_before, window_edges
from splime.errors import UsageError
from splime.graph import Facts, TemporalGraph
from splime.io.files import read_json
from splime.reporting.plots import plot_backtest
from splime.timeline import Timeline
from tests.runs.small import call, small_graph, small_run


def world(seed: int = 0) -> TemporalGraph:
    """Twelve people who work at a firm for three years, then at the next one."""
    random = np.random.default_rng(seed)
    rows = []
    for person in range(12):
        firm = int(random.integers(6))
        for year in range(1990 + person % 3, 2010, 3):
            rows.append((f"person {person}", "worksAt", f"firm {firm}", year, year + 2))
            firm = (firm + 1) % 6
    rows += [(f"firm {n}", "nextTo", f"firm {(n + 1) % 6}", 1990, 2010) for n in range(6)]
    return splime.read(rows, split="none")


@pytest.fixture(scope="module")
def found() -> Backtest:
    return backtest(world(), begin=2000, every="2 years")


def test_windows_and_what_was_known(found: Backtest) -> None:
    graph = world()
    begins = graph.train.begin
    assert [(one.begin, one.end) for one in found] == [
        (str(year), str(min(year + 1, 2009))) for year in range(2000, 2010, 2)
    ]
    for one in found:
        begin, end = int(one.begin), int(one.end)
        assert one.known == int((begins < begin).sum())
        assert one.facts == int(((begins >= begin) & (begins <= end)).sum())
        for name in FORECASTERS:
            assert one.metrics[name].questions == 2 * one.facts
            assert 0 < one.metrics[name].mrr <= 1
    assert found.windows[0].probability is None
    assert all(0 < (one.probability or 0) <= 1 for one in found.windows[1:])
    mean = np.average(
        [one.metrics["latest"].mrr for one in found],
        weights=[one.metrics["latest"].questions for one in found],
    )
    assert found.mean("latest").mrr == pytest.approx(mean)


def test_a_scrambled_future_changes_nothing(found: Backtest) -> None:
    graph, year = world(), 2004
    facts = graph.train
    later = facts.begin >= year
    random = np.random.default_rng(1)
    order = np.arange(len(facts))
    order[later] = random.permutation(order[later])
    end = np.where(facts.end >= year, facts.end + random.integers(0, 30, len(facts)), facts.end)
    begin = np.where(later, facts.begin[order], facts.begin)
    scrambled = Facts.owning(
        facts.subject, facts.predicate, facts.object[order], begin, np.maximum(begin, end),
        facts.unknown,
    )  # fmt: skip
    other = backtest(replace(graph, train=scrambled), begin=2000, every="2 years")
    before = [one for one in found if int(one.end) < year]
    assert len(before) == 2
    assert list(other)[:2] == before
    assert list(other)[2:] != list(found)[2:]


def test_what_is_known_before() -> None:
    graph = splime.read(
        [("a", "p", "b", 1990, 2000), ("a", "p", "c", 1995, 1996), ("a", "p", "d", 1999, 2005)],
        split="none",
    )
    known = known_before(graph.train, 1998)
    assert known.begin.tolist() == [1990, 1995]
    assert known.end.tolist() == [1998, 1996]


@pytest.mark.parametrize(
    ("begin", "every", "expected"),
    [
        ("2020-01-20", "week", ["2020-01-20", "2020-01-27", "2020-02-03"]),
        ("2020-01-20", "month", ["2020-01-20", "2020-02-01", "2020-03-01"]),
        ("2020-01-20", "2 months", ["2020-01-20", "2020-03-01", "2020-05-01"]),
        ("2020-01-20", "Quarter", ["2020-01-20", "2020-04-01", "2020-07-01"]),
        ("2020-01-20", 10, ["2020-01-20", "2020-01-30", "2020-02-09"]),
        ("2020-01-20", "years", ["2020-01-20", "2021-01-01"]),
    ],
)
def test_windows_of_the_calendar(begin: str, every: Any, expected: list[str]) -> None:
    days = np.arange(np.datetime64("2020-01-01"), np.datetime64("2021-06-01")).astype(int)
    zeros = np.zeros(len(days), np.int32)
    facts = Facts.owning(zeros, zeros, zeros, days, days, zeros.astype(np.uint8))
    edges = window_edges(facts, Timeline.of(days, "day"), begin, every)
    assert edges[: len(expected)].astype("M8[D]").astype(str).tolist() == expected
    assert (edges[0], edges[-1]) == (np.datetime64(begin).astype(int), days[-1] + 1)
    assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"begin": 1980}, "outside"),
        ({"begin": 1990}, "between"),
        ({"every": "fortnight"}, "fortnight"),
        ({"every": "0"}, "stretch of time"),
        ({"every": "day"}, "too short"),
        ({"every": "year", "begin": 2011}, "between|outside"),
        ({"questions": 1}, "questions"),
        ({"out": "windows.csv"}, ".json"),
    ],
)
def test_hostile_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        backtest(world(), **options)


def test_sources_that_cannot_be_tested(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="different times"):
        backtest(splime.read([("a", "p", "b", 1990), ("b", "p", "c", 1990)], split="none"))
    run = small_run(small_graph(test=40), tmp_path / "run", splime.Vanilla())
    with pytest.raises(UsageError, match="give its facts"):
        backtest(run)


def test_an_interrupted_one_goes_on(found: Backtest, tmp_path: Path) -> None:
    out, asked = tmp_path / "windows.json", list[int]()

    def stop(_: str, done: int, *__: Any) -> None:
        asked.append(done)
        if done == 2 and len(asked) == 3:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"begin": 2000, "every": "2 years", "out": out, "progress": stop}
    with pytest.raises(KeyboardInterrupt):
        backtest(world(), **options)
    assert not out.exists()
    assert list(backtest(world(), **options)) == list(found)
    assert asked == [0, 1, 2, 2, 3, 4, 5]
    assert read_json(out) == json.loads(json.dumps(found.to_json() | {"source": "facts"}))
    assert [path.name for path in tmp_path.iterdir()] == ["windows.json"]


def test_the_command(tmp_path: Path) -> None:
    path, picture = tmp_path / "facts.parquet", tmp_path / "windows.png"
    splime.save(world(), path)
    done = call("backtest", path, "--from", "2006", "--every", "year", "--plot", picture)
    assert done.code == 0, done.err
    assert "2009" in done.out
    assert "recurrency" in done.out
    assert picture.read_bytes().startswith(b"\x89PNG")
    done = call("backtest", path, "--from", "2006", "--every", "2", "--json")
    shown = json.loads(done.out)
    assert [one["begin"] for one in shown["windows"]] == ["2006", "2008"]
    assert set(shown["windows"][0]["metrics"]) == set(FORECASTERS)
    wrong = call("backtest", path, "--every", "fortnight")
    assert wrong.code == 2
    assert "fortnight" in wrong.err


def test_a_picture_and_a_table(found: Backtest) -> None:
    assert len(plot_backtest(found).axes) == 2
    assert found.to_table().num_rows == len(found) * len(FORECASTERS)
    with pytest.raises(UsageError, match="no windows"):
        plot_backtest(Backtest("facts", []))
