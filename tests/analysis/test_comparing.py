"""Comparing runs: what is comparable, what is kept, what is tested."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import splime
from splime.analysis import compare
from splime.errors import DataError, UsageError
from splime.evaluation.metrics import holm
from splime.graph import TemporalGraph
from splime.methods import Method
from splime.reporting.comparison import comparison_markdown, comparison_text, plot_comparison
from splime.runs import Run, combine, evaluate, train
from splime.runs.evaluating import kept
from tests.evaluation.test_paired import paired_bootstrap
from tests.runs.small import small_graph, small_run


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs on the same facts."""
    place, graph = tmp_path_factory.mktemp("trained"), small_graph(test=40)
    small_run(graph, place / "split")
    small_run(graph, place / "seed", seed=1)
    small_run(graph, place / "vanilla", splime.Vanilla())
    small_run(graph, place / "epoch", splime.Vanilla(), epochs=2)
    return place


@pytest.fixture
def folders(trained: Path, tmp_path: Path) -> list[Path]:
    place = shutil.copytree(trained, tmp_path / "runs")
    return [place / name for name in ("split", "seed", "vanilla", "epoch")]


def test_rows_and_pairs(folders: list[Path]) -> None:
    comparison = compare(folders, samples=500)
    assert comparison.rows == sorted(comparison.rows, key=lambda row: -row.metrics.mrr)
    ranks = {}
    for folder in folders:
        evaluation = evaluate(Run(folder), bootstrap=500)
        row = next(row for row in comparison.rows if row.path == str(folder))
        assert row.name == folder.name
        assert row.metrics == evaluation.metrics["exact"]["both"]
        ranks[row.name] = evaluation.ranks["exact"]
        ends = evaluation.intervals["exact"]["both"]
        assert ends is not None
        assert row.intervals is not None
        assert row.intervals.keys() == ends.keys()
        for metric, interval in row.intervals.items():
            assert interval == pytest.approx(ends[metric])
    split = next(row for row in comparison.rows if row.name == "split")
    assert (split.method, split.method_parameters) == ("split", {"grow": 2})
    assert (split.model, split.predicates, split.parameters) == ("distmult", 6, 96)
    assert split.settings["dimension"] == 4
    assert (comparison.test_sets, comparison.candidates, comparison.remarks) == ([40], [12], [])
    assert len(comparison.pairs) == 6
    for pair in comparison.pairs:
        alone = paired_bootstrap(ranks[pair.first], ranks[pair.second], samples=500)
        assert alone["mrr"].p == pair.differences["mrr"].p
        assert alone["mrr"].value >= 0
    corrected = holm([pair.differences["hits3"].p or 0 for pair in comparison.pairs])
    assert [pair.corrected["hits3"] for pair in comparison.pairs] == corrected


def test_json(folders: list[Path]) -> None:
    comparison = compare(folders, samples=300)
    plain = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    assert [row["name"] for row in plain["rows"]] == [row.name for row in comparison.rows]
    assert plain["rows"][0]["metrics"]["mrr"] == comparison.rows[0].metrics.mrr
    for one, pair in zip(plain["pairs"], comparison.pairs, strict=True):
        p = pair.corrected["mrr"]
        assert p is not None
        assert one["larger_than_chance"]["mrr"] == (p <= 1 - comparison.level)


def test_few_facts_are_not_tested(tmp_path: Path) -> None:
    """One fact of test, always drawn again, gave p = .0002."""
    graph = small_graph(test=1)
    runs = [small_run(graph, tmp_path / str(seed), seed=seed) for seed in range(3)]
    comparison = compare(runs)
    assert comparison.too_few()
    plain = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    assert [row["intervals"] for row in plain["rows"]] == [None] * 3
    for pair in plain["pairs"]:
        assert pair["differences"]["mrr"]["value"] >= 0
        assert {pair["differences"]["mrr"][name] for name in ("low", "high", "p")} == {None}
        assert {*pair["corrected"].values(), *pair["larger_than_chance"].values()} == {None}
    assert not any(comparison.like_the_best(row) for row in comparison.rows)
    for text in (comparison_text(comparison), comparison_markdown(comparison)):
        assert "has only 1 fact: with fewer than 30 facts no interval and no test" in text
        assert "†" not in text
        assert "confidence" not in text
    assert "too few for a confidence interval" in plot_comparison(comparison).axes[0].get_xlabel()


def test_what_is_kept_is_not_evaluated_again(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    updates: list[tuple[Any, ...]] = []
    first = compare(folders, samples=300, progress=lambda _, *step: updates.append(step))
    assert updates[-1] == (320, 320)
    assert [done for done, _ in updates] == sorted(done for done, _ in updates)
    with monkeypatch.context() as patch:
        patch.setattr("splime.analysis.comparing.evaluate", None)
        # Only the ranks are read: not the facts, not the embeddings.
        for folder in folders:
            (folder / "graph.parquet").unlink()
            (folder / "model.safetensors").write_bytes(b"")
        assert compare(folders, samples=300).to_json() == first.to_json()
        overlap = compare(folders, samples=300, filter="overlap")
        assert overlap.filter == "overlap"
        assert overlap.rows[0].metrics != first.rows[0].metrics


@pytest.mark.parametrize("protocol", ["fact", "triple", "predicate"])
def test_kept_is_what_was_evaluated(folders: list[Path], protocol: str) -> None:
    run = Run(folders[0])
    assert kept(run, protocol) is None
    evaluate(run, protocol, ties="best")
    evaluate(run, protocol, split="valid")
    assert kept(run, protocol) is None
    comparison, again = evaluate(run, protocol), kept(run, protocol)
    assert again == comparison
    assert again is not None
    assert np.array_equal(again.facts, comparison.facts)
    for name, ranks in comparison.ranks.items():
        assert np.array_equal(again.ranks[name], ranks)
    (run.path / f"ranks-{protocol}-test-mean-mean.parquet").unlink(missing_ok=True)
    (run.path / f"ranks-{protocol}-test-inter-worst.parquet").unlink(missing_ok=True)
    assert kept(run, protocol) is None  # and is made again


@pytest.mark.parametrize("damage", ["cut", "text", "columns", "fewer", "other", "nan", "words"])
def test_damaged_ranks(folders: list[Path], damage: str) -> None:
    compare(folders, samples=300)
    path = folders[1] / "ranks-fact-test-mean-mean.parquet"
    table = pq.read_table(path)
    rank = table["exact_object"].to_numpy()
    at = table.column_names.index("exact_object")
    changed = {
        "columns": table.drop_columns(["exact_subject"]),
        "fewer": table.slice(3),
        "other": table.set_column(at, "exact_object", pa.array(rank + 1)),
        "nan": table.set_column(at, "exact_object", pa.array(np.full(len(rank), np.nan))),
        "words": table.set_column(at, "exact_object", pa.array(["one"] * len(rank))),
    }
    if damage in changed:
        pq.write_table(changed[damage], path)
    else:
        path.write_bytes(path.read_bytes()[:200] if damage == "cut" else b"ranks")
    with pytest.raises(DataError, match=r"seed/ranks-fact-test-mean-mean\.parquet: not the ranks"):
        compare(folders, samples=300)


def test_other_order_names_and_buckets(folders: list[Path], tmp_path: Path) -> None:
    """The same facts, otherwise stored: every query has the rank that it has."""
    graph = small_graph(test=40)
    back = np.arange(len(graph))[::-1]
    train, valid, test = (facts.take(back[-len(facts) :]) for _, facts in graph.splits())
    turned = replace(graph, name="turned", train=train, valid=valid, test=test)
    run = small_run(turned, tmp_path / "turned")
    bucketed = small_run(graph.bucket(20), tmp_path / "bucketed")
    comparison = compare([folders[0], run, bucketed], samples=200)
    assert comparison.remarks == []
    straight = kept(Run(folders[0]))
    other = kept(run)
    assert straight is not None
    assert other is not None
    expected = paired_bootstrap(straight.ranks["exact"], other.ranks["exact"][::-1], samples=200)
    pair = next(p for p in comparison.pairs if {p.first, p.second} == {"split", "turned"})
    sign = 1 if pair.first == "split" else -1
    assert pair.differences["mrr"].value == pytest.approx(sign * expected["mrr"].value)


def test_other_facts_are_refused(folders: list[Path], tmp_path: Path) -> None:
    graph = small_graph(test=40)

    def differ(changed: TemporalGraph, name: str) -> str:
        run = small_run(changed, tmp_path / name)
        with pytest.raises(UsageError) as error:
            compare([folders[0], run.path], samples=100)
        return str(error.value)

    fewer = differ(replace(graph, test=graph.test.take(np.arange(39))), "fewer")
    assert fewer.startswith("split and fewer cannot be compared: their facts of test differ (40")
    dated = int(np.flatnonzero((graph.test.unknown == 0) & (graph.test.begin > 1990))[0])
    earlier = replace(graph.test, begin=graph.test.begin - (np.arange(40) == dated))
    assert "differ (such as entity" in differ(replace(graph, test=earlier), "earlier")
    rows = [*graph.rows("train"), ("entity 0", "p0", "stranger", 1999, None)]
    splits = {"train": rows, "valid": [*graph.rows("valid")], "test": [*graph.rows("test")]}
    more = differ(splime.read(splits, granularity="year"), "more")
    assert "one ranks among" in more
    assert "12 candidates" in more
    assert "13" in more


def test_other_facts_to_learn_from_are_a_remark(folders: list[Path], tmp_path: Path) -> None:
    graph = small_graph(test=40)
    half = small_run(replace(graph, train=graph.train.take(np.arange(60))), tmp_path / "half")
    comparison = compare([folders[0], half], samples=100)
    assert comparison.remarks == [
        "split and half know different facts in train, so their filters leave out different answers"
    ]


def test_other_granularity(folders: list[Path], tmp_path: Path) -> None:
    graph = small_graph(test=40)
    days = {
        split: [(f.subject, f.predicate, f.object, f"{f.begin}-01-01") for f in graph.rows(split)]
        for split in ("train", "valid", "test")
    }
    run = small_run(splime.read(days, granularity="day"), tmp_path / "days")
    with pytest.raises(UsageError, match="their times are by year and by day"):
        compare([folders[0], run], samples=100)


def test_test_sets_of_protocol_triple(folders: list[Path]) -> None:
    comparison = compare(folders, "triple", samples=300)
    assert [row.test_set for row in comparison.rows] == [0, 0, 1, 1]
    names = {frozenset((pair.first, pair.second)) for pair in comparison.pairs}
    assert names == {frozenset(("split", "seed")), frozenset(("vanilla", "epoch"))}
    assert len(comparison.test_sets) == 2
    assert "another test set" in comparison.remarks[0]
    same = compare(folders[:2], "triple", filter="none", samples=300)
    assert (len(same.test_sets), same.remarks, same.filter) == (1, [], "none")


def test_names(folders: list[Path], tmp_path: Path) -> None:
    other = shutil.copytree(folders[0], tmp_path / "others" / "split")
    comparison = compare([folders[0], other], samples=100)
    assert {row.name for row in comparison.rows} == {"runs/split", "others/split"}
    (pair,) = comparison.pairs
    assert pair.corrected == dict.fromkeys(pair.corrected, 1.0)
    assert comparison.like_the_best(comparison.rows[1])
    assert not comparison.like_the_best(comparison.rows[0])
    with pytest.raises(UsageError, match="given more than once"):
        compare([folders[0], folders[0].parent / "." / "split"])


def test_one_run_and_none(folders: list[Path]) -> None:
    comparison = compare(folders[:1], samples=20)
    assert (len(comparison.rows), comparison.pairs) == (1, [])
    with pytest.raises(UsageError, match="no runs"):
        compare([])


def test_too_few_samples_for_so_many_pairs(folders: list[Path]) -> None:
    with pytest.raises(UsageError, match=r"200 samples cannot separate .*--samples 240"):
        compare(folders, samples=200)
    compare(folders, samples=240)
    with pytest.raises(UsageError, match="samples must be"):
        compare(folders, samples=0)


def test_wrong_names(folders: list[Path]) -> None:
    for wrong, message in (
        ({"protocol": "facts"}, "Did you mean fact"),
        ({"filter": "exat"}, "Did you mean exact"),
        ({"filter": "inter"}, "there is no filter 'inter'; there are exact"),
        ({"protocol": "triple", "filter": "exact"}, "there is no filter 'exact'"),
        ({"split": "tset"}, "there is no split"),
    ):
        with pytest.raises(UsageError, match=message):
            compare(folders, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "cuts", "expected"),
    [
        ({"model": "complex"}, splime.Vanilla(), False),
        ({"model": "complex"}, splime.Split(grow=4), True),
        ({"model": "tcomplex"}, None, True),
        ({"model": "path", "layers": 1, "relative": "intervals:1,3"}, None, True),
        ({"model": "path", "layers": 1, "relative": "none"}, None, False),
    ],
)
def test_which_runs_use_time(
    settings: Any, cuts: Method | None, expected: bool, tmp_path: Path
) -> None:
    dimension = 16 if settings["model"] == "path" else 4
    run = train(small_graph(), cuts, tmp_path, **settings, dimension=dimension, steps=1)
    assert run.uses_time is expected


def test_combinations_may_use_time(folders: list[Path], tmp_path: Path) -> None:
    assert combine(folders[:2], tmp_path / "both").uses_time is None
