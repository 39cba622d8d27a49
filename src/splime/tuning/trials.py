"""Trials: cut, train, and measure on valid; one after the other, until there are enough."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from splime.embedding.presets import make_settings
from splime.errors import SplimeError
from splime.evaluation import evaluate_facts
from splime.graph import TemporalGraph
from splime.io.files import locked
from splime.runs import Epoch, Interrupted, Run, train
from splime.runs import folder as files
from splime.runs.config import checksum_of_cuts
from splime.segmentation import Segmentation
from splime.tuning.search import TRIALS, WAIT, Search, need_optuna
from splime.tuning.space import Configuration

if TYPE_CHECKING:
    from optuna import Study, Trial

_LARGE = (files.GRAPH, files.SEGMENTATION, files.CHECKPOINT, files.BEST, files.MODEL)
"""What is not kept of a trial: the best one is trained again, with all facts."""


def work(
    search: Search,
    trials: int,
    unfinished: Iterable[int] = (),
    *,
    device: str = "auto",
    stop: Callable[[], bool],
    tell: Callable[[], None] = lambda: None,
) -> None:
    """Resume the unfinished trials, then take new ones until there are `trials`."""
    study, graph = search.study(), search.graph()
    waiting = list(unfinished)
    while not stop():
        trial = search.again(study, waiting.pop(0)) if waiting else search.ask(study, trials)
        if trial is None or not _attempt(search, study, trial, graph, device, stop):
            return
        tell()


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
        work(search, int(trials), map(int, unfinished), device=device, stop=ended.is_set)
    except SplimeError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


def _attempt(
    search: Search,
    study: Study,
    trial: Trial,
    graph: TemporalGraph,
    device: str,
    stop: Callable[[], bool],
) -> bool:
    """Train what a trial suggests; False if it was stopped midway, and can be resumed."""
    state = need_optuna().trial.TrialState
    chosen = search.space.suggest(trial)
    trial.set_user_attr("configuration", asdict(chosen))
    folder = search.trial_folder(trial.number)
    watch = _Watch(trial, stop)
    try:
        cuts = chosen.make_method().fit(graph)
        if (same := _claim(search, study, trial, chosen, cuts)) is not None:
            trial.set_user_attr("same_as", same.number)
            finished = same.state if same.state.is_finished() else state.FAIL
            study.tell(trial, same.value if finished == state.COMPLETE else None, finished)
            return True
        with locked(folder, wait=WAIT):
            pass  # a process that was left behind may be saving its state
        run = train(
            graph, cuts, folder, model=chosen.model, device=device, watch=watch, **chosen.settings
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
    drop_large(folder)
    return True


def _valid_mrr(run: Run) -> float:
    """The best MRR on valid; of the finished model, where the training did not validate."""
    validated = [one.valid for one in run.history if one.valid is not None]
    if validated:
        return max(validated)
    evaluation = evaluate_facts(run.scorer, run.graph, run.segmentation, split="valid")
    return evaluation.metrics["exact"]["both"].mrr


def drop_large(folder: Path) -> None:
    """Remove all of a trial but its configuration, its history and what it says about itself."""
    for name in _LARGE:
        (folder / name).unlink(missing_ok=True)


def _claim(
    search: Search, study: Study, trial: Trial, chosen: Configuration, cuts: Segmentation
) -> Any | None:
    """The other trial that trains the same, if there is one; else this one does."""
    settings = make_settings(chosen.model, **chosen.settings).values()
    same = {"cuts": checksum_of_cuts(cuts), **settings}
    key = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
    failed = need_optuna().trial.TrialState.FAIL
    with locked(search.folder / TRIALS, wait=WAIT):
        for other in study.get_trials(deepcopy=False):
            mine = other.number == trial.number
            if other.user_attrs.get("key") == key and other.state != failed and not mine:
                return other
        trial.set_user_attr("key", key)
    return None


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
