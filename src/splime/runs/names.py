"""What to call runs where several are shown together."""

from __future__ import annotations

from collections.abc import Sequence

from splime.errors import UsageError
from splime.runs.run import Run


def run_names(runs: Sequence[Run]) -> list[str]:
    """The folders of runs, with as many folders above them as tell them all apart."""
    paths = [run.path.resolve() for run in runs]
    for path in paths:
        if paths.count(path) > 1:
            raise UsageError(f"{path}: this run is given more than once")
    length = 1
    while len({path.parts[-length:] for path in paths}) < len(paths):
        length += 1
    return ["/".join(path.parts[-length:]) for path in paths]
