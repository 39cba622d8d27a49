"""What the benchmarks against PyKEEN share: its models with our data and weights, and fair timing.

The machine may be shared, and two programs that both use all cores slow each other down tenfold. So
the two libraries take turns in one process, round by round, and the medians of the rounds are
compared. A round waits (not forever) until other programs are idle. How busy they were, and the
load of the machine (/proc/loadavg, which includes our own work), is saved with every result.
"""

from __future__ import annotations

import contextlib
import logging
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

import splime
from splime.embedding.initial import make_weights
from splime.embedding.making import make_model
from splime.embedding.models import MODELS
from splime.embedding.models.base import Model
from splime.embedding.tables import Lookup
from splime.settings import Settings
from splime.static import StaticGraph, Triples
from splime.training.trainer import Trainer

Rows: TypeAlias = npt.NDArray[np.integer]
SHRINK = {"yago11k": 2, "wikidata12k": 4}


def quiet_pykeen() -> None:
    """Call this before its first import: no files in the home folder, no log."""
    os.environ.setdefault("PYSTOW_HOME", tempfile.mkdtemp())
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")


def merged(dataset: str) -> StaticGraph:
    """A dataset merged as in the paper's main table."""
    merge = splime.Merge(shrink=SHRINK[dataset], fit_on="all")
    return merge.fit_transform(splime.load(dataset))


def load_now() -> float:
    """How many programs wanted to run in the last minute, including ours."""
    return float(Path("/proc/loadavg").read_text().split()[0])


def others_busy(seconds: float = 0.3) -> float:
    """The share of all cores' time that is used while this process sleeps."""

    def ticks() -> tuple[int, int]:
        user, nice, system, idle, waiting = (
            int(one) for one in Path("/proc/stat").read_text().split()[1:6]
        )
        return user + nice + system, idle + waiting

    before = ticks()
    time.sleep(seconds)
    busy, idle = (now - then for now, then in zip(ticks(), before, strict=True))
    return round(busy / max(1, busy + idle), 2)


def wait_for_quiet(patience: float = 20.0, most: float = 0.15) -> dict[str, float]:
    """Wait until other programs use little of the machine, and return how busy it is."""
    until = time.monotonic() + patience
    busy = others_busy()
    while busy > most and time.monotonic() < until:
        busy = others_busy(1.0)
    return {"others_busy": busy, "load": load_now()}


def make_trainer(static: StaticGraph, settings: Settings, triples: Rows) -> Trainer:
    """Our training, as `splime train` sets it up."""
    return Trainer(make_model(settings, static), as_triples(triples), settings)


def as_triples(rows: Rows) -> Triples:
    """Triples, each from a fact of its own."""
    s, p, o = rows.astype(np.int32).T
    return Triples(s, p, o, np.arange(len(s)), np.ones(len(s), np.int32))


def random_model(
    name: str, entities: int, predicates: int, dimension: int, init: str = "xavier_normal"
) -> Model:
    """A model over plain lookups, without a graph."""
    kind, generator = MODELS[name], torch.Generator().manual_seed(0)
    tables = [
        Lookup(make_weights(init, rows, dimension * parts, generator))
        for rows, parts in ((entities, kind.entity_parts), (predicates, kind.predicate_parts))
    ]
    return kind(*tables)


def factory(static: StaticGraph, triples: Rows, *, inverse: bool = False) -> Any:
    """Triples in the form that PyKEEN takes."""
    ids = torch.from_numpy(triples).long()
    return factory_of(ids, len(static.entities), len(static.predicates), inverse=inverse)


def factory_of(ids: torch.Tensor, entities: int, predicates: int, *, inverse: bool = False) -> Any:
    from pykeen.triples import CoreTriplesFactory

    return CoreTriplesFactory(
        mapped_triples=ids,
        num_entities=entities,
        num_relations=predicates,
        create_inverse_triples=inverse,
    )


def give_weights(peer: Any, model: Model) -> None:
    """Copy our embeddings into a PyKEEN model (TransE or ComplEx)."""
    pairs = (
        (peer.entity_representations[0], model.entities.vectors()),
        (peer.relation_representations[0], model.predicates.vectors()),
    )
    with torch.no_grad():
        for representation, ours in pairs:
            [table] = representation.parameters()
            values = ours
            if representation(indices=None).is_complex():
                values = torch.stack(ours.chunk(2, dim=1), dim=2)
            table.copy_(values.reshape(table.shape))


def spread(seconds: Sequence[float]) -> dict[str, float]:
    return {
        "median_s": rounded(statistics.median(seconds)),
        "min_s": rounded(min(seconds)),
        "max_s": rounded(max(seconds)),
    }


def ratios(peer: Sequence[float], ours: Sequence[float]) -> dict[str, float]:
    """How many times faster splime is: by medians, by minima, and in the worst round."""
    return {
        "by_medians": rounded(statistics.median(peer) / statistics.median(ours), 3),
        "by_least": rounded(min(peer) / min(ours), 3),
        "worst_round": rounded(min(p / o for p, o in zip(peer, ours, strict=True)), 3),
    }


def rounded(value: float, digits: int = 4) -> float:
    return float(f"{value:.{digits}g}")


class _Done(Exception):  # noqa: N818
    """Enough steps of PyKEEN's training are done."""


def pykeen_turns(
    loop: Any,
    triples: Any,
    *,
    batch_size: int,
    steps: int,
    rounds: int,
    between: Callable[[], None],
) -> list[float]:
    """Seconds of a step of PyKEEN's own training loop, for each round of some steps.

    The loop works on all triples, and ends after enough rounds. Its first step is not counted.
    After it, and after every round but the last, the loop waits in a callback while `between` runs
    the others.
    """
    from pykeen.training.callbacks import TrainingCallback

    seconds: list[float] = []

    class Turn(TrainingCallback):  # type: ignore[misc]
        began = 0.0
        done = 0

        def on_batch(self, *_: Any, **__: Any) -> None:
            if self.began:
                self.done += 1
                if self.done < steps:
                    return
                seconds.append((time.perf_counter() - self.began) / steps)
            if len(seconds) == rounds:
                raise _Done
            between()
            self.done, self.began = 0, time.perf_counter()

    with contextlib.suppress(_Done):
        loop.train(
            triples_factory=triples,
            num_epochs=1000,
            batch_size=batch_size,
            use_tqdm=False,
            use_tqdm_batch=False,
            callbacks=Turn(),
        )
    return seconds
