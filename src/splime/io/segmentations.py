"""Segmentations as JSON files: cuts, dates and counts, readable without splime."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from splime.errors import DataError, SplimeError
from splime.io.files import LARGE, atomic_write, read_json
from splime.segmentation import Scopes, Segmentation
from splime.timeline import Timeline
from splime.times import Granularity
from splime.vocabulary import Vocabulary

_FORMAT = 1


@dataclass(frozen=True)
class _Ticks:
    granularity: Granularity
    starts: list[int]
    ends: list[int]


@dataclass(frozen=True)
class _Cuts:
    """The cuts of a name; and for each scope its facts, first and last timestamp."""

    cuts: list[float]
    facts: list[int]
    first: list[int]
    last: list[int]


@dataclass(frozen=True)
class _Description:
    """What is in the file."""

    splime: Literal["segmentation"]
    format: int
    method: dict[str, Any]
    timeline: _Ticks
    predicates: dict[str, _Cuts]
    entities: dict[str, _Cuts] | None
    sha256: str | None = None
    """Of all the rest; older files do not have it."""


def save_segmentation(segmentation: Segmentation, path: str | Path) -> Path:
    """Write a segmentation to a JSON file.

    >>> import splime, tempfile
    >>> cuts = splime.Split(grow=5).fit(splime.load("demo"))
    >>> with tempfile.TemporaryDirectory() as here:
    ...     load_segmentation(save_segmentation(cuts, f"{here}/cuts.json")) == cuts
    True
    """
    path = Path(path)
    timeline, entities = segmentation.timeline, segmentation.entities
    ticks = _Ticks(timeline.granularity, timeline.starts.tolist(), timeline.ends.tolist())
    predicates = _describe(segmentation.predicates)
    scopes = None if entities is None else _describe(entities)
    about = _Description("segmentation", _FORMAT, segmentation.method, ticks, predicates, scopes)
    plain = msgspec.to_builtins(about, enc_hook=lambda number: number.item())
    plain["sha256"] = _checksum(plain)
    with atomic_write(path) as beside:
        beside.write_text(json.dumps(plain, ensure_ascii=False), encoding="utf-8")
    return path


def load_segmentation(path: str | Path) -> Segmentation:
    """Read a segmentation back."""
    path = Path(path)
    about = read_json(path, LARGE)
    if about.get("splime") != "segmentation" or about.get("format") != _FORMAT:
        raise DataError(f"{path}: not a segmentation that this version of splime reads")
    if about.get("sha256") not in (None, _checksum(about)):
        raise DataError(
            f"{path}: the segmentation is damaged (its checksum differs); if it was"
            " changed on purpose, remove sha256 from it"
        )
    try:
        description = msgspec.convert(about, _Description)
        ticks = description.timeline
        starts, ends = (np.array(column, np.int64) for column in (ticks.starts, ticks.ends))
        timeline = Timeline(ticks.granularity, starts, ends)
        predicates = _restore(description.predicates, "predicate", timeline)
        entities = description.entities
        scopes = None if entities is None else _restore(entities, "entity", timeline)
    except (SplimeError, ValueError, OverflowError) as error:
        raise DataError(f"{path}: the segmentation is damaged: {error}") from None
    return Segmentation(predicates, scopes, description.method)


def _checksum(about: dict[str, Any]) -> str:
    rest = {key: value for key, value in about.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _describe(scopes: Scopes) -> dict[str, _Cuts]:
    described = {}
    for name, label in enumerate(scopes.names):
        rows = slice(scopes.of_name(name).start, scopes.of_name(name).stop)
        columns = (column[rows].tolist() for column in (scopes.facts, scopes.first, scopes.last))
        described[label] = _Cuts((scopes.cuts_of(name) / 2).tolist(), *columns)
    return described


def _restore(described: dict[str, _Cuts], kind: str, timeline: Timeline) -> Scopes:
    names = Vocabulary(list(described), kind=kind)
    cuts = [described[label] for label in names]
    for one in cuts:
        if not len(one.cuts) + 1 == len(one.facts) == len(one.first) == len(one.last):
            raise ValueError("there must be one more of facts, first and last than of cuts")
    doubled, facts, first, last = (
        np.array([*chain.from_iterable(getattr(one, key) for one in cuts)], dtype)
        for key, dtype in (("cuts", float), ("facts", int), ("first", np.int32), ("last", np.int32))
    )
    doubled *= 2
    for column in (first, last):
        if len(column) and not 0 <= column.min() <= column.max() < len(timeline):
            raise ValueError("first and last must be timestamps")
    offsets = np.cumsum([0, *(len(one.cuts) for one in cuts)])
    sources = np.repeat(np.arange(len(names)), np.diff(offsets))
    # At the first timestamp a cut parts its instants from what holds longer.
    inside = (doubled >= 0) & (doubled < 2 * len(timeline))
    ascend = np.diff(sources * 2 * len(timeline) + doubled) > 0
    if not inside.all() or not ascend.all() or (doubled != np.rint(doubled)).any():
        raise ValueError("cuts must ascend, inside of the timeline, at or between timestamps")
    return Scopes(names, timeline, doubled.astype(np.int64), offsets, facts, first, last)
