"""The program `splime`."""

from __future__ import annotations

import io
import os
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

import splime
from splime.cli.ask import ask
from splime.cli.console import warn
from splime.cli.data import datasets, inspect, methods, transform
from splime.cli.reproduce import reproduce
from splime.cli.results import compare, embeddings, evaluate, plot, report
from splime.cli.training import models, run, train, tune
from splime.errors import SplimeError, not_installed

_COMMANDS = (
    *(run, inspect, transform, methods, train, models, evaluate, compare, tune, ask),
    *(plot, report, reproduce),
)
_INTERRUPTED = 130

app = typer.Typer(
    name="splime",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # lines of a docstring become paragraphs
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Temporal knowledge graphs: look at the data, find what leaks into the test, predict"
    " links at a time.",
    epilog="Exit codes: 0 fine, 1 error, 2 wrong arguments, 3 bad data, 4 download failed,"
    " 130 interrupted.",
)


class _Command(TyperCommand):
    """A command whose errors say how to give a name that looks like an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # "No such option"; the class has another place in every version of typer.
            if getattr(error, "possibilities", ...) in (None, []):
                error.message += "; a name that begins with - goes after all options and a --"  # type: ignore[attr-defined]
            raise


for command in _COMMANDS:
    app.command(cls=_Command)(command)
app.add_typer(embeddings, name="embeddings")
app.add_typer(datasets, name="datasets")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"splime {splime.__version__}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option(help="Show the traceback of errors.")] = False,
) -> None:
    """Options of the program as a whole."""
    global _debug  # set once, read by main() below
    _debug = debug


_debug = False


def main() -> None:
    """Run the program; errors become one readable message and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # never a silent question mark
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: warn(f"note: {message}")
            _run()
    except SplimeError as error:
        if error.exit_code == _INTERRUPTED:
            typer.echo(error, file=sys.stderr)
        elif _debug:
            raise
        else:
            # Not `err`, for which click would change the encoding of some terminals.
            typer.secho(f"error: {error}", fg=typer.colors.RED, file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader (`| head`) has gone; nothing more can be written to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _run() -> None:
    try:
        app()
    except ImportError as error:
        raise not_installed("this", error) from error
