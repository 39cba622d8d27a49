"""Pieces of a page that needs nothing but itself: elements, tables, pictures, the frame."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Beyond this a drawing of many points is smaller as pixels.
_LARGEST_SVG = 400_000
# Nothing is loaded from anywhere, and a browser must not even try.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


class Html(str):
    """Text that is HTML already; other text is escaped when it becomes part of it."""


def tag(name: str, *children: str, **attributes: str | int) -> Html:
    """An element; `class_` loses its underscore, as all attributes that Python has words for.

    >>> tag("p", "a < b", tag("b", "!"), class_="note")
    '<p class="note">a &lt; b<b>!</b></p>'
    """
    given = "".join(
        f' {key.rstrip("_")}="{escape(str(value))}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{given}>{join(*children)}</{name}>")


def join(*parts: str) -> Html:
    """Parts one after the other."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


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
    rows = zip(*(list(column.cells) for column in table.columns), strict=True)
    body = [
        tag("tr", *(_cell("td", *each) for each in zip(table.columns, row, strict=True)))
        for row in rows
    ]
    parts = [tag("tbody", *body)]
    if table.show_header:
        heads = [_cell("th", column, column.header) for column in table.columns]
        parts.insert(0, tag("thead", tag("tr", *heads)))
    if table.title:
        parts.insert(0, tag("caption", _plain(table.title)))
    return tag("div", tag("table", *parts), class_="wide")


def _cell(name: str, column: Column, content: Any) -> Html:
    text = _plain(content)
    bold = isinstance(content, Text) and "bold" in str(content.style)
    inner: str = tag("b", text) if bold else text
    return tag(name, inner, class_="number") if column.justify == "right" else tag(name, inner)


def _plain(content: Any) -> str:
    return content.plain if isinstance(content, Text) else str(content)


def picture_html(figure: Figure, alt: str) -> Html:
    """A picture inside of the page: lines where they are small, else pixels."""
    kind, data = "svg+xml", _drawn(figure, "svg")
    if len(data) > _LARGEST_SVG:
        kind, data = "png", _drawn(figure, "png")
    source = f"data:image/{kind};base64,{b64encode(data).decode()}"
    width = round(100 * figure.get_figwidth())
    image = Html(f'<img src="{source}" alt="{escape(alt)}" width="{width}">')
    return tag("figure", tag("div", image, class_="wide"), tag("figcaption", alt))


def _drawn(figure: Figure, format: str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=format, dpi=130)
    return buffer.getvalue()


def page_html(title: str, lead: str, sections: Iterable[tuple[str, str]]) -> str:
    """A whole page: its sections by their titles, with a table of contents."""
    sections = list(sections)
    links = [tag("a", name, href=f"#{_anchor(name)}") for name, _ in sections]
    parts = [
        tag("section", tag("h2", name), content, id=_anchor(name)) for name, content in sections
    ]
    style, script = (_file(name) for name in ("page.css", "page.js"))
    head = join(
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        Html(f"<style>{style}</style>"),
    )
    body = join(
        tag("header", tag("h1", title), tag("p", lead)),
        tag("nav", *links),
        tag("main", *parts),
        Html(f"<script>{script}</script>"),
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _anchor(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())


def _file(name: str) -> str:
    return files("splime.report").joinpath(name).read_text(encoding="utf-8")
