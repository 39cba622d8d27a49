"""What a search gave: its trials, the best of them as a plan, and which choices mattered."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, mode
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
from rich.console import RenderableType
from rich.text import Text

from splime.errors import SplimeError, visible
from splime.io.files import written_beside
from splime.plans import Plan, PlannedRun
from splime.report.tables import described, make_table
from splime.shown import Shown
from splime.training.engines import OWN_ENGINES
from splime.tuning.space import Configuration, Space

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

_STATES = {"COMPLETE": "finished", "PRUNED": "pruned", "FAIL": "failed"}
_FEWEST = 8  # trials, below which importances are noise


@dataclass(frozen=True)
class Tried:
    """One trial."""

    number: int
    state: str
    """finished, pruned (worse than half of the others so far), failed, or begun (unfinished)."""
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

    @classmethod
    def of(cls, trial: FrozenTrial, space: Space) -> Tried:
        """A trial of optuna, for people; one that this search did not write is a ValueError."""
        about, validated = trial.user_attrs, trial.intermediate_values
        configuration = None
        chosen: dict[str, Any] = {}
        if "configuration" in about:
            configuration = one = msgspec.convert(about["configuration"], Configuration)
            parameters = {f"{one.method}.{name}": value for name, value in one.parameters.items()}
            prefix = space.prefix(one.model)
            settings = {prefix + n: v for n, v in one.settings.items() if n not in space.fixed}
            chosen = {"method": one.method, **parameters, "model": one.model, **settings}
        made = cls(
            number=trial.number,
            state=_STATES.get(trial.state.name, "begun"),
            valid=max(validated.values(), default=None) if trial.value is None else trial.value,
            configuration=configuration,
            chosen=chosen,
            seconds=about.get("seconds"),
            epochs=about.get("epochs", max(validated, default=None)),
            same_as=about.get("same_as"),
            error=about.get("error"),
        )
        return msgspec.convert(vars(made), cls)  # checks the types

    def described(self) -> tuple[str, str]:
        """The method and the model, each with what was chosen for it."""
        one = self.configuration
        if one is None:
            return "", ""
        own = {name.rpartition(".")[2] for name in self.chosen}
        settings = {name: value for name, value in one.settings.items() if name in own}
        return described(one.method, one.parameters), described(one.model, settings)


@dataclass(frozen=True)
class Tuned(Shown):
    """A finished search."""

    shown_by: ClassVar = "splime.tuning.results:tuned_tables"

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

    def __repr__(self) -> str:
        method, model = self.best.described()
        return visible(
            f"Tuned({self.out}: {len(self.trials):,} trials; the best: {method}, {model},"
            f" valid MRR {self.best.valid:.3f})"
        )


def tuned_tables(tuned: Tuned) -> Iterator[RenderableType]:
    """The best trials, and what mattered."""
    counts = Counter(one.state for one in tuned.trials)
    listed = ", ".join(f"{count:,} {state}" for state, count in counts.items())
    title = f"the best of {len(tuned.trials):,} trials ({listed})"
    columns = ("trial", "valid MRR", "method", "model", "seconds")
    table = make_table(title, *columns, words=("method", "model"))
    for one in tuned.ranking()[:5]:
        method, model = one.described()
        mrr, seconds = f"{one.valid:.3f}", f"{one.seconds:,.1f}"
        table.add_row(f"{one.number:,}", mrr, Text(method), Text(model), seconds)
    yield table
    if tuned.importances:
        shares = (f"{n} {100 * s:.0f} %" for n, s in tuned.importances.items() if s >= 0.005)
        yield f"what mattered: {', '.join(shares)}"


def ranking(trials: Sequence[Tried]) -> list[Tried]:
    """The finished ones, best first, without those that repeat another."""
    done = [one for one in trials if one.state == "finished" and one.same_as is None]
    return sorted(done, key=lambda one: (-(one.valid or 0.0), one.number))


def best_plan(trials: Sequence[Tried], space: Space, data: str, reading: Mapping[str, Any]) -> Plan:
    """The plan of the best trial; an error that says why, if none was finished."""
    done = ranking(trials)
    if not done:
        why = next((one.error for one in trials if one.error), "all were stopped")
        raise SplimeError(f"none of {len(trials):,} trials was finished; the first: {why}")
    best = done[0].configuration
    assert best is not None, "a finished trial has one"
    own = {name: value for name, value in best.settings.items() if name not in space.fixed}
    name = best.model if best.model in OWN_ENGINES else best.method
    run = PlannedRun(name, best.make_method(), {"model": best.model, **own})
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
            about = (one.number, one.state, one.valid, one.epochs, one.seconds)
            chosen = (one.chosen.get(name) for name in names)
            rows.writerow([*about, *chosen, one.same_as, one.error])


def importances(
    chosen: Sequence[Mapping[str, Any]], values: Sequence[float], *, seed: int = 0
) -> dict[str, float]:
    """The shares of the choices in the differences between values, most first.

    A random forest learns the values from the choices; then the values of a choice are shuffled,
    and its guesses get worse by so much. Unlike the evaluators of optuna this also works for
    parameters that only some trials have, such as those of one method: the others get a common
    value, so that it does not give away the method. Empty where trials are too few or all alike.
    """
    columns: dict[str, list[Any]] = {}
    for name in dict.fromkeys(name for one in chosen for name in one):
        own = [one[name] for one in chosen if name in one]
        is_word = any(isinstance(value, str | bool) for value in own)
        if len({*own}) > 1:
            common = mode(own) if is_word else median(own)
            column = [one.get(name, common) for one in chosen]
            columns[name] = [*map(str, column)] if is_word else column
    if len(chosen) < _FEWEST or not columns or np.ptp(values) == 0:
        return {}
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.inspection import permutation_importance
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    words = [at for at, column in enumerate(columns.values()) if isinstance(column[0], str)]
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), words), remainder="passthrough"
    )
    forest = RandomForestRegressor(100, min_samples_leaf=2, random_state=seed)
    table = np.array([*columns.values()], object).T
    worse = permutation_importance(
        make_pipeline(encoder, forest).fit(table, values),
        table,
        values,
        scoring="neg_mean_squared_error",
        n_repeats=20,
        random_state=seed,
    ).importances_mean
    shares = np.maximum(worse, 0.0) / max(np.maximum(worse, 0.0).sum(), np.finfo(float).tiny)
    names = list(columns)
    return {names[at]: float(shares[at]) for at in np.argsort(-shares, kind="stable").tolist()}
