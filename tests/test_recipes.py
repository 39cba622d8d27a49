"""The recipes of CONTRIBUTING.md: a file and an entry are enough for a method, model or loss."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[1]
SMALL = ["--dimension", "6", "--epochs", "2", "--validate-every", "1", "--batch-size", "200"]


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source in which the recipes were followed word for word."""
    home = tmp_path_factory.mktemp("recipes")
    shutil.copytree(ROOT / "src", home / "src", ignore=shutil.ignore_patterns("__pycache__"))
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipe = re.compile(
        r"`(src/\S+\.py)`:\n\n```python\n(.*?)```\n\nand its entry in `(src/\S+\.py)`: `([^`]+)`",
        re.S,
    )
    recipes = recipe.findall(text)
    assert len(recipes) == 3
    for path, code, registry, entry in recipes:
        (home / path).write_text(code, encoding="utf-8")
        module = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
        listed = (home / registry).read_text(encoding="utf-8")
        if entry.isidentifier():  # the import, and the end of the list
            listed = listed.replace("from splime", f"from {module} import {entry}\nfrom splime", 1)
            listed, entries = re.subn(r"(_BUILTIN.* = \[.*)\]", rf"\1, {entry}]", listed, count=1)
        else:  # a line of the table
            listed, entries = re.subn(r"\n\}\n", f"\n    {entry},\n}}\n", listed, count=1)
        assert entries == 1, registry
        (home / registry).write_text(listed, encoding="utf-8")
    return home


CALLS = """
import json, sys
from tests.runs.small import call
done = [call(*arguments) for arguments in json.loads(sys.argv[1])]
json.dump([[each.code, each.out, each.err] for each in done], sys.stdout)
"""


def call(home: Path, *commands: list[str]) -> list[str]:
    """What commands of the copy print; they share a process, whose imports take the longest."""
    path = os.pathsep.join([str(home / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", CALLS, json.dumps(commands)],
        cwd=home,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for code, _, err in (results := json.loads(done.stdout)):
        assert code == 0, err
    return [out for _, out, _ in results]


def test_everything_knows_them(extended: Path) -> None:
    cut = ["transform", "demo", "--method", "halves", "--times", "2", "--out", "cut"]
    methods, models, _ = call(extended, ["methods"], ["models"], cut)
    assert re.search(r"halves\s+Cuts in the middle", methods)
    assert "--times" in methods
    assert re.search(r"hole\s+f\(s, p, o\) = ⟨shift\(s\), p, o⟩", models)
    assert re.search(r"squared_hinge\s+pairwise hinge, squared", models)
    scopes = json.loads((extended / "cut" / "segmentation.json").read_text(encoding="utf-8"))
    assert {len(each["cuts"]) for each in scopes["predicates"].values()} == {2}


def test_trained_compared_and_asked(extended: Path) -> None:
    new = ["--model", "hole", "--loss", "squared_hinge", "--negatives", "8", "--no-reciprocal"]
    runs = ["runs/halves", "runs/vanilla"]
    _, _, compared, asked, _ = call(
        extended,
        *(["train", "demo", "--method", run[5:], *new, *SMALL, "--out", run] for run in runs),
        ["compare", *runs],
        ["ask", runs[0], "Sara Finnby", "livesIn", "?", "--at", "1982"],
        ["report", *runs, "--out", "report.html"],
    )
    assert "halves" in compared
    assert "livesIn[" in asked
    page = (extended / "report.html").read_text(encoding="utf-8")
    assert "squared_hinge" in page
    assert "Halves" in page


def test_run_by_default_and_tuned(extended: Path) -> None:
    new = ["--model", "hole", "--loss", "squared_hinge", "--negatives", "8", "--no-reciprocal"]
    search = ["--methods", "halves", "--trials", "2", "--processes", "1", "--out", "search"]
    loss = ["--models", "hole", "--loss", "squared_hinge", "--no-reciprocal"]
    table, _ = call(
        extended,
        ["run", "demo", *new, *SMALL, "--out", "all"],
        ["tune", "demo", *loss, *search, *SMALL],
    )
    assert "halves" in table  # one of the methods that are compared by default
    trials = (extended / "search" / "trials.csv").read_text(encoding="utf-8").splitlines()
    assert {"halves.times", "margin"} <= set(trials[0].split(","))
    assert "halves" in (extended / "search" / "best.toml").read_text(encoding="utf-8")
