"""What the page shows: the same as questions, evaluations and graphs say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import splime
from splime.errors import DataError, UsageError
from splime.explorer import Explorer, asking, write_explorer
from splime.graph import Fact, Facts
from splime.paths.scorer import PathScorer
from splime.query import Answers, Query
from splime.query.questions import quoted
from splime.runs import Run
from splime.runs.graph_run import GraphRun
from splime.scoring.scoping import NAMES
from tests.explore.conftest import ENTITIES, stored_in
from tests.runs.small import small_graph, small_run

RUNS = ("split", "<u>plain", "entities", "rival", "path", "pykeen", "both")


def about(fact: dict[str, Any], kind: str, run: str) -> dict[str, str]:
    names = {name: "" if name == kind else fact[name] for name in NAMES}
    return {"run": run, "ask": kind, **names, "time": "" if kind == "time" else fact["time"]}


def asked(query: Query, fact: dict[str, Any], kind: str, **when: Any) -> Answers:
    subject, predicate, object_ = ("?" if n == kind else quoted(fact[n]) for n in NAMES)
    return query.ask(subject, predicate, object_, "?" if kind == "time" else None, **when)


def same(rows: list[list[Any]], answers: Answers, *, known: str = "mark") -> None:
    """The first ten, or of those that no fact states, are those that are asked for."""
    kept = [row for row in rows if (row[4] is None if known == "drop" else row[0] <= 10)]
    rows = [[at, *row[1:]] for at, row in enumerate(kept, 1)] if known == "drop" else kept
    assert [row[:2] for row in rows] == [[each.rank, each.name] for each in answers]
    for (_, _, score, sure, known, *_), each in zip(rows, answers, strict=True):
        assert score == pytest.approx(each.score, rel=1e-5, abs=1e-6)
        assert sure == (
            None if each.probability is None else pytest.approx(each.probability, rel=1e-4)
        )
        assert known == (None if each.known is None else str(each.known))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("kind", ["object", "subject", "predicate"])
def test_answers_at_all_times_are_those_of_questions(
    explorer: Explorer, name: str, kind: str
) -> None:
    [fact, *_] = explorer.answer("about", {})["tests"]
    reply = explorer.answer("ask", about(fact, kind, name))
    query, times = explorer.queries[name], explorer.graph.timeline.labels()
    begin, _, end = fact["time"].partition("..")
    same(reply["here"]["rows"], asked(query, fact, kind, during=(begin, end or begin)))
    assert reply["more"] == (name in ("path", "both"))
    if reply["more"]:
        moved = explorer.answer("ask", {**about(fact, kind, name), "time": times[5]})
        assert (reply["count"], reply["steps"]) == (0, [])  # its time is no timestamp
        assert (moved["place"], moved["first"], moved["count"]) == (5, 5, 1)
        assert moved["steps"] == [{**moved["here"], "from": 5}]
        same(moved["here"]["rows"], asked(query, fact, kind, at=times[5]))
        reply = explorer.answer("times", about(fact, kind, name))
        same(reply["here"]["rows"], asked(query, fact, kind, during=(begin, end or begin)))
    assert not reply["more"]
    whole = (reply["first"], reply["count"]) == (0, len(times))
    assert whole or (kind == "predicate" and name in ("path", "both"))
    steps = reply["steps"]
    for at in range(reply["first"], reply["first"] + reply["count"], 3):
        step = [each for each in steps if each["from"] <= at][-1]
        answers = asked(query, fact, kind, at=times[at])
        same(step["rows"], answers)
        same(step["rows"], asked(query, fact, kind, at=times[at], known="drop"), known="drop")
        if kind != "predicate":
            assert step["scope"] == (", ".join(answers[0].scopes))


@pytest.mark.parametrize("name", RUNS)
def test_when(explorer: Explorer, name: str) -> None:
    [fact, *_] = explorer.answer("about", {})["tests"]
    reply = explorer.answer("ask", about(fact, "time", name))
    answers = asked(explorer.queries[name], fact, "time").timeline()
    every = asked(explorer.queries[name], fact, "time")
    if len(reply["spans"]) == len(every):
        assert [span["name"] for span in reply["spans"]] == [each.name for each in answers]
    best = min(reply["spans"], key=lambda span: span["rank"])
    assert (best["name"], best["share"]) == (every[0].name, 1.0)
    assert best["begin"] == every[0].begin


@pytest.mark.parametrize("name", ["split", "path"])
def test_the_rank_of_the_truth_is_that_of_the_evaluation(runs: dict[str, Run], name: str) -> None:
    """Without other known answers it is the rank by filter overlap, where no scores are equal."""
    run, graph = runs[name], runs[name].graph
    evaluation = splime.evaluate(run)
    explorer, compared = Explorer([run]), 0
    facts: list[Fact] = list(graph.rows("test"))
    for row, both in zip(evaluation.facts, evaluation.ranks["overlap"], strict=True):
        fact = facts[row]
        if fact.begin is None or fact.end is None:  # a question does not say what is unknown
            continue
        time = f"{fact.begin}..{fact.end}"
        for kind, rank in zip(("object", "subject"), both, strict=True):
            given = about({**fact._asdict(), "time": time}, kind, name)
            truths = explorer.answer("ask", given)["truths"]
            [own] = [each for each in truths if each[:2] == [-1, getattr(fact, kind)]]
            if rank == int(rank):
                assert own[3] == rank
                compared += 1
    assert compared > 10


def test_the_path_model_is_asked_once_for_each_time(
    runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """First at one time; then at all, with the ranks of the truth from the same scores."""
    explorer, asked_at = Explorer([runs["path"]]), []
    [fact, *_] = explorer.answer("about", {})["tests"]
    given = {**about(fact, "object", "path"), "time": explorer.graph.timeline.labels()[5]}
    entities = PathScorer.entities

    def watched(scorer: PathScorer, kind: Any, facts: Facts) -> Any:
        asked_at.extend(facts.begin.tolist())
        return entities(scorer, kind, facts)

    explorer.answer("ask", given)
    monkeypatch.setattr(PathScorer, "entities", watched)
    one = explorer.answer("ask", given)
    starts = explorer.graph.timeline.starts.tolist()
    assert asked_at == [starts[5]]
    asked_at.clear()
    every = explorer.answer("times", given)
    assert sorted(asked_at) == starts
    names = [[row[1] for row in reply["here"]["rows"]] for reply in (one, every)]
    assert names[0] == names[1]
    assert [truth for truth in every["truths"] if truth[0] in (-1, 5)] == one["truths"]


def test_a_part_of_the_times_where_all_would_be_too_much_work(
    explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    [fact, *_] = explorer.answer("about", {})["tests"]
    given = {**about(fact, "object", "split"), "time": explorer.graph.timeline.labels()[9]}
    whole = explorer.answer("ask", given)
    monkeypatch.setattr(asking, "TIMES", 5)
    part = explorer.answer("ask", given)
    assert (part["first"], part["count"], part["place"]) == (7, 5, 9)
    assert part["here"] == whole["here"]
    for at in range(7, 12):
        one, other = (
            [each for each in reply["steps"] if each["from"] <= at][-1] for reply in (part, whole)
        )
        assert one["rows"] == other["rows"]
    last = explorer.answer("ask", {**given, "time": explorer.graph.timeline.labels()[-1]})
    assert last["first"] + last["count"] == len(explorer.graph.timeline)


def test_long_work_is_refused(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    [fact, *_] = explorer.answer("about", {})["tests"]
    monkeypatch.setattr(asking, "_SPANS", 10)
    with pytest.raises(UsageError, match="too long"):
        explorer.answer("ask", about(fact, "time", "path"))
    explorer.answer("ask", about(fact, "time", "split"))


def test_names_by_search(explorer: Explorer) -> None:
    def search(text: str, kind: str = "entity") -> list[str]:
        return [name for name, _ in explorer.answer("names", {"kind": kind, "text": text})["names"]]

    assert search("zoë mü") == ["Zoë_Müller"]
    assert search("京") == ["北京市"]
    assert search("القا") == ["القاهرة"]
    assert search("KNOWS", "predicate") == ["<b>knows</b>"]
    assert set(search("")) == set(ENTITIES)
    assert search("a")[0] in [name for name in ENTITIES if name.lower().startswith("a")]
    assert search("no such thing") == []
    facts = explorer.graph.facts()
    ids = np.concatenate([facts.subject, facts.object])
    for name, count in explorer.answer("names", {"kind": "entity", "text": "a"})["names"]:
        assert count == (ids == explorer.graph.entities.id(name)).sum()


def test_facts_of_an_entity(explorer: Explorer) -> None:
    name = ENTITIES[0]
    reply = explorer.answer("facts", {"kind": "entity", "name": name})
    expected = [fact for fact in explorer.graph.rows() if name in (fact.subject, fact.object)]
    assert reply["all"] == len(expected)
    own = [tuple(fact[key] for key in Fact._fields) for fact in reply["facts"]]
    assert sorted(map(str, own)) == sorted(str(tuple(fact)) for fact in expected)
    begins = [fact["first"] for fact in reply["facts"]]
    assert begins == sorted(begins)
    for split in ("train", "valid", "test"):
        inside = {tuple(fact) for fact in explorer.graph.rows(split)}
        for fact, values in zip(reply["facts"], own, strict=True):
            assert fact["split"] != split or values in inside


def test_scopes_of_a_predicate(explorer: Explorer) -> None:
    graph, segmentation = explorer.graph, explorer.queries["split"].run.segmentation
    for name in graph.predicates:
        reply = explorer.answer("predicate", {"run": "split", "name": name})
        begin, end = graph.timestamps(graph.train)
        own = graph.train.predicate == graph.predicates.id(name)
        held = [int((own & (begin <= at) & (at <= end)).sum()) for at in range(len(graph.timeline))]
        assert reply["held"] == held
        assert [label for label, *_ in reply["scopes"]] == [
            s.name for s in segmentation.scopes_of(name)
        ]
        for run in ("<u>plain", "path", "both"):
            other = explorer.answer("predicate", {"run": run, "name": name})
            assert other["held"] == held
            assert other["remark"]
            assert not other["scopes"]


def test_the_map(explorer: Explorer) -> None:
    reply, run = explorer.answer("map", {"run": "split"}), explorer.queries["split"].run
    scopes = run.segmentation.predicates
    labels = scopes.labels.to_pylist()
    assert len(reply["points"]) == len(np.unique(run.static.train.predicate))
    for x, y, label, predicate, time, subject in reply["points"]:
        assert 0 <= x <= 1
        assert 0 <= y <= 1
        at = labels.index(label)
        assert reply["predicates"][predicate] == scopes.names[int(scopes.sources[at])]
        assert scopes.first[at] <= time <= scopes.last[at]
        ids = run.static.train.take(run.static.train.predicate == at).fact
        assert run.graph.entities.id(subject) in run.graph.train.subject[ids]
    for run_name in ("path", "pykeen", "both"):
        assert f"no map of {run_name}" in explorer.answer("map", {"run": run_name})["remark"]


def test_why(explorer: Explorer) -> None:
    """The path model's own evidence; of others, the facts of train by a literal search."""
    [fact, *_] = explorer.answer("about", {})["tests"]
    given = {**about(fact, "object", "path"), "answer": fact["object"]}
    begin, _, end = fact["time"].partition("..")
    evidence = explorer.queries["path"].why(
        quoted(fact["subject"]), fact["predicate"], "?",
        answer=fact["object"], during=(begin, end or begin),
    )  # fmt: skip
    reply, times = explorer.answer("why", given), explorer.graph.timeline.labels()
    for one, (adds, chain) in zip(evidence.reasons, reply["chains"], strict=True):
        assert adds == one.contribution
        for step, (at, scope) in zip(one.steps, chain, strict=True):
            shown = reply["facts"][at]
            assert step.fact == Fact(*(shown[key] for key in Fact._fields))
            assert step.scope == scope
            begin_, end_ = step.fact.begin or step.fact.end, step.fact.end or step.fact.begin
            if begin_ and end_:
                assert (times[shown["first"]], times[shown["last"]]) == (begin_, end_)
    assert len(reply["facts"]) == len({step.fact for one in evidence.reasons for step in one.steps})
    assert explorer.answer("why", {**given, "run": "both"})["chains"] is not None
    other = explorer.answer("why", {**given, "run": "split"})
    assert other["chains"] is None
    nearest = other["facts"]

    def far(row: Fact) -> tuple[bool, int]:
        both = (row.subject, row.object) == (fact["subject"], fact["object"])
        first, last = int(row.begin or 0), int(row.end or 9999)
        return not both, max(0, first - int(end or begin), int(begin) - last)

    expected = sorted(
        far(row) for row in explorer.graph.rows("train")
        if row.predicate == fact["predicate"]
        and (row.subject == fact["subject"] or row.object == fact["object"])
    )  # fmt: skip
    own = [far(Fact(*(row[key] for key in Fact._fields))) for row in nearest]
    assert own == expected[: len(own)]
    assert len(own) == min(12, len(expected))


def test_metrics(explorer: Explorer) -> None:
    parts = explorer.answer("metrics", {"run": "split"})["parts"]
    mrr = splime.evaluate(explorer.queries["split"].run).metrics["exact"]["both"].mrr
    assert f"{mrr:.3f}" in str(parts)
    assert any("by predicate" in part["title"] for part in parts if isinstance(part, dict))
    assert "not evaluated" in str(explorer.answer("metrics", {"run": "pykeen"}))


def test_wrong_questions(explorer: Explorer, tmp_path: Path) -> None:
    good = about(explorer.answer("about", {})["tests"][0], "object", "split")
    with pytest.raises(UsageError):
        explorer.answer("times", {**good, "ask": "time", "time": ""})
    for wrong in (
        {**good, "run": "nobody"},
        {**good, "ask": "why"},
        {**good, "subject": "nobody"},
        {**good, "time": "3000"},
        {**good, "time": "1990.."},
        {**good, "more": "1"},
        {"run": "split"},
    ):
        with pytest.raises(UsageError):
            explorer.answer("ask", wrong)
    for part in ("", "queries", "prepare", "__init__", "ask/.."):
        with pytest.raises(UsageError):
            explorer.answer(part, {})
    with pytest.raises(UsageError, match="at least one"):
        splime.explore([])
    other = small_run(small_graph(), tmp_path / "other")
    with pytest.raises(UsageError, match="other facts"):
        Explorer([explorer.queries["split"].run, other])


def test_whether_there_is_such_a_fact_follows_the_time(
    explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = explorer.answer("about", {})["tests"][0]
    query, times = explorer.queries["split"], explorer.graph.timeline.labels()
    monkeypatch.setattr(type(query.existence("object")), "works", True)
    reply = explorer.answer("ask", about(fact, "object", "split"))
    names = (quoted(fact["subject"]), fact["predicate"], "?")
    for at in range(0, len(times), 4):
        expected = query.there_is_one(*names, at=times[at])
        probability, stated = reply["stated"][1 + at - reply["first"]]
        assert expected is not None
        assert (probability, stated) == (pytest.approx(expected.probability, abs=1e-4), expected[1])


def test_the_first_questions_have_right_answers(explorer: Explorer) -> None:
    found = explorer.answer("about", {})["examples"]
    assert found
    for question in found:
        if question["ask"] != "time":
            reply = explorer.answer("ask", {"run": "path", **question})
            right = [name for at, name, *_ in reply["truths"] if at == -1]
            assert reply["here"]["rows"][0][1] in right


def test_a_file_without_test_begins_with_what_it_does_not_state() -> None:
    rows = [(f"e{n % 5}", "p", f"e{(n + 1) % 7}", 1990 + n % 9) for n in range(60)]
    explorer = Explorer([GraphRun(splime.read(rows, split="none"), device="cpu")])
    seen = explorer.answer("about", {})
    assert not seen["test"]
    times = seen["times"]
    for row in seen["tests"]:
        assert times.index(row["time"]) in (row["first"] - 1, row["last"] + 1)
    [first, *_] = seen["examples"]
    [run] = explorer.queries
    assert explorer.answer("ask", {"run": run, **first})["here"]["rows"]
    reply = explorer.answer("ask", {"run": run, **first, "time": "2005"})  # a forecast
    known = {**first, first["ask"]: "?"}
    names = [known[name] for name in NAMES]
    same(reply["here"]["rows"], explorer.queries[run].ask(*names, at=2005))
    assert (reply["count"], reply["more"], reply["steps"]) == (0, False, [])
    assert "forecast" in reply["remarks"][1]


def test_graphs_with_other_facts_are_not_taken_for_the_same() -> None:
    one, same_, other = (
        GraphRun(replace(small_graph(seed), name=f"graph {n}"), device="cpu")
        for n, seed in enumerate((1, 1, 2))
    )
    assert len(Explorer([one, same_]).queries) == 2
    with pytest.raises(UsageError, match="other facts"):
        Explorer([one, other])


def test_rules(explorer: Explorer) -> None:
    found = splime.rules(explorer.queries["path"].run, "lives in", examples=1)
    assert explorer.answer("rules", {"predicate": "lives in"}) == found.to_json()
    every = explorer.answer("rules", {"predicate": ""})["rules"]
    assert {rule["predicate"] for rule in every} == set(explorer.graph.predicates)


def test_a_backtest_is_read_from_its_file(tmp_path: Path) -> None:
    graph, path = small_graph(), tmp_path / "backtest.json"
    found = splime.backtest(graph, questions=20, every=4, out=path)
    explorer = Explorer([GraphRun(graph, device="cpu")], backtest=path)
    assert explorer.answer("about", {})["backtest"] == found.to_json()
    for wrong in ("[]", "{}", '{"source": "x", "windows": [{"metrics": {}}]}', "x"):
        path.write_text(wrong)
        with pytest.raises(DataError, match=str(path)):
            Explorer([GraphRun(graph, device="cpu")], backtest=path)


def test_a_page_is_not_larger_than_asked_for(tmp_path: Path) -> None:
    explorer, path = Explorer([GraphRun(small_graph(), device="cpu")]), tmp_path / "page.html"
    held = write_explorer(explorer, path)
    whole, replies = path.stat().st_size, stored_in(path)
    assert "left" not in held
    assert "room" not in held
    tests = replies['["about"]']["tests"]
    assert len(tests) == len(explorer.answer("about", {})["tests"])
    held = write_explorer(explorer, path, megabytes=0.75 * whole / 1e6)
    assert path.stat().st_size <= 0.75 * whole
    assert "no room for more" in held
    about_ = stored_in(path)['["about"]']
    assert about_["held"] == held
    assert 0 < len(about_["tests"]) < len(tests)
    with pytest.raises(UsageError, match="above 0"):
        write_explorer(explorer, path, megabytes=0)
