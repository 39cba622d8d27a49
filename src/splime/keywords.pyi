"""Keyword arguments, for editors and type checkers; made by scripts/keywords.py.

What they mean is said where they are fields: `splime.Settings`, and `splime.read`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from splime.io.options import EndBeforeBegin, WithoutTime
from splime.splitting import HowToSplit
from splime.static import Aggregate
from splime.times import Granularity, When

class Reading(TypedDict, total=False):
    columns: Sequence[str | int] | None
    header: bool | None
    entities: str | Path | None
    predicates: str | Path | None
    times: str | Path | None
    granularity: Granularity | None
    origin: When | None
    first: When | None
    last: When | None
    unknown_time: str | int | None
    without_time: WithoutTime | None
    end_before_begin: EndBeforeBegin | None
    keep_duplicates: bool | None
    allow_loss: bool | None
    split: HowToSplit | None
    valid: float | None
    test: float | None
    seed: int | None
    allow_unseen: bool | None
    bucket: int | None
    bucket_on: Literal["train", "all"] | None
    name: str

class TrialSettings(TypedDict, total=False):
    dimension: int
    norm: int
    init: str
    levels: str | None
    reciprocal: bool
    both_ways: bool | None
    loss: str
    margin: float
    temperature: float
    weights: Literal["fixed", "learned"]
    negatives: int
    share: Literal["batch", "none"]
    corrupt: Literal["both", "subject", "object"]
    avoid_known: bool
    l2: float
    n3: float
    smooth: float
    smooth_cubes: bool | None
    unit: Literal["penalty", "clip"] | None
    static_share: float | None
    variance: float | None
    gran: int | None
    terms: str | None
    gadget: Literal["pairs", "recurrent"] | None
    optimizer: Literal["adam", "adagrad", "sgd"]
    learning_rate: float
    reduction: Literal["mean", "sum"]
    batch_size: int
    epochs: int
    steps: int | None
    each: Literal["triple", "fact", "ends", "begin"]
    aggregate: Aggregate | None
    distinct: bool
    validate_every: int
    patience: int
    layers: int | None
    dropout: float | None
    aggregation: Literal["sum", "mean"] | None
    reach: int | None
    relative: str | None
    begin_only: bool | None
    unknown_scopes: bool | None
    past: Literal["train", "all"] | None
    precision: Literal["float32", "tf32"]

class Training(TrialSettings, total=False):
    seed: int
