"""The synthetic world: exact, coherent, the same again, and of no use to who ignores time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import splime
from experiments.names import (
    city_names,
    club_names,
    country_names,
    mayor_names,
    party_names,
    person_names,
    president_names,
)
from experiments.world import FIRST_YEAR, LAST_YEAR, PREDICATES, World, make_world
from splime.errors import SplimeError, UsageError
from splime.runs.folder import checksum

ROOT = Path(__file__).parents[2]
SEEDS = (0, 1, 2)
EVENTS = {"bornIn", "diedIn", "visited", "wonElection"}
STAYS = ("livesIn", "playsFor", "memberOf")


class Fact(NamedTuple):
    split: str
    subject: str
    predicate: str
    object: str
    begin: int | None
    end: int | None

    @property
    def span(self) -> tuple[int, int]:
        """From when to when it holds as far as the horizon, unknown years wide open."""
        return (
            FIRST_YEAR if self.begin is None else self.begin,
            LAST_YEAR if self.end is None else self.end,
        )


def facts_of(table: pa.Table) -> list[Fact]:
    columns = (table[name].cast(pa.string()).to_pylist() for name in Fact._fields[:4])
    years = (table[name].to_pylist() for name in Fact._fields[4:])
    return [Fact(*row) for row in zip(*columns, *years, strict=True)]


@cache
def world(seed: int = 0, facts: int = 10_000) -> list[Fact]:
    return facts_of(World(facts, seed).table())


def by_predicate(facts: list[Fact], predicate: str) -> list[Fact]:
    return [fact for fact in facts if fact.predicate == predicate]


# The dataset


@pytest.mark.parametrize("facts", [1_000, 10_000, 100_001])
def test_a_world_has_exactly_the_facts_asked_for(facts: int) -> None:
    table = World(facts).table()
    assert table.num_rows == facts
    assert len(set(facts_of(table))) == facts


def test_the_columns_and_what_made_them() -> None:
    made = World(1_000, seed=3)
    schema = made.table().schema
    text = pa.dictionary(pa.int32(), pa.string())
    assert schema.names == ["split", "subject", "predicate", "object", "begin", "end"]
    assert schema.types == [text] * 4 + [pa.int32()] * 2
    assert json.loads(schema.metadata[b"splime"]) == {
        "format": 1,
        "granularity": "year",
        "world": {
            "facts": 1_000,
            "seed": 3,
            "planted": {name: list(years) for name, years in made.planted().items()},
        },
    }


def test_another_seed_is_another_world() -> None:
    same = {fact[1:] for fact in world(0)} & {fact[1:] for fact in world(1)}
    assert len(same) < 500  # by chance: the names are the same
    assert World(seed=0).planted() != World(seed=1).planted()


@pytest.mark.parametrize("facts", [0, 999, 10**9 + 1])
def test_sizes_out_of_range_are_refused(facts: int) -> None:
    with pytest.raises(UsageError, match=f"1,000 to 1,000,000,000 facts, not {facts:,}"):
        World(facts)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(UsageError, match="0 or more, not -1"):
        World(seed=-1)


def test_demo_is_the_first_world() -> None:
    """The file that the package ships has the facts that `World()` makes."""
    shipped, made = splime.load("demo"), splime.read(World().table(), name="demo")
    assert checksum(shipped) == checksum(made)
    assert shipped.reading == made.reading
    path = ROOT / "src" / "splime" / "datasets" / "demo.parquet"
    assert pq.read_schema(path).metadata[b"splime"] == World().schema().metadata[b"splime"]


# The people


@pytest.mark.parametrize("seed", SEEDS)
def test_years_lie_in_the_horizon_and_in_order(seed: int) -> None:
    for fact in world(seed):
        begin, end = fact.span
        assert FIRST_YEAR <= begin <= end <= LAST_YEAR
        assert fact.predicate not in EVENTS or begin == end
    assert {year for fact in world(seed) for year in fact.span} == {
        *range(FIRST_YEAR, LAST_YEAR + 1)
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_acts_as_a_child_or_dead(seed: int) -> None:
    born = {fact.subject: fact.begin for fact in by_predicate(world(seed), "bornIn") if fact.begin}
    died = {fact.subject: fact.begin for fact in by_predicate(world(seed), "diedIn") if fact.begin}
    assert len(born) > 300
    assert len(died) > 300
    for fact in world(seed):
        people = {fact.subject, fact.object} if fact.predicate == "marriedTo" else {fact.subject}
        for person in people:
            if fact.predicate not in {"bornIn", "diedIn"} and person in born:
                assert fact.span[0] >= born[person] + 16
            if person in died:
                assert fact.span[1] <= died[person]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("predicate", [*STAYS, "marriedTo", "holdsOffice", "bornIn", "diedIn"])
def test_one_at_a_time(seed: int, predicate: str) -> None:
    spans = defaultdict(list)
    for fact in by_predicate(world(seed), predicate):
        spans[fact.subject].append(fact.span)
    for mine in spans.values():
        assert all(left[1] < right[0] for left, right in pairwise(sorted(mine)))
    assert predicate in {"bornIn", "diedIn", "marriedTo"} or max(map(len, spans.values())) > 2


@pytest.mark.parametrize("seed", SEEDS)
def test_an_office_has_one_holder_who_won_it(seed: int) -> None:
    holders = defaultdict(list)
    for fact in by_predicate(world(seed), "holdsOffice"):
        holders[fact.object].append(fact.span)
    for terms in holders.values():
        assert all(left[1] < right[0] for left, right in pairwise(sorted(terms)))
    lengths = [end + 1 - begin for terms in holders.values() for begin, end in terms]
    assert 3.5 < np.mean(lengths) < 4.5
    won, held = (
        {(fact.subject, fact.object, fact.begin) for fact in by_predicate(world(seed), predicate)}
        for predicate in ("wonElection", "holdsOffice")
    )
    assert won == held


def test_some_years_are_unknown() -> None:
    unknown = [fact for fact in world() if fact.begin is None]
    assert {fact.predicate for fact in unknown} == {"livesIn", "bornIn"}
    # Who was born before the horizon was born by its first year.
    assert {fact.end for fact in by_predicate(unknown, "bornIn")} == {FIRST_YEAR}
    share = len(by_predicate(unknown, "livesIn")) / len(by_predicate(world(), "livesIn"))
    assert 0.02 < share < 0.04

    running = [fact for fact in world() if fact.predicate not in EVENTS and fact.span[1] == 2020]
    assert {fact.predicate for fact in running} == {*STAYS, "marriedTo", "holdsOffice"}
    assert 0.8 < sum(fact.end is None for fact in running) / len(running) < 1


# The names

LETTERS = r"[A-ZÀ-Þ][a-zß-ÿ]+"
PLACE = rf"(?:(?:New|Old|Upper|Lower|East|West|Great|Little|Saint) )?{LETTERS}(?: \d+)?"
READABLE = {
    "person": re.compile(rf"{LETTERS}(?: [A-Z]\.)? {LETTERS}(?: \d+)?"),
    "city": re.compile(PLACE),
    "club": re.compile(rf"{PLACE} (?:Rovers|United|Athletic|Wanderers|Albion|Harriers|Rangers)"),
    "party": re.compile(rf"[A-Z][a-z]+ (?:Party|Union|League|Alliance) of {PLACE}"),
    "office": re.compile(rf"(?:Mayor|President) of {PLACE}"),
}
SORT = {
    "livesIn": "city",
    "bornIn": "city",
    "diedIn": "city",
    "visited": "city",
    "playsFor": "club",
    "memberOf": "party",
    "marriedTo": "person",
    "holdsOffice": "office",
    "wonElection": "office",
}


def test_names_can_be_read() -> None:
    entities = defaultdict(set)
    for fact in world(facts=100_001):
        entities["person"].add(fact.subject)
        entities[SORT[fact.predicate]].add(fact.object)
    for sort, names in entities.items():
        assert all(READABLE[sort].fullmatch(name) for name in names)
    assert len(set.union(*entities.values())) == sum(map(len, entities.values()))
    assert 48 * 160 < len(entities["person"]) < 51 * 160
    assert 48 * 18 < len(entities["city"]) < 51 * 18


def spread(most: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Indices from all over a range, with many neighbours."""
    start = np.random.default_rng(0).integers(0, most, 2_000)
    return np.unique((start[:, None] + np.arange(30)).ravel())


def test_names_are_unique_up_to_the_largest_world() -> None:
    countries = 10**9 // 1_850
    person, region, country = spread(countries * 160), spread(countries * 3), spread(countries)
    places = [city_names(region, np.full_like(region, kind)) for kind in range(6)]
    clubs = [club_names(region, np.full_like(region, kind)) for kind in range(5)]
    parties = [party_names(region, np.full_like(region, kind)) for kind in range(4)]
    offices = [mayor_names(region), president_names(country)]
    names = pa.concat_arrays([person_names(person), *places, *clubs, *parties, *offices])
    assert len(names.unique()) == len(names) == len(person) + 16 * len(region) + len(country)
    assert len(country_names(country).unique()) == len(country)
    assert len(person_names(np.arange(300_000)).unique()) == 300_000


def test_neighbours_do_not_look_alike() -> None:
    people = [name.split() for name in person_names(np.arange(5_000)).to_pylist()]
    for left, right in pairwise(people):
        assert left[0] != right[0]
        assert left[1] != right[1]
    cities = city_names(np.repeat(np.arange(1_000), 6), np.tile(np.arange(6), 1_000)).to_pylist()
    assert all(left[:4] != right[:4] for left, right in pairwise(cities))


# The splits


@pytest.mark.parametrize(("seed", "facts"), [(0, 1_000), (1, 10_000), (2, 100_001), (3, 600_000)])
def test_splits(seed: int, facts: int) -> None:
    table = World(facts, seed).table()
    splits = {
        split: table.filter(pc.equal(table["split"].cast(pa.string()), split))
        for split in ("train", "valid", "test")
    }
    for split, share in (("train", 0.8), ("valid", 0.1), ("test", 0.1)):
        assert abs(splits[split].num_rows / facts - share) < 0.002

    def things(split: str) -> tuple[set[str], set[str]]:
        columns = [
            set(splits[split][name].cast(pa.string()).unique().to_pylist())
            for name in ("subject", "object", "predicate")
        ]
        return columns[0] | columns[1], columns[2]

    entities, predicates = things("train")
    assert predicates == set(PREDICATES)
    for split in ("valid", "test"):
        assert things(split)[0] <= entities
        assert things(split)[1] <= predicates


def test_rows_are_shuffled() -> None:
    predicates = [fact.predicate for fact in world()]
    assert len(set(predicates[:100])) > 5
    assert {fact.split for fact in world()[:100]} == {"train", "valid", "test"}


def test_without_the_time_facts_repeat_and_reverse() -> None:
    seen = defaultdict(list)
    for fact in world():
        seen[fact[1:4]].append(fact.split)
    repeated = [splits for splits in seen.values() if len(splits) > 1]
    assert any(splits.count("train") > 1 for splits in repeated)
    assert sum(len(set(splits)) > 1 for splits in repeated) > 100
    reverse = [triple for triple in seen if (triple[2], triple[1], triple[0]) in seen]
    assert {triple[1] for triple in reverse} == {"marriedTo"}
    married = {triple for triple in seen if triple[1] == "marriedTo"}
    assert 0.2 < len(reverse) / len(married) < 0.8


# The time


@pytest.mark.parametrize("seed", range(30))
def test_planted_years_keep_their_distance(seed: int) -> None:
    planted = World(seed=seed).planted()
    assert {name: len(years) for name, years in planted.items() if years} == {
        "livesIn": 4,
        "playsFor": 3,
        "memberOf": 2,
        "visited": 4,
    }
    assert tuple(planted) == PREDICATES
    for years in planted.values():
        bounds = [FIRST_YEAR, *years, LAST_YEAR]
        assert not years or min(right - left for left, right in pairwise(bounds)) >= 8


def movers(facts: list[Fact]) -> dict[int, float]:
    """The share of the people who changed their object from the year before to each year."""
    people = {name: row for row, name in enumerate({fact.subject for fact in facts})}
    objects = {name: row for row, name in enumerate({fact.object for fact in facts})}
    where = np.full((len(people), LAST_YEAR + 1 - FIRST_YEAR), -1)
    for fact in facts:
        begin, end = fact.span
        row = where[people[fact.subject], begin - FIRST_YEAR : end + 1 - FIRST_YEAR]
        row[:] = objects[fact.object]
    both = (where[:, 1:] >= 0) & (where[:, :-1] >= 0)
    moved = both & (where[:, 1:] != where[:, :-1])
    return {
        FIRST_YEAR + 1 + year: float(moved[:, year].sum() / both[:, year].sum())
        for year in range(both.shape[1])
        if both[:, year].sum() >= 20
    }


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("predicate", STAYS)
def test_nearly_everybody_moves_in_planted_years_only(seed: int, predicate: str) -> None:
    share = movers(by_predicate(world(seed), predicate))
    planted = World(seed=seed).planted()[predicate]
    assert min(share[year] for year in planted) > 0.75
    assert max(share[year] for year in share if year not in planted) < 0.08


def changing(facts: list[Fact]) -> Iterator[Fact]:
    return (fact for fact in facts if fact.predicate in {*STAYS, "visited"})


def reciprocal_ranks(facts: list[Fact], *, use_time: bool) -> list[float]:
    """How well the neighbours tell where somebody is.

    The objects of a query (s, p, ?, begin..end) are ranked by how many of those who were born in
    the region of s are linked to them by p, at any time or at that time.
    """
    cities = city_names(np.repeat(np.arange(99), 6), np.tile(np.arange(6), 99)).to_pylist()
    region_of = {city: row // 6 for row, city in enumerate(cities)}
    home = {
        fact.subject: region_of[fact.object]
        for fact in by_predicate(facts, "bornIn")
        if fact.split == "train"
    }
    objects = {name: row for row, name in enumerate({fact.object for fact in facts})}
    answers = defaultdict(set)
    for fact in facts:
        answers[fact.subject, fact.predicate, fact.begin, fact.end].add(objects[fact.object])
    known = defaultdict(list)
    for fact in changing(facts):
        if fact.split == "train" and fact.subject in home:
            known[fact.predicate, home[fact.subject]].append((objects[fact.object], *fact.span))
    neighbours = {key: np.array(rows).T for key, rows in known.items()}

    reciprocal = []
    for fact in changing(facts):
        if fact.split != "test" or fact.subject not in home:
            continue
        object_, begin, end = neighbours[fact.predicate, home[fact.subject]]
        if use_time:
            object_ = object_[(begin <= fact.span[1]) & (end >= fact.span[0])]
        count = np.bincount(object_, minlength=len(objects))
        answer = objects[fact.object]
        others = answers[fact.subject, fact.predicate, fact.begin, fact.end] - {answer}
        candidates = np.delete(count, list(others))
        higher, equal = (candidates > count[answer]).sum(), (candidates == count[answer]).sum()
        reciprocal.append(1 / (higher + (equal + 1) / 2))
    return reciprocal


@pytest.mark.parametrize("seed", SEEDS)
def test_time_matters(seed: int) -> None:
    static, timed = (reciprocal_ranks(world(seed), use_time=use_time) for use_time in (False, True))
    assert len(timed) > 300
    assert np.mean(timed) > 0.65
    assert np.mean(timed) >= 1.4 * np.mean(static)


# The file


def test_the_file_is_the_table_and_the_same_again(tmp_path: Path) -> None:
    made = World(600_001, seed=5)
    written: list[int] = []
    make_world(tmp_path / "one.parquet", made, progress=lambda _, done, *__: written.append(done))
    make_world(tmp_path / "two.parquet", made)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["one.parquet", "two.parquet"]

    sizes = [batch.num_rows for batch in made.batches()]
    assert len(sizes) > 2
    assert max(sizes) < 300_000
    assert written == np.cumsum(sizes).tolist()
    file = pq.ParquetFile(tmp_path / "one.parquet")
    groups = [file.metadata.row_group(row).num_rows for row in range(file.num_row_groups)]
    assert groups == sizes

    table, read = made.table(), pq.read_table(tmp_path / "one.parquet")
    assert read.schema.equals(table.schema, check_metadata=True)
    plain = pa.schema([(name, pa.string()) for name in Fact._fields[:4]] + [*table.schema][4:])
    assert read.cast(plain).equals(table.cast(plain))


@pytest.mark.system
def test_a_killed_run_leaves_nothing_under_the_name(tmp_path: Path) -> None:
    path = tmp_path / "world.parquet"
    script = f"""
import os
from pathlib import Path
from experiments.world import World, make_world
make_world(Path({str(path)!r}), World(600_000), progress=lambda *_: os._exit(7))
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, cwd=ROOT)
    assert done.returncode == 7
    assert not path.exists()

    def stop(what: str, done: int, total: int | None = None, note: str = "") -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_world(path, World(600_000), progress=stop)
    assert not [*tmp_path.iterdir()]  # what the killed one left is swept


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "world.parquet"
    path.write_text("mine")
    with pytest.raises(UsageError, match=r"world\.parquet exists already"):
        make_world(path, World())
    assert path.read_text() == "mine"


def test_trouble_with_the_disk_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in ("missing", "file"):
        with pytest.raises(SplimeError, match=rf"{folder}/world\.parquet: cannot be written"):
            make_world(tmp_path / folder / "world.parquet", World())
