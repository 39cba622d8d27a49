"""A small table of facts, and what answers from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import splime
from splime.query import Query
from splime.runs.graph_run import open_source
from splime.serving.access import Access
from splime.serving.api import JsonServer
from splime.serving.service import Service
from tests.runs.small import small_graph

TOKEN = "secret token"


@pytest.fixture(scope="session")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return splime.save(small_graph(), tmp_path_factory.mktemp("served") / "facts.parquet")


@pytest.fixture(scope="session")
def query(facts: Path) -> Query:
    query = Query(open_source(facts, device="cpu"))
    query.prepare()
    return query


@pytest.fixture
def server(query: Query) -> Iterator[JsonServer]:
    access = Access(port=0, token=TOKEN)
    with JsonServer(Service(query, access.timeout), access, access.listen()) as server:
        yield server.start()
