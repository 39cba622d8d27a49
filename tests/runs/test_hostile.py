"""Damaged and foreign files: always an error that names the file, never silently taken for good."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import splime
from splime.errors import DataError, SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.runs import Run, evaluate, evaluations
from splime.runs.folder import fingerprint
from splime.tensors import load_tensors, save_tensors
from tests.runs.small import CUTS, call, small_graph, small_run


def header_of(data: bytes) -> int:
    """Where the tensors begin."""
    return 8 + int(struct.unpack("<Q", data[:8])[0])


def refuses(path: Path) -> str:
    with pytest.raises(DataError) as error:
        load_tensors(path)
    assert str(path) in str(error.value)
    return str(error.value)


# The file of the embeddings


def test_truncated(run: Run) -> None:
    path = run.path / "model.safetensors"
    data = path.read_bytes()
    start = header_of(data)
    lengths = {*range(0, start, 13), *range(start, len(data), 17), 7, 8, 9, start, len(data) - 1}
    for length in sorted(lengths):
        path.write_bytes(data[:length])
        refuses(path)
    path.write_bytes(data + b"\0")
    refuses(path)


def test_flipped_bits(run: Run) -> None:
    path = run.path / "model.safetensors"
    data = path.read_bytes()
    start = header_of(data)
    positions = [*range(start), *range(start, len(data), 7)]
    for number, position in enumerate(positions):
        for bit in range(8) if position < 8 else (number % 8, (number + 3) % 8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            refuses(path)


def test_bytes_that_are_others(run: Run) -> None:
    path = run.path / "model.safetensors"
    data = path.read_bytes()
    start = header_of(data)
    path.write_bytes(data[:start] + bytes(len(data) - start))
    assert "its checksum differs" in refuses(path)
    path.write_bytes(data[: start - 2] + b"  " + data[start:])
    if path.read_bytes() != data:
        refuses(path)


def test_files_of_others(tmp_path: Path, graph: TemporalGraph) -> None:
    path = tmp_path / "model.safetensors"
    refuses(path)  # not there
    for content in (b"", b"{}", b"PK\x03\x04" + bytes(100), b"\x80\x04" + bytes(50), b"\xff" * 300):
        path.write_bytes(content)
        refuses(path)
    table = {"entities": torch.ones(12, 4)}
    for metadata in (
        None,
        {"format": "pt"},
        {"splime": "1"},
        {"splime": "["},
        {"splime": "[" * 100_000},
        {"splime": json.dumps({"format": 2})},
    ):
        save_file(table, path, metadata=metadata)
        refuses(path)
    save_file(table, path, metadata={"splime": json.dumps({"format": 1, "about": 3, "sha256": ""})})
    assert "checksum" in refuses(path)
    path.unlink()
    path.mkdir()
    refuses(path)


def test_all_kinds_of_tensors_come_back(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    tensors = {
        "empty": torch.empty(0, 3),
        "scalar": torch.tensor(3.5, dtype=torch.float64),
        "bool": torch.tensor([True, False]),
        "half": torch.ones(2, dtype=torch.bfloat16),
        "turned": torch.arange(6).view(2, 3).T,
    }
    about = {"ä": [1, 0.1, None, "\u2028"], "nested": {"b": 1, "a": 2}}
    save_tensors(path, tensors, about)
    again, told = load_tensors(path)
    assert told == about
    assert again.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(again[name], tensor)
        assert again[name].dtype == tensor.dtype
    with pytest.raises(SplimeError, match="cannot be written"):
        save_tensors(tmp_path / "missing" / "t.safetensors", tensors, about)


def forged(run: Run, changes: dict[str, Any], **about: Any) -> Run:
    """The run with other tensors, in a file that is what it says."""
    path = run.path / "model.safetensors"
    tensors, told = load_tensors(path)
    tensors = {name: t for name, t in {**tensors, **changes}.items() if t is not None}
    save_tensors(path, tensors, {**told, **about})
    return Run(run.path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entities": torch.ones(11, 4)}, r"entities should be \(12, 4\).* is \(11, 4\)"),
        ({"entities": torch.ones(12, 5)}, r"entities should be \(12, 4\).* is \(12, 5\)"),
        ({"entities": torch.ones(48)}, r"entities should be \(12, 4\)"),
        ({"entities": torch.ones(12, 4).double()}, r"is \(12, 4\) of torch\.float64"),
        ({"predicates": torch.ones(6, 4)}, r"predicates should be \(12, 4\)"),
        ({"entities": None}, "not the parameters of this run: entities missing"),
        ({"predicates": None}, "not the parameters of this run: predicates missing"),
    ],
)
def test_tables_that_do_not_fit(run: Run, changes: dict[str, Any], message: str) -> None:
    opened = forged(run, changes)
    for ask in (lambda: opened.model, lambda: opened.scorer, lambda: evaluate(opened)):
        with pytest.raises(DataError, match=rf"model\.safetensors: .*{message}"):
            ask()


def test_the_model_of_another_run(run: Run, graph: TemporalGraph, tmp_path: Path) -> None:
    """Tables of the same shape and names, with other settings."""
    other = small_run(graph, tmp_path / "other", seed=1)
    shutil.copy(other.path / "model.safetensors", run.path)
    with pytest.raises(DataError, match=r"model\.safetensors: does not belong to the config\.toml"):
        _ = Run(run.path).scorer


def test_a_forged_run(run: Run) -> None:
    """A stranger can make everything fit together, and still cannot make us run out of memory."""
    edited(
        run.path / "config.toml",
        lambda text: text.replace("dimension = 4", f"dimension = {10**9}"),
    )
    forged(run, {}, config=fingerprint(Run(run.path).config))
    with pytest.raises(DataError, match=r"model\.safetensors: not the parameters of this run"):
        _ = Run(run.path).model


# The other files


def edited(path: Path, edit: Callable[[str], str]) -> None:
    text = path.read_text(encoding="utf-8")
    assert edit(text) != text
    path.write_text(edit(text), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "file"),
    [
        ("seed = 0\n", "", "model"),
        ("norm = 1", "norm = 2", "model"),
        ("reciprocal = true\n", "", "model"),
        ("grow = 2", "grow = 3", "model"),
        ("seed = 0", "sed = 0", "config"),
        ("seed = 0", "seed = -1", "config"),
        ("seed = 0", "seed = 'a'", "config"),
        ("dimension = 4", "dimension = 0", "config"),
        ("dimension = 4", "dimension = 1000000000", "model"),
        ("dimension = 4", "dimension = 1000000000000000", "config"),
        ('model = "distmult"', "model = 4", "config"),
        ('model = "distmult"\n', "", "config"),
        ('model = "distmult"', 'model = "transf"', "config"),
        ('engine = "splime"', 'engine = "spline"', "config"),
        ('engine = "splime"', "engine = 1", "config"),
        ('engine = "splime"', 'engine = "pykeen"', "model"),
        ("[run]", "[ran]", "config"),
        ("[method]", "[methods]", "config"),
        ("[cuts]", "[cut]", "config"),
        ("[settings]", "[setting]", "config"),
        ('[run]\nengine = "splime"', "run = 3", "config"),
        ("[run]", "[run", "config"),
        ("[run]", "\x00", "config"),
    ],
)
def test_a_damaged_configuration(run: Run, old: str, new: str, file: str) -> None:
    edited(run.path / "config.toml", lambda text: text.replace(old, new, 1))
    name = {"model": r"model\.safetensors", "config": r"config\.toml"}[file]
    with pytest.raises(DataError, match=name):
        evaluate(Run(run.path))


def test_a_configuration_that_is_no_text(run: Run) -> None:
    for content in (b"\xff\xfe", b"", b"a = " + b"[" * 100_000):
        (run.path / "config.toml").write_bytes(content)
        with pytest.raises(DataError, match=r"config\.toml"):
            Run(run.path)
    (run.path / "config.toml").unlink()
    with pytest.raises(UsageError, match=r"not a run of splime: it has no config\.toml"):
        Run(run.path)


def test_files_of_other_runs(run: Run, tmp_path: Path) -> None:
    graph = run.graph
    others = {
        "segmentation.json": small_run(graph, tmp_path / "a", splime.Split(grow=2, by="count")),
        "graph.parquet": small_run(small_graph(1), tmp_path / "b"),
        "config.toml": small_run(graph, tmp_path / "c", seed=3),
    }
    for name, other in others.items():
        copied = shutil.copytree(run.path, tmp_path / name)
        shutil.copy(other.path / name, copied / name)
        wrong = "model.safetensors" if name == "config.toml" else name
        with pytest.raises(DataError, match=wrong.replace(".", r"\.")):
            evaluate(Run(copied))


def test_cuts_with_the_same_names_elsewhere(run: Run) -> None:
    """Cuts a timestamp later give scopes of the same names, and other triples."""
    path, before = run.path / "segmentation.json", run.static
    described = json.loads(path.read_text(encoding="utf-8"))
    for one in described["predicates"].values():
        one["cuts"] = [cut + 1 for cut in one["cuts"]]
    del described["sha256"]
    path.write_text(json.dumps(described), encoding="utf-8")
    moved = splime.apply(splime.load_segmentation(path), run.graph)
    assert moved.predicates.labels.equals(before.predicates.labels)
    assert moved.train.array().tolist() != before.train.array().tolist()
    with pytest.raises(DataError, match=r"segmentation\.json: not the cuts that the run was made"):
        _ = Run(run.path).static


def refusal(path: Path) -> str | None:
    try:
        _ = Run(path).static
    except SplimeError as error:
        return str(error)
    return None


def test_a_damaged_graph_or_segmentation(run: Run) -> None:
    for name in ("graph.parquet", "segmentation.json"):
        path = run.path / name
        data = path.read_bytes()
        for position in range(0, len(data), len(data) // 60):
            for damaged in (
                data[:position],
                data[:position] + bytes([data[position] ^ 16]) + data[position + 1 :],
            ):
                path.write_bytes(damaged)
                told = refusal(run.path)
                if told is None:  # what does not matter, such as who wrote the file
                    same = Run(run.path).static.train.array() == run.static.train.array()
                    assert same.all()
                else:
                    assert str(path) in told
        path.unlink()
        with pytest.raises(SplimeError, match=name.replace(".", r"\.")):
            _ = Run(run.path).static
        path.write_bytes(data)


def test_damaged_history_and_about(run: Run) -> None:
    arguments = (
        "train", run.path / "graph.parquet", "--method", "split", "--grow", "2", "--model",
        "distmult", "--dimension", "4", "--batch-size", "32", "--epochs", "6",
        "--validate-every", "2", "--out", run.path,
    )  # fmt: skip
    assert call(*arguments).code == 0
    for name, content in (
        ("history.csv", b"epoch,loss,valid\n"),
        ("history.csv", b"\xff"),
        ("about.json", b"{}"),
        ("about.json", b"3"),
    ):
        good = (run.path / name).read_bytes()
        (run.path / name).write_bytes(content)
        done = call(*arguments)
        assert (done.code, name in done.err) == (3, True)
        assert "Traceback" not in done.err
        (run.path / name).write_bytes(good)


@pytest.mark.parametrize("content", ["{", "[]", '{"a": 3}', '{"a": {"protocol": "fact"}}'])
def test_damaged_metrics(run: Run, content: str) -> None:
    (run.path / "metrics.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"metrics\.json"):
        evaluations(run)
    if not content.startswith('{"a"'):
        with pytest.warns(UserWarning, match=r"the metrics are not kept: .*metrics\.json"):
            assert evaluate(run).metrics


def test_metrics_of_a_wrong_kind(run: Run) -> None:
    evaluate(run)
    path = run.path / "metrics.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    name = next(iter(stored))
    for key, wrong in (("filters", 3), ("metrics", 3), ("intervals", [3])):
        path.write_text(json.dumps({name: {**stored[name], key: wrong}}), encoding="utf-8")
        with pytest.raises(DataError, match=r"metrics\.json"):
            evaluations(run)


def test_a_hostile_segmentation_given(graph: TemporalGraph, tmp_path: Path) -> None:
    """Whatever JSON a stranger's file tells about its method, the configuration can hold it."""
    path = splime.save_segmentation(CUTS.fit(graph), tmp_path / "cuts.json")
    described = json.loads(path.read_text(encoding="utf-8"))
    described["method"] = {
        "name": "x", "method": [1], "predicates": {"a": [None, {"b": 'q"\n'}]}, "": 10**30,
        "none": None, "sha256": "\x7f", "inf": float("inf"),
    }  # fmt: skip
    del described["sha256"]
    path.write_text(json.dumps(described), encoding="utf-8")
    run = small_run(graph, tmp_path / "run", splime.load_segmentation(path))
    assert run.config["method"] == {
        "name": "[1]", "predicates": {"a": [{"b": 'q"\n'}]}, "": 10**30, "sha256": "\x7f",
        "inf": float("inf"),
    }  # fmt: skip
    assert run.scorer
    assert small_run(graph, tmp_path / "run", splime.load_segmentation(path)).history
