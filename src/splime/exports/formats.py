"""The formats of static graphs: a function for each, which writes its files into a folder.

Text is written at speed: a triple is three ready-made cells, looked up by its ids.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.graph import SPLITS, SplitName
from splime.static import StaticGraph, Triples
from splime.times import dated, format_ticks
from splime.vocabulary import named

# So many rows at a time, so that a large graph is never in memory as a whole.
_LINES = 1 << 18
_ROWS = 1 << 20


def tsv(static: StaticGraph, folder: Path) -> None:
    """The folder that the paper's code writes, as for RotatE and many after it.

    Tab-separated names; dictionaries of `id<TAB>name`; the dates of every timestamp.
    """
    entities, predicates = static.entities.labels, static.predicates.labels
    _write_triples(static, folder, ".txt", entities, predicates)
    _write(folder / "entities.dict", _numbered(entities))
    _write(folder / "relations.dict", _numbered(predicates))
    timeline = static.segmentation.timeline
    first, last = (
        pa.array(format_ticks(ticks, timeline.granularity), pa.large_string())
        for ticks in (timeline.starts, timeline.ends)
    )
    _write(folder / "time_map", _numbered(_joined(first, "\t", last)))


def libkge(static: StaticGraph, folder: Path) -> None:
    """The dataset folder of LibKGE (github.com/uma-pi1/kge): put it under its `data/`.

    Tab-separated ids; maps of `id<TAB>name`; a description of the files.
    """
    entities, predicates = static.entities.labels, static.predicates.labels
    _write_triples(static, folder, ".del", _ids(entities), _ids(predicates))
    _write(folder / "entity_ids.del", _numbered(entities))
    _write(folder / "relation_ids.del", _numbered(predicates))
    # No dataset.name: it would override the name of the folder, under which LibKGE looks it up.
    lines = ["dataset:", f"  num_entities: {len(entities)}", f"  num_relations: {len(predicates)}"]
    sizes = {split: len(triples) for split, triples in static.splits()}
    for key in ("entity_ids", "relation_ids", *SPLITS):
        kind = "triples" if key in SPLITS else "map"
        lines += [f'  files.{key}.filename: "{key}.del"', f'  files.{key}.type: "{kind}"']
        lines += [f"  files.{key}.size: {sizes[key]}"] if key in SPLITS else []
    (folder / "dataset.yaml").write_text("\n".join([*lines, ""]), encoding="utf-8")


def dglke(static: StaticGraph, folder: Path) -> None:
    """The files of DGL-KE's user-defined datasets (github.com/awslabs/dgl-ke).

    Tab-separated ids; maps of `id<TAB>name`. Train with `--data_path FOLDER --format udd_hrt
    --data_files entities.tsv relations.tsv train.tsv valid.tsv test.tsv`; leave the last two out
    where they are empty.
    """
    entities, predicates = static.entities.labels, static.predicates.labels
    _write_triples(static, folder, ".tsv", _ids(entities), _ids(predicates))
    for file, labels in (("entities.tsv", entities), ("relations.tsv", predicates)):
        # Python's csv reader, by which DGL-KE reads the maps, takes quotes apart. Its manual shows
        # `name<TAB>id`, but training only counts the lines, and prediction reads `id<TAB>name`.
        quoted = _joined('"', pc.replace_substring(labels, '"', '""'), '"')
        labels = pc.if_else(pc.match_substring(labels, '"'), quoted, labels)
        _write(folder / file, _numbered(labels))


def ntriples(static: StaticGraph, folder: Path) -> None:
    """N-Triples, for triple stores and everything else that reads RDF.

    One statement in a line, with percent-encoded names under `urn:splime:`.
    """
    entities = _iris("entity", static.entities.labels)
    predicates = _iris("predicate", static.predicates.labels)
    _write_triples(static, folder, ".nt", entities, predicates, between=" ", end=" .\n")


def _iris(kind: str, labels: pa.Array) -> pa.Array:
    """Names as IRIs; `urllib.parse.unquote` gives the names back.

    >>> _iris("predicate", pa.array(["P54[1998..2003]"], pa.large_string())).to_pylist()
    ['<urn:splime:predicate:P54%5B1998..2003%5D>']
    """
    encoded = pa.array([quote(label) for label in labels.to_pylist()], pa.large_string())
    return _joined(f"<urn:splime:{kind}:", encoded, ">")


def parquet(static: StaticGraph, folder: Path) -> None:
    """One Parquet file that any tool can open, with a row for every triple of all splits."""
    import pyarrow.parquet as pq

    schema = to_table(static, "train", static.train.take(slice(0))).schema
    with pq.ParquetWriter(folder / "triples.parquet", schema, compression="zstd") as writer:
        for split, triples in static.splits():
            for start in range(0, len(triples), _ROWS):
                rows = triples.take(slice(start, start + _ROWS))
                writer.write_table(to_table(static, split, rows))


def to_table(static: StaticGraph, split: SplitName, triples: Triples) -> pa.Table:
    """Triples (not necessarily all of the split) as a table of names and dates.

    `fact` is the row of the fact in its split, `overlap` the number of timestamps at which it
    holds inside of the scope; `source`, `begin` and `end` are the predicate that was cut, and the
    scope.
    """
    scopes, timeline = static.predicates, static.segmentation.timeline
    code = np.full(len(triples), SPLITS.index(split), np.int32)
    first, last = scopes.first[triples.predicate], scopes.last[triples.predicate]
    return pa.table(
        {
            "split": named(code, pa.array(SPLITS, pa.string())),
            "subject": named(triples.subject, static.entities.labels),
            "predicate": named(triples.predicate, scopes.labels),
            "object": named(triples.object, static.entities.labels),
            "fact": pa.array(triples.fact, pa.int64()),
            "overlap": pa.array(triples.overlap, pa.int32()),
            "source": named(scopes.sources[triples.predicate], scopes.names.labels),
            "begin": dated(timeline.starts[first], timeline.granularity),
            "end": dated(timeline.ends[last], timeline.granularity),
        }
    )


def _joined(*parts: pa.Array | str) -> pa.Array:
    """Texts put together, element by element.

    >>> _joined(pa.array(["a", "b"], pa.large_string()), ";").to_pylist()
    ['a;', 'b;']
    """
    return pc.binary_join_element_wise(
        *(pa.scalar(part, pa.large_string()) if isinstance(part, str) else part for part in parts),
        pa.scalar("", pa.large_string()),
    )


def _ids(labels: pa.Array) -> pa.Array:
    """The ids 0, 1, … of labels as text."""
    return pa.array(np.arange(len(labels))).cast(pa.large_string())


def _numbered(labels: pa.Array) -> pa.Array:
    """Lines of an id and a label."""
    return _joined(_ids(labels), "\t", labels, "\n")


def _write(path: Path, lines: pa.Array) -> None:
    with path.open("wb") as file:
        file.write(_text(lines))


def _write_triples(
    static: StaticGraph,
    folder: Path,
    suffix: str,
    entities: pa.Array,
    predicates: pa.Array,
    between: str = "\t",
    end: str = "\n",
) -> None:
    """Write the file of every split, with the texts of subject, predicate and object in a line."""
    cells = pa.concat_arrays(
        [_joined(entities, between), _joined(predicates, between), _joined(entities, end)]
    )
    shift = np.cumsum([0, len(entities), len(predicates)])
    for split, triples in static.splits():
        with (folder / f"{split}{suffix}").open("wb") as file:
            for start in range(0, len(triples), _LINES):
                rows = triples.take(slice(start, start + _LINES)).array()
                file.write(_text(cells.take(pa.array((rows + shift).ravel()))))


def _text(cells: pa.Array) -> memoryview:
    """The bytes of all texts in a row, which is how Arrow keeps them: no copy, no loop."""
    if not len(cells):
        return memoryview(b"")
    _, offsets, data = cells.buffers()
    limits = np.frombuffer(offsets, np.int64)[cells.offset : cells.offset + len(cells) + 1]
    return memoryview(data or b"")[limits[0] : limits[-1]]
