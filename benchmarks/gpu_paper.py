"""The paper's whole run on Wikidata12k merged by 4, on a GPU: its time, and what limits it.

    python benchmarks/gpu_paper.py wikidata12k.parquet

The file comes from `splime.save(splime.load("wikidata12k"), …)`. There are 198,054 distinct train
triples, 200 epochs of 397 steps of 500 positives by 500 negatives, dimension 100 and three seeds,
evaluated by protocol `triple`. Also measured: the same with each positive's own negatives, the
bandwidth of the memory, and how the time of a step divides.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import torch

import splime
from record import write_results
from splime.embedding.making import make_model
from splime.embedding.scorer import ModelScorer
from splime.evaluation import evaluate_triples
from splime.static import StaticGraph
from splime.training.registry import make_settings
from splime.training.trainer import Trainer

RESULTS = Path(__file__).parent / "results"


def make_trainer(static: StaticGraph, **settings: Any) -> Trainer:
    chosen = make_settings(preset="paper", **settings)
    return Trainer(make_model(chosen, static).to("cuda"), static.train, chosen)


def whole_run(static: StaticGraph, **settings: Any) -> dict[str, Any]:
    """The seconds of a whole training, and the metrics of the model."""
    began = time.perf_counter()
    trainer = make_trainer(static, **settings)
    loss = 0.0
    for _ in range(trainer.epochs):
        loss = trainer.run_epoch() or 0.0
    torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    found = evaluate_triples(ModelScorer(trainer.model), static).metrics["triple"]["both"]
    return {
        **settings,
        "seconds": round(seconds, 2),
        "ms_per_step": round(seconds / trainer.epochs / trainer.steps * 1e3, 4),
        "loss": loss,
        "mrr": round(found.mrr, 4),
        "hits10": round(found.hits10, 4),
        "peak_mb": round(torch.cuda.max_memory_allocated() / 2**20),
    }


def kernels_of_a_step(static: StaticGraph) -> dict[str, float]:
    """Microseconds of each kernel in one step, by the profiler."""
    from torch.profiler import ProfilerActivity, profile

    trainer = make_trainer(static)
    trainer.run_epoch()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiled:
        trainer.run_epoch()
        torch.cuda.synchronize()
    found = {
        event.key[:60]: round(event.device_time_total / trainer.steps, 2)
        for event in profiled.key_averages()
    }
    return dict(sorted(found.items(), key=lambda one: -one[1])[:12]) | {
        "all kernels": round(sum(found.values()), 1),
        "number of kernels": round(
            sum(event.count for event in profiled.key_averages()) / trainer.steps, 1
        ),
    }


def bandwidth() -> float:
    """GB/s of a large copy, read and written bytes together."""
    source = torch.randn(1 << 28, device="cuda")
    target = torch.empty_like(source)
    times = []
    for _ in range(10):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return float(2 * source.numel() * 4 / statistics.median(times) / 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu_paper.json")
    given = parser.parse_args()
    graph = splime.load(str(given.graph))
    static = splime.Merge(shrink=4, fit_on="all").fit_transform(graph).distinct()[0]
    whole_run(static, epochs=2)  # compiles the kernels
    runs = [whole_run(static, seed=seed) for seed in range(3)]
    for run in runs:
        print(run, flush=True)
    own = whole_run(static, share="none", epochs=20)
    print(own, flush=True)
    found = {
        "goal_seconds": 20,
        "runs": runs,
        "own_negatives_20_epochs": own,
        "copy_gb_per_s": round(bandwidth()),
        "microseconds_of_a_step": kernels_of_a_step(static),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
    }
    write_results(given.out, f"python benchmarks/gpu_paper.py {given.graph.name}", **found)


if __name__ == "__main__":
    main()
