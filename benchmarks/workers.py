"""One training by several workers: memory of each, bytes moved in a step, steps a second.

    python benchmarks/workers.py [--entities 500000] [--workers 1,2,4]
    python benchmarks/workers.py --agree [--device cuda]

ComplEx with 64 complex dimensions and Adagrad on random facts, each worker with one thread and a
share of each batch: 1,000 facts, both ways, with 500 negatives.

Bytes are those that a worker sends in a step by the algorithm of a ring: to add n bytes over N
workers, each sends 2 (N - 1) / N n of them; of sparse gradients, which are gathered, (N - 1) n.

`--agree` trains TransE, ComplEx and the path model with one and with two workers, on one card if
there is only one, and compares what came of it.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

import splime
from record import peak_mb, write_results
from splime import collective
from splime.embedding.making import make_model
from splime.methods import Vanilla
from splime.runs import Run
from splime.settings import Settings
from splime.training.trainer import Trainer

RESULTS = Path(__file__).parent / "results"
COMPLEX = {
    **{"model": "complex", "dimension": 64, "reciprocal": True, "optimizer": "adagrad"},
    **{"loss": "sampled_softmax", "negatives": 500, "batch_size": 1000, "steps": 40},
}
WARM = 2
"""Steps before the clock runs."""
AGREE: dict[str, list[str]] = {
    "transe": ["--dimension", "32", "--epochs", "4", "--validate-every", "2"],
    "complex": ["--dimension", "32", "--epochs", "4", "--validate-every", "2"],
    "path": ["--preset", "quick", "--dropout", "0", "--steps", "40"],
}


def make_facts(entities: int, path: Path) -> None:
    """As many facts as entities, each of which is a subject."""
    draw = np.random.default_rng(0)
    names = np.char.add("e", np.arange(entities).astype(str))
    columns = {
        "subject": pa.array(names),
        "predicate": pa.array(np.char.add("p", draw.integers(20, size=entities).astype(str))),
        "object": pa.array(names[draw.integers(entities, size=entities)]),
        "time": pa.array(draw.integers(1990, 2020, size=entities)),
    }
    splime.save(splime.read(pa.table(columns), split="none"), path)


class Counted:
    """Counts the bytes that this worker sends."""

    def __init__(self) -> None:
        self.sent = 0.0
        self._all_reduce, collective.all_reduce = collective.all_reduce, self.all_reduce

    def all_reduce(self, tensor: torch.Tensor) -> torch.Tensor:
        size = collective.size()
        if tensor.is_sparse:  # the parts of all are gathered
            self.sent += (size - 1) * (tensor._values().nbytes + tensor._indices().nbytes)
        else:
            self.sent += 2 * (size - 1) / size * tensor.nbytes
        return self._all_reduce(tensor)


def work(facts: Path, out: Path) -> None:
    """Take some steps as one of the workers; the first one writes what all measured."""
    torch.set_num_threads(1)
    program = peak_mb()
    static = Vanilla().fit_transform(splime.load(facts))
    before = peak_mb()
    collective.join("cpu")
    settings = Settings.of(COMPLEX)
    model = make_model(settings, static)
    trainer = Trainer(model, static.train, settings)
    held = sum(table.nbytes for table in model.parameters())
    held += sum(state["sum"].nbytes for state in trainer.optimizer.state.values())
    counted, clock, sent = Counted(), [0.0], [0.0]
    loss = 0.0
    for done in trainer.epoch_steps():
        loss = done.loss
        if done.step in (WARM, settings.steps):
            clock.append(time.perf_counter())
            sent.append(counted.sent)
    steps = (settings.steps or 0) - WARM
    memory = [program, before, peak_mb(), held / 2**20]
    every = torch.zeros(collective.size(), len(memory) + 1)
    every[collective.rank()] = torch.tensor([*memory, (sent[-1] - sent[1]) / steps])
    most = collective.all_reduce(every).amax(0).tolist()
    if collective.rank() == 0:
        measured = {
            "workers": collective.size(),
            "program_mb": round(most[0]),
            "with_facts_mb": round(most[1]),
            "peak_mb": round(most[2]),
            "vectors_and_state_mb": round(most[3]),
            "bytes_sent_per_step": round(most[4]),
            "steps_per_second": round(steps / (clock[-1] - clock[1]), 2),
            "loss": loss,
        }
        out.write_text(json.dumps(measured))
    collective.leave()


def measure(facts: Path, workers: int) -> dict[str, Any]:
    """What some workers measured."""
    out = facts.with_name(f"{workers}.json")
    command = [sys.executable, __file__, "--work", str(facts), str(out)]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    there = {"WORLD_SIZE": str(workers), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    processes = [
        subprocess.Popen(command, env={**os.environ, **there, "RANK": str(rank)})
        for rank in range(workers)
    ]
    codes = [process.wait() for process in processes]
    if any(codes):
        raise SystemExit(f"{workers} workers: failed")
    measured: dict[str, Any] = json.loads(out.read_text())
    print(measured, flush=True)
    return measured


def table(entities: int, workers: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder) / "facts.parquet"
        make_facts(entities, facts)
        measured = [measure(facts, count) for count in workers]
    command = f"python benchmarks/workers.py --entities {entities}"
    write_results(
        RESULTS / "workers.json", command, torch=torch.__version__, entities=entities, rows=measured
    )


def agree(device: str) -> None:
    """Train with one and with two workers by the command line, and compare."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for model, options in AGREE.items():
            runs = {}
            ways: dict[str, list[str]] = {"one": [], "two": ["--workers", "2"]}
            for name, more in ways.items():
                out = Path(folder) / f"{model}, {name}"
                command = ["train", "demo", "--model", model, "--device", device, *options, *more]
                began = time.perf_counter()
                subprocess.run(
                    [sys.executable, "-m", "splime", *command, "--out", str(out)],
                    check=True,
                    stdout=subprocess.DEVNULL,
                )
                runs[name] = run = Run(out, device="cpu")
                one = runs["one"]
                pairs = zip(run.history, one.history, strict=True)
                apart = [abs(a.loss / b.loss - 1) for a, b in pairs]
                row = {
                    "model": model,
                    "workers": name,
                    "device": run.about["device"],
                    "seconds": round(time.perf_counter() - began, 1),
                    "loss": run.history[-1].loss,
                    "valid_mrr": run.history[-1].valid,
                    "losses_apart": max(apart),
                    "vectors_apart": max(
                        float((run.tensors[key].float() - one.tensors[key].float()).abs().max())
                        for key in run.tensors
                        if key != "score_bias"  # its gradient is 0 but for rounding
                    ),
                }
                print(row, flush=True)
                rows.append(row)
    path = RESULTS / f"workers_agree_{'gpu' if 'cuda' in rows[0]['device'] else 'cpu'}.json"
    called = f"python benchmarks/workers.py --agree --device {device}"
    write_results(path, called, torch=torch.__version__, rows=rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--entities", type=int, default=500_000)
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--agree", action="store_true")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        facts, out = given.work
        work(Path(facts), Path(out))
    elif given.agree:
        agree(given.device)
    else:
        table(given.entities, [int(count) for count in given.workers.split(",")])


if __name__ == "__main__":
    main()
