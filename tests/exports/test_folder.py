"""Folders appear as a whole, or not at all; nothing is overwritten without being told."""

from __future__ import annotations

from pathlib import Path

import pytest

import splime
from splime.errors import SplimeError, UsageError
from splime.exports import FORMATS, Format, check_folder, export
from splime.methods import Timestamp, Vanilla
from splime.static import StaticGraph
from tests.exports.readers import same
from tests.exports.statics import one_fact


@pytest.fixture
def static() -> StaticGraph:
    return Timestamp().fit_transform(
        splime.read([("a", "p", "b", 1990, 1995), ("b", "p", "c", 1995, 1996)], split="none")
    )


@pytest.fixture
def other() -> StaticGraph:
    return Vanilla().fit_transform(one_fact())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_unknown_format(static: StaticGraph, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no format 'libkg'.* Did you mean libkge"):
        export(static, tmp_path / "out", "libkg")


def test_an_error_in_the_middle_leaves_nothing(
    static: StaticGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(static: StaticGraph, folder: Path) -> None:
        (folder / "train.txt").write_text("a\tp")
        raise KeyboardInterrupt

    monkeypatch.setattr("splime.exports.FORMATS", {**FORMATS, "tsv": Format(half, ())})
    with pytest.raises(KeyboardInterrupt):
        export(static, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_the_middle_leaves_what_was_there(
    static: StaticGraph, other: StaticGraph, tmp_path: Path
) -> None:
    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    export(static, tmp_path / "out")
    before = contents(tmp_path / "out")
    with pytest.raises(SplimeError, match=r"out: cannot be written: .*No space left"):
        export(other, tmp_path / "out", overwrite=True, also=full)
    assert contents(tmp_path / "out") == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failing_rename_puts_the_old_folder_back(
    static: StaticGraph, other: StaticGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(static, tmp_path / "out")
    before = contents(tmp_path / "out")
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.name.endswith(".part"):
            raise OSError("refused")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(SplimeError, match="cannot be written: refused"):
        export(other, tmp_path / "out", overwrite=True)
    assert contents(tmp_path / "out") == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_existing_folder_is_refused(static: StaticGraph, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"not empty.*overwrite=True"):
        export(static, tmp_path)
    with pytest.raises(UsageError, match=r"not empty.*overwrite=True"):
        check_folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_empty_or_missing_folder_is_fine(static: StaticGraph, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    export(static, tmp_path / "empty")
    export(static, tmp_path / "not" / "yet" / "there")
    assert same(static, tmp_path / "empty", "tsv")
    assert same(static, tmp_path / "not" / "yet" / "there", "tsv")


@pytest.mark.parametrize("format", FORMATS)
def test_overwriting(static: StaticGraph, other: StaticGraph, tmp_path: Path, format: str) -> None:
    export(static, tmp_path / "out", also=lambda folder: (folder / "segmentation.json").touch())
    files = export(other, tmp_path / "out", format, overwrite=True)
    assert sorted(files) == sorted((tmp_path / "out").iterdir())
    assert same(other, tmp_path / "out", format)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_no_export_wrote_is_never_replaced(static: StaticGraph, tmp_path: Path) -> None:
    for name in ("thesis.tex", "train.txt"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "valid.txt").touch()
        (folder / name).mkdir() if name == "train.txt" else (folder / name).touch()
        with pytest.raises(UsageError, match=f"holds '{name}', which no export writes"):
            export(static, folder, overwrite=True)
        assert len(list(folder.iterdir())) == 2


def test_a_file_is_no_folder(static: StaticGraph, tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="out: this is a file"):
            export(static, tmp_path / "out", overwrite=overwrite)


def test_a_folder_made_by_somebody_else_meanwhile(static: StaticGraph, tmp_path: Path) -> None:
    def meanwhile(folder: Path) -> None:
        export(static, tmp_path / "out" / "inner")

    with pytest.raises(UsageError, match="not empty"):
        export(static, tmp_path / "out", also=meanwhile)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_target_of_a_link_is_replaced(
    static: StaticGraph, other: StaticGraph, tmp_path: Path
) -> None:
    export(static, tmp_path / "out")
    (tmp_path / "link").symlink_to("out")
    files = export(other, tmp_path / "link", overwrite=True)
    assert files[0].parent == tmp_path / "link"
    assert (tmp_path / "link").is_symlink()
    assert same(other, tmp_path / "out", "tsv")


def test_further_files(static: StaticGraph, tmp_path: Path) -> None:
    files = export(
        static, tmp_path / "out", also=lambda folder: (folder / "more.json").write_text("{}")
    )
    assert (tmp_path / "out" / "more.json") in files
    assert (tmp_path / "out" / "more.json").read_text() == "{}"
