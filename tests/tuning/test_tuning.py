"""The search itself: what it leaves, that it never uses test, that it resumes."""

from __future__ import annotations

import csv
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splime.errors import DataError, SplimeError, UsageError
from splime.graph import Facts, TemporalGraph
from splime.io.files import locked
from splime.plans import read_plan
from splime.runs import Interrupted, train
from splime.tuning import TuningResult, search, tune
from tests.runs.small import small_graph

pytestmark = pytest.mark.system

SMALL: dict[str, Any] = {
    "trials": 4,
    "parallel": 1,
    "methods": ["vanilla", "split"],
    "models": ["distmult"],
    "dimension": 4,
    "epochs": 2,
    "validate_every": 1,
    "batch_size": 32,
    "device": "cpu",
}


def small_search(out: Path, graph: TemporalGraph | None = None, **changes: Any) -> TuningResult:
    return tune(graph or small_graph(), out, **{**SMALL, **changes})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> TuningResult:
    return small_search(tmp_path_factory.mktemp("tuned") / "search", trials=6)


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """One is drawn, by `finished`; it takes longer than all trials of a small search."""
    monkeypatch.setattr("splime.tuning.search.save_picture", lambda *_: None)
    monkeypatch.setattr("splime.tuning.search.plot_importances", lambda *_, **__: None)


def test_what_it_leaves(finished: TuningResult) -> None:
    out = finished.out
    assert [one.number for one in finished.trials] == list(range(6))
    names = {path.name for path in out.iterdir()}
    assert names == {
        "best.toml", "data.parquet", "importance.png", "journal.log",
        "search.toml", "trials", "trials.csv",
    }  # fmt: skip
    for one in finished.trials:
        left = {path.name for path in (out / "trials" / f"{one.number:03}").iterdir()}
        assert left <= {"config.toml", "about.json", "history.csv"}
    with (out / "trials.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["valid_mrr"]) for row in rows] == [one.valid for one in finished.trials]
    assert {row["method"] for row in rows} <= {"vanilla", "split"}
    assert "the best of 6 trials" in finished._repr_html_()
    assert f"valid MRR {finished.best.valid:.3f}" in repr(finished)
    best = finished.best
    assert best.valid == max(one.valid or 0.0 for one in finished.trials if one.state == "finished")
    assert finished.ranking()[0] is best


def test_the_best_is_what_it_says(finished: TuningResult, tmp_path: Path) -> None:
    """The plan trains what the trial trained, to the same metrics."""
    plan = read_plan(finished.out / "best.toml")
    assert plan.to_toml() == finished.plan.to_toml()
    (planned,) = plan.runs
    known = replace(small_graph(), test=Facts.empty())
    settings = plan.settings_of(planned)
    run = train(known, planned.method, tmp_path / "run", device="cpu", **settings)
    assert max(one.valid or 0.0 for one in run.history) == finished.best.valid
    assert plan.data == str((finished.out / "data.parquet").absolute())


def same_trials(one: TuningResult, other: TuningResult) -> bool:
    def outcomes(tuned: TuningResult) -> list[object]:
        return [(o.state, o.valid, o.chosen, o.same_as, o.epochs) for o in tuned.trials]

    return outcomes(one) == outcomes(other)


def test_the_same_seed_gives_the_same_search(finished: TuningResult, tmp_path: Path) -> None:
    assert same_trials(small_search(tmp_path / "again", trials=6), finished)
    assert not same_trials(small_search(tmp_path / "other", trials=6, seed=1), finished)


def test_test_is_not_used(finished: TuningResult, tmp_path: Path) -> None:
    """With other facts in test, or none, it is the same search: even the folder may be shared."""
    graph = small_graph()
    rng = np.random.default_rng(0)
    size = len(graph.test)
    poisoned = Facts(
        rng.integers(0, len(graph.entities), size).astype(np.int32),
        rng.integers(0, len(graph.predicates), size).astype(np.int32),
        rng.integers(0, len(graph.entities), size).astype(np.int32),
        graph.test.begin,
        graph.test.end,
        graph.test.unknown,
    )
    for name, test in (("poisoned", poisoned), ("none", Facts.empty())):
        tuned = small_search(tmp_path / name, replace(graph, test=test), trials=6)
        assert same_trials(tuned, finished)
        own = {p.relative_to(tuned.out) for p in tuned.out.rglob("history.csv")}
        for path in own:
            assert (tuned.out / path).read_text() == (finished.out / path).read_text()
        for name in ("search.toml", "trials.csv"):
            strip = [line.split(",")[:4] for line in (tuned.out / name).read_text().splitlines()]
            other = [line.split(",")[:4] for line in (finished.out / name).read_text().splitlines()]
            assert strip == other


class StopAfter:
    """Says stop after having been asked so often."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("asked", [0, 7, 16])
def test_it_resumes(finished: TuningResult, tmp_path: Path, asked: int) -> None:
    """Stopped here and there, it ends with the same trials as one that was never stopped."""
    out = tmp_path / "search"
    times = 0
    tuned = None
    while tuned is None:
        with suppress(Interrupted):
            tuned = small_search(out, trials=6, stop=StopAfter(asked + 5 * times))
        assert (out / "trials.csv").exists()
        times += 1
    assert times > 1
    assert same_trials(tuned, finished)


def test_finished_trials_are_not_repeated(
    finished: TuningResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shutil.copytree(finished.out, tmp_path / "search")
    with monkeypatch.context() as patch:
        patch.setattr(search, "train", None)
        assert same_trials(small_search(out, trials=6), finished)
        assert same_trials(small_search(out, trials=2), finished)
    more = small_search(out, trials=7)
    assert more.trials[:6] == finished.trials
    assert len(more.trials) == 7


def test_a_journal_that_was_cut_short(finished: TuningResult, tmp_path: Path) -> None:
    out = shutil.copytree(finished.out, tmp_path / "search")
    journal = out / "journal.log"
    journal.write_bytes(journal.read_bytes() + b'{"op_code": 4, "wor')
    assert len(small_search(out, trials=7).trials) == 7
    journal.write_text("nonsense\nmore\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"journal\.log: cannot be read"):
        small_search(out, trials=7)


def test_a_journal_without_an_end_is_an_error(finished: TuningResult, tmp_path: Path) -> None:
    out = shutil.copytree(finished.out, tmp_path / "search")
    os.truncate(out / "journal.log", 1 << 40)
    with pytest.raises(DataError, match=r"journal\.log: has 1,099,511,627,776 bytes"):
        small_search(out, trials=7)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 3}, "search.seed is 0, not 3"),
        ({"epochs": 3}, "fixed.epochs is 2, not 3"),
        ({"methods": ["vanilla"]}, "methods.split is"),
        ({"space": {"settings": {"n3": 0.1}}}, "models.distmult is"),
    ],
)
def test_other_arguments_are_refused(
    finished: TuningResult, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    out = shutil.copytree(finished.out, tmp_path / "search")
    with pytest.raises(UsageError, match=f"holds another search .*{message}"):
        small_search(out, **changes)


def test_folders_that_are_not_its_own(finished: TuningResult, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds another search \(data\.train is 87"):
        small_search(finished.out, small_graph(1))
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"holds 'notes\.txt' and no search"):
        small_search(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"notes.txt"}
    busy = tmp_path / "busy"
    with locked(busy), pytest.raises(UsageError, match="another process"):
        small_search(busy)


def test_what_is_the_same_is_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[Path] = []

    def counting(*arguments: Any, **options: Any) -> Any:
        trained.append(arguments[2])
        return train(*arguments, **options)

    monkeypatch.setattr(search, "train", counting)
    space = {"settings": {"learning_rate": 0.1, "n3": 0.1, "smooth": 0.0}}
    # Cuts count, not the parameters that led to them.
    space["method"] = {"split": {"predicates": [5, 6], "by": "time"}}  # type: ignore[dict-item]
    tuned = small_search(tmp_path / "search", trials=10, space=space)
    assert 2 <= len(trained) <= 3
    again = [one for one in tuned.trials if one.same_as is not None]
    assert len(again) == 10 - len(trained)
    for one in again:
        assert one.valid == tuned.trials[one.same_as or 0].valid
    assert len(tuned.ranking()) <= 3


def test_trials_that_fail(tmp_path: Path) -> None:
    space = {"method": {"split": {"predicates": [6, 5_000], "by": "time"}}}
    tuned = small_search(tmp_path / "some", trials=8, methods=["split"], space=space)
    failed = [one for one in tuned.trials if one.state == "failed"]
    assert failed
    assert all("cannot reach 5,000 predicates" in (one.error or "") for one in failed)
    assert tuned.best.chosen["split.predicates"] == 6
    none = {"method": {"split": {"predicates": 5_000}}}
    with pytest.raises(SplimeError, match=r"none of 4 trials was finished; .*cannot reach 5,000"):
        small_search(tmp_path / "all", methods=["split"], space=none)
    assert not (tmp_path / "all" / "best.toml").exists()


def test_the_worse_half_is_stopped_early(tmp_path: Path) -> None:
    reported: list[tuple[object, ...]] = []
    tuned = small_search(
        tmp_path / "search",
        trials=10,
        epochs=4,
        progress=lambda *update: reported.append(update),
    )
    pruned = [one for one in tuned.trials if one.state == "pruned"]
    assert pruned
    assert all(one.epochs is not None and 2 <= one.epochs < 4 for one in pruned)
    assert reported[0] == ("trials", 0, 10, "")
    assert reported[-1] == ("trials", 10, 10, f"best valid MRR {tuned.best.valid:.3f}")


@pytest.mark.system
def test_processes(tmp_path: Path) -> None:
    """Two real processes share the trials; asked to stop, they keep what they have."""
    out = tmp_path / "search"
    changes: dict[str, Any] = {"methods": ["split"], "epochs": 30}
    reported: list[int] = []

    def progress(what: str, done: int, *_: object) -> None:
        reported.append(done)

    def stop() -> bool:
        return reported[-1] >= 2  # the others are in the middle of something, or not begun

    with pytest.raises(Interrupted, match="stopped after "):
        small_search(out, parallel=2, trials=50, stop=stop, progress=progress, **changes)
    assert reported == sorted(reported)
    tuned = small_search(out, trials=4, **changes)
    assert len(tuned.trials) < 20
    assert [one.number for one in tuned.trials] == list(range(len(tuned.trials)))
    assert all(one.state in ("finished", "pruned") for one in tuned.trials)


def test_nonsense(tmp_path: Path) -> None:
    graph = small_graph()
    for changes, message in (
        ({"trials": 0}, "trials must be at least 1"),
        ({"parallel": 0}, "processes must be at least 1"),
        ({"device": "gpu"}, "device is auto, cpu or cuda"),
        ({"graph": replace(graph, valid=Facts.empty())}, "valid has no facts"),
        ({"graph": replace(graph, train=Facts.empty())}, "train has no facts"),
    ):
        with pytest.raises(UsageError, match=message):
            small_search(tmp_path / "search", **changes)
    assert not (tmp_path / "search").exists()


def test_without_optuna(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(SplimeError, match=r"pip install 'splime-kg\[tune\]'"):
        small_search(tmp_path / "search")
