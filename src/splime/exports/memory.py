"""Static graphs handed to other libraries in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from splime.errors import SplimeError
from splime.graph import SplitName, check_split
from splime.static import StaticGraph

if TYPE_CHECKING:
    from pykeen.triples import TriplesFactory


def check_distinct(static: StaticGraph) -> None:
    """An error if two things have one name: no reader could tell them apart."""
    for scopes in (static.segmentation.predicates, static.segmentation.entities):
        if scopes is not None:
            scopes.check_distinct()


def labelled_triples(static: StaticGraph, split: SplitName) -> npt.NDArray[np.object_]:
    """Rows of the names of subject, predicate and object, as AmpliGraph and others take them.

    The names are Python strings, shared between the rows.

    >>> import splime
    >>> graph = splime.read([("Ada", "livesIn", "Norport", 1990)], split="none")
    >>> labelled_triples(splime.Vanilla().fit_transform(graph), "train").tolist()
    [['Ada', 'livesIn', 'Norport']]
    """
    check_split(split)
    check_distinct(static)
    entities, predicates = (
        scopes.labels.to_numpy(zero_copy_only=False)
        for scopes in (static.entities, static.predicates)
    )
    triples = dict(static.splits())[split]
    columns = entities[triples.subject], predicates[triples.predicate], entities[triples.object]
    return np.stack(columns, axis=1)


def to_pykeen(static: StaticGraph) -> dict[str, TriplesFactory]:
    """PyKEEN's triples factories of train, valid and test.

    All of them know all entities and scoped predicates, under the ids that they have here; a split
    without triples is a factory without triples.
    """
    try:
        from pykeen.triples import TriplesFactory
    except ImportError as error:
        raise SplimeError(
            f"PyKEEN cannot be imported ({error}); install it with: pip install 'splime[pykeen]'"
        ) from None
    check_distinct(static)
    entities, predicates = (
        {name: position for position, name in enumerate(scopes.labels.to_pylist())}
        for scopes in (static.entities, static.predicates)
    )
    return {
        split: TriplesFactory(triples.array(), entity_to_id=entities, relation_to_id=predicates)
        for split, triples in static.splits()
    }
