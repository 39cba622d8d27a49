"""Segmentations as JSON files: cuts, dates and counts, readable without splime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from splime.errors import DataError, SplimeError
from splime.io.files import written_beside
from splime.segmentation import Scopes, Segmentation
from splime.timeline import Timeline
from splime.times import check_granularity
from splime.vocabulary import Vocabulary

_FORMAT = 1


def save_segmentation(segmentation: Segmentation, path: str | Path) -> Path:
    """Write a segmentation to a JSON file."""
    path = Path(path)
    timeline = segmentation.timeline
    entities = segmentation.entities
    described = {
        "splime": "segmentation",
        "format": _FORMAT,
        "method": segmentation.method,
        "timeline": {
            "granularity": timeline.granularity,
            "starts": timeline.starts.tolist(),
            "ends": timeline.ends.tolist(),
        },
        "predicates": _scopes_to_json(segmentation.predicates),
        "entities": None if entities is None else _scopes_to_json(entities),
    }
    with written_beside(path) as beside:
        beside.write_text(
            json.dumps(described, ensure_ascii=False, default=lambda number: number.item()),
            encoding="utf-8",
        )
    return path


def load_segmentation(path: str | Path) -> Segmentation:
    """Read a segmentation back."""
    path = Path(path)
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as a segmentation: {error}") from None
    if not isinstance(described, dict) or described.get("splime") != "segmentation":
        raise DataError(f"{path}: not a segmentation that splime saved")
    if described.get("format") != _FORMAT:
        raise DataError(f"{path}: not a format that this version of splime reads")
    try:
        return _restore(described)
    except (SplimeError, KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise DataError(f"{path}: the segmentation is damaged: {error}") from None


def _restore(described: dict[str, Any]) -> Segmentation:
    about = described["timeline"]
    check_granularity(about["granularity"])
    starts, ends = (np.array(about[key], np.int64) for key in ("starts", "ends"))
    timeline = Timeline(about["granularity"], starts, ends)
    entities = described["entities"]
    return Segmentation(
        _scopes_from_json(described["predicates"], "predicate", timeline),
        None if entities is None else _scopes_from_json(entities, "entity", timeline),
        dict(described["method"]),
    )


def _scopes_to_json(scopes: Scopes) -> dict[str, Any]:
    """For each name its doubled cuts and, for each piece, facts and first and last timestamp."""
    found = {}
    for name, label in enumerate(scopes.names):
        cuts = scopes.cuts_of(name)
        start = int(scopes.starts[name])
        pieces = slice(start, start + len(cuts) + 1)
        found[label] = {
            "cuts": (cuts / 2).tolist(),
            "facts": scopes.facts[pieces].tolist(),
            "first": scopes.first[pieces].tolist(),
            "last": scopes.last[pieces].tolist(),
        }
    return found


def _scopes_from_json(described: dict[str, Any], kind: str, timeline: Timeline) -> Scopes:
    if not isinstance(described, dict):
        raise TypeError(f"expected the cuts of every {kind}")
    names = Vocabulary(list(described), kind=kind)
    own = [described[label] for label in names]
    cuts = [2 * np.array(entry["cuts"], np.float64) for entry in own]
    for one in cuts:
        # At the first timestamp a cut parts its instants from what goes on.
        inside = (one >= 0) & (one < 2 * len(timeline))
        if (one != np.rint(one)).any() or (np.diff(one) <= 0).any() or not inside.all():
            raise ValueError("cuts must ascend, inside of the timeline, at or between timestamps")
    columns = []
    for key, dtype in (("facts", np.int64), ("first", np.int32), ("last", np.int32)):
        parts = [np.array(entry[key], dtype) for entry in own]
        if any(len(part) != len(one) + 1 for part, one in zip(parts, cuts, strict=True)):
            raise ValueError(f"there must be one more of {key} than there are cuts")
        column = np.concatenate([np.empty(0, dtype), *parts])
        if key != "facts" and len(column) and not 0 <= column.min() <= column.max() < len(timeline):
            raise ValueError(f"{key} must be a timestamp")
        columns.append(column)
    facts, first, last = columns
    flat = np.concatenate([np.empty(0), *cuts]).astype(np.int64)
    offsets = np.cumsum([0, *map(len, cuts)])
    return Scopes(names, timeline, flat, offsets, facts, first, last)
