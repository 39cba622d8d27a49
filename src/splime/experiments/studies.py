"""The tables of the paper by name: what each needs to be run, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, TypeAlias

from splime.errors import UsageError
from splime.experiments import pictures, rows, tables
from splime.experiments.case import Case, Results
from splime.experiments.counts import EXACT, FILE, counts_table, read_counts
from splime.experiments.running import run_cases
from splime.runs import is_finished

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Tables: TypeAlias = Callable[[Results], list[tables.Table]]


@dataclass(frozen=True)
class Study:
    """A table of the paper."""

    name: str
    rows: Sequence[rows.Row]
    tables: Tables
    quick: Sequence[str]
    """Rows (dataset and title) that take minutes on two cores."""
    more: Callable[[Results], list[Case]] = lambda _: []
    """Trainings beside the rows; some are known only when others are done."""
    pictures: Callable[[Results, Path], dict[str, Figure]] | None = None
    """Its figures, from the results and a folder of runs."""

    def cases(
        self, results: Results, texts: Sequence[str] = (), *, quick: bool = False
    ) -> list[Case]:
        """The trainings of all rows, or of those whose dataset and title contain a text.

        Of the quick subset it is the first training of each row; all settings are the table's.
        """
        if quick:
            return [self.cases(results, [text])[0] for text in self.quick]
        if not texts:
            return [*(case for row in self.rows for case in row.cases), *self.more(results)]
        cases: list[Case] = []
        for text in texts:
            matching = [row for row in self.rows if text.casefold() in row.label.casefold()]
            if not matching:
                known = ", ".join(repr(row.label) for row in self.rows[:7])
                raise UsageError(f"no row of {self.name} contains {text!r}; rows are {known}, …")
            cases += [case for row in matching for case in row.cases]
        return cases

    def run(
        self, results: Results, texts: Sequence[str], runs: Path, *, quick: bool = False, **how: Any
    ) -> None:
        """Run what is missing, until nothing is; also runs to be drawn that are not in `runs`."""
        drawn = [row for row in self.rows if row.folder]
        keep = {case.key(): runs / row.folder for row in drawn for case in row.cases}
        while True:
            gone = [key for key in keep if not quick and not is_finished(keep[key])]
            left = results.missing(self.cases(results, texts, quick=quick), again=gone)
            if not left:
                return
            run_cases(left, results, keep=keep, **how)


def _more_main(_: Results) -> list[Case]:
    return [case for variation in rows.VARIATIONS for case in variation.cases]


def _more_fair(results: Results) -> list[Case]:
    """The search, and the seeds of what is chosen so far."""
    chosen = [rows.choose(results, dataset) for dataset in rows.SEARCH]
    searched = [case for cases in rows.SEARCH.values() for case in cases]
    return [*searched, *(case for each in chosen if each for case in each.seeds())]


def _study(name: str, of: Sequence[rows.Row], shown: Tables, **more: Any) -> Study:
    return Study(name, of, shown, rows.DATA[name]["quick"], **more)


_LIST = (
    _study("filters", rows.FILTERS, tables.filters_tables),
    _study("main", rows.MAIN, tables.main_tables, more=_more_main, pictures=pictures.main_pictures),
    _study("grid", rows.GRID, tables.grid_tables, pictures=pictures.grid_pictures),
    _study("predicates", rows.PREDICATES, tables.predicates_tables),
    _study("tsne", rows.TSNE, tables.tsne_tables, pictures=pictures.tsne_pictures),
    _study("fair", rows.FAIR, tables.fair_tables, more=_more_fair),
)
STUDIES = {study.name: study for study in _LIST}


def document(results: Path) -> str:
    """`docs/paper.md`: every table beside the paper's, made from a folder of results."""
    counts = read_counts(results / FILE)
    every = {name: [counts_table(name, counts)] for name in EXACT}
    for name, study in STUDIES.items():
        every[name] = study.tables(Results(results / f"{name}.json"))
    every["variations"] = [every["main"].pop()]
    parts = {
        name: "\n\n".join(table.to_markdown().strip() for table in made)
        for name, made in every.items()
    }
    text = Path(__file__).with_name("paper.md").read_text(encoding="utf-8")
    return Template(text).substitute(parts)
