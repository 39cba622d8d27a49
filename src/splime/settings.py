"""Settings of models: everything that decides what a training gives, saved with the run.

Each kind of model has a class, so that a setting exists only where it has an effect. The options of
the command line, the keywords of editors and the tables of the documents are made from the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields
from typing import Any, Literal, Self

from splime.errors import UsageError, check_fields, check_kind, nearest
from splime.static import Aggregate

PREDICATE, TIME, PRODUCT = "predicate", "time", "product"
"""The levels that are no numbers."""
Past = Literal["train", "split", "all"]
PROTOCOL_OF = {"train": "train only", "split": "several steps", "all": "single step"}
"""What forecasts from these facts are called."""


def _setting(default: Any, help: str, **limits: float) -> Any:
    """A field with its help, and its limits: `least`, `above`, `below`."""
    return field(default=default, metadata={"help": help, **limits})


@dataclass(frozen=True, kw_only=True)
class BaseSettings:
    """The settings of every model."""

    model: str = _setting("complex", "the name of the model")
    seed: int = _setting(
        0,
        "the same seed gives the same result on the same machine, and the method random the same"
        " cuts",
        least=0,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        for own in fields(self):
            value = getattr(self, own.name)
            if value is not None:
                _check_limits(own, value)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of its settings, but for the model."""
        return tuple(one.name for one in fields(cls) if one.name != "model")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Settings from names and values, such as those of a file; an unknown name is an error."""
        for name in values:
            if name != "model":
                cls.check_name(name, values.get("model", "this model"))
        return cls(**values)

    @classmethod
    def check_name(cls, name: str, model: str) -> None:
        """An error unless there is such a setting, and it has an effect on the model."""
        if name in cls.names():
            return
        if name in ALL_SETTINGS:
            raise UsageError(f"{name} has no effect on {model}; leave it out")
        raise UsageError(f"there is no setting {name!r}.{nearest(name, ALL_SETTINGS)}")

    @classmethod
    def new_name(cls, name: str, value: Any) -> str:  # noqa: ARG003
        """What a setting of earlier versions is called now."""
        return name

    @classmethod
    def restore(cls, values: Mapping[str, Any]) -> Self:
        """Those of a run, which may keep some that have no effect: earlier versions allowed it."""
        values = {cls.new_name(name, value): value for name, value in values.items()}
        others = {*ALL_SETTINGS} - {*cls.names()}
        return cls.of({name: value for name, value in values.items() if name not in others})

    def values(self) -> dict[str, Any]:
        """Names and values, without those that are not set."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def default_aggregate(self) -> Aggregate:
        """How the scores of an interval become one by default."""
        return "mean"

    @property
    def forecasts(self) -> bool:
        """Whether questions are answered from the past alone."""
        return False

    @property
    def uses_time(self) -> bool:
        """Whether the time asked about counts, for a model without cuts."""
        return True

    @property
    def learns_predicates(self) -> bool:
        """Whether parameters belong to predicates, so that new ones are unknown."""
        return True

    @property
    def shares_times(self) -> bool:
        """Whether a predicate has a vector at any time, with facts then or without."""
        return False

    @property
    def validate_every(self) -> int:
        """Epochs between validations; what is not trained has a single one."""
        return 1

    @property
    def valid_questions(self) -> int | None:
        """Queries of valid that a validation ranks; None for all, unless there are very many."""
        return None

    @property
    def patience(self) -> int:
        """Validations without a better MRR before training stops early."""
        return 1


_MOST = 1 << 31
"""No size is as large; products of two are numbers that a tensor can have."""


def _check_limits(own: Field[Any], value: Any) -> None:
    limits, name = own.metadata, own.name
    if name != "seed" and isinstance(value, int) and value >= _MOST:
        raise UsageError(f"{name} must be less than {_MOST:,}, not {value:,}")
    least, above, below = (limits.get(key) for key in ("least", "above", "below"))
    if least == 1 and value < 1:
        raise UsageError(f"{name} must be at least 1, not {value}")
    if below is not None and not (least or 0) <= value < below:
        raise UsageError(f"{name} must be at least {least:g} and below {below:g}, not {value}")
    if least is not None and not least <= value < 2**63:
        raise UsageError(f"{name} must not be negative, or infinite: {value}")
    if above is not None and not above < value < 2**63:
        raise UsageError(f"{name} must be positive, and not infinite: {value}")


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(BaseSettings):
    """The settings of all models that are trained."""

    dimension: int = _setting(
        100,
        "length of the embeddings; complex models count complex numbers, the path model the width"
        " of its messages",
        least=1,
    )
    learning_rate: float = _setting(1e-3, "step size of the optimizer", above=0)
    batch_size: int = _setting(500, "positives in a batch", least=1)
    epochs: int = _setting(
        200,
        "maximum number of epochs; without effect if steps are set, as in the preset rotate",
        least=1,
    )
    validate_every: int = _setting(
        10,
        "epochs between validations, with one at the end; the best epoch is kept. 0 for none: then"
        " it is the last",
        least=0,
    )
    patience: int = _setting(
        5, "validations without a better MRR before training stops early", least=1
    )
    valid_questions: int | None = _setting(
        None, "queries of valid that a validation ranks, drawn at random. Default: all", least=1
    )


@dataclass(frozen=True, kw_only=True)
class SteppedSettings(TrainingSettings):
    """The settings of all models that splime trains."""

    steps: int | None = _setting(None, "most batches in all, instead of epochs", least=1)
    dropout: float | None = _setting(
        None,
        "dropout in training: path, of each layer; others, with sampled negatives, of the"
        " coordinates",
        least=0,
        below=1,
    )
    precision: Literal["float32", "tf32"] = _setting(
        "float32", "of matrix products; tf32 is faster on GPUs that have it"
    )


@dataclass(frozen=True, kw_only=True)
class Settings(SteppedSettings):
    """The settings of models with a vector for each entity.

    >>> Settings(model="transe", dimension=50).dimension
    50
    """

    norm: int = _setting(1, "norm of distance models, 1 or 2")
    init: str = _setting(
        "xavier_normal",
        "initialiser of the vectors: xavier_normal, xavier_uniform, small_normal or uniform; angles"
        " of RotatE are always uniform",
    )
    levels: str | None = _setting(
        None,
        "sum the vector of a scoped predicate over levels: predicate, time, product (of one of the"
        " predicate and one of the time), and numbers of neighbouring scopes that share a vector,"
        " such as predicate,8,1,time",
    )
    reciprocal: bool = _setting(
        False, "whether each predicate gets an inverse, so that the model only predicts objects"
    )
    both_ways: bool | None = _setting(
        None,
        "with reciprocal, score with the predicate and its inverse, and add both; negatives replace"
        " both sides then",
    )
    loss: str = _setting("self_adversarial", "the loss, see `splime models`")
    margin: float = _setting(
        3.0,
        "margin of the losses self_adversarial and margin; it also widens init uniform",
        least=0,
    )
    temperature: float = _setting(0.5, "how much self_adversarial prefers hard negatives", least=0)
    weighting: Literal["fixed", "learned"] = _setting(
        "fixed", "whether gradients of self_adversarial flow through the weights of negatives"
    )
    negatives: int = _setting(
        500,
        "sampled negatives of a positive (with reciprocal, of each of its two queries); the loss"
        " softmax takes all entities instead",
        least=1,
    )
    share: Literal["batch", "none"] = _setting(
        "batch", "whether the positives of a batch share a pool of negatives, or each draws others"
    )
    corrupt: Literal["both", "subject", "object"] = _setting(
        "both", "what negatives replace; with both, half of the samples each"
    )
    avoid_known: bool = _setting(
        False, "whether to leave out sampled negatives that are triples of train"
    )
    l2: float = _setting(0.0, "weight of the sum of squares of the embeddings of a batch", least=0)
    n3: float = _setting(0.0, "weight of the sum of cubes of the embeddings of a batch", least=0)
    smooth: float = _setting(
        0.0,
        "weight of the mean squared distance between neighbouring scopes of the same predicate",
        least=0,
    )
    smooth_cubes: bool | None = _setting(
        None, "whether smooth adds up cubes of the differences' sizes, instead of squares"
    )
    unit: Literal["penalty", "clip"] | None = _setting(
        None,
        "keep vectors no longer than 1: by a penalty max(0, |x|² - 1) of those of a batch, or by"
        " clipping those of entities after each step",
    )
    optimizer: Literal["adam", "adagrad", "sgd"] = _setting("adam", "adam, adagrad or sgd")
    reduction: Literal["mean", "sum"] = _setting("mean", "reduction of the losses of a batch")
    each: Literal["triple", "fact", "ends", "begin"] = _setting(
        "triple",
        "what an epoch iterates over: each triple; each fact (by one of its triples, drawn in each"
        " epoch); its begin and its end (ends), with separate predicates; or its begin alone",
    )
    aggregate: Aggregate | None = _setting(  # noqa: RUF009  # it is a field
        None,
        "how the scores of an interval become one, by default and in validation: mean (the"
        " default), ends, begin, max or sum",
    )
    distinct: bool = _setting(
        True,
        "whether repeated triples count once: those of train where each triple counts, and those of"
        " test by protocol triple",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
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

    @classmethod
    def new_name(cls, name: str, value: Any) -> str:
        """What a setting of earlier versions is called now."""
        return "weighting" if name == "weights" and value in ("fixed", "learned") else name

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
    def default_aggregate(self) -> Aggregate:
        """How intervals are asked about: as they were trained on, unless `aggregate` is set."""
        by_training: dict[str, Aggregate] = {"ends": "ends", "begin": "begin"}
        return self.aggregate or by_training.get(self.each, "mean")


@dataclass(frozen=True, kw_only=True)
class DiachronicSettings(Settings):
    """Those of DE-TransE, DE-DistMult and DE-SimplE."""

    static_share: float | None = _setting(
        None,
        "de-*: the share of an entity's coordinates that do not change in time",
        least=0,
        below=1,
    )


@dataclass(frozen=True, kw_only=True)
class ATiSESettings(Settings):
    """Those of ATiSE."""

    variance: float | None = _setting(
        None, "atise: the least variance; the greatest is 100 times as much", above=0
    )
    gran: int | None = _setting(
        None, "atise: timestamps in one step of its time. Default: 1", least=1
    )


@dataclass(frozen=True, kw_only=True)
class TIMEPLEXSettings(Settings):
    """Those of TIMEPLEX."""

    terms: str | None = _setting(
        None, "timeplex: weights of subject and time, time and object, and all three, such as 5,5,0"
    )
    gadget: Literal["pairs", "recurrent"] | None = _setting(
        None,
        "timeplex: scores from the times of an entity's other facts, learned in the last 5 epochs,"
        " with frozen vectors: pairs of facts of one entity, or recurrent triples",
    )


@dataclass(frozen=True, kw_only=True)
class LatestSettings(BaseSettings):
    """Those of models that read facts to answer."""

    past: Past | None = _setting(  # noqa: RUF009  # it is a field
        None,
        "path, latest, recurrency: forecast from facts that begin before the time of the question:"
        " those of train, all (single step), or all before the first one of its split (several"
        " steps)",
    )

    @property
    def forecasts(self) -> bool:
        """Whether questions are answered from the past alone."""
        return self.past is not None


@dataclass(frozen=True, kw_only=True)
class PathSettings(LatestSettings, SteppedSettings):
    """Those of the path model."""

    messages: Literal["counted", "learned"] = _setting(
        "learned",
        "path: messages come from counts of the graph, so that the model fits any graph (counted,"
        " the default), or from parameters of each predicate (learned, the default with other"
        " relative scopes or forecasts)",
    )
    weights: str | None = _setting(
        None,
        "path, counted: the version of the shipped weights to start from, or none. Default: the"
        " latest, if layers and dimension fit",
    )
    layers: int = _setting(4, "path: most facts in a chain", least=1)
    aggregation: Literal["sum", "mean"] | None = _setting(
        None, "path: whether the messages at an entity are summed or averaged"
    )
    reach: int | None = _setting(
        None,
        "path: most facts that a question reads, the nearest in steps, then in time. Default: all",
        least=1,
    )
    relative: str = _setting(
        "auto",
        "path: scopes relative to the time of the question: auto, none (time does not count),"
        " events or intervals, optionally with the first distance of each scope, such as"
        " events:1,2,4,8",
    )
    begin_only: bool | None = _setting(
        None, "path: whether only the begin of the question's time counts, not its end"
    )
    unknown_scopes: bool | None = _setting(
        None, "path: whether facts with an unknown begin or end have separate scopes"
    )

    def values(self) -> dict[str, Any]:
        """Without the source of messages where it is that of earlier versions."""
        learned = self.messages == "learned"
        return {
            name: value
            for name, value in super().values().items()
            if not (learned and name == "messages")
        }

    @property
    def learns_predicates(self) -> bool:
        """Not where messages are counted."""
        return self.messages == "learned"

    @property
    def uses_time(self) -> bool:
        """Not where all facts have the same scope."""
        return self.relative != "none"


@dataclass(frozen=True, kw_only=True)
class PykeenSettings(TrainingSettings):
    """Those of PyKEEN's models."""

    epochs: int = _setting(100, "number of epochs", least=1)
    batch_size: int = _setting(256, "most positives in a batch", least=1)
    negatives: int = _setting(32, "sampled negatives of a positive", least=1)
    distinct: bool = _setting(True, "whether repeated triples count once")
    validate_every: int = _setting(0, "epochs between validations; 0 for none", least=0)

    def values(self) -> dict[str, Any]:
        """Without those of validation where there is none: runs made before did not have them."""
        names = () if self.validate_every else ("validate_every", "patience")
        return {name: value for name, value in super().values().items() if name not in names}


@dataclass(frozen=True, kw_only=True)
class CombinedSettings(LatestSettings):
    """Those of a combination, which is not trained: the weights of its members."""

    weights: list[float] = field(default_factory=list, metadata={"help": "of the members"})

    def __post_init__(self) -> None:
        super().__post_init__()
        for weight in self.weights:
            check_kind("a weight", weight, float)
            if not 0 <= weight <= 1:
                raise UsageError(f"a weight is from 0 to 1, not {weight}")


_CLASSES = (Settings, DiachronicSettings, ATiSESettings, TIMEPLEXSettings, PathSettings)
ALL_SETTINGS: Mapping[str, tuple[type[BaseSettings], Field[Any]]] = {
    one.name: (kind, one)
    for kind in reversed(_CLASSES)
    for one in fields(kind)
    if one.name != "model"
}
"""Every setting of splime's own models: a class that has it, and its field."""
