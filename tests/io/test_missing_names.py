"""Empty cells among names: never an entity, always in the account."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import splime
from splime.errors import DataError
from splime.reading import NAMELESS

STAFF = """subject,predicate,object,begin,end
Ann,worksFor,Acme,2001-01-01,2003-01-01
Bob,worksFor,,2002-01-01,2004-01-01
,worksFor,Acme,1950-01-01,2099-01-01
Cid, ,Acme,2002-01-01,2005-01-01
Dan,worksFor,Initech,2003-01-01,
Eve,worksFor,Initech,2003-06-01,
Fay,worksFor,Initech,2003-07-01,
"""


@pytest.fixture
def staff(tmp_path: Path) -> Path:
    path = tmp_path / "staff.csv"
    path.write_text(STAFF)
    return path


def test_rows_without_a_name_are_dropped_and_accounted_for(staff: Path) -> None:
    graph = splime.read(staff, split="none")
    assert sorted(graph.entities) == ["Acme", "Ann", "Dan", "Eve", "Fay", "Initech"]
    assert list(graph.predicates) == ["worksFor"]
    assert graph.reading.dropped == {NAMELESS: 3}
    where = [example.where for example in graph.reading.examples if example.why == NAMELESS]
    assert sorted(where) == [f"staff.csv, line {line}" for line in (3, 4, 5)]
    # The times of a row that is dropped are not those of the graph.
    assert graph.timeline.labels()[0] == "2001-01-01"
    assert graph.timeline.labels()[-1] == "2003-07-01"


def test_a_missing_name_may_get_one(staff: Path) -> None:
    graph = splime.read(staff, split="none", missing_name="unknown")
    assert graph.reading.dropped == {}
    names = {fact[:3] for fact in graph.rows()}
    assert {("Bob", "worksFor", "unknown"), ("Cid", "unknown", "Acme")} < names
    assert ("unknown", "worksFor", "Acme") in names


def test_many_missing_names_are_an_error_that_names_the_option(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("subject,predicate,object,year\na,p,,1990\nb,p,,1991\nc,p,d,1992\n")
    with pytest.raises(DataError, match=r"2 of 3 rows .*2 × a name is missing.*missing_name="):
        splime.read(path)
    assert len(splime.read(path, split="none", missing_name="?").entities) == 5


@pytest.mark.parametrize("kind", ["rows", "table", "parquet"])
def test_none_is_a_missing_name_too(kind: str, tmp_path: Path) -> None:
    rows = [("a", "p", "b", 1990), ("a", "p", None, 1991), ("a", "p", "c", 1992)]
    source: object = rows
    if kind != "rows":
        names = ["subject", "predicate", "object", "time"]
        source = table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
        if kind == "parquet":
            import pyarrow.parquet as pq

            source = tmp_path / "f.parquet"
            pq.write_table(table, source)
    graph = splime.read(source, split="none")
    assert [fact.object for fact in graph.rows()] == ["b", "c"]
    assert graph.reading.dropped == {NAMELESS: 1}


def test_several_texts_for_an_unknown_time(staff: Path) -> None:
    path = staff.with_name("u.csv")
    path.write_text("a,p,b,2001,-1\na,p,c,2002,x\na,p,d,2003,2004\na,p,e,2003,\n")
    graph = splime.read(path, split="none", unknown_time=[-1, "x"])
    assert [fact.end for fact in graph.rows()] == [None, None, "2004", None]
