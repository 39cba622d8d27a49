"""The paper's three t-SNE figures, drawn from the folders of two runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from splime.experiments.case import Case
from splime.experiments.results import Results
from splime.experiments.smoothness import SMOOTHNESS
from splime.experiments.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Row(NamedTuple):
    """A run that is drawn, and the predicate that the paper looks at in it."""

    folder: str
    dataset: str
    title: str
    predicate: str
    method: str
    parameters: Mapping[str, Any]

    def case(self) -> Case:
        """Its training."""
        settings = {"preset": "paper", "seed": 0}
        asked = {"protocol": SMOOTHNESS}
        return Case(
            self.dataset, self.method, {**self.parameters, "fit_on": "all"}, settings, (asked,)
        )

    def cases(self) -> list[Case]:
        """The one training of the row."""
        return [self.case()]


def rows() -> Iterator[Row]:
    """The merged graph, and the random baseline."""
    yield Row("wikidata-merge", "wikidata12k", "Merge, shrink 4", "P54", "merge", {"shrink": 4})
    parameters = {"predicates": 423, "seed": 0}
    title = "Random, 423 predicates"
    yield Row("wikidata-random", "wikidata12k", title, "P551", "random", parameters)


def pictures(runs: Path) -> dict[str, Figure]:
    """The figures by the names of their files."""
    from splime.report.embeddings import plot_predicate, plot_predicates
    from splime.runs import Run

    merge, random = (Run(runs / row.folder, device="cpu") for row in rows())
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
