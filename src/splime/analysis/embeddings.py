"""Embeddings of runs: their smoothness over time, maps by t-SNE, files for other programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splime.errors import DataError, UsageError, check_name, not_installed
from splime.io.files import atomic_write, check_one_line
from splime.runs import Run, folder as files
from splime.times import Ints

Vectors: TypeAlias = npt.NDArray[np.float64]

LEAST = 4
"""Scopes that a predicate needs for a ratio: with 4 there are 3 pairs of neighbours and 3 others;
with 3, a single pair would decide."""


def learned(run: Run) -> tuple[Ints, Vectors]:
    """The scoped predicates that train has triples of, and the vectors that were learned for them.

    The vectors are as the model's formula works with them.
    Scopes that only valid or test have facts in are left out: their vectors are still the initial
    ones, and no evaluation uses them. The inverses of reciprocal models are not among them.
    """
    model, scopes = run.model, np.unique(run.static.train.predicate).astype(np.int64)
    # The inverses of reciprocal models stand behind all scopes.
    vectors = model.predicate_vectors(model.predicates.vectors()).numpy(force=True)[scopes]
    vectors = vectors.astype(np.float64)
    if not np.isfinite(vectors).all():
        raise DataError(f"{run.path / files.MODEL}: some embeddings are not finite numbers")
    return scopes, vectors


# Smoothness over time


class Distances(NamedTuple):
    """Mean distances between the scopes of one predicate."""

    scopes: int
    neighbours: float
    """Between scopes that follow each other in time."""
    others: float
    """Between all other scopes."""

    @property
    def ratio(self) -> float:
        """Neighbours over others: 1 where time does not matter, less where it does.

        >>> Distances(4, neighbours=1.0, others=2.0).ratio
        0.5
        """
        return self.neighbours / self.others if self.others else 1.0


@dataclass(frozen=True)
class Smoothness:
    """How smooth the embeddings of a run are over time, predicate by predicate.

    With v_1 … v_n the vectors of a predicate's n scopes in the order of time, and |·| the Euclidean
    length, its ratio is

        mean of |v_i - v_j| over |i - j| = 1   /   mean of |v_i - v_j| over |i - j| > 1

    and the overall ratio is the mean of the ratios, weighted by n.
    """

    predicates: dict[str, Distances]
    """Of the predicates with at least 4 scopes."""

    @property
    def overall(self) -> float | None:
        """Over all predicates; None where none has enough scopes.

        >>> Smoothness({"p": Distances(4, 1, 2), "q": Distances(8, 2, 2)}).overall
        0.8333333333333334
        """
        weight = sum(each.scopes for each in self.predicates.values())
        total = sum(each.scopes * each.ratio for each in self.predicates.values())
        return total / weight if weight else None


def smoothness(run: Run) -> Smoothness:
    """How much closer neighbours in time are than others, over the embeddings of a run.

    A training with the setting `smooth` pulls neighbours together itself; compare runs that have
    it in common.
    """
    scopes, vectors = learned(run)
    predicates = run.segmentation.predicates
    sources = predicates.sources[scopes]
    starts = np.flatnonzero(np.diff(sources, prepend=-1))
    return Smoothness(
        {
            predicates.names[int(sources[start])]: distances(rows)
            for start, rows in zip(starts, np.split(vectors, starts[1:]), strict=True)
            if len(rows) >= LEAST
        }
    )


def distances(vectors: Vectors) -> Distances:
    """The mean distances of at least 3 vectors in the order of time.

    >>> distances(np.array([[0.0], [1.0], [2.0], [3.0]]))
    Distances(scopes=4, neighbours=1.0, others=2.333...)
    """
    from scipy.spatial.distance import pdist  # type: ignore[import-untyped, unused-ignore]

    count = len(vectors)
    pairs = pdist(vectors)
    near = np.linalg.norm(np.diff(vectors, axis=0), axis=1)
    others = (pairs.sum() - near.sum()) / (len(pairs) - len(near))
    return Distances(count, float(near.mean()), max(0.0, float(others)))


# Maps by t-SNE


@dataclass(frozen=True, eq=False)
class Projection:
    """Scoped predicates that train has triples of, and their places on a flat map."""

    run: Run
    scopes: Ints
    positions: Vectors
    """Two columns."""
    smoothness: Smoothness
    """Of the vectors themselves."""


# With more scoped predicates than this, about so many of them are on a map.
_MOST_MAPPED, _MAPPED = 10_000, 3_000
_PROJECTED: WeakKeyDictionary[Run, Projection] = WeakKeyDictionary()


def project(run: Run) -> Projection:
    """A flat map of all scoped predicates, by t-SNE; kept as long as the run is in memory.

    Of more than 10,000 every second, third, ... one of each predicate is on the map, so that it
    takes seconds and not minutes. The map of a run is always the same. Distances far across it mean
    little; `smoothness` measures the vectors themselves.
    """
    if run not in _PROJECTED:
        scopes, vectors = learned(run)
        if len(scopes) < 5:  # fewer have no neighbourhoods that t-SNE could keep
            raise UsageError(
                f"{run.path}: a map needs at least 5 scoped predicates, and this run learned"
                f" {len(scopes)}; a method that cuts gives more"
            )
        if len(scopes) > _MOST_MAPPED:
            sources = run.segmentation.predicates.sources[scopes]
            place = np.arange(len(scopes)) - np.searchsorted(sources, sources)
            mapped = place % -(-len(scopes) // _MAPPED) == 0
            scopes, vectors = scopes[mapped], vectors[mapped]
        _PROJECTED[run] = Projection(run, scopes, flatten(vectors), smoothness(run))
    return _PROJECTED[run]


def flatten(vectors: Vectors) -> Vectors:
    """t-SNE: two columns that keep near what is near; perplexity 30, or a third of few rows."""
    try:
        from sklearn import decomposition, manifold
    except ImportError as error:
        raise not_installed("t-SNE", error) from None
    rows, width = vectors.shape
    # The principal components are a steady start, where there are two and vectors differ.
    principal = width > 1 and bool(np.ptp(vectors, axis=0).any())
    if principal and min(rows, width) > 50:
        # Long vectors lose their least varying directions first, as is usual before t-SNE.
        vectors = decomposition.PCA(50, random_state=0).fit_transform(vectors)
    positions: Vectors = manifold.TSNE(
        2,
        perplexity=min(30.0, (rows - 1) / 3),
        init="pca" if principal else "random",
        learning_rate="auto",
        # Far points are taken together in larger groups: half the time, the same picture.
        angle=0.8 if rows > 5_000 else 0.5,
        random_state=0,
    ).fit_transform(vectors)
    return positions.astype(np.float64)


# Files


def export_embeddings(run: Run, path: str | Path, what: str = "entities", format: str = "") -> Path:
    """Write the embeddings of a run's entities or predicates.

    The format follows from the name of the file (.parquet, .tsv; .txt or .vec for word2vec) unless
    it is given. Vectors are as the model keeps them: complex ones have all real parts first. With
    reciprocal predicates the inverses are called `p⁻¹`, and follow the others in the same order; so
    do predicates at ends, where these have their own, called `p (end)`.
    In word2vec's text, which has no other way, spaces in names become underscores.
    """
    path = Path(path)
    check_name("kind of embeddings", what, ("entities", "predicates"))
    chosen = format or _SUFFIXES.get(path.suffix.lower(), "")
    if not chosen:
        raise UsageError(
            f"{path}: choose a format, it does not follow from the name; there are"
            f" {', '.join(FORMATS)}"
        )
    check_name("format", chosen, FORMATS)
    vectors: np.ndarray[Any, Any] = getattr(run.model, what).vectors().numpy(force=True)
    names: list[str] = getattr(run.static, what).labels.to_pylist()
    settings = run.settings.values()
    if what == "predicates" and settings["each"] == "ends":
        names = [*names, *(f"{name} (end)" for name in names)]
    if what == "predicates" and settings["reciprocal"]:
        names = [*names, *(f"{name}⁻¹" for name in names)]
    with atomic_write(path) as beside:
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
    _write_lines(path, "\t", names, vectors)


def _word2vec(names: list[str], vectors: np.ndarray[Any, Any], path: Path) -> None:
    words: dict[str, str] = {}
    for name in names:
        word = re.sub(r"\s", "_", name) or "_"
        if word in words:
            raise UsageError(
                f"{words[word]!r} and {name!r} would both be {word!r} in word2vec's text; {_ADVICE}"
            )
        words[word] = name
    _write_lines(path, " ", words, vectors, f"{len(names)} {vectors.shape[1]}\n")


def _write_lines(
    path: Path, between: str, names: Iterable[str], vectors: np.ndarray[Any, Any], first: str = ""
) -> None:
    """A line for each name, with as many digits as give the same numbers back."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(first)
        for name, vector in zip(names, vectors, strict=True):
            file.write(between.join([name, *(f"{x:.9g}" for x in vector.tolist())]) + "\n")


_ADVICE = "export as parquet"
FORMATS: Mapping[str, Callable[[list[str], np.ndarray[Any, Any], Path], None]] = {
    "parquet": _parquet,
    "tsv": _tsv,
    "word2vec": _word2vec,
}
_SUFFIXES = {".parquet": "parquet", ".tsv": "tsv", ".txt": "word2vec", ".vec": "word2vec"}
