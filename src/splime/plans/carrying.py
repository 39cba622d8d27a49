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
from splime.report.comparison import comparison_markdown
from splime.report.style import make_figure
from splime.report.tables import inspection_json
from splime.runs import Run, Watch, train
from splime.statistics import describe

PLAN, DATA, RUNS = "plan.toml", "data.json", "runs"
FIGURES, REPORT = "comparison", "report.html"


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
    progress: Progress | None = None,
    watching: Watching | None = None,
) -> Carried:
    """Carry out a plan; what a folder holds of it already is not done again.

    Args:
        plan: what to do.
        out: the folder; one that holds another plan is an error.
        graph: the facts, where they are loaded already.
        device: cpu, cuda or auto.
        progress: is told how much of each part is done.
        watching: watches the trainings, and can stop them; the same plan goes on from there.
    """
    make_figure(1, 1)  # what the report needs at the end is missed at the beginning
    out = Path(out)
    facts = load(plan.data, **plan.reading) if graph is None else graph
    _claim(out, plan)
    write_json(out / DATA, inspection_json(facts, describe(facts), leakage.report(facts)))
    runs: dict[str, Run] = {}
    for planned in plan.runs:
        cuts = planned.method.fit(facts, advance=_part(progress, f"cutting, {planned.name}"))
        place, settings = out / RUNS / planned.name, plan.settings_of(planned)
        with nullcontext() if watching is None else watching(planned.name) as watch:
            runs[planned.name] = train(facts, cuts, place, device=device, watch=watch, **settings)
    found = compare(list(runs.values()), progress=progress or silent)
    write_json(out / f"{FIGURES}.json", found.to_json())
    with written_beside(out / f"{FIGURES}.md") as beside:
        beside.write_text(comparison_markdown(found), encoding="utf-8")
    write_page(list(runs.values()), out / REPORT, progress=progress or silent)
    return Carried(out, runs, found)


def _claim(out: Path, plan: Plan) -> None:
    """Write the plan into its folder, which must be new, empty, or this plan's."""
    path = out / PLAN
    if path.exists():
        if read_plan(path).to_toml() != plan.to_toml():
            raise UsageError(
                f"{path}: another plan is carried out in this folder; choose another folder, or"
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


def _part(progress: Progress | None, what: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(what, done, total)
