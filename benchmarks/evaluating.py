"""A full filtered evaluation of YAGO11k and Wikidata12k, compared with PyKEEN's.

    SPLIME_DATA=… python benchmarks/evaluating.py [--share 0.1]

Protocol `triple`: merged by 2 (YAGO11k) and by 4 (Wikidata12k), leak filter `inter`, distinct test
triples without unseen entities and predicates, both sides, filtered by train, valid and test. Both
libraries have the same weights: TransE (L1) and ComplEx of dimension 100, trained for some steps by
splime.

splime ranks the whole test set in every round, from the static graph to the metrics. PyKEEN's
`RankBasedEvaluator` ranks a different part of the test triples in every round, by default a tenth
of them in all (`--share 1` for all). It works triple by triple, so its time for all of them is
extrapolated: the time of a call with a single triple counts once, the rest grows with the number of
triples. Its batch size is the fastest of several, tried first. Its triples, filter and tables do
not have the entities that train does not know, since they are no candidates. MRR and Hits of the
same triples must agree to 1e-3 for both tie rules. Peak memory is that of a separate process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from peers import (
    factory_of,
    give_weights,
    make_trainer,
    merged,
    quiet_pykeen,
    random_model,
    ratios,
    rounded,
    spread,
    wait_for_quiet,
)
from record import peak_mb, write_results
from splime.embedding.models.base import Model
from splime.embedding.scorer import ModelScorer
from splime.evaluation import Evaluation, evaluate_triples
from splime.evaluation.metrics import Metrics
from splime.evaluation.protocols import ranked_triples
from splime.evaluation.ranking import Ties
from splime.static import StaticGraph, Triples
from splime.times import Ints
from splime.training.registry import make_settings

RESULTS = Path(__file__).parent / "results" / "evaluating.json"
DIMENSION = 100
BATCHES = (32, 64, 128)
TRIED = 256
GOALS = {"transe": 10, "complex": 3}
TIES: dict[Ties, str] = {"mean": "realistic", "worst": "pessimistic"}
SETTINGS = {
    "transe": make_settings(preset="paper", learning_rate=1e-2),
    "complex": make_settings(
        "complex",
        dimension=DIMENSION,
        loss="self_adversarial",
        reciprocal=False,
        n3=0.0,
        smooth=0.0,
        optimizer="adam",
        learning_rate=1e-2,
        each="triple",
    ),
}


def trained(static: StaticGraph, name: str, steps: int) -> Model:
    """A model that is trained for some steps, so that its ranks are neither all equal nor all 1."""
    trainer = make_trainer(static, SETTINGS[name], static.distinct()[0].train.array())
    for done in trainer.epoch_steps():
        if done.step >= steps:
            break
    return trainer.model


def ours(static: StaticGraph, model: Model, ties: Ties = "mean") -> Evaluation:
    return evaluate_triples(ModelScorer(model), static, ties=ties)


class Pykeen:
    """The same model and triples in PyKEEN, without entities that train does not know."""

    def __init__(self, static: StaticGraph, name: str, model: Model) -> None:
        from pykeen.models import ComplEx, TransE

        left = ranked_triples(static)
        self.number = np.cumsum(left.candidates) - 1
        self.candidates = left.candidates
        self.test = self._ids(left.triples)
        self.known = [self._ids(some) for _, some in left.known.splits()]
        entities = int(left.candidates.sum())
        triples = factory_of(self.known[0], entities, len(static.predicates))
        kind, options = (TransE, {"scoring_fct_norm": 1}) if name == "transe" else (ComplEx, {})
        self.model = kind(triples_factory=triples, embedding_dim=DIMENSION, **options).eval()
        rows = torch.from_numpy(np.flatnonzero(left.candidates))
        same = random_model(name, entities, len(static.predicates), DIMENSION)
        with torch.no_grad():
            same.entities.vectors().copy_(model.entities.vectors()[rows])
            same.predicates.vectors().copy_(model.predicates.vectors())
        give_weights(self.model, same)

    def _ids(self, triples: Triples) -> torch.Tensor:
        s, p, o = triples.array().astype(np.int64).T
        there = self.candidates[s] & self.candidates[o]
        rows = np.stack([self.number[s], p, self.number[o]], 1)[there]
        return torch.from_numpy(np.ascontiguousarray(rows))

    def evaluate(self, rows: Ints, batch_size: int) -> tuple[float, Any]:
        """The seconds for some test triples, and PyKEEN's result."""
        from pykeen.evaluation import RankBasedEvaluator

        evaluator = RankBasedEvaluator(filtered=True)
        some = self.test[torch.from_numpy(rows)]
        began = time.perf_counter()
        result = evaluator.evaluate(
            model=self.model,
            mapped_triples=some,
            additional_filter_triples=self.known,
            batch_size=batch_size,
            use_tqdm=False,
        )
        return time.perf_counter() - began, result

    def of_a_call(self) -> float:
        """Seconds of a call with a single triple: the cost that does not depend on their number."""
        return min(self.evaluate(np.array([row]), 1)[0] for row in range(3))

    def best_batch(self) -> dict[int, float]:
        """Seconds of a triple by batch size."""
        rows = np.random.default_rng(1).permutation(len(self.test))[:TRIED]
        self.evaluate(rows[:32], 32)
        return {size: self.evaluate(rows, size)[0] / len(rows) for size in BATCHES}


def theirs(results: list[tuple[int, Any]], kind: str) -> dict[str, float]:
    """PyKEEN's metrics over several parts of the test triples."""
    names = {
        "mrr": "inverse_harmonic_mean_rank",
        "hits1": "hits_at_1",
        "hits3": "hits_at_3",
        "hits10": "hits_at_10",
    }
    total = sum(count for count, _ in results)
    return {
        ours: sum(n * float(one.get_metric(f"both.{kind}.{name}")) for n, one in results) / total
        for ours, name in names.items()
    }


def compare(dataset: str, name: str, share: float, rounds: int, steps: int) -> dict[str, Any]:
    static = merged(dataset)
    model = trained(static, name, steps)
    peer = Pykeen(static, name, model)
    tried = peer.best_batch()
    batch = min(tried, key=lambda size: tried[size])
    call = peer.of_a_call()
    order = np.random.default_rng(0).permutation(len(peer.test))
    chosen = order[: max(rounds, round(share * len(order)))]
    ours(static, model)
    mine, other, loads, results = [], [], [], []
    for part in np.array_split(chosen, rounds):
        loads.append(wait_for_quiet(patience=10))
        began = time.perf_counter()
        found = ours(static, model)
        mine.append(time.perf_counter() - began)
        seconds, result = peer.evaluate(part, batch)
        other.append(call + max(0.0, seconds - call) / len(part) * len(peer.test))
        results.append((len(part), result))
    assert len(found.ranks["triple"]) == len(peer.test)
    figures: dict[str, Any] = {}
    for ties, kind in TIES.items():
        ranks = (found if ties == "mean" else ours(static, model, ties)).ranks["triple"][chosen]
        metrics = Metrics.of(ranks)
        both = {key: (getattr(metrics, key), value) for key, value in theirs(results, kind).items()}
        figures[ties] = {key: [rounded(v, 6) for v in pair] for key, pair in both.items()}
        worst = max(abs(a - b) for a, b in both.values())
        assert worst < 1e-3, (ties, both)
        figures[ties]["largest_difference"] = rounded(worst, 2)
    return {
        "dataset": dataset,
        "model": name,
        "test_triples": len(peer.test),
        "candidates": found.candidates,
        "known_triples": sum(map(len, peer.known)),
        "pykeen_ranked": len(chosen),
        "pykeen_batch": batch,
        "pykeen_call_s": rounded(call),
        "pykeen_ms_per_triple_by_batch": {k: rounded(v * 1e3) for k, v in tried.items()},
        "pykeen": spread(other),
        "splime": spread(mine),
        "triples_per_s": {
            "pykeen": rounded(len(peer.test) / statistics.median(other)),
            "splime": rounded(len(peer.test) / statistics.median(mine)),
        },
        "times_faster": ratios(other, mine),
        "goal": GOALS[name],
        "figures_ours_theirs": figures,
        "machine": loads,
    }


def alone(who: str, dataset: str, name: str) -> dict[str, Any]:
    """The peak memory of one library in this process; PyKEEN ranks only a few triples."""
    static = merged(dataset)
    model = random_model(name, len(static.entities), len(static.predicates), DIMENSION)
    if who == "splime":
        before = peak_mb()
        ours(static, model)
    else:
        quiet_pykeen()
        import pykeen.evaluation
        import pykeen.models  # noqa: F401

        before = peak_mb()
        peer = Pykeen(static, name, model)
        size = int(who.removeprefix("pykeen"))
        peer.evaluate(np.arange(4 * size), size)
    return {"peak_mb": round(peak_mb()), "before_mb": round(before)}


def memory(dataset: str, name: str, batch: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for who in ("splime", f"pykeen{batch}"):
        command = [sys.executable, __file__, "--alone", who, dataset, name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        one = json.loads(done.stdout.splitlines()[-1])
        found[who.rstrip("0123456789")] = {**one, "grown_mb": one["peak_mb"] - one["before_mb"]}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--share", type=float, default=0.1, help="of the test triples, for PyKEEN")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300, help="that the models are trained for")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--alone", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        print(json.dumps(alone(*given.alone)))
        return
    quiet_pykeen()
    found = []
    for dataset in ("yago11k", "wikidata12k"):
        for name in ("transe", "complex"):
            one = compare(dataset, name, given.share, given.rounds, given.steps)
            one["memory"] = memory(dataset, name, one["pykeen_batch"])
            found.append(one)
            print(json.dumps(one, indent=1), flush=True)
    import pykeen.version

    versions = {"torch": torch.__version__, "pykeen": pykeen.version.get_version()}
    command = f"python benchmarks/evaluating.py --share {given.share}"
    write_results(given.out, command, **versions, threads=torch.get_num_threads(), results=found)


if __name__ == "__main__":
    main()
