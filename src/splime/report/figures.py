"""What `splime train` and `splime evaluate` show, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from splime.evaluation import Evaluation, Metrics
from splime.report.tables import make_table
from splime.runs import Run

STRATA = {"train": "whether train knows the triple at another time", "time": "kind of time"}
_SHOWN = ("dimension", "loss", "optimizer", "learning_rate", "batch_size")


def run_table(run: Run) -> Table:
    """What was trained on what, and how it went."""
    table = make_table(f"run {run.path}", "", "")
    data, method, cuts = (run.config[title] for title in ("data", "method", "cuts"))
    table.add_row("data", Text(f"{data['name'] or 'facts'}, {data['train']:,} facts in train"))
    parameters = {name: value for name, value in method.items() if name != "name"}
    table.add_row("cuts", Text(described(method["name"], parameters)))
    table.add_row("scoped predicates", f"{cuts['predicates']:,}")
    settings, about, history = run.config["settings"], run.about, run.history
    shown = {name: settings[name] for name in _SHOWN if name in settings}
    if "loss" in about:  # PyKEEN chose it
        shown["loss"] = about["loss"]
    table.add_row("model", Text(described(settings["model"], shown)))
    table.add_row("parameters", f"{about['parameters']:,}")
    last = history[-1]
    table.add_row("epochs", f"{last.epoch:,} in {about['seconds']:,} s on {about['device']}")
    table.add_row("loss", f"{history[0].loss:.4g} → {last.loss:.4g}")
    looked = [(one.valid, one.epoch) for one in history if one.valid is not None]
    if looked:
        best, epoch = max(looked, key=lambda look: look[0])
        table.add_row("valid MRR (fact, exact)", f"{best:.3f} after epoch {epoch}, kept")
    return table


def described(name: str, values: Mapping[str, object], *, most: int | None = None) -> str:
    """A name with some values, at most so many.

    >>> described("split", {"grow": 5.0, "by": "time"}, most=1), described("vanilla", {})
    ('split (grow 5, …)', 'vanilla')
    """
    listed = [
        f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in values.items()
    ]
    if most is not None and len(listed) > most:
        listed = [*listed[:most], "…"]
    return f"{name} ({', '.join(listed)})" if listed else name


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
        heading = STRATA.get(kind, kind)
        table = make_table(
            f"by {heading} (filter {name})", "", "queries", "MRR", "Hits@1", "Hits@3", "Hits@10"
        )
        for group, metrics in groups.items():
            table.add_row(Text(group), f"{metrics.queries:,}", *_figures(metrics)[:-1])
        yield table


def _figures(metrics: Metrics) -> list[str]:
    hits = (metrics.hits1, metrics.hits3, metrics.hits10)
    return [f"{metrics.mrr:.3f}", *(f"{100 * h:.1f}" for h in hits), f"{metrics.mr:,.1f}"]
