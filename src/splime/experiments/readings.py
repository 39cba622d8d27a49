"""The ways in which cases read the facts of a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from splime.datasets import load
from splime.datasets.registry import DATASETS
from splime.graph import END_UNKNOWN, SPLITS, SplitName, TemporalGraph

Reading: TypeAlias = Literal["paper", "fact", "point", "years", "ended", "ended-test"]

_FACT: Mapping[str, Any] = {"end_before_begin": "repair", "bucket_on": "train"}
READINGS: Mapping[Reading, Mapping[str, Any]] = {
    # As behind the paper's figures: the datasets' own rules, buckets from all splits.
    "paper": {},
    # Protocol `fact`: every fact of valid and test is asked for, and time is learned from train.
    "fact": _FACT,
    # The same, but a fact with an unknown end holds only at the time that is known of it.
    "point": {**_FACT, "first": "end", "last": "begin"},
    # As in the paper, but every year is a timestamp.
    "years": {"bucket": None},
    # As in the paper, without facts whose end is unknown: nowhere, or not in valid and test.
    "ended": {},
    "ended-test": {},
}
_ENDED: Mapping[Reading, tuple[SplitName, ...]] = {"ended": SPLITS, "ended-test": ("valid", "test")}


def load_graph(dataset: str, reading: Reading, data: Path | None = None) -> TemporalGraph:
    """A dataset, read in one of the ways; from a file of `data` where the dataset is not at hand.

    The files are called DATASET-READING.parquet; one is enough for readings that only leave out.
    """
    if data is not None:
        saved = "paper" if reading in _ENDED else reading
        graph = load(str(data / f"{dataset}-{saved}.parquet"))
    else:
        options = dict(READINGS[reading])
        if "bucket" not in DATASETS[dataset].options:
            options.pop("bucket_on", None)
        graph = load(dataset, **options)
    for split in _ENDED.get(reading, ()):
        facts = getattr(graph, split)
        ended = facts.take((facts.unknown & END_UNKNOWN) == 0)
        graph = replace(graph, **{split: ended})
    return graph.compact() if reading in _ENDED else graph
