"""Tables and lines of the terminal as HTML, for the page and for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

from splime.errors import visible
from splime.reporting.tables import Bars


class Html(str):
    """Text that is HTML already; other text is escaped when it becomes part of it."""


def tag(name: str, *children: str, **attributes: str | int) -> Html:
    """An element; `class_` loses its underscore, as all attributes that Python has words for.

    >>> tag("p", "a < b", tag("b", "!"), class_="note")
    '<p class="note">a &lt; b<b>!</b></p>'
    """
    given = "".join(
        f' {key.rstrip("_")}="{escaped(str(value))}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{given}>{join(*children)}</{name}>")


def join(*parts: str) -> Html:
    """Parts one after the other."""
    return Html("".join(part if isinstance(part, Html) else escaped(part) for part in parts))


def escaped(text: str) -> str:
    """Text that HTML shows as it is."""
    return escape(visible(text))


def rendered(parts: RenderableType | Iterable[RenderableType]) -> Html:
    """What the terminal shows, tables and lines of text, as HTML."""
    if isinstance(parts, Table):
        return table_html(parts)
    if isinstance(parts, str | Text):
        return tag("p", _plain(parts), class_="note")
    assert isinstance(parts, Iterable)
    return join(*(rendered(part) for part in parts))


def table_html(table: Table) -> Html:
    """A table of the terminal as one of HTML, with its title; its columns can be sorted.

    >>> table = Table("a", title="b")
    >>> table.add_row("<c>")
    >>> str(table_html(table)).partition("<tbody>")[2].partition("</tbody>")[0]
    '<tr><td>&lt;c&gt;</td></tr>'
    """

    def row(name: str, cells: Iterable[Any]) -> Html:
        return tag("tr", *(_cell(name, *each) for each in zip(table.columns, cells, strict=True)))

    parts = [tag("caption", _plain(table.title))] if table.title else []
    if table.show_header:
        parts.append(tag("thead", row("th", (column.header for column in table.columns))))
    rows = zip(*(column.cells for column in table.columns), strict=True)
    parts.append(tag("tbody", *(row("td", cells) for cells in rows)))
    return tag("div", tag("table", *parts), class_="wide")


def _cell(name: str, column: Column, content: Any) -> Html:
    text = _plain(content)
    bold = isinstance(content, Text) and "bold" in str(content.style)
    inner: str = tag("b", text) if bold else text
    if isinstance(content, Bars):
        inner = _drawn(content)
    return tag(name, inner, class_="number") if column.justify == "right" else tag(name, inner)


def _drawn(bars: Bars) -> Html:
    """A line of bars; as text a page would lose its blanks, or give them another width."""
    path = "".join(f"M{at} 8v-{height}h1v{height}z" for at, height in enumerate(bars.heights))
    label = escaped(bars.plain)
    return Html(
        f'<svg role="img" aria-label="{label}" width="{5 * len(bars)}" height="20"'
        f' viewBox="0 0 {len(bars)} 8" preserveAspectRatio="none" fill="currentColor">'
        f'<path d="{path}"/></svg>'
    )


def _plain(content: Any) -> str:
    return content.plain if isinstance(content, Text) else str(content)
