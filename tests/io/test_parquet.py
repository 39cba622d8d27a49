from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import splime
from splime.errors import DataError, SplimeError
from splime.graph import TemporalGraph
from splime.io.files import written_beside
from splime.times import GRANULARITIES, Granularity, format_ticks
from tests.graphs import graphs, predicates

labels = st.text(st.characters(codec="utf-8"))


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
    import numpy as np

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


def test_other_tools_read_names_and_dates(tmp_path: Path) -> None:
    graph = splime.read([("Ada", "bornIn", "Ulm", "1990-05-01")], split="none")
    path = saved(graph, tmp_path)
    row = duckdb.connect().execute(f"select * from '{path}'").fetchall()[0]
    assert row[:4] == ("train", "Ada", "bornIn", "Ulm")
    assert str(row[4]) == "1990-05-01"


def test_parquet_of_other_people(tmp_path: Path) -> None:
    table = pa.table({"who": ["a"], "what": ["p"], "whom": ["b"], "since": [1990], "until": [1995]})
    pq.write_table(table, tmp_path / "facts.parquet")
    graph = splime.load(tmp_path / "facts.parquet", split="none")
    assert list(graph.rows()) == [("a", "p", "b", "1990", "1995")]
    pq.write_table(table, tmp_path / "train.parquet")
    assert len(splime.load(tmp_path)) == 1


def test_a_folder_cannot_hold_whole_graphs(tmp_path: Path) -> None:
    graph = splime.load("demo")
    splime.save(graph, tmp_path / "train.parquet")
    folder = splime.load(tmp_path)
    assert len(folder) == len(graph)


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
        lambda d: d.update(unused=None),
        lambda d: d.update(unused={"entities": [1], "predicates": []}),
        lambda d: d.update(reading={"sources": [{"bad": 1}], "examples": [], "remarks": []}),
        lambda d: d.update(reading=[]),
    ],
)
def test_a_damaged_description_is_an_error(tmp_path: Path, change: Any) -> None:
    path = saved(splime.read([("a", "p", "b", 1990, None)], split="none"), tmp_path)
    with pytest.raises(SplimeError):
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
        Path(str(_[1])).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(SplimeError, match=r"graph.parquet: cannot be written: .*No space left"):
        saved(graph.where(predicate="livesIn"), tmp_path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["graph.parquet"]  # noqa: PTH208
    with pytest.raises(SplimeError, match="cannot be written"):
        splime.save(graph, tmp_path / "no" / "such" / "folder.parquet")


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    def write() -> None:
        with written_beside(tmp_path / "f") as beside:
            beside.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert list(tmp_path.iterdir()) == []
