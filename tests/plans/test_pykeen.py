"""Models of PyKEEN through plans and searches: the same way as splime's own."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import splime
from splime.plans import read_plan
from splime.runs import Run
from tests.runs.small import call, small_graph

if importlib.util.find_spec("pykeen") is None:
    pytest.skip("pykeen is not installed (splime-kg[pykeen])", allow_module_level=True)

# Others may have set PyTorch so that it warns of what PyKEEN does when it is imported.
pytestmark = [
    pytest.mark.system,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]

SMALL = ("--dimension", 4, "--epochs", 2, "--batch-size", 32, "--device", "cpu")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "small.parquet"
    splime.save(small_graph(), path)
    return path


def test_run_compare_and_report(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    methods = ("--method", "vanilla", "--method", "split", "--grow", 2)
    arguments = ("--engine", "pykeen", "--model", "TransE", "--negatives", 2, *methods, *SMALL)
    done = call("run", data, *arguments, "--out", out)
    assert done.code == 0, done.err
    assert read_plan(out / "plan.toml").training["engine"] == "pykeen"
    rows = json.loads((out / "comparison.json").read_text(encoding="utf-8"))["rows"]
    assert {(row["method"], row["model"]) for row in rows} == {
        ("vanilla", "TransE"),
        ("split", "TransE"),
    }
    assert Run(out / "runs" / "split").engine == "pykeen"
    assert "TransE" in (out / "report.html").read_text(encoding="utf-8")
    again = call("run", out / "plan.toml", "--out", out)
    assert (again.code, again.out) == (0, done.out)


def test_engines_side_by_side(data: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f"""
        data = {json.dumps(str(data))}
        [training]
        dimension = 4
        epochs = 2
        [[run]]
        method = "vanilla"
        training = {{ model = "transe" }}
        [[run]]
        name = "theirs"
        method = "vanilla"
        training = {{ engine = "pykeen", model = "TransE" }}
        """,
        encoding="utf-8",
    )
    done = call("run", plan, "--out", tmp_path / "out", "--device", "cpu")
    assert done.code == 0, done.err
    engines = {name: Run(tmp_path / "out" / "runs" / name).engine for name in ("vanilla", "theirs")}
    assert engines == {"vanilla": "splime", "theirs": "pykeen"}


def test_tune(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "search"
    arguments = ("--trials", 3, "--processes", 1, "--methods", "vanilla,split", *SMALL)
    engine = ("--engine", "pykeen", "--models", "TransE,distmult")
    done = call("tune", data, "--out", out, *arguments, *engine)
    assert done.code == 0, done.err
    assert "the best of 3 trials (3 finished)" in done.out
    plan = read_plan(out / "best.toml")
    (run,) = plan.runs
    settings = plan.settings_of(run)
    assert settings["engine"] == "pykeen"
    assert settings["model"] in ("TransE", "DistMult")
    assert {"learning_rate", "negatives"} <= {*run.training}
    # What the search says of valid is what the finished model has there, without test's facts.
    graph = splime.graph.replace(small_graph(), test=splime.graph.Facts.empty())  # type: ignore[attr-defined]
    trained = splime.train(graph, run.method, tmp_path / "run", device="cpu", **settings)
    mrr = splime.evaluate(trained, split="valid").metrics["exact"]["both"].mrr
    assert f"{mrr:.3f}" in done.out
    assert call("tune", data, "--out", out, *arguments, *engine).out == done.out
    own = call("tune", data, "--out", out, *arguments, "--models", "distmult")
    assert own.code == 2
    assert "holds another search" in own.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--engine", "pyken"), "there is no engine 'pyken'"),
        (("run", "--engine", "pykeen"), "needs a model"),
        (("run", "--engine", "pykeen", "--model", "TranE"), "Did you mean TransE"),
        (("run", "--engine", "pykeen", "--model", "TransE", "--margin", 3), "margin has no effect"),
        (("tune", "--engine", "pyken"), "there is no engine 'pyken'"),
        (("tune", "--engine", "pykeen", "--models", "TranE"), "Did you mean TransE"),
    ],
)
def test_wrong_arguments(
    data: Path, tmp_path: Path, arguments: tuple[object, ...], message: str
) -> None:
    command, *options = arguments
    done = call(command, data, "--out", tmp_path / "out", *options)
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert not (tmp_path / "out").exists()
