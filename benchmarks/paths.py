"""A training step of the path model: the plain formulas against the kernels, in the same run.

    python benchmarks/paths.py --cpu                        # demo: the defaults, L3 D16, L4 D32
    SPLIME_DATA=… python benchmarks/paths.py --gpu          # ICEWS14: L4 D32; --random without data
    SPLIME_DATA=… python benchmarks/paths.py --gpu --profile

A step: scopes and weights of a batch of 32 questions, scores of all entities, cross-entropy,
gradients, clipping, AdamW. On a GPU the kernels run one by one and as a recorded CUDA graph. Before
anything is measured, scores and gradients of both are compared. Times are medians of alternating
rounds; on a processor also those of its clock (CPU), since the machine may be shared. There the
kernels have the threads, as in a training, and torch has one.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import splime
from record import peak_mb, write_results
from splime.graph import Facts
from splime.paths.facts import DirectedFacts
from splime.paths.messages import fast
from splime.paths.model import LearnedPathModel
from splime.paths.relative import EventScopes, RelativeScopes, Times, fit_relative

RESULTS = Path(__file__).parent / "results"
BATCH = 32


class Steps:
    """Training steps on a graph, as the trainer takes them."""

    def __init__(
        self,
        train: Facts,
        entities: int,
        predicates: int,
        relative: RelativeScopes,
        device: str,
        **settings: Any,
    ) -> None:
        self.relative, self.device = relative, device
        self.facts = DirectedFacts.of(train, entities, predicates).to(device)
        columns = (train.subject, train.predicate, train.object)
        subject, predicate, object_ = (
            torch.from_numpy(np.array(column)).long().to(device) for column in columns
        )
        self.given = torch.cat([subject, object_])
        self.wanted = torch.cat([object_, subject])
        self.predicates = torch.cat([predicate, predicate + predicates])
        times = Times.of(train).to(device)
        self.times = Times(*(torch.cat([column, column]) for column in times))
        self.model = LearnedPathModel(predicates, len(relative), **settings).to(device).train()
        more: Any = {"fused": True, "capturable": True} if device == "cuda" else {}
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, **more)
        random = torch.Generator().manual_seed(0)
        order = torch.randperm(len(self.given), generator=random)[: 64 * BATCH]
        self.batches = order.view(-1, BATCH).to(device)
        self.at = torch.zeros((), dtype=torch.int64, device=device)

    def loss(self, plain: bool) -> tuple[Tensor, Tensor]:
        """Scores and loss of the batch whose number is in `at`."""
        batch = self.batches.index_select(0, self.at.view(1)).squeeze(0)
        scores = self.model(
            self.facts,
            self.given[batch],
            self.model.start(self.predicates[batch]),
            self.facts.scopes(self.relative, self.times.take(batch)),
            self.facts.weights(batch % self.facts.facts),
            seed=self.at,
            plain=plain,
        )
        return scores, torch.nn.functional.cross_entropy(scores, self.wanted[batch])

    def step(self, plain: bool = False) -> None:
        """Take a step."""
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(plain)[1].backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.at += 1
        self.at %= len(self.batches)

    def compare(self) -> dict[str, float]:
        """How far scores and gradients of the kernels are from the plain ones, relatively."""
        results = []
        for plain in (False, True):
            scores, loss = self.loss(plain)
            gradients = torch.autograd.grad(loss, list(self.model.parameters()))
            results.append((scores.detach(), torch.cat([part.flatten() for part in gradients])))
        (scores, gradient), (plain_scores, plain_gradient) = results
        return {
            "scores": float((scores - plain_scores).norm() / plain_scores.norm()),
            "gradient": float((gradient - plain_gradient).norm() / plain_gradient.norm()),
        }

    def record(self) -> Callable[[], None]:
        """A step as a CUDA graph."""
        stream: Any = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(stream)
        self.optimizer.zero_grad(set_to_none=True)
        graph: Any = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        self.graph = graph  # what it reads must live as long
        return lambda: graph.replay()


def measure(ways: dict[str, Callable[[], None]], counts: dict[str, int], rounds: int) -> Any:
    """Medians of milliseconds a step, on the wall and on the processor's clock."""
    wall: dict[str, list[float]] = {name: [] for name in ways}
    clock: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, way in ways.items():
            wait()
            started, used = time.perf_counter(), time.process_time()
            for _ in range(counts[name]):
                way()
            wait()
            wall[name].append(1e3 * (time.perf_counter() - started) / counts[name])
            clock[name].append(1e3 * (time.process_time() - used) / counts[name])
    return {  # the first round warms up
        name: {
            "ms": round(statistics.median(wall[name][1:]), 3),
            "cpu ms": round(statistics.median(clock[name][1:]), 3),
        }
        for name in ways
    }


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def random_facts(count: int, entities: int, predicates: int, days: int) -> Facts:
    """Facts of ICEWS14's size: few entities and predicates have most of them."""
    random = np.random.default_rng(0)

    def ids(most: int) -> Any:
        share = 1 / np.arange(1, most + 1) ** 0.8
        return random.choice(most, count, p=share / share.sum()).astype(np.int32)

    begin = random.integers(0, days, count)
    columns = (ids(entities), ids(predicates), ids(entities))
    return Facts(*columns, begin, begin.copy(), np.zeros(count, np.uint8))


def on_cpu(rounds: int) -> list[dict[str, Any]]:
    """Demo."""
    graph = splime.load("demo")
    sizes = (len(graph.entities), len(graph.predicates), fit_relative("auto", graph))
    rows = []
    for layers, width, dropout in ((3, 32, 0.1), (3, 16, 0.0), (4, 32, 0.0), (4, 32, 0.1)):
        case = {"data": "demo", "layers": layers, "width": width, "dropout": dropout}
        steps = Steps(graph.train, *sizes, "cpu", layers=layers, width=width, dropout=dropout)
        apart = steps.compare()
        assert apart["scores"] < 1e-4, apart
        assert apart["gradient"] < 1e-2, apart
        ways: Any = {"plain": lambda: steps.step(plain=True), "fast": steps.step}  # noqa: B023
        times = measure(ways, {"plain": 2, "fast": 20}, rounds)
        ratio = times["plain"]["cpu ms"] / times["fast"]["cpu ms"]
        rows.append({**case, "apart": apart, **times, "ratio": round(ratio, 1)})
    return rows


def on_gpu(rounds: int, random: bool, profile: bool) -> list[dict[str, Any]]:
    """ICEWS14, or random facts of its size."""
    if random:
        train = random_facts(72_826, 7_128, 230, 365)
        relative: RelativeScopes = EventScopes("day", (1, 2, 4, 8, 15, 31, 91))
        entities, predicates = 7_128, 230
    else:
        graph = splime.load("icews14")
        train, relative = graph.train, fit_relative("auto", graph)
        entities, predicates = len(graph.entities), len(graph.predicates)
    rows = []
    for layers, width, dropout in ((4, 32, 0.0), (4, 32, 0.1), (3, 32, 0.1), (4, 64, 0.1)):
        case = {"data": "random" if random else "icews14", "layers": layers, "width": width}
        steps = Steps(
            train, entities, predicates, relative, "cuda",
            layers=layers, width=width, dropout=dropout,
        )  # fmt: skip
        apart = steps.compare()
        # bfloat16 moves some numbers across a relu; a wrong kernel is off by much more.
        assert apart["scores"] < 0.05, apart
        assert apart["gradient"] < 0.3, apart
        ways: Any = {"plain": lambda: steps.step(plain=True), "fast": steps.step}  # noqa: B023
        ways["recorded"] = steps.record()
        times = measure(ways, {"plain": 5, "fast": 50, "recorded": 200}, rounds)
        ratio = times["plain"]["ms"] / times["recorded"]["ms"]
        epoch = 2 * len(train) // BATCH * times["recorded"]["ms"] / 1e3
        rows.append(
            {**case, "dropout": dropout, "apart": apart, **times, "ratio": round(ratio, 1),
             "epoch s": round(epoch, 1), "GPU MB": torch.cuda.max_memory_allocated() // 2**20}
        )  # fmt: skip
        if profile and len(rows) == 1:
            with torch.profiler.profile() as seen:
                for _ in range(5):
                    steps.step()
                wait()
            averages = seen.key_averages()
            print(averages.table(sort_by="self_cuda_time_total", row_limit=25))
        torch.cuda.reset_peak_memory_stats()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--cpu", action="store_true")
    where.add_argument("--gpu", action="store_true")
    parser.add_argument("--random", action="store_true", help="random facts instead of ICEWS14")
    parser.add_argument("--profile", action="store_true", help="print what takes the GPU's time")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="the results (default: results/paths_….json)")
    options = parser.parse_args()
    if options.gpu:
        torch.set_float32_matmul_precision("high")  # as the trainer has it
        rows = on_gpu(options.rounds, options.random, options.profile)
        more: dict[str, Any] = {"device": torch.cuda.get_device_name()}
    else:
        more = {"threads": torch.get_num_threads()}
        with fast(torch.device("cpu")).at_work():
            rows = on_cpu(options.rounds)
        more["peak MB"] = round(peak_mb())
    for row in rows:
        print(row)
    name = "paths_gpu" if options.gpu else "paths_cpu"
    command = f"benchmarks/paths.py {'--gpu' if options.gpu else '--cpu'}"
    write_results(
        options.out or RESULTS / f"{name}.json", command, torch=torch.__version__, **more, rows=rows
    )


if __name__ == "__main__":
    main()
