"""Names in .csv files that a spreadsheet would take for formulas, and run.

They stand there with an apostrophe before them, and are read without it. A number is no formula. So
that every name comes back, one that begins so already gets another apostrophe.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

_FIRST = r"[=+\-@\t\r\n\x00]"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def is_csv(path: Path) -> bool:
    """Whether spreadsheets open a file as CSV, by its name."""
    return ".csv" in (suffix.lower() for suffix in path.suffixes)


def with_apostrophes(names: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Names as they are written.

    >>> with_apostrophes(pa.array(["=1+1", "'-x", "-5", "a-b"])).to_pylist()
    ["'=1+1", "''-x", '-5', 'a-b']
    """
    formula = pc.match_substring_regex(names, f"^'*{_FIRST}")
    formula = pc.and_not(formula, pc.match_substring_regex(names, _NUMBER))
    marked = pc.replace_substring_regex(names, "^", "'", max_replacements=1)
    return pc.if_else(formula, marked, names)


def without_apostrophes(names: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Names as they were before.

    >>> without_apostrophes(pa.array(["'=1+1", "''-x", "-5", "'tis"])).to_pylist()
    ['=1+1', "'-x", '-5', "'tis"]
    """
    return pc.replace_substring_regex(names, f"^'('*{_FIRST})", r"\1")
