from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import splime
from splime.errors import UsageError
from splime.query import Query
from splime.runs import Run, train
from tests.query.conftest import RUNS
from tests.runs.small import small_run


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.sqrt((one @ one) * (other @ other)))


@pytest.mark.parametrize("name", RUNS)
def test_predicates_at_a_time(trained: dict[str, Path], name: str) -> None:
    run = Run(trained[name])
    query = Query(run)
    table = run.model.predicates.vectors().numpy(force=True)
    labels = run.segmentation.predicates.labels.to_pylist()
    for year in (1990, 1997, 2003):
        answers = query.near("p1", at=year, limit=None)
        assert answers.question.text == f"Near p1 at {year}"
        own = query.ask("entity 1", "p1", "?", at=year).rows[0].scopes[0]
        assert {row.name for row in answers} == {"p0", "p2", "p3"}
        for row in answers:
            [scope] = row.scopes
            assert scope == query.ask("entity 1", row.name, "?", at=year).rows[0].scopes[0]
            expected = cosine(table[labels.index(own)], table[labels.index(scope)])
            assert row.score == pytest.approx(expected, abs=1e-5)
        assert [row.score for row in answers] == sorted((r.score for r in answers), reverse=True)


def test_predicates_at_any_time(trained: dict[str, Path]) -> None:
    run = Run(trained["split"])
    scopes = run.segmentation.predicates
    table = run.model.predicates.vectors().numpy(force=True)
    labels = scopes.labels.to_pylist()
    own = table[[label.startswith("p1") for label in labels]].mean(0)
    answers = Query(run).near("p1", limit=None)
    assert {row.name for row in answers} == {x for x in labels if not x.startswith("p1")}
    for row in answers:
        assert row.score == pytest.approx(cosine(own, table[labels.index(row.name)]), abs=1e-5)
        assert row.scopes == (row.name,)


@pytest.mark.parametrize("name", RUNS)
def test_entities(trained: dict[str, Path], name: str) -> None:
    run = Run(trained[name])
    query = Query(run)
    table = run.model.entities.vectors().numpy(force=True)
    answers = query.near("entity 3", at=1994, limit=4)
    assert len(answers) == 4
    assert "entity 3" not in [row.name for row in answers]
    if run.segmentation.entities is None:
        names = list(run.graph.entities)
        assert "has not cut entities" in answers.remarks[1]
        own = table[names.index("entity 3")]
        every = sorted((cosine(own, table[at]), x) for at, x in enumerate(names) if x != "entity 3")
        assert [row.name for row in answers] == [x for _, x in reversed(every)][:4]
        assert query.near("entity 3", limit=4).rows == answers.rows
    else:
        labels = run.segmentation.entities.labels.to_pylist()
        own, *others = (
            table[labels.index(x)]
            for x in (
                query.near("entity 4", at=1994, limit=None)
                .rows[_place(query, "entity 3")]
                .scopes[0],
                *(row.scopes[0] for row in answers),
            )
        )
        for row, other in zip(answers, others, strict=True):
            assert row.score == pytest.approx(cosine(own, other), abs=1e-5)


def _place(query: Query, name: str) -> int:
    return [row.name for row in query.near("entity 4", at=1994, limit=None)].index(name)


def test_an_interval_is_a_mean(trained: dict[str, Path]) -> None:
    query = Query(Run(trained["split"]))
    one = query.near("p1", during=(1990, 1990))
    assert one.rows == query.near("p1", at=1990).rows
    assert query.near("p1", during=(1990, 2004)).question.text == "Near p1 from 1990 to 2004"


def test_errors(split: Run, tmp_path: Path) -> None:
    query = Query(split)
    with pytest.raises(UsageError, match=r"no entity .* Did you mean entity 1.* no predicate is"):
        query.near("entty 1")
    with pytest.raises(UsageError, match="no kind of name 'entities'; there are entity, predicate"):
        query.near("entity 1", kind="entities")
    with pytest.raises(UsageError, match="no predicate is called 'entity 1'"):
        query.near("entity 1", kind="predicate")
    with pytest.raises(UsageError, match="outside of the graph's time"):
        query.near("entity 1", at=1066)
    latest = train(split.graph, None, tmp_path / "latest", model="latest")
    with pytest.raises(UsageError, match="splime has scores but no vectors"):
        Query(latest).near("entity 1")


def test_a_name_of_both_kinds(tmp_path: Path) -> None:
    rows = [("a", "b", "c", 1990), ("b", "b", "a", 1991), ("c", "d", "b", 1991)]
    graph = splime.read(rows, split="none")
    query = Query(
        small_run(graph, tmp_path / "run", splime.Vanilla(), validate_every=0, batch_size=2)
    )
    with pytest.raises(UsageError, match="'b' is an entity and a predicate"):
        query.near("b")
    assert {row.name for row in query.near("b", kind="entity")} == {"a", "c"}
    assert {row.name for row in query.near("b", kind="predicate")} == {"d"}
