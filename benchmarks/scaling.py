"""How the cost of training grows with entities, triples and dimension, on the CPU.

    python benchmarks/scaling.py

The triples are random, over 400 predicates. From a common point (10^4 entities, 10^5 triples,
dimension 100) one number changes at a time. There are three trainings: TransE with the paper's
set-up (500 positives share 500 negatives) and Adam, which updates whole tables in every step; the
same with Adagrad, whose gradients are sparse if a batch touches a small part of a table; and
ComplEx 1-vs-all with reciprocal predicates (1,000 triples in a batch), whose cost is that of all
entities. Every point is a process of its own that trains for a few seconds. The time of an epoch is
that of a step times the number of steps, plus the first step, which shuffles the triples and draws
the negatives. All points are measured twice, and the faster time counts, since the machine may be
shared.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from peers import as_triples, random_model, rounded, wait_for_quiet
from record import peak_mb, write_results
from splime.embedding.tables import Lookup
from splime.reporting.style import make_figure, save_picture, series_style
from splime.training.registry import make_settings
from splime.training.trainer import Trainer

RESULTS = Path(__file__).parent / "results" / "scaling.json"
PREDICATES = 400
COMMON = {"entities": 10**4, "triples": 10**5, "dimension": 100}
AXES = {
    "entities": (10**4, 10**5, 10**6),
    "triples": (10**4, 10**5, 10**6, 10**7),
    "dimension": (25, 50, 100, 200, 400),
}
NAMES = {
    "transe_adam": "TransE, shared negatives, Adam",
    "transe_adagrad": "TransE, shared negatives, Adagrad",
    "complex": "ComplEx, 1-vs-all, Adagrad",
}
MOST = {"complex": {"entities": 10**5}}
"""Where a series ends early: a step of ComplEx with 10^6 entities takes half a minute."""


def settings_of(who: str, dimension: int) -> Any:
    if who == "complex":
        return make_settings(
            "complex", dimension=dimension, batch_size=1000, n3=0.0, smooth=0.0, each="triple"
        )
    changes: Any = {"optimizer": who.removeprefix("transe_")}
    return make_settings(preset="paper", dimension=dimension, **changes)


def measure(who: str, entities: int, triples: int, dimension: int, limit: float) -> dict[str, Any]:
    """Train in this process for some seconds."""
    settings = settings_of(who, dimension)
    generator = np.random.default_rng(0)
    tops = (entities, PREDICATES, entities)
    rows = np.stack([generator.integers(0, top, triples) for top in tops], 1)
    before = peak_mb()
    predicates = PREDICATES * (1 + settings.reciprocal)
    model = random_model(settings.model, entities, predicates, dimension, settings.init)
    trainer = Trainer(model, as_triples(rows), settings)
    began = time.perf_counter()
    ends: list[float] = []
    for _ in trainer.epoch_steps():
        ends.append(time.perf_counter())
        if ends[-1] - began > limit and len(ends) > 3:
            break
    step = float(np.median([after - before for before, after in pairwise(ends)]))
    epoch = ends[0] - began + step * (trainer.steps - 1)
    return {
        "epoch_s": rounded(epoch),
        "ms_per_1000_triples": rounded(epoch / triples * 1e6),
        "step_ms": rounded(step * 1e3),
        "first_step_ms": rounded((ends[0] - began) * 1e3),
        "steps_seen": len(ends),
        "steps_of_an_epoch": trainer.steps,
        "peak_mb": round(peak_mb()),
        "before_mb": round(before),
        "tables_mb": round(sum(t.numel() for t in model.parameters()) * 4 / 2**20, 1),
        "sparse": isinstance(model.entities, Lookup) and model.entities.sparse,
    }


def point(who: str, numbers: dict[str, int], limit: float) -> dict[str, Any]:
    given = [who, *(str(numbers[axis]) for axis in COMMON)]
    command = [sys.executable, __file__, "--limit", str(limit), "--measure", *given]
    machine = wait_for_quiet()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {**json.loads(done.stdout.splitlines()[-1]), **machine}


def key_of(one: dict[str, Any]) -> tuple[Any, ...]:
    return (one["who"], *(one[axis] for axis in COMMON))


def plot(table: list[dict[str, Any]], path: Path) -> None:
    figure = make_figure(11, 6)
    axes = figure.subplots(2, 3, sharey="row")
    rows = (("epoch_s", "seconds of an epoch"), ("peak_mb", "peak MB"))
    for (key, label), line in zip(rows, axes, strict=True):
        for axis, panel in zip(AXES, line, strict=True):
            for number, (who, name) in enumerate(NAMES.items()):
                there = [one for one in table if one["axis"] == axis and one["who"] == who]
                at, values = [one[axis] for one in there], [one[key] for one in there]
                panel.loglog(at, values, label=name, markersize=5, **series_style(number))
            panel.set_xticks(AXES[axis])
            if axis == "dimension":
                panel.set_xticks(AXES[axis], [str(one) for one in AXES[axis]])
            panel.minorticks_off()
            panel.grid(alpha=0.3)
        line[0].set_ylabel(label)
    for axis, panel in zip(AXES, axes[1], strict=True):
        panel.set_xlabel(axis)
    megabytes = (300, 500, 1000, 2000)
    axes[1][0].set_yticks(megabytes, [f"{one:,}" for one in megabytes])
    axes[0][2].legend(frameon=False, fontsize=8)
    figure.suptitle("otherwise 10^4 entities, 10^5 triples, dimension 100; 2 cores", fontsize=10)
    save_picture(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--limit", type=float, default=2.5, help="seconds of training of a point")
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        who, entities, triples, dimension = given.measure
        numbers = int(entities), int(triples), int(dimension)
        print(json.dumps(measure(who, *numbers, given.limit)))
        return
    table = [
        {"axis": axis, "who": who, **COMMON, axis: value}
        for axis, values in AXES.items()
        for value in values
        for who in NAMES
        if value <= MOST.get(who, {}).get(axis, value)
    ]
    # The common point is on all axes, and measured once. Other programs may disturb one of the two
    # passes, so the faster one counts.
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for _ in range(given.passes):
        for key in {key_of(one): None for one in table}:
            found = point(key[0], dict(zip(COMMON, key[1:], strict=True)), given.limit)
            if key not in best or found["epoch_s"] < best[key]["epoch_s"]:
                best[key] = found
            print(key, json.dumps(found), flush=True)
    table = [{**one, **best[key_of(one)]} for one in table]
    threads = {"torch": torch.__version__, "threads": torch.get_num_threads()}
    write_results(given.out, "python benchmarks/scaling.py", **threads, results=table)
    plot(table, given.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
