"""Train the weights that splime ships: one counted path model, on parts of many graphs."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from experiments.laws import random_graph
from splime.datasets import DATASETS, load
from splime.graph import Facts, TemporalGraph
from splime.paths.counted import BINS, CountedPathModel, FoldStarter
from splime.paths.counting import Features
from splime.paths.messages import fast
from splime.paths.relative import growing_scopes
from splime.progress import Progress, silent
from splime.training.paths import PathQuestions

SOURCES: Mapping[str, Sequence[str]] = {
    "icews": ("icews14", "icews18", "icews21"),
    "wikidata": ("wikidata12k",),
    "yago": ("yago11k", "yago1830"),
    "laws": (),
}
"""Where graphs come from. A figure for a graph comes from weights without its whole source."""
SHARES: Mapping[str, float] = {"icews": 0.25, "wikidata": 0.25, "yago": 0.25, "laws": 0.25}
"""How often a graph is drawn from each, of those that are used."""
_FACTS = 300, 8_000
"""Of a part, evenly by their logarithm; of entities in it, those in `_OF_ENTITY`."""
_OF_ENTITY = 8, 120
_TO_FORECAST = (1_000, 12_000), (20, 1_500)
"""The same for forecasts, which live on long histories."""
_POOL, _FRESH = 24, 12
"""Graphs at a time, and after how many steps one is replaced."""
_BATCH = 8, 32
"""Questions of a step: the more predicates there are, the fewer."""
_TABLES = 4 << 20
"""Bytes of messages that all questions of a step need in a layer, about."""
_RATE, _DECAY, _WARM_UP, _LAST = 3e-3, 0.02, 200, 0.03
_LATER = 0.3
"""The first facts, this share of them, are not forecast."""
_ROWS = 12_000
"""Of predicates and scopes that messages are made for in a step, about."""


class _Regularised(CountedPathModel):
    """A model that cannot depend on single numbers of the features."""

    random: torch.Generator

    def change(self, features: Features) -> Features:
        """Some are left out, and all are shifted together by a little."""
        facts, about = features
        size = facts.shape[-1]
        kept = torch.rand(size, generator=self.random) > 0.1
        noise = 0.15 * torch.randn(size, generator=self.random)
        about = about + 0.3 * torch.randn(about.shape, generator=self.random)
        return Features((facts + noise) * kept, about)


def part(
    graph: TemporalGraph,
    facts: int,
    random: np.random.Generator,
    of_entity: tuple[int, int] = _OF_ENTITY,
) -> TemporalGraph:
    """About so many facts near each other, all in train, changed as other graphs are different."""
    chosen, empty = near(graph, facts, random, of_entity), Facts.empty()
    return replace(graph, train=_changed(chosen, random), valid=empty, test=empty).compact()


def near(
    graph: TemporalGraph, facts: int, random: np.random.Generator, of_entity: tuple[int, int]
) -> Facts:
    """About so many facts near each other, of all splits."""
    every = graph.facts()
    ends = np.concatenate([every.subject, every.object])
    order = np.argsort(ends, kind="stable")
    starts = np.searchsorted(ends[order], np.arange(len(graph.entities) + 1))
    most = int(np.exp(random.uniform(*np.log(of_entity))))
    taken, seen = np.zeros(len(every), bool), np.zeros(len(graph.entities), bool)
    queue: list[int] = []
    count = 0
    while count < min(facts, len(every)):
        entity = queue.pop(0) if queue else int(ends[random.integers(len(ends))])
        if seen[entity]:
            continue
        seen[entity] = True
        mine = order[starts[entity] : starts[entity + 1]] % len(every)
        mine = mine[random.permutation(len(mine))[:most]]
        mine = mine[~taken[mine]]
        taken[mine], count = True, count + len(mine)
        near = np.concatenate([every.subject[mine], every.object[mine]])
        queue += near[~seen[near]].tolist()
    return every.take(taken)


def _changed(facts: Facts, random: np.random.Generator) -> Facts:
    """Sometimes with merged or divided predicates, or as points in time."""
    subject, predicate, object_, begin, end, unknown = (np.array(x) for x in facts.columns())
    names = int(predicate.max()) + 1
    if random.random() < 0.15 and names > 2:  # merged
        merged = random.integers(0, names, 2)
        predicate[predicate == merged[0]] = merged[1]
    if random.random() < 0.15:  # turned round
        turned = np.isin(predicate, random.permutation(names)[: names // 2])
        subject, object_ = np.where(turned, object_, subject), np.where(turned, subject, object_)
    if random.random() < 0.2:  # points
        end = begin.copy()
    return Facts.owning(subject, predicate, object_, begin, end, unknown)


@dataclass
class Pretraining:
    """Pre-training without some sources; the same steps and seed give the same weights."""

    without: Sequence[str] = ()
    steps: int = 20_000
    layers: int = 4
    width: int = 32
    seed: int = 0
    forecasts: bool = False
    """Whether questions are answered from earlier facts alone."""

    def graphs(self) -> Iterator[TemporalGraph]:
        """Parts of graphs, without end."""
        random = np.random.default_rng(self.seed)
        sources = [name for name in SOURCES if name not in self.without]
        shares = np.array([SHARES[name] for name in sources])
        whole = {name: [self._load(one) for one in SOURCES[name]] for name in sources}
        sizes, of_entity = _TO_FORECAST if self.forecasts else (_FACTS, _OF_ENTITY)
        low, high = np.log(sizes)
        while True:
            source = sources[int(random.choice(len(sources), p=shares / shares.sum()))]
            facts = int(np.exp(random.uniform(low, high)))
            if not whole[source]:
                yield random_graph(int(random.integers(2**62)), facts)
                continue
            graph = whole[source][int(random.integers(len(whole[source])))]
            yield part(graph, facts, random, of_entity)

    @staticmethod
    def _load(name: str) -> TemporalGraph:
        if name not in DATASETS:
            return load(str(Path(os.environ["SPLIME_DATA"]) / name))
        options: Any = {"bucket": None} if "bucket" in DATASETS[name].options else {}
        return load(name, **options)

    def run(self, progress: Progress = silent) -> CountedPathModel:
        """The trained model."""
        torch.manual_seed(self.seed)
        random = np.random.default_rng((self.seed, 1))
        scopes = 2 * BINS + 6
        model = _Regularised(
            0, scopes, layers=self.layers, width=self.width, dropout=0.1, seed=self.seed
        )
        model.random = torch.Generator().manual_seed(self.seed)
        optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=_DECAY, fused=True)
        graphs = self.graphs()
        pool = [self._questions(model, next(graphs)) for _ in range(_POOL)]
        loss, begun = 0.0, time.monotonic()
        model.train()
        with fast(torch.device("cpu")).at_work():
            for step in range(self.steps):
                if step and step % _FRESH == 0:
                    pool[int(random.integers(_POOL))] = self._questions(model, next(graphs))
                questions = pool[int(random.integers(_POOL))]
                batch = self._batch(questions, random)
                # What lately held must be there where it is forecast.
                most = 0.6 if not self.forecasts or random.random() < 0.3 else 0.0
                hidden = torch.from_numpy(
                    random.random(questions.facts.facts) < random.uniform(0, most)
                )
                cosine = (1 + math.cos(math.pi * step / self.steps)) / 2
                rate = _RATE * min(1, (step + 1) / _WARM_UP) * (cosine * (1 - _LAST) + _LAST)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                value = questions.loss(model, batch, torch.tensor(step), hidden)
                optimizer.zero_grad(set_to_none=True)
                value.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                loss += float(value.detach())
                if (step + 1) % 500 == 0:
                    seconds = time.monotonic() - begun
                    note = f"loss {loss / 500:.3f}, {seconds:,.0f} s"
                    progress("pretrain", step + 1, self.steps, note)
                    loss = 0.0
        return model.eval()

    def _questions(self, model: CountedPathModel, graph: TemporalGraph) -> PathQuestions:
        scopes = growing_scopes(graph.train, graph.timeline.granularity, BINS)
        return PathQuestions(graph, model, replace(scopes, past=self.forecasts))

    def _batch(self, questions: PathQuestions, random: np.random.Generator) -> Tensor:
        """Questions of one fold, about few enough predicates; forecasts are of the later facts."""
        predicates, size = questions.predicate.numpy(), 2 * questions.facts.predicates
        assert isinstance(questions.start, FoldStarter)
        fold = questions.start.fold.numpy()
        asked = fold == random.choice(fold)
        if self.forecasts:
            facts = questions.facts
            begin = facts.times.begin[facts.time[: facts.facts]].numpy()
            later = asked & (begin > np.quantile(begin, _LATER))
            asked = later if later.any() else asked
        drawn = np.flatnonzero(np.tile(asked, 2))
        drawn = drawn[random.permutation(len(drawn))]
        most = max(2, _ROWS // (size * (2 * BINS + 6)))
        first = np.sort(np.unique(predicates[drawn], return_index=True)[1])[:most]
        drawn = drawn[np.isin(predicates[drawn], predicates[drawn[first]])]
        count = _TABLES // (4 * 32 * size * (2 * BINS + 6))
        return torch.from_numpy(drawn[: min(max(count, _BATCH[0]), _BATCH[1])])
