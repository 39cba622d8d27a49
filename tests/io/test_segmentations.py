from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import DataError
from splime.graph import TemporalGraph
from splime.methods import Merge, Method, RandomSplit, Split, Timestamp, Vanilla
from tests.graphs import graphs


@given(
    graph=graphs(),
    method=st.sampled_from(
        [
            Vanilla(),
            Timestamp(target="both"),
            Merge(shrink=3),
            Split(by="time", grow=1, target="entities"),
        ]
    ),
)
def test_saved_and_loaded(
    tmp_path_factory: pytest.TempPathFactory, graph: TemporalGraph, method: Method
) -> None:
    segmentation = method.fit(graph)
    path = splime.save_segmentation(segmentation, tmp_path_factory.mktemp("s") / "s.json")
    again = splime.load_segmentation(path)
    assert again == segmentation
    assert again.method == method.parameters()


@pytest.mark.parametrize("seed", range(8))
def test_random_cuts_are_saved_and_loaded(tmp_path: Path, seed: int) -> None:
    """Wherever they lie: one at the first timestamp parts its instants from what goes on."""
    rows = [("a", "p", "b", 1990, 1990 + years) for years in (0, 0, 1, 3)]
    graph = splime.read(rows, split="none")
    segmentation = RandomSplit(predicates=2 + seed // 4, seed=seed).fit(graph)
    path = splime.save_segmentation(segmentation, tmp_path / "s.json")
    assert splime.load_segmentation(path) == segmentation
    assert seed != 1 or segmentation.predicates.cuts[0] == 0  # the case in question occurs


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    graph = splime.read([("a", "p", "b", year) for year in (1990, 1991, 1993)], split="none")
    return splime.save_segmentation(Timestamp().fit(graph), tmp_path / "s.json")


def test_it_is_readable(saved: Path) -> None:
    described = json.loads(saved.read_text(encoding="utf-8"))
    assert described["predicates"]["p"]["cuts"] == [0.5, 1.5]
    assert described["method"]["method"] == "Timestamp"
    assert described["timeline"]["starts"] == [1990, 1991, 1993]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("splime"),
        lambda d: d.update(format=9),
        lambda d: d.pop("timeline"),
        lambda d: d["timeline"].update(granularity="eon"),
        lambda d: d["timeline"].update(starts=[3, 2, 1]),
        lambda d: d["predicates"]["p"].update(cuts=[1.5, 0.5]),
        lambda d: d["predicates"]["p"].update(cuts=[0.3, 1.5]),
        lambda d: d["predicates"]["p"].update(cuts=[0.5, 99]),
        lambda d: d["predicates"]["p"].update(cuts=["x", 1]),
        lambda d: d["predicates"]["p"].update(cuts=[0.5]),
        lambda d: d["predicates"]["p"].update(first=[0, 1, 9]),
        lambda d: d["predicates"]["p"].pop("facts"),
        lambda d: d.update(predicates=[]),
        lambda d: d.update(method=3),
    ],
)
def test_damaged_files(saved: Path, change: Any) -> None:
    described = json.loads(saved.read_text(encoding="utf-8"))
    change(described)
    saved.write_text(json.dumps(described), encoding="utf-8")
    with pytest.raises(DataError, match=r"s\.json"):
        splime.load_segmentation(saved)


def test_other_files(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"\xff{")
    for name in ("x.json", "missing.json"):
        with pytest.raises(DataError, match="cannot be read"):
            splime.load_segmentation(tmp_path / name)
    for text, message in (("[1]", "expected a JSON object"), ("{}", "not a segmentation")):
        (tmp_path / "x.json").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=message):
            splime.load_segmentation(tmp_path / "x.json")
