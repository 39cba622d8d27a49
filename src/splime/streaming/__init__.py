"""Facts larger than memory to triples, from Parquet to Parquet: count, choose cuts, apply."""

from splime.streaming.size import is_large
from splime.streaming.transform import StreamResult, stream_transform

__all__ = ["StreamResult", "is_large", "stream_transform"]
