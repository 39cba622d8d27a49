"""Where the scoped predicates of a run lie: their vectors, and a flat map of them by t-SNE."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from splime.errors import DataError, SplimeError, UsageError
from splime.runs import folder as files
from splime.runs.run import Run
from splime.times import Ints

Vectors: TypeAlias = npt.NDArray[np.float64]

_LEAST = 5
"""Scoped predicates; fewer have no neighbourhoods that t-SNE could keep."""
_DIMENSIONS = 50
"""Longer vectors lose their least varying directions first, as is usual before t-SNE."""
_MANY = 5_000
"""From so many on, far points are taken together in larger groups: half the time, same picture."""


class Learned(NamedTuple):
    """The scoped predicates that train has triples of, and their vectors, row by row."""

    scopes: Ints
    vectors: Vectors


class Projection(NamedTuple):
    """The scoped predicates that train has triples of, and their places on a flat map."""

    scopes: Ints
    positions: Vectors
    """Two columns."""


_KNOWN: WeakKeyDictionary[Run, dict[int, Projection]] = WeakKeyDictionary()


def learned(run: Run) -> Learned:
    """The vectors that a model learned for scoped predicates, as its formula works with them.

    Scopes that only valid or test have facts in are left out: their vectors are still those that
    the training began with, and no evaluation uses them. The inverses of reciprocal models are not
    among them.
    """
    model, scopes = run.model, np.unique(run.static.train.predicate).astype(np.int64)
    # The inverses of reciprocal models stand behind all scopes.
    vectors = model.predicate_vectors(model.predicates.vectors()).numpy(force=True)[scopes]
    vectors = vectors.astype(np.float64)
    if not np.isfinite(vectors).all():
        raise DataError(f"{run.path / files.MODEL}: some embeddings are not finite numbers")
    return Learned(scopes, vectors)


def project(run: Run, *, seed: int = 0) -> Projection:
    """The places of all scoped predicates on a flat map, by t-SNE; kept as long as the run is.

    The same seed gives the same map. Distances far across the map mean little; for figures on the
    vectors themselves there is `smoothness`.
    """
    maps = _KNOWN.setdefault(run, {})
    if seed not in maps:
        scopes, vectors = learned(run)
        if len(scopes) < _LEAST:
            raise UsageError(
                f"{run.path}: a map needs at least {_LEAST} scoped predicates, and this run learned"
                f" {len(scopes)}; a method that cuts gives more"
            )
        maps[seed] = Projection(scopes, flatten(vectors, seed=seed))
    return maps[seed]


def flatten(vectors: Vectors, *, seed: int = 0) -> Vectors:
    """t-SNE: two columns that keep near what is near; perplexity 30, or a third of few rows."""
    decomposition, manifold = _sklearn()
    rows, width = vectors.shape
    # The principal components are a steady beginning, where there are two and vectors differ.
    principal = width > 1 and bool(np.ptp(vectors, axis=0).any())
    if principal and min(rows, width) > _DIMENSIONS:
        vectors = decomposition.PCA(_DIMENSIONS, random_state=seed).fit_transform(vectors)
    found: Vectors = manifold.TSNE(
        2,
        perplexity=min(30.0, (rows - 1) / 3),
        init="pca" if principal else "random",
        learning_rate="auto",
        angle=0.8 if rows > _MANY else 0.5,
        random_state=seed,
    ).fit_transform(vectors)
    return found.astype(np.float64)


def _sklearn() -> tuple[Any, Any]:
    try:
        from sklearn import decomposition, manifold
    except ImportError:
        raise SplimeError(
            "t-SNE needs scikit-learn; install it with: pip install 'splime[plot]'"
        ) from None
    return decomposition, manifold
