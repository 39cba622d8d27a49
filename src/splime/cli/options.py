"""Options that several commands share, and those that are made from the fields of dataclasses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

from typer import Argument, Context, Exit, Option, echo

from splime import collective
from splime.cli.console import Result, print_result, warn
from splime.errors import UsageError
from splime.io.inputs import without_password
from splime.io.options import SPLITTING, ReadOptions
from splime.io.readers import builtin_formats
from splime.methods import METHODS
from splime.settings import ALL_SETTINGS
from splime.workers import Parallel

if TYPE_CHECKING:
    from splime.graph import TemporalGraph
    from splime.runs import Run

LARGE = "More facts than fit into memory"
_MANY, _TOGETHER = "Several trainings at once", "Several processes"
_OTHER_FACTS, _WEIGHTS = "Other facts than those of train", "A graph without training"


def option(metavar: str, help: str, panel: str | None = None, *names: str) -> Any:
    """An option with a value; the help says which is the default."""
    return Option(*names, metavar=metavar, help=help, show_default=False, rich_help_panel=panel)


file = partial(option, "FILE")
folder = partial(option, "DIR")
name = partial(option, "NAME")
some = partial(option, "A,B,…")


def flag(flag: str, help: str, panel: str | None = None) -> Any:
    """An option without a value that a command passes on."""
    return Annotated[
        bool | None, Option(flag, help=help, show_default=False, rich_help_panel=panel)
    ]


def number(help: str, metavar: str = "N", panel: str | None = None) -> Any:
    """An option with a number that a command passes on."""
    return Annotated[int | None, option(metavar, help, panel)]


def picture(what: str) -> Any:
    """The file of a picture that a command draws beside what else it does."""
    text = f"Also draw {what} (.png, .svg or .pdf)."
    return Option(metavar="FILE", help=text, show_default=False, callback=_checked_picture)


def _checked_picture(path: Path | None) -> Path | None:
    """The same; an error before the work, not after it, if there cannot be a picture."""
    if path is not None:
        from splime.reporting.style import check_picture

        check_picture(path)
    return path


Data = Annotated[
    str,
    Argument(
        metavar="DATA",
        help=f"The name of a dataset (see `splime datasets list`), a file ({builtin_formats()}) or"
        " a folder with such files called train, valid and test.",
    ),
]
RunFolder = Annotated[
    str,
    Argument(
        metavar="RUN|DATA",
        help="The folder of a run; or a file, a folder of files or a dataset, which is answered"
        " without training.",
    ),
]
RunFolders = Annotated[list[str], Argument(metavar="RUN", help="The folders of runs.")]
CUTS = f"How to choose the cuts: {', '.join(METHODS)}."
Preset = name("Settings by name: strong (the default), quick or one of `splime models`.")
_TRAINS = "What trains: splime (the default) or pykeen."
Engine = name(_TRAINS)
Engines = name(
    f"{_TRAINS} Also where several trainings at once run: processes (of this machine) or ray."
)
Device = Annotated[str, name("auto (the default), cpu or cuda.")]
Split = name("test (the default) or valid.")
Log = name("Also log to tensorboard, mlflow or wandb.")
Together = option(
    "N",
    "How many processes work together on this machine, each on a part of each batch or of the"
    " queries; torchrun starts them on several machines.",
    _TOGETHER,
)
Protocol = name(
    "fact (the default: asks for the object and the subject of each fact), predicate (asks which"
    " predicate) or triple (the paper's: transformed triples, a test set for each transform)."
)
Aggregate = name(
    "How scores of the scopes of an interval become one: mean (weighted by overlap), ends, begin,"
    " max or sum. Choose it on valid. Default: as the run was trained."
)
Open = Annotated[bool, Option("--open", help="Open the page in the browser.")]
_AsJson = Annotated[bool, Option("--json", help="Print JSON instead of tables.")]

HELP_ALL, MODEL = "splime.help_all", "splime.model"
"""What the context of a command keeps for its help."""


def _show_all(ctx: Context, wanted: bool) -> None:
    if wanted:
        ctx.meta[HELP_ALL] = True
        echo(ctx.get_help())
        raise Exit


_HelpAll = Annotated[
    bool, Option("--help-all", is_eager=True, callback=_show_all, help="Show all options and exit.")
]


def _names_in(text: str | None) -> list[str] | None:
    """The names in a text with commas between them; a callback of options.

    >>> _names_in("split, merge")
    ['split', 'merge']
    """
    return None if text is None else [name for part in text.split(",") if (name := part.strip())]


names = partial(Option, metavar="A,B,…", callback=_names_in)


def with_options(
    **forwarded: Any,
) -> Callable[[Callable[..., Result | None]], Callable[..., None]]:
    """Make options of the groups that a command takes, such as `reading` or `settings`.

    The command gets each group as a dictionary of the options that were given. Those of the group
    `given` are declared here: options that the command passes on as they are. One without a type
    takes a word. What the command returns is printed: as tables or, with --json, as JSON.
    """
    groups = {**_GROUPS, "given": forwarded.items}

    def decorate(command: Callable[..., Result | None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        grouped: dict[str, dict[str, str]] = {}  # a group, its options, their parameters
        for group, one in signature.parameters.items():
            if group not in groups:
                parameters.append(one)
                continue
            options = dict(groups[group]())
            if group == "parameters" and "settings" in grouped:
                del options["seed"]  # the training's and, where it has one, the method's
            prefix = "" if group == "given" else f"{group}_"
            grouped[group] = {name: prefix + name for name in options}
            for name, hint in options.items():
                hint = hint if get_origin(hint) is Annotated else Annotated[str | None, hint]
                parameters.append(one.replace(name=prefix + name, default=None, annotation=hint))

        @wraps(command)
        def extended(as_json: bool = False, help_all: bool = False, **values: Any) -> None:  # noqa: ARG001
            for group, names in grouped.items():
                given = {name: values.pop(parameter) for name, parameter in names.items()}
                values[group] = {name: value for name, value in given.items() if value is not None}
            result = command(**values)
            if result is not None:
                print_result(result, as_json=as_json)

        added = {"as_json": _AsJson} if signature.return_annotation is Result else {}
        added |= {"help_all": _HelpAll} if grouped.keys() - {"given"} else {}
        keyword = inspect.Parameter("_", inspect.Parameter.KEYWORD_ONLY, default=False)
        parameters += [keyword.replace(name=k, annotation=v) for k, v in added.items()]
        # What typer reads.
        extended.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        extended.__annotations__ = {one.name: one.annotation for one in parameters}
        return extended

    return decorate


OF_GRAPHS = ("name", "bucket", "bucket_on", *SPLITTING)
"""Reading options that facts have not which are only asked, or added."""
_READING, _READING_FACTS = "How to read the facts", "How to read --facts"
_SETTINGS = "Settings of the training (default: those of the preset)"
_PARAMETERS = "Parameters of the method"
_FOLDED = (
    LARGE,
    _MANY,
    _TOGETHER,
    _OTHER_FACTS,
    _WEIGHTS,
    _READING,
    _READING_FACTS,
    _SETTINGS,
    _PARAMETERS,
)
_MAIN = {
    *(f"reading_{name}" for name in ("columns", "split")),
    *(f"settings_{name}" for name in ("dimension", "epochs", "learning_rate", "seed")),
    "facts_facts",
}
"""The options that the short help shows of groups that are long."""


def folded(params: Sequence[Any], model: str | None) -> list[Any]:
    """The options that the short help leaves out; with a model its settings are in it."""
    if all(param.name != "help_all" for param in params):
        return []
    shown = _MAIN
    if model is not None:
        from splime.training.registry import find_model

        shown = {f"settings_{name}" for name in find_model(model).settings.names()}
    panels = ((param, getattr(param, "rich_help_panel", None)) for param in params)
    return [param for param, panel in panels if panel in _FOLDED and param.name not in shown]


def _of_fields(kind: type[Any], panel: str, *left_out: str) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(kind)
    for field in fields(kind):
        if "help" in field.metadata and field.name not in left_out:
            yield field.name, _option(field, hints[field.name], panel)


def _added() -> Iterator[tuple[str, Any]]:
    """How to read facts that are added to a run: as those of `--facts`."""
    yield from _of_fields(ReadOptions, _READING, *OF_GRAPHS)


def _facts() -> Iterator[tuple[str, Any]]:
    """`--facts`, and how to read them: they are not split, and have no buckets."""
    about = (
        "Answer from these facts too (path model): a file or folder. They replace facts of train"
        " that state the same at overlapping times."
    )
    alone = Option("--instead", help="Answer from --facts alone.", rich_help_panel=_OTHER_FACTS)
    yield "facts", Option("--facts", metavar="FILE", help=about, rich_help_panel=_OTHER_FACTS)
    yield "instead", Annotated[bool | None, alone]
    which = "The shipped weights, by version, or a file of weights. Default: the latest version."
    yield "weights", Option("--weights", metavar="VERSION", help=which, rich_help_panel=_WEIGHTS)
    yield from _of_fields(ReadOptions, _READING_FACTS, *OF_GRAPHS)


def _settings() -> Iterator[tuple[str, Any]]:
    for name, (kind, field) in ALL_SETTINGS.items():
        yield name, _option(field, get_type_hints(kind)[name], _SETTINGS)


def _parameters() -> Iterator[tuple[str, Any]]:
    """Those of all methods; the help says whose they are."""
    found = [(kind, field) for kind in METHODS.values() for field in fields(kind)]
    for name in dict.fromkeys(field.name for _, field in found):
        users = [(kind, field) for kind, field in found if field.name == name]
        whose = "" if len(users) == len(METHODS) else f"{', '.join(k.name for k, _ in users)}: "
        kind, field = users[0]
        default = "" if field.default in (None, MISSING) else f" Default: {field.default}."
        yield name, _option(field, get_type_hints(kind)[name], _PARAMETERS, whose, default)


_GROUPS: Mapping[str, Callable[[], Iterable[tuple[str, Any]]]] = {
    "parallel": partial(_of_fields, Parallel, _MANY),
    "reading": partial(_of_fields, ReadOptions, _READING, "name"),
    "facts": _facts,
    "added": _added,
    "settings": _settings,
    "parameters": _parameters,
}


_WIDE = 24  # where choices leave too little room for the help beside them


def _option(field: Field[Any], hint: Any, panel: str, before: str = "", after: str = "") -> Any:
    """The option of a field. Choices are words here: what takes them suggests the nearest."""
    if type(None) in get_args(hint):
        hint = get_args(hint)[0]
    flag = field.metadata.get("flag", field.name).replace("_", "-")
    metavar, about = field.metadata.get("metavar"), field.metadata["help"]
    if get_origin(hint) is Literal:
        metavar = "|".join(get_args(hint))
        if len(metavar) > _WIDE:
            metavar, after = "NAME", f" One of {', '.join(get_args(hint))}.{after}"
    option = Option(
        f"--{flag}/--no-{flag}" if hint is bool else f"--{flag}",
        metavar=metavar,
        help=f"{before}{about if before else about[0].upper() + about[1:]}.{after}",
        show_default=False,
        rich_help_panel=panel,
        callback=_names_in if get_origin(hint) not in (None, Literal) else None,
    )
    if field.metadata.get("many"):
        return Annotated[list[str] | None, option]
    return Annotated[(hint if get_origin(hint) is None else str) | None, option]


def spelled(reading: Mapping[str, Any], *left_out: str) -> list[str]:
    """Reading options as they are written on the command line.

    >>> spelled({"columns": ["a", "b", "c", "d"], "header": False, "unknown_time": ["0"]})
    ['--columns', 'a,b,c,d', '--no-header', '--unknown-time', '0']
    """
    words: list[str] = []
    for one in fields(ReadOptions):
        if one.name in left_out or one.name not in reading:
            continue
        value, flag = reading[one.name], one.metadata.get("flag", one.name).replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif one.metadata.get("many"):
            words += [word for each in value for word in (f"--{flag}", str(each))]
        else:
            listed = isinstance(value, list | tuple)
            words += [f"--{flag}", ",".join(map(str, value)) if listed else str(value)]
    return words


def check_only(given: Mapping[str, Any], beside: str, *names: str) -> None:
    """An error where options are given that would not count."""
    for name in given:
        if name not in names:
            raise UsageError(f"--{name} does not go with {beside}")


def load_graph(data: str, reading: dict[str, Any]) -> TemporalGraph:
    """Load with a sign of life; named datasets show their own bar where they are downloaded."""
    from splime.datasets import load

    return _load(load, data, reading)


def _load(load: Callable[..., TemporalGraph], data: str, reading: dict[str, Any]) -> TemporalGraph:
    from splime.datasets import DATASETS
    from splime.progress import working

    if data in DATASETS:
        with collective.worker_0_first():  # which downloads it
            return load(data, **reading)
    with working(f"reading {without_password(data)} …"):
        return load(data, **reading)


def open_run(path: str, device: str, other: dict[str, Any]) -> Run:
    """A run, asked over other facts if some are given."""
    from splime.datasets.loading import load_unsplit
    from splime.runs.graph_run import open_source

    ours, weights = ("facts", "instead", "weights"), other.get("weights")
    reading = {name: value for name, value in other.items() if name not in ours}
    if "facts" not in other:
        return open_source(path, device=device, weights=weights, **reading)
    run = open_source(path, device=device, weights=weights)
    graph = _load(load_unsplit, other["facts"], reading)
    return run.over(graph, instead=other.get("instead", False), warn=warn)
