"""Every model in one harness: what is tried for each, what valid chose, and who is ahead."""

from __future__ import annotations

import base64
import math
import statistics
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from experiments import rows
from experiments.published import preset_for
from experiments.rows import DATA, RANKS, TITLES, Case, Results, TableRow
from experiments.tables import ResultTable, cells, mrr
from splime.evaluation.metrics import Floats, compare_ranks, holm
from splime.reporting.style import SMALL, add_legend, make_figure, open_axes, series_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ALL = DATA["rivals"]
_PRINTED = {model["title"]: model.get("printed", {}) for model in _ALL["models"]}
_SAMPLES = 5_000
STRATA = {
    "train": ("triple seen in train", "triple unseen in train"),
    "time": ("instant", "interval", "open"),
}
"""What results keep beside the metrics."""
KEPT = ("exact", "overlap")
"""The filters whose strata and reciprocal ranks results keep; where both have the same ranks, those
of exact."""


def pack(ranks: Floats) -> str:
    """Reciprocal ranks in thousandths as text: small, and enough to compare runs by their MRR.

    >>> unpack(pack(np.array([[1.0, 2.0], [3.0, 5000.0]]))).tolist()
    [[1.0, 0.5], [0.333, 0.0]]
    """
    thousandths = np.rint(1000 / ranks).astype("<u2")
    return base64.b85encode(zlib.compress(thousandths.tobytes(), 9)).decode()


def unpack(text: str) -> Floats:
    """A row for each fact, a column for each side."""
    thousandths = np.frombuffer(zlib.decompress(base64.b85decode(text)), "<u2")
    return thousandths.reshape(-1, 2) / 1000


def rival_rows(declared: Mapping[str, Any]) -> Iterator[TableRow]:
    """Every model on every dataset but what is left out; the cases of a row are what is tried."""
    for model in declared["models"]:
        shared = model["training"]
        for dataset in declared["datasets"]:
            frames = declared["frames"][model["frame"]]
            if dataset not in frames or f"{dataset} {model['title']}" in declared["left_out"]:
                continue
            tries = [
                {**frame, "training": {**shared, **frame["training"]}} for frame in frames[dataset]
            ]
            if "published" in model:
                differs = model["published"].get(dataset, {})
                training = {"model": shared["model"], "preset": preset_for(dataset)}
                training |= differs.get("training", {})
                tries.insert(0, {"reading": "fact", **differs, "training": training})
            start = Case(dataset, "timestamp", **declared["case"])
            yield TableRow(dataset, model["title"], [start.but(**change) for change in tries])


ROWS = list(rival_rows(_ALL))


def chosen(results: Results, row: TableRow) -> list[Case]:
    """What is best on valid of what was tried, with three seeds; nothing if nothing was run."""
    ran = [case for case in row.cases if case in results]
    best = max(ran, key=lambda case: _valid(results, case), default=None)
    return [] if best is None else [best.but(training={"seed": seed}) for seed in range(3)]


def ranked(results: Results) -> list[Case]:
    """What valid chose of every row: these are compared fact by fact."""
    return [case for row in ROWS for case in chosen(results, row)]


def _valid(results: Results, case: Case) -> float:
    return results.average([case], "exact", split="valid").mean["mrr"]


def more_seeds(results: Results) -> list[Case]:
    """Of the two models of a dataset that are best on valid beside path, once all of it is run.

    Those of other models stay where they were run: better models may come later.
    """
    seeds: list[Case] = []
    for table in _by_dataset().values():
        whole = not results.missing(case for row in table for case in row.cases)
        best = [cases for row in table if (cases := chosen(results, row))]
        best.sort(key=lambda cases: -_valid(results, cases[0]))
        seeds += [
            case
            for place, (_, *others) in enumerate(best)
            for case in others
            if case in results or (whole and place < 2)
        ]
    return seeds


def _knows_time(row: TableRow) -> bool:
    return "preset" in row.cases[0].training


def _by_dataset() -> dict[str, list[TableRow]]:
    datasets = dict.fromkeys(row.dataset for row in ROWS)
    return {dataset: [row for row in ROWS if row.dataset == dataset] for dataset in datasets}


class Entry(NamedTuple):
    """A line of the table: a model with the settings that valid chose."""

    title: str
    cases: Sequence[Case]
    """Those that were run, one for each seed."""
    results: Results
    """Where they are remembered."""
    authors: Case | None = None
    """Its training with the settings of its authors, where that was run."""

    def mean(self, name: str) -> Mapping[str, float]:
        """Metrics on test, by filter; empty if nothing was run."""
        return self.results.average(self.cases, name, split="test").mean

    def about(self, name: str) -> float | None:
        """The mean of what a training says of itself."""
        values = [self.results[case][name] for case in self.cases]
        return statistics.fmean(values) if values else None

    @property
    def theirs(self) -> float | None:
        """The MRR on test with the settings of its authors."""
        ran = [self.authors] if self.authors else []
        return self.results.average(ran, "exact", split="test").mean.get("mrr")

    @property
    def valid(self) -> float | None:
        """The MRR on valid, by the evaluation on it or, where there is none, in training."""
        mean = self.results.average(self.cases, "exact", split="valid").mean
        return mean["mrr"] if mean else self.about("valid")

    def kept(self, name: str) -> list[Any]:
        """What the evaluations on test keep beside the metrics."""
        figures = (self.results[case]["figures"][-1] for case in self.cases)
        return [figure[name] for figure in figures if name in figure]

    def reciprocals(self, name: str) -> Floats:
        """The reciprocal ranks of facts by filter, averaged over seeds."""
        every = [unpack(kept.get(name, kept["exact"])) for kept in self.kept(RANKS)]
        return np.asarray(np.mean(every, axis=0))

    def stratum(self, name: str, kind: str, group: str) -> float | None:
        """An MRR; None where it is not kept, or the group is empty."""
        values = [kept[name][kind].get(group) for kept in self.kept("strata")]
        return statistics.fmean(values) if values and None not in values else None


def _entries(results: Results, dataset: str) -> list[Entry]:
    """The lines of a dataset, the highest MRR first, and those without one last."""
    entries = []
    for row in _by_dataset()[dataset]:
        ran = [case for case in chosen(results, row) if case in results]
        first = row.cases[0]
        authors = first if _knows_time(row) and first in results else None
        entries.append(Entry(row.title, ran, results, authors))
    paths = Results(results.path.with_name("paths.json"))
    for row in rows.PATHS.get(dataset, ())[:1]:
        entries.append(Entry("path", [case for case in row.cases if case in paths], paths))
    return sorted(entries, key=lambda entry: -entry.mean("exact").get("mrr", 0.0))


def _chances(entries: Sequence[Entry], name: str) -> tuple[dict[str, float], dict[str, float]]:
    """The p-values of entries against the first and against the first rival, corrected (Holm)."""
    compared = [entry for entry in entries if entry.kept(RANKS)]
    rivals = (at for at, entry in enumerate(compared) if entry.authors)
    against = [
        {at: (min(at, best), max(at, best)) for at in range(len(compared)) if at != best}
        for best in (0, next(rivals, 0))
    ]
    pairs = [*dict.fromkeys(pair for opponents in against for pair in opponents.values())]
    if not pairs:
        return {}, {}
    with np.errstate(divide="ignore"):  # what rounds to 0 has an infinite rank
        ranks = [1 / entry.reciprocals(name) for entry in compared]
    _, differences = compare_ranks(ranks, samples=_SAMPLES, pairs=pairs)
    p_values = [p for pair in pairs if (p := differences[pair]["mrr"].p) is not None]
    if not p_values:
        return {}, {}  # too few facts
    corrected = dict(zip(pairs, holm(p_values), strict=True))
    first, rival = (
        {compared[at].title: corrected[pair] for at, pair in opponents.items()}
        for opponents in against
    )
    return first, rival


def rivals_tables(results: Results) -> list[ResultTable]:
    """Who is ahead, what papers print, and what explains it."""
    return [table for made in rivals_parts(results).values() for table in made]


def rivals_parts(results: Results) -> dict[str, list[ResultTable]]:
    """The same tables by what they are about, as the page needs them."""
    entries = {dataset: _entries(results, dataset) for dataset in _by_dataset()}
    return {
        "ahead": [_ahead_table(*entry) for entry in entries.items()],
        "claims": [_claims_table(entries, results)],
        "published": [_published_table(entries)],
        "strata": [_strata_table(*entry) for entry in entries.items()],
        "settings": [_settings_table(*entry) for entry in entries.items()],
        "tries": [_tries_table(results, dataset) for dataset in entries],
    }


def _ahead_table(dataset: str, entries: Sequence[Entry]) -> ResultTable:
    exact = _chances(entries, "exact")
    kept = [ranks for entry in entries for ranks in entry.kept(RANKS)]
    apart = any("overlap" in ranks for ranks in kept)
    overlap = _chances(entries, "overlap") if apart else exact
    lines = []
    for entry in entries:
        first, *hits = cells(entry.mean("exact"))
        deviation = entry.results.average(entry.cases, "exact", split="test").deviation
        first += "" if deviation is None else f" ± {mrr(deviation)}"
        others = (entry.mean(name).get("mrr") for name in ("overlap", "static"))
        figures = (first, *hits, *map(mrr, others))
        chances = (
            _both((by.get(entry.title) for by in filters), digits=2)
            for filters in zip(exact, overlap, strict=True)
        )
        lines.append((entry.title, *figures, *chances, str(len(entry.cases))))
    shown = ResultTable(_title(dataset), rows=lines, dataset=dataset, **_ALL["ahead_table"])
    left_out = [label for label in _ALL["left_out"] if label.startswith(f"{dataset} ")]
    notes = [*shown.notes, f"Left out, for want of time: {', '.join(left_out)}."]
    return replace(shown, notes=notes) if left_out else shown


def _both(figures: Iterable[float | None], digits: int = 3) -> str:
    """A cell with the figures of both filters.

    >>> _both([0.3, 0.25]), _both([1.0, 0.02], digits=2), _both([None, 0.3])
    ('.300 / .250', '1.00 / .02', '–')
    """
    known = [figure for figure in figures if figure is not None]
    if len(known) < len(KEPT):
        return "–"
    return " / ".join(f"{figure:.{digits}f}".removeprefix("0") for figure in known)


def _settings_table(dataset: str, entries: Sequence[Entry]) -> ResultTable:
    lines = []
    for entry in entries:
        size, seconds = (_whole(entry.about(name)) for name in ("parameters", "seconds"))
        lines.append((entry.title, _settings(entry.cases), mrr(entry.valid), size, seconds))
    title = f"{_title(dataset)}: what valid chose, and what it costs"
    return ResultTable(title, rows=lines, dataset=dataset, **_ALL["settings_table"])


def _title(dataset: str) -> str:
    return TITLES.get(dataset, dataset)


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _settings(cases: Sequence[Case]) -> str:
    """What was chosen, in a few words."""
    if not cases:
        return "–"
    case = cases[0]
    training = case.training
    words = ["the authors'"] if "preset" in training else []
    words += [case.method] if case.method != "timestamp" and training["model"] != "path" else []
    for name in ("levels", "layers", "loss", "each", "dimension", "n3"):
        words += [f"{name} {training[name]}"] if name in training else []
    return ", ".join(words) or "as the frame"


def _strata_table(dataset: str, entries: Sequence[Entry]) -> ResultTable:
    groups = [(kind, group) for kind, names in STRATA.items() for group in names]
    lines = []
    for entry in entries:
        both = ([entry.stratum(name, *group) for name in KEPT] for group in groups)
        lines.append((entry.title, *map(_both, both)))
    title = f"{_title(dataset)}: seen triples and others, instants and intervals"
    return ResultTable(title, rows=lines, dataset=dataset, **_ALL["strata_table"])


def _tries_table(results: Results, dataset: str) -> ResultTable:
    lines = []
    for row in _by_dataset()[dataset]:
        figures = [] if _knows_time(row) else ["–"]
        for case in row.cases:
            found = [("valid", "exact"), ("test", "exact"), ("test", "overlap")]
            means = [results.average([case], name, split=split).mean for split, name in found]
            figures.append(" / ".join(mrr(mean["mrr"]) for mean in means) if all(means) else "–")
        lines.append((row.title, *figures))
    most = max(map(len, lines))
    filled = [line + ("–",) * (most - len(line)) for line in lines]
    shown = dict(_ALL["tries_table"])
    columns = shown.pop("columns")[:most]
    title = f"{_title(dataset)}: what was tried"
    return ResultTable(title, columns, filled, dataset=dataset, **shown)


def _published_table(entries: Mapping[str, Sequence[Entry]]) -> ResultTable:
    """Beside what is published, ours with the authors' settings, and the best."""
    lines = []
    for dataset, listed in entries.items():
        for entry in listed:
            printed, _, protocol = _PRINTED.get(entry.title, {}).get(dataset, "").partition(", ")
            if not printed:
                continue
            ours, apart = entry.mean("exact").get("mrr"), "–"
            if ours is not None and protocol == "exact":
                published = float(printed.split(" / ")[0])
                apart = f"{ours - published:+.3f}".replace("0.", ".")
            figures = printed, protocol or "–", mrr(entry.theirs), mrr(ours), apart
            lines.append((dataset, entry.title, *figures))
    return ResultTable(rows=lines, **_ALL["published_table"])


def _claims_table(entries: Mapping[str, Sequence[Entry]], results: Results) -> ResultTable:
    fair = Results(results.path.with_name("fair.json"))
    lines = []
    for claims in _ALL["claims"]:
        dataset = claims["dataset"]
        if dataset not in entries:
            continue
        named = {entry.title: entry for entry in entries[dataset]}
        for claim in claims["rows"]:
            if "method" in claim:
                entry = Entry(claim["title"], _splime(dataset, claim["method"], fair), fair)
            else:
                entry = named.get(claim["title"], Entry(claim["title"], (), results))
            exact, overlap = entry.mean("exact"), entry.mean("overlap").get("mrr")
            ours = " / ".join(cells(exact)) if exact else "–"
            lines.append((dataset, claim["title"], claim["printed"], ours, mrr(overlap)))
    return ResultTable(rows=lines, **_ALL["claims_table"])


def _splime(dataset: str, method: str, fair: Results) -> list[Case]:
    """The paper's TransE by protocol `fact`, from the study `fair`."""
    table = (row for row in rows.FAIR if row.dataset == dataset and "paper" in row.title)
    return [case for row in table for case in row.cases if case.method == method and case in fair]


# Accuracy against size

_KINDS = ("knows time", "static", "static, with levels", "path")


def rivals_pictures(results: Results, _: Path) -> dict[str, Figure]:
    """A picture for each dataset."""
    return {f"rivals-{dataset}": _picture(results, dataset) for dataset in _by_dataset()}


def _picture(results: Results, dataset: str) -> Figure:
    """MRR on test against the number of parameters, a labelled mark for each model."""
    from matplotlib.ticker import LogLocator, NullLocator

    figure = make_figure(8.5, 5.6)
    axes = figure.subplots()
    ran = [entry for entry in _entries(results, dataset) if entry.cases]
    handles = [
        axes.plot([], [], linestyle="none", **series_style(at))[0] for at in range(len(_KINDS))
    ]
    places = []
    for entry in ran:
        place = entry.about("parameters") or 1, entry.mean("exact")["mrr"]
        axes.plot(*place, markersize=6, linestyle="none", **series_style(_kind(entry)))
        places.append(place)
    axes.set_xscale("log")
    axes.margins(0.09)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g} M")
    axes.yaxis.set_major_formatter(lambda value, _: mrr(value))
    open_axes(
        axes, _title(dataset), "parameters", "MRR on test (protocol fact, filter exact)", grid="y"
    )
    add_legend(figure, handles, _KINDS, loc="outside lower center", ncols=len(_KINDS))
    _label(axes, places, [entry.title for entry in ran])
    return figure


def _kind(entry: Entry) -> int:
    if entry.title == "path":
        return 3
    training = entry.cases[0].training
    if "levels" in training:
        return 2
    return 0 if _is_rival(training["model"]) else 1


def _is_rival(model: str) -> bool:
    declared = (entry for entry in _ALL["models"] if entry["training"]["model"] == model)
    return any("published" in entry for entry in declared)


def _label(axes: Axes, places: Sequence[tuple[float, float]], names: Sequence[str]) -> None:
    """Write a name beside each mark, at the nearest place where it lies on nothing else.

    A name that is not next to its mark has a line to it, which crosses as few others as can be.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # places are known afterwards
    marks = np.asarray(axes.transData.transform(places)) * 72 / figure.dpi
    inside = np.asarray(axes.get_window_extent().extents) * 72 / figure.dpi
    # Boxes of what is there, in points: left, bottom, right, top.
    taken = [_box(x, y, 10, 10) for x, y in marks.tolist()]
    for (x, y), place, name in zip(marks.tolist(), places, names, strict=True):
        wide, high = 0.58 * SMALL * len(name) + 6, 1.2 * SMALL
        options = []
        for across, up in _AROUND:
            middle = across + (wide / 2 if across > 1 else -wide / 2 if across < -1 else 0)
            line = max(abs(across), abs(up)) > 9
            far = [part for part in _PARTS if line and part * math.hypot(middle, up) > 8]
            boxes = [_box(x + middle, y + up, wide, high)]
            boxes += [_box(x + middle * part, y + up * part, 2, 2) for part in far]
            at, others = np.array(boxes), np.array(taken)
            apart = (at[:, None, :2] >= others[:, 2:]) | (others[:, :2] >= at[:, None, 2:])
            hits = (~apart.any(2)).sum(1)
            outside = (inside[:2] > at[0, :2]).any() or (at[0, 2:] > inside[2:]).any()
            cost = 1000 * outside + 10 * hits[0] + hits[1:].sum()
            options.append((cost, middle, up, line, boxes))
        _, middle, up, line, boxes = min(options, key=lambda option: option[0])
        taken += boxes
        axes.annotate(
            name,
            place,
            (middle, up),
            textcoords="offset points",
            fontsize=SMALL,
            ha="center",
            va="center",
            arrowprops=_LINE if line else None,
        )


def _box(x: float, y: float, wide: float, high: float) -> tuple[float, float, float, float]:
    return x - wide / 2, y - high / 2, x + wide / 2, y + high / 2


_PARTS = np.linspace(0.05, 0.95, 19).tolist()
"""At these parts of a line from a mark to its name, something else may lie in its way."""
_LINE: Any = {"arrowstyle": "-", "linewidth": 0.5, "color": "#888888", "shrinkA": 0, "shrinkB": 3}
_AROUND = [
    (far * math.cos(math.tau * part / 16), far * math.sin(math.tau * part / 16))
    for far in (8, 12, 18, 26, 36, 48, 62, 78, 96, 116, 138, 162, 188)
    for part in (0, 8, 4, 12, 2, 6, 10, 14, 1, 3, 5, 7, 9, 11, 13, 15)
]
"""Where a label may stand, in points from its mark: the nearest first."""
