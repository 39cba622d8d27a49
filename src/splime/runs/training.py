"""Train into the folder of a run: checkpoints, validation, early stopping, resuming."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, get_args

import torch

import splime
from splime import collective
from splime.collective import Rows
from splime.datasets import load
from splime.embedding.device import choose_device
from splime.embedding.settings import Settings
from splime.errors import DataError, UsageError, checked, enough_memory
from splime.evaluation.protocols import Options, evaluate_scoped
from splime.graph import TemporalGraph
from splime.io.files import locked, write_json
from splime.methods import (
    Method,
    Timestamp,
    at_every_timestamp,
    restore_method,
    standard_method,
)
from splime.progress import Progress, Showing, silent
from splime.runs import folder as files
from splime.runs.folder import Config, Epoch, describe, fingerprint, write_history
from splime.runs.run import Run
from splime.runs.tensors import join_shards, load_state, load_tensors, pack_names, save_state
from splime.runs.watching import Tracker, Watch, tracking
from splime.scoring.scoping import Scoping
from splime.segmentation import Segmentation
from splime.static import StaticGraph, apply
from splime.training.engines import (
    Interrupted,
    Learner,
    engine_of,
    find_engine,
    implied_method,
    knows_time,
)

if TYPE_CHECKING:
    from splime.keywords import Training


@checked
def train(
    graph: TemporalGraph | str | Path,
    cuts: Method | Segmentation | str | None,
    out: str | Path,
    *,
    model: str | None = None,
    preset: str | None = None,
    engine: str = "splime",
    device: str = "auto",
    shard: bool = False,
    log: str | Tracker | None = None,
    progress: Progress = silent,
    watch: Watch | None = None,
    save_seconds: float = 60.0,
    warn: Callable[[str], None] = warnings.warn,
    **settings: Unpack[Training],
) -> Run:
    """Cut a graph, train a static model on it, and leave a folder that explains itself.

    Args:
        graph: the facts, or what `splime.load` reads them from; only train is learned from, valid
            chooses the best epoch.
        cuts: a method that chooses the cuts, or its name, for its standard parameters; or a
            segmentation that has them. None is `Timestamp` for models that know time, and no cuts
            for others. Over the cuts of `Timestamp`, models that know time have each predicate at
            every timestamp, with facts of it or without.
        out: the folder of the run. If it holds the same run unfinished, that resumes, to the same
            bytes as if it had never stopped; if it holds another run, that is an error.
        model: the name of a model (`splime models`).
        preset: the name of a preset; by default the strong one of the model.
        engine: splime, or pykeen for any model of PyKEEN.
        device: cpu, cuda or auto.
        shard: whether workers (`splime.collective.join`) divide the vectors of entities, so that
            these need not fit into one of them; else they divide each batch.
        log: also tell a tracker of experiments: tensorboard, mlflow or wandb.
        progress: is told of the cuts, the steps, the loss and the MRR on valid; for a bar, see
            `splime.progress_bar`.
        watch: is told of every step and epoch, and can ask to stop.
        save_seconds: how often a checkpoint is saved; one that takes long, less often.
        warn: is told where the preset is changed to suit the graph.
        settings: changes to the preset, see `splime.Settings`.

    >>> import splime, tempfile
    >>> graph = splime.load("demo")
    >>> with tempfile.TemporaryDirectory() as here:
    ...     run = train(graph, splime.Split(grow=5), here, model="distmult", dimension=8, epochs=2)
    ...     len(run.history), tuple(run.model.entities.vectors().shape)
    (2, (1029, 8))
    """
    engine = engine_of(model, engine)
    _check_workers(engine, shard)
    trainer = find_engine(engine)
    chosen = trainer.make_settings(model, preset, **settings)
    if cuts is None:
        cuts = implied_method(chosen.model, engine)
    if isinstance(cuts, str):
        cuts = standard_method(cuts)
    if not isinstance(graph, TemporalGraph):
        graph = load(graph)
    chosen = _check_splits(graph, chosen, settings)
    place = choose_device(device)
    segmentation = cuts.fit(graph, progress=progress) if isinstance(cuts, Method) else cuts
    timed = chosen.shares_times or knows_time(chosen.model, engine)
    if timed and _is_timestamp(segmentation):
        segmentation = at_every_timestamp(segmentation, graph)
    static = apply(segmentation, graph)
    preset_loss, chosen = chosen.loss, trainer.fitted(chosen, static, settings)
    if chosen.loss != preset_loss:
        warn(
            f"{len(static.entities):,} entities are too many to compare each answer with all of"
            f" them: the loss is {chosen.loss}; loss={preset_loss!r} (--loss {preset_loss}) asks"
            " for the preset's"
        )
    out = Path(out)
    config = describe(graph, static.segmentation, trainer.values(chosen), engine)
    writes = collective.rank() == 0
    with tracking(log if writes else None) as tracker, locked(out) if writes else nullcontext():
        before = files.look(out, config) if writes else "new"
        states = get_args(files.State)
        state = states[collective.told(states.index(before))]
        if state != "finished":
            supervisor = _Supervisor(static, chosen, out, config, place)
            supervisor.shard = shard and collective.size() > 1
            shown = None if progress is silent else Showing(progress)
            supervisor.watches = [each for each in (shown, watch, tracker) if each is not None]
            supervisor.tracker, supervisor.save_seconds = tracker, save_seconds
            supervisor.resumes = state == "started"
            with enough_memory("lower batch_size, negatives or dimension"):
                trainer.fit(static, chosen, supervisor)
            supervisor.finish()
    return Run(out, device=device)


def _check_workers(engine: str, shard: bool) -> None:
    """An error where an engine cannot do what several workers should."""
    if engine == "pykeen" and collective.size() > 1:
        raise UsageError(
            "PyKEEN trains in one process: leave out workers, or choose a model of splime's own"
            " (--engine splime)"
        )
    if engine != "splime" and shard:
        raise UsageError(
            "this model has no vectors of entities that workers could divide; leave out shard"
            " (--shard), and each worker takes a share of each batch"
        )


def _is_timestamp(segmentation: Segmentation) -> bool:
    """Whether the cuts are those of the method timestamp, and of predicates alone."""
    method = restore_method(segmentation.method)
    return isinstance(method, Timestamp) and segmentation.entities is None


def _check_splits(graph: TemporalGraph, settings: Settings, given: Mapping[str, Any]) -> Settings:
    """The settings for the splits that there are; an error if that is not what was asked for."""
    if not len(graph.train):
        raise UsageError("train has no facts; there is nothing to learn from")
    if not settings.validate_every or len(graph.valid):
        return settings
    why = "valid has no facts to choose the best epoch on"
    if "validate_every" in given:
        raise UsageError(
            f"{why}; with validate_every=0 (--validate-every 0) the last epoch is kept"
        )
    warnings.warn(f"{why}: the last one is kept", stacklevel=3)
    return replace(settings, validate_every=0)


@dataclass
class _Progress:
    """What a checkpoint remembers beside the state of the learner."""

    started: str
    seconds: float = 0.0
    history: list[Epoch] = field(default_factory=list)
    best: float | None = None
    best_epoch: int = 0
    waited: int = 0
    """Validations since the best one."""


class _Supervisor:
    """One training in its folder, from its beginning or its last checkpoint to its end."""

    watches: Sequence[Watch]
    tracker: Tracker | None
    save_seconds: float
    shard: bool
    resumes: bool
    learner: Learner
    started_at: float
    saved_at: float
    saving: float = 0.0
    """Seconds that the last checkpoint took."""

    def __init__(
        self,
        static: StaticGraph,
        settings: Settings,
        out: Path,
        config: Config,
        device: torch.device,
    ) -> None:
        self.static, self.settings, self.out, self.device = static, settings, out, device
        self.scoping = Scoping(static)
        self.config, self.fingerprint = config, fingerprint(config)
        self.about = machine(device)
        self.progress = _Progress(started=self.about["started"])

    def begin(self, learner: Learner, **about: Any) -> None:
        """Restore the last checkpoint, or take the folder.

        Whatever is wrong with the settings has shown by now, before the folder is taken.
        """
        self.learner = learner
        self.saved_at = self.started_at = time.monotonic()
        self.about |= about
        if self.resumes:
            self._restore()
        elif self._writes:
            files.begin(self.out, self.config, self.static.graph, self.static.segmentation)
        if self._writes:
            write_json(self.out / files.ABOUT, self.about)
        if self.tracker is not None:
            self.tracker.begin(self.out, self.config, self.progress.history)

    @property
    def _writes(self) -> bool:
        """Whether this worker is the one that writes the run."""
        return collective.rank() == 0

    @property
    def _rows(self) -> Rows | None:
        """The entities whose vectors this worker holds, where others hold the rest."""
        return getattr(self.learner, "rows", None)

    def step(self, step: int, steps: int, loss: float) -> None:
        """Tell of progress."""
        for watch in self.watches:
            watch.step(self.learner.epoch, self.learner.epochs, step, steps, loss)

    def should_stop(self) -> bool:
        """Whether somebody asked to stop; saves a checkpoint now and then."""
        # Large ones less often: a tenth of the time at most goes into them.
        pause = self.save_seconds and max(self.save_seconds, 9 * self.saving)  # 0: always
        late = self._writes and time.monotonic() - self.saved_at > pause
        save, stop = collective.any_of(late, any(watch.stop() for watch in self.watches))
        if save:
            self._save()
        return stop

    @property
    def stopped_early(self) -> bool:
        """Whether as many validations as the patience allows were not better."""
        return self.progress.waited >= self.settings.patience

    def end_epoch(self, loss: float) -> None:
        """Validate if it is time for that, and keep the best parameters."""
        number, progress = self.learner.epoch, self.progress
        every = self.settings.validate_every
        valid = None
        if every and (number % every == 0 or number == self.learner.epochs):
            valid = self._validate()
            if progress.best is None or valid > progress.best:
                progress.best, progress.best_epoch, progress.waited = valid, number, 0
                self._write_model(files.BEST)
            else:
                progress.waited += 1
        epoch = Epoch(number, loss, valid)
        progress.history.append(epoch)
        for watch in self.watches:
            watch.epoch(epoch, progress.best_epoch == number)
        if valid is not None:
            self._save()

    def interrupted(self) -> Interrupted:
        """Save a checkpoint, and say how to resume."""
        epoch = f"stopped in epoch {self.learner.epoch + 1} of {self.learner.epochs}"
        if self._save():
            return Interrupted(
                f"{epoch}; a checkpoint is in {self.out}, and the same command resumes from it"
            )
        return Interrupted(f"{epoch}; this engine cannot resume: the same command begins again")

    def _validate(self) -> float:
        """The MRR on valid by protocol `fact` with its exact filter."""
        scorer = self.learner.scorer()
        options = Options(split="valid", bootstrap=0, aggregate=self.settings.asked)
        evaluation = evaluate_scoped("fact", scorer, self.scoping, options)
        return evaluation.metrics["exact"]["both"].mrr

    def _write_model(self, name: str) -> None:
        about = {"config": self.fingerprint, "epoch": self.learner.epoch}
        tensors = {**self.learner.parameters(), **(pack_names(self.static) if self._writes else {})}
        save_state(self.out / name, tensors, about, self._rows, str(self.learner.epoch))

    def _seconds(self) -> float:
        return self.progress.seconds + time.monotonic() - self.started_at

    def _save(self) -> bool:
        """Save a checkpoint, if the learner can resume from one."""
        state = self.learner.state()
        if state is None:
            return False
        began = time.monotonic()
        tensors, numbers = state
        progress = {**asdict(self.progress), "seconds": self._seconds()}
        about = {"config": self.fingerprint, "trainer": numbers, "progress": progress}
        tag = f"{self.learner.epoch}-{numbers.get('step', 0)}"
        save_state(self.out / files.CHECKPOINT, tensors, about, self._rows, tag)
        self.saved_at = time.monotonic()
        self.saving = self.saved_at - began
        return True

    def _restore(self) -> None:
        try:
            tensors, about = self._load(files.CHECKPOINT)
            self.learner.restore(tensors, about["trainer"])
            self.progress = _Progress(**about["progress"])
            self.progress.history = [Epoch(**epoch) for epoch in about["progress"]["history"]]
            if self.progress.best is not None:
                self._load(files.BEST)
        except DataError as error:
            raise DataError(f"{error}; {self._remedy()}") from None
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            path = self.out / files.CHECKPOINT
            raise DataError(
                f"{path}: not a checkpoint of this training: {error!r}; {self._remedy()}"
            ) from None

    def _remedy(self) -> str:
        return f"remove {self.out / files.CHECKPOINT} to begin the training again"

    def _load(self, name: str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        tensors, about = load_state(self.out / name, self._rows)
        if about.get("config") != self.fingerprint:
            raise DataError(f"{self.out / name}: belongs to another run")
        return tensors, about

    def finish(self) -> None:
        """Keep the best parameters, and drop what only resuming would need."""
        progress = self.progress
        if progress.best is None:
            progress.best_epoch = self.learner.epoch
            self._write_model(files.BEST)
        if self._writes:
            self._write_results()
        collective.wait()  # until the run is finished

    def _write_results(self) -> None:
        progress = self.progress
        if load_tensors(self.out / files.BEST)[1]["epoch"] != progress.best_epoch:
            # Somebody resumed it on another machine, where numbers differ.
            raise DataError(
                f"{self.out / files.BEST}: not of epoch {progress.best_epoch}, the best one;"
                f" {self._remedy()}"
            )
        write_history(self.out / files.HISTORY, progress.history)
        about = {
            **self.about,
            "started": progress.started,
            "seconds": round(self._seconds(), 1),
            "epochs": self.learner.epoch,
            "best_epoch": progress.best_epoch,
        }
        write_json(self.out / files.ABOUT, about)
        if self.tracker is not None:
            best = {} if progress.best is None else {"valid/best_mrr": progress.best}
            ended = {name: about[name] for name in ("seconds", "epochs", "best_epoch")}
            self.tracker.metrics({**best, **ended})
        if self._rows is None:
            (self.out / files.BEST).replace(self.out / files.MODEL)
        else:
            join_shards(self.out / files.BEST, self.out / files.MODEL)
        files.sweep(self.out)


def machine(device: torch.device) -> dict[str, Any]:
    """Versions, device, command and date."""
    packages = ("torch", "numpy", "pyarrow", "safetensors", "pykeen")
    versions = {"splime": splime.__version__, "python": platform.python_version()}
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "versions": versions,
        "device": _device_name(device),
        "threads": torch.get_num_threads(),
        **({"workers": collective.size()} if collective.size() > 1 else {}),
        "platform": platform.platform(),
        "command": shlex.join([_program(), *sys.argv[1:]]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return f"cuda ({torch.cuda.get_device_name(device)})"
    return f"cpu ({platform.machine()}, {os.cpu_count()} cores)"


def _program() -> str:
    """The name of the program, also where it was called as a module."""
    path = Path(sys.argv[0])
    return path.parent.name if path.name == "__main__.py" else path.name
