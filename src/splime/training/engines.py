"""What an engine is: a way to train a kind of model, and to open what was trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from splime.axes import Axis
from splime.scoring.queries import Scoring
from splime.scoring.scoping import Scoping
from splime.settings import BaseSettings

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from splime.graph import TemporalGraph

S = TypeVar("S", bound=BaseSettings)
State = tuple[dict[str, "Tensor"], dict[str, Any]]


class ModelInput(Protocol):
    """What a model is trained on, and opened for."""

    @property
    def graph(self) -> TemporalGraph:
        """The facts."""

    @property
    def scoping(self) -> Scoping:
        """The triples that the cuts make of them, for models that have cuts."""

    @property
    def device(self) -> torch.device:
        """Where to compute."""

    @property
    def members(self) -> Sequence[Member]:
        """The models that a combination adds up; of others none."""


class Member(Protocol):
    """A model of a combination."""

    def scoring(self) -> Scoring:
        """Its scores."""


class TrainingStep(NamedTuple):
    """Some steps of an epoch are done."""

    step: int
    steps: int
    loss: float
    """The mean so far."""


class EpochEnd(NamedTuple):
    """An epoch is done."""

    loss: float
    """Its mean."""


Events = Generator[TrainingStep | EpochEnd, None, None]


class Learner(ABC):
    """A model in training. It yields its progress; the caller may save, score or stop."""

    epoch: int = 0
    """How many epochs are done."""
    epochs: int = 1
    """How many there are at most."""
    most_steps: int | None = None
    """How many steps there are at most, where the last epoch is not whole."""
    about: Mapping[str, Any] = {}
    """What is remembered with a run: the numbers of parameters and triples, and more."""

    @abstractmethod
    def train(self) -> Events:
        """Train to the end, from where it is."""

    @abstractmethod
    def parameters(self) -> dict[str, Tensor]:
        """What is kept of the model, by the names in files."""

    @abstractmethod
    def scoring(self) -> Scoring:
        """The scores of the model as it is now."""

    def state(self) -> State | None:
        """What resuming needs: tensors, and numbers; None if it cannot resume."""
        return None

    def restore(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Resume from a state."""
        raise NotImplementedError("it cannot resume")


class Engine(ABC, Generic[S]):
    """A way to train models of a kind."""

    parallel: bool = True
    """Whether several workers can train one model together."""

    def fitted(self, settings: S, source: ModelInput, given: Mapping[str, Any]) -> S:
        """The settings for one graph; what was given stays as it is."""
        return settings

    def quick(self, settings: S, source: ModelInput, given: Mapping[str, Any]) -> S:
        """Fitted settings that train within a minute on two cores, for the preset `quick`."""
        return settings

    def search_space(self, settings: S) -> dict[str, Axis]:
        """What `splime tune` tries for the settings that have an effect."""
        return {}

    @abstractmethod
    def learner(self, settings: S, source: ModelInput) -> Learner:
        """A model that is not trained yet."""

    @abstractmethod
    def open(self, settings: S, source: ModelInput, tensors: Mapping[str, Tensor]) -> Scoring:
        """The scores of a trained model; a ValueError where the tensors are not its parameters."""
