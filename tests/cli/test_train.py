"""`splime train` and `splime models`, from arguments to a run folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import splime
from splime.embedding.models import MODELS
from splime.embedding.presets import PRESETS
from splime.io.files import locked
from splime.runs import Run
from splime.settings import ALL_SETTINGS
from splime.training.trainer import Trainer
from tests.runs.small import Called, call, call_program, small_graph

SMALL = ("--model", "distmult", "--dimension", "4", "--batch-size", "32", "--epochs", "2")


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return splime.save(small_graph(), tmp_path_factory.mktemp("facts") / "facts.parquet")


@pytest.mark.system
def test_from_end_to_end(tmp_path: Path) -> None:
    """As a person runs it, once; the other tests stay in this process."""
    out = tmp_path / "my run"
    done = call_program(
        "train", "demo", "--method", "split", "--grow", "5", "--model", "distmult", "--dimension",
        "8", "--epochs", "2", "--validate-every", "1", "--out", out,
        OMP_NUM_THREADS="1", COLUMNS="200",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.err == "demo: read 10,000 facts\n"
    for shown in (
        "demo, 8,000 facts in train",
        "Split (target predicates, fit_on train, by time, grow 5)",
        "scoped predicates       │ 45",
        "distmult (dimension 8, loss softmax",
        "2 in ",
        "after epoch ",
        f"'{out}': written; next: splime evaluate '{out}'",
    ):
        assert shown in done.out
    about = Run(out).about
    assert about["command"].startswith("splime train demo --method split")
    assert about["command"].endswith(f"--out '{out}'")


def test_settings_and_presets(facts: Path, tmp_path: Path) -> None:
    done = call(
        "train", facts, "--preset", "paper", "--batch-size", "16", "--epochs", "1", "--margin", "2",
        "--no-distinct", "--dimension", "5", "--negatives", "6", "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.code == 0, done.err
    settings = Run(tmp_path / "run").settings
    assert (settings.model, settings.weighting, settings.validate_every) == (
        "transe",
        "learned",
        0,
    )
    assert (settings.margin, settings.distinct, settings.dimension) == (2.0, False, 5)


def test_the_default_model(facts: Path, tmp_path: Path) -> None:
    assert call("train", facts, "--epochs", "1", "--out", tmp_path / "run").code == 0
    settings = Run(tmp_path / "run").settings
    assert (settings.model, settings.messages, settings.weights) == ("path", "counted", "1")
    arguments = ("--dimension", "4", "--batch-size", "32", "--epochs", "1")
    done = call("train", facts, "--method", "vanilla", *arguments, "--out", tmp_path / "cut")
    assert done.code == 0, done.err
    assert Run(tmp_path / "cut").settings.model == "complex"


def test_models_that_know_time_need_no_method(facts: Path, tmp_path: Path) -> None:
    small = ("--dimension", "4", "--batch-size", "32", "--epochs", "1")
    for number, method in enumerate(((), ("--method", "timestamp"))):
        out = tmp_path / str(number)
        done = call("train", facts, "--model", "hyte", *method, *small, "--out", out)
        assert done.code == 0, done.err
        said = "hyte is a temporal model: the method is timestamp, with every timestamp"
        assert (said in done.err) is not bool(method)
        run = Run(out)
        assert run.config["method"]["name"] == "Timestamp"
        assert len(run.static.predicates) == 3 * len(run.graph.timeline)
    lines = call("models").out.partition("\nloss")[0].splitlines()
    listed = {line.split()[0]: line for line in lines if line.strip()}
    assert {name for name in MODELS if " yes " in listed[name]} == {
        name for name, kind in MODELS.items() if kind.cuts == "timestamps"
    }


def test_a_finished_run_is_told_of(facts: Path, tmp_path: Path) -> None:
    arguments = ("train", facts, *SMALL, "--out", tmp_path / "run")
    first = call(*arguments)
    before = (tmp_path / "run" / "about.json").read_bytes()
    again = call(*arguments)
    said = "facts: read 120 rows, kept 117, dropped 3: 3 × duplicate\n"
    assert (again.code, again.err) == (0, said)
    assert "was finished before" not in first.out
    assert "was finished before, nothing is left to train; next: splime evaluate" in again.out
    assert (tmp_path / "run" / "about.json").read_bytes() == before


def test_given_cuts(facts: Path, tmp_path: Path) -> None:
    """The cuts that `splime transform` wrote give the same run as the method that chose them."""
    method = ("--method", "split", "--grow", "2")
    assert call("transform", facts, *method, "--out", tmp_path / "cut").code == 0
    cuts = tmp_path / "cut" / "segmentation.json"
    assert call("train", facts, *SMALL, "--segmentation", cuts, "--out", tmp_path / "a").code == 0
    assert call("train", facts, *SMALL, *method, "--out", tmp_path / "b").code == 0
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in "ab")
    assert one == other
    for more in (method, ("--grow", "2")):
        both = call("train", facts, *SMALL, "--segmentation", cuts, *more, "--out", tmp_path / "c")
        assert both.code == 2
        assert "as a segmentation or choose a method, not both" in both.err
    wrong = call("train", "demo", *SMALL, "--segmentation", cuts, "--out", tmp_path / "c")
    assert wrong.code == 2
    assert "made for another timeline" in wrong.err
    missing = call("train", facts, "--segmentation", tmp_path / "no.json", "--out", tmp_path / "c")
    assert (missing.code, "no.json" in missing.err) == (3, True)
    assert not (tmp_path / "c").exists()


def test_one_seed_for_both(facts: Path, tmp_path: Path) -> None:
    method = ("--method", "random", "--predicates", "6")
    runs = []
    for number, seed in enumerate(((), ("--seed", "0"), ("--seed", "4"))):
        out = tmp_path / str(number)
        assert call("train", facts, *SMALL, *method, *seed, "--out", out).code == 0
        runs.append(Run(out))
    assert [run.settings.seed for run in runs] == [0, 0, 4]
    assert [run.config["method"]["seed"] for run in runs] == [0, 0, 4]
    cuts = [run.config["cuts"]["sha256"] for run in runs]
    assert cuts[0] == cuts[1] != cuts[2]
    out = tmp_path / "split"
    assert call("train", facts, *SMALL, "--seed", "4", "--out", out).code == 0
    assert "seed" not in Run(out).config["method"]


def test_a_presets_batch_fits_into_train(facts: Path, tmp_path: Path) -> None:
    for each, rows in (("fact", 87), ("triple", 66)):
        out = tmp_path / each
        done = call(
            "train",
            facts,
            "--model",
            "complex",
            "--dimension",
            "4",
            "--epochs",
            "1",
            "--each",
            each,
            "--out",
            out,
        )
        assert done.code == 0
        assert Run(out).settings.batch_size == rows


def failing(*arguments: object, out: Path) -> Called:
    """A call that must fail, and leave nothing."""
    done = call("train", *arguments, "--out", out)
    assert done.code != 0
    assert "Traceback" not in done.err
    assert done.out == ""
    assert not out.exists()
    return done


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "complx"], "Did you mean complex"),
        (["--model", "complex", "--loss", "softmx", "--batch-size", "8"], "Did you mean softmax?"),
        (["--model", "transe", "--preset", "papr"], "Did you mean paper?"),
        (
            ["--method", "split", "--init", "small_norm", "--batch-size", "8"],
            "Did you mean small_normal?",
        ),
        (["--method", "split", "--optimizer", "adan"], "Did you mean adam?"),
        (["--method", "split", "--corrupt", "objects"], "Did you mean object"),
        (["--method", "splt"], "Did you mean split?"),
        (["--method", "split", "--shrink", "4"], "split has no parameter 'shrink'"),
        (
            ["--engine", "pyken"],
            "there is no engine 'pyken'; there are splime, pykeen. Did you",
        ),
        (["--dimension", "0"], "dimension must be at least 1, not 0"),
        (["--dimension", "many"], "Invalid value"),
        (["--epochs", "0"], "epochs must be at least 1"),
        (["--learning-rate", "-1"], "learning_rate must be positive"),
        (["--learning-rate", "nan"], "learning_rate must be positive"),
        (["--seed", "-1"], "seed must not be negative"),
        (["--batch-size", "100000"], "a batch of 100,000 is larger than train, which has 174 ques"),
        (
            ["--method", "vanilla", "--batch-size", "1000", "--each", "triple"],
            "which has 66 triples",
        ),
        (["--model", "transh", "--dimension", "1"], "TransH needs a dimension of at least 2"),
        (["--model", "transe", "--norm", "3"], "TransE measures distances with norm 1 or 2"),
        (["--device", "tpu"], "device is auto, cpu or cuda, not 'tpu'"),
        (["--dimensoin", "3"], "No such option"),
        (["--engine", "pykeen"], "the engine pykeen needs a model, and has no presets"),
        (["--engine", "pykeen", "--model", "x", "--preset", "paper"], "has no presets"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str, facts: Path, tmp_path: Path) -> None:
    done = failing(facts, *arguments, out=tmp_path / "run")
    assert done.code == 2
    assert message in done.err


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "TuckR"], "Did you mean TuckER"),
        (["--model", "TuckER", "--margin", "3"], "margin has no effect on TuckER"),
    ],
)
def test_wrong_arguments_for_pykeen(
    arguments: list[str],
    message: str,
    facts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("pykeen.models")
    done = failing(facts, "--engine", "pykeen", *arguments, out=tmp_path / "run")
    assert done.code == 2
    assert message in done.err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_no_gpu(facts: Path, tmp_path: Path) -> None:
    done = failing(facts, "--device", "cuda", out=tmp_path / "run")
    assert (done.code, "cuda is not available" in done.err) == (2, True)


def test_wrong_settings_are_found_before_the_facts_are_read(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.tsv"
    assert "Did you mean complex" in failing(missing, "--model", "complx", out=tmp_path / "r").err
    assert failing(missing, out=tmp_path / "r").code in (2, 3)


def test_bad_data(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\tp\n", encoding="utf-8")
    done = failing(path, out=tmp_path / "run")
    assert done.code == 3
    assert "facts.tsv" in done.err


@pytest.mark.filterwarnings("default")
def test_empty_splits(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    lines = [f"e{n % 7}\tp\te{n % 5}\t{1990 + n % 9}" for n in range(60)]
    path.write_text("\n".join(lines), encoding="utf-8")
    arguments = (path, "--split", "none", *SMALL, "--batch-size", "8")
    done = call("train", *arguments, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert "valid has no facts" in done.err
    asked = failing(*arguments, "--validate-every", "2", out=tmp_path / "other")
    assert asked.code == 2
    assert "valid has no facts" in asked.err
    assert "--validate-every 0" in asked.err


def test_divergence_does_not_hinder_the_next_try(facts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    wrong = ("--learning-rate", "9e18", "--optimizer", "sgd", "--validate-every", "0")
    done = call("train", facts, *SMALL, *wrong, "--out", out)
    assert done.code == 1
    assert "training diverged. Lower learning_rate (it is 9e+18)" in done.err
    assert call("train", facts, *SMALL, "--out", out).code == 0


def test_no_memory_left(facts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 80 GiB")

    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "take_step", fails)
        done = call("train", facts, *SMALL, "--out", out)
    assert done.code == 1
    assert "there is not enough memory: lower batch_size, negatives or dimension" in done.err
    assert call("train", facts, *SMALL, "--batch-size", "8", "--out", out).code == 0


def test_tables_that_fit_nowhere(facts: Path, tmp_path: Path) -> None:
    done = failing(facts, *SMALL, "--dimension", str(2**31 - 1), out=tmp_path / "run")
    assert done.code == 1
    assert "not enough memory: lower batch_size, negatives or dimension" in done.err


def test_folders(facts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert call("train", facts, *SMALL, "--out", out).code == 0
    other = call("train", facts, *SMALL, "--seed", "1", "--out", out)
    assert other.code == 2
    assert "another configuration (settings.seed is 0, not 1)" in other.err
    with locked(out):
        busy = call("train", facts, *SMALL, "--out", out)
    assert (busy.code, "another process is working" in busy.err) == (2, True)
    strange = call("train", facts, *SMALL, "--out", tmp_path)
    assert (strange.code, "holds 'run' and no run" in strange.err) == (2, True)
    file = call("train", facts, *SMALL, "--out", out / "config.toml")
    assert (file.code, "expected a folder" in file.err) == (2, True)


def test_a_damaged_checkpoint(facts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert call("train", facts, *SMALL, "--out", out).code == 0
    (out / "model.safetensors").rename(out / "checkpoint.safetensors")
    done = call("train", facts, *SMALL, "--out", out)
    assert done.code == 3
    assert f"remove {out / 'checkpoint.safetensors'} to begin the training again" in done.err
    (out / "checkpoint.safetensors").unlink()
    assert call("train", facts, *SMALL, "--out", out).code == 0


# What people read


def test_models_lists_what_is_registered() -> None:
    listed = call("models").out
    for name in (*MODELS, *PRESETS):
        assert f"\n{name} " in f"\n{listed}"
    assert "f(s, p, o) = Re⟨s, p, ō⟩" in listed
    assert "--engine pykeen" in listed


def shown_help(*arguments: str) -> str:
    return " ".join(call(*arguments).out.replace("│", " ").split())


def test_short_help_has_the_main_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for command in ("run", "train", "tune", "evaluate", "ask", "transform", "inspect"):
        assert len(call(command, "--help").out.splitlines()) <= 60, command
        more = shown_help(command, "--help-all")
        assert "--granularity " in more, command
        assert "--granularity " not in shown_help(command, "--help"), command
        assert "<" not in more, command  # no types of Python
    assert "--epochs " in shown_help("train", "--help")


def test_help_of_a_model() -> None:
    of_path = shown_help("train", "--model", "path", "--help")
    assert "--layers " in of_path
    assert "--gadget " not in of_path
    of_timeplex = shown_help("train", "--model=timeplex", "--help")
    assert "--gadget " in of_timeplex
    assert "--layers " not in of_timeplex
    assert "--granularity " not in of_timeplex


def test_help() -> None:
    shown = shown_help("train", "--help-all")
    for name in ALL_SETTINGS:
        assert f"--{name.replace('_', '-')} " in shown
    assert shown.count("--seed ") == 1
    assert shown.count("--split-seed ") == 1
    for word in (
        "splime train demo --method merge --shrink 4 --model complex --out run",
        "The same command resumes a run that was interrupted",
        "--segmentation FILE",
        "strong (the default), quick",
        "splime (the default) or pykeen",
        "adam|adagrad|sgd",
        "0 for none",
        "--shrink",
    ):
        assert word in shown, word


def imported(code: str) -> list[str]:
    """What of the heavy libraries is loaded after some code ran."""
    heavy = ("torch", "safetensors", "pykeen", "splime.runs", "splime.evaluation")
    code = f"import sys\n{code}\nprint(*[m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stderr.split()


@pytest.mark.system
def test_without_a_training_nothing_heavy_is_imported() -> None:
    assert imported("import splime") == []
    shown = "import splime.cli.main as m\nfor a in (['--help'], ['train', '--help']):\n" + (
        " sys.argv[1:] = a\n try: m.main()\n except SystemExit: pass"
    )
    assert imported(shown) == []


@pytest.mark.system
@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "demo", "--out", "r"],
        ["train", "demo", "--out", "r"],
        ["evaluate", "r"],
        ["compare", "r"],
        ["tune", "demo", "--out", "r"],
        ["ask", "r", "a", "p", "?"],
        ["plot", "r", "--out", "r.png"],
        ["report", "r"],
        ["embeddings", "export", "r", "--out", "r.tsv"],
    ],
)
def test_without_torch(arguments: list[str], tmp_path: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from splime.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'splime-kg[train]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.system
def test_a_bar_for_people(tmp_path: Path, facts: Path) -> None:
    """On a terminal there is a bar with loss and speed, on the error stream."""
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    code = (
        "import os, sys, torch; os.environ['COLUMNS'] = '200'; torch.set_num_threads(1)\n"
        "from splime.cli.main import main; main()"
    )
    arguments: list[Any] = [
        "train",
        facts,
        *SMALL,
        "--validate-every",
        "1",
        "--out",
        tmp_path / "r",
    ]
    with subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=follower, text=True,
    ) as it:  # fmt: skip
        os.close(follower)
        seen = b""
        while True:
            try:
                chunk = os.read(leader, 4096)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            seen += chunk
        printed = it.communicate()[0]
    os.close(leader)
    assert it.returncode == 0
    assert "written; next" in printed
    text = seen.decode(errors="replace")
    for word in ("training", "loss ", "steps/s", "valid MRR"):
        assert word in text
    assert json.loads((tmp_path / "r" / "about.json").read_text())["epochs"] == 2
