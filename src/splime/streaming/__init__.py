"""Turn facts larger than memory into triples, from Parquet to Parquet: count, choose cuts, cut.

A source is read in parts. Counting a part gives a `Tally`, and tallies are added; cutting a part
writes its triples. One process works through the parts, or many workers share them.
"""

from splime.streaming.transform import (
    LARGE as LARGE,
    PART as PART,
    StreamResult as StreamResult,
    rows_to_stream as rows_to_stream,
    stream_transform as stream_transform,
    transform_parts as transform_parts,
)
