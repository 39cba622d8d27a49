"""Facts larger than memory to triples, from Parquet to Parquet: count, choose cuts, cut.

A source is read in parts. Counting a part gives a `Tally`, and tallies add up; cutting a part
writes one file of triples. An engine maps over the parts.
"""

from splime.streaming.transform import (
    Engine,
    StreamResult,
    in_one_process,
    in_processes,
    is_large,
    stream_transform,
)

__all__ = [
    "Engine",
    "StreamResult",
    "in_one_process",
    "in_processes",
    "is_large",
    "stream_transform",
]
