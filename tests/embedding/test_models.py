"""Every model of the registry keeps the same promises; a new one is tested by being listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode

from splime.embedding import distances
from splime.embedding.initial import INITIALISERS, make_weights
from splime.embedding.models.base import Model
from splime.embedding.scorer import ModelScorer
from splime.errors import UsageError
from splime.settings import Settings
from splime.training.registry import make_settings
from tests.embedding.formulas import CASES, make_model, plain_model, score_of

every_model = pytest.mark.parametrize(("name", "norm"), CASES)


def all_scores(name: str, model: Model) -> Tensor:
    """The scores of all triples `(s, p, o)`, one by one."""
    with torch.no_grad():
        return torch.tensor(
            [
                [
                    [score_of(name, model, s, p, o) for o in range(len(model.entities.vectors()))]
                    for p in range(len(model.predicates.vectors()))
                ]
                for s in range(len(model.entities.vectors()))
            ],
            dtype=torch.float64,
        )


@every_model
def test_the_formula(name: str, norm: int) -> None:
    model = make_model(name, norm)
    s, p, o = (
        model.entities.vectors()[:, None, None],
        model.predicates.vectors()[None, :, None],
        model.entities.vectors(),
    )
    torch.testing.assert_close(model.score(s, p, o), all_scores(name, model))


@every_model
@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize("side", ["object", "subject", "predicate"])
def test_candidates_score_as_their_triples(name: str, norm: int, own: bool, side: str) -> None:
    model, questions, candidates = make_model(name, norm), 5, 4
    generator = torch.Generator().manual_seed(1)

    def some(table: Tensor, *shape: int) -> Tensor:
        ids = torch.randint(len(table), shape, generator=generator)
        return table.detach()[ids].requires_grad_()

    one = some(
        model.entities.vectors() if side != "subject" else model.predicates.vectors(), questions
    )
    other = some(
        model.predicates.vectors() if side == "object" else model.entities.vectors(), questions
    )
    shape = (questions, candidates) if own else (candidates,)
    offered = some(
        model.predicates.vectors() if side == "predicate" else model.entities.vectors(), *shape
    )
    first, second = one.unsqueeze(1), other.unsqueeze(1)
    if side == "object":
        found = model.compare(model.object_query(one, other), offered)
        expected = model.score(first, second, offered)
    elif side == "subject":
        found = model.compare(model.subject_query(one, other), offered)
        expected = model.score(offered, first, second)
    else:
        found = model.compare_predicates(model.predicate_query(one, other), offered)
        expected = model.score(first, offered, second)
    assert found.shape == (questions, candidates)
    torch.testing.assert_close(found, expected)

    weights = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    inputs = [one, other, offered]
    torch.testing.assert_close(
        torch.autograd.grad((found * weights).sum(), inputs),
        torch.autograd.grad((expected * weights).sum(), inputs),
    )


@every_model
def test_scores_by_ids(name: str, norm: int) -> None:
    model = make_model(name, norm)
    scores, scorer = all_scores(name, model), ModelScorer(model)
    s, p, o = torch.tensor([0, 5, 2, 2]), torch.tensor([3, 0, 0, 1]), torch.tensor([1, 1, 2, 4])
    torch.testing.assert_close(scorer.objects(s, p), scores[s, p])
    torch.testing.assert_close(scorer.subjects(p, o), scores[:, p, o].T)
    torch.testing.assert_close(scorer.predicates(s, o), scores[s, :, o])


@every_model
def test_scores_by_ids_with_reciprocal_predicates(name: str, norm: int) -> None:
    model = make_model(name, norm, predicates=6)  # 3 and their inverses
    scores, scorer = all_scores(name, model), ModelScorer(model, Settings(reciprocal=True))
    s, p, o = torch.tensor([0, 5, 2]), torch.tensor([2, 0, 1]), torch.tensor([1, 1, 2])
    torch.testing.assert_close(scorer.objects(s, p), scores[s, p])
    torch.testing.assert_close(scorer.subjects(p, o), scores[o, p + 3])
    both = [
        [(scores[a, k, b] + scores[b, k + 3, a]) / 2 for k in range(3)]
        for a, b in zip(s, o, strict=True)
    ]
    torch.testing.assert_close(scorer.predicates(s, o), torch.tensor(both, dtype=torch.float64))


def test_scoring_keeps_nothing_for_gradients() -> None:
    scorer, ids = ModelScorer(make_model("rotate")), torch.tensor([0, 1])
    for scores in (
        scorer.objects(ids, ids),
        scorer.subjects(ids, ids),
        scorer.predicates(ids, ids),
    ):
        assert not scores.requires_grad


@every_model
def test_gradients_are_numbers_where_distances_are_0(name: str, norm: int) -> None:
    model = make_model(name, norm)
    with torch.no_grad():
        model.entities.vectors().zero_()
        model.predicates.vectors()[:, : model.predicates.vectors().shape[1] // 2].zero_()
        model.predicates.vectors()[1:].zero_()
    vs, vp = model.entities.vectors()[:4], model.predicates.vectors()
    scores = [
        model.score(vs, vp, vs),
        model.compare(model.object_query(vs, vp), model.entities.vectors()),
        model.compare(model.object_query(vs, vp), model.entities.vectors().expand(4, -1, -1)),
        model.compare(model.subject_query(vp, vs), model.entities.vectors()),
        model.compare_predicates(model.predicate_query(vs, vs), model.predicates.vectors()),
        model.sizes(vs).pow(3),
    ]
    for found in scores:
        gradients = torch.autograd.grad(
            found.sum(), list(model.parameters()), retain_graph=True, allow_unused=True
        )
        assert all(part.isfinite().all() for part in gradients if part is not None)


class _Largest(TorchDispatchMode):
    """Notes the numbers in the largest tensor that is made; a view of another is none."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for part in made if isinstance(made, tuple | list) else (made,):
            if isinstance(part, Tensor):
                size = part.untyped_storage().nbytes() // part.element_size()
                self.numbers = max(self.numbers, size)
        return made


@contextmanager
def kept() -> Iterator[list[Tensor]]:
    """What autograd keeps for the way back."""
    tensors: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        tensors.append(tensor)
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        yield tensors


@every_model
@pytest.mark.parametrize("side", ["object", "subject", "predicate"])
def test_nothing_of_queries_x_candidates_x_dimensions(
    name: str, norm: int, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = m = 64
    model = make_model(name, norm, entities=m, predicates=m, dimension=32)
    monkeypatch.setitem(distances._BLOCK, "cpu", 4 * model.entities.vectors().numel())
    vs, vp, vo = (
        model.entities.vectors()[:n],
        model.predicates.vectors()[:n],
        model.entities.vectors()[-n:],
    )
    with _Largest() as largest:
        with kept() as tensors:
            if side == "predicate":
                query = model.predicate_query(vs, vo)
                scores = model.compare_predicates(query, model.predicates.vectors())
            elif side == "object":
                scores = model.compare(model.object_query(vs, vp), model.entities.vectors())
            else:
                scores = model.compare(model.subject_query(vp, vo), model.entities.vectors())
        scores.sum().backward()
    assert n * m <= largest.numbers <= n * m * 32 / 4
    if side != "predicate":  # nothing is trained with those
        storages = {part.untyped_storage().data_ptr(): part.numel() for part in tensors}
        assert sum(storages.values()) <= n * m * 32 / 2


Distance = Callable[[Tensor, Tensor], Tensor]
DISTANCES: list[Distance] = [
    distances.dot,
    distances.l1,
    distances.l2,
    distances.squared,
    distances.moduli,
]


@pytest.mark.parametrize("distance", DISTANCES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("shape", [(5, 4), (3, 5, 4)], ids=["shared", "own"])
@pytest.mark.parametrize("block", [1, 1 << 19])
def test_gradients_of_distances(
    distance: Distance, shape: tuple[int, ...], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(distances._BLOCK, "cpu", block)
    generator = torch.Generator().manual_seed(2)
    query = torch.randn(3, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    candidates = torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(distance, (query, candidates))


def test_distances() -> None:
    query = torch.tensor([[3.0, 0.0, 0.0, 4.0], [1.0, 1.0, 1.0, 1.0]])
    candidates = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0], [3.0, 4.0, 0.0, 1.0]])
    expected = {
        distances.dot: [[0, 4, 13], [0, 3, 8]],
        distances.l1: [[7, 8, 7], [4, 1, 6]],
        distances.squared: [[25, 20, 25], [4, 1, 14]],
        distances.l2: [[5, 20**0.5, 5], [2, 1, 14**0.5]],
        # |3 + 0i| + |0 + 4i|; of the second part 0 + 4i is compared with 1 + 1i; ...
        distances.moduli: [[7, 10**0.5 + 10**0.5, 5], [2 * 2**0.5, 1, 5**0.5 + 3]],
    }
    for distance, numbers in expected.items():
        wanted = torch.tensor(numbers, dtype=torch.float32)
        torch.testing.assert_close(distance(query, candidates), wanted)
        torch.testing.assert_close(distance(query, candidates.expand(2, 3, 4)), wanted)


def test_dimensions_and_norms_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match="TransH needs a dimension of at least 2, not 1"):
        plain_model("transh", 3, 3, 1)
    with pytest.raises(UsageError, match="TransE measures distances with norm 1 or 2, not 3"):
        plain_model("transe", 3, 3, 4, norm=3)
    assert plain_model("distmult", 3, 3, 4, norm=3).score(*torch.ones(3, 4)) == 4  # it has no norm


@pytest.mark.parametrize(
    ("init", "deviation", "most"),
    [
        ("xavier_normal", (2 / 1040) ** 0.5, None),
        ("xavier_uniform", (2 / 1040) ** 0.5, (6 / 1040) ** 0.5),
        ("uniform", 0.3 / 3**0.5, 0.3),
        ("small_normal", 1e-3, None),
    ],
)
def test_initialisers(init: str, deviation: float, most: float | None) -> None:
    table = make_weights(init, 1000, 40, torch.Generator().manual_seed(3), spread=0.3)
    assert table.shape == (1000, 40)
    assert float(table.std()) == pytest.approx(deviation, rel=0.02)
    assert abs(float(table.mean())) < 0.02 * deviation
    if most is None:
        assert float(table.abs().max()) > 3 * deviation
    else:
        assert 0.99 * most < float(table.abs().max()) <= most


def test_every_initialiser_is_tested_and_a_wrong_one_is_an_error() -> None:
    assert set(INITIALISERS) == {"xavier_normal", "xavier_uniform", "uniform", "small_normal"}
    with pytest.raises(UsageError, match=r"no initialiser 'xavier_norml'.*mean xavier_normal"):
        make_settings("transe", init="xavier_norml")
