"""What every method is: parameters, and a way to choose cuts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from splime.counts import Counts
from splime.errors import UsageError
from splime.graph import Facts, Ids, TemporalGraph
from splime.segmentation import Scopes, Segmentation
from splime.static import StaticGraph, apply
from splime.times import Ints
from splime.vocabulary import Vocabulary

Target: TypeAlias = Literal["predicates", "entities", "both"]
FitOn: TypeAlias = Literal["train", "all"]
Advance: TypeAlias = Callable[[int, int], None]
"""Takes how much of the work is done, and how much there is."""


@dataclass(frozen=True)
class Known:
    """What a method may look at: facts, by the name (predicate or entity) they are cut for."""

    counts: Counts
    name: Ids
    begin: Ids
    end: Ids
    subject: Ids
    object: Ids


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way to choose cuts: `fit` gives the segmentation, `fit_transform` the static graph.

    The fields are its parameters, with what they mean; the command line is made from them.
    """

    target: Target = field(
        default="predicates", metadata={"help": "what is cut: predicates, entities or both"}
    )
    fit_on: FitOn = field(
        default="train", metadata={"help": "whose facts decide: train, or all as in the paper"}
    )

    needs_facts: ClassVar[bool] = False
    """Whether counts are not enough to choose the cuts."""

    def __post_init__(self) -> None:
        if self.target not in ("predicates", "entities", "both"):
            raise UsageError(f"the target is predicates, entities or both, not {self.target!r}")
        if self.fit_on not in ("train", "all"):
            raise UsageError(f"fit_on is train or all, not {self.fit_on!r}")

    @abstractmethod
    def choose(self, known: Known, *, advance: Advance | None = None) -> list[Ints]:
        """The doubled cuts of every name."""

    def fit(self, graph: TemporalGraph, *, advance: Advance | None = None) -> Segmentation:
        """Choose the cuts for a graph."""
        facts = graph.train if self.fit_on == "train" else graph.facts()
        if not len(facts):
            raise UsageError("there are no facts to fit on")
        known = _known(facts, facts.predicate, graph, graph.predicates)
        if self.target == "entities":
            cuts = [np.empty(0, np.int64)] * len(graph.predicates)
        else:
            cuts = self.choose(known, advance=advance)
        predicates = Scopes.of(graph.predicates, graph.timeline, cuts, known.counts)
        entities = None
        if self.target != "predicates":
            known = _by_entity(facts, graph)
            cuts = self.choose(known, advance=advance)
            entities = Scopes.of(graph.entities, graph.timeline, cuts, known.counts)
        return Segmentation(predicates, entities, self.parameters())

    def fit_transform(self, graph: TemporalGraph, *, advance: Advance | None = None) -> StaticGraph:
        """Choose the cuts, and apply them to all splits."""
        return apply(self.fit(graph, advance=advance), graph)

    def parameters(self) -> dict[str, object]:
        """The name of the method and its parameters, for people and files."""
        return {"method": type(self).__name__, **asdict(self)}


def _known(facts: Facts, name: Ids, graph: TemporalGraph, names: Vocabulary) -> Known:
    begin, end = graph.timestamps(facts)
    counts = Counts.of(name, begin, end, len(names), len(graph.timeline))
    return Known(counts, name, begin, end, facts.subject, facts.object)


def _by_entity(facts: Facts, graph: TemporalGraph) -> Known:
    """Every fact under its subject and under its object; once, where they are the same."""
    other = np.flatnonzero(facts.subject != facts.object)
    rows = np.concatenate([np.arange(len(facts)), other])
    name = np.concatenate([facts.subject, facts.object[other]])
    return _known(facts.take(rows), name, graph, graph.entities)
