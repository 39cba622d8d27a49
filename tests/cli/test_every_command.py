"""Of every command: `--json` prints JSON alone, tables fit the terminal, help is short."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import typer

import splime
from splime.cli.main import app
from splime.io import save
from tests.runs.small import call, small_graph, small_run

PRINT_NO_TABLE = {
    "explore", "report", "reproduce", "serve", "embeddings export", "datasets fetch",
}  # fmt: skip
QUICK = ("--epochs", "1", "--dimension", "2")
slow = pytest.mark.system
COMMANDS = [
    ("inspect", "{facts}"),
    ("transform", "{facts}", "--method", "vanilla", "--out", "{out}"),
    ("methods",),
    ("cache",),
    ("datasets list",),
    ("datasets show", "demo"),
    ("rules", "{facts}", "p1"),
    ("ask", "{run}", "entity 1", "p1", "?", "--at", "1999"),
    pytest.param(("predict", "{facts}", "--predicate", "p1"), marks=slow),
    pytest.param(("doubts", "{facts}", "--predicate", "p1"), marks=slow),
    pytest.param(("backtest", "{facts}", "--from", "2004", "--questions", "4"), marks=slow),
    ("train", "{facts}", "--model", "distmult", *QUICK, "--out", "{out}"),
    ("models",),
    pytest.param(
        ("tune", "{facts}", "--trials", "1", "--methods", "vanilla", *QUICK, "--processes", "1",
         "--out", "{out}"),
        marks=slow,
    ),
    pytest.param(("run", "{facts}", "--method", "vanilla", *QUICK, "--out", "{out}"), marks=slow),
    ("update", "{latest}", "{newer}"),
    ("combine", "{run}", "{other}", "--out", "{out}"),
    ("evaluate", "{run}"),
    ("compare", "{run}", "{other}"),
    ("plot", "{run}", "--what", "facts", "--out", "{out}.png"),
]  # fmt: skip


def commands(group: Any, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


EVERY = dict(commands(typer.main.get_command(app)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder, graph = tmp_path_factory.mktemp("made"), small_graph()
    names = {name: folder / name for name in ("run", "other", "latest")}
    names |= {"facts": folder / "facts.parquet", "newer": folder / "newer.tsv"}
    save(graph, names["facts"])
    names["newer"].write_text("entity 1\tp1\tentity 2\t2004\n", encoding="utf-8")
    small_run(graph, names["run"])
    small_run(graph, names["other"], None)
    splime.train(graph, None, names["latest"], model="latest")
    return {name: str(path) for name, path in names.items()}


@pytest.fixture
def here(made: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return {**made, "out": str(tmp_path / "out")}


def test_the_commands_without_json_print_no_table() -> None:
    has = {name for name, one in EVERY.items() if any(p.name == "as_json" for p in one.params)}
    assert EVERY.keys() - has <= PRINT_NO_TABLE
    tried = {getattr(one, "values", [one])[0][0] for one in COMMANDS}
    assert tried == has  # below


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_json_alone_and_tables_that_fit(
    command: tuple[str, ...], here: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("splime.plans.write_page", lambda *_, **__: None)  # which takes long
    arguments = [*command[0].split(), *(each.format(**here) for each in command[1:])]
    done = call(*arguments, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)
    here["out"] += "2"
    arguments = [*command[0].split(), *(each.format(**here) for each in command[1:])]
    done = call(*arguments, COLUMNS="60")
    assert done.code == 0, done.err
    lines = [line for line in done.out.splitlines() if line.startswith(("┃", "│", "└"))]
    assert max(map(len, lines), default=0) <= 60


@pytest.mark.parametrize("name", EVERY)
def test_the_help_is_short(name: str) -> None:
    done = call(*name.split(), "--help", COLUMNS="80")
    assert done.code == 0
    lines = done.out.splitlines()
    assert len(lines) <= (70 if name in ("ask", "run", "serve") else 60), name
    assert max(map(len, lines)) <= 80
    assert "<" not in done.out or name == "reproduce"  # no type of Python
