"""A finished training, opened from its folder."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np
import pyarrow as pa

from splime import collective
from splime.embedding.device import choose_device
from splime.embedding.models import Model
from splime.embedding.scorer import ModelScorer
from splime.embedding.settings import Settings
from splime.errors import DataError, SplimeError, UsageError, checked, visible
from splime.graph import SPLITS, Facts, TemporalGraph
from splime.io import load_segmentation, read
from splime.io.files import read_json, validated
from splime.methods import Method, Vanilla, restore_method
from splime.runs import folder as files
from splime.runs.folder import (
    CONFIG,
    History,
    checksum,
    checksum_of_cuts,
    fingerprint,
    read_config,
    read_history,
)
from splime.runs.tensors import NAMES, check_names, load_tensors
from splime.scoring.combined import CombinedScorer
from splime.scoring.queries import Scoring
from splime.scoring.scoping import KnownFacts, Scoping, keyed
from splime.scoring.timed import make_scoring
from splime.segmentation import Segmentation
from splime.shown import Shown
from splime.static import Aggregate, StaticGraph, apply
from splime.timeline import Timeline
from splime.training.engines import ENGINES, OWN_ENGINES, find_engine
from splime.vocabulary import Vocabulary

if TYPE_CHECKING:
    import torch


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
    """

    shown_by = "splime.report.tables:run_table"
    own_facts = True
    """Whether the graph is the one in the folder; else nothing is kept there."""

    @checked
    def __init__(self, path: str | Path, *, device: str = "auto", shard: bool = False) -> None:
        self.path = Path(path)
        self.config = read_config(self.path)
        self.engine: str = self.config["run"]["engine"]
        """`splime`, the library that trained the model, or `combined`."""
        if self.engine not in (*ENGINES, files.COMBINED):
            raise DataError(f"{self.path / CONFIG}: there is no engine {self.engine!r}")
        if not files.is_finished(self.path):
            raise UsageError(
                f"{self.path}: this run is not finished; the command that began it resumes it"
            )
        self.device: torch.device = choose_device(device)
        self.shard = shard
        """Whether workers divide the vectors of entities."""
        if shard and not self.has_vectors:
            raise UsageError(
                f"{self.path}: this model has no vectors of entities that workers could divide;"
                " leave out shard (--shard), and each worker ranks a share of the queries"
            )

    @classmethod
    def of(cls, run: Run | str | Path, *, device: str = "auto", shard: bool = False) -> Run:
        """A run, or the one in a folder."""
        return run if isinstance(run, Run) else cls(run, device=device, shard=shard)

    def __repr__(self) -> str:
        method, model = self.config["method"]["name"], self.config["settings"]["model"]
        data = self.config["data"]["name"] or "facts"
        return visible(f"Run({self.path}: {model} on {data}, {method})")

    @cached_property
    def settings(self) -> Settings:
        """The settings of the training; of PyKEEN's only those count that the configuration has."""
        if self.engine == files.COMBINED:
            return Settings(model=files.COMBINED, past=self.config["settings"].get("past"))
        try:
            return find_engine(self.engine).read_settings(self.config["settings"])
        except SplimeError as error:
            raise DataError(f"{self.path / CONFIG}: the settings are damaged: {error}") from None

    @cached_property
    def graph(self) -> TemporalGraph:
        """The facts."""
        graph = read(self.path / files.GRAPH)
        if checksum(graph) != self.config["data"]["sha256"]:
            raise DataError(f"{self.path / files.GRAPH}: not the facts that the run was made from")
        return graph

    @cached_property
    def segmentation(self) -> Segmentation:
        """The cuts."""
        segmentation = load_segmentation(self.path / files.SEGMENTATION)
        if checksum_of_cuts(segmentation) != self.config["cuts"]["sha256"]:
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

    @cached_property
    def static(self) -> StaticGraph:
        """The triples that the cuts make of the facts."""
        return apply(self.segmentation, self.graph)

    @cached_property
    def scoping(self) -> Scoping:
        """Which scopes are asked for at a time; made once for all evaluations and questions."""
        return Scoping(self.static)

    @cached_property
    def history(self) -> History:
        """The loss of every epoch, and the validations; a combination has none."""
        combined = self.engine == files.COMBINED
        return History() if combined else read_history(self.path / files.HISTORY)

    @cached_property
    def about(self) -> dict[str, Any]:
        """Versions, device, date, seconds, number of parameters."""
        path = self.path / files.ABOUT
        about = read_json(path)
        validated(path, about, _About)
        return about

    @cached_property
    def tensors(self) -> dict[str, Any]:
        """The embeddings, by the name of their table; names are packed (`entities.names`)."""
        path = self.path / files.MODEL
        rows = None
        if self.shard and collective.size() > 1:
            rows = collective.rows(len(self.static.entities))
        tensors, about = load_tensors(path, rows)
        if about.get("config") != fingerprint(self.config):
            raise DataError(f"{path}: does not belong to the {CONFIG} beside it")
        check_names(path, tensors, self.static)
        return tensors

    @cached_property
    def members(self) -> list[Run]:
        """The runs that a combination adds up, each in a folder in its own; of others none."""
        if self.engine != files.COMBINED:
            return []
        self.tensors  # noqa: B018  # whether the configuration is what was written
        members = []
        for number, expected in enumerate(self.config[files.MEMBERS]["sha256"], 1):
            path = self.path / files.MEMBERS / str(number)
            try:
                member = Run(path, device=self.device.type)
            except UsageError as error:
                raise DataError(f"a member of the combination is missing: {error}") from None
            if fingerprint(member.config) != expected:
                raise DataError(f"{path}: not the run that was combined")
            member.graph = self.graph  # the same, and read already
            members.append(member)
        return members

    @cached_property
    def scorer(self) -> Any:
        """The scores of the model: a `Scorer`, or a `TimedScorer` where it knows time itself."""
        path = self.path / files.MODEL
        if self.members:
            scorings = [member.scoring() for member in self.members]
            return CombinedScorer(scorings, self.config["settings"]["weights"])
        parameters = {name: t for name, t in self.tensors.items() if name not in NAMES}
        try:
            return find_engine(self.engine).open(
                self.static, self.settings, parameters, self.device
            )
        except (ValueError, UsageError) as error:
            raise DataError(f"{path}: not the parameters of this run: {error}") from None

    def scoring(self, how: Aggregate | None = None, memory: int | None = None) -> Scoring:
        """How candidates are scored at a time; intervals as the run was trained, if not said."""
        return make_scoring(self.scorer, self.scoping, how or self.settings.asked, memory)

    @checked
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
        test are those of `facts` where it has some. Facts of predicates that the run has not
        learned are left out, and `warn` is told how many.
        """
        if any(run.engine not in OWN_ENGINES.values() for run in self.members or [self]):
            raise UsageError(
                f"{self.path}: this model has a vector for each entity of its train, and knows no"
                " other facts; a run of the path model (--model path) can be asked over others"
            )
        return self._on(_joined(self.graph, facts, instead, warn))

    def _on(self, graph: TemporalGraph) -> Run:
        """The same with another graph of the same predicates."""
        tensors = self.tensors  # whose names are those of the graph in the folder
        other, members = copy(self), [member._on(graph) for member in self.members]
        for name in ("static", "scoping", "scorer"):
            vars(other).pop(name, None)
        vars(other).update(
            graph=graph,
            segmentation=Vanilla().fit(graph),
            tensors=tensors,
            members=members,
            own_facts=False,
        )
        return other

    @property
    def has_vectors(self) -> bool:
        """Whether there are vectors; of the path model and of PyKEEN's there are only scores."""
        return self.engine == "splime"

    @property
    def model(self) -> Model:
        """The model with its vectors."""
        if not self.has_vectors:
            raise UsageError(
                f"{self.path}: splime has scores but no vectors of this model; only questions about"
                " facts can be asked"
            )
        assert isinstance(self.scorer, ModelScorer)
        return self.scorer.model


def _joined(
    own: TemporalGraph, facts: TemporalGraph, instead: bool, warn: Callable[[str], None]
) -> TemporalGraph:
    """The graph of `Run.over`: the ids of predicates are those of `own`."""
    ours, theirs = own.timeline, facts.timeline
    if ours.granularity != theirs.granularity:
        raise UsageError(
            f"the facts have times by {theirs.granularity}, and the run by {ours.granularity}: read"
            f" them with granularity={ours.granularity!r} (--granularity {ours.granularity})"
        )
    learned = np.append(np.bincount(own.train.predicate, minlength=len(own.predicates)) > 0, False)
    knows = learned[own.predicates.ids(facts.predicates.labels)]  # the last is that of -1
    kept = facts.keep({split: knows[part.predicate] for split, part in facts.splits()}).compact()
    if left_out := len(facts) - len(kept):
        names = [facts.predicates[at] for at in np.flatnonzero(~knows).tolist()]
        few = ", ".join(names[:3]) + ", …" * (len(names) > 3)
        what = f"{left_out:,} of {len(facts):,} facts have predicates that the run has not learned"
        if not len(kept):
            known = ", ".join(own.predicates[at] for at in np.flatnonzero(learned)[:3].tolist())
            raise UsageError(f"{what}, such as {few}; it has learned {known}, …")
        warn(f"{what}, and are left out: {few}")
    labels = pa.concat_arrays([own.entities.labels, kept.entities.labels])
    entities, same = Vocabulary(labels, kind="entity"), np.arange(len(own.predicates), dtype="i4")
    of_ours, of_theirs = (entities.ids(each.entities.labels) for each in (own, kept))
    predicates = own.predicates.ids(kept.predicates.labels)
    old: dict[str, Facts] = {name: part.renumber(of_ours, same) for name, part in own.splits()}
    new: dict[str, Facts] = {
        name: part.renumber(of_theirs, predicates) for name, part in kept.splits()
    }
    train, valid, test = (new[split] if len(new[split]) else old[split] for split in SPLITS)
    sources = [each for each in own.reading.sources if not len(new.get(each.split or "", ()))]
    graph = replace(
        own,
        train=train,
        valid=valid,
        test=test,
        entities=entities,
        timeline=_both(ours, theirs),
        reading=replace(own.reading, sources=(*sources, *facts.reading.sources)),
    )
    if instead:
        return graph
    before = replace(graph, train=old["train"], valid=Facts.empty(), test=Facts.empty())
    times = keyed("time", new["train"], before)
    asked = replace(new["train"], begin=times.begin, end=times.end)
    stays = np.ones(len(old["train"]), bool)
    stays[KnownFacts(before).pairs("time", asked)[1]] = False
    return replace(graph, train=Facts.concat([old["train"].take(stays), new["train"]]))


def _both(ours: Timeline, theirs: Timeline) -> Timeline:
    """The timestamps of both; buckets stay what they are, and the outer ones reach as far."""
    if not ours.bucketed:
        ticks = np.concatenate([ours.starts, theirs.starts, theirs.ends])
        return Timeline.of(ticks, ours.granularity)
    starts, ends = ours.starts.copy(), ours.ends.copy()
    starts[0], ends[-1] = min(ours.first, theirs.first), max(ours.last, theirs.last)
    return Timeline(ours.granularity, starts, ends)
