"""What a search found: its trials, the best of them as a plan, and a table for others."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splime.errors import SplimeError
from splime.io.files import written_beside
from splime.plans import Plan, PlannedRun
from splime.report.tables import described
from splime.tuning.space import Configuration, Space

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

_STATES = {"COMPLETE": "finished", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "begun"}


@dataclass(frozen=True)
class Tried:
    """One trial."""

    number: int
    state: str
    """finished, pruned (worse than half of the others so far), failed or begun."""
    valid: float | None
    """The best MRR on valid (protocol fact, filter exact)."""
    configuration: Configuration | None
    chosen: dict[str, Any]
    """What the search chose: the method, its parameters as `split.grow`, the model, settings."""
    seconds: float | None
    epochs: int | None
    same_as: int | None
    """The trial that trained the same cuts with the same settings; this one then did not."""
    error: str | None

    def described(self) -> tuple[str, str]:
        """The method and the model, each with what was chosen for it."""
        if self.configuration is None:
            return "", ""
        found = self.configuration
        own = {name.rpartition(".")[2] for name in self.chosen}
        settings = {name: value for name, value in found.settings.items() if name in own}
        return described(found.method, found.parameters), described(found.model, settings)


def tried(trial: FrozenTrial, space: Space) -> Tried:
    """A trial of optuna, for people."""
    about = trial.user_attrs
    configuration = Configuration(**about["configuration"]) if "configuration" in about else None
    looks = trial.intermediate_values
    valid = trial.value if trial.value is not None else max(looks.values(), default=None)
    return Tried(
        number=trial.number,
        state=_STATES.get(trial.state.name, "begun"),
        valid=valid,
        configuration=configuration,
        chosen={} if configuration is None else _chosen(configuration, space),
        seconds=about.get("seconds"),
        epochs=about.get("epochs", max(looks, default=None)),
        same_as=about.get("same_as"),
        error=about.get("error"),
    )


def _chosen(found: Configuration, space: Space) -> dict[str, Any]:
    parameters = {f"{found.method}.{name}": value for name, value in found.parameters.items()}
    prefix = space.prefix(found.model)
    settings = {prefix + n: v for n, v in found.settings.items() if n not in space.fixed}
    return {"method": found.method, **parameters, "model": found.model, **settings}


@dataclass(frozen=True)
class Tuned:
    """A search that came to its end."""

    out: Path
    trials: Sequence[Tried]
    importances: Mapping[str, float]
    """How much of the differences in valid MRR each choice explains, most first; they sum to 1."""
    plan: Plan
    """The best configuration, which `splime run` and `splime.carry_out` take."""

    @property
    def best(self) -> Tried:
        """The trial with the highest MRR on valid."""
        return self.ranking()[0]

    def ranking(self) -> list[Tried]:
        """The finished trials, best first, each configuration once."""
        return ranking(self.trials)


def ranking(trials: Sequence[Tried]) -> list[Tried]:
    """The finished ones, best first, without those that repeat another."""
    done = [one for one in trials if one.state == "finished" and one.same_as is None]
    return sorted(done, key=lambda one: (-(one.valid or 0.0), one.number))


def best_plan(
    trials: Sequence[Tried], space: Space, data: str, reading: Mapping[str, Any], predicates: int
) -> Plan:
    """The plan of the best trial; an error that says why, if none came to its end."""
    done = ranking(trials)
    if not done:
        why = next((one.error for one in trials if one.error), "all were stopped")
        raise SplimeError(f"no trial of {len(trials):,} came to its end; the first: {why}")
    best = done[0].configuration
    assert best is not None, "a finished trial has one"
    own = {name: value for name, value in best.settings.items() if name not in space.fixed}
    method = best.make_method(predicates)
    run = PlannedRun(best.method, method, {"model": best.model, **own})
    plain = {key: str(v) if isinstance(v, Path) else v for key, v in reading.items()}
    return Plan(data, (run,), plain, dict(space.fixed))


def write_trials(path: Path, trials: Sequence[Tried]) -> None:
    """A row for each trial, with a column for each thing that was chosen."""
    names = list(dict.fromkeys(name for one in trials for name in one.chosen))
    header = ["trial", "state", "valid_mrr", "epochs", "seconds", *names, "same_as", "error"]
    with written_beside(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(header)
        for one in trials:
            figures = (one.number, one.state, one.valid, one.epochs, one.seconds)
            chosen = (one.chosen.get(name) for name in names)
            rows.writerow([*figures, *chosen, one.same_as, one.error])
