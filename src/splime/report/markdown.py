"""Tables as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def markdown_lines(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, words: int
) -> list[str]:
    """The lines of a table; cells are Markdown already, those behind the words stand to the right.

    >>> print(*markdown_lines(("method", "MRR"), [("merge", ".358")], words=1), sep=chr(10))
    | method | MRR |
    |---|--:|
    | merge | .358 |
    """
    rule = "|".join("---" if at < words else "--:" for at in range(len(header)))
    lines = [f"| {' | '.join(cells)} |" for cells in (header, *rows)]
    return [lines[0], f"|{rule}|", *lines[1:]]


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, also in a cell.

    >>> escaped("a|b_c")
    'a\\\\|b\\\\_c'
    """
    return re.sub(r"([\\|*_`<])", r"\\\1", text)
