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

from splime.errors import DataError
from splime.io.files import written_beside

_FORMAT = "1"


def save_tensors(path: Path, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    """Write tensors and a JSON description, beside and then renamed over."""
    from safetensors.torch import save_file

    here = {name: tensor.detach().cpu().contiguous() for name, tensor in sorted(tensors.items())}
    described = json.dumps(about, sort_keys=True)
    metadata = {"splime": _FORMAT, "about": described, "sha256": _checksum(here, described)}
    with written_beside(path) as beside:
        save_file(here, beside, metadata=metadata)
        beside.chmod(0o644)  # the library lets nobody else read it


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read them back; a DataError if they are not what was written."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except (SafetensorError, OSError, ValueError, RuntimeError, MemoryError) as error:
        raise DataError(f"{path}: cannot be read as tensors, it may be damaged: {error}") from None
    if metadata.get("splime") != _FORMAT:
        raise DataError(f"{path}: not a file that this version of splime wrote")
    described = metadata.get("about", "")
    if metadata.get("sha256") != _checksum(tensors, described):
        raise DataError(f"{path}: the file is damaged (its checksum differs)")
    about: dict[str, Any] = json.loads(described)
    return tensors, about


def _checksum(tensors: dict[str, Tensor], described: str) -> str:
    found = hashlib.sha256(described.encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"\0{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def pack_names(names: list[str]) -> Tensor:
    """Names as a tensor: the UTF-8 bytes of a JSON list.

    >>> unpack_names(pack_names(["Ada", "Zoë"]))
    ['Ada', 'Zoë']
    """
    return torch.from_numpy(
        np.frombuffer(json.dumps(names, ensure_ascii=False).encode(), np.uint8).copy()
    )


def unpack_names(packed: Tensor) -> list[str]:
    """The names again."""
    names: list[str] = json.loads(packed.numpy().tobytes())
    return names
