"""An epoch of TransE with the paper's set-up and one of ComplEx 1-vs-all, compared with PyKEEN.

    SPLIME_DATA=… python benchmarks/training.py [--ampligraph /venv/bin/python]

Wikidata12k merged by 4, distinct train triples (198,054), CPU. The two libraries take turns in one
process: some steps of PyKEEN's own training loop on all triples, then some steps of ours, for
several rounds. An epoch is the median step times the number of steps. We also run one whole epoch
of ours, as a check. Peak memory is that of a separate process.

TransE: dimension 100, L1, 500 positives by 500 negatives, self-adversarial with margin 3 and
temperature 0.5, Adam. Ours is measured with negatives shared by the batch (`shared`), as in the
preset `paper`, and with negatives of each positive's own (`own`), as in PyKEEN.

ComplEx: dimension 100, reciprocal predicates, softmax cross-entropy over all entities, Adagrad. A
batch of ours is 1,000 triples in both directions: 2,000 answers to (s, p, ?) or (o, inverse p, ?),
with answers to the same query next to each other. A batch of PyKEEN's LCWA loop is 1,000 different
queries with all their answers. Both score every query once in an epoch.

AmpliGraph 2 (TensorFlow) needs an environment of its own, so its processes alternate with ours.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from peers import (
    factory,
    load_now,
    make_trainer,
    merged,
    pykeen_turns,
    quiet_pykeen,
    ratios,
    rounded,
    spread,
    wait_for_quiet,
)
from record import peak_mb, write_results
from splime.settings import Settings
from splime.static import StaticGraph
from splime.training.registry import make_settings
from splime.training.trainer import Trainer

RESULTS = Path(__file__).parent / "results" / "training.json"
DIMENSION = 100
TRANSE = {
    "shared": make_settings(preset="paper"),
    "own": make_settings(preset="paper", share="none"),
}
COMPLEX = make_settings(
    "complex",
    dimension=DIMENSION,
    loss="softmax",
    reciprocal=True,
    optimizer="adagrad",
    learning_rate=0.1,
    n3=0.0,
    smooth=0.0,
    batch_size=1000,
    each="triple",
)


class Work:
    """The graph, and all that is measured on it."""

    def __init__(self) -> None:
        self.static: StaticGraph = merged("wikidata12k").distinct()[0]
        self.triples = self.static.train.array()

    def trainer(self, settings: Settings, steps: int | None = None) -> Trainer:
        """Our trainer, on all triples, or on some, so that an epoch has only a few steps."""
        triples = self.triples
        if steps is not None:
            chosen = np.random.default_rng(0).permutation(len(triples))
            triples = triples[chosen[: steps * settings.batch_size]]
        return make_trainer(self.static, settings, triples)

    def pykeen_transe(self) -> tuple[Any, Any, int]:
        from pykeen.losses import NSSALoss
        from pykeen.models import TransE
        from pykeen.training import SLCWATrainingLoop

        triples = factory(self.static, self.triples)
        model = TransE(
            triples_factory=triples,
            embedding_dim=DIMENSION,
            scoring_fct_norm=1,
            loss=NSSALoss(margin=3.0, adversarial_temperature=0.5),
            random_seed=0,
        )
        loop = SLCWATrainingLoop(
            model=model,
            triples_factory=triples,
            optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
            negative_sampler="basic",
            negative_sampler_kwargs={"num_negs_per_pos": 500},
        )
        return loop, triples, 500

    def pykeen_complex(self) -> tuple[Any, Any, int]:
        from pykeen.losses import CrossEntropyLoss
        from pykeen.models import ComplEx
        from pykeen.training import LCWATrainingLoop

        triples = factory(self.static, self.triples, inverse=True)
        model = ComplEx(
            triples_factory=triples,
            embedding_dim=DIMENSION,
            loss=CrossEntropyLoss(),
            random_seed=0,
        )
        loop = LCWATrainingLoop(
            model=model,
            triples_factory=triples,
            optimizer=torch.optim.Adagrad(model.parameters(), lr=0.1),
        )
        return loop, triples, 1000

    def questions(self) -> int:
        """How many different queries (s, p, ?) and (o, inverse p, ?) PyKEEN's batches hold."""
        s, p, o = self.triples.T.astype(np.int64)
        some = len(self.static.predicates)
        return len(np.unique(s * some + p)) + len(np.unique(o * some + p))


def turns(
    make_peer: Callable[[], tuple[Any, Any, int]],
    ours: dict[str, Callable[[], float]],
    *,
    steps: int,
    rounds: int,
) -> tuple[dict[str, list[float]], list[dict[str, float]]]:
    """Seconds of a step of each library, round by round, and how busy the machine was."""
    seconds: dict[str, list[float]] = {name: [] for name in ours}
    loads: list[dict[str, float]] = []
    for take in ours.values():
        take()  # to warm up

    def between() -> None:
        loads.append(wait_for_quiet())
        for name, take in ours.items():
            seconds[name].append(take())

    loop, triples, batch = make_peer()
    peer = pykeen_turns(
        loop, triples, batch_size=batch, steps=steps, rounds=rounds, between=between
    )
    return {"pykeen": peer, **seconds}, loads


def short_epoch(trainer: Trainer) -> Callable[[], float]:
    """The seconds of a step, measured over an epoch."""

    def take() -> float:
        began = time.perf_counter()
        trainer.run_epoch()
        return (time.perf_counter() - began) / trainer.steps

    return take


def some_steps(trainer: Trainer, steps: int) -> Callable[[], float]:
    """The seconds of a step, measured over some, without the first one, which shuffles."""

    def take() -> float:
        ends = [time.perf_counter() for _ in islice(trainer.epoch_steps(), steps + 1)]
        return (ends[-1] - ends[0]) / (len(ends) - 1)

    return take


def whole_epoch(trainer: Trainer) -> float:
    began = time.perf_counter()
    trainer.run_epoch()
    return rounded(time.perf_counter() - began)


def transe(work: Work, rounds: int, steps: int) -> dict[str, Any]:
    ours = {
        "shared": short_epoch(work.trainer(TRANSE["shared"], steps * 10)),
        "own": short_epoch(work.trainer(TRANSE["own"], steps * 2)),
    }
    seconds, loads = turns(work.pykeen_transe, ours, steps=steps, rounds=rounds)
    epoch = work.trainer(TRANSE["shared"])
    return {
        "steps_of_an_epoch": epoch.steps,
        "steps_of_a_round": {"pykeen": steps, "shared": steps * 10, "own": steps * 2},
        **sides(seconds, dict.fromkeys(seconds, epoch.steps)),
        "whole_epoch_shared_s": whole_epoch(epoch),
        "times_faster": {name: ratios(seconds["pykeen"], seconds[name]) for name in ours},
        "goal": 10,
        "machine": loads,
    }


def complex_(work: Work, rounds: int, steps: int) -> dict[str, Any]:
    trainer = work.trainer(COMPLEX)
    ours = {"splime": some_steps(trainer, steps)}
    seconds, loads = turns(work.pykeen_complex, ours, steps=steps, rounds=rounds)
    questions = work.questions()
    batches = {"pykeen": -(-questions // 1000), "splime": trainer.steps}
    epochs = {name: [one * batches[name] for one in seconds[name]] for name in batches}
    return {
        "questions_of_an_epoch": questions,
        "answers_of_an_epoch": 2 * len(work.triples),
        "batches_of_an_epoch": batches,
        "steps_of_a_round": steps,
        **sides(seconds, batches),
        "whole_epoch_s": whole_epoch(work.trainer(COMPLEX)),
        "times_faster": ratios(epochs["pykeen"], epochs["splime"]),
        "goal": 3,
        "machine": loads,
    }


def sides(seconds: dict[str, list[float]], steps: dict[str, int]) -> dict[str, Any]:
    """The time of a step and of an epoch of each library."""
    return {
        name: {
            "step": spread(found),
            "steps_per_s": rounded(1 / statistics.median(found)),
            "epoch_s": rounded(statistics.median(found) * steps[name]),
            "rounds": len(found),
        }
        for name, found in seconds.items()
    }


# Memory: in a separate process.


def alone(who: str, steps: int) -> dict[str, Any]:
    """The peak memory, and the seconds of a step, in this process."""
    if who.startswith("pykeen"):
        quiet_pykeen()
        import pykeen.losses
        import pykeen.models
        import pykeen.training  # noqa: F401
    work = Work()
    before = peak_mb()
    if who.startswith("pykeen"):
        make = work.pykeen_transe if who == "pykeen_transe" else work.pykeen_complex
        loop, triples, batch = make()
        [second] = pykeen_turns(
            loop, triples, batch_size=batch, steps=steps, rounds=1, between=lambda: None
        )
    else:
        second = some_steps(work.trainer(COMPLEX if who == "complex" else TRANSE[who]), steps)()
    return {"peak_mb": round(peak_mb()), "before_mb": round(before), "step_s": rounded(second)}


def memory() -> dict[str, Any]:
    """Each library in a process of its own."""
    steps = {"pykeen_transe": 3, "shared": 20, "own": 5, "pykeen_complex": 4, "complex": 4}
    found = {}
    for who, some in steps.items():
        command = [sys.executable, __file__, "--alone", who, "--steps", str(some)]
        machine = wait_for_quiet()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[who] = {**json.loads(done.stdout.splitlines()[-1]), **machine}
        found[who]["grown_mb"] = found[who]["peak_mb"] - found[who]["before_mb"]
        print(who, found[who], flush=True)
    return found


def ampligraph(python: Path, work: Work, rounds: int) -> dict[str, Any]:
    """AmpliGraph 2 in its environment; its processes alternate with ours."""
    script = Path(__file__).resolve().with_name("ampligraph_epoch.py")
    ours = {
        "shared": short_epoch(work.trainer(TRANSE["shared"], 60)),
        "own": short_epoch(work.trainer(TRANSE["own"], 12)),
    }
    seconds: dict[str, list[float]] = {"ampligraph": [], "shared": [], "own": []}
    loads: list[dict[str, float]] = []
    last: dict[str, Any] = {}
    for take in ours.values():
        take()  # to warm up
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.npy"
        np.save(path, work.triples)
        for _ in range(rounds):
            loads.append(wait_for_quiet())
            command = [str(python), str(script), str(path), "30"]
            # It writes a log into the folder in which it runs.
            done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
            last = json.loads(done.stdout.splitlines()[-1])
            seconds["ampligraph"].append(last["step_s"])
            for name, take in ours.items():
                seconds[name].append(take())
    steps = -(-len(work.triples) // 500)
    return {
        **sides(seconds, dict.fromkeys(seconds, steps)),
        "versions": last["versions"],
        "peak_mb": round(last["peak_mb"]),
        "before_mb": round(last["before_mb"]),
        "times_faster": {name: ratios(seconds["ampligraph"], seconds[name]) for name in ours},
        "machine": loads,
    }


def profiles(work: Work) -> dict[str, dict[str, float]]:
    """The milliseconds of a step of ours, by operation."""
    from torch.profiler import ProfilerActivity, profile

    found = {}
    cases = {
        "shared": (work.trainer(TRANSE["shared"]), 30),
        "own": (work.trainer(TRANSE["own"]), 8),
        "complex": (work.trainer(COMPLEX), 8),
    }
    for name, (trainer, steps) in cases.items():
        some_steps(trainer, 2)()
        with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiled:
            some_steps(trainer, steps - 1)()
        each = {
            event.key: rounded(event.self_cpu_time_total / steps / 1e3, 3)
            for event in profiled.key_averages()
        }
        most = dict(sorted(each.items(), key=lambda one: -one[1])[:10])
        found[name] = {**most, "all": rounded(sum(each.values()), 4)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6, help="of PyKEEN in a round")
    parser.add_argument("--ampligraph", type=Path, help="the Python that AmpliGraph 2 is in")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        print(json.dumps(alone(given.alone, given.steps)))
        return
    quiet_pykeen()
    found: dict[str, Any] = {"load_before": load_now(), "memory": memory()}
    work = Work()
    for name, measure in (("transe", transe), ("complex", complex_)):
        found[name] = measure(work, given.rounds, given.steps)
        print(name, json.dumps(found[name], indent=1), flush=True)
    command = "python benchmarks/training.py"
    if given.ampligraph:
        found["ampligraph"] = ampligraph(given.ampligraph, work, 3)
        print(json.dumps(found["ampligraph"], indent=1), flush=True)
        command += f" --ampligraph {given.ampligraph}"
    found["ms_of_a_step"] = profiles(work)
    print(json.dumps(found["ms_of_a_step"], indent=1), flush=True)
    import pykeen.version

    versions = {"torch": torch.__version__, "pykeen": pykeen.version.get_version()}
    threads = torch.get_num_threads()
    write_results(given.out, command, **versions, threads=threads, **found, load_after=load_now())


if __name__ == "__main__":
    main()
