"""The paper's three t-SNE figures, drawn from the folders of two runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from splime.experiments.case import Case
from splime.experiments.main_table import find_row
from splime.experiments.results import Results
from splime.experiments.smoothness import SMOOTHNESS
from splime.experiments.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Row(NamedTuple):
    """A row of the main table that is drawn."""

    folder: str
    dataset: str
    title: str

    def case(self) -> Case:
        """Its training."""
        same = find_row(self.dataset, self.title).case(0)
        return replace(same, evaluations=({"protocol": SMOOTHNESS},))

    def cases(self) -> list[Case]:
        """The one training of the row."""
        return [self.case()]


def rows() -> Iterator[Row]:
    """The merged graph, and the random baseline."""
    yield Row("wikidata-merge", "wikidata12k", "Merge, shrink 4")
    yield Row("wikidata-random", "wikidata12k", "Random")


def folders(runs: Path) -> dict[str, Path]:
    """Where the runs are kept, by the keys of their cases."""
    return {row.case().key(): runs / row.folder for row in rows()}


def pictures(_: Results, runs: Path) -> dict[str, Figure]:
    """The figures by the names of their files."""
    from splime.analysis.embeddings import project
    from splime.report.embeddings import plot_predicate, plot_predicates
    from splime.runs import Run

    merge, random = (project(Run(runs / row.folder, device="cpu")) for row in rows())
    return {
        "tsne-predicates": plot_predicates(merge),
        "tsne-P54-merge": plot_predicate([merge], "P54"),
        "tsne-P551-random": plot_predicate([random], "P551"),
    }


def tables(results: Results) -> list[Table]:
    """The numbers behind the figures."""
    lines: list[tuple[str, ...]] = []
    for row in rows():
        if row.case() in results:
            found = results[row.case()]["figures"][0]
            for name in ("P54", "P551"):
                own = found["predicates"].get(name)
                numbers = (str(own[0]), f"{own[1]:.2f}") if own else ("fewer than 4", "–")
                lines.append((row.title, name, *numbers, f"{found['overall']:.2f}"))
    columns = ("run", "predicate", "scopes", "smoothness", "of all predicates")
    notes = [
        "Smoothness is the mean distance between the embeddings of scopes that are neighbours in"
        " time, as a share of that between the others: 1 where time does not matter."
    ]
    title = "How smoothly predicates move"
    return [Table(title, columns, lines, notes, 2, dataset="wikidata12k")]
