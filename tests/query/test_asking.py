"""One question: the same order as evaluation ranks with, and everything else by plain loops."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from splime.errors import UsageError
from splime.evaluation import evaluate_facts, evaluate_predicates
from splime.graph import Fact, TemporalGraph
from splime.query import Answers, Query
from splime.runs import Run
from tests.evaluation.oracle import Oracle, at, excludes, nearest
from tests.query.conftest import RUNS

AGGREGATES = ("mean", "ends", "max", "sum")


def score_of(run: Run) -> Any:
    """One score of the scoped ids, as evaluation would ask for it for an object."""
    return lambda s, p, o: float(run.scorer.objects(torch.tensor([s]), torch.tensor([p]))[0, o])


def interval(graph: TemporalGraph, fact: Fact) -> tuple[str, str]:
    ends = graph.timeline.labels()
    return fact.begin or ends[0], fact.end or ends[-1]


def rank(answers: Answers, name: str) -> float:
    """The rank of an answer among those that are not known, ties in the middle."""
    own = next(row for row in answers if row.name == name)
    others = [row.score for row in answers if row.known is None and row.name != name]
    return 1 + sum(x > own.score for x in others) + sum(x == own.score for x in others) / 2


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("how", AGGREGATES)
def test_order_is_that_of_evaluation(trained: dict[str, Path], name: str, how: Any) -> None:
    run = Run(trained[name])
    graph, query = run.graph, Query(run, aggregate=how)
    parts = (run.scorer, run.graph, run.segmentation)
    entities = evaluate_facts(*parts, aggregate=how).ranks["overlap"]
    predicates = evaluate_predicates(*parts, aggregate=how).ranks["overlap"]
    for row, fact in [*enumerate(graph.rows("test"))][::3]:
        s, p, o, *_ = fact
        asked: dict[str, Any] = {"during": interval(graph, fact), "limit": None}
        both = [query.ask(s, p, "?", **asked), query.ask("?", p, o, **asked)]
        assert [rank(both[0], o), rank(both[1], s)] == entities[row].tolist()
        assert [len(answers) for answers in both] == [len(graph.entities)] * 2
        assert rank(query.ask(s, "?", o, **asked), p) == predicates[row, 0]


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("how", AGGREGATES)
def test_scores_are_means(trained: dict[str, Path], name: str, how: Any) -> None:
    run = Run(trained[name])
    graph, query = run.graph, Query(run, aggregate=how)
    oracle = Oracle(graph, run.segmentation, score_of(run))
    rows = zip(graph.rows("test"), oracle.columns("test"), strict=True)
    for fact, (s, p, _, begin, end) in list(rows)[:6]:
        answers = query.ask(
            fact.subject, fact.predicate, "?", during=interval(graph, fact), limit=None
        )
        for row in answers:
            expected = oracle.fact_score(how, (s, p, graph.entities.id(row.name), begin, end))
            assert row.score == pytest.approx(expected, rel=1e-4, abs=1e-5)
        assert [row.rank for row in answers] == list(range(1, len(answers) + 1))
        assert [row.score for row in answers] == sorted((r.score for r in answers), reverse=True)


@pytest.mark.parametrize("name", RUNS)
def test_what_is_known(trained: dict[str, Path], name: str) -> None:
    run = Run(trained[name])
    graph, query = run.graph, Query(run)
    facts = [(split, fact) for split, _ in graph.splits() for fact in graph.rows(split)]
    for _, fact in facts[::80]:
        begin, end = interval(graph, fact)
        asked = fact._replace(begin=begin, end=end)
        for position in range(3):
            names = [*fact[:3]]
            names[position] = "?"
            one, which, other = names
            marked = query.ask(one, which, other, during=(begin, end), limit=None)
            stated = {
                (split, known.begin, known.end, known[position])
                for split, known in facts
                if all(known[at] == fact[at] for at in range(3) if at != position)
                and excludes("overlap", asked, known)
            }
            known = {row.name: row.known for row in marked if row.known is not None}
            assert set(known) == {name for *_, name in stated}
            assert all((*known[name], name) in stated for name in known)
            dropped = query.ask(one, which, other, during=(begin, end), limit=None, known="drop")
            assert [row.name for row in dropped] == [r.name for r in marked if r.known is None]
            assert [row.rank for row in dropped] == list(range(1, len(dropped) + 1))
            best = query.ask(one, which, other, during=(begin, end), limit=3, known="drop")
            assert [row[:] for row in best] == [row[:] for row in dropped.rows[:3]]


@pytest.mark.parametrize("name", RUNS)
def test_probabilities_are_a_softmax_of_what_train_does_not_state(
    trained: dict[str, Path], name: str
) -> None:
    run = Run(trained[name])
    graph, query = run.graph, Query(run)
    fact = next(graph.rows("test"))
    for kind, question in (
        ("object", (fact.subject, fact.predicate, "?")),
        ("subject", ("?", fact.predicate, fact.object)),
        ("predicate", (fact.subject, "?", fact.object)),
        ("time", (*fact[:3], "?")),
    ):
        answers = query.ask(*question, limit=None)
        temperature = query.calibration(kind).temperature  # type: ignore[arg-type]
        if len(answers) == 1:
            assert answers[0].probability is None
            continue
        assert temperature is not None
        unseen = [row for row in answers if row.known is None or row.known.split != "train"]
        whole = sum(math.exp(row.score / temperature) for row in unseen)
        for row in answers:
            if row not in unseen:
                assert row.probability is None
            else:
                expected = math.exp(row.score / temperature) / whole
                assert row.probability == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", ["vanilla", "split", "reciprocal", "both"])
@pytest.mark.parametrize("best", [1, 4, 25])
def test_which_in_the_papers_way(trained: dict[str, Path], name: str, best: int) -> None:
    run = Run(trained[name])
    graph, scopes = run.graph, run.segmentation.predicates
    for fact in list(graph.rows("test"))[:8]:
        begin, end = interval(graph, fact)
        low, high = graph.timeline.index(np.array([int(begin), int(end)])).tolist()
        scores = []
        for time in range(low, high + 1):
            pair = [
                run.scoping.at(
                    "subject", np.array([graph.entities.id(x)], np.int32), np.array([time])
                )
                for x in (fact.subject, fact.object)
            ]
            scores.append(run.scorer.predicates(*map(torch.as_tensor, pair))[0])
        order = torch.stack(scores).mean(0).sort(descending=True, stable=True).indices.tolist()
        expected = []
        for piece in order[:best]:
            source = int(scopes.sources[piece])
            number = piece - int(scopes.starts[source])
            cuts = [-1, *scopes.cuts_of(source).tolist(), 2 * len(graph.timeline)]
            if cuts[number] <= 2 * high and cuts[number + 1] >= 2 * low:
                expected.append((graph.predicates[source], scopes.labels[piece].as_py()))
        once = dict(reversed(expected))
        answers = Query(run).ask(fact.subject, "?", fact.object, during=(begin, end), best=best)
        assert {row.name: row.scopes for row in answers} == {s: (x,) for s, x in once.items()}
        assert [row.name for row in answers] == list(dict.fromkeys(s for s, _ in expected))
        assert "not all candidates" in answers.remarks[0]


@pytest.mark.parametrize("name", RUNS)
def test_when(trained: dict[str, Path], name: str) -> None:
    run = Run(trained[name])
    graph, segmentation = run.graph, run.segmentation
    oracle = Oracle(graph, segmentation, score_of(run))
    for fact, ids in list(zip(graph.rows("test"), oracle.columns("test"), strict=True))[:6]:
        s, p, o = ids[:3]
        spans: list[tuple[tuple[int, ...], list[int]]] = []
        for time in range(len(graph.timeline)):
            entities = segmentation.entities
            one, other = (x if entities is None else at(entities, x, time) for x in (s, o))
            pieces = (one, at(segmentation.predicates, p, time), other)
            if not spans or spans[-1][0] != pieces:
                spans.append((pieces, []))
            spans[-1][1].append(time)
        answers = Query(run).ask(*fact[:3], "?", limit=None)
        assert len(answers) == len(spans)
        for row, ((one, piece, other), times) in zip(answers.timeline(), spans, strict=True):
            used = nearest(segmentation.predicates, piece, oracle.seen_predicates)
            if segmentation.entities is not None:
                one, other = (
                    nearest(segmentation.entities, x, oracle.seen_entities) for x in (one, other)
                )
                labels = graph.timeline.labels()
                assert (row.begin, row.end) == (labels[times[0]], labels[times[-1]])
            score = run.scorer.predicates(torch.tensor([one]), torch.tensor([other]))[0, used]
            assert row.score == pytest.approx(float(score), rel=1e-4, abs=1e-5)
            assert row.name == segmentation.predicates.labels[piece].as_py()
            assert row.scopes == (segmentation.predicates.labels[used].as_py(),)
            held = {(known.begin, known.end) for known in graph.rows() if known[:3] == fact[:3]}
            year = [int(label) for label in graph.timeline.labels()]
            is_known = any(
                int(begin or 0) <= year[times[-1]] and int(end or 9999) >= year[times[0]]
                for begin, end in held
            )
            assert (row.known is not None) == is_known
        if name == "vanilla":
            assert "has not cut" in answers.remarks[0]
            assert "cannot say when" in answers.remarks[0]


def test_a_time_is_the_whole_one_by_default(split: Run) -> None:
    query = Query(split)
    answers = query.ask("entity 1", "p1", "?", limit=2)
    assert answers.question.whole
    first, last = split.graph.timeline.label(0), split.graph.timeline.label(-1)
    whole = f"over the whole time of the graph, {first} to {last}"
    assert answers.question.text == f"What: entity 1 p1 ?, {whole}"
    asked = query.ask("entity 1", "p1", "?", during=(first, last), limit=2)
    assert asked.rows == answers.rows
    assert asked.question.text == f"What: entity 1 p1 ? from {first} to {last}"
    assert len(answers[0].scopes) == len(split.segmentation.scopes_of("p1"))


def test_answers_as_data(split: Run) -> None:
    answers = Query(split).ask("entity 1", "p1", "?", at=1995)
    table = answers.to_table()
    assert table["answer"].to_pylist() == [row.name for row in answers]
    assert set(table["begin"].to_pylist()) == {"1995"}
    data = answers.to_json()
    assert data["question"]["subject"] == "entity 1"
    assert [one["name"] for one in data["answers"]] == [row.name for row in answers]
    lines = repr(answers).splitlines()
    assert lines[0] == "What: entity 1 p1 ? at 1995"
    assert len(lines) == 12
    known = [row for row in answers if row.known is not None]
    assert known
    assert f"known: {known[0].known}" in repr(answers)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("?", "p1", "?"), {}, "2 things are asked for; a question has one '?'"),
        (("entity 1", "p1", "entity 2"), {"at": 1990}, "nothing is asked for"),
        (("entity 1", "p1", "?", "?"), {}, "2 things are asked for"),
        (("entity 1", "p1", "?", "1990"), {}, "time is '?' to ask when, not '1990'"),
        (("entity 1", "p1", "entity 2", "?"), {"at": 1990}, "about the time has no time"),
        (("entity 1", "p1", "?"), {"at": 1, "during": (1, 2)}, "at or during, not both"),
        (("entity 1", "p1", "?"), {"during": "1990..1991"}, "during is a pair of times"),
        (("entity 1", "p1", "?"), {"during": (1995, 1990)}, "ends before it begins"),
        (("entity 1", "p1", "?"), {"at": 1066}, "outside of the graph's time, 1990 to 20"),
        (("entity 1", "p1", "?"), {"at": "soon"}, "cannot read 'soon' as a time"),
        (("entity 1", "pp1", "?"), {}, "no predicate is called 'pp1'. Did you mean p1"),
        (("entty 1", "p1", "?"), {}, "no entity is called 'entty 1'. Did you mean entity 1"),
        (("entity 1", None, "?"), {}, "names are text, not None"),
        (("entity 1", "p1", "?"), {"limit": 0}, "limit is a number from 1 on, not 0"),
        (("entity 1", "p1", "?"), {"limit": True}, "limit is a number from 1 on, not True"),
        (("entity 1", "p1", "?"), {"known": "hide"}, "there is no way to treat known answers"),
        (("entity 1", "p1", "?"), {"best": 25}, "best is for questions that ask which"),
        (("entity 1", "?", "entity 2"), {"best": 0}, "best is a number from 1 on"),
    ],
)
def test_wrong_questions(split: Run, arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(UsageError) as error:
        Query(split).ask(*arguments, **options)
    assert message in str(error.value)


def test_wrong_aggregate(split: Run) -> None:
    with pytest.raises(UsageError, match="Did you mean mean"):
        Query(split, aggregate="men")  # type: ignore[arg-type]
