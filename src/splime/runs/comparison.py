"""The result of comparing runs: figures of each, differences of each pair."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from splime.evaluation.metrics import METRICS, Difference, Intervals, Metrics


@dataclass(frozen=True)
class Row:
    """A run and its figures."""

    name: str
    """The name of its folder, with as many of those above as tell it apart."""
    path: str
    data: str
    method: str
    method_parameters: dict[str, Any]
    """Those that are not as by default."""
    model: str
    settings: dict[str, Any]
    predicates: int
    """How many scoped predicates there are."""
    parameters: int
    """How many numbers the model learned."""
    seconds: float
    """How long the training took."""
    test_set: int
    """Only runs with the same number here were asked the same, see `Comparison.test_sets`."""
    metrics: Metrics
    intervals: Intervals


@dataclass(frozen=True)
class Pair:
    """Two runs that were asked the same; the first has the higher MRR."""

    first: str
    second: str
    differences: dict[str, Difference]
    """Of mrr, hits1, hits3 and hits10, each tested by itself."""
    corrected: dict[str, float]
    """The p-values, corrected for the number of pairs (Holm)."""


@dataclass(frozen=True)
class Comparison:
    """Runs by test set and MRR, best first, and every pair that was asked the same."""

    protocol: str
    split: str
    filter: str
    ties: str
    candidates: list[int]
    """By test set."""
    test_sets: list[int]
    """How many facts (triples, by protocol `triple`) each test set has; usually there is one."""
    samples: int
    level: float
    rows: list[Row]
    pairs: list[Pair]
    remarks: list[str]
    """What a reader must know beside it."""

    def best(self, test_set: int = 0, figure: str = "mrr") -> Row:
        """The run with the highest figure on a test set."""
        rows = [row for row in self.rows if row.test_set == test_set]
        return max(rows, key=lambda row: getattr(row.metrics, figure))

    def larger_than_chance(self, pair: Pair, figure: str = "mrr") -> bool:
        """Whether the difference of a pair is too large for chance."""
        return pair.corrected[figure] <= 1 - self.level

    def like_the_best(self, row: Row, figure: str = "mrr") -> bool:
        """Whether a run cannot be told from the best one of its test set; the best can."""
        both = {self.best(row.test_set, figure).name, row.name}
        return any(
            {pair.first, pair.second} == both and not self.larger_than_chance(pair, figure)
            for pair in self.pairs
        )

    def to_json(self) -> dict[str, Any]:
        """The same as plain dictionaries."""
        plain = asdict(self)
        for row in plain["rows"]:
            row["intervals"] = {name: list(ends) for name, ends in row["intervals"].items()}
        for plain_pair, pair in zip(plain["pairs"], self.pairs, strict=True):
            plain_pair["larger_than_chance"] = {
                name: self.larger_than_chance(pair, name) for name in METRICS
            }
        return plain
