from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, strategies as st

from splime.methods import signatures
from splime.methods.signatures import PROXIMITIES, Links

Linked = tuple[int, int, int]
"""Timestamp, subject, object."""


def neighbourhoods(pairs: set[tuple[int, int]], closed: bool) -> dict[int, set[int]]:
    neighbours: dict[int, set[int]] = defaultdict(set)
    for s, o in pairs:
        neighbours[s] |= {o, s} if closed else {o}
        neighbours[o] |= {s, o} if closed else {s}
    return neighbours


def literal_score(name: str, s: int, o: int, pairs: set[tuple[int, int]], closed: bool) -> float:
    """A measure as the paper's formula, over the pairs that are linked at one timestamp."""
    gamma = neighbourhoods(pairs, closed)
    both, either = gamma[s] & gamma[o], gamma[s] | gamma[o]
    if name == "jaccard":
        return len(both) / len(either)
    if name == "preferential_attachment":
        return len(gamma[s]) * len(gamma[o])
    assert name == "adamic_adar"
    if closed and gamma[s] == gamma[o]:
        return 0
    return sum(1 / math.log(len(gamma[z])) for z in both if len(gamma[z]) > 1)


def links_of(linked: list[Linked]) -> Links:
    time, subject, object = np.array(linked, np.int32).reshape(-1, 3).T
    return Links.of(time, time, subject, object)


def entities(links: Links) -> list[tuple[int, int, int]]:
    return [
        (int(t), int(s), int(o))
        for t, (s, o) in zip(links.time, links.pairs[links.pair], strict=True)
    ]


linked = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 6)), max_size=40)


@given(
    linked, st.booleans(), st.sampled_from(sorted(PROXIMITIES)), st.sampled_from([1, 3, 1 << 21])
)
def test_measures_are_their_formulas(
    facts: list[Linked], closed: bool, name: str, at_once: int
) -> None:
    links = links_of(facts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signatures, "_AT_ONCE", at_once)
        scores = PROXIMITIES[name](links, closed=closed)
    at: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for t, s, o in facts:
        at[t].add((min(s, o), max(s, o)))
    expected = {
        (t, s, o): literal_score(name, s, o, pairs, closed)
        for t, pairs in at.items()
        for s, o in pairs
    }
    assert entities(links) == sorted(expected)
    np.testing.assert_allclose(scores, [expected[link] for link in entities(links)], rtol=1e-12)


@given(linked)
def test_direction_order_and_repetition_do_not_matter(facts: list[Linked]) -> None:
    turned = [(t, o, s) for t, s, o in reversed(facts)] + facts
    assert entities(links_of(turned)) == entities(links_of(facts))


def test_intervals_hold_at_all_their_timestamps() -> None:
    links = Links.of(*np.array([[3, 4], [5, 4], [1, 0], [0, 1]]))
    assert entities(links) == [(3, 0, 1), (4, 0, 1), (5, 0, 1)]


@pytest.mark.parametrize("closed", [True, False])
def test_hubs_are_cheap(closed: bool) -> None:
    """A star of 50,000 links: walking from the hub's side would look up 2.5 · 10⁹ neighbours."""
    spokes = np.arange(1, 50_001)
    time = np.zeros_like(spokes)
    links = Links.of(time, time, time, spokes)
    assert sum(len(link) for link, _ in links.common(closed=closed)) == (100_000 if closed else 0)


def test_paper_settings_of_adamic_adar() -> None:
    alone, chain = links_of([(0, 1, 2)]), links_of([(0, 1, 2), (0, 2, 3)])
    measure = PROXIMITIES["adamic_adar"]
    assert measure(alone).tolist() == [0]  # Γ(1) = Γ(2) = {1, 2}
    assert measure(chain) == pytest.approx(1 / math.log(2) + 1 / math.log(3))
    loop = links_of([(0, 1, 1), (0, 1, 2)])
    # Open: Γ(1) = {1, 2}, Γ(2) = {1}; the link 1-1 shares 2, whose log |Γ| is 0, and 1.
    assert measure(loop, closed=False) == pytest.approx(1 / math.log(2))


def test_names() -> None:
    assert [*PROXIMITIES] == ["jaccard", "adamic_adar", "preferential_attachment"]
