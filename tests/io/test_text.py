"""Writing text files, and reading them back."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.query.questions import read_questions
from tests.graphs import graphs

plain = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n")).filter(str.strip)


@given(graph=graphs(), format=st.sampled_from(["tsv", "csv"]))
def test_any_graph_comes_back(
    tmp_path_factory: pytest.TempPathFactory, graph: TemporalGraph, format: str
) -> None:
    folder = tmp_path_factory.mktemp("text")
    splime.write_text(graph, folder, format=format)  # type: ignore[arg-type]
    assert splime.read(folder, granularity="year") == graph


@given(names=st.lists(st.tuples(plain, plain, plain), min_size=1, max_size=8))
def test_any_line_of_text_is_a_label_in_tsv(
    tmp_path_factory: pytest.TempPathFactory, names: list[tuple[str, str, str]]
) -> None:
    graph = splime.read([(*name, 2000 + i, 2010) for i, name in enumerate(names)], split="none")
    folder = tmp_path_factory.mktemp("text")
    splime.write_text(graph, folder)
    assert splime.read(folder, header=False) == graph


FORMULAS = [
    *("=1+1", "+a", "-a", "@a", "'=a", "''-a", "\tx", "\rx"),
    *("-5", "+1.5e3", "'-5", "'a", "a=b"),
]
odd = st.text("'=+-@\t\r\n1.e a", min_size=1).filter(str.strip) | st.sampled_from(FORMULAS)


@given(names=st.lists(odd))
def test_csv_holds_no_formulas(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    """No cell is one, numbers stay numbers, and every name comes back."""
    rows = [(name, name, "x", -1990 - at) for at, name in enumerate(["a", *names])]
    graph = splime.read(rows, split="none", granularity="year", keep_duplicates=True)
    [path] = splime.write_text(graph, tmp_path_factory.mktemp("text"), format="csv")
    with path.open(encoding="utf-8", newline="") as file:
        written = [cell for row in csv.reader(file) for cell in row]
    for cell in written:
        assert cell[:1] not in {*"=+-@\t\r\n"} or re.fullmatch(r"[+-]?[0-9.]+(e[0-9]+)?", cell)
    options: dict[str, Any] = {"split": "none", "granularity": "year", "keep_duplicates": True}
    again = splime.read(path, header=False, columns=["1", "2", "3", "4"], **options)
    assert sorted(again.entities) == sorted(graph.entities)
    assert [fact[:4] for fact in again.rows()] == [fact[:4] for fact in graph.rows()]


def test_apostrophes_in_questions(tmp_path: Path) -> None:
    rows = [("=a", "p", "'tis", 1990), ("b", "-p", "'=c", 1990)]
    graph = splime.read(rows, split="none", granularity="year")
    path = tmp_path / "questions.csv"
    path.write_text("subject,predicate,object\n'=a,p,?\n?,'-p,''=c\n?,p,'tis\n", encoding="utf-8")
    asked = read_questions(path, graph).facts
    assert [graph.entities[asked.subject[0]], graph.predicates[asked.predicate[1]]] == ["=a", "-p"]
    assert [graph.entities[at] for at in asked.object[1:]] == ["'=c", "'tis"]


def test_what_tsv_cannot_hold(tmp_path: Path) -> None:
    graph = splime.read([("a\tb", "p", "c", 1990)], split="none")
    with pytest.raises(UsageError, match=r"the entity 'a\\tb' holds a tab .* write csv or Parquet"):
        splime.write_text(graph, tmp_path / "out")
    assert splime.write_text(graph, tmp_path / "out", format="csv")[0].name == "train.csv"
    with pytest.raises(UsageError, match="tsv or csv"):
        splime.write_text(graph, tmp_path, format="xml")  # type: ignore[arg-type]
    (tmp_path / "file").write_text("")
    with pytest.raises(SplimeError, match="cannot be made"):
        splime.write_text(graph, tmp_path / "file", format="csv")


def test_a_byte_order_mark_in_a_name(tmp_path: Path) -> None:
    graph = splime.read([("\ufeffa", "p", "c", 1990)], split="none")
    with pytest.raises(UsageError, match="begins with a byte order mark"):
        splime.write_text(graph, tmp_path / "tsv")
    splime.write_text(graph, tmp_path / "csv", format="csv")
    assert splime.read(tmp_path / "csv") == graph


def test_tabs_inside_of_quotes(tmp_path: Path) -> None:
    graph = splime.read([("a\tb\tc\td", "p", "c", 1990)], split="none")
    splime.write_text(graph, tmp_path, format="csv")
    assert splime.read(tmp_path) == graph


@pytest.mark.parametrize("stale", ["test.tsv", "train.csv", "valid.PARQUET", "dev.txt.gz"])
def test_other_files_of_splits_are_not_mixed_in(tmp_path: Path, stale: str) -> None:
    graph = splime.read([("a", "p", "c", 1990)], split="none")
    splime.write_text(graph, tmp_path)
    splime.write_text(graph, tmp_path)  # over its own
    (tmp_path / stale).write_text("")
    with pytest.raises(UsageError, match=f"{stale} would be read together with"):
        splime.write_text(graph, tmp_path)
