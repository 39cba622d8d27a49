"""The named datasets: where they are published, what they are, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from splime.datasets.download import RemoteFile

_SPLIME = (
    "https://raw.githubusercontent.com/wradstok/SpliMe/"
    "ca23be2d93492a189610dc1a3991e14ec41a4488/source_data"
)


@dataclass(frozen=True)
class Dataset:
    """A published dataset of dated facts."""

    name: str
    about: str
    published: str
    """Who made it, and where it appeared."""
    address: str = ""
    """The folder on the web that holds the files; empty if the package makes the facts itself."""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """File name and SHA-256."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """How `splime.read` has to be called to get the facts as the paper does."""

    def files(self, mirror: str | None = None) -> list[RemoteFile]:
        """What to download, from a mirror that has a folder for each dataset if one is given."""
        address = f"{mirror.rstrip('/')}/{self.name}" if mirror else self.address
        return [
            RemoteFile(name, f"{address}/{name}", checksum)
            for name, checksum in self.checksums.items()
        ]


_ALL = (
    Dataset(
        "demo",
        "a synthetic world of people, clubs, cities and offices: events and intervals, by year",
        "made by this package from a seed; predicates change their behaviour at planted years",
    ),
    Dataset(
        "icews14",
        "political events of 2014, by day",
        "ICEWS; extracted by García-Durán et al., EMNLP 2018; files of Goel et al., AAAI 2020",
        f"{_SPLIME}/de-simple/icews14",
        {
            "train.txt": "a6c7922dcbe406b3e292a313b4eab191e2399c3bc4810f662bb4363043a93df6",
            "valid.txt": "23dfa5cd6f3bb5421efcc30fc03bed0e8de4c2cf251d1765ff722d6f8b15dbe3",
            "test.txt": "50d53602409a3dbaca2f13d9c7e30bf7311d8c1868fac890dc0c2836118b4cb4",
        },
        {"granularity": "day"},
    ),
    Dataset(
        "wikidata12k",
        "facts of Wikidata with valid time, by year, in 70 buckets",
        "Dasgupta et al. (HyTE), EMNLP 2018",
        f"{_SPLIME}/hyte/wiki_data",
        {
            "train.txt": "90b42097c9741fada0f81fc5f1be1cb3c0eb0f8bfcf3f5de833dd252b98d069b",
            "valid.txt": "ade5b9c50b985fcf4948b7edde69c65ff8b7c993ea545cd40dc62fc70b5e2e52",
            "test.txt": "f9d6b1bbeba58e94298a5655485b7ca3d1d449ba310b8755b32abafc5ec1da6f",
            "entity2id.txt": "307628d198b9369b650d46bb88980b38ed0957a9e8148227c94907f9b2804f01",
            "relation2id.txt": "50e6d3c632dde882c8a84aece1eda1f640f4a79a184033eb0941c10dad90e517",
        },
        {"granularity": "year", "first": 19, "last": 2020, "bucket": 300},
    ),
    Dataset(
        "yago11k",
        "facts of YAGO3 with valid time, by year, in 59 buckets",
        "Dasgupta et al. (HyTE), EMNLP 2018",
        f"{_SPLIME}/hyte/yago",
        {
            "train.txt": "e709ff0e8eced3ec9332dba5c5da95c0db403f8eddda52f3b100486b63c4e580",
            "valid.txt": "f3a3946235b078070e6bac0cd2bf6f51bd9cedc394c406873a21141a447730c7",
            "test.txt": "cc94fd96f8fbacb97cb3e75e3aa8cf2c753acd0ee4e2ae56632f7495278f1b7f",
            "entity2id.txt": "3a5482d19f80b3936ca735ea105db799f5c500b170c57f7a59f0ea2650231789",
            "relation2id.txt": "83e460205fa11720980c814aa99d70b4ec42ff9571f7ce9915390e262fc8dc34",
        },
        # Years up to 2844 are typing errors; the paper's code lets unknown ends end in 2017.
        {"granularity": "year", "last": 2017, "bucket": 300},
    ),
)
DATASETS: Mapping[str, Dataset] = {dataset.name: dataset for dataset in _ALL}
