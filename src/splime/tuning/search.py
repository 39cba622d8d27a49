"""The folder of a search: what is searched for, and the trials in optuna's journal.

Trials are asked for one by one (`ask` and `tell`), not by `Study.optimize`: that would seed the
sampler once a process, so that a resumed search would try other things; would try more than
was asked for where processes race; and would give an interrupted trial a new number.
"""

from __future__ import annotations

import os
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from splime.embedding.presets import make_settings
from splime.errors import DataError, SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.io import read, save
from splime.io.files import LOCK, locked, read_toml, to_toml, write_toml
from splime.runs.config import checksum, differences
from splime.tuning.space import Space

if TYPE_CHECKING:
    from optuna import Study, Trial

SEARCH, GRAPH, DATA, JOURNAL, TRIALS = (
    "search.toml", "graph.parquet", "data.parquet", "journal.log", "trials",
)  # fmt: skip
WAIT = 60.0  # seconds, for the locks of other processes of the same search
_NAME = "splime"


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

    def plain(self) -> dict[str, dict[str, Any]]:
        """Tables that TOML can hold."""
        return {"search": {"seed": self.seed}, "data": dict(self.data), **self.space.plain()}

    def begin(self, graph: TemporalGraph) -> None:
        """Take the folder, which must be new, empty, or this search's own."""
        path = self.folder / SEARCH
        wanted = tomllib.loads(to_toml(self.plain()))
        if path.exists():
            there = read_toml(path)
            if there != wanted:
                raise UsageError(
                    f"{self.folder}: holds another search ({differences(there, wanted)}); choose"
                    " another folder, or remove this one"
                )
            _mend(self.folder / JOURNAL)
            return
        for other in self.folder.iterdir():
            if other.name not in (LOCK, GRAPH, DATA) and not other.name.endswith(".part"):
                raise UsageError(
                    f"{self.folder}: holds {other.name!r} and no search; choose another"
                )
        save(graph, self.folder / GRAPH)
        write_toml(path, wanted)

    def graph(self) -> TemporalGraph:
        """The facts of train and valid."""
        graph = read(self.folder / GRAPH)
        if checksum(graph) != self.data["sha256"]:
            raise DataError(f"{self.folder / GRAPH}: not the facts of this search")
        return graph

    def trial_folder(self, number: int) -> Path:
        """Where the training of a trial is."""
        return self.folder / TRIALS / f"{number:03}"

    def study(self) -> Study:
        """The trials, which other processes may see and change too."""
        optuna = need_optuna()
        journal = optuna.storages.journal
        backend = journal.JournalFileBackend(
            str(self.folder / JOURNAL),
            # The other kind of lock needs symbolic links, which not every system has.
            journal.JournalFileOpenLock(str(self.folder / JOURNAL)),
        )
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # it would report that it made a study
        try:
            return optuna.create_study(
                study_name=_NAME,
                storage=optuna.storages.JournalStorage(backend),
                direction="maximize",
                load_if_exists=True,
                pruner=optuna.pruners.MedianPruner(n_warmup_steps=self._warm_up()),
            )
        except (ValueError, KeyError, OSError) as error:
            raise DataError(f"{self.folder / JOURNAL}: cannot be read: {error}") from None
        finally:
            optuna.logging.set_verbosity(before)

    def _warm_up(self) -> int:
        """Epochs before which nothing is pruned: a third, as some improve slowly at first."""
        epochs = [make_settings(model, **self.space.fixed).epochs for model in self.space.models]
        return 1 + max(epochs) // 3

    def ask(self, study: Study, trials: int) -> Trial | None:
        """The next trial, which has its point of the space; None if there are enough.

        What it suggests follows from the seed, its number and the trials that are finished.
        """
        with locked(self.folder / TRIALS, wait=WAIT):
            number = len(study.get_trials(deepcopy=False))
            if number >= trials:
                return None
            study.sampler = _sampler(self.seed, number)
            trial = study.ask()
            self.space.suggest(trial)
        return trial

    def again(self, study: Study, number: int) -> Trial:
        """An unfinished trial, to resume; what it suggested it suggests again."""
        study.sampler = _sampler(self.seed, number)
        unfinished = study.get_trials(deepcopy=False)[number]
        return need_optuna().trial.Trial(study, unfinished._trial_id)


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


def _mend(journal: Path) -> None:
    """Cut off a line that a killed process wrote half of: optuna would append to it."""
    if journal.exists():
        written = journal.read_bytes()
        if not written.endswith(b"\n"):
            os.truncate(journal, written.rfind(b"\n") + 1)
