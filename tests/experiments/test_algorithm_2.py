"""Algorithm 2 against the lines of its pseudocode; facts are left out as readings say."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import splime
from experiments.algorithm_2 import algorithm_2
from experiments.rows import Case
from experiments.running import load_graph, run_case
from splime.graph import SPLITS, TemporalGraph
from tests.methods import oracle
from tests.runs.small import SETTINGS, small_graph

Quad = tuple[str, str, str, int, int]


def literal(parts: list[oracle.Part], at: int) -> tuple[list[oracle.Part], list[oracle.Part]]:
    """The lines of the pseudocode, one by one."""
    left, right = [], []
    for begin, end, number in parts:
        if begin <= at <= end:
            left.append((begin, at, number))
            right.append((at, end, number))
        elif end <= at:
            left.append((begin, end, number))
        else:
            right.append((begin, end, number))
    return left, right


def facts_of(graph: TemporalGraph) -> dict[int, list[oracle.Part]]:
    facts = graph.facts()
    begins, ends = graph.timeline.index(facts.begin), graph.timeline.index(facts.end)
    by_predicate: dict[int, list[oracle.Part]] = {}
    for number, (predicate, begin, end) in enumerate(
        zip(facts.predicate.tolist(), begins.tolist(), ends.tolist(), strict=True)
    ):
        by_predicate.setdefault(predicate, []).append((begin, end, number))
    return by_predicate


def scopes_of(graph: TemporalGraph, count: int) -> list[list[tuple[int, int]]]:
    """Subjects and objects of each scope of a graph that was cut, over all splits."""
    pairs: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    facts = graph.facts()
    columns = zip(
        facts.subject.tolist(), facts.predicate.tolist(), facts.object.tolist(), strict=True
    )
    for subject, scope, object in columns:
        pairs[scope].append((subject, object))
    return sorted(sorted(scope) for scope in pairs)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 5)), min_size=6, max_size=40
    ),
    st.sampled_from(["time", "count"]),
    st.integers(1, 4),
)
def test_scopes_are_those_of_the_pseudocode(
    drawn: list[tuple[int, int, int]], by: str, grow: int
) -> None:
    rows: list[Quad] = [
        (f"s{number}", f"p{name}", f"o{number % 5}", begin, begin + length)
        for number, (name, begin, length) in enumerate(drawn)
    ]
    graph = splime.read(rows, split="none", granularity="step")
    divide = oracle.divide
    oracle.divide = literal
    try:
        where = oracle.middle if by == "time" else oracle.balance
        wanted = math.ceil(grow * len(graph.predicates))
        slow = oracle.split(facts_of(graph), where, lambda predicates, _: predicates >= wanted)
    finally:
        oracle.divide = divide
    if slow is None:
        with pytest.raises(ValueError, match="no scope can be split"):
            algorithm_2(graph, by=by, grow=grow)  # type: ignore[arg-type]
        return
    fast = algorithm_2(graph, by=by, grow=grow)  # type: ignore[arg-type]
    facts = graph.facts()
    expected = sorted(
        sorted((int(facts.subject[n]), int(facts.object[n])) for _, _, n in scope)
        for scopes in slow.values()
        for scope in scopes
    )
    assert scopes_of(fast, len(fast.predicates)) == expected


def test_random_cuts_lose_no_fact_and_are_drawn_by_the_seed() -> None:
    graph = small_graph()
    cut = algorithm_2(graph, by="random", predicates=12, seed=3)
    assert len(cut.predicates) == 12
    for split in SPLITS:
        before, after = getattr(graph, split), getattr(cut, split)
        pairs = [
            set(zip(f.subject.tolist(), f.object.tolist(), strict=True)) for f in (before, after)
        ]
        assert pairs[0] == pairs[1]
        assert len(after) >= len(before)
    again = algorithm_2(graph, by="random", predicates=12, seed=3)
    assert cut == again
    assert cut != algorithm_2(graph, by="random", predicates=12, seed=4)


def test_a_case_can_be_cut_so(tmp_path: Path) -> None:
    splime.save(small_graph(), tmp_path / "small-paper.parquet")
    evaluation = {"protocol": "triple", "split": "test", "filter": "inter"}
    case = Case("small", "algorithm 2", {"by": "time", "grow": 2}, SETTINGS, (evaluation,))
    record = run_case(case, data=tmp_path, device="cpu")
    assert record["predicates"] == 2 * len(small_graph().predicates)


def test_facts_without_an_end_are_left_out(tmp_path: Path) -> None:
    rows = [("a", "p", "b", 1990, 1995), ("b", "p", "c", 1991, None), ("c", "q", "d", None, 1999)]
    graph = splime.read(rows, split="none")
    facts = graph.facts()
    splits = {split: facts.take(np.arange(len(facts))) for split in SPLITS}
    splime.save(replace(graph, **splits), tmp_path / "own-paper.parquet")  # type: ignore[arg-type]
    whole = load_graph("own", "paper", tmp_path)
    ended = load_graph("own", "ended", tmp_path)
    assert [len(facts) for _, facts in whole.splits()] == [3, 3, 3]
    assert [len(facts) for _, facts in ended.splits()] == [2, 2, 2]
    tested = load_graph("own", "ended-test", tmp_path)
    assert [len(facts) for _, facts in tested.splits()] == [3, 2, 2]
    assert tested.entities == whole.entities
