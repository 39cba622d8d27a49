"""Models that know time: numbers worked out elsewhere, and loops over the times of a graph."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import splime
from splime.embedding.losses import LOSSES
from splime.embedding.making import make_model
from splime.embedding.models import MODELS
from splime.embedding.models.atise import drifted
from splime.embedding.models.base import Model
from splime.embedding.models.sequences import Sequences
from splime.embedding.models.tdg2e import GatedTimes
from splime.embedding.objective import Objective, size_penalty, smoothness
from splime.embedding.scorer import ModelScorer
from splime.embedding.tables import Lookup, clifford, complex_product, project
from splime.errors import UsageError
from splime.graph import TemporalGraph
from splime.methods import at_every_timestamp
from splime.scoring.scoped import ScopedScoring
from splime.scoring.scoping import Kind, Scoping
from splime.settings import Settings
from splime.static import StaticGraph, apply
from splime.training.registry import make_settings
from splime.training.trainer import Trainer
from tests.embedding.formulas import settings_of

TIMED = [name for name, kind in MODELS.items() if kind.cuts == "timestamps"]
every_rival = pytest.mark.parametrize("name", TIMED)


def real(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


S, R = real(0.5, -1, 0.25, 0.75), real(1, 0.5, -0.5, 0.25)
O = real(-0.25, 0.5, 1, -0.75)  # noqa: E741  # the object of all of them
T, U, V = real(0.3, -0.2, 0.6, 0.4), real(0.2, -0.4, 0.1, 0.5), real(-0.6, 0.8, 0.4, -0.1)
NOTHING = torch.zeros(1, 1)


def model(name: str, **values: Any) -> Model:
    """A model without tables, to score vectors with."""
    return MODELS[name](Lookup(NOTHING), Lookup(NOTHING), **values)


def score(name: str, s: Tensor, p: Tensor, o: Tensor, **values: Any) -> float:
    return float(model(name, **values).score(s, p, o).detach())


# The vectors


def test_ttranse() -> None:
    assert score("ttranse", S, R + T, O) == pytest.approx(-6.05)
    assert score("ttranse", S, R + T, O, norm=2) ** 2 == pytest.approx(10.6875)


@pytest.mark.parametrize(
    ("w", "l1", "squared"),
    [(T, 5.5475, 8.07240625), (T / T.norm(), 5.43846154, 7.98653846)],
    ids=["as it is", "length 1"],
)
def test_hyte(w: Tensor, l1: float, squared: float) -> None:
    s, p, o = (project(x, w) for x in (S, R, O))
    assert score("hyte", s, p, o) == pytest.approx(-l1, abs=1e-6)
    assert score("hyte", s, p, o, norm=2) ** 2 == pytest.approx(squared, abs=1e-6)


def test_ta() -> None:
    one = torch.eye(2, dtype=torch.float64)
    rows = torch.zeros(1, dtype=torch.int64)
    predicates, tokens = Lookup(R[:2][None].clone(), rows=rows), torch.stack([T[:2], U[:2]])
    table = Sequences(predicates, Lookup(tokens), torch.tensor([[0, 1]]))
    table.input = nn.Parameter(torch.cat([0.5 * one, 0.25 * one, one, 2 * one]))
    table.recurrent = nn.Parameter(torch.cat([0.1 * one, 0.2 * one, 0.3 * one, 0.4 * one]))
    table.bias = nn.Parameter(real(0.1, 0.1, 1, 1, 0, 0, 0.05, 0.05))
    made = table.vectors()[0].detach()
    assert made.tolist() == pytest.approx([1.11532876, -0.03035020], abs=1e-6)
    assert score("ta-transe", S[:2], made, O[:2]) == pytest.approx(-3.39567896, abs=1e-6)
    assert score("ta-distmult", S[:2], made, O[:2]) == pytest.approx(-0.12424100, abs=1e-6)


def diachronic(e: int, q: int) -> list[float]:
    """Static part, amplitudes, frequencies and phases of the test vector."""
    units = range(3)
    return [
        0.5 + 0.25 * e - 0.5 * q,
        *(0.1 * (1 + e + 2 * q + k) for k in units),
        *(0.01 * (1 + k + e) for k in units),
        *(0.2 * (q + 1) - 0.1 * k for k in units),
    ]


def test_de() -> None:
    date = real(2014, 3, 6)[None]
    for name, heads, p, expected in (
        ("de-simple", (0, 1), real(1, 0.5, -0.5, 0.25), 0.10345141),
        ("de-distmult", (0,), real(1, 0.5), 0.39559288),
        ("de-transe", (0,), real(1, 0.5), -0.88136204),
    ):
        made = model(name, norm=2)
        made.moving, made.dates = 1, date  # type: ignore[assignment]
        s, o = (
            made.at(real(*(x for q in heads for x in diachronic(e, q))), torch.tensor(0))
            for e in (0, 1)
        )
        if name == "de-simple":
            assert s[[1, 3]].tolist() == pytest.approx([0.18524986, 0.62422515], abs=1e-6)
            assert o[[1, 3]].tolist() == pytest.approx([0.22232542, 0.50966335], abs=1e-6)
        assert float(made.score(s, p, o)) == pytest.approx(expected, abs=1e-6)


def test_atise() -> None:
    s = real(*S[:2], 0.25, 0.75, 0.2, -0.1, 0.05, 0.11, 0.1, 0.2, 0.1)
    o = real(*O[:2], 1, -0.75, 0.3, 0.4, 0.07, -0.02, 0.3, 0.05, -0.2)
    p = real(*R[:2], -0.5, 0.25, -0.1, 0.2, 0.01, 0.03, 0.2, 0.4, 0.05)
    of_100_steps = real(1, 1, 1, 1, 1, 1, 100, 100, 1, 1, 100)  # omega and alpha
    s, p, o = (drifted(x * of_100_steps, torch.tensor(3)) for x in (s, p, o))
    assert s[:2].tolist() == pytest.approx([0.7368034, -0.8626307], abs=1e-6)
    assert p[:2].tolist() == pytest.approx([0.9062619, 0.6446654], abs=1e-6)
    assert o[:2].tolist() == pytest.approx([-0.5594251, 0.8027502], abs=1e-6)
    assert score("atise", s, p, o) == pytest.approx(-9.13789802, abs=1e-6)


def test_tdg2e() -> None:
    one = torch.eye(2, dtype=torch.float64)
    inputs = Lookup(torch.stack([T[:2], V[:2]]), rows=torch.arange(2))
    times = GatedTimes(inputs, real(0, 10), None)
    times.input = times.recurrent = nn.Parameter(torch.cat([0.5 * one, 0.25 * one, one]))
    times.gate = nn.Parameter(torch.tensor([[-0.1, -0.05], [1, 1]], dtype=torch.float64))
    first, w = times.weight
    h = real(0.1347525, -0.1036179)
    torch.testing.assert_close(first, h / h.norm(), atol=1e-6, rtol=0)
    assert w.tolist() == pytest.approx([-0.7371555, 0.6757231], abs=1e-6)
    s, p, o = (project(x[:2], w) for x in (S, R, O))
    assert score("tdg2e", s, p, o) == pytest.approx(-0.62923951, abs=1e-6)


def test_tcomplex_and_tntcomplex() -> None:
    assert score("complex", S, R, O) == pytest.approx(-0.59375)
    timed = complex_product(R, T)
    assert score("tcomplex", S, timed, O) == pytest.approx(0.596875)
    assert score("tntcomplex", S, timed + U, O) == pytest.approx(1.290625)


def test_tero() -> None:
    made = model("tero")
    made.angles = nn.Parameter(torch.stack([T[:2], V[:2]]))
    total = 0.0
    for p, time, expected in ((R, 0, 3.72762372), (U, 1, 7.77606863)):
        s, o = (made.at(x, torch.tensor(time)) for x in (S, O))
        total -= float(made.score(s, p, o).detach())
        assert total == pytest.approx(expected, abs=1e-6)


def test_telm() -> None:
    timed = clifford(R, T)
    assert timed.tolist() == pytest.approx([-0.2, 0.3, 0.7, 0.675])
    assert score("telm", S, timed, O) == pytest.approx(0.8703125)


def test_timeplex() -> None:
    terms = {(0, 0, 0): -0.59375, (1, 0, 0): -0.59375 - 0.2425, (0, 1, 0): -0.59375 - 0.45}
    terms |= {(0, 0, 1): -0.59375 + 0.7375, (5, 5, 5): -0.36875, (5, 5, 0): -4.05625}
    made = model("timeplex")
    for weights, expected in terms.items():
        made.weights = weights  # type: ignore[assignment]
        assert float(made.score(S, torch.cat([R, U, V, T]), O)) == pytest.approx(expected)


def test_penalties() -> None:
    timed = complex_product(R, T)
    n3 = size_penalty(model("tcomplex"), [S], [timed], [O], 3)
    assert float(n3) == pytest.approx(4.39289535, abs=1e-6)
    n3 = size_penalty(model("tntcomplex"), [S], [timed, U], [O], 3)
    assert float(n3) == pytest.approx(8.62199912, abs=1e-6)
    table, follows = torch.stack([T, V, U]), torch.ones(2)
    smooth = smoothness(model("tcomplex"), Lookup(table), follows, cubes=True)
    assert float(smooth.detach()) == pytest.approx(2.60993473, abs=1e-6)
    lookup = Lookup(table[:2])
    lookup.drift = torch.nn.Parameter(U[None])
    smooth = smoothness(model("tcomplex"), lookup, follows[:1], cubes=True)
    assert float(smooth.detach()) == pytest.approx(6.57480461, abs=1e-6)


def test_the_log_loss_of_atise_and_tero_is_ours_without_its_half() -> None:
    settings = Settings(loss="self_adversarial", margin=1.0, temperature=0.5, weighting="learned")
    loss = LOSSES[settings.loss].compute(real(-0.4), real(-0.9, -2.0)[None], settings)
    assert float(loss) / 2 == pytest.approx(0.51207383, abs=1e-6)


# Over a graph, with literal loops


def graph_of(kind: str) -> TemporalGraph:
    """Events by day, or facts with intervals by year, some of them open; all three splits."""
    draw = np.random.default_rng(0)
    rows: list[tuple[Any, ...]] = []
    for _ in range(60):
        s, p, o = draw.integers(7), draw.integers(3), draw.integers(7)
        names = f"e{s}", f"p{p}", f"e{o}"
        if kind == "events":
            rows.append((*names, f"2014-0{draw.integers(1, 4)}-1{draw.integers(0, 3)}"))
        else:
            begin = int(draw.integers(1990, 1999))
            hidden = draw.integers(5)
            end = begin + int(draw.integers(4))
            rows.append((*names, None if hidden == 1 else begin, None if not hidden else end))
    splits = {"train": rows[:40], "valid": rows[40:50], "test": rows[50:]}
    return splime.read(splits, granularity="day" if kind == "events" else "year")


@pytest.fixture(scope="module", params=["events", "intervals"])
def graph(request: pytest.FixtureRequest) -> TemporalGraph:
    return graph_of(request.param)


def grid(graph: TemporalGraph) -> StaticGraph:
    return apply(at_every_timestamp(splime.Timestamp().fit(graph), graph), graph)


def made(name: str, static: StaticGraph, **values: Any) -> Model:
    """A model in float64 with weights that matter."""
    settings = settings_of(name, dimension=3, **values)
    model = make_model(settings, static).double()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for table in model.parameters():
            drawn = torch.rand(table.shape, generator=generator, dtype=torch.float64)
            table.copy_(0.1 + 0.8 * drawn if name == "atise" else 2 * drawn - 1)
    return model


@torch.no_grad()
def scores_of(model: Model, p: Tensor) -> Tensor:
    """Scores of all pairs of entities and some predicates, `(s, o, p)`, one predicate at a time."""
    entities, columns = model.entities.vectors(), []
    for number in p.tolist():
        own = entities
        if model.time_of is not None:
            own = model.at(entities, model.time_of[number])
        predicate = model.predicates(torch.tensor([number]))[0]
        columns.append(model.score(own[:, None], predicate, own[None]))
    return torch.stack(columns, dim=-1)


@every_rival
@pytest.mark.parametrize("each", ["fact", "ends"])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_scores_by_ids(name: str, each: str, reciprocal: bool, graph: TemporalGraph) -> None:
    static = grid(graph)
    made_one = made(name, static, each=each, reciprocal=reciprocal)
    own = len(static.predicates) * (1 + (each == "ends"))
    assert len(made_one.predicates) == own * (1 + reciprocal)
    scores = scores_of(made_one, torch.arange(len(made_one.predicates))).detach()
    scorer = ModelScorer(made_one, Settings.of({"reciprocal": reciprocal, "each": each}))
    x, p = torch.tensor([0, 5, 2, 2, 1]), torch.tensor([own - 1, 0, 0, own // 2, 3])
    torch.testing.assert_close(scorer.objects(x, p), scores[x, :, p])
    back = scores[x, :, p + own] if reciprocal else scores[:, x, p].T
    torch.testing.assert_close(scorer.subjects(p, x), back)
    o = torch.tensor([3, 3, 1, 0, 1])
    both = scores[x, o, :own]
    if reciprocal:
        both = (both + scores[o, x, own:]) / 2
    torch.testing.assert_close(scorer.predicates(x, o), both)


@every_rival
def test_questions_asked_both_ways(name: str, graph: TemporalGraph) -> None:
    static = grid(graph)
    model, half = made(name, static, reciprocal=True), len(static.predicates)
    scores = scores_of(model, torch.arange(2 * half)).detach()
    settings = settings_of(name, reciprocal=True, both_ways=True)
    scorer = ModelScorer(model, settings)
    x, p = torch.tensor([0, 5, 2, 2]), torch.tensor([half - 1, 0, 0, 4])
    both = scores[x, :, p] + scores[:, x, p + half].T
    torch.testing.assert_close(scorer.objects(x, p), both)
    both = scores[:, x, p].T + scores[x, :, p + half]
    torch.testing.assert_close(scorer.subjects(p, x), both)


def test_dropout() -> None:
    """Coordinates of each positive are dropped from all its vectors, others in each step."""
    static = grid(graph_of("events"))
    values: dict[str, Any] = {"dimension": 400, "dropout": 0.25, "negatives": 4, "seed": 3}
    settings = settings_of("de-distmult", **values)
    model = make_model(settings, static)
    objective = Objective(model, settings, torch.from_numpy(static.train.array().astype(np.int64)))
    ones = torch.ones(50, 400)
    s, p, o, shared = objective._dropped(ones, ones, ones, torch.ones(4, 400))
    _, _, _, own = objective._dropped(ones, ones, ones, torch.ones(50, 4, 400))
    assert all(torch.equal(s, other) for other in (p, o))
    assert torch.equal(shared, own)
    assert torch.equal(shared, s.unsqueeze(1).expand(50, 4, 400))
    products = s * p * o  # those that are left are larger, so that the mean stays
    assert products.unique().tolist() == pytest.approx([0, 4 / 3])
    assert float((s == 0).double().mean()) == pytest.approx(0.25, abs=0.01)
    assert len((s == 0).unique(dim=0)) == 50
    objective.steps_taken += 1
    other = objective._dropped(ones, ones, ones, ones)[0]
    both = float(((s == 0) & (other == 0)).double().mean())
    assert both == pytest.approx(0.25**2, abs=0.01)
    with pytest.raises(UsageError, match="softmax has no dropout"):
        make_settings("de-simple", dropout=0.1)


@pytest.mark.parametrize("loss", ["self_adversarial", "softmax"])
def test_the_scope_before(graph: TemporalGraph, loss: str) -> None:
    """TDG2E's loss has a tenth of that with the normals of the times before."""
    static = grid(graph)
    model = made("tdg2e", static)
    assert model.previous is not None
    size = len(graph.timeline)
    assert model.previous.tolist() == [
        number - (number % size > 0) for number in range(len(static.predicates))
    ]
    settings = settings_of("tdg2e", loss=loss, dimension=3, negatives=4)
    triples = torch.from_numpy(static.train.array()[:6].astype(np.int64))
    drawn = None if loss == "softmax" else torch.tensor([0, 3, 6, 2])
    objective = Objective(model, settings, triples)
    before = triples.clone()
    before[:, 1] = model.previous[triples[:, 1]]
    whole = objective.backward(triples, drawn)
    model.previous = None
    own, other = (objective.backward(each, drawn) for each in (triples, before))
    torch.testing.assert_close(whole, own + 0.1 * other)


SETTINGS: list[dict[str, Any]] = [
    {"loss": "softmax", "reciprocal": True, "n3": 0.1, "smooth": 0.3, "smooth_cubes": True},
    {"loss": "softmax", "each": "ends"},
    {"loss": "self_adversarial", "weighting": "learned", "share": "none", "negatives": 4},
    {"loss": "margin", "share": "batch", "negatives": 4, "unit": "penalty", "l2": 0.1},
]


@every_rival
@pytest.mark.parametrize("values", SETTINGS, ids=["all", "ends", "own", "shared"])
def test_gradients(name: str, values: dict[str, Any]) -> None:
    """Of the whole objective, against finite differences, in a random direction."""
    graph = graph_of("intervals" if values.get("each") == "ends" else "events")
    static = grid(graph)
    model = made(name, static, **values)
    settings = settings_of(name, dimension=3, **values)
    triples = torch.from_numpy(static.train.array()[:6].astype(np.int64))
    drawn = None
    if settings.loss != "softmax":
        shape = (6, 4) if settings.share == "none" else (4,)
        drawn = torch.randint(7, shape, generator=torch.Generator().manual_seed(5))
    objective = Objective(model, settings, triples)
    examples = objective.examples(triples)
    objective.backward(examples, drawn)
    generator = torch.Generator().manual_seed(9)
    parameters = list(model.parameters())
    ways = [torch.randn(x.shape, generator=generator, dtype=torch.float64) for x in parameters]
    slope = sum(
        float((x.grad * way).sum())
        for x, way in zip(parameters, ways, strict=True)
        if x.grad is not None
    )

    def loss(step: float) -> float:
        with torch.no_grad():
            for x, way in zip(parameters, ways, strict=True):
                x.add_(step * way)
        value = float(objective.backward(examples, drawn))
        with torch.no_grad():
            for x, way in zip(parameters, ways, strict=True):
                x.sub_(step * way)
        return value

    step = 1e-8  # a year is multiplied by a frequency
    assert slope == pytest.approx((loss(step) - loss(-step)) / (2 * step), rel=1e-4, abs=1e-4)


@every_rival
@pytest.mark.parametrize("loss", ["softmax", "margin"])
def test_the_loss_of_a_batch_is_that_of_its_triples(name: str, loss: str) -> None:
    static = grid(graph_of("events"))
    model = made(name, static)
    model.previous = None  # a test of its own
    chosen: dict[str, Any] = {"loss": loss, "negatives": 4, "reduction": "sum", "margin": 2}
    settings = settings_of(name, dimension=3, **chosen)
    triples = torch.from_numpy(static.train.array()[:8].astype(np.int64))
    drawn = torch.tensor([0, 3, 6, 2])
    expected = 0.0
    for s, p, o in triples.tolist():
        scores = scores_of(model, torch.tensor([p])).squeeze(-1).detach()
        if loss == "softmax":
            expected += float(scores[s].logsumexp(0) + scores[:, o].logsumexp(0))
            expected -= 2 * float(scores[s, o])
        else:
            wrong = torch.cat([scores[s, drawn[:2]], scores[drawn[2:], o]])
            expected += float(torch.relu(2 - scores[s, o] + wrong).sum())
    objective = Objective(model, settings, triples)
    found = objective.backward(objective.examples(triples), None if loss == "softmax" else drawn)
    assert float(found) == pytest.approx(expected)


@pytest.mark.system
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch asks for it
@pytest.mark.parametrize("name", [name for name, each in MODELS.items() if each.entities_vary])
def test_a_compiled_loss_is_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a whole: nothing in it keeps torch from fusing all of it."""
    whole = partial(torch.compile, backend="eager", fullgraph=True)
    monkeypatch.setattr(torch, "compile", whole)
    static = grid(graph_of("events"))
    share = 0.4 if name.startswith("de-") else 0.0
    own: dict[str, Any] = {"dimension": 3, "negatives": 4, "dropout": share, "share": "none"}
    settings = settings_of(name, loss="self_adversarial", reciprocal=True, **own)
    triples = torch.from_numpy(static.train.array()[:8].astype(np.int64))
    drawn = torch.arange(8 * 4).view(8, 4) % 7
    found = []
    for compiled in (False, True):
        model = made(name, static, reciprocal=True)
        objective = Objective(model, settings, triples)
        if compiled:
            objective.compile()
        loss = objective.backward(triples, drawn)
        found.append((loss, [table.grad for table in model.parameters()]))
    torch.testing.assert_close(*found)


def test_clipping_bounds_entities_alone() -> None:
    """As TeRo's authors have it; a bound on predicates, too, costs it on YAGO11k."""
    model = made("tero", grid(graph_of("events")))
    lengths = model.entities.vectors().detach().norm(dim=1)
    directions = model.entities.vectors().detach() / lengths.unsqueeze(1)
    predicates = model.predicates.vectors().detach().clone()
    assert lengths.max() > 1
    assert predicates.norm(dim=1).max() > 1
    with torch.no_grad():
        model.constrain(Settings(model="tero", unit="clip"))
    expected = directions * lengths.clamp_max(1).unsqueeze(1)
    torch.testing.assert_close(model.entities.vectors().detach(), expected)
    assert torch.equal(model.predicates.vectors(), predicates)


@every_rival
@pytest.mark.parametrize("how", ["mean", "ends", "begin", "max"])
@pytest.mark.parametrize("each", ["fact", "ends"])
def test_questions_are_scored_by_a_plain_loop(name: str, how: Any, each: str) -> None:
    """Every fact of test, for both sides and the predicate, at each of its times."""
    graph = graph_of("intervals")
    static = grid(graph)
    model, ends = made(name, static, each=each), each == "ends"
    size, count = len(graph.timeline), len(static.predicates)
    table = scores_of(model, torch.arange(len(model.predicates))).detach()
    scorer = ModelScorer(model, Settings(each="ends" if ends else "fact"))
    scoring = ScopedScoring(scorer, Scoping(static)).with_options(how)
    begins, finishes = (times.tolist() for times in graph.timestamps(graph.test))
    seen = {
        t
        for b, e in zip(*(x.tolist() for x in graph.timestamps(graph.train)), strict=True)
        for t in range(b, e + 1)
    }

    def nearest(time: int) -> int:
        return min(seen, key=lambda other: (abs(other - time), other))

    def parts(p: int, row: int) -> list[int]:
        begin, end = begins[row], finishes[row]
        unknown = int(graph.test.unknown[row])
        roles = {t: [p * size + nearest(t)] for t in range(begin, end + 1)}
        if how in ("mean", "max"):
            extra = [0, count] if ends else [0]
            return [x + more for ids in roles.values() for x in ids for more in extra]
        first, last = roles[begin][0], roles[end][0] + count * ends
        if unknown == 1 and (ends or how == "begin"):
            first = last if ends else roles[end][0]
        if unknown == 2 and ends:
            last = first
        return [first] if how == "begin" else [first, last]

    def joined(scores: Tensor) -> Tensor:
        return scores.amax(-1) if how == "max" else scores.mean(-1)

    kinds: tuple[Kind, ...] = ("object", "subject", "predicate")
    for kind in kinds:
        queries = scoring.queries(kind, graph.test)
        for rows, row, scores in queries.blocks():
            for fact, own in zip(rows.tolist(), row.tolist(), strict=True):
                s, p, o = graph.test.array()[fact].tolist()
                own_scores = scores[own] / (queries.weight[queries.number[fact]])
                if kind == "predicate":
                    expected = torch.stack(
                        [joined(table[s, o, parts(other, fact)]) for other in range(3)]
                    )
                elif kind == "object":
                    expected = joined(table[s][:, parts(p, fact)])
                else:
                    expected = joined(table[:, o][:, parts(p, fact)])
                torch.testing.assert_close(own_scores, expected)


def test_steps_of_atise_are_as_long_as_gran(graph: TemporalGraph) -> None:
    static = grid(graph)
    plain, slow = made("atise", static), made("atise", static, gran=3)
    one = static.predicates.sources == 0
    p = torch.from_numpy(np.flatnonzero(one)[:7])
    scores = scores_of(slow, p)
    for first, last in ((0, 2), (3, 5)):
        assert torch.equal(scores[..., first], scores[..., last])
        assert not torch.equal(scores[..., first], scores[..., last + 1])
    torch.testing.assert_close(scores[..., 3], scores_of(plain, p[1:2])[..., 0])


def test_telm_learns_complex_numbers_first(tmp_path: Path) -> None:
    """It is TComplEx until then."""
    graph = graph_of("events")
    how: dict[str, Any] = {"dimension": 4, "batch_size": 10, "epochs": 8, "validate_every": 0}
    run = splime.train(graph, None, tmp_path / "run", model="telm", **how)
    assert bool(run.tensors["entities"].unflatten(-1, (4, -1))[:, 1:3].any())
    model, plain = (
        make_model(make_settings(name, dimension=4), grid(graph)) for name in ("telm", "tcomplex")
    )
    with torch.no_grad():
        for table, own in zip(model.parameters(), plain.parameters(), strict=False):
            parts = table.unflatten(-1, (4, -1))
            assert not bool(parts[:, 1:3].any())
            parts[:, ::3] = own.unflatten(-1, (2, -1))
        assert not model.begin_epoch(1, 8)
        assert not bool(model.entities.vectors().unflatten(-1, (4, -1))[:, 1:3].any())
    p = torch.arange(3)
    torch.testing.assert_close(scores_of(model, p), scores_of(plain, p))
    loss = model.score(*(table(p) for table in (model.entities, model.predicates, model.entities)))
    loss.sum().backward()
    for table in model.parameters():
        if table.grad is not None:
            assert not bool(table.grad.unflatten(-1, (4, -1))[:, 1:3].any())
    with torch.no_grad():
        assert model.begin_epoch(2, 8)
        assert bool(model.entities.vectors().unflatten(-1, (4, -1))[:, 1:3].any())
        before = model.entities.vectors().clone()
        assert not model.begin_epoch(2, 8)  # as after a break
    assert torch.equal(model.entities.vectors(), before)


def test_the_optimizer_of_telm_begins_anew() -> None:
    static = grid(graph_of("events"))
    settings = make_settings("telm", dimension=4, batch_size=10, epochs=8, reciprocal=False)
    trainer = Trainer(make_model(settings, static), static.train, settings)
    found = []
    for _ in range(4):
        trainer.run_epoch()
        sums = trainer.optimizer.state[trainer.model.entities.vectors()]["sum"]
        found.append(float(sums.sum()))
        if len(found) == 2:
            sums.fill_(1000.0)
    assert found[0] < found[1]
    assert found[2] < found[3] < 1000


def test_dates_are_needed_by_those_that_read_them() -> None:
    rows = [("a", "p", "b", step) for step in range(5)] + [("b", "p", "a", 3)]
    static = grid(splime.read({"train": rows}, granularity="step"))
    for name in TIMED:
        settings = settings_of(name, dimension=3)
        if name.startswith(("de-", "ta-")):
            with pytest.raises(UsageError, match=rf"{name} needs dates: .*bare steps"):
                make_model(settings, static)
        else:
            make_model(settings, static)
