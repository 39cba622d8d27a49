"""`python -m experiments`, as it is called; and `splime reproduce`, which names it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import splime
from experiments import studies
from tests.experiments.small import STUDY, call_experiments, save_small
from tests.runs.small import call

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A place where `small` is a table that takes seconds; returns its data."""
    monkeypatch.setattr(studies, "STUDIES", {**studies.STUDIES, "small": STUDY})
    monkeypatch.chdir(tmp_path)
    return save_small(tmp_path / "data")


def test_stored_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # results are found wherever the command is called
    result = call_experiments("main", "--row", "wikidata12k merge")
    assert result.code == 0
    assert "(.358)" in result.out
    assert "│ Vanilla" not in result.out
    assert "yago11k" not in result.out
    questions = [call_experiments("predicates", "--row", row).out for row in ("yago11k", "icews14")]
    assert ["Marie Curie" in out for out in questions] == [True, False]
    printed = call_experiments("filters", "--format", "markdown")
    assert "| icews14 | RotatE (TransE) | " in printed.out
    for name, page in studies.PAGES.items():
        assert call_experiments(name).out == (ROOT / f"docs/{page}.md").read_text("utf-8")


def test_rivals_fact_by_fact(tmp_path: Path) -> None:
    """Of nothing there is nothing to compare; a dataset without rivals is an error."""
    result = call_experiments("rivals-facts", "--results", tmp_path)
    assert (result.code, result.out) == (0, "0 differences have p-values\n")
    wrong = call_experiments("rivals-facts", "--measure", "demo", "--results", tmp_path)
    assert wrong.code != 0
    assert "demo" in wrong.err
    assert "yago11k" in wrong.err
    shown = call_experiments("rivals-facts", "--format", "markdown")
    assert "reverse (7.4 %)" in shown.out


def test_nothing_is_run_unasked(small: Path, tmp_path: Path) -> None:
    result = call_experiments("small", "--data", small, "--results", tmp_path / "results")
    assert result.code == 0
    assert "not run yet: 4 of the trainings; --run runs them" in result.err
    assert not (tmp_path / "results").exists()


def test_quick_then_all(small: Path, tmp_path: Path) -> None:
    quick = call_experiments("small", "--quick", "--data", small, "--device", "cpu")
    assert quick.code == 0
    assert "Vanilla" in quick.out
    assert "Split" not in quick.out
    assert "one seed of these rows" in quick.err
    path = tmp_path / "reproduced" / "small.json"
    [record] = json.loads(path.read_text()).values()
    assert record["command"] == "python -m experiments small --run"
    whole = call_experiments(
        "small", "--run", "--data", small, "--device", "cpu", "--results", "reproduced"
    )
    assert whole.code == 0
    assert "Split" in whole.out
    assert "not run yet" not in whole.err
    stored = json.loads(path.read_text())
    assert len(stored) == 4
    assert record in stored.values()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mian"], "No such command 'mian'"),
        (["main", "--row", "yoga"], "no row of main contains 'yoga'"),
        (["main", "--quick", "--row", "yago"], "--quick chooses the rows itself"),
        (["datasets", "--quick"], "No such option: --quick"),
        (["main", "--format", "latex"], "there is no format 'latex'; there are table, markdown"),
        (["main", "--run", "--device", "gpu"], "device is auto, cpu or cuda, not 'gpu'"),
        (["main", "--processes", "0"], "processes must be at least 1"),
        (["fair", "--figures", "here"], "fair has no figures; main, grid, tsne, rivals have"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call_experiments(*arguments)
    assert result.code == 2
    assert message in result.err
    assert not any(tmp_path.iterdir())


def test_damaged_results(tmp_path: Path) -> None:
    (tmp_path / "main.json").write_text("{")
    result = call_experiments("main", "--results", tmp_path)
    assert result.code == 3
    assert "main.json: cannot be read" in result.err


def test_results_are_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = call_experiments("main", "--results", tmp_path / "file")
    assert result.code == 2
    assert "results are kept in a folder" in result.err


def test_tsne_without_runs(tmp_path: Path) -> None:
    result = call_experiments("tsne", "--runs", tmp_path, "--figures", tmp_path / "figures")
    assert result.code != 0
    assert "wikidata-merge" in result.err
    assert not (tmp_path / "figures").exists()


def test_datasets(published: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPLIME_DATA", str(published))
    monkeypatch.chdir(tmp_path)
    result = call_experiments("duplicates", "--format", "markdown")
    assert (
        "| test triples in train | 1,042 (27.10 %) | 0 (0.00 %) | 3,499 (47.16 %) |" in result.out
    )
    assert not any(tmp_path.iterdir())


def test_a_world(tmp_path: Path) -> None:
    path = tmp_path / "world.parquet"
    made = call_experiments("world", path, "--facts", 1_000, "--seed", 7)
    assert made.code == 0
    assert "memberOf changes in 1971, 1989" in made.out
    assert len(splime.load(path)) == 1_000
    again = call_experiments("world", path)
    assert again.code == 2
    assert "exists" in again.err
    assert call_experiments("world", tmp_path / "small.parquet", "--facts", 10).code == 2


@pytest.mark.parametrize("arguments", [(), ("main", "--row", "yago11k vanilla", "--run")])
def test_the_package_names_the_clone(arguments: tuple[str, ...]) -> None:
    result = call("reproduce", *arguments)
    assert (result.code, result.out) == (2, "")
    assert "a clone of the repository makes them: python -m experiments" in result.err
    assert shlex.join(arguments) in result.err
