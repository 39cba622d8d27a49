"""A page in the browser where a person asks runs and looks at them; also without a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, overload

from splime.errors import UsageError
from splime.explorer.looking import Explorer
from splime.explorer.page import MEGABYTES, write_explorer
from splime.progress import Progress, silent
from splime.runs.run import Runs, open_runs

if TYPE_CHECKING:
    from splime.explorer.server import Server


@overload
def explore(
    runs: Runs,
    out: None = None,
    *,
    port: int | None = ...,
    doubts: str | Path | None = ...,
    backtest: str | Path | None = ...,
    device: str = ...,
    progress: Progress = ...,
) -> Server: ...
@overload
def explore(
    runs: Runs,
    out: str | Path,
    *,
    port: None = ...,
    megabytes: float = ...,
    doubts: str | Path | None = ...,
    backtest: str | Path | None = ...,
    device: str = ...,
    progress: Progress = ...,
) -> Path: ...
def explore(
    runs: Runs,
    out: str | Path | None = None,
    *,
    port: int | None = None,
    megabytes: float = MEGABYTES,
    doubts: str | Path | None = None,
    backtest: str | Path | None = None,
    device: str = "auto",
    progress: Progress = silent,
) -> Server | Path:
    """Ask runs and look at them in the browser, on a page that only this machine can open.

    Args:
        runs: a run, its folder, or a file that is asked without training; or several on the same
            facts.
        out: an .html file; then the page is written to it, and needs no server.
        port: where the page is; by default 8765, or a free port if that is taken.
        megabytes: how large the file may be; it says what was left out.
        doubts: a file that `splime.doubts` has written, whose facts are listed.
        backtest: a file that `splime.backtest` has written, which is drawn.
        device: where to compute, if runs are given by their folders.
        progress: reports the preparation of the page.

    Returns:
        The file, or the server, which answers in the background until its `stop` is called. Its
        `address` is what to open in the browser.

    For example `splime.explore("facts.csv").address`, or `splime.explore(run, "page.html")`.
    """
    if out is not None and port is not None:
        raise UsageError("a page that is written to a file has no server; leave out port")
    explorer = Explorer(open_runs(runs, device), doubts, backtest)
    if out is not None:
        write_explorer(explorer, out, megabytes=megabytes, progress=progress)
        return Path(out)
    from splime.explorer.server import Server

    explorer.prepare(progress)
    return Server(explorer, port).start()


__all__ = ["Explorer", "explore", "write_explorer"]
