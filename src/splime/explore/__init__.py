"""A page in the browser where a person asks runs and looks at them; also without a server.

`splime.explore` is a public function, and has the name of this package. So the package is called as
that function.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, overload

from splime.errors import UsageError, checked
from splime.explore.looking import Explorer
from splime.explore.page import write_explorer
from splime.explore.server import Server
from splime.progress import Progress, silent
from splime.runs import Run


@overload
def explore(
    runs: Run | str | Path | Iterable[Run | str | Path],
    out: None = None,
    *,
    port: int | None = None,
    device: str = "auto",
    progress: Progress = silent,
) -> Server: ...
@overload
def explore(
    runs: Run | str | Path | Iterable[Run | str | Path],
    out: str | Path,
    *,
    port: None = None,
    device: str = "auto",
    progress: Progress = silent,
) -> Path: ...
@checked
def explore(
    runs: Run | str | Path | Iterable[Run | str | Path],
    out: str | Path | None = None,
    *,
    port: int | None = None,
    device: str = "auto",
    progress: Progress = silent,
) -> Server | Path:
    """Ask runs and look at them in the browser, on a page that only this machine can open.

    Args:
        runs: a run or its folder, or several on the same facts.
        out: an .html file; then the page is written to it, and needs no server.
        port: where the page is; by default 8765, or a free port if that is taken.
        device: where to compute, if runs are given by their folders.
        progress: is told how far it is before the page can be opened.

    Returns:
        The file, or the server, which answers in the background until its `stop` is called. Its
        `address` is what to open in the browser.
    """
    if out is not None and port is not None:
        raise UsageError("a page that is written to a file has no server; leave out port")
    several = [runs] if isinstance(runs, Run | str | Path) else [*runs]
    explorer = Explorer([Run.of(run, device=device) for run in several])
    if out is not None:
        write_explorer(explorer, out, progress=progress)
        return Path(out)
    explorer.prepare(progress)
    return Server(explorer, port).start()


class _Explore(ModuleType):
    """This package."""

    def __call__(
        self,
        runs: Any | Iterable[Any],
        out: Any = None,
        *,
        port: int | None = None,
        device: str = "auto",
        progress: Progress = silent,
    ) -> Server | Path:
        """Ask runs and look at them in the browser, on a page that only this machine can open."""
        made: Server | Path = explore(runs, out, port=port, device=device, progress=progress)
        return made


sys.modules[__name__].__class__ = _Explore

__all__ = ["Explorer", "Server", "explore", "write_explorer"]
