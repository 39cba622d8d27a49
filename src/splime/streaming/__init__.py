"""Facts larger than memory to triples, from Parquet to Parquet: count, choose cuts, cut.

A source is read in parts. Counting a part gives a `Tally`, and tallies add up; cutting a part
writes its triples. One process does it part by part, or many workers do.
"""

from splime.streaming.parts import transform_parts
from splime.streaming.transform import (
    LARGE,
    PART,
    StreamResult,
    rows_to_stream,
    stream_transform,
)

__all__ = [
    "LARGE",
    "PART",
    "StreamResult",
    "rows_to_stream",
    "stream_transform",
    "transform_parts",
]
