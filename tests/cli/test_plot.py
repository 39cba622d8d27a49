"""`splime plot`."""

from __future__ import annotations

from pathlib import Path

import pytest

import splime
from splime.reporting.showing import PICTURES
from splime.runs import evaluate
from tests.runs.small import call, small_graph, small_run

pytestmark = pytest.mark.system

_MAGIC = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs; the second was not evaluated."""
    out, graph = tmp_path_factory.mktemp("runs"), small_graph()
    evaluate(small_run(graph, out / "fine", splime.Timestamp(), epochs=2))
    small_run(graph, out / "random", splime.RandomSplit(predicates=9), epochs=2)
    return out


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_one_picture(folder: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"picture{suffix}"
    arguments = ("--what", "predicate", "--predicate", "p1", "--out", out)
    done = call("plot", folder / "fine", folder / "random", *arguments)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"written to {out}\n"
    assert out.read_bytes().startswith(_MAGIC[suffix])
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_all_pictures(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "pictures"
    done = call("plot", folder / "fine", "--out", out)
    assert (done.code, done.err) == (0, "")
    assert {path.name for path in out.iterdir()} == {
        f"{name}.png" for name in PICTURES if name != "costs"
    }
    for shown in ("facts.png", "t-SNE of one predicate over time", "skipped: only changepoint"):
        assert shown in done.out
    again = call("plot", folder / "random", "--out", out)
    assert again.code == 0
    said = " ".join(again.out.replace("│", " ").split())
    assert "was not evaluated yet; first: splime evaluate" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "a.png"], "a.png: all pictures go to a folder; for a file choose one of them"),
        (["--what", "facts", "--out", "a.gif"], "a.gif: pictures are .png, .svg, .pdf files"),
        (["--what", "facts", "--out", "pictures"], "pictures: pictures are .png, .svg, .pdf"),
        (["--what", "fcts", "--out", "a.png"], "Did you mean facts or"),
        (["--what", "predicate", "--predicate", "p11", "--out", "a.png"], "Did you mean p1"),
        (["--predicate", "p11", "--out", "pictures"], "Did you mean p1"),
        (["--what", "facts", "--predicate", "p1", "--out", "a.png"], "is not of one predicate"),
        (["--what", "costs", "--out", "a.png"], "these cuts are of timestamp"),
    ],
)
def test_wrong_arguments(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("plot", folder / "fine", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "Traceback" not in done.err
    assert not list(tmp_path.iterdir())


def test_what_is_no_run(folder: Path, tmp_path: Path) -> None:
    done = call("plot", tmp_path / "nowhere", "--out", tmp_path / "pictures")
    assert done.code == 2
    assert "there is no such run" in done.err
    done = call("plot", folder / "random", "--what", "strata", "--out", tmp_path / "a.png")
    assert done.code == 2
    assert f"first: splime evaluate {folder / 'random'}" in done.err
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    done = call("plot", folder / "fine", "--out", tmp_path / "file")
    assert (done.code, "all pictures go to a folder" in done.err) == (2, True)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_help() -> None:
    shown = " ".join(call("plot", "--help").out.replace("│", " ").split())
    assert "Example: splime plot runs/merge runs/random --what predicate" in shown
    for word in (*PICTURES, "all", "--predicate NAME", "FILE_OR_DIR"):
        assert word in shown, word
