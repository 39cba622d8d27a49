"""The model with counted messages: fast against plain, and that it belongs to no graph."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

import splime
from splime.errors import UsageError
from splime.graph import Facts, TemporalGraph
from splime.paths import counted, messages
from splime.paths.counted import BINS, CountedPathModel, _Answering, count
from splime.paths.counting import FactCounts
from splime.paths.evidence import evidence
from splime.paths.facts import DirectedFacts
from splime.paths.messages import CountedMessages
from splime.paths.model import Start, Starter
from splime.paths.relative import EventScopes, IntervalScopes, RelativeScopes, SingleScope, Times
from splime.paths.scorer import PathScorer
from splime.runs import Run, evaluate, train
from tests.paths.test_counting import Row, make, rows_of
from tests.paths.test_evidence import assert_passes
from tests.paths.test_facts import NEW, facts as graph_of
from tests.paths.test_messages import assert_near
from tests.paths.test_nearest import READ, assert_reads
from tests.runs.small import small_graph

RELATIVE = IntervalScopes("year", (1, 2, 3, 4, 6, 8, 9))
ENTITIES, PREDICATES = 8, 2


def world(entities: int = ENTITIES, predicates: int = PREDICATES) -> Any:
    """What is read of a graph."""
    return SimpleNamespace(entities=range(entities), predicates=range(predicates))


def make_model(predicates: int = PREDICATES, **settings: Any) -> CountedPathModel:
    settings = {"layers": 3, "width": 16, **settings}
    model = CountedPathModel(predicates, len(RELATIVE), **settings)
    random = torch.Generator().manual_seed(1)
    model.norm_bias.data = 0.3 * torch.randn(model.norm_bias.shape, generator=random)
    return model


def random_rows(number: int, seed: int = 0, predicates: int = PREDICATES) -> list[Row]:
    random = np.random.default_rng(seed)
    most = [ENTITIES - 1, predicates, ENTITIES - 1, 12, 4]
    rows = random.integers(0, most, (number, 5)).tolist()
    return [(s, p, o, begin, begin + more, 0) for s, p, o, begin, more in rows]


def questions(facts: Facts, number: int, seed: int = 0) -> tuple[Tensor, Tensor, Times]:
    """Given entities, predicates (both ways) and times."""
    random = np.random.default_rng(seed)
    given = torch.from_numpy(random.integers(0, ENTITIES, number))
    predicates = torch.from_numpy(random.integers(0, 2 * PREDICATES, number))
    at = torch.from_numpy(random.integers(0, 12, number))
    return given, predicates, Times(at, at + at % 3, torch.zeros_like(at))


def assert_fast(model: CountedPathModel, facts: Facts, starter: Starter, asked: Any) -> None:
    """Scores, and gradients by all parameters, are those of the plain formulas."""
    (given_, predicates, times), numbers = asked, torch.arange(len(asked[0])) % max(len(facts), 1)
    directed = DirectedFacts.of(facts, ENTITIES, PREDICATES)
    scopes, weights = directed.scopes(RELATIVE, times), directed.weights(numbers[:1])
    results = []
    for plain in (False, True):
        start = starter(predicates, numbers)
        given_seed = torch.tensor(7)
        scores = model(directed, given_, start, scopes, weights, seed=given_seed, plain=plain)
        loss = torch.nn.functional.cross_entropy(scores, (given_ + 1) % ENTITIES)
        results.append((scores.detach(), *torch.autograd.grad(loss, list(model.parameters()))))
    assert_near(results[0], results[1], 1e-3)


@given(rows=rows_of, seed=st.integers(0, 1000), training=st.booleans())
@settings(max_examples=15)
def test_the_fast_model_is_the_plain_one(rows: list[Row], seed: int, training: bool) -> None:
    facts, model = make(rows or [(0, 0, 1, 2, 3, 0)]), make_model(seed=seed)
    start = model.training_starter if training else model.starter
    starter = start(facts, world(), RELATIVE)
    assert_fast(model, facts, starter, questions(facts, 5, seed))


@pytest.mark.parametrize("one", [True, False], ids=["one predicate", "several predicates"])
@pytest.mark.parametrize("aggregation", ["sum", "mean"])
@pytest.mark.parametrize(("layers", "dropout"), [(1, 0.0), (3, 0.0), (3, 0.2)])
def test_gradients_of_the_fast_model(
    one: bool, aggregation: Any, layers: int, dropout: float
) -> None:
    facts = make(random_rows(20))
    model = make_model(aggregation=aggregation, layers=layers, dropout=dropout).train()
    given_, predicates, times = questions(facts, 6)
    predicates = torch.full_like(predicates, 3) if one else predicates
    assert len(predicates.unique()) == (1 if one else 3)
    for starter in (model.starter, model.training_starter):
        own = starter(facts, world(), RELATIVE)
        assert_fast(model, facts, own, (given_, predicates, times))


def test_a_message_of_a_fact_is_in_the_table() -> None:
    random = torch.Generator().manual_seed(0)
    tables, table_of = torch.randn(2, 3, 6, 5, 16, generator=random), torch.tensor([2, 0, 0, 2])
    carried, on = CountedMessages(tables, table_of), messages.fast(tables.device)
    predicate, question = torch.tensor([0, 5, 3]), torch.tensor([0, 1, 3])
    scope, gradient = torch.tensor([4, 0, 1]), torch.randn(6, 4, 5, 16, generator=random)
    for layer in range(2):
        plain = carried.plain_table(layer)
        assert plain.shape == (6, 4, 5, 16)
        for r, q, k in zip(predicate, question, scope, strict=True):
            assert torch.equal(plain[r, q, k], tables[layer, table_of[q], r, k])
        of_facts = carried.of_facts(layer, predicate, question, scope)
        assert torch.equal(of_facts, plain[predicate, question, scope])
        assert torch.equal(carried.table(layer), on.compact(plain))
        own = tables.clone().requires_grad_()
        table = CountedMessages(own, table_of).plain_table(layer)
        (expected,) = torch.autograd.grad(table, own, gradient)
        torch.testing.assert_close(carried.gradients(layer, gradient)[0], expected[layer])


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
def test_a_bound_on_the_facts_that_are_read(aggregation: Any) -> None:
    facts = make([(s, p, o, time, time, 0) for s, p, o, time in READ])
    model = make_model(3, aggregation=aggregation, reach=9)
    starter = model.starter(facts, world(12, 3), RELATIVE)
    assert_reads(model, starter, "cpu", 1e-4, RELATIVE)


@given(rows=rows_of, seed=st.integers(0, 1000))
@settings(max_examples=10)
def test_what_passes_along_facts_adds_up(rows: list[Row], seed: int) -> None:
    facts = make(rows)
    directed = DirectedFacts.of(facts, ENTITIES, PREDICATES)
    model = make_model(seed=seed, aggregation=("sum", "mean")[seed % 2]).eval()
    (given_,), predicates, times = questions(facts, 1, seed)
    with torch.no_grad():
        start = model.starter(facts, world(), RELATIVE)(predicates, None)
    scopes = directed.scopes(RELATIVE, times)
    assert_passes(model, directed, int(given_), start, scopes, seed % ENTITIES)


@pytest.mark.parametrize("reach", [None, 12])
def test_evidence_leads_to_the_answer(reach: int | None) -> None:
    facts = make(random_rows(30))
    directed = DirectedFacts.of(facts, ENTITIES, PREDICATES)
    model, found = make_model(reach=reach).eval(), 0
    starter = model.starter(facts, world(), RELATIVE)
    given_, predicates, times = questions(facts, 8)
    with torch.inference_mode():  # tables are kept from here
        starter(predicates, None)
    for number in range(8):
        at, own = torch.tensor([number]), times.take(torch.tensor([number]))
        with torch.no_grad():
            start = starter(predicates[at], None)
        scopes, answer = directed.scopes(RELATIVE, own), (int(given_[number]) + 1) % ENTITIES
        asked = (int(given_[number]), start, scopes, answer)
        for chain in evidence(model, directed, *asked, times=own):
            found += 1
            assert chain.contribution > 0
            sources, targets = directed.source[[*chain.facts]], directed.target[[*chain.facts]]
            assert [int(given_[number]), *targets.tolist()] == [*sources.tolist(), answer]
    assert found >= 8


def shown(start: Start) -> list[Tensor]:
    """All that questions begin with."""
    carried = start.messages
    tables = [carried.plain_table(layer) for layer in range(3)]
    return [start.q.detach(), *(table.detach() for table in tables)]


def assert_same(one: Start, other: Start, same: bool = True) -> None:
    alike = [
        torch.allclose(mine, theirs, rtol=1e-5, atol=1e-6)
        for mine, theirs in zip(shown(one), shown(other), strict=True)
    ]
    assert all(alike) if same else not any(alike[1:])


def test_in_training_a_question_begins_with_the_counts_of_the_other_folds() -> None:
    rows = random_rows(40)
    facts, model = make(rows + rows[5:10]), make_model()
    starter: Any = model.training_starter(facts, world(), RELATIVE)
    fold = starter.fold.numpy()
    assert {*fold} == {0, 1, 2, 3}
    assert np.array_equal(fold[40:], fold[5:10])  # what states the same is hidden together
    asked = torch.arange(45)
    predicates = torch.from_numpy(facts.predicate.astype(np.int64)) + PREDICATES * (asked % 2)
    start = starter(predicates, asked)
    for number in range(45):
        at = torch.tensor([number])
        others = facts.take(fold != fold[number])
        alone = model.starter(others, world(), RELATIVE)(predicates[at], None)
        torch.testing.assert_close(start.q[at], alone.q)
        for layer in range(3):
            mine = start.messages.plain_table(layer)[:, at]
            torch.testing.assert_close(mine, alone.messages.plain_table(layer))


def test_facts_of_a_questions_fold_change_nothing_of_its_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, model = random_rows(40), make_model()
    predicates = torch.tensor([0, 1, 2, 3])

    def start_of(rows: list[Row], numbers: list[int], asked: int) -> Start:
        """With folds by the numbers of facts, so that they stay as they are."""
        groups = np.array(numbers)
        monkeypatch.setattr(counted, "statement_groups", lambda _: groups)
        starter: Any = model.training_starter(make(rows), world(), RELATIVE)
        if len(rows) == 40:
            folds[:] = starter.fold.tolist()
        start: Start = starter(predicates, torch.full((4,), numbers.index(asked)))
        return start

    folds: list[int] = []
    every = list(range(40))
    for asked in (3, 17, 39):
        start, others = start_of(rows, every, asked), random_rows(40, seed=1)
        own = [n for n in every if folds[n] == folds[asked]]
        assert 8 <= len(own) <= 12
        changed = [others[n] if n in own else rows[n] for n in every]
        assert_same(start_of(changed, every, asked), start)
        # The last one tells how many there are.
        left = [n for n in every if n not in own or n in (asked, 39)]
        assert_same(start_of([rows[n] for n in left], left, asked), start)
        changed = [rows[n] if n in own else others[n] for n in every]
        assert_same(start_of(changed, every, asked), start, same=False)
        left = [n for n in every if n in (*own, 39) or n % 2]
        assert_same(start_of([rows[n] for n in left], left, asked), start, same=False)


@pytest.mark.parametrize("kept", [0, 2, 100], ids=["none", "two", "all"])
def test_kept_tables_are_those_that_are_made_anew(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, model, made = make(random_rows(30)), make_model(), []
    one = 4 * 3 * 2 * PREDICATES * len(RELATIVE) * 16
    monkeypatch.setattr(counted, "_KEPT", {"cpu": kept * one})
    starter: Any = model.starter(facts, world(), RELATIVE)
    make_messages = model.make_messages

    def watched(features: Tensor) -> Tensor:
        made.append(len(features))
        return make_messages(features)

    monkeypatch.setattr(model, "make_messages", watched)
    counts = []
    for asked in ([0, 1, 1], [1], [3, 0, 3], [2], [2, 0], [0, 1, 2, 3], [3, 2, 1, 0]):
        made.clear()
        with torch.inference_mode():
            start = starter(torch.tensor(asked), None)
        counts.append(sum(made))
        with torch.no_grad():
            fresh = model.starter(facts, world(), RELATIVE)(torch.tensor(asked), None)
        assert_same(start, fresh)
        assert sum(table.nbytes for table in starter._tables.values()) <= kept * one
    if kept == 0:
        assert counts == [2, 1, 2, 1, 2, 4, 4]
    if kept == 100:
        assert counts == [2, 0, 1, 1, 0, 0, 0]
    if kept == 2:
        assert counts == [2, 0, 1, 1, 1, 2, 2]


def test_kept_tables_are_not_taken_where_gradients_are_wanted() -> None:
    facts, model = make(random_rows(20)), make_model()
    starter = model.starter(facts, world(), RELATIVE)
    asked = questions(facts, 5)
    assert_fast(model, facts, starter, asked)
    with torch.no_grad():
        starter(asked[1], None)
    assert_fast(model, facts, starter, asked)


@given(rows=rows_of, seed=st.integers(0, 1000))
@settings(max_examples=15)
def test_names_of_entities_and_predicates_do_not_matter(rows: list[Row], seed: int) -> None:
    random, model = np.random.default_rng(seed), make_model(seed=seed).eval()
    entities = torch.from_numpy(random.permutation(ENTITIES))
    predicates = torch.from_numpy(random.permutation(PREDICATES))
    directed = torch.cat([predicates, predicates + PREDICATES])
    renamed: Any = [
        (int(entities[s]), int(predicates[p]), int(entities[o]), *at) for s, p, o, *at in rows
    ]
    given_, asked, times = questions(make(rows), 6, seed)
    results = []
    for each, of, about in ((rows, given_, asked), (renamed, entities[given_], directed[asked])):
        facts = make(each)
        read = DirectedFacts.of(facts, ENTITIES, PREDICATES)
        with torch.no_grad():
            counts = FactCounts.of(facts, ENTITIES, PREDICATES, RELATIVE)
            start = _Answering(model, counts)(about, None)
            results.append(model(read, of, start, read.scopes(RELATIVE, times)))
    torch.testing.assert_close(results[1][:, entities], results[0], rtol=1e-3, atol=1e-4)


def test_a_model_fits_every_graph() -> None:
    one, other = make_model(2, seed=3), make_model(5, seed=4)
    other.load_state_dict(one.state_dict())
    facts = make(random_rows(30))
    asked = torch.tensor([0, 1, 2, 3])
    # Three predicates without facts are between those both ways.
    more = torch.tensor([0, 1, 5, 6])
    starts = [
        model.starter(facts, world(predicates=count), RELATIVE)(about, None)
        for model, count, about in ((one, 2, asked), (other, 5, more))
    ]
    torch.testing.assert_close(starts[1].q, starts[0].q)
    for layer in range(3):
        tables = [start.messages.plain_table(layer) for start in starts]
        torch.testing.assert_close(tables[1][more], tables[0])


def test_other_scopes_are_refused() -> None:
    facts = make(random_rows(5))
    wrong: list[RelativeScopes] = [
        SingleScope(),
        EventScopes("year", RELATIVE.edges),
        IntervalScopes("year", RELATIVE.edges[:-1]),
        IntervalScopes("year", (*RELATIVE.edges, 50)),
        IntervalScopes("year", RELATIVE.edges, unknown=True),
    ]
    assert len(RELATIVE.edges) == BINS
    for relative in wrong:
        with pytest.raises(UsageError, match="counted messages need"):
            count(facts, world(), relative)
    for past in (False, True):
        count(facts, world(), IntervalScopes("year", RELATIVE.edges, past=past, begin_only=past))


# Runs

SMALL: dict[str, Any] = {
    "model": "path", "messages": "counted", "layers": 2, "dimension": 16, "batch_size": 20
}  # fmt: skip


@pytest.fixture(scope="module")
def graph() -> TemporalGraph:
    return small_graph(test=60)


@pytest.fixture(scope="module")
def run(graph: TemporalGraph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(graph, splime.Vanilla(), tmp_path_factory.mktemp("counted"), **SMALL, epochs=8)


def test_it_learns(run: Run, graph: TemporalGraph, tmp_path: Path) -> None:
    assert run.history[-1].loss < run.history[0].loss
    trained = evaluate(run).metrics["exact"]["both"].mrr
    learned = {**SMALL, "messages": "learned"}
    other = train(graph, splime.Vanilla(), tmp_path, **learned, epochs=8)
    assert trained > evaluate(other).metrics["exact"]["both"].mrr - 0.1
    again = Run(run.path)
    assert again.settings.messages == "counted"
    for kind in ("object", "subject"):
        asked = graph.test
        assert torch.equal(again.scorer.entities(kind, asked), run.scorer.entities(kind, asked))


def test_new_facts_are_counted(run: Run) -> None:
    other = run.over(graph_of(NEW))
    scorer = other.scorer
    assert isinstance(scorer, PathScorer)
    anew = PathScorer(scorer.model, other.graph, other.settings)
    asked = other.graph.train
    scores = anew.entities("object", asked)
    torch.testing.assert_close(scorer.entities("object", asked), scores)
    known = count(other.graph.train, other.graph, scorer.relative)
    assert known.asked.sum() == 2 * len(run.graph.train) + 2 * len(NEW)
    answers = splime.Query(other).ask("Newcomer", "p1", "?", at=1999, limit=3)
    assert "entity 7" in [row.name for row in answers]


def test_a_run_with_other_scopes_is_refused(graph: TemporalGraph, tmp_path: Path) -> None:
    for wrong in ({"relative": "events:1,2"}, {"relative": "none"}, {"unknown_scopes": True}):
        with pytest.raises(UsageError, match="leave out relative and unknown_scopes"):
            train(graph, splime.Vanilla(), tmp_path / "run", **{**SMALL, **wrong}, epochs=1)
