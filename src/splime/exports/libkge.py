"""The dataset folder of LibKGE (github.com/uma-pi1/kge): put it under its `data/`."""

from __future__ import annotations

from pathlib import Path

from splime.exports.lines import ids, joined, split_files, write_cells, write_triples
from splime.static import StaticGraph

FILES = ("dataset.yaml", *split_files(".del"), "entity_ids.del", "relation_ids.del")


def write(static: StaticGraph, folder: Path) -> None:
    """Tab-separated ids; maps of `id<TAB>name`; a description of the files."""
    entities, predicates = static.entities.labels, static.predicates.labels
    subject, predicate = (joined(ids(labels), "\t") for labels in (entities, predicates))
    write_triples(static, folder, ".del", subject, predicate, joined(ids(entities), "\n"))
    write_cells(folder / "entity_ids.del", joined(subject, entities, "\n"))
    write_cells(folder / "relation_ids.del", joined(predicate, predicates, "\n"))
    (folder / "dataset.yaml").write_text(_yaml(static), encoding="utf-8")


def _yaml(static: StaticGraph) -> str:
    # No dataset.name: it would override the name of the folder, under which LibKGE looks it up.
    lines = [
        "dataset:",
        f"  num_entities: {len(static.entities)}",
        f"  num_relations: {len(static.predicates)}",
    ]
    for key in ("entity_ids", "relation_ids"):
        lines += _file(key, "map")
    for split, triples in static.splits():
        lines += [*_file(split, "triples"), f"  files.{split}.size: {len(triples)}"]
    return "\n".join([*lines, ""])


def _file(key: str, kind: str) -> list[str]:
    return [f'  files.{key}.filename: "{key}.del"', f'  files.{key}.type: "{kind}"']
