"""Static graphs in the hands of other libraries, without files."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import splime
from splime.errors import SplimeError, UsageError
from splime.exports import labelled_triples, to_pykeen
from splime.graph import SPLITS, TemporalGraph
from splime.methods import Merge, Vanilla
from splime.static import StaticGraph
from tests.exports.statics import one_fact, transformed

needs_pykeen = pytest.mark.skipif(
    importlib.util.find_spec("pykeen") is None, reason="pykeen is not installed (splime-kg[pykeen])"
)


@pytest.fixture(autouse=True)
def pykeen_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PyKEEN makes a folder for its datasets when it is imported; not in the user's home."""
    monkeypatch.setenv("PYSTOW_HOME", str(tmp_path))


@given(case=transformed())
def test_labelled_triples(case: tuple[TemporalGraph, StaticGraph]) -> None:
    static = case[1]
    for split in SPLITS:
        labelled = labelled_triples(static, split)
        assert labelled.shape == (len(getattr(static, split)), 3)
        assert [tuple(row) for row in labelled.tolist()] == list(static.rows(split))


def test_labelled_triples_of_an_unknown_split() -> None:
    static = Vanilla().fit_transform(one_fact())
    assert labelled_triples(static, "test").shape == (0, 3)
    with pytest.raises(UsageError, match=r"no split 'tset'.* Did you mean test"):
        labelled_triples(static, "tset")  # type: ignore[arg-type]


def test_without_pykeen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pykeen.triples", None)
    static = Vanilla().fit_transform(one_fact())
    with pytest.raises(SplimeError, match=r"pip install 'splime-kg\[pykeen\]'"):
        to_pykeen(static)


@needs_pykeen
@settings(max_examples=10)
@given(case=transformed())
def test_factories_share_their_vocabulary(case: tuple[TemporalGraph, StaticGraph]) -> None:
    static = case[1]
    factories = to_pykeen(static)
    assert list(factories) == list(SPLITS)
    for split, factory in factories.items():
        assert np.array_equal(factory.mapped_triples.numpy(), getattr(static, split).array())
        assert factory.num_entities == len(static.entities)
        assert factory.num_relations == len(static.predicates)
        assert factory.entity_to_id == factories["train"].entity_to_id
        assert factory.relation_to_id == factories["train"].relation_to_id
        assert [tuple(row) for row in factory.triples] == list(static.rows(split))  # type: ignore[arg-type]


@needs_pykeen
def test_factories_may_be_empty() -> None:
    static = Vanilla().fit_transform(one_fact())
    assert [factory.num_triples for factory in to_pykeen(static).values()] == [1, 0, 0]


@pytest.fixture(scope="module")
def demo() -> StaticGraph:
    return Merge(shrink=8).fit_transform(splime.load("demo"))


@pytest.mark.system
@needs_pykeen
@pytest.mark.filterwarnings("ignore:Training instances are always shuffled:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true but no acc:UserWarning")
def test_pykeen_trains_on_it(demo: StaticGraph) -> None:
    from pykeen.pipeline import pipeline

    factories = to_pykeen(demo)
    result = pipeline(
        training=factories["train"],
        validation=factories["valid"],
        testing=factories["test"],
        model="TransE",
        model_kwargs={"embedding_dim": 8},
        training_kwargs={"num_epochs": 1, "use_tqdm": False},
        evaluation_kwargs={"use_tqdm": False, "batch_size": 256},
        random_seed=1,
        device="cpu",
    )
    assert len(result.losses) == 1
    assert np.isfinite(result.losses).all()
    assert 0 < result.get_metric("mrr") <= 1
    scores = result.model.score_t(factories["test"].mapped_triples[:5, :2])
    assert scores.shape == (5, len(demo.entities))
