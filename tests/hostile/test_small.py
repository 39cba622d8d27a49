"""Files with few facts, few times or one predicate; and splime without PyTorch."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import splime
from splime.errors import UsageError
from splime.graph import Facts, replace  # type: ignore[attr-defined]
from splime.methods import standard_methods
from tests.runs.small import call, small_graph

KINDS = ("one time", "few times", "many times", "intervals", "one predicate", "open", "one pair")


def write_facts(path: Path, count: int, kind: str) -> Path:
    draw, rows = random.Random(count), []
    for _ in range(count):
        predicate = "p" if kind == "one predicate" else f"p{draw.randrange(3)}"
        begin = 2000 + draw.randrange({"one time": 1, "few times": 3}.get(kind, 30))
        names = ("a", "b") if kind == "one pair" else draw.choices("abcdef", k=2)
        row = [names[0], predicate, names[1], str(begin)]
        if kind in ("intervals", "open"):
            is_open = kind == "open" and draw.random() < 0.5
            row.append("" if is_open else str(begin + draw.randrange(5)))
        rows.append("\t".join(row) + "\n")
    path.write_text("".join(rows), encoding="utf-8")
    return path


@pytest.mark.system
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("kind", KINDS)
def test_run_needs_nothing_but_a_small_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("splime.plans.write_page", lambda *_, **__: None)  # takes seconds
    for count in (3, 8, 50):
        path = write_facts(tmp_path / f"{count}.tsv", count, kind)
        out = tmp_path / f"out{count}"
        done = call("run", path, "--out", out, "--epochs", 1, "--dimension", 2)
        if done.code:
            assert (done.code, count) == (2, 3), done.err
            assert "test has no facts" in done.err
            assert not (out / "runs").exists()
        else:
            assert {run.name for run in (out / "runs").iterdir()} == {*standard_methods()}


@pytest.mark.system
@pytest.mark.filterwarnings("default")
def test_the_page_of_a_small_file(tmp_path: Path) -> None:
    path = write_facts(tmp_path / "facts.tsv", 8, "one time")
    done = call("run", path, "--out", tmp_path / "out", "--epochs", 1, "--dimension", 2)
    assert done.code == 0, done.err
    assert "note: Split by time cannot reach" in done.err
    assert "<h2>" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_defaults_do_what_they_can() -> None:
    rows = [("a", "p", "b", 2000 + number % 3) for number in range(9)]
    graph = splime.read(rows, split="none", keep_duplicates=True)
    for method in (splime.Split(grow=5), splime.RandomSplit(grow=5)):
        with pytest.warns(UserWarning, match="cannot reach 5 predicates: it came to"):
            cuts = method.fit(graph)
        assert 1 <= len(cuts.predicates) <= 3
    for asked in (splime.Split(grow=6), splime.Split(predicates=5), splime.RandomSplit(grow=6)):
        with pytest.raises(UsageError, match="cannot reach"):
            asked.fit(graph)


def test_no_valid(tmp_path: Path) -> None:
    graph = replace(small_graph(), valid=Facts.empty())
    with pytest.raises(UsageError, match="valid has no facts"):
        splime.train(graph, splime.Vanilla(), tmp_path / "a", epochs=1, validate_every=5)
    with pytest.warns(UserWarning, match="valid has no facts .*: the last one is kept"):
        run = splime.train(graph, splime.Vanilla(), tmp_path / "b", epochs=1, dimension=2)
    assert run.settings.validate_every == 0


def test_a_share_is_at_least_a_fact() -> None:
    graph = splime.read([("a", "p", "b", 2000 + number) for number in range(5)])
    assert [len(facts) for _, facts in graph.splits()] == [3, 1, 1]
    graph = splime.read([("a", "p", "b", 2000 + number) for number in range(5)], valid=0.0)
    assert [len(facts) for _, facts in graph.splits()] == [4, 0, 1]


WITHOUT_TORCH = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "safetensors"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
import splime

graph = splime.load("demo")
assert len(splime.Split(grow=2).fit_transform(graph).train) > 0
assert splime.standard_methods()
missing = 0
for name in splime.__all__:
    try:
        getattr(splime, name)
    except splime.SplimeError as error:
        missing += 1
        assert f"splime.{name} needs torch" in str(error), error
        assert "pip install 'splime-kg[train]'" in str(error), error
assert missing > 10
from splime.cli.main import main
for command in ("inspect", "demo"), ("models",):
    sys.argv = ["splime", *command]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, command
"""


@pytest.mark.system
def test_without_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.stderr == "demo: read 10,000 facts\n"
    assert "pip install 'splime-kg[train]'" in done.stdout
    from splime.embedding.models import MODELS

    listed = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert set(MODELS) <= set(listed)
