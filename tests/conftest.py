from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import splime
from splime.graph import TemporalGraph

# The tensors of the tests are tiny: threads on a busy machine would mostly wait for each other.
# Before anything imports torch, and for the programs that tests start, too.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell that starts the tests in the background has them ignore Ctrl-C, which some of them test.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The machines are shared: a slow example is not a failing one. Derandomised, so that a red CI can
# be run again; HYPOTHESIS_PROFILE=search looks further.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


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


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache and no SPLIME_DATA; returns the cache."""
    for name in ("SPLIME_DATA", "SPLIME_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPLIME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
