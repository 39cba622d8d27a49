"""Questions that the page begins with, whose answers are right where that can be known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from splime.errors import SplimeError
from splime.explorer.asking import PageQuery, interval_of
from splime.query.questions import ASKED, quoted
from splime.scoring.scoping import NAMES, SIDES, Kind

_TRIED, _EXPLAINED, _WHEN = 16, 8, 4
"""Facts among which they are found, those whose evidence is looked at, and those asked when."""

_KNOWN = 1e-12
"""How much an answer counts that train states: there is nothing to predict."""


def find_examples(
    queries: Sequence[PageQuery], facts: Sequence[Mapping[str, Any]]
) -> list[dict[str, str]]:
    """Questions about facts for an object, a subject and a time."""
    query = next((each for each in queries if each.explains), queries[0])
    found: list[dict[str, str]] = []
    rows = [row for row in facts if row["time"]][:_TRIED]
    kinds: list[Kind] = [*SIDES, *(["time"] if query.tells_when else [])]  # type: ignore[list-item]
    for kind in kinds:
        best = _best(query, kind, rows, {question["predicate"] for question in found})
        found += [_asked_about(row, kind) for row in best[:1]]
    return found or [_asked_about(row, "object") for row in rows[:1]]


def _best(
    query: PageQuery, kind: Kind, rows: Sequence[Mapping[str, Any]], used: set[str]
) -> list[Mapping[str, Any]]:
    """Those answered well, with long evidence and other predicates than were used first."""
    if kind == "time":  # which takes longer: the first one will do
        rows = [row for row in rows if row["predicate"] not in used] or rows
        return [*islice((row for row in rows[:_WHEN] if _sure(query, kind, row)), 1)]
    sure = [_sure(query, kind, row) for row in rows]
    right = [at for at in range(len(rows)) if sure[at]]
    right.sort(key=lambda at: (rows[at]["predicate"] in used, -sure[at]))
    length = {at: _chain_length(query, kind, rows[at]) for at in right[:_EXPLAINED]}
    right.sort(key=lambda at: (sure[at] <= _KNOWN, -length.get(at, 0.0)))
    return [rows[at] for at in right]


def _sure(query: PageQuery, kind: Kind, row: Mapping[str, Any]) -> float:
    """How probable the best answer about a fact is; 0 unless it is right.

    Without facts of test it need only be new, and there should be an answer at all.
    """
    names, when = _names_asked(row, kind), interval_of(row["time"])
    with suppress(SplimeError):  # the others may do
        if kind == "time":
            return float(any(each.known for each in query.ask(*names, ASKED, limit=1)))
        for best in query.ask(*names, **when, limit=1):
            if best.known is not None and best.known.split == "train":
                return _KNOWN if best.name == row[kind] else 0.0
            sure = best.probability or 1e-9
            if len(query.run.graph.test):
                return sure if best.name == row[kind] else 0.0
            there = query.there_is_one(*names, **when)
            return sure * (1.0 if there is None else there.probability)
    return 0.0


def _names_asked(row: Mapping[str, Any], kind: Kind) -> tuple[str, str, str]:
    """The names of a question about a fact."""
    one, which, other = (ASKED if name == kind else quoted(row[name]) for name in NAMES)
    return one, which, other


def _asked_about(row: Mapping[str, Any], kind: Kind) -> dict[str, str]:
    """A question about a fact, as the page has it."""
    names = {name: "" if name == kind else row[name] for name in NAMES}
    return {"ask": kind, **names, "time": "" if kind == "time" else row["time"]}


def _chain_length(query: PageQuery, kind: Kind, row: Mapping[str, Any]) -> float:
    """How many facts in a row the best answer rests on, on average."""
    if kind not in SIDES or not query.explains:
        return 0.0
    reasons = query.why(*_names_asked(row, kind), **interval_of(row["time"])).reasons
    whole = sum(reason.contribution for reason in reasons)
    return sum(one.contribution * len(one.steps) for one in reasons) / whole if whole > 0 else 0.0
