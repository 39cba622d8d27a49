from __future__ import annotations

import functools
import http.server
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import splime
from splime.datasets import DATASETS, fetch_dataset
from splime.datasets.loading import cache_folder, find, where
from splime.datasets.unrolled import unroll
from splime.errors import DataError, DownloadError, UsageError
from splime.io.files import checksum


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror(published: Path, no_data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A local server that publishes the datasets; nothing is on the disk yet."""
    handler = functools.partial(Quiet, directory=str(published))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("SPLIME_MIRROR", address)
    yield address
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", ["icews14", "wikidata12k", "yago11k"])
def test_downloaded_once_then_from_the_cache(
    mirror: str, no_data: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert where(find(name)) is None
    graph = splime.load(name)
    assert where(find(name)) == no_data / name
    monkeypatch.setenv("SPLIME_MIRROR", "http://127.0.0.1:9")  # nobody listens there
    assert splime.load(name) == graph


def test_the_given_folder_comes_first(
    published: Path, no_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPLIME_DATA", str(published))
    assert fetch_dataset("icews14") == published / "icews14"
    assert not no_data.exists()


def test_other_bytes_are_not_that_dataset(
    published: Path, no_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(published / "icews14", tmp_path / "data" / "icews14")
    monkeypatch.setenv("SPLIME_DATA", str(tmp_path / "data"))
    path = tmp_path / "data" / "icews14" / "test.txt"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"2014-03-06", b"2014-03-07", 1))
    with pytest.raises(DataError, match=r"test.txt: not the published file"):
        splime.load("icews14")
    assert len(splime.load(tmp_path / "data" / "icews14").test) > 8_000  # by path it may be read
    path.unlink()
    with pytest.raises(DataError, match=r"test.txt: the file is missing; icews14 needs it"):
        splime.load("icews14")


def test_wiki_is_made_from_wikidata12k(published: Path, tmp_path: Path) -> None:
    unroll(published / "wikidata12k", tmp_path)
    for name, expected in DATASETS["wiki"].checksums.items():
        assert checksum(tmp_path / name) == expected


def test_what_has_the_same_facts_says_so_both_ways() -> None:
    for name, dataset in DATASETS.items():
        for other in dataset.same_facts:
            assert name in DATASETS[other].same_facts


def test_what_cannot_be_downloaded_says_where_it_was_published(no_data: Path) -> None:
    with pytest.raises(DownloadError, match=r"DiffuTKG.*train.txt.*SPLIME_DATA"):
        splime.load("icews18")


def test_no_network(no_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLIME_MIRROR", "http://127.0.0.1:9")
    with pytest.raises(DownloadError, match=r"network.*SPLIME_DATA"):
        splime.load("yago11k")


def test_unknown_names(no_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"no dataset, file or folder .* Did you mean .*icews14"):
        splime.load("icews15")
    with pytest.raises(UsageError, match="Did you mean yago11k"):
        fetch_dataset("yago11")
    with pytest.raises(UsageError, match="nothing to download"):
        fetch_dataset("demo")
    with pytest.raises(DataError, match="no such file"):
        splime.load("no/such.tsv")
    monkeypatch.setenv("SPLIME_DATA", "no/such/folder")
    with pytest.raises(UsageError, match="which is not a folder"):
        splime.load("icews14")


def test_addresses_are_pinned() -> None:
    for dataset in DATASETS.values():
        for file in dataset.files() if dataset.address else ():
            assert re.search("/[0-9a-f]{40}/", file.url)
            assert len(file.sha256) == 64
        for file in dataset.files("http://mirror/"):
            assert file.url == f"http://mirror/{dataset.name}/{file.name}"


def test_the_usual_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPLIME_CACHE", raising=False)
    assert cache_folder().name == "splime"


def test_options_of_a_dataset_can_be_changed(
    published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPLIME_DATA", str(published))
    years = splime.load("yago11k", bucket=None)
    assert len(years.timeline) > 300
    swapped = splime.load("yago11k", end_before_begin="swap")
    assert len(swapped.test) == 2_051
    # The buckets are the dataset's own, so whose facts decide them can be chosen without them.
    assert len(splime.load("yago11k", bucket_on="train").timeline) == 53
    with pytest.raises(UsageError, match=r"bucket_on .* needs bucket"):
        splime.load("icews14", bucket_on="train")
    with pytest.raises(UsageError, match=r"bucket_on .* needs bucket"):
        splime.load("yago11k", bucket=None, bucket_on="train")


def test_demo() -> None:
    graph = splime.load("demo")
    assert graph.name == "demo"
    assert graph == splime.load("demo")
    assert len(graph) == 10_000
    assert splime.describe(graph).open > 0


def test_a_mirror_that_is_no_address(no_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for mirror in ("nonsense", "http://["):
        monkeypatch.setenv("SPLIME_MIRROR", mirror)
        with pytest.raises(DownloadError, match=r"not the address of a file.*SPLIME_MIRROR"):
            splime.load("icews14")
