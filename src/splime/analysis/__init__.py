"""What runs show: how they compare, and how their embeddings move over time."""

from splime.analysis.comparing import ComparedRun, Comparison, Pair, compare
from splime.analysis.embeddings import smoothness

__all__ = ["ComparedRun", "Comparison", "Pair", "compare", "smoothness"]
