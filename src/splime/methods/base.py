"""The base class of methods: parameters and a way to choose cuts; and the method without cuts."""

# ruff: noqa: RUF009 - `parameter` returns a field

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from splime.axes import Axis
from splime.counts import Counts
from splime.errors import UsageError, check_fields, check_name
from splime.graph import Facts, Ids, TemporalGraph
from splime.progress import Progress, silent
from splime.segmentation import Scopes, Segmentation
from splime.static import StaticGraph, apply
from splime.times import Ints
from splime.vocabulary import Vocabulary

Target: TypeAlias = Literal["predicates", "entities", "both"]
FitOn: TypeAlias = Literal["train", "all"]
CHOOSING = "choosing cuts"
"""The name of a method's progress bar."""
PREDICATES = "final number of predicates (or entities) with facts"


def parameter(default: Any, help: str, least: float | None = None) -> Any:
    """A field of a method, with its help text and the least value that makes sense."""
    return field(default=default, metadata={"help": help, "least": least})


@dataclass(frozen=True)
class FitInput:
    """What a method chooses cuts from: facts, each with the source (predicate or entity) to cut."""

    counts: Counts
    sources: Ids
    begin: Ids
    end: Ids
    subject: Ids
    object: Ids


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way to choose cuts: `fit` gives the segmentation, `fit_transform` the static graph.

    The fields are its parameters with their help; the options of the command line come from them.
    """

    target: Target = parameter("predicates", "what is cut: predicates, entities or both")
    fit_on: FitOn = parameter("train", "facts that decide the cuts: train, or all as in the paper")

    name: ClassVar[str]
    """The name on the command line and in plans."""
    standard: ClassVar[Mapping[str, Any]] = {}
    """Moderate parameters, used when only the name is given."""
    search: ClassVar[Mapping[str, Axis]] = {}
    """The search space of the parameters."""
    one_of: ClassVar[tuple[str, ...]] = ()
    """Parameters of which exactly one is given: they decide how many cuts there are."""
    needs_facts: ClassVar[bool] = False
    """Whether the method needs the facts themselves, not only their counts."""

    def __post_init__(self) -> None:
        check_fields(self)
        for one in fields(self):
            least, value = one.metadata.get("least"), getattr(self, one.name)
            if least is not None and value is not None and not value >= least:
                raise UsageError(f"{one.name} must be at least {least}, not {value}")
        if self.one_of and sum(getattr(self, name) is not None for name in self.one_of) != 1:
            *others, last = self.one_of
            raise UsageError(f"{type(self).__name__} needs one of {', '.join(others)} and {last}")

    @abstractmethod
    def choose(self, data: FitInput, *, progress: Progress = silent) -> list[Ints]:
        """The doubled cuts of every source."""

    def fit(self, graph: TemporalGraph, *, progress: Progress = silent) -> Segmentation:
        """Choose the cuts for a graph."""
        facts = self.facts(graph)
        if not len(facts):
            raise UsageError("there are no facts to fit on")
        data = _fit_input(facts, facts.predicate, graph, graph.predicates)
        if self.target == "entities":
            cuts = [np.empty(0, np.int64)] * len(graph.predicates)
        else:
            cuts = self.choose(data, progress=progress)
        predicates = Scopes.of(graph.predicates, graph.timeline, cuts, data.counts)
        entities = None
        if self.target != "predicates":
            data = _by_entity(facts, graph)
            cuts = self.choose(data, progress=progress)
            entities = Scopes.of(graph.entities, graph.timeline, cuts, data.counts)
        return Segmentation(predicates, entities, self.parameters())

    def fit_transform(self, graph: TemporalGraph, *, progress: Progress = silent) -> StaticGraph:
        """Choose the cuts, and apply them to all splits."""
        return apply(self.fit(graph, progress=progress), graph)

    def facts(self, graph: TemporalGraph) -> Facts:
        """The facts that decide the cuts."""
        return graph.train if self.fit_on == "train" else graph.facts()

    def parameters(self) -> dict[str, object]:
        """The class of the method and its parameters, as segmentations store them."""
        return {"method": type(self).__name__, **asdict(self)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, as `sklearn.base.clone` and scikit-learn's searches expect them.

        >>> from splime.methods import Split
        >>> Split(grow=5).set_params(grow=2).get_params()["grow"]
        2
        """
        return asdict(self)

    def set_params(self, **parameters: Any) -> Self:
        """A copy with other parameters; this method does not change."""
        known = self.get_params()
        for name in parameters:
            check_name("parameter", name, known)
        return type(self)(**{**known, **parameters})

    def changed(self) -> dict[str, object]:
        """The parameters that differ from their defaults.

        >>> from splime.methods import Split
        >>> Split(grow=5, by="time").changed()
        {'grow': 5}
        """
        values = [(field, getattr(self, field.name)) for field in fields(self)]
        return {field.name: value for field, value in values if value != field.default}


@dataclass(frozen=True, kw_only=True)
class Vanilla(Method):
    """The baseline of the paper: predicates stay as they are, time is lost."""

    name = "vanilla"

    def choose(self, data: FitInput, *, progress: Progress = silent) -> list[Ints]:
        """No cuts for any source."""
        return [np.empty(0, np.int64)] * len(data.counts.totals)


def _fit_input(facts: Facts, sources: Ids, graph: TemporalGraph, names: Vocabulary) -> FitInput:
    begin, end = graph.timestamps(facts)
    counts = Counts.of(sources, begin, end, len(names), len(graph.timeline))
    return FitInput(counts, sources, begin, end, facts.subject, facts.object)


def _by_entity(facts: Facts, graph: TemporalGraph) -> FitInput:
    """Every fact under its subject and under its object; once, where they are the same."""
    other = np.flatnonzero(facts.subject != facts.object)
    rows = np.concatenate([np.arange(len(facts)), other])
    sources = np.concatenate([facts.subject, facts.object[other]])
    return _fit_input(facts.take(rows), sources, graph, graph.entities)
