"""splime: link prediction at a time, with any static embedding model."""

from splime import leakage
from splime.datasets import World, load
from splime.errors import SplimeError
from splime.graph import Fact, Facts, TemporalGraph
from splime.io import read, save, to_table, write_text
from splime.splitting import split_graph
from splime.statistics import describe
from splime.timeline import Timeline
from splime.times import parse_times
from splime.vocabulary import Vocabulary

__version__ = "0.1.0.dev0"

__all__ = [
    "Fact",
    "Facts",
    "SplimeError",
    "TemporalGraph",
    "Timeline",
    "Vocabulary",
    "World",
    "describe",
    "leakage",
    "load",
    "parse_times",
    "read",
    "save",
    "split_graph",
    "to_table",
    "write_text",
]
