"""The names of entities or predicates, and the integers that stand for them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splime.errors import UsageError, nearest

# Suggestions compare the misspelt name with every label; with more labels that takes seconds.
_MOST_SUGGESTED_FROM = 200_000
_FEW = 20  # so many are listed in messages


class Vocabulary:
    """Distinct labels in alphabetical order; the id of a label is its position.

    The order makes ids independent of the order in which facts were read.

    >>> clubs = Vocabulary(["Norport Rovers", "Ajax", "007"], kind="entity")
    >>> list(clubs), clubs.id("Ajax"), clubs[0]
    (['007', 'Ajax', 'Norport Rovers'], 1, '007')
    """

    labels: pa.Array
    kind: str

    def __init__(self, labels: Iterable[str] | pa.Array, *, kind: str) -> None:
        array = labels if isinstance(labels, pa.Array) else pa.array(labels, pa.large_string())
        array = pc.unique(array.cast(pa.large_string()))
        self.__dict__.update(labels=array.take(pc.sort_indices(array)), kind=kind)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a vocabulary cannot be changed: {name}")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> str:
        return str(self.labels[int(index)].as_py())

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels.to_pylist())

    def __contains__(self, label: object) -> bool:
        return isinstance(label, str) and self._find(label) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and bool(self.labels.equals(other.labels))

    def __hash__(self) -> int:
        return hash((len(self), self.kind))

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} × {self.kind})"

    def _find(self, label: str) -> int | None:
        # UTF-8 bytes sort like code points, so Arrow's order is Python's.
        index = bisect_left(range(len(self)), label, key=self.__getitem__)
        return index if index < len(self) and self[index] == label else None

    def id(self, label: str) -> int:
        """The id of a label; an error that suggests the nearest names if it is unknown."""
        index = self._find(label)
        if index is None:
            known = self if len(self) <= _MOST_SUGGESTED_FROM else ()
            few = f" There are {', '.join(self)}." if len(self) <= _FEW else ""
            raise UsageError(f"no {self.kind} is called {label!r}.{nearest(label, known)}{few}")
        return index

    def ids(self, labels: pa.Array) -> npt.NDArray[np.int32]:
        """The ids of many labels; -1 for unknown labels."""
        positions = pc.index_in(labels.cast(pa.large_string()), value_set=self.labels)
        return np.asarray(positions.fill_null(-1).to_numpy(), np.int32)


def named(ids: npt.NDArray[np.int32], labels: pa.Array) -> pa.Array:
    """A column of names, as a dictionary."""
    return pa.DictionaryArray.from_arrays(pa.array(ids), labels)
