"""Files that splime reads back, changed by somebody else: a clear error, or no difference."""

from __future__ import annotations

import copy
import json
import math
import random
import shutil
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date, time
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import splime
from splime.errors import DataError, SplimeError
from splime.graph import Facts
from splime.reporting.results import run_table
from splime.runs import evaluating
from splime.tuning import make_space
from splime.tuning.results import best_plan
from splime.tuning.search import JOURNAL, SEARCH, Search
from tests.query.conftest import valid_graph
from tests.runs.small import small_graph, small_run

pytestmark = pytest.mark.system

MISSING = object()
VALUES: list[Any] = [
    *("text", "", "1990", -1, 2.5, 10**30, True, [], [1], {}, {"a": 1}),
    *(None, math.nan, math.inf, MISSING),
]
DATES = [date(1990, 1, 1), time(1, 2)]
Place = tuple[Any, ...]


def places(tree: Any, at: Place = ()) -> Iterator[Place]:
    """Every place of a tree of tables and lists."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))


def with_value(tree: Any, place: Place, value: Any) -> Any:
    changed = copy.deepcopy(tree)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    if value is MISSING:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return changed


def attack(path: Path, use: Callable[[], object], *, most: int = 60) -> None:
    """Put wrong values into a file, seeded; whatever reads it must not be surprised."""
    original = path.read_bytes()
    is_toml = path.suffix == ".toml"
    tree = tomllib.loads(original.decode()) if is_toml else json.loads(original)
    values = [value for value in [*VALUES, *DATES] if is_toml or value not in DATES]
    cases = [(place, value) for place in places(tree) for value in values]
    refused = 0
    for place, value in random.Random(0).sample(cases, min(most, len(cases))):
        if is_toml and value is None:
            continue
        changed = with_value(tree, place, value)
        path.write_text(tomli_w.dumps(changed) if is_toml else json.dumps(changed), "utf-8")
        try:
            use()
        except SplimeError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"{path.name}: {place} = {value!r}") from error
    path.write_bytes(original)
    use()
    assert refused > most // 10


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was evaluated and asked."""
    made = small_run(valid_graph(), tmp_path_factory.mktemp("files") / "run", epochs=1)
    splime.evaluate(made)
    splime.Query(made).ask("entity 1", "p1", "?")
    return made.path


def opened(run: Path) -> None:
    one = splime.Run(run)
    run_table(one)
    splime.Query(one).ask("entity 1", "p1", "?", limit=1)


@pytest.mark.parametrize("name", ["config.toml", "about.json", "segmentation.json"])
def test_a_run(run: Path, name: str) -> None:
    attack(run / name, lambda: opened(run))


def test_metrics(run: Path) -> None:
    def use() -> None:
        one = splime.Run(run)
        evaluating.evaluations(one)
        evaluating.kept(one)

    attack(run / "metrics.json", use)


def test_calibration(run: Path) -> None:
    attack(run / "calibration.json", lambda: opened(run), most=150)


PLAN = splime.Plan(
    "demo",
    (
        splime.PlannedRun("a", splime.Split(grow=5)),
        splime.PlannedRun("b", splime.RandomSplit(grow=2, seed=1), {"epochs": 3}),
    ),
    {"granularity": "year", "valid": 0.1, "seed": 3, "columns": ["s", "p", "o", "t"]},
    {"model": "complex", "epochs": 2, "seed": 1, "learning_rate": 0.1},
)


def test_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.to_toml(), encoding="utf-8")
    attack(path, lambda: splime.read_plan(path).to_toml(), most=300)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("granularity =", "granularty =", "granularty"),
        (
            'granularity = "year"',
            "first = 1990-01-01",
            "reading.first: times are written in quotes",
        ),
        ('granularity = "year"', "first = 12:00:00", "reading.first"),
        ("valid = 0.1", 'valid = "0.1"', "valid must be a number, not '0.1'"),
        ("seed = 3", "seed = -3", "seed must be 0 or more, not -3"),
        ("seed = 3", "seed = 3.5", "seed must be a whole number"),
        ("grow = 5", 'grow = "five"', "[[run]] number 1"),
        ("grow = 5", "grow = true", "[[run]] number 1"),
        ("epochs = 3", 'epochs = "3"', "run 'b': epochs must be a whole number, not '3'"),
        ("seed = 1\n\n", "seed = -1\n\n", "seed"),
        ("learning_rate = 0.1", "learning_rate = nan", "learning_rate must be positive"),
        ('model = "complex"', "model = 3", "model must be text, not 3"),
        ('data = "demo"', "data = 3", "data"),
        ("[training]", "[trainin]", "trainin"),
        ('name = "a"', "name = 1990-01-01", "name"),
    ],
)
def test_mistakes_in_a_plan(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = PLAN.to_toml()
    assert old in text
    path = tmp_path / "plan.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        splime.read_plan(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tuned") / "search"
    search_again(out)
    return out


def search_again(folder: Path) -> None:
    fixed: dict[str, Any] = {"dimension": 4, "epochs": 2}
    splime.tune(
        small_graph(), folder, trials=2, parallel=1, methods=["split"], models=["distmult"], **fixed
    )


def use_search(folder: Path) -> None:
    fixed = {"dimension": 4, "epochs": 2, "seed": 0}
    graph = replace(small_graph(), test=Facts.empty())
    space = make_space(graph, ["split"], ["distmult"], fixed=fixed)
    search = Search(folder, graph, space, 0)
    search.begin()
    best_plan(search.results(), search.space, "demo", {}).to_toml()


def test_a_search(search: Path) -> None:
    attack(search / SEARCH, lambda: use_search(search), most=100)


def test_a_journal(search: Path) -> None:
    path, draw = search / JOURNAL, random.Random(0)
    original = path.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in original.splitlines()]
    for _ in range(80):
        number = draw.randrange(len(lines))
        changed = with_value(
            lines[number], draw.choice([*places(lines[number])]), draw.choice(VALUES)
        )
        text = [json.dumps(line) for line in (*lines[:number], changed, *lines[number + 1 :])]
        check_journal(search, text)
    path.write_text(original, encoding="utf-8")


@pytest.mark.parametrize(
    "line", ["of somebody else", "{}", "[]", "3", "null", '{"op_code": 99}', '{"op_code": 4}', "\0"]
)
def test_foreign_lines_in_a_journal(search: Path, tmp_path: Path, line: str) -> None:
    folder = shutil.copytree(search, tmp_path / "search")
    lines = (folder / JOURNAL).read_text(encoding="utf-8").splitlines()
    for place in (0, len(lines) // 2, len(lines)):
        check_journal(folder, [*lines[:place], line, *lines[place:]])


def check_journal(folder: Path, lines: list[str]) -> None:
    (folder / JOURNAL).write_text("\n".join([*lines, ""]), encoding="utf-8")
    with suppress(SplimeError):
        use_search(folder)
