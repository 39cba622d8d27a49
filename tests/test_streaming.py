from __future__ import annotations

import datetime
import json
import operator
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

import splime
from experiments.world import World, make_world
from splime.errors import DataError, SplimeError, UsageError
from splime.exports.formats import to_table
from splime.graph import SPLITS, TemporalGraph
from splime.io.parquet import FactFile
from splime.methods import Merge, Method, RandomSplit, Split, Timestamp, Vanilla
from splime.methods.base import FitOn
from splime.streaming import StreamResult, passes, stream_transform
from splime.streaming.duplicates import _RECORD, _of_names, _repeated
from splime.streaming.passes import ReadPlan, Tally, count
from tests.graphs import Row, graphs, rows

pytestmark = pytest.mark.system

Triple = tuple[Any, ...]

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


def transform(source: Path, target: Path, method: Method, **options: Any) -> StreamResult:
    """Stream; facts without splits are all of train, unless the options say something else."""
    if source.exists() and source.read_bytes()[:4] == b"PAR1":
        with suppress(pa.ArrowException):
            if "split" not in pq.read_schema(source).names:
                options.setdefault("split", "none")
    return stream_transform(source, target, method, **options)


def stream(source: Path, method: Method, **options: Any) -> tuple[StreamResult, list[Triple]]:
    target = source.with_name("triples.parquet")
    target.unlink(missing_ok=True)
    result = transform(source, target, method, **options)
    return result, [tuple(row.values()) for row in pq.read_table(target).to_pylist()]


def in_memory(graph: TemporalGraph, method: Method) -> list[Triple]:
    """The triples of the graph, as they are exported."""
    static = method.fit_transform(graph)
    tables = [to_table(static, split, triples) for split, triples in static.splits()]
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


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

    whole = graph(1995, 1999)
    if mixed:
        whole = replace(whole, train=graph(1980, 2020).train)
    source = splime.save(whole, folder / "unknown.parquet")
    check_equal(source, splime.load(source), Timestamp(fit_on="all"), batch_rows=batch_rows)


@settings(max_examples=20)
@given(
    graphs(),
    st.sampled_from([1990, 1997, 2005]),
    st.sampled_from([1990, 1997, 2005]),
    st.booleans(),
)
def test_what_unknown_times_become(
    folder: Path, graph: TemporalGraph, first: int, last: int, keep_duplicates: bool
) -> None:
    table = graph.to_table()  # without what only splime knows about the graph
    source = folder / "limits.parquet"
    pq.write_table(table, source)
    options = {"first": first, "last": last, "keep_duplicates": keep_duplicates}
    check_same(source, Timestamp(fit_on="all"), 3, **options)


def check_same(source: Path, method: Method, batch_rows: int, **options: Any) -> None:
    """Streaming a file gives what reading it with the same options gives, or both refuse."""
    try:
        graph = splime.read(source, **options)
        static = method.fit_transform(graph)
    except SplimeError as error:
        with pytest.raises(type(error)):
            stream(source, method, batch_rows=batch_rows, **options)
        return
    result, triples = stream(source, method, batch_rows=batch_rows, **options)
    assert result.segmentation == static.segmentation
    assert result.dropped == dict(graph.reading.dropped)
    assert triples == in_memory(graph, method)
    for split, part in static.splits():
        assert result.facts[split] == len(getattr(graph, split))
        assert result.triples[split] == len(part)


# Few names and years, so that facts are repeated; some end before they begin, some have no time.
few = st.sampled_from
small = st.lists(
    st.tuples(
        few("ab"),
        few("pq"),
        few("ab"),
        st.none() | st.integers(1990, 1994),
        st.none() | st.integers(1990, 1994),
    ),
    min_size=1,
    max_size=30,
)


def written(
    facts: list[Row], path: Path, splits: Sequence[str] | None = None, **options: Any
) -> Path:
    names = ("subject", "predicate", "object", "begin", "end")
    types = (pa.string(),) * 3 + (pa.int64(),) * 2
    columns = [pa.array(c, t) for c, t in zip(zip(*facts, strict=True), types, strict=True)]
    table = pa.table(dict(zip(names, columns, strict=True)))
    if splits is not None:
        table = table.append_column("split", pa.array(splits))
    pq.write_table(table, path, **options)
    return path


@given(
    small,
    st.data(),
    st.sampled_from([1, 4, 1000]),
    st.sampled_from([1, 3]),
    st.sampled_from(["train", "all"]),
)
def test_duplicates_buckets_and_splits_are_as_in_memory(
    folder: Path,
    facts: list[Row],
    data: st.DataObject,
    batch_rows: int,
    groups: int,
    fit_on: FitOn,
) -> None:
    options: dict[str, Any] = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "keep_duplicates": st.booleans(),
                "bucket": st.integers(1, 6),
                "first": st.integers(1989, 1995),
                "last": st.integers(1989, 1995),
                "granularity": st.just("year"),
            },
        )
    )
    if "bucket" in options:
        options["bucket_on"] = data.draw(st.sampled_from(["train", "all"]))
    splits = None
    if data.draw(st.booleans()):
        splits = [data.draw(st.sampled_from(SPLITS)) for _ in facts]
    elif data.draw(st.booleans()):
        shares = {"valid": data.draw(st.sampled_from([0.0, 0.1, 0.4])), "test": 0.3}
        options |= {"split": "time", "allow_unseen": True, **shares}
    else:
        options["split"] = "none"
    size = max(len(facts) // groups, 1)
    source = written(facts, folder / "few.parquet", splits, row_group_size=size)
    check_same(source, Merge(shrink=2, fit_on=fit_on), batch_rows, **options)


@settings(max_examples=15)
@given(graphs(), st.integers(1, 8), st.sampled_from(["train", "all"]))
def test_new_buckets_of_a_saved_graph(
    folder: Path, graph: TemporalGraph, min_facts: int, on: str
) -> None:
    source = splime.save(graph.bucket(3), folder / "anew.parquet")
    options: dict[str, Any] = {"bucket": min_facts, "bucket_on": on}
    check_equal(source, splime.load(source, **options), Timestamp(), batch_rows=4, **options)


@given(small, st.data())
def test_tallies_add_up_in_any_order(folder: Path, facts: list[Row], data: st.DataObject) -> None:
    """Whatever the parts, however they are put together, and after a journey as bytes."""
    frame = ReadPlan("year", fit_on_all=False)
    whole = counted(facts, folder / "whole.parquet", frame)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(len(facts) - 1, 1)), max_size=4)))
    bounds = [0, *(cut for cut in cuts if cut < len(facts)), len(facts)]
    tallies = [
        pickle.loads(pickle.dumps(counted(facts[low:high], folder / "some.parquet", frame)))
        for low, high in pairwise(bounds)
    ]
    tallies = data.draw(st.permutations(tallies))
    assert same(reduce(operator.add, tallies), whole)
    assert same(reduce(lambda total, tally: tally + total, tallies), whole)
    if len(tallies) > 2:
        one, two, *rest = tallies
        assert same(one + reduce(operator.add, [two, *rest]), whole)
    assert same(whole + Tally(), whole)
    assert same(whole + whole, whole) != whole.table.any()


def same(one: Tally, two: Tally) -> bool:
    return (
        one.predicates == two.predicates
        and np.array_equal(one.ticks, two.ticks)
        and np.array_equal(one.table, two.table)
    )


def counted(facts: list[Row], path: Path, frame: ReadPlan) -> Tally:
    written(facts, path)
    (part,) = FactFile(path).parts(len(facts), 7)
    return count(part, frame)


def test_parts_are_ranges_of_row_groups(tmp_path: Path) -> None:
    rows: list[Row] = [("a", "p", str(row), 1990, 1991) for row in range(10)]
    path = written(rows, tmp_path / "facts.parquet", row_group_size=3)
    parts = FactFile(path).parts(6, 100, fact=50)
    read = [batch.labels("object") for part in parts for batch in part.batches("object")]
    assert [(part.row, part.fact, part.rows) for part in parts] == [(0, 50, 6), (6, 56, 4)]
    assert pa.chunked_array(read).to_pylist() == [row[2] for row in rows]
    assert pickle.loads(pickle.dumps(parts)) == parts
    assert [part.rows for part in FactFile(path).parts(1, 100)] == [3, 3, 3, 1]


def make_table(path: Path) -> pa.Table:
    make_world(path, World(facts=3000))
    return pq.read_table(path).replace_schema_metadata(None)


@pytest.mark.system
@pytest.mark.parametrize("step", ["finding duplicates", "counting", "applying"])
def test_a_killed_run_leaves_no_result(tmp_path: Path, step: str) -> None:
    """Killed in the middle of a pass, so that nothing can be cleaned up."""
    source, target = tmp_path / "facts.parquet", tmp_path / "triples.parquet"
    pq.write_table(KINDS["years"], source)
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from splime.methods import Vanilla; from splime.streaming import stream_transform\n"
        "def kill(what, done, total):\n"
        "    if what == sys.argv[3] and done == 2: os.kill(os.getpid(), signal.SIGKILL)\n"
        "stream_transform(Path(sys.argv[1]), Path(sys.argv[2]), Vanilla(), batch_rows=1,"
        " split='none', progress=kill)"
    )
    done = subprocess.run([sys.executable, "-c", script, source, target, step], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not target.exists()
    transform(source, target, Vanilla())
    assert pq.read_metadata(target).num_rows == 4


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    source = written([("a", "p", "b", 1990, 1991)], tmp_path / "facts.parquet")

    def change(what: str, done: int, total: int | None = None, note: str = "") -> None:
        if what == "counting":
            written([("a", "q", "b", 1990, 1991)] * 2, source)

    with pytest.raises(DataError, match="was changed while it was read"):
        transform(source, tmp_path / "triples.parquet", Vanilla(), progress=change)
    assert [*tmp_path.iterdir()] == [source]


def test_colliding_names_of_scopes(tmp_path: Path) -> None:
    rows: list[Row] = [("a", "p", "b", year, year) for year in (1990, 1991)]
    source = written([*rows, ("a", "p[1990]", "b", 1990, 1990)], tmp_path / "facts.parquet")
    _, triples = stream(source, Vanilla())
    assert {row[2] for row in triples} == {"p", "p[1990]"}
    (tmp_path / "triples.parquet").unlink()
    with pytest.raises(UsageError, match=r"p\[1990\]"):
        transform(source, tmp_path / "triples.parquet", Timestamp())
    assert [*tmp_path.iterdir()] == [source]


names_of_facts = st.text(st.characters(codec="utf-8"), max_size=20)


@given(
    st.lists(names_of_facts, min_size=1, max_size=20, unique=True),
    st.integers(0, 3),
    st.booleans(),
)
def test_fingerprints_tell_names_apart(names: list[str], skip: int, padded: bool) -> None:
    """They depend on the name alone, not on what stands before or behind it."""
    if padded:
        names = [*names, *(name + "\0" for name in names if name + "\0" not in names)]
    hashes = _of_names(pa.array([*["x"] * skip, *names], pa.string())[skip:])
    assert len({*hashes[0].tolist()}) == len({*hashes[1].tolist()}) == len(names)
    for at, name in enumerate(names):
        assert (_of_names(pa.array([name], pa.string()))[:, 0] == hashes[:, at]).all()


def test_facts_with_one_key_are_compared_further() -> None:
    records = np.zeros(6, _RECORD)
    records["key"] = [7, 8, 7, 7, 9, 7]
    records["check"] = [1, 1, 2, 1, 1, 2]
    records["row"] = range(6)
    assert sorted(_repeated(records).tolist()) == [3, 5]


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
    result, triples = stream(source, Vanilla(), batch_rows=2, allow_loss=True)
    assert result.rows == 6
    assert result.facts["train"] == 2
    assert result.dropped == {"unreadable time": 2, "end before begin": 2}
    assert [row[1:5] for row in triples] == [("s0", "q", "o0", 0), ("s1", "q", "o4", 1)]
    graph = splime.read(source, split="none", allow_loss=True)
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
    with pytest.raises(UsageError, match=r"granularity.*'yeer'"):
        stream(source, Timestamp(), granularity="yeer")


@pytest.mark.parametrize("most", [2, 10, 1000])
def test_triples_are_written_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(passes, "_TRIPLES", most)
    source = tmp_path / "facts.parquet"
    pq.write_table(facts(pa.array([1900, 1901, 1950, 1990] * 5), pa.array([1999] * 20)), source)
    graph = splime.read(source, split="none")
    check_equal(source, graph, Timestamp())
    groups = pq.read_metadata(tmp_path / "triples.parquet")
    sizes = [groups.row_group(group).num_rows for group in range(groups.num_row_groups)]
    assert min(sizes) > 0
    assert max(sizes) <= max(most, len(graph.timeline))
    assert all(one + following > most for one, following in pairwise(sizes))


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"], source)
    seen: list[tuple[str, int, int | None]] = []
    stream(source, Vanilla(), batch_rows=3, progress=lambda *update: seen.append(update))
    assert seen == [
        ("reading times", 3, 4),
        ("reading times", 4, 4),
        ("finding duplicates", 3, 4),
        ("finding duplicates", 4, 4),
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
        (Curious(), {}, "Curious needs the facts themselves.*no-stream"),
        (Timestamp(target="both"), {}, "not both.*no-stream"),
        (Vanilla(), {"batch_rows": 0}, "at least 1 row"),
        (RandomSplit(predicates=10**6), {}, "cannot reach"),
        (Vanilla(), {"first": "soon"}, "cannot read 'soon'"),
        (Vanilla(), {"first": "end"}, "cannot read with first = end.*--no-stream"),
        (Vanilla(), {"last": "begin"}, "cannot read with last = begin"),
        (Vanilla(), {"split": "random"}, "random split.*--split none.*--no-stream"),
        (Vanilla(), {"split": "time"}, "--allow-unseen.*--no-stream"),
        (Vanilla(), {"split": "halves"}, "split is .*random.*'halves'"),
        (
            Vanilla(),
            {"split": "time", "allow_unseen": True, "valid": 0.5, "test": 0.6},
            "must leave facts for train",
        ),
        (Vanilla(), {"entities": "ids.txt"}, "cannot read with entities = ids.txt.*--no-stream"),
        (Vanilla(), {"unknown_time": 0}, "cannot read with unknown_time = 0"),
        (Vanilla(), {"without_time": "always"}, "cannot read with without_time = always"),
        (Vanilla(), {"granularity": "day", "origin": 2014}, "cannot read with origin = 2014"),
        (Vanilla(), {"end_before_begin": "swap"}, "cannot read with end_before_begin = swap"),
        (Vanilla(), {"bucket_on": "train"}, "needs bucket"),
        (Vanilla(), {"bucket_on": "test", "bucket": 3}, "bucket_on is .*train.*'test'"),
        (Vanilla(), {"bucket": 0}, "at least 1 fact"),
    ],
)
def test_what_cannot_be_asked_for(
    tmp_path: Path, method: Method, options: dict[str, Any], message: str
) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"], source)
    with pytest.raises(UsageError, match=message):
        transform(source, tmp_path / "triples.parquet", method, **options)
    assert [*tmp_path.iterdir()] == [source]


def test_targets(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"], source)
    with pytest.raises(UsageError, match="exists already"):
        transform(source, source, Vanilla())
    with pytest.raises(UsageError, match="no such folder"):
        transform(source, tmp_path / "nowhere" / "triples.parquet", Vanilla())


def split_of_one(name: str | None) -> pa.Table:
    return KINDS["years"].append_column("split", pa.array(["train", "train", name, "test"]))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (KINDS["years"].slice(0, 0), "the table is empty"),
        (KINDS["years"].drop_columns(["object", "end"]), "a fact needs a subject, an object"),
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
        transform(source, tmp_path / "triples.parquet", Vanilla(), batch_rows=batch_rows)
    assert [*tmp_path.iterdir()] == [source]


@pytest.mark.parametrize(
    "options",
    [{"first": 1980}, {"split": "none"}, {"keep_duplicates": True}, {"columns": [2, 3, 4, 5]}],
)
def test_what_is_settled_in_a_saved_graph(tmp_path: Path, options: dict[str, Any]) -> None:
    graph = splime.read([("a", "p", "b", 1990)], split="none")
    source = splime.save(graph, tmp_path / "graph.parquet")
    with pytest.raises(UsageError, match="cannot be chosen: it"):
        transform(source, tmp_path / "triples.parquet", Vanilla(), **options)


def test_splits_of_the_file_are_kept(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(split_of_one("valid"), source)
    with pytest.raises(UsageError, match="split cannot be chosen: it has splits"):
        transform(source, tmp_path / "triples.parquet", Vanilla(), split="none")
    with pytest.raises(UsageError, match="streaming keeps the splits"):
        transform(source, tmp_path / "triples.parquet", Vanilla(), split="time")


def test_columns_are_chosen(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"], source)
    columns = ["object", "predicate", "subject", "begin"]
    check_same(source, Timestamp(), 2, columns=columns, split="none")


def test_no_facts_to_fit_on(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"].append_column("split", pa.array(["test"] * 4)), source)
    with pytest.raises(UsageError, match="no facts to fit on"):
        transform(source, tmp_path / "triples.parquet", Vanilla())
    result, _ = stream(source, Vanilla(fit_on="all"))
    assert dict(result.facts) == {"train": 0, "valid": 0, "test": 4}


def test_broken_files(tmp_path: Path) -> None:
    source, target = tmp_path / "facts.parquet", tmp_path / "triples.parquet"
    with pytest.raises(DataError, match="no such Parquet file"):
        transform(source, target, Vanilla())
    source.write_bytes(b"PAR1 no PAR1")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        transform(source, target, Vanilla())
    make_world(tmp_path / "world.parquet", World(facts=20_000))
    whole = bytearray((tmp_path / "world.parquet").read_bytes())
    whole[1000:3000] = bytes(2000)
    source.write_bytes(whole)
    with pytest.raises(DataError, match="the file is damaged"):
        transform(source, target, Vanilla())
    pq.write_table(pq.read_table(tmp_path / "world.parquet"), source)  # without a checksum
    whole = bytearray(source.read_bytes())
    whole[1000:3000] = bytes(2000)
    source.write_bytes(whole)
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        transform(source, target, Vanilla())
    assert not target.exists()


@pytest.mark.parametrize("metadata", [b"{", b'{"format": 99}', b'{"format": 1, "timeline": {}}'])
def test_damaged_descriptions(tmp_path: Path, metadata: bytes) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"].replace_schema_metadata({b"splime": metadata}), source)
    with pytest.raises(DataError, match=r"damaged|not a format"):
        transform(source, tmp_path / "triples.parquet", Vanilla())


def damage(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    table = pq.read_table(path)
    described = json.loads(table.schema.metadata[b"splime"])
    change(described)
    metadata = {b"splime": json.dumps(described).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(granularity="eon"),
        lambda d: d.update(granularity=["year"]),
        lambda d: d.update(timeline={"starts": [3, 1], "ends": [3, 1]}),
        lambda d: d.update(timeline={"starts": [10**30], "ends": [10**30]}),
        lambda d: d.update(timeline={"starts": [1990, 1991], "ends": [1991]}),
        lambda d: d.update(filled={}),
        lambda d: d.update(filled={"last": 1995}),
        lambda d: d["filled"].update(evil="1990"),
        lambda d: d.update(unused={"entities": [], "predicates": [7]}),
        lambda d: d.update(reading=[]),
        lambda d: d.update(name=7),
    ],
)
@pytest.mark.parametrize("options", [{}, {"bucket": 1}])
def test_what_cannot_be_loaded_is_not_streamed(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], options: dict[str, Any]
) -> None:
    facts = [("a", "p", "b", 1990, None), ("a", "p", "b", 1991, 1993)]
    source = splime.save(splime.read(facts, split="none"), tmp_path / "graph.parquet")
    damage(source, change)
    for work in (splime.load, lambda _: transform(source, tmp_path / "t", Vanilla(), **options)):
        with pytest.raises(DataError, match="is damaged"):
            work(source)
    assert [*tmp_path.iterdir()] == [source]


def test_saved_facts_that_end_before_they_begin(tmp_path: Path) -> None:
    facts = [("a", "p", "b", 1990, 1999), ("a", "p", "b", 1991, 1993)]
    graph = splime.read(facts, split="none").bucket(100)  # one bucket, in which no time differs
    source = splime.save(graph, tmp_path / "graph.parquet")
    table = pq.read_table(source)
    pq.write_table(table.set_column(5, "end", pa.array([1999, 1990])), source)
    for work in (splime.load, lambda _: transform(source, tmp_path / "t", Vanilla())):
        with pytest.raises(DataError, match="ends before it begins"):
            work(source)


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"], source)

    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    for name in ("pyarrow.parquet.ParquetWriter.write_batch", "splime.streaming.duplicates._path"):
        with monkeypatch.context() as context:
            context.setattr(name, full)
            with pytest.raises(SplimeError, match="cannot be written: no space left"):
                transform(source, tmp_path / "triples.parquet", Vanilla())
    assert [*tmp_path.iterdir()] == [source]


def test_interrupted_runs_leave_nothing(tmp_path: Path) -> None:
    source = tmp_path / "facts.parquet"
    pq.write_table(KINDS["years"], source)

    def interrupt(what: str, done: int, total: int | None) -> None:
        if what == "applying":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        transform(source, tmp_path / "triples.parquet", Vanilla(), progress=interrupt, batch_rows=1)
    assert [*tmp_path.iterdir()] == [source]


@pytest.mark.system
def test_memory_does_not_grow_with_the_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Arrow holds at most while triples are written."""

    def most(count: int) -> int:
        source, target = tmp_path / f"{count}.parquet", tmp_path / f"{count}.triples"
        make_world(source, World(facts=count))
        held: list[int] = []
        encoded = passes._encoded

        def watched(*arguments: Any) -> pa.Array:
            held.append(pa.total_allocated_bytes())
            return encoded(*arguments)

        with monkeypatch.context() as context:
            context.setattr(passes, "_encoded", watched)
            stream_transform(source, target, Merge(shrink=4), batch_rows=50_000)
        return max(held)

    # How far the writing thread is makes a difference, but not one that grows.
    assert most(3_000_000) < 2 * most(300_000)


@pytest.mark.system
def test_worlds_agree_with_memory(tmp_path: Path) -> None:
    source = tmp_path / "world.parquet"
    make_world(source, World(facts=20_000))
    graph = splime.load(source)
    result, triples = stream(source, Merge(shrink=4), batch_rows=7_000)
    static = Merge(shrink=4).fit_transform(graph)
    assert result.segmentation == static.segmentation
    assert triples == in_memory(graph, Merge(shrink=4))
