"""Rules of a graph, as tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from splime.analysis.rules import Example, Rule, Rules
from splime.graph import Fact
from splime.query.answers import percent
from splime.query.evidence import Step
from splime.reporting.tables import make_table

_MEANING = (
    "X is given, ? is the answer, Z lies between; times are relative to the question. right: how"
    " many of the known facts (or chains) of X like this lead to the answer, over all questions,"
    " each without the fact it asks for. pairs: the different pairs of X and answer among them. at"
    " least: the lower end of Wilson's 95 % interval, with pairs as cases; rules are ordered by"
    " it, those of one fact before chains."
)


def rule_tables(rules: Rules) -> Iterator[RenderableType]:
    """A table of the rules by question, examples, and what one should know to read them."""
    if rules.rules:
        yield _table(rules)
        for rule in rules:
            yield from _example_lines(rule)
        yield Text(_MEANING, style="dim")
    for remark in rules.remarks:
        yield Text(remark, style="dim" if rules.rules else "")


def _table(rules: Rules) -> Table:
    words = ("known fact", "its time")
    table = make_table("", *words, "right", "support", "pairs", "at least", words=words)
    table.title = Text(f"{rules.source}: rules")
    for group in rules.groups():
        table.add_row(Text(f"question: {group[0].question}", style="bold"))
        for rule in group:
            support = f"{rule.support:,} of {rule.begins:,}"
            cells = [percent(rule.confidence), support, f"{rule.pairs:,}", percent(rule.at_least)]
            for pattern in rule.facts:
                text = f"{'' if any(cells) else 'and '}{pattern.fact}"
                last = rule is group[-1] and pattern is rule.facts[-1]
                table.add_row(Text(text), pattern.scope, *cells, end_section=last)
                cells = [""] * len(cells)
    for column in table.columns[2:]:
        column.no_wrap = True
    return table


def _example_lines(rule: Rule) -> Iterator[RenderableType]:
    if rule.examples:
        yield Text(str(rule))
    for example in rule.examples:
        yield Text(f"  {_example_text(example)}", style="dim")


def _example_text(example: Example) -> str:
    return f"{_fact_text(example.asked)} ⇐ {'; '.join(map(_fact_text, example.known))}"


def _fact_text(fact: Fact) -> str:
    return f"{' '.join(fact[:3])}, {Step(fact, '').when}"
