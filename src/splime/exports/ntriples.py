"""N-Triples, for triple stores and everything else that reads RDF."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from splime.exports.lines import joined, split_files, write_triples
from splime.static import StaticGraph

FILES = split_files(".nt")


def write(static: StaticGraph, folder: Path) -> None:
    """One statement in a line, with percent-encoded names under `urn:splime:`."""
    entities = _iris("entity", static.entities.labels)
    predicates = _iris("predicate", static.predicates.labels)
    cells = joined(entities, " "), joined(predicates, " "), joined(entities, " .\n")
    write_triples(static, folder, ".nt", *cells)


def _iris(kind: str, labels: pa.Array) -> pa.Array:
    """Names as IRIs; `urllib.parse.unquote` gives the names back.

    >>> _iris("predicate", pa.array(["P54[1998..2003]"], pa.large_string())).to_pylist()
    ['<urn:splime:predicate:P54%5B1998..2003%5D>']
    """
    encoded = pa.array([quote(label) for label in labels.to_pylist()], pa.large_string())
    return joined(f"<urn:splime:{kind}:", encoded, ">")
