"""A model with its first embeddings, as the settings say."""

from __future__ import annotations

import torch

from splime.embedding.models import MODELS, Model
from splime.embedding.settings import Settings


def make_model(settings: Settings, entities: int, predicates: int) -> Model:
    """An untrained model; with reciprocal predicates the inverses stand behind all predicates.

    >>> model = make_model(Settings(model="complex", dimension=5, reciprocal=True), 7, 3)
    >>> tuple(model.entities.shape), tuple(model.predicates.shape)
    ((7, 10), (6, 10))
    """
    return MODELS[settings.model](
        entities,
        predicates * (2 if settings.reciprocal else 1),
        settings.dimension,
        norm=settings.norm,
        init=settings.init,
        # Sun et al.: distances begin near the margin.
        spread=(settings.margin + 2) / settings.dimension,
        generator=torch.Generator().manual_seed(settings.seed),
    )
