"""A finished training, opened from its folder."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NotRequired, TypeAlias, TypedDict, TypeVar

import numpy as np
import pyarrow as pa
import torch

from splime.device import choose_device
from splime.embedding.models.base import Model
from splime.errors import (
    DataError,
    SplimeError,
    UsageError,
    counted,
    explain_out_of_memory,
    visible,
)
from splime.graph import SPLITS, Facts, SplitName, TemporalGraph
from splime.io import load_segmentation, read
from splime.io.files import read_json, validated
from splime.io.parquet import FactFile
from splime.methods import Method, Vanilla, restore_method
from splime.runs import folder as files
from splime.runs.updates import Change, Updates, read_updates
from splime.scoring.queries import Scoring
from splime.scoring.scoping import KnownFacts, Scoping, keyed
from splime.segmentation import Segmentation
from splime.shown import Shown
from splime.static import Aggregate, StaticGraph, apply
from splime.tensors import load_tensors
from splime.timeline import Timeline
from splime.training.registry import ModelEntry, entry_of_run, find_engine
from splime.vocabulary import Vocabulary

T = TypeVar("T")


class _Members(TypedDict):
    """What the configuration of a combination says of its members."""

    names: list[str]
    sha256: list[str]


class _About(TypedDict):
    """What about.json must have."""

    versions: dict[str, str]
    device: str
    seconds: float
    parameters: int
    command: NotRequired[str]
    loss: NotRequired[str]


class Run(Shown):
    """A run: what it was trained with, the graph, the cuts, the embeddings, the scores.

    Opening one reads data only: nothing in the folder can run code.

    >>> import splime, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = splime.train("demo", "split", f"{here}/split", dimension=8, epochs=1)
    ...     run = Run(f"{here}/split")
    ...     run.segmentation
    Segmentation(45 scoped predicates of 9, ...)
    """

    basis = ""
    """What answers rest on, where it is not the run's train."""
    learned_from_facts = True
    """Whether the model was trained on facts of the graph."""
    own_facts = True
    """Whether the graph is the one in the folder; else nothing is kept there."""
    updates: Updates | None = None
    """What was added after the training, if anything was."""

    def __init__(self, path: str | Path, *, device: str = "auto") -> None:
        self.path = Path(path)
        self.config = files.read_config(self.path)
        self._trained = files.fingerprint(self.config)  # which the parameters carry
        self.updates = read_updates(self.path)
        if self.updates is not None:
            self.config = {**self.config, "data": self.updates.data}
        self.engine: str = self.config["run"]["engine"]
        """The engine that trained the model."""
        if not files.is_finished(self.path):
            raise UsageError(
                f"{self.path}: this run is not finished; the command that began it resumes it"
            )
        self.device: torch.device = choose_device(device)

    @classmethod
    def of(cls, run: Run | TemporalGraph | str | Path, *, device: str = "auto") -> Run:
        """A run, the one in a folder, or a graph (or what loads as one) that answers untrained."""
        if isinstance(run, Run):
            return run
        from splime.runs.graph_run import open_source

        return open_source(run, device=device)

    def __repr__(self) -> str:
        model, data = self.config["settings"]["model"], self.config["data"]["name"] or "facts"
        method = f", {self.method_name}" if "method" in self.config else ""
        return visible(f"Run({self.path}: {model} on {data}{method})")

    def to_json(self) -> dict[str, Any]:
        """What was trained on what, and how it went, as plain values."""
        history = [vars(epoch) for epoch in self.history]
        return {"path": str(self.path), **self.config, "about": self.about, "history": history}

    @cached_property
    def entry(self) -> ModelEntry:
        """What the model says about itself."""
        try:
            return entry_of_run(self.config["settings"]["model"], self.engine)
        except UsageError as error:
            raise DataError(f"{self.path / files.CONFIG}: {error}") from None

    @cached_property
    def settings(self) -> Any:
        """The settings of the training, of the class that its model has."""
        try:
            return self.entry.settings.restore(self.config["settings"])
        except SplimeError as error:
            raise DataError(
                f"{self.path / files.CONFIG}: the settings are damaged: {error}"
            ) from None

    @property
    def past(self) -> str | None:
        """Which facts before the time asked about a forecast reads; None if it is no forecast."""
        past: str | None = self.settings.values().get("past")
        return past

    @property
    def method_name(self) -> str:
        """The name of the method that chose the cuts; `none` if the model has no cuts."""
        name: str = self.config.get("method", {}).get("name", "none")
        return name

    @cached_property
    def graph(self) -> TemporalGraph:
        """The facts."""
        path = self.path / (files.GRAPH if self.updates is None else self.updates.graph)
        if self.updates is not None and not path.exists():
            raise DataError(f"{path}: is not there; was the run updated meanwhile? open it again")
        data = self.config["data"]
        # A few bytes of Parquet can be any number of rows.
        same = FactFile(path).rows == sum(data.get(split, 0) for split in SPLITS)
        graph = read(path) if same else None
        if graph is None or files.checksum(graph) != data["sha256"]:
            raise DataError(f"{path}: not the facts that the run was made from")
        return graph

    @cached_property
    def segmentation(self) -> Segmentation:
        """The cuts; of a model without cuts, the predicates as they are."""
        if "cuts" not in self.config or self.updates is not None:
            return Vanilla().fit(self.graph)
        segmentation = load_segmentation(self.path / files.SEGMENTATION)
        if files.checksum_of_cuts(segmentation) != self.config["cuts"]["sha256"]:
            raise DataError(
                f"{self.path / files.SEGMENTATION}: not the cuts that the run was made with"
            )
        return segmentation

    @cached_property
    def method(self) -> Method | None:
        """The method that chose the cuts; None if it is not known here."""
        return restore_method(self.segmentation.method)

    @property
    def is_cut(self) -> bool:
        """Whether some predicate is cut in time."""
        return len(self.segmentation.predicates) > len(self.segmentation.predicates.names)

    @property
    def uses_time(self) -> bool | None:
        """Whether the time of a question counts; None for a combination of runs."""
        if self.members:
            return None
        return self.settings.uses_time if self.entry.cuts == "none" else self.is_cut

    @property
    def ignores_time(self) -> bool:
        """Whether answers are the same at all times."""
        return len(self.graph.timeline) > 1 and not any(part.uses_time for part in self.parts)

    @cached_property
    def static(self) -> StaticGraph:
        """The triples that the cuts make of the facts."""
        return apply(self.segmentation, self.graph)

    @cached_property
    def scoping(self) -> Scoping:
        """The scopes of each time; made once for all evaluations and questions."""
        return Scoping(self.static)

    @cached_property
    def history(self) -> files.History:
        """The loss of every epoch, and the validations; what was not trained has none."""
        path = self.path / files.HISTORY
        return files.read_history(path) if path.exists() or self.entry.trained else files.History()

    @cached_property
    def about(self) -> dict[str, Any]:
        """Versions, device, date, seconds, number of parameters."""
        path = self.path / files.ABOUT
        about = read_json(path)
        validated(path, about, _About)
        return about

    @cached_property
    def tensors(self) -> dict[str, Any]:
        """The parameters, by the name of their table."""
        path = self.path / files.MODEL
        tensors, about = load_tensors(path)
        if about.get("config") != self._trained:
            raise DataError(f"{path}: does not belong to the {files.CONFIG} beside it")
        # Earlier versions stored the names of entities and predicates here, too.
        return {name: tensor for name, tensor in tensors.items() if not name.endswith(".names")}

    @cached_property
    def members(self) -> list[Run]:
        """The runs that a combination adds up, each in a folder in its own; of others none."""
        if files.MEMBERS not in self.config:
            return []
        members, listed = [], self.config[files.MEMBERS]
        validated(self.path / files.CONFIG, listed, _Members)
        for number, expected in enumerate(listed["sha256"], 1):
            path = self.path / files.MEMBERS / str(number)
            try:
                member = Run(path, device=self.device.type)
            except UsageError as error:
                raise DataError(f"a member of the combination is missing: {error}") from None
            if files.fingerprint(member.config) != expected:
                raise DataError(f"{path}: not the run that was combined")
            if self.updates is None:
                member.graph = self.graph  # the same, and read already
            else:
                member = member._on(self.graph)
            members.append(member)
        return members

    @property
    def parts(self) -> list[Run]:
        """The runs that are trained models: those that a combination adds up, or the run itself."""
        return [part for member in self.members for part in member.parts] or [self]

    @property
    def forecast(self) -> Run | None:
        """What answers questions about the time after the facts, if it is not the run itself."""
        return None

    def keep(self, name: str, kind: type[T], make: Callable[[], T]) -> T:
        """What is made of the graph; kept for later by what knows the file it was read from."""
        return make()

    def _open(self) -> Scoring:
        return find_engine(self.engine).open(self.settings, self, self.tensors)

    @cached_property
    def _scoring(self) -> Scoring:
        path = self.path / files.MODEL
        try:
            with explain_out_of_memory(f"the model in {self.path} is too large"):
                return self._open()
        except (ValueError, UsageError) as error:
            raise DataError(f"{path}: not the parameters of this run: {error}") from None

    def scoring(self, how: Aggregate | None = None, memory: int | None = None) -> Scoring:
        """How candidates are scored at a time; intervals as the run was trained, if not said."""
        return self._scoring.with_options(how or self.settings.default_aggregate, memory)

    @property
    def scorer(self) -> Any:
        """The scores of the model, by ids or by facts."""
        return self._scoring.scorer

    def over(
        self,
        facts: TemporalGraph,
        *,
        instead: bool = False,
        warn: Callable[[str], None] = warnings.warn,
    ) -> Run:
        """The same model, asked over train and other facts; with `instead` over those alone.

        Train of `facts` is added to the run's train. It may name new entities. A fact takes the
        place of those of the run that state the same at times that overlap with its own. Valid and
        test are those of `facts` where it has some. A run that also answers from valid and test
        (`past` is split or all) treats all of them as others treat train. Facts of predicates that
        the run has not learned are left out, and `warn` is called with their number.
        """
        if not self.reads_facts:
            raise UsageError(
                f"{self.path}: this model has a vector for each entity of its train, and knows no"
                " other facts; a run of the path model (--model path) can be asked over others"
            )
        reads: Sequence[SplitName] = SPLITS if self.reads_every_split else ("train",)
        return self._on(_joined(self.graph, self.knowable(facts, warn), instead, reads))

    def update(
        self,
        facts: TemporalGraph | str | Path,
        *,
        warn: Callable[[str], None] = warnings.warn,
        **reading: Any,
    ) -> Change:
        """Add facts to the run for good, as `over` adds them; returns what that changed.

        Nothing is trained: the model must be one whose input the facts are. They replace the graph
        in the folder at once, or not at all; parameters, configuration and history stay. This run,
        and those that are opened later, answer from the new facts; a `Query` made before does not.

        Args:
            facts: a graph, or what `splime.load` reads one from.
            warn: called with the number of facts that the model cannot know, and of those that
                valid or test state.
            reading: how to read them, as for `splime.load`.
        """
        from splime.runs.updating import update_run

        change = update_run(self, facts, warn, **reading)
        now = Run(self.path, device=self.device.type)
        vars(self).clear()
        vars(self).update(vars(now))
        return change

    def knowable(self, facts: TemporalGraph, warn: Callable[[str], None]) -> TemporalGraph:
        """Those of some facts whose predicates the model can know; an error if it can know none."""
        if self.knows_any_predicate:
            return facts
        return _learned(self.graph, facts, warn)

    @property
    def knows_any_predicate(self) -> bool:
        """Whether predicates may be new: what is said of them is counted in the facts."""
        return not any(part.settings.learns_predicates for part in self.parts)

    @property
    def reads_every_split(self) -> bool:
        """Whether valid and test are among the facts that it answers from."""
        return any(part.past in ("split", "all") for part in self.parts)

    @property
    def reads_facts(self) -> bool:
        """Whether facts are an input of the model, so that it can be asked over others."""
        return all(part.entry.reads_facts for part in self.parts)

    def _on(self, graph: TemporalGraph) -> Run:
        """The same with another graph of the same predicates."""
        other, members = copy(self), [member._on(graph) for member in self.members]
        for name in ("segmentation", "static", "scoping", "_scoring"):
            vars(other).pop(name, None)
        vars(other).update(graph=graph, tensors=self.tensors, members=members, own_facts=False)
        if "cuts" in self.config:  # of runs that earlier versions made
            other.segmentation = Vanilla().fit(graph)
        return other

    @property
    def model(self) -> Model:
        """The model with its vectors."""
        if not self.entry.entity_vectors:
            raise UsageError(
                f"{self.path}: splime has scores but no vectors of this model; only questions about"
                " facts can be asked"
            )
        model: Model = self.scorer.model
        return model


Runs: TypeAlias = Run | str | Path | Iterable[Run | str | Path]
"""A run or its folder, or several."""


def open_runs(runs: Runs, device: str) -> list[Run]:
    """One or more runs, opened where they are given by their folders."""
    several = [runs] if isinstance(runs, Run | str | Path) else [*runs]
    if not several:
        raise UsageError("there is nothing to show without at least one run")
    return [Run.of(run, device=device) for run in several]


def _learned(
    own: TemporalGraph, facts: TemporalGraph, warn: Callable[[str], None]
) -> TemporalGraph:
    """The facts whose predicates are among those of a train."""
    learned = np.append(np.bincount(own.train.predicate, minlength=len(own.predicates)) > 0, False)
    knows = learned[own.predicates.ids(facts.predicates.labels)]  # the last is that of -1
    kept = facts.keep({split: knows[part.predicate] for split, part in facts.splits()}).compact()
    if left_out := len(facts) - len(kept):
        names = [facts.predicates[at] for at in np.flatnonzero(~knows).tolist()]
        few = ", ".join(names[:3]) + ", …" * (len(names) > 3)
        share = f"{left_out:,} of {counted(len(facts), 'fact')}"
        what = f"{share} have predicates that the run has not learned"
        if not len(kept):
            known = ", ".join(own.predicates[at] for at in np.flatnonzero(learned)[:3].tolist())
            raise UsageError(f"{what}, such as {few}; it has learned {known}, …")
        warn(f"{what}, and are left out: {few}")
    return kept


def _joined(
    own: TemporalGraph, kept: TemporalGraph, instead: bool, reads: Sequence[SplitName]
) -> TemporalGraph:
    """The graph of `Run.over`; without new predicates, their ids are those of `own`.

    The run answers from the splits that it `reads`.
    """
    ours, theirs = own.timeline, kept.timeline
    if ours.granularity != theirs.granularity:
        raise UsageError(
            f"the facts have times by {theirs.granularity}, and the run by {ours.granularity}: read"
            f" them with granularity={ours.granularity!r} (--granularity {ours.granularity})"
        )
    entities, predicates = (
        Vocabulary(pa.concat_arrays([mine.labels, yours.labels]), kind=mine.kind)
        for mine, yours in (
            (own.entities, kept.entities),
            (own.predicates, kept.predicates),
        )
    )
    old, new = (
        {
            name: part.renumber(
                entities.ids(each.entities.labels), predicates.ids(each.predicates.labels)
            )
            for name, part in each.splits()
        }
        for each in (own, kept)
    )
    graph = replace(own, entities=entities, predicates=predicates, timeline=_both(ours, theirs))
    given = Facts.concat([new[name] for name in reads])
    for name in reads:
        old[name] = Facts.empty() if instead else _without(old[name], given, graph)
    missing = {name for name in SPLITS if not len(new[name])}
    parts: dict[str, Any] = {name: (old if name in missing else new)[name] for name in SPLITS}
    if not instead:
        parts["train"] = Facts.concat([old["train"], new["train"]])
    sources = [one for one in own.reading.sources if one.split is None or one.split in missing]
    reading = replace(own.reading, sources=(*sources, *kept.reading.sources))
    return replace(graph, **parts, reading=reading)


def _without(facts: Facts, others: Facts, graph: TemporalGraph) -> Facts:
    """Facts without those that others state, too, at times that overlap."""
    before = replace(graph, train=facts, valid=Facts.empty(), test=Facts.empty())
    times = keyed("time", others, before)
    asked = replace(others, begin=times.begin, end=times.end)
    stays = np.ones(len(facts), bool)
    stays[KnownFacts(before).pairs("time", asked)[1]] = False
    return facts.take(stays)


def _both(ours: Timeline, theirs: Timeline) -> Timeline:
    """The timestamps of both; buckets stay what they are, and the outer ones reach as far."""
    if not ours.bucketed:
        ticks = np.concatenate([ours.starts, theirs.starts, theirs.ends])
        return Timeline.of(ticks, ours.granularity)
    starts, ends = ours.starts.copy(), ours.ends.copy()
    starts[0], ends[-1] = min(ours.first, theirs.first), max(ours.last, theirs.last)
    return Timeline(ours.granularity, starts, ends)
