"""`splime reproduce`, as it is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from splime.experiments import studies
from tests.experiments.small import STUDY, save_small
from tests.runs.small import call

ROOT = Path(__file__).parents[2]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A place where `small` is a table that takes seconds; returns its data."""
    monkeypatch.setattr(studies, "STUDIES", {**studies.STUDIES, "small": STUDY})
    monkeypatch.chdir(tmp_path)
    return save_small(tmp_path / "data")


def test_stored_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = call("reproduce", "main", "--row", "wikidata12k merge")
    assert result.code == 0
    assert "(.358)" in result.out
    assert "│ Vanilla" not in result.out
    assert "yago11k" not in result.out
    questions = [
        call("reproduce", "predicates", "--row", row).out for row in ("yago11k", "icews14")
    ]
    assert ["Marie Curie" in out for out in questions] == [True, False]
    printed = call("reproduce", "filters", "--format", "markdown")
    assert "| icews14 | RotatE (TransE) | " in printed.out
    for page, name in (("paper", "document"), ("rivals", "rivals-document")):
        assert call("reproduce", name).out == (ROOT / f"docs/{page}.md").read_text("utf-8")


def test_nothing_is_run_unasked(small: Path, tmp_path: Path) -> None:
    result = call("reproduce", "small", "--data", small)
    assert result.code == 0
    assert "not run yet: 4 of the trainings; --run runs them" in result.err
    assert not (tmp_path / "reproduced").exists()


def test_quick_then_all(small: Path, tmp_path: Path) -> None:
    quick = call("reproduce", "small", "--quick", "--data", small, "--device", "cpu")
    assert quick.code == 0
    assert "Vanilla" in quick.out
    assert "Split" not in quick.out
    assert "one seed of these rows" in quick.err
    path = tmp_path / "reproduced" / "small.json"
    [record] = json.loads(path.read_text()).values()
    assert record["command"] == "splime reproduce small --run"
    whole = call("reproduce", "small", "--run", "--data", small, "--device", "cpu")
    assert whole.code == 0
    assert "Split" in whole.out
    assert "not run yet" not in whole.err
    stored = json.loads(path.read_text())
    assert len(stored) == 4
    assert record in stored.values()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mian"], "there is no table 'mian'; there are datasets"),
        (["main", "--row", "yoga"], "no row of main contains 'yoga'"),
        (["main", "--quick", "--row", "yago"], "--quick chooses the rows itself"),
        (["datasets", "--quick"], "--quick chooses the rows itself"),
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
    result = call("reproduce", *arguments)
    assert result.code == 2
    assert message in result.err
    assert not any(tmp_path.iterdir())


def test_damaged_results(tmp_path: Path) -> None:
    (tmp_path / "main.json").write_text("{")
    result = call("reproduce", "main", "--results", tmp_path)
    assert result.code == 3
    assert "main.json: cannot be read" in result.err


def test_results_are_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = call("reproduce", "main", "--results", tmp_path / "file")
    assert result.code == 2
    assert "results are kept in a folder" in result.err


def test_tsne_without_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = call("reproduce", "tsne", "--runs", tmp_path, "--figures", tmp_path / "figures")
    assert result.code != 0
    assert "wikidata-merge" in result.err
    assert not (tmp_path / "figures").exists()


def test_datasets(published: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPLIME_DATA", str(published))
    monkeypatch.chdir(tmp_path)
    result = call("reproduce", "duplicates", "--format", "markdown")
    assert (
        "| test triples in train | 1,042 (27.10 %) | 0 (0.00 %) | 3,499 (47.16 %) |" in result.out
    )
    assert not any(tmp_path.iterdir())
