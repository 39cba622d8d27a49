"""The loss of a batch and its gradients on both tables against a slow loop over its triples."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest
import torch
from torch import Tensor

import splime
from splime.embedding import objective as module
from splime.embedding.losses import LOSSES
from splime.embedding.models.base import Model
from splime.embedding.objective import Objective, smoothness
from splime.embedding.tables import Lookup, follows_in_time
from splime.methods import Merge, Timestamp
from splime.segmentation import Scopes
from splime.settings import Settings
from splime.training.trainer import make_optimizer
from tests.embedding.formulas import (
    CASES,
    entity_sizes,
    make_model,
    predicate_vector,
    score_of,
)

ENTITIES, NEGATIVES = 5, 5
SOURCES = [0, 0, 1]
"""Predicates 0 and 1 are neighbours in time. With reciprocals the inverses stand behind them."""

TRAIN = [(0, 0, 1), (2, 1, 2), (4, 2, 0), (1, 0, 1), (3, 2, 0), (0, 0, 3), (2, 1, 4)]
BATCH = TRAIN[:5]
SHARED = [1, 4, 3, 0, 3]
OWN = [[(3 * row + 2 * k + row * k) % ENTITIES for k in range(NEGATIVES)] for row in range(5)]


def plain_loss(name: str, model: Model, settings: Settings, drawn: list[Any]) -> Tensor:
    """The loss, question by question."""
    half = len(model.predicates.vectors()) // 2
    scores: dict[tuple[int, int, int], Tensor] = {}

    def f(s: int, p: int, o: int) -> Tensor:
        if (s, p, o) not in scores:
            scores[s, p, o] = score_of(name, model, s, p, o)
        return scores[s, p, o]

    def is_known(s: int, p: int, o: int) -> bool:
        inverse = settings.reciprocal and p >= half
        return ((o, p - half, s) if inverse else (s, p, o)) in TRAIN

    total = torch.zeros((), dtype=torch.float64)
    for row, (subject, predicate, object) in enumerate(BATCH):
        questions = [(subject, predicate, object)]
        if settings.reciprocal:
            questions.append((object, predicate + half, subject))
        for s, p, o in questions:
            if settings.loss == "softmax":
                if settings.corrupt != "subject":
                    every = [f(s, p, entity) for entity in range(ENTITIES)]
                    total = total - f(s, p, o) + torch.stack(every).exp().sum().log()
                if settings.corrupt != "object" and not settings.reciprocal:
                    every = [f(entity, p, o) for entity in range(ENTITIES)]
                    total = total - f(s, p, o) + torch.stack(every).exp().sum().log()
            else:
                wrong = corrupted(
                    (s, p, o), drawn[row] if settings.share == "none" else drawn, settings
                )
                left = [t for t in wrong if not (settings.avoid_known and is_known(*t))]
                total = total + plain_loss_of_one(f(s, p, o), [f(*t) for t in left], settings)
            total = total + penalties(name, model, (s, p, o), settings)
    if settings.reduction == "mean":
        total = total / len(BATCH)
    return total


def corrupted(
    triple: tuple[int, int, int], drawn: list[int], settings: Settings
) -> list[tuple[int, int, int]]:
    s, p, o = triple
    objects = len(drawn)
    if settings.corrupt == "subject":
        objects = 0
    elif settings.corrupt == "both" and not settings.reciprocal:
        objects = len(drawn) - len(drawn) // 2
    return [(s, p, x) for x in drawn[:objects]] + [(x, p, o) for x in drawn[objects:]]


def plain_loss_of_one(positive: Tensor, negative: list[Tensor], settings: Settings) -> Tensor:
    if settings.loss == "margin":
        terms = [settings.margin - positive + x for x in negative]
        return sum((x for x in terms if x > 0), torch.zeros((), dtype=torch.float64))
    if settings.loss == "bce":
        cost = sum(-torch.log(1 - torch.sigmoid(x)) for x in negative) / NEGATIVES
        return cost - torch.log(torch.sigmoid(positive))
    if settings.loss == "sampled_softmax":
        return (
            torch.stack([1 + 0 * positive, *((x - positive).exp() for x in negative)]).sum(0).log()
        )
    shares = [(settings.temperature * x).exp() for x in negative]
    weights = [share / sum(shares) for share in shares]
    if settings.weighting == "fixed":
        weights = [weight.detach() for weight in weights]
    cost = -torch.log(torch.sigmoid(settings.margin + positive))
    for weight, x in zip(weights, negative, strict=True):
        cost = cost - weight * torch.log(torch.sigmoid(-settings.margin - x))
    return cost


def penalties(name: str, model: Model, triple: tuple[int, int, int], settings: Settings) -> Tensor:
    s, p, o = triple
    own = entity_sizes(name, predicate_vector(name, model.predicates.vectors()[p]))
    ends = [entity_sizes(name, model.entities.vectors()[x]) for x in (s, o)]
    share = 2 if name == "tntcomplex" else 1  # an entity is in both of its products
    total = torch.zeros((), dtype=torch.float64)
    for weight, power in ((settings.l2, 2), (settings.n3, 3)):
        total = total + weight * (own**power).sum()
        total = total + share * weight * sum((x**power).sum() for x in ends)
    return total


def plain_smoothness(name: str, model: Model, sources: list[int], *, reciprocal: bool) -> Tensor:
    """The mean over the pairs of neighbours."""
    pairs = [(k, k + 1) for k in range(len(sources) - 1) if sources[k] == sources[k + 1]]
    if reciprocal:
        pairs += [(a + len(sources), b + len(sources)) for a, b in pairs]
    total = torch.zeros((), dtype=torch.float64)
    for a, b in pairs:
        one, other = (predicate_vector(name, model.predicates.vectors()[k]) for k in (a, b))
        total = total + sum((x - y) ** 2 for x, y in zip(one, other, strict=True))
    return total / max(1, len(pairs))


def check(name: str, norm: int, **values: Any) -> None:
    settings = Settings.of(
        {"negatives": NEGATIVES, "batch_size": len(BATCH), "margin": 1.3, **values}
    )
    predicates = len(SOURCES) * (2 if settings.reciprocal else 1)
    model = make_model(name, norm, entities=ENTITIES, predicates=predicates, dimension=2)
    drawn = OWN if settings.share == "none" else SHARED
    expected = plain_loss(name, model, settings, drawn)
    expected = expected + settings.smooth * plain_smoothness(
        name, model, SOURCES, reciprocal=settings.reciprocal
    )
    tables = [model.entities.vectors(), model.predicates.vectors()]
    gradients = torch.autograd.grad(expected, tables)

    follows = [1.0, 0.0, 0.0, 1.0, 0.0] if settings.reciprocal else [1.0, 0.0]
    model.predicates.follows = torch.tensor(follows)
    objective = Objective(model, settings, torch.tensor(TRAIN))
    found = objective.backward(
        objective.examples(torch.tensor(BATCH)),
        None if settings.loss == "softmax" else torch.tensor(drawn),
    )
    torch.testing.assert_close(found, expected.detach())
    for table, gradient in zip(tables, gradients, strict=True):
        torch.testing.assert_close(table.grad, gradient)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("name", "norm"), CASES)
def test_every_model_with_every_loss(name: str, norm: int, loss: str) -> None:
    check(name, norm, loss=loss, reduction="sum")


@pytest.mark.parametrize(("name", "norm"), CASES)
def test_every_model_with_penalties(name: str, norm: int) -> None:
    check(name, norm, loss="bce", l2=0.3, n3=0.2, smooth=0.7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["transe", "rotate", "complex"])
@pytest.mark.parametrize(
    "values",
    [
        {"corrupt": "subject"},
        {"corrupt": "object", "share": "none"},
        {"reciprocal": True, "l2": 0.2},
        {"reciprocal": True, "share": "none", "avoid_known": True, "smooth": 0.4},
        {"share": "none", "avoid_known": True, "n3": 0.2, "reduction": "sum"},
        {"avoid_known": True, "weighting": "learned", "temperature": 1.1},
    ],
    ids=lambda values: "-".join(values),
)
def test_every_loss_with_other_settings(name: str, loss: str, values: dict[str, Any]) -> None:
    check(name, 1, loss=loss, **values)


def test_some_negatives_are_known() -> None:
    """Else the tests of avoid_known would test nothing, in either direction."""
    for settings, drawn in (
        (Settings(negatives=NEGATIVES), [SHARED] * 5),
        (Settings(negatives=NEGATIVES), OWN),
        (Settings(negatives=NEGATIVES, reciprocal=True), OWN),
    ):
        known = [
            t in TRAIN
            for triple, row in zip(BATCH, drawn, strict=True)
            for t in corrupted(triple, row, settings)
        ]
        assert 0 < sum(known) < len(known)
    back = [(x, p, o) in TRAIN for (_, p, o), row in zip(BATCH, OWN, strict=True) for x in row]
    assert 0 < sum(back) < len(back)


@pytest.mark.parametrize("share", ["batch", "none"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("name", "reciprocal"), [("rotate", False), ("complex", True)])
def test_the_size_of_parts_does_not_matter(
    name: str, reciprocal: bool, loss: str, share: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.of(
        {"loss": loss, "share": share, "negatives": NEGATIVES, "reciprocal": reciprocal, "l2": 0.1}
    )
    drawn = None if loss == "softmax" else torch.tensor(OWN if share == "none" else SHARED)
    results = []
    for size in (1, 2 * NEGATIVES * 4, 1 << 22):
        monkeypatch.setitem(module._PART, "cpu", size)
        model = make_model(name, predicates=6)
        found = Objective(model, settings, torch.tensor(TRAIN)).backward(torch.tensor(BATCH), drawn)
        results.append((found, model.entities.vectors().grad, model.predicates.vectors().grad))
    for other in results[1:]:
        torch.testing.assert_close(results[0], other)


def test_negatives_are_asked_for() -> None:
    model = make_model("transe")
    objective = Objective(model, Settings(negatives=4), torch.tensor(TRAIN))
    with pytest.raises(ValueError, match="needs negatives"):
        objective.backward(torch.tensor(BATCH), None)


# Sparse gradients


def large(settings: Settings) -> Objective:
    return Objective(make_model("transe", entities=400), settings, torch.tensor(TRAIN))


def test_when_gradients_are_sparse() -> None:
    few = {"batch_size": 5, "negatives": 10}  # 20 entities at most, of 400
    assert large(Settings.of({**few, "optimizer": "adagrad"})).model.entities.sparse
    assert large(Settings.of({**few, "optimizer": "sgd"})).model.entities.sparse
    assert not large(Settings.of({**few, "optimizer": "adam"})).model.entities.sparse
    assert not large(
        Settings.of({**few, "optimizer": "sgd", "loss": "softmax"})
    ).model.entities.sparse
    assert not large(
        Settings.of({**few, "optimizer": "sgd", "batch_size": 20})
    ).model.entities.sparse
    # Of their own, five positives have 50 negatives.
    assert not large(
        Settings.of({**few, "optimizer": "sgd", "share": "none"})
    ).model.entities.sparse


@pytest.mark.parametrize("share", ["batch", "none"])
@pytest.mark.parametrize("optimizer", ["adagrad", "sgd"])
def test_sparse_steps_are_dense_steps(
    optimizer: str, share: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(module._PART, "cpu", 30)  # several parts, whose gradients are added
    settings = Settings.of(
        {
            "optimizer": optimizer,
            "share": share,
            "batch_size": 5,
            "negatives": 6,
            "learning_rate": 0.1,
            "l2": 0.1,
        }
    )
    generator = torch.Generator().manual_seed(6)
    drawn = torch.randint(400, (3, 6) if share == "batch" else (3, 5, 6), generator=generator)
    tables = []
    for sparse in (False, True):
        objective = large(settings)
        entities = objective.model.entities
        assert isinstance(entities, Lookup)
        assert entities.sparse
        entities.sparse = sparse
        stepper = make_optimizer(objective.model, settings)
        before = objective.model.entities.vectors().detach().clone()
        for step in range(3):
            stepper.zero_grad(set_to_none=True)
            objective.backward(torch.tensor(BATCH), drawn[step])
            gradient = entities.weight.grad
            assert gradient is not None
            assert gradient.is_sparse == sparse
            stepper.step()
        tables.append([table.detach() for table in objective.model.parameters()])
        moved = (tables[-1][0] != before).any(1).nonzero().flatten().tolist()
        assert set(moved) == {x for s, _, o in BATCH for x in (s, o)} | set(
            drawn.flatten().tolist()
        )
    torch.testing.assert_close(tables[0], tables[1])


# Smoothness


def segmentations() -> list[Callable[[], Scopes]]:
    facts = [
        ("a", p, "b", begin, begin + length)
        for p, begins in (("p", range(1, 9)), ("q", (1, 2)), ("r", (3,)), ("s", (1, 5, 9)))
        for begin in begins
        for length in (0, 1)
    ]
    return [
        lambda: Timestamp().fit(splime.read(facts, split="none")).predicates,
        lambda: Merge(shrink=2).fit(splime.read(facts, split="none")).predicates,
    ]


@pytest.mark.parametrize("make", segmentations(), ids=["timestamp", "merge"])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_smoothness(make: Callable[[], Scopes], reciprocal: bool) -> None:
    scopes = make()
    sources = [scopes.scope(piece).source for piece in range(len(scopes))]
    assert len(set(sources)) < len(sources) - 3
    numbers = [sorted(set(sources)).index(source) for source in sources]
    follows = follows_in_time(scopes, copies=1 + reciprocal)
    count = len(scopes) * (2 if reciprocal else 1)
    assert follows.tolist() == [
        float(k % len(scopes) != len(scopes) - 1)
        and float(sources[k % len(scopes)] == sources[(k + 1) % len(scopes)])
        for k in range(count - 1)
    ]
    model = make_model("distmult", predicates=count)
    expected = plain_smoothness("distmult", model, numbers, reciprocal=reciprocal)
    assert isinstance(model.predicates, Lookup)
    found = smoothness(model, model.predicates, follows)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found, model.predicates.vectors()),
        torch.autograd.grad(expected, model.predicates.vectors()),
    )


def test_smoothness_without_neighbours() -> None:
    model = make_model("distmult")
    assert smoothness(model, Lookup(torch.randn(1, 4)), torch.zeros(0)) == 0
    assert smoothness(model, Lookup(torch.randn(3, 4)), torch.zeros(2)) == 0


def test_angles_are_neighbours_across_the_circle() -> None:
    """π - 0.01 and -π + 0.01 turn alike; RotatE's smoothness must see that."""
    model = make_model("rotate", predicates=2)
    with torch.no_grad():
        model.predicates.vectors()[0] = torch.pi - 0.01
        model.predicates.vectors()[1] = -torch.pi + 0.01
    assert isinstance(model.predicates, Lookup)
    found = smoothness(model, model.predicates, torch.ones(1))
    assert float(found.detach()) == pytest.approx(3 * 0.02**2, rel=1e-3)


def test_examples_of_the_same_question_stand_together() -> None:
    triples = [(0, 1, 2), (3, 0, 1), (0, 1, 4), (3, 0, 0), (0, 0, 2)]
    settings = Settings(model="complex", loss="softmax", reciprocal=True, dimension=2)
    model = make_model("complex", 1, entities=5, predicates=4, dimension=2)
    objective = Objective(model, settings, torch.tensor(triples))
    rows = objective.examples(torch.tensor(triples)).tolist()
    # The inverses of predicates 0 and 1 are 2 and 3.
    both = [*triples, *((o, p + 2, s) for s, p, o in triples)]
    assert sorted(map(tuple, rows)) == sorted(both)
    questions = [(s, p) for s, p, _ in rows]
    assert len(list(groupby(questions))) == len(set(questions))


def test_a_gpu_scores_every_row_and_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # A recorded step cannot tell how many questions it has; its way is tried here.
    triples = torch.tensor([(0, 1, 2), (3, 0, 1), (0, 1, 4), (3, 0, 0), (0, 0, 2)])
    settings = Settings(model="complex", loss="softmax", reciprocal=True, dimension=2, n3=0.1)
    found = []
    for together in (True, False):
        model = make_model("complex", 1, entities=5, predicates=4, dimension=2)
        objective = Objective(model, settings, triples)
        if not together:
            monkeypatch.setattr(Objective, "_distinct", lambda *_: (slice(None), None))
        loss = objective.backward(objective.examples(triples), None)
        found.append((loss, model.entities.vectors().grad, model.predicates.vectors().grad))
    torch.testing.assert_close(found[0], found[1])
