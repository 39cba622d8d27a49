"""One style for all pictures: sizes, colours, names, rows, dates along an axis, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from splime.errors import UsageError, not_installed, visible
from splime.io.files import atomic_write, locked
from splime.statistics import Window
from splime.times import DATES, Granularity, format_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


FORMATS = (".png", ".svg", ".pdf")
INK = "#1b2a41"
SMALL = 8
"""Size of the letters of labels, in points."""
HEAVY = 4_000
"""Shapes from which on a picture holds them as pixels, so that an .svg stays small."""
# Okabe and Ito's colours, which the colour-blind can tell apart, without the yellow that white
# swallows; and three of Paul Tol's. The marks differ too.
_COLORS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
    "#56b4e9", "#000000", "#882255", "#999933", "#332288",
)  # fmt: skip
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
# Distances between round dates, in months where the dates have months.
_STEPS = tuple(digit * 10**zeros for zeros in range(18) for digit in (1, 2, 5))
_MONTHS = (1, 2, 3, 6, *(12 * step for step in _STEPS))


def make_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches; nothing global is touched."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise not_installed("a picture", error) from None
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    # Notebooks show it, also without pyplot.
    figure._repr_png_ = partial(drawn, figure, "png", 100)  # type: ignore[attr-defined]
    return figure


def series_style(number: int) -> dict[str, Any]:
    """Colour and mark of the series with a number; ten differ."""
    place = number % len(_COLORS)
    return {"color": _COLORS[place], "marker": _MARKS[place]}


def short(name: str, length: int = 48) -> str:
    r"""A name for a picture: on one line, not too long, and no dollar begins a formula.

    Letters that no font here has are escaped: boxes would make all such names look alike.

    >>> short("costs $5 or\nmore", 12)
    'costs \\$5 or…'
    """
    name = visible(" ".join(name.split()))
    name = "".join(
        letter if _font_of(letter) else letter.encode("unicode_escape").decode() for letter in name
    )
    name = name if len(name) <= length else name[: length - 1].rstrip() + "…"
    return name.replace("$", r"\$")


@cache
def _font_of(letter: str) -> str | None:
    """The family of a font that has a letter: matplotlib's own if it has, else any that is here."""
    from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

    if get_font(findfont(FontProperties())).get_char_index(ord(letter)):
        return "sans-serif"
    for entry in sorted(fontManager.ttflist, key=lambda entry: str(entry.name)):
        # A font of the list may be gone or broken, or hold pixels, which matplotlib cannot draw.
        with suppress(OSError, RuntimeError):
            font = get_font(entry.fname)
            if font.get_char_index(ord(letter)) and "Last Resort" not in entry.name:
                font.set_size(SMALL, 72)
                font.load_char(ord(letter))
                return str(entry.name)
    return None


def render(figure: Figure, file: Path | BytesIO, format: str, dpi: int) -> None:
    """Draw a figure, with fonts that have its letters."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        families = {_font_of(letter): None for letter in text.get_text() if letter > "~"}
        if others := [family for family in families if family not in (None, "sans-serif")]:
            text.set_fontfamily(["sans-serif", *others])
    figure.savefig(file, format=format, dpi=dpi)


def drawn(figure: Figure, format: str, dpi: int) -> bytes:
    """The content of a file with a figure."""
    buffer = BytesIO()
    render(figure, buffer, format, dpi)
    return buffer.getvalue()


def heading(axes: Axes, text: str) -> None:
    """The title of a panel."""
    axes.set_title(text, loc="left", fontsize=10)


def remark(figure: Figure, text: str, *, left_out: int = 0, more: str = "") -> None:
    """What one must know to read the picture, below it and not wider.

    `left_out` is how many of the less frequent predicates there was no room for.
    """
    if left_out:
        text += f"; {left_out:,} less frequent predicates are not shown"
    if more:
        text += f"\n{more}"
    letters = int(figure.get_figwidth() * 15)
    lines = [fill(line, letters) for line in text.splitlines()]
    figure.supxlabel("\n".join(lines), fontsize=SMALL, color="#444444")


def add_legend(
    place: Axes | Figure, handles: Sequence[Any], names: Sequence[str], **where: Any
) -> None:
    """A legend, on the right of a panel unless it is said where.

    The names are set last: matplotlib would leave out those with a leading underscore.
    """
    where = where or {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    legend = place.legend(
        handles, ["-"] * len(handles), fontsize=SMALL, frameon=False, borderaxespad=0.3, **where
    )
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)


def open_axes(
    axes: Axes, title: str = "", x: str = "", y: str = "", *, grid: Literal["x", "y"] | None = None
) -> None:
    """Only the lines that are read from, with small numbers and labels.

    `grid` adds light lines across.
    """
    heading(axes, title)
    axes.set_xlabel(x, fontsize=SMALL)
    axes.set_ylabel(y, fontsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=SMALL)
    if grid is not None:
        axes.grid(axis=grid, color="#e4e7ec", linewidth=0.8)
        axes.set_axisbelow(True)


def label_rows(axes: Axes, labels: Sequence[str], *, room: int = 0) -> None:
    """Names along the vertical axis, the first one at the top, with room for at least so many."""
    axes.set_yticks(range(len(labels)), labels, fontsize=SMALL)
    axes.set_ylim(max(len(labels), room, 1) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def whole_numbers(axis: Axis) -> None:
    """Only whole numbers along an axis."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


def date_axis(axes: Axes, window: Window, granularity: Granularity, *, most: int = 9) -> None:
    """Dates along the horizontal axis, whose unit is the tick: equal times are equally long."""
    ticks, labels = date_ticks(window, granularity, most=most)
    axes.set_xlim(window.ends)
    axes.set_xticks([tick - window.origin for tick in ticks], labels, fontsize=SMALL)


def date_ticks(
    window: Window, granularity: Granularity, *, most: int = 9
) -> tuple[list[int], list[str]]:
    """Ticks to label, and their dates: round ones if at least three of them fit.

    >>> date_ticks(Window(1953, 1988), "year")
    ([1955, 1960, 1965, 1970, 1975, 1980, 1985], ['1955', '1960', '1965', '1970', '1975', ...
    """
    by_year = granularity in ("year", "step")
    unit, month = (None, None) if by_year else (DATES[granularity], DATES["month"])
    first, last = window.first, window.last
    if not by_year:
        # The months that begin inside.
        first, last = np.array([first - 1, last], unit).astype(month).astype(np.int64).tolist()
        first += 1
    step = next(s for s in (_STEPS if by_year else _MONTHS) if last // s - (first - 1) // s <= most)
    rounded = np.arange(-(-first // step) * step, last + 1, step)
    if len(rounded) >= 3 and by_year:
        return rounded.tolist(), format_ticks(rounded, granularity)
    if len(rounded) >= 3:
        ticks = rounded.astype(month).astype(unit).astype(np.int64).tolist()
        return ticks, format_ticks(rounded, "month")
    step = (window.last - window.first) // most + 1
    even = np.arange(window.first, window.last + 1, step)
    return even.tolist(), format_ticks(even, granularity)


def check_picture(path: Path) -> None:
    """Raise unless a picture can be made there: the kind of file is known, matplotlib is here."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: pictures are {', '.join(FORMATS)} files")
    make_figure(1, 1)


def save_picture(figure: Figure, path: Path) -> None:
    """Write a picture to a file, by its suffix."""
    check_picture(path)
    with atomic_write(path) as beside:
        render(figure, beside, path.suffix[1:].lower(), 150)


def save_pictures(pictures: Mapping[str, Figure], folder: Path) -> None:
    """Write a .png for each picture to a folder, which is made if need be."""
    with locked(folder):
        for name, figure in pictures.items():
            save_picture(figure, folder / f"{name}.png")
