"""Options that several commands share, and those that are made from the fields of dataclasses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

from typer import Argument, Option

from splime import collective
from splime.embedding.settings import SETTINGS, Settings
from splime.errors import UsageError
from splime.io.options import SPLITTING, ReadOptions
from splime.methods import METHODS

if TYPE_CHECKING:
    from splime.graph import TemporalGraph
    from splime.runs import Run

Data = Annotated[
    str,
    Argument(
        metavar="DATA",
        help="The name of a dataset (see `splime datasets list`), a file (text or JSON, also .gz or"
        " .zst; .parquet) or a folder with such files called train, valid and test.",
    ),
]
RunFolder = Annotated[Path, Argument(metavar="RUN", help="The folder of a run.")]
RunFolders = Annotated[list[Path], Argument(metavar="RUN…", help="The folders of runs.")]
Model = Annotated[
    str | None, Option(help="The static model, see `splime models`. Default: complex.")
]
_TRAINS = "splime, or pykeen for any model that PyKEEN has."
_SPREADS = "processes of this machine, or ray for a Ray cluster."
Engine = Annotated[str, Option(help=_TRAINS)]
Engines = Annotated[
    list[str] | None,
    Option(
        "--engine",
        metavar="<splime|pykeen|processes|ray>",
        help=f"What trains: {_TRAINS} And what several trainings at once run on: {_SPREADS} May be"
        " given twice, once for each.",
    ),
]
_MANY = "Several trainings at once"
Spreader = Annotated[
    str | None,
    Option(
        "--engine",
        metavar="<processes|ray>",
        help=f"What they run on: {_SPREADS}",
        rich_help_panel=_MANY,
    ),
]
Processes = Annotated[
    int | None,
    Option(
        help="How many at once; on this machine they share the cores. Default: 1 (tune: 2), or with"
        " --engine processes or ray as many as there is room for.",
        rich_help_panel=_MANY,
    ),
]
Processors = Annotated[
    int | None,
    Option(
        help="With --engine ray: how many processors each needs. Default: 1.",
        rich_help_panel=_MANY,
    ),
]
Gpu = Annotated[
    float | None,
    Option(
        help="With --engine ray: how much of a GPU each needs, such as 0.25, if four fit on one."
        " Default: 1 if this machine computes on a GPU, else 0.",
        rich_help_panel=_MANY,
    ),
]
Workers = Annotated[
    int | None,
    Option(help="How many workers to have at once. Default: one for each processor."),
]
Address = Annotated[
    str | None,
    Option(
        metavar="HOST:PORT",
        help="The Ray cluster to join (--engine ray). Default: RAY_ADDRESS, or else a cluster of"
        " this machine alone is started.",
        show_default=False,
    ),
]
Device = Annotated[str, Option(help="Where to compute: auto, cpu or cuda.")]
Split = Annotated[str, Option(help="valid or test.")]
OtherFacts = Annotated[
    str | None,
    Option(
        "--facts",
        metavar="FILE",
        help="Answer from these facts too, beside those of train (a run of the path model): a file"
        " or folder as for `splime train`, with new facts and entities. A fact takes the place of"
        " those that state the same at overlapping times.",
        rich_help_panel="Other facts than those of train",
    ),
]
Instead = Annotated[
    bool,
    Option(
        "--instead",
        help="Answer from --facts alone, without those of train.",
        rich_help_panel="Other facts than those of train",
    ),
]
Together = Annotated[
    int | None,
    Option(
        metavar="N",
        help="How many processes work together on this machine; torchrun starts them on several."
        " They divide each batch, or the queries.",
        show_default=False,
    ),
]
Shard = Annotated[
    bool,
    Option(
        "--shard",
        help="Workers divide the vectors of entities instead, so that these need not fit into one"
        " of them.",
    ),
]
AsJson = Annotated[bool, Option("--json", help="Print JSON instead of tables.")]


def _names_in(text: str | None) -> list[str] | None:
    """The names in a text with commas between them; a callback of options.

    >>> _names_in("split, merge")
    ['split', 'merge']
    """
    return None if text is None else [name for part in text.split(",") if (name := part.strip())]


file = partial(Option, metavar="FILE")
folder = partial(Option, metavar="DIR")
names = partial(Option, metavar="A,B,…", callback=_names_in)


def picture(what: str) -> Any:
    """The file of a picture that a command draws beside what else it does."""
    return file(help=f"Also draw {what} (.png, .svg or .pdf).")


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Make options of what a command takes as `reading`, `reading_facts`, `settings`, `parameters`.

    The command gets each of them as a dictionary of those that were given.
    """
    signature = inspect.signature(command, eval_str=True)
    own = [each for each in signature.parameters.values() if each.name not in _GROUPS]
    options = {
        (group, name): annotation
        for group in signature.parameters
        if group in _GROUPS
        for name, annotation in _GROUPS[group]()
        # `--seed` is the training's and, where it has one, the method's.
        if group != "parameters" or "settings" not in signature.parameters or name not in SETTINGS
    }

    @wraps(command)
    def extended(**given: Any) -> None:
        chosen: dict[str, dict[str, Any]] = {group: {} for group, _ in options}
        for group, name in options:
            if (value := given.pop(f"{group}_{name}")) is not None:
                chosen[group][name] = value
        command(**given, **chosen)

    more = [
        inspect.Parameter(
            f"{group}_{name}", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
        )
        for (group, name), annotation in options.items()
    ]
    # What typer reads.
    extended.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    extended.__annotations__ = {each.name: each.annotation for each in (*own, *more)}
    return extended


def _reading() -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(ReadOptions)
    for own in fields(ReadOptions):
        if own.name != "name":
            yield own.name, _option(own, hints[own.name], "How to read the facts")


def _reading_facts() -> Iterator[tuple[str, Any]]:
    """Those of them that `--facts` has: its facts are not split, and have no buckets."""
    hints = get_type_hints(ReadOptions)
    for own in fields(ReadOptions):
        if own.name not in ("name", "bucket", "bucket_on", *SPLITTING):
            yield own.name, _option(own, hints[own.name], "How to read --facts")


def _settings() -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(Settings)
    for own in fields(Settings):
        if own.name in SETTINGS:
            panel = "Settings of the training (default: those of the preset)"
            yield own.name, _option(own, hints[own.name], panel)


def _parameters() -> Iterator[tuple[str, Any]]:
    """Those of all methods; the help says whose they are."""
    users: dict[str, list[str]] = {}
    for method, kind in METHODS.items():
        for own in fields(kind):
            users.setdefault(own.name, []).append(method)
    for name, methods in users.items():
        kind = METHODS[methods[0]]
        own = next(each for each in fields(kind) if each.name == name)
        whose = "" if len(methods) == len(METHODS) else f"{', '.join(methods)}: "
        default = "" if own.default in (None, MISSING) else f" Default: {own.default}."
        hint = get_type_hints(kind)[name]
        yield name, _option(own, hint, "Parameters of the method", whose, default)


_GROUPS = {
    "reading": _reading,
    "reading_facts": _reading_facts,
    "settings": _settings,
    "parameters": _parameters,
}


def _option(own: Field[Any], hint: Any, panel: str, before: str = "", after: str = "") -> Any:
    """The option of a field. Choices are words here: what takes them suggests the nearest."""
    if type(None) in get_args(hint):
        hint = get_args(hint)[0]
    flag = own.metadata.get("flag", own.name).replace("_", "-")
    metavar = own.metadata.get("metavar")
    if get_origin(hint) is Literal:
        metavar = f"<{'|'.join(get_args(hint))}>"
    about: str = own.metadata["help"]
    option = Option(
        f"--{flag}/--no-{flag}" if hint is bool else f"--{flag}",
        metavar=metavar,
        help=f"{before}{about if before else about[0].upper() + about[1:]}.{after}",
        show_default=False,
        rich_help_panel=panel,
        callback=_names_in if get_origin(hint) not in (None, Literal) else None,
    )
    return Annotated[(hint if get_origin(hint) is None else str) | None, option]


def load_graph(data: str, reading: dict[str, Any]) -> TemporalGraph:
    """Load with a sign of life; named datasets show their own bar where they are downloaded."""
    from splime.datasets import DATASETS, load
    from splime.progress import working

    if data in DATASETS:
        with collective.worker_0_first():  # which downloads it
            return load(data, **reading)
    with working(f"reading {data} …"):
        return load(data, **reading)


def open_run(
    path: Path,
    device: str,
    facts: str | None,
    instead: bool,
    reading: dict[str, Any],
    *,
    shard: bool = False,
) -> Run:
    """A run, asked over other facts if some are given."""
    from splime.cli.console import warn
    from splime.runs import Run

    run = Run(path, device=device, shard=shard)
    if facts is None:
        if instead or reading:
            name = "instead" if instead else next(iter(reading)).replace("_", "-")
            raise UsageError(f"--{name} is about the facts of --facts, and there are none")
        return run
    try:
        graph = load_graph(facts, {"split": "none", **reading})
    except UsageError:  # they have splits of their own; or it fails again
        graph = load_graph(facts, reading)
    return run.over(graph, instead=instead, warn=warn)
