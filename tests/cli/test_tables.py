"""Tables in a terminal: whole words and numbers at any width, and all commands have `--json`."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from unittest import mock

from hypothesis import given, strategies as st
from rich.text import Text

from splime.cli.console import show
from splime.reporting.tables import make_table

NARROWEST = 34
"""Room for two columns of the longest words."""
WORDS = st.text("abcdefgXYZ0123456789", min_size=1, max_size=12)
NUMBERS = st.builds("{:,}".format, st.integers(0, 10**8)) | st.builds(
    "{:.1f} %".format, st.floats(0, 100)
)
PHRASES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], set[str], list[list[str]]]:
    """The headers, those of columns of words, and the rows."""
    headers = draw(st.lists(PHRASES, min_size=2, max_size=9, unique=True))
    words = {header for header in headers[1:] if draw(st.booleans())}
    kinds = [PHRASES if header in {headers[0], *words} else NUMBERS for header in headers]
    rows = draw(st.lists(st.tuples(*kinds).map(list), min_size=1, max_size=4))
    return headers, words, rows


def printed(
    headers: list[str], words: set[str], rows: list[list[str]], width: int, title: str = ""
) -> str:
    table = make_table(title, *headers, words=words)
    for row in rows:
        table.add_row(*map(Text, row))
    out = io.StringIO()
    with mock.patch.dict("os.environ", {"COLUMNS": str(width)}), redirect_stdout(out):
        show(table)
    return out.getvalue()


@given(table=tables(), width=st.integers(NARROWEST, 140), title=PHRASES)
def test_no_word_and_no_number_is_broken(
    table: tuple[list[str], set[str], list[list[str]]], width: int, title: str
) -> None:
    headers, words, rows = table
    out = printed(headers, words, rows, width, title)
    # Headers have no commas here.
    note = " ".join(out.split()).partition("not shown, too narrow: ")[2]
    shown = len(headers) - len(note.split(", ")) if note else len(headers)
    assert shown >= 2
    assert note == ", ".join(headers[shown:])
    found = re.split(r"[\s│┃]+", out.partition("not shown")[0])
    for row in [headers, *rows]:
        for word in " ".join(row[:shown]).split():
            assert word in found
    assert all(word in found for word in title.split())
    assert max(map(len, out.splitlines())) <= width
    for row in rows:
        for cell, header in zip(row[:shown], headers, strict=False):
            if header not in {headers[0], *words}:  # a number stays in a line, with its unit
                assert cell in out


def test_two_columns_without_room_become_lines() -> None:
    name = "x" * 70
    out = printed(["name", "where"], {"where"}, [[name, "y" * 40], ["short", "z"]], 60)
    assert out.splitlines() == [
        f"name: {name}", f"where: {'y' * 40}", "name: short", "where: z",
    ]  # fmt: skip
