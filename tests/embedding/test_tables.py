"""Tables: what vectors are made of, and that penalties and files see their parts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import splime
from splime.embedding.losses import LOSSES
from splime.embedding.making import fill_parameters, make_model, parameters_of
from splime.embedding.models import MODELS
from splime.embedding.objective import Objective
from splime.embedding.tables import Lookup, Summed, Table, Timed, clifford, complex_product, project
from splime.errors import UsageError
from splime.settings import Settings
from splime.static import StaticGraph
from tests.embedding.formulas import settings_of


@pytest.fixture(scope="module")
def static() -> StaticGraph:
    rows = [("a", p, "b", year, year + n) for p in "pq" for n in range(3) for year in range(1, 9)]
    graph = splime.read(rows, split="none", granularity="year")
    return splime.Timestamp().fit_transform(graph)


def made(static: StaticGraph, **values: object) -> Table:
    settings = Settings.of({"model": "complex", "dimension": 3, **values})
    return make_model(settings, static).predicates


def test_a_lookup_shares_rows() -> None:
    weight = torch.randn(3, 4)
    table = Lookup(weight, rows=torch.tensor([2, 0, 2]))
    assert len(table) == 3
    assert torch.equal(table.vectors(), weight[[2, 0, 2]])
    assert torch.equal(table(torch.tensor([1, 2])), weight[[0, 2]])
    plain = Lookup(weight)
    assert plain.vectors() is plain.weight  # no copy


@pytest.mark.parametrize("reciprocal", [False, True])
def test_levels_add_up(static: StaticGraph, reciprocal: bool) -> None:
    """Each vector is what a loop over the scopes adds up."""
    table = made(static, levels="predicate,3,1,time,product", reciprocal=reciprocal)
    assert isinstance(table, Summed)
    scopes = static.predicates
    levels = {
        name: level.weight for name, level in table.levels.items() if isinstance(level, Lookup)
    }
    factors = table.levels["product"]
    assert isinstance(factors, Timed)
    of_predicate, of_time = (lookup.weight for lookup in factors.lookups())
    count = len(scopes) * (2 if reciprocal else 1)
    assert len(table) == count
    for id_ in range(count):
        inverse, scope = divmod(id_, len(scopes))
        source = int(scopes.sources[scope])
        place = scope - scopes.of_name(source)[0]
        coarse = sum(-(-len(scopes.of_name(name)) // 3) for name in range(source)) + place // 3
        coarser = sum(-(-len(scopes.of_name(name)) // 3) for name in range(len(scopes.names)))
        middle = (int(scopes.first[scope]) + int(scopes.last[scope])) // 2
        expected = (
            levels["predicate"][source + inverse * len(scopes.names)]
            + levels["3"][coarse + inverse * coarser]
            + levels["1"][id_]
            + levels["time"][middle]
            + of_predicate[source + inverse * len(scopes.names)] * of_time[middle]
        )
        torch.testing.assert_close(table.vectors()[id_], expected)
    assert torch.equal(table(torch.arange(count)), table.vectors())


def product(p: Tensor, t: Tensor) -> list[complex]:
    half, p, t = len(p) // 2, p.detach(), t.detach()
    return [
        complex(p[k], p[half + k]) * complex(t[k], t[half + k])
        for k in range(half)
    ]  # fmt: skip


@pytest.mark.parametrize("combine", [torch.mul, complex_product, clifford, project])
def test_timed(combine: Callable[[Tensor, Tensor], Tensor]) -> None:
    rows = torch.tensor([0, 0, 1]), torch.tensor([1, 2, 2])
    predicates, times = (Lookup(torch.randn(3, 4), rows=each) for each in rows)
    table = Timed(predicates, times, combine)
    for id_ in range(3):
        p, t = predicates.weight[rows[0][id_]], times.weight[rows[1][id_]]
        if combine is complex_product:
            numbers = product(p, t)
            expected = torch.tensor([n.real for n in numbers] + [n.imag for n in numbers])
        elif combine is project:
            expected = p - sum(a * b for a, b in zip(p, t, strict=True)) * t
        elif combine is clifford:
            (a, b, c, d), (w, x, y, z) = p, t  # of 1, e₁, e₂ and e₁₂
            expected = torch.stack(
                [
                    *(a * w + b * x + c * y - d * z, a * x + b * w - c * z + d * y),
                    *(a * y + c * w + b * z - d * x, a * z + d * w + b * y - c * x),
                ]
            )
        else:
            expected = torch.stack([a * b for a, b in zip(p, t, strict=True)])
        torch.testing.assert_close(table(torch.tensor([id_]))[0], expected)


@pytest.mark.parametrize(
    ("model", "formula"),
    [
        # The test vectors of TTransE's and TNTComplEx's public code.
        ("ttranse", -6.05),
        ("complex", -0.59375),
    ],
)
def test_known_scores(model: str, formula: float) -> None:
    s, r, o = ([0.5, -1.0, 0.25, 0.75], [1.0, 0.5, -0.5, 0.25], [-0.25, 0.5, 1.0, -0.75])
    t = [0.3, -0.2, 0.6, 0.4]
    table: Table = Lookup(torch.tensor([r]))
    if model == "ttranse":
        table = Summed({"predicate": table, "time": Lookup(torch.tensor([t]))})
    kind = MODELS[model](Lookup(torch.tensor([s, o])), table)
    entities, predicates = kind.entities.vectors(), kind.predicates.vectors()
    score = kind.score(entities[0], predicates[0], entities[1])
    assert score.item() == pytest.approx(formula, abs=1e-5)


def test_the_n3_of_tntcomplex_is_taken_of_the_product_and_of_the_static_part() -> None:
    """|r t|³ + |u|³ of the shared inputs, 8.62199912 with 2|s|³ + 2|o|³ in the public code."""
    s, r, o = ([0.5, -1.0, 0.25, 0.75], [1.0, 0.5, -0.5, 0.25], [-0.25, 0.5, 1.0, -0.75])
    t, u = [0.3, -0.2, 0.6, 0.4], [0.2, -0.4, 0.1, 0.5]
    timed = Timed(Lookup(torch.tensor([r])), Lookup(torch.tensor([t])), complex_product)
    table = Summed({"timed": timed, "static": Lookup(torch.tensor([u]))})
    model = MODELS["tntcomplex"](Lookup(torch.tensor([s, o])), table)
    cubes = [
        model.sizes(vector).pow(3).sum().item()
        for vector in (*table.parts(torch.tensor([0])), *model.entities.vectors().unsqueeze(1))
    ]
    assert cubes[0] + cubes[1] + 2 * cubes[2] + 2 * cubes[3] == pytest.approx(8.62199912, abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("model", "levels"),
    [
        ("complex", None),
        ("complex", "predicate,2,1,time"),
        ("rotate", "predicate,2,1,time"),
        ("ttranse", None),
        ("tntcomplex", None),
    ],
)
def test_penalties_are_taken_of_the_parts(
    model: str, levels: str | None, loss: str, static: StaticGraph
) -> None:
    """The gradients of a batch are those of the plain sum of all its terms."""
    settings = Settings.of(
        {
            "model": model, "dimension": 2, "loss": loss, "n3": 0.3, "smooth": 0.7, "negatives": 4,
            "batch_size": 3, "levels": levels, "reduction": "sum", "init": "uniform",
        }
    )  # fmt: skip
    made_model = make_model(settings, static).double()
    triples = torch.tensor(static.train.array()[:3].astype(np.int64))
    objective = Objective(made_model, settings, triples)
    drawn = None if LOSSES[loss].against == "all" else torch.tensor([0, 1, 1, 0])
    total = objective.backward(objective.examples(triples), drawn)
    gradients = [table.grad.clone() for table in made_model.parameters() if table.grad is not None]
    free = Objective(
        made_model, Settings.of({**settings.values(), "n3": 0.0, "smooth": 0.0}), triples
    )
    made_model.zero_grad()
    plain = free.backward(free.examples(triples), drawn)
    terms = torch.zeros((), dtype=torch.float64)
    for s, p, o in triples.tolist():
        ids = [torch.tensor([each]) for each in (s, p, o)]
        for part in (*made_model.entities.parts(ids[0]), *made_model.entities.parts(ids[2])):
            share = 2 if model == "tntcomplex" else 1
            terms = terms + share * 0.3 * made_model.sizes(part).pow(3).sum()
        for part in made_model.predicates.parts(ids[1]):
            vectors = made_model.predicate_vectors(part)
            terms = terms + 0.3 * made_model.sizes(vectors).pow(3).sum()
    for lookup in made_model.predicates.lookups():
        if lookup.follows is not None:
            pairs = [at for at, follows in enumerate(lookup.follows.tolist()) if follows]
            vectors = made_model.predicate_vectors(lookup.weight)
            apart = [(vectors[at + 1] - vectors[at]).square().sum() for at in pairs]
            terms = terms + 0.7 * sum(apart) / len(pairs)
    terms.backward()
    torch.testing.assert_close(total, plain + terms.detach())
    for table, gradient in zip(made_model.parameters(), gradients, strict=True):
        torch.testing.assert_close(table.grad, gradient)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("levels", [None, "predicate,2,1,time"])
def test_parameters_are_filled_strictly(
    model: str, levels: str | None, static: StaticGraph
) -> None:
    settings = settings_of(model, dimension=2, levels=levels, seed=3)
    if levels is not None and MODELS[model].cuts == "timestamps":
        with pytest.raises(UsageError, match="has fixed levels"):
            make_model(settings, static)
        return
    trained, empty = make_model(settings, static), make_model(settings, static, empty=True)
    tensors = {name: tensor.detach() for name, tensor in parameters_of(trained).items()}
    fill_parameters(empty, tensors)
    for name, tensor in parameters_of(empty).items():
        assert torch.equal(tensor, tensors[name]), name
    for name in tensors:
        less = {key: value for key, value in tensors.items() if key != name}
        with pytest.raises(ValueError, match=f"{name} missing"):
            fill_parameters(empty, less)
        with pytest.raises(ValueError, match=rf"{name} should be \("):
            fill_parameters(empty, {**tensors, name: tensors[name].flatten()[:1]})
        with pytest.raises(ValueError, match="float64"):
            fill_parameters(empty, {**tensors, name: tensors[name].double()})
    with pytest.raises(ValueError, match="the model has no bias"):
        fill_parameters(empty, {**tensors, "bias": torch.zeros(1)})
