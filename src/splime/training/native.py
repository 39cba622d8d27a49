"""The engine of splime itself: models with vectors of entities, trained by `Trainer`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from splime.arrays import distinct
from splime.axes import Axis, Values
from splime.embedding.initial import INITIALISERS
from splime.embedding.losses import LOSSES
from splime.embedding.losses.sampled import SAMPLED_SOFTMAX
from splime.embedding.making import fill_parameters, make_model
from splime.embedding.models import MODELS
from splime.embedding.scorer import ModelScorer
from splime.errors import UsageError, check_name
from splime.scoring.scoped import ScopedScoring
from splime.settings import Settings
from splime.static import StaticGraph, Triples, first_and_last
from splime.training.engines import Engine, ModelInput
from splime.training.trainer import LEARNING_RATES, Trainer

MANY_ENTITIES = 50_000
"""With more (scoped) entities, presets that compare with all of them compare with a sample."""
_QUICK_SECONDS, _QUICK_SCORES, _QUICK_VALID = 40.0, 1 << 27, 1_000
"""What `quick` may train on a core, the scores that a validation may take, and its fewest
queries."""
_SECONDS_OF_SCORE, _SECONDS_OF_ROW = 2.6e-8, 1e-6
"""What a step takes on a core at dimension 50, measured with ComplEx: for each score, and for each
row of its tables."""
_DIMENSIONS, _SMOOTH = Values((50, 100, 200)), Values((0.0, 0.01, 0.1, 1.0, 10.0))


class NativeEngine(Engine[Settings]):
    """Trains models with vectors of entities."""

    def fitted(self, settings: Settings, source: ModelInput, given: Mapping[str, Any]) -> Settings:
        """A preset's batch is all of train where train is smaller.

        With very many entities a preset compares with a sample of them, not with all.
        """
        static = source.scoping.static
        against_all = LOSSES[settings.loss].against == "all"
        if against_all and "loss" not in given and len(static.entities) > MANY_ENTITIES:
            settings = replace(settings, loss=SAMPLED_SOFTMAX.name)
        if "batch_size" in given:
            return settings
        triples = _examples(static, settings)
        count = len(distinct(triples.fact) if settings.each == "fact" else triples)
        return replace(settings, batch_size=min(settings.batch_size, count))

    def quick(self, settings: Settings, source: ModelInput, given: Mapping[str, Any]) -> Settings:
        """Fewer epochs, and validation on fewer queries, where all would take too long."""
        static, train = source.scoping.static, _examples(source.scoping.static, settings)
        entities, queries = len(static.entities), 2 * len(source.graph.valid)
        if queries * entities > _QUICK_SCORES and "valid_questions" not in given:
            most = max(_QUICK_VALID, _QUICK_SCORES // entities)
            settings = replace(settings, valid_questions=min(queries, most))
        if given.keys() & {"steps", "epochs"}:
            return settings
        against_all = LOSSES[settings.loss].against == "all"
        candidates, width = entities if against_all else settings.negatives, settings.dimension / 50
        step = _SECONDS_OF_SCORE * settings.batch_size * candidates * width
        step += _SECONDS_OF_ROW * (entities + len(static.predicates)) * width
        count = len(distinct(train.fact) if settings.each == "fact" else train)
        steps, of_epoch = int(_QUICK_SECONDS / step), math.ceil(count / settings.batch_size)
        if steps >= (settings.steps or settings.epochs * of_epoch):
            return settings
        if steps < 2 * of_epoch:  # the last epoch need not be whole
            return replace(settings, steps=max(1, steps))
        epochs = steps // of_epoch
        every = min(settings.validate_every, epochs)
        return replace(settings, epochs=epochs, validate_every=every)

    def search_space(self, settings: Settings) -> dict[str, Axis]:
        """Dimension, learning rate, smoothness, and those of the loss."""
        loss = LOSSES[settings.loss]
        return {
            "dimension": _DIMENSIONS,
            "learning_rate": LEARNING_RATES[settings.optimizer],
            # The order decides what a seed draws: it is that of searches made before.
            **(loss.search if loss.against == "all" else {}),
            "smooth": _SMOOTH,
            **loss.search,
        }

    def learner(self, settings: Settings, source: ModelInput) -> Trainer:
        """A model that is not trained yet."""
        static = source.scoping.static
        model = make_model(settings, static).to(source.device)
        return Trainer(model, _examples(static, settings), settings, source.scoping)

    def open(
        self, settings: Settings, source: ModelInput, tensors: Mapping[str, Tensor]
    ) -> ScopedScoring:
        """The scores of a trained model."""
        model = make_model(settings, source.scoping.static, empty=True)
        fill_parameters(model, tensors)
        model.requires_grad_(False)
        scorer = ModelScorer(model.to(source.device), settings)
        return ScopedScoring(scorer, source.scoping)


def check_settings(settings: Settings, given: Mapping[str, Any]) -> None:
    """An error unless the settings fit the model, and those that were given have an effect."""
    model = MODELS[settings.model]
    check_name("loss", settings.loss, LOSSES)
    check_name("initialiser", settings.init, INITIALISERS)
    model.check(settings)
    loss = LOSSES[settings.loss]
    if settings.dropout and "dropout" not in loss.settings:
        raise UsageError(f"the loss {loss.name} has no dropout; leave it out")
    of_losses = {name for other in LOSSES.values() for name in other.settings}
    effective = {*loss.settings, *(("margin",) if settings.init == "uniform" else ())}
    for name in given:
        if name in of_losses - effective:
            raise UsageError(f"{name} has no effect with the loss {loss.name}; leave it out")
    if "norm" in given and not model.norms:
        raise UsageError(f"norm has no effect on {settings.model}; leave it out")


def _examples(static: StaticGraph, settings: Settings) -> Triples:
    """The triples of train that a training goes through, or draws from."""
    if settings.each in ("ends", "begin"):
        triples = static.train
        rows, at_end = first_and_last(triples.fact, static.graph.train.unknown)
        if settings.each == "begin":
            return triples.take(rows[:, 0])
        triples = triples.take(rows.ravel())
        predicate = triples.predicate + at_end.ravel() * np.int32(len(static.predicates))
        return replace(triples, predicate=predicate)
    once = settings.distinct and settings.each == "triple"
    return (static.distinct()[0] if once else static).train


engine = NativeEngine()
