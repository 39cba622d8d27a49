"""Databases: PostgreSQL (a server that the tests start), SQLite, DuckDB, and connections."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import DataError, SplimeError, UsageError
from splime.io.inputs import without_password
from splime.runs.keeping import entry_of
from tests.io.server import PASSWORD, USER, Server, running
from tests.runs.small import call

NAMES = ("subject", "predicate", "object", "begin", "end")
FACTS = [
    ("Ada", "worksFor", "Search", "1990-01-01", "1994-05-31"),
    ("Bob", "worksFor", "Ads", "1992-03-01", None),
    ("Cleo", "leads", "Search", None, "1999-12-31"),
]
QUERY = 'select subject, predicate, object, "begin", "end" from facts'
SECRETS = (PASSWORD, "s3cret Pass-w0rd", "s3cret")


def rows(graph: splime.TemporalGraph) -> set[tuple[Any, ...]]:
    return {tuple(fact) for fact in graph.rows()}


def sqlite_file(path: Path, facts: list[tuple[Any, ...]] = FACTS) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute('create table facts (subject, predicate, object, "begin", "end")')
        database.executemany("insert into facts values (?, ?, ?, ?, ?)", facts)
    return path


def duckdb_file(path: Path) -> Path:
    with duckdb.connect(path) as database:
        columns = ", ".join(f'"{name}" text' for name in NAMES[:3])
        database.execute(f'create table facts ({columns}, "begin" date, "end" date)')
        database.executemany("insert into facts values (?, ?, ?, ?, ?)", FACTS)
    return path


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        server.execute(
            'create table facts (subject text, predicate text, object text, "begin" date,'
            ' "end" date, id uuid default gen_random_uuid(), tags text[])',
            "insert into facts values ('Ada', 'worksFor', 'Search', '1990-01-01', '1994-05-31'),"
            " ('Bob', 'worksFor', 'Ads', '1992-03-01', null),"
            " ('Cleo', 'leads', 'Search', null, '1999-12-31')",
        )
        yield server


@pytest.mark.parametrize("name", ["facts.db", "facts.sqlite", "facts.duckdb", "facts.ddb"])
def test_files(tmp_path: Path, name: str) -> None:
    make = duckdb_file if "d" in Path(name).suffix[1:2] and name != "facts.db" else sqlite_file
    path = make(tmp_path / name)
    before = path.read_bytes()
    assert rows(splime.read(path, query=QUERY, split="none")) == {*FACTS}
    scheme = "duckdb" if make is duckdb_file else "sqlite"
    graph = splime.read(f"{scheme}:///{path}", query=QUERY, split="none")
    assert rows(graph) == {*FACTS}
    assert graph.name == "facts"
    with pytest.raises(UsageError, match=r"needs query \(--query .* its tables are facts$"):
        splime.read(path)
    for query, message in {
        "selec 1": 'near "selec"',
        "select * from nope": "nope",
        f"{QUERY} where 1 = 0": "finds no rows",
        "drop table facts": r"read-?only",
        "select 1 as subject": "which is the time",
    }.items():
        with pytest.raises(SplimeError, match=message):
            splime.read(path, query=query)
    assert path.read_bytes() == before


def test_the_command_line_reads_databases(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "facts.db")
    done = call("ask", path, "--query", QUERY, "Ada", "worksFor", "?", "--at", "1991")
    assert "Search" in done.out
    assert not done.code
    refused = call("inspect", path)
    assert refused.code == 2
    assert "--query" in refused.err
    assert "its tables are facts" in refused.err
    refused = call("inspect", path.with_name("none.db"), "--query", QUERY)
    assert "there is no such file" in refused.err
    (tmp_path / "facts.csv").write_text("a,p,b,1990\n", encoding="utf-8")
    refused = call("inspect", tmp_path / "facts.csv", "--query", QUERY)
    assert refused.code == 2
    assert "leave out query (--query), which is for databases" in refused.err


def test_a_train_file_that_is_a_database(tmp_path: Path) -> None:
    sqlite_file(tmp_path / "train.db")
    sqlite_file(tmp_path / "test.db", FACTS[:1])
    graph = splime.read(tmp_path, query=QUERY)
    assert (len(graph.train), len(graph.test)) == (3, 1)


def test_what_is_no_database(tmp_path: Path) -> None:
    for content in (
        b"",
        b"hello",
        b"SQLite format 3\0" + b"x" * 200,
        b"x" * 8 + b"DUCK" + b"y" * 99,
    ):
        path = tmp_path / "facts.db"
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"facts.db: "):
            splime.read(path, query=QUERY)


def test_a_column_that_begins_with_nulls(tmp_path: Path) -> None:
    """Of which a driver that looks at the first rows alone does not know the type."""
    facts = [(f"e{n}", "p", "x", 2000, None if n < 70_000 else "2001") for n in range(1000, 70_010)]
    path = sqlite_file(tmp_path / "facts.db", facts)
    graph = splime.read(path, query=QUERY, split="none")
    assert len(graph) == len(facts)
    assert sum(fact.end is None for fact in graph.rows()) == 69_000


@given(
    st.lists(
        st.tuples(
            st.text(min_size=1).filter(lambda text: text.strip() and "\0" not in text)
            | st.integers(-(2**60), 2**60),
            st.sampled_from("pq"),
            st.just("x"),
            st.integers(1000, 2000) | st.none() | st.integers(1000, 2000).map(str),
        ),
        min_size=1,
        unique=True,
    ).filter(lambda facts: any(time is not None for *_, time in facts))
)
def test_what_sqlite_holds_is_what_is_read(facts: list[tuple[Any, ...]]) -> None:
    database = sqlite3.connect(":memory:")
    database.execute("create table f (subject, predicate, object, time)")
    try:
        database.executemany("insert into f values (?, ?, ?, ?)", facts)
    except UnicodeEncodeError:
        return
    options: dict[str, Any] = {"split": "none", "allow_loss": True, "keep_duplicates": True}
    options |= {"granularity": "year", "without_time": "unknown"}
    try:
        graph = splime.read(database, query="select * from f", **options)
    finally:
        database.close()
    read = sorted((fact.subject, fact.predicate, fact.begin or "") for fact in graph.rows())
    assert read == sorted((str(s), p, "" if time is None else str(time)) for s, p, _, time in facts)


def test_connections(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "facts.db")
    with closing(sqlite3.connect(path)) as connection:
        assert rows(splime.read(connection, query=QUERY, split="none")) == {*FACTS}
        assert rows(splime.read(connection.execute(QUERY), split="none")) == {*FACTS}
        with pytest.raises(UsageError, match="needs query"):
            splime.read(connection)
        splits = {"train": connection, "test": FACTS[:1]}
        with pytest.raises(UsageError, match=r"list: leave out query"):
            splime.read(splits, query=QUERY)
        connection.execute("select 1")  # it is still open
    with duckdb.connect(duckdb_file(tmp_path / "facts.duckdb")) as connection:
        assert rows(splime.read(connection, query=QUERY, split="none")) == {*FACTS}


def test_sqlalchemy(tmp_path: Path) -> None:
    alchemy = pytest.importorskip("sqlalchemy")
    engine = alchemy.create_engine(f"sqlite:///{sqlite_file(tmp_path / 'facts.db')}")
    assert rows(splime.read(engine, query=QUERY, split="none")) == {*FACTS}
    with engine.connect() as connection:
        assert rows(splime.read(connection, query=QUERY, split="none")) == {*FACTS}
    engine.dispose()


def test_nothing_of_a_database_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLIME_NO_CACHE", "0")
    monkeypatch.setenv("SPLIME_CACHE", str(tmp_path / "cache"))
    path = sqlite_file(tmp_path / "facts.db")
    assert not entry_of(str(path), {"query": QUERY}).key
    assert not entry_of("postgresql://localhost/x", {"query": QUERY}).key
    asked = ("ask", path, "--query", QUERY, "Dora", "worksFor", "?", "--at", "1991")
    assert call(*asked).code
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("insert into facts values ('Dora', 'worksFor', 'Ads', '1991', '1992')")
    assert not call(*asked).code
    assert not (tmp_path / "cache" / "graphs").exists()


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://u:p@h:1/d", "postgresql://u@h:1/d"),
        ("postgresql://u:p@q@h/d?sslmode=require", "postgresql://u@h/d?sslmode=require"),
        ("postgresql://h/d?user=u&password=p", "postgresql://h/d?user=u"),
        ("postgresql://h/d?PASSWORD=p&port=1", "postgresql://h/d?port=1"),
        ("https://u:p@h/x", "https://u@h/x"),
        ("postgresql://:p@/d", "postgresql://@/d"),
        ("a:b@c.csv", "a:b@c.csv"),
    ],
)
def test_an_address_without_its_password(address: str, shown: str) -> None:
    assert without_password(address) == shown


def test_a_password_that_an_address_cannot_hold() -> None:
    for password in ("se cret", "se@cret", "se/cret", "se%cret", "se:cret", "se?cret", "se#cret"):
        with pytest.raises(SplimeError, match="PGPASSWORD") as caught:
            splime.read(f"postgresql://ada:{password}@127.0.0.1:1/x", query=QUERY)
        assert "cret" not in str(caught.value)


@pytest.mark.system
def test_postgresql(server: Server) -> None:
    assert rows(splime.read(server.address, query=QUERY, split="none")) == {*FACTS}
    for scheme in ("postgres", "postgresql+psycopg"):
        address = server.address.replace("postgresql", scheme, 1)
        assert len(splime.read(address, query="select * from facts", split="none")) == 3
    # Numbers are those of the query's columns, also where one of them is of no use.
    query, columns = QUERY.replace("select ", "select tags, ", 1), ["2", "3", "4", "5", "6"]
    graph = splime.read(server.address, query=query, columns=columns, split="none")
    assert rows(graph) == {*FACTS}
    with pytest.raises(UsageError, match=r"its tables are facts$"):
        splime.read(server.address)


@pytest.mark.system
def test_types_of_postgresql(server: Server) -> None:
    query = (
        "select subject::char(9) as subject, 7::numeric as predicate, id as object,"
        " {} as begin, {} as \"end\", 1 as other from facts where subject = 'Ada'"
    )

    def read(begin: str, end: str) -> tuple[Any, ...]:
        graph = splime.read(server.address, query=query.format(begin, end), split="none")
        (fact,) = graph.rows()
        return tuple(fact)

    subject, predicate, thing, begin, end = read("date '1990-01-01'", "date 'infinity'")
    assert (subject, predicate, begin, end) == ("Ada", "7", "1990-01-01", None)
    assert len(thing) == 36
    assert read("date '-infinity'", "date '1990-01-01'")[3:] == (None, "1990-01-01")
    moments = "timestamp '-infinity'", "timestamptz '1990-01-01 12:30+02'"
    assert read(*moments)[3:] == (None, "1990-01-01T10:30")
    assert read("date '0044-03-15 BC'", "null::date")[3:] == ("-043-03-15", None)
    for wrong in ("daterange('2001-01-01', null)", "tags", "true"):
        with pytest.raises(DataError, match=r"the column 'begin' has type .*; make text of it"):
            read(wrong, "1990")


@pytest.mark.system
def test_errors_of_postgresql(server: Server) -> None:
    address = server.address
    elsewhere = address.replace(f":{server.port}", ":1")
    for place, query, message in (
        (address, "selec 1", r"the query failed: .*at or near \"selec\"\nLINE 1: selec 1\n +\^$"),
        (address, "select * from nope", r'relation "nope" does not exist\nLINE 1: .*\n +\^$'),
        (address, "select 1 / (g - 70000) as x from generate_series(1, 99999) g", "by zero$"),
        (address, "create table x (a int)", "has no columns|read-only"),
        (address, "select 1; select 2", "multiple commands"),
        (elsewhere, QUERY, r"cannot be opened: .*port 1 failed: Connection refused"),
        (address.replace(PASSWORD, "wrong"), QUERY, "password authentication failed"),
        (address.replace(f":{PASSWORD}", ""), QUERY, "no password supplied"),
        (address.replace("/postgres", "/none"), QUERY, 'database "none" does not exist'),
        (address.replace("127.0.0.1", "none.invalid"), QUERY, "could not translate host name"),
        (f"{address}?none=1", QUERY, "none"),
    ):
        with pytest.raises(SplimeError, match=message) as caught:
            splime.read(place, query=query)
        assert not any(secret in str(caught.value) for secret in SECRETS)
        assert "wrong" not in str(caught.value)


@pytest.mark.system
def test_a_large_result_of_postgresql(server: Server) -> None:
    """More than a batch; names that repeat are kept once."""
    query = (
        "select 'e' || g % 1000 as subject, 'p' as predicate, 'x' || g % 7 as object, g as time"
        " from generate_series(1, 300000) g"
    )
    graph = splime.read(server.address, query=query, split="none", granularity="step")
    assert len(graph) == 300_000
    assert len(graph.entities) == 1007


@pytest.mark.system
def test_a_password_is_never_written(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = (
        "select 'e' || g % 20 as subject, 'p' || g % 3 as predicate, 'e' || (g * 7) % 20 as object,"
        " 1990 + g % 16 as time from generate_series(1, 200) g"
    )
    monkeypatch.setenv("SPLIME_NO_CACHE", "0")
    monkeypatch.setenv("SPLIME_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    source = [server.address, "--query", query]
    quick = ["--model", "distmult", "--method", "vanilla", "--epochs", "1", "--dimension", "4"]
    (tmp_path / "facts.csv").write_text("e1,p1,e2,1990\ne2,p1,e3,1991\n", encoding="utf-8")
    said = []
    for command in (
        ["inspect", *source, "--json"],
        ["ask", *source, "e1", "p1", "?", "--at", "1995", "--json"],
        ["ask", "facts.csv", "e1", "p1", "?", "--at", "1995"],
        ["train", *source, "--out", "run", *quick],
        ["run", *source, "--out", "all", *quick],
        ["run", "all/plan.toml", "--out", "again"],
        ["rules", *source, "--json"],
        ["predict", *source, "--out", "new.csv"],
        ["transform", *source, "--method", "split", "--grow", "2", "--out", "triples"],
        ["cache"],
    ):
        done = call(*command)
        said.append(done.out + done.err)
        assert not done.code, (command, done.err)
    for wrong in ([], ["--query", "selec"]):
        program = [sys.executable, "-m", "splime", "--debug", "inspect", server.address, *wrong]
        failed = subprocess.run(program, capture_output=True, text=True, check=False)
        said.append(failed.stdout + failed.stderr)
        assert failed.returncode
        assert "Traceback" in said[-1]
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"plan.toml", "config.toml", "about.json"} <= {path.name for path in written}
    for secret in SECRETS:
        assert not any(secret in text for text in said)
        assert not any(secret.encode() in path.read_bytes() for path in written)
        assert not any(secret in path.name for path in written)
    # The plan can be done again, from the facts that were saved beside it.
    assert "data.parquet" in (tmp_path / "all" / "plan.toml").read_text(encoding="utf-8")
    assert USER not in (tmp_path / "all" / "plan.toml").read_text(encoding="utf-8")


def test_the_command_that_a_run_remembers(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from splime.runs.training import machine

    address = "postgresql://ada:secret@localhost/staff"
    arguments = ["train", address, f"--other={address}", "--query", "select 1", "--out", "run"]
    monkeypatch.setattr(sys, "argv", ["/bin/splime", *arguments])
    command = machine(torch.device("cpu"))["command"]
    shown = address.replace(":secret", "")
    assert command.split()[1:4] == ["train", shown, f"--other={shown}"]
