"""Every method against the literal loops of the paper."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

import splime
from splime.counts import Counts
from splime.errors import UsageError
from splime.graph import TemporalGraph
from splime.methods import (
    METHODS,
    ChangePointSplit,
    Merge,
    Method,
    RandomSplit,
    Split,
    Timestamp,
    Vanilla,
    make_method,
    restore_method,
    standard_methods,
)
from splime.segmentation import Scopes, Segmentation, covering_cuts
from splime.static import StaticGraph, apply
from tests.graphs import graphs
from tests.methods import oracle
from tests.methods.oracle import Part


def facts_of(graph: TemporalGraph, column: str = "predicate") -> dict[int, list[Part]]:
    """The train facts of every predicate, or of every entity."""
    begin, end = (times.tolist() for times in graph.timestamps(graph.train))
    held: dict[int, list[Part]] = {}
    for number, (b, e) in enumerate(zip(begin, end, strict=True)):
        if column == "predicate":
            names = {int(graph.train.predicate[number])}
        else:
            names = {int(graph.train.subject[number]), int(graph.train.object[number])}
        for name in names:
            held.setdefault(name, []).append((b, e, number))
    return held


def membership(scopes: Scopes, static: StaticGraph, column: str) -> list[tuple[int, int, int]]:
    """Which train fact is in which scope of which name."""
    places = set()
    for ids in (column,) if column == "predicate" else ("subject", "object"):
        scoped = getattr(static.train, ids)
        names = scopes.sources[scoped]
        places |= set(
            zip(
                static.train.fact.tolist(),
                names.tolist(),
                (scoped - scopes.starts[names]).tolist(),
                strict=True,
            )
        )
    return sorted(places)


def check(graph: TemporalGraph, method: Method, wanted: oracle.ByScope | None) -> None:
    """The fast method puts every fact of train where the literal loops put it."""
    if wanted is None:
        with pytest.raises(UsageError, match="cannot reach"):
            method.fit(graph)
        return
    static = method.fit_transform(graph)
    assert membership(static.predicates, static, "predicate") == oracle.membership(wanted)
    for name, scopes in wanted.items():
        start = static.predicates.starts[name]
        for scope, parts in enumerate(scopes, start=start):
            assert static.predicates.facts[scope] == len({number for _, _, number in parts})
            assert static.predicates.first[scope] == min(b for b, _, _ in parts)
            assert static.predicates.last[scope] == max(e for _, e, _ in parts)


@given(graphs())
def test_timestamp(graph: TemporalGraph) -> None:
    check(graph, Timestamp(), oracle.timestamp(facts_of(graph)))


@given(graphs())
def test_vanilla(graph: TemporalGraph) -> None:
    facts = facts_of(graph)
    check(graph, Vanilla(), {name: [parts] for name, parts in facts.items()})


@given(graphs(), st.sampled_from(["time", "count"]), st.floats(1, 6))
def test_split(graph: TemporalGraph, by: str, grow: float) -> None:
    assume(grow != Split.standard["grow"])  # which only warns where it cannot be reached
    facts = facts_of(graph)
    where = oracle.middle if by == "time" else oracle.balance
    goal = math.ceil(round(grow * len(facts), 9))
    wanted = oracle.split(facts, where, lambda predicates, _: predicates >= goal)
    check(graph, Split(by=by, grow=grow), wanted)  # type: ignore[arg-type]
    check(graph, Split(by=by, predicates=goal), wanted)  # type: ignore[arg-type]


@given(graphs(), st.sampled_from(["time", "count"]), st.integers(0, 60))
def test_split_by_triples(graph: TemporalGraph, by: str, triples: int) -> None:
    where = oracle.middle if by == "time" else oracle.balance
    wanted = oracle.split(facts_of(graph), where, lambda _, count: count >= triples)
    check(graph, Split(by=by, triples=triples), wanted)  # type: ignore[arg-type]


@given(graphs(), st.integers(3, 30), st.integers(0, 5))
def test_random(graph: TemporalGraph, predicates: int, seed: int) -> None:
    facts = facts_of(graph)
    assume(predicates >= len(facts))
    check(
        graph, RandomSplit(predicates=predicates, seed=seed), oracle.random(facts, predicates, seed)
    )


@given(graphs(), st.floats(1, 10))
def test_merge(graph: TemporalGraph, shrink: float) -> None:
    facts = facts_of(graph)
    timestamped = sum(map(len, oracle.timestamp(facts).values()))
    goal = len(facts) + int((timestamped - len(facts)) / shrink)
    wanted = oracle.merge(facts, goal)
    check(graph, Merge(shrink=shrink), wanted)
    check(graph, Merge(predicates=goal), wanted)


methods = st.sampled_from(
    [
        lambda target: Vanilla(target=target),
        lambda target: Timestamp(target=target),
        lambda target: Merge(shrink=2, target=target),
        lambda target: Merge(shrink=5, target=target, fit_on="all"),
        lambda target: Split(by="time", grow=1.4, target=target),
        lambda target: Split(by="count", grow=1.4, target=target, fit_on="all"),
        lambda target: RandomSplit(predicates=9, seed=1, target=target),
        lambda target: ChangePointSplit(proximity="jaccard", epsilon=0.5, target=target),
        lambda target: ChangePointSplit(changes=2, closed=False, target=target, fit_on="all"),
    ]
)


def fitted(method: Method, graph: TemporalGraph) -> StaticGraph:
    try:
        return method.fit_transform(graph)
    except UsageError as error:
        assume("cannot reach" not in str(error))
        raise


@given(graphs(), st.data())
def test_entities(graph: TemporalGraph, data: st.DataObject) -> None:
    """The cuts of entities are those of the same loops over the facts of an entity."""
    facts = facts_of(graph, "entity")
    timestamped = Timestamp(target="entities").fit_transform(graph)
    scopes = timestamped.segmentation.entities
    assert scopes is not None
    expected = oracle.timestamp(facts)
    for name, own in expected.items():
        assert len(scopes.cuts_of(name)) + 1 == len(own)
    grow = data.draw(st.floats(1, 3))
    goal = math.ceil(round(grow * len(facts), 9))
    wanted = oracle.split(facts, oracle.middle, lambda predicates, _: predicates >= goal)
    if wanted is not None:
        static = Split(by="time", grow=grow, target="entities").fit_transform(graph)
        assert isinstance(static.entities, Scopes)
        assert membership(static.entities, static, "entity") == oracle.membership(wanted)


@given(graphs(), methods, st.sampled_from(["predicates", "entities", "both"]))
def test_the_rule_cut_by_cut(graph: TemporalGraph, make: object, target: str) -> None:
    """Applying all cuts at once is applying the rule to one cut after the other."""
    static = fitted(make(target), graph)  # type: ignore[operator]
    entities, predicates = static.segmentation.entities, static.predicates
    for split, triples in static.splits():
        facts = getattr(graph, split)
        begin, end = graph.timestamps(facts)
        wanted = []
        for number in range(len(facts)):
            keys = [
                (entities, facts.subject),
                (predicates, facts.predicate),
                (entities, facts.object),
            ]
            cuts = [
                [] if scopes is None else scopes.cuts_of(int(ids[number])).tolist()
                for scopes, ids in keys
            ]
            parts = [(2 * int(begin[number]), 2 * int(end[number]), number)]
            for cut in sorted({c for own in cuts for c in own}):
                left, right = oracle.divide([parts[-1]], cut)
                parts = parts[:-1] + left + right
            for b, e, _ in parts:
                scoped = []
                for (scopes, ids), own in zip(keys, cuts, strict=True):
                    name = int(ids[number])
                    start = name if scopes is None else int(scopes.starts[name])
                    scoped.append(start + sum(not e <= cut for cut in own))
                wanted.append((*scoped, number, e // 2 - (b + 1) // 2 + 1))
        columns = [column.tolist() for column in triples.columns()]
        assert list(zip(*columns, strict=True)) == wanted


@given(graphs(), methods, st.sampled_from(["predicates", "entities", "both"]))
def test_invariants(graph: TemporalGraph, make: object, target: str) -> None:
    method: Method = make(target)  # type: ignore[operator]
    static = fitted(method, graph)
    entities = static.segmentation.entities
    # Dropping the scopes gives back the vanilla triples.
    for split, triples in static.splits():
        facts = getattr(graph, split)
        sources = static.predicates.sources[triples.predicate]
        assert np.array_equal(sources, facts.predicate[triples.fact])
        for mine, ids in ((triples.subject, facts.subject), (triples.object, facts.object)):
            names = mine if entities is None else entities.sources[mine]
            assert np.array_equal(names, ids[triples.fact])
        assert set(triples.fact.tolist()) == set(range(len(facts)))
        # Every timestamp of every fact is covered.
        begin, end = graph.timestamps(facts)
        covered = np.bincount(triples.fact, triples.overlap, minlength=len(facts))
        assert (covered >= end - begin + 1).all()
    # No scoped predicate of the fitted facts is empty, and names are unique.
    used = (
        Counts.of(
            graph.train.predicate,
            *graph.timestamps(graph.train),
            len(graph.predicates),
            len(graph.timeline),
        ).totals
        > 0
    )
    assert (static.predicates.facts[used[static.predicates.sources]] > 0).all()
    for scopes in filter(None, (static.predicates, entities)):
        assert len(set(scopes.labels.to_pylist())) == len(scopes)


@given(graphs(), st.floats(1, 4), st.floats(1, 4))
def test_finer_refines_coarser(graph: TemporalGraph, one: float, two: float) -> None:
    low, high = sorted((one, two))
    methods = Timestamp(), Merge(shrink=low), Merge(shrink=high), Vanilla()
    scopes = [method.fit(graph).predicates for method in methods]
    for finer, coarser in itertools.pairwise(scopes):  # else this is an error
        assert len(np.unique(finer.members(coarser))) == len(coarser)


@given(graphs())
def test_merge_down_to_nothing_is_vanilla(graph: TemporalGraph) -> None:
    nothing, vanilla = Merge(shrink=math.inf).fit(graph), Vanilla().fit(graph)
    assert nothing.predicates == vanilla.predicates
    assert Merge(shrink=1).fit(graph).predicates == Timestamp().fit(graph).predicates


@given(graphs(), methods, st.sampled_from(["predicates", "both"]), st.randoms())
def test_the_order_of_facts_does_not_matter(
    graph: TemporalGraph, make: object, target: str, random: object
) -> None:
    method: Method = make(target)  # type: ignore[operator]
    order = np.arange(len(graph.train))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = splime.graph.replace(graph, train=graph.train.take(order))  # type: ignore[attr-defined]
    assert fitted(method, shuffled).segmentation == fitted(method, graph).segmentation


def test_facts_beyond_the_cuts_take_the_nearest_scope() -> None:
    graph = splime.read(
        {
            "train": [("a", "p", "b", year, year) for year in (2000, 2001, 2010)],
            "test": [("a", "p", "b", year, year) for year in (1990, 2003, 2008, 2020)],
        }
    )
    static = Timestamp().fit_transform(graph)
    names = [predicate for _, predicate, _ in static.rows("test")]
    assert names == ["p[2000]", "p[2001]", "p[2010]", "p[2010]"]


def test_nothing_of_test_leaks_into_the_cuts() -> None:
    train = [("a", "p", "b", 2000 + n, 2000 + n) for n in range(0, 40, 2)]
    test = [("a", "p", "b", 2000 + n, 2000 + n) for n in range(1, 40, 2)]
    graph = splime.read({"train": train, "test": test})
    for method in (Split(by="count", grow=4), Merge(shrink=3), RandomSplit(predicates=5)):
        fewer = method.fit(splime.read({"train": train, "test": test[:1]}, bucket=None))
        fitted = method.fit(graph)
        assert len(fitted.predicates) == len(fewer.predicates)
        dates = [scope.begin for scope in fitted.scopes_of("p")]
        assert dates == [scope.begin for scope in fewer.scopes_of("p")]
    assert len(Timestamp(fit_on="all").fit(graph).predicates) == 40
    assert len(Timestamp().fit(graph).predicates) == 20


@pytest.mark.parametrize(
    ("held", "cuts"),
    [([], []), ([4], []), ([3, 4], [7]), ([3, 5], [9]), ([3, 6], [9]), ([0, 9], [9])],
)
def test_covering_cuts(held: list[int], cuts: list[int]) -> None:
    assert covering_cuts(held).tolist() == cuts


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Split(grow=0.5), "grow must be at least 1"),
        (lambda: Split(grow=math.nan), "grow must be at least 1"),
        (lambda: Split(), "one of grow, predicates and triples"),
        (lambda: Split(grow=2, predicates=5), "one of grow, predicates and triples"),
        (lambda: make_method("split", by="luck", grow=2), "by is one of time, count, not 'luck'"),
        (lambda: Merge(shrink=0.9), "shrink must be at least 1"),
        (lambda: Merge(), "one of shrink and predicates"),
        (lambda: RandomSplit(predicates=0), "at least 1"),
        (lambda: RandomSplit(grow=0.5), "grow must be at least 1"),
        (lambda: RandomSplit(grow=2, predicates=5), "one of grow and predicates"),
        (lambda: make_method("split", grow="much"), "grow must be a number, not 'much'"),
        (lambda: ChangePointSplit(epsilon=0), "epsilon must be greater than 0"),
        (lambda: ChangePointSplit(epsilon=math.nan), "epsilon must be greater than 0"),
        (lambda: ChangePointSplit(penalty=-1), "penalty must be greater than 0"),
        (lambda: ChangePointSplit(changes=-1), "changes must be at least 0"),
        (lambda: ChangePointSplit(), "one of epsilon, penalty and changes"),
        (lambda: ChangePointSplit(epsilon=1, min_size=0), "min_size must be at least 1"),
        (lambda: ChangePointSplit(epsilon=1, proximity="jacard"), "Did you mean jaccard"),
        (
            lambda: make_method("timestamp", target="pairs"),
            "target is one of predicates, entities, both",
        ),
        (lambda: make_method("timestamp", fit_on="test"), "fit_on is one of train, all"),
    ],
)
def test_bad_parameters(make: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()  # type: ignore[operator]


def test_goals_out_of_reach_say_how_far_it_got() -> None:
    graph = splime.read(
        [("a", "p", "b", year, year + 2) for year in range(2000, 2010)], split="none"
    )
    with pytest.raises(UsageError, match=r"cannot reach 100 predicates: it came to \d+ predicates"):
        Split(by="time", grow=100).fit(graph)
    with pytest.raises(UsageError, match=r"cannot reach 9,999 triples"):
        Split(by="count", triples=9_999).fit(graph)
    with pytest.raises(UsageError, match=r"merging goes from the 12 .* down to the 1"):
        Merge(predicates=13).fit(graph)
    with pytest.raises(UsageError, match="no cut leaves facts on both sides"):
        RandomSplit(predicates=500).fit(graph)
    two = splime.read([("a", "p", "b", 1), ("a", "q", "b", 1)], split="none")
    with pytest.raises(UsageError, match="there are 2 already"):
        RandomSplit(predicates=1).fit(two)
    with pytest.raises(UsageError, match="Split cannot reach 1 predicates: there are 2 already"):
        Split(predicates=1).fit(two)


def test_a_segmentation_fits_its_own_graph_only() -> None:
    graph = splime.read([("a", "p", "b", 2000), ("a", "q", "b", 2001)], split="none")
    segmentation = Timestamp(target="both").fit(graph)
    other_time = splime.read([("a", "p", "b", 2000), ("a", "q", "b", 2002)], split="none")
    with pytest.raises(UsageError, match="another timeline"):
        apply(segmentation, other_time)
    other_predicate = splime.read([("a", "p", "b", 2000), ("a", "qq", "b", 2001)], split="none")
    with pytest.raises(UsageError, match="other predicates: it does not know 'qq'"):
        apply(segmentation, other_predicate)
    other_entity = splime.read([("a", "p", "b", 2000), ("a", "q", "c", 2001)], split="none")
    with pytest.raises(UsageError, match="other entities: it does not know 'c'"):
        apply(segmentation, other_entity)


def test_questions_to_a_segmentation() -> None:
    graph = splime.read(
        [("a", "p", "b", year, year) for year in range(2000, 2010)] + [("a", "q", "b", 2001, 2003)],
        split="none",
    )
    segmentation: Segmentation = Split(by="time", predicates=3).fit(graph)
    assert [s.name for s in segmentation.scopes_of("p")] == ["p[2000..2004]", "p[2005..2009]"]
    assert [s.name for s in segmentation.scopes_at("p", 2004)] == ["p[2000..2004]"]
    assert [s.name for s in segmentation.scopes_at("p", 2003, 2006)] == [
        "p[2000..2004]",
        "p[2005..2009]",
    ]
    assert [s.name for s in segmentation.scopes_at("q", 2002)] == ["q"]
    scope = segmentation.source("p[2005..2009]")
    assert (scope.source, scope.begin, scope.end, scope.facts) == ("p", "2005", "2009", 5)
    with pytest.raises(UsageError, match="no scoped predicate"):
        segmentation.source("p[1999]")
    with pytest.raises(UsageError, match="outside"):
        segmentation.scopes_at("p", 1990)
    with pytest.raises(UsageError, match="ends before"):
        segmentation.scopes_at("p", 2005, 2001)
    assert "3 scoped predicates of 2" in repr(segmentation)


@pytest.mark.parametrize("name", METHODS)
def test_the_contract_of_methods(name: str) -> None:
    """What is listed in the registry is made by its name, documented, and says what it did."""
    kind = METHODS[name]
    method = make_method(name, **kind.standard)
    assert (type(method), method.name) == (kind, name)
    assert method.__doc__
    assert all(field.metadata.get("help") for field in fields(method))
    graph = splime.load("demo")
    seen: list[tuple[str, int, int | None]] = []
    static = method.fit_transform(graph, progress=lambda *told: seen.append(told[:3]))
    assert {what for what, _, _ in seen} <= {"choosing cuts"}
    assert all(total is not None and done <= total for _, done, total in seen)
    assert len(static.predicates) >= len(graph.predicates)
    assert static.predicates.facts.min() > 0
    assert method == make_method(name, **kind.standard) == standard_methods()[name]
    remembered = json.loads(json.dumps(static.segmentation.method))
    assert restore_method(remembered) == method
    assert make_method(name, **method.changed()) == method


@pytest.mark.system
def test_a_method_of_another_package(tmp_path: Path) -> None:
    """An installed package adds one; commands know it, and its cuts remember it."""
    (tmp_path / "halves.py").write_text(
        "import numpy as np\nfrom splime.methods.base import Method\n"
        "class Halves(Method):\n    'One cut for each predicate.'\n    name = 'halves'\n"
        "    def choose(self, data, *, progress=None):\n"
        "        return [np.array([2 * (held[0] + held[-1]) // 2 + 1])"
        " for held in data.counts.held.by_name()]\n",
        encoding="utf-8",
    )
    about = tmp_path / "halves-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: halves\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[splime.methods]\nhalves = halves:Halves\n")
    code = (
        "import splime, sys; from splime.cli.main import main; from splime.methods import *\n"
        "cuts = splime.transform('demo', 'halves').segmentation\n"
        "assert restore_method(cuts.method).name == 'halves'\n"
        "print(len(cuts.predicates)); sys.argv = ['splime', 'methods']; main()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("18\n"), done.stderr
    assert re.search(r"halves\s+One cut for each predicate", done.stdout)


@pytest.mark.parametrize("name", METHODS)
def test_the_search_space_of_methods(name: str) -> None:
    """Both ends of every axis can be made; every axis is one of a parameter."""
    kind = METHODS[name]
    own = {field.name for field in fields(kind)}
    assert {*kind.search} | {*kind.standard} | {*kind.one_of} <= own
    middle = {axis: values.ends()[0] for axis, values in kind.search.items()}
    for axis, values in kind.search.items():
        for end in values.ends():
            assert getattr(make_method(name, **{**middle, axis: end}), axis) == end
    if kind.one_of:
        assert len({*kind.search} & {*kind.one_of}) == 1


def test_random_grows_as_split_does() -> None:
    graph = splime.load("demo")
    for grow in (1, 1.34, 5):
        split, random = (make_method(name, grow=grow).fit(graph) for name in ("split", "random"))
        assert len(random.predicates) == len(split.predicates)


def test_a_method_that_nobody_knows() -> None:
    assert restore_method({}) is None
    assert restore_method({"method": "Guess", "luck": 3}) is None
    with pytest.raises(UsageError, match=r"wrong parameters: .*'shrnk'"):
        restore_method({"method": "Merge", "shrnk": 3})


def test_methods_by_name() -> None:
    with pytest.raises(UsageError, match=r"no method 'merg'; .* Did you mean merge"):
        make_method("merg")
    with pytest.raises(UsageError, match=r"no parameter 'shrnk'; .* Did you mean shrink"):
        make_method("merge", shrnk=4)
    with pytest.raises(UsageError, match="needs one of grow and predicates"):
        make_method("random")
