"""Models of PyKEEN in runs: trained, opened and ranked as our own are."""

from __future__ import annotations

import gc
import importlib.util
import json
import logging
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import splime
from splime.analysis.embeddings import export_embeddings
from splime.errors import DataError, SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.runs import PROTOCOLS, Interrupted, Run, evaluate, is_finished
from tests.runs.small import CUTS, StopAfter, call, small_graph

if importlib.util.find_spec("pykeen") is None:
    pytest.skip("pykeen is not installed (splime-kg[pykeen])", allow_module_level=True)

from splime.training import pykeen as module

# Others may have set PyTorch so that it warns of what PyKEEN does when it is imported.
pytestmark = [
    pytest.mark.system,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]

# ConvE normalises batches, TransR has a size of its own for predicates, RESCAL shares tensors.
MODELS = ["TuckER", "ConvE", "TransR", "RESCAL", "RotatE"]


@pytest.fixture(autouse=True)
def no_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyKEEN collects garbage after every epoch; here there is all of pytest's to look through."""
    monkeypatch.setattr(gc, "collect", lambda *_: 0)


def pykeen_run(graph: TemporalGraph, out: Path, model: str = "DistMult", **settings: Any) -> Run:
    small = {"dimension": 8, "epochs": 2, "batch_size": 32, "negatives": 2}
    return splime.train(graph, CUTS, out, model=model, engine="pykeen", **{**small, **settings})


@pytest.mark.parametrize("model", MODELS)
def test_trained_opened_and_ranked(model: str, graph: TemporalGraph, tmp_path: Path) -> None:
    pykeen_run(graph, tmp_path / "run", model)
    run = Run(tmp_path / "run")
    assert run.settings.model == model
    assert len(run.history) == 2
    assert run.about["parameters"] > 8 * 12
    scorer = run.scorer
    s, p, o = torch.from_numpy(run.static.train.array()[:7].astype(np.int64)).T
    with torch.inference_mode():
        theirs = scorer.model
        for mine, expected, third in (
            (scorer.objects(s, p), theirs.score_t(torch.stack([s, p], 1)), o),
            (scorer.subjects(p, o), theirs.score_h(torch.stack([p, o], 1)), s),
            (scorer.predicates(s, o), theirs.score_r(torch.stack([s, o], 1)), p),
        ):
            assert torch.equal(mine, expected)
            own = theirs.score_hrt(torch.stack([s, p, o], 1))[:, 0]
            assert torch.allclose(mine.gather(1, third[:, None])[:, 0], own, atol=1e-5)
    for protocol in PROTOCOLS:
        found = evaluate(run, protocol)
        assert found.metrics[found.filters[0]]["both"].mrr > 0


def test_it_is_the_trained_model(graph: TemporalGraph, tmp_path: Path) -> None:
    short, long, again = (
        pykeen_run(graph, tmp_path / str(n), epochs=epochs, learning_rate=0.2)
        for n, epochs in enumerate((1, 4, 4))
    )
    assert long.history[-1].loss < short.history[-1].loss
    assert long.history[0] == short.history[0]
    mrr = [evaluate(one, split="train").metrics["exact"]["both"].mrr for one in (short, long)]
    assert mrr[1] > mrr[0] + 0.05
    files = [(one.path / "model.safetensors").read_bytes() for one in (long, again)]
    assert files[0] == files[1]


def test_the_configuration_tells_what_counts(graph: TemporalGraph, tmp_path: Path) -> None:
    run = pykeen_run(graph, tmp_path / "run", "tucker", negatives=1, seed=3)
    assert run.config["run"]["engine"] == "pykeen"
    assert run.config["settings"] == {
        "model": "TuckER", "dimension": 8, "epochs": 2, "batch_size": 32, "learning_rate": 1e-3,
        "negatives": 1, "distinct": True, "seed": 3,
    }  # fmt: skip
    assert run.settings.negatives == 1
    assert run.about["loss"] == "BCEAfterSigmoidLoss"
    assert run.about["triples"] == len(run.static.distinct()[0].train)
    assert run.about["versions"]["pykeen"]
    with pytest.raises(UsageError, match="no vectors of this model"):
        export_embeddings(run, tmp_path / "e.tsv")


def test_a_small_scorer_asks_in_parts(
    graph: TemporalGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = pykeen_run(graph, tmp_path / "run")
    ids = torch.arange(5)
    whole = run.scorer.objects(ids, ids)
    monkeypatch.setattr(module, "_NUMBERS", 1)
    assert torch.equal(Run(run.path).scorer.objects(ids, ids), whole)


def test_what_others_draw_from_is_left_alone(graph: TemporalGraph, tmp_path: Path) -> None:
    def draws() -> tuple[float, float, float]:
        return random.random(), float(np.random.rand()), float(torch.rand(()))

    def seed() -> None:
        random.seed(7)
        np.random.seed(7)
        torch.manual_seed(7)

    log = logging.getLogger("pykeen")
    level = log.level
    seed()
    expected = draws()
    seed()
    run = pykeen_run(graph, tmp_path / "run")
    assert run.scorer
    assert draws() == expected
    assert log.level == level


def test_it_says_nothing_of_itself(
    graph: TemporalGraph,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = pykeen_run(graph, tmp_path / "run", "ConvE")
    evaluate(run)
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


def test_on_the_command_line(graph: TemporalGraph, tmp_path: Path) -> None:
    splime.save(graph, tmp_path / "facts.parquet")
    arguments = (
        "train", tmp_path / "facts.parquet", "--method", "split", "--grow", "2", "--engine",
        "pykeen", "--model", "TuckER", "--dimension", "8", "--epochs", "2", "--batch-size", "32",
        "--out", tmp_path / "run",
    )  # fmt: skip
    done = call(*arguments)
    assert done.code == 0, done.err
    assert "TuckER (dimension 8, learning_rate 0.001, batch_size 32" in done.out
    assert "was finished before" in call(*arguments).out
    done = call("evaluate", tmp_path / "run", "--json", "--protocol", "triple")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["protocol"] == "triple"


def test_an_interruption(graph: TemporalGraph, tmp_path: Path) -> None:
    watch = StopAfter(2)
    with pytest.raises(Interrupted, match=r"epoch 2 of 2; .* the same command begins again"):
        pykeen_run(graph, tmp_path / "run", watch=watch)
    assert watch.told == [(0, 2, 3, 3), (1, 2, 3, 3)]
    assert not is_finished(tmp_path / "run")
    watch = StopAfter(100)
    run = pykeen_run(graph, tmp_path / "run", watch=watch)
    assert [found for found, _ in watch.epochs] == run.history
    whole = pykeen_run(graph, tmp_path / "whole")
    names = ("model.safetensors", "history.csv")
    assert all((run.path / n).read_bytes() == (whole.path / n).read_bytes() for n in names)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "TuckR"}, r"PyKEEN has no model 'TuckR'.*Did you mean TuckER"),
        ({"margin": 3.0}, "margin has no effect on"),
        ({"each": "fact"}, "each has no effect on"),
        ({"dimensions": 3}, r"no setting 'dimensions'.*Did you mean dimension\?"),
        ({"dimension": 0}, "dimension must be at least 1"),
        ({"batch_size": 10_000}, "a batch of 10,000 is larger than train, which has"),
        ({"model": "NodePiece"}, "NodePiece cannot be made with these settings: .*inverse"),
        ({"model": "CompGCN"}, "CompGCN cannot be made with these settings: AssertionError"),
        ({"model": "ComplExLiteral"}, "ComplExLiteral cannot be made .*literal_shape"),
        ({"model": "InductiveNodePiece"}, "cannot be made .*inference_factory"),
        ({"device": "gpu"}, "device is auto, cpu or cuda"),
    ],
)
def test_errors_take_no_folder(
    settings: dict[str, Any], message: str, graph: TemporalGraph, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        pykeen_run(graph, tmp_path / "run", **settings)
    assert list(tmp_path.iterdir()) == []


def test_trainings_that_fail(
    graph: TemporalGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with pytest.raises(SplimeError, match=r"diverged\. Lower learning_rate \(it is 9e\+18\)"):
        pykeen_run(graph, out, "RotatE", learning_rate=9e18, epochs=5)
    from pykeen.training import SLCWATrainingLoop

    def fails(error: Exception) -> Any:
        def train(*_: object, **__: object) -> None:
            raise error

        return train

    for error, message in (
        (
            torch.OutOfMemoryError("CUDA out of memory"),
            "not enough memory: lower batch_size",
        ),
        (ValueError("no batches"), "PyKEEN could not train DistMult: no batches"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(SLCWATrainingLoop, "train", fails(error))
            with pytest.raises(SplimeError, match=message):
                pykeen_run(graph, out)
    assert pykeen_run(graph, out).history


def test_weights_of_another_model(graph: TemporalGraph, tmp_path: Path) -> None:
    from splime.tensors import load_tensors, save_tensors

    run = pykeen_run(graph, tmp_path / "run")
    path = run.path / "model.safetensors"
    tensors, about = load_tensors(path)
    name = next(name for name in tensors if name.startswith("pykeen."))
    save_tensors(path, {**tensors, name: tensors[name][:1]}, about)
    with pytest.raises(
        DataError, match=r"model\.safetensors: not the parameters of this run: .*siz"
    ):
        _ = Run(run.path).scorer
    other = pykeen_run(small_graph(1), tmp_path / "other")
    shutil.copy(other.path / "model.safetensors", path)
    with pytest.raises(DataError, match=r"model\.safetensors: does not belong"):
        _ = Run(run.path).scorer


def test_without_pykeen(
    graph: TemporalGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pykeen.models", None)
    with pytest.raises(SplimeError, match=r"pip install 'splime-kg\[pykeen\]'"):
        pykeen_run(graph, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_train(graph: TemporalGraph, tmp_path: Path) -> None:
    from dataclasses import replace

    from splime.graph import Facts

    with pytest.raises(UsageError, match="train has no facts"):
        pykeen_run(replace(graph, train=Facts.empty()), tmp_path / "run")
