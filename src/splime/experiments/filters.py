"""The paper's table of leak filters: three set-ups of TransE on the datasets that leak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from splime.experiments.case import Case
from splime.experiments.figures import figures_of
from splime.experiments.results import Results
from splime.experiments.table import Table, percent

FILTERS = ("none", "inter", "intra", "both")


class Row(NamedTuple):
    """A line of the table: a set-up on a dataset, and what the paper prints."""

    dataset: str
    title: str
    preset: str
    printed: tuple[float, float, float, float]
    """Hits@10 in percent, for each of `FILTERS`."""

    @property
    def kept(self) -> float:
        """What both filters leave of the printed Hits@10, in percent."""
        return 100 * self.printed[-1] / self.printed[0]

    def case(self, filter: str) -> Case:
        """The training that a filter is shown with.

        Intra-set filtering drops repeated rows, of train too. AmpliGraph drops them in any case.
        """
        always = self.preset in _DISTINCT
        distinct = always or filter in ("intra", "both")
        shown = FILTERS if always else ("intra", "both") if distinct else ("none", "inter")
        training = {"preset": self.preset, "seed": 0, "distinct": distinct}
        return Case(
            self.dataset,
            "vanilla",
            {"fit_on": "all"},
            training,
            tuple({"protocol": "triple", "split": "test", "filter": each} for each in shown),
        )

    def cases(self) -> list[Case]:
        """The trainings of the line."""
        return list({case.key(): case for case in map(self.case, FILTERS)}.values())


def rows() -> Iterator[Row]:
    """The lines in the order of the paper."""
    for dataset, lines in _TABLE.items():
        for (title, preset), printed in zip(_SETUPS, lines, strict=True):
            yield Row(dataset, title, preset, printed)


def tables(results: Results) -> list[Table]:
    """Hits@10 under the four filters, beside the paper's."""
    lines = []
    for row in rows():
        found = [figures_of(results, row.case(each), filter=each) for each in FILTERS]
        cells = [
            f"{percent(figures['hits10'] if figures else None)} ({paper})"
            for figures, paper in zip(found, row.printed, strict=True)
        ]
        none, *_, both = (figures["hits10"] if figures else None for figures in found)
        kept = "–" if none is None or both is None else f"{100 * both / none:.0f} %"
        lines.append((row.dataset, row.title, *cells, f"{kept} ({row.kept:.0f} %)"))
    columns = ("dataset", "set-up", *FILTERS, "both / none")
    notes = [
        "One seed. The last column is what both filters leave of the Hits@10 without a filter."
    ]
    title = "Hits@10 in percent under the leak filters (the paper's in brackets)"
    return [Table(title, columns, lines, notes, words=2)]


_DISTINCT = ("paper", "ampligraph")
_SETUPS = (
    ("HyTE (TransE)", "hyte"),
    ("RotatE (TransE)", "rotate"),
    ("AmpliGraph (TransE), margin 3 as used", "paper"),
    ("AmpliGraph (TransE), margin 1 as printed", "ampligraph"),
)
_Line = tuple[float, float, float, float]
_TABLE: Mapping[str, tuple[_Line, ...]] = {
    "wikidata12k": (
        (10.1, 3.8, 5.3, 3.5),
        (53.8, 36.4, 52.4, 33.9),
        (52.7, 37.7, 52.8, 37.9),
        (52.7, 37.7, 52.8, 37.9),
    ),
    "icews14": (
        (54.1, 25.7, 40.6, 23.7),
        (70.3, 38.4, 65.1, 37.9),
        (56.1, 42.2, 56.1, 42.2),
        (56.1, 42.2, 56.1, 42.2),
    ),
}
