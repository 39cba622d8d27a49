"""Whether there is a fact at all, beside the answers that suppose that there is one."""

from __future__ import annotations

import json

import numpy as np
import pytest

import splime
from tests.runs.small import call


@pytest.fixture(scope="module")
def query() -> splime.Query:
    return splime.Query(splime.load("demo").where(predicate=("bornIn", "livesIn", "diedIn")))


def test_it_is_low_where_like_cases_have_none(query: splime.Query) -> None:
    graph = query.run.graph
    gone = next(f for f in graph.rows() if f.predicate == "diedIn" and int(f.begin or 0) < 1990)
    lives = query.there_is_one(gone.subject, "livesIn", "?", at=2015)
    born = str(gone.begin)
    lived = query.there_is_one(gone.subject, "livesIn", "?", during=(born, born))
    assert lives is not None
    assert lived is not None
    assert lives.stated == 0
    assert lives.probability < 0.1 < lived.probability + bool(lived.stated)
    assert "%" in str(lives)


def test_what_is_stated_is_counted(query: splime.Query) -> None:
    existence, graph = query.existence("object"), query.run.graph
    facts = graph.facts()
    begin, end = graph.timestamps(facts)
    at = np.arange(len(graph.timeline))
    for number in np.random.default_rng(0).integers(0, len(facts), 20):
        who, which = int(facts.subject[number]), int(facts.predicate[number])
        same = (facts.subject == who) & (facts.predicate == which)
        first, last = sorted(np.random.default_rng(int(number)).choice(at, 2))
        holding = [
            int((same & (begin <= one) & (end >= one)).sum()) for one in range(first, last + 1)
        ]
        ticks = (int(graph.timeline.starts[first]), int(graph.timeline.ends[last]))
        assert existence.holding(who, which, *ticks) == max(holding)


def test_not_for_other_questions(query: splime.Query) -> None:
    fact = next(iter(query.run.graph.rows()))
    assert query.there_is_one(fact.subject, "?", fact.object, at=1990) is None
    assert query.there_is_one(fact.subject, "livesIn", "?", at=2090) is None  # a forecast


def test_the_command_says_it_and_names_the_weights() -> None:
    asked = ("ask", "demo", "Sara Finnby", "livesIn", "?", "--at", "1982", "--weights", "1")
    said = json.loads(call(*asked, "--json").out)
    assert 0 <= said["there_is_one"]["probability"] <= 1
    assert said["trust"]["facts"] >= 50
    assert any("weights 1" in remark for remark in said["remarks"])
    other = call(*asked[:-1], "0")
    assert other.code
    assert "'0'" in other.err
