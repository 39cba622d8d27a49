"""Facts whose begin and end are in separate rows, `occursSince 2005`, `occursUntil 2009`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.arrays import changes
from splime.io.columns import SINCE, UNTIL, EncodedColumn, Halves, RawFacts, encoded
from splime.times import Bools, Ints

_WORD = r"<?(?:occurs?_?)?(?P<word>since|until)>?"
_MARKER = rf"(?i)^{_WORD}(?P<rest>)$"  # in a separate column
_PREFIX = rf"(?i)^{_WORD}[\s:=_]+(?P<rest>.+)$"  # in front of the time
# Behind the predicate, whose own last word may be "since": so only the long form counts.
_SUFFIX = r"(?i)^(?P<rest>.*?\w.*?)[\s_./:|#,-]*<?occurs?_?(?P<word>since|until)>?$"


def qualify(raw: RawFacts) -> RawFacts:
    """Make begins and ends of `since` and `until`, if rows of facts say only one of them.

    The words stand in a column before the time, in front of the time, or behind the predicate.
    """
    first, last = raw.times[0], raw.times[-1]
    if raw.halves is not None:
        return raw
    if first is not last:
        halves, rest = _halves(first, _MARKER)
        if halves is None:
            return raw
        # A row without such a word has its begin and end in the two columns.
        begins, shared = first.all_codes(), last.all_codes()
        moved = np.where(shared < 0, -1, shared + len(first.values))
        values = pa.concat_arrays([pa.array(rest, pa.string()), last.strings])
        begin = encoded(np.select([halves == SINCE, halves == UNTIL], [moved, -1], begins), values)
        end = encoded(np.where(halves == SINCE, -1, shared), last.strings)
        if (_blank(first) & (halves == 0) & ~_blank(last)).any():
            raw = raw.remarked("a time with neither since nor until before it is the end of a fact")
        return _qualified(raw, halves, (begin, end), written=raw.times)
    halves, rest = _halves(first, _PREFIX)
    written: tuple[EncodedColumn, ...] = (first,)
    if halves is None:
        predicate = raw.names[1]
        halves, rest = _halves(predicate, _SUFFIX)
        if halves is None:
            return raw
        texts = predicate.strings.to_pylist()
        suffixes = [text.removeprefix(name) for text, name in zip(texts, rest, strict=True)]
        written = (encoded(predicate.all_codes(), pa.array(suffixes, pa.string())), first)
        # `<playsFor_occursSince>` has its brackets around both.
        closed = [
            f"{name}>" if suffix and name[0] == "<" and name[-1] != ">" else name
            for name, suffix in zip(rest, suffixes, strict=True)
        ]
        base = predicate.with_values(pa.array(closed, pa.string()))
        raw = replace(raw, names=(raw.names[0], base, raw.names[2]))
        rest = first.strings.to_pylist()
    codes, values = first.all_codes(), pa.array(rest, pa.string())
    begin, end = (encoded(np.where(halves == other, -1, codes), values) for other in (UNTIL, SINCE))
    return _qualified(raw, halves, (begin, end), written)


def is_marker(text: str) -> bool:
    """Whether a text says only that a time is a begin or an end."""
    return re.search(_MARKER, text) is not None


def _halves(column: EncodedColumn, pattern: str) -> tuple[Halves | None, list[str]]:
    """What each row says, None if no row has such a word; and the values without the words."""
    texts = column.strings
    match = pc.extract_regex(texts, pattern)
    if match.null_count == len(match):
        return None, []
    words = [word and word.lower() for word in match.field("word").to_pylist()]
    table = [{"since": SINCE, "until": UNTIL}.get(word, 0) for word in words]
    rest = pc.if_else(match.is_valid(), match.field("rest"), texts)
    return column.lookup(np.array(table, np.uint8)), rest.to_pylist()


def _qualified(
    raw: RawFacts, halves: Halves, times: Sequence[EncodedColumn], written: Sequence[EncodedColumn]
) -> RawFacts:
    return replace(raw, times=times, halves=halves, written=written).remarked(
        "since and until are the begin and end of facts; two rows that belong together are one"
    )


def _blank(column: EncodedColumn) -> Bools:
    """Which rows say no time."""
    empty = pc.equal(pc.utf8_trim(pc.utf8_trim_whitespace(column.strings), "-#"), "")
    return column.lookup(empty.to_numpy(zero_copy_only=False), missing=True)


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
    triples, ends, ticks = triples[order], ends[order], ticks[order]
    new = changes(triples)
    meets = np.zeros(len(order) + 1, bool)  # an until that has a since at the same time behind it
    meets[1:-1] = ends[:-1] & ~ends[1:] & ~changes(triples, ticks)[1:]
    since_meets, until_meets = meets[:-1], meets[1:]
    # What the last row before that is not of such a pair says decides whether something is open.
    place = np.arange(len(order))
    alone = np.maximum.accumulate(np.where(since_meets | until_meets, -1, place))
    starts = np.maximum.accumulate(np.where(new, place, 0))
    is_open = (alone >= starts) & ~ends[alone]
    instant = until_meets & ~is_open  # the until, whose since comes right after it
    taken = instant.copy()
    taken[1:] |= instant[:-1]
    follows = np.zeros(len(order), bool)
    follows[1:] = ~ends[:-1] & ends[1:] & ~new[1:] & ~taken[:-1] & ~taken[1:]
    until = np.flatnonzero(instant | follows)
    since = np.where(instant[until], until + 1, until - 1)
    return order[since], order[until]
