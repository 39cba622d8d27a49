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
from experiments import rivals
from experiments.rivals import (
    KEPT,
    ROWS,
    STRATA,
    chosen,
    more_seeds,
    pack,
    rivals_parts,
    unpack,
)
from experiments.rows import DATA, METRICS, PATHS, RANKS, Case, Results, TableRow
from experiments.running import READINGS, load_graph, run_case
from experiments.studies import STUDIES
from splime.embedding.models import MODELS
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
    record = {"figures": [on_valid, test], "predicates": 1, "valid": None}
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


def test_valid_chooses_and_the_first_two_get_seeds(results: Results, four: list[TableRow]) -> None:
    assert chosen(results, four[0]) == []
    for at, row in enumerate(four):
        for tried, case in enumerate(row.cases):
            assert more_seeds(results) == []
            # The second try is best on valid, the third on test.
            ranks = np.full((FACTS, 2), 4.0 - tried)
            fake(results, case, 0.1 * at + 0.01 * (tried == 1), ranks)
    best = [chosen(results, row) for row in four]
    assert [seeds[0] for seeds in best] == [row.cases[1] for row in four]
    wanted = {case.key() for seeds in best[2:] for case in seeds[1:]}
    seeds = more_seeds(results)
    assert {case.key() for case in seeds} == wanted
    assert {case.training["seed"] for case in seeds} == {1, 2}
    for case in seeds:
        fake(results, case, 0.9)  # another seed does not choose
    assert {case.key() for case in more_seeds(results)} == wanted
    stays = best[0][2]  # run when it was among the best
    fake(results, stays, 0.9)
    assert {case.key() for case in more_seeds(results)} == {*wanted, stays.key()}
    [table] = rivals_parts(results)["ahead"]
    assert {row[0]: row[-1] for row in table.rows} == {
        **dict.fromkeys((row.title for row in four[2:]), "3"),
        **{four[0].title: "2", four[1].title: "1"},
        "path": "0",
    }


def test_who_is_ahead(results: Results, four: list[TableRow]) -> None:
    """Order, p-values and dashes; p-values are those of the paired bootstrap."""
    rng = np.random.default_rng(0)
    best = rng.integers(1, 6, (FACTS, 2)).astype(float)
    close = best.copy()
    close[:3] += 1
    ranks = {four[0].title: best + 3, four[1].title: best, four[2].title: close}
    for row in four[:3]:
        # The first has not been trained as its authors did, and counts as static.
        case = row.cases[int(row is four[1])]
        fake(results, case, 0.5, ranks[row.title])
    parts = rivals_parts(results)
    [table], [tries], [published] = parts["ahead"], parts["tries"], parts["published"]
    assert rivals.rivals_tables(results) == [each for own in parts.values() for each in own]
    assert [line[0] for line in tries.rows] == [row.title for row in four]
    ran = [[cell.split(" / ")[0] for cell in line if "/" in cell] for line in tries.rows]
    assert ran == [[".500"], [".500"], [".500"], []]
    names = [row[0] for row in table.rows]
    assert names[:3] == [four[1].title, four[2].title, four[0].title]
    assert set(names[3:]) == {four[3].title, "path"}
    column = [*table.columns].index
    lines = {row[0]: row for row in table.rows}
    assert lines[four[3].title][1:] == ("–",) * 8 + ("0",)

    def chances(row: TableRow, against: str) -> list[str]:
        """By exact and by overlap, which is not kept here."""
        return lines[row.title][column(f"p, {against}")].split(" / ")

    assert chances(four[1], "first") == ["–"]
    assert chances(four[2], "rival") == ["–"]
    near = chances(four[2], "first")
    assert near[0] == near[1]
    assert near == chances(four[1], "rival")
    for against in ("first", "rival"):
        assert all(float(p) < 0.05 for p in chances(four[0], against))
    # Three different tests: the difference of the near one is the largest p-value of them.
    alone = paired_bootstrap(best, close, samples=5_000)["mrr"].p
    assert alone is not None
    assert float(near[0]) == pytest.approx(alone, abs=6e-3)
    [strata], [claims] = parts["strata"], parts["claims"]
    assert (four[0].title, *(".500 / .500",) * 5) in strata.rows
    ours = {line[1]: line[4:] for line in published.rows}
    assert ours[four[2].title][:2] == (lines[four[2].title][1],) * 2  # trained as its authors did
    assert ours[four[1].title][0] == "–"
    for _, title, printed, protocol, _, mrr, apart in published.rows:
        assert (apart != "–") == (protocol == "exact" and mrr != "–")
        if apart != "–":
            expected = float(mrr) - float(printed.split(" / ")[0])
            assert float(apart) == pytest.approx(expected, abs=1e-3), title
    assert {row[0] for row in claims.rows} == {"yago11k"}


def test_the_path_model_is_that_of_its_study(results: Results, four: list[TableRow]) -> None:
    assert four
    paths = Results(results.path.with_name("paths.json"))
    metrics = dict.fromkeys(("exact", "overlap", "static"), dict.fromkeys(METRICS, 0.3))
    about = {"predicates": 1, "valid": 0.35, "parameters": 400_000, "seconds": 170.0}
    for case in PATHS["yago11k"][0].cases:
        paths.add(case, {"figures": [{"metrics": metrics}], **about})
    parts = rivals_parts(results)
    ahead, settings = (parts[name][0].rows[0] for name in ("ahead", "settings"))
    assert (ahead[:2], ahead[-1]) == (("path", ".300 ± .000"), "3")
    assert (settings[0], settings[2:]) == ("path", (".350", "400,000", "170"))


def test_labels_lie_on_nothing(results: Results, tmp_path: Path) -> None:
    """Also where many models have about the same size and MRR."""
    own = [row for row in ROWS if row.dataset == "icews14"]
    for at, row in enumerate(own):
        ranks = np.full((FACTS, 2), 2.0 + 0.02 * (at % 7))
        fake(results, row.cases[0], 0.5, ranks, parameters=20_000_000 + 10_000 * at)
    figure = rivals.rivals_pictures(results, tmp_path)["rivals-icews14"]
    with (tmp_path / "picture.png").open("wb") as file:
        figure.savefig(file)
    from matplotlib.text import Text

    [axes] = figure.axes
    assert sorted(text.get_text() for text in axes.texts) == sorted(row.title for row in own)
    boxes = [Text.get_window_extent(text) for text in axes.texts]
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)


def test_lines_to_labels_keep_off_other_labels(results: Results, tmp_path: Path) -> None:
    """Half of the models have about the same size and MRR, and the others are far from them."""
    own = [row for row in ROWS if row.dataset == "icews14"]
    for at, row in enumerate(own):
        rank, size = 2 + 0.1 * (at % 3), 20 + 3 * (at % 4)
        if at >= 14:
            rank, size = 2.5 + 0.5 * (at - 14), 2 * (at - 13)
        fake(results, row.cases[0], 0.5, np.full((FACTS, 2), rank), parameters=size * 10**6)
    figure = rivals.rivals_pictures(results, tmp_path)["rivals-icews14"]
    figure.draw_without_rendering()
    from matplotlib.text import Annotation, Text

    [axes] = figure.axes
    boxes = {text: Text.get_window_extent(text) for text in axes.texts}
    crossed = 0
    for text in (text for text in boxes if isinstance(text, Annotation) and text.arrow_patch):
        mark, (left, low, right, high) = axes.transData.transform(text.xy), boxes[text].extents
        middle = np.array([left + right, low + high]) / 2
        points = [mark + part * (middle - mark) for part in np.linspace(0, 1, 50)]
        others = [box for other, box in boxes.items() if other is not text]
        crossed += any(box.contains(*point) for box in others for point in points)
    assert crossed < 3  # one, and four where lines do not look where they go


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
    assert len(results.records) == 5 + 2 * 2
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
    assert sorted(row[0] for row in table.rows) == ["ComplEx", "TTransE", "TeRo", "TransE"]
    assert sorted(row[-1] for row in table.rows) == ["1", "1", "3", "3"]
    assert len(strata.rows) == 4
    before = dict(results.records)
    study.run(Results(results.path), [], tmp_path / "runs", **how)
    assert Results(results.path).records == before
