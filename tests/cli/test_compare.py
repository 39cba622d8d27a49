"""`splime compare`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import splime
from tests.runs.small import call, small_graph, small_run


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place, graph = tmp_path_factory.mktemp("trained"), small_graph()
    small_run(graph, place / "split")
    small_run(graph, place / "vanilla", splime.Vanilla())
    return place


@pytest.fixture
def runs(trained: Path, tmp_path: Path) -> list[Path]:
    place = shutil.copytree(trained, tmp_path / "runs")
    return [place / "split", place / "vanilla"]


def test_a_table(runs: list[Path]) -> None:
    done = call("compare", *runs)
    assert (done.code, done.err) == (0, "")
    for shown in ("test: protocol fact, filter exact", "split", "vanilla", "(grow 2)", "15 facts"):
        assert shown in done.out
    assert (runs[0] / "ranks-fact-test-mean-mean.parquet").exists()


def test_formats_and_files(runs: list[Path], tmp_path: Path) -> None:
    printed = json.loads(call("compare", *runs, "--format", "json", "--samples", "500").out)
    assert {row["name"] for row in printed["rows"]} == {"split", "vanilla"}
    assert printed["samples"] == 500
    assert call("compare", *runs, "--format", "latex").out.startswith("% \\usepackage{booktabs}")
    table, picture = tmp_path / "table.md", tmp_path / "picture.svg"
    done = call("compare", *runs, "--out", table, "--plot", picture, "--split", "valid")
    assert done.code == 0
    assert "valid: protocol fact" in done.out
    assert f"written to {table}" in done.out.replace("\n", "")
    assert "valid: protocol fact" in table.read_text(encoding="utf-8")
    assert picture.read_text(encoding="utf-8").startswith("<?xml")


def test_protocol_triple(runs: list[Path]) -> None:
    done = call("compare", *runs, "--protocol", "triple", "--filter", "intra")
    assert done.code == 0
    assert "leak filter intra" in done.out
    assert "every transform another test set" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--protocol", "facts"], "Did you mean fact?"),
        (["--filter", "exat"], "Did you mean exact?"),
        (["--format", "tex"], "there is no format 'tex'; there are table, markdown, latex, json"),
        (["--plot", "a.gif"], "pictures are .png"),
        (["--samples", "5"], "--samples 40"),
        (["--samples", "-1"], "samples must be at least 1"),
        (["--device", "gpu"], "device is auto, cpu or cuda"),
    ],
)
def test_wrong_arguments(runs: list[Path], arguments: list[str], message: str) -> None:
    done = call("compare", *runs, *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert not list(runs[0].glob("ranks-*"))


def test_what_is_no_run(runs: list[Path], tmp_path: Path) -> None:
    assert call("compare").code == 2
    done = call("compare", runs[0], tmp_path / "nothing")
    assert (done.code, done.out) == (2, "")
    assert "there is no such run, file, folder or dataset" in done.err
    done = call("compare", *runs, "--out", tmp_path / "no" / "such" / "table.md")
    assert done.code == 1
    assert "cannot be written" in done.err


def test_damaged_ranks(runs: list[Path]) -> None:
    call("compare", *runs)
    (runs[1] / "ranks-fact-test-mean-mean.parquet").write_bytes(b"PAR1")
    done = call("compare", *runs)
    assert (done.code, done.out) == (3, "")
    assert "remove it, and they are made again" in done.err
