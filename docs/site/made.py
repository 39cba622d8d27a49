"""What the site has beside its documents: tables of registries, references, and notebooks.

A page says `{made} NAME` where the Markdown of a function of `MADE` belongs. So a new method,
option or public name is on the site without a change here.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from importlib import import_module
from inspect import formatannotation, signature
from pathlib import Path
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


def commands() -> str:
    """The reference of the command line: every command with its options, by panels."""
    parts = []
    for name, command, context in _commands():
        about, example = _help(command)
        pieces = " ".join(command.collect_usage_pieces(context))
        about = re.sub(r"^(- .*?: )(splime [^;\n]*)", r"\1`\2`", about, flags=re.M)
        parts += [f"## {name}", *map(_plain, about.split("\n\n"))]
        parts.append(f"```console\n$ {name} {pieces}\n```")
        if example:
            parts.append(f"For example:\n\n```console\n$ {example}\n```")
        panels: dict[str, list[str]] = {}
        for each in command.get_params(context):
            if record := each.get_help_record(context):
                panel = getattr(each, "rich_help_panel", None) or ""
                panels.setdefault(panel, []).append(f"`{record[0]}`\n: {_plain(record[1])}")
        for panel, options in panels.items():
            parts += [f"**{panel}**"] * bool(panel) + options
    return "\n\n".join(parts)


def briefly() -> str:
    """A line for each command: what it does, and an example of it."""
    rows = []
    for name, command, _ in _commands():
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


def names() -> str:
    """The reference of the Python interface: what `__init__.pyi` has, under its modules."""
    stub = Path(splime.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    parts = []
    for node in ast.parse(stub).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.module is None:
            for each in node.names:
                shown = f".. automodule:: splime.{each.name}\n   :members:"
                parts += [f"## {each.name}", _restructured(shown)]
            continue
        parts += [f"## {node.module}", _plain(_first(import_module(f"splime.{node.module}")))]
        parts.append(_restructured(*(_documented(each.name) for each in node.names)))
    return "\n\n".join(parts)


def _documented(name: str) -> str:
    named = getattr(splime, name)
    if isinstance(named, type):
        return f".. autoclass:: splime.{name}\n   :members:"
    if callable(named):
        return f".. autofunction:: splime.{name}"
    # A registry; what stands in its place as a docstring is that of dictionaries.
    return f".. py:data:: {name}\n   :module: splime\n\n   By name: {', '.join(named)}.\n"


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
    app.connect("autodoc-process-docstring", _sections)
    app.add_directive("made", Made)
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
