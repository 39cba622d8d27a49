"""What every method is: parameters and a way to choose cuts; and the method that chooses none."""

# ruff: noqa: RUF009 - what `parameter` gives is a field

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from splime.axes import Axis
from splime.counts import Counts
from splime.errors import UsageError, check_fields, check_name, checked
from splime.graph import Facts, Ids, TemporalGraph
from splime.progress import Progress, silent
from splime.segmentation import Scopes, Segmentation
from splime.static import StaticGraph, apply
from splime.times import Ints
from splime.vocabulary import Vocabulary

Target: TypeAlias = Literal["predicates", "entities", "both"]
FitOn: TypeAlias = Literal["train", "all"]
CHOOSING = "choosing cuts"
"""What progress bars of methods are called."""
PREDICATES = "how many predicates (or entities) with facts to end with"


def parameter(default: Any, help: str) -> Any:
    """A field of a method, with what it means."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Known:
    """What a method may use: facts, each under the source (predicate or entity) to cut."""

    counts: Counts
    sources: Ids
    begin: Ids
    end: Ids
    subject: Ids
    object: Ids


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way to choose cuts: `fit` gives the segmentation, `fit_transform` the static graph.

    The fields are its parameters, with what they mean; the command line is made from them.
    """

    target: Target = parameter("predicates", "what is cut: predicates, entities or both")
    fit_on: FitOn = parameter("train", "whose facts decide the cuts: train, or all as in the paper")

    name: ClassVar[str]
    """The name on the command line and in plans."""
    standard: ClassVar[Mapping[str, Any]] = {}
    """Moderate parameters, for when nobody gives any."""
    search: ClassVar[Mapping[str, Axis]] = {}
    """What a search tries for the parameters."""
    one_of: ClassVar[tuple[str, ...]] = ()
    """Parameters of which exactly one is given: they say how far the method goes."""
    needs_facts: ClassVar[bool] = False
    """Whether counts are not enough to choose the cuts."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.one_of and sum(getattr(self, name) is not None for name in self.one_of) != 1:
            *others, last = self.one_of
            raise UsageError(f"{type(self).__name__} needs one of {', '.join(others)} and {last}")

    @abstractmethod
    def choose(self, known: Known, *, progress: Progress = silent) -> list[Ints]:
        """The doubled cuts of every source."""

    @checked
    def fit(self, graph: TemporalGraph, *, progress: Progress = silent) -> Segmentation:
        """Choose the cuts for a graph."""
        facts = self.facts(graph)
        if not len(facts):
            raise UsageError("there are no facts to fit on")
        known = _known(facts, facts.predicate, graph, graph.predicates)
        if self.target == "entities":
            cuts = [np.empty(0, np.int64)] * len(graph.predicates)
        else:
            cuts = self.choose(known, progress=progress)
        predicates = Scopes.of(graph.predicates, graph.timeline, cuts, known.counts)
        entities = None
        if self.target != "predicates":
            known = _by_entity(facts, graph)
            cuts = self.choose(known, progress=progress)
            entities = Scopes.of(graph.entities, graph.timeline, cuts, known.counts)
        return Segmentation(predicates, entities, self.parameters())

    @checked
    def fit_transform(self, graph: TemporalGraph, *, progress: Progress = silent) -> StaticGraph:
        """Choose the cuts, and apply them to all splits."""
        return apply(self.fit(graph, progress=progress), graph)

    def facts(self, graph: TemporalGraph) -> Facts:
        """The facts that decide."""
        return graph.train if self.fit_on == "train" else graph.facts()

    def parameters(self) -> dict[str, object]:
        """The class of the method and its parameters, as segmentations remember them."""
        return {"method": type(self).__name__, **asdict(self)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """The parameters, as `sklearn.base.clone` and searches of scikit-learn want them.

        >>> from splime.methods import Split
        >>> Split(grow=5).set_params(grow=2).get_params()["grow"]
        2
        """
        return asdict(self)

    def set_params(self, **parameters: Any) -> Self:
        """A method with other parameters; this one stays as it is."""
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
        values = [(each, getattr(self, each.name)) for each in fields(self)]
        return {each.name: value for each, value in values if value != each.default}


@dataclass(frozen=True, kw_only=True)
class Vanilla(Method):
    """The baseline of the paper: predicates stay as they are, time is lost."""

    name = "vanilla"

    def choose(self, known: Known, *, progress: Progress = silent) -> list[Ints]:  # noqa: ARG002
        """No cuts for any source."""
        return [np.empty(0, np.int64)] * len(known.counts.totals)


def _known(facts: Facts, sources: Ids, graph: TemporalGraph, names: Vocabulary) -> Known:
    begin, end = graph.timestamps(facts)
    counts = Counts.of(sources, begin, end, len(names), len(graph.timeline))
    return Known(counts, sources, begin, end, facts.subject, facts.object)


def _by_entity(facts: Facts, graph: TemporalGraph) -> Known:
    """Every fact under its subject and under its object; once, where they are the same."""
    other = np.flatnonzero(facts.subject != facts.object)
    rows = np.concatenate([np.arange(len(facts)), other])
    sources = np.concatenate([facts.subject, facts.object[other]])
    return _known(facts.take(rows), sources, graph, graph.entities)
