"""`splime reproduce`: says where the paper's tables are."""

from __future__ import annotations

import shlex
from typing import Annotated

from typer import Argument

from splime.errors import UsageError


def reproduce(
    arguments: Annotated[list[str] | None, Argument(metavar="[TABLE] [OPTIONS]")] = None,
) -> None:
    """The paper's tables are in a clone of the repository: python -m experiments TABLE."""
    command = shlex.join(["python", "-m", "experiments", *(arguments or ["--help"])])
    raise UsageError(
        "the paper's tables are not in the package; a clone of the repository makes them:"
        f" {command}"
    )
