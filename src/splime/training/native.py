"""The engine of splime itself: factor models over tables, trained by `Trainer`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from splime import collective
from splime.arrays import distinct
from splime.axes import Axis, Values
from splime.embedding.device import matrix_precision
from splime.embedding.losses import LOSSES
from splime.embedding.losses.sampled import SAMPLED_SOFTMAX
from splime.embedding.making import fill_parameters, make_model
from splime.embedding.models import Model
from splime.embedding.presets import preset_settings
from splime.embedding.scorer import ModelScorer
from splime.embedding.settings import Settings
from splime.embedding.tables import Shard
from splime.errors import UsageError
from splime.static import StaticGraph, Triples, first_and_last
from splime.training.engines import Supervisor, run_epochs
from splime.training.trainer import LEARNING_RATES, Trainer

MANY_ENTITIES = 50_000
"""With more (scoped) entities, presets that compare with all of them compare with a sample."""
_DIMENSIONS, _SMOOTH = Values((50, 100, 200)), Values((0.0, 0.01, 0.1, 1.0, 10.0))


class NativeEngine:
    """Trains the models of `splime models`."""

    def make_settings(self, model: str | None, preset: str | None, **given: Any) -> Settings:
        """Those of a preset, changed by what is given."""
        return preset_settings(model, preset, **given)

    def read_settings(self, values: Mapping[str, Any]) -> Settings:
        """All settings are in the configuration."""
        return Settings.of(values)

    def values(self, settings: Settings) -> dict[str, Any]:
        """All that are set."""
        return settings.values()

    def fitted(self, settings: Settings, static: StaticGraph, given: Mapping[str, Any]) -> Settings:
        """A preset's batch is all of train where train is smaller.

        With very many entities a preset compares with a sample of them, not with all.
        """
        against_all = LOSSES[settings.loss].against == "all"
        if against_all and "loss" not in given and len(static.entities) > MANY_ENTITIES:
            settings = replace(settings, loss=SAMPLED_SOFTMAX.name)
        if "batch_size" in given:
            return settings
        triples = _examples(static, settings)
        count = len(distinct(triples.fact) if settings.each == "fact" else triples)
        return replace(settings, batch_size=min(settings.batch_size, count))

    def search_space(self, settings: Settings) -> dict[str, Axis]:
        """Dimension, learning rate, smoothness, and what the loss has of its own."""
        loss = LOSSES[settings.loss]
        return {
            "dimension": _DIMENSIONS,
            "learning_rate": LEARNING_RATES[settings.optimizer],
            # The order decides what a seed draws: it is that of searches made before.
            **(loss.search if loss.against == "all" else {}),
            "smooth": _SMOOTH,
            **loss.search,
        }

    def fit(self, static: StaticGraph, settings: Settings, supervisor: Supervisor) -> None:
        """Epoch by epoch to the end, from the last checkpoint if there is one."""
        with matrix_precision(settings.precision):
            model = _make(settings, static, shard=supervisor.shard).to(supervisor.device)
            trainer = Trainer(model, _examples(static, settings), settings)
            parameters = sum(table.numel() for table in model.parameters())
            elsewhere = len(model.entities) - len(model.entities.vectors())
            parameters += elsewhere * model.entities.width
            supervisor.begin(trainer, parameters=parameters, triples=len(trainer.triples))
            run_epochs(trainer, supervisor)

    def open(
        self,
        static: StaticGraph,
        settings: Settings,
        tensors: Mapping[str, Tensor],
        device: torch.device,
    ) -> ModelScorer:
        """The scores of a trained model."""
        # One of several workers may have been given its own rows.
        shard = "entities" in tensors and len(tensors["entities"]) < len(static.entities)
        model = _make(settings, static, empty=True, shard=shard and collective.size() > 1)
        fill_parameters(model, tensors)
        model.requires_grad_(False)
        return ModelScorer.of(model.to(device), settings)


def _make(
    settings: Settings, static: StaticGraph, *, empty: bool = False, shard: bool = False
) -> Model:
    """A model; an error where its entities cannot be divided over workers."""
    if shard and static.segmentation.entities is not None:
        raise UsageError("with shard, entities cannot be cut in time; cut predicates alone")
    model = make_model(settings, static, empty=empty, shard=shard)
    if shard and not isinstance(model.entities, Shard):
        raise UsageError(
            f"the entities of {settings.model} cannot be divided over workers; leave out shard"
            " (--shard), and each worker takes a share of each batch"
        )
    return model


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
