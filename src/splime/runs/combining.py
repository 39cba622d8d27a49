"""Combine runs: a run whose scores are the weighted log-probabilities of others."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from splime.errors import UsageError
from splime.evaluation.filters import TIMED, AnswerFilter
from splime.evaluation.ranking import Side, rank_sides
from splime.graph import Facts
from splime.io.files import LOCK, check_empty, new_folder, write_json
from splime.progress import Progress, silent
from splime.runs import folder as files
from splime.runs.run import Run
from splime.runs.training import machine
from splime.scoring.combined import log_probabilities
from splime.scoring.queries import Queries, Scoring
from splime.scoring.scoping import SIDES, keyed
from splime.scoring.scorer import memory_errors
from splime.tensors import save_tensors
from splime.training.combined import entry

WEIGHTS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0)
"""What is tried for a member, where the best one has 1."""
_MOST = 1 << 28
"""Log-probabilities that are kept to choose weights by: a GiB of them."""
_COMPARED = 1 << 24
"""Those that are added up at once."""


def combine(
    runs: Sequence[str | Path | Run],
    out: str | Path,
    *,
    device: str = "auto",
    progress: Progress = silent,
) -> Run:
    """Make a run that adds the log-probabilities of others, with weights chosen on valid.

    Args:
        runs: finished runs, or their folders; all with the same facts, read the same way. They are
            copied, so that the new folder needs none of them.
        out: the folder of the new run, which must not be there.
        device: cpu, cuda or auto.
        progress: reports the weights that are tried.

    >>> import splime, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     for name in ("distmult", "transe"):
    ...         _ = splime.train("demo", None, f"{here}/{name}", model=name, dimension=8, epochs=1)
    ...     len(combine([f"{here}/distmult", f"{here}/transe"], f"{here}/both").parts)
    2
    """
    began, out = time.monotonic(), Path(out)
    members = [run if isinstance(run, Run) else Run(run, device=device) for run in runs]
    check_empty(out)
    _check(members)
    with new_folder(out, partial(check_empty, out)) as beside:
        _combine(members, beside, began, progress)
    return Run(out, device=device)


def _combine(members: Sequence[Run], out: Path, began: float, progress: Progress) -> None:
    """Choose weights, and write the new run into an empty folder."""
    scorings = [run.scoring() for run in members]
    with torch.inference_mode(), memory_errors():
        chosen = choose_weights(scorings, progress)
    graph, past = members[0].graph, {run.past for run in members}
    settings: dict[str, Any] = {"model": entry.name, "weights": chosen.weights}
    if len(past) == 1:
        settings["past"] = past.pop()
    combined = {
        "names": [str(run.path) for run in members],
        "sha256": [files.fingerprint(run.config) for run in members],
    }
    config = {**files.describe(graph, None, settings, entry.engine), files.MEMBERS: combined}
    seconds = time.monotonic() - began + sum(run.about["seconds"] for run in members)
    about = {
        **machine(members[0].device),
        "seconds": round(seconds, 1),
        "parameters": sum(run.about["parameters"] for run in members),
        "valid": {"facts": chosen.facts, "mrr": chosen.mrr, "members": chosen.alone},
    }
    files.begin(out, config, graph, None)
    for number, run in enumerate(members, 1):
        _copy(run, out / files.MEMBERS / str(number))
    write_json(out / files.ABOUT, about)
    save_tensors(out / files.MODEL, {}, {"config": files.fingerprint(config)})


def _check(members: Sequence[Run]) -> None:
    """What is wrong is said before the work."""
    if len(members) < 2:
        raise UsageError("a combination needs at least two runs")
    first, *others = members
    places = [run.path.resolve() for run in members]
    for run, place in zip(members, places, strict=True):
        if places.count(place) > 1:
            raise UsageError(f"{run.path}: this run is given more than once")
        if not run.own_facts:
            raise UsageError(f"{run.path}: is asked over other facts; combine the run itself")
    for run in others:
        mine, yours = first.config["data"], run.config["data"]
        if mine["sha256"] != yours["sha256"]:
            how = files.differences({"data": mine}, {"data": yours})
            raise UsageError(
                f"{first.path} and {run.path} cannot be combined: their facts differ ({how}); read"
                " the data the same way for both"
            )
    if not len(first.graph.valid):
        raise UsageError(f"{first.path}: valid has no facts to choose weights on")


def _copy(run: Run, folder: Path) -> None:
    """The files of a run, and of its members if it has any."""
    folder.mkdir(parents=True)
    for path in run.path.iterdir():
        # Another process in that folder may hold a lock and write beside.
        if path.is_file() and path.name != LOCK and not path.name.startswith("."):
            shutil.copyfile(path, folder / path.name)
    for number, member in enumerate(run.members, 1):
        _copy(member, folder / files.MEMBERS / str(number))


class ChosenWeights(NamedTuple):
    """Weights that add up to 1, and what they were chosen by."""

    weights: list[float]
    mrr: float
    """On valid, by protocol fact with its exact filter."""
    alone: list[float]
    """That of each member."""
    facts: int
    """How many of valid were used."""


def choose_weights(members: Sequence[Scoring], progress: Progress = silent) -> ChosenWeights:
    """The weights that give the best MRR on valid, by a search along one weight after the other.

    The best member has 1 and the others begin with 0, so that no combination is worse than it; the
    search ends where no single change helps. Members are asked once.
    """
    graph = members[0].graph
    facts, most = graph.valid, _MOST // (2 * len(members) * max(1, len(graph.entities)))
    if len(facts) > most:
        drawn = np.random.default_rng(0).choice(len(facts), max(1, most), replace=False)
        facts = facts.take(np.sort(drawn))
    mrr = _measure(members, facts, progress)
    alone = [mrr(np.eye(len(members))[at].tolist()) for at in range(len(members))]
    order = sorted(range(len(members)), key=lambda at: -alone[at])
    best, weights = alone[order[0]], [float(at == order[0]) for at in range(len(members))]
    before = -1.0
    while best > before:
        before = best
        for at in order[1:]:
            for weight in WEIGHTS:
                changed = [*weights[:at], weight, *weights[at + 1 :]]
                if changed != weights and (value := mrr(changed)) > best:
                    best, weights = value, changed
    whole = sum(weights)
    return ChosenWeights([weight / whole for weight in weights], best, alone, len(facts))


def _measure(
    members: Sequence[Scoring], facts: Facts, progress: Progress
) -> Callable[[Sequence[float]], float]:
    """How weights become the MRR of some facts; the members are scored here."""
    graph = members[0].graph
    every, count, device = graph.facts(), len(facts), members[0].device
    block = max(1, _COMPARED // max(1, len(graph.entities)))
    asked, tried = [], itertools.count(1)
    for kind in SIDES:
        queries, known = (keyed(kind, part, graph) for part in (facts, every))
        scores = [log_probabilities(member, kind, facts).to(device) for member in members]
        asked.append((scores, queries.id, AnswerFilter(known, queries)))

    def measure(weights: Sequence[float]) -> float:
        progress("weights", next(tried))
        one = np.ones(count, np.int64)
        sides = [
            Side(_Weighted(np.arange(count), one, one, block, scores, weights), target, known)
            for scores, target, known in asked
        ]
        ranks = rank_sides(sides, len(TIMED), "mean", silent)
        return float((1 / ranks[TIMED.index("exact")]).mean())

    return measure


@dataclass(eq=False)
class _Weighted(Queries):
    members: Sequence[torch.Tensor]
    """The log-probabilities that each member gives."""
    weights: Sequence[float]

    def score(self, start: int, stop: int) -> torch.Tensor:
        """The weighted sum for the queries from one number up to another."""
        used = [pair for pair in zip(self.members, self.weights, strict=True) if pair[1]]
        (first, factor), *others = used
        total = factor * first[start:stop]
        for scores, weight in others:
            total.add_(scores[start:stop], alpha=weight)
        return total
