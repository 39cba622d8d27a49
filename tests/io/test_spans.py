"""Facts that end before they begin, and what unknown times become beside them."""

from __future__ import annotations

import pytest

import splime
from splime.errors import DataError

REVERSED = ("a", "p", "b", 2010, 1980)


def test_only_reversed_facts() -> None:
    swapped = splime.read([REVERSED], end_before_begin="swap", split="none")
    assert list(swapped.rows()) == [("a", "p", "b", "1980", "2010")]
    with pytest.raises(DataError, match="row 1: the fact ends before it begins"):
        splime.read([REVERSED], end_before_begin="error")
    with pytest.raises(DataError, match="no fact has a usable time"):
        splime.read([REVERSED])


def test_swapped_facts_belong_to_the_time_of_the_graph() -> None:
    facts = [REVERSED, ("c", "p", "d", 1990, None)]
    swapped = splime.read(facts, end_before_begin="swap", split="none")
    assert swapped.train.end.tolist() == [2010, 2010]
    dropped = splime.read(facts, split="none")
    assert dropped.train.end.tolist() == [1990]


def test_rows_that_were_read() -> None:
    found = splime.describe(splime.read([REVERSED, ("a", "p", "b", 1990, 1991)], split="none"))
    assert dict(found.rows) == {"all": 2}
    assert found.facts["train"] == 1
