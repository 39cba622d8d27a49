"""Two at once that would write the same folder: one works, the other one says so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import splime
from splime.errors import UsageError
from splime.exports import export
from splime.io import files
from splime.io.files import LOCK, check_empty, content, locked, new_folder
from splime.reporting.style import save_pictures
from splime.runs import combine, combining
from splime.streaming import transform_parts
from tests.runs.small import small_graph, small_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("members")
    return [
        small_run(small_graph(), folder / str(seed), seed=seed, epochs=1).path for seed in (0, 1)
    ]


def anything() -> None:
    """Replace whatever is there."""


def test_two_combinations_into_one_folder(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chooses = combining.choose_weights
    second: list[str] = []

    def choose_while_another_begins(*given: Any) -> Any:
        monkeypatch.setattr(combining, "choose_weights", chooses)
        with pytest.raises(UsageError) as refused:
            combine(runs[::-1], tmp_path / "out")
        second.append(str(refused.value))
        return chooses(*given)

    monkeypatch.setattr(combining, "choose_weights", choose_while_another_begins)
    run = combine(runs, tmp_path / "out")
    assert "another process is working in this folder" in second[0]
    assert [Path(name) for name in run.config["members"]["names"]] == runs
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert not (run.path / LOCK).exists()


def writers(runs: list[Path], facts: Path) -> dict[str, Callable[[Path], object]]:
    graph = small_graph()
    static = splime.Vanilla().fit_transform(graph)
    return {
        "combine": lambda out: combine(runs, out),
        "export": lambda out: export(static, out, overwrite=True),
        "transform": lambda out: splime.transform(graph, "vanilla", out=out),
        "stream": lambda out: splime.transform(facts, "vanilla", out=out, stream=True),
        "parts": lambda out: transform_parts(facts, out, splime.Vanilla(), overwrite=True),
        "train": lambda out: splime.train(graph, None, out, model="latest"),
        "tune": lambda out: splime.tune(graph, out, trials=1),
        "run": lambda out: splime.run(graph, out),
        "plot": lambda out: save_pictures({}, out),
    }


NAMES = ["combine", "export", "transform", "stream", "parts", "train", "tune", "run", "plot"]


@pytest.mark.parametrize("name", NAMES)
def test_what_writes_a_folder_waits_for_nobody(runs: list[Path], tmp_path: Path, name: str) -> None:
    facts = splime.save(small_graph(), tmp_path / "facts.parquet")
    out = tmp_path / "out"
    with locked(out), pytest.raises(UsageError, match="another process is working in this folder"):
        writers(runs, facts)[name](out)
    assert not out.exists()


@pytest.mark.parametrize("name", ["combine", "export", "transform", "stream"])
def test_what_came_in_between_stays(
    runs: list[Path], tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written by something that knows no lock, while the work is done."""
    out, precious = tmp_path / "out", tmp_path / "out" / "precious.txt"
    facts = splime.save(small_graph(), tmp_path / "facts.parquet")
    makes = Path.mkdir

    def make(path: Path, *given: Any, **options: Any) -> None:
        makes(path, *given, **options)
        if path.name.startswith(".out.") and not precious.exists():
            precious.write_text("precious", encoding="utf-8")

    monkeypatch.setattr(Path, "mkdir", make)
    with pytest.raises(UsageError, match="out: "):
        writers(runs, facts)[name](out)
    assert precious.read_text(encoding="utf-8") == "precious"
    assert content(out) == [precious]


def test_a_folder_is_locked_until_it_has_its_place(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with new_folder(out, anything) as beside:
        (beside / "whole").touch()
        with pytest.raises(UsageError, match="another process"), locked(out):
            pass
        assert content(out) == []
    assert [path.name for path in out.iterdir()] == ["whole"]


def test_what_comes_last_of_all_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"

    def write_theirs(_: Path) -> None:
        (out / "theirs").write_text("theirs")

    monkeypatch.setattr(files, "_sync", write_theirs)  # which takes a while where files are large
    with (
        pytest.raises(UsageError, match="is there already"),
        new_folder(out, partial(check_empty, out)) as beside,
    ):
        (beside / "ours").write_text("ours")
    assert [path.name for path in out.iterdir()] == ["theirs"]


def test_the_new_folder_is_locked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the moment that it is there, until all is done."""
    out, refused = tmp_path / "out", threading.Event()
    rename = Path.rename

    def look(path: Path, target: Path) -> Path:
        renamed = rename(path, target)
        if path.suffix == ".part" and target == out:
            with pytest.raises(UsageError, match="another process"), locked(out):
                pass
            refused.set()
        return renamed

    monkeypatch.setattr(Path, "rename", look)
    with new_folder(out, anything) as beside:
        (beside / "whole").touch()
    assert refused.is_set()
    with locked(out):
        assert content(out) == [out / "whole"]
