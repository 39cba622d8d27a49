"""`splime transform` and `splime methods` from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import splime
from experiments.world import World, make_world
from splime.exports import FORMATS
from splime.methods import METHODS
from tests.runs.small import call


def test_methods_lists_what_is_registered() -> None:
    listed = call("methods").out
    for name in METHODS:
        assert f"\n{name}  " in f"\n{listed}"
    for parameter in ("--shrink", "--epsilon", "--fit-on", "--min-size", "one of these"):
        assert parameter in listed


def test_the_paper_s_way(published: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = call(
        "transform", "icews14", "--method", "split", "--by", "count", "--grow", "25",
        "--fit-on", "all", "--filter", "inter", "--format", "tsv", "--out", out,
        SPLIME_DATA=str(published),
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "5,750 scoped predicates of 230" in done.out
    assert {path.name for path in out.iterdir()} == {
        "train.txt", "valid.txt", "test.txt", "entities.dict", "relations.dict", "time_map",
        "segmentation.json",
    }  # fmt: skip
    assert len((out / "train.txt").read_text(encoding="utf-8").splitlines()) == 72_826
    assert len((out / "test.txt").read_text(encoding="utf-8").splitlines()) == 7_769
    assert len((out / "relations.dict").read_text(encoding="utf-8").splitlines()) == 5_750
    segmentation = splime.load_segmentation(out / "segmentation.json")
    assert segmentation.method["grow"] == 25


@pytest.mark.parametrize("format", FORMATS)
def test_formats_and_overwriting(tmp_path: Path, format: str) -> None:
    out = tmp_path / "out"
    arguments = ("transform", "demo", "--method", "merge", "--shrink", "4", "--format", format)
    assert call(*arguments, "--out", out).code == 0
    again = call(*arguments, "--out", out)
    assert again.code == 2
    assert "--overwrite" in again.err
    assert call(*arguments, "--distinct", "--out", out, "--overwrite").code == 0


def test_the_picture(tmp_path: Path) -> None:
    done = call(
        "transform", "demo", "--method", "changepoint", "--proximity", "adamic_adar",
        "--penalty", "3", "--no-closed", "--out", tmp_path / "out",
        "--plot", tmp_path / "scopes.png",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert (tmp_path / "scopes.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "merg"], "Did you mean merge?"),
        (["--method", "merge", "--grow", "3"], "merge has no parameter 'grow'"),
        (["--method", "merge"], "Merge needs one of shrink and predicates"),
        (["--method", "merge", "--shrink", "0.5"], "shrink must be at least 1"),
        (["--method", "split", "--grow", "0.5"], "grow must be at least 1"),
        (["--method", "split", "--grow", "1000"], "cannot reach 9,000 predicates: it came to"),
        (["--method", "random"], "RandomSplit needs one of grow and predicates"),
        (["--method", "changepoint", "--epsilon", "0"], "epsilon must be greater than 0"),
        (
            ["--method", "changepoint", "--epsilon", "1", "--proximity", "jacard"],
            "Did you mean jaccard",
        ),
        (["--method", "vanilla", "--filter", "all"], "there is no filter 'all'"),
        (["--method", "vanilla", "--format", "xml"], "there is no format 'xml'"),
        (["--method", "vanilla", "--stream"], "Parquet"),
    ],
)
def test_errors_leave_nothing(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = call("transform", "demo", *arguments, "--out", tmp_path / "out")
    assert done.code in (2, 3), done.err
    assert message in done.err
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_streaming_gives_the_same(tmp_path: Path) -> None:
    facts = tmp_path / "facts.parquet"
    make_world(facts, World(facts=20_000))
    arguments: tuple[str | Path, ...]
    arguments = ("transform", facts, "--method", "merge", "--shrink", "4")
    streamed = call(*arguments, "--stream", "--out", tmp_path / "streamed")
    assert streamed.code == 0, streamed.err
    assert "rows per second" in streamed.out
    assert call(*arguments, "--out", tmp_path / "loaded").code == 0
    rows = [
        pq.read_table(tmp_path / name / "triples.parquet").select(
            ["subject", "predicate", "object", "overlap"]
        )
        for name in ("streamed", "loaded")
    ]
    as_sets = [sorted(tuple(row.values()) for row in table.to_pylist()) for table in rows]
    assert as_sets[0] == as_sets[1]
    one, two = (
        json.loads((tmp_path / name / "segmentation.json").read_text(encoding="utf-8"))
        for name in ("streamed", "loaded")
    )
    assert one["predicates"] == two["predicates"]
    refused = call(*arguments, "--stream", "--filter", "inter", "--out", tmp_path / "other")
    assert refused.code == 2
    assert "streaming writes Parquet" in refused.err
    table = pq.read_table(facts).drop_columns(["split"])
    pq.write_table(table, tmp_path / "unsplit.parquet")
    arguments = ("transform", tmp_path / "unsplit.parquet", "--method", "vanilla", "--stream")
    refused = call(*arguments, "--out", tmp_path / "other")
    assert refused.code == 2
    assert "--split none" in refused.err
    assert not (tmp_path / "other").exists()
    streamed = call(*arguments, "--split", "none", "--bucket", "500", "--out", tmp_path / "other")
    assert streamed.code == 0, streamed.err
