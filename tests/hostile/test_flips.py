"""A flipped bit in a file that splime wrote is an error, or changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import splime
from experiments.world import World, make_world
from splime.errors import DataError, SplimeError
from splime.methods import Timestamp, Vanilla
from splime.runs.evaluating import kept
from splime.runs.run import Run
from splime.streaming import stream_transform

FACTS = [(f"e{n % 7}", f"p{n % 3}", f"e{n % 5}", 1990 + n % 9, 1995 + n % 9) for n in range(60)]


def flips(whole: bytes, count: int) -> list[bytes]:
    """The bytes with one bit flipped: everywhere in turn, and near the ends every one."""
    rng = np.random.default_rng(0)
    places = {*rng.integers(0, 8 * len(whole), count).tolist(), *range(8 * 8)}
    damaged = []
    for place in sorted(places | {8 * len(whole) - 1 - bit for bit in range(12 * 8)}):
        byte, bit = divmod(place, 8)
        damaged.append(whole[:byte] + bytes([whole[byte] ^ 1 << bit]) + whole[byte + 1 :])
    return damaged


def check_flips(path: Path, read: Callable[[], Any], count: int, least: float = 0.9) -> None:
    """Flip bits of a file; reading it is an error of ours, or gives what it gave before."""
    whole, expected = path.read_bytes(), read()
    errors = 0
    damaged = flips(whole, count)
    for some in damaged:
        path.write_bytes(some)
        try:
            assert read() == expected
        except SplimeError:
            errors += 1
    path.write_bytes(whole)
    assert read() == expected
    assert errors >= least * len(damaged)


@pytest.fixture
def graph() -> splime.TemporalGraph:
    return splime.read(FACTS, name="flipped")


def test_saved_graphs(graph: splime.TemporalGraph, tmp_path: Path) -> None:
    path = splime.save(graph, tmp_path / "graph.parquet")

    def read() -> Any:
        loaded = splime.load(path)
        return loaded, loaded.name, loaded.reading

    check_flips(path, read, 600)


def test_saved_graphs_that_are_streamed(graph: splime.TemporalGraph, tmp_path: Path) -> None:
    path, target = splime.save(graph, tmp_path / "graph.parquet"), tmp_path / "triples.parquet"

    def read() -> Any:
        target.unlink(missing_ok=True)
        result = stream_transform(path, target, Vanilla())
        return result.segmentation, pq.read_table(target).to_pylist()

    check_flips(path, read, 100)


def test_worlds(tmp_path: Path) -> None:
    path = tmp_path / "world.parquet"
    make_world(path, World(facts=1_000))
    check_flips(path, lambda: splime.load(path), 60)


def test_segmentations(graph: splime.TemporalGraph, tmp_path: Path) -> None:
    path = splime.save_segmentation(Timestamp().fit(graph), tmp_path / "segmentation.json")

    def read() -> Any:
        loaded = splime.load_segmentation(path)
        return loaded, loaded.method

    check_flips(path, read, 300)


def test_ranks(tmp_path: Path, graph: splime.TemporalGraph) -> None:
    run = splime.train(graph, Vanilla(), tmp_path, dimension=4, epochs=1, batch_size=8)
    splime.evaluate(run)
    path = tmp_path / "ranks-fact-test-mean-mean.parquet"

    def read() -> Any:
        evaluation = kept(Run(tmp_path, device="cpu"))
        assert evaluation is not None
        return {name: ranks.tolist() for name, ranks in evaluation.ranks.items()}

    check_flips(path, read, 100)


def test_what_older_versions_saved_still_opens(graph: splime.TemporalGraph, tmp_path: Path) -> None:
    path = splime.save(graph, tmp_path / "graph.parquet")
    pq.write_table(pq.read_table(path), path)  # without the seal
    assert splime.load(path) == graph
    segmentation = Timestamp().fit(graph)
    path = splime.save_segmentation(segmentation, tmp_path / "segmentation.json")
    about = json.loads(path.read_text(encoding="utf-8"))
    del about["sha256"]
    path.write_text(json.dumps(about), encoding="utf-8")
    assert splime.load_segmentation(path) == segmentation


def test_a_file_that_was_cut_short(graph: splime.TemporalGraph, tmp_path: Path) -> None:
    path = splime.save(graph, tmp_path / "graph.parquet")
    whole = path.read_bytes()
    for length in (0, 3, 8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            splime.load(path)
