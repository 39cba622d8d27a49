"""One page about runs, with everything on it, that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

import splime
from splime import leakage
from splime.errors import SplimeError, UsageError
from splime.io.files import written_beside
from splime.methods import change_method, restore_method
from splime.report.comparison import comparison_table, in_short
from splime.report.comparison_plot import plot_comparison
from splime.report.costs import plot_change_costs
from splime.report.embeddings import plot_predicate, plot_predicates
from splime.report.examples import examples_html
from splime.report.figures import conditions, evaluation_tables, run_table
from splime.report.html import Html, join, page_html, picture_html, rendered, tag
from splime.report.learning import plot_learning
from splime.report.plots import plot_facts_over_time, plot_segmentation
from splime.report.strata import plot_strata
from splime.report.tables import (
    leak_table,
    make_table,
    predicate_table,
    reading_table,
    segmentation_table,
    statistics_table,
)
from splime.runs import Run, evaluate
from splime.runs.comparing import Comparison, compare
from splime.runs.config import CONFIG
from splime.runs.evaluating import kept
from splime.runs.names import run_names
from splime.runs.smoothness import smoothness
from splime.statistics import describe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Progress = Callable[[int, int], None]


def write_page(runs: Sequence[Run], path: str | Path, *, progress: Progress | None = None) -> None:
    """Write a page about runs on the same facts; what is not evaluated yet is evaluated.

    `progress` takes how many parts of the page are made, and how many there are.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{path}: the page is an .html file")
    page = _Page(runs)
    text = page.html(progress)
    with written_beside(path) as beside:
        beside.write_text(text, encoding="utf-8")


class _Page:
    """The sections of a page; what several of them need is made once."""

    def __init__(self, runs: Sequence[Run]) -> None:
        if not runs:
            raise UsageError("a report needs at least one run")
        self.names = run_names(runs)
        self.found: Comparison = compare(runs)
        order = {row.name: place for place, row in enumerate(self.found.rows)}
        by_name = dict(zip(self.names, runs, strict=True))
        self.runs = {name: by_name[name] for name in sorted(by_name, key=lambda name: order[name])}
        """The best first."""
        self.graph = runs[0].graph

    def html(self, progress: Progress | None) -> str:
        """The whole page."""
        sections: dict[str, Callable[[], Iterator[str]]] = {
            "Figures": self.figures,
            "Data": self.data,
            "Leaks": self.leaks,
            "Cuts": self.cuts,
            "Training": self.training,
            "By predicate and period": self.strata,
            "Embeddings": self.embeddings,
            "Questions": self.questions,
            "How it was made": self.made,
        }
        made = []
        for number, (title, parts) in enumerate(sections.items()):
            if progress is not None:
                progress(number, len(sections))
            made.append((title, join(*parts())))
        if progress is not None:
            progress(len(sections), len(sections))
        name = self.graph.name or "facts"
        count = "1 run" if len(self.runs) == 1 else f"{len(self.runs)} runs"
        now = datetime.now(UTC).strftime("%Y-%m-%d")
        lead = f"{count} on {len(self.graph):,} facts; made by splime {splime.__version__}, {now}."
        return page_html(f"Link prediction at a time: {name}", lead, made)

    def figures(self) -> Iterator[str]:
        """The comparison, and what time is worth."""
        yield tag("p", in_short(self.found))
        yield rendered(comparison_table(self.found))
        yield _picture(lambda: plot_comparison(self.found), "MRR of every run, with intervals")

    def data(self) -> Iterator[str]:
        """What was read."""
        yield rendered(statistics_table(describe(self.graph)))
        yield rendered(reading_table(self.graph.reading))
        yield rendered(predicate_table(self.graph))
        yield _picture(
            lambda: plot_facts_over_time(self.graph), "Facts that hold at each time, by predicate"
        )

    def leaks(self) -> Iterator[str]:
        """What train gives away."""
        yield tag(
            "p",
            "Once the time is stripped, many a fact of test is one of train: a model that only"
            " remembers then looks good. This is how much of that there is here.",
        )
        yield rendered(leak_table(leakage.report(self.graph)))

    def cuts(self) -> Iterator[str]:
        """How every run cut its predicates."""
        for name, run in self.runs.items():
            yield tag("h3", name)
            yield _picture(
                lambda run=run: plot_segmentation(run.segmentation, self.graph),  # type: ignore[misc]
                f"{name}: segments of each predicate, over the facts that hold",
            )
            yield _folded("the segments", segmentation_table(run.segmentation))
            if _method_name(run) == "changepoint":
                yield _picture(
                    lambda run=run: plot_change_costs(  # type: ignore[misc]
                        self.graph, change_method(run.segmentation)
                    ),
                    f"{name}: what the segments cost, for each number of change points",
                )

    def training(self) -> Iterator[str]:
        """How the trainings went."""
        yield _picture(lambda: plot_learning(list(self.runs.values())), "Loss and MRR on valid")
        for name, run in self.runs.items():
            yield _folded(name, run_table(run))

    def strata(self) -> Iterator[str]:
        """Where each run is good."""
        found = {name: kept(run) or evaluate(run) for name, run in self.runs.items()}
        for kind, about in (("predicate", "each predicate"), ("period", "each period")):
            yield _picture(
                lambda kind=kind: plot_strata(found, kind),  # type: ignore[misc]
                f"MRR of {about} (filter exact)",
            )
        for name, one in found.items():
            yield _folded(f"{name}: all figures", evaluation_tables(one, strata=True))

    def embeddings(self) -> Iterator[str]:
        """Where the scoped predicates lie, and whether they move smoothly."""
        table = make_table("smooth over time", "run", "neighbours in time / others")
        for name, run in self.runs.items():
            value = smoothness(run).overall if run.engine == "splime" else None
            table.add_row(Text(name), "–" if value is None else f"{value:.3f}")
        yield rendered(table)
        yield tag(
            "p",
            "How far the vectors of scopes that follow each other are apart, beside other scopes of"
            " the same predicate: 1 where time does not matter, less where neighbours are closer.",
            class_="note",
        )
        cut = [run for run in self.runs.values() if run.is_cut and run.engine == "splime"]
        if not cut:
            yield tag("p", "No run cut a predicate.")
            return
        name = next(name for name, run in self.runs.items() if run is cut[0])
        yield _picture(
            lambda: plot_predicates(cut[0]), f"{name}: t-SNE of the most frequent predicates"
        )
        random = [run for run in cut if _method_name(run) == "random"]
        beside = [run for run in cut if run not in random][:1] + random[:1]
        yield _picture(
            lambda: plot_predicate(beside), "One predicate, from old (red) to recent (blue)"
        )

    def questions(self) -> Iterator[str]:
        """Questions about facts of test, and what the runs answer."""
        yield examples_html(self.runs)

    def made(self) -> Iterator[str]:
        """Versions, commands and configurations."""
        evaluated = kept(next(iter(self.runs.values())))
        if evaluated is not None:
            yield tag("p", f"Protocol fact on test: {conditions(evaluated)}.", class_="note")
        for name, run in self.runs.items():
            about = run.about
            versions = ", ".join(f"{key} {value}" for key, value in about["versions"].items())
            config = (run.path / CONFIG).read_text(encoding="utf-8")
            yield tag(
                "details",
                tag("summary", name),
                tag("p", f"{about['device']}; {versions}", class_="note"),
                tag("pre", f"$ {about['command']}\n\n{config}"),
            )


def _method_name(run: Run) -> str | None:
    method = restore_method(run.segmentation.method)
    return None if method is None else method.name


def _folded(title: str, content: RenderableType | Iterable[RenderableType]) -> Html:
    """What is shown when a reader asks for it."""
    return tag("details", tag("summary", title), rendered(content))


def _picture(draw: Callable[[], Figure], alt: str) -> Html:
    """A picture, or why there is none."""
    try:
        return picture_html(draw(), alt)
    except SplimeError as error:
        return tag("p", f"No picture of this ({alt}): {error}", class_="note")
