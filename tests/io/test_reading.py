"""What is dropped, filled in, swapped and remembered while reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import DataError, UsageError
from splime.graph import Facts
from splime.io.assemble import repeats
from tests.graphs import Row, rows


def test_end_before_begin() -> None:
    facts = [("a", "p", "b", 1990, 1995), ("a", "p", "c", 2000, 1992), ("a", "p", "d", 2001, None)]
    dropped = splime.read(facts, split="none")
    assert [fact.object for fact in dropped.rows()] == ["b", "d"]
    assert (
        str(dropped.reading.examples[0])
        == "rows, row 2: a | p | c | 2000 | 1992  (end before begin)"
    )
    # A dropped fact neither names an entity nor stretches the time.
    assert "c" not in dropped.entities
    swapped = splime.read(facts, split="none", end_before_begin="swap")
    assert list(swapped.rows())[1] == ("a", "p", "c", "1992", "2000")
    assert dict(swapped.reading.notes) == {"end before begin, swapped": 1}
    with pytest.raises(DataError, match=r"row 2: the fact ends before it begins: a \| p \| c"):
        splime.read(facts, end_before_begin="error")
    with pytest.raises(UsageError, match="drop, swap, repair, error"):
        splime.read(facts, end_before_begin="ignore")  # type: ignore[arg-type]


def test_a_filled_end_before_the_begin() -> None:
    facts = [("a", "p", "b", 1990, 1995), ("a", "p", "c", 2844, None), ("a", "p", "d", None, 1980)]
    how: Any = {"split": "none", "first": 1985, "last": 2017, "granularity": "year"}
    dropped = splime.read(facts, **how, allow_loss=True)
    assert dict(dropped.reading.dropped) == {"end before begin": 2}
    swapped = splime.read(facts, **how, end_before_begin="swap")
    # Nothing is known to swap: the unknown side gives way.
    assert swapped.train.begin.tolist() == [1990, 2844, 1980]
    assert swapped.train.end.tolist() == [1995, 2844, 1980]
    assert swapped.train.unknown.tolist() == [0, 2, 1]


def test_two_filled_times_in_the_wrong_order() -> None:
    facts = [("a", "p", "b", 1990, 1995), ("a", "p", "c", None, None)]
    swapped = splime.read(facts, split="none", first=2000, last=1980, end_before_begin="swap")
    assert swapped.train.begin.tolist() == [1990, 1980]
    assert swapped.train.end.tolist() == [1995, 2000]
    assert swapped.train.unknown.tolist() == [0, 3]


def test_whose_facts_decide_the_buckets() -> None:
    facts = {
        "train": [("a", "p", "b", year, year) for year in range(2000, 2010)],
        "test": [("a", "p", "b", 1990, 2020)],
    }
    of_train = splime.read(facts, bucket=5, bucket_on="train")
    assert of_train.timeline.labels() == ["2000..2004", "2005..2009"]
    assert of_train == splime.read(facts).bucket(5, "train")
    assert splime.read(facts, bucket=5, bucket_on="all") == splime.read(facts, bucket=5)
    assert splime.read(facts, bucket=5) == splime.read(facts).bucket(5)
    for on in ("train", "all"):
        with pytest.raises(UsageError, match=r"bucket_on .* needs bucket"):
            splime.read(facts, bucket_on=on)
    with pytest.raises(UsageError, match="bucket_on is one of train, all, not 'test'"):
        splime.read(facts, bucket=5, bucket_on="test")  # type: ignore[arg-type]


def test_unknown_times() -> None:
    facts = [
        ("a", "p", "b", "1990", "1995"),
        ("a", "p", "c", "####-##-##", "1992"),
        ("a", "p", "d", "1991", ""),
        ("a", "p", "e", None, None),
    ]
    graph = splime.read(facts, split="none")
    assert graph.train.begin.tolist() == [1990, 1990, 1991, 1990]
    assert graph.train.end.tolist() == [1995, 1992, 1995, 1995]
    assert graph.train.unknown.tolist() == [0, 1, 2, 3]
    filled = splime.read(facts, split="none", first="1900", last="2020-12-31")
    assert (filled.timeline.first, filled.timeline.last) == (1900, 2020)


OPEN = [
    ("a", "p", "b", 1990, 1995),
    ("a", "p", "c", 1992, None),
    ("a", "p", "d", None, 1993),
    ("a", "p", "e", None, None),
    ("a", "p", "f", 2005, None),
]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [(1990, 1995), (1992, 2005), (1990, 1993), (1990, 2005), (2005, 2005)]),
        (
            {"last": "begin"},
            [(1990, 1995), (1992, 1992), (1990, 1993), (1990, 2005), (2005, 2005)],
        ),
        ({"first": "end"}, [(1990, 1995), (1992, 2005), (1993, 1993), (1990, 2005), (2005, 2005)]),
        (
            {"first": "end", "last": "begin"},
            [(1990, 1995), (1992, 1992), (1993, 1993), (1990, 2005), (2005, 2005)],
        ),
        # Whose begin lies behind the time that is given goes, unless it is its own end.
        ({"last": 2000}, [(1990, 1995), (1992, 2000), (1990, 1993), (1990, 2000)]),
    ],
)
def test_unknown_times_may_be_the_facts_own(
    options: dict[str, Any], expected: list[tuple[int, int]], tmp_path: Path
) -> None:
    graph = splime.read(OPEN, split="none", **options)
    facts = graph.train
    assert list(zip(facts.begin.tolist(), facts.end.tolist(), strict=True)) == expected
    assert facts.unknown.tolist() == [0, 2, 1, 3, 2][: len(expected)]
    assert [(fact.begin, fact.end) for fact in graph.rows()][1:3] == [
        ("1992", None),
        (None, "1993"),
    ]
    splime.save(graph, tmp_path / "graph.parquet")
    assert splime.load(tmp_path / "graph.parquet") == graph


def test_an_event_without_time_is_dropped() -> None:
    graph = splime.read([("a", "p", "b", 1990), ("a", "p", "c", None)], split="none")
    assert dict(graph.reading.dropped) == {"event without a time": 1}


def test_duplicates() -> None:
    facts = [("a", "p", "b", 1990, 1995)] * 2 + [("a", "p", "b", 1990, None)]
    graph = splime.read(facts, split="none")
    assert dict(graph.reading.dropped) == {"duplicate": 1}
    assert graph.reading.examples[0].where == "rows, row 2"
    assert graph.reading.examples[0].fact == ("a", "p", "b", "1990", "1995")
    assert len(graph) == 2  # an unknown end is not the same as the last year
    assert len(splime.read(facts, split="none", keep_duplicates=True)) == 3
    # Between splits they are a leak to report, not a row to drop.
    assert len(splime.read({"train": facts[:1], "test": facts[:1]})) == 2


@given(rows(most=40))
def test_repeats_are_those_seen_before(facts: list[Row]) -> None:
    graph = splime.read(facts, split="none", keep_duplicates=True, granularity="year")
    seen: set[object] = set()
    wanted = []
    for fact in graph.rows():
        wanted.append(fact in seen)
        seen.add(fact)
    assert repeats(graph.train).tolist() == wanted


def test_repeats_survives_colliding_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    import splime.io.assemble as module

    graph = splime.read(
        [("a", "p", "b", y) for y in range(1990, 2000)] * 2, split="none", keep_duplicates=True
    )
    assert repeats(graph.train).tolist() == [False] * 10 + [True] * 10
    # With a factor of 0 all keys are equal.
    monkeypatch.setattr(module, "_FACTOR", module._FACTOR * 0)
    assert repeats(graph.train).tolist() == [False] * 10 + [True] * 10
    assert repeats(Facts.empty()).tolist() == []


@given(
    st.lists(
        st.tuples(
            *[st.sampled_from(["a", "b"])] * 3,
            st.sampled_from(["1990", "1995", "", "19##-##-##", "x", "2000-13-01"]),
            st.sampled_from(["1992", "", "?"]),
        )
    )
)
def test_every_row_is_accounted_for(facts: list[tuple[str, ...]]) -> None:
    try:
        graph = splime.read(facts, split="none", granularity="year", allow_loss=True)
    except DataError as error:
        assert "no facts" in str(error) or "no fact has a usable time" in str(error)  # noqa: PT017
        return
    reading = graph.reading
    assert reading.rows == len(facts)
    assert reading.kept == len(graph)
    assert reading.rows == reading.kept + sum(reading.dropped.values())


def test_nothing_left() -> None:
    message = "no fact has a usable time.* the first one reads 'a | p | b | x'"
    with pytest.raises(DataError, match=message.replace("|", "[|]")):
        splime.read([("a", "p", "b", "x")])
    for begin, end in ((1995, 1990), (None, None)):
        with pytest.raises(DataError, match="no fact has a usable time"):
            splime.read([("a", "p", "b", begin, end)])
    message = "no facts are left: 2 × end before begin; first example: rows, row 1"
    with pytest.raises(DataError, match=message):
        splime.read([("a", "p", "b", 1995, None), ("a", "p", "b", 1994, None)], last=1990)


def test_finer_times_are_noted() -> None:
    graph = splime.read([("a", "p", "b", "1990-05-01"), ("a", "p", "b", "1991")], split="none")
    assert graph.timeline.granularity == "year"
    assert dict(graph.reading.notes) == {"time finer than a year, cut to it": 1}


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ([], "there are no facts"),
        ([("a", "p", "b")], r"row 1: expected 4 columns \(subject, predicate, object, time\)"),
        ([("a", "p", "b", 1), ("a", "p", "b", 1, 2)], "row 2: 5 values, but 4"),
        ([("a", None, "b", 1)], "rows: a name is missing in every row"),
        ([("a", 1.5, "b", 1)], "row 1: 1.5 is not a name"),
        ([("a", "p", "b", 1.5)], "row 1: 1.5 is not a time"),
        (["abcd"], "row 1: expected"),
        ([("\ud800", "p", "b", 1)], "not valid Unicode"),
    ],
)
def test_bad_rows(facts: list[tuple[object, ...]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        splime.read(facts)


def test_bad_sources() -> None:
    with pytest.raises(UsageError, match="cannot read facts from int"):
        splime.read(7)
    with pytest.raises(UsageError, match="no train"):
        splime.read({"test": [("a", "p", "b", 1)]})
    with pytest.raises(UsageError, match="no split 'dev'"):
        splime.read({"train": [("a", "p", "b", 1)], "dev": []})
    with pytest.raises(UsageError, match="rows hold just the facts"):
        splime.read([("a", "p", "b", 1)], columns=["1", "2", "3", "4"])


def test_integer_names_are_text() -> None:
    graph = splime.read([(7, 1, 8, 1990)], split="none")
    assert list(graph.rows()) == [("7", "1", "8", "1990", "1990")]


def test_missing_times_of_pandas_are_unknown() -> None:
    for missing in (pd.NaT, pd.NA, np.nan, np.datetime64("NaT")):
        graph = splime.read([("a", "p", "b", 1990, missing)], split="none")
        assert graph.train.unknown.tolist() == [2]


def test_numbers_beyond_all_measure() -> None:
    with pytest.raises(DataError, match="row 1: a number is too long"):
        splime.read([(10**5000, "p", "b", 1)])
    with pytest.raises(DataError, match="row 1: a number is too long"):
        splime.read([("a", "p", "b", 10**5000)])


@pytest.mark.parametrize(
    "options",
    [{"split": "none"}, {"valid": 0.1}, {"test": 0}, {"seed": 0}, {"allow_unseen": False}],
)
def test_how_to_split_what_has_splits(tmp_path: Path, options: dict[str, Any]) -> None:
    (tmp_path / "train.tsv").write_text("a\tp\tb\t1990\n")
    table = pa.table([["a"], ["p"], ["b"], [1], ["train"]], names=["s", "p", "o", "t", "split"])
    for source in (tmp_path, table, {"train": [("a", "p", "b", 1)]}, "demo"):
        message = rf"{next(iter(options))} .*splits; splime.split_graph"
        with pytest.raises(UsageError, match=message):
            splime.load(source, **options)


def test_facts_that_have_splits_are_split_anew_by_time(tmp_path: Path) -> None:
    rows = [("a", "p", "b", year) for year in range(2000, 2020)]
    for name, own in (("train", rows[::2]), ("valid", rows[1::4]), ("test", rows[3::4])):
        (tmp_path / f"{name}.tsv").write_text("".join("\t".join(map(str, r)) + "\n" for r in own))
    graph = splime.load(tmp_path, split="time", valid=0.2, test=0.1)
    assert [sorted(own.begin) for _, own in graph.splits()] == [
        [*range(2000, 2014)], [*range(2014, 2018)], [2018, 2019]
    ]  # fmt: skip
    assert any("split by time" in remark for remark in graph.reading.remarks)
    saved = splime.save(graph, tmp_path / "saved.parquet")
    with pytest.raises(UsageError, match="split cannot be chosen"):
        splime.load(saved, split="time")


def test_paths_that_no_file_has() -> None:
    for path in ("x" * 300, "x" * 300 + ".tsv", "x" * 300 + ".parquet"):
        with pytest.raises(DataError, match="cannot be opened"):
            splime.load(path)
    with pytest.raises(UsageError, match="no dataset, file or folder called ''"):
        splime.load("")
    with pytest.raises(UsageError, match="the path is empty"):
        splime.read("")
