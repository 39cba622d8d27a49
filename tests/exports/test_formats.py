"""Every format is read back as its readers read it, and gives the triples it was made from."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

import splime
from splime.errors import UsageError
from splime.exports import FORMATS, export
from splime.graph import TemporalGraph
from splime.methods import Merge, Split, Timestamp, Vanilla
from splime.static import StaticGraph
from tests.exports.readers import READERS, cells, same
from tests.exports.statics import named, one_fact, transformed

OF_LINES = ("tsv", "libkge", "dglke")
HOSTILE = (
    *("two words", " at the edge ", '"', '"quoted"', 'a"b', "it's", "#", "a # b", "100%", "%41"),
    *("<a>", "<", "[1990]", "[", "{x}", "a|b", "back\\slash", "\\u0041", "^`", "?q&r=1/2", "_:b"),
    *("Zürich", "東京", "🙂", "\u00a0", "\u2028", "\x00", "\x85", "null", "~", "1e3", ":", "-"),
)
in_one_line = st.characters(exclude_categories=["Cs"], exclude_characters="\t\r\n")


def test_every_format_is_read_back() -> None:
    assert set(READERS) == set(FORMATS)


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=25)
@given(case=transformed())
def test_random_graphs(format: str, case: tuple[TemporalGraph, StaticGraph]) -> None:
    with tempfile.TemporaryDirectory() as here:
        files = export(case[1], Path(here) / "out", format)
        assert sorted(file.name for file in files) == sorted(FORMATS[format].files)
        assert same(case[1], Path(here) / "out", format)


@pytest.mark.parametrize("format", FORMATS)
def test_the_demo_world(tmp_path: Path, format: str) -> None:
    static = Split(by="count", grow=3).fit_transform(splime.load("demo"))
    export(static, tmp_path / "out", format)
    assert same(static, tmp_path / "out", format)


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_names(tmp_path: Path, format: str) -> None:
    static = Merge(shrink=2, target="both").fit_transform(named(*HOSTILE))
    export(static, tmp_path / "out", format)
    assert same(static, tmp_path / "out", format)


@pytest.mark.parametrize("format", FORMATS)
@given(labels=st.lists(st.text(in_one_line).filter(str.strip), min_size=1, max_size=6, unique=True))
def test_any_names(format: str, labels: list[str]) -> None:
    static = Timestamp().fit_transform(named(*labels))
    with tempfile.TemporaryDirectory() as here:
        export(static, Path(here) / "out", format)
        assert same(static, Path(here) / "out", format)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("label", ["a\tb", "a\nb", "a\rb"])
def test_tabs_and_line_breaks(tmp_path: Path, format: str, label: str) -> None:
    static = Timestamp().fit_transform(named(label, "other"))
    if format in OF_LINES:
        with pytest.raises(UsageError, match=r"the entity 'a\\[tnr]b' holds a tab or a line break"):
            export(static, tmp_path / "out", format)
        assert list(tmp_path.iterdir()) == []
    else:
        export(static, tmp_path / "out", format)
        assert same(static, tmp_path / "out", format)


@pytest.mark.parametrize("format", FORMATS)
def test_splits_may_be_empty(tmp_path: Path, format: str) -> None:
    static = Vanilla().fit_transform(one_fact())
    export(static, tmp_path / "out", format)
    assert same(static, tmp_path / "out", format)


def test_a_predicate_that_is_called_like_a_scope(tmp_path: Path) -> None:
    rows = [("a", "p", "b", year) for year in (1990, 1991)] + [("a", "p[1991]", "b", 1991)]
    static = Timestamp().fit_transform(splime.read(rows, split="none"))
    with pytest.raises(UsageError, match=r"called 'p\[1991\]': a predicate has the name of a"):
        export(static, tmp_path / "out")


def test_the_time_map_gives_the_dates_of_every_bucket(tmp_path: Path) -> None:
    rows = [("a", "p", "b", f"2014-01-{day:02}") for day in range(1, 7)]
    graph = splime.read(rows, split="none").bucket(3)
    export(Timestamp().fit_transform(graph), tmp_path / "out")
    assert cells(tmp_path / "out" / "time_map") == [
        ("0", "2014-01-01", "2014-01-03"),
        ("1", "2014-01-04", "2014-01-06"),
    ]
