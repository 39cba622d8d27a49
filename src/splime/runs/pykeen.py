"""Models of PyKEEN, trained on the same triples and ranked by the same code."""

from __future__ import annotations

import logging
import math
import random
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from splime.embedding.device import choose_device
from splime.embedding.settings import Settings
from splime.embedding.trainer import check_batch
from splime.errors import DataError, SplimeError, UsageError, enough_memory, nearest
from splime.exports import to_pykeen
from splime.graph import TemporalGraph
from splime.io.files import locked, write_json
from splime.methods import Method
from splime.runs import folder as files
from splime.runs.about import describe_machine
from splime.runs.config import Config, describe, fingerprint
from splime.runs.history import Epoch, write_history
from splime.runs.run import Run
from splime.runs.tensors import pack_names, save_tensors
from splime.runs.training import MEMORY_ADVICE, Interrupted, Watch, check_splits
from splime.segmentation import Segmentation
from splime.static import StaticGraph, apply

if TYPE_CHECKING:
    from splime.scoring.scorer import Scorer

_DEFAULTS = {
    "dimension": 100,
    "epochs": 100,
    "batch_size": 256,
    "learning_rate": 1e-3,
    "negatives": 32,
    "distinct": True,
    "seed": 0,
}


def train_pykeen(
    graph: TemporalGraph,
    cuts: Method | Segmentation,
    out: str | Path,
    *,
    model: str,
    device: str = "auto",
    watch: Watch | None = None,
    **settings: Any,
) -> Run:
    """Train one of PyKEEN's models into a run folder, with PyKEEN's own loss for it, and Adam.

    Of the settings it takes dimension, epochs, batch_size, learning_rate, negatives, distinct and
    seed. A training that is interrupted begins again.
    """
    chosen = check_pykeen(model, settings)
    check_splits(graph, chosen)
    place = choose_device(device)
    segmentation = cuts.fit(graph) if isinstance(cuts, Method) else cuts
    static = apply(segmentation, graph)
    out = Path(out)
    values = {name: getattr(chosen, name) for name in ("model", *_DEFAULTS)}
    config = describe(graph, segmentation, values, "pykeen")
    with locked(out):
        if files.look(out, config) != "finished":
            with enough_memory(MEMORY_ADVICE), _apart():
                factory = _factory(static, chosen)
                check_batch(settings.get("batch_size", 1), factory.num_triples)
                built = _make(chosen, factory)
                files.begin(out, config, graph, segmentation)
                _train(built.to(place), factory, chosen, out, config, static, watch)
    return Run(out, device=device)


def check_pykeen(model: str, given: dict[str, Any]) -> Settings:
    """The settings of a training by PyKEEN; an error if there are no such ones."""
    for name in given:
        if name not in _DEFAULTS:
            raise UsageError(
                f"the engine pykeen has no setting {name!r}; it takes {', '.join(_DEFAULTS)}."
                f"{nearest(name, _DEFAULTS)}"
            )
    # One negative is enough for PyKEEN, which draws the side that it replaces.
    values = {**_DEFAULTS, **given, "model": _resolve(model).__name__, "corrupt": "object"}
    return Settings.of({**values, "validate_every": 0})


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
    """PyKEEN speaks of its own affairs, and seeds what others draw from: keep that inside."""
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


def _factory(static: StaticGraph, settings: Settings) -> Any:
    """The triples of train as PyKEEN takes them."""
    return to_pykeen(static.distinct()[0] if settings.distinct else static)["train"]


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


def _train(
    model: Any,
    factory: Any,
    settings: Settings,
    out: Path,
    config: Config,
    static: StaticGraph,
    watch: Watch | None,
) -> None:
    from pykeen.training import NonFiniteLossError, SLCWATrainingLoop

    device = next(model.parameters()).device
    about = describe_machine(device)
    about["parameters"] = sum(table.numel() for table in model.parameters())
    about["triples"] = factory.num_triples
    about["loss"] = type(model.loss).__name__
    began = time.monotonic()
    batch = min(settings.batch_size, factory.num_triples)
    history: list[Epoch] = []
    loop = SLCWATrainingLoop(
        model=model,
        triples_factory=factory,
        optimizer=torch.optim.Adam(model.parameters(), lr=settings.learning_rate),
        negative_sampler="basic",
        negative_sampler_kwargs={"num_negs_per_pos": settings.negatives},
    )
    try:
        loop.train(
            factory,
            num_epochs=settings.epochs,
            batch_size=batch,
            use_tqdm=False,
            pin_memory=device.type == "cuda",
            callbacks=_callback(settings, math.ceil(factory.num_triples / batch), history, watch),
        )
    except (SplimeError, torch.OutOfMemoryError, MemoryError):
        raise
    except NonFiniteLossError:
        raise SplimeError(
            f"the loss is no longer a number in epoch {len(history) + 1}: training diverged. Lower"
            f" learning_rate (it is {settings.learning_rate:g})"
        ) from None
    except Exception as error:
        why = str(error) or type(error).__name__
        raise SplimeError(f"PyKEEN could not train {settings.model}: {why}") from error
    about["seconds"] = round(time.monotonic() - began, 1)
    about["epochs"] = settings.epochs
    write_history(out / files.HISTORY, history)
    write_json(out / files.ABOUT, about)
    # Parts of a model may share a tensor, which the format has no way to say.
    tensors = {f"{_PREFIX}{name}": table.clone() for name, table in model.state_dict().items()}
    kept = {"config": fingerprint(config), "epoch": settings.epochs}
    save_tensors(out / files.MODEL, {**tensors, **pack_names(static)}, kept)


def _callback(settings: Settings, steps: int, history: list[Epoch], watch: Watch | None) -> Any:
    """Whoever watches, as PyKEEN tells of progress."""
    from pykeen.training import TrainingCallback

    class Callback(TrainingCallback):  # type: ignore[misc]
        step = 0

        def on_batch(self, epoch: int, batch: Any, batch_loss: float, **_: Any) -> None:  # noqa: ARG002
            """Tell of a step, and stop if asked to."""
            self.step += 1
            if watch is not None:
                watch.step(epoch - 1, settings.epochs, self.step, steps, batch_loss)
                if watch.stop():
                    raise Interrupted(
                        f"stopped in epoch {epoch} of {settings.epochs}; with the engine pykeen the"
                        " same command begins again"
                    )

        def post_epoch(self, epoch: int, epoch_loss: float, **_: Any) -> None:
            """Remember the loss."""
            self.step = 0
            history.append(Epoch(epoch, epoch_loss))
            if watch is not None:
                watch.epoch(history[-1], False)

    return Callback()


_PREFIX = "pykeen."


def open_scorer(run: Run) -> Scorer:
    """The scores of a finished run of PyKEEN."""
    state = {n.removeprefix(_PREFIX): t for n, t in run.tensors.items() if n.startswith(_PREFIX)}
    _resolve(run.settings.model)  # importing PyKEEN makes it talkative
    with _apart():
        model = _make(run.settings, _factory(run.static, run.settings))
        try:
            model.load_state_dict(state)
        except RuntimeError as error:
            why = " ".join(str(error).split())
            raise DataError(
                f"{run.path / files.MODEL}: not the weights of this model: {why}"
            ) from None
    return PykeenScorer(model.to(run.device).eval(), run.device)


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
