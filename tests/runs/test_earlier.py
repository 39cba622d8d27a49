"""Runs of earlier versions open, and give what they gave.

tests/data/run-0.2.0 was made by splime 0.2.0: a combination, whose members are a run of complex
over the cuts of split and a run of path. All three had a method and cuts then.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import splime
from splime.errors import UsageError
from splime.runs import Run, evaluate, evaluations, train
from tests.runs.small import StopAfter, call

EARLIER = Path(__file__).parent.parent / "data" / "run-0.2.0"
FOLDERS = {"combined": ".", "complex": "members/1", "path": "members/2"}
SETTINGS: dict[str, dict[str, Any]] = {
    "complex": {"dimension": 6, "batch_size": 20, "epochs": 40, "validate_every": 1},
    "path": {
        **{"dimension": 16, "layers": 1, "batch_size": 20, "epochs": 1},
        "relative": "intervals:1",
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(EARLIER, tmp_path / "run")


@pytest.mark.parametrize("model", FOLDERS)
def test_it_opens_and_evaluates_to_what_it_has_stored(model: str, folder: Path) -> None:
    run = Run(folder / FOLDERS[model])
    assert run.settings.model == model
    assert run.method_name == ("Split" if model == "complex" else "Vanilla")
    stored = evaluations(run)
    assert len(stored) == 1
    (run.path / "metrics.json").unlink()
    again = evaluate(run, bootstrap=0)
    assert again.metrics.keys() == stored[0].metrics.keys() == {"exact", "overlap", "static"}
    for by, sides in again.metrics.items():
        for side, metrics in sides.items():
            assert vars(metrics) == pytest.approx(vars(stored[0].metrics[by][side])), (by, side)
    assert json.loads((run.path / "metrics.json").read_text()).keys() == {"fact-test-mean-mean"}


@pytest.mark.parametrize("model", FOLDERS)
def test_it_answers(model: str, folder: Path) -> None:
    run = Run(folder / FOLDERS[model])
    fact = next(run.graph.rows("test"))
    answers = splime.Query(run).ask(fact.subject, fact.predicate, "?", at=fact.begin, limit=3)
    assert len(answers) == 3
    done = call("ask", run.path, fact.subject, fact.predicate, "?", "--at", fact.begin)
    assert done.code == 0, done.err


@pytest.mark.parametrize("model", SETTINGS)
def test_it_is_not_trained_again(model: str, folder: Path) -> None:
    run = Run(folder / FOLDERS[model])
    cuts = splime.Split(grow=2) if model == "complex" else None
    watch = StopAfter(1)
    again = train(run.graph, cuts, run.path, model=model, watch=watch, **SETTINGS[model])
    assert watch.told == []
    assert again.history == run.history
    with pytest.raises(UsageError, match="another configuration"):
        train(run.graph, cuts, run.path, model=model, **{**SETTINGS[model], "seed": 3})


def test_models_that_read_facts_are_asked_over_others(folder: Path) -> None:
    run = Run(folder / FOLDERS["path"])
    more = splime.read({"train": [("entity 1", "p0", "entity new", 1999)]}, granularity="year")
    over = run.over(more)
    answers = splime.Query(over).ask("entity 1", "p0", "?", at=1999, limit=20)
    assert "entity new" in [answer.name for answer in answers]
