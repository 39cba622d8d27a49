"""Rows that are dropped: said in a line, warned of, or an error."""

from __future__ import annotations

import ast
import logging
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import DataError
from splime.methods import Vanilla
from splime.reading import DUPLICATE, Reading, Source
from splime.streaming import stream_transform

GOOD = [("a", "p", f"b{number}", 1990, 1995) for number in range(20)]
WRONG = [("a", "p", f"c{number}", 1995, 1990) for number in range(20)]
SOON = [("a", "p", f"d{number}", "soon", "") for number in range(20)]


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]


@pytest.mark.parametrize(
    ("facts", "option"),
    [
        (GOOD + WRONG[:3], "end_before_begin='swap'"),
        (GOOD + SOON[:3], "unknown_time="),
        (GOOD + GOOD[:3], "keep_duplicates=True"),
    ],
)
def test_a_tenth_is_a_warning_that_names_the_option(
    facts: list[tuple[Any, ...]], option: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(splime.read(facts, split="none")) == 20
    (warning,) = warnings_of(caplog)
    assert "3 of 23" in warning
    assert option in warning
    caplog.clear()
    splime.read(facts[:22], split="none")  # 2 of 22 are less than a tenth
    splime.read(facts, split="none", allow_loss=True)
    assert warnings_of(caplog) == []


DAYS = [("a", "p", f"b{number}", f"1990-01-{number + 1:02}") for number in range(20)]
CUT = [("a", "p", f"c{number}", f"1991-{number + 1:02}-32") for number in range(12)]
NAMELESS = [("a", "p", "", 1990, 1995)] * 3
TIMELESS = [("a", "p", f"d{number}", "") for number in range(8)]


@pytest.mark.parametrize(
    "facts",
    [
        GOOD + WRONG[:5],
        GOOD + GOOD[:5],
        GOOD + NAMELESS,
        DAYS + CUT[:8],
        DAYS + TIMELESS,
    ],
)
def test_the_option_that_is_named_keeps_these_rows(
    facts: list[tuple[Any, ...]], caplog: pytest.LogCaptureFixture
) -> None:
    kept = len(splime.read(facts, split="none"))
    (warning,) = warnings_of(caplog)
    name, value = re.findall(r"; (\w+)=('\w+'|True)", warning)[0]
    chosen: dict[str, Any] = {name: ast.literal_eval(value)}
    assert len(splime.read(facts, split="none", **chosen)) > kept


def test_more_than_half_is_an_error() -> None:
    with pytest.raises(DataError) as error:
        splime.read(GOOD[:9] + WRONG[:10], split="none")
    for part in ("10 of 19", "row 10: a | p | c0 | 1995 | 1990", "swap", "allow_loss=True"):
        assert part in str(error.value)
    assert len(splime.read(GOOD[:9] + WRONG[:10], split="none", allow_loss=True)) == 9
    assert len(splime.read(GOOD[:10] + WRONG[:10], split="none")) == 10  # half is not more
    # One file of three is enough.
    with pytest.raises(DataError, match="test: 2 of 3"):
        splime.read({"train": GOOD, "valid": GOOD[:3], "test": GOOD[:1] + SOON[:2]})


def test_repeated_facts_are_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """They are still in the graph; but wrong columns can make facts equal."""
    assert len(splime.read(GOOD[:1] * 20, split="none")) == 1
    assert len(warnings_of(caplog)) == 1


@pytest.mark.parametrize("allowed", [False, True])
def test_a_split_left_empty(allowed: bool, tmp_path: Path) -> None:
    rows = [("train", *fact) for fact in GOOD] + [("test", *fact) for fact in WRONG[:1]]
    names = ["split", "subject", "predicate", "object", "begin", "end"]
    path = tmp_path / "facts.parquet"
    pq.write_table(pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), path)
    target = tmp_path / "triples.parquet"
    if allowed:
        assert len(splime.load(path, allow_loss=True)) == 20
        assert stream_transform(path, target, Vanilla(), allow_loss=True).facts["train"] == 20
        return
    with pytest.raises(DataError, match="no facts are left in test: 1 × end before begin"):
        splime.load(path)
    with pytest.raises(DataError, match="no facts are left in test"):
        stream_transform(path, target, Vanilla())
    assert [one.name for one in tmp_path.iterdir()] == ["facts.parquet"]


def test_a_split_by_time_left_empty() -> None:
    facts = [("a", "p", "b", year) for year in range(1900, 1990)]
    new = [("new", "p", "b", year) for year in range(1990, 2000)]
    with pytest.raises(DataError, match=r"no facts are left in test.*allow_unseen=True"):
        splime.read(facts + new, split="time")
    assert len(splime.read(facts + new, split="time", allow_unseen=True).test) == 10
    assert len(splime.read(facts + new, split="time", allow_loss=True).test) == 0
    assert len(splime.read(facts, split="time", test=0).test) == 0  # nobody asked for a test


def test_streaming_says_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "splime")
    columns = zip(*(GOOD + WRONG[:5] + GOOD[:2]), strict=True)
    names = ["subject", "predicate", "object", "begin", "end"]
    path = tmp_path / "facts.parquet"
    pq.write_table(pa.table(dict(zip(names, columns, strict=True))), path)
    splime.load(path, split="none")
    loaded = [one.getMessage().partition(": ")[2] for one in caplog.records]
    caplog.clear()
    stream_transform(path, tmp_path / "triples.parquet", Vanilla(), split="none")
    assert [one.getMessage().partition(": ")[2] for one in caplog.records] == loaded
    assert loaded[1] == "read 27 rows, kept 20, dropped 7: 5 × end before begin, 2 × duplicate"


@pytest.mark.parametrize("name", ["demo", "yago11k", "wikidata12k", "icews14"])
def test_the_datasets_lose_little(
    name: str, published: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SPLIME_DATA", str(published))
    caplog.set_level(logging.INFO, "splime")
    splime.load(name)
    (line,) = caplog.records
    assert line.levelno == logging.INFO
    lost = {"yago11k": "kept 20,420, dropped 89", "wikidata12k": "kept 40,611, dropped 10"}
    assert lost.get(name, f"{name}: read ") in line.getMessage()


counts = st.integers(0, 30)


@given(st.lists(st.tuples(counts, counts, counts), min_size=1, max_size=3))
def test_the_limits(files: list[tuple[int, int, int]]) -> None:
    """Of rows kept, lost and repeated in each file, against a literal rule."""
    reading = Reading(
        tuple(
            Source(
                "f", None, kept + lost + twice, kept, {"end before begin": lost, DUPLICATE: twice}
            )
            for kept, lost, twice in files
        )
    )
    wrong = any(2 * lost > kept + lost + twice for kept, lost, twice in files)
    try:
        reading.check()
    except DataError:
        assert wrong
    else:
        assert not wrong
