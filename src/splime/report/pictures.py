"""Every picture that runs allow, by name: one line here makes a picture known everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table
from rich.text import Text

from splime.errors import DataError, SplimeError, UsageError, check_name
from splime.methods import change_method
from splime.report.costs import plot_change_costs
from splime.report.embeddings import plot_predicate, plot_predicates
from splime.report.learning import plot_learning
from splime.report.plots import plot_facts_over_time, plot_segmentation
from splime.report.strata import kept_evaluations, plot_strata
from splime.report.style import FORMATS, check_picture, make_figure, save_picture
from splime.report.tables import make_table
from splime.runs.names import run_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from splime.runs import Run

ALL = "all"
Draw = Callable[[Sequence["Run"], str | None], "Figure"]


class Picture(NamedTuple):
    """How to draw it from runs and the name of a predicate, and whether it compares runs."""

    about: str
    draw: Draw
    compares: bool = False


class Drawn(NamedTuple):
    """Pictures by name, and why others were left out."""

    pictures: dict[str, Figure]
    skipped: dict[str, str]


PICTURES: Mapping[str, Picture] = {
    "facts": Picture("facts over time", lambda runs, _: plot_facts_over_time(runs[0].graph)),
    "segmentation": Picture(
        "segments over the facts they hold",
        lambda runs, _: plot_segmentation(runs[0].segmentation, runs[0].graph),
    ),
    "costs": Picture(
        "what change points cost",
        lambda runs, _: plot_change_costs(runs[0].graph, change_method(runs[0].segmentation)),
    ),
    "learning": Picture(
        "loss and MRR on valid by epoch", lambda runs, _: plot_learning(runs), compares=True
    ),
    "strata": Picture(
        "MRR by predicate and period",
        lambda runs, _: plot_strata(kept_evaluations(runs)),
        compares=True,
    ),
    "predicates": Picture(
        "t-SNE of the frequent predicates", lambda runs, _: plot_predicates(runs[0])
    ),
    "predicate": Picture("t-SNE of one predicate over time", plot_predicate, compares=True),
}


def draw_picture(what: str, runs: Sequence[Run], predicate: str | None = None) -> Figure:
    """One picture; `predicate` is for the picture of one predicate."""
    check_name("picture", what, PICTURES)
    if predicate is not None and what != "predicate":
        raise UsageError(f"the picture {what} is not of one predicate")
    if len(runs) > 1 and not PICTURES[what].compares:
        raise UsageError(f"the picture {what} is of one run, not of {len(runs)}")
    return PICTURES[what].draw(runs, predicate)


def draw_pictures(
    runs: Sequence[Run],
    predicate: str | None = None,
    *,
    advance: Callable[[int, int, str], None] | None = None,
) -> Drawn:
    """All pictures that the runs allow; those that do not compare runs, for each run by itself."""
    if predicate is not None:
        for run in runs:
            run.graph.predicates.id(predicate)  # misspelt, it is no reason to leave a picture out
    drawn = Drawn({}, {})
    wanted = _wanted(runs)
    for done, (name, (what, shown)) in enumerate(wanted.items()):
        if advance is not None:
            advance(done, len(wanted), name)
        try:
            drawn.pictures[name] = draw_picture(
                what, shown, predicate if what == "predicate" else None
            )
        except DataError:
            raise
        except SplimeError as error:
            drawn.skipped[name] = str(error)
    return drawn


def check_pictures(what: str, out: Path) -> None:
    """Raise unless a picture, or the folder for all of them, can be made there."""
    check_name("picture", what, [*PICTURES, ALL])
    if what != ALL:
        check_picture(out)
    elif out.suffix.lower() in FORMATS or (out.exists() and not out.is_dir()):
        raise UsageError(f"{out}: all pictures go to a folder; for a file choose one of them")
    else:
        make_figure(1, 1)


def save_pictures(drawn: Drawn, folder: Path) -> None:
    """Write a .png for each picture to a folder, which is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SplimeError(f"{folder}: cannot be made: {error}") from None
    for name, figure in drawn.pictures.items():
        save_picture(figure, folder / f"{name}.png")


def picture_table(drawn: Drawn) -> Table:
    """The pictures that there are, and why others are not."""
    table = make_table("pictures", "", "")
    for name in drawn.pictures:
        table.add_row(Text(f"{name}.png"), PICTURES[name.partition("-")[0]].about)
    for name, why in drawn.skipped.items():
        table.add_row(Text(name, style="dim"), Text(f"skipped: {why}"))
    return table


def _wanted(runs: Sequence[Run]) -> dict[str, tuple[str, Sequence[Run]]]:
    """Names of pictures, and what to draw of which runs; facts once, where runs share them."""
    names = [name.replace("/", "-") for name in run_names(runs)]
    found: dict[str, tuple[str, Sequence[Run]]] = {}
    for what, picture in PICTURES.items():
        if picture.compares:
            found[what] = (what, runs)
            continue
        sources: dict[str, tuple[str, Run]] = {}
        for name, run in zip(names, runs, strict=True):
            # Runs often share their facts.
            source = run.config["data"]["sha256"] if what == "facts" else name
            sources.setdefault(source, (name, run))
        for name, run in sources.values():
            found[what if len(sources) == 1 else f"{what}-{name}"] = (what, [run])
    return found
