from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import splime
from splime.evaluation import filters
from splime.evaluation.filters import TIMED, AnswerFilter
from splime.graph import TemporalGraph
from splime.scoring.scoping import keyed
from tests.evaluation import oracle
from tests.graphs import graphs


def excluded_objects(graph: TemporalGraph) -> list[dict[str, set[str]]]:
    """For every test fact and filter, the objects that are known besides its own."""
    known, asked = (keyed("object", facts, graph) for facts in (graph.facts(), graph.test))
    excluded: list[dict[str, set[str]]] = [
        {name: set() for name in TIMED} for _ in graph.test.begin
    ]
    for block in AnswerFilter(known, asked).excluded(np.arange(len(graph.test))):
        for answer, id_, level in zip(*block, strict=True):
            for name in TIMED[level:]:
                assert graph.entities[id_] not in excluded[answer][name], "pairs must be distinct"
                excluded[answer][name].add(graph.entities[id_])
    return excluded


@given(graphs(), st.sampled_from([1, 7, 1 << 20]))
def test_lists_equal_a_double_loop(graph: TemporalGraph, pairs: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filters, "_PAIRS", pairs)
        excluded = excluded_objects(graph)
    for query, lists in zip(graph.rows("test"), excluded, strict=True):
        for name in TIMED:
            assert lists[name] == {
                known.object
                for known in graph.rows()
                if known[:2] == query[:2]
                and known.object != query.object
                and oracle.excludes(name, query, known)
            }


def test_unknown_ends() -> None:
    graph = splime.read(
        {
            "train": [
                ("Ada", "livesIn", "Norport", 1990, None),  # holds on: unknown is a value
                ("Ada", "livesIn", "Westmine", 1990, 2005),  # the last date, but known
                ("Ada", "livesIn", "Eastham", None, 1989),
                ("Ada", "livesIn", "Southby", 1980, 1985),
                ("Ada", "livesIn", "Midfort", None, 1990),
            ],
            "test": [
                ("Ada", "livesIn", "Home", 1990, None),
                ("Ada", "livesIn", "Home", None, 1985),
            ],
        }
    )
    still, early = excluded_objects(graph)
    assert still["exact"] == {"Norport"}
    assert still["overlap"] == {"Norport", "Westmine", "Midfort"}
    assert still["static"] == {"Norport", "Westmine", "Eastham", "Southby", "Midfort"}
    assert early["exact"] == set()
    assert early["overlap"] == {"Eastham", "Southby", "Midfort"}


def test_filters_use_dates_not_buckets() -> None:
    rows = [("a", "p", "b", 1990), ("a", "p", "c", 1991), ("a", "p", "d", 1990)]
    graph = splime.read({"train": rows[:2], "test": rows[2:]}).bucket(3)
    assert len(graph.timeline) == 1
    assert excluded_objects(graph)[0] == {"exact": {"b"}, "overlap": {"b"}, "static": {"b", "c"}}
