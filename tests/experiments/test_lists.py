"""The declared lists: how many rows, which cases, and that their keys mean what they say."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

import splime
from experiments import algorithm_2, rows
from experiments.commands import STORED
from experiments.published import resolved
from experiments.rows import RANKS, Case, Results
from experiments.running import READINGS, load_graph
from experiments.studies import STUDIES
from experiments.tables import cells
from splime.errors import UsageError
from splime.graph import TemporalGraph
from splime.methods import make_method
from splime.training.registry import make_settings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def empty(tmp_path: Path) -> Results:
    return Results(tmp_path / "none.json")


def test_main_has_the_rows_of_the_paper() -> None:
    main = rows.MAIN
    assert Counter(row.dataset for row in main) == {"wikidata12k": 7, "yago11k": 7, "icews14": 7}
    counts = {(row.dataset, row.cases[0].method): len(row.cases) for row in main}
    randoms = {data: count for (data, method), count in counts.items() if method == "random"}
    assert randoms == {"wikidata12k": 7, "yago11k": 7, "icews14": 5}
    assert {n for (_, method), n in counts.items() if method != "random"} == {3}
    for row in main:
        assert [case.training["seed"] for case in row.cases] == list(range(len(row.cases)))
        for case in row.cases:
            assert case.parameters["fit_on"] == "all"
            assert case.training["preset"] == "paper"
            assert case.evaluations == [{"protocol": "triple", "split": "test", "filter": "inter"}]
    # Random cuts are drawn anew for every run.
    drawn = [case.parameters["seed"] for case in main[1].cases]
    assert drawn == list(range(7))


def test_printed_metrics_are_the_papers() -> None:
    best = {
        data: max(
            (row for row in rows.MAIN if row.dataset == data),
            key=lambda row: row.printed["mrr"],
        )
        for data in ("wikidata12k", "yago11k", "icews14")
    }
    assert {data: (row.title, cells(row.printed)) for data, row in best.items()} == {
        "wikidata12k": ("Merge, shrink 4", [".358", "22.2", "43.3", "61.0"]),
        "yago11k": ("Split (CPD), Pref 5", [".214", "6.5", "29.9", "45.8"]),
        "icews14": ("Timestamp", [".213", "4.7", "29.4", "54.4"]),
    }


def test_variations_change_one_thing() -> None:
    for variation in rows.VARIATIONS:
        for changed, usual in zip(variation.cases, variation.row.cases, strict=False):
            ours, theirs = asdict(changed), asdict(usual)
            different = {name for name in ours if ours[name] != theirs[name]}
            if changed.method == algorithm_2.NAME:
                different -= {"method"}  # and what it is told
            assert len(different) == 1, variation.title
            assert changed.training["seed"] == usual.training["seed"]


def test_filters_learn_from_what_they_say() -> None:
    for row in rows.FILTERS:
        shown = [(case, each["filter"]) for case in row.cases for each in case.evaluations]
        assert [name for _, name in shown] == ["none", "inter", "intra", "both"]
        for case, name in shown:
            always = case.training["preset"] in ("paper", "ampligraph")
            assert case.training["distinct"] is (always or name in ("intra", "both"))
    assert [len(row.cases) for row in rows.FILTERS] == [2, 2, 1, 1] * 2


@pytest.mark.parametrize("name", STUDIES)
def test_cases_are_distinct_and_can_be_made(name: str, empty: Results) -> None:
    cases = STUDIES[name].cases(empty)
    keys = [case.key() for case in cases]
    assert len(set(keys)) == len(keys)
    for case in cases:
        if case.method != algorithm_2.NAME:
            make_method(case.method, **case.parameters)
        make_settings(**resolved(case.training))
    assert {case.key() for case in STUDIES[name].cases(empty, quick=True)} <= set(keys)


def test_numbers_of_cases(empty: Results) -> None:
    counts = {name: len(study.cases(empty)) for name, study in STUDIES.items()}
    assert counts == {
        "filters": 12,
        "main": 106,
        "grid": 107,
        "predicates": 6,
        "tsne": 2,
        "fair": 114,
        "paths": 85,
        "rivals": 260,
    }


def test_keys_are_stable() -> None:
    """Another key would make every stored result a missing one."""
    assert rows.MAIN[0].cases[0].key() == "96db3eac7c252721"
    assert Case("a", "merge", {"shrink": 2.0}).key() == Case("a", "merge", {"shrink": 2}).key()
    assert Case("a", "merge", {"shrink": 1.5}).key() != Case("a", "merge", {"shrink": 2}).key()


def test_rows_are_found_by_text(empty: Results) -> None:
    study = STUDIES["main"]
    assert len(study.cases(empty, ["YAGO11K vanilla"])) == 3
    assert len(study.cases(empty, ["yago11k"])) == 25
    with pytest.raises(UsageError, match="no row of main contains 'yoga'; rows are 'wikidata12k V"):
        study.cases(empty, ["yoga"])


def test_stored_results_belong_to_declared_cases() -> None:
    for name, study in STUDIES.items():
        stored = Results(STORED / f"{name}.json")
        declared = {case.key() for case in study.cases(stored)}
        assert set(stored.records) <= declared, name


@pytest.mark.parametrize("name", ["paths", "rivals"])
def test_stored_ranks_are_those_that_are_compared(name: str) -> None:
    stored = Results(STORED / f"{name}.json")
    ranked = {case.key() for case in STUDIES[name].ranked(stored)}
    having = {key for key, record in stored.records.items() if RANKS in record["figures"][-1]}
    assert set() < having <= ranked


def test_the_search_is_fair() -> None:
    for cases in rows.SEARCH.values():
        for case in cases:
            assert case.reading in ("fact", "point")
            assert READINGS[case.reading].items() >= READINGS["fact"].items()
            assert case.parameters["fit_on"] == "train"
            assert {one["split"] for one in case.evaluations} == {"valid", "test"}


def test_path_rows_share_what_is_compared() -> None:
    """Members of a combination have one reading; ablations change one thing of what was chosen."""
    for name, own in rows.PATHS.items():
        first = own[0].cases[0]
        for row in own:
            for case in row.cases:
                assert case.evaluations == first.evaluations
                assert (case.dataset, case.reading) == (first.dataset, first.reading)
                members = case.members if isinstance(case, rows.Combination) else ()
                assert {member.key() for member in members} <= {
                    each.key() for above in own[: own.index(row)] for each in above.cases
                }
            if row.title.startswith("path, ") and name != "forecast" and row is not own[0]:
                changed = row.cases[0].training.items() ^ first.training.items()
                assert len({key for key, _ in changed}) == 1, row.title


def test_forecasting_is_split_by_time(
    published: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPLIME_DATA", str(published))
    graph = load_graph("icews14", "forecast")
    assert [len(facts) for _, facts in graph.splits()] == [72_768, 9_046, 8_916]
    assert graph.train.begin.max() < graph.valid.begin.min() <= graph.valid.begin.max()
    assert graph.valid.begin.max() < graph.test.begin.min()
    splime.save(load_graph("icews14", "fact"), tmp_path / "icews14-fact.parquet")
    assert load_graph("icews14", "forecast", tmp_path) == graph


def test_what_the_grid_leaves_out_cannot_be_reached(
    published_graphs: dict[str, TemporalGraph],
) -> None:
    left_out = 0
    for sweep in rows.SWEEPS:
        if sweep.title.startswith(("Split (time)", "Split (count)")):
            by = sweep.rows[20].cases[0].parameters["by"]
            for grow in {5, 10, 15, 20, 25, 30} - sweep.rows.keys():
                with pytest.raises(UsageError, match="cannot reach"):
                    make_method("split", by=by, grow=grow, fit_on="all").fit(
                        published_graphs[sweep.dataset]
                    )
                left_out += 1
            if sweep.dataset != "icews14":
                make_method("split", by=by, grow=20, fit_on="all").fit(
                    published_graphs[sweep.dataset]
                )
    assert left_out == 4


def test_the_papers_choices_are_those_of_the_main_table() -> None:
    def method_of(row: rows.TableRow) -> tuple[str, object]:
        return row.dataset, make_method(row.cases[0].method, **row.cases[0].parameters)

    printed = [method_of(row) for row in rows.MAIN]
    for sweep in rows.SWEEPS:
        in_main = [value for value, row in sweep.rows.items() if method_of(row) in printed]
        assert in_main == ([] if sweep.paper is None else [sweep.paper]), sweep.title


def test_where_the_questions_are_from(published_graphs: dict[str, TemporalGraph]) -> None:
    graph = published_graphs["yago11k"]
    splits = {
        split: {(f.subject, f.predicate, f.object) for f in graph.rows(split)}
        for split in ("train", "test")
    }
    assert len(rows.SIXTEEN) == 16
    for question in rows.SIXTEEN:
        names = tuple(f"<{name}>" for name in question[:3])
        assert names in splits["train" if question.in_train else "test"], question


def test_the_file_of_questions_has_the_same_ones() -> None:
    """docs/data/people.tsv; 2017 is where the facts of YAGO11k end."""
    lines = (ROOT / "docs" / "data" / "people.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t") for line in lines[1:]] == [
        [f"<{one.subject}>", "?", f"<{one.object}>", str(one.begin), str(min(one.end, 2017))]
        for one in rows.SIXTEEN
    ]
