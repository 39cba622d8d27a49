"""Doubtful facts on the page: listed from a file, and asked about by a click."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from splime.errors import DataError, UsageError
from splime.explorer import Explorer, write_explorer
from splime.explorer.server import Server
from splime.query.doubting import Doubt, Doubts, read_doubts
from splime.query.predicted import write_predictions
from splime.runs.graph_run import GraphRun
from tests.explore.browser import CHROMIUM, Browser
from tests.explore.conftest import stored_in
from tests.runs.small import small_graph

ROWS = [
    Doubt("name", "entity 1", None, "entity 2", None, None, 0.9, "entity 2", 0.9, "both: p0 x"),
    Doubt("time", "entity 1", "p0", "entity 2", "1991", None, 0.5, "1993", 0.25),
    Doubt("overlap", "=entity", "p0", "entity 3", None, "1992", 0.25, None, None, "-, \"'"),
]


@pytest.fixture(params=[".csv", ".jsonl", ".parquet"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"doubts{request.param}"
    write_predictions(Doubts(ROWS, 9).to_table(), path)
    return path


def test_a_file_is_read_back(written: Path) -> None:
    assert read_doubts(written) == ROWS


def test_the_page_lists_them_and_each_can_be_asked_about(written: Path) -> None:
    graph = small_graph()
    explorer = Explorer([GraphRun(graph, device="cpu")], written)
    first, second, _ = explorer.answer("about", {})["doubts"]
    assert first["predicate"] is None
    assert (second["ask"], second["time"]) == ("time", "1991")
    [run] = explorer.queries
    asked = {name: second[name] for name in ("ask", "subject", "predicate", "object", "time")}
    assert explorer.answer("ask", {"run": run, **asked, "time": ""})["kind"] == "time"
    asked |= {"ask": "object", "object": ""}
    assert explorer.answer("ask", {"run": run, **asked})["here"]["rows"]


def test_there_are_none_without_a_file() -> None:
    explorer = Explorer([GraphRun(small_graph(), device="cpu")])
    assert explorer.answer("about", {})["doubts"] == []


@pytest.mark.system
def test_the_page_in_a_file_has_them(tmp_path: Path) -> None:
    path, page = tmp_path / "doubts.jsonl", tmp_path / "page.html"
    path.write_text(json.dumps(ROWS[1]._asdict()) + "\n")
    write_explorer(Explorer([GraphRun(small_graph(test=2), device="cpu")], path), page)
    assert stored_in(page)['["about"]']["doubts"][0]["instead"] == "1993"


def test_other_files_are_no_doubts(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("subject,object\na,b\n")
    for wrong in (path, tmp_path / "missing.csv"):
        with pytest.raises(DataError, match="splime doubts"):
            read_doubts(wrong)
    with pytest.raises(UsageError, match="written as"):
        read_doubts(tmp_path / "x.txt")


@pytest.mark.system
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (Debian's package chromium)")
def test_a_click_asks(tmp_path: Path) -> None:
    path = tmp_path / "doubts.jsonl"
    path.write_text("".join(json.dumps(row._asdict()) + "\n" for row in ROWS[:2]))
    explorer = Explorer([GraphRun(small_graph(), device="cpu")], path)
    with Server(explorer, 0).start() as server, Browser(tmp_path / "browser") as browser:
        browser.open(server.address)
        browser.run("document.getElementById('doubts').open = true")
        browser.wait("document.querySelectorAll('#doubts li').length === 2")
        browser.click("document.querySelector('#doubts li a')")
        browser.wait("!document.getElementById('page').hidden")
        browser.click("document.querySelectorAll('#doubts li')[1].querySelector('a')")
        browser.wait("document.getElementById('asked').textContent.includes('entity 2')")
        assert "ask=time" in browser.run("location.href")
        assert browser.console == []
