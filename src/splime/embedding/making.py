"""Models for a static graph: made from settings, saved to and filled from files."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from splime.embedding.models import MODELS
from splime.embedding.models.base import Model
from splime.embedding.tables import TableMaker
from splime.settings import Settings
from splime.static import StaticGraph


def make_model(settings: Settings, static: StaticGraph, *, empty: bool = False) -> Model:
    """An untrained model for a static graph; an empty one has to be filled from a file.

    >>> import splime
    >>> graph = splime.read([("a", "p", "b", year) for year in (1, 2, 3)], split="none")
    >>> static = splime.Timestamp().fit_transform(graph)
    >>> model = make_model(Settings(model="complex", dimension=5, reciprocal=True), static)
    >>> [tuple(table.vectors().shape) for table in (model.entities, model.predicates)]
    [(2, 10), (6, 10)]
    """
    generator = None if empty else torch.Generator().manual_seed(settings.seed)
    return MODELS[settings.model].make(TableMaker(static, settings, generator))


def file_name(parameter: str) -> str:
    """The name of a parameter in files: `entities` for `entities.weight`."""
    return parameter.removesuffix(".weight")


def parameters_of(model: nn.Module) -> dict[str, Tensor]:
    """The parameters of a model by their names in files."""
    return {file_name(name): tensor for name, tensor in model.named_parameters()}


def fill_parameters(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Fill a model from a file, strictly: a missing, unknown or misfit tensor is a ValueError."""
    parameters = parameters_of(model)
    if missing := sorted(parameters.keys() - tensors.keys()):
        raise ValueError(f"{', '.join(missing)} missing")
    if unknown := sorted(tensors.keys() - parameters.keys()):
        raise ValueError(f"the model has no {', '.join(unknown)}")
    for name, parameter in parameters.items():
        tensor = tensors[name]
        if tensor.shape != parameter.shape or tensor.dtype != parameter.dtype:
            raise ValueError(
                f"{name} should be {tuple(parameter.shape)} of {parameter.dtype}, and is"
                f" {tuple(tensor.shape)} of {tensor.dtype}"
            )
    state = {name: tensors[file_name(name)] for name, _ in model.named_parameters()}
    model.load_state_dict(state, assign=any(p.is_meta for p in model.parameters()))
