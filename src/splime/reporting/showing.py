"""What is shown of runs: every picture by its name, and the page; computed first, then drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table
from rich.text import Text

from splime.analysis.comparing import kept_evaluations, run_names
from splime.analysis.embeddings import project
from splime.errors import DataError, SplimeError, UsageError, check_name
from splime.graph import TemporalGraph
from splime.io.files import atomic_write
from splime.plugins import Registry
from splime.progress import Progress, silent
from splime.reporting import plots
from splime.reporting.page import page_html
from splime.reporting.tables import make_table
from splime.runs import Run
from splime.runs.run import Runs, open_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def report(
    runs: Runs,
    path: str | Path = "report.html",
    *,
    device: str = "auto",
    progress: Progress = silent,
) -> Path:
    """Write one page about runs on the same facts; the file that it was written to.

    What is not evaluated yet is evaluated.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{path}: the page is an .html file")
    text = page_html(open_runs(runs, device), progress=progress)
    with atomic_write(path) as beside:
        beside.write_text(text, encoding="utf-8")
    return path


write_page = report  # its older name


def plot(
    shown: TemporalGraph | Runs,
    what: str,
    *,
    predicate: str | None = None,
    device: str = "auto",
) -> Figure:
    """A picture of a run, of several, or of a graph, as a figure of matplotlib.

    Args:
        shown: a run or its folder; several of them, which cuts, predicate, learning and strata
            compare; or a graph, which only the picture facts is of.
        what: facts, segmentation, cuts, costs, learning, strata, predicates or predicate.
        predicate: the one that the picture predicate is of; by default the one that all runs cut
            most.
        device: where to compute, if runs are given by their folders.

    >>> import splime
    >>> figure = plot(splime.load("demo"), "facts")  # figure.savefig("facts.png")
    >>> len(figure.axes) > 1
    True
    """
    check_name("picture", what, PICTURES)
    if isinstance(shown, TemporalGraph):
        if what != "facts" or predicate is not None:
            raise UsageError(
                f"the picture {what} is of a run; of a graph there is the picture facts"
            )
        return plots.plot_facts_over_time(shown)
    runs = open_runs(shown, device)
    if predicate is not None:
        if what != "predicate":
            raise UsageError(f"the picture {what} is not of one predicate")
        _check_predicate(runs, predicate)
    if len(runs) > 1 and not PICTURES[what].compares:
        raise UsageError(f"the picture {what} is of one run, not of {len(runs)}")
    return PICTURES[what].draw(runs, predicate)


class Picture(NamedTuple):
    """How to draw runs, or the predicate of a name in them; and whether it compares runs."""

    about: str
    draw: Callable[[Sequence[Run], str | None], Figure]
    compares: bool = False


class Drawn(NamedTuple):
    """Pictures by name, and why others were left out."""

    pictures: dict[str, Figure]
    skipped: dict[str, str]


_BUILTIN: Mapping[str, Picture] = {
    "facts": Picture("facts over time", lambda runs, _: plots.plot_facts_over_time(runs[0].graph)),
    "segmentation": Picture(
        "scopes over the facts they hold",
        lambda runs, _: plots.plot_segmentation(runs[0].segmentation, runs[0].graph),
    ),
    "cuts": Picture(
        "where runs cut the frequent predicates",
        lambda runs, _: plots.plot_cuts(
            {name: run.segmentation for name, run in zip(run_names(runs), runs, strict=True)},
            runs[0].graph,
        ),
        compares=True,
    ),
    "costs": Picture(
        "what change points cost",
        lambda runs, _: plots.plot_change_costs(runs[0].segmentation, runs[0].graph),
    ),
    "learning": Picture(
        "loss and MRR on valid by epoch",
        lambda runs, _: plots.plot_learning(
            {name: run.history for name, run in zip(run_names(runs), runs, strict=True)}
        ),
        compares=True,
    ),
    "strata": Picture(
        "MRR by predicate and period",
        lambda runs, _: plots.plot_strata(kept_evaluations(runs)),
        compares=True,
    ),
    "predicates": Picture(
        "t-SNE of the frequent predicates", lambda runs, _: plots.plot_predicates(project(runs[0]))
    ),
    "predicate": Picture(
        "t-SNE of one predicate over time",
        lambda runs, predicate: plots.plot_predicate([project(run) for run in runs], predicate),
        compares=True,
    ),
}
"""One line here makes a picture known everywhere."""
PICTURES = Registry("splime.pictures", _BUILTIN)
"""Packages add their own."""


def draw_pictures(
    runs: Sequence[Run], predicate: str | None = None, *, progress: Progress = silent
) -> Drawn:
    """All pictures that the runs allow; those that do not compare runs, for each run by itself."""
    if predicate is not None:
        _check_predicate(runs, predicate)
    drawn = Drawn({}, {})
    wanted = _wanted(runs)
    for done, (name, (what, shown)) in enumerate(wanted.items()):
        progress("drawing", done, len(wanted), name)
        try:
            drawn.pictures[name] = PICTURES[what].draw(shown, predicate)
        except DataError:
            raise
        except SplimeError as error:
            drawn.skipped[name] = str(error)
    return drawn


def picture_table(drawn: Drawn) -> Table:
    """The pictures that there are, and why others are not."""
    table = make_table("pictures", "", "")
    for name in drawn.pictures:
        table.add_row(Text(f"{name}.png"), PICTURES[name.partition("-")[0]].about)
    for name, why in drawn.skipped.items():
        table.add_row(Text(name, style="dim"), Text(f"skipped: {why}"))
    return table


def _check_predicate(runs: Sequence[Run], predicate: str) -> None:
    """A misspelt name is an error at once, not a picture left out after a long computation."""
    for run in runs:
        run.graph.predicates.id(predicate)


def _wanted(runs: Sequence[Run]) -> dict[str, tuple[str, Sequence[Run]]]:
    """Names of pictures, and what to draw of which runs; facts once, where runs share them."""
    names = [name.replace("/", "-") for name in run_names(runs)]
    wanted: dict[str, tuple[str, Sequence[Run]]] = {}
    for what, picture in PICTURES.items():
        if picture.compares:
            wanted[what] = (what, runs)
            continue
        shown: dict[str, tuple[str, Run]] = {}
        for name, run in zip(names, runs, strict=True):
            shown.setdefault(run.config["data"]["sha256"] if what == "facts" else name, (name, run))
        for name, run in shown.values():
            wanted[what if len(shown) == 1 else f"{what}-{name}"] = (what, [run])
    return wanted
