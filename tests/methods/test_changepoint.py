from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import splime
from experiments.world import World
from splime.graph import TemporalGraph
from splime.methods import ChangePointSplit
from splime.methods.signatures import PROXIMITIES


@pytest.mark.parametrize(
    ("name", "proximity", "epsilon", "predicates"),
    [
        ("wikidata12k", "preferential_attachment", 2.5, 709),
        ("yago11k", "preferential_attachment", 5, 173),
        ("icews14", "adamic_adar", 25, 3_946),
    ],
)
def test_numbers_of_predicates(
    published_graphs: dict[str, TemporalGraph],
    name: str,
    proximity: str,
    epsilon: float,
    predicates: int,
) -> None:
    """The settings of the paper's main table, without the defects of its code (reference.md)."""
    method = ChangePointSplit(proximity=proximity, epsilon=epsilon, min_size=2, fit_on="all")
    assert len(method.fit(published_graphs[name]).predicates) == predicates


def test_planted_changes_are_found() -> None:
    """All planted changes of the interval predicates are found, to the year, and little else."""
    planted_count = cut_count = hits = 0
    for seed in range(5):
        world = World(seed=seed)
        segmentation = ChangePointSplit(proximity="adamic_adar", penalty=3).fit(
            splime.read(world.table())
        )
        for predicate, planted in world.planted().items():
            changes = {int(scope.begin) for scope in segmentation.scopes_of(predicate)[1:]}
            if predicate == "visited":
                # Events link a pair only once, so that no two years have anything in common.
                assert not changes
                continue
            hits += len(changes & set(planted))
            planted_count += len(planted)
            cut_count += len(changes)
    assert hits == planted_count == 45
    assert hits / cut_count > 0.9


STOPS: list[dict[str, Any]] = [
    {"epsilon": 5.0},
    {"epsilon": 0.3},  # reached while equal timestamps are joined
    {"penalty": 0.5},
    {"penalty": 0.005},
    {"changes": 2},
    {"changes": 20},
]
# Every stop with one measure in plain pytest, with the others as system tests.
SEARCHES = [
    pytest.param(
        measure, stop, marks=pytest.mark.system if (number - place) % len(PROXIMITIES) else ()
    )
    for place, measure in enumerate(PROXIMITIES)
    for number, stop in enumerate(STOPS)
]


@pytest.mark.parametrize(("proximity", "stop"), SEARCHES, ids=str)
def test_names_searched_together_are_cut_as_each_alone(
    proximity: str, stop: dict[str, Any]
) -> None:
    """Facts that last give runs of equal signatures, and entities many ties."""
    rng = np.random.default_rng(0)
    for last, closed in ((20, True), (300, False), (1_500, True)):
        begin = rng.integers(0, last, 200)
        end = np.minimum(begin + rng.choice([0, 0, 3, 40, 400], 200), last)
        subject, object_ = rng.integers(0, 15, (2, 200))
        rows = [
            (f"e{s}", "p", f"e{o}", int(b), int(e))
            for s, o, b, e in zip(subject, object_, begin, end, strict=True)
        ]
        graph = splime.read(rows, split="none", granularity="step", keep_duplicates=True)
        method = ChangePointSplit(proximity=proximity, closed=closed, target="entities", **stop)
        scopes = method.fit(graph).entities
        assert scopes is not None
        facts = graph.train
        first, behind = graph.timestamps(facts)
        for entity in range(len(graph.entities)):
            own = (facts.subject == entity) | (facts.object == entity)
            columns = first[own], behind[own], facts.subject[own], facts.object[own]
            alone = 2 * method.change_points(*columns) - 1
            assert scopes.cuts_of(entity).tolist() == alone.tolist()
