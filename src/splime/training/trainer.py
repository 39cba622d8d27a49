"""The loop: batches, gradients, steps. Knows neither files nor which model it trains."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from splime import collective
from splime.axes import Axis, Range
from splime.device import matrix_precision
from splime.embedding.making import fill_parameters, parameters_of
from splime.embedding.models.base import Model
from splime.embedding.negatives import seed_of
from splime.embedding.objective import Objective
from splime.embedding.scorer import ModelScorer
from splime.errors import SplimeError, UsageError
from splime.scoring.scoped import ScopedScoring
from splime.scoring.scoping import Scoping
from splime.scoring.scorer import Ids
from splime.settings import Settings, SteppedSettings
from splime.static import Triples
from splime.training.engines import EpochEnd, Events, Learner, TrainingStep

# Negatives are drawn for as many steps at once as this many numbers suffice for.
_DRAWN = 1 << 24
_OPTIMIZER = "optimizer."
# Compiling takes a GPU about half a minute, and saves a millisecond or two in each step.
_WORTH_COMPILING = 20_000


class Loop(Learner):
    """Steps and epochs, from any step on.

    What is random follows from the seed, the epoch and the step alone, so a training that resumes
    ends as if it had never stopped.
    """

    model: nn.Module
    examples: Tensor
    """What an epoch goes through, a row for each."""
    optimizer: torch.optim.Optimizer

    def __init__(self, settings: SteppedSettings, device: torch.device, count: int) -> None:
        self.settings, self.device = settings, device
        self.steps = math.ceil(count / settings.batch_size)
        """Steps of an epoch."""
        if count // self.steps < collective.size():
            raise UsageError(
                f"batches of {count // self.steps:,} cannot be divided over"
                f" {collective.size():,} workers: raise batch_size, or take fewer workers"
            )
        if settings.steps is None:
            self.epochs = settings.epochs
        else:
            self.epochs = math.ceil(settings.steps / self.steps)
            self.most_steps = settings.steps
        self.epoch, self.step = 0, 0
        self._loss = torch.zeros((), dtype=torch.float64, device=device)
        self.recordings: dict[int, Any] = {}  # of a step, on a GPU, by the size of the batch
        self.warm: Counter[int] = Counter()  # steps taken, by the size of the batch

    @abstractmethod
    def shuffled(self) -> Tensor:
        """The examples in the order of this epoch."""

    @abstractmethod
    def take_step(self, examples: Tensor, drawn: Tensor | None) -> None:
        """One step of the optimizer."""

    @property
    def steps_are_alike(self) -> bool:
        """Whether each step does the same with as many rows, and can be recorded on a GPU."""
        return True

    def steps_at_once(self) -> int:
        """For how many steps negatives are drawn together."""
        return self.steps

    def draw(self, first: int, steps: int) -> Tensor | None:
        """The negatives of some steps, if there are any."""
        return None

    def last_step(self) -> int:
        """How many steps this epoch has: fewer where the settings limit the steps in all."""
        if self.settings.steps is None:
            return self.steps
        return min(self.steps, self.settings.steps - self.epoch * self.steps)

    def start(self, step: int) -> int:
        """Where the batch of a step begins: the first ones have one example more."""
        size, more = divmod(len(self.examples), self.steps)
        return step * size + min(step, more)

    def train(self) -> Events:
        """Train to the end, from where it is."""
        with self.at_work():
            while self.epoch < self.epochs:
                yield EpochEnd((yield from self.epoch_steps()))

    def at_work(self) -> AbstractContextManager[None]:
        """What holds while it is trained."""
        return matrix_precision(self.settings.precision)

    def epoch_steps(self) -> Generator[TrainingStep, None, float]:
        """Train to the end of the epoch, and return its mean loss."""
        shuffled = self.shuffled()
        at_once = self.steps_at_once()
        while self.step < self.last_step():
            first = self.step // at_once * at_once
            drawn = self.draw(first, min(at_once, self.steps - first))
            for loss in self._run(shuffled, drawn, first):
                yield TrainingStep(self.step, self.steps, loss)
        self.check_loss()
        self._check_tables()
        mean = self.mean_loss()
        self.epoch, self.step = self.epoch + 1, 0
        self._loss.zero_()
        return mean

    def run_epoch(self) -> float:
        """Train to the end of the epoch; its mean loss."""
        return next(event.loss for event in self.train() if isinstance(event, EpochEnd))

    def _run(self, shuffled: Tensor, drawn: Tensor | None, first: int) -> Iterator[float]:
        """Work off the steps that negatives were drawn for; yields the mean loss now and then."""
        last = min(first + self.steps_at_once(), self.last_step())
        if self.device.type == "cuda":
            from splime.training.cuda import run_steps

            yield from run_steps(self, shuffled, drawn, first, last)
            return
        while self.step < last:
            batch = shuffled[self.start(self.step) : self.start(self.step + 1)]
            self.take_step(batch, None if drawn is None else drawn[self.step - first])
            self.check_loss()
            yield self.mean_loss()

    def mean_loss(self) -> float:
        """The mean loss of the steps of this epoch so far."""
        return float(self._loss) / max(1, self.step)

    def check_loss(self) -> None:
        """An error where the loss is no longer a number."""
        if not math.isfinite(float(self._loss)):
            raise self._diverged("the loss is no longer a number in")

    def _check_tables(self) -> None:
        """A last step too far shows in the parameters before it shows in a loss."""
        for name, table in self.parameters().items():
            # The least and the largest suffice, and need no memory.
            if table.numel() and not bool(torch.isfinite(torch.stack(table.aminmax())).all()):
                raise self._diverged(f"the parameters {name} are no longer numbers after")

    def _diverged(self, what: str) -> SplimeError:
        return SplimeError(
            f"{what} epoch {self.epoch + 1}: training diverged. Lower learning_rate (it is"
            f" {self.settings.learning_rate:g}); what was saved before is still good"
        )

    def parameters(self) -> dict[str, Tensor]:
        """The parameters of the model, by their names in files."""
        return {name: table.detach() for name, table in parameters_of(self.model).items()}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that is needed to resume from here: tensors, and numbers."""
        self.check_loss()  # what diverged is never saved
        tensors = self.parameters()
        for name, table in parameters_of(self.model).items():
            for key, value in self.optimizer.state.get(table, {}).items():
                if isinstance(value, Tensor):
                    tensors[f"{_OPTIMIZER}{name}.{key}"] = value
        return tensors, {"epoch": self.epoch, "step": self.step, "loss": float(self._loss)}

    def restore(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Resume from a state."""
        own = {name: t for name, t in tensors.items() if not name.startswith(_OPTIMIZER)}
        fill_parameters(self.model, own)
        tables = parameters_of(self.model)
        for full_name, value in tensors.items():
            if full_name not in own:
                name, _, key = full_name.removeprefix(_OPTIMIZER).rpartition(".")
                state = self.optimizer.state[tables[name]]
                # Optimizers know where they keep what they have, such as Adagrad its steps.
                device = state[key].device if key in state else tables[name].device
                state[key] = value.clone().to(device)
        self.epoch, self.step = int(numbers["epoch"]), int(numbers["step"])
        self._loss.fill_(float(numbers["loss"]))


class Trainer(Loop):
    """Trains a model on triples; the order of the triples and the negatives are random."""

    settings: Settings
    model: Model

    def __init__(
        self, model: Model, triples: Triples, settings: Settings, scoping: Scoping | None = None
    ) -> None:
        self.model, self.scoping = model, scoping
        self.triples = torch.from_numpy(triples.array().astype(np.int64)).to(model.device)
        self.objective = Objective(model, settings, self.triples)
        self._draws: Draws | None = None
        if settings.each == "fact":
            self._draws = Draws(self.triples, triples.fact, triples.overlap)
        count = len(self.triples if self._draws is None else self._draws)
        check_batch(settings.batch_size, count, settings.each)
        super().__init__(settings, model.device, count)
        moves = model.time_of is not None and self.objective.sampled
        long = self.epochs * self.steps > _WORTH_COMPILING
        if moves and long and model.device.type == "cuda":
            self.objective.compile()
        self.optimizer = make_optimizer(model, settings)
        self._generator = torch.Generator(self.device)
        self._prepare()
        self.batch = math.ceil(len(self.examples) / self.steps)
        """Examples of a step; of the last ones perhaps one less, so that all weigh the same."""
        self.about = sizes(model, len(self.triples))

    @property
    def steps_are_alike(self) -> bool:
        """Not where entities move in time and all of them are compared with."""
        model = self.model
        return model.gadget is None and (self.objective.sampled or model.time_of is None)

    def take_step(self, examples: Tensor, drawn: Tensor | None) -> None:
        """One step of the optimizer."""
        if drawn is not None and drawn.dim() == 2:
            drawn = drawn[: len(examples)]
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.objective.backward(examples, drawn)
        self._loss += all_reduce_gradients(self.model.parameters(), loss)
        self.objective.steps_taken += 1
        self.optimizer.step()
        with torch.no_grad():
            self.model.constrain(self.settings)
        self.step += 1

    def _prepare(self) -> None:
        """The examples of this epoch."""
        triples = self.triples
        if self._draws is not None:
            # Neither the seed of the order (no third number) nor of a step (from 1 on).
            self._generator.manual_seed(seed_of(self.settings.seed, self.epoch, 0, 1))
            triples = self._draws.draw(self._generator)
        self.examples = self.objective.examples(triples)

    def shuffled(self) -> Tensor:
        """The examples of this epoch in their order."""
        with torch.no_grad():
            if self.model.begin_epoch(self.epoch, self.epochs):
                for state in self.optimizer.state.values():
                    for tensor in state.values():
                        tensor.zero_()  # in place, for a recorded step
        self.objective.steps_taken.fill_(self.epoch * self.steps + self.step)
        if self._draws is not None:
            self._prepare()
        self._generator.manual_seed(seed_of(self.settings.seed, self.epoch))
        if self.objective.sampled:
            return self.examples[self._shuffle(len(self.examples))]
        # Queries change places, and what answers the same one stays together.
        number = self.objective.query_numbers(self.examples[:, 0], self.examples[:, 1])
        groups = torch.unique_consecutive(number, return_inverse=True)[1]
        return self.examples[self._shuffle(int(groups[-1]) + 1)[groups].argsort(stable=True)]

    def _shuffle(self, count: int) -> Tensor:
        return torch.randperm(count, generator=self._generator, device=self.device)

    def steps_at_once(self) -> int:
        """For how many steps negatives are drawn together."""
        positives = 1 if self.objective.negatives.shared else self.batch
        return max(1, _DRAWN // (positives * self.settings.negatives))

    def draw(self, first: int, steps: int) -> Tensor | None:
        """The negatives of some steps, if the loss samples them."""
        if not self.objective.sampled:
            return None
        self._generator.manual_seed(seed_of(self.settings.seed, self.epoch, first + 1))
        return self.objective.negatives.draw(steps, self.batch, self._generator)

    def scoring(self) -> ScopedScoring:
        """The scores of the model as it is now."""
        assert self.scoping is not None, "a training that is validated has cuts"
        scorer = ModelScorer(self.model, self.settings)
        return ScopedScoring(scorer, self.scoping)


def sizes(model: nn.Module, triples: int) -> dict[str, Any]:
    """The numbers of parameters and of triples, which are remembered with a run."""
    return {"parameters": sum(each.numel() for each in model.parameters()), "triples": triples}


def all_reduce_gradients(parameters: Iterable[Tensor], loss: Tensor) -> Tensor:
    """Add the gradients of all workers' shares of a batch, and their losses.

    All that is dense goes into one message. It also says which parameters have a gradient
    anywhere: optimizers leave the others alone.
    """
    if collective.size() == 1:
        return loss
    dense = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            collective.all_reduce(parameter.grad)
        elif parameter.requires_grad:
            dense.append(parameter)
    has_gradient = loss.new_tensor([parameter.grad is not None for parameter in dense])
    gradients = [torch.zeros_like(x) if x.grad is None else x.grad for x in dense]
    message = [loss.view(1), has_gradient, *(gradient.reshape(-1) for gradient in gradients)]
    sizes = [len(part) for part in message]
    total, count, *parts = collective.all_reduce(torch.cat(message)).split(sizes)
    for parameter, ranks, part in zip(dense, count.tolist(), parts, strict=True):
        parameter.grad = part.view_as(parameter) if ranks else None
    summed: Tensor = total.squeeze(0)
    return summed


class Draws:
    """Triples that came from facts, of which an epoch takes one for each fact.

    A fact that was cut into many scopes would count as often otherwise; so it counts once, whatever
    its length, as it does in protocol `fact`. Its triples are drawn by their weight, the number of
    timestamps at which the fact holds in the scope: that draws a timestamp of the fact.
    """

    def __init__(self, triples: Tensor, fact: Ids, weight: Ids) -> None:
        if (np.diff(fact) < 0).any():
            raise ValueError("triples must stand in the order of their facts")
        self.triples = triples
        upto = np.cumsum(weight, dtype=np.int64)
        first = np.flatnonzero(np.diff(fact, prepend=-1))
        before = np.append(0, upto)[first]
        self._upto = torch.from_numpy(upto).to(triples.device)
        self._before = torch.from_numpy(before).to(triples.device)
        self._whole = torch.from_numpy(np.diff(np.append(before, upto[-1:]))).to(triples.device)

    def __len__(self) -> int:
        return len(self._before)

    def draw(self, generator: torch.Generator) -> Tensor:
        """A triple for each fact.

        >>> triples = torch.tensor([[0, 0, 1], [0, 1, 1], [2, 0, 3]])
        >>> draws = Draws(triples, np.array([0, 0, 1]), np.array([1, 0, 5]))
        >>> draws.draw(torch.Generator().manual_seed(0)).tolist()
        [[0, 0, 1], [2, 0, 3]]
        """
        device = self.triples.device
        share = torch.rand(len(self), generator=generator, device=device, dtype=torch.float64)
        within = (share * self._whole).long().minimum(self._whole - 1)
        return self.triples[torch.searchsorted(self._upto, self._before + within, right=True)]


def check_batch(batch_size: int, count: int, unit: str = "triple") -> None:
    """An error if there are not enough triples (or facts) for a batch."""
    if count < batch_size:
        raise UsageError(
            f"a batch of {batch_size:,} is larger than train, which has {count:,} {unit}s; lower"
            " batch_size"
        )


LEARNING_RATES: Mapping[str, Axis] = {
    "adam": Range(0.0001, 0.01, log=True),
    "adagrad": Range(0.01, 1.0, log=True),
    "sgd": Range(0.01, 1.0, log=True),
}
"""What `splime tune` tries for each optimizer."""


def make_optimizer(model: Model, settings: Settings) -> torch.optim.Optimizer:
    """The optimizer of a training; its steps can be recorded on a GPU."""
    tables: list[Tensor] = list(model.parameters())
    rate = settings.learning_rate
    if settings.optimizer == "sgd":
        return torch.optim.SGD(tables, lr=rate)
    if settings.optimizer == "adam":
        return torch.optim.Adam(tables, lr=rate, fused=True, capturable=tables[0].is_cuda)
    # It counts steps on the processor, which a recording does not repeat: only a decay of the
    # learning rate, which there is none of, would need the count.
    return torch.optim.Adagrad(tables, lr=rate)
