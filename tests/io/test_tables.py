from __future__ import annotations

import datetime as dt

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

import splime
from splime.errors import DataError, UsageError
from splime.graph import TemporalGraph
from tests.graphs import graphs

COLUMNS = {
    "subject": ["Ada", "nan", "007"],
    "predicate": ["playsFor"] * 3,
    "object": ["Ajax", "PSV", "NULL"],
    "begin": [1990, 1995, 1980],
    "end": [1994, None, 1985],
}
ROWS = [
    ("Ada", "playsFor", "Ajax", "1990", "1994"),
    ("nan", "playsFor", "PSV", "1995", None),
    ("007", "playsFor", "NULL", "1980", "1985"),
]


def test_arrow_pandas_polars_duckdb() -> None:
    arrow = pa.table(COLUMNS)
    frame = pd.DataFrame(COLUMNS)  # its `end` is a float column with a NaN
    database = duckdb.connect()
    database.register("facts", arrow)
    for table in (
        arrow,
        frame,
        frame.astype({"subject": "category", "end": "Int64"}),
        pl.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS).with_columns(pl.col("object").cast(pl.Categorical)),
        database.sql("select * from facts"),
        pa.RecordBatchReader.from_batches(arrow.schema, arrow.to_batches(max_chunksize=1)),
    ):
        graph = splime.read(table, split="none")
        assert list(graph.rows()) == ROWS, type(table)


@pytest.mark.parametrize(
    ("times", "granularity", "wanted"),
    [
        (pa.array([dt.date(2014, 5, 13), dt.date(1, 1, 1)]), "day", ["2014-05-13", "0001-01-01"]),
        (pa.array([dt.date(2014, 5, 13), None]), "day", ["2014-05-13", None]),
        (pa.array([dt.datetime(2014, 5, 13)] * 2), "day", ["2014-05-13"] * 2),
        (pa.array([dt.datetime(2014, 5, 13, 10, 30)] * 2), "minute", ["2014-05-13T10:30"] * 2),
        (
            pa.array([10**9, 2 * 10**9], pa.timestamp("ns", "Europe/Amsterdam")),
            "second",
            ["1970-01-01T00:00:01", "1970-01-01T00:00:02"],
        ),
        (pa.array([0, 86_400_000], pa.date64()), "day", ["1970-01-01", "1970-01-02"]),
        (pa.array([1990, 1991], pa.int16()), "year", ["1990", "1991"]),
        (pa.array([1990.0, 1991.0]), "year", ["1990", "1991"]),
        (pa.array(["1990", None]), "year", ["1990", None]),
        (pa.array(["1990", "1990"]).dictionary_encode(), "year", ["1990", "1990"]),
    ],
)
def test_times_of_any_type(times: pa.Array, granularity: str, wanted: list[str | None]) -> None:
    table = pa.table(
        {"s": ["a", "b"], "p": ["p", "p"], "o": ["c", "d"], "from": times, "to": times}
    )
    graph = splime.read(table, split="none")
    assert graph.timeline.granularity == granularity
    assert [fact.begin for fact in graph.rows()] == wanted


def test_dates_before_christ() -> None:
    days = pa.array(np.array(["-0431-05-01", "2014-05-13"], "M8[D]"), pa.date32())
    table = pa.table({"s": ["a", "b"], "p": ["p", "p"], "o": ["c", "d"], "time": days})
    graph = splime.read(table, split="none")
    assert graph.train.begin.tolist() == days.cast(pa.int32()).to_pylist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"begin": pa.array([1.5, 2, 3])}, "has times like 1999.5"),
        ({"begin": pa.array([True, False, True])}, "column 'begin' has type bool; times are"),
        ({"object": pa.array([1.5, 2, 3])}, "column 'object' has type double; names are"),
        ({"object": pa.array([True, False, True])}, "column 'object' has type bool; names are"),
        ({"object": pa.nulls(3)}, "table: a name is missing in every row"),
        ({"split": pa.array(["train", "test", "x"])}, "row 3: the split is 'x'"),
        ({"split": pa.array(["train", "test", None])}, "row 3: the split is None"),
    ],
)
def test_wrong_columns(change: dict[str, pa.Array], message: str) -> None:
    columns = {name: pa.array(values) for name, values in COLUMNS.items()}
    with pytest.raises(DataError, match=message):
        splime.read(pa.table({**columns, **change}))


def test_wrong_tables() -> None:
    with pytest.raises(DataError, match="the table is empty"):
        splime.read(pa.table(COLUMNS).slice(0, 0))
    with pytest.raises(DataError, match="leave open which is the time"):
        splime.read(pa.table({"a": [1], "b": [2]}))
    doubled = pa.table([[1]] * 5, names=["a", "a", "b", "c", "d"])
    with pytest.raises(DataError, match="several columns are called 'a'"):
        splime.read(doubled, columns=["a", "b", "c", "d"])


def test_integer_names_and_chosen_columns() -> None:
    table = pa.table({"x": [7], "y": [1], "z": [8], "when": [1990], "note": ["!"]})
    graph = splime.read(table, columns=["x", "y", "z", "when"], split="none")
    assert list(graph.rows()) == [("7", "1", "8", "1990", "1990")]


@given(graphs())
def test_to_table_and_back(graph: TemporalGraph) -> None:
    again = splime.read(graph.to_table(), granularity="year", keep_duplicates=True)
    assert again == graph


def test_the_function_gives_way_to_the_method() -> None:
    graph = splime.read([("a", "p", "b", 1990)], split="none")
    with pytest.warns(DeprecationWarning, match=r"graph\.to_table\(\)"):
        assert splime.to_table(graph) == graph.to_table()


NAMES = {name: COLUMNS[name] for name in ("subject", "predicate", "object")}


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8(), pa.uint32()])
def test_dictionaries_of_any_index(index: pa.DataType) -> None:
    codes = pa.array([0, 1, None], index)
    times = pa.DictionaryArray.from_arrays(codes, pa.array([1990, 1991]))
    graph = splime.read(pa.table({**NAMES, "begin": times, "end": [1992] * 3}), split="none")
    assert [fact.begin for fact in graph.rows()] == ["1990", "1991", None]
    splits = pa.DictionaryArray.from_arrays(codes, pa.array(["train", "test"]))
    with pytest.raises(DataError, match="row 3: the split is None"):
        splime.read(pa.table({**NAMES, "time": [1, 2, 3], "split": splits}))


def test_splits_of_polars() -> None:
    frame = pl.DataFrame({**NAMES, "time": [1, 2, 3], "split": ["train", "test", "train"]})
    for kind in (pl.Categorical, pl.Enum(["train", "valid", "test"])):
        graph = splime.read(frame.with_columns(pl.col("split").cast(kind)))
        assert (len(graph.train), len(graph.test)) == (2, 1)


def test_years_of_pandas_categories() -> None:
    years = pd.Categorical([1990.0, np.nan, 1991.0])
    graph = splime.read(pd.DataFrame({**NAMES, "begin": years, "end": 1992}), split="none")
    assert [fact.begin for fact in graph.rows()] == ["1990", None, "1991"]


@pytest.mark.parametrize("name", ["time", "split"])
@pytest.mark.parametrize("values", [[{"a": 1}] * 3, [[1]] * 3])
def test_columns_that_hold_no_text(name: str, values: object) -> None:
    with pytest.raises(DataError, match=r"column .* has type"):
        splime.read(pd.DataFrame({**NAMES, "time": [1, 2, 3], name: values}))


def test_a_null_inside_of_a_dictionary() -> None:
    names = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None]))
    graph = splime.read(pa.table({**NAMES, "object": names, "time": [1, 2, 3]}), split="none")
    assert [fact[2:4] for fact in graph.rows()] == [("a", "1"), ("a", "3")]
    assert str(graph.reading.examples[0]).startswith("table, row 2: ")
    times = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["1990", None]))
    graph = splime.read(pa.table({**NAMES, "begin": times, "end": [1992] * 3}), split="none")
    assert graph.train.unknown.tolist() == [0, 1, 0]


def test_a_split_that_contradicts_where_it_stands() -> None:
    table = pa.table({**NAMES, "time": [1, 2, 3], "split": ["test", "train", "test"]})
    message = r"test, row 2: the split is 'train', but these are the facts of test"
    with pytest.raises(DataError, match=message):
        splime.read({"train": [("a", "p", "b", 1)], "test": table})
    assert len(splime.read({"train": [("a", "p", "b", 1)], "test": table.take([0, 2])}).test) == 2


def test_columns_by_number() -> None:
    table = pa.table({**NAMES, "when": [1, 2, 3], "note": ["!"] * 3})
    assert len(splime.read(table, columns=[1, 2, 3, 4], split="none")) == 3
    with pytest.raises(DataError, match="no column '²'"):
        splime.read(table, columns=["²", "2", "3", "4"])
    with pytest.raises(UsageError, match="columns must name"):
        splime.read(table, columns=[1.5, 2, 3, 4])  # type: ignore[list-item]


NAMES = {"subject": ["a", "b", "c"], "predicate": ["p"] * 3, "object": ["x", "y", "z"]}


@pytest.mark.parametrize(
    ("frequency", "expected"),
    [
        ("Y", ["1999", "2004", None]),
        ("Q", ["1999-01", "2004-10", None]),
        ("M", ["1999-02", "2004-12", None]),
        ("W", ["1999-02-01", "2004-12-27", None]),
        ("D", ["1999-02-03", "2004-12-31", None]),
        ("h", ["1999-02-03T04", "2004-12-31T23", None]),
        ("s", ["1999-02-03T04:05:06", "2004-12-31T23:59:58", None]),
    ],
)
def test_periods_of_pandas(frequency: str, expected: list[str | None]) -> None:
    times = ["1999-02-03 04:05:06", "2004-12-31 23:59:58", None]
    periods = pd.PeriodIndex(times, freq=frequency)
    frame = pd.DataFrame({**NAMES, "begin": periods, "end": periods})
    graph = splime.read(frame, split="none")
    assert [fact.begin for fact in graph.rows()] == expected
    assert [fact.end for fact in graph.rows()] == expected


def test_periods_that_are_no_unit() -> None:
    frame = pd.DataFrame({**NAMES, "time": pd.period_range("2000", periods=3, freq="2Y")})
    with pytest.raises(DataError, match="periods of '2Y-DEC' are not read"):
        splime.read(frame)
    frame = pd.DataFrame(
        {**NAMES, "time": 1, "split": pd.period_range("2000", periods=3, freq="Y")}
    )
    with pytest.raises(DataError, match="column 'split' has type"):
        splime.read(frame)


def test_a_lazy_frame_of_polars() -> None:
    frame = pl.DataFrame({**NAMES, "time": [1999, 2000, None]})
    assert splime.read(frame.lazy(), split="none") == splime.read(frame, split="none")
    with pytest.raises(DataError, match="cannot be collected"):
        splime.read(frame.lazy().select("none"))


def test_dictionaries() -> None:
    records = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
    graph = splime.read(records, split="none")
    assert graph == splime.read(ROWS, split="none")
    assert splime.read((record for record in records), split="none") == graph
    typed = [
        {"who": "Ada", "does": 7, "what": "x", "on": dt.date(1999, 2, 3), "tags": ["a"]},
        {"who": "Bob", "does": np.int64(7), "what": "y", "on": None, "more": 1.5},
        {"who": "Cleo", "does": 7, "what": "z", "on": np.datetime64("1999-02-05")},
    ]
    columns = ["who", "does", "what", "on"]
    graph = splime.read(typed, columns=columns, split="none", without_time="unknown")
    assert [(fact.predicate, fact.begin) for fact in graph.rows()] == [
        ("7", "1999-02-03"),
        ("7", None),
        ("7", "1999-02-05"),
    ]
    assert splime.read({"train": records, "test": records[:1]}).test
    for wrong, message in (
        ([records[0], ROWS[0]], "row 2: expected an object with named fields"),
        ([{**records[0], "object": True}], "row 1: 'object' is True"),
        ([{"a": 1}], "which is the time"),
    ):
        with pytest.raises(DataError, match=message):
            splime.read(wrong)
