"""Carry out a plan: inspect, cut, train, evaluate, compare and report, into one folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from splime import leakage
from splime.analysis import Comparison, compare
from splime.datasets import load
from splime.errors import UsageError
from splime.graph import TemporalGraph
from splime.io.files import write_json, written_beside
from splime.plans.plan import Plan, read_plan
from splime.plans.showing import write_page
from splime.progress import Progress, silent
from splime.report.comparison import write_comparison
from splime.report.style import make_figure
from splime.report.tables import inspection_json
from splime.runs import Run, Watch, train
from splime.statistics import describe

PLAN = "plan.toml"
REPORT = "report.html"

Watching = Callable[[str], AbstractContextManager[Watch]]
"""Who watches the training of a run, by its name."""


@dataclass(frozen=True)
class Carried:
    """What a plan gave: its runs by their names, and their comparison."""

    out: Path
    runs: Mapping[str, Run]
    comparison: Comparison

    @property
    def report(self) -> Path:
        """The page with everything on it."""
        return self.out / REPORT


def carry_out(
    plan: Plan,
    out: str | Path,
    *,
    graph: TemporalGraph | None = None,
    device: str = "auto",
    progress: Progress = silent,
    watching: Watching | None = None,
) -> Carried:
    """Carry out a plan; what its folder already holds is not done again.

    Args:
        plan: what to do.
        out: the folder; one that holds another plan is an error.
        graph: the facts, where they are loaded already.
        device: cpu, cuda or auto.
        progress: is told of the progress of each step.
        watching: watches the trainings, and can stop them; the same plan then resumes.
    """
    make_figure(1, 1)  # without matplotlib it fails now, not at the end
    out = Path(out)
    facts = load(plan.data, **plan.reading) if graph is None else graph
    _claim(out, plan)
    write_json(out / "data.json", inspection_json(facts, describe(facts), leakage.report(facts)))
    runs: dict[str, Run] = {}
    for planned in plan.runs:
        cuts = planned.method.fit(facts, progress=_of_run(progress, planned.name))
        place, settings = out / "runs" / planned.name, plan.settings_of(planned)
        with nullcontext() if watching is None else watching(planned.name) as watch:
            runs[planned.name] = train(facts, cuts, place, device=device, watch=watch, **settings)
    compared = compare(list(runs.values()), progress=progress)
    write_comparison(compared, out / "comparison.json", "json")
    write_comparison(compared, out / "comparison.md", "markdown")
    write_page(list(runs.values()), out / REPORT, progress=progress)
    return Carried(out, runs, compared)


def _claim(out: Path, plan: Plan) -> None:
    """Write the plan into its folder, which must be new, empty, or this plan's."""
    path = out / PLAN
    if path.exists():
        if read_plan(path).to_toml() != plan.to_toml():
            raise UsageError(
                f"{path}: this folder belongs to another plan; choose another folder, or"
                " remove this one"
            )
        return
    if out.is_dir() and any(out.iterdir()):
        raise UsageError(f"{out}: holds other things; choose another folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{out}: cannot be made: {error}") from None
    with written_beside(path) as beside:
        beside.write_text(plan.to_toml(), encoding="utf-8")


def _of_run(progress: Progress, name: str) -> Progress:
    """Progress with a bar for each run."""

    def tell(what: str, done: int, total: int | None = None, note: str = "") -> None:
        progress(f"{what}, {name}", done, total, note)

    return tell
