"""Comparisons of runs: one table for the terminal, in Markdown, LaTeX or JSON; and a picture."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from splime.analysis import ComparedRun, Comparison, Pair
from splime.errors import check_name, counted
from splime.evaluation import COMPARED
from splime.io.files import atomic_write
from splime.reporting import results, style, tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WORDS = ("run", "method", "model")
_MOST = 6  # pairs, or settings, that are listed
_MARK = "†"
_COLORS = {
    "the best": style.INK,
    "difference from the best could be chance": "#0072b2",
    "lower than the best": "#b0b7c3",
}


def comparison_table(comparison: Comparison) -> Iterator[RenderableType]:
    """The runs, best first, with what was tested below them."""
    yield _table(comparison)
    yield from map(Text, notes(comparison))


def comparison_markdown(comparison: Comparison) -> str:
    """The same as a table of Markdown."""
    header, *rows = _written(comparison, tables.escaped, "**{}**")
    words = [at for at, name in enumerate(header) if name in _WORDS]
    lines = tables.markdown_lines(header, rows, words=words)
    below = [f"\n{tables.escaped(note)}" for note in notes(comparison)]
    return "\n".join([f"{title(comparison)}:\n", *lines, *below]) + "\n"


def _written(
    comparison: Comparison, escape: Callable[[str], str], bold: str
) -> Iterator[list[str]]:
    """The header and the rows as text of a markup language."""
    columns = _table(comparison).columns
    for cells in zip(*([column.header, *column.cells] for column in columns), strict=True):
        row = []
        for cell in cells:
            text, _, interval = map(escape, cell.plain.partition("\n"))
            text = bold.format(text) if cell.style == tables.BEST else text
            row.append(f"{text} ({interval})" if interval else text)
        yield row


def comparison_latex(comparison: Comparison) -> str:
    """The same as a table of LaTeX, with the rules of booktabs."""
    header, *rows = _written(comparison, latex_text, r"\textbf{{{}}}")
    first, *lines = (" & ".join(row) + r" \\" for row in (header, *rows))
    return _TABLE_LATEX.substitute(
        caption=latex_text(" ".join([f"{title(comparison)}.", *notes(comparison)])),
        columns="".join("l" if name in _WORDS else "r" for name in header),
        header=first,
        rows="\n".join(lines),
    )


_TABLE_LATEX = Template(r"""% \usepackage{booktabs}
\begin{table}
\centering
\caption{$caption}
\begin{tabular}{$columns}
\toprule
$header
\midrule
$rows
\bottomrule
\end{tabular}
\end{table}
""")
_LATEX = str.maketrans(
    {char: f"\\{char}" for char in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "†": r"$^\dagger$", "–": "--"}
    | {"…": r"\dots{}", "[": "{[}"}  # after \\ it would be an option
)


def latex_text(text: str) -> str:
    r"""Text that LaTeX shows as it is.

    >>> print(latex_text("50 % of a_b"))
    50 \% of a\_b
    """
    return text.translate(_LATEX)


def comparison_text(comparison: Comparison) -> str:
    """The table as it is in a terminal."""
    console = Console(highlight=False, markup=False, width=120)
    with console.capture() as captured:
        console.print(*comparison_table(comparison), sep="\n")
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


FORMATS: Mapping[str, Callable[[Comparison], str]] = {
    "table": comparison_text,
    "markdown": comparison_markdown,
    "latex": comparison_latex,
    "json": lambda comparison: (
        json.dumps(comparison.to_json(), indent=2, ensure_ascii=False) + "\n"
    ),
}
_SUFFIXES = {".md": "markdown", ".tex": "latex", ".json": "json"}


def format_of(format: str | None, path: Path | None) -> str:
    """The format that is given, else that of the file name, else a plain table."""
    if format is None:
        return "table" if path is None else _SUFFIXES.get(path.suffix.lower(), "table")
    check_name("format", format, FORMATS)
    return format


def write_comparison(comparison: Comparison, path: Path, format: str) -> None:
    """Write the table to a file."""
    with atomic_write(path) as beside:
        beside.write_text(FORMATS[format](comparison), encoding="utf-8")


def notes(comparison: Comparison) -> list[str]:
    """What stands below the table: how it was tested, which other pairs are alike, remarks."""
    what = "triple" if comparison.protocol == "triple" else "fact"
    sizes = [counted(count, what) for count in comparison.test_sets]
    if len(sizes) > 1:
        sizes = [f"{size} (test set {number})" for number, size in enumerate(sizes, 1)]
    few = [size for number, size in enumerate(sizes) if comparison.too_few(number)]
    enough = [size for size in sizes if size not in few]
    level, lines = f"{100 * comparison.level:g} %", []
    if enough:
        drawn = ", ".join([*enough, f"{comparison.samples:,} samples"])
        lines.append(
            f"With the MRR: its {level} confidence interval (bootstrap over {drawn}, the queries of"
            f" a {what} together)."
        )
    if few:
        lines.append(results.few_facts(f"{comparison.split} has only {', '.join(few)}", what))
    tested = sum(comparison.larger_than_chance(pair) is not None for pair in comparison.pairs)
    if tested:
        lines.append(
            f"{_could_be_chance(comparison)} (paired bootstrap over the same samples, {level},"
            f" Holm's correction for {counted(tested, 'pair')})."
        )
    return lines + [f"{remark[0].upper()}{remark[1:]}." for remark in comparison.remarks]


def _could_be_chance(comparison: Comparison) -> str:
    """What the mark in the table says, if it is there; and pairs without the best."""
    cells = (str(cell) for column in _table(comparison).columns[1:] for cell in column.cells)
    marked, alike = any(_MARK in cell for cell in cells), _alike(comparison)
    best = "best of the column" + " in its test set" * (len(comparison.test_sets) > 1)
    if not marked:
        return (
            f"{alike} could be chance" if alike else "Every difference in MRR is larger than chance"
        )
    also = f"; so could be {alike[0].lower()}{alike[1:]}" if alike else ""
    return f"{_MARK} The difference from the {best} could be chance{also}"


def _alike(comparison: Comparison) -> str:
    """The pairs without the best whose difference could be chance too."""
    best = {comparison.best(number).name for number in range(len(comparison.test_sets))}
    alike = [
        f"{pair.first} and {pair.second}"
        for pair in comparison.pairs
        if comparison.larger_than_chance(pair) is False and not best & {pair.first, pair.second}
    ]
    more = [f"and {len(alike) - _MOST:,} more pairs"] if len(alike) > _MOST else []
    listed = "; ".join([*alike[:_MOST], *more])
    return f"The difference in MRR between {listed}" if alike else ""


def in_short(comparison: Comparison) -> str:
    """The best run; and whether time helps a model, by its best runs with it and without.

    Runs without cuts ignore time, unless their model knows it by itself; all others use it. What a
    combination of runs uses is unknown. Other models differ in more than time.
    """
    best = comparison.rows[0]
    text = f"Best: {best.name}, MRR {best.metrics.mrr:.3f}."
    pair = _with_and_without(comparison)
    if pair is None:
        return text
    difference, real = pair.differences["mrr"], comparison.larger_than_chance(pair)
    lower, model = f"is {difference.value:.3f} lower", ""
    if pair.first != best.name:
        [model] = (f" {row.model}" for row in comparison.rows if row.name == pair.first)
        lower += f" than {pair.first}"
    if difference.low is not None:
        lower += f" (between {difference.low:.3f} and {difference.high:.3f})"
    helps, chance = {
        True: (f"Time helps{model}", "the difference is larger than chance"),
        False: (f"Time is not shown to help{model}", "the difference could be chance"),
        None: (
            f"Whether time helps{model} is open",
            f"{_too_few(comparison)} to tell it from chance",
        ),
    }[real]
    if any(row.uses_time for row in comparison.rows if row.name == pair.first):
        return f"{text} {helps}: {pair.second}, which ignores time, {lower}; {chance}."
    return (
        f"{text} Time does not help{model}: {pair.first} ignores it, and {pair.second}, the best"
        f" that uses it, {lower}; {chance}."
    )


def _with_and_without(comparison: Comparison) -> Pair | None:
    """The best runs of one model with time and without: of the model whose run is best, or of the
    best one that has both."""
    rows = {row.name: row for row in comparison.rows}  # best first
    ranks = {name: rank for rank, name in enumerate(rows)}
    pairs = [
        pair
        for pair in comparison.pairs
        for one, other in [(rows[pair.first], rows[pair.second])]
        if one.model == other.model and {one.uses_time, other.uses_time} == {True, False}
    ]
    return min(pairs, key=lambda pair: (ranks[pair.first], ranks[pair.second]), default=None)


def _too_few(comparison: Comparison) -> str:
    facts = comparison.test_sets[0]
    return f"{counted(facts, 'fact')} {'is' if facts == 1 else 'are'} too few"


def title(comparison: Comparison) -> str:
    """The data, the split and how it was evaluated."""
    data = comparison.rows[0].data
    filters = "leak filter" if comparison.protocol == "triple" else "filter"
    name = f"{data}, " if data else ""
    return (
        f"{name}{comparison.split}: protocol {comparison.protocol}, {filters} {comparison.filter}"
    )


def _table(comparison: Comparison) -> Table:
    several = len(comparison.test_sets) > 1
    # What matters most comes first: narrow terminals leave out columns from the right.
    header = ["run", *results.HEADINGS, "method", "model", *["test set"] * several]
    header += ["scopes", "parameters", "seconds"]
    table = tables.make_table(title(comparison), *header, words=_WORDS)
    for row in comparison.rows:
        method = "–" if row.method == "none" else row.method
        texts = [tables.described(method, row.method_parameters, most=_MOST)]
        texts += [_model(row, comparison.rows), *[str(row.test_set + 1)] * several]
        metrics = (_metric(comparison, row, name) for name in COMPARED)
        costs = [f"{row.predicates:,}", f"{row.parameters:,}", f"{row.seconds:,.0f}"]
        table.add_row(Text(row.name), *metrics, *map(Text, [*texts, *costs]))
    return table


def _metric(comparison: Comparison, row: ComparedRun, name: str) -> Text:
    """A metric: bold where it is the best, marked where its difference from it could be chance."""
    alone = [other.test_set for other in comparison.rows].count(row.test_set) == 1
    highest = getattr(comparison.best(row.test_set, name).metrics, name)
    best = not alone and getattr(row.metrics, name) == highest
    marked = not best and comparison.like_the_best(row, name)
    text = row.metrics.text(name) + _MARK * marked
    if name == "mrr" and row.intervals is not None:
        # On a line of its own: side by side they would be too wide for most terminals.
        text += "\n{:.3f}–{:.3f}".format(*row.intervals["mrr"])
    return Text(text, style=tables.BEST if best else "")


def _model(row: ComparedRun, rows: Sequence[ComparedRun]) -> str:
    """The model, with the settings in which runs of the same model differ."""
    alike = [other.settings for other in rows if other.model == row.model]
    differ = {
        name: value
        for name, value in row.settings.items()
        if any(settings.get(name) != value for settings in alike)
    }
    return tables.described(row.model, differ, most=_MOST)


def plot_comparison(comparison: Comparison) -> Figure:
    """The MRR of every run as a dot with its confidence interval, best first.

    Colours show which could be as good as the best. Overlapping intervals do not show that: the
    runs ranked the same queries, and the test is of their differences.
    """
    figure = style.make_figure(8, 1.4 + 0.3 * len(comparison.rows))
    axes = figure.subplots()
    best, alike, lower = _COLORS
    dots: dict[str, Any] = {}
    for place, row in enumerate(comparison.rows):
        if row.name == comparison.best(row.test_set).name:
            kind = best
        else:
            few = comparison.too_few(row.test_set)
            kind = alike if few or comparison.like_the_best(row) else lower
        mrr, color = row.metrics.mrr, _COLORS[kind]
        low, high = (row.intervals or {"mrr": (mrr, mrr)})["mrr"]
        axes.plot([low, high], [place, place], color=color, linewidth=2, solid_capstyle="round")
        (dots[kind],) = axes.plot(mrr, place, "o", markersize=7, color=color)
        axes.annotate(
            f"{mrr:.3f}", (high, place), (6, 0), textcoords="offset points", va="center",
            fontsize=style.SMALL,
        )  # fmt: skip
    axes.margins(x=0.12)
    label = f"MRR, with {100 * comparison.level:g} % confidence interval"
    if all(row.intervals is None for row in comparison.rows):
        label = f"MRR; {_too_few(comparison)} for a confidence interval"
    style.open_axes(axes, style.short(title(comparison), 90), label, grid="x")
    style.label_rows(axes, [style.short(row.name) for row in comparison.rows])
    axes.spines["left"].set_visible(False)
    if comparison.pairs:
        style.add_legend(figure, [*dots.values()], [*dots], loc="outside lower left", ncols=3)
    return figure
