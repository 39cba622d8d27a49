"""The tables of the paper, exactly, from the published files."""

from __future__ import annotations

from pathlib import Path

import pytest

import splime
from splime import leakage
from splime.datasets import DATASETS
from splime.graph import TemporalGraph


@pytest.mark.parametrize(
    ("name", "entities", "predicates", "timestamps", "rows", "kept"),
    [
        ("yago11k", 10_526, 10, 59, (16_408, 2_050, 2_051), (16_326, 2_044, 2_050)),
        ("wikidata12k", 12_554, 24, 70, (32_497, 4_062, 4_062), (32_490, 4_062, 4_059)),
        ("icews14", 7_128, 230, 365, (72_826, 8_941, 8_963), (72_826, 8_941, 8_963)),
    ],
)
def test_dataset_table(
    published_graphs: dict[str, TemporalGraph],
    name: str,
    entities: int,
    predicates: int,
    timestamps: int,
    rows: tuple[int, ...],
    kept: tuple[int, ...],
) -> None:
    sizes = splime.describe(published_graphs[name])
    assert (sizes.entities, sizes.predicates, sizes.timestamps) == (
        entities,
        predicates,
        timestamps,
    )
    assert tuple(sizes.rows.values()) == rows
    assert tuple(sizes.facts.values()) == kept


@pytest.mark.parametrize(
    ("name", "first", "last", "facts"),
    [
        ("icews14-forecast", "2014-01-01", "2014-12-31", (74_845, 8_514, 7_371)),
        ("icews18", "2018-01-01", "2018-10-31", (373_018, 45_995, 49_545)),
        ("yago", "1830", "2018", (161_540, 19_523, 20_026)),
        ("wiki", "1786", "2017", (539_286, 67_538, 63_110)),
    ],
)
def test_datasets_of_forecasts(
    published: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    first: str,
    last: str,
    facts: tuple[int, ...],
) -> None:
    monkeypatch.setenv("SPLIME_DATA", str(published))
    graph = splime.load(name)
    assert tuple(len(part) for _, part in graph.splits()) == facts
    assert (graph.timeline.labels()[0], graph.timeline.labels()[-1]) == (first, last)
    assert graph.train.begin.max() < graph.valid.begin.min()
    assert graph.valid.begin.max() < graph.test.begin.min()


@pytest.mark.parametrize(
    ("name", "in_splits", "in_train"),
    [
        (
            "wikidata12k",
            ("4,720 (14.53 %)", "193 (4.75 %)", "214 (5.27 %)"),
            ("1,027 (26.54 %)", "1,042 (27.10 %)"),
        ),
        ("yago11k", ("0 (0.00 %)",) * 3, ("0 (0.00 %)",) * 2),
        (
            "icews14",
            ("30,136 (41.38 %)", "1,610 (18.01 %)", "1,544 (17.23 %)"),
            ("3,527 (48.11 %)", "3,499 (47.16 %)"),
        ),
    ],
)
def test_duplicates_table(
    published_graphs: dict[str, TemporalGraph],
    name: str,
    in_splits: tuple[str, ...],
    in_train: tuple[str, ...],
) -> None:
    leaks = leakage.report(published_graphs[name])
    assert tuple(map(str, leaks.duplicates.values())) == in_splits
    assert tuple(map(str, leaks.in_train.values())) == in_train


@pytest.mark.parametrize(
    ("name", "distinct_train", "valid", "test"),
    [
        ("wikidata12k", 27_770, 2_874, 2_855),
        ("yago11k", 16_326, 2_044, 2_050),
        ("icews14", 42_690, 3_878, 4_010),
    ],
)
def test_vanilla_rows_under_the_filters(
    published_graphs: dict[str, TemporalGraph],
    name: str,
    distinct_train: int,
    valid: int,
    test: int,
) -> None:
    graph = published_graphs[name]
    inter, _ = leakage.filter_graph(graph, "inter")
    assert [len(facts) for _, facts in inter.splits()] == [len(graph.train), valid, test]
    assert len(leakage.filter_graph(graph, "both")[0].train) == distinct_train


def test_what_was_dropped_and_where(published_graphs: dict[str, TemporalGraph]) -> None:
    yago, wikidata = published_graphs["yago11k"].reading, published_graphs["wikidata12k"].reading
    assert dict(yago.dropped) == {"unreadable time": 13, "end before begin": 76}
    assert dict(wikidata.dropped) == {"end before begin": 10}
    where = {example.where: example for example in (*yago.examples, *wikidata.examples)}
    assert where["train.txt, line 267"].fact[3] == "19##-##-##"
    assert where["test.txt, line 1262"].fact[3:] == ("2014-##-##", "2008-##-##")


def test_unknown_times_are_remembered(published_graphs: dict[str, TemporalGraph]) -> None:
    wikidata = splime.describe(published_graphs["wikidata12k"])
    yago = splime.describe(published_graphs["yago11k"])
    assert (wikidata.unknown_begin, wikidata.unknown_end) == (1_405, 4_735)
    assert (yago.unknown_begin, yago.unknown_end) == (0, 8_981)


def test_buckets_are_the_papers(published_graphs: dict[str, TemporalGraph]) -> None:
    wikidata = published_graphs["wikidata12k"].timeline.labels()
    yago = published_graphs["yago11k"].timeline.labels()
    assert wikidata[:3] == ["19", "20..1643", "1644..1790"]
    assert wikidata[-1] == "2018..2020"
    assert yago[0] == "-431..1782"


@pytest.mark.parametrize(("name", "timestamps"), [("yago11k", 53), ("wikidata12k", 65)])
def test_buckets_of_train(
    published_graphs: dict[str, TemporalGraph], published: Path, name: str, timestamps: int
) -> None:
    graph = splime.read(published / name, **{**DATASETS[name].options, "bucket_on": "train"})
    assert len(graph.timeline) == timestamps
    assert graph.facts() == published_graphs[name].facts()


@pytest.mark.parametrize(
    ("name", "test", "swapped"),
    [
        ("yago11k", 2_051, {"valid.txt": 6, "test.txt": 1}),
        ("wikidata12k", 4_062, {"test.txt": 3}),
        ("icews14", 8_963, {}),
    ],
)
def test_every_test_fact_with_repair(
    published_graphs: dict[str, TemporalGraph],
    published: Path,
    name: str,
    test: int,
    swapped: dict[str, int],
) -> None:
    """The facts of protocol `fact`, over the train of the paper."""
    options = {**DATASETS[name].options, "end_before_begin": "repair"}
    graph = splime.read(published / name, **options)
    assert len(graph.test) == test
    assert graph.train == published_graphs[name].train
    for source in graph.reading.sources[1:]:
        assert source.kept == source.rows  # also: none of their times is unreadable
    note = "end before begin, swapped"
    notes = {s.name: s.notes[note] for s in graph.reading.sources if note in s.notes}
    assert notes == swapped
    if "bucket" in options:
        of_train = graph.bucket(300, "train").timeline
        assert of_train == published_graphs[name].bucket(300, "train").timeline


@pytest.mark.parametrize("name", ["wikidata12k", "yago11k", "icews14"])
def test_saved_and_loaded(
    published_graphs: dict[str, TemporalGraph], name: str, tmp_path: Path
) -> None:
    graph = published_graphs[name]
    again = splime.load(splime.save(graph, tmp_path / f"{name}.parquet"))
    assert again == graph
    assert again.reading == graph.reading
