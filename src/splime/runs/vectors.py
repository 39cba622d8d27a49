"""Embeddings with their names, for other programs: Parquet, TSV, word2vec's text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from splime.errors import UsageError, nearest
from splime.io.files import check_one_line, written_beside
from splime.runs.run import Run

KINDS = ("entities", "predicates")


def export_embeddings(run: Run, path: str | Path, what: str = "entities", format: str = "") -> Path:
    """Write the embeddings of a run's entities or predicates.

    The format follows from the name of the file (.parquet, .tsv; .txt or .vec for word2vec) unless
    it is given. Vectors are as the model keeps them: complex ones have all real parts first. With
    reciprocal predicates the inverses are called `p⁻¹`, and follow the others in the same order.
    In word2vec's text, which has no other way, spaces in names become underscores.
    """
    path = Path(path)
    if what not in KINDS:
        raise UsageError(
            f"embeddings are of entities or predicates, not of {what!r}.{nearest(what, KINDS)}"
        )
    chosen = format or _SUFFIXES.get(path.suffix.lower(), "")
    if chosen not in FORMATS:
        wrong = f"there is no format {format!r}" if format else f"{path}: its name tells no format"
        raise UsageError(f"{wrong}; there are {', '.join(FORMATS)}.{nearest(chosen, FORMATS)}")
    vectors: np.ndarray[Any, Any] = getattr(run.model, what).numpy(force=True)
    names: list[str] = getattr(run.static, what).labels.to_pylist()
    if what == "predicates" and run.settings.reciprocal:
        names = [*names, *(f"{name}⁻¹" for name in names)]
    with written_beside(path) as beside:
        FORMATS[chosen](names, vectors, beside)
    return path


def _parquet(names: list[str], vectors: np.ndarray[Any, Any], path: Path) -> None:
    import pyarrow.parquet as pq

    flat = pa.array(vectors.reshape(-1), pa.float32())
    column = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    table = pa.table({"name": pa.array(names, pa.large_string()), "vector": column})
    pq.write_table(table, path, compression="zstd")


def _tsv(names: list[str], vectors: np.ndarray[Any, Any], path: Path) -> None:
    check_one_line(names, "TSV", _ADVICE)
    _write_lines(path, "\t", [], names, vectors)


def _word2vec(names: list[str], vectors: np.ndarray[Any, Any], path: Path) -> None:
    """First how many and how long, then a line for each."""
    words: dict[str, str] = {}
    for name in names:
        word = re.sub(r"\s", "_", name) or "_"
        if word in words:
            raise UsageError(
                f"{words[word]!r} and {name!r} would both be {word!r} in word2vec's text; {_ADVICE}"
            )
        words[word] = name
    _write_lines(path, " ", [f"{len(names)} {vectors.shape[1]}\n"], words, vectors)


def _write_lines(
    path: Path,
    separator: str,
    first: list[str],
    names: Iterable[str],
    vectors: np.ndarray[Any, Any],
) -> None:
    """A line for each name, with as many digits as give the same numbers back."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(first)
        for name, vector in zip(names, vectors, strict=True):
            file.write(separator.join([name, *(f"{x:.9g}" for x in vector.tolist())]) + "\n")


_ADVICE = "export as parquet"
FORMATS: Mapping[str, Callable[[list[str], np.ndarray[Any, Any], Path], None]] = {
    "parquet": _parquet,
    "tsv": _tsv,
    "word2vec": _word2vec,
}
_SUFFIXES = {".parquet": "parquet", ".tsv": "tsv", ".txt": "word2vec", ".vec": "word2vec"}
