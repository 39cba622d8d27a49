"""The folder of a search: what is searched for, the trials in optuna's journal, and making them.

Trials are asked for one by one (`ask` and `tell`), not by `Study.optimize`: that would seed the
sampler once a process, so that a resumed search would try other things; would try more than
was asked for where processes race; and would give an interrupted trial a new number.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from splime.errors import DataError, SplimeError, UsageError
from splime.evaluation import evaluate_facts
from splime.graph import TemporalGraph
from splime.io import read, save
from splime.io.files import LOCK, locked, read_toml, to_toml, write_toml
from splime.runs import Epoch, Interrupted, Run, folder as files, train
from splime.runs.folder import checksum, checksum_of_cuts, differences
from splime.segmentation import Segmentation
from splime.training.engines import make_settings
from splime.tuning.space import Configuration, Space

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

SEARCH, GRAPH, DATA = "search.toml", "graph.parquet", "data.parquet"
JOURNAL, TRIALS = "journal.log", "trials"
_LARGE = (files.GRAPH, files.SEGMENTATION, files.CHECKPOINT, files.BEST, files.MODEL)
"""What is not kept of a trial: the best one is trained again, with all facts."""
_WAIT = 60.0  # seconds, for the locks of other processes of the same search


@dataclass(frozen=True)
class Search:
    """What decides which trials there are; a folder belongs to one search."""

    folder: Path
    space: Space
    seed: int
    data: Mapping[str, Any]
    """Name, size and checksum of the facts, without those of test."""

    @classmethod
    def of(cls, folder: Path, graph: TemporalGraph, space: Space, seed: int) -> Search:
        """A search on a graph, whose test must be empty."""
        data = {"name": graph.name, "train": len(graph.train), "valid": len(graph.valid)}
        return cls(folder, space, seed, {**data, "sha256": checksum(graph)})

    @classmethod
    def open(cls, folder: Path) -> Search:
        """The search that a folder belongs to."""
        tables = read_toml(folder / SEARCH)
        try:
            return cls(folder, Space.of(tables), tables["search"]["seed"], tables["data"])
        except (KeyError, TypeError, AttributeError, UsageError) as error:
            raise DataError(f"{folder / SEARCH}: not a search: {error}") from None

    def begin(self, graph: TemporalGraph) -> None:
        """Take the folder, which must be new, empty, or this search's own."""
        path, journal = self.folder / SEARCH, self.folder / JOURNAL
        tables = {"search": {"seed": self.seed}, "data": self.data, **self.space.plain()}
        wanted = tomllib.loads(to_toml(tables))
        if path.exists():
            there = read_toml(path)
            if there != wanted:
                raise UsageError(
                    f"{self.folder}: holds another search ({differences(there, wanted)}); choose"
                    " another folder, or remove this one"
                )
            if journal.exists() and not (written := journal.read_bytes()).endswith(b"\n"):
                # A killed process wrote half of a line, and optuna would append to it.
                os.truncate(journal, written.rfind(b"\n") + 1)
        else:
            self._take(graph, wanted)
        # Processes lock it, and a folder that a lock made would vanish with the lock.
        (self.folder / TRIALS).mkdir(exist_ok=True)

    def _take(self, graph: TemporalGraph, wanted: dict[str, Any]) -> None:
        for other in self.folder.iterdir():
            if other.name not in (LOCK, GRAPH, DATA) and not other.name.endswith(".part"):
                raise UsageError(
                    f"{self.folder}: holds {other.name!r} and no search; choose another"
                )
        save(graph, self.folder / GRAPH)
        write_toml(self.folder / SEARCH, wanted)

    @cached_property
    def graph(self) -> TemporalGraph:
        """The facts of train and valid."""
        graph = read(self.folder / GRAPH)
        if checksum(graph) != self.data["sha256"]:
            raise DataError(f"{self.folder / GRAPH}: not the facts of this search")
        return graph

    @cached_property
    def study(self) -> Study:
        """Optuna's study, which other processes may read and change too."""
        optuna, path = need_optuna(), str(self.folder / JOURNAL)
        journal = optuna.storages.journal
        # Optuna's other kind of lock needs symbolic links, which not every system has.
        backend = journal.JournalFileBackend(path, journal.JournalFileOpenLock(path))
        # Nothing is pruned in the first third of the epochs: some improve slowly at first.
        epochs = [make_settings(model, **self.space.fixed).epochs for model in self.space.models]
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # it would report that it made a study
        try:
            return optuna.create_study(
                study_name="splime",
                storage=optuna.storages.JournalStorage(backend),
                direction="maximize",
                load_if_exists=True,
                pruner=optuna.pruners.MedianPruner(n_warmup_steps=1 + max(epochs) // 3),
            )
        except (ValueError, KeyError, OSError) as error:
            raise DataError(f"{path}: cannot be read: {error}") from None
        finally:
            optuna.logging.set_verbosity(before)

    def trials(self) -> list[FrozenTrial]:
        """All trials so far."""
        trials: list[FrozenTrial] = self.study.get_trials(deepcopy=False)
        return trials

    def work(
        self,
        trials: int,
        unfinished: Iterable[int] = (),
        *,
        device: str = "auto",
        stop: Callable[[], bool],
        tell: Callable[[], None] = lambda: None,
    ) -> None:
        """Resume the unfinished trials, then take new ones until there are `trials`."""
        waiting = list(unfinished)
        while not stop():
            trial = self._again(waiting.pop(0)) if waiting else self._ask(trials)
            if trial is None or not self._attempt(trial, device, stop):
                return
            tell()

    def _ask(self, trials: int) -> Trial | None:
        """The next trial, which has its point of the space; None if there are enough.

        What it suggests follows from the seed, its number and the trials that are finished.
        """
        with locked(self.folder / TRIALS, wait=_WAIT):
            number = len(self.trials())
            if number >= trials:
                return None
            self.study.sampler = _sampler(self.seed, number)
            trial = self.study.ask()
            self.space.suggest(trial)
        return trial

    def _again(self, number: int) -> Trial:
        """An unfinished trial, to resume; what it suggested it suggests again."""
        self.study.sampler = _sampler(self.seed, number)
        return need_optuna().trial.Trial(self.study, self.trials()[number]._trial_id)

    def _attempt(self, trial: Trial, device: str, stop: Callable[[], bool]) -> bool:
        """Train what a trial suggests; False if it was stopped midway, and can be resumed."""
        state, study = need_optuna().trial.TrialState, self.study
        chosen = self.space.suggest(trial)
        trial.set_user_attr("configuration", asdict(chosen))
        folder = self.trial_folder(trial.number)
        watch = _Watch(trial, stop)
        try:
            cuts = chosen.make_method().fit(self.graph)
            if (same := self._claim(trial, chosen, cuts)) is not None:
                trial.set_user_attr("same_as", same.number)
                ended = same.state if same.state.is_finished() else state.FAIL
                study.tell(trial, same.value if ended == state.COMPLETE else None, ended)
                return True
            with locked(folder, wait=_WAIT):
                pass  # a process that was left behind may be saving its state
            run = train(
                self.graph,
                cuts,
                folder,
                model=chosen.model,
                device=device,
                watch=watch,
                **chosen.settings,
            )
            for name in ("seconds", "epochs", "best_epoch"):
                trial.set_user_attr(name, run.about.get(name))
            study.tell(trial, _valid_mrr(run))
        except Interrupted:
            if not watch.pruned:
                return False
            study.tell(trial, state=state.PRUNED)
        except SplimeError as error:
            trial.set_user_attr("error", str(error))
            study.tell(trial, state=state.FAIL)
        self.drop_large(trial.number)
        return True

    def _claim(self, trial: Trial, chosen: Configuration, cuts: Segmentation) -> FrozenTrial | None:
        """The other trial that trains the same, if there is one; else this one does."""
        settings = make_settings(chosen.model, **chosen.settings).values()
        same = {"cuts": checksum_of_cuts(cuts), **settings}
        key = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
        with locked(self.folder / TRIALS, wait=_WAIT):
            for other in self.trials():
                mine = other.number == trial.number
                if other.user_attrs.get("key") == key and other.state.name != "FAIL" and not mine:
                    return other
            trial.set_user_attr("key", key)
        return None

    def trial_folder(self, number: int) -> Path:
        """Where the training of a trial is."""
        return self.folder / TRIALS / f"{number:03}"

    def drop_large(self, number: int) -> None:
        """Remove all of a trial but its configuration, its history and about.json."""
        for name in _LARGE:
            (self.trial_folder(number) / name).unlink(missing_ok=True)


def main(folder: str, trials: str, device: str, *unfinished: str) -> None:
    """A process of a search; the end of its standard input asks it to stop."""
    ended = Event()

    def wait() -> None:
        while os.read(0, 1 << 10):  # not through sys.stdin, which would be locked at the end
            pass
        ended.set()

    Thread(target=wait, daemon=True).start()
    try:
        search = Search.open(Path(folder))
        search.work(int(trials), map(int, unfinished), device=device, stop=ended.is_set)
    except SplimeError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


class _Watch:
    """Reports the MRR on valid, and stops what is worse than half of the other trials were."""

    def __init__(self, trial: Trial, stop: Callable[[], bool]) -> None:
        self.trial, self.stop_all, self.pruned = trial, stop, False
        # A process that was killed may have reported more than it saved.
        frozen = trial.study.get_trials(deepcopy=False)[trial.number]
        self.reported = {*frozen.intermediate_values}

    def step(self, epoch: int, epochs: int, step: int, steps: int, loss: float) -> None:
        """Steps do not matter here."""

    def epoch(self, found: Epoch, best: bool) -> None:  # noqa: ARG002
        """Report a validation."""
        if found.valid is not None:
            if found.epoch not in self.reported:
                self.trial.report(found.valid, found.epoch)
            self.pruned = bool(self.trial.should_prune())

    def stop(self) -> bool:
        """Whether to stop after this step."""
        return self.pruned or self.stop_all()


def _valid_mrr(run: Run) -> float:
    """The best MRR on valid; of the finished model, where the training did not validate."""
    validated = [one.valid for one in run.history if one.valid is not None]
    if validated:
        return max(validated)
    evaluation = evaluate_facts(run.scorer, run.graph, run.segmentation, split="valid")
    return evaluation.metrics["exact"]["both"].mrr


def _sampler(seed: int, number: int) -> Any:
    optuna = need_optuna()
    drawn = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    with warnings.catch_warnings():
        # Older versions call this an experiment: trials that still run count as bad ones, so that
        # processes do not try the same at the same time.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(seed=drawn, constant_liar=True, multivariate=False)


def need_optuna() -> Any:
    """Optuna; an error that says how to install it, where it is not there."""
    try:
        import optuna
    except ImportError as error:
        raise SplimeError(
            f"tuning needs optuna ({error}); install it with: pip install 'splime[tune]'"
        ) from None
    return optuna
