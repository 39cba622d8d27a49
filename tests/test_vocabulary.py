from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from splime.errors import UsageError
from splime.vocabulary import Vocabulary

labels = st.text(st.characters(codec="utf-8"))


@given(st.lists(labels))
def test_sorted_distinct_and_found_again(given_labels: list[str]) -> None:
    names = Vocabulary(given_labels, kind="entity")
    assert list(names) == sorted(set(given_labels))
    assert [names.id(label) for label in names] == list(range(len(names)))
    assert all(label in names for label in given_labels)
    assert names.ids(pa.array(given_labels, pa.string())).tolist() == [
        names.id(label) for label in given_labels
    ]


def test_unknown_names() -> None:
    names = Vocabulary(["Norport", "Norhaven"], kind="entity")
    assert "Oslo" not in names
    assert 3 not in names
    assert names.ids(pa.array(["Oslo"])).tolist() == [-1]
    with pytest.raises(UsageError, match=r"no entity is called 'Norprt'. Did you mean Norport"):
        names.id("Norprt")
    with pytest.raises(UsageError, match="There are Norhaven, Norport"):
        names.id("Oslo")
    many = Vocabulary([f"name {number}" for number in range(100)], kind="entity")
    with pytest.raises(UsageError) as refused:
        many.id("Oslo")
    assert "name 7" not in str(refused.value)
