from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import DataError, SplimeError, UsageError
from splime.graph import Facts, TemporalGraph
from splime.io.files import atomic_write
from splime.timeline import Timeline
from splime.times import GRANULARITIES, Granularity, format_ticks
from splime.vocabulary import Vocabulary
from tests.graphs import graphs, predicates

labels = st.text(st.characters(codec="utf-8")).filter(str.strip)


def saved(graph: TemporalGraph, folder: Path) -> Path:
    return splime.save(graph, folder / "graph.parquet")


@given(graph=graphs(), predicate=predicates, min_facts=st.none() | st.integers(1, 20))
def test_any_graph_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    graph: TemporalGraph,
    predicate: str,
    min_facts: int | None,
) -> None:
    if min_facts is not None:
        graph = graph.bucket(min_facts)
    folder = tmp_path_factory.mktemp("saved")
    # A slice keeps names and times that none of its facts uses.
    part = graph.where(predicate=predicate) if predicate in graph.predicates else graph
    for one in (
        graph,
        part,
        replace(part, name="näme", reading=splime.read([("a", "p", "b", 1)]).reading),
    ):
        again = splime.load(saved(one, folder))
        assert again == one
        assert (again.name, again.reading) == (one.name, one.reading)


@given(
    ticks=st.lists(st.integers(-30_000, 60_000), min_size=1, max_size=5),
    granularity=st.sampled_from(GRANULARITIES),
)
def test_every_granularity_comes_back(
    tmp_path_factory: pytest.TempPathFactory, ticks: list[int], granularity: Granularity
) -> None:
    rows = [("a", "p", str(i), t) for i, t in enumerate(format_ticks(np.array(ticks), granularity))]
    graph = splime.read(rows, granularity=granularity, split="none")
    assert splime.load(saved(graph, tmp_path_factory.mktemp("saved"))) == graph


@given(names=st.lists(st.tuples(labels, labels, labels), min_size=1, max_size=8))
def test_any_text_is_a_label(
    tmp_path_factory: pytest.TempPathFactory, names: list[tuple[str, str, str]]
) -> None:
    graph = splime.read([(*name, 2000 + i, 2010) for i, name in enumerate(names)], split="none")
    folder = tmp_path_factory.mktemp("labels")
    assert splime.load(saved(graph, folder)) == graph
    splime.write_text(graph, folder / "csv", format="csv")
    assert splime.read(folder / "csv") == graph


def test_a_swapped_open_fact_comes_back(tmp_path: Path) -> None:
    facts = [("a", "p", "b", 1990, 1995), ("a", "p", "c", 2844, None)]
    graph = splime.read(facts, split="none", last=2017, end_before_begin="swap", granularity="year")
    assert splime.load(saved(graph, tmp_path)) == graph


def test_unknown_ends_that_gave_way_come_back(tmp_path: Path) -> None:
    facts = [("a", "p", "b", 1990, None), ("a", "p", "c", 2040, None), ("x", "p", "y", 1980, 2000)]
    graph = splime.read(facts, last=2017, end_before_begin="swap", split="none", granularity="year")
    again = splime.load(saved(graph, tmp_path))
    assert again.train.end.tolist() == [2017, 2040, 2000]
    assert again == graph
    # All that the table says of its times is the same: nothing is needed beside it.
    assert pq.read_schema(tmp_path / "graph.parquet").names[-1] == "end"


@given(
    times=st.lists(
        st.tuples(st.integers(-9, 9), st.integers(0, 9), st.integers(0, 3), st.integers(0, 2)),
        max_size=8,
    ),
    granularity=st.sampled_from(GRANULARITIES),
)
def test_any_times_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    times: list[tuple[int, int, int, int]],
    granularity: Granularity,
) -> None:
    """Graphs that nobody read: unknown times are any, the timeline knows nothing of them."""
    begin, length, unknown, split = np.array(times, np.int64).reshape(-1, 4).T
    ids = np.zeros(len(times), np.int32)
    facts = Facts(ids, ids, ids, begin.copy(), begin + length, unknown.astype(np.uint8))
    graph = TemporalGraph(
        *(facts.take(split == number) for number in range(3)),  # type: ignore[misc, arg-type]
        entities=Vocabulary(["a", "b"], kind="entity"),
        predicates=Vocabulary(["p"], kind="predicate"),
        timeline=Timeline.of(np.array([0, 3]), granularity),
    )
    assert splime.load(saved(graph, tmp_path_factory.mktemp("saved"))) == graph


def test_graphs_are_saved_as_parquet(tmp_path: Path) -> None:
    graph = splime.read([("a", "p", "b", 1)])
    with pytest.raises(UsageError, match=r"x.tsv: a graph is saved as .parquet"):
        splime.save(graph, tmp_path / "x.tsv")
    assert splime.load(splime.save(graph, tmp_path / "x.PARQUET")) == graph


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        (("subject", "predicate", "object", "Time", "Split"), ("1990", "1990")),
        (("subject", "predicate", "object", "from", "to", "split"), ("1990", "1995")),
        (("when", "object", "subject", "predicate", "begin", "end"), ("1990", "1995")),
    ],
)
def test_names_of_columns_as_elsewhere(
    tmp_path: Path, columns: tuple[str, ...], wanted: tuple[str, str]
) -> None:
    values = {"subject": "a", "predicate": "p", "object": "b", "split": "test", "when": 7}
    times = {"time": 1990, "from": 1990, "begin": 1990, "to": 1995, "end": 1995}
    table = pa.table({name: [{**values, **times}[name.lower()]] for name in columns})
    pq.write_table(table, tmp_path / "facts.parquet")
    for source in (table, tmp_path / "facts.parquet"):
        graph = splime.read(source)
        assert list(graph.rows()) == [("a", "p", "b", *wanted)]
        assert len(graph.test) == ("split" in table.column_names or "Split" in table.column_names)


def test_the_index_of_pandas_is_no_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"s": ["a", "b"], "p": "p", "o": "c", "year": [1990, 1991]}, index=[7, 9])
    frame.to_parquet(tmp_path / "facts.parquet")
    for source in (frame, tmp_path / "facts.parquet"):
        graph = splime.read(source, split="none")
        assert [(fact.begin, fact.end) for fact in graph.rows()] == [("1990",) * 2, ("1991",) * 2]


@pytest.mark.parametrize(
    "options",
    [
        {"split": "time"},
        {"valid": 0.2},
        {"seed": 0},
        {"granularity": "year"},
        {"first": 1980},
        {"last": 2020},
        {"end_before_begin": "drop"},
        {"entities": "e.txt"},
        {"columns": ["1", "2", "3", "4"]},
    ],
)
def test_what_is_settled_in_a_saved_graph(tmp_path: Path, options: dict[str, Any]) -> None:
    path = saved(splime.read([("a", "p", "b", 1990, None)], split="none"), tmp_path)
    with pytest.raises(UsageError, match=rf"graph.parquet: {next(iter(options))} cannot be chosen"):
        splime.load(path, **options)
    again = splime.load(path, name="other", bucket=1, bucket_on="train")
    assert again.name == "other"


def test_other_tools_read_names_and_dates(tmp_path: Path) -> None:
    graph = splime.read([("Ada", "bornIn", "Ulm", "1990-05-01")], split="none")
    path = saved(graph, tmp_path)
    row = duckdb.connect().execute(f"select * from '{path}'").fetchall()[0]
    assert row[:4] == ("train", "Ada", "bornIn", "Ulm")
    assert str(row[4]) == "1990-05-01"


def test_parquet_of_other_people(tmp_path: Path) -> None:
    table = pa.table({"head": ["a"], "rel": ["p"], "tail": ["b"], "since": [1990], "until": [1995]})
    pq.write_table(table, tmp_path / "facts.parquet")
    graph = splime.load(tmp_path / "facts.parquet", split="none")
    assert list(graph.rows()) == [("a", "p", "b", "1990", "1995")]
    pq.write_table(table, tmp_path / "train.parquet")
    assert len(splime.load(tmp_path)) == 1


def test_a_folder_cannot_hold_whole_graphs(tmp_path: Path) -> None:
    graph = splime.load("demo")
    splime.save(graph, tmp_path / "train.parquet")
    with pytest.raises(DataError, match=r"row 8001: the split is 'valid', but these are .* train"):
        splime.load(tmp_path)
    splime.save(graph.where(split="train"), tmp_path / "train.parquet")
    assert splime.load(tmp_path).train.begin.tolist() == graph.train.begin.tolist()


def damaged(path: Path, change: Any) -> Path:
    table = pq.read_table(path)
    described = json.loads(table.schema.metadata[b"splime"])
    change(described)
    pq.write_table(table.replace_schema_metadata({b"splime": json.dumps(described).encode()}), path)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(format=99),
        lambda d: d.pop("format"),
        lambda d: d.update(granularity="eon"),
        lambda d: d.pop("granularity"),
        lambda d: d.update(timeline={"starts": [3, 1], "ends": [3, 1]}),
        lambda d: d.update(timeline={"starts": "x", "ends": [1]}),
        lambda d: d.update(timeline={"starts": [10**30], "ends": [10**30]}),
        lambda d: d.update(timeline=7),
        lambda d: d.update(filled={"last": "never"}),
        lambda d: d.update(filled={"evil": 1}),
        lambda d: d["filled"].update(evil="1990"),
        lambda d: d.update(filled={"last": 1990}),
        lambda d: d.update(filled={}),
        lambda d: d.update(granularity=["year"]),
        lambda d: d.update(granularity="day"),
        lambda d: d.update(timeline={"starts": [], "ends": []}),
        lambda d: d.update(timeline={"starts": [[1990]], "ends": [[1990]]}),
        lambda d: d.update(timeline={"starts": [1990, 1991], "ends": [1991]}),
        lambda d: d.update(timeline={"starts": [1990], "ends": [1991, 1992]}),
        lambda d: d.update(timeline={"starts": [1990.5], "ends": [1991]}),
        lambda d: d.update(name=None),
        lambda d: d.update(name=7),
        lambda d: d.update(unused={"entities": [None], "predicates": []}),
        lambda d: d.update(unused={"entities": "xy", "predicates": []}),
        lambda d: d["reading"]["sources"][0].update(rows="many"),
        lambda d: d["reading"]["sources"][0].update(name=None),
        lambda d: d["reading"]["sources"][0].update(dropped=7),
        lambda d: d["reading"]["sources"][0].update(dropped={"x": None}),
        lambda d: d["reading"].update(examples=[{"where": 1, "fact": ["a"], "why": ""}]),
        lambda d: d["reading"].update(remarks="all"),
        lambda d: d.update(unused=None),
        lambda d: d.update(unused={"entities": [1], "predicates": []}),
        lambda d: d.update(reading={"sources": [{"bad": 1}], "examples": [], "remarks": []}),
        lambda d: d.update(reading=[]),
    ],
)
def test_a_damaged_description_is_an_error(tmp_path: Path, change: Any) -> None:
    path = saved(splime.read([("a", "p", "b", 1990, None)], split="none"), tmp_path)
    with pytest.raises(DataError, match=r"graph\.parquet: "):
        splime.load(damaged(path, change))


def test_metadata_that_is_no_json(tmp_path: Path) -> None:
    table = pa.table({"subject": ["a"], "predicate": ["p"], "object": ["b"], "time": [1]})
    pq.write_table(table.replace_schema_metadata({b"splime": b"{\xff"}), tmp_path / "f.parquet")
    with pytest.raises(DataError, match="damaged"):
        splime.load(tmp_path / "f.parquet")


def test_a_failed_save_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = splime.load("demo")
    path = saved(graph, tmp_path)
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(SplimeError, match=r"graph.parquet: cannot be written: .*No space left"):
        saved(graph.where(predicate="livesIn"), tmp_path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["graph.parquet"]  # noqa: PTH208
    with pytest.raises(SplimeError, match="cannot be written"):
        splime.save(graph, tmp_path / "no" / "such" / "folder.parquet")


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    def write() -> None:
        with atomic_write(tmp_path / "f") as beside:
            beside.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert list(tmp_path.iterdir()) == []
