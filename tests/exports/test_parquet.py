"""What the Parquet file tells beside the triples themselves."""

from __future__ import annotations

import tempfile
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import splime
from splime.exports import export, formats
from splime.graph import SPLITS, TemporalGraph
from splime.methods import Timestamp, Vanilla
from splime.static import StaticGraph
from tests.exports.readers import same
from tests.exports.statics import one_fact, transformed


def exported(static: StaticGraph, folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(*export(static, folder, "parquet")).to_pylist()
    return rows


@settings(max_examples=25)
@given(case=transformed())
def test_scope_and_fact(case: tuple[TemporalGraph, StaticGraph]) -> None:
    graph, static = case
    with tempfile.TemporaryDirectory() as here:
        rows = iter(exported(static, Path(here) / "out"))
    for split in SPLITS:
        facts = list(graph.rows(split))
        triples = getattr(static, split)
        for number, predicate in enumerate(triples.predicate):
            row, scope = next(rows), static.predicates.scope(predicate)
            assert row["split"] == split
            assert row["source"] == facts[row["fact"]].predicate == scope.source
            assert (row["begin"], row["end"]) == (int(scope.begin), int(scope.end))
            assert (row["fact"], row["overlap"]) == (triples.fact[number], triples.overlap[number])
    assert not list(rows)


@pytest.mark.parametrize(
    ("time", "begin"),
    [
        ("2014", 2014),
        ("2014-03", date(2014, 3, 1)),
        ("2014-03-02", date(2014, 3, 2)),
        ("2014-03-02T10:30", datetime(2014, 3, 2, 10, 30)),
    ],
)
def test_dates(tmp_path: Path, time: str, begin: object) -> None:
    row = exported(Vanilla().fit_transform(one_fact(time)), tmp_path / "out")[0]
    assert row["begin"] == row["end"] == begin


def test_names_are_dictionaries(tmp_path: Path) -> None:
    (file,) = export(Vanilla().fit_transform(one_fact()), tmp_path / "out", "parquet")
    kinds = dict(zip(pq.read_schema(file).names, pq.read_schema(file).types, strict=True))
    coded = {name for name, kind in kinds.items() if str(kind).startswith("dictionary")}
    assert coded == {"split", "subject", "predicate", "object", "source"}


def test_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_ROWS", 10_000)
    static = Timestamp().fit_transform(splime.load("demo"))
    (file,) = export(static, tmp_path / "out", "parquet")
    assert pq.ParquetFile(file).num_row_groups > 3
    assert same(static, tmp_path / "out", "parquet")
