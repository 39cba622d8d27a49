"""Results of a search: its trials, the best of them as a plan, and which choices mattered."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import RenderableType
from rich.text import Text

from splime.errors import SplimeError, counted, visible
from splime.io.files import atomic_write
from splime.plans import Plan, PlannedRun
from splime.reporting import style
from splime.reporting.html import rendered
from splime.reporting.tables import described, make_table
from splime.tuning.space import Configuration, Space

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from optuna.trial import FrozenTrial

_STATES = {"COMPLETE": "finished", "PRUNED": "pruned", "FAIL": "failed"}


@dataclass(frozen=True)
class TrialResult:
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
    def of(cls, trial: FrozenTrial, space: Space) -> TrialResult:
        """From a trial of optuna; one that this search did not write is a ValueError."""
        about, validated = trial.user_attrs, trial.intermediate_values
        configuration = msgspec.convert(about.get("configuration"), Configuration | None)
        kept = {name: about.get(name) for name in ("seconds", "same_as", "error")}
        result = {
            **kept,
            "number": trial.number,
            "state": _STATES.get(trial.state.name, "begun"),
            "valid": max(validated.values(), default=None) if trial.value is None else trial.value,
            "configuration": configuration,
            "chosen": {} if configuration is None else space.chosen(configuration),
            "epochs": about.get("epochs", max(validated, default=None)),
        }
        return msgspec.convert(result, cls)  # checks the types

    def described(self) -> tuple[str, str]:
        """The method and the model, each with what was chosen for it."""
        if (made := self.configuration) is None:
            return "", ""
        names = {name.rpartition(".")[2] for name in self.chosen}
        settings = {name: value for name, value in made.settings.items() if name in names}
        return described(made.method, made.parameters), described(made.model, settings)


@dataclass(frozen=True)
class TuningResult:
    """A finished search."""

    out: Path
    trials: Sequence[TrialResult]
    importances: Mapping[str, float]
    """How much each choice decides whether a trial is among the best, most first; they sum to 1."""
    plan: Plan
    """The best configuration, which `splime run` and `splime.execute` take."""

    @property
    def best(self) -> TrialResult:
        """The trial with the highest MRR on valid."""
        return self.ranking()[0]

    def ranking(self) -> list[TrialResult]:
        """The finished trials, best first, each configuration once."""
        return ranking(self.trials)

    def to_json(self) -> dict[str, Any]:
        """The trials, and what mattered, as plain values."""
        trials = msgspec.to_builtins([*self.trials])
        importances = {**self.importances}
        return {"out": str(self.out), "trials": trials, "importances": importances}

    def __repr__(self) -> str:
        method, model = self.best.described()
        return visible(
            f"TuningResult({self.out}: {counted(len(self.trials), 'trial')}; the best: {method},"
            f" {model}, valid MRR {self.best.valid:.3f})"
        )

    def _repr_html_(self) -> str:
        return rendered(tuning_tables(self))


def tuning_tables(tuned: TuningResult) -> Iterator[RenderableType]:
    """The best trials, and what mattered."""
    counts = Counter(trial.state for trial in tuned.trials)
    listed = ", ".join(f"{count:,} {state}" for state, count in counts.items())
    title = f"the best of {counted(len(tuned.trials), 'trial')} ({listed})"
    columns = ("trial", "valid MRR", "method", "model", "seconds")
    table = make_table(title, *columns, words=("method", "model"))
    for trial in tuned.ranking()[:5]:
        method, model = trial.described()
        mrr, seconds = f"{trial.valid:.3f}", f"{trial.seconds:,.1f}"
        table.add_row(f"{trial.number:,}", mrr, Text(method), Text(model), seconds)
    yield table
    if tuned.importances:
        shares = (f"{n} {100 * s:.0f} %" for n, s in tuned.importances.items() if s >= 0.005)
        yield f"what mattered: {', '.join(shares)}"


def ranking(trials: Sequence[TrialResult]) -> list[TrialResult]:
    """The finished ones, best first, without those that repeat another."""
    done = [trial for trial in trials if trial.state == "finished" and trial.same_as is None]
    return sorted(done, key=lambda trial: (-(trial.valid or 0.0), trial.number))


def best_plan(
    trials: Sequence[TrialResult], space: Space, data: str, reading: Mapping[str, Any]
) -> Plan:
    """The plan of the best trial; an error that says why, if none was finished."""
    done = ranking(trials)
    if not done:
        why = next((trial.error for trial in trials if trial.error), "all were stopped")
        raise SplimeError(f"none of {counted(len(trials), 'trial')} was finished; the first: {why}")
    best = done[0].configuration
    assert best is not None, "a finished trial has one"
    name = best.model if space.entry(best.model).cuts == "none" else best.method
    run = PlannedRun(name, best.make_method(), {"model": best.model, **space.searched(best)})
    plain = {key: str(v) if isinstance(v, Path) else v for key, v in reading.items()}
    return Plan(data, (run,), plain, dict(space.fixed))


def write_trials(path: Path, trials: Sequence[TrialResult]) -> None:
    """A row for each trial, with a column for each thing that was chosen."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.chosen))
    header = ["trial", "state", "valid_mrr", "epochs", "seconds", *names, "same_as", "error"]
    with atomic_write(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(header)
        for trial in trials:
            about = (trial.number, trial.state, trial.valid, trial.epochs, trial.seconds)
            chosen = (trial.chosen.get(name) for name in names)
            rows.writerow([*about, *chosen, trial.same_as, trial.error])


def plot_importances(importances: Mapping[str, float], name: str, trials: int) -> Figure:
    """The shares of the choices that mattered most, as bars."""
    names = [choice for choice, share in importances.items() if share >= 0.005][:8]
    shares = [100 * importances[choice] for choice in names]
    figure = style.make_figure(6, 4)
    axes = figure.subplots()
    bars = axes.barh(range(len(names)), shares, 0.6, color="#0072b2")
    axes.bar_label(bars, fmt="%.0f %%", padding=4, fontsize=style.SMALL, color=style.INK)
    axes.set_xlim(0, 1.25 * max(shares, default=1.0))
    axes.set_xticks([])
    style.open_axes(axes, f"{style.short(name)}: what mattered in {counted(trials, 'trial')}")
    axes.spines[["left", "bottom"]].set_visible(False)
    # There is room for six, so that few bars are no thicker.
    style.label_rows(axes, [style.short(choice, 24) for choice in names], room=6)
    style.remark(
        figure,
        "share in what separates the best tenth of the trials from the others"
        if importances
        else "too few trials, or too similar, for shares",
    )
    return figure
