"""The protocols: what is ranked, among which candidates, and what is known of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, Unpack

import numpy as np
import torch

from splime.arrays import grouped
from splime.errors import UsageError, check_fields, check_name
from splime.evaluation.filters import TIMED, AnswerFilter
from splime.evaluation.metrics import Evaluation, Sample, Stratum, measured, strata_of
from splime.evaluation.ranking import Side, Ties, rank_sides
from splime.graph import Facts, SplitName, TemporalGraph
from splime.leakage import LeakFilter
from splime.progress import Progress, silent
from splime.scoring.queries import Queries, Scoring
from splime.scoring.scoped import ScopedScoring
from splime.scoring.scoping import Keyed, Kind, Scoping, keyed
from splime.scoring.scorer import Candidates, Ids, MemoryBudget, Scorer, memory_errors
from splime.segmentation import Segmentation
from splime.static import Aggregate, StaticGraph, Triples, apply
from splime.times import Bools, Ints

if TYPE_CHECKING:
    from splime.keywords import Evaluating

Questions: TypeAlias = int | Literal["all"] | None
"""How many queries to rank; None for all, or a sample where there are very many."""
MOST_SCORES = 5 * 10**9
"""With more queries x candidates than this, a sample is ranked by default."""
SAMPLE = 20_000
"""The queries of that sample."""
_INTERVALS = 1_000  # bootstrap samples for the intervals of a sample

PROTOCOLS: Mapping[str, Mapping[str, Any]] = {
    "fact": {"aggregate": "mean", "ties": "mean"},
    "triple": {"filter": "inter", "distinct": True, "ties": "worst"},
    "predicate": {"aggregate": "mean", "ties": "mean"},
}
"""The protocols, each with its options that others do not have, or have another default for."""


@dataclass(frozen=True)
class EvaluationOptions:
    """What can be chosen about an evaluation; None is the default of the protocol."""

    split: SplitName = "test"
    filter: LeakFilter | None = None
    """triple: the leak filter (none, intra, inter or both)."""
    distinct: bool | None = None
    """triple: whether repeated triples count once."""
    aggregate: Aggregate | None = None
    """fact, predicate: how scores of several scopes become one (mean, ends, begin, max or sum)."""
    ties: Ties | None = None
    """The rank among equal scores: mean, worst or best."""
    bootstrap: int | None = None
    """The number of bootstrap samples for confidence intervals."""
    questions: Questions = None
    """How many queries to rank, or all; None is all, unless there are very many."""
    seed: int = 0
    """Of the bootstrap, and of the facts that are drawn where not all are ranked."""
    memory: int | None = None
    """The number of bytes that blocks of scores may take."""
    progress: Progress = silent
    """Gets the number of queries that are ranked."""

    def __post_init__(self) -> None:
        check_fields(self)

    def of_protocol(self, protocol: str, **defaults: Any) -> EvaluationOptions:
        """With defaults for what was not chosen; an option of another protocol is an error."""
        check_name("protocol", protocol, PROTOCOLS)
        chosen = {**PROTOCOLS[protocol]}
        for name in ("filter", "distinct", "aggregate"):
            if name not in chosen and getattr(self, name) is not None:
                raise UsageError(f"protocol {protocol} has no option {name}")
        chosen |= {name: value for name, value in defaults.items() if name in chosen}
        unset = {name: value for name, value in chosen.items() if getattr(self, name) is None}
        return replace(self, **unset)

    def draw(self, count: int, sides: int, candidates: int) -> Ints:
        """The facts (or triples), of so many, whose queries are ranked."""
        questions = self.questions
        if questions is None:
            questions = default_questions(count * sides, candidates)
        if questions != "all" and questions < 1:
            raise UsageError(f"questions is all, or a number from 1 on, not {questions!r}")
        wanted = count if questions == "all" else -(-questions // sides)
        if wanted >= count:
            return np.arange(count)
        return np.sort(np.random.default_rng(self.seed).choice(count, wanted, replace=False))


def default_questions(queries: int, candidates: int) -> int | Literal["all"]:
    """How many of so many queries are ranked by default.

    >>> default_questions(20_000, 10_000), default_questions(200_000, 100_000)
    ('all', 20000)
    """
    return "all" if queries * candidates <= MOST_SCORES else SAMPLE


def evaluate_facts(
    scorer: Scorer,
    graph: TemporalGraph,
    segmentation: Segmentation,
    **options: Unpack[Evaluating],
) -> Evaluation:
    """Rank the object and the subject of every fact of a split among all entities.

    The score of a candidate is aggregated over the scoped predicates of the fact's interval; a
    scope that train does not have is replaced by the nearest one of its predicate. Where entities
    are cut too, every timestamp of the interval is a part of weight 1. The options are those of
    `splime.evaluate`. By default all queries are ranked, or 20,000 where there would be more than
    5 * 10^9 scores.

    >>> import splime, tempfile
    >>> graph = splime.load("demo")
    >>> with tempfile.TemporaryDirectory() as here:
    ...     run = splime.train(graph, "split", here, dimension=8, epochs=1)
    ...     evaluate_facts(run.scorer, graph, run.segmentation, questions=200).candidates
    1029
    """
    scoring = ScopedScoring(scorer, Scoping(apply(segmentation, graph)))
    return evaluate_scoring(scoring, "fact", EvaluationOptions(**options))


def evaluate_predicates(
    scorer: Scorer,
    graph: TemporalGraph,
    segmentation: Segmentation,
    **options: Unpack[Evaluating],
) -> Evaluation:
    """Rank the predicate of every fact of a split among all source predicates.

    The score of a predicate is aggregated over its scopes that the fact's interval lies in, as in
    protocol `fact`; its other scopes are left out. The options are those of `evaluate_facts`.
    """
    scoring = ScopedScoring(scorer, Scoping(apply(segmentation, graph)))
    return evaluate_scoring(scoring, "predicate", EvaluationOptions(**options))


def evaluate_triples(
    scorer: Scorer, static: StaticGraph, **options: Unpack[Evaluating]
) -> Evaluation:
    """Rank the object and the subject of the triples of a split that the paper would rank.

    Candidates are the entities that train names; answers known from the triples of train, valid
    and test, as the leak filter leaves them, are not counted.
    """
    scoring = ScopedScoring(scorer, Scoping(static))
    return evaluate_scoring(scoring, "triple", EvaluationOptions(**options))


def evaluate_scoring(scoring: Scoring, protocol: str, options: EvaluationOptions) -> Evaluation:
    """Evaluate whatever gives scores by a protocol."""
    began = perf_counter()
    options = options.of_protocol(protocol)
    ties = options.ties or "mean"
    scoring = scoring.with_options(options.aggregate or "mean", options.memory)
    with torch.inference_mode(), memory_errors():
        if protocol == "triple":
            task = _triple_task(scoring, options)
        else:
            task = _fact_task(protocol, scoring, options)
        ranks = rank_sides(task.sides, len(task.filters), ties, options.progress)
    timeline = scoring.graph.timeline
    queries, possible = ranks[0].size, task.total * len(task.sides)
    sample = Sample(queries, possible, options.seed) if queries < possible else None
    resamples = _INTERVALS if sample and options.bootstrap is None else options.bootstrap
    of_filters = dict(zip(task.filters, ranks, strict=True))
    metrics = measured(of_filters, task.strata, resamples, options.seed)
    return Evaluation(
        protocol=protocol,
        split=options.split,
        filters=task.filters,
        ties=ties,
        aggregate=options.aggregate,
        leak_filter=options.filter,
        left_out=task.left_out,
        queries=queries,
        candidates=task.candidates,
        timestamps=len(timeline),
        buckets=timeline.bucketed,
        seconds=perf_counter() - began,
        facts=task.facts,
        sample=sample,
        **metrics,
    )


class _Task(NamedTuple):
    """What is ranked."""

    sides: list[Side]
    filters: tuple[str, ...]
    candidates: int
    facts: Ints
    """The fact of each row of ranks, as its position in the split."""
    total: int
    """The number of facts (or triples) of which these are all, or a sample."""
    left_out: dict[str, int]
    strata: dict[str, Stratum]


def _fact_task(protocol: str, scoring: Scoring, options: EvaluationOptions) -> _Task:
    graph = scoring.graph
    asked: Facts = getattr(graph, options.split)
    count = len(asked)
    if not count:
        raise UsageError(f"{options.split} has no facts to rank; splime.split_graph makes splits")
    kinds: tuple[Kind, ...] = ("object", "subject") if protocol == "fact" else ("predicate",)
    candidates = len(scoring.names(kinds[0]))
    drawn = options.draw(count, len(kinds), candidates)
    if len(drawn) < count:
        asked = asked.take(drawn)
    sides = []
    for kind in kinds:
        answers, known = (keyed(kind, facts, graph) for facts in (asked, graph.facts()))
        queries = scoring.queries(kind, asked)
        sides.append(Side(queries, answers.id, AnswerFilter(known, answers)))
    dropped: Counter[str] = Counter()
    for source in graph.reading.sources:
        if source.split == options.split:
            dropped.update(source.dropped)
    strata = strata_of(graph, asked, forecasts=scoring.forecasts)
    return _Task(sides, TIMED, candidates, drawn, count, dict(dropped), strata)


class RankedTriples(NamedTuple):
    """The triples of a static graph that are ranked."""

    known: StaticGraph
    """After the leak filter: what is known."""
    triples: Triples
    """What is ranked."""
    left_out: dict[str, int]
    candidates: Bools
    """Which (scoped) entities train names: a model knows no others."""


def ranked_triples(
    static: StaticGraph,
    split: SplitName = "test",
    filter: LeakFilter = "inter",
    distinct: bool = True,
) -> RankedTriples:
    """Drop what the leak filter removes, then repeated triples, then those unseen in train."""
    known, filtered = static.filter(filter)
    left_out = {"leak filter": filtered.removed[split]}
    kept = known
    if distinct:
        kept, repeated = kept.distinct()
        left_out["repeated"] = repeated.removed[split]
    kept, unseen = kept.without_unseen()
    left_out["entity or scope unseen in train"] = unseen[split]
    candidates = np.zeros(len(static.entities), bool)
    candidates[known.train.subject] = candidates[known.train.object] = True
    return RankedTriples(known, getattr(kept, split), left_out, candidates)


def _triple_task(scoring: Scoring, options: EvaluationOptions) -> _Task:
    if not isinstance(scoring, ScopedScoring):
        raise UsageError(
            "this model scores no triples without a time; choose the protocol fact or predicate"
        )
    if scoring.end_offset:
        raise UsageError(
            "this model has predicates of begins and of ends, and triples have neither; choose the"
            " protocol fact or predicate"
        )
    scorer, static = scoring.scorer, scoring.scoping.static
    ranked = ranked_triples(
        static, options.split, options.filter or "inter", bool(options.distinct)
    )
    count, candidates = len(ranked.triples), int(ranked.candidates.sum())
    if not count:
        reasons = ", ".join(f"{why} {count:,}" for why, count in ranked.left_out.items())
        raise UsageError(f"{options.split} has no triples left to rank (left out: {reasons})")
    triples = ranked.triples.take(options.draw(count, 2, candidates))
    ranked = ranked._replace(triples=triples)
    sides = [_side(scorer, static, ranked, kind, options.memory) for kind in ("object", "subject")]
    source = static.predicates.sources[triples.predicate].astype(np.int64)
    strata = {"predicate": Stratum(source, list(static.predicates.names))}
    return _Task(sides, ("triple",), candidates, triples.fact, count, ranked.left_out, strata)


def _side(
    scorer: Scorer, static: StaticGraph, ranked: RankedTriples, kind: str, memory: int | None
) -> Side:
    predicates = len(static.predicates)
    entities = Candidates(scorer, kind, len(static.entities))
    budget = MemoryBudget(memory, scorer.device, entities.itemsize(), entities.columns)

    def by_query(triples: Triples) -> Keyed:
        """Triples as answers; they hold always."""
        given, wanted = triples.subject, triples.object
        if kind == "subject":
            given, wanted = wanted, given
        always = np.zeros(len(triples), np.int64)
        key = given.astype(np.int64) * predicates + triples.predicate
        return Keyed(key, wanted.astype(np.int64), always, always)

    asked = by_query(ranked.triples)
    splits = [by_query(triples) for _, triples in ranked.known.splits()]
    known = Keyed(*map(np.concatenate, zip(*splits, strict=True)))
    known = known.take(np.flatnonzero(ranked.candidates[known.id]))
    number, triple = grouped([asked.key])
    entity, predicate = np.divmod(asked.key[triple], predicates)

    one = np.ones(len(triple), np.int64)
    never = torch.as_tensor(np.flatnonzero(~ranked.candidates)).to(scorer.device)
    queries = _TripleQueries(number, one, one, budget.queries, entities, entity, predicate)
    return Side(queries, asked.id, AnswerFilter(known, asked), never)


@dataclass(eq=False)
class _TripleQueries(Queries):
    candidates: Candidates
    entity: Ids
    predicate: Ids

    def score(self, start: int, stop: int) -> torch.Tensor:
        """The scores of all candidates for the queries from one number up to another."""
        return self.candidates.scores(self.entity[start:stop], self.predicate[start:stop])
