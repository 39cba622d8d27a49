"""What runs show: how they compare, and how their embeddings move over time."""

from splime.analysis.comparing import Comparison, Pair, Row, compare
from splime.analysis.embeddings import smoothness

__all__ = ["Comparison", "Pair", "Row", "compare", "smoothness"]
