"""One page about runs, with everything on it, that needs nothing but itself."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

import splime
from splime.analysis.comparing import Comparison, compare, run_names
from splime.analysis.embeddings import project, smoothness
from splime.analysis.rules import rules as find_rules
from splime.datasets import Inspection, inspect
from splime.errors import SplimeError, UsageError, counted
from splime.evaluation import Evaluation
from splime.io.files import to_toml
from splime.methods import ChangePointSplit, RandomSplit
from splime.progress import Progress, silent
from splime.query import Evidence, Query
from splime.query.examples import Examples, ask_examples
from splime.reporting import plots, results, tables
from splime.reporting.answers import brief_table, evidence_parts
from splime.reporting.comparison import comparison_table, in_short, plot_comparison
from splime.reporting.html import Html, escaped, join, rendered, tag
from splime.reporting.rules import rule_tables
from splime.reporting.style import drawn
from splime.reporting.trust import trust_tables
from splime.runs import Run, evaluate
from splime.runs.evaluating import kept

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def page_html(runs: Sequence[Run], *, progress: Progress = silent) -> str:
    """The whole page; missing evaluations are made and kept.

    Of a graph without a test it says how far answers from it can be trusted, and its rules.
    """
    inspection = inspect(runs[0].graph)
    if all(run.learned_from_facts or len(run.graph.test) for run in runs):
        sections = _of_runs(runs, inspection, progress)
    elif len(runs) == 1:
        sections = {"Summary": _trust(runs[0]), "Data": _data(inspection), "Rules": _rules(runs[0])}
    else:
        raise UsageError("facts without a test are not compared with others; name them alone")
    made = {}
    for number, (title, parts) in enumerate(sections.items()):
        progress("drawing", number, len(sections))
        if content := join(*parts):
            made[title] = content
    progress("drawing", len(sections), len(sections))
    graph = inspection.graph
    now = datetime.now(UTC).strftime("%Y-%m-%d")
    trained = f"{counted(len(runs), 'run')} on " * runs[0].learned_from_facts
    lead = f"{trained}{counted(len(graph), 'fact')}; made by splime {splime.__version__}, {now}."
    return frame(f"Link prediction at a time: {graph.name or 'facts'}", lead, made)


# The sections


def _of_runs(
    runs: Sequence[Run], inspection: Inspection, progress: Progress
) -> dict[str, Iterator[str]]:
    comparison = compare(runs, progress=progress)
    by_name = dict(zip(run_names(runs), runs, strict=True))
    ranked = {row.name: by_name[row.name] for row in comparison.rows}
    evaluations = {name: kept(run) or evaluate(run) for name, run in ranked.items()}
    return {
        "Summary": _summary(comparison, evaluations, inspection),
        "Data": _data(inspection),
        "Cuts": _cuts(ranked),
        "Training": _training(ranked),
        "By predicate and period": _strata(evaluations),
        "Embeddings": _embeddings(ranked),
        "Questions": _questions(ask_examples(ranked)),
        "How it was made": _made(ranked, next(iter(evaluations.values()))),
    }


def _trust(run: Run) -> Iterator[str]:
    trust = Query(run).trust
    assert trust is not None, "a trained run is evaluated"
    yield rendered(trust_tables(trust))


def _rules(run: Run) -> Iterator[str]:
    yield rendered(rule_tables(find_rules(run.graph)))


def _summary(
    comparison: Comparison, evaluations: Mapping[str, Evaluation], inspection: Inspection
) -> Iterator[str]:
    yield tag("p", in_short(comparison))
    best = comparison.rows[0].name
    evaluation = evaluations[best]
    groups = evaluation.strata[evaluation.filters[0]]["predicate"]
    ranked = sorted(groups, key=lambda name: -groups[name].mrr)
    if len(ranked) > 1:
        first, last = ((name, groups[name].mrr) for name in (ranked[0], ranked[-1]))
        text = "{}: MRR {:.3f} for {}, {:.3f} for {}."
        yield tag(
            "p", text.format("The easiest and the hardest predicate", *first[::-1], *last[::-1])
        )
    if known := inspection.leaks.in_train.get("test"):
        yield tag(
            "p",
            f"Without their times, {known} of the triples of test are also in train: a model"
            " that only memorises gets them right.",
        )
    yield rendered(comparison_table(comparison))
    if len(comparison.rows) > 1:
        yield _picture("MRR of every run, with intervals", plot_comparison, comparison)


def _data(inspection: Inspection) -> Iterator[str]:
    alt = "Facts that hold at each time, by predicate"
    yield _picture(alt, plots.plot_facts_over_time, inspection.graph)
    yield _folded("what was read", tables.data_tables(inspection))
    if len(inspection.graph.test):
        yield _folded("what leaks into the test", tables.leak_table(inspection.leaks))


def _cuts(runs: Mapping[str, Run]) -> Iterator[str]:
    cut = {name: run for name, run in runs.items() if run.is_cut}
    if not cut:
        return
    first = next(iter(cut.values()))
    segmentations = {name: run.segmentation for name, run in cut.items()}
    alt = "Scopes of the most frequent predicates, below the facts that hold"
    yield _picture(alt, plots.plot_cuts, segmentations, first.graph)
    if others := [name for name in runs if name not in cut]:
        yield _note(f"Not cut: {', '.join(others)}.")
    for name, run in cut.items():
        parts = [rendered(tables.segmentation_table(run.segmentation))]
        if isinstance(run.method, ChangePointSplit):
            alt = f"{name}: what the scopes cost, for each number of change points"
            parts.append(_picture(alt, plots.plot_change_costs, run.segmentation, run.graph))
        yield _folded(name, *parts)


def _training(runs: Mapping[str, Run]) -> Iterator[str]:
    if histories := {name: run.history for name, run in runs.items() if run.history}:
        yield _picture("Loss and MRR on valid", plots.plot_learning, histories)
    yield _folded("settings and times", *map(results.run_table, runs.values()))


def _strata(evaluations: Mapping[str, Evaluation]) -> Iterator[str]:
    alt = "MRR of each predicate and period (filter exact)"
    yield _picture(alt, plots.plot_strata, evaluations)
    every = (
        join(tag("h3", name), rendered(results.evaluation_tables(each, strata=True)))
        for name, each in evaluations.items()
    )
    yield _folded("all metrics", *every)


def _embeddings(runs: Mapping[str, Run]) -> Iterator[str]:
    cut = [name for name, run in runs.items() if run.is_cut and run.entry.entity_vectors]
    if not cut:
        return
    random = [name for name in cut if isinstance(runs[name].method, RandomSplit)]
    others = [name for name in cut if name not in random]
    # The best run that cut predicates at random, and the best one that cut otherwise.
    shown = [name for name in cut if name in (*others[:1], *random[:1])]
    alt = "One predicate, from old (red) to recent (blue)"
    yield _picture(alt, lambda: plots.plot_predicate([project(runs[name]) for name in shown]))
    alt = f"{shown[0]}: t-SNE of the most frequent predicates"
    every = _picture(alt, lambda: plots.plot_predicates(project(runs[shown[0]])))
    table = tables.make_table("smooth over time", "run", "neighbours in time / others")
    for name in cut:
        value = smoothness(runs[name]).overall
        table.add_row(Text(name), "–" if value is None else f"{value:.3f}")
    meaning = _note(
        "The mean distance between the vectors of scopes that follow each other in time, divided by"
        " that between other scopes of the same predicate: 1 where time does not matter, less where"
        " neighbours are closer."
    )
    yield _folded("all predicates, and how smooth they are over time", every, table, meaning)


def _questions(examples: Examples) -> Iterator[str]:
    yield _note(
        "Random facts of test, each with one part left out. The right answer is bold, and listed"
        " with its rank even if it is not among the first five. Answers that train states have no"
        " probability. Runs without cuts are not asked when a fact holds. A path model shows"
        " which facts of train lead to its best answer and to the right one."
    )
    for number, (truth, answers, evidence) in enumerate(examples.questions):
        parts = [
            tag("div", rendered(brief_table(each, name, truth)), *map(_note, each.remarks))
            for name, each in answers.items()
        ]
        found = tag("div", *parts, class_="answers")
        why = [
            _evidence(each, name, each.answer == truth)
            for name, every in evidence.items()
            for each in every
        ]
        asked = next(iter(answers.values())).question.text
        if number:
            yield _folded(asked, found, *why)
        else:
            yield join(tag("h3", asked), found, *why)
    for note in examples.notes:
        yield _note(note)


def _evidence(evidence: Evidence, name: str, right: bool) -> Html:
    place = "the right answer" if right else "which came first"
    title = f"{name}: why {evidence.answer}, {place}"
    return tag("div", rendered(evidence_parts(evidence, title)), class_="evidence")


def _made(runs: Mapping[str, Run], evaluation: Evaluation) -> Iterator[str]:
    yield _note(f"Protocol fact on test: {results.conditions(evaluation)}.")
    for name, run in runs.items():
        about = run.about
        versions = ", ".join(f"{key} {value}" for key, value in about["versions"].items())
        command = f"$ {about.get('command', '?')}\n\n{to_toml(run.config)}"
        yield _folded(name, _note(f"{about['device']}; {versions}"), tag("pre", command))


def _note(text: str) -> Html:
    return tag("p", text, class_="note")


def _folded(title: str, *content: RenderableType | Iterable[RenderableType]) -> Html:
    """Content that a click shows."""
    parts = (each if isinstance(each, Html) else rendered(each) for each in content)
    return tag("details", tag("summary", title), *parts)


def _picture(alt: str, draw: Callable[..., Figure], *shown: Any) -> Html:
    """A picture, or why there is none."""
    try:
        return picture_html(draw(*shown), alt)
    except SplimeError as error:
        return _note(f"No picture of this ({alt}): {error}")


# The frame


def picture_html(figure: Figure, alt: str) -> Html:
    """A picture inside of the page: lines where they are small, else pixels."""
    for kind, format in (("svg+xml", "svg"), ("png", "png")):
        content = drawn(figure, format, 130)
        source = f"data:image/{kind};base64,{b64encode(content).decode()}"
        if len(content) <= 400_000:  # a drawing of more points is smaller as pixels
            break
    width = round(100 * figure.get_figwidth())
    image = Html(f'<img src="{source}" alt="{escaped(alt)}" width="{width}">')
    return tag("figure", tag("div", image, class_="wide"), tag("figcaption", alt))


def frame(title: str, lead: str, sections: Mapping[str, str]) -> str:
    """A whole page: its sections by their titles, with a table of contents."""
    folder = files("splime.reporting")
    template, style, script = (
        (folder / f"page.{suffix}").read_text("utf-8") for suffix in ("html", "css", "js")
    )
    return Template(template).substitute(
        title=join(title),
        lead=join(lead),
        links=join(*(tag("a", name, href=f"#{_anchor(name)}") for name in sections)),
        sections=join(
            *(
                tag("section", tag("h2", name), content, id=_anchor(name))
                for name, content in sections.items()
            )
        ),
        style=style,
        script=script,
    )


def _anchor(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())
