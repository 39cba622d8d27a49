"""Engines: what trains models on a static graph. One line here makes an engine known everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from splime.axes import Axis
from splime.embedding.settings import Settings
from splime.errors import SplimeError, check_name, checked
from splime.methods import Timestamp, Vanilla
from splime.static import StaticGraph

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from splime.keywords import Training
    from splime.scoring.scorer import Scorer
    from splime.scoring.timed import TimedScorer

ENGINES = {
    "splime": "splime.training.native",
    "pykeen": "splime.training.pykeen",
    "paths": "splime.training.paths",
    "latest": "splime.training.latest",
}
"""The module of each engine, which has an `engine`."""
PATH, LATEST = "path", "latest"
OWN_ENGINES = {PATH: "paths", LATEST: "latest"}
"""Models with an engine of their own, which nobody needs to name. They have no cuts and no vectors
of entities, so they can be asked over any facts."""
NO_CUTS = "this model has no cuts: leave out the method, or choose vanilla"


class Interrupted(SplimeError):  # noqa: N818  # nothing went wrong
    """The training was asked to stop."""

    exit_code = 130


class Learner(Protocol):
    """A model in training."""

    @property
    def epoch(self) -> int:
        """How many epochs are done."""

    @property
    def epochs(self) -> int:
        """How many there are at most."""

    def parameters(self) -> dict[str, Tensor]:
        """What is kept of the model, by the names in files."""

    def scorer(self) -> Scorer | TimedScorer:
        """The scores of the model as it is now."""

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """All that is needed to resume: tensors, and numbers; None if it cannot resume."""

    def restore(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Resume from a state."""


class SteppedLearner(Learner, Protocol):
    """A model that is trained step by step, from any step on."""

    @property
    def steps(self) -> int:
        """Steps of an epoch."""

    def run_epoch(
        self, *, advance: Callable[[int, float], None], stop: Callable[[], bool]
    ) -> float | None:
        """Train to the end of the epoch. Its mean loss, or None if it was asked to stop before."""


class Supervisor(Protocol):
    """Whoever has a model trained: watches it, validates it, and keeps what came of it."""

    @property
    def device(self) -> torch.device:
        """Where to compute."""

    @property
    def shard(self) -> bool:
        """Whether the vectors of entities are divided over the workers."""

    def begin(self, learner: Learner, **about: Any) -> None:
        """Before the first step: restores the last checkpoint, if there is one.

        `about` is remembered with the run: the numbers of parameters and triples, and more.
        """

    def step(self, step: int, steps: int, loss: float) -> None:
        """After some steps of an epoch."""

    def should_stop(self) -> bool:
        """Whether somebody asked to stop."""

    def end_epoch(self, loss: float) -> None:
        """After an epoch: validates if it is time for that, and keeps the best parameters."""

    @property
    def stopped_early(self) -> bool:
        """Whether validations no longer get better."""

    def interrupted(self) -> Interrupted:
        """What to raise when the training was stopped; saves a checkpoint."""


class Engine(Protocol):
    """A way to train models on a static graph."""

    def make_settings(self, model: str | None, preset: str | None, **given: Any) -> Settings:
        """The settings of a training; a mistake in them is an error, before any work is done."""

    def read_settings(self, values: Mapping[str, Any]) -> Settings:
        """The settings of a run, from its configuration."""

    def values(self, settings: Settings) -> dict[str, Any]:
        """What the configuration of a run keeps of the settings."""

    def fitted(self, settings: Settings, static: StaticGraph, given: Mapping[str, Any]) -> Settings:
        """The settings for one graph; what was given stays as it is."""

    def search_space(self, settings: Settings) -> dict[str, Axis]:
        """What `splime tune` tries for the settings that have an effect."""

    def fit(self, static: StaticGraph, settings: Settings, supervisor: Supervisor) -> None:
        """Train a model to the end."""

    def open(
        self,
        static: StaticGraph,
        settings: Settings,
        tensors: Mapping[str, Tensor],
        device: torch.device,
    ) -> Scorer | TimedScorer:
        """The scores of a trained model; a ValueError where the tensors are not its parameters."""


def run_epochs(learner: SteppedLearner, supervisor: Supervisor) -> None:
    """Train epoch by epoch to the end."""
    while learner.epoch < learner.epochs and not supervisor.stopped_early:
        loss = learner.run_epoch(
            advance=lambda step, loss: supervisor.step(step, learner.steps, loss),
            stop=supervisor.should_stop,
        )
        if loss is None:
            raise supervisor.interrupted()
        supervisor.end_epoch(loss)


def engine_of(model: str | None, engine: str) -> str:
    """The engine that trains a model: some of splime's own have one for themselves."""
    return OWN_ENGINES.get((model or "").lower(), engine) if engine == "splime" else engine


def knows_time(model: str | None, engine: str = "splime") -> bool:
    """Whether a model has vectors of times itself, and so is trained at every timestamp."""
    if engine != "splime" or model is None:
        return False
    from splime.embedding.models import MODELS

    return model.lower() in MODELS and MODELS[model.lower()].knows_time


def implied_method(model: str | None, engine: str = "splime") -> str:
    """The name of the method that cuts a graph for a model where none is chosen."""
    return Timestamp.name if knows_time(model, engine) else Vanilla.name


def find_engine(name: str) -> Engine:
    """The engine of a name."""
    check_name("engine", name, ENGINES)
    engine: Engine = import_module(ENGINES[name]).engine
    return engine


@checked
def make_settings(
    model: str | None = None,
    preset: str | None = None,
    *,
    engine: str = "splime",
    **given: Unpack[Training],
) -> Settings:
    """Settings of a preset (by default the strong one of the model), changed by what is given.

    >>> make_settings("complex").loss, make_settings(preset="paper", margin=1.0).margin
    ('softmax', 1.0)
    """
    return find_engine(engine_of(model, engine)).make_settings(model, preset, **given)
