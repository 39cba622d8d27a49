"""Cuts are applied to a graph once, however often it is scored."""

from __future__ import annotations

from pathlib import Path

import pytest

import splime
from splime.query import Query
from splime.segmentation import Scopes
from tests.runs.small import small_graph, small_run


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """For how many facts scopes were looked for, each time."""
    looked: list[int] = []
    find = Scopes.find

    def counted(self: Scopes, source, begin, end):  # type: ignore[no-untyped-def]
        looked.append(len(source))
        return find(self, source, begin, end)

    monkeypatch.setattr(Scopes, "find", counted)
    return looked


def test_ten_validations(tmp_path: Path, applied: list[int]) -> None:
    graph = small_graph()
    cuts = splime.Split(grow=2).fit(graph)
    applied.clear()
    run = small_run(graph, tmp_path / "run", cuts, epochs=10, validate_every=1, patience=99)
    assert sum(one.valid is not None for one in run.history) == 10
    assert applied == [len(facts) for _, facts in graph.splits()]


def test_questions_and_evaluations(tmp_path: Path, applied: list[int]) -> None:
    graph = small_graph()
    path = small_run(graph, tmp_path / "run", splime.Split(grow=2)).path
    applied.clear()
    run = splime.Run(path)
    query = Query(run)
    fact = next(graph.rows("test"))
    for question in ((fact.subject, fact.predicate, "?"), ("?", fact.predicate, fact.object)):
        query.ask(*question)
        query.ask(*question, limit=3)
    query.ask(fact.subject, "?", fact.object)
    splime.evaluate(run)
    splime.evaluate(run, "predicate", split="valid")
    Query(run, aggregate="max").ask(fact.subject, fact.predicate, "?")
    assert applied.count(len(graph.train)) == 1
