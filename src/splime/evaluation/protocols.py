"""The protocols: what is ranked, among which candidates, and what is known of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch

from splime.arrays import grouped
from splime.collective import Rows
from splime.errors import UsageError, check_fields, check_name, checked
from splime.evaluation.filters import TIMED, Known
from splime.evaluation.metrics import Evaluation, Sample, Stratum, measured, strata_of
from splime.evaluation.ranking import TIES, Estimate, Side, Ties, rank_sides
from splime.graph import SplitName, TemporalGraph, check_split
from splime.leakage import LeakFilter
from splime.progress import Progress, silent
from splime.scoring.queries import Queries
from splime.scoring.scoping import Keyed, Kind, Scoping, keyed
from splime.scoring.scorer import Room, Scorer, asking, memory_errors
from splime.scoring.timed import TimedScorer, make_scoring
from splime.segmentation import Segmentation
from splime.static import Aggregate, StaticGraph, Triples, apply
from splime.times import Bools, Ints

Questions: TypeAlias = int | Literal["all"] | None
"""How many queries to rank; None for all, or a sample where there are very many."""
MOST_SCORES = 5 * 10**9
"""With more queries x candidates than this, a sample is ranked unless all are asked for."""
SAMPLE = 20_000
"""The queries of that sample."""
_INTERVALS = 1_000  # bootstrap samples for the intervals of a sample


@dataclass(frozen=True)
class Options:
    """What can be chosen about an evaluation, see `evaluate_facts`."""

    split: SplitName = "test"
    aggregate: Aggregate = "mean"
    ties: Ties = "mean"
    memory: int | None = None
    bootstrap: int | None = None
    seed: int = 0
    progress: Progress = silent
    estimate: Estimate | None = None
    questions: Questions = None

    def __post_init__(self) -> None:
        check_fields(self, choices=False)


def default_questions(queries: int, candidates: int) -> int | Literal["all"]:
    """How many of so many queries are ranked by default.

    >>> default_questions(20_000, 10_000), default_questions(200_000, 100_000)
    ('all', 20000)
    """
    return "all" if queries * candidates <= MOST_SCORES else SAMPLE


def _draw(count: int, sides: int, questions: Questions, seed: int) -> Ints | None:
    """The facts (or triples) whose queries are ranked; None for all."""
    if questions != "all" and (type(questions) is not int or questions < 1):
        raise UsageError(f"questions is all, or a number from 1 on, not {questions!r}")
    wanted = count if questions == "all" else -(-questions // sides)
    if wanted >= count:
        return None
    return np.sort(np.random.default_rng(seed).choice(count, wanted, replace=False))


@checked
def evaluate_facts(
    scorer: Scorer | TimedScorer,
    graph: TemporalGraph,
    segmentation: Segmentation,
    *,
    split: SplitName = "test",
    aggregate: Aggregate = "mean",
    ties: Ties = "mean",
    memory: int | None = None,
    bootstrap: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
    estimate: Estimate | None = None,
    questions: Questions = None,
) -> Evaluation:
    """Rank the object and the subject of every fact of a split among all entities.

    The score of a candidate is aggregated over the scoped predicates of the fact's interval; a
    scope that train does not have is replaced by the nearest one of its predicate. Where entities
    are cut too, every timestamp of the interval is a part of weight 1. `memory` is the number of
    bytes that blocks of scores may take; `bootstrap` the number of samples for confidence
    intervals, drawn with `seed`; `estimate` is called with the seconds that all will take;
    `questions` is how many queries are ranked, of facts drawn with `seed`, or all of them. By
    default that is all, or 20,000 where there would be more than 5 * 10^9 scores.
    """
    options = Options(
        split, aggregate, ties, memory, bootstrap, seed, progress, estimate, questions
    )
    return evaluate_scoped("fact", scorer, Scoping(apply(segmentation, graph)), options)


@checked
def evaluate_predicates(
    scorer: Scorer | TimedScorer,
    graph: TemporalGraph,
    segmentation: Segmentation,
    *,
    split: SplitName = "test",
    aggregate: Aggregate = "mean",
    ties: Ties = "mean",
    memory: int | None = None,
    bootstrap: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
    estimate: Estimate | None = None,
    questions: Questions = None,
) -> Evaluation:
    """Rank the predicate of every fact of a split among all source predicates.

    The score of a predicate is aggregated over its scopes that the fact's interval lies in, as in
    protocol `fact`; its other scopes are left out. The options are those of `evaluate_facts`.
    """
    options = Options(
        split, aggregate, ties, memory, bootstrap, seed, progress, estimate, questions
    )
    return evaluate_scoped("predicate", scorer, Scoping(apply(segmentation, graph)), options)


def evaluate_scoped(
    protocol: Literal["fact", "predicate"],
    scorer: Scorer | TimedScorer,
    scoping: Scoping,
    options: Options,
) -> Evaluation:
    """Evaluate by a protocol over facts on a graph whose cuts are applied already."""
    began = perf_counter()
    scoring = make_scoring(scorer, scoping, options.aggregate, options.memory)
    check_name("tie rule", options.ties, TIES)
    check_split(options.split)
    graph, asked = scoping.graph, scoping.of_split(options.split)
    count = len(asked.facts)
    if not count:
        raise UsageError(f"{options.split} has no facts to rank; splime.split_graph makes splits")
    kinds: tuple[Kind, ...] = ("object", "subject") if protocol == "fact" else ("predicate",)
    candidates = len(scoping.names(kinds[0]))
    questions = options.questions
    if questions is None:
        questions = default_questions(count * len(kinds), candidates)
    drawn = _draw(count, len(kinds), questions, options.seed)
    if drawn is not None:
        asked = scoping.cut(asked.facts.take(drawn))
    every = graph.facts()
    with torch.inference_mode(), memory_errors():
        sides = []
        for kind in kinds:
            own, known = (keyed(kind, facts, graph) for facts in (asked.facts, every))
            sides.append(Side(scoring.queries(kind, asked), own.id, Known(known, own)))
        ranks = rank_sides(
            sides, len(TIMED), options.ties, progress=options.progress, estimate=options.estimate
        )
    dropped: Counter[str] = Counter()
    for source in graph.reading.sources:
        if source.split == options.split:
            dropped.update(source.dropped)
    by_filter, strata = dict(zip(TIMED, ranks, strict=True)), strata_of(graph, asked.facts)
    return Evaluation(
        protocol=protocol,
        split=options.split,
        filters=TIMED,
        ties=options.ties,
        aggregate=options.aggregate,
        leak_filter=None,
        left_out=dict(dropped),
        queries=ranks[0].size,
        candidates=candidates,
        timestamps=len(graph.timeline),
        buckets=graph.timeline.bucketed,
        seconds=perf_counter() - began,
        facts=np.arange(count) if drawn is None else drawn,
        **_sampled(drawn, count * len(kinds), ranks[0].size, options.seed),
        **measured(by_filter, strata, _intervals(options.bootstrap, drawn), options.seed),
    )


def _sampled(drawn: Ints | None, all_queries: int, queries: int, seed: int) -> dict[str, Any]:
    return {} if drawn is None else {"sample": Sample(queries, all_queries, seed)}


def _intervals(bootstrap: int | None, drawn: Ints | None) -> int | None:
    """How many bootstrap samples to draw: a sample of queries has intervals unless 0 is given."""
    return _INTERVALS if bootstrap is None and drawn is not None else bootstrap


class Left(NamedTuple):
    """What is left of a static graph to rank."""

    known: StaticGraph
    """After the leak filter: what is known."""
    triples: Triples
    """What is ranked."""
    left_out: dict[str, int]
    candidates: Bools
    """Which (scoped) entities train names: a model knows no others."""


def triples_left(
    static: StaticGraph,
    split: SplitName = "test",
    filter: LeakFilter = "inter",
    distinct: bool = True,
) -> Left:
    """Drop what the leak filter removes, then repeated triples, then those unseen in train."""
    check_split(split)
    known, filtered = static.filter(filter)
    left_out = {"leak filter": filtered.removed[split]}
    left = known
    if distinct:
        left, repeated = left.distinct()
        left_out["repeated"] = repeated.removed[split]
    left, unseen = left.without_unseen()
    left_out["entity or scope unseen in train"] = unseen[split]
    candidates = np.zeros(len(static.entities), bool)
    candidates[known.train.subject] = candidates[known.train.object] = True
    return Left(known, getattr(left, split), left_out, candidates)


@checked
def evaluate_triples(
    scorer: Scorer,
    static: StaticGraph,
    *,
    split: SplitName = "test",
    filter: LeakFilter = "inter",
    distinct: bool = True,
    ties: Ties = "worst",
    memory: int | None = None,
    bootstrap: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
    estimate: Estimate | None = None,
    questions: Questions = None,
) -> Evaluation:
    """Rank the object and the subject of the triples of a split that the paper would rank.

    Candidates are the entities that train names; answers known from the triples of train, valid
    and test, as the leak filter leaves them, are not counted.
    """
    began = perf_counter()
    check_name("tie rule", ties, TIES)
    left = triples_left(static, split, filter, distinct)
    if not len(left.triples):
        reasons = ", ".join(f"{why} {count:,}" for why, count in left.left_out.items())
        raise UsageError(f"{split} has no triples left to rank (left out: {reasons})")
    count, candidates = len(left.triples), int(left.candidates.sum())
    if questions is None:
        questions = default_questions(2 * count, candidates)
    drawn = _draw(count, 2, questions, seed)
    if drawn is not None:
        left = left._replace(triples=left.triples.take(drawn))
    with torch.inference_mode(), memory_errors():
        sides = [_side(scorer, static, left, kind, memory) for kind in ("object", "subject")]
        ranks = rank_sides(sides, 1, ties, progress=progress, estimate=estimate)
    source = static.predicates.sources[left.triples.predicate].astype(np.int64)
    strata = {"predicate": Stratum(source, list(static.predicates.names))}
    timeline = static.segmentation.timeline
    return Evaluation(
        protocol="triple",
        split=split,
        filters=("triple",),
        ties=ties,
        aggregate=None,
        leak_filter=filter,
        left_out=left.left_out,
        queries=ranks[0].size,
        candidates=candidates,
        timestamps=len(timeline),
        buckets=timeline.bucketed,
        seconds=perf_counter() - began,
        facts=left.triples.fact,
        **_sampled(drawn, 2 * count, ranks[0].size, seed),
        **measured({"triple": ranks[0]}, strata, _intervals(bootstrap, drawn), seed),
    )


def _side(scorer: Scorer, static: StaticGraph, left: Left, kind: str, memory: int | None) -> Side:
    columns, predicates = len(static.entities), len(static.predicates)
    rows: Rows | None = getattr(scorer, "rows", None)
    ask = asking(scorer, kind, columns if rows is None else len(rows))
    probe = ask(np.zeros(1, np.int64), np.zeros(1, np.int64))
    columns = columns if rows is None else rows.most
    room = Room(memory, scorer.device, probe.element_size(), columns)

    def by_query(triples: Triples) -> Keyed:
        """Triples as answers; they hold always."""
        given, wanted = triples.subject, triples.object
        if kind == "subject":
            given, wanted = wanted, given
        always = np.zeros(len(triples), np.int64)
        key = given.astype(np.int64) * predicates + triples.predicate
        return Keyed(key, wanted.astype(np.int64), always, always)

    asked = by_query(left.triples)
    splits = [by_query(triples) for _, triples in left.known.splits()]
    known = Keyed(*map(np.concatenate, zip(*splits, strict=True)))
    known = known.take(np.flatnonzero(left.candidates[known.id]))
    number, triple = grouped([asked.key])
    entity, predicate = np.divmod(asked.key[triple], predicates)

    def score(start: int, stop: int) -> torch.Tensor:
        return ask(entity[start:stop], predicate[start:stop])

    one = np.ones(len(triple), np.int64)
    never = torch.as_tensor(np.flatnonzero(~left.candidates)).to(scorer.device)
    queries = Queries(number, one, one, score, room.queries, rows, alone=rows is None)
    return Side(queries, asked.id, Known(known, asked), never)
