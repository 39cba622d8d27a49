"""The document is what the command makes from the results; tables say what they hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from experiments import rows, studies
from experiments.rows import METRICS, Results
from experiments.studies import STUDIES, document
from experiments.tables import ResultTable, grid_pictures, main_pictures
from splime.errors import DataError
from splime.graph import TemporalGraph

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
STORED = ROOT / "experiments" / "results"


@pytest.mark.parametrize(("name", "page"), studies.PAGES.items())
def test_documents_are_made_from_the_results(name: str, page: str) -> None:
    path = ROOT / "docs" / f"{page}.md"
    assert path.read_text(encoding="utf-8") == document(STORED, page), (
        f"run: python -m experiments {name} > docs/{page}.md"
    )


def test_counts_are_those_of_the_datasets(
    published_graphs: dict[str, TemporalGraph], published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPLIME_DATA", str(published))
    counted = studies.count()
    assert counted == studies.read_counts(STORED / studies.FILE)
    for name in studies.EXACT:
        assert studies.counts_table(name, counted).notes == ["All as the paper prints them."]


def test_a_difference_shows(tmp_path: Path) -> None:
    counted = studies.read_counts(STORED / studies.FILE)
    entities, *rest = counted["yago11k"].sizes
    counted["yago11k"] = replace(counted["yago11k"], sizes=(entities + 1, *rest))
    table = studies.counts_table("datasets", counted)
    assert table.rows[0][1] == "10,527 (paper: 10,526)"
    assert table.notes == ["1 counts differ from the paper's."]
    path = tmp_path / studies.FILE
    studies.write_counts(path, counted)
    assert studies.read_counts(path) == counted
    stored = json.loads(path.read_text())
    for damaged in ({}, {"sizes": stored["icews14"]["sizes"]}, {**stored["icews14"], "leaks": []}):
        path.write_text(json.dumps({**stored, "icews14": damaged}))
        with pytest.raises(DataError, match="not the counts of icews14"):
            studies.read_counts(path)


@pytest.mark.parametrize("name", STUDIES)
def test_tables_without_results(name: str, tmp_path: Path) -> None:
    """Nothing was run: rows are there, and say so."""
    for table in STUDIES[name].tables(Results(tmp_path / "none.json")):
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert "nan" not in table.to_markdown()


def test_documents_of_parts(tmp_path: Path) -> None:
    shutil.copy(STORED / studies.FILE, tmp_path)
    assert "## Main table" in document(tmp_path)


def test_what_is_chosen_is_best_on_valid(tmp_path: Path) -> None:
    results = Results(tmp_path / "fair.json")

    def evaluation(value: float) -> dict[str, object]:
        each = {"mrr": value, "hits1": value, "hits3": value, "hits10": value}
        return {"metrics": {"exact": each, "overlap": each}}

    first, second, *_ = rows.SEARCH["icews14"]
    # In the order of the evaluations: mean on valid and test, ends on valid and test.
    results.add(first, {"figures": list(map(evaluation, (0.3, 0.9, 0.2, 0.9))), "predicates": 1})
    results.add(second, {"figures": list(map(evaluation, (0.1, 0.1, 0.4, 0.1))), "predicates": 1})
    chosen = rows.choose(results, "icews14")
    assert chosen is not None
    assert (chosen.case, chosen.aggregate, chosen.valid) == (second, "ends", 0.4)
    assert [case.training["seed"] for case in chosen.seeds()] == [0, 1, 2]
    assert chosen.seeds()[0].key() == second.key()
    assert {case.key() for case in chosen.seeds()} <= {
        case.key() for case in STUDIES["fair"].cases(results)
    }
    assert rows.choose(results, "yago11k") is None


def test_markdown_survives_names() -> None:
    table = ResultTable("t", ("a|b", "c"), [("x_y", "<z>")], ["n*"])
    assert table.to_markdown().splitlines()[2:] == [
        "| a\\|b | c |",
        "|---|--:|",
        "| x\\_y | \\<z> |",
        "",
        "n\\*",
    ]


def test_the_grid_as_a_table_and_as_a_picture(tmp_path: Path) -> None:
    results = Results(tmp_path / "grid.json")
    yago = [row for row in rows.GRID if row.dataset == "yago11k"]
    for at, row in enumerate(yago):
        # On valid the best is the last of each method, on test the first.
        metrics = [dict.fromkeys(METRICS, value) for value in (at / 100, (99 - at) / 100)]
        record = {"figures": [{"metrics": {"triple": each}} for each in metrics]}
        results.add(row.cases[0], {**record, "predicates": 10 + at})
    [table] = STUDIES["grid"].tables(results)
    assert [row[:3] for row in table.rows] == [
        ("yago11k", "Split (time)", "25"),
        ("yago11k", "Split (count)", "30"),
        ("yago11k", "Split (CPD), jaccard", "20"),
        ("yago11k", "Split (CPD), adamic adar", "20"),
        ("yago11k", "Split (CPD), preferential attachment", "20"),
        ("yago11k", "Merge", "10"),
    ]
    assert table.rows[0][3:6] == ("14", ".040", ".950")
    [axes] = grid_pictures(results, tmp_path)["grid-yago11k"].axes
    assert len(axes.lines) == 6
    assert sum(np.size(line.get_xdata()) for line in axes.lines) == len(yago)


def test_the_main_table_as_a_picture(tmp_path: Path) -> None:
    results = Results(tmp_path / "main.json")
    yago = [row for row in rows.MAIN if row.dataset == "yago11k"]
    for at, row in enumerate(yago):
        for seed, case in enumerate(row.cases):
            metrics = dict.fromkeys(METRICS, 0.1 + at / 100 + seed / 1000)
            record = {"figures": [{"metrics": {"triple": metrics}}], "predicates": 10}
            results.add(case, record)
    panels = main_pictures(results, tmp_path)["main"].axes
    assert [axes.get_title(loc="left") for axes in panels] == ["Wikidata12k", "YAGO11k", "ICEWS14"]
    # Nothing was run of the others: only what is printed stands there.
    drawn = [[line for line in axes.lines if np.size(line.get_xdata())] for axes in panels]
    assert [len(lines) for lines in drawn] == [7, 21, 7]
    printed, spread, mean = drawn[1][:3]
    assert np.asarray(printed.get_xdata()).tolist() == [0.188]
    assert np.asarray(spread.get_xdata()).tolist() == pytest.approx([0.1, 0.102])
    assert np.asarray(mean.get_xdata()).tolist() == pytest.approx([0.101])
