"""Keyword arguments, for editors and type checkers; made by scripts/keywords.py.

What they mean is said where they are fields: `splime.Settings`, `splime.read`, and
`splime.evaluation.EvaluationOptions`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from splime.evaluation.protocols import Questions
from splime.evaluation.ranking import Ties
from splime.graph import SplitName
from splime.io.options import Duration, EndBeforeBegin, WithoutTime
from splime.leakage import LeakFilter
from splime.progress import Progress
from splime.settings import Past
from splime.splitting import HowToSplit
from splime.static import Aggregate
from splime.times import Granularity, When

class Reading(TypedDict, total=False):
    columns: Sequence[str | int] | None
    predicate_name: str | None
    header: bool | None
    query: str | None
    table: str | None
    encoding: str | None
    entities: str | Path | None
    predicates: str | Path | None
    times: str | Path | None
    granularity: Granularity | None
    origin: When | None
    time_format: str | None
    since: bool | None
    duration: Duration | None
    first: When | None
    last: When | None
    unknown_time: str | int | Sequence[str | int] | None
    missing_name: str | None
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
    learning_rate: float
    batch_size: int
    epochs: int
    validate_every: int
    patience: int
    valid_questions: int | None
    steps: int | None
    dropout: float | None
    precision: Literal["float32", "tf32"]
    past: Past | None
    messages: Literal["counted", "learned"]
    weights: str | None
    layers: int
    aggregation: Literal["sum", "mean"] | None
    reach: int | None
    relative: str
    begin_only: bool | None
    unknown_scopes: bool | None
    norm: int
    init: str
    levels: str | None
    reciprocal: bool
    both_ways: bool | None
    loss: str
    margin: float
    temperature: float
    weighting: Literal["fixed", "learned"]
    negatives: int
    share: Literal["batch", "none"]
    corrupt: Literal["both", "subject", "object"]
    avoid_known: bool
    l2: float
    n3: float
    smooth: float
    smooth_cubes: bool | None
    unit: Literal["penalty", "clip"] | None
    optimizer: Literal["adam", "adagrad", "sgd"]
    reduction: Literal["mean", "sum"]
    each: Literal["triple", "fact", "ends", "begin"]
    aggregate: Aggregate | None
    distinct: bool
    terms: str | None
    gadget: Literal["pairs", "recurrent"] | None
    variance: float | None
    gran: int | None
    static_share: float | None

class Training(TrialSettings, total=False):
    seed: int

class Evaluating(TypedDict, total=False):
    split: SplitName
    filter: LeakFilter | None
    distinct: bool | None
    aggregate: Aggregate | None
    ties: Ties | None
    bootstrap: int | None
    questions: Questions
    seed: int
    memory: int | None
    progress: Progress
