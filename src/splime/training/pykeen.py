"""The engine of PyKEEN: its models, trained on the same triples and ranked by the same code."""

from __future__ import annotations

import logging
import math
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from splime.axes import Axis, Range, Values
from splime.errors import SplimeError, UsageError, nearest
from splime.exports import to_pykeen
from splime.scoring.scoped import ScopedScoring
from splime.scoring.scorer import Scorer
from splime.settings import PykeenSettings
from splime.static import StaticGraph
from splime.training.engines import Engine, EpochEnd, Events, Learner, ModelInput, TrainingStep
from splime.training.registry import ModelEntry
from splime.training.trainer import check_batch, sizes

_PREFIX = "pykeen."


class PykeenEngine(Engine[PykeenSettings]):
    """Trains any of PyKEEN's models, with PyKEEN's own loss for it, and Adam."""

    parallel = False

    def fitted(
        self, settings: PykeenSettings, source: ModelInput, given: Mapping[str, Any]
    ) -> PykeenSettings:
        """A given batch size must not be larger than train."""
        if "batch_size" in given:
            check_batch(given["batch_size"], len(_train(source.scoping.static, settings).train))
        return settings

    def search_space(self, settings: PykeenSettings) -> dict[str, Axis]:
        """The same for all models."""
        return {
            "dimension": Values((50, 100, 200)),
            "learning_rate": Range(0.0001, 0.01, log=True),
            "negatives": Values((8, 32, 128)),
        }

    def learner(self, settings: PykeenSettings, source: ModelInput) -> _PykeenLearner:
        """A model that is not trained yet; a training that was interrupted begins again."""
        with _apart():
            factory = to_pykeen(_train(source.scoping.static, settings))["train"]
            model = _make(settings, factory).to(source.device)
        return _PykeenLearner(model, factory, settings, source)

    def open(
        self, settings: PykeenSettings, source: ModelInput, tensors: Mapping[str, Tensor]
    ) -> ScopedScoring:
        """The scores of a trained model."""
        _resolve(settings.model)  # importing PyKEEN sets up its log, which is then silenced
        state = {name.removeprefix(_PREFIX): tensor for name, tensor in tensors.items()}
        with _apart():
            model = _make(settings, to_pykeen(_train(source.scoping.static, settings))["train"])
            try:
                model.load_state_dict(state)
            except RuntimeError as error:
                raise ValueError(" ".join(str(error).split())) from None
        scorer = PykeenScorer(model.to(source.device).eval(), source.device)
        return ScopedScoring(scorer, source.scoping)


engine = PykeenEngine()


def model_name(name: str) -> str:
    """The name of a model as PyKEEN writes it; an error if it has none of that name."""
    return str(_resolve(name).__name__)


def entry_of(name: str) -> ModelEntry:
    """What is said about a model of PyKEEN."""
    return ModelEntry(name, "A model of PyKEEN.", "pykeen", PykeenSettings, cuts="any")


def _train(static: StaticGraph, settings: PykeenSettings) -> StaticGraph:
    return static.distinct()[0] if settings.distinct else static


def _resolve(name: str) -> Any:
    try:
        from pykeen.models import model_resolver
    except ImportError as error:
        raise SplimeError(
            f"PyKEEN cannot be imported ({error}); install it with: pip install 'splime-kg[pykeen]'"
        ) from None
    try:
        return model_resolver.lookup(name)
    except (KeyError, ValueError, TypeError):
        known = sorted(kind.__name__ for kind in model_resolver.lookup_dict.values())
        raise UsageError(
            f"PyKEEN has no model {name!r}; it has {', '.join(known)}.{nearest(name, known)}"
        ) from None


@contextmanager
def _apart() -> Iterator[None]:
    """Keep PyKEEN's log messages and its seeding of global generators from the outside."""
    log, states = logging.getLogger("pykeen"), (random.getstate(), np.random.get_state())
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
        random.setstate(states[0])
        np.random.set_state(states[1])


@contextmanager
def _explained(kind: type[SplimeError], what: str) -> Iterator[None]:
    """Each model of PyKEEN has its own ways to refuse: any error is one of splime."""
    try:
        yield
    except (SplimeError, torch.OutOfMemoryError, MemoryError):
        raise
    except Exception as error:
        raise kind(f"{what}: {str(error) or type(error).__name__}") from error


def _make(settings: PykeenSettings, factory: Any) -> Any:
    with _explained(UsageError, f"{settings.model} cannot be made with these settings"):
        return _resolve(settings.model)(
            triples_factory=factory,
            embedding_dim=settings.dimension,
            random_seed=settings.seed % 2**32,
        )


class _PykeenLearner(Learner):
    """A model of PyKEEN in training."""

    def __init__(
        self, model: Any, factory: Any, settings: PykeenSettings, source: ModelInput
    ) -> None:
        self.model, self.factory, self.settings, self.source = model, factory, settings, source
        self.epochs = settings.epochs
        self._batch = min(settings.batch_size, factory.num_triples)
        about = sizes(model, factory.num_triples)
        self.about = {**about, "loss": type(model.loss).__name__}

    def train(self) -> Events:
        """PyKEEN's own loop, an epoch at a time."""
        from pykeen.training import SLCWATrainingLoop

        settings = self.settings
        steps = math.ceil(self.factory.num_triples / self._batch)
        with _apart():
            # Made again: the random numbers of the training follow those of its first vectors.
            self.model = _make(settings, self.factory).to(self.source.device)
            loop = SLCWATrainingLoop(
                model=self.model,
                triples_factory=self.factory,
                optimizer=torch.optim.Adam(self.model.parameters(), lr=settings.learning_rate),
                negative_sampler="basic",
                negative_sampler_kwargs={"num_negs_per_pos": settings.negatives},
            )
            for epoch in range(1, settings.epochs + 1):
                loss = self._run_epoch(loop, epoch)
                yield TrainingStep(steps, steps, loss)
                self.epoch = epoch
                self.model.eval()
                yield EpochEnd(loss)
                self.model.train()

    def _run_epoch(self, loop: Any, epoch: int) -> float:
        from pykeen.training import NonFiniteLossError

        with _explained(SplimeError, f"PyKEEN could not train {self.settings.model}"):
            try:
                losses = loop.train(
                    self.factory,
                    num_epochs=epoch,
                    continue_training=epoch > 1,
                    batch_size=self._batch,
                    use_tqdm=False,
                    pin_memory=self.source.device.type == "cuda",
                )
            except NonFiniteLossError:
                raise SplimeError(
                    f"the loss is no longer a number in epoch {epoch}: training diverged."
                    f" Lower learning_rate (it is {self.settings.learning_rate:g})"
                ) from None
        return float(losses[-1])

    def parameters(self) -> dict[str, Tensor]:
        """All tensors; parts of a model may share one, which the format has no way to say."""
        state = self.model.state_dict()
        return {f"{_PREFIX}{name}": tensor.clone() for name, tensor in state.items()}

    def scoring(self) -> ScopedScoring:
        """The scores of the model as it is now."""
        return ScopedScoring(PykeenScorer(self.model, self.source.device), self.source.scoping)


# PyKEEN makes tensors of queries x entities x dimensions; so many numbers of them at once.
_NUMBERS = 1 << 25


class PykeenScorer(Scorer):
    """A PyKEEN model as evaluation sees it."""

    def __init__(self, model: Any, device: torch.device) -> None:
        self.model, self.device = model, device
        width = sum(table.numel() for table in model.parameters()) // model.num_entities + 1
        self._rows = max(1, _NUMBERS // (max(model.num_entities, model.num_relations) * width))

    def objects(self, subject: Tensor, predicate: Tensor) -> Tensor:
        """The scores of all entities as the object."""
        return self._score(self.model.score_t, subject, predicate)

    def subjects(self, predicate: Tensor, object: Tensor) -> Tensor:
        """The scores of all entities as the subject."""
        return self._score(self.model.score_h, predicate, object)

    def predicates(self, subject: Tensor, object: Tensor) -> Tensor:
        """The scores of all scoped predicates."""
        return self._score(self.model.score_r, subject, object)

    def _score(self, score: Callable[[Tensor], Tensor], first: Tensor, second: Tensor) -> Tensor:
        rows = torch.stack([first, second], dim=1)
        return torch.cat([score(part) for part in rows.split(self._rows)])
