"""Everything that decides what a training gives, in one flat record that is saved with the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from splime.errors import UsageError, check_fields, nearest
from splime.static import Aggregate

PREDICATE, TIME, PRODUCT = "predicate", "time", "product"
"""The levels that are no numbers."""


def _setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a training; the command line is made from the fields.

    >>> Settings(model="transe", dimension=50).dimension
    50
    """

    model: str = _setting("complex", "the static model")
    dimension: int = _setting(100, "length of the embeddings; complex models count complex numbers")
    norm: int = _setting(
        1,
        "norm of the distances of transe, rotate, ttranse, hyte, ta-transe, de-transe and tdg2e, 1"
        " or 2",
    )
    init: str = _setting(
        "xavier_normal",
        "what vectors begin with: xavier_normal, xavier_uniform, small_normal or uniform; angles of"
        " RotatE begin anywhere",
    )
    levels: str | None = _setting(
        None,
        "sum the vector of a scoped predicate over levels: predicate, time, product (of one of the"
        " predicate and one of the time), and numbers of neighbouring scopes that share a vector,"
        " such as predicate,8,1,time",
    )
    reciprocal: bool = _setting(
        False, "whether each predicate gets an inverse, so that only objects are asked for"
    )
    both_ways: bool | None = _setting(
        None,
        "with reciprocal, whether a question is asked both ways and the scores are added; negatives"
        " replace both sides then",
    )
    loss: str = _setting("self_adversarial", "the loss, see `splime models`")
    margin: float = _setting(
        3.0, "margin of the losses self_adversarial and margin; it also widens init uniform"
    )
    temperature: float = _setting(0.5, "how much self_adversarial prefers hard negatives")
    weights: Literal["fixed", "learned"] = _setting(
        "fixed", "whether gradients of self_adversarial flow through the weights of negatives"
    )
    negatives: int = _setting(
        500,
        "how many sampled negatives a positive is compared with (with reciprocal, each of its two"
        " queries); the loss softmax takes all entities instead",
    )
    share: Literal["batch", "none"] = _setting(
        "batch", "whether the positives of a batch share a pool of negatives, or have their own"
    )
    corrupt: Literal["both", "subject", "object"] = _setting(
        "both", "what negatives replace; with both, half of those that are sampled each"
    )
    avoid_known: bool = _setting(
        False, "whether sampled negatives that are triples of train are left out"
    )
    l2: float = _setting(0.0, "weight of the sum of squares of the embeddings of a batch")
    n3: float = _setting(0.0, "weight of the sum of cubes of the embeddings of a batch")
    smooth: float = _setting(
        0.0, "weight of the mean squared distance between neighbouring scopes of the same predicate"
    )
    smooth_cubes: bool | None = _setting(
        None, "whether smooth adds up cubes of the differences' sizes, instead of squares"
    )
    unit: Literal["penalty", "clip"] | None = _setting(
        None,
        "keep vectors no longer than 1: by a penalty max(0, |x|² - 1) of those of a batch, or by"
        " clipping those of entities after each step",
    )
    static_share: float | None = _setting(
        None, "de-*: the share of an entity's coordinates that do not change in time"
    )
    variance: float | None = _setting(
        None, "atise: the least variance; the most is 100 times as much"
    )
    gran: int | None = _setting(
        None, "atise: how many timestamps are one step of its time; by default one"
    )
    terms: str | None = _setting(
        None, "timeplex: weights of subject and time, time and object, and all three, such as 5,5,0"
    )
    gadget: Literal["pairs", "recurrent"] | None = _setting(
        None,
        "timeplex: what the times of other facts speak for, learned in the last 5 epochs, in which"
        " the vectors stay: pairs of facts of one entity, or recurrent triples",
    )
    optimizer: Literal["adam", "adagrad", "sgd"] = _setting("adam", "adam, adagrad or sgd")
    learning_rate: float = _setting(1e-3, "step size of the optimizer")
    reduction: Literal["mean", "sum"] = _setting(
        "mean", "whether a batch counts with the mean or the sum of its losses"
    )
    batch_size: int = _setting(500, "most positives in a batch")
    epochs: int = _setting(
        200, "maximum number of epochs; without effect if steps are set, as in the preset rotate"
    )
    steps: int | None = _setting(None, "most batches in all, instead of epochs")
    each: Literal["triple", "fact", "ends", "begin"] = _setting(
        "triple",
        "what counts once in an epoch: each triple; each fact (by one of its triples, drawn in each"
        " epoch); its begin and its end (ends), with predicates of their own; or its begin alone",
    )
    aggregate: Aggregate | None = _setting(  # noqa: RUF009  # it is a field
        None,
        "how the scores of an interval become one, in validation and where nothing else is asked"
        " for: mean (the default), ends, begin, max or sum",
    )
    distinct: bool = _setting(
        True,
        "whether repeated triples count once: those of train where each triple counts, and those of"
        " test by protocol triple",
    )
    validate_every: int = _setting(
        10,
        "epochs between validations, with one at the end; the best epoch is kept. 0 for none: then"
        " it is the last",
    )
    patience: int = _setting(5, "validations without a better MRR before training stops early")
    layers: int | None = _setting(None, "path: how many facts a chain may have at most")
    dropout: float | None = _setting(
        None,
        "the share that is dropped in training: path, of each layer; others, with sampled"
        " negatives, of the coordinates",
    )
    aggregation: Literal["sum", "mean"] | None = _setting(
        None, "path: whether messages that arrive at an entity are summed, or averaged"
    )
    reach: int | None = _setting(
        None,
        "path: how many facts are read for a question at most: those nearest in steps, then in"
        " time; all if left out",
    )
    relative: str | None = _setting(
        None,
        "path: scopes relative to the time asked about: auto, none (time does not count), events or"
        " intervals, perhaps with the first distance of each scope, such as events:1,2,4,8",
    )
    begin_only: bool | None = _setting(
        None, "path: whether only the begin of the time asked about counts, not its end"
    )
    unknown_scopes: bool | None = _setting(
        None, "path: whether facts with an unknown begin or end have scopes of their own"
    )
    past: Literal["train", "all"] | None = _setting(
        None,
        "path, latest: forecast, from facts that begin before the time asked about: those of train,"
        " or all",
    )
    precision: Literal["float32", "tf32"] = _setting(
        "float32", "of matrix products; tf32 is faster on GPUs that have it"
    )
    seed: int = _setting(
        0,
        "the same seed gives the same embeddings on the same machine, and the method random the"
        " same cuts",
    )

    def __post_init__(self) -> None:
        check_fields(self)
        counts = ("dimension", "negatives", "batch_size", "epochs", "patience", "steps")
        for name in (*counts, "layers", "reach", "gran"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name} must be at least 1, not {value}")
        for name in ("margin", "temperature", "l2", "n3", "smooth", "validate_every", "seed"):
            if not 0 <= getattr(self, name) < 2**63:
                raise UsageError(f"{name} must not be negative, or infinite: {getattr(self, name)}")
        for name in ("dropout", "static_share"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise UsageError(f"{name} must be at least 0 and below 1, not {value}")
        if self.variance is not None and not 0 < self.variance < 2**63:
            raise UsageError(f"variance must be positive, and not infinite: {self.variance}")
        if not 0 < self.learning_rate < 2**63:
            raise UsageError(
                f"learning_rate must be positive, and not infinite: {self.learning_rate}"
            )
        names = self.level_names
        for level in names:
            if level not in (PREDICATE, TIME, PRODUCT) and not (level.isdecimal() and int(level)):
                raise UsageError(
                    "levels are predicate, time, product, or numbers of neighbouring scopes from 1"
                    f" on, such as predicate,8,1,time; not {level!r}"
                )
            if names.count(level) > 1:
                raise UsageError(f"levels names {level} twice")
        if self.both_ways and not self.reciprocal:
            raise UsageError("both_ways needs reciprocal predicates (--reciprocal)")
        if self.reciprocal and self.corrupt != "both":
            raise UsageError("with reciprocal predicates both sides are corrupted; leave corrupt")
        if self.corrupts_both and self.negatives < 2:
            raise UsageError("negatives must be at least 2 where both sides are corrupted")

    @property
    def level_names(self) -> list[str]:
        """The levels, one by one."""
        return [] if self.levels is None else [each.strip() for each in self.levels.split(",")]

    @property
    def shares_times(self) -> bool:
        """Whether levels give a predicate a vector at any time, with facts then or without."""
        of_times = set(self.level_names) - {PREDICATE}
        return bool(of_times) and of_times <= {TIME, PRODUCT}

    @property
    def corrupts_both(self) -> bool:
        """Whether half of the negatives replace the subject."""
        return self.corrupt == "both" and (not self.reciprocal or bool(self.both_ways))

    @property
    def asked(self) -> Aggregate:
        """How intervals are asked about: as they were trained on, unless `aggregate` is set."""
        by_training: dict[str, Aggregate] = {"ends": "ends", "begin": "begin"}
        return self.aggregate or by_training.get(self.each, "mean")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Settings:
        """Settings from names and values, such as those of a file; an unknown name is an error."""
        known = [one.name for one in fields(cls)]
        for name in values:
            if name not in known:
                raise UsageError(f"there is no setting {name!r}.{nearest(name, known)}")
        return cls(**values)

    def values(self) -> dict[str, Any]:
        """Names and values, without those that are not set."""
        return {name: value for name, value in asdict(self).items() if value is not None}


SETTINGS = tuple(one.name for one in fields(Settings) if one.name != "model")
"""The names of what can be set beside the model."""
OF_PATHS = tuple(one.name for one in fields(Settings) if one.metadata["help"].startswith("path"))
"""Those that the path model has, and factor models do not; their help says so."""
