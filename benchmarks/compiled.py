"""A step where entities move in time, with negatives that torch.compile fuses and without.

    python benchmarks/compiled.py icews14.parquet [--device cuda]

The file comes from `splime.save(splime.load("icews14"), "icews14.parquet")`. DE-SimplE (200
negatives), TeRo and ATiSE with their authors' settings take epochs both ways in turns, five times;
the median is taken. Setting up has the compilation, or the first steps.
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
from splime.methods import Timestamp, at_every_timestamp
from splime.static import StaticGraph, apply
from splime.training.registry import make_settings
from splime.training.trainer import Trainer

RESULTS = Path(__file__).parent / "results" / "compiled.json"
MODELS: dict[str, dict[str, Any]] = {"de-simple": {"negatives": 200}, "tero": {}, "atise": {}}
TURNS = 5


class Way:
    """A training, with a compiled loss or as it is written."""

    def __init__(self, static: StaticGraph, name: str, device: str, *, compiled: bool) -> None:
        from experiments.published import resolved

        training = {"model": name, "preset": "published", "steps": 10_000, **MODELS[name]}
        settings = make_settings(**resolved(training))
        model = make_model(settings, static).to(device)
        self.trainer = Trainer(model, static.train, settings)
        if compiled:
            self.trainer.objective.compile()
        self.seconds: list[float] = []
        self.loss = 0.0

    def turn(self) -> None:
        """An epoch."""
        began = time.perf_counter()
        self.loss = self.trainer.run_epoch() or 0.0  # reading the loss waits for the GPU
        self.seconds.append(time.perf_counter() - began)

    def found(self) -> dict[str, float]:
        """Seconds to set up, milliseconds of a step, and the last loss."""
        median = statistics.median(self.seconds[1:])
        return {
            "set_up_s": round(self.seconds[0] - median, 2),
            "ms_per_step": round(median / self.trainer.steps * 1e3, 3),
            "loss": round(self.loss, 5),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph", type=Path)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    graph = splime.load(given.graph)
    static = apply(at_every_timestamp(Timestamp().fit(graph), graph), graph)
    found = {}
    for name in MODELS:
        ways = [Way(static, name, given.device, compiled=each) for each in (False, True)]
        for _ in range(TURNS + 1):
            for way in ways:
                way.turn()
        plain, compiled = (way.found() for way in ways)
        ratio = round(plain["ms_per_step"] / compiled["ms_per_step"], 2)
        found[name] = {"plain": plain, "compiled": compiled, "faster_by": ratio}
        print(name, found[name], flush=True)
    command = "python benchmarks/compiled.py icews14.parquet"
    device = torch.cuda.get_device_name() if given.device == "cuda" else given.device
    write_results(RESULTS, command, torch=torch.__version__, device=device, models=found)


if __name__ == "__main__":
    main()
