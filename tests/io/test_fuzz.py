"""Broken files end in a SplimeError or in a graph that accounts for every row. Nothing else."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splime
from splime.errors import SplimeError
from splime.splitting import HowToSplit

pytestmark = pytest.mark.system

ROWS = b"".join(b"s%d\tp%d\to%d\t19%02d\t%d\n" % (n, n % 3, n % 7, n, 1950 + n) for n in range(60))
CSV = b"subject,predicate,object,begin,end\n" + b"".join(
    b'"s %d",p,"o,%d",2001-%02d-01,\n' % (n, n % 7, 1 + n % 12) for n in range(60)
)


def at_least(examples: int) -> settings:
    """More examples than usual, and still more where the profile asks for them."""
    return settings(max_examples=max(examples, settings().max_examples))


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def parquet(tmp: Path, *, ours: bool) -> bytes:
    path = tmp / "seed.parquet"
    if ours:
        splime.save(splime.read([("a", "p", str(n), 1950 + n, None) for n in range(60)]), path)
    else:
        import pyarrow.parquet as pq

        pq.write_table(
            pa.table({c: [f"{c}{n}" for n in range(60)] for c in "spo"} | {"t": [1] * 60}), path
        )
    return path.read_bytes()


@st.composite
def mutations(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes cut, changed, doubled and inserted."""
    broken = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(broken)))
        kind = draw(st.sampled_from(["flip", "cut", "drop", "insert", "double"]))
        if kind == "flip" and at < len(broken):
            broken[at] ^= draw(st.integers(1, 255))
        elif kind == "cut":
            del broken[at:]
        elif kind == "drop":
            del broken[at : at + draw(st.integers(1, 40))]
        elif kind == "insert":
            odd = [
                b"\t",
                b"\n",
                b"\r",
                b'"',
                b"\x00",
                b"\xff",
                b"####",
                b",",
                b"\xef\xbb\xbf",
                b"\xc3",
            ]
            broken[at:at] = draw(st.sampled_from(odd) | st.binary(max_size=8))
        else:
            broken[at:at] = broken[at : at + draw(st.integers(1, 200))]
    return bytes(broken)


def check_reading(path: Path, split: HowToSplit | None = "none") -> splime.TemporalGraph | None:
    try:
        graph = splime.load(path, split=split)
    except SplimeError as error:
        assert path.name in str(error) or "no facts are left" in str(error)  # noqa: PT017
        return None
    reading = graph.reading
    assert reading.kept == len(graph)
    assert reading.rows == reading.kept + sum(reading.dropped.values())
    return graph


@at_least(400)
@given(data=mutations(ROWS))
def test_tsv(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "f.tsv"
    path.write_bytes(data)
    graph = check_reading(path)
    if graph is not None:
        # Every line that is not empty is a row that was counted, or the header.
        lines = [
            line for line in re.split(rb"\r\n|\r|\n", data) if line and line != b"\xef\xbb\xbf"
        ]
        header = graph.reading.sources[0].header is not None
        assert graph.reading.rows == len(lines) - header


@at_least(300)
@given(data=mutations(CSV))
def test_csv(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "f.csv"
    path.write_bytes(data)
    check_reading(path)


@at_least(100)
@given(data=mutations(gzip.compress(ROWS)))
def test_gzip(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "f.tsv.gz"
    path.write_bytes(data)
    check_reading(path)


@at_least(100)
@given(data=mutations(zstd(ROWS)))
def test_zstd(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "f.tsv.zst"
    path.write_bytes(data)
    check_reading(path)


@pytest.mark.parametrize("ours", [True, False])
def test_parquet(tmp_path_factory: pytest.TempPathFactory, ours: bool) -> None:
    seed = parquet(tmp_path_factory.mktemp("seed"), ours=ours)

    @at_least(300)
    @given(data=mutations(seed))
    def check(data: bytes) -> None:
        path = tmp_path_factory.mktemp("fuzz") / "f.parquet"
        path.write_bytes(data)
        check_reading(path, None if ours else "none")

    check()


@at_least(200)
@given(data=st.binary(max_size=300), name=st.sampled_from(["f.tsv", "f.csv", "f.txt", "f.parquet"]))
def test_noise(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str) -> None:
    path = tmp_path_factory.mktemp("fuzz") / name
    path.write_bytes(data)
    check_reading(path)


@at_least(100)
@given(data=mutations(b"Ada\t0\nUlm\t1\n"))
def test_dictionary_files(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "entity2id.txt").write_bytes(data)
    (folder / "relation2id.txt").write_bytes(b"bornIn\t0\n")
    (folder / "train.txt").write_bytes(b"0\t0\t1\t1990\n")
    try:
        graph = splime.load(folder)
    except SplimeError as error:
        assert "entity2id.txt" in str(error) or "train.txt" in str(error)  # noqa: PT017
    else:
        assert len(graph) == 1
