"""The document is what the command makes from the results; tables say what they hold."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from splime.errors import DataError
from splime.experiments import exact, fair_tables, grid, main_plot, main_table
from splime.experiments.document import COUNTS, document
from splime.experiments.fair import fair_case, search
from splime.experiments.figures import FIGURES
from splime.experiments.results import Results
from splime.experiments.studies import STUDIES
from splime.experiments.table import Table
from splime.graph import TemporalGraph

ROOT = Path(__file__).parents[2]
STORED = ROOT / "experiments" / "results"


def test_the_document_is_made_from_the_results() -> None:
    assert (ROOT / "docs" / "paper.md").read_text(encoding="utf-8") == document(STORED), (
        "run: splime reproduce document > docs/paper.md"
    )


def test_counts_are_those_of_the_datasets(
    published_graphs: dict[str, TemporalGraph], published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPLIME_DATA", str(published))
    found = exact.count()
    assert found == exact.read_counts(STORED / COUNTS)
    for table in (exact.datasets_table(found), exact.duplicates_table(found)):
        assert table.notes == ["All as the paper prints them."]


def test_a_difference_shows(tmp_path: Path) -> None:
    found = exact.read_counts(STORED / COUNTS)
    found["yago11k"]["sizes"][0] += 1
    table = exact.datasets_table(found)
    assert table.rows[0][1] == "10,527 (paper: 10,526)"
    assert table.notes == ["1 figures differ from the paper's."]
    del found["icews14"]["leaks"]
    exact.write_counts(tmp_path / COUNTS, found)
    with pytest.raises(DataError, match="not the counts of icews14"):
        exact.read_counts(tmp_path / COUNTS)


@pytest.mark.parametrize("name", STUDIES)
def test_tables_without_results(name: str, tmp_path: Path) -> None:
    """Nothing was run: rows are there, and say so."""
    for table in STUDIES[name].tables(Results(tmp_path / "none.json")):
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert "nan" not in table.to_markdown()


def test_documents_of_parts(tmp_path: Path) -> None:
    shutil.copy(STORED / COUNTS, tmp_path)
    assert "## Main table" in document(tmp_path)


def test_what_is_chosen_is_best_on_valid(tmp_path: Path) -> None:
    results = Results(tmp_path / "fair.json")

    def figures(value: float) -> dict[str, object]:
        each = {"mrr": value, "hits1": value, "hits3": value, "hits10": value}
        return {"metrics": {"exact": each, "overlap": each}}

    first, second, *_ = search("icews14")
    # In the order of the evaluations: mean on valid and test, ends on valid and test.
    results.add(first, {"figures": list(map(figures, (0.3, 0.9, 0.2, 0.9))), "predicates": 1})
    results.add(second, {"figures": list(map(figures, (0.1, 0.1, 0.4, 0.1))), "predicates": 1})
    chosen = fair_tables.choose(results, "icews14")
    assert chosen is not None
    assert (chosen.case, chosen.aggregate, chosen.valid) == (second, "ends", 0.4)
    assert [case.training["seed"] for case in chosen.seeds()] == [0, 1, 2]
    assert chosen.seeds()[0].key() == second.key()
    assert {case.key() for case in chosen.seeds()} <= {
        case.key() for case in fair_tables.further_cases(results)
    }
    assert fair_tables.choose(results, "yago11k") is None


def test_markdown_survives_names() -> None:
    table = Table("t", ("a|b", "c"), [("x_y", "<z>")], ["n*"])
    assert table.to_markdown().splitlines()[2:] == [
        "| a\\|b | c |",
        "|---|--:|",
        "| x\\_y | \\<z> |",
        "",
        "n\\*",
    ]
    assert fair_case("a", "merge", {}, {}).reading == "fact"


def test_the_grid_as_a_table_and_as_a_picture(tmp_path: Path) -> None:
    results = Results(tmp_path / "grid.json")
    points = [point for point in grid.rows() if point.dataset == "yago11k"]
    for at, point in enumerate(points):
        # On valid the best is the last of each method, on test the first.
        figures = [dict.fromkeys(FIGURES, value) for value in (at / 100, (99 - at) / 100)]
        record = {"figures": [{"metrics": {"triple": each}} for each in figures]}
        results.add(point.case(), {**record, "predicates": 10 + at})
    [table] = grid.tables(results)
    assert [row[:3] for row in table.rows] == [
        ("yago11k", "Split (time)", "25"),
        ("yago11k", "Split (count)", "30"),
        ("yago11k", "Split (CPD), jaccard", "20"),
        ("yago11k", "Split (CPD), adamic adar", "20"),
        ("yago11k", "Split (CPD), preferential attachment", "20"),
        ("yago11k", "Merge", "10"),
    ]
    assert table.rows[0][3:6] == ("14", ".040", ".950")
    [axes] = grid.plot_grid(results, "yago11k").axes
    assert len(axes.lines) == 6
    assert sum(np.size(line.get_xdata()) for line in axes.lines) == len(points)


def test_the_main_table_as_a_picture(tmp_path: Path) -> None:
    results = Results(tmp_path / "main.json")
    yago = [row for row in main_table.rows() if row.dataset == "yago11k"]
    for at, row in enumerate(yago):
        for seed, case in enumerate(row.cases()):
            figures = dict.fromkeys(FIGURES, 0.1 + at / 100 + seed / 1000)
            record = {"figures": [{"metrics": {"triple": figures}}], "predicates": 10}
            results.add(case, record)
    panels = main_plot.plot_main(results).axes
    assert [axes.get_title(loc="left") for axes in panels] == ["Wikidata12k", "YAGO11k", "ICEWS14"]
    # Nothing was run of the others: only what is printed stands there.
    drawn = [[line for line in axes.lines if np.size(line.get_xdata())] for axes in panels]
    assert [len(lines) for lines in drawn] == [7, 21, 7]
    printed, spread, mean = drawn[1][:3]
    assert np.asarray(printed.get_xdata()).tolist() == [0.188]
    assert np.asarray(spread.get_xdata()).tolist() == pytest.approx([0.1, 0.102])
    assert np.asarray(mean.get_xdata()).tolist() == pytest.approx([0.101])
