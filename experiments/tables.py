"""The paper's tables as text and as figures: the results beside what the paper prints."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments import rows
from experiments.rows import DATA, METRICS, TITLES, Average, Case, Results
from splime.reporting.style import add_legend, make_figure, open_axes, series_style
from splime.reporting.tables import escaped, markdown_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ResultTable:
    """A title, columns, rows of text, and what one must know to read it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = ()
    words: int = 1
    """How many columns hold words; those behind them hold numbers, and stand to the right."""
    dataset: str = ""
    """The one that all rows are of, where no column says it."""
    whole: bool = False
    """Whether the rows are not those that are run, so that all are shown or none."""

    def to_markdown(self) -> str:
        """As Markdown.

        >>> print(ResultTable("", ("method", "MRR"), [("merge", ".358")]).to_markdown())
        | method | MRR |
        |---|--:|
        | merge | .358 |
        <BLANKLINE>
        """
        if not self.rows:
            return "\n".join(f"{escaped(note)}\n" for note in self.notes)
        header, *body = [[*map(escaped, cells)] for cells in (self.columns, *self.rows)]
        lines = [f"**{self.title}**\n"] if self.title else []
        lines += [*markdown_lines(header, body, words=range(self.words)), ""]
        for note in self.notes:
            lines += [escaped(note), ""]
        return "\n".join(lines)

    def only(self, texts: Sequence[str]) -> ResultTable:
        """The rows that one of some texts belongs to; their dataset and title contain it.

        >>> rows = [("Vanilla", ".1"), ("Merge, 4", ".2")]
        >>> table = ResultTable("", ("method", "MRR"), rows, dataset="a")
        >>> table.only(["A merge"]).rows
        [('Merge, 4', '.2')]
        """
        kept = []
        for row in self.rows:
            words = () if self.whole else row[: self.words]
            label = " ".join([self.dataset, *words]).strip().casefold()
            if any(text in label or label in text for text in map(str.casefold, texts)):
                kept.append(row)
        return replace(self, rows=kept, notes=self.notes if kept else ())


def mrr(value: float | None) -> str:
    """An MRR as the paper writes it, without the leading zero.

    >>> mrr(0.3581), mrr(None)
    ('.358', '–')
    """
    return "–" if value is None else f"{value:.3f}".removeprefix("0")


def signed(value: float) -> str:
    """A difference of MRRs.

    >>> signed(0.0163), signed(-0.0001)
    ('+.016', '.000')
    """
    text = mrr(abs(value))
    return text if text == ".000" else f"{'-' if value < 0 else '+'}{text}"


def percent(share: float | None) -> str:
    """A fraction in percent."""
    return "–" if share is None else f"{100 * share:.1f}"


def cells(metrics: Mapping[str, float]) -> list[str]:
    """MRR, Hits@1, Hits@3 and Hits@10 for a table; dashes where nothing was run."""
    return [mrr(metrics.get("mrr")), *(percent(metrics.get(name)) for name in METRICS[1:])]


def main_tables(results: Results) -> list[ResultTable]:
    """The main table of each dataset, and what could explain its differences from the paper."""
    return [*(_main_table(results, dataset) for dataset in TITLES), _variations_table(results)]


def _main_table(results: Results, dataset: str) -> ResultTable:
    lines = []
    ours: dict[str, float] = {}
    theirs: dict[str, float] = {}
    for row in (row for row in rows.MAIN if row.dataset == dataset):
        ran = results.average(row.cases)
        predicates, difference, deviation = "–", "", ""
        if ran.mrrs:
            ours[row.title], theirs[row.title] = ran.mean["mrr"], row.printed["mrr"]
            predicates = f"{ran.predicates:,.0f}"
            difference = signed(ours[row.title] - theirs[row.title])
            deviation = mrr(ran.deviation)
        left = [predicates, *cells(ran.mean)]
        right = [f"{row.printed['predicates']:,}", *cells(row.printed)]
        both = (f"{here} ({paper})" for here, paper in zip(left, right, strict=True))
        lines.append((row.title, *both, difference, deviation, str(len(ran.mrrs))))
    notes = [_order(ours, theirs)] if len(ours) > 1 else []
    title = f"{dataset} (the paper's figures in brackets)"
    return ResultTable(title, DATA["main"]["columns"], lines, notes, dataset=dataset)


def _order(ours: Mapping[str, float], theirs: Mapping[str, float]) -> str:
    here, there = (
        " > ".join(title.split(", ")[0] for title in sorted(mrrs, key=lambda t: -mrrs[t]))
        for mrrs in (ours, theirs)
    )
    if here == there:
        return f"The order by MRR is the paper's: {here}."
    return f"By MRR: {here}. The paper: {there}."


def _variations_table(results: Results) -> ResultTable:
    lines = []
    for row, title, changed, _ in rows.VARIATIONS:
        # Random cuts are compared with all draws, others with the same seeds.
        usual = row.cases if row.cases[0].method == "random" else row.cases[: len(changed)]
        both = (_joined(results.average(cases)) for cases in (changed, usual))
        lines.append((row.label, title, *both, " / ".join(cells(row.printed))))
    return ResultTable(**DATA["main"]["variations_table"], rows=lines)


def _joined(ran: Average) -> str:
    runs = f" ({len(ran.mrrs)} runs)" if len(ran.mrrs) > 1 else ""
    return " / ".join(cells(ran.mean)) + runs if ran.mrrs else "–"


def filters_tables(results: Results) -> list[ResultTable]:
    """Hits@10 under the four filters."""
    lines = []
    for row in rows.FILTERS:
        averages = {name: results.average(row.cases, filter=name) for name in row.printed}
        hits = {name: ran.mean.get("hits10") for name, ran in averages.items()}
        both = (f"{percent(hits[name])} ({percent(row.printed[name])})" for name in hits)
        lines.append((row.dataset, row.title, *both, f"{_kept(hits)} ({_kept(row.printed)})"))
    return [ResultTable(**DATA["filters"]["table"], rows=lines)]


def _kept(hits: Mapping[str, float | None]) -> str:
    """What both filters leave."""
    none, both = hits["none"], hits["both"]
    return "–" if none is None or both is None else f"{100 * both / none:.0f} %"


def grid_tables(results: Results) -> list[ResultTable]:
    """For each method the value that is best on valid, and the MRR on test of all its values."""
    lines = []
    for sweep in rows.SWEEPS:
        valid, test = (
            {
                value: ran
                for value, row in sweep.rows.items()
                if (ran := results.average(row.cases, split=split)).mrrs
            }
            for split in ("valid", "test")
        )
        if valid:
            best = max(valid, key=lambda value: valid[value].mean["mrr"])
            every = {value: mrr(ran.mean["mrr"]) for value, ran in test.items()}
            chosen = f"{best:g}", f"{valid[best].predicates:,.0f}", mrr(valid[best].mean["mrr"])
            paper = "" if sweep.paper is None else f"{sweep.paper:g}"
            listed = ", ".join(f"{value:g}: {text}" for value, text in every.items())
            lines.append((sweep.dataset, sweep.title, *chosen, every[best], paper, listed))
    notes = ["One seed, the paper's settings; chosen on valid." if lines else "Not run yet."]
    return [ResultTable(**DATA["grid"]["table"], rows=lines, notes=notes)]


def predicates_tables(results: Results) -> list[ResultTable]:
    """The sixteen questions, and the same question over the whole test sets."""
    lines = []
    for row in rows.PREDICATES:
        mean = results.average(row.cases, "exact", protocol="predicate").mean
        lines.append((row.dataset, row.title, *cells(mean)[:3]))  # without Hits@10
    return [_questions_table(results), ResultTable(**DATA["predicates"]["table"], rows=lines)]


def _questions_table(results: Results) -> ResultTable:
    lines: list[Sequence[str]] = []
    right = [0, 0, 0, 0]
    ours = (_answers(results, row.cases[0]) for row in rows.PREDICATES[:2])
    for question, *answers in zip(rows.SIXTEEN, *ours, strict=True):
        line = [question.text]
        columns = [question.transe.split(", "), question.splime.split(", "), *answers]
        for column, names in enumerate(columns):
            right[column] += names[0] == question.predicate
            marked = (f"{name} ✓" if name == question.predicate else name for name in names)
            line.append(", ".join(marked))
        lines.append(line)
    lines.append(("right at first", *(f"{count} of {len(rows.SIXTEEN)}" for count in right)))
    return ResultTable(**DATA["predicates"]["questions_table"], rows=lines)


def _answers(results: Results, case: Case) -> list[list[str]]:
    if case not in results:
        return [["–"]] * len(rows.SIXTEEN)
    answers: list[list[str]] = results[case]["figures"][-1]["answers"]
    return answers


def tsne_tables(results: Results) -> list[ResultTable]:
    """The numbers behind the figures."""
    lines = []
    for row in rows.TSNE:
        if row.cases[0] in results:
            smoothness = results[row.cases[0]]["figures"][0]
            for name in ("P54", "P551"):
                scopes, ratio = smoothness["predicates"].get(name, ("fewer than 4", None))
                shown = "–" if ratio is None else f"{ratio:.2f}"
                overall = f"{smoothness['overall']:.2f}"
                lines.append((row.title, name, str(scopes), shown, overall))
    return [ResultTable(**DATA["tsne"]["table"], rows=lines)]


def fair_tables(results: Results) -> list[ResultTable]:
    """Models by methods, then the strongest beside published metrics."""
    by_method = [_by_method_table(results, dataset) for dataset in TITLES]
    published = ResultTable(**DATA["fair"]["published_table"])
    return [*by_method, _strongest_table(results), published]


def _by_method_table(results: Results, dataset: str) -> ResultTable:
    lines = []
    for row in (row for row in rows.FAIR if row.dataset == dataset):
        every = []
        for case in row.cases:
            exact, overlap = (
                results.average([case], name, split="test", aggregate="mean").mrrs
                for name in ("exact", "overlap")
            )
            every.append(" / ".join(map(mrr, (*exact, *overlap))) or "–")
        lines.append((row.title, *every))
    title = f"{dataset}: MRR on test, exact / overlap, protocol fact, cuts from train, one seed"
    return ResultTable(title, ("model", *DATA["fair"]["methods"]), lines, dataset=dataset)


def _strongest_table(results: Results) -> ResultTable:
    lines = []
    for dataset in TITLES:
        chosen = rows.choose(results, dataset)
        if chosen is None:
            continue
        tests = []
        for name in ("exact", "overlap"):
            ran = results.average(chosen.seeds(), name, split="test", aggregate=chosen.aggregate)
            first, *hits = cells(ran.mean)
            spread = "" if ran.deviation is None else f" ± {mrr(ran.deviation)}"
            tests.append(" / ".join([first + spread, *hits]))
        what = f"{_settings(chosen.case)}; {chosen.aggregate}"
        first_tries = " / ".join(map(mrr, DATA["fair"]["first_tries"][dataset]))
        size = f"{results[chosen.case]['parameters']:,}"
        mrrs = (mrr(chosen.valid), *tests, first_tries)
        lines.append((dataset, what, *mrrs, size, str(len(ran.mrrs))))
    return ResultTable(**DATA["fair"]["strongest_table"], rows=lines)


def _settings(case: Case) -> str:
    left_out = ("fit_on", "seed", "validate_every", "patience", "model", "preset")
    words = [case.training.get("model", case.training.get("preset")), case.method]
    for name, value in {**case.parameters, **case.training}.items():
        words += [] if name in left_out else [f"{name} {value}"]
    words += ["unknown ends as points"] if case.reading == "point" else []
    return ", ".join(words)


def paths_tables(results: Results) -> list[ResultTable]:
    """The path model beside others, what its parts are worth, and forecasting."""
    return [_paths_table(results, table) for table in DATA["paths"]["tables"]]


def _paths_table(results: Results, table: Mapping[str, Any]) -> ResultTable:
    lines: list[Sequence[str]] = []
    if published := table.get("published"):
        lines.append((published["title"], *cells(published), *["–"] * 4, ""))
    for row in rows.PATHS[table["name"]]:
        exact, overlap = (results.average(row.cases, name) for name in ("exact", "overlap"))
        ran = [results[case] for case in row.cases if case in results]
        valid, size, seconds = (
            statistics.fmean(record[name] or 0 for record in ran) if ran else None
            for name in ("valid", "parameters", "seconds")
        )
        first, *hits = cells(exact.mean)
        spread = "" if exact.deviation is None else f" ± {mrr(exact.deviation)}"
        more = [mrr(overlap.mean.get("mrr")), mrr(valid)]
        more += ["–" if value is None else f"{value:,.0f}" for value in (size, seconds)]
        lines.append((row.title, first + spread, *hits, *more, str(len(ran))))
    columns, name = DATA["paths"]["columns"], table["name"]
    return ResultTable(table["title"], columns, lines, table.get("notes", ()), dataset=name)


# Figures, by the names of their files

TOLERANCE = 0.015
"""How far from the printed MRR a row may be and still count as the same."""
_PRINTED: Any = {"marker": "|", "color": "black", "markersize": 12, "markeredgewidth": 1.5}


def main_pictures(results: Results, _: Path) -> dict[str, Figure]:
    """A panel for each dataset; each row has the paper's MRR, ours, and what explains it."""
    figure = make_figure(9.5, 3.8)
    panels = figure.subplots(1, len(TITLES))
    for axes, (dataset, title) in zip(panels, TITLES.items(), strict=True):
        table = [row for row in rows.MAIN if row.dataset == dataset]
        for at, row in enumerate(table):
            _plot_row(axes, results, row, at)
        axes.set_yticks(range(len(table)), [row.title.split(", ")[0] for row in table])
        axes.invert_yaxis()
        axes.use_sticky_edges = False  # bars would end where the panel does
        axes.autoscale_view()
        axes.xaxis.set_major_formatter(lambda value, _: mrr(value))
        open_axes(axes, title, "MRR on test")
    marks = {
        f"printed, and {mrr(TOLERANCE)} around it": _PRINTED,
        "ours, from the lowest run to the highest": series_style(0),
        "ours, with one setting changed": {**series_style(1), "fillstyle": "none"},
    }
    handles = [panels[0].plot([], [], linestyle="none", **mark)[0] for mark in marks.values()]
    add_legend(figure, handles, list(marks), loc="outside lower center", ncols=3)
    return {"main": figure}


def _plot_row(axes: Axes, results: Results, row: rows.TableRow, at: int) -> None:
    printed = row.printed["mrr"]
    axes.barh(at, 2 * TOLERANCE, left=printed - TOLERANCE, height=0.7, color="#e3e6ea")
    axes.plot(printed, at, linestyle="none", **_PRINTED)
    ran = results.average(row.cases)
    if ran.mrrs:
        axes.plot(
            [min(ran.mrrs), max(ran.mrrs)], [at, at], color=series_style(0)["color"], linewidth=1.2
        )
        axes.plot(ran.mean["mrr"], at, markersize=6, **series_style(0))
    for variation in rows.VARIATIONS:
        changed = results.average(variation.cases)
        if variation.explains and variation.row is row and changed.mrrs:
            axes.plot(changed.mean["mrr"], at, markersize=7, fillstyle="none", **series_style(1))


def grid_pictures(results: Results, _: Path) -> dict[str, Figure]:
    """A figure for each dataset."""
    return {f"grid-{dataset}": _plot_grid(results, dataset) for dataset in TITLES}


def _plot_grid(results: Results, dataset: str) -> Figure:
    """MRR on test against the number of predicates, a line for each method."""
    from matplotlib.ticker import LogLocator, NullLocator

    lines: dict[str, list[tuple[float, float]]] = {}
    for sweep in rows.SWEEPS:
        averages = [results.average(row.cases, split="test") for row in sweep.rows.values()]
        places = [(ran.predicates, ran.mean["mrr"]) for ran in averages if ran.mrrs]
        if sweep.dataset == dataset and places:
            lines[sweep.title] = sorted(places)
    figure = make_figure(7.5, 4.2)
    axes = figure.subplots()
    handles = [
        axes.plot(*zip(*places, strict=True), linewidth=1.2, markersize=5, **series_style(at))[0]
        for at, places in enumerate(lines.values())
    ]
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: mrr(value))
    title = f"{dataset}: TransE with the paper's settings, one seed"
    open_axes(axes, title, "predicates", "MRR on test (protocol triple, filter inter)")
    add_legend(axes, handles, list(lines))
    return figure


def tsne_pictures(_: Results, runs: Path) -> dict[str, Figure]:
    """The paper's three figures, drawn from the folders of two runs."""
    from splime.analysis.embeddings import project
    from splime.reporting.plots import plot_predicate, plot_predicates
    from splime.runs import Run

    names = DATA["tsne"]["names"]  # Wikidata's
    merge, random = (Run(runs / row.folder, device="cpu") for row in rows.TSNE)
    return {
        "tsne-predicates": plot_predicates(project(merge), names=names),
        "tsne-P54-merge": plot_predicate([project(merge)], "P54", names=names),
        "tsne-P551-random": plot_predicate([project(random)], "P551", names=names),
    }
