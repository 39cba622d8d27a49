"""What `splime train` and `splime evaluate` show, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from splime.evaluation import Evaluation, Metrics
from splime.report.tables import make_table
from splime.runs import Run

_STRATA = {"train": "whether train knows the triple at another time", "time": "kind of time"}


def run_table(run: Run) -> Table:
    """What was trained on what, and how it went."""
    table = make_table(f"run {run.path}", "", "")
    data, method = run.config["data"], run.config["method"]
    table.add_row("data", Text(f"{data['name'] or 'facts'}, {data['train']:,} facts in train"))
    parameters = ", ".join(f"{k} {v}" for k, v in method.items() if k not in ("name", "predicates"))
    table.add_row("cuts", Text(f"{method['name']} ({parameters})"))
    table.add_row("scoped predicates", f"{method['predicates']:,}")
    shown = ("dimension", "loss", "optimizer", "learning_rate", "batch_size")
    settings = run.settings.values()
    about = ", ".join(f"{name} {settings[name]}" for name in shown)
    table.add_row("model", Text(f"{run.settings.model} ({about})"))
    about_run = run.about
    table.add_row("parameters", f"{about_run['parameters']:,}")
    last = run.history[-1]
    table.add_row("epochs", f"{last.epoch} in {about_run['seconds']:,} s on {about_run['device']}")
    table.add_row("loss", f"{run.history[0].loss:.4g} → {last.loss:.4g}")
    looked = [one for one in run.history if one.valid is not None]
    if looked:
        best = max(looked, key=lambda one: one.valid or 0.0)
        table.add_row("valid MRR (fact, exact)", f"{best.valid:.3f} after epoch {best.epoch}, kept")
    return table


def evaluation_tables(found: Evaluation, *, strata: bool = False) -> Iterator[RenderableType]:
    """Figures, with everything that one must know to read them."""
    title = f"protocol {found.protocol}, {found.split}"
    table = make_table(title, "filter", "asked for", "MRR", "Hits@1", "Hits@3", "Hits@10", "rank")
    for name in found.filters:
        for side, metrics in found.metrics[name].items():
            table.add_row(name, side, *_figures(metrics))
    yield table
    for name, sides in found.intervals.items():
        low, high = sides["both"]["mrr"]
        yield Text(f"MRR {name}: between {low:.3f} and {high:.3f} with 95 % confidence (bootstrap)")
    yield Text(conditions(found))
    if strata:
        yield from _strata_tables(found)


def conditions(found: Evaluation) -> str:
    """Under which conditions figures were obtained, in a sentence."""
    left = ", ".join(f"{count:,} {why}" for why, count in found.left_out.items() if count)
    parts = [
        f"{found.queries:,} queries among {found.candidates:,} candidates",
        f"ties: {found.ties} rank",
        f"{found.timestamps:,} {'buckets' if found.buckets else 'timestamps'}",
        f"left out: {left or 'nothing'}",
        f"{found.seconds:.1f} s",
    ]
    if found.aggregate is not None:
        parts.insert(2, f"scores of scopes: {found.aggregate}")
    if found.leak_filter is not None:
        parts.insert(2, f"leak filter: {found.leak_filter}")
    return "; ".join(parts)


def _strata_tables(found: Evaluation) -> Iterator[RenderableType]:
    """By kind of fact, predicate and period, for the first filter."""
    name = found.filters[0]
    for kind, groups in found.strata[name].items():
        heading = _STRATA.get(kind, kind)
        table = make_table(
            f"by {heading} (filter {name})", "", "queries", "MRR", "Hits@1", "Hits@3", "Hits@10"
        )
        for group, metrics in groups.items():
            table.add_row(Text(group), f"{metrics.queries:,}", *_figures(metrics)[:-1])
        yield table


def _figures(metrics: Metrics) -> list[str]:
    hits = (metrics.hits1, metrics.hits3, metrics.hits10)
    return [f"{metrics.mrr:.3f}", *(f"{100 * h:.1f}" for h in hits), f"{metrics.mr:,.1f}"]
