"""The engine of the path model: questions about facts of train, answered from its other facts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from splime.arrays import changes, expand
from splime.axes import Axis, Range, Values
from splime.embedding.device import matrix_precision
from splime.embedding.negatives import seed_of
from splime.embedding.settings import Settings
from splime.errors import SplimeError, UsageError, check_name
from splime.graph import Facts, TemporalGraph
from splime.paths.evidence import Chain, evidence
from splime.paths.facts import DirectedFacts
from splime.paths.model import PathModel
from splime.paths.relative import KINDS, Kind as RelativeKind, RelativeScopes, Times
from splime.scoring.scoping import Kind, keyed
from splime.static import StaticGraph
from splime.times import Ints
from splime.training.engines import Supervisor, run_epochs
from splime.training.trainer import Advance, check_batch, optimizer_state, restore_optimizer

STRONG: Mapping[str, Any] = {
    "model": "path",
    "layers": 4,
    "dimension": 32,
    "dropout": 0.1,
    "relative": "auto",
    "learning_rate": 5e-3,
    "batch_size": 32,
    "epochs": 4,
    "validate_every": 1,
    "patience": 5,
}
"""The settings that have an effect, and their defaults."""
_ALSO = ("past", "unknown_scopes", "aggregation", "reach", "seed", "steps", "precision")
_WARM_UP, _LAST = 200, 0.05
"""Steps until the learning rate is reached, and the share of it that is left at the end."""
_LONGEST_GRADIENT = 1.0
_BLOCK = 256 << 20
"""Bytes that the states of entities may take while questions are scored."""


class PathEngine:
    """Trains the path model."""

    def make_settings(
        self,
        model: str | None,  # noqa: ARG002
        preset: str | None,
        **given: Any,
    ) -> Settings:
        """Those of the only preset, changed by what is given."""
        if preset not in (None, "strong"):
            raise UsageError(f"the path model has one preset, strong; not {preset!r}")
        for name in given:
            if name not in STRONG and name not in _ALSO:
                raise UsageError(f"{name} has no effect on the path model; leave it out")
        return self.read_settings({**STRONG, **given})

    def read_settings(self, values: Mapping[str, Any]) -> Settings:
        """All settings that have an effect are in the configuration."""
        settings = Settings.of(values)
        _relative(settings)
        return settings

    def values(self, settings: Settings) -> dict[str, Any]:
        """Those that have an effect."""
        values = settings.values()
        return {name: values[name] for name in (*STRONG, *_ALSO) if name in values}

    def fitted(self, settings: Settings, static: StaticGraph, given: Mapping[str, Any]) -> Settings:
        """The edges of the relative scopes; a batch is all of train where train is smaller."""
        if len(static.predicates) > len(static.predicates.names):
            raise UsageError(
                "the path model has scopes relative to the question, and no cuts: choose the method"
                " vanilla, or leave it out"
            )
        kind, edges = _relative(settings)
        if not edges and kind != "none":
            scopes = RelativeScopes.of(static.graph, kind)
            written = f"{scopes.kind}:{','.join(map(str, scopes.edges))}"
            settings = replace(settings, relative=written.rstrip(":"))
        if "batch_size" in given:
            return settings
        return replace(settings, batch_size=min(settings.batch_size, 2 * len(static.train)))

    def search_space(self, settings: Settings) -> dict[str, Axis]:  # noqa: ARG002
        """What `splime tune` tries."""
        return {
            "layers": Range(2, 6),
            "dimension": Values((16, 32, 64)),
            "dropout": Values((0.0, 0.1, 0.2)),
            "learning_rate": Range(0.001, 0.01, log=True),
        }

    def fit(self, static: StaticGraph, settings: Settings, supervisor: Supervisor) -> None:
        """Epoch by epoch to the end, from the last checkpoint if there is one."""
        with matrix_precision(settings.precision):
            trainer = PathTrainer(static.graph, settings, supervisor.device)
            parameters = sum(each.numel() for each in trainer.model.parameters())
            supervisor.begin(trainer, parameters=parameters, triples=len(static.train))
            run_epochs(trainer, supervisor)

    def open(
        self,
        static: StaticGraph,
        settings: Settings,
        tensors: Mapping[str, Tensor],
        device: torch.device,
    ) -> PathScorer:
        """The scores of a trained model."""
        model = make_path_model(static.graph, settings)
        try:
            model.load_state_dict(dict(tensors))
        except RuntimeError as error:
            raise ValueError(str(error)) from None
        return PathScorer(model.to(device), static.graph, settings)


def _relative(settings: Settings) -> tuple[RelativeKind | None, tuple[int, ...]]:
    """The kind and the edges that a setting gives; None and nothing are chosen from the facts.

    >>> _relative(Settings(relative="intervals:1,3,6")), _relative(Settings(relative="auto"))
    (('intervals', (1, 3, 6)), (None, ()))
    """
    kind, _, listed = (settings.relative or "auto").partition(":")
    check_name("kind of relative scopes", kind, ("auto", *KINDS))
    try:
        edges = tuple(int(edge) for edge in listed.split(",")) if listed else ()
    except ValueError:
        raise UsageError(
            "relative is auto, none, events or intervals, or one of the latter with the first"
            f" distance of each scope, such as events:1,2,4,8; not {settings.relative!r}"
        ) from None
    if edges and kind in ("auto", "none"):
        raise UsageError(f"distances belong to events or intervals, not to {kind!r}")
    return (None if kind == "auto" else cast(RelativeKind, kind)), edges


def relative_scopes(graph: TemporalGraph, settings: Settings) -> RelativeScopes:
    """The relative scopes of a run."""
    kind, edges = _relative(settings)
    return RelativeScopes(
        kind or "none",
        graph.timeline.granularity,
        edges,
        unknown=bool(settings.unknown_scopes),
        past=settings.past is not None,
    )


def make_path_model(graph: TemporalGraph, settings: Settings) -> PathModel:
    """An untrained model for the predicates of a graph."""
    return PathModel(
        len(graph.predicates),
        len(relative_scopes(graph, settings)),
        layers=STRONG["layers"] if settings.layers is None else settings.layers,
        width=settings.dimension,
        dropout=settings.dropout or 0.0,
        aggregation=settings.aggregation or "sum",
        reach=settings.reach,
        seed=settings.seed,
    )


class PathTrainer:
    """Asks for the object and the subject of each fact of train, from the other facts.

    What is random (the order of the questions and dropout) follows from the seed, the epoch and the
    step alone, so a training that resumes ends as if it had never stopped.
    """

    def __init__(self, graph: TemporalGraph, settings: Settings, device: torch.device) -> None:
        self.graph, self.settings, self.device = graph, settings, device
        train = graph.train
        self.model = make_path_model(graph, settings).to(device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=settings.learning_rate, weight_decay=0.0, fused=True
        )
        self.relative = relative_scopes(graph, settings)
        self.facts = DirectedFacts.of(train, len(graph.entities), len(graph.predicates)).to(device)
        self._times = Times.of(train).to(device)
        given = np.concatenate([train.subject, train.object])
        self._given, self._answer, self._predicate = (
            torch.from_numpy(column.astype(np.int64)).to(device)
            for column in (
                given,
                np.concatenate([train.object, train.subject]),
                np.concatenate([train.predicate, train.predicate + len(graph.predicates)]),
            )
        )
        self._others = _OtherAnswers(graph)
        check_batch(settings.batch_size, len(given), "question")
        self.steps = math.ceil(len(given) / settings.batch_size)
        """Steps of an epoch."""
        self.epoch, self.step = 0, 0
        self._loss = torch.zeros((), dtype=torch.float64, device=device)

    @property
    def epochs(self) -> int:
        """How many epochs the settings ask for."""
        if self.settings.steps is not None:
            return math.ceil(self.settings.steps / self.steps)
        return self.settings.epochs

    def _last_step(self) -> int:
        if self.settings.steps is None:
            return self.steps
        return min(self.steps, self.settings.steps - self.epoch * self.steps)

    def run_epoch(self, *, advance: Advance, stop: Callable[[], bool]) -> float | None:
        """Train to the end of the epoch. Its mean loss, or None if `stop` asked to stop before."""
        generator = torch.Generator().manual_seed(seed_of(self.settings.seed, self.epoch))
        order = torch.randperm(len(self._given), generator=generator)
        self.model.train()
        while self.step < self._last_step():
            rows = order[self.step :: self.steps]
            self._take_step(rows)
            if not math.isfinite(float(self._loss)):
                raise SplimeError(
                    f"the loss is no longer a number in epoch {self.epoch + 1}: training diverged."
                    f" Lower learning_rate (it is {self.settings.learning_rate:g}); what was saved"
                    " before is still good"
                )
            advance(self.step, self._mean_loss())
            if stop():
                return None
        mean = self._mean_loss()
        self.epoch, self.step = self.epoch + 1, 0
        self._loss.zero_()
        return mean

    def _take_step(self, rows: Tensor) -> None:
        """One step of the optimizer, on the questions with these numbers."""
        question, other = (
            torch.from_numpy(ids).to(self.device) for ids in self._others.of(rows.numpy())
        )
        rows = rows.to(self.device)
        fact = rows % len(self.graph.train)
        times = self._times.take(fact)
        scopes = self.facts.scopes(self.relative, times)
        # A fact must not answer itself; nothing that lies before a question does.
        weights = self.facts.weights(None if self.relative.past else fact)
        drawn = seed_of(self.settings.seed, self.epoch, self.step + 1) & 0x7FFFFFFF
        scores = self.model(
            self.facts,
            self._given[rows],
            self._predicate[rows],
            scopes,
            weights,
            times=times,
            seed=torch.tensor(drawn, device=self.device),
        )
        scores = scores.index_put((question, other), scores.new_tensor(-torch.inf))
        loss = torch.nn.functional.cross_entropy(scores, self._answer[rows])
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), _LONGEST_GRADIENT)
        self.optimizer.step()
        self._loss += loss.detach()
        self.step += 1

    def _learning_rate(self) -> float:
        """It rises for some steps, and falls as a cosine."""
        done, total = self.epoch * self.steps + self.step, self.settings.steps
        total = total or self.epochs * self.steps
        falling = (1 + math.cos(math.pi * done / total)) / 2
        rising = min(1.0, (done + 1) / min(_WARM_UP, total))
        return self.settings.learning_rate * rising * (falling * (1 - _LAST) + _LAST)

    def _mean_loss(self) -> float:
        return float(self._loss) / max(1, self.step)

    def parameters(self) -> dict[str, Tensor]:
        """The parameters of the model, by their names in files."""
        return {name: each.detach() for name, each in self.model.named_parameters()}

    def scorer(self) -> PathScorer:
        """The scores of the model as it is now."""
        return PathScorer(self.model, self.graph, self.settings)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that is needed to resume from here: tensors, and numbers."""
        tensors = optimizer_state(self.optimizer, dict(self.model.named_parameters()))
        numbers = {"epoch": self.epoch, "step": self.step, "loss": float(self._loss)}
        return {**self.parameters(), **tensors}, numbers

    def restore(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Resume from a state."""
        parameters = dict(self.model.named_parameters())
        self.model.load_state_dict({name: tensors[name] for name in parameters})
        restore_optimizer(self.optimizer, parameters, tensors)
        self.epoch, self.step = int(numbers["epoch"]), int(numbers["step"])
        self._loss.fill_(float(numbers["loss"]))


class _OtherAnswers:
    """The other answers to the questions of train that train states at the same time."""

    def __init__(self, graph: TemporalGraph) -> None:
        starts: list[Ints] = []
        counts: list[Ints] = []
        ids: list[Ints] = []
        kinds: tuple[Kind, ...] = ("object", "subject")
        for kind in kinds:
            facts = keyed(kind, graph.train, graph)
            order = np.lexsort((facts.end, facts.begin, facts.key))
            columns = [column[order] for column in (facts.key, facts.begin, facts.end)]
            new = np.flatnonzero(changes(*columns))
            size = np.diff(np.append(new, len(order)))
            start, count = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
            start[order], count[order] = np.repeat(new, size), np.repeat(size, size)
            starts.append(start + sum(len(each) for each in ids))
            counts.append(count)
            ids.append(facts.id[order])
        self._start, self._count, self._ids = map(np.concatenate, (starts, counts, ids))
        self._own = np.concatenate([graph.train.object, graph.train.subject])

    def of(self, rows: Ints) -> tuple[Ints, Ints]:
        """Positions among some questions, and answers that are not theirs."""
        question, at = expand(self._start[rows], self._count[rows])
        other = self._ids[at] != self._own[rows][question]
        return question[other], self._ids[at[other]]


class PathScorer:
    """Scores of all entities, from the facts that are given and the time that is asked about."""

    def __init__(self, model: PathModel, graph: TemporalGraph, settings: Settings) -> None:
        self.model, self.relative = model, relative_scopes(graph, settings)
        self.device = model.query.device
        self.known = graph.facts() if settings.past == "all" else graph.train
        """What questions are answered from."""
        entities, predicates = len(graph.entities), len(graph.predicates)
        self.read = DirectedFacts.of(self.known, entities, predicates).to(self.device)
        # A question needs the state of every entity, and while a layer is made a few of them; those
        # that are not in reach have one state, but then each question has facts of its own.
        rows, own = entities, 0
        if model.reach is not None and model.reach < len(self.known):
            rows, own = min(entities, model.reach + 1), model.reach
        needed = 16 * rows * model.width + 128 * own + 4 * entities
        self._block = max(1, min(256, _BLOCK // needed))

    def entities(self, kind: Kind, facts: Facts) -> Tensor:
        """A row for each fact: its object (or subject) is asked for, at its time."""
        given, inverse = (facts.subject, 0) if kind == "object" else (facts.object, 1)
        predicate = facts.predicate.astype(np.int64) + inverse * self.read.predicates
        times = Times.of(facts).to(self.device)
        was_training = self.model.training
        self.model.eval()
        scores = []
        for start in range(0, len(facts), self._block):
            some = slice(start, start + self._block)
            at = torch.arange(len(facts), device=self.device)[some]
            ids = (torch.from_numpy(x[some].astype(np.int64)) for x in (given, predicate))
            own = times.take(at)
            asked = (*(x.to(self.device) for x in ids), self.read.scopes(self.relative, own))
            with torch.inference_mode():
                scores.append(self.model(self.read, *asked, times=own))
        self.model.train(was_training)
        return torch.cat(scores)

    def why(self, kind: Kind, fact: Facts, *, most: int = 5) -> list[Chain]:
        """The chains of known facts that the object (or subject) of one fact rests on."""
        given, answer = int(fact.subject[0]), int(fact.object[0])
        predicate = int(fact.predicate[0])
        if kind == "subject":
            given, answer, predicate = answer, given, predicate + self.read.predicates
        times = Times.of(fact).to(self.device)
        scopes = self.read.scopes(self.relative, times)
        asked = (given, predicate, scopes, answer)
        return evidence(self.model, self.read, *asked, times=times, most=most)

    def facts(self, facts: Facts) -> Tensor:
        """How likely each fact is: the mean log-probability of its object and of its subject."""
        total = torch.zeros(len(facts), device=self.device)
        for start in range(0, len(facts), self._block):
            at = np.arange(start, min(start + self._block, len(facts)))
            some = facts.take(at)
            for kind, wanted in (("object", some.object), ("subject", some.subject)):
                scores = self.entities(cast(Kind, kind), some).log_softmax(1)
                answer = torch.from_numpy(wanted.astype(np.int64)).to(self.device)
                total[start : start + len(at)] += scores.gather(1, answer[:, None])[:, 0] / 2
        return total


engine = PathEngine()
