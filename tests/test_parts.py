"""Transforms on many workers: whatever happens to them, the rows are those of one process."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import splime
from experiments.world import World, make_world
from splime.cli.main import app
from splime.errors import DataError, SplimeError, UsageError
from splime.io.parquet import Batch, Part
from splime.io.parts import MANIFEST, UNFINISHED
from splime.methods import Merge, Timestamp
from splime.progress import Progress, silent
from splime.streaming import StreamResult, stream_transform, transform_parts
from splime.streaming.transform import StreamSource
from tests.graphs import Row, rows

METHOD = Merge(shrink=4)
ROWS = 9_000
IN_PARTS: dict[str, Any] = {"part_rows": 1000, "batch_rows": 300}


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three files, in which some facts are repeated."""
    folder = tmp_path_factory.mktemp("facts")
    for seed in range(3):
        world = folder / "world"
        make_world(world, World(facts=ROWS // 3 - 50, seed=seed))
        table = pq.read_table(world).replace_schema_metadata(None)
        table = pa.concat_tables([table, table.slice(0, 50)])
        pq.write_table(table, folder / f"{seed}.parquet", row_group_size=500)
        world.unlink()
    return folder


@pytest.fixture(scope="module")
def alone(facts: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[StreamResult, pa.Table]:
    """What one process makes of them."""
    target = tmp_path_factory.mktemp("alone") / "alone.parquet"
    result = stream_transform(facts, target, METHOD)
    assert result.dropped["duplicate"] >= 150
    return result, pq.read_table(target)


@pytest.fixture(scope="module")
def calm(facts: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files that workers write if nothing happens to them, in parts of 1,000 facts."""
    folder = tmp_path_factory.mktemp("calm") / "calm"
    transform_parts(facts, folder, METHOD, workers=1, **IN_PARTS)
    return contents(folder)


def table_of(folder: Path) -> pa.Table:
    """The rows of a folder, as the manifest lists them."""
    files = json.loads((folder / MANIFEST).read_text())["files"]
    return pa.concat_tables([pq.read_table(folder / file["name"]) for file in files])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def check_same(result: StreamResult, folder: Path, alone: tuple[StreamResult, pa.Table]) -> None:
    expected, table = alone
    assert table_of(folder).to_pylist() == table.to_pylist()
    assert (result.rows, result.facts, result.triples, result.dropped, result.segmentation) == (
        expected.rows,
        expected.facts,
        expected.triples,
        expected.dropped,
        expected.segmentation,
    )
    names = {path.name for path in folder.iterdir()}
    manifest = json.loads((folder / MANIFEST).read_text())
    assert names == {
        MANIFEST,
        "segmentation.json",
        *(file["name"] for file in manifest["files"]),
        *(f"part-{number:05}.json" for number in range(manifest["parts"])),
    }


@contextmanager
def in_any_order(_: Any) -> Iterator[Any]:
    """Workers that are this process, and end in any order."""

    def shuffled(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        numbers = [*range(len(tasks))]
        random.Random(len(tasks)).shuffle(numbers)
        for number in numbers:
            yield number, function(tasks[number])

    yield SimpleNamespace(map_unordered=shuffled)


@settings(max_examples=15)
@given(
    st.lists(st.tuples(rows(), st.integers(1, 7)), min_size=1, max_size=3),
    st.data(),
    st.integers(1, 20),
    st.sampled_from(["train", "all"]),
)
def test_any_parts_in_any_order(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[tuple[list[Row], int]],
    data: st.DataObject,
    part_rows: int,
    fit_on: Any,
) -> None:
    """With unknown times, duplicates, splits, limits and buckets, in files of any row groups."""
    folder = tmp_path_factory.mktemp("parts")
    options: dict[str, Any] = data.draw(
        st.fixed_dictionaries(
            {"allow_loss": st.just(True)},
            optional={
                "keep_duplicates": st.booleans(),
                "bucket": st.integers(1, 6),
                "first": st.integers(1989, 2000),
                "last": st.integers(1989, 2000),
            },
        )
    )
    has_splits = data.draw(st.booleans())
    if not has_splits:
        options |= data.draw(
            st.sampled_from([{"split": "none"}, {"split": "time", "allow_unseen": True}])
        )
    (folder / "facts").mkdir()
    for number, (some, group) in enumerate(files):
        some = some or [("a", "p", "b", 1990, 1991)]
        types = (pa.string(),) * 3 + (pa.int64(),) * 2
        columns = [pa.array(c, t) for c, t in zip(zip(*some, strict=True), types, strict=True)]
        table = pa.table(columns, ["subject", "predicate", "object", "begin", "end"])
        if has_splits:
            splits = [data.draw(st.sampled_from(["train", "valid", "test"])) for _ in some]
            table = table.append_column("split", pa.array(splits))
        pq.write_table(table, folder / "facts" / f"{number}.parquet", row_group_size=group)
    method = Timestamp(fit_on=fit_on)
    one, many = folder / "one.parquet", folder / "many"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("splime.streaming.transform.worker_pool", in_any_order)
        try:
            expected = stream_transform(folder / "facts", one, method, **options)
        except SplimeError as error:
            with pytest.raises(type(error)):
                transform_parts(folder / "facts", many, method, part_rows=part_rows, **options)
            assert not many.exists()
            return
        result = transform_parts(folder / "facts", many, method, part_rows=part_rows, **options)
    check_same(result, many, (expected, pq.read_table(one)))


@pytest.mark.system
@pytest.mark.parametrize(("engine", "workers"), [("processes", 1), ("processes", 3), ("ray", 3)])
def test_any_number_of_workers(
    tmp_path: Path,
    facts: Path,
    alone: tuple[StreamResult, pa.Table],
    engine: str,
    workers: int,
    ray_cluster: Any,
) -> None:
    seen: list[tuple[Any, ...]] = []
    result = transform_parts(
        f"{facts}/*.parquet",
        tmp_path / "big",
        METHOD,
        engine=engine,
        workers=workers,
        part_rows=1000,
        progress=lambda *update: seen.append(update),
    )
    check_same(result, tmp_path / "big", alone)
    for step in ("reading times", "finding duplicates", "counting", "applying"):
        assert [done for what, done, *_ in seen if what == step][-1] == ROWS


@dataclass(frozen=True)
class Deadly(Part):
    """A part that kills its worker at its second batch, every other time that it is read."""

    deaths: Path = Path()

    def batches(self, *roles: str, progress: Progress = silent) -> Iterator[Batch]:
        place = self.deaths / f"{self.fact}-{'-'.join(roles)}"
        with place.open("a") as file:
            file.write("x")
        for number, batch in enumerate(super().batches(*roles, progress=progress)):
            if number and place.stat().st_size % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch


@pytest.mark.system
@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_killed_workers_lose_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    facts: Path,
    alone: tuple[StreamResult, pa.Table],
    calm: dict[str, bytes],
    engine: str,
    ray_cluster: Any,
) -> None:
    """A part kills a worker in the middle of every step."""
    usual = StreamSource.parts

    def deadly(self: StreamSource, most_rows: int) -> list[Part]:
        first, *others = usual(self, most_rows)
        return [Deadly(**vars(first), deaths=tmp_path), *others]

    monkeypatch.setattr(StreamSource, "parts", deadly)
    options: dict[str, Any] = {"engine": engine, "workers": 2, **IN_PARTS}
    result = transform_parts(facts, tmp_path / "big", METHOD, **options)
    check_same(result, tmp_path / "big", alone)
    assert contents(tmp_path / "big") == calm
    reads = {path.name.partition("-")[2]: path.stat().st_size for path in tmp_path.glob("0-*")}
    counting = "split-predicate-begin-end"
    # Fingerprints and triples read all columns.
    assert reads == {"begin-end": 2, counting: 2, "split-subject-predicate-object-begin-end": 4}


@pytest.mark.system
def test_a_node_that_leaves_loses_nothing(
    tmp_path: Path, facts: Path, alone: tuple[StreamResult, pa.Table], ray_cluster: Any
) -> None:
    node = ray_cluster.add_node(num_cpus=2)
    left: list[str] = []

    def leave(what: str, done: int, total: int | None = None, note: str = "") -> None:
        if what == "applying" and not left:
            left.append(what)
            ray_cluster.remove_node(node, allow_graceful=False)

    result = transform_parts(
        facts, tmp_path / "big", METHOD, engine="ray", part_rows=500, progress=leave
    )
    assert left
    check_same(result, tmp_path / "big", alone)


DRIVER = """
import os, signal, sys
from pathlib import Path
from splime.methods import Merge
from splime.streaming import transform_parts

def kill(what, done, total=None, note=""):
    if what == "applying" and done >= 4000:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    transform_parts(
        sys.argv[1], Path(sys.argv[2]), Merge(shrink=4), workers=2, part_rows=1000, batch_rows=300,
        progress=kill,
    )
"""


@pytest.mark.system
def test_a_killed_driver_goes_on(
    tmp_path: Path,
    facts: Path,
    alone: tuple[StreamResult, pa.Table],
    calm: dict[str, bytes],
) -> None:
    script, big = tmp_path / "driver.py", tmp_path / "big"
    script.write_text(DRIVER)
    done = subprocess.run([sys.executable, script, facts, big], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (big / UNFINISHED).exists()
    assert not (big / MANIFEST).exists()
    receipts = {path: path.stat().st_mtime_ns for path in big.glob("part-*.json")}
    assert len(receipts) >= 4
    for reader in (splime.read, lambda path: transform_parts(path, tmp_path / "no", METHOD)):
        with pytest.raises(DataError, match="not complete"):
            reader(big)  # half a result is never read
    attempt = big / ".train-00000.parquet.999999.part"
    attempt.touch()
    damaged, *others = sorted(receipts)
    own = big / damaged.name.replace("part", "train").replace("json", "parquet")
    own.write_bytes(own.read_bytes()[:-1] + b"?")  # its receipt does not fit any more
    result = transform_parts(facts, big, METHOD, workers=2, **IN_PARTS)
    check_same(result, big, alone)
    assert all(path.stat().st_mtime_ns == receipts[path] for path in others)
    assert damaged.stat().st_mtime_ns > receipts[damaged]
    assert contents(big) == calm


@pytest.mark.system
def test_receipts_of_other_cuts_do_not_fit(
    tmp_path: Path, facts: Path, alone: tuple[StreamResult, pa.Table]
) -> None:
    big = tmp_path / "big"
    transform_parts(facts, big, Timestamp(), part_rows=2000)
    (big / MANIFEST).rename(big / UNFINISHED)  # as if it had been killed at the very end
    result = transform_parts(facts, big, METHOD, part_rows=3000)
    check_same(result, big, alone)


def broken(facts: Path, folder: Path) -> Path:
    """The same facts, but one of them has no predicate."""
    folder.mkdir()
    for path in facts.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    table = pq.read_table(folder / "1.parquet")
    predicates = table["predicate"].to_pylist()
    predicates[2345] = None
    at = table.schema.get_field_index("predicate")
    table = table.set_column(at, "predicate", pa.array(predicates))
    pq.write_table(table, folder / "1.parquet", row_group_size=500)
    return folder


@pytest.mark.system
@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_a_broken_row_is_named(tmp_path: Path, facts: Path, engine: str, ray_cluster: Any) -> None:
    source, big = broken(facts, tmp_path / "broken"), tmp_path / "big"
    with pytest.raises(DataError, match=r"broken/1.parquet, row 2346: a name is missing"):
        transform_parts(source, big, METHOD, engine=engine, part_rows=1000, workers=2)
    assert not big.exists()


@pytest.mark.system
def test_folders_of_triples_are_read(
    tmp_path: Path, facts: Path, alone: tuple[StreamResult, pa.Table]
) -> None:
    """A triple is read as a fact of its scoped predicate: for leaks, filters, formats."""
    big = tmp_path / "big"
    transform_parts(facts, big, METHOD, part_rows=2000, workers=1)
    graph = splime.load(str(big))
    static = METHOD.fit_transform(splime.load(str(facts)))
    assert len(graph) == len(static) == alone[1].num_rows
    assert splime.leakage.report(graph).duplicates["train"].count > 0
    for kind in ("inter", "both"):
        (kept, removed), (expected, as_many) = (
            own.filter(kind) for own in (splime.Vanilla().fit_transform(graph), static)
        )
        assert dict(removed.removed) == dict(as_many.removed)
        for name, own in (("of_folder", kept), ("expected", expected)):
            splime.export(own, tmp_path / kind / name, "tsv")
        for file in ("train.txt", "valid.txt", "test.txt", "entities.dict", "relations.dict"):
            both = [tmp_path / kind / name / file for name in ("of_folder", "expected")]
            assert both[0].read_bytes() == both[1].read_bytes()
    again = transform_parts(big, tmp_path / "again", splime.Vanilla(), part_rows=5000, workers=1)
    assert sum(again.triples.values()) == alone[1].num_rows
    columns = ["split", "subject", "predicate", "object"]
    assert (
        table_of(tmp_path / "again").select(columns).to_pylist()
        == table_of(big).select(columns).to_pylist()
    )
    part = next(big.glob("valid-*.parquet"))
    damaged = bytearray(part.read_bytes())
    damaged[100] ^= 1
    part.write_bytes(damaged)
    for work in (splime.load, lambda _: transform_parts(big, tmp_path / "no", METHOD, workers=1)):
        with pytest.raises(DataError, match=f"{part.name}: the file is damaged or missing"):
            work(str(big))
    manifest = json.loads((big / MANIFEST).read_text())
    manifest["files"][0]["name"] = f"../facts/{part.name}"
    (big / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="splime does not write there"):
        splime.load(str(big))


@pytest.mark.system
def test_what_is_in_the_way(tmp_path: Path, facts: Path) -> None:
    big = tmp_path / "big"
    transform_parts(facts, big, METHOD, workers=1)
    with pytest.raises(UsageError, match=r"not empty.*overwrite"):
        transform_parts(facts, big, METHOD, workers=1)
    before = contents(big)
    transform_parts(facts, big, METHOD, workers=1, part_rows=2000, overwrite=True)
    assert contents(big).keys() > before.keys()
    other = splime.export(
        METHOD.fit_transform(splime.load(str(facts))), tmp_path / "other", "parquet"
    )
    transform_parts(facts, tmp_path / "other", METHOD, workers=1, part_rows=2000, overwrite=True)
    assert contents(tmp_path / "other") == contents(big)
    assert other[0].name not in contents(big)
    (big / "diary.txt").touch()
    with pytest.raises(UsageError, match=r"diary.txt"):
        transform_parts(facts, big, METHOD, overwrite=True)
    for options in ({"part_rows": 0}, {"workers": 0}, {"engine": "threads"}):
        with pytest.raises(UsageError):
            transform_parts(facts, tmp_path / "new", METHOD, **options)
        assert not (tmp_path / "new").exists()


def test_files_that_do_not_belong_together(tmp_path: Path, facts: Path) -> None:
    table = pq.read_table(facts / "0.parquet")
    folder = tmp_path / "facts"
    folder.mkdir()
    pq.write_table(table, folder / "0.parquet")
    pq.write_table(table.drop_columns(["split"]), folder / "1.parquet")
    for work in (splime.load, lambda _: transform_parts(folder, tmp_path / "big", METHOD)):
        with pytest.raises(DataError, match=r"1.parquet: has"):
            work(str(folder))
    splime.save(splime.load(str(facts)), folder / "1.parquet")
    for work in (splime.load, lambda _: transform_parts(folder, tmp_path / "big", METHOD)):
        with pytest.raises(SplimeError, match=r"saved graph|a whole graph"):
            work(str(folder))
    with pytest.raises(DataError, match="no such Parquet file"):
        transform_parts(f"{folder}/*.nothing.parquet", tmp_path / "big", METHOD)
    assert not (tmp_path / "big").exists()


@pytest.mark.system
def test_the_command(tmp_path: Path, facts: Path, alone: tuple[StreamResult, pa.Table]) -> None:
    """Small inputs are loaded, unless an engine is asked for."""
    splime_ = [sys.executable, "-m", "splime", "transform", f"{facts}/*.parquet"]
    method = ["--method", "merge", "--shrink", "4", "--out"]
    for more in ([tmp_path / "small"], [tmp_path / "big", "--engine", "processes"]):
        done = subprocess.run([*splime_, *method, *more], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert table_of(tmp_path / "big").to_pylist() == alone[1].to_pylist()
    small = pq.read_table(tmp_path / "small" / "triples.parquet")
    assert small.to_pylist() == alone[1].to_pylist()
    arguments = ["transform", str(facts), *method[:-1], "--out", str(tmp_path / "no")]
    for options, message in (
        (["--filter", "inter", "--engine", "ray"], "streaming writes Parquet"),
        (["--workers", "2"], "--engine"),
    ):
        refused = CliRunner().invoke(app, [*arguments, *options])
        assert isinstance(refused.exception, UsageError)
        assert message in str(refused.exception)
    assert not (tmp_path / "no").exists()
