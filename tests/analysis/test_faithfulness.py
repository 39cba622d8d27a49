"""Evidence that is taken away, or kept alone: against a graph that really lacks the facts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import splime
from splime.analysis import faithfulness
from splime.analysis.faithfulness import check_evidence
from splime.errors import UsageError
from splime.paths.scorer import PathScorer
from splime.runs import Run, train
from splime.runs.graph_run import GraphRun
from tests.runs.small import call, small_graph, small_run

SMALL: dict[str, Any] = {"model": "path", "messages": "learned", "layers": 2, "dimension": 16}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    graph = small_graph(test=40)
    return train(graph, None, tmp_path_factory.mktemp("run") / "run", **SMALL, epochs=2)


def test_what_is_taken_away_is_as_if_it_were_not_there(run: Run) -> None:
    scorer = run.scorer
    assert isinstance(scorer, PathScorer)
    fact = run.graph.test.take(np.array([3]))
    scores = scorer.entities("object", fact)[0]
    answer, numbers = int(scores.argmax()), np.array([1, 4, 9])
    change = faithfulness._change(scorer, "object", fact, answer, float(scores[answer]), numbers)
    lacks = ~np.isin(np.arange(len(run.graph.train)), numbers)
    parts = [
        PathScorer(
            scorer.model, replace(run.graph, train=run.graph.train.take(mask)), run.settings
        ).entities("object", fact)[0]
        for mask in (lacks, ~lacks)
    ]
    assert change.fall == pytest.approx(float(scores[answer] - parts[0][answer]), abs=1e-4)
    assert change.lost == float(parts[0].argmax() != answer)
    assert change.alone == float(parts[1].argmax() == answer)
    assert scorer.entities("object", fact)[0].equal(scores)


def test_other_facts_are_near_and_no_evidence(run: Run) -> None:
    known = run.graph.train
    near = faithfulness._near(known, np.array([5, 8]))
    entities = {*known.subject[[5, 8]].tolist(), *known.object[[5, 8]].tolist()}
    expected = [
        number
        for number, pair in enumerate(zip(known.subject, known.object, strict=True))
        if entities & {*map(int, pair)} and number not in (5, 8)
    ]
    assert near.tolist() == expected


def test_evidence_decides_more_than_other_facts() -> None:
    rows = [(f"p{n}", "bornIn", f"c{n % 4}", 1990 + n % 5) for n in range(40)]
    rows += [(f"p{n}", "livesIn", f"c{n % 4}", 2000 + n % 5) for n in range(40)]
    test = [(f"p{n}", "citizenOf", f"c{n % 4}", 2010) for n in range(20)]
    rows += [(f"p{n}", "citizenOf", f"c{n % 4}", 2010) for n in range(20, 40)]
    found = check_evidence(GraphRun(splime.read({"train": rows, "test": test})), questions=40)
    assert found.questions + found.without == 40
    assert found.evidence.fall > found.others.fall
    assert found.evidence.alone > found.others.alone
    assert found == check_evidence(
        GraphRun(splime.read({"train": rows, "test": test})), questions=40
    )


def test_bad_input(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only a path model"):
        check_evidence(small_run(small_graph(test=40), tmp_path / "run", splime.Vanilla()))
    with pytest.raises(UsageError, match="no facts to ask"):
        check_evidence(GraphRun(splime.read([("a", "p", "b", 1990)], split="none")))
    with pytest.raises(UsageError, match="questions"):
        check_evidence(run, questions=0)


def test_the_command(run: Run) -> None:
    done = call("evaluate", run.path, "--evidence", "--questions", "10", "--json")
    assert done.code == 0, done.err
    shown = json.loads(done.out)
    assert shown["questions"] + shown["without"] == 10
    assert "facts of evidence" in call("evaluate", run.path, "--evidence", "--questions", "4").out
