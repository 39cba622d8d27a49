"""Train into the folder of a run: checkpoints, validation, early stopping, resuming."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, get_args

import msgspec
import torch

import splime
from splime import collective
from splime.datasets import load
from splime.device import choose_device
from splime.embedding.presets import QUICK
from splime.errors import DataError, Interrupted, UsageError, counted, explain_out_of_memory
from splime.evaluation.protocols import EvaluationOptions, evaluate_scoring
from splime.graph import TemporalGraph
from splime.io import load_segmentation
from splime.io.files import locked, write_json
from splime.io.inputs import without_password
from splime.methods import (
    Method,
    Timestamp,
    Vanilla,
    at_every_timestamp,
    make_method,
    parameters_of,
    restore_method,
    standard_method,
)
from splime.progress import Progress, Showing, silent
from splime.runs import folder as files
from splime.runs.folder import Config, Epoch, describe, fingerprint, write_history
from splime.runs.run import Run
from splime.runs.watching import Tracker, Watch, tracking
from splime.scoring.scoping import Scoping
from splime.segmentation import Segmentation
from splime.settings import BaseSettings, TrainingSettings
from splime.static import apply
from splime.tensors import load_tensors, save_tensors
from splime.training.engines import EpochEnd, Learner, TrainingStep
from splime.training.registry import WITHOUT_CUTS, ModelEntry, Preset, entry_for, find_engine

if TYPE_CHECKING:
    from splime.keywords import Training


def train(
    graph: TemporalGraph | str | Path,
    cuts: Method | Segmentation | str | None,
    out: str | Path,
    *,
    model: str | None = None,
    preset: Preset | None = None,
    engine: str = "splime",
    device: str = "auto",
    log: str | Tracker | None = None,
    progress: Progress = silent,
    watch: Watch | None = None,
    save_seconds: float = 60.0,
    warn: Callable[[str], None] = warnings.warn,
    **settings: Unpack[Training],
) -> Run:
    """Cut a graph, train a model on it, and write a self-describing run folder.

    Args:
        graph: the facts, or what `splime.load` reads them from; only train is learned from, valid
            chooses the best epoch.
        cuts: a method that chooses the cuts, or its name, for its standard parameters; or a
            segmentation that has them. None is what suits the model: `Timestamp`, no cuts, or
            predicates as they are. Over the cuts of `Timestamp`, models with vectors of times have
            each predicate at every timestamp, with facts of it or without.
        out: the folder of the run. If it holds the same run unfinished, that resumes, to the same
            bytes as if it had never stopped; if it holds another run, that is an error.
        model: the name of a model (`splime models`). By default path, begun from the weights that
            splime ships, or complex where there are `cuts`.
        preset: the name of a preset, or settings to begin with; by default the strong one of the
            model.
        engine: splime, or pykeen for any model of PyKEEN.
        device: cpu, cuda or auto.
        log: also log to an experiment tracker: tensorboard, mlflow or wandb.
        progress: reports the cuts, the steps, the loss and the MRR on valid; for a bar, see
            `splime.progress_bar`.
        watch: called at every step and epoch; can stop the training.
        save_seconds: how often a checkpoint is saved; one that takes long, less often.
        warn: called where the preset is changed to suit the graph.
        settings: changes to the preset, see `splime.Settings`.

    >>> import splime, tempfile
    >>> graph = splime.load("demo")
    >>> with tempfile.TemporaryDirectory() as here:
    ...     run = train(graph, splime.Split(grow=5), here, model="distmult", dimension=8, epochs=2)
    ...     len(run.history), tuple(run.model.entities.vectors().shape)
    (2, (1029, 8))
    """
    default = WITHOUT_CUTS if cuts is None else BaseSettings.model
    entry = entry_for(model, preset, engine, default=default)
    trainer = find_engine(entry.engine)
    if not trainer.parallel and collective.size() > 1:
        raise UsageError(
            f"the engine {entry.engine} trains in one process: leave out workers, or choose a model"
            " of splime's own"
        )
    chosen = entry.make_settings(preset, **settings)
    if isinstance(cuts, str):
        cuts = standard_method(cuts)
    if not isinstance(graph, TemporalGraph):
        graph = load(graph)
    chosen = _check_splits(graph, chosen, settings)
    segmentation = _cut(graph, cuts, entry, chosen, progress)
    source = TrainingSource(graph, segmentation, choose_device(device))
    fitted = trainer.fitted(chosen, source, settings)
    _warn_of_changes(chosen, fitted, source, warn)
    if entry.trained:
        _warn_of_later_facts(graph, fitted, warn)
    if preset == QUICK:
        whole, fitted = fitted, trainer.quick(fitted, source, settings)
        _tell_sample(whole, fitted, warn)
    out = Path(out)
    config = describe(graph, source.segmentation, fitted.values(), entry.engine)
    writes = collective.rank() == 0
    with tracking(log if writes else None) as tracker, locked(out) if writes else nullcontext():
        state = _state(out, config)
        if state != "finished":
            shown = None if progress is silent else Showing(progress)
            watches = [one for one in (shown, watch) if one is not None]
            with explain_out_of_memory("lower batch_size, negatives or dimension"):
                learner = trainer.learner(fitted, source)
                told = (watches, tracker, save_seconds)
                _Training(learner, source, fitted, out, config, *told).run(state == "started")
    return Run(out, device=device)


def choose_cuts(
    entry: ModelEntry,
    method: str | None,
    segmentation: Path | None,
    parameters: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Method | Segmentation:
    """The cuts that are asked for, by default those that suit the model; before facts are read."""
    if segmentation is not None:
        if method not in (None, Vanilla.name) or parameters:
            raise UsageError("give the cuts as a segmentation or choose a method, not both")
        return load_segmentation(segmentation)
    entry.check_cuts(method)
    method = method or entry.method
    return make_method(method, **parameters, **parameters_of(method, settings))


def _state(out: Path, config: Config) -> files.State:
    """How far the run is, which the first worker sees and tells the others."""
    states: tuple[files.State, ...] = get_args(files.State)
    here = files.run_state(out, config) if collective.rank() == 0 else "new"
    return states[collective.broadcast(states.index(here))]


@dataclass(frozen=True, eq=False)
class TrainingSource:
    """What a model is trained on."""

    graph: TemporalGraph
    segmentation: Segmentation | None
    """None for a model without cuts."""
    device: torch.device
    members: tuple[Run, ...] = ()

    @cached_property
    def scoping(self) -> Scoping:
        """The triples that the cuts make of the facts; made once, however often it validates."""
        assert self.segmentation is not None, "a model without cuts has no triples"
        return Scoping(apply(self.segmentation, self.graph))


def _cut(
    graph: TemporalGraph,
    cuts: Method | Segmentation | None,
    entry: ModelEntry,
    settings: BaseSettings,
    progress: Progress,
) -> Segmentation | None:
    """The cuts for a model: those that were given, or those that suit it."""
    if entry.cuts == "none":
        if isinstance(cuts, Method):
            entry.check_cuts(cuts.name)
        elif cuts is not None and len(cuts.predicates) > len(cuts.predicates.names):
            entry.check_cuts("segmentation")
        return None
    if cuts is None:
        cuts = standard_method(entry.method)
    segmentation = cuts.fit(graph, progress=progress) if isinstance(cuts, Method) else cuts
    by_timestamp = isinstance(restore_method(segmentation.method), Timestamp)
    shared = entry.cuts == "timestamps" or settings.shares_times
    if shared and by_timestamp and segmentation.entities is None:
        return at_every_timestamp(segmentation, graph)
    return segmentation


def _warn_of_changes(
    chosen: BaseSettings,
    fitted: BaseSettings,
    source: TrainingSource,
    warn: Callable[[str], None],
) -> None:
    before, after = (settings.values().get("loss") for settings in (chosen, fitted))
    if before != after:
        entities = len(source.scoping.static.entities)
        warn(
            f"{entities:,} entities are too many to compare each answer with all of them: the loss"
            f" is {after}; loss={before!r} (--loss {before}) keeps the preset's"
        )


def _warn_of_later_facts(
    graph: TemporalGraph, settings: BaseSettings, warn: Callable[[str], None]
) -> None:
    """Say that a forecast learns from facts that are later than those it is asked about."""
    try:
        if settings.forecasts:
            graph.split_begins()
    except UsageError:
        warn(
            "valid or test begins before train ends, so this forecast learns from later facts, too;"
            " split='time' (--split time) splits again"
        )


def _tell_sample(whole: BaseSettings, quick: BaseSettings, warn: Callable[[str], None]) -> None:
    """Say what the preset `quick` takes a part of, or less of."""
    before, after = whole.values(), quick.values()
    texts = {"steps": "{}", "epochs": "{} at most", "valid_questions": "validation on {}"}
    nouns = {"steps": "step", "epochs": "epoch", "valid_questions": "question", "reach": "fact"}
    texts["reach"] = "the nearest {} for a question"
    changed = [name for name in texts if after.get(name) != before.get(name)]
    if changed:
        parts = [texts[name].format(counted(after[name], nouns[name])) for name in changed]
        warn(f"so that it ends within a minute, quick takes {', '.join(parts)}; strong takes more")


def _check_splits(
    graph: TemporalGraph, settings: BaseSettings, given: Mapping[str, Any]
) -> BaseSettings:
    """The settings for the splits that there are; an error if other settings were given."""
    if not len(graph.train):
        raise UsageError("train has no facts; there is nothing to learn from")
    if not isinstance(settings, TrainingSettings):
        return settings
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


@dataclass(eq=False)
class _Training:
    """One training in its folder, from its beginning or its last checkpoint to its end."""

    learner: Learner
    source: TrainingSource
    settings: BaseSettings
    out: Path
    config: Config
    watches: Sequence[Watch]
    tracker: Tracker | None
    save_seconds: float
    saving: float = 0.0
    """Seconds that the last checkpoint took."""

    def __post_init__(self) -> None:
        self.saved_at = self.started_at = time.monotonic()
        self.fingerprint = fingerprint(self.config)
        self.about = {**machine(self.source.device), **self.learner.about}
        self.progress = _Progress(started=self.about["started"])
        self.shown = [watch for watch in self.watches if isinstance(watch, Showing)]
        for shown in self.shown:
            shown.most = self.learner.most_steps

    def run(self, resumes: bool) -> None:
        """Train to the end, or until a watch asks to stop."""
        self._begin(resumes)
        with closing(self.learner.train()) as events:
            while self.progress.waited < self.settings.patience:
                match next(events, None):
                    case TrainingStep() as step:
                        self._step(step)
                    case EpochEnd(loss):
                        self._end_epoch(loss)
                    case None:
                        break
        self._finish()

    def _begin(self, resumes: bool) -> None:
        """Restore the last checkpoint, or take the folder.

        Whatever is wrong with the settings has shown by now, before the folder is taken.
        """
        if resumes:
            self._restore()
        elif self._writes:
            files.begin(self.out, self.config, self.source.graph, self.source.segmentation)
        if self._writes:
            write_json(self.out / files.ABOUT, self.about)
        if self.tracker is not None:
            self.tracker.begin(self.out, self.config, self.progress.history)

    @property
    def _writes(self) -> bool:
        """Whether this worker is the one that writes the run."""
        return collective.rank() == 0

    def _step(self, step: TrainingStep) -> None:
        """Report progress, save a checkpoint now and then, and stop if a watch requests it."""
        for watch in self.watches:
            watch.step(self.learner.epoch, self.learner.epochs, *step)
        # Large ones less often: a tenth of the time at most goes into them.
        pause = self.save_seconds and max(self.save_seconds, 9 * self.saving)  # 0: always
        late = self._writes and time.monotonic() - self.saved_at > pause
        save, stop = collective.any_rank(late, any(watch.stop() for watch in self.watches))
        if save:
            self._save()
        if stop:
            raise self._interrupted()

    def _end_epoch(self, loss: float) -> None:
        """Validate if it is time for that, and keep the best parameters."""
        number, progress = self.learner.epoch, self.progress
        every = self.settings.validate_every if len(self.source.graph.valid) else 0
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
        if self.tracker is not None:
            self.tracker.epoch(epoch)
        if valid is not None:
            self._save()

    def _interrupted(self) -> Interrupted:
        """Save a checkpoint, and say how to resume."""
        epoch = f"stopped in epoch {self.learner.epoch + 1} of {self.learner.epochs}"
        if self._save():
            return Interrupted(
                f"{epoch}; a checkpoint is in {self.out}, and the same command resumes from it"
            )
        return Interrupted(f"{epoch}; this engine cannot resume: the same command begins again")

    def _validate(self) -> float:
        """The MRR on valid by protocol `fact` with its exact filter."""
        aggregate = self.settings.default_aggregate
        options = EvaluationOptions(
            split="valid",
            bootstrap=0,
            aggregate=aggregate,
            questions=self.settings.valid_questions,
            progress=self.shown[0].validating if self.shown else silent,
        )
        evaluation = evaluate_scoring(self.learner.scoring(), "fact", options)
        return evaluation.metrics["exact"]["both"].mrr

    def _write_model(self, name: str) -> None:
        about = {"config": self.fingerprint, "epoch": self.learner.epoch}
        if self._writes:
            save_tensors(self.out / name, self.learner.parameters(), about)

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
        if self._writes:
            save_tensors(self.out / files.CHECKPOINT, tensors, about)
        self.saved_at = time.monotonic()
        self.saving = self.saved_at - began
        return True

    def _restore(self) -> None:
        try:
            tensors, about = self._load(files.CHECKPOINT)
            self.learner.restore(tensors, about["trainer"])
            self.progress = msgspec.convert(about["progress"], _Progress)
            if self.progress.best is not None:
                self._load(files.BEST)
        except (DataError, KeyError, TypeError, ValueError, RuntimeError) as error:
            what = f"{self.out / files.CHECKPOINT}: not a checkpoint of this training: {error!r}"
            what = str(error) if isinstance(error, DataError) else what
            raise DataError(f"{what}; {self._remedy()}") from None

    def _remedy(self) -> str:
        return f"remove {self.out / files.CHECKPOINT} to begin the training again"

    def _load(self, name: str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        tensors, about = load_tensors(self.out / name)
        if about.get("config") != self.fingerprint:
            raise DataError(f"{self.out / name}: belongs to another run")
        return tensors, about

    def _finish(self) -> None:
        """Keep the best parameters, and drop what only resuming would need."""
        if self.progress.best is None:
            self.progress.best_epoch = self.learner.epoch
            self._write_model(files.BEST)
        if self._writes:
            self._write_results()
        collective.wait()  # until the run is finished

    def _write_results(self) -> None:
        progress, best = self.progress, self.out / files.BEST
        if load_tensors(best)[1]["epoch"] != progress.best_epoch:
            # It was resumed on another machine, where numbers differ.
            raise DataError(
                f"{best}: not of epoch {progress.best_epoch}, the best one; {self._remedy()}"
            )
        write_history(self.out / files.HISTORY, progress.history)
        ended = {
            "seconds": round(self._seconds(), 1),
            "epochs": self.learner.epoch,
            "best_epoch": progress.best_epoch,
        }
        about = {**self.about, "started": progress.started, **ended}
        write_json(self.out / files.ABOUT, about)
        if self.tracker is not None:
            reached = {} if progress.best is None else {"valid/best_mrr": progress.best}
            self.tracker.metrics({**reached, **ended})
        best.replace(self.out / files.MODEL)
        files.sweep(self.out)


def machine(device: torch.device) -> dict[str, Any]:
    """Versions, device, command and date."""
    packages = ("torch", "numpy", "pyarrow", "safetensors", "pykeen")
    versions = {"splime": splime.__version__, "python": platform.python_version()}
    for name in packages:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "versions": versions,
        "device": _device_name(device),
        "threads": torch.get_num_threads(),
        **({"workers": collective.size()} if collective.size() > 1 else {}),
        "platform": platform.platform(),
        "command": shlex.join([_program(), *map(_without_password, sys.argv[1:])]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return f"cuda ({torch.cuda.get_device_name(device)})"
    return f"cpu ({platform.machine()}, {os.cpu_count()} cores)"


def _without_password(argument: str) -> str:
    """An argument as it may be written; an address may also stand in --option=ADDRESS."""
    option, equals, value = argument.partition("=") if argument[:2] == "--" else ("", "", argument)
    return f"{option}{equals}{without_password(value)}"


def _program() -> str:
    """The name of the program, also where it was called as a module."""
    path = Path(sys.argv[0])
    return path.parent.name if path.name == "__main__.py" else path.name
