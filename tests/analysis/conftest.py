from __future__ import annotations

from tests.runs.conftest import finished, graph, run

__all__ = ["finished", "graph", "run"]
