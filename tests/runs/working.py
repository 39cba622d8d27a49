"""What the workers of `test_workers.py` do, in processes of their own: starting them is slow.

RANK=… WORLD_SIZE=… MASTER_ADDR=… MASTER_PORT=… python -m tests.runs.working GRAPH FOLDER
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import splime
from splime import collective
from splime.embedding.initial import INITIALISERS, make_weights
from splime.embedding.losses import LOSSES
from splime.embedding.losses.softmax import softmax_loss, softmax_of_shard
from splime.errors import SplimeError
from splime.evaluation import Evaluation
from splime.graph import TemporalGraph
from splime.runs import Run, evaluate, train
from splime.training.engines import Interrupted
from tests.runs.small import StopAfter

ENTITIES = 61
SAMPLED = {"negatives": 8, "epochs": 2, "batch_size": 40, "validate_every": 1}
ALL = {"loss": "softmax", "epochs": 2, "batch_size": 40, "validate_every": 1}
TRAININGS: dict[str, dict[str, Any]] = {
    "transe": {"model": "transe", "dimension": 6, **SAMPLED},
    "own negatives": {"model": "transe", "dimension": 6, **SAMPLED, "share": "none"},
    "transe against all": {"model": "transe", "dimension": 6, **ALL},
    "complex": {"model": "complex", "dimension": 6, **ALL},
    # So few of the entities in a batch that gradients are sparse.
    "sparse": {
        "model": "complex",
        "dimension": 6,
        "loss": "sampled_softmax",
        "avoid_known": True,
        "negatives": 2,
        "batch_size": 2,
        "epochs": 1,
    },
    "moving": {"model": "hyte", "dimension": 6, **SAMPLED, "unit": "clip"},
    "moving against all": {"model": "hyte", "dimension": 6, **ALL, "l2": 0.01},
    "path": {
        "model": "path",
        "dimension": 16,
        "layers": 2,
        "dropout": 0.0,
        "batch_size": 9,
        "steps": 6,
    },
}
PROTOCOLS = ("fact", "triple", "predicate")
ERRORS: dict[str, dict[str, Any]] = {
    "pykeen": {"model": "TransE", "engine": "pykeen"},
    "path in shards": {"model": "path", "shard": True},
    "all of them in shards": {"model": "atise", "shard": True},
    "gadget in shards": {
        **{"model": "timeplex", "loss": "softmax", "gadget": "pairs", "validate_every": 0},
        "shard": True,
    },
    "small batches": {"model": "transe", "batch_size": 1},
    "a loss of one's own": {"model": "transe", "loss": "whole", "shard": True},
}
CHECKPOINT = 5
"""After so many steps a training is stopped."""


def small_graph() -> TemporalGraph:
    draw, rows = random.Random(3), []
    for _ in range(180):
        subject, predicate, begin = draw.randrange(ENTITIES), draw.randrange(3), draw.randrange(16)
        names = (f"e{subject}", f"p{predicate}", f"e{(subject + 5 * predicate + 1) % ENTITIES}")
        rows.append((*names, 1990 + begin, 1990 + begin + draw.randrange(3)))
    rows += [(f"e{k}", "p0", f"e{(k + 1) % ENTITIES}", 1990, 1991) for k in range(ENTITIES)]
    return splime.read({"train": rows[40:], "valid": rows[:20], "test": rows[20:40]})


def train_one(graph: TemporalGraph, name: str, out: Path, **how: Any) -> Run:
    settings = {**TRAININGS[name], **how}
    timed = settings["model"] in ("path", "hyte")
    return train(graph, None if timed else splime.Split(grow=2), out, device="cpu", **settings)


def metrics(evaluation: Evaluation) -> dict[str, float]:
    return {name: each["both"].mrr for name, each in evaluation.metrics.items()}


def check_softmax(function: Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]) -> None:
    """The loss and its gradients, in shards and by the plain formula."""
    for seed in range(40):
        draw = torch.Generator().manual_seed(seed)
        queries, count, width = (int(torch.randint(2, 30, (), generator=draw)) for _ in range(3))
        spread = (1.0, 30.0, 1000.0)[seed % 3]  # far-off scores, too
        made = [torch.randn(n, width, generator=draw).double() * spread for n in (queries, count)]
        which = None
        answers = queries
        if seed % 2 and function is in_products:
            repeats = torch.randint(1, 4, (queries,), generator=draw)
            which = torch.arange(queries).repeat_interleave(repeats)
            answers = len(which)
        target = torch.randint(count, (answers,), generator=draw)
        query, candidates = (each.clone().requires_grad_() for each in made)
        rows = torch.arange(queries) if which is None else which
        plain = -(query @ candidates.T).log_softmax(1)[rows, target].sum()
        plain.backward()
        here = collective.rows(count)
        own = made[1][here.start : here.stop].clone().requires_grad_()
        again = made[0].clone().requires_grad_()
        loss = function(again, own, target, which)
        loss.backward()
        of_query, of_own, *whole = (x.grad for x in (again, own, query, candidates))
        assert of_query is not None
        assert whole[1] is not None
        sums = [collective.add_up(each) for each in (loss.detach(), of_query)]
        for mine, right in (
            (sums[0], plain.detach()),
            (sums[1], whole[0]),
            (of_own, whole[1][here.start : here.stop]),
        ):
            torch.testing.assert_close(mine, right, rtol=1e-9, atol=1e-9 * spread)


def in_products(query: Tensor, own: Tensor, target: Tensor, which: Tensor | None) -> Tensor:
    return softmax_loss(query, own, target, which, _rows(own))


def of_scores(query: Tensor, own: Tensor, target: Tensor, which: Tensor | None) -> Tensor:
    assert which is None
    return softmax_of_shard(query @ own.T, target, _rows(own))


def _rows(own: Tensor) -> collective.Rows:
    """The rows of this worker, from how many each has."""
    counts = [int(each) for each in collective.gathered(torch.tensor(len(own)))]
    return collective.rows(sum(counts))


def check_first_rows() -> None:
    """A worker begins with the rows that one process would have."""
    for name in INITIALISERS:
        for total, width in ((3, 5), (140_001, 3), (70_000, 7)):
            whole, after = _drawn(name, total, width, None)
            here = collective.rows(total)
            own, after_own = _drawn(name, total, width, here)
            assert torch.equal(own, whole[here.start : here.stop])
            assert torch.equal(after, after_own)


def _drawn(name: str, total: int, width: int, own: collective.Rows | None) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(7)
    drawn = make_weights(name, total, width, generator, own=own)
    return drawn, torch.rand(3, generator=generator)


def errors(graph: TemporalGraph, folder: Path) -> dict[str, str]:
    LOSSES["whole"] = replace(LOSSES["softmax"], name="whole", of_shard=None)
    told = {}
    few = splime.read([("a", "p", "a", 1), ("a", "p", "a", 2)], split="none")
    cases: dict[str, tuple[TemporalGraph, dict[str, Any]]] = {
        **{name: (graph, how) for name, how in ERRORS.items()},
        "one entity": (few, {"model": "transe", "batch_size": 2, "epochs": 1, "shard": True}),
    }
    for name, (facts, how) in cases.items():
        if how["model"] == "path":
            how = {**how, "steps": 1}
        with pytest.raises(SplimeError) as error:
            train(facts, None, folder / "errors", device="cpu", **how)
        told[name] = str(error.value)
        collective.wait()
    assert not (folder / "errors").exists()
    return told


def main() -> None:
    graph, folder = splime.load(sys.argv[1]), Path(sys.argv[2])
    collective.join("cpu")
    assert collective.size() == 2
    check_softmax(in_products)
    check_softmax(of_scores)
    check_first_rows()
    for name in TRAININGS:
        train_one(graph, name, folder / name)
        if name != "path":
            train_one(graph, name, folder / f"{name} in shards", shard=True)
    measured = {
        f"{protocol}, {shard}": metrics(
            evaluate(folder / "complex", protocol, shard=shard, device="cpu")
        )
        for protocol in PROTOCOLS
        for shard in (False, True)
    }
    measured["path"] = metrics(evaluate(folder / "path", device="cpu"))
    measured["moving"] = metrics(evaluate(folder / "moving", shard=True, device="cpu"))
    stopped = folder / "stopped"
    for name in ("transe", "complex"):  # Adam, and Adagrad
        watch = StopAfter(CHECKPOINT if collective.rank() == 0 else 10**9)
        with pytest.raises(Interrupted):
            train_one(graph, name, stopped / name, shard=True, watch=watch)
        collective.wait()
        if collective.rank() == 0:
            shutil.copytree(stopped / name, folder / "resumed" / name)
        collective.wait()
        train_one(graph, name, folder / "resumed" / name, shard=True)
    told = errors(graph, folder)
    if collective.rank() == 0:
        (folder / "measured.json").write_text(json.dumps({"metrics": measured, "errors": told}))
    collective.leave()


if __name__ == "__main__":
    main()
