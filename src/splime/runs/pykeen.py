"""Models of PyKEEN, trained on the same triples and ranked by the same code."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from splime.embedding.device import choose_device, enough_memory
from splime.embedding.settings import Settings
from splime.errors import DataError, SplimeError, UsageError, nearest
from splime.exports import to_pykeen
from splime.graph import TemporalGraph
from splime.methods import Method
from splime.runs import folder as files
from splime.runs.about import describe_machine
from splime.runs.run import Run
from splime.runs.tensors import load_tensors, pack_names, save_tensors
from splime.runs.training import Watch, begin, describe
from splime.segmentation import Segmentation
from splime.static import StaticGraph, apply

if TYPE_CHECKING:
    from splime.evaluation import Scorer

ENGINE = "pykeen"


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
    """Train one of PyKEEN's models into a run folder, with PyKEEN's own loss for it.

    Of the settings it takes dimension, epochs, batch_size, learning_rate, negatives, distinct and
    seed. A training that is interrupted begins again.
    """
    _check_names(settings)
    chosen = Settings(
        **{"epochs": 100, "batch_size": 256, "negatives": 32, "learning_rate": 1e-3, **settings},
        model=_resolve(model).__name__,
        validate_every=0,
    )
    segmentation = cuts.fit(graph) if isinstance(cuts, Method) else cuts
    static = apply(segmentation, graph)
    if not len(graph.train):
        raise UsageError("train has no facts; there is nothing to learn from")
    out = Path(out)
    config = describe(graph, segmentation, chosen, ENGINE)
    with files.locked(out):
        if not (files.claim(out, config) and (out / files.MODEL).exists()):
            begin(out, config, graph, segmentation)
            with enough_memory("lower batch_size, negatives or dimension"):
                _train(static, chosen, out, device, watch)
    return Run(out, device=device)


_TAKEN = ("dimension", "epochs", "batch_size", "learning_rate", "negatives", "distinct", "seed")


def _check_names(settings: dict[str, Any]) -> None:
    for name in settings:
        if name not in _TAKEN:
            raise UsageError(
                f"the engine pykeen has no setting {name!r}; it takes {', '.join(_TAKEN)}."
                f"{nearest(name, _TAKEN)}"
            )


def _train(
    static: StaticGraph, settings: Settings, out: Path, device: str, watch: Watch | None
) -> None:
    from pykeen.training import SLCWATrainingLoop

    place = choose_device(device)
    factory = to_pykeen(static.distinct()[0] if settings.distinct else static)["train"]
    model = _make(settings, factory).to(place)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    loop = SLCWATrainingLoop(
        model=model,
        triples_factory=factory,
        optimizer=optimizer,
        negative_sampler="basic",
        negative_sampler_kwargs={"num_negs_per_pos": settings.negatives},
    )
    about = describe_machine(place)
    about["parameters"] = sum(table.numel() for table in model.parameters())
    about["triples"] = len(static.train)
    began = time.monotonic()
    losses = loop.train(
        factory,
        num_epochs=settings.epochs,
        batch_size=min(settings.batch_size, factory.num_triples),
        use_tqdm=watch is not None,
        use_tqdm_batch=False,
    )
    about["seconds"] = round(time.monotonic() - began, 1)
    about["epochs"] = settings.epochs
    if any(loss != loss for loss in losses):
        raise SplimeError("the loss is no longer a number: training diverged; lower learning_rate")
    names = {
        "entities.names": pack_names(static.entities.labels.to_pylist()),
        "predicates.names": pack_names(static.predicates.labels.to_pylist()),
    }
    lines = "".join(f"{n},{loss!r},\n" for n, loss in enumerate(losses, start=1))
    (out / files.HISTORY).write_text("epoch,loss,valid\n" + lines, encoding="utf-8")
    files.write_json(out / files.ABOUT, about)
    tensors = {f"pykeen.{name}": table for name, table in model.state_dict().items()}
    save_tensors(out / files.MODEL, {**tensors, **names}, {"model": settings.model})


def _resolve(name: str) -> Any:
    try:
        from pykeen.models import model_resolver
    except ImportError as error:
        raise SplimeError(
            f"PyKEEN cannot be imported ({error}); install it with: pip install 'splime[pykeen]'"
        ) from None
    try:
        return model_resolver.lookup(name)
    except (KeyError, ValueError):
        known = sorted(kind.__name__ for kind in model_resolver.lookup_dict.values())
        raise UsageError(f"PyKEEN has no model {name!r}.{nearest(name, known)}") from None


def _make(settings: Settings, factory: Any) -> Any:
    kind = _resolve(settings.model)
    try:
        return kind(
            triples_factory=factory,
            embedding_dim=settings.dimension,
            random_seed=settings.seed % 2**32,
        )
    except TypeError:
        # Not every model calls its size so; those keep their own.
        return kind(triples_factory=factory, random_seed=settings.seed % 2**32)
    except (ValueError, RuntimeError) as error:
        raise UsageError(f"{settings.model} cannot be made with these settings: {error}") from None


def open_scorer(run: Run) -> Scorer:
    """The scores of a finished run of PyKEEN."""
    tensors, _ = load_tensors(run.path / files.MODEL)
    static = run.static
    factory = to_pykeen(static.distinct()[0] if run.settings.distinct else static)["train"]
    model = _make(run.settings, factory)
    start = "pykeen."
    state = {name[len(start) :]: t for name, t in tensors.items() if name.startswith(start)}
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise DataError(
            f"{run.path / files.MODEL}: not the weights of this model: {json.dumps(str(error))}"
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
