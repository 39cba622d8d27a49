"""The program `splime`."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Annotated

import typer

import splime
from splime import collective
from splime.cli.ask import ask, explore
from splime.cli.console import Messages, say, warn
from splime.cli.data import cache, datasets, inspect, methods, transform
from splime.cli.finding import backtest, doubts, predict, rules
from splime.cli.help import Command, Group
from splime.cli.results import combine, compare, embeddings, evaluate, plot, report, reproduce
from splime.cli.serve import serve
from splime.cli.training import models, run, train, tune, update
from splime.errors import SplimeError, not_installed, speaking_of_flags
from splime.progress import SIGNALS
from splime.reading import LOG

_COMMANDS: Mapping[str, tuple[Callable[..., None], ...]] = {
    "Start": (inspect, run, explore),
    "Data": (transform, methods, cache),
    "Ask": (ask, predict, doubts, rules, backtest, serve),
    "Train": (train, models, tune, update, combine),
    "Results": (evaluate, compare, report, plot),
}

app = typer.Typer(
    name="splime",
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # lines of a docstring become paragraphs
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Predict who, what and when in dated facts, and see why.\n\nTry it: splime ask demo"
    ' "Sara Finnby" livesIn "?" --at 1982 --why\n\nYour own table: splime inspect facts.csv',
    epilog="Exit codes: 0 fine, 1 error, 2 wrong arguments, 3 bad data, 4 download failed,"
    " 130 interrupted, 143 terminated.",
)


for panel, commands in _COMMANDS.items():
    for command in commands:
        app.command(cls=Command, rich_help_panel=panel)(command)
app.command(hidden=True, context_settings={"ignore_unknown_options": True})(reproduce)
app.add_typer(datasets, name="datasets", rich_help_panel="Data")
app.add_typer(embeddings, name="embeddings", rich_help_panel="Results")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"splime {splime.__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
) -> None:
    """Options of the program as a whole."""
    context.with_resource(speaking_of_flags())
    global _debug  # set once, read by main() below
    _debug = debug
    LOG.handlers = [Messages()]
    LOG.setLevel("DEBUG")


_debug = False


class _Stop(KeyboardInterrupt):
    """A signal. Python notes a plain KeyboardInterrupt that leaves code made from text, such as a
    dataclass, and would end by SIGINT at last, whatever the exit code."""


def main(program: typer.Typer = app) -> None:
    """Run a program; errors and signals become one readable message and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # never a silent question mark
    collective.silence_other_ranks()
    received: list[int] = []

    def interrupt(number: int, _: object) -> None:
        received.append(number)
        raise _Stop  # so that what is half-written gets removed on the way

    # A shell may have asked to ignore them, as for work in the background.
    heard = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heard}
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: warn(f"note: {message}")
            code = _run(program)
            if not code:
                collective.leave()
    except BaseException:  # a library may have made something else of the interruption
        if not received:
            raise
        code = 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        say(SIGNALS[signal.Signals(received[-1])])
        code = 128 + received[-1]
    lost = _flush()
    sys.exit(code or lost)


def _run(program: typer.Typer) -> int:
    """Run the command, and say what went wrong; the exit code."""
    try:
        program()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except SplimeError as error:
        return _fail(error, error.exit_code)
    except BrokenPipeError:
        return 1  # the reader (`| head`) has gone; nothing more can be written to it
    except OSError as error:
        return _fail(error, 1)
    except ImportError as error:
        return _fail(not_installed("this", error), 1)
    return 0


def _fail(error: Exception, code: int) -> int:
    if not collective.should_report_error():
        return code
    if code in (128 + number for number in SIGNALS):
        say(str(error))
    elif _debug:
        raise error
    else:
        say(f"error: {error}", fg=typer.colors.RED)
    return code


def _flush() -> int:
    """Write what is left to write; where that fails, the exit code, once it was said why."""
    code = 0
    for stream, name in ((sys.stdout, "standard output"), (sys.stderr, "standard error")):
        try:
            stream.flush()
        except OSError as error:
            code = 1
            # Python would fail at it again, with a traceback.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if not isinstance(error, BrokenPipeError):
                say(f"error: {name}: {error.strerror or error}", fg=typer.colors.RED)
    return code
