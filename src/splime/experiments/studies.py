"""The tables of the paper by name: what each needs to be run, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from splime.errors import UsageError
from splime.experiments import (
    fair,
    fair_tables,
    filters,
    grid,
    main_plot,
    main_table,
    predicates,
    tsne,
    variations,
)
from splime.experiments.case import Case
from splime.experiments.results import Results
from splime.experiments.running import run_cases
from splime.experiments.table import Table
from splime.runs import is_finished

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXACT = ("datasets", "duplicates")
"""Tables that need no training."""


class Row(Protocol):
    """A row of a table: the trainings it is made from."""

    @property
    def dataset(self) -> str:
        """The name of the dataset."""

    @property
    def title(self) -> str:
        """What is run on it."""

    def cases(self) -> list[Case]:
        """The trainings."""


@dataclass(frozen=True)
class Study:
    """A table of the paper."""

    name: str
    rows: Callable[[], Iterable[Row]]
    tables: Callable[[Results], list[Table]]
    quick: tuple[str, ...]
    """Rows (dataset and title) that take minutes on two cores; of each its first training."""
    more: Callable[[Results], list[Case]] = lambda _: []
    """Trainings beside the rows; some are known only when others are done."""
    pictures: Callable[[Results, Path], dict[str, Figure]] | None = None
    """Its figures, from the results and a folder of runs."""
    folders: Callable[[Path], dict[str, Path]] = lambda _: {}
    """Which runs are kept in that folder, by the keys of their cases."""

    def cases(self, results: Results, rows: Sequence[str] = ()) -> list[Case]:
        """The trainings of all rows, or of those whose dataset and title contain a text."""
        labels = [(f"{row.dataset} {row.title}", row) for row in self.rows()]
        if not rows:
            return [*(case for _, row in labels for case in row.cases()), *self.more(results)]
        found = []
        for text in rows:
            matching = [row for label, row in labels if text.casefold() in label.casefold()]
            if not matching:
                known = ", ".join(repr(label) for label, _ in labels[:7])
                raise UsageError(f"no row of {self.name} contains {text!r}; rows are {known}, …")
            found += [case for row in matching for case in row.cases()]
        return found

    def quick_cases(self, results: Results) -> list[Case]:
        """The first training of each row of the quick subset; all settings are the table's."""
        return [self.cases(results, [row])[0] for row in self.quick]


def complete(
    study: Study,
    results: Results,
    rows: Sequence[str] = (),
    keep: Mapping[str, Path] | None = None,
    **how: Any,
) -> None:
    """Run what is missing, until nothing is; also runs that should be kept and are not there."""
    while True:
        cases = study.cases(results, rows)
        gone = {key for key, folder in (keep or {}).items() if not is_finished(folder)}
        left = [*results.missing(cases), *(case for case in cases if case.key() in gone)]
        if not left:
            return
        run_cases(list({case.key(): case for case in left}.values()), results, keep=keep, **how)


def _main_tables(results: Results) -> list[Table]:
    return [*main_table.tables(results), variations.table(results)]


def _main_more(_: Results) -> list[Case]:
    return [case for variation in variations.variations() for case in variation.changed]


STUDIES: Mapping[str, Study] = {
    study.name: study
    for study in (
        Study(
            "filters", filters.rows, filters.tables, ("wikidata12k AmpliGraph (TransE), margin 3",)
        ),
        Study(
            "main",
            main_table.rows,
            _main_tables,
            ("yago11k Vanilla", "yago11k Split (CPD)"),
            _main_more,
            main_plot.pictures,
        ),
        Study(
            "grid",
            grid.rows,
            grid.tables,
            ("yago11k Split (CPD), preferential attachment, 20",),
            pictures=grid.pictures,
        ),
        Study("predicates", predicates.rows, predicates.tables, ("yago11k Vanilla",)),
        Study(
            "tsne",
            tsne.rows,
            tsne.tables,
            ("wikidata12k Random",),
            pictures=tsne.pictures,
            folders=tsne.folders,
        ),
        Study(
            "fair",
            fair.rows,
            fair_tables.tables,
            ("yago11k TransE, the paper",),
            fair_tables.further_cases,
        ),
    )
}
