"""Which files are better streamed than loaded."""

from __future__ import annotations

from pathlib import Path

from splime.methods.base import Method

_ROWS = 5_000_000


def is_large(path: Path, method: Method) -> bool:
    """Whether a path is a Parquet file of more than 5 million rows, and the method can stream."""
    if method.needs_facts or method.target != "predicates":
        return False
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return False
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return bool(pq.read_metadata(path).num_rows > _ROWS)
    except (pa.ArrowException, OSError):
        return False  # reading it will say what is wrong
