"""Names in places where train has nothing like them, and runs that ignore time, are said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import splime
from splime.query import Query
from splime.runs import combine, train
from splime.runs.graph_run import GraphRun
from splime.scoring.coverage import TrainCoverage
from tests.runs.small import small_graph, small_run

PLAYERS, CLUBS = ("Ann", "Bea", "Cia", "Dea"), ("Ajax", "Roma")
MOVES = [
    *((PLAYERS[n % 4], "joined", CLUBS[n % 2], 2000 + n) for n in range(14)),
    ("Ajax", "basedIn", "Amsterdam", 1990),
    ("Roma", "basedIn", "Rome", 1990),
    ("Lyon", "basedIn", "Lyons", 1990),
]


def test_a_club_that_joins_a_club() -> None:
    query = Query(GraphRun(splime.read(MOVES, split="none"), device="cpu"))
    said = query.ask("Ajax", "joined", "?", at=2005).remarks
    assert "train has nothing like Ajax as subject of joined" in said
    # Lyon never bought anybody, but it is like those that did.
    for names in (("Ann", "joined", "?"), ("?", "joined", "Lyon")):
        assert not any("nothing like" in one for one in query.ask(*names, at=2005).remarks)


@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 3), st.integers(0, 7)), min_size=1, max_size=12
    )
)
def test_places_as_the_definition_has_them(rows: list[tuple[int, int, int]]) -> None:
    facts = [(f"e{s}", f"p{p}", f"e{o}", 2000) for s, p, o in rows]
    graph = splime.read(facts, split="none")
    roles: dict[str, set[tuple[str, str]]] = {}
    for fact in graph.rows("train"):
        roles.setdefault(fact.subject, set()).add((fact.predicate, "subject"))
        roles.setdefault(fact.object, set()).add((fact.predicate, "object"))
    coverage = TrainCoverage(graph)
    for number, predicate in enumerate(graph.predicates):
        for kind in ("subject", "object"):
            there = [own for own in roles.values() if (predicate, kind) in own]
            expected = [not any(roles[name] & own for own in there) for name in graph.entities]
            expected = [one and bool(there) for one in expected]
            found = coverage.out_of_place(number, kind)
            assert np.array_equal(found, expected)


@pytest.mark.parametrize("how", ["vanilla", "split", "path", "blind", "both"])
def test_who_ignores_time(tmp_path: Path, how: str) -> None:
    graph = small_graph()
    small: dict[str, Any] = {
        "layers": 2,
        "dimension": 16,
        "epochs": 1,
        "batch_size": 20,
        "model": "path",
    }
    if how in ("path", "blind"):
        more: dict[str, Any] = {"relative": "none"} if how == "blind" else {}
        run = train(graph, None, tmp_path / "run", **small, **more)
    elif how == "both":
        cut = [
            small_run(graph, tmp_path / name, splime.Vanilla(), epochs=1, seed=seed)
            for seed, name in enumerate("ab")
        ]
        run = combine(cut, tmp_path / "both")
    else:
        cuts = splime.Vanilla() if how == "vanilla" else splime.Split(grow=2)
        run = small_run(graph, tmp_path / "run", cuts, epochs=1)
    ignores = how in ("vanilla", "blind", "both")
    query = Query(run)
    asked = {year: query.ask("entity 1", "p1", "?", at=year, limit=None) for year in (1991, 2004)}
    for answers in asked.values():
        assert any("ignores time" in one for one in answers.remarks) == ignores
    same = {name: {row.name: row.score for row in answers} for name, answers in asked.items()}
    assert (same[1991] == pytest.approx(same[2004])) == ignores
    assert not any("ignores" in one for one in query.ask("entity 1", "p1", "?").remarks)
