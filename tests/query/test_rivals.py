"""Questions to models that know time, on a graph of events and on one of intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import splime
from splime.embedding.models import MODELS
from splime.graph import TemporalGraph
from splime.runs import Run
from splime.scoring.scoping import Scoping

LEVELS = ["predicate,time", "time,product"]
"""Static models with levels that have each predicate at every timestamp."""
RIVALS = [name for name, kind in MODELS.items() if kind.cuts == "timestamps"]
TIMED = [*RIVALS, *LEVELS]


def tiny(kind: str) -> TemporalGraph:
    """Of p there are facts at all times but the last two, of q at all times of train."""
    rows = []
    for number in range(12):
        begin = 1990 + number
        end = begin if kind == "events" else begin + 1
        rows.append((f"e{number % 4}", "q", f"e{(number + 1) % 4}", begin, end))
        if number < 10:
            rows.append((f"e{number % 3}", "p", f"e{number % 4}", begin, end))
    later = [("e0", "q", "e2", 2010, 2010)]
    return splime.read({"train": rows, "valid": rows[:3], "test": later}, granularity="year")


@pytest.fixture(scope="module", params=["events", "intervals"])
def graph(request: pytest.FixtureRequest) -> TemporalGraph:
    return tiny(request.param)


@pytest.fixture(scope="module")
def runs(graph: TemporalGraph, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("rivals")
    small = {"dimension": 4, "epochs": 1, "batch_size": 20, "validate_every": 0}
    found = {
        name: splime.train(graph, None, folder / name, model=name, **small)  # type: ignore[arg-type]
        for name in RIVALS
    }
    for levels in LEVELS:
        static = {"model": "distmult", "levels": levels, **small}
        found[levels] = splime.train(graph, "timestamp", folder / levels, **static)  # type: ignore[arg-type]
    return found


def plain(run: Run, s: int, p: int, o: int, time: int) -> tuple[float, float]:
    """The score of a fact at a timestamp, and that with the inverse, where there is one."""
    model, static = run.model, run.static
    half, scope = len(static.predicates), p * len(run.graph.timeline) + time
    with torch.no_grad():
        entities = model.entities.vectors()
        if model.time_of is not None:
            entities = model.at(entities, model.time_of[scope])
        own = model.predicates(torch.tensor([scope, scope + half * run.settings.reciprocal]))
        forth = float(model.score(entities[s], own[0], entities[o]))
        return forth, float(model.score(entities[o], own[1], entities[s]))


@pytest.mark.parametrize("name", TIMED)
def test_who_what_which_and_when(name: str, runs: dict[str, Run], graph: TemporalGraph) -> None:
    run, query = runs[name], splime.Query(runs[name])
    names, times = list(graph.entities), graph.timeline.labels()
    at = 1996
    time = times.index("1996")
    way = int(run.settings.reciprocal)
    ways = (slice(2), slice(2)) if run.settings.both_ways else (slice(1), slice(way, way + 1))
    what = query.ask("e1", "p", "?", at=at, limit=None)
    assert {row.name: row.score for row in what.rows} == {
        o: pytest.approx(np.sum(plain(run, 1, 0, number, time)[ways[0]]), rel=1e-4, abs=1e-6)
        for number, o in enumerate(names)
    }
    who = query.ask("?", "p", "e1", at=at, limit=None)
    assert {row.name: row.score for row in who.rows} == {
        s: pytest.approx(np.sum(plain(run, number, 0, 1, time)[ways[1]]), rel=1e-4, abs=1e-6)
        for number, s in enumerate(names)
    }
    for answers, own in ((query.ask("e0", "?", "e2", at=at), [(p, time) for p in range(2)]),
                         (query.ask("e0", "q", "e2", "?", limit=None), None)):  # fmt: skip
        places = own or [(1, number) for number in range(len(times)) if times[number] != "2010"]
        scores = [np.mean(plain(run, 0, p, 2, t)[: 1 + way]) for p, t in places]
        assert answers.rows[0].score == pytest.approx(max(scores), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", ["tcomplex", "hyte", *LEVELS])
def test_what_train_does_not_have_is_said(
    name: str, runs: dict[str, Run], graph: TemporalGraph
) -> None:
    query = splime.Query(runs[name])
    doubt = "the model knows that time from facts of other predicates"
    assert doubt in query.ask("e0", "p", "?", at=2001).doubt
    beyond = query.ask("e0", "q", "?", at=2010)
    last = "2002" if "2002" in graph.timeline.labels() else "2001"
    assert f"q[{last}] stands in" in beyond.doubt
    assert beyond.rows[0].score == query.ask("e0", "q", "?", at=int(last)).rows[0].score
    near = query.near("e1", at=1996)
    moving = runs[name].model.time_of is not None
    assert ("this run has not cut entities" in " ".join(near.remarks)) is not moving


def test_a_static_model_takes_the_nearest_scope_of_the_predicate(graph: TemporalGraph) -> None:
    """At 2001 train has facts of q alone: a static model knows p only before."""
    static = splime.Timestamp().fit_transform(graph)
    plain_one, timed = Scoping(static), Scoping(static).timed
    seen = np.unique(static.train.predicate)
    assert np.isin(plain_one.predicate_fallback, seen).all()
    assert np.array_equal(timed.predicate_fallback[seen], seen)


def test_the_method_that_is_implied(graph: TemporalGraph, tmp_path: Path) -> None:
    runs = [
        splime.train(graph, cuts, tmp_path / str(number), model="tcomplex", dimension=2, epochs=1)
        for number, cuts in enumerate((None, splime.Timestamp()))
    ]
    for run in runs:
        assert len(run.static.predicates) == 2 * len(graph.timeline)
        assert isinstance(run.method, splime.Timestamp)
    assert runs[0].config["cuts"] == runs[1].config["cuts"]
    static = splime.train(graph, None, tmp_path / "static", model="complex", dimension=2, epochs=1)
    assert len(static.static.predicates) == 2
    entities = splime.Timestamp(target="both")
    with pytest.raises(splime.UsageError, match="moves entities in time itself"):
        splime.train(graph, entities, tmp_path / "cut", model="hyte", dimension=2, epochs=1)
