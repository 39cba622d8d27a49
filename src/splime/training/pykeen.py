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
from splime.embedding.settings import Settings
from splime.errors import SplimeError, UsageError, nearest
from splime.exports import to_pykeen
from splime.static import StaticGraph
from splime.training.engines import Supervisor
from splime.training.trainer import check_batch

_DEFAULTS = {
    "dimension": 100,
    "epochs": 100,
    "batch_size": 256,
    "learning_rate": 1e-3,
    "negatives": 32,
    "distinct": True,
    "seed": 0,
}
# Only in the configuration of a run if they are given: runs made before did not have them.
_VALIDATION = ("validate_every", "patience")
# One negative is enough for PyKEEN, which draws the side that it replaces.
_OWN = {"corrupt": "object", "validate_every": 0}
_PREFIX = "pykeen."


class PykeenEngine:
    """Trains any of PyKEEN's models, with PyKEEN's own loss for it, and Adam."""

    def make_settings(self, model: str | None, preset: str | None, **given: Any) -> Settings:
        """PyKEEN's models have few settings, and no presets."""
        if model is None or preset is not None:
            raise UsageError("the engine pykeen needs a model, and has no presets")
        known = (*_DEFAULTS, *_VALIDATION)
        for name in given:
            if name not in known:
                raise UsageError(
                    f"the engine pykeen has no setting {name!r}; it takes {', '.join(known)}."
                    f"{nearest(name, known)}"
                )
        return self.read_settings({**_DEFAULTS, **given, "model": _resolve(model).__name__})

    def read_settings(self, values: Mapping[str, Any]) -> Settings:
        """What the configuration has; the other settings are not PyKEEN's."""
        return Settings.of({**_OWN, **values})

    def values(self, settings: Settings) -> dict[str, Any]:
        """PyKEEN's own settings, and those of validation if there is any."""
        names = ("model", *_DEFAULTS, *(_VALIDATION if settings.validate_every else ()))
        return {name: getattr(settings, name) for name in names}

    def fitted(self, settings: Settings, static: StaticGraph, given: Mapping[str, Any]) -> Settings:
        """A batch that was asked for must not be larger than train."""
        if "batch_size" in given:
            check_batch(given["batch_size"], len(_train(static, settings).train))
        return settings

    def search_space(self, settings: Settings) -> dict[str, Axis]:  # noqa: ARG002
        """The same for all models."""
        return {
            "dimension": Values((50, 100, 200)),
            "learning_rate": Range(0.0001, 0.01, log=True),
            "negatives": Values((8, 32, 128)),
        }

    def fit(self, static: StaticGraph, settings: Settings, supervisor: Supervisor) -> None:
        """Train; a training that was interrupted begins again."""
        with _apart():
            factory = to_pykeen(_train(static, settings))["train"]
            model = _make(settings, factory).to(supervisor.device)
            learner = _Learner(model, settings, supervisor)
            supervisor.begin(
                learner,
                parameters=sum(table.numel() for table in model.parameters()),
                triples=factory.num_triples,
                loss=type(model.loss).__name__,
            )
            learner.run(factory)

    def open(
        self,
        static: StaticGraph,
        settings: Settings,
        tensors: Mapping[str, Tensor],
        device: torch.device,
    ) -> PykeenScorer:
        """The scores of a trained model."""
        _resolve(settings.model)  # importing PyKEEN sets up its log, which is then silenced
        state = {name.removeprefix(_PREFIX): tensor for name, tensor in tensors.items()}
        with _apart():
            model = _make(settings, to_pykeen(_train(static, settings))["train"])
            try:
                model.load_state_dict(state)
            except RuntimeError as error:
                raise ValueError(" ".join(str(error).split())) from None
        return PykeenScorer(model.to(device).eval(), device)


engine = PykeenEngine()


def _train(static: StaticGraph, settings: Settings) -> StaticGraph:
    return static.distinct()[0] if settings.distinct else static


def _resolve(name: str) -> Any:
    try:
        from pykeen.models import model_resolver
    except ImportError as error:
        raise SplimeError(
            f"PyKEEN cannot be imported ({error}); install it with: pip install 'splime[pykeen]'"
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


def _make(settings: Settings, factory: Any) -> Any:
    try:
        return _resolve(settings.model)(
            triples_factory=factory,
            embedding_dim=settings.dimension,
            random_seed=settings.seed % 2**32,
        )
    except (torch.OutOfMemoryError, MemoryError):
        raise
    except Exception as error:  # each model has its own ways to refuse
        why = str(error) or type(error).__name__
        raise UsageError(f"{settings.model} cannot be made with these settings: {why}") from None


class _StoppedEarly(Exception):  # noqa: N818  # PyKEEN's loop has no other way to end
    """Validations no longer get better."""


class _Learner:
    """A model of PyKEEN in training."""

    def __init__(self, model: Any, settings: Settings, supervisor: Supervisor) -> None:
        self.model, self.settings, self.supervisor = model, settings, supervisor
        self.epoch, self.epochs = 0, settings.epochs

    def run(self, factory: Any) -> None:
        """PyKEEN's own loop."""
        from pykeen.training import NonFiniteLossError, SLCWATrainingLoop

        settings = self.settings
        batch = min(settings.batch_size, factory.num_triples)
        loop = SLCWATrainingLoop(
            model=self.model,
            triples_factory=factory,
            optimizer=torch.optim.Adam(self.model.parameters(), lr=settings.learning_rate),
            negative_sampler="basic",
            negative_sampler_kwargs={"num_negs_per_pos": settings.negatives},
        )
        try:
            loop.train(
                factory,
                num_epochs=settings.epochs,
                batch_size=batch,
                use_tqdm=False,
                pin_memory=self.supervisor.device.type == "cuda",
                callbacks=self._callback(math.ceil(factory.num_triples / batch)),
            )
        except _StoppedEarly:
            return
        except (SplimeError, torch.OutOfMemoryError, MemoryError):
            raise
        except NonFiniteLossError:
            raise SplimeError(
                f"the loss is no longer a number in epoch {self.epoch + 1}: training diverged."
                f" Lower learning_rate (it is {settings.learning_rate:g})"
            ) from None
        except Exception as error:
            why = str(error) or type(error).__name__
            raise SplimeError(f"PyKEEN could not train {settings.model}: {why}") from error

    def _callback(self, steps: int) -> Any:
        """The supervisor, as a callback of PyKEEN."""
        from pykeen.training import TrainingCallback

        learner, supervisor = self, self.supervisor

        class Callback(TrainingCallback):  # type: ignore[misc]
            step = 0

            def on_batch(self, epoch: int, batch: Any, batch_loss: float, **_: Any) -> None:  # noqa: ARG002
                """Tell of a step, and stop if asked to."""
                self.step += 1
                supervisor.step(self.step, steps, batch_loss)
                if supervisor.should_stop():
                    raise supervisor.interrupted()

            def post_epoch(self, epoch: int, epoch_loss: float, **_: Any) -> None:
                """Validate, and stop early."""
                self.step, learner.epoch = 0, epoch
                learner.model.eval()
                supervisor.end_epoch(epoch_loss)
                learner.model.train()
                if supervisor.stopped_early:
                    raise _StoppedEarly

        return Callback()

    def parameters(self) -> dict[str, Tensor]:
        """All tensors; parts of a model may share one, which the format has no way to say."""
        state = self.model.state_dict()
        return {f"{_PREFIX}{name}": tensor.clone() for name, tensor in state.items()}

    def scorer(self) -> PykeenScorer:
        """The scores of the model as it is now."""
        return PykeenScorer(self.model, self.supervisor.device)

    def state(self) -> None:
        """It cannot resume."""

    def restore(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Nothing was saved."""


# PyKEEN makes tensors of queries x entities x dimensions; so many numbers of them at once.
_NUMBERS = 1 << 25


class PykeenScorer:
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
