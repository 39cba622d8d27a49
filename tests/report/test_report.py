from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.patches import StepPatch
from rich.console import Console

import splime
from splime import leakage
from splime.errors import SplimeError
from splime.reporting import plots, style, tables


def printed(*parts: object) -> str:
    console = Console(width=120, record=True, markup=False)
    for part in parts:
        console.print(part)
    return console.export_text()


def test_the_picture_shows_every_fact_once_per_timestamp(tmp_path: Path) -> None:
    graph = splime.load("demo")
    figure = plots.plot_facts_over_time(graph)
    above, below = figure.axes[:2]
    (steps,) = above.findobj(StepPatch)
    assert steps.get_data()[0].tolist() == [
        len(graph.at(year)) for year in range(graph.timeline.first, graph.timeline.last + 1)
    ]
    shown = [label.get_text().split("  ")[0] for label in below.get_yticklabels()]
    assert sorted(shown) == list(graph.predicates)
    assert below.get_xticklabels()[0].get_text() == "1950"
    for suffix in (".png", ".svg", ".pdf"):
        style.save_picture(figure, tmp_path / f"facts{suffix}")
        assert (tmp_path / f"facts{suffix}").stat().st_size > 1_000


def test_many_and_odd_predicates() -> None:
    rows = [("a", f"$p_{n}^{'x' * n}$", "b", 1990 + n) for n in range(60)]
    figure = plots.plot_facts_over_time(splime.read(rows, split="none"))
    assert "; 35 less frequent predicates are not shown" in figure.get_supxlabel()
    figure.savefig(io.BytesIO(), format="png")


def test_a_part_of_a_graph_shows_the_predicates_that_it_has() -> None:
    part = splime.load("demo").where(predicate=["livesIn", "visited"])
    figure = plots.plot_facts_over_time(part)
    assert len(figure.axes[1].get_yticklabels()) == 2
    assert "not shown" not in figure.get_supxlabel()
    assert len(tables.predicate_table(part).rows) == 2


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SplimeError, match=r"pip install 'splime-kg\[plot\]'"):
        plots.plot_facts_over_time(splime.load("demo"))


def test_tables_show_names_as_they_are() -> None:
    facts = [("[red]a", "[bold]p[/]", "b", 1990, None), ("[red]a", "q", "b", 1995, 1990)]
    graph = splime.read({"train": facts, "test": facts[:1]})
    text = printed(
        tables.statistics_table(splime.describe(graph)),
        *tables.reading_table(graph.reading),
        tables.predicate_table(graph),
        *tables.leak_table(leakage.report(graph)),
    )
    assert "[bold]p[/]" in text
    assert "train, row 2: [red]a | q | b | 1995 | 1990  (end before begin)" in text
    assert "1 × end before begin" in text
    assert "1 (100.00 %)" in text


@pytest.mark.parametrize(
    ("values", "line"), [([0, 0], ""), ([1], "█"), ([0, 1, 1000], " ▁█"), ([0.1, 5], "▁█")]
)
def test_sparkline(values: list[float], line: str) -> None:
    assert tables.sparkline(np.array(values)) == line


def test_lines_of_bars_are_linear_in_time() -> None:
    rows = [("a", "p", "b", year) for year in (1950, 1951, 2029)]
    text = printed(tables.predicate_table(splime.read(rows, split="none", granularity="year")))
    assert "1950 → 2029" in text
    assert f"│ █{' ' * 38}▄ │" in text  # two years a bar: two facts in the first, one in the last
