"""The parts of the page: what they escape, and what becomes of tables and pictures."""

from __future__ import annotations

import re
from base64 import b64decode

import pytest
from hypothesis import given, strategies as st
from rich.text import Text

import splime
from splime.reporting.html import Html, join, rendered, table_html, tag
from splime.reporting.page import frame, picture_html
from splime.reporting.style import make_figure
from splime.reporting.tables import make_table, predicate_table


@given(st.text())
def test_text_is_escaped_and_html_is_not(text: str) -> None:
    made = tag("p", text, title=text)
    inner = re.fullmatch(r'<p title="([^"<>]*)">([^<>]*)</p>', made, re.S)
    assert inner is not None
    assert tag("div", made) == f"<div>{made}</div>"
    assert isinstance(join(text, made), Html)


def test_tables_keep_their_cells() -> None:
    table = make_table("a title & more", "name", "count")
    table.add_row(Text("<b>"), "1,000")
    table.add_row(Text("best", style="bold"), "2")
    made = table_html(table)
    assert "<caption>a title &amp; more</caption>" in made
    assert re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", made) == [
        "name", "count", "&lt;b&gt;", "1,000", "<b>best</b>", "2",
    ]  # fmt: skip
    assert made.count('class="number"') == 3  # the head of the column, and its cells
    assert rendered([table, Text("a < b")]) == made + '<p class="note">a &lt; b</p>'


def test_a_table_without_heads_has_none() -> None:
    table = make_table("t", "", "")
    table.add_row("entities", "5")
    assert "<thead>" not in table_html(table)


@pytest.mark.parametrize(("points", "kind"), [(10, "svg+xml"), (30_000, "png")])
def test_pictures_are_lines_unless_they_are_large(points: int, kind: str) -> None:
    figure = make_figure(4, 3)
    axes = figure.subplots()
    for at in range(points // 10):
        axes.plot(range(10), [at + x % 3 for x in range(10)])
    made = picture_html(figure, 'a "picture"')
    assert f"data:image/{kind};base64," in made
    assert 'alt="a &quot;picture&quot;"' in made
    data = b64decode(re.search(r'base64,([^"]*)"', made)[1])  # type: ignore[index]
    assert data.startswith(b"<?xml" if kind == "svg+xml" else b"\x89PNG")


def test_the_frame_names_its_sections_and_loads_nothing() -> None:
    page = frame("<title>", "lead", {"One & two": tag("p", "x"), "Three": "y"})
    assert page.startswith("<!doctype html>")
    links, ids = re.findall(r'href="#([^"]*)"', page), re.findall(r'<section id="([^"]*)"', page)
    assert links == ids == ["one---two", "three"]
    assert "<title>&lt;title&gt;</title>" in page
    assert "default-src 'none'" in page
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)


def test_lines_of_bars_keep_their_blanks() -> None:
    """As text their first blanks would be lost, and facts that begin in 1967 would in 1950."""
    rows = [("a", "late", "b", 1985 + year) for year in range(5)]
    graph = splime.read([*rows, ("a", "early", "b", 1950)], split="none", granularity="year")
    html = rendered(predicate_table(graph))
    late = html.partition("late")[2].partition("</tr>")[0]
    path = re.search(r'viewBox="0 0 40 8".*<path d="([^"]+)"', late)
    assert path is not None
    heights = [int(height) for height in re.findall(r"v-(\d+)h", path[1])]
    assert len(heights) == 40
    assert heights.index(8) == 35  # of 1950 to 1989
    assert not any(heights[:35])
    assert "▁" not in re.sub(r'aria-label="[^"]*"', "", late)
