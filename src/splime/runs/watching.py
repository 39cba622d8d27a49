"""Callbacks of a training, such as experiment trackers."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from splime.errors import SplimeError, check_name
from splime.runs.folder import Config, Epoch


class Watch(Protocol):
    """Callbacks of a training."""

    def step(self, epoch: int, epochs: int, step: int, steps: int, loss: float) -> None:
        """After some steps."""

    def epoch(self, epoch: Epoch, best: bool) -> None:
        """After every epoch."""

    def stop(self) -> bool:
        """Whether to stop after this step."""


class Tracker(ABC):
    """Tells a tracker of experiments of a training: settings, each epoch, metrics at the end.

    A tracker that fails later on, as a server may, is ignored: the training continues.
    """

    package: ClassVar[str]
    """What to import."""
    install: ClassVar[str]
    """What to install."""

    def __init__(self) -> None:
        try:
            self._module = import_module(self.package)
        except ImportError as error:
            raise SplimeError(
                f"this tracker needs {self.install} ({error}); install it with:"
                f" pip install {self.install}"
            ) from None
        self._open = False

    @abstractmethod
    def _begin(self, folder: Path, config: Config) -> None: ...

    @abstractmethod
    def _write(self, values: Mapping[str, float], epoch: int) -> None: ...

    @abstractmethod
    def _end(self, failed: bool) -> None: ...

    def begin(self, folder: Path, config: Config, history: Sequence[Epoch]) -> None:
        """Before the first step; a training that resumes also logs the epochs before it."""
        try:
            self._begin(folder, config)
        except Exception as error:  # whatever the package raises
            raise SplimeError(f"{self.install} cannot begin: {_first_line(error)}") from None
        self._open, self._epoch = True, 0
        for epoch in history:
            self.epoch(epoch)

    def epoch(self, epoch: Epoch) -> None:
        """Write the loss, and the MRR on valid if it was measured."""
        self._epoch = epoch.epoch
        valid = {} if epoch.valid is None else {"valid/mrr": epoch.valid}
        self.metrics({"loss": epoch.loss, **valid})

    def metrics(self, values: Mapping[str, float]) -> None:
        """Write numbers, unless the training was finished before."""
        self._try(self._write, values, getattr(self, "_epoch", 0))

    def _try(self, function: Callable[..., None], *arguments: Any) -> None:
        if self._open:
            try:
                function(*arguments)
            except Exception as error:
                self._open = False
                warnings.warn(f"{self.install} stopped logging: {_first_line(error)}", stacklevel=3)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: object, __: object) -> None:
        self._try(self._end, error is not None)
        self._open = False


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _flat(config: Config) -> dict[str, Any]:
    """All that decides a run, by names such as settings.dimension."""
    return {
        f"{title}.{name}": value
        for title, table in config.items()
        for name, value in table.items()
        if name != "sha256"
    }


class TensorBoard(Tracker):
    """Event files in the folder `tensorboard` of the run."""

    package, install = "torch.utils.tensorboard", "tensorboard"

    def _begin(self, folder: Path, config: Config) -> None:
        # What an interrupted training wrote is written again: its epochs are logged from the first.
        place = str(folder / "tensorboard")
        self._writer = self._module.SummaryWriter(place, purge_step=0)
        rows = [f"| {name} | {value} |" for name, value in _flat(config).items()]
        self._writer.add_text("settings", "\n".join(["| name | value |", "|---|---|", *rows]), 0)

    def _write(self, values: Mapping[str, float], epoch: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, epoch)

    def _end(self, failed: bool) -> None:
        self._writer.close()


class MLflow(Tracker):
    """A run of MLflow where its own settings (MLFLOW_TRACKING_URI) say."""

    package = install = "mlflow"

    def _begin(self, folder: Path, config: Config) -> None:
        # Nested: the caller may have begun a run already.
        self._module.start_run(run_name=folder.name, nested=True)
        self._module.log_params(_flat(config))

    def _write(self, values: Mapping[str, float], epoch: int) -> None:
        self._module.log_metrics(dict(values), step=epoch)

    def _end(self, failed: bool) -> None:
        self._module.end_run("FAILED" if failed else "FINISHED")


class WandB(Tracker):
    """A run of Weights & Biases where its own settings (WANDB_MODE, WANDB_PROJECT) say."""

    package = install = "wandb"

    def _begin(self, folder: Path, config: Config) -> None:
        self._run = self._module.init(name=folder.name, config=config, reinit="create_new")

    def _write(self, values: Mapping[str, float], epoch: int) -> None:
        self._run.log({**values, "epoch": epoch})

    def _end(self, failed: bool) -> None:
        self._run.finish(exit_code=int(failed))


TRACKERS: Mapping[str, type[Tracker]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WandB,
}
"""One line here makes a tracker known everywhere."""


def tracking(log: str | Tracker | None) -> AbstractContextManager[Tracker | None]:
    """The tracker of a name, which is closed at the end; one that is open already stays open."""
    if not isinstance(log, str):
        return nullcontext(log)
    check_name("tracker", log, TRACKERS)
    return TRACKERS[log]()
