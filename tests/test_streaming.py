from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import splime
from splime.datasets.world import World, make_world
from splime.errors import DataError, SplimeError, UsageError
from splime.graph import SPLITS, TemporalGraph
from splime.methods import Merge, Method, RandomSplit, Split, Timestamp, Vanilla
from splime.methods.base import FitOn
from splime.streaming import StreamResult, cutting, stream_transform
from tests.graphs import Row, graphs, rows

Triple = tuple[str, str, str, str, int, int]

METHODS: tuple[Callable[[FitOn], Method], ...] = (
    lambda fit_on: Vanilla(fit_on=fit_on),
    lambda fit_on: Timestamp(fit_on=fit_on),
    lambda fit_on: Split(by="time", grow=1.5, fit_on=fit_on),
    lambda fit_on: Split(by="count", grow=1.5, fit_on=fit_on),
    lambda fit_on: Merge(shrink=2, fit_on=fit_on),
    lambda fit_on: RandomSplit(predicates=5, seed=3, fit_on=fit_on),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("streaming")


def stream(source: Path, method: Method, **options: Any) -> tuple[StreamResult, list[Triple]]:
    target = source.with_name("triples.parquet")
    target.unlink(missing_ok=True)
    if "split" not in pq.read_schema(source).names:
        options.setdefault("split", "none")
    result = stream_transform(source, target, method, **options)
    table = pq.read_table(target)
    assert table.column_names == ["split", "subject", "predicate", "object", "fact", "overlap"]
    return result, [tuple(row.values()) for row in table.to_pylist()]


def in_memory(graph: TemporalGraph, method: Method) -> list[Triple]:
    """The triples of the graph; facts are numbered through all splits, as in a saved file."""
    static = method.fit_transform(graph)
    found: list[Triple] = []
    before = 0
    for split, triples in static.splits():
        facts = (before + triples.fact).tolist()
        for names, fact, overlap in zip(
            static.rows(split), facts, triples.overlap.tolist(), strict=True
        ):
            found.append((split, *names, fact, overlap))
        before += len(getattr(graph, split))
    return found


def check_equal(source: Path, graph: TemporalGraph, method: Method, **options: Any) -> None:
    """Streaming gives what memory gives, or both say the same is impossible."""
    try:
        expected = in_memory(graph, method)
    except UsageError:
        with pytest.raises(UsageError):
            stream(source, method, **options)
        return
    result, triples = stream(source, method, **options)
    assert triples == expected
    assert result.segmentation == method.fit(graph)
    assert result.segmentation.method == method.parameters()
    assert dict(result.facts) == {split: len(facts) for split, facts in graph.splits()}
    assert [*result.triples] == [*SPLITS]
    assert sum(result.triples.values()) == len(triples)
    assert result.dropped == {}


@settings(max_examples=15)
@given(graphs(), st.sampled_from(["train", "all"]), st.sampled_from([1, 3, 1000]))
@pytest.mark.parametrize("make", METHODS)
def test_streamed_is_loaded(
    make: Callable[[FitOn], Method],
    folder: Path,
    graph: TemporalGraph,
    fit_on: FitOn,
    batch_rows: int,
) -> None:
    source = splime.save(graph, folder / "graph.parquet")
    check_equal(source, splime.load(source), make(fit_on), batch_rows=batch_rows)


@settings(max_examples=20)
@given(graphs(), st.integers(1, 8), st.sampled_from([1, 3, 1000]))
def test_buckets_of_a_saved_graph_are_kept(
    folder: Path, graph: TemporalGraph, min_facts: int, batch_rows: int
) -> None:
    source = splime.save(graph.bucket(min_facts, "train"), folder / "buckets.parquet")
    check_equal(source, splime.load(source), Timestamp(), batch_rows=batch_rows)


@settings(max_examples=20)
@given(st.tuples(rows(), rows(), rows()), st.sampled_from([1, 3, 1000]), st.booleans())
def test_unknown_times_of_a_saved_graph(
    folder: Path, parts: tuple[list[Row], ...], batch_rows: int, mixed: bool
) -> None:
    """What is filled in gives way to known times; and in mixed graphs it is not always the same."""

    def graph(first: int, last: int) -> TemporalGraph:
        by_split = dict(zip(SPLITS, parts, strict=True))
        return splime.read(by_split, first=first, last=last, end_before_begin="swap")

    found = graph(1995, 1999)
    if mixed:
        found = replace(found, train=graph(1980, 2020).train)
    source = splime.save(found, folder / "unknown.parquet")
    check_equal(source, splime.load(source), Timestamp(fit_on="all"), batch_rows=batch_rows)


@settings(max_examples=20)
@given(graphs(), st.sampled_from([1990, 1997, 2005]), st.sampled_from([1990, 1997, 2005]))
def test_what_unknown_times_become(
    folder: Path, graph: TemporalGraph, first: int, last: int
) -> None:
    table = splime.to_table(graph)  # without what only splime knows about the graph
    source = folder / "limits.parquet"
    pq.write_table(table, source)
    try:
        expected = splime.read(source, first=first, last=last, keep_duplicates=True)
    except DataError:
        with pytest.raises(DataError):
            stream(source, Timestamp(fit_on="all"), first=first, last=last)
        return
    result, triples = stream(source, Timestamp(fit_on="all"), first=first, last=last, batch_rows=3)
    static = Timestamp(fit_on="all").fit_transform(expected)
    assert [row[:4] for row in triples] == [
        (split, *row) for split in SPLITS for row in static.rows(split)
    ]
    assert [row[5] for row in triples] == [
        overlap for _, part in static.splits() for overlap in part.overlap.tolist()
    ]
    assert result.segmentation == static.segmentation
    assert result.dropped == dict(expected.reading.dropped)


def facts(begin: Any, end: Any = None) -> pa.Table:
    """Facts of two predicates with given times."""
    count = len(begin)
    columns = {
        "subject": pa.array([f"s{row % 3}" for row in range(count)]),
        "predicate": pa.array(["p" if row % 2 else "q" for row in range(count)]),
        "object": pa.array([f"o{row}" for row in range(count)]),
    }
    if end is None:
        return pa.table({**columns, "time": begin})
    return pa.table({**columns, "begin": begin, "end": end})


day = datetime.date
moment = datetime.datetime
KINDS = {
    "years": facts(pa.array([1990, 1994, None, 1999]), pa.array([1990, None, 1995, 2001])),
    "steps": facts(pa.array([0, 24, 48, 24], pa.int16()), pa.array([24, 24, 72, 240], pa.int16())),
    "far apart": facts(pa.array([5, 10**9, 7, 5]), pa.array([10**9, 10**9, 8, 10**12])),
    "floats": facts(pa.array([1990.0, None, 1992.0]), pa.array([1990.0, 1993.0, float("nan")])),
    "days": facts(
        pa.array([day(2012, 5, 3), None, day(1969, 1, 2)]),
        pa.array([day(2012, 5, 9), day(2012, 1, 1), day(1969, 1, 2)]),
    ),
    "hours": facts(
        pa.array([moment(2012, 5, 3), moment(2012, 5, 3, 7), None], pa.timestamp("us")),
        pa.array([moment(2012, 5, 3), moment(2012, 5, 4, 9), moment(2012, 5, 4)]),
    ),
    "zones": facts(pa.array([moment(2012, 5, 3), moment(2012, 5, 4)], pa.timestamp("ms", "CET"))),
    "text": facts(
        pa.array(["2012-##-##", "1990-05-03", "####-##-##", "2001-02-##", "-431-##-##"]),
        pa.array(["2012-##-##", "1995-##-##", "1999-##-##", None, "-430-##-##"]),
    ),
    "dictionary": facts(pa.array(["2012-05", "2011-02", "2012-05"]).dictionary_encode()),
    "only ends": facts(pa.nulls(3), pa.array([1990, 1991, 1992])),
    "one year": facts(pa.array([1990, 1990, None]), pa.array([1990, None, None])),
}


@pytest.mark.parametrize("batch_rows", [1, 2, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_times(tmp_path: Path, kind: str, batch_rows: int) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS[kind], source)
    graph = splime.read(source, split="none", keep_duplicates=True)
    check_equal(source, graph, Timestamp(), batch_rows=batch_rows)


def test_dropped_facts_are_counted_and_stay_out_of_the_timeline(tmp_path: Path) -> None:
    table = facts(
        pa.array(["1990", "1994", "soon", "1991", None, "2050"]),
        pa.array(["1992", "1980", "1995", "195#-##-##", "1993", "2000"]),
    )
    source = tmp_path / "facts.parquet"
    pq.write_table(table, source)
    result, triples = stream(source, Vanilla(), batch_rows=2)
    assert result.rows == 6
    assert result.facts["train"] == 2
    assert result.dropped == {"unreadable time": 2, "end before begin": 2}
    assert [row[4] for row in triples] == [0, 4]
    graph = splime.read(source, split="none")
    assert result.segmentation == Vanilla().fit(graph)
    assert dict(graph.reading.dropped) == result.dropped


def test_events_without_a_time_are_dropped(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(facts(pa.array(["1990", None, "1992", "what"])), source)
    result, triples = stream(source, Timestamp())
    assert result.dropped == {"event without a time": 1, "unreadable time": 1}
    assert [row[2] for row in triples] == ["q[1990]", "q[1992]"]


def test_predicates_of_dropped_facts_are_forgotten(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(facts(pa.array([1990, 1995]), pa.array([1990, 1991])), source)
    result, _ = stream(source, Vanilla())
    assert [*result.segmentation.predicates.names] == ["q"]


def test_names_that_are_numbers(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    number = pa.array([7, 8, 7])
    columns = {"subject": number, "predicate": number, "object": number}
    pq.write_table(pa.table({**columns, "time": pa.array([1990, 1991, 1992])}), source)
    _, triples = stream(source, Vanilla(), batch_rows=2)
    assert [row[1:4] for row in triples] == [("7", "7", "7"), ("8", "8", "8"), ("7", "7", "7")]


def test_a_granularity_can_be_forced(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["days"], source)
    graph = splime.read(source, split="none", granularity="year")
    check_equal(source, graph, Timestamp(), granularity="year")
    with pytest.raises(UsageError, match="granularity 'yeer'"):
        stream(source, Timestamp(), granularity="yeer")


@pytest.mark.parametrize("most", [2, 10, 1000])
def test_triples_are_written_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(cutting, "_TRIPLES", most)
    source = tmp_path / "facts.parquet"
    pq.write_table(facts(pa.array([1900, 1901, 1950, 1990] * 5), pa.array([1999] * 20)), source)
    graph = splime.read(source, split="none")
    check_equal(source, graph, Timestamp())
    groups = pq.read_metadata(tmp_path / "triples.parquet")
    sizes = [groups.row_group(group).num_rows for group in range(groups.num_row_groups)]
    assert min(sizes) > 0
    assert max(sizes) < most + len(graph.timeline)
    assert len(sizes) <= -(-sum(sizes) // most)


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"], source)
    seen: list[tuple[str, int, int | None]] = []
    stream(source, Vanilla(), batch_rows=3, progress=lambda *update: seen.append(update))
    assert seen == [
        ("counting", 3, 4),
        ("counting", 4, 4),
        ("applying", 3, 4),
        ("applying", 4, 4),
    ]


@dataclass(frozen=True, kw_only=True)
class Curious(Vanilla):
    needs_facts: ClassVar[bool] = True


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        (Curious(), {}, "Curious needs the facts themselves.*splime.load"),
        (Timestamp(target="both"), {}, "not both; load the graph into memory"),
        (Vanilla(), {"batch_rows": 0}, "at least 1 row"),
        (RandomSplit(predicates=10**6), {}, "cannot reach"),
        (Vanilla(), {"first": "soon"}, "cannot read 'soon'"),
    ],
)
def test_what_cannot_be_asked_for(
    tmp_path: Path, method: Method, options: dict[str, Any], message: str
) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"], source)
    with pytest.raises(UsageError, match=message):
        stream_transform(source, tmp_path / "triples.parquet", method, **options)
    assert [*tmp_path.iterdir()] == [source]


def test_targets(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"], source)
    with pytest.raises(UsageError, match="exists already"):
        stream_transform(source, source, Vanilla())
    with pytest.raises(UsageError, match="no such folder"):
        stream_transform(source, tmp_path / "nowhere" / "triples.parquet", Vanilla())


def split_of_one(name: str | None) -> pa.Table:
    return KINDS["years"].append_column("split", pa.array(["train", "train", name, "test"]))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (KINDS["years"].slice(0, 0), "the table is empty"),
        (KINDS["years"].drop_columns(["object", "end"]), "expected 4 columns"),
        (split_of_one("dev"), r"row 3: the split is 'dev'; expected train, valid or test"),
        (split_of_one(None), "row 3: the split is None"),
        (facts(pa.nulls(3), pa.nulls(3)), "no fact has a usable time"),
        (facts(pa.array(["x", "y"]), pa.array(["z", ""])), "no fact has a usable time"),
        (facts(pa.array([True, False])), "'time' has type bool"),
        (
            KINDS["years"].set_column(0, "subject", pa.array(["a", "b", None, "c"])),
            r"row 3: a name is missing",
        ),
        (
            KINDS["years"].set_column(1, "predicate", pa.array(["a", "b", None, "c"])),
            r"row 3: a name is missing",
        ),
        (
            KINDS["years"].set_column(2, "object", pa.array([1.5, 2.5, 3.5, 4.5])),
            "'object' has type double",
        ),
    ],
)
@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_bad_tables(tmp_path: Path, table: pa.Table, message: str, batch_rows: int) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(table, source)
    with pytest.raises(DataError, match=message):
        stream_transform(source, tmp_path / "triples.parquet", Vanilla(), batch_rows=batch_rows)
    assert [*tmp_path.iterdir()] == [source]


def test_what_is_settled_in_a_saved_graph(tmp_path: Path) -> None:
    graph = splime.read([("a", "p", "b", 1990)], split="none")
    source = splime.save(graph, tmp_path / "graph.parquet")
    with pytest.raises(UsageError, match="is a saved graph"):
        stream_transform(source, tmp_path / "triples.parquet", Vanilla(), first=1980)


def test_no_facts_to_fit_on(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"].append_column("split", pa.array(["test"] * 4)), source)
    with pytest.raises(UsageError, match="no facts to fit on"):
        stream_transform(source, tmp_path / "triples.parquet", Vanilla())
    result, _ = stream(source, Vanilla(fit_on="all"))
    assert dict(result.facts) == {"train": 0, "valid": 0, "test": 4}


def test_broken_files(tmp_path: Path) -> None:
    source, target = tmp_path / "facts.parquet", tmp_path / "triples.parquet"
    with pytest.raises(DataError, match="no such Parquet file"):
        stream_transform(source, target, Vanilla())
    source.write_bytes(b"PAR1 no PAR1")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        stream_transform(source, target, Vanilla())
    make_world(tmp_path / "world.parquet", World(facts=20_000))
    whole = bytearray((tmp_path / "world.parquet").read_bytes())
    whole[1000:3000] = bytes(2000)
    source.write_bytes(whole)
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        stream_transform(source, target, Vanilla())
    assert not target.exists()


@pytest.mark.parametrize("metadata", [b"{", b'{"format": 99}', b'{"format": 1, "timeline": {}}'])
def test_damaged_descriptions(tmp_path: Path, metadata: bytes) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"].replace_schema_metadata({b"splime": metadata}), source)
    with pytest.raises(DataError, match=r"damaged|not a format"):
        stream_transform(source, tmp_path / "triples.parquet", Vanilla())


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"], source)

    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
    with pytest.raises(SplimeError, match="cannot be written: no space left"):
        stream_transform(source, tmp_path / "triples.parquet", Vanilla())
    assert [*tmp_path.iterdir()] == [source]


def test_interrupted_runs_leave_nothing(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"], source)

    def interrupt(what: str, done: int, total: int | None) -> None:
        if what == "applying":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream_transform(
            source, tmp_path / "triples.parquet", Vanilla(), progress=interrupt, batch_rows=1
        )
    assert [*tmp_path.iterdir()] == [source]


def test_memory_does_not_grow_with_the_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Arrow holds at most while triples are written."""

    def most(count: int) -> int:
        source, target = tmp_path / f"{count}.parquet", tmp_path / f"{count}.triples"
        make_world(source, World(facts=count))
        held: list[int] = []
        triples = cutting._triples

        def watched(*arguments: Any) -> Iterator[pa.RecordBatch]:
            for some in triples(*arguments):
                held.append(pa.total_allocated_bytes())
                yield some

        with monkeypatch.context() as context:
            context.setattr(cutting, "_triples", watched)
            stream_transform(source, target, Merge(shrink=4), batch_rows=50_000)
        return max(held)

    # How far the writing thread is makes a difference, but not one that grows.
    assert most(3_000_000) < 2 * most(300_000)


def test_worlds_agree_with_memory(tmp_path: Path) -> None:
    source = tmp_path / "world.parquet"
    make_world(source, World(facts=20_000))
    graph = splime.load(source)
    result, triples = stream(source, Merge(shrink=4), batch_rows=7_000)
    static = Merge(shrink=4).fit_transform(graph)
    assert result.segmentation == static.segmentation
    for split in SPLITS:
        mine = [row[1:4] for row in triples if row[0] == split]
        assert mine == [*static.rows(split)]
    positions = np.array([row[4] for row in triples])
    assert (np.diff(positions) >= 0).all()
