"""One row more must not change what comes out: streaming gives what memory gives, or refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import splime
from splime.cli.main import app
from splime.errors import SplimeError, UsageError
from splime.graph import SPLITS
from tests.graphs import Row

METHODS: dict[str, list[str]] = {
    "vanilla": [],
    "timestamp": [],
    "split": ["--grow", "1"],
    "random": ["--predicates", "5"],
    "merge": ["--shrink", "2"],
    "changepoint": ["--epsilon", "1"],
}
# What a single column of times can hold, of which some readings depend on the others.
TIMES = {
    "years": st.integers(1990, 1995),
    "numbers": st.sampled_from([0, 7, 1990, 9_999, 10_000, 20140513, 10**18]),
    "days": st.sampled_from(["2012-05-03", "2012-05-04 00:00", "2012-05-04x", "1990"]),
    "mixed": st.sampled_from(["2012-05-03", "2012-05", "2012", "20140513", "2012-05-03 junk", "?"]),
    "zones": st.sampled_from(["2012-05-03 10:00", "2012-05-03 11:00Z", "2012-05-03 12:00+02"]),
}
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "bucket": st.integers(1, 6),
    "first": st.sampled_from(["1989", "1992", "2012-05-03", "end"]),
    "last": st.sampled_from(["1996", "1991", "2012-05-03", "begin"]),
    "granularity": st.sampled_from(["year", "day", "step", "hour"]),
    "end-before-begin": st.sampled_from(["drop", "swap", "error", "repair"]),
    "split": st.sampled_from(["none", "time", "random"]),
    "valid": st.sampled_from(["0.3", "0", "2"]),
    "split-seed": st.just("3"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("accidents")


def transform(source: Path, out: Path, arguments: list[str], large: int) -> pa.Table | Exception:
    """What the command writes if files of more than so many rows are streamed; or its error."""
    for path in out.glob("*"):
        path.unlink()
    arguments = ["transform", str(source), *arguments, "--overwrite", "--out", str(out)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("splime.streaming.LARGE", large)
        result = CliRunner().invoke(app, arguments)
    if result.exception is not None:
        assert isinstance(result.exception, SplimeError), result.exception
        assert not [*out.glob("*")]
        return result.exception
    assert sorted(path.name for path in out.iterdir()) == ["segmentation.json", "triples.parquet"]
    return pq.read_table(out / "triples.parquet")


def check(source: Path, arguments: list[str]) -> bool:
    """Compare; whether both gave triples."""
    one, two = source.with_name("loaded"), source.with_name("streamed")
    loaded, streamed = (
        transform(source, one, arguments, 10**9),
        transform(source, two, arguments, 0),
    )
    if isinstance(streamed, Exception):
        if not isinstance(loaded, Exception):
            assert isinstance(streamed, UsageError)
            assert "--no-stream" in str(streamed)
        return False
    assert not isinstance(loaded, Exception), loaded
    assert streamed.schema == loaded.schema
    assert streamed.to_pylist() == loaded.to_pylist()
    segmentations = [splime.load_segmentation(out / "segmentation.json") for out in (one, two)]
    assert segmentations[0] == segmentations[1]
    assert segmentations[0].method == segmentations[1].method
    return True


@settings(max_examples=30)
@given(st.data(), st.sampled_from(sorted(METHODS)), st.sampled_from(["train", "all"]))
def test_one_row_more_changes_nothing(
    folder: Path, data: st.DataObject, method: str, fit_on: str
) -> None:
    count = data.draw(st.integers(1, 12))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return data.draw(st.lists(values, min_size=count, max_size=count))

    columns = {
        "subject": column(st.sampled_from("ab")),
        "predicate": column(st.sampled_from(["p", "q", "p[1990]"])),
        "object": column(st.sampled_from("ab")),
    }
    kinds = [data.draw(st.sampled_from(sorted(TIMES))) for _ in range(data.draw(st.integers(1, 2)))]
    for name, kind in zip(("begin", "end") if len(kinds) > 1 else ("time",), kinds, strict=True):
        columns[name] = column(st.none() | TIMES[kind])
    if data.draw(st.booleans()):
        columns["split"] = column(st.sampled_from(SPLITS))
    given = data.draw(st.fixed_dictionaries({}, optional=OPTIONS))
    given = {name: given[name] for name in [*given][:3]}
    if "bucket" in given:
        given["bucket-on"] = data.draw(st.sampled_from(["train", "all"]))
    options = [f"--{name}={value}" for name, value in given.items()]
    options += ["--allow-unseen"] * data.draw(st.booleans())
    source = folder / "facts.parquet"
    pq.write_table(pa.table(columns), source, row_group_size=data.draw(st.integers(1, 20)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("splime.streaming.transform._BATCH", data.draw(st.sampled_from([1, 3, 1000])))
        check(source, ["--method", method, *METHODS[method], "--fit-on", fit_on, *options])


FACTS: list[Row] = [
    (s, p, "b", year, year + 2) for s in "ab" for p in "pq" for year in (1990, 1991)
]
SPLIT = ["test", "train", "train", "valid", "train", "train", "test", "train"]


@pytest.mark.parametrize("target", ["predicates", "entities", "both"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method(tmp_path: Path, method: str, target: str) -> None:
    names = ("subject", "predicate", "object", "begin", "end")
    columns = dict(zip(names, zip(*FACTS, strict=True), strict=True))
    source = tmp_path / "facts.parquet"
    pq.write_table(pa.table({**columns, "split": SPLIT}), source, row_group_size=3)
    arguments = ["--method", method, *METHODS[method]]
    assert check(source, arguments if target == "predicates" else [*arguments, "--target", target])


def test_a_predicate_with_the_name_of_a_scope(tmp_path: Path) -> None:
    names = ("subject", "predicate", "object", "time")
    facts = [("a", "p", "b", 1990), ("a", "p", "b", 1991), ("a", "p[1990]", "b", 1990)]
    source = tmp_path / "facts.parquet"
    pq.write_table(pa.table(dict(zip(names, zip(*facts, strict=True), strict=True))), source)
    for large in (0, 10**9):
        arguments = ["--method", "timestamp", "--split", "none"]
        error = transform(source, tmp_path / "out", arguments, large)
        assert isinstance(error, UsageError)
        assert "p[1990]" in str(error)


def test_a_refusal_says_which_option_decides(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    facts = {"subject": ["a", "b"], "predicate": ["p", "p"], "object": ["b", "a"]}
    pq.write_table(pa.table({**facts, "time": [1990, 1991]}), source)
    error = transform(source, tmp_path / "out", ["--method", "vanilla"], 1)
    assert isinstance(error, UsageError)
    assert "--split none" in str(error)
    assert "--no-stream" in str(error)


def test_a_folder_made_in_the_meantime_is_not_replaced(tmp_path: Path) -> None:
    source, out = tmp_path / "facts.parquet", tmp_path / "out"
    facts = {"subject": ["a"], "predicate": ["p"], "object": ["b"], "time": [1990]}
    pq.write_table(pa.table({**facts, "split": ["train"]}), source)

    def make(*_: Any, **__: Any) -> Any:
        out.mkdir(exist_ok=True)
        (out / "mine.txt").write_text("mine", encoding="utf-8")
        return stream(*_, **__)

    from splime.streaming import stream_transform as stream

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("splime.streaming.stream_transform", make)
        arguments = ["transform", str(source), "--method", "vanilla", "--stream", "--out", str(out)]
        result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, UsageError)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]
