"""The files of DGL-KE's user-defined datasets (github.com/awslabs/dgl-ke).

Train with `--data_path FOLDER --format udd_hrt --data_files entities.tsv relations.tsv train.tsv
valid.tsv test.tsv`; leave the last two out where they are empty.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from splime.exports.lines import ids, joined, split_files, write_cells, write_triples
from splime.static import StaticGraph

FILES = ("entities.tsv", "relations.tsv", *split_files(".tsv"))


def write(static: StaticGraph, folder: Path) -> None:
    """Tab-separated ids; maps of `id<TAB>name`."""
    entities, predicates = static.entities.labels, static.predicates.labels
    subject, predicate = (joined(ids(labels), "\t") for labels in (entities, predicates))
    write_triples(static, folder, ".tsv", subject, predicate, joined(ids(entities), "\n"))
    # Its manual shows `name<TAB>id`, but training only counts the lines, and prediction reads
    # `id<TAB>name`.
    write_cells(folder / "entities.tsv", joined(subject, _quoted(entities), "\n"))
    write_cells(folder / "relations.tsv", joined(predicate, _quoted(predicates), "\n"))


def _quoted(labels: pa.Array) -> pa.Array:
    """Names for Python's csv reader, by which DGL-KE reads the maps."""
    quoted = joined('"', pc.replace_substring(labels, '"', '""'), '"')
    return pc.if_else(pc.match_substring(labels, '"'), quoted, labels)
