"""The account of the rows of one source: what was kept, what was dropped, why, and examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from splime.io.columns import RawFacts
from splime.reading import Example, Source
from splime.times import Bools

EXAMPLES = 3


class Account:
    """What became of the rows of one source."""

    def __init__(self, raw: RawFacts) -> None:
        self.raw = raw
        self.kept: Bools = np.ones(raw.rows, bool)
        self._dropped: Counter[str] = Counter()
        self._notes: Counter[str] = Counter()
        self._shown: list[tuple[int, tuple[str, ...], str]] = []

    def drop(
        self,
        reason: str,
        rows: npt.NDArray[np.integer],
        *,
        whys: Sequence[str] = (),
        texts: Sequence[tuple[str, ...]] | None = None,
    ) -> None:
        """Put rows aside; `whys` and `texts` say more about the first of them."""
        if len(rows):
            self._dropped[reason] += len(rows)
            self.kept[rows] = False
            self._show(reason, rows, whys, texts)

    def note(self, what: str, rows: npt.NDArray[np.integer]) -> None:
        """Remember rows that are kept, but not quite as they were written."""
        if len(rows):
            self._notes[what] += len(rows)
            self._show(what, rows, (), None)

    def _show(
        self,
        what: str,
        rows: npt.NDArray[np.integer],
        whys: Sequence[str],
        texts: Sequence[tuple[str, ...]] | None,
    ) -> None:
        first = rows[:EXAMPLES].tolist()
        whys = [f"{what}: {why}" for why in whys] or [what] * len(first)
        texts = self.raw.texts(first) if texts is None else texts
        self._shown.extend(zip(first, texts, whys, strict=True))

    def source(self) -> Source:
        """The counts."""
        return Source(
            self.raw.name,
            self.raw.split if isinstance(self.raw.split, str) else None,
            self.raw.rows,
            int(self.kept.sum()),
            dict(self._dropped),
            dict(self._notes),
            self.raw.header,
        )

    def examples(self) -> list[Example]:
        """The first rows that something happened to, and where they stand."""
        if not self._shown:
            return []
        places = self.raw.locate([row for row, _, _ in self._shown])
        return [
            Example(place, text, why)
            for place, (_, text, why) in zip(places, self._shown, strict=True)
        ]
