"""Figures of graphs that are asked without training: stored, and never of what was trained on."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from experiments import calibration, doubts, evidence, forecast, small, universal
from experiments.commands import STORED
from experiments.pretrain import SOURCES
from splime.datasets import load
from splime.errors import SplimeError, UsageError
from splime.paths import shipped
from splime.paths.shipped import load_weights
from splime.query import Query
from splime.runs.graph_run import GraphRun
from tests.runs.small import small_graph

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "study"),
    [
        ("untrained", universal),
        ("untrained", small),
        ("forecasting", forecast),
        ("paths", evidence),
        ("asking", calibration),
        ("doubts", doubts),
    ],
    ids=str,
)
def test_the_document_has_the_tables_of_the_stored_results(page: str, study: ModuleType) -> None:
    mark = study.FILE.removesuffix(".json")
    shown = (DOCS / f"{page}.md").read_text("utf-8").partition(f"<!-- {mark} -->\n")[2]
    assert (
        shown.partition("<!-- end -->")[0].strip()
        == "\n".join(table.to_markdown() for table in study.tables(STORED)).strip()
    )


def test_no_stored_figure_is_of_a_source_that_was_trained_on() -> None:
    records = json.loads((STORED / universal.FILE).read_text("utf-8"))
    assert records
    for record in records.values():
        of = {source for source, names in SOURCES.items() if record["dataset"] in names}
        assert not of & record["trained_on"].keys()


def test_small_graphs_are_of_sources_that_the_weights_have_not_seen() -> None:
    records = json.loads((STORED / small.FILE).read_text("utf-8"))
    assert records.keys() == small.TITLES.keys()
    for dataset, record in records.items():
        assert not any(dataset in SOURCES[source] for source in record["trained_on"])
        assert len(record["graphs"]) == len(small.SIZES)
    with pytest.raises(UsageError, match="source of icews14"):
        small.weights_for("icews14", [])


def test_a_small_graph_is_a_part_with_splits_of_its_own() -> None:
    graph, whole = small.small_graph("demo", 400), {*load("demo").rows()}
    assert 400 <= len(graph) < 520
    assert {*graph.rows()} <= whole
    assert [len(graph.valid), len(graph.test)] == [round(len(graph) / 10)] * 2


def test_what_was_trained_on_is_not_measured() -> None:
    with pytest.raises(UsageError, match="trained on yago, which has yago11k"):
        universal.measure(load_weights(), "yago11k")


def test_the_shipped_weights_have_not_seen_demo() -> None:
    trained_on = load_weights().about["trained_on"]
    assert trained_on.keys() == SOURCES.keys()
    assert "demo" not in str(trained_on)


def test_weights_of_a_file(tmp_path: Path) -> None:
    path = shutil.copy(Path(shipped.__file__).parent / "weights" / "1.safetensors", tmp_path)
    weights = load_weights(str(path))
    assert (weights.version, weights.sha256) == ("1", load_weights().sha256)
    with pytest.raises(SplimeError, match=r"none\.safetensors"):
        load_weights(str(tmp_path / "none.safetensors"))


def test_weights_without_forecasts_answer_other_questions() -> None:
    shipped_ones = load_weights()
    tensors = {n: t for n, t in shipped_ones.tensors.items() if not n.startswith(shipped.FORECAST)}
    query = Query(GraphRun(small_graph(), weights=replace(shipped_ones, tensors=tensors)))
    assert query.ask("entity 1", "p1", "?", at=1995)
    with pytest.raises(UsageError, match="outside"):
        query.ask("entity 1", "p1", "?", at=2100)
