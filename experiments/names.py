"""Readable names for the synthetic world, computed from ids and never stored.

A name is a number written in mixed radix over lists of syllables, so that it is unique at every
size: once the plain names are used up they come again with a middle initial (people), with a
syllable in the middle or a word in front (places), and after that with a number behind. The number
is scrambled first, so that neighbours do not look alike.
"""

from __future__ import annotations

import tomllib
from itertools import chain
from math import gcd
from pathlib import Path
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Indices = npt.NDArray[np.int64]


_WORDS = tomllib.loads((Path(__file__).parent / "data" / "names.toml").read_text(encoding="utf-8"))
_FIRST, _STEM, _COUNTRY, _CLUB, _LAST_STEM, _LAST_ENDING = (
    _WORDS[key].split()
    for key in ("first_names", "stems", "countries", "clubs", "last_names", "last_name_endings")
)
_LAST = [stem + ending for stem in _LAST_STEM for ending in _LAST_ENDING]
_INITIAL = ["", *(f" {letter}." for letter in ascii_uppercase)]
_MIDDLE = ["", *_WORDS["middles"].split()]
_FRONT = ["", *(f"{word} " for word in _WORDS["fronts"].split())]
_CITY = [endings.split() for endings in _WORDS["cities"]]
_PARTY = _WORDS["parties"]

PEOPLE, REGIONS = 160, 3  # of a country
KINDS = {"city": len(_CITY), "club": 5, "party": len(_PARTY)}
CITIES = REGIONS * KINDS["city"]
_CAPITAL = 2  # the kind of city


class Ids(NamedTuple):
    """Some countries, and where the ids of each sort of entity begin there; people have the first.

    There are also ids for the cities of the country before, because people visit them.
    """

    first: int
    countries: int
    city: int
    club: int
    party: int
    mayor: int
    president: int
    end: int

    @classmethod
    def of(cls, first: int, countries: int) -> Ids:
        """The ids of so many countries, of which the first has the number `first` in the world."""
        places = [REGIONS * kinds for kinds in KINDS.values()]
        ends = CITIES + countries * np.cumsum([PEOPLE, *places, REGIONS, 1])
        return cls(first, countries, *ends.tolist())

    def column(self, entities: Indices) -> pa.Array:
        """The names of entities, as a dictionary of those that occur.

        >>> ids = Ids.of(first=0, countries=1)
        >>> ids.column(np.array([ids.club, 0, ids.club])).to_pylist()
        ['Alpit Rovers', 'Ada Aldqvist', 'Alpit Rovers']
        """
        used = np.zeros(self.end, np.bool_)
        used[entities] = True
        code = np.cumsum(used, dtype=np.int32) - 1
        return pa.DictionaryArray.from_arrays(code[entities], self._names(np.flatnonzero(used)))

    def _names(self, entities: Indices) -> pa.Array:
        bounds = [self.city - CITIES, self.club, self.party, self.mayor, self.president]
        person, city, club, party, mayor, president = np.split(
            entities, np.searchsorted(entities, bounds)
        )

        def home(place: Indices, sort: str) -> tuple[Indices, Indices]:
            region, kind = np.divmod(place, KINDS[sort])
            return self.first * REGIONS + region, kind

        names = (
            person_names(self.first * PEOPLE + person),
            city_names(*home(city - self.city, "city")),
            club_names(*home(club - self.club, "club")),
            party_names(*home(party - self.party, "party")),
            mayor_names(self.first * REGIONS + mayor - self.mayor),
            president_names(self.first + president - self.president),
        )
        return pa.concat_arrays(names)


def person_names(person: Indices) -> pa.Array:
    """The names of people.

    >>> person_names(np.array([0, 1, 10**6, 10**8])).to_pylist()
    ['Ada Aldqvist', 'Lotte Dahlley', 'Harald F. Hörnberg', 'Yusuf U. Stormberg 26']
    """
    block, rank = _scramble(person, len(_FIRST) * len(_LAST))
    first, last = np.divmod(rank, len(_LAST))
    number, initial = np.divmod(block, len(_INITIAL))
    return _join(
        _pick(_FIRST, first), _pick(_INITIAL, initial), " ", _pick(_LAST, last), _number(number)
    )


def city_names(region: Indices, kind: Indices) -> pa.Array:
    """The names of the cities of some kinds in some regions; the ending tells the kind.

    >>> city_names(np.array([0, 0, 1, 10**6]), np.array([1, 2, 1, 1])).to_pylist()
    ['Falmouth', 'Kelburg', 'Ulhaven', 'Little Elenmouth 44']
    """
    endings = len(_CITY[0])
    size = len(_STEM) * endings
    block, rank = _scramble(region, size)
    # A different stem for each city of a region.
    stem, ending = np.divmod((rank + kind * (size // len(_CITY))) % size, endings)
    return _place(block, stem, _pick([*chain(*_CITY)], kind * endings + ending))


def country_names(country: Indices) -> pa.Array:
    """The names of countries.

    >>> country_names(np.array([0, 1, 10**5])).to_pylist()
    ['Alland', 'Pelstan', 'Upper Jorumland 5']
    """
    block, rank = _scramble(country, len(_STEM) * len(_COUNTRY))
    stem, ending = np.divmod(rank, len(_COUNTRY))
    return _place(block, stem, _pick(_COUNTRY, ending))


def club_names(region: Indices, kind: Indices) -> pa.Array:
    """The names of clubs: a kind of club is at home in the same kind of city.

    >>> club_names(np.array([0]), np.array([1])).to_pylist()
    ['Falmouth United']
    """
    return _join(city_names(region, kind), " ", _pick(_CLUB, (region * 3 + kind) % len(_CLUB)))


def party_names(region: Indices, kind: Indices) -> pa.Array:
    """The names of the parties of some kinds, seated in the capital of their region.

    >>> party_names(np.array([0]), np.array([2])).to_pylist()
    ['Green League of Kelburg']
    """
    return _join(_pick(_PARTY, kind), " of ", city_names(region, np.full_like(region, _CAPITAL)))


def mayor_names(region: Indices) -> pa.Array:
    """The names of the offices of mayor, one in the capital of every region.

    >>> mayor_names(np.array([0])).to_pylist()
    ['Mayor of Kelburg']
    """
    return _join("Mayor of ", city_names(region, np.full_like(region, _CAPITAL)))


def president_names(country: Indices) -> pa.Array:
    """The names of the offices of president, one in every country.

    >>> president_names(np.array([0])).to_pylist()
    ['President of Alland']
    """
    return _join("President of ", country_names(country))


def _scramble(index: Indices, size: int) -> tuple[Indices, Indices]:
    """Which block of `size` names an index lies in, and its scrambled place there."""
    # A multiplier without common divisor is a bijection; near the golden section of the size it
    # sends neighbours far apart.
    factor = next(k for k in range(int(size * 0.618), size) if gcd(k, size) == 1)
    block, rank = np.divmod(index, size)
    return block, rank * factor % size


def _place(block: Indices, stem: Indices, ending: pa.Array) -> pa.Array:
    block, middle = np.divmod(block, len(_MIDDLE))
    number, front = np.divmod(block, len(_FRONT))
    return _join(
        _pick(_FRONT, front), _pick(_STEM, stem), _pick(_MIDDLE, middle), ending, _number(number)
    )


def _number(number: Indices) -> pa.Array:
    last = int(number.max(initial=0))
    return _pick(["", *(f" {value + 1}" for value in range(1, last + 1))], number)


def _pick(words: list[str], index: Indices) -> pa.Array:
    return pa.array(words, pa.string()).take(pa.array(index))


def _join(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")
