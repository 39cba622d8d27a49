"""What the libraries that exports are for do when they read them, as plain loops."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq
import yaml

from splime.graph import SPLITS, SplitName
from splime.static import StaticGraph

Rows = list[tuple[str, ...]]

# https://www.w3.org/TR/n-triples/#n-triples-grammar, of which only IRIs are used here.
_IRI = r'<((?:[^\x00-\x20<>"{}|^`\\]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*)>'
_STATEMENT = re.compile(rf"[ \t]*{_IRI}[ \t]*{_IRI}[ \t]*{_IRI}[ \t]*\.[ \t]*")
# RFC 3986, section 3 and 3.3: what an absolute URI without authority is made of.
_URI = re.compile(
    r"urn:splime:(entity|predicate):((?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-F]{2})*)"
)


def cells(path: Path) -> Rows:
    # Python's own loop over the lines of a file, as all of these libraries read.
    with path.open(encoding="utf-8") as file:
        return [tuple(line.rstrip("\n").split("\t")) for line in file]


def named(rows: Rows, entities: list[str], predicates: list[str]) -> Rows:
    return [(entities[int(s)], predicates[int(p)], entities[int(o)]) for s, p, o in rows]


def names(path: Path) -> list[str]:
    rows = cells(path)
    assert [int(number) for number, _ in rows] == list(range(len(rows)))
    return [name for _, name in rows]


def read_tsv(folder: Path, split: SplitName) -> Rows:
    rows = cells(folder / f"{split}.txt")
    entities, predicates = names(folder / "entities.dict"), names(folder / "relations.dict")
    assert {name for s, _, o in rows for name in (s, o)} <= set(entities)
    assert {p for _, p, _ in rows} <= set(predicates)
    return rows


def read_parquet(folder: Path, split: SplitName) -> Rows:
    rows = pq.read_table(folder / "triples.parquet").to_pylist()
    return [
        (row["subject"], row["predicate"], row["object"]) for row in rows if row["split"] == split
    ]


def read_libkge(folder: Path, split: SplitName) -> Rows:
    options = yaml.safe_load((folder / "dataset.yaml").read_text(encoding="utf-8"))["dataset"]
    assert set(options) == {
        "num_entities",
        "num_relations",
        *(
            f"files.{key}.{option}"
            for key in (*SPLITS, "entity_ids", "relation_ids")
            for option in ("filename", "type")
        ),
        *(f"files.{key}.size" for key in SPLITS),
    }
    assert options[f"files.{split}.type"] == "triples"
    assert options["files.entity_ids.type"] == options["files.relation_ids.type"] == "map"
    entities, predicates = (
        names(folder / options[f"files.{key}.filename"]) for key in ("entity_ids", "relation_ids")
    )
    assert (len(entities), len(predicates)) == (options["num_entities"], options["num_relations"])
    rows = cells(folder / options[f"files.{split}.filename"])
    assert len(rows) == options[f"files.{split}.size"]
    return named(rows, entities, predicates)


def read_dglke(folder: Path, split: SplitName) -> Rows:
    labels = []
    for name in ("entities.tsv", "relations.tsv"):
        with (folder / name).open(encoding="utf-8") as file:
            rows = list(csv.reader(file, delimiter="\t"))
        assert [row[0] for row in rows] == [str(number) for number in range(len(rows))]
        assert len(rows) == len(cells(folder / name))  # training counts the lines
        labels.append([row[1] for row in rows])
    return named(cells(folder / f"{split}.tsv"), *labels)


def read_ntriples(folder: Path, split: SplitName) -> Rows:
    text = (folder / f"{split}.nt").read_bytes().decode("utf-8")
    *lines, end = re.split(r"[\r\n]+", text)
    assert end == ""
    rows = []
    for line in lines:
        statement = _STATEMENT.fullmatch(line)
        assert statement is not None, line
        uris = [_URI.fullmatch(uri) for uri in statement.groups()]
        kinds = [uri[1] for uri in uris if uri]
        assert kinds == ["entity", "predicate", "entity"]
        rows.append(tuple(unquote(uri[2]) for uri in uris if uri))
    return rows


READERS: dict[str, Callable[[Path, SplitName], Rows]] = {
    "tsv": read_tsv,
    "parquet": read_parquet,
    "libkge": read_libkge,
    "dglke": read_dglke,
    "ntriples": read_ntriples,
}


def same(static: StaticGraph, folder: Path, format: str) -> bool:
    """Whether a folder holds the triples of a static graph."""
    return all(READERS[format](folder, split) == list(static.rows(split)) for split in SPLITS)
