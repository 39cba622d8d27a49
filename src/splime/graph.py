"""A temporal knowledge graph: facts as integer columns, their names, their time. Immutable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splime.arrays import Immutable
from splime.errors import UsageError, check_name, visible
from splime.reading import Reading
from splime.shown import Shown, Tabular
from splime.timeline import Timeline
from splime.times import Bools, Ints, When, dated, format_ticks
from splime.vocabulary import Vocabulary, named

SplitName: TypeAlias = Literal["train", "valid", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)
Ids: TypeAlias = npt.NDArray[np.int32]
Names: TypeAlias = str | Iterable[str]

# Bits of the column `unknown`.
BEGIN_UNKNOWN, END_UNKNOWN = 1, 2


class Fact(NamedTuple):
    """A fact with names and dates; None is an unknown time."""

    subject: str
    predicate: str
    object: str
    begin: str | None
    end: str | None


@dataclass(frozen=True, eq=False)
class Statements(Immutable):
    """Facts or triples, as columns: the ids of their names, and more."""

    subject: Ids
    predicate: Ids
    object: Ids

    def _check(self) -> None:
        if any(len(column) != len(self.subject) for column in self.columns()):
            raise UsageError("the columns of facts must be equally long")

    def columns(self) -> tuple[npt.NDArray[np.integer], ...]:
        """All columns, in their order."""
        return tuple(getattr(self, column.name) for column in fields(self))

    def array(self) -> Ids:
        """Rows of subject, predicate and object."""
        return np.stack([self.subject, self.predicate, self.object], axis=1)

    def __len__(self) -> int:
        return len(self.subject)

    def take(self, rows: Bools | npt.NDArray[np.integer] | slice) -> Self:
        """A selection, by a mask, by positions or by a slice."""
        return self.owning(*(column[rows] for column in self.columns()))

    def named_in(self, train: Statements) -> Bools:
        """Which have only entities and predicates that occur in `train`."""
        entities = np.concatenate([train.subject, train.object])
        subject, object_ = np.isin(self.subject, entities), np.isin(self.object, entities)
        return subject & object_ & np.isin(self.predicate, train.predicate)


_Statements = TypeVar("_Statements", bound=Statements)


@dataclass(frozen=True, eq=False)
class Splits(Generic[_Statements]):
    """Facts or triples of train, valid and test."""

    train: _Statements
    valid: _Statements
    test: _Statements

    def __len__(self) -> int:
        return len(self.train) + len(self.valid) + len(self.test)

    def splits(self) -> Iterator[tuple[SplitName, _Statements]]:
        """The three splits with their names."""
        for split in SPLITS:
            yield split, getattr(self, split)

    def keep(self, masks: Mapping[str, Bools]) -> Self:
        """Only the rows that the mask of each split selects."""
        train, valid, test = (
            part if masks[split].all() else part.take(masks[split]) for split, part in self.splits()
        )
        return replace(self, train=train, valid=valid, test=test)


@dataclass(frozen=True, eq=False)
class Facts(Statements):
    """Facts, as columns: ids of names, ticks of times.

    An unknown begin or end holds the first or last tick of the graph, and is flagged in `unknown`.
    """

    begin: Ints
    end: Ints
    unknown: npt.NDArray[np.uint8]

    @property
    def timeless(self) -> Bools:
        """Which have neither begin nor end."""
        return np.asarray(self.unknown == BEGIN_UNKNOWN | END_UNKNOWN)

    def known_times(self) -> tuple[Ints, Ints]:
        """Begins and ends; for an unknown one the known one, if there is one."""
        begin = np.where(self.unknown == BEGIN_UNKNOWN, self.end, self.begin)
        return begin, np.where(self.unknown == END_UNKNOWN, self.begin, self.end)

    def renumber(self, of_entity: Ids, of_predicate: Ids) -> Facts:
        """The same facts with other ids for their names."""
        subject, predicate, object_, *others = self.columns()
        return self.owning(of_entity[subject], of_predicate[predicate], of_entity[object_], *others)

    @classmethod
    def concat(cls, parts: Iterable[Facts]) -> Facts:
        """All facts of the parts."""
        parts = [part for part in parts if len(part)]
        if len(parts) <= 1:
            return parts[0] if parts else cls.empty()
        columns = zip(*(part.columns() for part in parts), strict=True)
        return cls.owning(*(np.concatenate(column) for column in columns))

    @classmethod
    def empty(cls) -> Facts:
        """No facts."""
        ids, ticks = np.empty(0, np.int32), np.empty(0, np.int64)
        return cls.owning(ids, ids, ids, ticks, ticks, np.empty(0, np.uint8))


@dataclass(frozen=True)
class TemporalGraph(Splits[Facts], Shown, Tabular):
    """Facts of train, valid and test, over shared names and one timeline.

    Graphs are equal if they have the same facts in the same order, with the same names and times.

    >>> import splime
    >>> graph = splime.read([("Ada", "livesIn", "Norport", 1990, 1999),
    ...                      ("Ada", "livesIn", "Westmine", 2000, None)], split="none")
    >>> graph
    TemporalGraph(2 facts, 3 entities, 1 predicate, 3 timestamps by year, 1990..2000)
    >>> list(graph.at(1995).rows())
    [Fact(subject='Ada', predicate='livesIn', object='Norport', begin='1990', end='1999')]
    """

    entities: Vocabulary
    predicates: Vocabulary
    timeline: Timeline
    reading: Reading = field(default_factory=Reading, compare=False)
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for split, facts in self.splits():
            limits = ((facts.subject, self.entities), (facts.object, self.entities))
            for ids, names in (*limits, (facts.predicate, self.predicates)):
                if len(ids) and (ids.min() < 0 or ids.max() >= len(names)):
                    raise UsageError(f"{split} uses an id that no {names.kind} has")
            if (facts.begin > facts.end).any():
                raise UsageError(f"{split} has a fact that ends before it begins")

    def __repr__(self) -> str:
        sizes = [
            f"{count:,} {one if count == 1 else many}"
            for count, one, many in (
                (len(self), "fact", "facts"),
                (len(self.entities), "entity", "entities"),
                (len(self.predicates), "predicate", "predicates"),
            )
        ]
        name = f"{visible(self.name)}: " if self.name else ""
        return f"TemporalGraph({name}{', '.join(sizes)}, {repr(self.timeline)[9:-1]})"

    def facts(self, *splits: SplitName) -> Facts:
        """The facts of the named splits, or of all."""
        return Facts.concat(getattr(self, check_split(split)) for split in splits or SPLITS)

    def rows(self, *splits: SplitName, limit: int | None = None) -> Iterator[Fact]:
        """Facts with their names and dates."""
        facts = self.facts(*splits)
        if limit is not None:
            facts = facts.take(np.arange(min(limit, len(facts))))
        begins, ends = (
            format_ticks(ticks, self.timeline.granularity) for ticks in (facts.begin, facts.end)
        )
        for row, unknown in enumerate(facts.unknown):
            yield Fact(
                self.entities[facts.subject[row]],
                self.predicates[facts.predicate[row]],
                self.entities[facts.object[row]],
                None if unknown & BEGIN_UNKNOWN else begins[row],
                None if unknown & END_UNKNOWN else ends[row],
            )

    def to_table(self) -> pa.Table:
        """As an Arrow table of names and dates, with a column for the split.

        Unknown times are null. Years and steps are integers, days are dates, finer times are
        timestamps; a month is the date of its first day.

        >>> import splime
        >>> graph = splime.read([("Ada", "bornIn", "Norport", 1990)], split="none")
        >>> graph.to_table().to_pylist()[0]["begin"]
        1990
        """
        facts, granularity = self.facts(), self.timeline.granularity
        split = np.repeat(np.arange(3, dtype=np.int32), [len(part) for _, part in self.splits()])
        return pa.table(
            {
                "split": named(split, pa.array(SPLITS, pa.string())),
                "subject": named(facts.subject, self.entities.labels),
                "predicate": named(facts.predicate, self.predicates.labels),
                "object": named(facts.object, self.entities.labels),
                "begin": dated(facts.begin, granularity, (facts.unknown & BEGIN_UNKNOWN) != 0),
                "end": dated(facts.end, granularity, (facts.unknown & END_UNKNOWN) != 0),
            }
        )

    def timestamps(self, facts: Facts) -> tuple[Ids, Ids]:
        """The timestamps (positions in the timeline) at which facts begin and end."""
        begin = self.timeline.index(facts.begin)
        return begin, begin if facts.end is facts.begin else self.timeline.index(facts.end)

    def split_begins(self) -> tuple[int, ...]:
        """The first ticks of valid and test; an error where they do not follow each other."""
        found = []
        last = int(self.train.begin.max(initial=self.timeline.first))
        for split, facts in [("valid", self.valid), ("test", self.test)]:
            if not len(facts):
                continue
            first = int(facts.begin.min())
            if first < last:
                text = format_ticks(np.array([first, last]), self.timeline.granularity)
                raise UsageError(
                    f"a forecast of several steps needs splits in the order of time: {split} begins"
                    f" at {text[0]}, and earlier splits reach {text[1]}; splime.load(…,"
                    " split='time') (--split time) splits again"
                )
            last = first  # valid and test may have the same time
            found.append(first)
        return tuple(found)

    def where(
        self,
        *,
        subject: Names | None = None,
        predicate: Names | None = None,
        object: Names | None = None,
        entity: Names | None = None,
        during: tuple[When, When] | None = None,
        split: SplitName | None = None,
    ) -> TemporalGraph:
        """The facts that match all conditions; names and timeline stay as they are.

        `entity` matches subject or object; `during` matches facts that hold at any time of it.
        """
        conditions = [
            (columns, _chosen(names, vocabulary))
            for columns, names, vocabulary in (
                (["subject"], subject, self.entities),
                (["predicate"], predicate, self.predicates),
                (["object"], object, self.entities),
                (["subject", "object"], entity, self.entities),
            )
            if names is not None
        ]
        interval = None if during is None else self.timeline.interval(*during)
        if split is not None:
            check_split(split)
        masks: dict[str, Bools] = {}
        for name, facts in self.splits():
            masks[name] = np.full(len(facts), split in (None, name))
            for columns, chosen in conditions:
                masks[name] &= np.any([chosen[getattr(facts, c)] for c in columns], axis=0)
            if interval is not None:
                masks[name] &= (facts.begin <= interval[1]) & (facts.end >= interval[0])
        return self.keep(masks)

    def at(self, when: When) -> TemporalGraph:
        """The snapshot of facts that hold at a time (at any tick of it, if it is coarser)."""
        return self.where(during=(when, when))

    def bucket(self, min_facts: int = 300, *splits: SplitName) -> TemporalGraph:
        """The same facts over timestamps merged until each holds `min_facts` facts.

        The facts of the named splits decide, or all facts, as in the paper.
        """
        facts = self.facts(*splits)
        ticks = np.concatenate([facts.begin, facts.end])
        if not len(ticks):
            raise UsageError("there are no facts to make buckets from")
        timeline = Timeline.of(ticks, self.timeline.granularity)
        return replace(self, timeline=timeline.bucket(facts.begin, facts.end, min_facts=min_facts))

    def compact(self) -> TemporalGraph:
        """The same graph without names that no fact uses."""
        facts = [facts for _, facts in self.splits()]
        entities, of_entity = _used(
            self.entities, [ids for part in facts for ids in (part.subject, part.object)]
        )
        predicates, of_predicate = _used(self.predicates, [part.predicate for part in facts])
        if entities is self.entities and predicates is self.predicates:
            return self
        train, valid, test = (part.renumber(of_entity, of_predicate) for part in facts)
        return replace(
            self, train=train, valid=valid, test=test, entities=entities, predicates=predicates
        )


def check_split(split: SplitName) -> SplitName:
    """The name of a split; an error if there is no such split."""
    check_name("split", split, SPLITS)
    return split


def _chosen(names: Names, vocabulary: Vocabulary) -> Bools:
    """A mask over the ids of a vocabulary."""
    chosen = np.zeros(len(vocabulary), bool)
    for name in [names] if isinstance(names, str) else names:
        chosen[vocabulary.id(name)] = True
    return chosen


def _used(vocabulary: Vocabulary, columns: list[Ids]) -> tuple[Vocabulary, Ids]:
    """The names of a vocabulary that occur, and the new id of every name."""
    used = np.zeros(len(vocabulary), bool)
    for column in columns:
        used[column] = True
    if used.all():
        return vocabulary, np.arange(len(vocabulary), dtype=np.int32)
    kept = Vocabulary(vocabulary.labels.filter(pa.array(used)), kind=vocabulary.kind)
    return kept, (used.cumsum() - 1).astype(np.int32)
