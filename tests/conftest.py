from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import splime
from splime.graph import TemporalGraph

# The tensors of the tests are tiny: threads on a busy machine would mostly wait for each other.
# Before anything imports torch, and for the programs that tests start, too.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Tests leave the user's cache alone; those of the cache have one of their own.
os.environ["SPLIME_NO_CACHE"] = "1"

# A shell that starts the tests in the background has them ignore Ctrl-C, which some of them test.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The machines are shared: a slow example is not a failing one. Derandomised, so that a red CI can
# be run again. scripts/test.sh takes `steady`; HYPOTHESIS_PROFILE=search looks further.
for profile, examples in (("quick", 20), ("steady", 60)):
    settings.register_profile(
        profile,
        deadline=None,
        derandomize=True,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.register_profile("search", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="session")
def published() -> Path:
    """The folder with the three published datasets."""
    beside = Path(__file__).parents[2] / "shared" / "datasets"
    folder = Path(os.environ.get("SPLIME_DATA", beside))
    if not (folder / "icews14").is_dir():
        pytest.skip(f"the published datasets are not in {folder} (set SPLIME_DATA)")
    return folder


@pytest.fixture(scope="session")
def published_graphs(published: Path) -> dict[str, TemporalGraph]:
    """The three published datasets, loaded once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPLIME_DATA", str(published))
        return {name: splime.load(name) for name in ("wikidata12k", "yago11k", "icews14")}


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Any]:
    """A Ray cluster of two nodes with a processor each, which this process has joined.

    `splime.workers` uses the cluster that a process has joined. Tests add and remove nodes.
    """
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    quiet = {"include_dashboard": False, "num_cpus": 1}
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=quiet)
    cluster.add_node(num_cpus=1)
    ray.init(cluster.address, log_to_driver=False, logging_level="error")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache and no SPLIME_DATA; returns the cache."""
    for name in ("SPLIME_DATA", "SPLIME_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPLIME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
