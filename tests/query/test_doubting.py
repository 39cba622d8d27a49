"""Facts that look wrong: planted ones are found, hidden ones are hidden, work goes on."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings, strategies as st

import splime
from splime.errors import UsageError
from splime.graph import Facts, TemporalGraph
from splime.query import doubting
from splime.query.doubting import Doubts, asked as asking, judging
from splime.query.doubting.aliases import find_aliases, slip
from splime.query.doubting.finding import SCHEMA, Doubt, read_doubts
from splime.query.doubting.overlaps import find_overlaps
from splime.query.predicted import write_predictions
from splime.runs import train
from splime.runs.graph_run import GraphRun
from tests.graphs import graphs
from tests.runs.small import call

Row = tuple[str, str, str, int, int]
WRONG = ("person 3", "worksFor", "firm 6", 2004, 2004)
MOVED = ("person 5", "bornIn", "town 5", 2008, 2008)
TWICE = ("person 8", "worksFor", "firm 5", 2006, 2006)


def people(size: int = 48) -> list[Row]:
    """Everyone is born, then works for one firm each year, which is in one town."""
    rows: list[Row] = []
    for number in range(size):
        name, town = f"person {number}", f"town {number % 7}"
        rows.append((name, "bornIn", town, 1980, 1980))
        rows += [(name, "worksFor", f"firm {number % 7}", y, y) for y in range(2000, 2010)]
        rows.append((name, "visits", town, 2000 + number % 10, 2000 + number % 10))
    return rows


def with_wrong() -> TemporalGraph:
    """The same with a wrong firm, a birth that is too late, and an added firm, stated twice."""
    rows = [WRONG if row[:2] + row[3:] == WRONG[:2] + WRONG[3:] else row for row in people()]
    rows = [MOVED if row[:3] == MOVED[:3] else row for row in rows]
    random.Random(0).shuffle(rows)
    return splime.read([*rows, TWICE, TWICE], granularity="year", split="none")


@pytest.fixture(scope="module", autouse=True)
def few() -> Iterator[None]:
    """Fewer facts are made wrong on purpose, so that tests are quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking, "_PLANTED", 150)
        yield


@pytest.fixture(scope="module")
def found() -> Doubts:
    return doubting.doubts(with_wrong(), limit=12, evidence=True)


def names(row: doubting.Doubt) -> tuple[str, str | None, str | None]:
    return row.subject, row.predicate, row.object


def test_planted_facts_come_first(found: Doubts) -> None:
    first = {names(row): row for row in found.rows[:4]}
    assert {WRONG[:3], MOVED[:3], TWICE[:3]} <= set(first)
    wrong = first[WRONG[:3]]
    assert wrong.kind == "object"
    assert wrong.instead == "firm 3"
    assert wrong.probability is not None
    assert wrong.probability > 0.3
    assert "firm 3" in str(wrong.evidence)
    assert first[MOVED[:3]].kind == "time"
    assert first[MOVED[:3]].instead == "1980"


def test_they_come_in_the_order_of_doubt(found: Doubts) -> None:
    doubts = [row.doubt for row in found]
    assert doubts == sorted(doubts, reverse=True)
    assert all(0 <= one <= 1 for one in doubts)


def test_what_is_stated_twice_is_one_fact_and_does_not_support_itself(found: Doubts) -> None:
    assert found.facts == len(people()) + 1
    assert sum(names(row) == TWICE[:3] for row in found) == 1


def test_an_overlap_names_the_other_fact() -> None:
    found = doubting.doubts(with_wrong(), kind="overlap", evidence=True)
    assert {names(row) for row in found} <= {TWICE[:3], ("person 8", "worksFor", "firm 1")}
    assert names(found[0]) == TWICE[:3]
    assert found[0].instead == "firm 1"
    assert "person 8 worksFor firm 1, 2006" in str(found[0].evidence)


@settings(max_examples=8)
@given(graphs(unknown=False), st.data())
def test_a_hidden_fact_is_absent(graph: TemporalGraph, data: st.DataObject) -> None:
    """Whatever a hidden fact states, the answers are the same."""
    empty = Facts.empty()
    whole = replace(graph, train=graph.facts(), valid=empty, test=empty)
    own = data.draw(st.integers(0, len(whole.train) - 1))
    other = data.draw(st.integers(0, len(graph.entities) - 1))
    asked, scores = whole.train.take(np.array([own])), []
    for name in (int(asked.object[0]), other):
        column = np.array(whole.train.object)
        same = asking.changed(whole.train, whole.train.take(np.full(len(whole.train), own)))
        column[~same] = name
        changed = replace(whole, train=replace(whole.train, object=column))
        scorer = GraphRun(changed, device="cpu").scoring().scorer
        hidden = scorer.statements[own]
        if (scorer.statements == hidden).sum() != (~same).sum():
            return  # it now states what another one states
        with scorer.hiding(np.array([hidden])) as hide:
            hide(int(hidden))
            scores.append(scorer.entities("object", asked))
    assert torch.equal(*scores)


def test_every_fact_and_every_wrong_one_is_asked_for_without_itself() -> None:
    run = doubting.readable(GraphRun(with_wrong()))
    work = doubting.Doubting(run, doubting.DOUBTS, np.arange(len(run.graph.entities)))
    work.choose()
    scorer, seen = work.scorer, []
    entities = scorer.entities

    def watched(kind: str, facts: Facts) -> torch.Tensor:
        seen.append(torch.where(torch.as_tensor(scorer._weights == 0))[0].numpy())
        return entities(kind, facts)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorer, "entities", watched)
        first = 0
        for stop, rows in asking.ask(work.scoring, work.asked, work.starts, np.ones(2), 0):
            assert len(rows) == stop - first
            hidden = np.flatnonzero(work.statements == work.asked.statement[first])
            both = np.concatenate([hidden, hidden + len(work.known)])
            assert len(set(work.asked.statement[first:stop].tolist())) == 1
            assert all(np.array_equal(one, both) for one in seen)
            seen.clear()
            first = stop
    assert first == len(work.asked.way)
    stated = work.asked.fact[work.asked.way < 0]
    assert len(np.unique(work.statements[stated])) == len(people()) + 1


@given(graphs())
def test_overlaps_are_those_of_a_plain_loop(graph: TemporalGraph) -> None:
    facts = graph.facts()
    found = find_overlaps(facts, len(graph.predicates))
    assert set(facts.predicate[found.fact]) <= set(found.predicates.tolist())
    for one, other in zip(found.fact, found.other, strict=True):
        assert facts.subject[one] == facts.subject[other]
        assert facts.object[one] != facts.object[other]
    for one in range(len(facts)):
        if facts.predicate[one] not in found.predicates:
            continue
        begin, end = spans(facts)
        partners = [
            other
            for other in range(len(facts))
            if facts.subject[one] == facts.subject[other]
            and facts.predicate[one] == facts.predicate[other]
            and facts.object[one] != facts.object[other]
            and 3 not in (facts.unknown[one], facts.unknown[other])
            and (
                begin[one] == begin[other] or (begin[one] < end[other] and begin[other] < end[one])
            )
        ]
        assert (one in found.fact) == bool(partners)


def spans(facts: Facts) -> tuple[list[int], list[int]]:
    begin = np.where(facts.unknown == 1, facts.end, facts.begin)
    end = np.where(facts.unknown == 2, facts.begin, facts.end)
    return begin.tolist(), end.tolist()


def test_one_thing_under_two_names() -> None:
    rows = people()
    draw, named = random.Random(0), dict[str, str]()
    for row in rows:
        for name in (row[0], row[2]):
            named.setdefault(name, "".join(draw.choices("abcdefghiklmnoprstuv", k=9)))
    one = named["person 9"]
    other = one[:4] + one[5:]
    twin: list[Any] = [(named[s], p, named[o], *when) for s, p, o, *when in rows]
    twin = [(other, *row[1:]) if row[0] == one and row[3] > 2004 else row for row in twin]
    graph = splime.read(twin, granularity="year", split="none")
    pairs = find_aliases(graph, graph.train)
    best = {graph.entities[int(pairs.one[0])], graph.entities[int(pairs.other[0])]}
    assert best == {one, other}
    found = doubting.doubts(graph, kind="name", limit=3)
    assert found[0].kind == "name"
    assert {found[0].subject, found[0].object} == best


@given(st.text(min_size=1, max_size=12), st.integers(0, 99))
def test_slips_are_small(name: str, seed: int) -> None:
    slipped = slip(name, np.random.default_rng(seed))
    assert abs(len(slipped) - len(name)) <= max(1, len(name.split(" ")[0]) - 2)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_files(found: Doubts, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"doubts{suffix}"
    again = doubting.doubts(with_wrong(), limit=12, evidence=True, out=path)
    assert again.rows == found.rows
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    if suffix == ".parquet":
        assert pq.read_table(path).to_pylist() == [row._asdict() for row in found]
    elif suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert rows == [row._asdict() for row in found]
    else:
        assert len(path.read_text().splitlines()) == len(found) + 1


def test_no_cell_is_a_formula_to_a_spreadsheet(tmp_path: Path) -> None:
    row = Doubt("object", "+a", "=p", "-b", "-431", "-430", 0.5, "=2+5", 0.5, "@c =p -b, 2001")
    write_predictions(pa.Table.from_pylist([row._asdict()], schema=SCHEMA), tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        cells = list(csv.reader(file))[1]
    assert {cell for cell in cells if cell[0] in "=+-@"} == {"-431", "-430"}
    assert read_doubts(tmp_path / "out.csv") == [row]


@pytest.mark.parametrize("after", [1, 400, "what is more probable"])
def test_an_interrupted_one_goes_on(tmp_path: Path, after: int | str) -> None:
    whole, broken = tmp_path / "whole.csv", tmp_path / "broken.csv"
    graph, asked = with_wrong(), []
    doubting.doubts(graph, limit=5, out=whole)

    def stop(what: str, done: int, total: int | None = None, note: str = "") -> None:
        asked.append((what, done))
        if what == after or (what == "asking" and isinstance(after, int) and done >= after):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        doubting.doubts(graph, limit=5, out=broken, progress=stop)
    assert not broken.exists()
    first = [done for text, done in asked if text == "asking"][-1]
    asked.clear()
    doubting.doubts(graph, limit=5, out=broken, progress=lambda *given: asked.append(given[:2]))
    assert broken.read_bytes() == whole.read_bytes()
    assert all(done > first for text, done in asked if text == "asking")


def test_chosen_ones() -> None:
    graph = with_wrong()
    found = doubting.doubts(graph, predicate="worksFor", entity="person 3", limit=50)
    assert found.facts == 10
    assert {row.predicate for row in found} == {"worksFor"}
    assert names(found[0]) == WRONG[:3]
    times = doubting.doubts(graph, kind=["time"], entity=["person 5"])
    assert {row.kind for row in times} == {"time"}
    assert names(times[0]) == MOVED[:3]


def test_hostile_input(tmp_path: Path) -> None:
    one = splime.read([("Ada", "livesIn", "Ulm", 1990, 1991)], split="none")
    with pytest.raises(UsageError, match=r"1 different fact .* 50 are needed"):
        doubting.doubts(one)
    hostile: Any = ({"kind": "objekt"}, {"limit": 0}, {"out": tmp_path / "x.txt"})
    for wrong in hostile:
        with pytest.raises(UsageError):
            doubting.doubts(with_wrong(), **wrong)
    few: Any = {"epochs": 1, "validate_every": 0}
    run = train(with_wrong(), "vanilla", tmp_path / "run", model="distmult", dimension=2, **few)
    with pytest.raises(UsageError, match="learned its facts by heart"):
        doubting.doubts(run)
    ahead = GraphRun(with_wrong()).forecast
    with pytest.raises(UsageError, match="forecasts"):
        doubting.doubts(ahead)
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("time", [2000, None])
def test_no_times_to_speak_of(time: int | None) -> None:
    rows = {(s, p, o, 2000, 2000) for s, p, o, *_ in people()}
    if time is None:
        made = [(*row[:3], None, None) for row in sorted(rows)[1:]] + sorted(rows)[:1]
        graph = splime.read(made, granularity="year", split="none")
    else:
        graph = splime.read(sorted(rows), granularity="year", split="none")
    found = doubting.doubts(graph, limit=5)
    assert any("nothing can be said about times" in one for one in found.remarks)
    assert "time" not in {row.kind for row in found}


def test_facts_that_follow_no_law_are_not_doubtful() -> None:
    draw, rows = random.Random(0), []
    for _ in range(150):
        year = draw.randrange(1990, 2010)
        rows.append((f"a{draw.randrange(60)}", "p", f"b{draw.randrange(60)}", year, year))
    found = doubting.doubts(splime.read(rows, granularity="year", split="none"), kind="object")
    assert all(row.doubt < 0.5 for row in found)


def test_nothing_is_said_where_nothing_is_connected() -> None:
    rows = [(f"a{n}", f"p{n % 3}", f"b{n}", 1990 + n % 20, 1990 + n % 20) for n in range(80)]
    found = doubting.doubts(splime.read(rows, granularity="year", split="none"))
    assert not [row for row in found if row.kind in asking.WAYS]
    assert any("do not rely" in one for one in found.remarks)


def test_a_run_of_the_path_model(tmp_path: Path) -> None:
    run = train(
        with_wrong(),
        None,
        tmp_path / "run",
        model="path",
        epochs=1,
        batch_size=16,
        validate_every=0,
    )
    found = doubting.doubts(run, kind="object", limit=3)
    assert WRONG[:3] in {names(row) for row in found}


def test_wrong_facts_differ_in_one_way() -> None:
    graph, draw = with_wrong(), np.random.default_rng(0)
    for way in asking.WAYS:
        wrong = asking.make_wrong(graph.train, way, graph.train, graph, draw)
        for name in ("subject", "predicate", "object"):
            same = np.array_equal(getattr(wrong, name), getattr(graph.train, name))
            assert same == (name != way)
        assert (wrong.begin <= wrong.end).all()
        assert (way == "time") == bool((wrong.begin != graph.train.begin).any())


@pytest.mark.system
def test_the_command(tmp_path: Path) -> None:
    path, out = tmp_path / "facts.csv", tmp_path / "doubts.csv"
    rows = with_wrong().rows()
    path.write_text(
        "subject,predicate,object,begin,end\n"
        + "".join(f"{','.join(map(str, row))}\n" for row in rows)
    )
    done = call("doubts", str(path), "--out", str(out), "--why", "--limit", "5")
    assert done.code == 0, done.err
    assert "about" in done.err
    assert out.read_text().splitlines()[0].startswith('"kind","subject"')
    shown = call("doubts", str(path), "--json", "--kind", "object,overlap", "--limit", "3")
    assert len(json.loads(shown.out)["doubts"]) == 3
    wrong = call("doubts", str(path), "--kind", "objekt")
    assert wrong.code == 2
    assert "object" in wrong.err
    path.write_text("subject,predicate,object,begin,end\nAda,livesIn,Ulm,1990,1991\n")
    one = call("doubts", str(path), "--out", str(out))
    assert one.code == 2
    assert "50 are needed" in one.err


def test_few_facts_are_judged_by_what_has_not_seen_them() -> None:
    """One is stated, but like those that were made wrong: a regression could learn it by heart."""
    draw, size = np.random.default_rng(0), 100
    said = np.concatenate([draw.normal(0, 1, (size, 11)), draw.normal(1, 1, (size, 11))])
    said[0] = draw.normal(1, 1, 11)
    way = np.repeat([-1, 0], size)
    numbers, zeros = np.tile(np.arange(size), 2), np.zeros(2 * size, np.int64)
    names_of, known = np.zeros(2 * size, np.int32), np.zeros(2 * size, np.uint8)
    facts = splime.Facts.owning(names_of, names_of, names_of, zeros, zeros, known)
    asked_for = asking.AskedFacts(facts, numbers, numbers, way)
    [apart] = judging.judge(said, asked_for, np.arange(1), 1)
    [by_heart] = judging.Judge(said, facts.predicate, way, 1).probabilities(said[:1], names_of[:1])
    assert apart[0] > 2 * by_heart[0]
