"""Small runs of every kind, on facts with names that would like to be markup."""

from __future__ import annotations

import json
import random
import re
import zlib
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import splime
from splime.explorer import Explorer
from splime.explorer.server import Server
from splime.graph import TemporalGraph
from splime.runs import Run, combine
from tests.runs.small import small_run

ENTITIES = [
    "<img src=x onerror=document.title='taken'>",
    "</script><script>document.title='taken'</script>",
    "Ada & Bob \"quoted\" 'twice'",
    "?",
    "\\?",
    "__proto__",
    "北京市",
    "القاهرة",
    "Zoë_Müller",
    "👩‍🚀 team",
    "=a, b; c",
    "../../etc/\u202epasswd",
    "$title ${x} %s {0}",
    "plain",
]
PREDICATES = ["<b>knows</b>", "lives in", "ist Mitglied von"]


def make_graph() -> TemporalGraph:
    """Objects depend on subject, predicate and period; valid has enough facts to calibrate on."""
    draw, rows = random.Random(1), []
    for _ in range(330):
        subject, predicate, begin = draw.randrange(14), draw.randrange(3), draw.randrange(16)
        object_ = (subject + 3 * predicate + begin // 4 + draw.randrange(2)) % 14
        end = None if draw.random() < 0.1 else 1990 + begin + draw.randrange(4)
        first = None if draw.random() < 0.05 else 1990 + begin
        rows.append((ENTITIES[subject], PREDICATES[predicate], ENTITIES[object_], first, end))
    splits = {"train": rows[:240], "valid": rows[240:300], "test": rows[300:]}
    return splime.read(splits, granularity="year", name="<i>facts</i>")


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder, graph = tmp_path_factory.mktemp("explored"), make_graph()
    short = {"epochs": 3, "validate_every": 0, "dimension": 8}
    made = {
        "split": small_run(graph, folder / "split", splime.Split(grow=3), model="transe", **short),
        "plain": small_run(graph, folder / "<u>plain", splime.Vanilla(), **short),
        "entities": small_run(
            graph, folder / "entities", splime.Split(grow=2, target="entities"), **short
        ),
        "rival": splime.train(
            graph, None, folder / "rival", model="de-simple", dimension=8, epochs=1, batch_size=40
        ),
        "path": splime.train(
            graph, None, folder / "path", model="path", layers=2, dimension=16, epochs=1
        ),
        "pykeen": splime.train(
            graph, splime.Split(grow=2), folder / "pykeen", engine="pykeen", model="distmult",
            dimension=4, epochs=1,
        ),
    }  # fmt: skip
    made["both"] = combine([made["split"].path, made["path"].path], folder / "both")
    splime.evaluate(made["split"])
    return {run.path.name: Run(run.path, device="cpu") for run in made.values()}


@pytest.fixture(scope="session")
def explorer(runs: dict[str, Run]) -> Explorer:
    return Explorer(list(runs.values()))


def stored_in(page: Path) -> dict[str, Any]:
    """The replies that a page without a server holds."""
    found = re.search(r'id="data">"([^"]*)"<', page.read_text("utf-8"))
    assert found
    replies: dict[str, Any] = json.loads(zlib.decompress(b64decode(found[1])))
    return replies


@pytest.fixture
def server(explorer: Explorer) -> Iterator[Server]:
    with Server(explorer, 0) as server:
        yield server.start()
