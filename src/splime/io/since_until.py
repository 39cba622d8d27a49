"""Facts whose begin and end are in separate rows, `occursSince 2005`, `occursUntil 2009`."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from splime.io.columns import SINCE, UNTIL, RawFacts, merged
from splime.times import Bools, Ints

_MARKER = r"(?i)^<?(?:occurs?_?)?(?P<word>since|until)>?$"


def qualify(raw: RawFacts) -> RawFacts:
    """Make begins and ends of `since` and `until`, if rows of facts say only one of them.

    The words stand in a column before the time.
    """
    first, last = raw.times[0], raw.times[-1]
    if raw.halves is not None or first is last:
        return raw
    match = pc.extract_regex(first.strings, _MARKER)
    if match.null_count == len(match):
        return raw
    words = pc.utf8_lower(match.field("word")).to_pylist()
    table = [{"since": SINCE, "until": UNTIL}.get(word, 0) for word in words]
    halves = first.lookup(np.array(table, np.uint8))
    # A row without such a word has its begin and end in the two columns.
    if (first.blank() & (halves == 0) & ~last.blank()).any():
        raw = raw.remarked("a time with neither since nor until before it is the end of a fact")
    first = first.with_values(pc.if_else(match.is_valid(), "", first.strings))
    begins = halves == SINCE
    times = merged(begins, last, first), merged(begins, first, last)
    return replace(raw, times=times, halves=halves, written=raw.times).remarked(
        "since and until are the begin and end of facts; two rows that belong together are one"
    )


def is_marker(text: str) -> bool:
    """Whether a text says only that a time is a begin or an end."""
    return re.search(_MARKER, text) is not None


def pair(triples: Ints, ends: Bools, ticks: Ints) -> tuple[Ints, Ints]:
    """The rows that say when facts begin, and those that say when the same facts end.

    `triples` numbers the triples, `ends` marks untils. In the order of time, an until
    ends the since right before it. At the same time, it ends what began before; if nothing did,
    the two are an instant. No triple has the same row twice.

    >>> years = np.array([1990, 1995, 1995, 1999, 2003, 2007, 2007])
    >>> since, until = pair(np.zeros(7, int), np.array([0, 1, 0, 1, 1, 0, 1], bool), years)
    >>> [(int(begin), int(end)) for begin, end in zip(years[since], years[until])]
    [(1990, 1995), (1995, 1999), (2007, 2007)]
    """
    order = np.lexsort((~ends, ticks, triples))  # at the same time, the until first
    rows = zip(*(column[order].tolist() for column in (triples, ticks, ends)), strict=True)
    pairs: list[tuple[int, int]] = []
    nothing = -1, -1, -1
    begun = alone = nothing  # a since without an until, and an until without a since
    for row, (triple, tick, is_end) in zip(order.tolist(), rows, strict=True):
        if is_end and begun[0] == triple:
            pairs.append((begun[2], row))
            begun = nothing
        elif is_end:
            alone = triple, tick, row
        elif alone[:2] == (triple, tick):
            pairs.append((row, alone[2]))
        else:
            begun = triple, tick, row
    since, until = np.array(pairs, np.int64).reshape(-1, 2).T
    return since, until
