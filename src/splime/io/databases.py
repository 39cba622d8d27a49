"""Facts in databases: the result of a query, read in batches as Arrow, of which each different
value is kept once.

PostgreSQL and DuckDB are read through ADBC, SQLite and whatever else a caller has a connection to
through the interface of Python's databases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import DataError, SplimeError, UsageError, not_installed
from splime.graph import SplitName
from splime.io.columns import RawFacts
from splime.io.files import is_there
from splime.io.inputs import InputFile, scheme_of, without_password
from splime.io.layout import TOGETHER, WILDCARD, by_name, positions_of, roles_of
from splime.io.options import ReadOptions
from splime.io.tables import raw_from_table, value_type

SUFFIXES = (".sqlite", ".sqlite3", ".db", ".db3", ".duckdb", ".ddb")
SCHEMES = ("postgresql", "postgres", "sqlite", "duckdb")
_BATCH = 1 << 16
"""So many rows share a dictionary of values until all are joined."""
_SERVER = re.compile(
    r"postgres(?:ql)?(?:\+\w+)?(://(?:(?:[^@:/?#\s%]|%[0-9a-f]{2})*"
    r"(?::(?P<password>(?:[^@:/?#\s%]|%[0-9a-f]{2})*))?@)?[^@\s]*)",
    re.IGNORECASE,
)
_TABLES = (
    "select case when table_schema in ('public', 'main') then '' else table_schema || '.' end ||"
    " table_name from information_schema.tables where table_schema not in ('pg_catalog',"
    " 'information_schema') order by 1"
)
_TABLES_OF_SQLITE = "select name from sqlite_master where type in ('table', 'view') order by 1"
_LISTED = 20
# Beyond these days from 1970, a date is what drivers make of infinity.
_FAR = 365 * 100_000
_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
# How messages of drivers begin: INVALID_ARGUMENT: [libpq] Failed to prepare query: ERROR: …
_PREFIX = re.compile(r"^([A-Z_]+: )?(\[\w+\] )?(Failed to [a-z ]+: )?(could not begin COPY: )?")
_SUFFIX = re.compile(r"\s*(Query was: .*|SQLSTATE: \w+)?\s*$", re.DOTALL)


def read_file(file: InputFile, split: SplitName | None, options: ReadOptions) -> RawFacts:
    """Read what a query finds in a file of SQLite or DuckDB."""
    if file.begin.startswith(b"SQLite format 3\0"):
        return _read(_sqlite, str(file.path), _TABLES_OF_SQLITE, file.path.name, split, options)
    if file.begin[8:12] == b"DUCK":
        return _read(_duckdb, str(file.path), _TABLES, file.path.name, split, options)
    raise DataError(f"{file.path}: is neither a database of SQLite nor of DuckDB")


def read_address(source: str, split: SplitName | None, options: ReadOptions) -> RawFacts:
    """Read what a query finds in the database at an address."""
    shown = without_password(source)
    if not _is_server(source):
        path = Path(source.partition("://")[2].removeprefix("/"))
        if not is_there(path) or not path.is_file():
            raise DataError(
                f"{shown}: there is no such file as {path}; an absolute path has four slashes"
            )
        return read_file(InputFile(path), split, options)
    match = _SERVER.fullmatch(source)
    if match is None:
        raise UsageError(
            f"{scheme_of(source)}://…: expected postgresql://USER@HOST:PORT/DATABASE; in a password"
            " signs such as @ : / % and spaces are written as %40 %3A %2F %25 %20; or leave it out"
            " and set PGPASSWORD"
        )
    secrets = [match["password"] or "", *re.findall(r"(?i)password=([^&]*)", source)]
    name = re.sub(r".*/|\?.*", "", shown) or "postgresql"
    with _without(secrets):
        return _read(_postgresql, f"postgresql{match[1]}", _TABLES, name, split, options)


def _is_server(source: str) -> bool:
    return scheme_of(source).startswith("postgres")


def read_connection(
    source: Any, name: str, split: SplitName | None, options: ReadOptions
) -> RawFacts:
    """Read what a query finds over a connection of a caller, which stays open."""
    if options.query is None:
        raise UsageError(f"{name}: a connection needs query, a select for the facts")
    connection = source
    if not hasattr(source, "cursor"):  # SQLAlchemy's engines and connections hold one of a driver
        connection = source.raw_connection() if hasattr(source, "raw_connection") else None
        connection = connection or source.connection
    return _facts(connection, options.query, name, split, options)


def is_connection(source: object) -> bool:
    """Whether something is a connection to a database, or SQLAlchemy's engine for some."""
    if hasattr(source, "cursor") and hasattr(source, "commit"):
        return True
    return type(source).__module__.startswith("sqlalchemy.") and (
        hasattr(source, "raw_connection") or hasattr(source, "connection")
    )


def _read(
    connect: Callable[[str], Any],
    place: str,
    tables: str,
    name: str,
    split: SplitName | None,
    options: ReadOptions,
) -> RawFacts:
    """What a query finds in a database that is opened for it."""
    with _explained(name, "cannot be opened"):
        connection = connect(place)
    with closing(connection):
        if options.query is not None:
            return _facts(connection, options.query, name, split, options)
        with (
            _explained(name, "its tables cannot be listed"),
            closing(connection.cursor()) as cursor,
        ):
            cursor.execute(tables)
            found = [row[0] for row in cursor.fetchall()]
    more = ", …" if len(found) > _LISTED else ""
    listed = f"its tables are {', '.join(found[:_LISTED])}{more}" if found else "it has no tables"
    raise UsageError(
        f'{name}: a database needs query (--query "select …"), with the columns subject, predicate,'
        f" object and time, or begin and end; {listed}"
    )


def _sqlite(place: str) -> Any:
    import sqlite3

    return sqlite3.connect(f"{Path(place).absolute().as_uri()}?mode=ro", uri=True)


def _duckdb(place: str) -> Any:
    try:
        from adbc_driver_duckdb import driver_path
        from adbc_driver_manager.dbapi import connect
    except ImportError as error:
        raise not_installed("Reading DuckDB", error) from None
    options = {"path": place, "access_mode": "READ_ONLY"}
    return connect(driver_path(), entrypoint="duckdb_adbc_init", db_kwargs=options)


def _postgresql(place: str) -> Any:
    try:
        from adbc_driver_postgresql.dbapi import connect
    except ImportError as error:
        raise not_installed("Reading PostgreSQL", error) from None
    connection = connect(place)
    with closing(connection.cursor()) as cursor:
        cursor.execute("set transaction read only")
    return connection


def _facts(
    connection: Any,
    query: str,
    name: str,
    split: SplitName | None,
    options: ReadOptions,
) -> RawFacts:
    """The facts among the rows that a query finds."""
    with _explained(name, "the query failed"), closing(connection.cursor()) as cursor:
        cursor.execute(query)
        names, batches = _batches(cursor, name)
        if not names:
            raise UsageError(f"{name}: the query has no columns; expected a select")
        roles, wanted = roles_of(names), [*range(len(names))]
        if options.columns is not None:
            one_predicate = options.predicate_name is not None
            roles = by_name(names, options.columns, name, one_predicate=one_predicate)
            wanted = [*roles.values()]
            chosen = [
                c
                if c == WILDCARD
                else TOGETHER.join(names[at] for at in positions_of(names, c, name))
                for c in options.columns
            ]
            options = replace(options, columns=chosen)  # numbers would be those of fewer columns
        chunks: dict[int, list[pa.Array]] = {at: [] for at in wanted}
        for batch in batches:
            for at in [*chunks]:
                field = batch.schema.field(at)
                if (encoded := _encoded(batch.column(at), field)) is not None:
                    chunks[at].append(encoded)
                elif at in roles.values():
                    raise DataError(
                        f"{name}: the column {field.name!r} has type {_type_of(field)}; make text"
                        f' of it in the query: cast("{field.name}" as text)'
                    )
                else:
                    del chunks[at]
    if not any(chunks.values()):
        raise DataError(f"{name}: the query finds no rows")
    columns_made = [pa.chunked_array(chunk) for chunk in chunks.values()]
    table = pa.Table.from_arrays(columns_made, [names[at] for at in chunks])
    return raw_from_table(table, name, split, options)


def _batches(cursor: Any, name: str) -> tuple[list[str], Iterator[pa.RecordBatch]]:
    """The names of the columns of a result, and its rows, many at a time."""
    if hasattr(cursor, "fetch_record_batch"):
        reader = cursor.fetch_record_batch()
        return list(reader.schema.names), _large(reader)
    names = [column[0] for column in cursor.description or ()]
    return names, _of_rows(cursor, names, name)


def _large(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches of a driver; small ones are joined, since each has a dictionary of its values."""
    waiting: list[pa.RecordBatch] = []
    for batch in reader:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _BATCH:
            yield pa.concat_batches(waiting)
            waiting.clear()
    if any(map(len, waiting)):
        yield pa.concat_batches(waiting)


def _of_rows(cursor: Any, names: Sequence[str], name: str) -> Iterator[pa.RecordBatch]:
    """The rows of a driver that knows nothing of Arrow, as text."""
    while rows := cursor.fetchmany(_BATCH):
        columns = []
        for called, values in zip(names, zip(*rows, strict=True), strict=True):
            try:
                is_text = set(map(type, values)) <= {str, type(None)}
                texts = values if is_text else [_text(value) for value in values]
            except TypeError as error:
                raise DataError(
                    f"{name}: the column {called!r} has a value of type {error}; make text of it in"
                    f' the query: cast("{called}" as text)'
                ) from None
            columns.append(pa.array(texts, pa.string()))
        yield pa.RecordBatch.from_arrays(columns, list(names))


def _text(value: object) -> str | None:
    """A value of a driver as text; TypeError for what is no name and no time."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float | Decimal):
        if value != value:
            return None
        return str(int(value)) if value == value // 1 else str(value)
    if isinstance(value, date):  # a datetime is one, too
        return value.isoformat()
    if isinstance(value, int | UUID) and not isinstance(value, bool):
        return str(value)
    raise TypeError(type(value).__name__)


def _encoded(column: pa.Array, field: pa.Field) -> pa.DictionaryArray | None:
    """A column as its different values and codes; None if it can be neither names nor times."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
        if pa.types.is_fixed_size_binary(column.type) and column.type.byte_width == 16:  # a UUID
            found = column.dictionary_encode()
            texts = [str(UUID(bytes=value)) for value in found.dictionary.to_pylist()]
            return pa.DictionaryArray.from_arrays(found.indices, pa.array(texts, pa.string()))
    kind = value_type(column.type)
    if kind in (pa.string_view(), pa.large_string()) or pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    elif not (
        pa.types.is_string(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_null(kind)
    ):
        return None
    found = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = found.dictionary
    if _type_of(field) == "bpchar":  # padded with spaces
        values = pc.utf8_rtrim(values, " ")
    elif pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        values = _finite(values)
    return pa.DictionaryArray.from_arrays(found.indices, values)


def _finite(times: pa.Array) -> pa.Array:
    """The same dates with infinity as unknown; drivers make a number of it that is far away."""
    is_date = pa.types.is_date32(times.type)
    numbers = times.cast(pa.int32() if is_date else pa.int64()).cast(pa.int64())
    far = _FAR * (1 if is_date else _DAY[times.type.unit])
    far = min(far, 2**63 - 2)
    infinite = pc.or_(pc.greater(numbers, far), pc.less(numbers, -far))
    return pc.if_else(infinite, None, times)


def _type_of(field: pa.Field) -> str:
    """The name that a database has for the type of a column."""
    metadata = field.metadata or {}
    found = metadata.get(b"POSTGRESQL:type", b"").decode()
    return found or str(field.type)


@contextmanager
def _explained(name: str, what: str) -> Iterator[None]:
    """What a driver says as one message."""
    try:
        yield
    except (SplimeError, MemoryError):
        raise
    except Exception as error:  # each driver has errors of its own, without a common class
        said = _SUFFIX.sub("", _PREFIX.sub("", str(error)))
        raise DataError(f"{name}: {what}: {said.strip() or type(error).__name__}") from None


@contextmanager
def _without(secrets: Sequence[str]) -> Iterator[None]:
    """Take passwords out of messages."""
    try:
        yield
    except SplimeError as error:
        message = str(error)
        for secret in filter(None, [*secrets, *map(unquote, secrets)]):
            message = message.replace(secret, "***")
        raise type(error)(message) from None
