"""Text at speed: a triple is three ready-made cells, looked up by the ids of its parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splime.graph import SPLITS
from splime.static import StaticGraph

_ROWS = 1 << 18  # at a time, so that the text of a large graph is never in memory as a whole


def split_files(suffix: str) -> tuple[str, ...]:
    """The names of the files of the three splits."""
    return tuple(f"{split}{suffix}" for split in SPLITS)


def joined(*parts: pa.Array | str) -> pa.Array:
    """Texts put together, element by element.

    >>> joined(pa.array(["a", "b"], pa.large_string()), ";").to_pylist()
    ['a;', 'b;']
    """
    return pc.binary_join_element_wise(
        *(pa.scalar(part, pa.large_string()) if isinstance(part, str) else part for part in parts),
        pa.scalar("", pa.large_string()),
    )


def ids(labels: pa.Array) -> pa.Array:
    """The ids 0, 1, … of labels as text."""
    return pa.array(np.arange(len(labels))).cast(pa.large_string())


def write_cells(path: Path, cells: pa.Array) -> None:
    """Write texts one after the other."""
    with path.open("wb") as file:
        file.write(_text(cells))


def write_triples(
    static: StaticGraph,
    folder: Path,
    suffix: str,
    subject: pa.Array,
    predicate: pa.Array,
    object: pa.Array,
) -> None:
    """Write the file of every split; a line is the cells of subject, predicate and object."""
    cells = pa.concat_arrays([subject, predicate, object])
    shift = np.cumsum([0, len(subject), len(predicate)])
    for split, triples in static.splits():
        columns = triples.subject, triples.predicate, triples.object
        with (folder / f"{split}{suffix}").open("wb") as file:
            for start in range(0, len(triples), _ROWS):
                rows = np.stack([column[start : start + _ROWS] for column in columns], axis=1)
                file.write(_text(cells.take(pa.array((rows + shift).ravel()))))


def _text(cells: pa.Array) -> memoryview:
    """The bytes of all texts in a row, which is how Arrow keeps them: no copy, no loop."""
    if not len(cells):
        return memoryview(b"")
    _, offsets, data = cells.buffers()
    limits = np.frombuffer(offsets, np.int64)[cells.offset : cells.offset + len(cells) + 1]
    return memoryview(data or b"")[limits[0] : limits[-1]]
