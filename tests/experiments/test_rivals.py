"""The rivals: a fair search, what valid chooses, who is ahead, and a small study for real."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import splime
from experiments import factwise, rivals, rows
from experiments.commands import STORED
from experiments.factwise import GROUPS, Factwise, groups_of_facts
from experiments.rivals import (
    KEPT,
    NEAR,
    ROWS,
    STRATA,
    chosen,
    entries,
    first_rival,
    more_seeds,
    pack,
    unpack,
)
from experiments.rivals_page import rivals_parts, rivals_pictures, rivals_tables
from experiments.rows import DATA, METRICS, PATHS, RANKS, Case, Results, TableRow
from experiments.running import READINGS, load_graph, run_case
from experiments.studies import STUDIES
from splime.embedding.models import MODELS
from splime.graph import TemporalGraph
from splime.io import read
from splime.runs import Run, evaluate
from splime.workers import Parallel
from tests.evaluation.test_paired import paired_bootstrap
from tests.runs.small import small_graph

pytestmark = pytest.mark.system

FACTS = 200


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "rivals.json")


def fake(results: Results, case: Case, valid: float, ranks: Any = None, **about: Any) -> None:
    """What a training could have given."""
    ranks = np.full((FACTS, 2), 4.0) if ranks is None else np.asarray(ranks, np.float64)
    metrics = dict.fromkeys(METRICS, float((1 / ranks).mean()))
    strata = {kind: dict.fromkeys(groups, 0.5) for kind, groups in STRATA.items()}
    test = {
        "metrics": dict.fromkeys(("exact", "overlap", "static"), metrics),
        "strata": dict.fromkeys(KEPT, strata),
        "reciprocals": dict.fromkeys(KEPT, pack(ranks)),
    }
    on_valid = {"metrics": {"exact": dict.fromkeys(METRICS, valid)}}
    figures = [on_valid, test][-len(case.evaluations) :]
    record = {"figures": figures, "predicates": 1, "valid": valid, "epochs": 1}
    results.add(case, {**record, "parameters": 10**6, "seconds": 1.0, **about})


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> list[TableRow]:
    """Four models of one dataset."""
    own = [row for row in ROWS if row.dataset == "yago11k"][:4]
    monkeypatch.setattr(rivals, "ROWS", own)
    return own


def test_every_model_is_there_and_has_as_many_tries() -> None:
    models = {model["training"]["model"]: model["title"] for model in DATA["rivals"]["models"]}
    assert set(models) == set(MODELS)
    declared = Counter(row.dataset for row in ROWS)
    declared.update(label.split()[0] for label in DATA["rivals"]["left_out"])
    assert max(declared.values()) == len(DATA["rivals"]["models"])
    # DistMult with levels is on ICEWS14 alone, with and without model E.
    assert min(declared.values()) == len(DATA["rivals"]["models"]) - 2
    tries = {(row.dataset, len(row.cases)) for row in ROWS}
    # On YAGO11k levels have one more. On Wikidata12k products have two strengths of N3. There and
    # on ICEWS14 products that know time have one more try, a setting that was good for levels;
    # distances, and products of entities that move, have another loss. ATiSE, TDG2E and the
    # gadget of TIMEPLEX have nothing more.
    few = {"yago11k": {3, 4}, "wikidata12k": {3, 4, 5}, "icews14": {2, 3, 4}}
    assert tries == {(dataset, count) for dataset, counts in few.items() for count in counts}
    for row in ROWS:
        authors = [case for case in row.cases if "preset" in case.training]
        temporal = MODELS[row.cases[0].training["model"]].cuts == "timestamps"
        assert len(authors) == temporal, row.label
        assert authors == row.cases[: len(authors)]


def test_the_search_is_fair() -> None:
    for case in (case for row in ROWS for case in row.cases):
        assert READINGS[case.reading]["end_before_begin"] == "repair"
        assert case.parameters["fit_on"] == "train"
        assert [one["split"] for one in case.evaluations] == ["valid", "test"]
        assert {one["protocol"] for one in case.evaluations} == {"fact"}
        assert not any("aggregate" in one for one in case.evaluations)


def test_readings_ask_for_the_same_facts(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks of runs are compared row by row, so all readings have the facts in the same order."""
    monkeypatch.setenv("SPLIME_DATA", str(published))
    for dataset in ("yago11k", "wikidata12k"):
        own = {case.reading for row in ROWS if row.dataset == dataset for case in row.cases}
        assert own >= {"fact", "point", "fact-years"}
        graphs = [load_graph(dataset, reading) for reading in own]
        asked = [[fact[:3] for fact in graph.rows("test")] for graph in graphs]
        assert all(each == asked[0] for each in asked)
        assert len({len(graph.timeline) for graph in graphs}) > 1
        # Buckets come from train: what valid and test hold changes nothing.
        for reading in own - {"fact-years"}:
            assert READINGS[reading]["bucket_on"] == "train"


def test_reciprocal_ranks_are_kept_to_a_thousandth() -> None:
    ranks = np.array([[1.0, 1.5], [2.0, 12_000.0], [7.0, 41.5]])
    assert unpack(pack(ranks)) == pytest.approx(1 / ranks, abs=5e-4)


def test_valid_chooses_and_what_is_near_the_first_rival_gets_seeds(
    results: Results, four: list[TableRow]
) -> None:
    assert chosen(results, four[0]) == []
    for at, row in enumerate(four):
        for tried, case in enumerate(row.cases):
            assert more_seeds(results) == []
            # The second try is best on valid, the third on test; the last two rows are near.
            ranks = np.full((FACTS, 2), 4.0 - tried)
            fake(results, case, (0.1, 0.2, 0.3 - 0.9 * NEAR, 0.3)[at] + 0.01 * (tried == 1), ranks)
    best = [chosen(results, row) for row in four]
    assert [seeds[0] for seeds in best] == [row.cases[1] for row in four]
    wanted = {case.key() for seeds in best[2:] for case in seeds[1:]}
    seeds = more_seeds(results)
    assert {case.key() for case in seeds} == wanted
    assert {case.training["seed"] for case in seeds} == {1, 2}
    [effort] = rivals_parts(results)["effort"]
    assert effort.rows[0][effort.columns.index("trainings missing for three seeds")] == "4"
    for case in seeds:
        fake(results, case, 0.9)  # another seed does not choose
    assert {case.key() for case in more_seeds(results)} == wanted
    stays = best[0][2]  # run when it was among the best
    fake(results, stays, 0.9)
    assert {case.key() for case in more_seeds(results)} == {*wanted, stays.key()}
    [table] = rivals_parts(results)["ahead"]
    runs = {row[0]: row[-1] for row in table.rows}
    assert {row.title: runs[row.title] for row in four} == {
        **dict.fromkeys((row.title for row in four[2:]), "3"),
        **{four[0].title: "2", four[1].title: "1"},
    }
    [effort] = rivals_parts(results)["effort"]
    assert effort.rows[0][effort.columns.index("trainings missing for three seeds")] == "0"


def test_what_ran_to_its_end_is_counted(results: Results, four: list[TableRow]) -> None:
    """By the number of epochs; what valid could not end is apart."""
    patient = [case for case in four[0].cases if case.training.get("patience")]
    others = [row for row in four[1:] if any(c.training.get("patience") for c in row.cases)]
    fake(results, patient[0], 0.5, epochs=patient[0].training["epochs"])
    stopped = next(case for case in others[0].cases if case.training.get("patience"))
    fake(results, stopped, 0.5, epochs=stopped.training["epochs"] - 1)
    listed = [entry for entry in entries(results, "yago11k") if entry.cases]
    assert {entry.title: entry.ended for entry in listed} == {
        four[0].title: False,
        others[0].title: True,
    }
    unchecked = four[0].cases[0].but(training={"validate_every": 0})
    fake(results, unchecked, 0.5, epochs=1)
    assert listed[0]._replace(cases=[unchecked]).ended is None
    [effort] = rivals_parts(results)["effort"]
    assert effort.rows[0][1:4] == ("2", "1", "0")


def linked_graph() -> TemporalGraph:
    """A fact of test for each group, and one of a pair that train links the other way."""
    train = [("a", "p", "b", 1, 1), ("c", "p", "d", 1, 1), ("e", "q", "f", 2, 2)]
    test = [
        ("b", "p", "a", 1, 1),  # the reverse
        ("d", "q", "c", 1, 1),  # another predicate at that time
        ("b", "p", "a", 2, 2),  # the reverse at another time
        ("e", "q", "f", 1, 1),  # the same at another time
        ("a", "p", "f", 1, 1),
    ]
    return read({"train": train, "test": test}, granularity="year")


def test_facts_are_grouped_by_what_train_has() -> None:
    names = [GROUPS[at] for at in groups_of_facts(linked_graph()).tolist()]
    assert names == ["reverse", "same time", "other time", "other time", "never"]


def stored_factwise(results: Results, group: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare what was faked, on facts of chosen groups."""
    monkeypatch.setattr(factwise, "groups_of_facts", lambda _: group)
    listed = entries(results, "yago11k")
    measured = factwise.measure(listed, linked_graph(), samples=5_000)
    factwise.store(results, "yago11k", measured)


def test_who_is_ahead(
    results: Results, four: list[TableRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Order, p-values and dashes; p-values are those of the paired bootstrap."""
    rng = np.random.default_rng(0)
    best = rng.integers(1, 6, (FACTS, 2)).astype(float)
    close = best.copy()
    close[:3] += 1
    ranks = {four[0].title: best + 3, four[1].title: close, four[2].title: best + 1}
    for row, valid in zip(four[:3], (0.4, 0.6, 0.5), strict=True):
        fake(results, row.cases[0], valid, ranks[row.title])
    paths = Results(results.path.with_name("paths.json"))
    fake(paths, PATHS["yago11k"][0].cases[0], 0.7, best)
    [table] = rivals_parts(results)["ahead"]
    column = [*table.columns].index
    assert {row[column("p, path")] for row in table.rows} == {"–"}  # nothing was compared yet
    group = np.arange(FACTS) % 3
    stored_factwise(results, group, monkeypatch)
    parts = rivals_parts(results)
    [table], [tries], [published] = parts["ahead"], parts["tries"], parts["published"]
    shown = {table.title for table in rivals_tables(results)}
    assert {table.title, tries.title, published.title} <= shown
    assert [line[0] for line in tries.rows] == [row.title for row in four]
    names = [row[0] for row in table.rows]
    assert names[:4] == ["path", four[1].title, four[2].title, four[0].title]
    lines = {row[0]: row for row in table.rows}
    assert lines[four[3].title][1:] == ("–",) * 10 + ("0",)
    rival = first_rival(entries(results, "yago11k"))
    assert rival is not None
    assert rival.title == four[1].title  # it is best on valid
    assert table.notes == [f"First rival, by valid: {four[1].title}."]
    # Of three models: path and the others, and the rival and the others, each once.
    assert Factwise(results).compared == 5
    by = {
        name: {row[0]: row[column(name)] for row in table.rows} for name in ("p, path", "p, rival")
    }
    assert by["p, path"]["path"] == by["p, rival"][four[1].title] == "–"
    assert by["p, path"][four[1].title] == by["p, rival"]["path"]
    assert float(by["p, path"][four[0].title]) < 0.05
    assert float(by["p, rival"][four[0].title]) < 0.05
    # The difference of the near one is the largest of the p-values: Holm leaves it as it is.
    alone = paired_bootstrap(best, close, samples=5_000)["mrr"].p
    assert alone is not None
    assert float(by["p, path"][four[1].title]) == pytest.approx(alone, abs=6e-3)
    [pairs], [strata], [claims] = parts["pairs"], parts["strata"], parts["claims"]
    assert (four[0].title, *(".500 / .500",) * 5) in strata.rows
    expected = [float((1 / close)[group == at].mean()) for at in range(3)]
    cells = next(row for row in pairs.rows if row[0] == four[1].title)[1:]
    assert [float(cell.split(" / ")[0]) for cell in cells[:3]] == pytest.approx(expected, abs=1e-3)
    assert cells[3] == "–"
    assert pairs.columns[1] == "reverse (33.5 %)"
    for _, title, printed, protocol, source, _, mrr, apart in published.rows:
        assert source
        assert (apart != "–") == (protocol == "exact" and mrr != "–")
        if apart != "–":
            expected_apart = float(mrr) - float(printed.split(" / ")[0])
            assert float(apart) == pytest.approx(expected_apart, abs=1e-3), title
    assert {row[0] for row in claims.rows} == {"yago11k"}


def test_other_ranks_need_another_comparison(
    results: Results, four: list[TableRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A p-value of ranks that are no longer stored is not shown."""
    rng = np.random.default_rng(0)
    for row, valid in zip(four[:3], (0.6, 0.5, 0.4), strict=True):
        fake(results, row.cases[0], valid, rng.integers(1, 6, (FACTS, 2)))
    stored_factwise(results, np.zeros(FACTS, np.int64), monkeypatch)

    def shown() -> tuple[dict[str, str], set[str]]:
        [ahead], [pairs] = (rivals_parts(results)[name] for name in ("ahead", "pairs"))
        column = [*ahead.columns].index("p, rival")
        return {row[0]: row[column] for row in ahead.rows}, {row[0] for row in pairs.rows}

    before, grouped = shown()
    assert before[four[1].title] != "–"
    assert grouped == {row.title for row in four[:3]}
    fake(results, four[1].cases[0], 0.5, rng.integers(1, 6, (FACTS, 2)))
    after, grouped = shown()
    assert after[four[1].title] == "–"
    assert after[four[2].title] == before[four[2].title] != "–"
    assert grouped == {four[0].title, four[2].title}


def test_groups_of_the_datasets(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stored shares are those of the datasets, and ranks are of facts in their order."""
    monkeypatch.setenv("SPLIME_DATA", str(published))
    stored = Results(STORED / "rivals.json")
    facts = Factwise(stored)
    for dataset in ("yago11k", "wikidata12k", "icews14"):
        graph = load_graph(dataset, "fact")
        group = groups_of_facts(graph)
        for at, name in enumerate(GROUPS):
            assert facts.share(dataset, name) == float((group == at).mean())
        seen = {(fact[:3]) for fact in graph.rows("train")}
        again = np.array([fact[:3] in seen for fact in graph.rows("test")])
        for entry in entries(stored, dataset)[:4]:
            mrr = entry.stratum("exact", "train", "triple seen in train")
            if entry.kept(RANKS) and mrr is not None and len(entry.kept(RANKS)) == len(entry.cases):
                assert entry.reciprocals("exact")[again].mean() == pytest.approx(mrr, abs=1e-3)


def test_the_path_model_is_that_of_its_study(results: Results, four: list[TableRow]) -> None:
    assert four
    paths = Results(results.path.with_name("paths.json"))
    metrics = dict.fromkeys(("exact", "overlap", "static"), dict.fromkeys(METRICS, 0.3))
    about = {"predicates": 1, "valid": 0.35, "parameters": 400_000, "seconds": 170.0}
    for case in PATHS["yago11k"][0].cases:
        paths.add(case, {"figures": [{"metrics": metrics}], **about})
    parts = rivals_parts(results)
    ahead, settings = (parts[name][0].rows[0] for name in ("ahead", "settings"))
    assert (ahead[:2], ahead[-2:]) == (("path", ".300 ± .000"), ("1", "3"))
    assert (settings[0], settings[2:]) == ("path", (".350", "400,000", "170"))


def test_our_own_lines_are_there() -> None:
    """Architecture and time are told apart; the tries are those of the same search."""
    listed = {entry.title: entry for entry in entries(Results(STORED / "rivals.json"), "yago11k")}
    ours = {title: entry for title, entry in listed.items() if entry.row is None}
    assert ours.keys() == DATA["rivals"]["ours"].keys()
    assert ours["path without time"].cases[0].training["relative"] == "none"
    assert ours["path, counted"].cases[0].training["messages"] == "counted"
    assert [type(case) for case in ours["paths and ComplEx combined"].cases] == [rows.Combination]
    single = [row for row in PATHS["yago11k"] if not isinstance(row.cases[0], rows.Combination)]
    tries = [ours[title].tries for title in ("path", "path, counted")]
    without = sum(row.cases[0].training.get("relative") == "none" for row in single)
    assert sum(tries) == len(single) - without - 1  # nor ComplEx


def test_each_model_has_a_row_with_its_name(results: Results, tmp_path: Path) -> None:
    """Also where many models have about the same MRR; the best one is at the top."""
    own = [row for row in ROWS if row.dataset == "icews14"]
    for at, row in enumerate(own):
        ranks = np.full((FACTS, 2), 2.0 + 0.02 * (at % 7))
        fake(results, row.cases[0], 0.5, ranks, parameters=20_000_000 + 10_000 * at)
    figure = rivals_pictures(results, tmp_path)["rivals-icews14"]
    figure.draw_without_rendering()
    from matplotlib.text import Text

    left, right = figure.axes
    labels = [label for label in left.get_yticklabels() if label.get_text()]
    assert sorted(label.get_text() for label in labels) == sorted(row.title for row in own)
    boxes = [Text.get_window_extent(label) for label in labels]
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    assert len([line for line in right.lines if np.size(line.get_xdata())]) == len(own)


TINY: dict[str, Any] = {"dimension": 4, "epochs": 2, "validate_every": 1, "batch_size": 30}
DECLARED: dict[str, Any] = {
    "datasets": ["small"],
    "left_out": ["small TransH"],
    "case": {
        "reading": "fact",
        "parameters": {"fit_on": "train"},
        "training": {"seed": 0},
        "evaluations": [
            {"protocol": "fact", "split": "valid"},
            {"protocol": "fact", "split": "test", "keep": True},
        ],
    },
    "frames": {"all": {"small": [{"training": TINY}]}},
    "models": [
        {
            "title": "TTransE",
            "frame": "all",
            "training": {"model": "ttranse"},
            "published": {"small": {"training": TINY}},
        },
        {
            "title": "ComplEx",
            "frame": "all",
            "training": {"model": "complex", "levels": "predicate,1"},
        },
        {"title": "TeRo", "frame": "all", "training": {"model": "tero", "each": "ends"}},
        {"title": "TransE", "frame": "all", "training": {"model": "transe"}},
        {"title": "TransH", "frame": "all", "training": {"model": "transh"}},
    ],
}


def test_a_small_study(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is run once, interrupted or not, and what is kept is what the runs give."""
    splime.save(small_graph(test=40), tmp_path / "small-fact.parquet")
    own = list(rivals.rival_rows(DECLARED))
    monkeypatch.setattr(rivals, "ROWS", own)
    study = replace(STUDIES["rivals"], rows=own)
    how: dict[str, Any] = {"data": tmp_path, "parallel": Parallel(device="cpu")}
    study.run(results, ["TTransE"], tmp_path / "runs", **how)
    assert len(results.records) == 2
    study.run(results, [], tmp_path / "runs", **how)
    valid = {row.title: rivals.on_valid(results, chosen(results, row)[0]) for row in own}
    lowest = max(valid["TTransE"], valid["TeRo"]) - NEAR
    near = {title for title, value in valid.items() if value >= lowest}
    assert len(results.records) == 5 + 2 * len(near)
    case = own[0].cases[0]
    assert case.training["preset"] == "published"
    [best, *_] = chosen(results, own[0])
    assert {RANKS in results[each]["figures"][1] for each in own[0].cases if each != best} == {
        False
    }
    run_case(best, keep=tmp_path / "kept", data=tmp_path, device="cpu")
    evaluation = evaluate(Run(tmp_path / "kept", device="cpu"))
    stored = results[best]["figures"][1]
    for name in KEPT:
        kept = stored["reciprocals"].get(name, stored["reciprocals"]["exact"])
        assert unpack(kept) == pytest.approx(1 / evaluation.ranks[name], abs=5e-4)
        for kind in STRATA:
            assert stored["strata"][name][kind] == pytest.approx(
                {group: each.mrr for group, each in evaluation.strata[name][kind].items()}, abs=1e-6
            )
    parts = rivals_parts(results)
    [table], [strata] = parts["ahead"], parts["strata"]
    runs = {row[0]: row[-1] for row in table.rows}
    assert runs == {title: "3" if title in near else "1" for title in valid}
    assert results[best]["curve"][-1][0] == TINY["epochs"]
    assert max(mrr for _, mrr in results[best]["curve"]) == results[best]["valid"]
    assert len(strata.rows) == 4
    before = dict(results.records)
    study.run(Results(results.path), [], tmp_path / "runs", **how)
    assert Results(results.path).records == before
