"""What is shown of runs and evaluations, as tables for a terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from splime.errors import counted
from splime.evaluation import COMPARED, METRICS, Evaluation, Metrics
from splime.evaluation.metrics import FEWEST
from splime.reporting.tables import STRATA, described, list_table, make_table
from splime.runs import Run
from splime.runs.evaluating import kept_of_members
from splime.runs.updates import Change
from splime.settings import PROTOCOL_OF

HEADINGS = tuple(metric.heading for metric in COMPARED.values())
_NOT_COMPARED = {name: metric for name, metric in METRICS.items() if not metric.compared}


def run_table(run: Run) -> Table:
    """What was trained on what, and how it went."""
    if run.members:
        return _combination_table(run)
    data, method = run.config["data"], run.config.get("method", {"name": "none"})
    settings, about, history = run.config["settings"], run.about, run.history
    parameters = {name: value for name, value in method.items() if name != "name"}
    names = ("layers", "dimension", "loss", "optimizer", "learning_rate", "batch_size", "past")
    shown = {name: settings[name] for name in names if name in settings}
    if "loss" in about:  # PyKEEN chose it
        shown["loss"] = about["loss"]
    if not run.learned_from_facts:
        rows = {
            "data": f"{data['name'] or 'facts'}, {counted(data['train'], 'fact')} to answer from",
            "model": described(settings["model"], shown),
            "parameters": f"{about['parameters']:,}, weights {about['versions']['weights']}",
        }
        return list_table(f"{run.path}, without training", rows)
    last = history[-1]
    updated = {} if run.updates is None else {"updated": str(run.updates)}
    rows = {
        "data": f"{data['name'] or 'facts'}, {counted(data['train'], 'fact')} in train",
        **updated,
        "cuts": described(method["name"], parameters),
        "scoped predicates": f"{len(run.segmentation.predicates):,}",
        "model": described(settings["model"], shown),
        "parameters": f"{about['parameters']:,}",
        "epochs": f"{last.epoch:,} in {about['seconds']:,} s on {about['device']}",
        "loss": f"{history[0].loss:.4g} → {last.loss:.4g}",
    }
    if run.entry.cuts == "none":
        del rows["cuts"], rows["scoped predicates"]
    if not run.entry.trained:
        del rows["loss"]
    if run.ignores_time:
        cure = "relative auto" if run.entry.cuts == "none" else "--method timestamp or another one"
        rows["time"] = f"ignored: answers are the same at all times; {cure} uses it"
    validated = [(one.valid, one.epoch) for one in history if one.valid is not None]
    if validated:
        best, epoch = max(validated, key=lambda one: one[0])
        rows["valid MRR (fact, exact)"] = f"{best:.3f} after epoch {epoch}, kept"
    return list_table(f"run {run.path}", rows)


def change_table(change: Change, path: str) -> Table:
    """What an update of a run changed."""
    rows = {"facts added": f"{change.added:,}", "facts corrected": f"{change.corrected:,}"}
    others = {"there already": change.same, "left out": change.left_out}
    rows |= {name: f"{count:,}" for name, count in others.items() if count}
    for what, count, names in (
        ("new entities", change.new_entities, change.entities),
        ("new predicates", change.new_predicates, change.predicates),
    ):
        if count:
            rows[what] = f"{count:,}: {', '.join(names)}{', …' * (count > len(names))}"
    if change.new_timestamps:
        rows["new timestamps"] = f"{change.new_timestamps:,}"
    begin, end = change.time
    before = "" if change.time == change.time_before else ", before {} to {}"
    rows["time"] = f"{begin} to {end}{before.format(*change.time_before)}"
    return list_table(f"update of {path}", rows)


def _combination_table(run: Run) -> Table:
    """The weight of each member, and what it has on valid alone."""
    data, about = run.config["data"], run.about
    valid, rows = about["valid"], {"data": data["name"] or "facts"}
    weighed = zip(run.members, run.config["settings"]["weights"], valid["members"], strict=True)
    for number, (member, weight, mrr) in enumerate(weighed, 1):
        model = member.config["settings"]["model"]
        rows[f"member {number}, {model}"] = f"weight {weight:.3f}; valid MRR {mrr:.3f}"
    rows["parameters"] = f"{about['parameters']:,}"
    rows["valid MRR (fact, exact)"] = f"{valid['mrr']:.3f} on {counted(valid['facts'], 'fact')}"
    return list_table(f"run {run.path}", rows)


def evaluation_tables(evaluation: Evaluation, *, strata: bool = False) -> Iterator[RenderableType]:
    """Metrics, with everything that one must know to read them."""
    title = f"protocol {evaluation.protocol}, {evaluation.split}"
    others = (metric.heading for metric in _NOT_COMPARED.values())
    table = make_table(title, "filter", "asked for", *HEADINGS, *others)
    for name in evaluation.filters:
        for side, metrics in evaluation.metrics[name].items():
            table.add_row(name, side, *_cells(metrics), *map(metrics.text, _NOT_COMPARED))
    yield table
    for name, sides in evaluation.intervals.items():
        if (ends := sides["both"]) is None:
            what = "triple" if evaluation.protocol == "triple" else "fact"
            ranked = evaluation.queries // (1 if evaluation.protocol == "predicate" else 2)
            yield Text(few_facts(f"{evaluation.split} has only {counted(ranked, what)}", what))
            break
        low, high = ends["mrr"]
        yield Text(f"MRR {name}: between {low:.3f} and {high:.3f} with 95 % confidence (bootstrap)")
    yield Text(conditions(evaluation))
    name = evaluation.filters[0]
    for kind, groups in evaluation.strata[name].items() if strata else ():
        title = f"by {STRATA.get(kind, kind)} (filter {name})"
        table = make_table(title, "", "queries", *HEADINGS)
        for group, metrics in groups.items():
            table.add_row(Text(group), f"{metrics.queries:,}", *_cells(metrics))
        yield table


def evaluation_parts(
    evaluation: Evaluation, run: Run, source: str = "", *, strata: bool = False
) -> Iterator[RenderableType]:
    """The metrics of a run; which facts answered, if not those of train; its members alone."""
    yield from evaluation_tables(evaluation, strata=strata)
    if run.updates is not None:
        yield f"the run was updated {run.updates}; questions are answered from its facts now"
    if source:
        yield f"answered from the facts of {source}; these metrics are not kept"
    if members := kept_of_members(run, evaluation):
        yield members_table(evaluation, members)


def members_table(evaluation: Evaluation, members: Mapping[str, Evaluation]) -> Table:
    """The metrics of the members of a combination, by the first filter."""
    name = evaluation.filters[0]
    table = make_table(f"members alone (filter {name})", "", *HEADINGS)
    for member, evaluated in members.items():
        table.add_row(Text(member), *_cells(evaluated.metrics[name]["both"]))
    return table


def few_facts(has: str, what: str) -> str:
    """Why there are no intervals and tests."""
    return f"{has}: with fewer than {FEWEST} {what}s no interval and no test would mean anything."


def _cells(metrics: Metrics) -> list[str]:
    return [metrics.text(name) for name in COMPARED]


def conditions(evaluation: Evaluation) -> str:
    """Under which conditions metrics were obtained, in a sentence."""
    left = ", ".join(f"{count:,} {why}" for why, count in evaluation.left_out.items() if count)
    sample, asked = evaluation.sample, f"{evaluation.queries:,} queries"
    if sample is not None:
        asked = f"{sample.queries:,} of {sample.of:,} queries (a sample, seed {sample.seed})"
    parts = [
        f"{asked} among {evaluation.candidates:,} candidates",
        evaluation.past and f"forecast, {PROTOCOL_OF[evaluation.past]}",
        f"ties: {evaluation.ties} rank",
        evaluation.leak_filter and f"leak filter: {evaluation.leak_filter}",
        evaluation.aggregate and f"scores of scopes: {evaluation.aggregate}",
        f"{evaluation.timestamps:,} {'buckets' if evaluation.buckets else 'timestamps'}",
        f"left out: {left or 'nothing'}",
        f"{evaluation.seconds:.1f} s",
    ]
    return "; ".join(filter(None, parts))
