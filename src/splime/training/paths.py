"""The engine of the path model: questions about facts of train, answered from its other facts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from splime import collective
from splime.arrays import changes
from splime.axes import Axis, Range, Values
from splime.embedding import presets
from splime.embedding.device import free_memory, matrix_precision
from splime.embedding.negatives import seed_of
from splime.embedding.settings import Settings
from splime.errors import SplimeError, UsageError, check_name
from splime.graph import Facts, TemporalGraph
from splime.paths.evidence import Chain, evidence
from splime.paths.facts import DirectedFacts
from splime.paths.messages import fast
from splime.paths.model import WIDTHS, PathModel
from splime.paths.relative import KINDS, Kind as RelativeKind, RelativeScopes, Times
from splime.scoring.scoping import Kind, keyed
from splime.scoring.timed import likelihoods
from splime.static import StaticGraph
from splime.times import Ints
from splime.training.engines import NO_CUTS, Supervisor, run_epochs
from splime.training.trainer import Loop, add_up, check_batch

STRONG: Mapping[str, Any] = {
    "model": "path",
    "layers": 4,
    "dimension": 32,
    "dropout": 0.1,
    "relative": "auto",
    "learning_rate": 5e-3,
    "batch_size": 32,
    "epochs": 4,
    "validate_every": 1,
    "patience": 5,
    "precision": "tf32",
}
"""The settings that have an effect, and their defaults."""
QUICKER: Mapping[str, Any] = {"layers": 3, "dimension": 16, "epochs": 3}
"""How the preset `quick` differs."""
_PRESETS: Mapping[str, Mapping[str, Any]] = {presets.STRONG: {}, presets.QUICK: QUICKER}
_ALSO = ("past", "unknown_scopes", "begin_only", "aggregation", "reach", "seed", "steps")
_WARM_UP, _LAST = 200, 0.05
"""Steps until the learning rate is reached, and the share of it that is left at the end."""
_LONGEST_GRADIENT = 1.0
_FEW, _LAYERS_OF_FEW = 10_000, 3
"""Up to so many facts of train, so many layers: in the time of `demo` a fourth gains nothing."""
_BLOCK = 256 << 20
"""Bytes that the states of entities may take while questions are scored."""
_FACT = 300
"""Bytes that a fact takes: both ways, in three orders, and while these are made."""


class PathEngine:
    """Trains the path model."""

    def make_settings(
        self,
        model: str | None,  # noqa: ARG002
        preset: str | None,
        **given: Any,
    ) -> Settings:
        """Those of a preset, changed by what is given."""
        check_name("preset of the path model", preset or presets.STRONG, _PRESETS)
        for name in given:
            if name not in STRONG and name not in _ALSO:
                raise UsageError(f"{name} has no effect on the path model; leave it out")
        return self.read_settings({**STRONG, **_PRESETS[preset or presets.STRONG], **given})

    def read_settings(self, values: Mapping[str, Any]) -> Settings:
        """All settings that have an effect are in the configuration."""
        settings = Settings.of(values)
        _relative(settings)
        if settings.dimension not in WIDTHS:
            raise UsageError(
                "the dimension of the path model, the width of its messages, is one of"
                f" {', '.join(map(str, WIDTHS))}, not {settings.dimension}"
            )
        return settings

    def values(self, settings: Settings) -> dict[str, Any]:
        """Those that have an effect."""
        values = settings.values()
        return {name: values[name] for name in (*STRONG, *_ALSO) if name in values}

    def fitted(self, settings: Settings, static: StaticGraph, given: Mapping[str, Any]) -> Settings:
        """The edges of the relative scopes; layers and batches that suit the number of facts."""
        if len(static.predicates) > len(static.predicates.names):
            raise UsageError(NO_CUTS)
        kind, edges = _relative(settings)
        if not edges and kind != "none":
            scopes = RelativeScopes.of(static.graph, kind)
            written = f"{scopes.kind}:{','.join(map(str, scopes.edges))}"
            settings = replace(settings, relative=written.rstrip(":"))
        count = len(static.train)
        if "layers" not in given and settings.layers is not None and count <= _FEW:
            settings = replace(settings, layers=min(settings.layers, _LAYERS_OF_FEW))
        if "batch_size" in given:
            return settings
        return replace(settings, batch_size=min(settings.batch_size, 2 * count))

    def search_space(self, settings: Settings) -> dict[str, Axis]:  # noqa: ARG002
        """What `splime tune` tries."""
        return {
            "layers": Range(2, 6),
            "dimension": Values(WIDTHS),
            "dropout": Values((0.0, 0.1, 0.2)),
            "learning_rate": Range(0.001, 0.01, log=True),
        }

    def fit(self, static: StaticGraph, settings: Settings, supervisor: Supervisor) -> None:
        """Epoch by epoch to the end, from the last checkpoint if there is one."""
        with matrix_precision(settings.precision), fast(supervisor.device).at_work():
            trainer = PathTrainer(static.graph, settings, supervisor.device)
            parameters = sum(each.numel() for each in trainer.model.parameters())
            supervisor.begin(trainer, parameters=parameters, triples=len(static.train))
            run_epochs(trainer, supervisor)

    def open(
        self,
        static: StaticGraph,
        settings: Settings,
        tensors: Mapping[str, Tensor],
        device: torch.device,
    ) -> PathScorer:
        """The scores of a trained model."""
        model = make_path_model(static.graph, settings)
        try:
            model.load_state_dict(dict(tensors))
        except RuntimeError as error:
            raise ValueError(str(error)) from None
        return PathScorer(model.to(device), static.graph, settings)


def _relative(settings: Settings) -> tuple[RelativeKind | None, tuple[int, ...]]:
    """The kind and the edges that a setting gives; None and nothing are chosen from the facts.

    >>> _relative(Settings(relative="intervals:1,3,6")), _relative(Settings(relative="auto"))
    (('intervals', (1, 3, 6)), (None, ()))
    """
    kind, _, listed = (settings.relative or "auto").partition(":")
    check_name("kind of relative scopes", kind, ("auto", *KINDS))
    try:
        edges = tuple(int(edge) for edge in listed.split(",")) if listed else ()
    except ValueError:
        raise UsageError(
            "relative is auto, none, events or intervals, or one of the latter with the first"
            f" distance of each scope, such as events:1,2,4,8; not {settings.relative!r}"
        ) from None
    if edges and kind in ("auto", "none"):
        raise UsageError(f"distances belong to events or intervals, not to {kind!r}")
    return (None if kind == "auto" else cast(RelativeKind, kind)), edges


def relative_scopes(graph: TemporalGraph, settings: Settings) -> RelativeScopes:
    """The relative scopes of a run."""
    kind, edges = _relative(settings)
    return RelativeScopes(
        kind or "none",
        graph.timeline.granularity,
        edges,
        unknown=bool(settings.unknown_scopes),
        past=settings.past is not None,
        begin_only=bool(settings.begin_only),
    )


def make_path_model(graph: TemporalGraph, settings: Settings) -> PathModel:
    """An untrained model for the predicates of a graph."""
    return PathModel(
        len(graph.predicates),
        len(relative_scopes(graph, settings)),
        layers=STRONG["layers"] if settings.layers is None else settings.layers,
        width=settings.dimension,
        dropout=settings.dropout or 0.0,
        aggregation=settings.aggregation or "sum",
        reach=settings.reach,
        seed=settings.seed,
    )


def _sizes(entities: int, facts: int, settings: Settings) -> tuple[int, int]:
    """Bytes of the states of a question, of which a few are needed at a time, and of its own.

    Entities that are not in reach share a state, but then each question has facts of its own.
    """
    rows, own = entities, 0
    if settings.reach is not None and settings.reach < facts:
        rows, own = min(entities, settings.reach + 1), settings.reach
    return 4 * rows * settings.dimension, 128 * own + 4 * entities


def check_memory(
    graph: TemporalGraph,
    facts: int,
    settings: Settings,
    device: torch.device,
    *,
    batch: int | None = None,
) -> None:
    """An error where training with batches of so many questions, or one question, would not fit.

    What counts are the facts, the states of all entities (for each question about 3 in a layer
    while training, else 4 in all), and the messages of all predicates and scopes.
    """
    entities, layers = len(graph.entities), settings.layers or STRONG["layers"]
    state, own = _sizes(entities, facts, settings)
    messages = 8 * len(graph.predicates) * len(relative_scopes(graph, settings))
    messages *= settings.dimension
    question = 4 * state + 2 * messages if batch is None else layers * (3 * state + 2 * messages)
    question += own
    needed, free = _FACT * facts + (batch or 1) * question, free_memory(device)
    if free is None or needed <= free:
        return
    over = f"over {entities:,} entities and {facts:,} facts"
    about = f"takes about {needed / 1e9:,.2f} GB of memory, and {free / 1e9:,.2f} GB are free"
    if batch is None:
        raise SplimeError(
            f"a question {over} {about}: take fewer facts, or train with a lower dimension"
        )
    fitting = (free - _FACT * facts) // question
    hint = f"lower batch_size (--batch-size {fitting} fits)" if fitting > 0 else "take fewer facts"
    raise SplimeError(
        f"a batch of {batch:,} questions {over} {about}: {hint}, or lower dimension or layers"
    )


class PathTrainer(Loop):
    """Asks for the object and the subject of each fact of train, from the other facts.

    The order of the questions and dropout are random.
    """

    def __init__(self, graph: TemporalGraph, settings: Settings, device: torch.device) -> None:
        train = graph.train
        check_batch(settings.batch_size, 2 * len(train), "question")
        batch = math.ceil(settings.batch_size / collective.size())
        check_memory(graph, len(train), settings, device, batch=batch)
        super().__init__(settings, device, 2 * len(train))
        self.graph, self.model = graph, make_path_model(graph, settings).to(device)
        self.relative = relative_scopes(graph, settings)
        self.facts = DirectedFacts.of(train, len(graph.entities), len(graph.predicates)).to(device)
        self._times = Times.of(train).to(device)
        predicates = np.concatenate([train.predicate, train.predicate + len(graph.predicates)])
        self._given, self._answer, self._predicate = (
            torch.from_numpy(column.astype(np.int64)).to(device)
            for column in (
                np.concatenate([train.subject, train.object]),
                np.concatenate([train.object, train.subject]),
                predicates,
            )
        )
        self._others = _OtherAnswers(graph, device)
        self.examples = torch.arange(2 * len(train), device=device)
        # A recorded step reads from tensors which step it is.
        self._at = torch.zeros(1, dtype=torch.int64, device=device)
        self._seeds = torch.zeros(self.steps, dtype=torch.int64, device=device)
        self._rates = torch.zeros(self.steps, device=device)
        self._rate = torch.zeros((), device=device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=self._rate,
            weight_decay=0.0,
            fused=True,
            capturable=device.type == "cuda",
        )

    @property
    def steps_are_alike(self) -> bool:
        """Not with a bound: the facts that are read differ."""
        return self.model.reach is None

    def shuffled(self) -> Tensor:
        """The questions of this epoch in their order; also its seeds and learning rates."""
        seed, epoch, steps = self.settings.seed, self.epoch, range(self.steps)
        # Each worker drops others, and the first what it would drop alone.
        own = (collective.rank(),) * bool(collective.rank())
        seeds = [seed_of(seed, epoch, step + 1, *own) & 0x7FFFFFFF for step in steps]
        self._seeds.copy_(torch.tensor(seeds))
        self._rates.copy_(torch.tensor([self._learning_rate(step) for step in steps]))
        self._at.fill_(self.step)
        self.model.train()
        generator = torch.Generator().manual_seed(seed_of(seed, epoch))
        return torch.randperm(len(self.examples), generator=generator).to(self.device)

    def take_step(self, examples: Tensor, drawn: Tensor | None) -> None:  # noqa: ARG002
        """One step of the optimizer, on the questions with these numbers."""
        batch, examples = examples, examples[collective.share(len(examples))]
        fact = batch % len(self.graph.train)
        times = self._times.take(fact[collective.share(len(fact))])
        scopes = self.facts.scopes(self.relative, times)
        # A fact must not answer itself, nor others of its batch, whichever worker they are with;
        # nothing that lies before a question does.
        weights = self.facts.weights(None if self.relative.past else fact)
        scores = self.model(
            self.facts,
            self._given[examples],
            self._predicate[examples],
            scopes,
            weights,
            times=times,
            seed=self._seeds[self._at][0],
        )
        scores = scores.masked_fill(self._others.mask(examples), -torch.inf)
        loss = torch.nn.functional.cross_entropy(scores, self._answer[examples])
        loss = loss * (len(examples) / len(batch))  # so that the shares add up to the mean
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        loss = add_up(self.model.parameters(), loss.detach())
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), _LONGEST_GRADIENT)
        self._rate.copy_(self._rates[self._at][0])
        self.optimizer.step()
        self._loss += loss
        self._at += 1
        self.step += 1

    def _learning_rate(self, step: int) -> float:
        """It rises for some steps, and falls as a cosine."""
        done, total = self.epoch * self.steps + step, self.settings.steps
        total = total or self.epochs * self.steps
        falling = (1 + math.cos(math.pi * min(done / total, 1))) / 2
        rising = min(1.0, (done + 1) / min(_WARM_UP, total))
        return self.settings.learning_rate * rising * (falling * (1 - _LAST) + _LAST)

    def tables(self) -> dict[str, Tensor]:
        """The parameters of the model, by their names in files."""
        return dict(self.model.named_parameters())

    def fill(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over parameters."""
        self.model.load_state_dict(dict(tensors))

    def scorer(self) -> PathScorer:
        """The scores of the model as it is now."""
        return PathScorer(self.model, self.graph, self.settings)


class _OtherAnswers:
    """The other answers to the questions of train that train states at the same time."""

    def __init__(self, graph: TemporalGraph, device: torch.device) -> None:
        starts: list[Ints] = []
        counts: list[Ints] = []
        ids: list[Ints] = []
        kinds: tuple[Kind, ...] = ("object", "subject")
        for kind in kinds:
            facts = keyed(kind, graph.train, graph)
            order = np.lexsort((facts.end, facts.begin, facts.key))
            columns = [column[order] for column in (facts.key, facts.begin, facts.end)]
            new = np.flatnonzero(changes(*columns))
            size = np.diff(np.append(new, len(order)))
            start, count = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
            start[order], count[order] = np.repeat(new, size), np.repeat(size, size)
            starts.append(start + sum(len(each) for each in ids))
            counts.append(count)
            ids.append(facts.id[order])
        own = np.concatenate([graph.train.object, graph.train.subject])
        self._start, self._count, self._ids, self._own = (
            torch.from_numpy(column.astype(np.int64)).to(device)
            for column in (*map(np.concatenate, (starts, counts, ids)), own)
        )
        self._within = torch.arange(int(self._count.max()), device=device)
        self._entities = len(graph.entities)

    def mask(self, questions: Tensor) -> Tensor:
        """Which entities [questions, entities] are other answers."""
        own = self._own[questions].unsqueeze(1)
        at = self._start[questions].unsqueeze(1) + self._within
        ids = self._ids[at.clamp(max=len(self._ids) - 1)]
        other = (self._within < self._count[questions].unsqueeze(1)) & (ids != own)
        # What is no other answer marks an entity that there is not.
        mask = torch.zeros(len(own), self._entities + 1, dtype=torch.bool, device=own.device)
        mask.scatter_(1, ids.where(other, self._entities), value=True)
        return mask[:, : self._entities]


class PathScorer:
    """Scores of all entities, from the facts that are given and the time that is asked about."""

    def __init__(self, model: PathModel, graph: TemporalGraph, settings: Settings) -> None:
        self.model, self.relative = model, relative_scopes(graph, settings)
        self.past = settings.past
        self.device = model.query.device
        self.known = graph.facts() if settings.past == "all" else graph.train
        """What questions are answered from."""
        check_memory(graph, len(self.known), settings, self.device)
        entities, predicates = len(graph.entities), len(graph.predicates)
        self.read = DirectedFacts.of(self.known, entities, predicates).to(self.device)
        state, own = _sizes(entities, len(self.known), settings)
        self._block = max(1, min(256, _BLOCK // (4 * state + own)))

    def entities(self, kind: Kind, facts: Facts) -> Tensor:
        """A row for each fact: its object (or subject) is asked for, at its time."""
        given, inverse = (facts.subject, 0) if kind == "object" else (facts.object, 1)
        predicate = facts.predicate.astype(np.int64) + inverse * self.read.predicates
        times = Times.of(facts).to(self.device)
        was_training = self.model.training
        self.model.eval()
        scores = []
        with torch.inference_mode(), fast(self.device).at_work():
            for start in range(0, len(facts), self._block):
                some = slice(start, start + self._block)
                at = torch.arange(len(facts), device=self.device)[some]
                ids = (torch.from_numpy(x[some].astype(np.int64)) for x in (given, predicate))
                own = times.take(at)
                asked = (*(x.to(self.device) for x in ids), self.read.scopes(self.relative, own))
                scores.append(self.model(self.read, *asked, times=own))
        self.model.train(was_training)
        return torch.cat(scores)

    def why(self, kind: Kind, fact: Facts, *, most: int = 5) -> list[Chain]:
        """The chains of known facts that the object (or subject) of one fact rests on."""
        given, answer = int(fact.subject[0]), int(fact.object[0])
        predicate = int(fact.predicate[0])
        if kind == "subject":
            given, answer, predicate = answer, given, predicate + self.read.predicates
        times = Times.of(fact).to(self.device)
        scopes = self.read.scopes(self.relative, times)
        asked = (given, predicate, scopes, answer)
        with fast(torch.device("cpu")).at_work():
            return evidence(self.model, self.read, *asked, times=times, most=most)

    def facts(self, facts: Facts) -> Tensor:
        """How likely each fact is: the mean log-probability of its object and of its subject."""
        return likelihoods(self, facts, self._block)


engine = PathEngine()
