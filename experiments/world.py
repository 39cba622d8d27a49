"""The dataset `demo`: a synthetic world in which time matters, of any size, made from a seed.

The world consists of independent countries. A country has regions, and a region has one city, one
club and one party of every *kind*. People belong to the region they were born in. In every era of
a predicate the people of a region go to its place of the kind that the era favours: to the mining
town first, say, then to the port, then to the capital. So the object of a fact follows from the
region of the subject and the era of the predicate, and who does not see the time cannot tell which
of the places it is. When an era begins, in a *planted* year, nearly everybody moves: these are the
change points that a detector should find.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.random import Generator, default_rng

from experiments.names import CITIES, KINDS, PEOPLE, REGIONS, Ids, Indices
from splime.errors import UsageError, check_fields
from splime.graph import SPLITS
from splime.io.files import atomic_write
from splime.io.sealed import sealed_writer
from splime.progress import Progress, silent

FIRST_YEAR, LAST_YEAR = 1950, 2020

# Predicates that change: how many eras they have, and what sort of place people choose.
_ERAS = {
    "livesIn": (5, "city"),
    "playsFor": (4, "club"),
    "memberOf": (3, "party"),
    "visited": (5, "city"),
}
PREDICATES = (*_ERAS, "bornIn", "marriedTo", "holdsOffice", "wonElection", "diedIn")

_LOOSE = 20  # years in which an era may be longer than another
_LOYAL = 0.85  # go where the era sends them; the others anywhere in the country
_MOVE = 0.9  # move when an era begins
_RESTLESS = 0.25  # think again within an era
_OFFICES = REGIONS + 1  # a mayor in every region, and a president
_FACTS = 1_850  # of a country, seldom fewer
_COUNTRIES = 128  # of a chunk, which is made at once: a quarter of a million facts

_TEXT, _YEAR = pa.dictionary(pa.int32(), pa.string()), pa.int32()
_COLUMNS = pa.schema(
    dict.fromkeys(("split", "subject", "predicate", "object"), _TEXT)
    | {"begin": _YEAR, "end": _YEAR}
)
# Names stay a dictionary however many there are, and their least and greatest help nobody.
_PARQUET = {
    "compression": "zstd",
    "dictionary_pagesize_limit": 2**26,
    "write_statistics": ["begin", "end"],
}


@dataclass(frozen=True)
class World:
    """A synthetic world of a number of facts: the same seed and size give the same facts.

    >>> World(seed=7).planted()["memberOf"]
    (1971, 1989)
    """

    facts: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if not 1_000 <= self.facts <= 10**9:
            raise UsageError(f"a world has 1,000 to 1,000,000,000 facts, not {self.facts:,}")
        if self.seed < 0:
            raise UsageError(f"seed must be 0 or more, not {self.seed}")

    def planted(self) -> dict[str, tuple[int, ...]]:
        """The years in which the behaviour of each predicate changes: the first of a new era."""
        eras = _eras(self.seed).items()
        changes = {predicate: tuple(era.begin[1:].tolist()) for predicate, era in eras}
        return {predicate: changes.get(predicate, ()) for predicate in PREDICATES}

    def schema(self) -> pa.Schema:
        """The columns, with what made them as metadata."""
        world = {"facts": self.facts, "seed": self.seed, "planted": self.planted()}
        about = {"format": 1, "granularity": "year", "world": world}
        return _COLUMNS.with_metadata({"splime": json.dumps(about)})

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The facts, chunk by chunk: memory does not depend on how many there are."""
        eras, schema = _eras(self.seed), self.schema()
        missing, first, chunk = self.facts, 0, 0
        while missing:
            chunk += 1  # 0 made the eras
            rng = default_rng([self.seed, chunk])
            ids = Ids.of(first, min(_COUNTRIES, missing // _FACTS + 1))
            facts = _simulate(rng, eras, ids)
            # Too many are the last people, so that the others keep all of their lives.
            facts = facts[:, rng.permutation(np.argsort(facts[1], kind="stable")[:missing])]
            yield _batch(rng, facts, ids, schema)
            missing -= facts.shape[1]
            first += ids.countries

    def table(self) -> pa.Table:
        """All facts at once, for small worlds."""
        return pa.Table.from_batches(self.batches(), self.schema()).unify_dictionaries()


def make_world(path: Path, world: World, *, progress: Progress = silent) -> None:
    """Stream the world to one Parquet file."""
    if path.exists():
        raise UsageError(f"{path} exists already; delete it first, or choose another name")
    written = 0
    with (
        atomic_write(path) as beside,
        sealed_writer(beside, world.schema(), **_PARQUET) as writer,
    ):
        for batch in world.batches():
            writer.write_batch(batch)
            written += batch.num_rows
            progress(path.name, written, world.facts)


class _Eras(NamedTuple):
    """When the eras of a predicate begin, and which of so many kinds of places each favours."""

    begin: Indices
    favoured: Indices
    kinds: int


def _eras(seed: int) -> dict[str, _Eras]:
    rng = default_rng([seed, 0])
    eras = {}
    for predicate, (count, sort) in _ERAS.items():
        # All eras get the same share of most years; how the loose ones fall to them is drawn.
        drawn = np.sort(rng.integers(0, _LOOSE, count - 1, endpoint=True))
        shortest = (LAST_YEAR - FIRST_YEAR - _LOOSE) // count
        begin = FIRST_YEAR + np.append(0, drawn + shortest * np.arange(1, count))
        eras[predicate] = _Eras(begin, rng.permutation(KINDS[sort])[:count], KINDS[sort])
    return eras


def _simulate(rng: Generator, eras: dict[str, _Eras], ids: Ids) -> Indices:
    """What happens in some countries: rows of predicates, subjects, objects, begins and ends."""
    # Every two people grow up together, and may marry. Regions are counted through all countries.
    couples = ids.countries * PEOPLE // 2
    size = 2 * couples
    country = np.arange(size) // PEOPLE
    region = country * REGIONS + np.repeat(rng.integers(0, REGIONS, couples), 2)
    born = np.repeat(rng.integers(1910, 1991, couples), 2) + rng.integers(0, 5, size)
    adult = born + rng.integers(16, 22, size)
    died = born + rng.integers(50, 96, size)
    retired = np.minimum(died, adult + rng.integers(20, 36, size))
    birthplace = region * KINDS["city"] + rng.integers(0, KINDS["city"], size)
    anywhere = country * CITIES + rng.integers(0, CITIES, size)
    deathplace = np.where(rng.random(size) < 0.6, birthplace, anywhere)
    # Nothing is on record from before the horizon, but some homes and births are older: nobody
    # knows when they began, only that such a birth was over by the first year.
    start = np.maximum(adult, FIRST_YEAR)
    settled = np.where(rng.random(size) < 0.4, adult, start)
    births = np.stack([np.arange(size), birthplace, born, np.maximum(born, FIRST_YEAR)])
    deaths = np.stack([np.arange(size), deathplace, died, died])[:, died <= LAST_YEAR]
    terms = _terms(rng, adult, died, ids)
    by_predicate = {
        "livesIn": (ids.city, _stays(rng, eras["livesIn"], region, settled, died, 1)),
        "playsFor": (ids.club, _stays(rng, eras["playsFor"], region, start, retired, 0.45)),
        "memberOf": (ids.party, _stays(rng, eras["memberOf"], region, start, died, 0.6)),
        "visited": (ids.city, _visits(rng, eras["visited"], region, start, died, ids)),
        "bornIn": (ids.city, births),
        "marriedTo": (0, _marriages(rng, start, died)),
        "holdsOffice": (ids.mayor, terms),
        "wonElection": (ids.mayor, terms[[0, 1, 2, 2]]),
        "diedIn": (ids.city, deaths),
    }
    parts = [part + np.array([[0], [base], [0], [0]]) for base, part in by_predicate.values()]
    facts = np.hstack(parts)
    # Years out of the horizon are unknown; but a few of the intervals that reach it end there.
    ends = rng.random(facts.shape[1]) < 0.1
    facts[3, ends] = np.minimum(facts[3, ends], LAST_YEAR)
    predicate = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    return np.vstack([predicate, facts])


def _go(rng: Generator, eras: _Eras, region: Indices, era: Indices) -> Indices:
    """The places that people of some regions choose in some eras."""
    choices = REGIONS * eras.kinds
    favoured = region * eras.kinds + eras.favoured[era]
    anywhere = region // REGIONS * choices + rng.integers(0, choices, len(region))
    return np.where(rng.random(len(region)) < _LOYAL, favoured, anywhere)


def _stays(
    rng: Generator, eras: _Eras, region: Indices, start: Indices, stop: Indices, share: float
) -> Indices:
    """Where a share of the people stay, in one place after the other."""
    people = np.flatnonzero(rng.random(len(region)) < share)
    opens = np.maximum(start[people, None], eras.begin)
    closes = np.minimum(stop[people, None], np.append(eras.begin[1:] - 1, LAST_YEAR))
    # Two occasions to move in each era: when it opens, and once later.
    later = opens + 1 + (rng.random(opens.shape) * (closes - opens)).astype(np.int64)
    move = (opens == opens[:, :1]) | (rng.random(opens.shape) < _MOVE)  # who arrives must
    again = (later <= closes) & (rng.random(opens.shape) < _RESTLESS)
    row, era, occasion = np.nonzero(np.stack([move & (opens <= closes), again], axis=2))
    year = np.where(occasion == 0, opens[row, era], later[row, era])
    who = people[row]
    place = _go(rng, eras, region[who], era)
    # Who goes where they are already stays.
    known = np.append(False, who[1:] == who[:-1])
    moved = ~known | np.append(True, place[1:] != place[:-1])
    who, place, year, known = who[moved], place[moved], year[moved], known[moved]
    begin = np.where(known, year, start[who])
    end = np.where(np.append(known[1:], False), np.append(year[1:], 0) - 1, stop[who])
    return np.stack([who, place, begin, end])


def _visits(
    rng: Generator, eras: _Eras, region: Indices, start: Indices, stop: Indices, ids: Ids
) -> Indices:
    """Journeys, at most one a year; some go to the country before."""
    years = np.minimum(stop, LAST_YEAR) + 1 - start
    turn = (np.arange(5) + rng.random((len(start), 5))) / 5
    year = start[:, None] + (turn * years[:, None]).astype(np.int64)
    fresh = np.diff(year, axis=1, prepend=0) > 0
    who, journey = np.nonzero(fresh & (years > 0)[:, None] & (rng.random(year.shape) < 0.9))
    year = year[who, journey]
    era = np.searchsorted(eras.begin, year, side="right") - 1
    place = _go(rng, eras, region[who], era)
    abroad = (rng.random(len(who)) < 0.05) & (region[who] + ids.first * REGIONS >= REGIONS)
    return np.stack([who, place - abroad * CITIES, year, year])


def _marriages(rng: Generator, start: Indices, stop: Indices) -> Indices:
    """Marriages within the couples, some of them stated in both directions."""
    couple = rng.permuted(np.arange(len(start)).reshape(-1, 2), axis=1)
    begin = start[couple].max(axis=1) + rng.integers(0, 15, len(couple))
    parted = np.minimum(stop[couple].min(axis=1), begin + rng.integers(1, 40, len(couple)))
    wed = (rng.random(len(couple)) < 0.6) & (begin <= np.minimum(parted, LAST_YEAR))
    stated = np.stack([*couple.T, begin, parted])[:, wed]
    both = rng.random(stated.shape[1]) < 0.4
    return np.hstack([stated, stated[[1, 0, 2, 3]][:, both]])


def _terms(rng: Generator, adult: Indices, died: Indices, ids: Ids) -> Indices:
    """Who holds which office, the mayors before the presidents, one term after the other."""
    # Terms of 3 to 5 years, up to the horizon at least.
    bounds = FIRST_YEAR - 3 + rng.integers(3, 6, (ids.countries, _OFFICES, 25)).cumsum(axis=2)
    begin, end = bounds[..., :-1], bounds[..., 1:] - 1
    country, office, _ = np.indices(begin.shape)
    # Everybody runs for one office only, and so never holds two. The first fit one is elected.
    number = rng.integers(0, PEOPLE // _OFFICES, (8, *begin.shape)) * _OFFICES + office
    candidate = country * PEOPLE + number
    fit = (adult[candidate] + 4 <= begin) & (begin <= died[candidate])
    holder = np.take_along_axis(candidate, fit.argmax(axis=0)[None], axis=0)[0]
    president = ids.president - ids.mayor + country
    seat = np.where(office < REGIONS, country * REGIONS + office, president)
    terms = np.stack([holder, seat, begin, np.minimum(end, died[holder])])
    return terms[:, fit.any(axis=0) & (begin <= LAST_YEAR)]


def _batch(rng: Generator, facts: Indices, ids: Ids, schema: pa.Schema) -> pa.RecordBatch:
    predicate, subject, object_, begin, end = facts
    columns = [
        pa.DictionaryArray.from_arrays(_split(rng, facts), SPLITS),
        ids.column(subject),
        pa.DictionaryArray.from_arrays(predicate.astype(np.int32), PREDICATES),
        ids.column(object_),
        pa.array(begin.astype(np.int32), mask=begin < FIRST_YEAR),
        pa.array(end.astype(np.int32), mask=end > LAST_YEAR),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _split(rng: Generator, facts: Indices) -> npt.NDArray[np.int32]:
    """Train, valid or test at random; one fact of every entity and predicate stays in train."""
    order = rng.permutation(facts.shape[1])
    predicate, subject, object_ = facts[:3, order]
    # Predicates count from the end. Of the facts that hold a thing the last in the order remains.
    things = np.stack([subject, object_, -1 - predicate], axis=1)
    anchor = np.zeros(things.max() + 1 + len(PREDICATES), np.int64)
    anchor[things] = order[:, None]
    free = np.ones(len(order), np.bool_)
    free[anchor[things]] = False
    held_out = order[free[order]]
    tenth = len(order) // 10
    split = np.zeros(len(order), np.int32)
    split[held_out[:tenth]] = 1
    split[held_out[tenth : 2 * tenth]] = 2
    return split
