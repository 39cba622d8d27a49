"""The engine of the path model: questions about facts of train, answered from its other facts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from splime import collective
from splime.arrays import changes
from splime.axes import Axis, Range, Values
from splime.embedding import presets
from splime.embedding.making import fill_parameters
from splime.embedding.negatives import seed_of
from splime.errors import UsageError
from splime.graph import TemporalGraph
from splime.paths.counted import BINS
from splime.paths.counting import statement_groups
from splime.paths.facts import DirectedFacts
from splime.paths.messages import fast
from splime.paths.model import WIDTHS, Counting, PathModel
from splime.paths.relative import (
    AUTO,
    IntervalScopes,
    RelativeScopes,
    Times,
    fit_relative,
    growing_scopes,
    parse_relative,
)
from splime.paths.scorer import (
    PathScorer,
    check_memory,
    make_path_model,
    relative_scopes,
)
from splime.paths.shipped import LATEST, NONE, load_weights
from splime.scoring.scoping import SIDES, keyed
from splime.scoring.timed import TimedScoring
from splime.settings import PathSettings
from splime.times import Ints
from splime.training.engines import Engine, ModelInput
from splime.training.registry import ModelEntry
from splime.training.trainer import Loop, all_reduce_gradients, check_batch, sizes

STRONG: Mapping[str, Any] = {
    "messages": "counted",
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
QUICKER: Mapping[str, Any] = {"epochs": 1}
"""How the preset `quick` differs."""
_QUICK_SECONDS, _QUICK_VALID, _QUICK_REACH = 20.0, 500, 5_000
"""What `quick` may train on a core; the queries that it validates on, and the facts that a question
reads, where all would take longer."""
_SECONDS_OF_PREDICATE, _SECONDS_OF_FACT = 9e-5, 3e-7
"""What a question of a training takes on a core, measured: for each predicate, and for each fact
that it reads, at the width and layers of the shipped weights."""
_WARM_UP, _LAST = 200, 0.05
"""Steps until the learning rate is reached, and the share of it that is left at the end."""
_LONGEST_GRADIENT = 1.0
_SHAPE = ("layers", "dimension")
"""The settings that weights have."""
_EPOCHS_BEGUN = 2
"""From shipped weights: later ones gain little."""
_FEW, _LAYERS_OF_FEW = 10_000, 3
"""Up to so many facts of train, so many layers: in the time of `demo` a fourth gains nothing."""


class PathEngine(Engine[PathSettings]):
    """Trains the path model."""

    def fitted(
        self, settings: PathSettings, source: ModelInput, given: Mapping[str, Any]
    ) -> PathSettings:
        """What the settings leave open: it follows from the facts, and from shipped weights."""
        graph, count = source.graph, len(source.graph.train)
        if "messages" not in given and _needs_learned(settings):
            settings = replace(settings, messages="learned")
        relative: RelativeScopes
        if settings.messages == "counted" and settings.relative == AUTO:
            relative = growing_scopes(graph.train, graph.timeline.granularity, BINS)
        else:
            relative = fit_relative(settings.relative, graph)
        settings = replace(settings, relative=str(relative))
        if settings.messages == "counted" and settings.weights is None:
            shape = {name: getattr(settings, name) for name in _SHAPE}
            fits = shape == load_weights().settings
            settings = replace(settings, weights=LATEST if fits else NONE)
        begun = settings.weights not in (None, NONE)
        if begun and "epochs" not in given:
            settings = replace(settings, epochs=min(settings.epochs, _EPOCHS_BEGUN))
        if not begun and "layers" not in given and count <= _FEW:
            settings = replace(settings, layers=min(settings.layers, _LAYERS_OF_FEW))
        if "batch_size" in given:
            return settings
        return replace(settings, batch_size=min(settings.batch_size, 2 * count))

    def quick(
        self, settings: PathSettings, source: ModelInput, given: Mapping[str, Any]
    ) -> PathSettings:
        """A part of an epoch, with fewer facts for a question, where all would take too long."""
        facts, predicates = len(source.graph.train), len(source.graph.predicates)
        if facts > 4 * _QUICK_REACH and "reach" not in given:
            settings = replace(settings, reach=_QUICK_REACH)
        read = min(facts, settings.reach or facts)
        question = _SECONDS_OF_PREDICATE * predicates + _SECONDS_OF_FACT * read
        steps = max(1, int(_QUICK_SECONDS / question / settings.batch_size))
        every = math.ceil(2 * facts / settings.batch_size) * settings.epochs
        if steps < every and not given.keys() & {"steps", "epochs"}:
            settings = replace(settings, steps=steps)
        queries = 2 * len(source.graph.valid)
        if question * queries > _QUICK_SECONDS / 2 and "valid_questions" not in given:
            settings = replace(settings, valid_questions=min(_QUICK_VALID, queries))
        return settings

    def search_space(self, settings: PathSettings) -> dict[str, Axis]:
        """What `splime tune` tries."""
        return {
            "layers": Range(2, 6),
            "dimension": Values(WIDTHS),
            "dropout": Values((0.0, 0.1, 0.2)),
            "learning_rate": Range(0.001, 0.01, log=True),
        }

    def learner(self, settings: PathSettings, source: ModelInput) -> PathTrainer:
        """A model that is not trained yet."""
        trainer = PathTrainer(source.graph, settings, source.device)
        if settings.weights not in (None, NONE):
            weights = load_weights(settings.weights)
            begin = weights.parameters(forecasts=settings.forecasts)
            fill_parameters(trainer.model, begin)
        return trainer

    def open(
        self,
        settings: PathSettings,
        source: ModelInput,
        tensors: Mapping[str, Tensor],
        counting: Counting | None = None,
    ) -> TimedScoring:
        """The scores of a trained model."""
        model = make_path_model(source.graph, settings, empty=True)
        fill_parameters(model, tensors)
        scorer = PathScorer(model.to(source.device), source.graph, settings, counting)
        return TimedScoring(scorer, source.graph)


def _needs_learned(settings: PathSettings) -> bool:
    """Whether only learned messages can have such scopes."""
    kind, _, listed = settings.relative.partition(":")
    fits = kind == IntervalScopes.kind and len(listed.split(",")) == BINS
    known = fits or settings.relative == AUTO
    return not known or bool(settings.unknown_scopes)


def _check(settings: PathSettings, given: Mapping[str, Any]) -> None:
    parse_relative(settings.relative)
    if given.get("messages") == "counted" and _needs_learned(settings):
        raise UsageError(
            "counted messages have relative scopes of their own: leave out relative and"
            " unknown_scopes, or choose messages learned"
        )
    if settings.messages == "learned" and given.get("weights", NONE) != NONE:
        raise UsageError("weights belong to counted messages; leave out weights, or messages")
    if settings.weights not in (None, NONE):
        shape = load_weights(settings.weights).settings
        if any(getattr(settings, name) != shape[name] for name in _SHAPE):
            expected = ", ".join(f"{name} {shape[name]}" for name in _SHAPE)
            raise UsageError(
                f"the weights {settings.weights} have {expected}; leave these out, or begin anew"
                f" with weights {NONE}"
            )
    if settings.dimension not in WIDTHS:
        raise UsageError(
            "the dimension of the path model, the width of its messages, is one of"
            f" {', '.join(map(str, WIDTHS))}, not {settings.dimension}"
        )


class PathTrainer(Loop):
    """Asks for the object and the subject of each fact of train, from the other facts.

    The order of the questions and dropout are random.
    """

    settings: PathSettings
    model: PathModel

    def __init__(self, graph: TemporalGraph, settings: PathSettings, device: torch.device) -> None:
        train = graph.train
        check_batch(settings.batch_size, 2 * len(train), "question")
        batch = math.ceil(settings.batch_size / collective.size())
        check_memory(graph, len(train), settings, device, batch=batch)
        super().__init__(settings, device, 2 * len(train))
        self.graph, self.model = graph, make_path_model(graph, settings).to(device)
        self.questions = PathQuestions(graph, self.model, relative_scopes(graph, settings))
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
        self.about = sizes(self.model, len(train))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """What holds while it is trained."""
        with super().at_work(), fast(self.device).at_work():
            yield

    @property
    def steps_are_alike(self) -> bool:
        """Not with a bound: the facts that are read differ; nor with counts of predicates."""
        return self.model.reach is None and self.model.steps_are_alike

    def shuffled(self) -> Tensor:
        """The questions of this epoch in their order; also its seeds and learning rates."""
        seed, epoch, steps = self.settings.seed, self.epoch, range(self.steps)
        # Each worker drops others, and the first what it would drop alone.
        rank = (collective.rank(),) * bool(collective.rank())
        seeds = [seed_of(seed, epoch, step + 1, *rank) & 0x7FFFFFFF for step in steps]
        self._seeds.copy_(torch.tensor(seeds))
        self._rates.copy_(torch.tensor([self._learning_rate(step) for step in steps]))
        self._at.fill_(self.step)
        self.model.train()
        generator = torch.Generator().manual_seed(seed_of(seed, epoch))
        return torch.randperm(len(self.examples), generator=generator).to(self.device)

    def take_step(self, examples: Tensor, drawn: Tensor | None) -> None:
        """One step of the optimizer, on the questions with these numbers."""
        loss = self.questions.loss(self.model, examples, self._seeds[self._at][0])
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        loss = all_reduce_gradients(self.model.parameters(), loss.detach())
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

    def scoring(self) -> TimedScoring:
        """The scores of the model as it is now."""
        return TimedScoring(PathScorer(self.model, self.graph, self.settings), self.graph)


class PathQuestions:
    """The questions that the facts of train are asked with, and what they are answered from."""

    def __init__(self, graph: TemporalGraph, model: PathModel, relative: RelativeScopes) -> None:
        train, device = graph.train, model.device
        self.relative = relative
        self.facts = DirectedFacts.of(train, len(graph.entities), len(graph.predicates)).to(device)
        self._times = Times.of(train).to(device)
        predicates = np.concatenate([train.predicate, train.predicate + len(graph.predicates)])
        self._given, self._answer, self.predicate = (
            torch.from_numpy(column.astype(np.int64)).to(device)
            for column in (
                np.concatenate([train.subject, train.object]),
                np.concatenate([train.object, train.subject]),
                predicates,
            )
        )
        self.start = model.training_starter(train, graph, relative)
        self._others = _OtherAnswers(graph, device)
        statement = torch.from_numpy(statement_groups(train)).to(device)
        self._statement = statement if int(statement.max()) + 1 < len(statement) else None
        """Of each fact, where several state the same at the same time."""

    def _stated_by(self, facts: Tensor) -> Tensor | None:
        """The facts that state what some do; None where each states something else."""
        statement = self._statement
        if statement is None or self.relative.past:
            return None
        chosen = torch.zeros(len(statement), dtype=torch.bool, device=facts.device)
        return chosen.index_fill_(0, statement[facts], True)[statement]

    def loss(
        self, model: PathModel, batch: Tensor, seed: Tensor, silent: Tensor | None = None
    ) -> Tensor:
        """The mean loss of questions: fact i asks for its object, i + facts for its subject.

        Of several workers each has its share, and their losses add up to the mean. Facts that are
        `silent` pass nothing.
        """
        examples = batch[collective.share(len(batch))]
        every = batch % self.facts.facts
        fact = every[collective.share(len(batch))]
        times = self._times.take(fact)
        scopes = self.facts.scopes(self.relative, times)
        # A fact must not answer itself, nor others of its batch, whichever worker they are with,
        # nor do rows that state the same; nothing that lies before a question does.
        weights = self.facts.weights(None if self.relative.past else every)
        for hidden in (self._stated_by(every), silent):
            if hidden is not None:
                weights = weights.masked_fill(hidden.repeat(2), 0.0)
        start = self.start(self.predicate[examples], fact)
        scores = model(
            self.facts, self._given[examples], start, scopes, weights, times=times, seed=seed
        )
        scores = scores.masked_fill(self._others.mask(examples), -torch.inf)
        loss = torch.nn.functional.cross_entropy(scores, self._answer[examples])
        return loss * (len(examples) / len(batch))


class _OtherAnswers:
    """The other answers to the questions of train that train states at the same time."""

    def __init__(self, graph: TemporalGraph, device: torch.device) -> None:
        starts: list[Ints] = []
        counts: list[Ints] = []
        ids: list[Ints] = []
        for kind in SIDES:
            facts = keyed(kind, graph.train, graph)
            order = np.lexsort((facts.end, facts.begin, facts.key))
            columns = [column[order] for column in (facts.key, facts.begin, facts.end)]
            new = np.flatnonzero(changes(*columns))
            size = np.diff(np.append(new, len(order)))
            start, count = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
            start[order], count[order] = np.repeat(new, size), np.repeat(size, size)
            starts.append(start + sum(map(len, ids)))
            counts.append(count)
            ids.append(facts.id[order])
        answers = np.concatenate([graph.train.object, graph.train.subject])
        self._start, self._count, self._ids, self._answers = (
            torch.from_numpy(column.astype(np.int64)).to(device)
            for column in (*map(np.concatenate, (starts, counts, ids)), answers)
        )
        self._within = torch.arange(int(self._count.max()), device=device)
        self._entities = len(graph.entities)

    def mask(self, questions: Tensor) -> Tensor:
        """Which entities [questions, entities] are other answers."""
        answers = self._answers[questions].unsqueeze(1)
        at = self._start[questions].unsqueeze(1) + self._within
        ids = self._ids[at.clamp(max=len(self._ids) - 1)]
        other = (self._within < self._count[questions].unsqueeze(1)) & (ids != answers)
        # What is no other answer marks an entity that there is not.
        mask = torch.zeros(len(ids), self._entities + 1, dtype=torch.bool, device=ids.device)
        mask.scatter_(1, ids.where(other, self._entities), value=True)
        return mask[:, : self._entities]


engine = PathEngine()
entry = ModelEntry(
    "path",
    "Chains of facts, scoped relative to the time of the question.",
    "paths",
    PathSettings,
    reads_facts=True,
    explains=True,
    presets={presets.STRONG: STRONG, presets.QUICK: {**STRONG, **QUICKER}},
    check=_check,
)
