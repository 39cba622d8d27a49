"""The methods of the paper: each chooses cuts. One line here makes a method known everywhere."""

from collections.abc import Mapping

from splime.methods.base import Method
from splime.methods.merge import Merge
from splime.methods.random_split import RandomSplit
from splime.methods.split import Split
from splime.methods.timestamp import Timestamp
from splime.methods.vanilla import Vanilla

METHODS: Mapping[str, type[Method]] = {
    "vanilla": Vanilla,
    "timestamp": Timestamp,
    "split": Split,
    "random": RandomSplit,
    "merge": Merge,
}

__all__ = ["METHODS", "Merge", "Method", "RandomSplit", "Split", "Timestamp", "Vanilla"]
