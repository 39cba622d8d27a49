"""One trial: cut, train, and tell what it was worth on valid."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splime.errors import SplimeError
from splime.graph import TemporalGraph
from splime.io.files import locked
from splime.runs import Epoch, Interrupted, train
from splime.runs import folder as files
from splime.runs.config import checksum_of_cuts
from splime.segmentation import Segmentation
from splime.training.engines import make_settings
from splime.tuning.search import TRIALS, WAIT, Search, need_optuna
from splime.tuning.space import Configuration

if TYPE_CHECKING:
    from optuna import Study, Trial

_LARGE = (files.GRAPH, files.SEGMENTATION, files.CHECKPOINT, files.BEST, files.MODEL)
"""What is not kept of a trial: the best one is trained again, with all facts."""


def attempt(
    search: Search,
    study: Study,
    trial: Trial,
    graph: TemporalGraph,
    *,
    device: str,
    stop: Callable[[], bool],
) -> bool:
    """Train what a trial suggests; False if that was stopped midway, and can be gone on with."""
    state = need_optuna().trial.TrialState
    chosen = search.space.suggest(trial)
    trial.set_user_attr("configuration", asdict(chosen))
    folder = search.trial_folder(trial.number)
    watch = _Watch(trial, stop)
    try:
        cuts = chosen.make_method(len(graph.predicates)).fit(graph)
        if (same := _claim(search, study, trial, chosen, cuts)) is not None:
            _tell_same(study, trial, same)
            return True
        with locked(folder, wait=WAIT):
            pass  # a process that was left behind may be saving its state
        run = train(
            graph, cuts, folder, model=chosen.model, device=device, watch=watch, **chosen.settings
        )
        valid = [one.valid for one in run.history if one.valid is not None]
        for name in ("seconds", "epochs", "best_epoch"):
            trial.set_user_attr(name, run.about[name])
        study.tell(trial, max(valid))
    except Interrupted:
        if not watch.pruned:
            return False
        study.tell(trial, state=state.PRUNED)
    except SplimeError as error:
        trial.set_user_attr("error", str(error))
        study.tell(trial, state=state.FAIL)
    drop_large(folder)
    return True


def drop_large(folder: Path) -> None:
    """Remove all of a trial but its configuration, its history and what it tells about itself."""
    for name in _LARGE:
        (folder / name).unlink(missing_ok=True)


def _claim(
    search: Search, study: Study, trial: Trial, chosen: Configuration, cuts: Segmentation
) -> Any | None:
    """The trial that trains the same already, if there is one; else this one does."""
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


def _tell_same(study: Study, trial: Trial, same: Any) -> None:
    """What another one was worth, if that is known."""
    state = need_optuna().trial.TrialState
    trial.set_user_attr("same_as", same.number)
    if same.state == state.COMPLETE:
        study.tell(trial, same.value)
    else:
        study.tell(trial, state=state.PRUNED if same.state == state.PRUNED else state.FAIL)


class _Watch:
    """Tells the looks at valid, and stops what is worse than half of the others were."""

    def __init__(self, trial: Trial, stop: Callable[[], bool]) -> None:
        self.trial, self.stop_all, self.pruned = trial, stop, False
        # A process that was killed may have told more than it saved.
        frozen = trial.study.get_trials(deepcopy=False)[trial.number]
        self.told = {*frozen.intermediate_values}

    def step(self, epoch: int, epochs: int, step: int, steps: int, loss: float) -> None:
        """Nobody looks at steps."""

    def epoch(self, found: Epoch, best: bool) -> None:  # noqa: ARG002
        """Tell a look at valid."""
        if found.valid is not None:
            if found.epoch not in self.told:
                self.trial.report(found.valid, found.epoch)
            self.pruned = bool(self.trial.should_prune())

    def stop(self) -> bool:
        """Whether to stop after this step."""
        return self.pruned or self.stop_all()
