"""Synthetic graphs with random laws, which a model that fits any graph is trained on.

Each graph has other kinds of entities, and predicates that follow other laws: states that change
hands, events that come again, inverses, symmetric ones, what follows after a while, and chains of
two. Nothing in them is that of the dataset `demo`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from splime.graph import TemporalGraph
from splime.io import read

Fact = tuple[int, int, int, int, int]
"""Subject, predicate, object, begin, end."""


@dataclass
class _World:
    random: np.random.Generator
    span: int
    """How many ticks there are."""
    members: list[np.ndarray]
    """The entities of each kind."""
    group: np.ndarray
    """Of each entity: those of a group prefer the same."""
    facts: list[list[Fact]] = field(default_factory=list)
    """Of each predicate."""

    def choose(self, kind: int, subject: int, loyalty: float) -> int:
        """An object of a kind: of the subject's group mostly, and well-known ones more often."""
        pool = self.members[kind]
        if self.random.random() < loyalty:
            alike = pool[self.group[pool] == self.group[subject]]
            pool = alike if len(alike) else pool
        return int(pool[int(len(pool) * self.random.random() ** 2)])

    def some(self) -> list[Fact]:
        """The facts of an earlier predicate."""
        return self.facts[int(self.random.integers(len(self.facts)))]


def _states(world: _World, predicate: int) -> list[Fact]:
    """One object at a time, for a while each; some last, some return."""
    random, kinds = world.random, len(world.members)
    subjects, kind = world.members[int(random.integers(kinds))], int(random.integers(kinds))
    length, loyalty = world.span * random.uniform(0.02, 0.5), random.uniform(0.3, 0.95)
    gap, facts = random.choice([0.0, 0.2, 1.0]), []
    for subject in subjects[random.random(len(subjects)) < random.uniform(0.3, 1)]:
        time = int(world.span * random.uniform(-0.2, 0.6))
        while time < world.span:
            end = time + int(random.exponential(length))
            begin, last = max(time, 0), min(end, world.span - 1)
            if last >= begin:
                object_ = world.choose(kind, int(subject), loyalty)
                facts.append((int(subject), predicate, object_, begin, last))
            time = end + 1 + int(random.exponential(gap * length + 0.5))
    return facts


def _events(world: _World, predicate: int) -> list[Fact]:
    """Instants; what happened before may happen again, the sooner the likelier."""
    random, kinds = world.random, len(world.members)
    subjects, kind = world.members[int(random.integers(kinds))], int(random.integers(kinds))
    again, loyalty = random.uniform(0.1, 0.9), random.uniform(0.2, 0.95)
    times = np.sort(random.integers(0, world.span, int(len(subjects) * random.uniform(1, 8))))
    before: dict[int, list[int]] = {}
    facts = []
    for time in times.tolist():
        subject = int(subjects[int(len(subjects) * random.random() ** 1.5)])
        known = before.setdefault(subject, [])
        if known and random.random() < again:
            object_ = known[-1 - min(int(random.exponential(2.0)), len(known) - 1)]
        else:
            object_ = world.choose(kind, subject, loyalty)
        known.append(object_)
        facts.append((subject, predicate, object_, time, time))
    return facts


def _inverse(world: _World, predicate: int) -> list[Fact]:
    """Another predicate turned round; symmetric if it is the same."""
    share = world.random.uniform(0.5, 1)
    return [
        (o, predicate, s, b, e) for s, _, o, b, e in world.some() if world.random.random() < share
    ]


def _following(world: _World, predicate: int) -> list[Fact]:
    """The same pair, some time after another predicate."""
    random, share = world.random, world.random.uniform(0.3, 1)
    lag, length = world.span * random.uniform(0, 0.15), world.span * random.choice([0, 0.1, 0.3])
    facts = []
    for s, _, o, _, e in world.some():
        begin = e + int(random.exponential(lag + 0.1))
        if random.random() < share and begin < world.span:
            end = begin + int(random.exponential(length + 1e-9))
            facts.append((s, predicate, o, begin, min(end, world.span - 1)))
    return facts


def _chains(world: _World, predicate: int) -> list[Fact]:
    """Where a fact leads to another one that holds then."""
    random, share = world.random, world.random.uniform(0.4, 1)
    second: dict[int, list[Fact]] = {}
    for fact in world.some():
        second.setdefault(fact[0], []).append(fact)
    facts = []
    for s, _, o, b, e in world.some():
        for _, _, z, begin, end in second.get(o, [])[:5]:
            first, last = max(b, begin), min(e, end)
            if first <= last and random.random() < share and z != s:
                facts.append((s, predicate, z, first, last))
    return facts


def _noise(world: _World, predicate: int) -> list[Fact]:
    """Facts without a law."""
    random, entities = world.random, len(world.group)
    return [
        (int(s), predicate, int(o), int(t), int(t))
        for s, o, t in random.integers(0, [entities, entities, world.span], (entities // 4 + 1, 3))
    ]


_LAWS: tuple[Callable[[_World, int], list[Fact]], ...] = (
    _states, _states, _events, _inverse, _following, _chains, _noise,
)  # fmt: skip


def random_graph(seed: int, facts: int) -> TemporalGraph:
    """A graph with about so many facts, all in train; the same seed makes the same one."""
    random = np.random.default_rng(seed)
    entities, kinds = max(20, int(facts * random.uniform(0.08, 0.5))), int(random.integers(2, 6))
    order, cuts = random.permutation(entities), np.sort(random.integers(1, entities, kinds - 1))
    members = [part for part in np.split(order, cuts) if len(part)]
    groups = max(2, int(entities / random.uniform(5, 60)))
    span = int(np.exp(random.uniform(np.log(10), np.log(3000))))
    world = _World(random, span, members, random.integers(0, groups, entities))
    count = 0
    for predicate in range(60):
        laws = _LAWS[:3] if predicate < 2 else _LAWS
        made = laws[int(random.integers(len(laws)))](world, predicate)
        if made:
            world.facts.append([made[at] for at in random.permutation(len(made))[: facts // 2]])
            count += len(world.facts[-1])
        if count >= facts:
            break
    rows = [fact for part in world.facts for fact in part]
    chosen = (rows[at] for at in random.permutation(len(rows))[:facts])
    named = [(f"e{s}", f"p{p}", f"e{o}", b, e) for s, p, o, b, e in chosen]
    return read(named, split="none", granularity="step")
