"""The sweep over the data hyperparameters (section "Hyperparameters" of the paper)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from splime.experiments import main_table
from splime.experiments.case import Case
from splime.experiments.figures import figures_of
from splime.experiments.results import Results
from splime.experiments.table import Table, mrr
from splime.methods import make_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GROW = (5, 10, 15, 20, 25, 30)
SHRINK = (1.5, 2, 4, 6, 8, 10)
PROXIMITIES = ("jaccard", "adamic_adar", "preferential_attachment")
EPSILON: Mapping[str, tuple[float, ...]] = {
    "wikidata12k": (1.25, 2.5, 5, 10, 15, 20),
    "yago11k": (1.25, 2.5, 5, 10, 15, 20),
    "icews14": (5, 12.5, 25, 50, 100, 150, 200),
}
# By the rule of splitting there are no such many pieces: no predicate spans enough time any more.
OUT_OF_REACH = (
    ("wikidata12k", "time", 25),
    ("wikidata12k", "time", 30),
    ("wikidata12k", "count", 30),
    ("yago11k", "time", 30),
)


class Point(NamedTuple):
    """One setting of one method on one dataset."""

    dataset: str
    family: str
    """The method, with what is chosen beside the swept value."""
    value: float
    """Of grow, shrink or epsilon."""
    method: str
    parameters: Mapping[str, Any]

    @property
    def title(self) -> str:
        """The method with the value."""
        return f"{self.family}, {self.value:g}"

    def case(self) -> Case:
        """The training of the point: one seed; valid chooses, test is shown."""
        return Case(
            self.dataset,
            self.method,
            {**self.parameters, "fit_on": "all"},
            {"preset": "paper", "seed": 0},
            tuple(
                {"protocol": "triple", "split": split, "filter": "inter"}
                for split in ("valid", "test")
            ),
        )

    def cases(self) -> list[Case]:
        """The one training of the point."""
        return [self.case()]


def rows() -> Iterator[Point]:
    """All settings, those of a method together."""
    for dataset, epsilons in EPSILON.items():
        for by in ("time", "count"):
            for grow in GROW:
                if (dataset, by, grow) not in OUT_OF_REACH:
                    yield Point(dataset, f"Split ({by})", grow, "split", {"by": by, "grow": grow})
        for proximity in PROXIMITIES:
            for epsilon in epsilons:
                parameters = {"proximity": proximity, "epsilon": epsilon, "min_size": 2}
                family = f"Split (CPD), {proximity.replace('_', ' ')}"
                yield Point(dataset, family, epsilon, "changepoint", parameters)
        for shrink in SHRINK:
            yield Point(dataset, "Merge", shrink, "merge", {"shrink": shrink})


def tables(results: Results) -> list[Table]:
    """For each method the value that is best on valid, and the test figures of all its values."""
    methods: dict[tuple[str, str], list[Point]] = {}
    for point in rows():
        methods.setdefault((point.dataset, point.family), []).append(point)
    lines: list[tuple[str, ...]] = []
    for (dataset, family), points in methods.items():
        ran = [point for point in points if point.case() in results]
        if not ran:
            continue
        valid, test = (
            {point.value: _mrr(results, point, split) for point in ran}
            for split in ("valid", "test")
        )
        best = max(valid, key=lambda value: valid[value])
        all_values = ", ".join(f"{value:g}: {mrr(test[value])}" for value in test)
        chosen = next(point for point in ran if point.value == best)
        predicates = f"{results[chosen.case()]['predicates']:,}"
        figures = (f"{best:g}", predicates, mrr(valid[best]), mrr(test[best]), _paper(points))
        lines.append((dataset, family, *figures, all_values))
    columns = (
        "dataset",
        "method",
        "chosen",
        "predicates",
        "valid",
        "test",
        "paper's choice",
        "test MRR of each value",
    )
    notes = ["One seed, the paper's settings; chosen on valid." if lines else "Not run yet."]
    return [Table("Data hyperparameters: MRR", columns, lines, notes, words=2)]


def _paper(points: list[Point]) -> str:
    """The value that the main table of the paper has, if it has one of these points."""
    printed = [
        (row.dataset, make_method(row.method, **row.parameters)) for row in main_table.rows()
    ]
    for point in points:
        if (point.dataset, make_method(point.method, **point.parameters)) in printed:
            return f"{point.value:g}"
    return ""


def pictures(results: Results, _: Path) -> dict[str, Figure]:
    """A figure of each dataset by the name of its file."""
    return {f"grid-{name}": plot_grid(results, name) for name in EPSILON}


def plot_grid(results: Results, dataset: str) -> Figure:
    """MRR on test against the number of predicates, a line for each method."""
    from splime.report.style import add_legend, heading, look, make_figure, open_axes

    figure = make_figure(7.5, 4.2)
    axes = figure.subplots()
    lines: dict[str, list[tuple[int, float]]] = {}
    for point in rows():
        if point.dataset == dataset and point.case() in results:
            place = results[point.case()]["predicates"], _mrr(results, point, "test")
            lines.setdefault(point.family, []).append(place)
    handles = [
        axes.plot(*zip(*sorted(places), strict=True), linewidth=1.2, markersize=5, **look(at))[0]
        for at, places in enumerate(lines.values())
    ]
    _few_ticks(axes, [predicates for places in lines.values() for predicates, _ in places])
    axes.set_xlabel("predicates")
    axes.set_ylabel("MRR on test (protocol triple, filter inter)")
    open_axes(axes)
    add_legend(axes, handles, list(lines), loc="upper left", bbox_to_anchor=(1.0, 1.0))
    heading(axes, f"{dataset}: TransE with the paper's settings, one seed")
    return figure


def _few_ticks(axes: Axes, predicates: list[int]) -> None:
    """Round numbers of predicates along a logarithmic axis, MRRs with three digits."""
    steps = [step * 10**power for power in range(1, 6) for step in (1, 2, 5)]
    low, high = min(predicates, default=10), max(predicates, default=100)
    ticks = [step for step in steps if low <= step <= high]
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda value, _: mrr(value))


def _mrr(results: Results, point: Point, split: str) -> float:
    found = figures_of(results, point.case(), split=split)
    return found["mrr"] if found else 0.0
