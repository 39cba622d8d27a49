"""Tensors in files that cannot run code, and that show when they are damaged.

The files are safetensors, which many programs open. The metadata holds a checksum over everything
else, so that a file that was cut short, changed or exchanged is an error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from splime.errors import DataError, WriteError
from splime.io.files import atomic_write, check_plain

_FORMAT = 1
_KEY = "splime"


def save_tensors(path: Path, tensors: Mapping[str, Tensor], about: dict[str, Any]) -> None:
    """Write tensors and a JSON description, beside and then renamed over.

    The same tensors and description give the same bytes.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in sorted(tensors.items())}
    header = {"format": _FORMAT, "about": about, "sha256": _checksum(stored, about)}
    with atomic_write(path) as beside:
        try:
            # A single entry: the library writes several of them in any order.
            save_file(stored, beside, metadata={_KEY: json.dumps(header, sort_keys=True)})
        except SafetensorError as error:
            raise WriteError(f"{path}: cannot be written: {error}") from None
        beside.chmod(0o644)  # the library makes it readable by its owner only


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read them back; a DataError if they are not what was written."""
    from safetensors import SafetensorError, safe_open

    try:
        check_plain(path)
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            header = json.loads(metadata[_KEY]) if _KEY in metadata else None
            if not isinstance(header, dict) or header.get("format") != _FORMAT:
                raise DataError(f"{path}: not a file that this version of splime wrote")
            about = header.get("about")
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
            checksum = _checksum(tensors, about)
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except (SafetensorError, OSError, ValueError, RuntimeError, MemoryError) as error:
        raise DataError(f"{path}: cannot be read as tensors, it may be damaged: {error}") from None
    if not isinstance(about, dict) or header.get("sha256") != checksum:
        raise DataError(f"{path}: the file is damaged (its checksum differs)")
    return tensors, about


def _checksum(tensors: Mapping[str, Tensor], about: Any) -> str:
    """Of the description, and of the names, types, shapes and numbers of tensors."""
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\0{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
