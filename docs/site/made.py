"""What the site has beside its documents: tables of registries, references, and notebooks.

A page says `{made} NAME` where the Markdown of a function of `MADE` belongs. Commands and public
names have a page each, written below `docs` before the site is built. So a new method, option,
command or public name is on the site without a change here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from inspect import formatannotation, signature
from pathlib import Path
from types import ModuleType
from typing import Any

import typer
from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.util.docutils import SphinxDirective

import splime
from splime.cli.main import app as program
from splime.datasets import DATASETS
from splime.embedding.losses import LOSSES
from splime.embedding.presets import PRESETS, QUICK, STRONG
from splime.exports import FORMATS
from splime.io import READERS
from splime.io.files import atomic_write
from splime.methods import METHODS
from splime.reporting.showing import PICTURES
from splime.training.registry import find_model, model_names


def _plain(text: str) -> str:
    """Text in which nothing is markup but what is between backticks, in a line."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    parts[::2] = (re.sub(r"([\\*_<>\[\]|$])", r"\\\1", part) for part in parts[::2])
    return "".join(parts)


def _first(of: object) -> str:
    """The first sentence of a docstring, which is a line."""
    return (of.__doc__ or "").strip().partition("\n")[0]


def _table(head: Sequence[str], *rows: Iterable[str]) -> str:
    """A table in whose rows a name stands first."""
    named = ([f"`{name}`", *map(_plain, others)] for name, *others in rows)
    lines = [head, ["---"] * len(head), *named]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def methods() -> str:
    """The methods, each with its parameters."""
    parts = []
    for name, method in METHODS.items():
        rows = []
        for own in fields(method):
            default = method.standard.get(own.name, own.default)
            flag = f"--{own.name.replace('_', '-')}"
            rows.append((flag, own.metadata["help"], "" if default is None else str(default)))
        parts += [f"### `{name}`", f"`splime.{method.__name__}`: {_plain(_first(method))}"]
        if method.one_of:
            parts.append(f"Exactly one of {', '.join(f'`{each}`' for each in method.one_of)}.")
        parts.append(_table(("parameter", "what it is", "default"), *rows))
    return "\n\n".join(parts)


def models() -> str:
    """The models of splime itself."""
    rows = []
    for entry in map(find_model, model_names()):
        settings = entry.make_settings().values()
        time = "yes" if entry.is_temporal else ""
        strong = (str(settings.get(name, "")) for name in ("loss", "dimension"))
        rows.append((entry.name, entry.about, time, *strong))
    return _table(("model", "what it scores", "temporal", "loss", "dimension"), *rows)


def losses() -> str:
    """The losses, with the settings that they alone have."""
    rows = []
    for loss in LOSSES.values():
        negatives = "all entities" if loss.against == "all" else "sampled negatives"
        rows.append((loss.name, loss.about, negatives, ", ".join(loss.settings)))
    return _table(("loss", "what it is", "compares with", "its settings"), *rows)


def presets() -> str:
    """The presets that are the same for all models."""
    listed = (
        (name, ", ".join(f"{key} {value}" for key, value in settings.items()))
        for name, settings in PRESETS.items()
    )
    return _table(("preset", "settings"), *listed)


def formats() -> str:
    """The formats of static graphs."""
    listed = ((name, _first(each.write), ", ".join(each.files)) for name, each in FORMATS.items())
    return _table(("format", "what it is", "files"), *listed)


def readers() -> str:
    """The formats that facts are read from."""
    listed = (
        (name, reader.help, ", ".join(reader.suffixes), "yes" if reader.compressed else "no")
        for name, reader in READERS.items()
    )
    return _table(("format", "what it is", "suffixes", ".gz, .zst"), *listed)


def pictures() -> str:
    """The pictures of runs."""
    listed = (
        (name, each.about, "one or more" if each.compares else "one")
        for name, each in PICTURES.items()
    )
    return _table(("picture", "what it shows", "runs"), *listed)


def datasets() -> str:
    """The named datasets."""
    listed = ((each.name, each.about, each.published) for each in DATASETS.values())
    return _table(("name", "what it is", "published"), *listed)


Called = tuple[str, Any, typer.Context]


def _commands(group: Any = None, context: Any = None, before: str = "splime") -> Iterator[Called]:
    """The commands of the program, those of groups too: what to call, the command, its context."""
    group = group or typer.main.get_command(program)
    context = context or group.make_context("splime", [], resilient_parsing=True)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        own = type(context)(command, info_name=name, parent=context)
        if hasattr(command, "commands"):
            yield from _commands(command, own, f"{before} {name}")
        else:
            yield f"{before} {name}", command, own


def _help(command: Any) -> tuple[str, str]:
    """What a command says about itself, and its example."""
    about, _, example = re.sub(r"Example:\s+", "Example: ", command.help).partition("Example: ")
    return about.strip(), " ".join(example.split())


def _command_page(name: str, command: Any, context: typer.Context) -> str:
    """A command with its options, by panels."""
    about, example = _help(command)
    pieces = " ".join(command.collect_usage_pieces(context))
    about = re.sub(r"^(- .*?: )(splime [^;\n]*)", r"\1`\2`", about, flags=re.M)
    parts = [f"# {name}", *map(_plain, about.split("\n\n"))]
    parts.append(f"```console\n$ {name} {pieces}\n```")
    if example:
        parts.append(f"For example:\n\n```console\n$ {example}\n```")
    panels: dict[str, list[str]] = {}
    for each in command.get_params(context):
        if record := each.get_help_record(context):
            panel = getattr(each, "rich_help_panel", None) or "Options"
            panels.setdefault(panel, []).append(f"`{record[0]}`\n: {_plain(record[1])}")
    for panel, options in panels.items():
        parts += [f"## {panel}", *options]
    return "\n\n".join(parts)


def _page_of(name: str) -> str:
    return "-".join(name.split()[1:])


def _command_groups() -> dict[str, list[Called]]:
    """The commands in the groups that `splime --help` has."""
    groups: dict[str, list[Called]] = {}
    for called in _commands():
        context = called[2]
        while (above := context.parent) is not None and above.parent is not None:
            context = above
        panel = getattr(context.command, "rich_help_panel", None)
        groups.setdefault(panel if isinstance(panel, str) else "More", []).append(called)
    return groups


def commands() -> str:
    """The commands by groups, each with a link to its page."""
    parts = []
    for group, called in _command_groups().items():
        rows = []
        for name, command, _ in called:
            brief = _help(command)[0].partition("\n\n")[0]
            rows.append(f"| [`{name}`](commands/{_page_of(name)}.md) | {_plain(brief)} |")
        parts += [f"## {group}", "\n".join(["| command | what it does |", "|---|---|", *rows])]
        parts.append(_contents(f"commands/{_page_of(name)}" for name, _, _ in called))
    return "\n\n".join(parts)


def _contents(pages: Iterable[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *pages, "```"])


def briefly() -> str:
    """A line for each command: what it does, and an example of it."""
    rows = []
    for name, command, _ in _commands():
        if command.hidden:
            continue
        about, example = _help(command)
        example = example and f"`{example}`"
        rows.append((name.removeprefix("splime "), about.partition("\n\n")[0], example))
    return _table(("command", "what it does", "for example"), *rows)


def questions() -> str:
    """The kinds of questions, as the help of `splime ask` has them."""
    (about,) = (command.help for name, command, _ in _commands() if name == "splime ask")
    rows = re.findall(r"^- ([\w ]*): (splime [^;\n]*)$", about, re.M)
    return _table(("question", "command"), *((kind, f"`{example}`") for kind, example in rows))


def functions() -> str:
    """How the commands are called in Python, what they give, and what reads and writes graphs."""
    verbs = [name.removeprefix("splime ") for name, _, _ in _commands()]
    rows = []
    for name in ("load", "read", "save", *verbs):
        if name in dir(splime):
            each = getattr(splime, name)
            known = signature(each)
            given = [
                one.name
                for one in known.parameters.values()
                if one.kind is one.POSITIONAL_OR_KEYWORD
            ]
            more = ["…"] * (len(given) < len(known.parameters))
            gives = known.return_annotation
            gives = gives if isinstance(gives, str) else formatannotation(gives)
            gives = " or ".join(each.rpartition(".")[2] for each in gives.split(" | "))
            call = f"splime.{name}({', '.join(given + more)})"
            rows.append((call, "" if gives == "None" else f"`{gives}`"))
    return _table(("function", "gives"), *rows)


def choices() -> str:
    """The names of everything that there is to choose from."""
    registries: dict[str, Iterable[str]] = {
        "--method": METHODS,
        "--model": model_names(),
        "--loss": LOSSES,
        "--preset": (*PRESETS, STRONG, QUICK),
        "--format": FORMATS,
        "--what": PICTURES,
        "datasets": DATASETS,
    }
    return _table(("option", "names"), *((kind, ", ".join(of)) for kind, of in registries.items()))


NAMES: dict[str, str] = {
    "Load": """load read inspect Inspection describe TemporalGraph Facts Fact Timeline Vocabulary
        parse_times split_graph save to_table write_text leakage""",
    "Train": """train Run Settings make_settings update combine run execute carry_out read_plan Plan
        PlannedRun PlanResult tune TuningResult Tuned Parallel progress_bar""",
    "Ask": """ask Query Answers Answer predict Predictions Prediction doubts Doubts Doubt rules
        Rules Rule backtest Backtest trust Trust explore serve""",
    "Evaluate": """evaluate compare Comparison Evaluation evaluate_facts evaluate_triples
        evaluate_predicates Scorer""",
    "Draw and report": "plot report write_page smoothness",
    "Cut time into predicates": """Merge Split Timestamp ChangePointSplit RandomSplit Vanilla
        METHODS make_method standard_methods apply transform Transformed StreamResult StaticGraph
        Segmentation save_segmentation load_segmentation export labelled_triples to_pykeen""",
    "Errors": "SplimeError DataError UsageError DownloadError",
}
"""The public names in the order of use."""


def _name_groups() -> dict[str, list[str]]:
    public = {*dir(splime)}
    groups = {group: [*filter(public.__contains__, of.split())] for group, of in NAMES.items()}
    rest = public.difference(*groups.values())
    return groups | ({"More": sorted(rest)} if rest else {})


def names() -> str:
    """The public names by groups, each with a link to its page."""
    parts = []
    for group, public in _name_groups().items():
        rows = [f"| [`{name}`](python/{_file_of(name)}.md) | {_about(name)} |" for name in public]
        parts += [f"### {group}", "\n".join(["| name | what it is |", "|---|---|", *rows])]
        parts.append(_contents(f"python/{_file_of(name)}" for name in public))
    return "\n\n".join(parts)


def _file_of(name: str) -> str:
    """What the page of a name is called: `run` and `Run` are one file on some machines."""
    return f"class-{name}" if isinstance(getattr(splime, name), type) else name


def _about(name: str) -> str:
    named = getattr(splime, name)
    return _plain(_first(named) if _explains_itself(named) else "All of them, by name.")


def _explains_itself(named: object) -> bool:
    """Whether what is named has a docstring of its own; that of a registry is of dictionaries."""
    return callable(named) or isinstance(named, ModuleType)


def _name_page(name: str) -> str:
    """A public name: what it is, its arguments or members, and an example."""
    named = getattr(splime, name)
    if isinstance(named, ModuleType):
        shown = f".. automodule:: splime.{name}\n   :members:"
    elif isinstance(named, type):
        shown = f".. autoclass:: splime.{name}\n   :members:"
    elif callable(named):
        shown = f".. autofunction:: splime.{name}"
    else:
        shown = f".. py:data:: {name}\n   :module: splime\n\n   By name: {', '.join(named)}.\n"
    return f"# splime.{name}\n\n{_restructured(shown)}"


def _write_pages(app: Sphinx) -> None:
    """Write the pages of commands and names, and remove those of what is gone."""
    folders = {
        "commands": {_page_of(called[0]): _command_page(*called) for called in _commands()},
        "python": {_file_of(name): _name_page(name) for name in dir(splime)},
    }
    for folder, pages in folders.items():
        place = Path(app.srcdir, "docs", folder)
        place.mkdir(exist_ok=True)
        for old in place.glob("*.md"):
            if old.stem not in pages:
                old.unlink(missing_ok=True)
        for name, text in pages.items():
            page = place / f"{name}.md"
            if not page.exists() or page.read_text("utf-8") != text:
                with atomic_write(page) as unfinished:
                    unfinished.write_text(text, encoding="utf-8")


def _restructured(*lines: str) -> str:
    return "\n".join(["```{eval-rst}", *lines, "```"])


MADE: dict[str, Callable[[], str]] = {
    each.__name__: each
    for each in (
        *(methods, models, losses, presets, readers, formats, pictures, datasets),
        *(commands, names, briefly, questions, functions, choices),
    )
}


class Made(SphinxDirective):
    """Puts what a function of `MADE` gives where the directive stands."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The text, parsed as Markdown."""
        parts = self.parse_text_to_nodes(MADE[self.arguments[0]](), allow_section_headings=True)
        for table in (each for part in parts for each in part.findall(nodes.table)):
            table["classes"].append("made")
        return parts


class NotebookParser(MystParser):
    """Reads a notebook as the Markdown document that it amounts to."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse the cells, and the outputs that are stored with them."""
        parts = []
        for cell in json.loads(inputstring)["cells"]:
            source = "".join(cell["source"])
            parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
            parts += map(_output, cell.get("outputs", ()))
        super().parse("\n\n".join(parts), document)


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if picture := data.get("image/png"):
        return f"![What this cell draws](data:image/png;base64,{picture.strip()})"
    if html := data.get("text/html"):
        return f"```{{raw}} html\n{''.join(html)}\n```"
    text = "".join(output.get("text") or data["text/plain"]).rstrip()
    return f"```{{code-block}} text\n:class: output\n\n{text}\n```"


def _sections(_app: Sphinx, what: str, _name: str, _of: Any, _how: Any, lines: list[str]) -> None:
    """Sections such as `Args:` in docstrings; those of attributes have none, but colons."""
    if what in ("function", "method", "class"):
        reading = Config(napoleon_custom_sections=[("Options", "params_style")])
        lines[:] = GoogleDocstring(lines, reading).lines()


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive and the parser known to Sphinx."""
    app.connect("builder-inited", _write_pages)
    app.connect("autodoc-process-docstring", _sections)
    app.add_directive("made", Made)
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
