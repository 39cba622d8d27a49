"""Steps on a GPU, recorded once and replayed: small kernels cost more to launch than to run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from splime import collective

if TYPE_CHECKING:
    from splime.training.trainer import Loop

# Steps of a size that are taken one by one before the recording, so that everything is set up.
_WARM_UP = 3
# Replays between two readings of the loss, which wait for the GPU.
_AT_ONCE = 256


def run_steps(
    trainer: Loop, shuffled: Tensor, drawn: Tensor | None, first: int, last: int
) -> Iterator[float]:
    """Take the steps from where the trainer is up to `last`; `drawn` begins with step `first`."""
    while trainer.step < last:
        start, stop = trainer.start(trainer.step), trainer.start(trainer.step + 1)
        size = stop - start
        # What workers tell each other is not recorded.
        alike = trainer.steps_are_alike and collective.size() == 1
        if trainer.warm[size] < _WARM_UP or not alike:
            negatives = None if drawn is None else drawn[trainer.step - first]
            with _aside():
                trainer.take_step(shuffled[start:stop], negatives)
            trainer.warm[size] += 1
        else:
            if size not in trainer.recordings:
                trainer.recordings[size] = _Recording(trainer, drawn, size)
            longer = len(trainer.examples) % trainer.steps  # steps with one example more
            border = longer if trainer.step < longer else trainer.steps
            steps = min(last, border, trainer.step + _AT_ONCE) - trainer.step
            trainer.recordings[size].replay(shuffled, drawn, start, trainer.step - first, steps)
            trainer.step += steps
        trainer.check_loss()
        yield trainer.mean_loss()


class _Recording:
    """One step as a CUDA graph; which step it is, the graph reads from counters on the GPU.

    What the graph reads must live as long as the graph, hence the attributes.
    """

    def __init__(self, trainer: Loop, drawn: Tensor | None, size: int) -> None:
        place: dict[str, Any] = {"dtype": torch.int64, "device": trainer.device}
        self.shuffled = torch.zeros_like(trainer.examples)
        self.drawn = None
        if drawn is not None:
            steps = min(trainer.steps_at_once(), trainer.steps)
            self.drawn = torch.zeros(steps, *drawn.shape[1:], **place)
        self.start, self.at = torch.zeros((), **place), torch.zeros(1, **place)
        self.within = torch.arange(size, **place)
        trainer.optimizer.zero_grad(set_to_none=True)
        step = trainer.step
        self.graph: Any = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            batch = self.shuffled.index_select(0, self.start + self.within)
            negatives = None
            if self.drawn is not None:
                negatives = self.drawn.index_select(0, self.at).squeeze(0)
            trainer.take_step(batch, negatives)
            self.start += size
            self.at += 1
        trainer.step = step  # recording takes no step

    def replay(
        self, shuffled: Tensor, drawn: Tensor | None, start: int, offset: int, steps: int
    ) -> None:
        """Take some steps: the first begins with example `start`, its negatives are at `offset`."""
        self.shuffled.copy_(shuffled)
        if self.drawn is not None and drawn is not None:
            self.drawn[: len(drawn)].copy_(drawn)
        self.start.fill_(start)
        self.at.fill_(offset)
        for _ in range(steps):
            self.graph.replay()


@contextmanager
def _aside() -> Iterator[None]:
    """Work on another stream, as warming up for a recording asks for."""
    stream: Any = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            yield
    finally:
        torch.cuda.current_stream().wait_stream(stream)
