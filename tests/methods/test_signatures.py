from __future__ import annotations

from functools import partial

import numpy as np
from hypothesis import given, strategies as st

from splime.methods import ChangePointSplit
from splime.methods.signatures import PROXIMITIES, Integers, adamic_adar, jaccard, signatures
from tests.methods.test_bottomup import changes_of
from tests.methods.test_proximity import literal_score

Held = tuple[int, int, int, int]
"""Begin, end, subject, object: a fact of one predicate."""


@st.composite
def facts(draw: st.DrawFn) -> list[Held]:
    drawn = []
    for _ in range(draw(st.integers(1, 15))):
        begin, end = sorted((draw(st.integers(0, 12)), draw(st.integers(0, 12))))
        drawn.append((begin, end, draw(st.integers(0, 5)), draw(st.integers(0, 5))))
    return drawn


def columns(held: list[Held]) -> list[Integers]:
    return list(np.array(held, np.int32).T)


def literal_signatures(
    held: list[Held], name: str, closed: bool
) -> dict[int, dict[tuple[int, int], float]]:
    """CALC_SIGNATURES, line by line, then each vector divided by its length."""
    signatures_of: dict[int, dict[tuple[int, int], float]] = {}
    for t in range(13):
        sliced = [(s, o) for b, e, s, o in held if b <= t <= e]
        pairs = {(min(s, o), max(s, o)) for s, o in sliced}
        for s, o in sliced:
            score = literal_score(name, s, o, pairs, closed)
            signatures_of.setdefault(t, {})[min(s, o), max(s, o)] = score
    for signature in signatures_of.values():
        length = sum(score**2 for score in signature.values()) ** 0.5
        for pair in signature:
            signature[pair] /= length or 1
    return signatures_of


@given(facts(), st.sampled_from(sorted(PROXIMITIES)), st.booleans())
def test_signatures_are_the_pseudocode(held: list[Held], name: str, closed: bool) -> None:
    linked = signatures(*columns(held), proximity=partial(PROXIMITIES[name], closed=closed))
    expected = literal_signatures(held, name, closed)
    assert linked.timestamps.tolist() == sorted(expected)
    pairs = [(int(left), int(right)) for left, right in linked.pairs]
    assert pairs == sorted({pair for signature in expected.values() for pair in signature})
    dense = [[expected[t].get(pair, 0) for pair in pairs] for t in linked.timestamps.tolist()]
    np.testing.assert_allclose(linked.scores.toarray(), dense, rtol=1e-12)
    assert linked.scores.has_canonical_format
    assert (linked.scores.data != 0).all()


@given(facts(), st.integers(1, 3), st.integers(0, 4))
def test_cuts_lie_before_the_timestamps_of_rows(
    held: list[Held], min_size: int, changes: int
) -> None:
    method = ChangePointSplit(proximity="jaccard", min_size=min_size, changes=changes)
    cuts = method.change_points(*columns(held)).tolist()
    linked = signatures(*columns(held), proximity=jaccard)
    rows = changes_of(linked.scores, min_size, changes=changes)
    assert cuts == linked.timestamps[rows].tolist()
    assert len(cuts) <= changes


def test_timestamps_without_facts_are_no_rows() -> None:
    held = [(0, 2, 0, 1), (9, 11, 2, 3)]
    assert signatures(*columns(held), proximity=jaccard).timestamps.tolist() == [
        0,
        1,
        2,
        9,
        10,
        11,
    ]
    method = ChangePointSplit(proximity="jaccard", changes=1)
    assert method.change_points(*columns(held)).tolist() == [9]


def test_no_facts() -> None:
    nothing = columns([(0, 0, 0, 0)])
    nothing = [column[:0] for column in nothing]
    assert signatures(*nothing, proximity=adamic_adar).scores.shape == (0, 0)
    method = ChangePointSplit(proximity="adamic_adar", epsilon=1)
    assert method.change_points(*nothing).tolist() == []
