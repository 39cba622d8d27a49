"""Train into a folder: begin, go on after an interruption, choose the best epoch, finish."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import torch

from splime.arrays import distinct
from splime.embedding.device import choose_device, matrix_precision
from splime.embedding.making import make_model
from splime.embedding.penalties import follows_in_time
from splime.embedding.presets import make_settings
from splime.embedding.scoring import ModelScorer
from splime.embedding.settings import Settings
from splime.embedding.trainer import Trainer
from splime.errors import DataError, SplimeError, UsageError, enough_memory
from splime.evaluation.protocols import Options, evaluate_scoped
from splime.graph import TemporalGraph
from splime.io.files import locked, write_json
from splime.methods import Method
from splime.runs import folder as files
from splime.runs.about import describe_machine
from splime.runs.config import Config, describe, fingerprint
from splime.runs.history import Epoch, write_history
from splime.runs.run import Run
from splime.runs.tensors import load_tensors, pack_names, save_tensors
from splime.scoring.scoping import Scoping
from splime.segmentation import Segmentation
from splime.static import StaticGraph, Triples, apply

MEMORY_ADVICE = "lower batch_size, negatives or dimension"


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
    """What a checkpoint remembers beside the state of the trainer."""

    started: str
    seconds: float = 0.0
    history: list[Epoch] = field(default_factory=list)
    best: float | None = None
    best_epoch: int = 0
    waited: int = 0


def train(
    graph: TemporalGraph,
    cuts: Method | Segmentation,
    out: str | Path,
    *,
    model: str | None = None,
    preset: str | None = None,
    engine: str = "splime",
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
        settings: changes to the preset, see `splime.Settings`.

    >>> import splime, tempfile
    >>> graph = splime.load("demo")
    >>> with tempfile.TemporaryDirectory() as here:
    ...     run = train(graph, splime.Split(grow=5), here, model="distmult", dimension=8, epochs=2)
    ...     len(run.history), tuple(run.model.entities.shape)
    (2, (1029, 8))
    """
    chosen = make_settings(model, preset, engine=engine, **settings)
    if engine == "pykeen":
        from splime.runs.pykeen import train_pykeen

        assert model is not None
        return train_pykeen(graph, cuts, out, model=model, device=device, watch=watch, **settings)
    check_splits(graph, chosen)
    place = choose_device(device)
    segmentation = cuts.fit(graph) if isinstance(cuts, Method) else cuts
    static = apply(segmentation, graph)
    learned = _learned(static, chosen)
    if "batch_size" not in settings:
        chosen = _fitting(chosen, learned)
    out = Path(out)
    config = describe(graph, segmentation, chosen.values(), "splime")
    with locked(out):
        state = files.look(out, config)
        if state != "finished":
            with enough_memory(MEMORY_ADVICE), matrix_precision(chosen.precision):
                # Whatever is wrong with the settings shows here, before the folder is taken.
                training = _Training(graph, static, learned, chosen, out, config, place)
                training.watch, training.save_seconds = watch, save_seconds
                if state == "begun":
                    training.restore()
                else:
                    files.begin(out, config, graph, segmentation)
                training.run()
    return Run(out, device=device)


def check_splits(graph: TemporalGraph, settings: Settings) -> None:
    """An error if a split that the training needs is empty."""
    if not len(graph.train):
        raise UsageError("train has no facts; there is nothing to learn from")
    if settings.validate_every and not len(graph.valid):
        raise UsageError(
            "valid has no facts to choose the best epoch on; with validate_every=0"
            " (--validate-every 0) the last epoch is kept"
        )


def _learned(static: StaticGraph, settings: Settings) -> Triples:
    """The triples of train that a training goes through, or draws from."""
    once = settings.distinct and settings.each == "triple"
    return (static.distinct()[0] if once else static).train


def _fitting(settings: Settings, learned: Triples) -> Settings:
    """A preset's batch is all of train where train is smaller, as people's first own graphs are."""
    count = len(distinct(learned.fact) if settings.each == "fact" else learned)
    return replace(settings, batch_size=min(settings.batch_size, count))


class _Training:
    """One training, from its beginning or its last checkpoint to its end."""

    watch: Watch | None = None
    save_seconds: float = 60.0

    def __init__(
        self,
        graph: TemporalGraph,
        static: StaticGraph,
        learned: Triples,
        settings: Settings,
        out: Path,
        config: Config,
        device: torch.device,
    ) -> None:
        self.graph, self.static, self.settings, self.out = graph, static, settings, out
        self.scoping = Scoping(static)
        self.config = fingerprint(config)
        model = make_model(settings, len(static.entities), len(static.predicates)).to(device)
        follows = follows_in_time(static.predicates, reciprocal=settings.reciprocal)
        self.trainer = Trainer(
            model,
            learned.array(),
            settings,
            follows=follows,
            fact=learned.fact,
            weight=learned.overlap,
        )
        self.about = describe_machine(device)
        self.about["parameters"] = sum(table.numel() for table in model.parameters())
        self.about["triples"] = len(self.trainer.triples)
        self.progress = _Progress(started=self.about["started"])
        self.saved_at = self.began = time.monotonic()

    def run(self) -> None:
        """Epoch by epoch to the end."""
        write_json(self.out / files.ABOUT, self.about)
        trainer = self.trainer
        while trainer.epoch < trainer.epochs and not self._patience_ended():
            loss = trainer.run_epoch(advance=self._advance, stop=self._stop)
            if loss is None:
                self._save()
                raise Interrupted(
                    f"stopped in epoch {trainer.epoch + 1} of {trainer.epochs}; its state is saved"
                    f" in {self.out}, and the same command goes on from there"
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
        evaluation = evaluate_scoped("fact", scorer, self.scoping, Options(split="valid"))
        return evaluation.metrics["exact"]["both"].mrr

    def _write_model(self, name: str) -> None:
        tables = dict(self.trainer.model.named_parameters())
        about = {"config": self.config, "epoch": self.trainer.epoch}
        save_tensors(self.out / name, {**tables, **pack_names(self.static)}, about)

    def _seconds(self) -> float:
        return self.progress.seconds + time.monotonic() - self.began

    def _save(self) -> None:
        tensors, numbers = self.trainer.state()
        progress = {**asdict(self.progress), "seconds": self._seconds()}
        about = {"config": self.config, "trainer": numbers, "progress": progress}
        save_tensors(self.out / files.CHECKPOINT, tensors, about)
        self.saved_at = time.monotonic()

    def restore(self) -> None:
        """Go on from the checkpoint."""
        try:
            tensors, about = self._load(files.CHECKPOINT)
            self.trainer.restore(tensors, about["trainer"])
            self.progress = _Progress(**about["progress"])
            self.progress.history = [Epoch(**one) for one in about["progress"]["history"]]
            if self.progress.best is not None:
                self._load(files.BEST)
        except DataError as error:
            raise DataError(f"{error}; {self._remedy()}") from None
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            path = self.out / files.CHECKPOINT
            raise DataError(
                f"{path}: not a state of this training: {error!r}; {self._remedy()}"
            ) from None

    def _remedy(self) -> str:
        return f"remove {self.out / files.CHECKPOINT} to begin the training again"

    def _load(self, name: str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        tensors, about = load_tensors(self.out / name)
        if about.get("config") != self.config:
            raise DataError(f"{self.out / name}: belongs to another run")
        return tensors, about

    def _finish(self) -> None:
        """Keep the best embeddings, and drop what only going on would need."""
        progress = self.progress
        if progress.best is None:
            progress.best_epoch = self.trainer.epoch
            self._write_model(files.BEST)
        elif self._load(files.BEST)[1]["epoch"] != progress.best_epoch:
            # Somebody went on with it on another machine, where numbers differ.
            raise DataError(
                f"{self.out / files.BEST}: not of epoch {progress.best_epoch}, the best one;"
                f" {self._remedy()}"
            )
        write_history(self.out / files.HISTORY, progress.history)
        about = {
            **self.about,
            "started": progress.started,
            "seconds": round(self._seconds(), 1),
            "epochs": self.trainer.epoch,
            "best_epoch": progress.best_epoch,
        }
        write_json(self.out / files.ABOUT, about)
        (self.out / files.BEST).replace(self.out / files.MODEL)
        (self.out / files.CHECKPOINT).unlink(missing_ok=True)
