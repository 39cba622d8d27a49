"""Write one page about runs; and the package of all that shows graphs and runs.

`splime.report` is a public function, and has the name of this package. So the package is called as
that function, which is in `splime.plans`.
"""

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from splime.errors import not_installed
from splime.progress import Progress, silent


class _Report(ModuleType):
    """This package."""

    def __call__(
        self,
        runs: Any | Iterable[Any],
        path: str | Path = "report.html",
        *,
        device: str = "auto",
        progress: Progress = silent,
    ) -> Path:
        """Write one page about runs, or those in folders; the file that it was written to."""
        try:
            plans = import_module("splime.plans")
        except ImportError as error:
            raise not_installed("splime.report", error) from None
        written: Path = plans.report(runs, path, device=device, progress=progress)
        return written


sys.modules[__name__].__class__ = _Report
