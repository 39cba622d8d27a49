"""`splime evaluate` and `splime embeddings`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from splime.io.files import locked
from splime.leakage import FILTERS
from splime.runs import PROTOCOLS, Run, evaluating
from tests.runs.small import call, small_graph, small_run


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(small_graph(test=40), tmp_path_factory.mktemp("trained") / "run").path


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """A run of one's own."""
    return shutil.copytree(trained, tmp_path / "copied")


def stored(folder: Path) -> dict[str, object]:
    metrics: dict[str, object] = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return metrics


def test_from_end_to_end(folder: Path) -> None:
    done = call("evaluate", folder, COLUMNS="200")
    assert done.code == 0, done.err
    assert done.err == ""
    for shown in (
        "protocol fact, test",
        "exact", "overlap", "static", "object", "subject", "both",
        "80 queries among 12 candidates; ties: mean rank; scores of scopes: mean;",
        "left out: ",
    ):  # fmt: skip
        assert shown in done.out
    assert [*stored(folder)] == ["fact-test-mean-mean"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "more", [(), ("--split", "valid"), ("--ties", "best"), ("--bootstrap", "20", "--memory", "1")]
)
def test_json_is_what_is_stored(folder: Path, protocol: str, more: tuple[str, ...]) -> None:
    done = call("evaluate", folder, "--protocol", protocol, "--json", *more)
    assert (done.code, done.err) == (0, "")
    printed = json.loads(done.out)
    assert [*stored(folder).values()] == [printed]
    assert printed["protocol"] == protocol
    assert bool(printed["intervals"]) == ("--bootstrap" in more)
    assert printed["split"] == ("valid" if "valid" in more else "test")


def test_options_of_protocols(folder: Path) -> None:
    for aggregate in ("mean", "ends", "max", "sum"):
        for protocol in ("fact", "predicate"):
            arguments = ("--protocol", protocol, "--aggregate", aggregate)
            assert call("evaluate", folder, *arguments).code == 0
    for filter in FILTERS:
        assert call("evaluate", folder, "--protocol", "triple", "--filter", filter).code == 0
    assert len(stored(folder)) == 8 + len(FILTERS)
    assert len(list(folder.glob("ranks-*.parquet"))) == 8 + len(FILTERS)


def test_tables(folder: Path) -> None:
    done = call("evaluate", folder, "--strata", "--bootstrap", "30")
    assert "between " in done.out
    assert "with 95 % confidence (bootstrap)" in done.out
    for heading in ("whether train has the triple", "kind of time", "predicate", "period"):
        assert f"by {heading}" in done.out
    done = call("evaluate", folder, "--protocol", "triple")
    assert "leak filter: inter" in done.out
    assert "ties: worst rank" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--protocol", "facts"], "Did you mean fact?"),
        (["--aggregate", "men"], "Did you mean mean"),
        (["--ties", "wrst"], "ties is one of mean, worst, best"),
        (["--split", "tset"], "split is one of train, valid, test"),
        (["--filter", "inter"], "protocol fact has no option filter"),
        (["--protocol", "triple", "--aggregate", "max"], "triple has no option aggregate"),
        (["--protocol", "triple", "--filter", "intre"], "Did you mean intra or inter?"),
        (["--memory", "0"], "memory"),
        (["--device", "gpu"], "device is auto, cpu or cuda, not 'gpu'"),
    ],
)
def test_wrong_arguments(folder: Path, arguments: list[str], message: str) -> None:
    done = call("evaluate", folder, *arguments)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert not (folder / "metrics.json").exists()


def test_what_is_no_run(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path, code, message in (
        (tmp_path / "nowhere", 2, "there is no such run, file, folder or dataset"),
        (tmp_path / "empty", 2, "this is not a run of splime"),
        (tmp_path, 3, "this is not a run of splime (it has no config.toml)"),
    ):
        done = call("evaluate", path)
        assert (done.code, message in done.err) == (code, True), done.err
    (folder / "model.safetensors").write_bytes(b"text")
    done = call("evaluate", folder)
    assert done.code == 3
    assert f"{folder / 'model.safetensors'}: cannot be read as tensors" in done.err
    (folder / "model.safetensors").unlink()
    done = call("evaluate", folder)
    assert (done.code, "this run is not finished" in done.err) == (2, True)


def test_a_run_in_use(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metrics are shown all the same, with a word about why they are not kept."""
    monkeypatch.setattr(evaluating, "_WAIT", 0.05)
    with locked(folder):
        done = call("evaluate", folder)
    assert done.code == 0
    assert "protocol fact, test" in done.out
    assert " are not kept: " in done.err
    assert not (folder / "metrics.json").exists()


def test_an_empty_test(tmp_path: Path) -> None:
    from dataclasses import replace

    from splime.graph import Facts

    run = small_run(replace(small_graph(), test=Facts.empty()), tmp_path / "run")
    done = call("evaluate", run.path)
    assert done.code == 2
    assert "test has no facts to rank" in done.err
    assert call("evaluate", run.path, "--split", "valid").code == 0


# Embeddings


@pytest.mark.parametrize("what", ["entities", "predicates"])
def test_embeddings(folder: Path, what: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors.tsv"
    done = call("embeddings", "export", folder, "--what", what, "--out", path)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"written to {path}\n"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 12
    first = lines[0].split("\t")
    assert [float(x) for x in first[1:]] == pytest.approx(Run(folder).tensors[what][0].tolist())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "e.npy"], "e.npy: choose a format"),
        (["--out", "e.tsv", "--format", "word2vc"], "Did you mean word2vec?"),
        (["--out", "e.tsv", "--what", "entity"], "Did you mean entities?"),
    ],
)
def test_wrong_arguments_of_embeddings(folder: Path, arguments: list[str], message: str) -> None:
    done = call("embeddings", "export", folder, *arguments)
    assert done.code == 2
    assert message in done.err


def test_help() -> None:
    shown = " ".join(call("evaluate", "--help").out.replace("│", " ").split())
    for word in (
        "--protocol", "asks for the object and the subject", "--bootstrap SAMPLES",
        "--memory MIB", "none, intra, inter (the default) or both", "--json",
        "test (the default) or valid", "Choose it on valid",
        "splime evaluate run --protocol fact --bootstrap 1000",
    ):  # fmt: skip
        assert word in shown, word
    shown = " ".join(call("embeddings", "export", "--help").out.replace("│", " ").split())
    for word in (
        "entities (the default) or predicates",
        "parquet, tsv or word2vec",
        "--out FILE",
        "Example:",
    ):
        assert word in shown, word
    assert "export" in call("embeddings").out + call("embeddings").err
