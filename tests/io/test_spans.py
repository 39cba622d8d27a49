"""Facts that end before they begin, and what unknown times become beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import DataError, UsageError
from splime.graph import SPLITS
from tests.graphs import Row, names, predicates, years

REVERSED = ("a", "p", "b", 2010, 1980)


def test_only_reversed_facts() -> None:
    swapped = splime.read([REVERSED], end_before_begin="swap", split="none")
    assert list(swapped.rows()) == [("a", "p", "b", "1980", "2010")]
    with pytest.raises(DataError, match="row 1: the fact ends before it begins"):
        splime.read([REVERSED], end_before_begin="error")
    with pytest.raises(DataError, match="no fact has a usable time"):
        splime.read([REVERSED])


def test_swapped_facts_belong_to_the_time_of_the_graph() -> None:
    facts = [REVERSED, ("c", "p", "d", 1990, None)]
    swapped = splime.read(facts, end_before_begin="swap", split="none")
    assert swapped.train.end.tolist() == [2010, 2010]
    dropped = splime.read(facts, split="none")
    assert dropped.train.end.tolist() == [1990]


def test_rows_that_were_read() -> None:
    sizes = splime.describe(splime.read([REVERSED, ("a", "p", "b", 1990, 1991)], split="none"))
    assert dict(sizes.rows) == {"all": 2}
    assert sizes.facts["train"] == 1


def test_repair_drops_from_train_and_swaps_elsewhere() -> None:
    facts = [("a", "p", "b", 1990, 1995), REVERSED]
    graph = splime.read(
        {"train": facts, "valid": facts, "test": [REVERSED]}, end_before_begin="repair"
    )
    assert list(graph.rows("train")) == [("a", "p", "b", "1990", "1995")]
    assert list(graph.rows("valid"))[1] == ("a", "p", "b", "1980", "2010")
    assert list(graph.rows("test")) == [("a", "p", "b", "1980", "2010")]
    train, valid, test = graph.reading.sources
    assert (train.kept, dict(train.dropped), dict(train.notes)) == (1, {"end before begin": 1}, {})
    for source in (valid, test):
        assert source.kept == source.rows
        assert dict(source.notes) == {"end before begin, swapped": 1}


def test_repair_by_a_column_of_splits() -> None:
    columns = [["a"] * 4, ["p"] * 4, ["b", "c", "d", "e"], [1990, 2010, 2010, 2009]]
    splits = ["test", "train", "test", "train"]
    table = pa.table(
        [*columns, [1995, 1980, 1980, 2009], splits],
        names=["subject", "predicate", "object", "begin", "end", "split"],
    )
    graph = splime.read(table, end_before_begin="repair")
    assert [fact.object for fact in graph.rows("train")] == ["e"]
    assert [fact[2:] for fact in graph.rows("test")] == [
        ("b", "1990", "1995"),
        ("d", "1980", "2010"),
    ]
    (source,) = graph.reading.sources
    assert dict(source.dropped) == {"end before begin": 1}
    assert dict(source.notes) == {"end before begin, swapped": 1}


def test_repair_needs_splits(tmp_path: Path) -> None:
    facts = [("a", "p", "b", 1990, 1995), REVERSED]
    for split in (None, "none"):
        with pytest.raises(UsageError, match=r"rows: .*repair.* has no splits; choose"):
            splime.read(facts, end_before_begin="repair", split=split)
    saved = splime.save(splime.read({"train": facts}), tmp_path / "graph.parquet")
    with pytest.raises(UsageError, match="saved graph, in which that is settled"):
        splime.load(saved, end_before_begin="repair")


def test_repaired_facts_do_not_fill_unknown_times() -> None:
    facts = {
        "train": [("a", "p", "b", 1990, None), ("a", "p", "c", None, 1995)],
        "test": [REVERSED],
    }
    graph = splime.read(facts, end_before_begin="repair")
    assert graph.train.begin.tolist() == [1990, 1990]
    assert graph.train.end.tolist() == [1995, 1995]
    assert (graph.timeline.first, graph.timeline.last) == (1980, 2010)


@st.composite
def any_order(draw: st.DrawFn) -> list[Row]:
    """Facts whose begin may lie after their end, and either or both may be unknown."""
    times = st.none() | years
    return draw(st.lists(st.tuples(names, predicates, names, times, times), min_size=1, max_size=9))


@given(st.tuples(any_order(), any_order(), any_order()), st.none() | years, st.none() | years)
def test_repair_keeps_the_train_of_drop_and_all_of_the_others(
    parts: tuple[list[Row], ...], first: int | None, last: int | None
) -> None:
    facts = dict(zip(SPLITS, parts, strict=True))
    options: Any = {"first": first, "last": last, "granularity": "year", "keep_duplicates": True}
    try:
        dropped = splime.read(facts, **options)
    except DataError:
        return
    repaired = splime.read(facts, end_before_begin="repair", **options)
    assert list(repaired.rows("train")) == list(dropped.rows("train"))
    for column in ("begin", "end", "unknown"):
        assert getattr(repaired.train, column).tolist() == getattr(dropped.train, column).tolist()
    for split in ("valid", "test"):
        wanted = []
        for *fact, begin, end in facts[split]:
            if begin is not None and end is not None:
                begin, end = min(begin, end), max(begin, end)
            # What is unknown is said to be so, and what is known is what was given.
            wanted.append((*fact, begin and str(begin), end and str(end)))
        assert list(repaired.rows(split)) == wanted
