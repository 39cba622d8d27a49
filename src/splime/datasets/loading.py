"""The named datasets, of which `registry.toml` says what and where they are; and loading graphs."""

from __future__ import annotations

import glob
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pyarrow import parquet

from splime.datasets.download import RemoteFile, fetch
from splime.datasets.unrolled import unroll
from splime.errors import DataError, DownloadError, UsageError, check_name, counted, nearest
from splime.graph import TemporalGraph
from splime.io import read
from splime.io.files import checksum, is_there
from splime.io.inputs import is_stored
from splime.io.options import ReadOptions
from splime.io.sources import files_read, read_unsplit
from splime.progress import progress_bar
from splime.reading import LOG

if TYPE_CHECKING:
    from splime.keywords import Reading


@dataclass(frozen=True)
class Dataset:
    """A published dataset of dated facts."""

    name: str
    about: str
    published: str
    """Who made it, and where it appeared."""
    address: str = ""
    """The folder on the web that holds the files; empty if there is none."""
    made_from: str = ""
    """The dataset that it is made from, by `datasets.unrolled`."""
    same_facts: Sequence[str] = ()
    """Datasets of the same facts: nothing learned from one may be measured on the other."""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """File name and SHA-256."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """File name and bytes."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """How `splime.read` has to be called to get the facts as the paper does."""

    def files(self, mirror: str | None = None) -> list[RemoteFile]:
        """What to download, from a mirror that has a folder for each dataset if one is given."""
        address = f"{mirror.rstrip('/')}/{self.name}" if mirror else self.address
        return [
            RemoteFile(name, f"{address}/{name}", sha, self.sizes[name])
            for name, sha in self.checksums.items()
        ]


_HERE = Path(__file__).parent
_REGISTRY = tomllib.loads((_HERE / "registry.toml").read_text(encoding="utf-8"))
DATASETS: Mapping[str, Dataset] = {
    name: Dataset(name, **about) for name, about in _REGISTRY.items()
}


def load(source: Any, **options: Unpack[Reading]) -> TemporalGraph:
    """Load a named dataset (`splime datasets list`), or read facts from anywhere.

    Everything but a name, and all options, are those of `splime.read`. A dataset that is neither
    in the folder of the environment variable SPLIME_DATA nor in the cache is downloaded.

    >>> load("demo")
    TemporalGraph(demo: 10,000 facts, ..., 71 timestamps by year, 1950..2020)
    """
    return _load(source, options, read)


def load_unsplit(source: Any, **options: Unpack[Reading]) -> TemporalGraph:
    """The same, but facts without splits are not split unless that is chosen."""
    return _load(source, options, read_unsplit)


def announce(graph: TemporalGraph) -> None:
    """Say in the log what was read, and what was noticed."""
    account = (
        graph.reading if graph.reading.kept == len(graph) else f"read {counted(len(graph), 'fact')}"
    )
    LOG.info("%s: %s", graph.name or "facts", account)
    for remark in graph.reading.remarks:
        LOG.debug("%s: %s", graph.name or "facts", remark)


def _load(
    source: Any, options: Mapping[str, Any], read: Callable[..., TemporalGraph]
) -> TemporalGraph:
    ReadOptions.of(options)  # a wrong one is an error before anything is downloaded
    graph = _read(source, options, read)
    announce(graph)
    return graph


def _read(
    source: Any, options: Mapping[str, Any], read: Callable[..., TemporalGraph]
) -> TemporalGraph:
    if not isinstance(source, str):
        return read(source, **options)
    if source not in DATASETS:
        is_place = "/" in source or "." in source or not is_stored(source)
        if is_place or (source and (is_there(Path(source)) or glob.has_magic(source))):
            return read(source, **options)  # an error if there is no such file
        raise UsageError(
            f"there is no dataset, file or folder called {source!r}; the datasets are"
            f" {', '.join(DATASETS)}.{nearest(source, DATASETS)}"
        )
    dataset = DATASETS[source]
    if not dataset.checksums:
        return read(parquet.read_table(_HERE / f"{source}.parquet"), **{"name": source, **options})
    return read(fetch_dataset(source), **{**dataset.options, **options})


def files_of_source(source: str, options: Mapping[str, Any]) -> list[Path]:
    """The files that decide what `load` makes of a source, those of a dataset if they are here."""
    chosen = ReadOptions.of(options)
    if source not in DATASETS:
        return files_read(source, chosen)
    if not DATASETS[source].checksums:
        return [_HERE / f"{source}.parquet"]
    return files_read(given_folder(DATASETS[source]) or cache_folder() / source, chosen)


def fetch_dataset(name: str) -> Path:
    """The folder with the files of a dataset, downloaded if need be, checked in any case."""
    dataset = find(name)
    if not dataset.checksums:
        raise UsageError(f"{name} is part of the package; there is nothing to download")
    if given := given_folder(dataset):
        _check(dataset, given)
        return given
    folder = cache_folder() / name
    if dataset.made_from:
        unroll(fetch_dataset(dataset.made_from), folder)
        _check(dataset, folder)
        return folder
    mirror = os.environ.get("SPLIME_MIRROR")
    if not (dataset.address or mirror):
        raise DownloadError(
            f"{name} cannot be downloaded file by file ({dataset.published}): put"
            f" {', '.join(dataset.checksums)} into the folder {name} of a folder of your own, and"
            " name that folder in the environment variable SPLIME_DATA"
        )
    with progress_bar(bytes=True) as progress:
        for file in dataset.files(mirror):
            fetch(file, folder, progress=progress)
    return folder


def find(name: str) -> Dataset:
    """The dataset of a name."""
    check_name("dataset", name, DATASETS)
    return DATASETS[name]


def where(dataset: Dataset) -> Path | str | None:
    """Where a dataset is, without downloading it."""
    if not dataset.checksums:
        return "in the package"
    for folder in (given_folder(dataset), cache_folder() / dataset.name):
        if folder is not None and all((folder / name).is_file() for name in dataset.checksums):
            return folder
    return None


def given_folder(dataset: Dataset) -> Path | None:
    """Where SPLIME_DATA holds a dataset, if it does."""
    root = os.environ.get("SPLIME_DATA")
    if not root:
        return None
    if not Path(root).is_dir():
        raise UsageError(f"SPLIME_DATA names {root!r}, which is not a folder")
    folder = Path(root) / dataset.name
    return folder if folder.is_dir() else None


def cache_folder() -> Path:
    """Where downloaded datasets are kept: SPLIME_CACHE, or the user's cache."""
    if chosen := os.environ.get("SPLIME_CACHE"):
        return Path(chosen)
    import platformdirs

    return platformdirs.user_cache_path("splime")


def _check(dataset: Dataset, folder: Path) -> None:
    for name, published in dataset.checksums.items():
        path = folder / name
        if not path.is_file():
            raise DataError(f"{path}: the file is missing; {dataset.name} needs it")
        if checksum(path) != published:
            raise DataError(
                f"{path}: not the published file (its SHA-256 differs); metrics from it would not"
                f" compare. To read it all the same, give its folder: {folder}"
            )
