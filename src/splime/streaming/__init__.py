"""Facts larger than memory to triples, from Parquet to Parquet: count, choose cuts, cut.

A source is read in parts. Counting a part gives a `Tally`, cutting a part writes one file and gives
a `Receipt`; both add up, and an engine maps over the parts.
"""

from splime.streaming.engines import Engine, in_one_process, in_processes
from splime.streaming.transform import StreamResult, is_large, stream_transform

__all__ = [
    "Engine",
    "StreamResult",
    "in_one_process",
    "in_processes",
    "is_large",
    "stream_transform",
]
