"""Files and addresses that are not read, and what to do instead."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from splime.io.inputs import COMPRESSION, scheme_of, without_password

_RDF = (
    "RDF is not read: where it states the time differs between datasets. Load it into a store, and"
    " save what a SPARQL query finds (subject, predicate, object and times) as CSV or JSON"
    " (docs/sources.md)"
)
_SHEETS = "save it as .xlsx or .csv"
_PACKED = "unpack it first"
_EXPORT = "export the table as .csv or .parquet"
_QUERY = "save the result of a query as .csv, and read that (docs/sources.md)"
_FILES = {
    **dict.fromkeys(("ttl", "nt", "nq", "n3", "trig", "rdf", "owl", "jsonld"), _RDF),
    **dict.fromkeys(("xls", "xlsb", "ods", "numbers"), _SHEETS),
    **dict.fromkeys(("zip", "tar", "tgz", "7z", "rar", "bz2", "xz"), _PACKED),
    **dict.fromkeys(("feather", "arrow", "orc", "avro", "rds", "dta", "sav"), _EXPORT),
    **dict.fromkeys(("mdb", "accdb", "sql", "dump"), _EXPORT),
}
_ON_THE_WEB = ("http", "https", "ftp")


def file_advice(path: Path) -> str:
    """What to do instead of reading a file, by its name; empty for other names."""
    unpacked = path.with_suffix("") if path.suffix.lower() in COMPRESSION else path
    return _FILES.get(unpacked.suffix.lower().removeprefix("."), "")


def address_advice(source: str, schemes: Iterable[str]) -> str:
    """What to do instead of reading from an address, where readers take those of some schemes."""
    scheme, shown = scheme_of(source), without_password(source)
    if scheme in _ON_THE_WEB:
        return (
            f"{shown}: nothing is downloaded from addresses; download it first, or pipe it in:"
            f" curl -L {shlex.quote(shown)} | splime inspect -"
        )
    if scheme == "file":
        return f"{shown}: leave out file://, and give the path"
    if scheme in ("s3", "gs"):
        return f"{shown}: nothing is downloaded from addresses; download it first"
    known = ", ".join(f"{each}://" for each in schemes)
    return f"{shown}: {scheme} is not read; expected {known}, or {_QUERY}"
