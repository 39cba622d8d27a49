"""Evaluations of a run: what is kept of them, and what happens where nothing can be kept."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import splime
from splime.errors import UsageError
from splime.evaluation import Metrics, evaluate_triples, metrics, protocols
from splime.graph import TemporalGraph
from splime.io.files import locked
from splime.runs import PROTOCOLS, Run, evaluate, evaluating, evaluations, train
from splime.runs.evaluating import key
from tests.runs.small import call, small_run


def test_figures_accumulate(run: Run) -> None:
    assert evaluations(run) == []
    kept = [
        evaluate(run),
        evaluate(run, "triple"),
        evaluate(run, "predicate"),
        evaluate(run, split="valid"),
        evaluate(run, aggregate="max"),
        evaluate(run, ties="worst"),
        evaluate(run, "triple", filter="none"),
        evaluate(run, "triple", distinct=False),
    ]
    assert evaluations(run) == kept
    assert len({key(one) for one in kept}) == len(kept)
    again = evaluate(run, bootstrap=50, seed=1)
    assert again.metrics == kept[0].metrics
    assert evaluations(run) == [again, *kept[1:]]


def test_seconds_are_those_of_all_of_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """To open the model, and the bootstrap, which took more than half and were left out."""
    opened, measured = Run.scoring, metrics.measured

    def slowly(function: Callable[..., Any]) -> Callable[..., Any]:
        def slow(*given: Any, **more: Any) -> Any:
            time.sleep(0.3)
            return function(*given, **more)

        return slow

    monkeypatch.setattr(Run, "scoring", slowly(opened))
    monkeypatch.setattr(protocols, "measured", slowly(measured))
    began = time.perf_counter()
    assert 0.6 <= evaluate(run).seconds <= time.perf_counter() - began
    assert evaluate_triples(run.scorer, run.static).seconds >= 0.3


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ranks_match_the_metrics(run: Run, protocol: str) -> None:
    found = evaluate(run, protocol)
    stored = json.loads((run.path / "metrics.json").read_text(encoding="utf-8"))
    (name,) = stored
    ranks = pq.read_table(run.path / f"ranks-{name}.parquet")
    asked = ["predicate"] if protocol == "predicate" else ["object", "subject"]
    assert ranks.column_names == ["fact", *(f"{f}_{a}" for f in found.filters for a in asked)]
    facts = ranks["fact"].to_numpy()
    assert facts.max() < len(run.graph.test)
    if protocol != "triple":
        assert facts.tolist() == list(range(len(run.graph.test)))
    for filter in found.filters:
        columns = [ranks[f"{filter}_{a}"].to_numpy() for a in asked]
        figures = stored[name]["metrics"][filter]
        both = Metrics.of(np.stack(columns, axis=1))
        assert figures["both"]["mrr"] == pytest.approx(both.mrr)
        assert figures["both"]["queries"] == both.queries == found.queries
        for side, column in zip(asked, columns, strict=True):
            if side in figures:
                assert figures[side]["mrr"] == pytest.approx(Metrics.of(column).mrr)


def test_the_triples_are_those_that_were_trained_on(graph: TemporalGraph, tmp_path: Path) -> None:
    """Where repeated triples of train count, those of test do too."""
    run = small_run(graph, tmp_path / "run", distinct=False)
    expected = evaluate_triples(run.scorer, run.static, distinct=False)
    assert evaluate(run, "triple").metrics == expected.metrics


@pytest.mark.parametrize(
    ("protocol", "options", "message"),
    [
        ("facts", {}, r"no protocol 'facts'; there are fact, triple.*Did you mean fact\?"),
        ("fact", {"aggregate": "men"}, r"aggregate is one of .*Did you mean mean"),
        ("fact", {"ties": "wrst"}, "ties is one of mean, worst, best, not 'wrst'"),
        ("fact", {"split": "tset"}, "split is one of .*not 'tset'"),
        ("triple", {"filter": "intre"}, "intre"),
        ("fact", {"memory": 10}, "bytes of memory are too few"),
    ],
)
def test_wrong_options(run: Run, protocol: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        evaluate(run, protocol, **options)  # type: ignore[arg-type]
    assert not (run.path / "metrics.json").exists()


def test_two_at_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One waits until the other has written its figures; if that takes too long it says so."""
    with locked(run.path), monkeypatch.context() as patch:
        patch.setattr(evaluating, "_WAIT", 0.05)
        with pytest.warns(UserWarning, match="not kept: .*another process is working"):
            evaluate(run)
    assert evaluations(run) == []
    taken, release = Event(), Event()

    def other() -> None:
        with locked(run.path):
            taken.set()
            release.wait(10)

    thread = Thread(target=other)
    thread.start()
    assert taken.wait(10)
    Timer(0.3, release.set).start()
    evaluate(run)
    assert release.is_set()
    thread.join()
    assert len(evaluations(run)) == 1


def unwritable(path: Path) -> None:
    """Root may write everywhere, but not over a folder."""
    path.chmod(0o500)
    if os.access(path, os.W_OK):
        (path / "metrics.json").mkdir()


def test_a_folder_that_cannot_be_written(run: Run) -> None:
    expected = evaluate(run)
    (run.path / "metrics.json").unlink()
    unwritable(run.path)
    with pytest.warns(UserWarning, match="the metrics are not kept"):
        assert evaluate(run).metrics == expected.metrics
    done = call("evaluate", run.path, "--json")
    assert done.code == 0
    assert json.loads(done.out)["metrics"]["exact"]["both"]["mrr"] == pytest.approx(
        expected.metrics["exact"]["both"].mrr
    )
    assert done.err.startswith(f"the metrics are not kept: {run.path}")
    assert "Traceback" not in done.err


def test_time_aware_beats_vanilla(tmp_path: Path) -> None:
    """On the synthetic world, whose facts change with the time; docs/training.md has figures."""
    graph = splime.load("demo")
    found = {}
    for method in (splime.Vanilla(), splime.Split(grow=5)):
        run = train(
            graph, method, tmp_path / type(method).__name__, model="complex", dimension=16,
            epochs=10, batch_size=500, validate_every=0, seed=0, device="cpu",
        )  # fmt: skip
        found[type(method).__name__] = evaluate(run).metrics
    for filter in ("exact", "overlap"):
        better, worse = (found[name][filter]["both"].mrr for name in ("Split", "Vanilla"))
        assert better > worse + 0.08
