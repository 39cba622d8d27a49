"""A graph with the weights that splime ships: it answers as a run does, without a training."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from splime import __version__
from splime.datasets import DATASETS
from splime.datasets.loading import load_unsplit
from splime.device import choose_device
from splime.errors import DataError, UsageError, counted, nearest
from splime.graph import Facts, TemporalGraph
from splime.io.cache import Entry
from splime.io.files import is_there
from splime.io.inputs import is_stored
from splime.paths.counted import count
from splime.paths.counting import FactCounts
from splime.paths.relative import RelativeScopes
from splime.paths.shipped import LATEST, NONE, Weights, load_weights
from splime.runs.folder import CONFIG, History
from splime.runs.keeping import (
    entry_of,
    keep_graph,
    read_counts,
    read_value,
    write_counts,
    write_value,
)
from splime.runs.run import Run
from splime.scoring.queries import Scoring
from splime.training.paths import engine
from splime.training.registry import find_engine, find_model

T = TypeVar("T")
_BOUNDED, _REACH = 200_000, 50_000
"""Of a graph with more facts a question reads so many, so that an answer takes as long as there."""


class GraphRun(Run):
    """A graph that is asked without training.

    Its facts are what questions are answered from: those of train, if it has splits.

    >>> import splime
    >>> GraphRun(splime.load("demo"))
    GraphRun(demo: 8,000 facts, weights 1)
    """

    own_facts = learned_from_facts = False

    def __init__(
        self,
        graph: TemporalGraph,
        *,
        weights: str | Weights = LATEST,
        past: str | None = None,
        device: str = "auto",
        kept: Entry | None = None,
        reach: int | None = None,
    ) -> None:
        self._kept = kept or Entry()
        self.device = choose_device(device)
        self.path = Path(graph.name or "facts")
        self.engine = "paths"
        self.weights = load_weights(weights) if isinstance(weights, str) else weights
        given = {"messages": "counted", **self.weights.settings, "batch_size": 1, "weights": NONE}
        given |= {"past": past} if past else {}
        if reach is None and len(graph.train) > _BOUNDED:
            reach = _REACH
        given |= {"reach": reach} if reach else {}
        self.graph = graph
        entry = find_model("path")
        settings = find_engine(self.engine).fitted(entry.make_settings(**given), self, given)
        self.config = {
            "run": {"engine": self.engine},
            "data": {
                "name": graph.name,
                "sha256": "",
                **{split: len(facts) for split, facts in graph.splits()},
            },
            "settings": settings.values(),
        }
        split = " of train" if len(graph) > len(graph.train) else ""
        facts = f"{counted(len(graph.train), 'fact')}{split}"
        how = "as a forecast, without training" if past else "without training"
        nearest_facts = f"the {reach:,} nearest of " if reach else ""
        self.basis = f"{how}, from {nearest_facts}{facts}, with weights {self.weights.version}"
        self.tensors = self.weights.parameters(forecasts=past is not None)
        self.history = History()
        self.about = {
            "versions": {"splime": __version__, "weights": self.weights.version},
            "device": self.device.type,
            "seconds": 0.0,
            "parameters": sum(tensor.numel() for tensor in self.tensors.values()),
        }

    def __repr__(self) -> str:
        name, count = self.graph.name or "facts", len(self.graph.train)
        return f"GraphRun({name}: {counted(count, 'fact')}, weights {self.weights.version})"

    def keep(self, name: str, kind: type[T], make: Callable[[], T]) -> T:
        """What is made of the graph by the weights; kept for later if it was read from a file."""
        name = f"{name}-{self.weights.sha256[:16]}-{self.device.type}"
        name += "-forecast" * (self.past is not None) + ".json"
        made: T = self._kept.get(
            name, make, read=lambda path: read_value(kind, path), write=write_value
        )
        return made

    @cached_property
    def forecast(self) -> GraphRun | None:
        """The same facts, asked about the time after them, if the weights can."""
        if self.past is not None or not self.weights.can_forecast:
            return None
        given: dict[str, Any] = {"weights": self.weights, "device": self.device.type}
        return GraphRun(self.graph, past="train", kept=self._kept, **given)

    def of_graph(self, graph: TemporalGraph, *, reach: int | None = None) -> GraphRun:
        """Another graph by the same weights; with `reach` a question reads so many facts."""
        return GraphRun(graph, weights=self.weights, device=self.device.type, reach=reach)

    def _open(self) -> Scoring:
        return engine.open(self.settings, self, self.tensors, self._count)

    def _count(self, known: Facts, graph: TemporalGraph, relative: RelativeScopes) -> FactCounts:
        made_from = hashlib.sha256(repr(relative).encode())  # whether of the past alone, too
        for column in known.columns():
            made_from.update(column.tobytes())
        return self._kept.get(
            f"counts-{made_from.hexdigest()[:16]}.npz",
            lambda: count(known, graph, relative),
            read=read_counts,
            write=write_counts,
        )

    def _on(self, graph: TemporalGraph) -> Run:
        other = super()._on(graph)
        vars(other)["_kept"] = Entry()  # what is kept is that of the file alone
        return other


def open_source(
    source: Any, *, device: str = "auto", weights: str | None = None, **reading: Any
) -> Run:
    """What answers: a run, the one in a folder, or else a graph or what can be loaded as one.

    Facts without splits are not split.
    """
    if isinstance(source, Run):
        return source
    is_path = isinstance(source, str | Path) and is_stored(source)
    if is_path and (Path(source) / CONFIG).exists():
        if weights is not None or reading:
            name = "weights" if weights is not None else next(iter(reading))
            raise UsageError(f"{source} is a run; leave out {name}, which is for a graph")
        return Run(source, device=device)
    weights = weights or LATEST
    if isinstance(source, TemporalGraph):
        return GraphRun(source, weights=weights, device=device)
    entry = entry_of(source, reading)
    graph = keep_graph(entry, source, reading, _load)
    return GraphRun(graph, weights=weights, device=device, kept=entry)


def _load(source: Any, **reading: Any) -> TemporalGraph:
    path = Path(source) if isinstance(source, str | Path) and is_stored(source) else None
    if path is not None and str(source) not in DATASETS and not set("*?[") & set(str(source)):
        if not is_there(path):
            hint = nearest(str(source), DATASETS)
            raise UsageError(f"{source}: there is no such run, file, folder or dataset.{hint}")
        if path.is_dir() and not any(path.iterdir()):
            raise UsageError(f"{source}: this is not a run of splime, and the folder is empty")
    try:
        return load_unsplit(str(source) if path is not None else source, **reading)
    except DataError as error:
        if path is None or not path.is_dir():
            raise
        raise DataError(f"this is not a run of splime (it has no {CONFIG}): {error}") from None
