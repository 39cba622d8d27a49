"""The tables of the paper by name: what each needs to be run, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import msgspec

from experiments import rivals, rivals_page, rows, tables
from experiments.rows import DATA, TITLES, Case, Results
from experiments.running import load_graph, run_cases
from splime import leakage
from splime.errors import DataError, SplimeError, UsageError, WriteError
from splime.graph import SPLITS
from splime.io.files import read_json, write_json
from splime.runs import is_finished
from splime.statistics import describe

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Study:
    """A table of the paper."""

    name: str
    rows: Sequence[rows.TableRow]
    tables: Callable[[Results], list[tables.ResultTable]]
    quick: Sequence[str]
    """Rows (dataset and title) that take minutes on two cores."""
    about: str = ""
    """What it shows, in a line."""
    more: Callable[[Results], list[Case]] = lambda _: []
    """Trainings beside the rows; some are known only when others are done."""
    ranked: Callable[[Results], list[Case]] = lambda _: []
    """The cases whose reciprocal ranks are compared, by this study or another; others lose them."""
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
        """Run what is missing, until nothing is; also runs to be drawn that are not in `runs`.

        The members of combinations are kept there too, by the keys of their cases.
        """
        drawn = [row for row in self.rows if row.folder]
        keep = {case.key(): runs / row.folder for row in drawn for case in row.cases}
        shown = () if quick else (*keep,)
        declared = (case for row in self.rows for case in row.cases)
        keep |= {member.key(): runs / member.key() for case in declared for member in members(case)}
        tried: set[str] = set()
        failed: list[SplimeError] = []
        while True:
            cases = self.cases(results, texts, quick=quick)
            combined = [member for case in results.missing(cases) for member in members(case)]
            needed = (*shown, *(member.key() for member in combined))
            gone = {key for key in needed if not is_finished(keep[key])}
            left = results.missing([*cases, *combined], again=gone)
            left = [case for case in left if gone.isdisjoint(m.key() for m in members(case))]
            ready = [case for case in left if case.key() not in tried]
            if not ready:
                break
            tried |= {case.key() for case in ready}
            try:
                run_cases(ready, results, keep=keep, **how)
            except WriteError:
                raise
            except SplimeError as error:  # combinations of others can be made all the same
                failed.append(error)
        results.keep_ranks(self.ranked(results))
        if failed:
            raise failed[0]


def members(case: Case) -> Sequence[Case]:
    """The cases whose runs a case combines."""
    return case.members if isinstance(case, rows.Combination) else ()


def _more_main(_: Results) -> list[Case]:
    return [case for variation in rows.VARIATIONS for case in variation.cases]


def _more_fair(results: Results) -> list[Case]:
    """The search, and the seeds of what is chosen so far."""
    chosen = [rows.choose(results, dataset) for dataset in rows.SEARCH]
    searched = [case for cases in rows.SEARCH.values() for case in cases]
    return [*searched, *(case for best in chosen if best for case in best.seeds())]


def _study(name: str, of: Sequence[rows.TableRow], shown: Any, **more: Any) -> Study:
    return Study(name, of, shown, DATA[name]["quick"], DATA[name]["about"], **more)


_LIST = (
    _study("filters", rows.FILTERS, tables.filters_tables),
    _study("main", rows.MAIN, tables.main_tables, more=_more_main, pictures=tables.main_pictures),
    _study("grid", rows.GRID, tables.grid_tables, pictures=tables.grid_pictures),
    _study("predicates", rows.PREDICATES, tables.predicates_tables),
    _study("tsne", rows.TSNE, tables.tsne_tables, pictures=tables.tsne_pictures),
    _study("fair", rows.FAIR, tables.fair_tables, more=_more_fair),
    _study(
        "paths",
        [row for table in rows.PATHS.values() for row in table],
        tables.paths_tables,
        ranked=lambda _: [case for table in rows.PATHS.values() for case in table[0].cases],
    ),
    _study(
        "rivals",
        rivals.ROWS,
        rivals_page.rivals_tables,
        more=rivals.more_seeds,
        ranked=rivals.ranked,
        pictures=rivals_page.rivals_pictures,
    ),
)
STUDIES = {study.name: study for study in _LIST}


# The two tables that only count: the datasets, and what leaks between splits

EXACT = ("datasets", "duplicates")
FILE = "counts.json"
"""The results that the document takes the two tables from."""


class DatasetCounts(msgspec.Struct):
    """What is counted of a dataset."""

    sizes: tuple[int, int, int, int, int, int]
    """Entities, predicates, timestamps; rows of train, valid and test as they were read."""
    leaks: tuple[str, str, str, str, str]
    """Repeated rows of train, test and valid; those of test and of valid that are in train."""


def count(data: Path | None = None) -> dict[str, DatasetCounts]:
    """Both tables, counted from the datasets."""
    counts = {}
    for dataset in TITLES:
        graph = load_graph(dataset, "paper", data)
        about, leaks = describe(graph), leakage.report(graph)
        sizes = [about.entities, about.predicates, about.timestamps]
        sizes += [about.rows[split] for split in SPLITS]
        shares = [leaks.duplicates[split] for split in ("train", "test", "valid")]
        shares += [leaks.in_train[split] for split in ("test", "valid")]
        plain = {"sizes": sizes, "leaks": [str(share) for share in shares]}
        counts[dataset] = msgspec.convert(plain, DatasetCounts)
    return counts


def write_counts(path: Path, counts: Mapping[str, DatasetCounts]) -> None:
    """Remember them, for the document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, msgspec.to_builtins(counts))


def read_counts(path: Path) -> dict[str, DatasetCounts]:
    """What was remembered; a DataError where it is something else."""
    stored, counts = read_json(path), {}
    for dataset in TITLES:
        try:
            counts[dataset] = msgspec.convert(stored.get(dataset), DatasetCounts)
        except msgspec.ValidationError as error:
            raise DataError(f"{path}: not the counts of {dataset}: {error}") from None
    return counts


def counts_table(name: str, counts: Mapping[str, DatasetCounts]) -> tables.ResultTable:
    """The datasets, or the duplicates once the time is stripped, beside the paper's."""
    printed = DATA["counts"][name]
    ours: dict[str, Sequence[str]]
    if name == "datasets":
        ours = {
            TITLES[dataset]: [f"{size:,}" for size in counted.sizes]
            for dataset, counted in counts.items()
        }
    else:
        columns = (counted.leaks for counted in counts.values())
        ours = dict(zip(printed, zip(*columns, strict=True), strict=True))
    rows = []
    for title, theirs in printed.items():
        both = zip(ours[title], theirs, strict=True)
        cells = (here if here == paper else f"{here} (paper: {paper})" for here, paper in both)
        rows.append((title, *cells))
    wrong = sum("paper:" in cell for row in rows for cell in row)
    note = f"{wrong} counts differ from the paper's." if wrong else "All as the paper prints them."
    return tables.ResultTable(**DATA["counts"][f"{name}_table"], rows=rows, notes=[note])


# All tables together


PAGES = {
    "document": "paper",
    "rivals-document": "rivals",
    "rivals-appendix-document": "rivals-appendix",
    "rivals-strata-document": "rivals-strata",
    "rivals-search-document": "rivals-search",
}
"""The pages of docs that are made from results, by what they are called on the command line."""


def document(results: Path, page: str = "paper") -> str:
    """A page of docs, such as `docs/paper.md`: prose and tables, made from a folder of results."""
    text = Path(__file__).with_name(f"{page}.md").read_text(encoding="utf-8")
    template = Template(text)
    wanted = {*template.get_identifiers()}
    every: dict[str, Sequence[tables.ResultTable]] = {}
    if wanted & {*EXACT}:
        counts = read_counts(results / FILE)
        every |= {name: [counts_table(name, counts)] for name in EXACT}
    for name in STUDIES.keys() & wanted:
        every[name] = STUDIES[name].tables(Results(results / f"{name}.json"))
    if page.startswith("rivals"):
        every |= rivals_page.rivals_parts(Results(results / "rivals.json"))
    if "main" in every:
        *every["main"], variations = every["main"]
        every["variations"] = [variations]
    parts = {
        name: "\n\n".join(table.to_markdown().strip() for table in made)
        for name, made in every.items()
    }
    return template.substitute(parts)
