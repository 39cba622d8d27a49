"""Train into a folder: begin, go on after an interruption, choose the best epoch, finish."""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch

from splime.embedding.device import choose_device, enough_memory, matrix_precision
from splime.embedding.models import MODELS
from splime.embedding.penalties import follows_in_time
from splime.embedding.presets import check_model, make_settings
from splime.embedding.scoring import ModelScorer
from splime.embedding.settings import Settings
from splime.embedding.trainer import Trainer
from splime.errors import SplimeError, UsageError
from splime.evaluation import evaluate_facts
from splime.graph import TemporalGraph
from splime.io import save, save_segmentation
from splime.io.files import written_beside
from splime.methods import Method
from splime.runs import folder as files
from splime.runs.about import describe_machine
from splime.runs.run import Epoch, Run
from splime.runs.tensors import load_tensors, pack_names, save_tensors
from splime.segmentation import Segmentation
from splime.static import StaticGraph, apply


class Interrupted(SplimeError):  # noqa: N818  # nothing went wrong
    """The training was asked to stop; its state is saved."""

    exit_code = 130


class Watch(Protocol):
    """Whoever watches a training."""

    def step(self, epoch: int, epochs: int, step: int, steps: int, loss: float) -> None:
        """After some steps."""

    def epoch(self, found: Epoch, best: bool) -> None:
        """After every epoch."""

    def stop(self) -> bool:
        """Whether to stop after this step."""


@dataclass
class _Progress:
    """What a checkpoint remembers beside the tensors."""

    history: list[Epoch] = field(default_factory=list)
    best: float | None = None
    best_epoch: int = 0
    waited: int = 0
    seconds: float = 0.0


def train(
    graph: TemporalGraph,
    cuts: Method | Segmentation,
    out: str | Path,
    *,
    model: str | None = None,
    preset: str | None = None,
    device: str = "auto",
    watch: Watch | None = None,
    save_seconds: float = 60.0,
    **settings: Any,
) -> Run:
    """Cut a graph, train a static model on it, and leave a folder that explains itself.

    Args:
        graph: the facts; only train is learned from, valid chooses the best epoch.
        cuts: a method that chooses the cuts, or a segmentation that has them.
        out: the folder of the run. One that holds the same run unfinished is gone on with, to the
            same bytes as if it had never stopped; one that holds another run is an error.
        model: the name of a model (`splime models`).
        preset: the name of a set-up; by default the strong one of the model.
        device: cpu, cuda or auto.
        watch: is told of progress, and can ask to stop.
        save_seconds: how often the state is saved.
        settings: changes to the preset, see `splime.embedding.Settings`.

    >>> import splime, tempfile
    >>> graph = splime.load("demo")
    >>> with tempfile.TemporaryDirectory() as here:
    ...     run = train(graph, splime.Split(grow=5), here, model="distmult", dimension=8, epochs=2)
    ...     len(run.history), tuple(run.model.entities.shape)
    (2, (1029, 8))
    """
    chosen = make_settings(model, preset, **settings)
    check_model(chosen.model)
    segmentation = cuts.fit(graph) if isinstance(cuts, Method) else cuts
    static = apply(segmentation, graph)
    _check_splits(graph, chosen)
    out = Path(out)
    config = describe(graph, segmentation, chosen, "splime")
    with files.locked(out):
        if files.claim(out, config) and (out / files.MODEL).exists():
            return Run(out, device=device)
        begin(out, config, graph, segmentation)
        advice = "lower batch_size, negatives or dimension"
        with enough_memory(advice), matrix_precision(chosen.precision):
            _Training(graph, static, chosen, out, device, watch, save_seconds).run()
    return Run(out, device=device)


def describe(
    graph: TemporalGraph, segmentation: Segmentation, settings: Settings, engine: str
) -> files.Config:
    """The configuration of a run: everything that decides its result."""
    method = {**segmentation.method}
    name = str(method.pop("method", "given"))
    return {
        "run": {"engine": engine},
        "data": {
            "name": graph.name,
            "sha256": files.checksum(graph),
            **{split: len(facts) for split, facts in graph.splits()},
            "timestamps": len(graph.timeline),
        },
        "method": {"name": name, **method, "predicates": len(segmentation.predicates)},
        "settings": settings.values(),
    }


def begin(
    out: Path, config: files.Config, graph: TemporalGraph, segmentation: Segmentation
) -> None:
    """Write what a run begins with; the configuration last, since it claims the folder."""
    if not (out / files.CONFIG).exists():
        save(graph, out / files.GRAPH)
        save_segmentation(segmentation, out / files.SEGMENTATION)
        files.write_config(out, config)


def _check_splits(graph: TemporalGraph, settings: Settings) -> None:
    if not len(graph.train):
        raise UsageError("train has no facts; there is nothing to learn from")
    if settings.validate_every and not len(graph.valid):
        raise UsageError(
            "valid has no facts to choose the best epoch on; with validate_every=0 the last epoch"
            " is kept"
        )


class _Training:
    """One training, from its beginning or its last checkpoint to its end."""

    def __init__(
        self,
        graph: TemporalGraph,
        static: StaticGraph,
        settings: Settings,
        out: Path,
        device: str,
        watch: Watch | None,
        save_seconds: float,
    ) -> None:
        self.graph, self.static, self.settings, self.out = graph, static, settings, out
        self.watch, self.save_seconds = watch, save_seconds
        self.device = choose_device(device)
        triples = static.distinct()[0] if settings.distinct else static
        predicates = len(static.predicates) * (2 if settings.reciprocal else 1)
        model = MODELS[settings.model](
            len(static.entities),
            predicates,
            settings.dimension,
            norm=settings.norm,
            init=settings.init,
            generator=torch.Generator().manual_seed(settings.seed),
        ).to(self.device)
        follows = follows_in_time(static.predicates, reciprocal=settings.reciprocal)
        self.trainer = Trainer(model, triples.train.array(), settings, follows=follows)
        self.progress = _Progress()
        self.saved_at = self.began = time.monotonic()

    def run(self) -> None:
        """Epoch by epoch to the end."""
        self._restore()
        while self.trainer.epoch < self.trainer.epochs and not self._patience_ended():
            loss = self.trainer.run_epoch(advance=self._advance, stop=self._stop)
            if loss is None:
                self._save()
                raise Interrupted(
                    f"stopped in epoch {self.trainer.epoch + 1} of {self.trainer.epochs}; its state"
                    f" is saved in {self.out}, and the same command goes on from there"
                )
            self._end_of_epoch(loss)
        self._finish()

    def _patience_ended(self) -> bool:
        return self.progress.waited >= self.settings.patience

    def _advance(self, step: int, loss: float) -> None:
        if self.watch is not None:
            trainer = self.trainer
            self.watch.step(trainer.epoch, trainer.epochs, step, trainer.steps, loss)

    def _stop(self) -> bool:
        if time.monotonic() - self.saved_at > self.save_seconds:
            self._save()
        return self.watch is not None and self.watch.stop()

    def _end_of_epoch(self, loss: float) -> None:
        epoch, progress = self.trainer.epoch, self.progress
        every = self.settings.validate_every
        valid = None
        if every and (epoch % every == 0 or epoch == self.trainer.epochs):
            valid = self._validate()
            if progress.best is None or valid > progress.best:
                progress.best, progress.best_epoch, progress.waited = valid, epoch, 0
                self._write_model(files.BEST)
            else:
                progress.waited += 1
        found = Epoch(epoch, loss, valid)
        progress.history.append(found)
        if self.watch is not None:
            self.watch.epoch(found, progress.best_epoch == epoch)
        if valid is not None:
            self._save()

    def _validate(self) -> float:
        """The MRR on valid by protocol `fact` with its exact filter."""
        scorer = ModelScorer(self.trainer.model, reciprocal=self.settings.reciprocal)
        found = evaluate_facts(scorer, self.graph, self.static.segmentation, split="valid")
        return found.metrics["exact"]["both"].mrr

    def _write_model(self, name: str) -> None:
        tables = dict(self.trainer.model.named_parameters())
        names = {
            "entities.names": pack_names(self.static.entities.labels.to_pylist()),
            "predicates.names": pack_names(self.static.predicates.labels.to_pylist()),
        }
        about = {"model": self.settings.model, "epoch": self.trainer.epoch}
        save_tensors(self.out / name, {**tables, **names}, about)

    def _save(self) -> None:
        tensors, numbers = self.trainer.state()
        progress = self.progress
        spent = progress.seconds + time.monotonic() - self.began
        remembered = {
            "history": [(e.epoch, e.loss, e.valid) for e in progress.history],
            "best": progress.best,
            "best_epoch": progress.best_epoch,
            "waited": progress.waited,
            "seconds": spent,
        }
        save_tensors(self.out / files.CHECKPOINT, tensors, {**numbers, **remembered})
        self.saved_at = time.monotonic()

    def _restore(self) -> None:
        path = self.out / files.CHECKPOINT
        if not path.exists():
            about = describe_machine(self.device)
            about["parameters"] = sum(t.numel() for t in self.trainer.model.parameters())
            about["triples"] = len(self.trainer.triples)
            files.write_json(self.out / files.ABOUT, about)
            return
        tensors, about = load_tensors(path)
        self.trainer.restore(tensors, about)
        self.progress = _Progress(
            [Epoch(*one) for one in about["history"]],
            about["best"],
            about["best_epoch"],
            about["waited"],
            about["seconds"],
        )

    def _finish(self) -> None:
        """Keep the best embeddings, and drop what only going on would need."""
        progress = self.progress
        with (
            written_beside(self.out / files.HISTORY) as beside,
            beside.open("w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["epoch", "loss", "valid"])
            for one in progress.history:
                writer.writerow([one.epoch, repr(one.loss), "" if one.valid is None else one.valid])
        about = files.read_json(self.out / files.ABOUT)
        about["seconds"] = round(progress.seconds + time.monotonic() - self.began, 1)
        about["epochs"] = self.trainer.epoch
        about["best_epoch"] = progress.best_epoch or self.trainer.epoch
        files.write_json(self.out / files.ABOUT, about)
        if progress.best is None:
            self._write_model(files.BEST)
        (self.out / files.BEST).replace(self.out / files.MODEL)
        (self.out / files.CHECKPOINT).unlink(missing_ok=True)
