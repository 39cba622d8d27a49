"""Where the command line prints to."""

from __future__ import annotations

from rich.console import Console


def console() -> Console:
    """Standard output; wide enough for tables where no terminal says how wide it is."""
    found = Console(highlight=False, markup=False)
    return found if found.is_terminal else Console(highlight=False, markup=False, width=120)
