from __future__ import annotations

import pytest

import splime
from splime.graph import TemporalGraph
from splime.methods import ChangePointSplit


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
        world = splime.World(seed=seed)
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
