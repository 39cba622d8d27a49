"""Tensors in files that cannot run code, and that tell when they are damaged.

The files are safetensors, which anybody can open. The metadata holds a checksum over everything
else, so that a file cut short, with a flipped bit, or of somebody else, is never taken for good.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from splime import collective
from splime.collective import Rows
from splime.errors import DataError, WriteError
from splime.io.files import written_beside
from splime.runs.folder import shards_of
from splime.static import StaticGraph

NAMES = ("entities.names", "predicates.names")
"""The tensors that hold names and not parameters."""
_FORMAT = 1
_KEY = "splime"
_SHARDS = "shards"
# Rows that are read at once of a table that need not fit into memory.
_BLOCK = 1 << 16
_KINDS = {torch.float32: "F32", torch.uint8: "U8"}  # vectors, and names


def save_tensors(path: Path, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    """Write tensors and a JSON description, beside and then renamed over.

    The same tensors and description give the same bytes.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    here = {name: tensor.detach().cpu().contiguous() for name, tensor in sorted(tensors.items())}
    metadata = _metadata([_Stored.of(*each) for each in here.items()], about)
    with written_beside(path) as beside:
        try:
            save_file(here, beside, metadata=metadata)
        except SafetensorError as error:
            raise WriteError(f"{path}: cannot be written: {error}") from None
        beside.chmod(0o644)  # the library lets nobody else read it


def load_tensors(path: Path, rows: Rows | None = None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read them back; a DataError if they are not what was written.

    Where there is a row for each entity, only some `rows` are kept, if these are given.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            described = json.loads(metadata[_KEY]) if _KEY in metadata else None
            if not isinstance(described, dict) or described.get("format") != _FORMAT:
                raise DataError(f"{path}: not a file that this version of splime wrote")
            about = described.get("about")
            digest, tensors = _begin(about), {}
            for name in sorted(file.keys()):
                if rows is None or not _has_rows(name, file.get_slice(name).get_shape()):
                    tensors[name] = file.get_tensor(name)
                    _add(digest, _Stored.of(name, tensors[name]))
                else:
                    tensors[name] = _some_rows(file.get_slice(name), name, rows, digest)
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except (SafetensorError, OSError, ValueError, RuntimeError, MemoryError) as error:
        raise DataError(f"{path}: cannot be read as tensors, it may be damaged: {error}") from None
    if not isinstance(about, dict) or described.get("sha256") != digest.hexdigest():
        raise DataError(f"{path}: the file is damaged (its checksum differs)")
    return tensors, about


class _Stored(NamedTuple):
    """A tensor in a file, of which a block of rows at a time need be in memory."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    blocks: Callable[[], Iterable[Tensor]]

    @classmethod
    def of(cls, name: str, tensor: Tensor) -> _Stored:
        """One that is in memory."""
        return cls(name, tensor.dtype, tuple(tensor.shape), lambda: [tensor])


def _metadata(stored: Iterable[_Stored], about: dict[str, Any]) -> dict[str, str]:
    digest = _begin(about)
    for each in sorted(stored):
        _add(digest, each)
    described = {"format": _FORMAT, "about": about, "sha256": digest.hexdigest()}
    # A single entry: the library writes several of them in any order.
    return {_KEY: json.dumps(described, sort_keys=True)}


def _begin(about: Any) -> hashlib._Hash:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode())


def _add(digest: hashlib._Hash, stored: _Stored) -> None:
    digest.update(f"\0{stored.name}\0{stored.dtype}\0{stored.shape}\0".encode())
    for block in stored.blocks():
        digest.update(_bytes(block))


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def _has_rows(name: str, shape: Sequence[int]) -> bool:
    """Whether a tensor has a row for each entity: vectors, and what an optimizer keeps of them."""
    table = name.removeprefix("optimizer.").partition(".")[0]
    return table == "entities" and name not in NAMES and len(shape) > 0


def _some_rows(piece: Any, name: str, rows: Rows, digest: hashlib._Hash) -> Tensor:
    """Some rows of a tensor in a file, all of which go into the checksum."""
    shape, starts = tuple(piece.get_shape()), range(0, piece.get_shape()[0], _BLOCK)
    first = piece[:0]
    kept: Tensor = first.new_empty(len(rows), *shape[1:])

    def blocks() -> Iterable[Tensor]:
        for start in starts:
            block = piece[start : start + _BLOCK]
            low, high = max(start, rows.start), min(start + len(block), rows.stop)
            if low < high:
                kept[low - rows.start : high - rows.start] = block[low - start : high - start]
            yield block

    _add(digest, _Stored(name, first.dtype, shape, blocks))
    return kept


def save_state(
    path: Path, tensors: dict[str, Tensor], about: dict[str, Any], rows: Rows | None, tag: str
) -> None:
    """Write tensors that all workers have in part, or alike.

    Where a worker holds `rows` of the entities, it writes these into a file of its own, whose name
    has the `tag`. Worker 0 writes the rest, last, with the names of these files.
    """
    if rows is None:
        if collective.rank() == 0:
            save_tensors(path, tensors, about)
        return
    own = {name: each for name, each in tensors.items() if _has_rows(name, each.shape)}
    size, total = collective.size(), rows.total
    names = [f"{path.stem}-{tag}-{k + 1}-of-{size}{path.suffix}" for k in range(size)]
    config = about["config"]
    save_tensors(path.with_name(names[collective.rank()]), own, {"config": config})
    collective.wait()
    if collective.rank() == 0:
        for missing in (path.with_name(name) for name in names):
            if not missing.exists():
                raise WriteError(
                    f"{missing}: a worker wrote this file, and it is not here: all workers need the"
                    " same folder"
                )
        rest = {name: each for name, each in tensors.items() if name not in own}
        first = [total * k // size for k in range(size + 1)]
        save_tensors(path, rest, {**about, _SHARDS: [*zip(names, first, first[1:], strict=False)]})
        for each in shards_of(path):
            if each.name not in names:
                each.unlink()


def load_state(path: Path, rows: Rows | None = None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_state` wrote, with however many workers; of entities all, or some `rows`."""
    tensors, about = load_tensors(path, rows)
    parts: dict[str, list[Tensor]] = {}
    for name, start, stop in about.pop(_SHARDS, ()):
        low = start if rows is None else max(start, rows.start)
        high = stop if rows is None else min(stop, rows.stop)
        if low < high:
            for key, each in _shard(path, name, about).items():
                parts.setdefault(key, []).append(each[low - start : high - start])
    return {**tensors, **{name: torch.cat(each) for name, each in parts.items()}}, about


def _shard(path: Path, name: str, about: dict[str, Any]) -> dict[str, Tensor]:
    tensors, own = load_tensors(path.with_name(name))
    if own.get("config") != about.get("config"):
        raise DataError(f"{path.with_name(name)}: belongs to another run")
    return tensors


def join_shards(path: Path, target: Path) -> None:
    """Write what `save_state` wrote into one file, as `save_tensors` would.

    One shard at a time is in memory.
    """
    tensors, about = load_tensors(path)
    shards = about.pop(_SHARDS)
    stored = [_Stored.of(*each) for each in tensors.items()]
    for name, first in _shard(path, shards[0][0], about).items():
        shape = (shards[-1][2], *first.shape[1:])

        def blocks(name: str = name) -> Iterable[Tensor]:
            return (_shard(path, each, about)[name] for each, _, _ in shards)

        stored.append(_Stored(name, first.dtype, shape, blocks))
    # Wider numbers first, so that all of them begin where their kind should.
    stored.sort(key=lambda each: (-each.dtype.itemsize, each.name))
    header: dict[str, Any] = {"__metadata__": _metadata(stored, about)}
    end = 0
    for each in stored:
        begin, end = end, end + math.prod(each.shape) * each.dtype.itemsize
        place = {"shape": each.shape, "data_offsets": (begin, end)}
        header[each.name] = {"dtype": _KINDS[each.dtype], **place}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with written_beside(target) as beside:
        with beside.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for each in stored:
                for block in each.blocks():
                    file.write(_bytes(block))
        beside.chmod(0o644)


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
