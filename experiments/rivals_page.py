"""The tables and pictures of the rivals: a page with who is ahead, and its appendix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from experiments import rows
from experiments.factwise import GROUPS, PATH, SAMPLES, Factwise
from experiments.rivals import (
    KEPT,
    STRATA,
    Entry,
    by_dataset,
    entries,
    first_rival,
    knows_time,
    more_seeds,
)
from experiments.rows import DATA, RANKS, TITLES, Case, Combination, Results
from experiments.tables import ResultTable, cells, mrr, percent
from splime.reporting.style import (
    add_legend,
    label_rows,
    make_figure,
    open_axes,
    series_style,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ALL = DATA["rivals"]
_PRINTED = {model["title"]: model.get("printed", {}) for model in _ALL["models"]}
_LEADING, _FIRST = 7, 3
"""How many models beside our own lead, and how many of these are looked at most closely."""


def rivals_tables(results: Results) -> list[ResultTable]:
    """Who is ahead, what papers print, and what explains it."""
    parts = rivals_parts(results)
    shown = ("ahead", "strong", "pairs", "published", "strata", "settings", "tries", "effort")
    return [table for name in shown for table in parts[name]]


def rivals_parts(results: Results) -> dict[str, list[ResultTable]]:
    """The same tables by what they are about, as the pages need them; `leading` are of the page."""
    every = {dataset: entries(results, dataset) for dataset in by_dataset()}
    leading = {dataset: _leading(listed, _LEADING) for dataset, listed in every.items()}
    first = {dataset: _leading(listed, _FIRST) for dataset, listed in every.items()}
    facts = Factwise(results)
    return {
        "ahead": [_ahead_table(*entry, facts) for entry in every.items()],
        "leading": [_ahead_table(*entry, facts) for entry in leading.items()],
        "compared": [_compared(facts)],
        "effort": [_effort_table(every, results)],
        "strong": [ResultTable(**_ALL["strong_table"])],
        "claims": [_claims_table(every, results)],
        "published": [_published_table(every)],
        "strata": [_strata_table(*entry) for entry in every.items()],
        "pairs": [_pairs_table(*entry, facts) for entry in every.items()],
        "leading_pairs": [_pairs_table(*entry, facts) for entry in first.items()],
        "settings": [_settings_table(*entry) for entry in every.items()],
        "tries": [_tries_table(results, dataset) for dataset in every],
    }


def _leading(listed: Sequence[Entry], most: int) -> list[Entry]:
    """Our own, the others that are best on valid, and the first rival."""
    others = sorted(listed, key=lambda entry: -entry.first_valid)
    best = [entry for entry in others if entry.row is not None][:most]
    rival = first_rival(listed)
    return [entry for entry in listed if entry.row is None or entry in (*best, rival)]


def _ahead_table(dataset: str, listed: Sequence[Entry], facts: Factwise) -> ResultTable:
    rival = first_rival(listed)
    against = [PATH, rival.title if rival else ""]
    lines = []
    for entry in listed:
        first, *hits = cells(entry.mean("exact"))
        deviation = entry.results.average(entry.cases, "exact", split="test").deviation
        first += "" if deviation is None else f" ± {mrr(deviation)}"
        others = (entry.mean(name).get("mrr") for name in ("overlap", "static"))
        chances = (
            _chances(facts.chance(dataset, name, entry.title, other) for name in KEPT)
            for other in against
        )
        counts = (str(entry.tries or "–"), str(len(entry.cases)))
        lines.append(
            (entry.title, first, *hits, *map(mrr, others), mrr(entry.valid), *chances, *counts)
        )
    shown = ResultTable(_title(dataset), rows=lines, dataset=dataset, **_ALL["ahead_table"])
    left_out = [label for label in _ALL["left_out"] if label.startswith(f"{dataset} ")]
    notes = [f"First rival, by valid: {rival.title}."] if rival else []
    notes += [f"Left out, for want of time: {', '.join(left_out)}."] if left_out else []
    return replace(shown, notes=notes)


def _chances(both: Iterable[float | None]) -> str:
    """The p-values by exact and overlap; one where they are the same.

    >>> _chances([0.0053, 0.2]), _chances([0.004, 0.004]), _chances([None, None])
    ('.005 / .200', '.004', '–')
    """
    texts = [mrr(p) for p in both]
    return texts[0] if len({*texts}) == 1 else " / ".join(texts)


def _compared(facts: Factwise) -> ResultTable:
    """How p-values were made."""
    lowest = min(1.0, 2 * facts.compared / (SAMPLES + 1))
    note = (
        f"p-values are from a paired bootstrap with {SAMPLES:,} samples of the facts of test; the"
        " two questions of a fact stay together. They are corrected (Holm) for all"
        f" {facts.compared:,} comparisons of these pages, so that none can be below {mrr(lowest)}."
    )
    return ResultTable("", (), notes=[note])


def _effort_table(every: Mapping[str, Sequence[Entry]], results: Results) -> ResultTable:
    """What the search did not do, counted."""
    seeds = results.missing(more_seeds(results))
    lines = []
    for dataset, listed in every.items():
        others = [entry for entry in listed if entry.row is not None and entry.cases]
        ended = [entry.ended for entry in others]
        best = sorted(others, key=lambda entry: -entry.first_valid)
        rivals = [entry for entry in best if entry.knows_time][:_FIRST]
        ours = [entry.tries for entry in listed if entry.title == PATH]
        counts = [len(others), ended.count(False), ended.count(None)]
        counts += [sum(case.dataset == dataset for case in seeds)]
        tries = (", ".join(f"{entry.title} {entry.tries}" for entry in rivals), *map(str, ours))
        lines.append((_title(dataset), *map(str, counts), *tries))
    return ResultTable(rows=lines, **_ALL["effort_table"])


def _pairs_table(dataset: str, listed: Sequence[Entry], facts: Factwise) -> ResultTable:
    """MRR by what train says of the two entities of a fact."""
    lines = []
    for entry in listed:
        both = (
            [facts.stratum(dataset, entry.title, name, group) for name in KEPT] for group in GROUPS
        )
        if any(figures := [_both(each) for each in both]) and {*figures} != {"–"}:
            lines.append((entry.title, *figures))
    names = _ALL["pairs_table"]["columns"]
    shares = [facts.share(dataset, group) for group in GROUPS]
    columns = [
        "",
        *(f"{name} ({percent(share)} %)" for name, share in zip(names, shares, strict=True)),
    ]
    title = f"{_title(dataset)}: what train has of the two entities"
    notes = _ALL["pairs_table"]["notes"] if lines else ()
    return ResultTable(title, columns, lines, notes, dataset=dataset)


def _both(figures: Iterable[float | None], digits: int = 3) -> str:
    """A cell with the figures of both filters.

    >>> _both([0.3, 0.25]), _both([1.0, 0.02], digits=2), _both([None, 0.3])
    ('.300 / .250', '1.00 / .02', '–')
    """
    known = [figure for figure in figures if figure is not None]
    if len(known) < len(KEPT):
        return "–"
    return " / ".join(f"{figure:.{digits}f}".removeprefix("0") for figure in known)


def _settings_table(dataset: str, listed: Sequence[Entry]) -> ResultTable:
    lines = []
    for entry in listed:
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
    if isinstance(case, Combination):
        return f"{len(case.members)} runs"
    words = ["the authors'"] if "preset" in training else []
    words += [case.method] if training.get("model") != "path" and case.method != "timestamp" else []
    for name in ("messages", "relative", "levels", "layers", "loss", "each", "dimension", "n3"):
        words += [f"{name} {training[name]}"] if name in training else []
    return ", ".join(words) or "as the frame"


def _strata_table(dataset: str, listed: Sequence[Entry]) -> ResultTable:
    groups = [(kind, group) for kind, names in STRATA.items() for group in names]
    lines = []
    for entry in listed:
        both = ([entry.stratum(name, *group) for name in KEPT] for group in groups)
        lines.append((entry.title, *map(_both, both)))
    title = f"{_title(dataset)}: seen triples and others, instants and intervals"
    return ResultTable(title, rows=lines, dataset=dataset, **_ALL["strata_table"])


def _tries_table(results: Results, dataset: str) -> ResultTable:
    lines = []
    for row in by_dataset()[dataset]:
        figures = [] if knows_time(row) else ["–"]
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


def _published_table(every: Mapping[str, Sequence[Entry]]) -> ResultTable:
    """Beside what is published, ours with the authors' settings, and the best."""
    lines = []
    for dataset, listed in every.items():
        for entry in listed:
            if dataset not in _PRINTED.get(entry.title, {}):
                continue
            printed, protocol, source = _PRINTED[entry.title][dataset]
            ours, apart = entry.mean("exact").get("mrr"), "–"
            if ours is not None and protocol == "exact":
                published = float(printed.split(" / ")[0])
                apart = f"{ours - published:+.3f}".replace("0.", ".")
            figures = printed, protocol, source, mrr(entry.theirs), mrr(ours), apart
            lines.append((dataset, entry.title, *figures))
    return ResultTable(rows=lines, **_ALL["published_table"])


def _claims_table(every: Mapping[str, Sequence[Entry]], results: Results) -> ResultTable:
    fair = Results(results.path.with_name("fair.json"))
    lines = []
    for claims in _ALL["claims"]:
        dataset = claims["dataset"]
        if dataset not in every:
            continue
        named = {entry.title: entry for entry in every[dataset]}
        for claim in claims["rows"]:
            if "method" in claim:
                entry = Entry(claim["title"], _splime(dataset, claim["method"], fair), fair, 0)
            else:
                entry = named.get(claim["title"], Entry(claim["title"], (), results, 0))
            exact, overlap = entry.mean("exact"), entry.mean("overlap").get("mrr")
            ours = " / ".join(cells(exact)) if exact else "–"
            lines.append((dataset, claim["title"], claim["printed"], ours, mrr(overlap)))
    return ResultTable(rows=lines, **_ALL["claims_table"])


def _splime(dataset: str, method: str, fair: Results) -> list[Case]:
    """The paper's TransE by protocol `fact`, from the study `fair`."""
    table = (row for row in rows.FAIR if row.dataset == dataset and "paper" in row.title)
    return [case for row in table for case in row.cases if case.method == method and case in fair]


# Accuracy against size

_KINDS = ("temporal", "static", "static, with levels", "path")


def rivals_pictures(results: Results, _: Path) -> dict[str, Figure]:
    """A picture for each dataset."""
    return {f"rivals-{dataset}": _picture(results, dataset) for dataset in by_dataset()}


def _picture(results: Results, dataset: str) -> Figure:
    """MRR on test with its interval, best first, and beside it the number of parameters."""
    ran = [entry for entry in entries(results, dataset) if entry.cases]
    ran.sort(key=lambda entry: -entry.mean("exact")["mrr"])
    figure = make_figure(8.5, 1.3 + 0.19 * len(ran))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[3, 1])
    for at, entry in enumerate(ran):
        mark = {"markersize": 6, "linestyle": "none", **series_style(_kind(entry))}
        found = entry.mean("exact")["mrr"]
        if entry.kept(RANKS):
            facts = entry.reciprocals("exact").mean(axis=1)
            half = 1.96 * facts.std() / len(facts) ** 0.5
            left.plot([found - half, found + half], [at, at], color=mark["color"], linewidth=1.5)
        left.plot(found, at, **mark)
        right.plot((entry.about("parameters") or 1) / 1e6, at, **mark)
    label_rows(left, [entry.title for entry in ran])
    left.xaxis.set_major_formatter(lambda value, _: mrr(value))
    label = "MRR on test (protocol fact, filter exact)\nlines: 95 % confidence over its facts"
    open_axes(left, _title(dataset), f"{label}, where their ranks are kept", grid="x")
    open_axes(right, "", "million parameters", grid="x")
    right.set_xscale("log")
    right.xaxis.set_major_formatter("{x:g}")
    right.minorticks_off()
    right.tick_params(axis="y", length=0)
    kinds = range(len(_KINDS))
    handles = [left.plot([], [], linestyle="none", **series_style(at))[0] for at in kinds]
    add_legend(figure, handles, _KINDS, loc="outside lower center", ncols=len(_KINDS))
    return figure


def _kind(entry: Entry) -> int:
    if entry.row is None:
        return 3
    training = entry.cases[0].training
    if "levels" in training:
        return 2
    return 0 if entry.knows_time else 1
