"""The named datasets; `registry.toml` says what they are and where they are published."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from splime.datasets.download import RemoteFile


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


_REGISTRY = tomllib.loads(Path(__file__).with_name("registry.toml").read_text(encoding="utf-8"))
DATASETS: Mapping[str, Dataset] = {
    name: Dataset(name, **about) for name, about in _REGISTRY.items()
}
