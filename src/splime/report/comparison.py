"""Comparisons of runs: one table for the terminal, in Markdown, LaTeX or JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console, RenderableType
from rich.text import Text

from splime.errors import check_name
from splime.io.files import written_beside
from splime.report.figures import described
from splime.report.markdown import escaped, markdown_lines
from splime.report.tables import make_table
from splime.runs.comparison import Comparison, Row

_FIGURES = {"mrr": "MRR", "hits1": "Hits@1", "hits3": "Hits@3", "hits10": "Hits@10"}
_WORDS = ("run", "method", "model")  # columns of words; those after them hold numbers
_MOST = 6  # pairs, or settings, that are listed
_MARK = "†"


class Cell(NamedTuple):
    """What stands in a cell; `marked` where it cannot be told from the best of its column."""

    text: str
    best: bool = False
    marked: bool = False
    interval: str = ""


def comparison_table(found: Comparison) -> Iterator[RenderableType]:
    """The runs, best first, with what was tested below them."""
    header, *rows = _cells(found)
    table = make_table(title(found), *(cell.text for cell in header), words=_WORDS)
    for row in rows:
        table.add_row(*(_styled(cell) for cell in row))
    yield table
    for note in notes(found):
        yield Text(note)


def _styled(cell: Cell) -> Text:
    # The interval on a line of its own: side by side they would be too wide for most terminals.
    parts = (cell.text + _MARK * cell.marked, cell.interval)
    return Text("\n".join(filter(None, parts)), style="bold" if cell.best else "")


def comparison_markdown(found: Comparison) -> str:
    """The same as a table of Markdown."""
    header, *rows = [[_markdown(cell) for cell in row] for row in _cells(found)]
    lines = markdown_lines(header, rows, words=len(_WORDS))
    below = [f"\n{escaped(note)}" for note in notes(found)]
    return "\n".join([f"{title(found)}:\n", *lines, *below]) + "\n"


def _markdown(cell: Cell) -> str:
    text = escaped(cell.text)
    text = f"**{text}**" if cell.best else text + _MARK * cell.marked
    return f"{text} ({cell.interval})" if cell.interval else text


def comparison_latex(found: Comparison) -> str:
    """The same as a table of LaTeX, with the rules of booktabs."""
    header, *rows = [[_latex(cell) for cell in row] for row in _cells(found)]
    columns = "l" * len(_WORDS) + "r" * (len(header) - len(_WORDS))
    caption = " ".join([f"{title(found)}.", *notes(found)])
    lines = [
        "% \\usepackage{booktabs}",
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{latex_text(caption)}}}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        " & ".join(header) + r" \\",
        "\\midrule",
        *(" & ".join(row) + r" \\" for row in rows),
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex(cell: Cell) -> str:
    text = latex_text(cell.text + _MARK * cell.marked)
    text = f"\\textbf{{{text}}}" if cell.best else text
    return f"{text} ({latex_text(cell.interval)})" if cell.interval else text


_LATEX = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # after \\ it would be an option
    "†": r"$^\dagger$",
    "–": "--",
    "…": r"\dots{}",
}


def latex_text(text: str) -> str:
    r"""Text that LaTeX shows as it is.

    >>> print(latex_text("50 % of a_b"))
    50 \% of a\_b
    """
    return "".join(_LATEX.get(char, char) for char in text)


def comparison_json(found: Comparison) -> str:
    """Everything, with all digits."""
    return json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n"


def comparison_text(found: Comparison) -> str:
    """The table as it is in a terminal."""
    console = Console(file=io.StringIO(), highlight=False, markup=False, width=120)
    for part in comparison_table(found):
        console.print(part)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


FORMATS: Mapping[str, Callable[[Comparison], str]] = {
    "table": comparison_text,
    "markdown": comparison_markdown,
    "latex": comparison_latex,
    "json": comparison_json,
}
_SUFFIXES = {".md": "markdown", ".tex": "latex", ".json": "json"}


def format_of(format: str | None, path: Path | None) -> str:
    """The format that is asked for, else the one of the name of a file, else a plain table."""
    if format is None:
        return "table" if path is None else _SUFFIXES.get(path.suffix.lower(), "table")
    check_name("format", format, FORMATS)
    return format


def write_comparison(found: Comparison, path: Path, format: str) -> None:
    """Write the table to a file."""
    with written_beside(path) as beside:
        beside.write_text(FORMATS[format](found), encoding="utf-8")


def notes(found: Comparison) -> list[str]:
    """What must be said below the table: what was tested, what else is alike, remarks."""
    what = "triple" if found.protocol == "triple" else "fact"
    sizes = [f"{count:,} {what}s" for count in found.test_sets]
    if len(sizes) > 1:
        sizes = [f"{size} ({name})" for size, name in zip(sizes, _letters(found), strict=True)]
    level = f"{100 * found.level:g} %"
    drawn = f"{', '.join(sizes)}, {found.samples:,} samples, the queries of a {what} together"
    lines = [f"With the MRR: its {level} confidence interval (bootstrap over {drawn})."]
    if found.pairs:
        pairs = "1 pair" if len(found.pairs) == 1 else f"{len(found.pairs):,} pairs"
        best = "best of the column" + (" in its test set" if len(sizes) > 1 else "")
        lines.append(
            f"{_MARK} The difference from the {best} could be chance: paired bootstrap over the"
            f" same samples, {level}, Holm's correction for {pairs}."
        )
        lines += _alike(found)
    return lines + [f"{remark[0].upper()}{remark[1:]}." for remark in found.remarks]


def _alike(found: Comparison) -> list[str]:
    """The pairs without the best that cannot be told apart either."""
    best = {found.best(number).name for number in range(len(found.test_sets))}
    alike = [
        f"{pair.first} and {pair.second}"
        for pair in found.pairs
        if not found.larger_than_chance(pair) and not best & {pair.first, pair.second}
    ]
    if not alike:
        return []
    more = f"; and {len(alike) - _MOST:,} more pairs" if len(alike) > _MOST else ""
    listed = "; ".join(alike[:_MOST])
    return [f"So could be the difference in MRR between {listed}{more}."]


def in_short(found: Comparison) -> str:
    """The best run, and how far from it the one is that knows no time."""
    best = found.rows[0]
    text = f"Best: {best.name}, MRR {best.metrics.mrr:.3f}."
    plain = {row.name for row in found.rows if row.method == "vanilla"}
    for pair in found.pairs:
        if pair.first == best.name and pair.second in plain:
            difference = pair.differences["mrr"]
            chance = "larger" if found.larger_than_chance(pair) else "no larger"
            text += (
                f" Time is worth {difference.value:.3f} of it (between {difference.low:.3f} and"
                f" {difference.high:.3f}), {chance} than chance: {pair.second} has none."
            )
    return text


def title(found: Comparison) -> str:
    """What was asked of what."""
    data = found.rows[0].data
    filters = "leak filter" if found.protocol == "triple" else "filter"
    name = f"{data}, " if data else ""
    return f"{name}{found.split}: protocol {found.protocol}, {filters} {found.filter}"


def _letters(found: Comparison) -> list[str]:
    """A name for each test set: A, B, …, Z, A1, B1, …"""
    return [
        chr(ord("A") + number % 26) + (str(number // 26) if number >= 26 else "")
        for number in range(len(found.test_sets))
    ]


def _cells(found: Comparison) -> list[list[Cell]]:
    """The header and the rows, for whatever format."""
    letters = _letters(found) if len(found.test_sets) > 1 else []
    header = [*_WORDS, *(["test set"] if letters else []), "scopes", "parameters", "seconds"]
    rows = [[Cell(name) for name in (*header, *_FIGURES.values())]]
    for row in found.rows:
        texts = [
            row.name,
            described(row.method, row.method_parameters, most=_MOST),
            _model(row, found.rows),
        ]
        texts += [letters[row.test_set]] if letters else []
        texts += [f"{row.predicates:,}", f"{row.parameters:,}", f"{row.seconds:,.0f}"]
        rows.append([*map(Cell, texts), *(_figure(found, row, name) for name in _FIGURES)])
    return rows


def _figure(found: Comparison, row: Row, figure: str) -> Cell:
    value = getattr(row.metrics, figure)
    alone = [other.test_set for other in found.rows].count(row.test_set) == 1
    best = not alone and value == getattr(found.best(row.test_set, figure).metrics, figure)
    marked = not best and found.like_the_best(row, figure)
    if figure != "mrr":
        return Cell(f"{100 * value:.1f}", best, marked)
    low, high = row.intervals[figure]
    return Cell(f"{value:.3f}", best, marked, f"{low:.3f}–{high:.3f}")


def _model(row: Row, rows: Sequence[Row]) -> str:
    """The model, with the settings in which runs of the same model differ."""
    alike = [other.settings for other in rows if other.model == row.model]
    differ = {
        name: value
        for name, value in row.settings.items()
        if any(settings.get(name) != value for settings in alike)
    }
    return described(row.model, differ, most=_MOST)
