"""From text columns to a graph: names to ids, times to ticks, and an account of every row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splime.errors import DataError
from splime.graph import SPLITS, Facts, SplitName, TemporalGraph
from splime.io.columns import EXAMPLES, Account, EncodedColumn, RawFacts
from splime.io.options import ReadOptions
from splime.io.spans import OWN_BEGIN, OWN_END, RowsBySplit, Spans, parse_spans
from splime.reading import DUPLICATE, Reading
from splime.timeline import Timeline
from splime.times import Bools, Granularity, Ints, format_ticks, tick_range
from splime.vocabulary import Vocabulary

_BLOCK = 1 << 20
_KEYS = 1 << 15  # rows whose keys fit into the cache
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplying loses nothing


def assemble(raws: Sequence[RawFacts], options: ReadOptions, *, name: str = "") -> TemporalGraph:
    """Build a graph from facts as they were read, which are used up by it.

    An unknown begin or end becomes `first` or `last`, by default the first or last time of all
    facts; "end" and "begin" are the fact's own. Facts without a split are put into train.
    """
    entities = _vocabulary("entity", [(raw, raw.names[at]) for raw in raws for at in (0, 2)])
    predicates = _vocabulary("predicate", [(raw, raw.names[1]) for raw in raws])
    all_spans, granularity = parse_spans(raws, options.granularity)
    limits = _limits(raws, all_spans, granularity, options)

    parts: dict[SplitName, list[Facts]] = {split: [] for split in SPLITS}
    accounts = []
    for raw, spans in zip(raws, all_spans, strict=True):
        account = Account(raw)
        by_split = _rows_by_split(raw)
        spans.settle(*limits, account, options, by_split)
        facts = _facts(raw, spans, entities, predicates)
        for split, rows in by_split:
            chosen = account.kept if rows is None else account.kept & rows
            part = facts if chosen.all() else facts.take(chosen)
            repeated = np.zeros(len(part), bool) if options.keep_duplicates else repeats(part)
            if repeated.any():
                shown = part.take(np.flatnonzero(repeated)[:EXAMPLES])
                texts = _texts(shown, entities, predicates, granularity)
                account.drop(DUPLICATE, np.flatnonzero(chosen)[repeated], texts=texts)
                part = part.take(~repeated)
            parts[split].append(part)
        accounts.append(account)

    joined = {split: Facts.concat(own) for split, own in parts.items()}
    reading = Reading(
        tuple(account.source() for account in accounts),
        tuple(example for account in accounts for example in account.examples()),
    )
    ticks = np.concatenate([_distinct(part) for part in joined.values()])
    if not len(ticks):
        reasons = ", ".join(f"{count:,} × {reason}" for reason, count in reading.dropped.items())
        raise DataError(f"no facts are left: {reasons}; first example: {reading.examples[0]}")
    graph = TemporalGraph(
        **joined,
        entities=entities,
        predicates=predicates,
        timeline=Timeline.of(ticks, granularity),
        reading=reading,
        name=name,
    )
    return graph.compact()


def _vocabulary(kind: str, columns: list[tuple[RawFacts, EncodedColumn]]) -> Vocabulary:
    for raw, column in columns:
        if column.missing:
            where = raw.locate([column.first_row(-1)])[0]
            raise DataError(f"{where}: a name is missing (null); every fact needs all three names")
    labels = [column.values.cast(pa.large_string()) for _, column in columns]
    return Vocabulary(pa.concat_arrays(labels), kind=kind)


def _facts(raw: RawFacts, spans: Spans, entities: Vocabulary, predicates: Vocabulary) -> Facts:
    """The integer columns; the text columns are given up one by one, to save memory."""
    for column in raw.times:
        column.free()
    ids = []
    for column, vocabulary in zip(raw.names, (entities, predicates, entities), strict=True):
        ids.append(column.lookup(vocabulary.ids(column.values)))
        column.free()
    subject, predicate, object = ids
    return Facts(subject, predicate, object, spans.begin, spans.end, spans.unknown)


def _limits(
    raws: Sequence[RawFacts],
    all_spans: Sequence[Spans],
    granularity: Granularity,
    options: ReadOptions,
) -> tuple[int, int]:
    """The ticks that unknown begins and ends become."""
    ticks = [tick for spans in all_spans for tick in spans.extremes(options)]
    if not ticks:
        names = ", ".join(raw.name for raw in raws)
        fact = " | ".join(raws[0].texts([0])[0])
        raise DataError(
            f"{names}: no fact has a usable time, all are unknown, unreadable or end before they"
            f" begin; the first one reads {fact!r}"
        )
    first, last = options.first, options.last
    return (
        min(ticks) if first in (None, OWN_END) else tick_range(first, granularity)[0],
        max(ticks) if last in (None, OWN_BEGIN) else tick_range(last, granularity)[1],
    )


def _rows_by_split(raw: RawFacts) -> RowsBySplit:
    if raw.split or raw.splits is None:
        return [(raw.split or "train", None)]
    names = raw.splits.values.cast(pa.string()).to_pylist()
    codes = raw.splits.lookup(np.arange(len(names), dtype=np.int32), missing=-1)
    for code, name in [*enumerate(names), (-1, None)]:
        if name not in SPLITS and (codes == code).any():
            where = raw.locate([raw.splits.first_row(code)])[0]
            raise DataError(f"{where}: the split is {name!r}; expected train, valid or test")
    return [(split, codes == names.index(split)) for split in SPLITS if split in names]


def _texts(
    facts: Facts, entities: Vocabulary, predicates: Vocabulary, granularity: Granularity
) -> list[tuple[str, ...]]:
    """A few facts as text, for examples."""
    return [
        (entities[s], predicates[p], entities[o], *format_ticks(np.array([b, e]), granularity))
        for s, p, o, b, e, _ in zip(*(c.tolist() for c in facts.columns()), strict=True)
    ]


def _distinct(facts: Facts) -> Ints:
    """The distinct ticks of facts."""
    if not len(facts):
        return np.empty(0, np.int64)
    low, high = int(facts.begin.min()), int(facts.end.max())
    if high - low >= 1 << 24:
        return np.union1d(facts.begin, facts.end)
    seen = np.zeros(high - low + 1, bool)  # much faster than sorting all facts
    for start in range(0, len(facts), _BLOCK):
        for ticks in (facts.begin, facts.end):
            seen[ticks[start : start + _BLOCK] - low] = True
    return np.flatnonzero(seen) + low


def repeats(facts: Facts) -> Bools:
    """Which facts stand already before them, with the same times as given."""
    repeated = np.zeros(len(facts), bool)
    ordered = _hash(facts)
    ordered.sort()
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    del ordered
    if not len(twice):
        return repeated
    key = _hash(facts)  # made again rather than kept: memory is dearer, and repeats are rare
    at = np.minimum(np.searchsorted(twice, key), len(twice) - 1)
    suspects = np.flatnonzero(twice[at] == key)
    # Keys can collide, so the suspects are compared column by column.
    columns = facts.take(suspects).columns()
    order = np.lexsort(columns)
    same = np.ones(len(order) - 1, bool)
    for column in columns:
        same &= column[order][1:] == column[order][:-1]
    # lexsort is stable: within a run of equal facts the first one read comes first.
    repeated[suspects[order[1:][same]]] = True
    return repeated


def _hash(facts: Facts) -> npt.NDArray[np.uint64]:
    """One number for each fact: equal for equal facts, nearly always different for others.

    Sorting these is several times faster than sorting six columns.
    """
    keys = np.empty(len(facts), np.uint64)
    for start in range(0, len(facts), _KEYS):
        rows = slice(start, start + _KEYS)
        key = np.zeros(len(keys[rows]), np.uint64)
        for column in facts.columns():
            key ^= column[rows].astype(np.int64).view(np.uint64)
            key *= _FACTOR
            key ^= key >> np.uint64(29)
        keys[rows] = key
    return keys
