"""Rules against loops over facts, laws that were planted, and the command line."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import splime
from splime import Fact, TemporalGraph
from splime.analysis.rules import Example, Rule, interval
from splime.errors import UsageError
from splime.paths.counted import BINS
from splime.paths.relative import RelativeScopes, Times, growing_scopes
from splime.reporting.plots import plot_rules
from splime.runs.graph_run import open_source
from tests.graphs import graphs
from tests.runs.small import call, small_graph

Key = tuple[str, ...]


def literally(
    graph: TemporalGraph, predicate: str, asked: str, relative: RelativeScopes
) -> tuple[dict[Key, list[int]], dict[Key, list[int]]]:
    """Begins, ends and pairs of known facts and of two in a row, by their words."""
    whenever, names = Times.of(graph.train), graph.predicates
    scopes = relative.scopes(whenever, whenever).tolist()
    rows = list(zip(*(column.tolist() for column in graph.train.columns()), strict=True))
    found: tuple[Any, Any] = (defaultdict(list), defaultdict(list))
    for hidden, question in enumerate(rows):
        if names[question[1]] != predicate:
            continue
        given_, answer = (question[0], question[2]) if asked == "object" else question[2::-2]
        seen = [
            (
                u,
                v,
                f"{{{side}}} {names[p]} {{{1 - side}}} ({relative.name(scopes[i][hidden])})",
                row,
            )
            for i, row in enumerate(rows)
            for side in (0, 1)
            for s, p, o, *_ in [row]
            for u, v in [(s, o) if side == 0 else (o, s)]
            if row != question
        ]
        for u, z, text, first in seen:
            if u != given_:
                continue
            found[0][text.format("X", "?"),].append((z == answer, given_, answer))
            for v, w, then, second in seen:
                if v == z and second != first:
                    key = text.format("X", "Z"), then.format("Z", "?")
                    found[1][key].append((w == answer, given_, answer))
    one, two = (
        {
            key: [len(ways), sum(right for right, *_ in ways), len({w for w in ways if w[0]})]
            for key, ways in part.items()
        }
        for part in found
    )
    return one, two


def words(rule: Rule) -> Key:
    return tuple(map(str, rule.facts))


def numbers(rule: Rule) -> list[int]:
    return [rule.begins, rule.support, rule.pairs]


def alone(text: str) -> str:
    """The words of a fact of a chain, as those of a rule of one fact."""
    fact, scope = text.split(" (", 1)
    fact = fact.replace("Z", "?") if "X" in fact else fact.replace("Z", "X")
    return f"{fact} ({scope}"


def relative_of(graph: TemporalGraph) -> RelativeScopes:
    return growing_scopes(graph.train, graph.timeline.granularity, BINS)


@given(graph=graphs(), support=st.sampled_from([1, 2]))
@settings(max_examples=8)
def test_rules_are_those_of_loops(graph: TemporalGraph, support: int) -> None:
    relative = relative_of(graph)
    every = splime.rules(graph, support=support, limit=10_000)
    known = {graph.predicates[p] for p in graph.train.predicate.tolist()}
    for predicate in known:
        named = splime.rules(graph, predicate, support=support, limit=10_000)
        for asked in ("object", "subject"):
            one, two = literally(graph, predicate, asked, relative)
            wanted = {key: value for key, value in one.items() if value[1] >= support}
            for some in (every, named):
                mine = [r for r in some if (r.predicate, r.asked) == (predicate, asked)]
                short = [rule for rule in mine if len(rule.facts) == 1]
                assert {words(rule): numbers(rule) for rule in short} == wanted
                low = [rule.at_least for rule in short]
                assert low == sorted(low, reverse=True)
            for rule in mine:
                assert rule.confidence == rule.support / rule.begins
                assert 0 <= rule.at_least <= rule.confidence
                if len(rule.facts) == 2:
                    assert numbers(rule) == two[words(rule)]
                    assert min(rule.support, rule.pairs) >= support
                    for text in words(rule):
                        begins, ends, _ = one.get((alone(text),), [1, 0, 0])
                        assert rule.confidence > ends / begins
    assert {rule.predicate for rule in every} <= known


def is_example(rule: Rule, example: Example, graph: TemporalGraph) -> bool:
    """Whether the facts are in train, and as the rule says."""
    relative, rows = relative_of(graph), list(graph.rows("train"))
    at = {fact: number for number, fact in enumerate(rows)}
    asked, known = example
    scopes = relative.scopes(Times.of(graph.train), Times.of(graph.train))
    given_, answer = (asked[0], asked[2]) if rule.asked == "object" else (asked[2], asked[0])
    place = {"X": given_, "?": answer}
    for fact, pattern in zip(known, rule.facts, strict=True):
        for name, variable in ((fact.subject, pattern.subject), (fact.object, pattern.object)):
            if place.setdefault(variable, name) != name:
                return False
        if relative.name(int(scopes[at[fact], at[asked]])) != pattern.scope:
            return False
    return asked.predicate == rule.predicate and asked not in known


@given(graph=graphs(unknown=False))
@settings(max_examples=10)
def test_examples_are_facts_that_fit(graph: TemporalGraph) -> None:
    predicate = graph.predicates[int(graph.train.predicate[0])]
    for rule in splime.rules(graph, predicate, support=1, limit=20, examples=3):
        assert 1 <= len(rule.examples) <= min(3, rule.support)
        assert len({example.asked for example in rule.examples}) == len(rule.examples)
        assert all(is_example(rule, example, graph) for example in rule.examples)


def planted(chain: bool = False) -> TemporalGraph:
    """x worksFor y one year after x trains at y, or after a friend of x does; and some noise."""
    draw, rows = random.Random(0), []
    for number in range(60):
        x, y, year = f"x{number}", f"y{draw.randrange(12)}", 1950 + draw.randrange(50)
        rows.append((x, "worksFor", y, year + 1, year + 1))
        if chain:
            rows.append((x, "knows", f"friend {number}", year + 1, year + 1))
            x = f"friend {number}"
        rows.append((x, "trains", y, year, year))
        rows.append((f"x{number}", "visits", f"y{draw.randrange(12)}", year, year))
        rows.append((f"x{number}", "knows", f"x{draw.randrange(60)}", year, year))
    return splime.read(rows, split="none", granularity="year")


def test_a_planted_law_comes_first() -> None:
    rules = splime.rules(planted(), "worksFor", examples=1)
    assert str(rules[0]) == "X trains ? (ended 1 year before) ⇒ X worksFor ?: 100 % of 60"
    assert str(rules[0]) in repr(rules)
    assert (rules[0].support, rules[0].pairs, rules[0].asked) == (60, 60, "object")
    of_subject = next(rule for rule in rules if rule.asked == "subject")
    assert str(of_subject.facts[0]) == "? trains X (ended 1 year before)"
    ((asked, (known,)),) = rules[0].examples
    assert isinstance(known, Fact)
    assert (known.subject, known.object) == (asked.subject, asked.object)
    assert int(str(known.begin)) + 1 == int(str(asked.begin))
    every = splime.rules(planted())
    first = next(rule for rule in every if rule.predicate == "worksFor")
    assert (first.facts, first.support) == (rules[0].facts, 60)


def test_a_planted_chain_is_found() -> None:
    rules = splime.rules(planted(chain=True), "worksFor")
    chains = [rule for rule in rules if len(rule.facts) == 2 and rule.asked == "object"]
    assert str(chains[0]) == (
        "X knows Z (same begin and end), Z trains ? (ended 1 year before) ⇒ X worksFor ?:"
        " 100 % of 60"
    )
    assert not [rule for rule in splime.rules(planted(chain=True)) if len(rule.facts) == 2]


def test_repeated_facts_of_one_pair_count_once_for_the_order() -> None:
    same = [("a", "p", "b", year, year) for year in range(1900, 1940)]
    same += [("a", "q", "b", year, year) for year in range(1900, 1940)]
    others = [(f"a{n}", "p", f"b{n}", 1950, 1950) for n in range(40)]
    others += [(f"a{n}", "r", f"b{n if n < 36 else 0}", 1950, 1950) for n in range(40)]
    graph = splime.read(same + others, split="none", granularity="year")
    rules = splime.rules(graph, "p", limit=1000)
    at_once = [
        rule
        for rule in rules
        if [one.scope for one in rule.facts] == ["same begin and end"] and rule.asked == "object"
    ]
    assert [rule.facts[0].fact for rule in at_once[:2]] == ["X r ?", "X q ?"]
    assert [(rule.confidence, rule.pairs) for rule in at_once[:2]] == [(0.9, 36), (1.0, 1)]


def test_the_interval_is_that_of_wilson() -> None:
    begins, ends, pairs = np.array([[20, 40, 10], [10, 20, 0], [10, 10, 0]])
    low, high = interval(begins, ends, pairs)
    assert low == pytest.approx([0.299, 0.299, 0], abs=1e-3)
    assert high == pytest.approx([0.701, 0.701, 0.278], abs=1e-3)


def test_scopes_are_those_of_the_run_that_counts() -> None:
    run = open_source(small_graph(), device="cpu")
    assert splime.rules(run).edges == relative_of(run.graph).edges
    run.settings = replace(run.settings, relative="intervals:1,3")
    assert splime.rules(run, "p0").edges == (1, 3)
    run.settings = replace(run.settings, past="train")
    told = splime.rules(run, "p0", support=1)
    scopes = {rule.facts[0].scope for rule in told}
    assert len(scopes) > 1
    assert not any("after" in scope or "same begin" in scope for scope in scopes)
    assert "only facts that begin before" in repr(told)


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "p", "b", 1990, 1991)],
        [("a", "p", "a", 1990, 1990)] * 2,
        [(f"a{n}", "p", f"b{n}", 1990 + n, 1990 + n) for n in range(9)],
        [("a", "p", "b", 1990, 1990), ("b", "q", "c", None, None)],
        [("a", "p", f"b{n}", 1990, None) for n in range(9)],
    ],
    ids=["one fact", "a loop twice", "nothing repeated", "a fact without time", "open"],
)
def test_the_smallest_graphs_have_an_answer(rows: list[Any]) -> None:
    graph = splime.read(rows, split="none", granularity="year")
    for predicate in (None, "p"):
        rules = splime.rules(graph, predicate, support=1, examples=1)
        assert rules.rules or "no rules: no kind of known fact ends at the answer" in repr(rules)
        assert rules.to_table().num_rows == len(rules)
        assert json.dumps(rules.to_json())
    if not rules.curves:
        with pytest.raises(UsageError, match="there is nothing to draw"):
            plot_rules(rules)


def test_a_graph_whose_facts_have_no_times() -> None:
    graph = splime.read([(f"a{n % 3}", "pq"[n % 2], "b", 1990) for n in range(12)], split="none")
    unknown = np.full(len(graph.train), 3, np.uint8)
    graph = replace(graph, train=replace(graph.train, unknown=unknown))
    rules = splime.rules(graph, support=1)
    assert {pattern.scope for rule in rules for pattern in rule.facts} == {"contains it"}
    assert 'no time at all, which counts as "contains it"' in repr(rules)


@pytest.mark.parametrize("given_", [{"support": 0}, {"limit": 0}, {"examples": -1}, {"limit": "x"}])
def test_numbers_that_make_no_sense(given_: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(given_))):
        splime.rules(small_graph(), **given_)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("facts") / "laws.tsv"
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in planted().rows()))
    return path


def test_the_command(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "rules.png"
    done = call("rules", file, "worksFor", "--examples", 1, "--plot", out, COLUMNS="80")
    assert done.code == 0, done.err
    assert out.read_bytes().startswith(b"\x89PNG")
    lines = done.out.splitlines()
    assert max(len(line) for line in lines if str(out) not in line) <= 80
    assert "not shown" not in done.out
    for text in ("question: X", "60 of 60", "100.0 %", "ended 1 year before"):
        assert text in done.out
    assert "X trains ? (ended 1 year before) ⇒ X worksFor ?: 100 % of 60" in done.out
    assert done.out.count("⇐") >= 2
    found = json.loads(call("rules", file, "worksFor", "--json", "--limit", 1).out)
    first = found["rules"][0]
    assert (first["support"], first["begins"], first["confidence"]) == (60, 60, 1.0)
    assert found["curves"][0]["fact"] == "X trains ?"
    assert len(found["curves"][0]["begins"]) == 2 * len(found["edges"]) + 1
    every = call("rules", file, "--limit", 1, COLUMNS="80")
    assert every.out.count("question: ") >= 2


@pytest.mark.parametrize("width", [40, 60, 80])
def test_words_are_not_broken(width: int, tmp_path: Path) -> None:
    rows = [(f"a{n % 3}", "hasLongPredicate", "b", 1990 + n, 1995 + n) for n in range(9)]
    path = tmp_path / "facts.csv"
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    shown = call("rules", path, "--support", 1, COLUMNS=str(width)).out
    assert "hasLongPredicate" in shown
    assert ("not shown, too narrow" in shown) == (width < 80)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plot", "x.png"], "--plot draws the rules of one predicate"),
        (["worksfor"], "worksFor"),
        (["worksFor", "--support", "0"], "support is a number from 1 on, not 0"),
        (["worksFor", "--plot", "x.txt"], "pictures are .png, .svg, .pdf files"),
    ],
)
def test_mistakes_are_explained(file: Path, arguments: list[str], message: str) -> None:
    done = call("rules", file, *arguments)
    assert done.code == 2
    assert message in done.err
    assert not Path("x.png").exists()


def test_names_may_be_hostile(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    name = "[bold]p[/] $x$ \x1b[2J"
    path.write_text("".join(f"a{n % 3}\t{name}\tb\t{1990 + n}\n" for n in range(12)))
    out = tmp_path / "rules.svg"
    done = call("rules", path, name, "--examples", 1, "--plot", out)
    assert done.code == 0, done.err
    assert "\x1b[2J" not in done.out
    assert "[bold]p[/]" in done.out
    assert out.stat().st_size > 1000


@pytest.mark.system
def test_runs(tmp_path: Path) -> None:
    """The graph of a run is counted, if its model answers from facts."""
    from tests.runs.small import small_run

    graph = small_graph()
    path: dict[str, Any] = {"model": "path", "dimension": 16, "layers": 1, "epochs": 1}
    small_run(graph, tmp_path / "path", None, **path)
    assert (
        splime.rules(tmp_path / "path", "p0").to_json()["rules"]
        == (splime.rules(graph, "p0").to_json()["rules"])
    )
    small_run(graph, tmp_path / "vectors")
    with pytest.raises(UsageError, match="rules are counted from facts"):
        splime.rules(tmp_path / "vectors")
