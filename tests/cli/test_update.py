"""`splime update`: facts that are added to a run for good."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import splime
from splime.analysis.calibration import CALIBRATION
from splime.errors import DataError, UsageError
from splime.graph import TemporalGraph
from splime.io.files import locked
from splime.query import Query
from splime.runs import Run, combine, evaluate, evaluations, train
from tests.runs.small import call, small_graph, small_run

SMALL: dict[str, Any] = {"model": "path", "layers": 2, "dimension": 16, "batch_size": 20}
NEWER = [
    "subject,predicate,object,begin,end",
    "Newcomer,p1,entity 7,1998,2001",
    "entity 7,p2,Newcomer,1999,2030",
    "Newcomer,adores,entity 7,1999,1999",
]


@pytest.fixture(scope="module")
def graph() -> TemporalGraph:
    return small_graph(test=60)


@pytest.fixture(scope="module")
def trained(graph: TemporalGraph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("counted") / "run"
    return train(graph, None, place, **SMALL, epochs=1).path


@pytest.fixture(scope="module")
def learned(graph: TemporalGraph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("learned") / "run"
    return train(graph, None, place, **SMALL, messages="learned", epochs=1).path


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained, tmp_path / "run")


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    return written(tmp_path / "newer.csv", NEWER)


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def answers(run: Path, *more: Any) -> Any:
    done = call("ask", run, "Newcomer", "p2", "?", "--at", 1999, "--json", *more)
    assert done.code == 0, done.err
    return json.loads(done.out)["answers"]


def test_answers_are_those_with_facts(folder: Path, newer: Path) -> None:
    expected = answers(folder, "--facts", newer)
    kept = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != CALIBRATION}
    done = call("update", folder, newer)
    assert done.code == 0, done.err
    shown = " ".join(done.out.split())
    for part in ("facts added │ 3", "1: Newcomer", "1: adores", "before 1990 to 20"):
        assert part in shown
    assert answers(folder) == expected
    done = call("ask", folder, "Newcomer", "adores", "?", "--at", 1999)
    assert done.code == 0, done.err
    for name, content in kept.items():  # what the training wrote stays
        assert (folder / name).read_bytes() == content


def test_corrections_and_second_updates(folder: Path, newer: Path, tmp_path: Path) -> None:
    assert call("update", folder, newer).code == 0
    later = written(tmp_path / "later.csv", [NEWER[0], "Newcomer,p1,entity 7,2000,2005"])
    done = call("update", folder, later, "--json")
    change = json.loads(done.out)
    assert (change["added"], change["corrected"], change["new_entities"]) == (0, 1, 0)
    rows = [row for row in Run(folder).graph.rows("train") if row.subject == "Newcomer"]
    assert [row[3:] for row in rows if row.predicate == "p1"] == [("2000", "2005")]
    before = {path: path.read_bytes() for path in folder.iterdir()}
    done = call("update", folder, later)
    assert "has all of these facts already" in done.out
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    updates = Run(folder).updates
    assert updates is not None
    assert [one.source for one in updates.changes] == [str(newer), str(later)]
    assert len([*folder.glob("updated-*.parquet")]) == 1


def test_metrics_and_probabilities_are_of_the_new_facts(folder: Path, newer: Path) -> None:
    before = evaluate(folder)
    assert evaluations(Run(folder)) != []
    old = Query(Run(folder))._calibrations._stored().config
    assert call("update", folder, newer).code == 0
    assert evaluations(Run(folder)) == []
    assert Query(Run(folder))._calibrations._stored().config != old
    done = call("evaluate", folder)
    assert "the run was updated once" in " ".join(done.out.split())
    [after] = evaluations(Run(folder))
    assert after.candidates == before.candidates + 1
    done = call("evaluate", folder, "--json")
    assert json.loads(done.out)["candidates"] == after.candidates


def test_facts_of_test_are_said(folder: Path, tmp_path: Path) -> None:
    fact = next(row for row in Run(folder).graph.rows("test") if row.begin and row.end)
    there = written(tmp_path / "there.csv", [NEWER[0], ",".join(map(str, fact))])
    done = call("update", folder, there)
    assert done.code == 0, done.err
    if "stays as it was" not in done.out:
        assert "of valid and test are now among the facts" in done.err


def test_messages_that_were_learned_know_no_new_predicates(
    learned: Path, newer: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(learned, tmp_path / "run")
    done = call("update", folder, newer)
    assert done.code == 0, done.err
    assert "1 of 3 facts have predicates that the run has not learned" in done.err
    assert "adores" in done.err
    assert "left out" in done.out
    assert answers(folder)
    assert call("ask", folder, "Newcomer", "adores", "?").code == 2
    strange = written(tmp_path / "strange.csv", [NEWER[0], NEWER[3]])
    before = (folder / "updates.json").read_bytes()
    done = call("update", folder, strange)
    assert done.code == 2
    assert "it has learned p0" in done.err
    assert (folder / "updates.json").read_bytes() == before


def test_what_cannot_be_updated(
    graph: TemporalGraph, folder: Path, newer: Path, tmp_path: Path
) -> None:
    factors = small_run(graph, tmp_path / "factors", epochs=1).path
    for run, source, code, message in (
        (factors, newer, 2, "must be trained again"),
        (tmp_path / "nothing", newer, 2, "not a run of splime"),
        (folder, tmp_path / "missing.csv", 3, "missing.csv"),
        (folder, written(tmp_path / "days.csv", ["a,p1,b,1999-05-03"]), 2, "--granularity year"),
    ):
        done = call("update", run, source)
        assert (done.code, "Traceback" in done.err) == (code, False), done.err
        assert message in " ".join(done.err.split())
    assert Run(folder).updates is None
    other = Run(folder).over(splime.load(str(newer), split="none"))
    with pytest.raises(UsageError, match="update the run itself"):
        other.update(newer)
    with locked(folder):
        done = call("update", folder, newer)
    assert done.code == 2
    assert "another process is working" in done.err


def test_in_python(folder: Path, newer: Path) -> None:
    run = Run(folder)
    assert "Newcomer" not in run.graph.entities
    change = splime.update(folder, splime.load(str(newer), split="none"))
    assert (change.added, change.new_entities) == (3, 1)
    assert run.update(newer).added == 0  # another one had added them
    assert "Newcomer" in run.graph.entities
    assert train(small_graph(test=60), None, folder, **SMALL, epochs=1).updates is not None


def test_reading_options(folder: Path, tmp_path: Path) -> None:
    odd = written(tmp_path / "odd.csv", ["1998;entity 7;p1;Newcomer", "1999;entity 8;p1;Newcomer"])
    done = call("update", folder, odd, "--columns", "4,3,2,1", "--no-header")
    assert done.code == 0, done.err
    assert answers(folder)


def test_combinations(folder: Path, graph: TemporalGraph, newer: Path, tmp_path: Path) -> None:
    latest = train(graph, None, tmp_path / "latest", model="latest").path
    both = combine([folder, latest], tmp_path / "both").path
    lines = written(tmp_path / "known.csv", NEWER[:3])
    expected = answers(both, "--facts", lines)
    assert call("update", both, lines).code == 0
    assert answers(both) == expected
    for path in (folder, latest):  # an update of both goes into their combination
        assert call("update", path, lines).code == 0
    assert answers(combine([folder, latest], tmp_path / "again").path)


def test_damaged(folder: Path, newer: Path) -> None:
    assert call("update", folder, newer).code == 0
    [stored] = folder.glob("updated-*.parquet")
    stored.unlink()
    with pytest.raises(DataError, match="open it again"):
        _ = Run(folder).graph
    (folder / "updates.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"updates\.json"):
        Run(folder)


KILLED = """
import os, signal, sys
from splime.runs import updates, update

def kill(*args, **options):
    os.kill(os.getpid(), signal.SIGKILL)

where, run, newer = sys.argv[1:]
if where == "after":
    real = updates.write_json
    updates.write_json = lambda *args: (real(*args), kill())
elif where == "replace":
    updates.write_json = lambda path, value: (path.with_name(".half.part").touch(), kill())
else:
    setattr(updates, where, kill)
update(run, newer)
"""


@pytest.mark.system
@pytest.mark.parametrize("where", ["save", "write_json", "replace", "after"])
def test_a_kill_leaves_the_old_or_the_new(folder: Path, newer: Path, where: str) -> None:
    """Killed before the graph, between graph and its name, at the name, and before the old goes."""
    assert call("update", folder, written(newer.with_name("first.csv"), NEWER[:2])).code == 0
    old = Run(folder).graph
    command = [sys.executable, "-c", KILLED, where, str(folder), str(newer)]
    done = subprocess.run(command, check=False, capture_output=True, timeout=300)
    assert done.returncode == -signal.SIGKILL, done.stderr
    there = Run(folder).graph
    if where == "after":
        assert len(there) == len(old) + 2
    else:
        assert there == old
    assert call("update", folder, newer).code == 0
    assert len(Run(folder).graph) == len(old) + 2
    assert len([*folder.glob("updated-*.parquet")]) == 1
