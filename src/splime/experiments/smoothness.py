"""How smoothly the predicates of a run move over time: what the t-SNE figures show, as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from splime.runs import Run

SMOOTHNESS = "smoothness"
"""In the place of a protocol: measure it."""


def measure(run: Run) -> dict[str, Any]:
    """Of all predicates together, and of each its number of scopes and its smoothness."""
    from splime.analysis import smoothness

    found = smoothness(run)
    return {
        "overall": None if found.overall is None else round(found.overall, 4),
        "predicates": {
            name: [own.scopes, round(own.ratio, 4)] for name, own in found.predicates.items()
        },
    }
