"""`splime explore`: ask runs and look at them in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from splime.cli import options
from splime.cli.console import show
from splime.progress import progress_bar, working


def explore(
    runs: options.RunFolders,
    out: Annotated[
        Path | None,
        options.file(
            "Write a page that works without a server instead, with the answers to questions"
            " about up to 100 facts of test."
        ),
    ] = None,
    port: Annotated[
        int | None,
        options.option("N", "The port. Default: 8765, or a free one if it is taken."),
    ] = None,
    device: options.Device = "auto",
) -> None:
    """Ask runs and look at them in the browser, on a page that only this machine can open.

    Runs on the same facts are shown side by side. It ends with Ctrl-C. Example: splime explore
    runs/merge runs/vanilla
    """
    from splime.errors import UsageError
    from splime.explorer import Explorer, Server, write_explorer
    from splime.runs import Run

    if out is not None and port is not None:
        raise UsageError("--out writes a page without a server; leave out --port")
    with working("opening the runs …"):
        explorer = Explorer([Run(run, device=device) for run in runs])
    if out is not None:
        with progress_bar() as progress:
            write_explorer(explorer, out, progress=progress)
        show(f"written to {out}")
        return
    with progress_bar() as progress:
        explorer.prepare(progress)
    with Server(explorer, port) as server:
        show(f"open {server.address} in a browser; Ctrl-C ends it")
        server.serve_forever()
