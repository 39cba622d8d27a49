"""Graphs, segmentations and static graphs cannot be changed, and take nothing from their caller."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import splime
from splime.graph import Facts
from splime.methods import Merge, Split, Timestamp
from splime.segmentation import Scopes
from splime.static import Triples, apply
from splime.timeline import Timeline
from splime.vocabulary import Vocabulary

ROWS = [(f"e{n % 7}", f"p{n % 3}", f"e{n % 5}", 1990 + n % 9, 1995 + n % 9) for n in range(90)]


def arrays_in(value: Any, path: str = "") -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """All arrays that can be reached from a value, with caches."""
    if isinstance(value, np.ndarray):
        yield path, value
    elif isinstance(value, tuple | list):
        for number, each in enumerate(value):
            yield from arrays_in(each, f"{path}[{number}]")
    elif is_dataclass(value):
        for name, each in vars(value).items():
            yield from arrays_in(each, f"{path}.{name}")


def make() -> list[Any]:
    """A graph, what becomes of it, and what else gives facts; with everything cached."""
    graph = splime.read(ROWS)
    segmentation = Split(grow=2).fit(graph)
    static = apply(segmentation, graph)
    both = Timestamp(target="both").fit_transform(graph)
    for scopes in (segmentation.predicates, both.segmentation.predicates):
        _ = scopes.labels, scopes.sources, scopes.cut_sources, scopes._keys, scopes._tables
        _ = scopes._width
    parts = [graph.where(subject="e1"), graph.at(1995), graph.bucket(5), graph.compact()]
    more = [static.filter("inter")[0], static.distinct()[0], static.without_unseen()[0]]
    coarse = segmentation.predicates.coarsen(2)
    return [graph, segmentation, static, both, *parts, *more, coarse, graph.facts()]


def unpickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [lambda x: x, copy.copy, copy.deepcopy, unpickled])
def test_every_array_is_read_only(copied: Callable[[Any], Any]) -> None:
    for made in map(copied, make()):
        arrays = [*arrays_in(made)]
        assert len(arrays) >= 2
        for path, array in arrays:
            assert not array.flags.writeable, f"{type(made).__name__}{path}"


def test_copies_are_equal() -> None:
    for made in make():
        for copied in (copy.copy(made), copy.deepcopy(made), unpickled(made)):
            if not isinstance(made, splime.StaticGraph):
                assert copied == made
            else:
                assert [*copied.rows("train")] == [*made.rows("train")]
                assert copied.segmentation == made.segmentation


def columns(cls: type) -> dict[str, np.ndarray[Any, Any]]:
    names = [field.name for field in fields(cls)]
    return {name: np.zeros(3, np.uint8 if name == "unknown" else np.int32) for name in names}


def test_a_caller_s_arrays_stay_the_caller_s() -> None:
    cases: list[tuple[Callable[..., Any], dict[str, np.ndarray[Any, Any]]]] = [
        (Facts, columns(Facts)),
        (Triples, columns(Triples)),
        (lambda **own: Timeline("year", **own), {n: np.arange(3) for n in ("starts", "ends")}),
        (
            lambda **own: Scopes(
                Vocabulary(["p", "q"], kind="predicate"), Timeline.of(np.arange(9), "step"), **own
            ),
            {
                "cuts": np.array([3]),
                "offsets": np.array([0, 1, 1]),
                **{name: np.arange(3) for name in ("facts", "first", "last")},
            },
        ),
    ]
    for make_one, given in cases:
        own = {name: array.copy() for name, array in given.items()}
        for array in own.values():
            array.setflags(write=False)  # which the caller can take back
        for arrays in (given, own):
            made = make_one(**arrays)
            for name, array in arrays.items():
                assert array is not getattr(made, name)
                assert not np.shares_memory(array, getattr(made, name)), name
            assert all(array.flags.writeable == (arrays is given) for array in arrays.values())


def test_views_are_not_taken_either() -> None:
    whole = np.arange(10)
    view = whole[2:5]
    view.setflags(write=False)
    timeline = Timeline("year", view, view)
    whole[:] = 7
    assert timeline.starts.tolist() == [2, 3, 4]


def test_reading_and_fitting_leave_tables_alone() -> None:
    years = np.arange(1990, 2000)
    names = [f"e{n % 3}" for n in range(10)]
    table = pa.table(
        {"subject": names, "predicate": ["p"] * 10, "object": names, "time": pa.array(years)}
    )
    graph = splime.read(table, split="none")
    Merge(shrink=2).fit_transform(graph)
    assert years.flags.writeable
    years[:] = 1
    assert graph.timeline.starts.tolist() == [*range(1990, 2000)]


def test_attributes_cannot_be_set(tmp_path: Path) -> None:
    graph = splime.load(splime.save(splime.read(ROWS), tmp_path / "graph.parquet"))
    static = Timestamp().fit_transform(graph)
    for thing in (graph, graph.train, graph.timeline, graph.entities, static, static.train):
        for name in vars(thing):
            with pytest.raises(AttributeError):
                setattr(thing, name, None)
    with pytest.raises(ValueError, match="read-only"):
        static.train.subject[0] = 1


def test_large_columns_are_handed_over_not_copied() -> None:
    graph = splime.read(ROWS, split="none")
    vanilla = splime.Vanilla().fit_transform(graph)
    assert np.shares_memory(vanilla.train.subject, graph.train.subject)
    assert np.shares_memory(graph.train.take(slice(0, 9)).begin, graph.train.begin)
