"""Tensors in files that cannot run code, and that tell when they are damaged.

The files are safetensors, which anybody can open. The metadata holds a checksum over everything
else, so that a file cut short, with a flipped bit, or of somebody else, is never taken for good.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from splime.errors import DataError, WriteError
from splime.io.files import written_beside
from splime.static import StaticGraph

NAMES = ("entities.names", "predicates.names")
"""The tensors that hold names and not parameters."""
_FORMAT = 1
_KEY = "splime"


def save_tensors(path: Path, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    """Write tensors and a JSON description, beside and then renamed over.

    The same tensors and description give the same bytes.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    here = {name: tensor.detach().cpu().contiguous() for name, tensor in sorted(tensors.items())}
    described = {"format": _FORMAT, "about": about, "sha256": _checksum(here, about)}
    # A single entry: the library writes several of them in any order.
    metadata = {_KEY: json.dumps(described, sort_keys=True)}
    with written_beside(path) as beside:
        try:
            save_file(here, beside, metadata=metadata)
        except SafetensorError as error:
            raise WriteError(f"{path}: cannot be written: {error}") from None
        beside.chmod(0o644)  # the library lets nobody else read it


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read them back; a DataError if they are not what was written."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            described = json.loads(metadata[_KEY]) if _KEY in metadata else None
            if not isinstance(described, dict) or described.get("format") != _FORMAT:
                raise DataError(f"{path}: not a file that this version of splime wrote")
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except (SafetensorError, OSError, ValueError, RuntimeError, MemoryError) as error:
        raise DataError(f"{path}: cannot be read as tensors, it may be damaged: {error}") from None
    about = described.get("about")
    if not isinstance(about, dict) or described.get("sha256") != _checksum(tensors, about):
        raise DataError(f"{path}: the file is damaged (its checksum differs)")
    return tensors, about


def _checksum(tensors: dict[str, Tensor], about: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\0{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def pack_names(static: StaticGraph) -> dict[str, Tensor]:
    """The names of entities and predicates as tensors: the UTF-8 bytes of JSON lists."""
    return {
        f"{kind}.names": _packed(scopes.labels.to_pylist())
        for kind, scopes in (("entities", static.entities), ("predicates", static.predicates))
    }


def check_names(path: Path, tensors: dict[str, Tensor], static: StaticGraph) -> None:
    """An error unless tensors carry the names of a graph."""
    for name, packed in pack_names(static).items():
        if name not in tensors or not torch.equal(tensors[name], packed):
            kind = name.partition(".")[0]
            raise DataError(f"{path}: the {kind} are not those of the run's graph")


def _packed(names: list[str]) -> Tensor:
    """
    >>> bytes(_packed(["Ada", "Zoë"])).decode()
    '["Ada", "Zoë"]'
    """
    packed = json.dumps(names, ensure_ascii=False).encode()
    return torch.from_numpy(np.frombuffer(packed, np.uint8).copy())
