"""Embeddings with their names, for other programs: Parquet, TSV, word2vec's text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from splime.errors import UsageError, nearest
from splime.io.files import written_beside
from splime.runs.run import Run
from splime.runs.tensors import unpack_names

KINDS = ("entities", "predicates")


def export_embeddings(run: Run, path: str | Path, what: str = "entities", format: str = "") -> Path:
    """Write the embeddings of a run's entities or predicates.

    The format follows from the name of the file (.parquet, .tsv; .txt or .vec for word2vec) unless
    it is given. Vectors are as the model keeps them: complex ones have all real parts first. With
    reciprocal predicates the inverses are called `p⁻¹`.
    """
    path = Path(path)
    if what not in KINDS:
        raise UsageError(f"embeddings are of entities or of predicates, not of {what!r}")
    chosen = format or _SUFFIXES.get(path.suffix.lower(), "")
    if chosen not in FORMATS:
        wrong = f"there is no format {format!r}" if format else f"{path}: its name tells no format"
        raise UsageError(f"{wrong}; there are {', '.join(FORMATS)}.{nearest(chosen, FORMATS)}")
    if what not in run.tensors:
        raise UsageError(f"{run.path}: a model of PyKEEN has no table of {what} that splime knows")
    vectors = run.tensors[what].numpy()
    names = unpack_names(run.tensors[f"{what}.names"])
    if len(vectors) == 2 * len(names):
        names = [*names, *(f"{name}⁻¹" for name in names)]
    with written_beside(path) as beside:
        FORMATS[chosen](names, vectors, beside)
    return path


def _parquet(names: list[str], vectors: np.ndarray[Any, Any], path: Path) -> None:
    import pyarrow.parquet as pq

    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1), pa.float32())
    column = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    table = pa.table({"name": pa.array(names, pa.large_string()), "vector": column})
    pq.write_table(table, path, compression="zstd")


def _tsv(names: list[str], vectors: np.ndarray[Any, Any], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for name, numbers in _rows(names, vectors, "\t"):
            file.write("\t".join([name, *numbers]) + "\n")


def _word2vec(names: list[str], vectors: np.ndarray[Any, Any], path: Path) -> None:
    """First how many and how long; names cannot have spaces, which become underscores."""
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{len(names)} {vectors.shape[1]}\n")
        for name, numbers in _rows(names, vectors, " "):
            file.write(" ".join([name, *numbers]) + "\n")


def _rows(
    names: list[str], vectors: np.ndarray[Any, Any], separator: str
) -> Iterator[tuple[str, list[str]]]:
    for name, vector in zip(names, vectors, strict=True):
        clean = "_".join(name.split()) if separator == " " else " ".join(name.split())
        yield clean, [f"{number:.9g}" for number in vector.tolist()]


FORMATS: Mapping[str, Callable[[list[str], np.ndarray[Any, Any], Path], None]] = {
    "parquet": _parquet,
    "tsv": _tsv,
    "word2vec": _word2vec,
}
_SUFFIXES = {".parquet": "parquet", ".tsv": "tsv", ".txt": "word2vec", ".vec": "word2vec"}
