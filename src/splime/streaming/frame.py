"""What is known of the time of a file before its facts are counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splime.errors import DataError, SplimeError, UsageError
from splime.io.batches import FactFile
from splime.timeline import Timeline
from splime.times import Granularity, When, check_granularity, tick_range


@dataclass(frozen=True)
class Frame:
    """What is known of the time of a file before its facts are counted."""

    granularity: Granularity
    timeline: Timeline | None = None
    """That of a saved graph."""
    first: int | None = None
    last: int | None = None
    unused: tuple[str, ...] = ()
    """Predicates of a saved graph that no fact uses."""

    @classmethod
    def of(
        cls,
        file: FactFile,
        granularity: Granularity | None,
        first: When | None,
        last: When | None,
    ) -> Frame:
        """What a person says, what the file says about itself, and what its times look like."""
        if file.is_graph:
            if (granularity, first, last) != (None, None, None):
                raise UsageError(
                    f"{file.path} is a saved graph, in which granularity, first and last are"
                    " settled"
                )
            return cls._saved(file)
        granularity = granularity or file.described.get("granularity") or file.granularity()
        check_granularity(granularity)
        return cls(
            granularity,
            first=None if first is None else tick_range(first, granularity)[0],
            last=None if last is None else tick_range(last, granularity)[1],
        )

    @classmethod
    def _saved(cls, file: FactFile) -> Frame:
        about = file.described
        try:
            granularity, filled = about["granularity"], about["filled"]
            check_granularity(granularity)
            ticks = (np.array(about["timeline"][key], np.int64) for key in ("starts", "ends"))
            return cls(
                granularity,
                Timeline(granularity, *ticks),
                tick_range(filled["first"], granularity)[0] if "first" in filled else None,
                tick_range(filled["last"], granularity)[0] if "last" in filled else None,
                tuple(about["unused"]["predicates"]),
            )
        except (SplimeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"{file.path}: the description of the graph is damaged: {error!r}"
            ) from None
