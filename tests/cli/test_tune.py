"""`splime tune`."""

from __future__ import annotations

from pathlib import Path

import pytest

import splime
from splime.plans import read_plan
from tests.runs.small import call, small_graph

SMALL = (
    "--trials", "3", "--processes", "1", "--methods", "vanilla, split", "--models", "distmult",
    "--dimension", "4", "--epochs", "2", "--validate-every", "1", "--device", "cpu",
    "--batch-size", "32",
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "small.parquet"
    splime.save(small_graph(), path)
    return path


def test_from_end_to_end(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "search"
    done = call("tune", data, "--out", out, *SMALL)
    said = "facts: read 120 rows, kept 117, dropped 3: 3 × duplicate\n"
    assert (done.code, done.err) == (0, said)
    assert "the best of 3 trials (3 finished)" in done.out
    assert "valid MRR" in done.out
    assert f"next: splime run {out / 'best.toml'} --out DIR" in done.out
    plan = read_plan(out / "best.toml")
    assert plan.data == str(data)
    assert plan.training == {
        "dimension": 4,
        "epochs": 2,
        "validate_every": 1,
        "batch_size": 32,
        "seed": 0,
    }
    again = call("tune", data, "--out", out, *SMALL)
    assert again.out == done.out
    other = call("tune", data, "--out", out, *SMALL, "--dimension", "5")
    assert (other.code, other.out) == (2, "")
    assert "holds another search (fixed.dimension is 4, not 5)" in other.err


def test_reading_options_are_in_the_plan(tmp_path: Path) -> None:
    facts = tmp_path / "facts.tsv"
    splime.write_text(small_graph(), tmp_path / "folder")
    lines = [p.read_text(encoding="utf-8") for p in sorted((tmp_path / "folder").glob("*.*"))]
    facts.write_text("".join(lines), encoding="utf-8")
    arguments = ("--split-seed", "3", "--granularity", "year")
    done = call("tune", facts, "--out", tmp_path / "search", *SMALL, *arguments)
    assert done.code == 0, done.err
    assert read_plan(tmp_path / "search" / "best.toml").reading == {
        "granularity": "year",
        "seed": 3,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "spilt"], "Did you mean split?"),
        (["--models", "complx"], "Did you mean complex"),
        (["--trials", "0"], "trials must be at least 1"),
        (["--space", "nothing.toml"], "nothing.toml: cannot be read"),
        (["--validate-every", "0"], "validate_every must not be 0"),
    ],
)
def test_wrong_arguments(data: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    done = call("tune", data, "--out", tmp_path / "search", *SMALL, *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert not (tmp_path / "search").exists()
