"""A finished training, opened from its folder."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splime.embedding.device import choose_device
from splime.embedding.models import MODELS, Model
from splime.embedding.scoring import ModelScorer
from splime.embedding.settings import Settings
from splime.errors import DataError, SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.io import load_segmentation, read
from splime.runs import folder as files
from splime.runs.tensors import load_tensors, unpack_names
from splime.segmentation import Segmentation
from splime.static import StaticGraph, apply

if TYPE_CHECKING:
    import torch

    from splime.evaluation import Scorer


@dataclass(frozen=True)
class Epoch:
    """One line of the history; `valid` is the MRR on valid where it was looked at."""

    epoch: int
    loss: float
    valid: float | None


class Run:
    """A run: what it was trained with, the graph, the cuts, the embeddings, the scores.

    Opening one reads data only: nothing in the folder can run code.
    """

    def __init__(self, path: str | Path, *, device: str = "auto") -> None:
        self.path = Path(path)
        self.config = files.read_config(self.path)
        if not (self.path / files.MODEL).exists():
            raise UsageError(
                f"{self.path}: this run is not finished; the command that began it goes on with it"
            )
        self.device: torch.device = choose_device(device)

    def __repr__(self) -> str:
        method, model = self.config["method"]["name"], self.settings.model
        return f"Run({self.path}: {model} on {self.config['data']['name']}, {method})"

    @cached_property
    def settings(self) -> Settings:
        """The settings of the training."""
        try:
            return Settings.of(self.config["settings"])
        except (KeyError, SplimeError) as error:
            raise DataError(
                f"{self.path / files.CONFIG}: the settings are damaged: {error}"
            ) from None

    @property
    def engine(self) -> str:
        """`splime`, or the library that trained the model."""
        return str(self.config["run"]["engine"])

    @cached_property
    def graph(self) -> TemporalGraph:
        """The facts."""
        graph = read(self.path / files.GRAPH)
        if files.checksum(graph) != self.config["data"]["sha256"]:
            raise DataError(f"{self.path / files.GRAPH}: not the facts that the run was made from")
        return graph

    @cached_property
    def segmentation(self) -> Segmentation:
        """The cuts."""
        return load_segmentation(self.path / files.SEGMENTATION)

    @cached_property
    def static(self) -> StaticGraph:
        """The triples that the cuts make of the facts."""
        return apply(self.segmentation, self.graph)

    @cached_property
    def history(self) -> list[Epoch]:
        """The loss of every epoch, and the looks at valid."""
        path = self.path / files.HISTORY
        try:
            with path.open(encoding="utf-8", newline="") as file:
                return [
                    Epoch(int(row["epoch"]), float(row["loss"]), _number(row["valid"]))
                    for row in csv.DictReader(file)
                ]
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise DataError(f"{path}: cannot be read: {error}") from None

    @cached_property
    def about(self) -> dict[str, Any]:
        """Versions, device, date, seconds."""
        found: dict[str, Any] = files.read_json(self.path / files.ABOUT)
        return found

    @cached_property
    def tensors(self) -> dict[str, Any]:
        """The embeddings, by the name of their table; names are packed (`entities.names`)."""
        return load_tensors(self.path / files.MODEL)[0]

    @cached_property
    def model(self) -> Model:
        """The model with its embeddings."""
        import torch

        tables = {name: t for name, t in self.tensors.items() if not name.endswith(".names")}
        settings = self.settings
        try:
            kind = MODELS[settings.model]
            model = kind(1, 1, settings.dimension, norm=settings.norm, init="small_normal")
            expected = {
                "entities": (len(self.static.entities), model.entities.shape[1]),
                "predicates": (
                    len(self.static.predicates) * (2 if settings.reciprocal else 1),
                    model.predicates.shape[1],
                ),
            }
            for name, shape in expected.items():
                if tuple(tables[name].shape) != shape:
                    raise ValueError(
                        f"{name} should be {shape}, and is {tuple(tables[name].shape)}"
                    )
                setattr(model, name, torch.nn.Parameter(tables[name], requires_grad=False))
        except (KeyError, ValueError) as error:
            raise DataError(
                f"{self.path / files.MODEL}: not the embeddings of this run: {error}"
            ) from None
        if unpack_names(self.tensors["entities.names"]) != self.static.entities.labels.to_pylist():
            raise DataError(f"{self.path / files.MODEL}: the entities are not those of the graph")
        return model.to(self.device)  # type: ignore[no-any-return]

    @cached_property
    def scorer(self) -> Scorer:
        """The scores of the model, for evaluation and questions."""
        if self.engine == "pykeen":
            from splime.runs.pykeen import open_scorer

            return open_scorer(self)
        return ModelScorer(self.model, reciprocal=self.settings.reciprocal)


def _number(text: str) -> float | None:
    return float(text) if text else None
