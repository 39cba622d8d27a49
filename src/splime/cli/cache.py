"""What is kept of files that were asked without training: `splime cache`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from rich.table import Table
from typer import Option

from splime.cli import options
from splime.cli.console import show, show_json


def cache(
    clear: Annotated[bool, Option("--clear", help="Remove all that is kept.")] = False,
    on: Annotated[
        bool | None,
        Option("--on/--off", help="Keep files from now on, or no more.", show_default=False),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """List what is kept of files that were asked without training, so that they need not be read
    and counted again.

    Each is known by its content, and what was used least recently goes first. SPLIME_NO_CACHE=1
    switches it off for one command.

    Example: splime cache --clear
    """
    from splime.io.cache import MOST
    from splime.runs.keeping import kept_graphs

    graphs = kept_graphs()
    if on is not None:
        graphs.switch(on)
    if clear:
        graphs.clear()
    kept = graphs.kept()
    entries: list[dict[str, Any]] = [
        {
            "source": one.source,
            "facts": one.facts,
            "bytes": one.bytes,
            "used": datetime.fromtimestamp(one.used).astimezone().isoformat(" ", "seconds"),
        }
        for one in kept
    ]
    size = sum(one.bytes for one in kept)
    about = {"folder": str(graphs.folder), "on": not graphs.is_off, "bytes": size, "most": MOST}
    if as_json:
        show_json({**about, "entries": entries})
        return
    table = Table("source", "facts", "MB", "last used", box=None, pad_edge=False)
    for one in entries:
        table.add_row(
            one["source"], f"{one['facts']:,}", f"{one['bytes'] / 1e6:,.2f}", one["used"][:19]
        )
    show(
        *[table] * bool(entries),
        f"{size / 1e6:,.1f} of {MOST / 1e6:,.0f} MB in {graphs.folder}",
        *["off: nothing is kept or looked up; splime cache --on"] * graphs.is_off,
    )
