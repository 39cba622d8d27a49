"""Combinations of runs: the weights, what they score, and folders that stand alone."""

from __future__ import annotations

import json
import math
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import splime
from splime.errors import DataError, UsageError, WriteError
from splime.evaluation.protocols import EvaluationOptions, evaluate_scoring
from splime.graph import BEGIN_UNKNOWN, END_UNKNOWN, TemporalGraph
from splime.runs import Run, combine, combining, evaluate, is_finished
from splime.runs.combining import WEIGHTS, choose_weights
from splime.scoring.combined import CombinedScorer
from splime.scoring.queries import Scoring
from splime.scoring.timed import TimedScoring
from tests.runs.small import call, small_graph, small_run

PATH = {"model": "path", "layers": 2, "dimension": 16, "epochs": 20, "validate_every": 1}


@pytest.fixture(scope="module")
def graph() -> TemporalGraph:
    return small_graph()


@pytest.fixture(scope="module")
def runs(graph: TemporalGraph, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Cut predicates, the path model, and cut entities; only to be read."""
    folder = tmp_path_factory.mktemp("members")
    entities = splime.Split(grow=2, target="both")
    made = [
        small_run(graph, folder / "split"),
        small_run(graph, folder / "path", splime.Vanilla(), **PATH),
        small_run(graph, folder / "entities", entities, seed=3),
    ]
    return [run.path for run in made]


@pytest.fixture
def both(runs: list[Path], tmp_path: Path) -> Path:
    """A combination of one's own."""
    return combine(runs[:2], tmp_path / "both").path


def scorings(paths: list[Path]) -> list[Scoring]:
    return [Run(path).scoring() for path in paths]


def asked_literally(members: list[Scoring], graph: TemporalGraph) -> list[tuple[Any, ...]]:
    """For both sides of each fact of valid: what members give, the answer, and other answers."""

    def time(fact: tuple[int, ...]) -> tuple[float, float]:
        begin, end, unknown = fact[3:]
        return (
            -math.inf if unknown & BEGIN_UNKNOWN else begin,
            math.inf if unknown & END_UNKNOWN else end,
        )

    every = [tuple(map(int, row)) for row in zip(*graph.facts().columns(), strict=True)]
    asked = []
    for at, row in enumerate(zip(*graph.valid.columns(), strict=True)):
        fact = tuple(map(int, row))
        one = graph.valid.take(np.array([at]))
        for kind, place in (("object", 2), ("subject", 0)):
            given = []
            for member in members:
                [block] = member.blocks(kind, one)  # type: ignore[arg-type]
                scores = (block.scores[0] / block.weight[0]).double().numpy()
                given.append(scores - np.log(np.exp(scores).sum()))
            known = {
                other[place]
                for other in every
                if other[1] == fact[1]
                and other[2 - place] == fact[2 - place]
                and time(other) == time(fact)
            }
            asked.append((given, fact[place], known - {fact[place]}))
    return asked


def mrr_literally(asked: list[tuple[Any, ...]], weights: list[float]) -> float:
    """Candidate by candidate."""
    total = 0.0
    for given, answer, known in asked:
        sums = [
            sum(w * each[at] for w, each in zip(weights, given, strict=True))
            for at in range(len(given[0]))
        ]
        left = [score for at, score in enumerate(sums) if at not in known]
        better = sum(score > sums[answer] + 1e-9 for score in left)
        equal = sum(abs(score - sums[answer]) <= 1e-9 for score in left) - 1
        total += 1 / (1 + better + equal / 2)
    return total / len(asked)


def test_weights_are_those_of_a_literal_search(runs: list[Path], graph: TemporalGraph) -> None:
    members = scorings(runs)
    with torch.inference_mode():
        mrr = partial(mrr_literally, asked_literally(members, graph))
    alone = [mrr([1.0, 0, 0]), mrr([0, 1.0, 0]), mrr([0, 0, 1.0])]
    first, *others = sorted(range(3), key=lambda at: -alone[at])
    weights = {first: 1.0, others[0]: 0.0, others[1]: 0.0}
    best, changed = alone[first], True
    while changed:
        changed = False
        for at in others:
            for weight in WEIGHTS:
                tried = {**weights, at: weight}
                value = mrr([tried[0], tried[1], tried[2]])
                if value > best + 1e-12:
                    best, weights, changed = value, tried, True
    chosen = choose_weights(members)
    assert chosen.alone == pytest.approx(alone)
    assert chosen.mrr == pytest.approx(best)
    assert chosen.mrr >= max(alone)
    whole = sum(weights.values())
    assert chosen.weights == pytest.approx([weights[at] / whole for at in range(3)])
    assert chosen.facts == len(graph.valid)


def test_scores_that_are_kept_are_bounded(
    runs: list[Path], graph: TemporalGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where valid is too large, some of its facts decide, the same ones each time."""
    monkeypatch.setattr(combining, "_MOST", 7 * 2 * 2 * len(graph.entities))
    first, again = (choose_weights(scorings(runs[:2])) for _ in range(2))
    assert first == again
    assert first.facts == 7


@pytest.mark.parametrize("which", [0, 1])
def test_a_member_without_weight_changes_nothing(runs: list[Path], which: int) -> None:
    members, run = scorings(runs[:2]), Run(runs[which])
    weights = [float(at == which) for at in range(2)]
    options = EvaluationOptions(bootstrap=0)
    for protocol in ("fact", "predicate") if which else ("fact",):  # the other ranks by scopes
        alone = evaluate_scoring(run.scoring(), protocol, options)
        both = TimedScoring(CombinedScorer(members, weights), run.graph)
        combined = evaluate_scoring(both, protocol, options)
        for name, ranks in alone.ranks.items():
            np.testing.assert_allclose(combined.ranks[name], ranks)


def test_a_combination_is_a_run(runs: list[Path], tmp_path: Path, graph: TemporalGraph) -> None:
    """From the command line, with its members gone."""
    here = [shutil.copytree(path, tmp_path / path.name) for path in runs[:2]]
    for path in here:
        assert call("evaluate", path).code == 0
    (here[0] / "lock").touch()  # as if somebody worked in it meanwhile
    out = tmp_path / "combined"
    made = call("combine", *here, "--out", out, "--device", "cpu")
    assert (made.code, made.err) == (0, "")
    assert "member 2" in made.out
    for path in here:
        shutil.rmtree(path)
    assert not (out / "members" / "1" / "lock").exists()
    run = Run(out)
    assert repr(run).endswith(": combined on facts)")
    assert [member.engine for member in run.members] == ["splime", "paths"]
    assert run.about["parameters"] == sum(each.about["parameters"] for each in run.members)
    shown = call("evaluate", out)
    assert "members alone" in shown.out
    assert "1: distmult" in shown.out
    valid = json.loads(call("evaluate", out, "--split", "valid", "--json").out)
    assert valid["metrics"]["exact"]["both"]["mrr"] == pytest.approx(run.about["valid"]["mrr"])
    subject, predicate, object_, begin, _ = next(graph.rows("test"))
    asked = ("ask", out, subject, predicate)
    for question in (
        (*asked, "?", "--at", begin, "--why"),
        ("ask", out, "?", predicate, object_, "--at", begin),
        ("ask", out, subject, "?", object_, "--at", begin),
        (*asked, object_),
    ):
        answered = call(*question)
        assert answered.code == 0, answered.err
    assert "without a time" in call("evaluate", out, "--protocol", "triple").err
    assert "no vectors" in call("ask", out, "--near", subject).err
    compared = call("compare", out, out / "members" / "1", out / "members" / "2")
    assert compared.code == 0, compared.err
    assert "combined" in compared.out
    assert call("report", out, "--out", tmp_path / "report.html").code == 0
    assert "weights" in (out / "config.toml").read_text()


def test_members_are_asked_as_they_were_trained(graph: TemporalGraph, tmp_path: Path) -> None:
    """A model with predicates of begins and ends is asked at both, as where it is evaluated."""
    ends = {"model": "telm", "each": "ends"}
    made = [small_run(graph, tmp_path / str(seed), None, **ends, seed=seed) for seed in (0, 1)]
    combined = combine(made, tmp_path / "run")
    for run, alone in zip(made, combined.about["valid"]["members"], strict=True):
        own = evaluate(run, "fact", split="valid").metrics["exact"]["both"].mrr
        assert alone == pytest.approx(own)


def test_only_a_path_model_knows_why(runs: list[Path], tmp_path: Path) -> None:
    query = splime.Query(combine([runs[0], runs[2]], tmp_path / "out"))
    with pytest.raises(UsageError, match="only the path model knows"):
        query.why("entity 1", "p1", "?", at=1995)


def test_a_combination_may_be_combined(both: Path, runs: list[Path], tmp_path: Path) -> None:
    again = combine([both, runs[2]], tmp_path / "again")
    shutil.rmtree(both)
    assert [run.engine for run in again.members[0].members] == ["splime", "paths"]
    assert evaluate(again).queries == 2 * len(again.graph.test)


def test_what_cannot_be_combined(
    runs: list[Path], graph: TemporalGraph, tmp_path: Path, both: Path
) -> None:
    other = small_run(small_graph(seed=1), tmp_path / "other", epochs=1).path
    for wrong, message in (
        ([runs[0]], "at least two runs"),
        ([runs[0], runs[1], runs[0]], "given more than once"),
        ([runs[0], other], "cannot be combined: their facts differ"),
        ([runs[0], tmp_path / "nowhere"], "not a run of splime"),
    ):
        with pytest.raises(UsageError, match=message):
            combine(wrong, tmp_path / "out")
        assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="asked over other facts"):
        combine([runs[0], Run(runs[1]).over(graph)], tmp_path / "out")
    with pytest.raises(UsageError, match="is there already"):
        combine(runs[:2], both)
    assert is_finished(both)


def test_without_valid_there_is_nothing_to_choose_by(tmp_path: Path) -> None:
    rows = list(small_graph().rows("train"))
    graph = splime.read({"train": rows[:80], "test": rows[80:]}, granularity="year")
    settings: dict[str, Any] = {"epochs": 1, "validate_every": 0}
    made = [small_run(graph, tmp_path / str(seed), seed=seed, **settings) for seed in (0, 1)]
    with pytest.raises(UsageError, match="valid has no facts to choose weights on"):
        combine(made, tmp_path / "out")


def test_a_folder_is_written_whole_or_not_at_all(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(combining, "save_tensors", fail)
    with pytest.raises(WriteError, match="no space left"):
        combine(runs[:2], tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("file", ["model.safetensors", "segmentation.json", "config.toml"])
def test_a_damaged_member_is_an_error(both: Path, file: str) -> None:
    path = both / "members" / "1" / file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError):
        evaluate(Run(both))


def test_members_are_those_that_were_combined(both: Path, tmp_path: Path) -> None:
    members = both / "members"
    (members / "1").rename(members / "3")
    with pytest.raises(DataError, match="member of the combination is missing"):
        evaluate(Run(both))
    shutil.copytree(members / "2", members / "1")
    with pytest.raises(DataError, match="not the run that was combined"):
        evaluate(Run(both))


def test_weights_cannot_be_changed_afterwards(both: Path) -> None:
    config = both / "config.toml"
    weight = Run(both).config["settings"]["weights"][0]
    config.write_text(config.read_text().replace(f"{weight!r}", "0.123"))
    with pytest.raises(DataError, match="does not belong to the config"):
        evaluate(Run(both))
