"""Run folders that somebody else made to do harm: an error, soon, and in little memory."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import splime
from splime.errors import DataError, SplimeError
from splime.graph import TemporalGraph
from splime.io import files as io_files, parquet
from splime.reporting.results import run_table
from splime.runs import Run, combine, evaluate, evaluations, run as running
from splime.runs.folder import fingerprint, read_config
from splime.tensors import load_tensors, save_tensors
from tests.runs.small import call, small_graph, small_run

PATH: dict[str, Any] = {"model": "path", "layers": 1, "dimension": 16, "batch_size": 90}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, graph: TemporalGraph) -> Path:
    """A run of the path model and a combination; only to be copied."""
    folder = tmp_path_factory.mktemp("strangers")
    one = small_run(graph, folder / "one")
    path = small_run(graph, folder / "path", splime.Vanilla(), **PATH, epochs=1)
    combine([one, path], folder / "both")
    return folder


def forge(folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A configuration that is changed, and a model that belongs to it."""
    config = read_config(folder)
    change(config)
    (folder / "config.toml").write_text(tomli_w.dumps(config), encoding="utf-8")
    tensors, about = load_tensors(folder / "model.safetensors")
    save_tensors(folder / "model.safetensors", tensors, {**about, "config": fingerprint(config)})
    return folder


class Largest(TorchDispatchMode):
    """How many bytes the largest tensor has that is made, outside of the device `meta`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and made.device.type != "meta":
            self.bytes = max(self.bytes, made.nbytes)
        return made


@pytest.mark.parametrize("setting", ["layers", "dimension"])
@pytest.mark.parametrize("size", [500, 100_000, 2**30])
def test_shapes_are_compared_before_anything_is_made(
    made: Path, tmp_path: Path, setting: str, size: int
) -> None:
    folder = shutil.copytree(made / "path", tmp_path / "run")
    forge(folder, lambda config: config["settings"].update({setting: size}))
    with Largest() as largest, pytest.raises(SplimeError, match=r"not the parameters|too large"):
        _ = Run(folder).scorer
    assert largest.bytes < 1 << 20


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("config.toml", Run),
        ("segmentation.json", lambda path: Run(path).segmentation),
        ("graph.parquet", lambda path: Run(path).graph),
        ("model.safetensors", lambda path: Run(path).scorer),
        ("about.json", lambda path: run_table(Run(path))),
        ("history.csv", lambda path: Run(path).history),
        ("metrics.json", lambda path: evaluations(Run(path))),
        ("ranks-fact-test-mean-mean.parquet", lambda path: _kept(path)),
        ("calibration.json", lambda path: splime.Query(Run(path)).ask("entity 1", "p1", "?")),
    ],
)
@pytest.mark.parametrize("kind", ["/dev/zero", "pipe", "folder"])
def test_only_plain_files_are_read(
    finished: Path, tmp_path: Path, name: str, use: Callable[[Path], object], kind: str
) -> None:
    folder = shutil.copytree(finished, tmp_path / "run")
    evaluate(folder)
    path = folder / name
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(kind)
    with pytest.raises(SplimeError, match=r"expected a( plain)? file") as refused:
        use(folder)
    assert name in str(refused.value)


def _everything(folder: Path) -> None:
    run_table(Run(folder))
    _ = Run(folder).history, Run(folder).segmentation, evaluations(Run(folder))


def _kept(path: Path) -> object:
    from splime.runs import evaluating

    return evaluating.kept(Run(path))


@pytest.mark.parametrize("name", ["config.toml", "about.json", "history.csv", "metrics.json"])
def test_texts_have_a_bounded_size(finished: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(finished, tmp_path / "run")
    with (folder / name).open("w") as file:
        file.truncate(1 << 40)  # no byte of it is stored
    with pytest.raises(DataError, match=rf"{name}: has 1,099,511,627,776 bytes, more than"):
        _everything(folder)


def test_links_to_plain_files_are_read(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    for path in finished.iterdir():
        (folder / path.name).symlink_to(path)
    assert Run(folder).history == Run(finished).history
    assert Run(folder).scorer


def test_a_graph_of_other_rows_is_not_read(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(finished, tmp_path / "run")
    splime.save(small_graph(test=40), folder / "graph.parquet")
    monkeypatch.setattr(running, "read", lambda *_: pytest.fail("it is read"))
    with pytest.raises(DataError, match=r"graph\.parquet: not the facts"):
        _ = Run(folder).graph


def test_a_graph_that_does_not_fit_is_not_read(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "available_memory", lambda: 10_000)
    uses: list[Callable[[], object]] = [
        lambda: Run(finished).graph,
        lambda: splime.read(finished / "graph.parquet"),
    ]
    for use in uses:
        with pytest.raises(SplimeError, match=r"its 117 rows takes about .* GB"):
            use()


WEIGHTS: list[Any] = [
    *([], [1.0], [0.5, 0.25, 0.25], [0.0, 0.0], ["a", 0.5], [True, 0.5], [[], {}]),
    *([-1.0, 2.0], [1e300, 1.0], [float("nan"), 1.0], [float("inf"), 0.0], 3, "ab", {"a": 1.0}),
]


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_weights_of_a_combination(made: Path, tmp_path: Path, weights: Any) -> None:
    folder = shutil.copytree(made / "both", tmp_path / "run")
    forge(folder, lambda config: config["settings"].update(weights=weights))
    called = call("ask", folder, "entity 1", "p1", "?")
    assert (called.code, "weight" in called.err) == (3, True), called.err


@pytest.mark.parametrize(
    "members", [3, [], {}, {"names": 3, "sha256": ["a"]}, {"names": [], "sha256": [3]}], ids=str
)
def test_members_of_a_combination(made: Path, tmp_path: Path, members: Any) -> None:
    folder = shutil.copytree(made / "both", tmp_path / "run")
    forge(folder, lambda config: config.update(members=members))
    called = call("ask", folder, "entity 1", "p1", "?")
    assert (called.code, "config.toml" in called.err) == (3, True), called.err


ENGINES = ["splime", "paths", "latest", "recurrency", "combined", "pykeen", "none"]
MODELS = ["distmult", "path", "latest", "recurrency", "combined", "TransE", "none"]


@pytest.mark.system
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["one", "path", "both"])
def test_engines_and_models(made: Path, tmp_path: Path, engine: str, model: str, kind: str) -> None:
    folder, own = made / kind, read_config(made / kind)
    own_pair = own["run"]["engine"], own["settings"]["model"]
    if own_pair == (engine, model):
        return

    def change(config: dict[str, Any]) -> None:
        config["run"]["engine"], config["settings"]["model"] = engine, model

    folder = forge(shutil.copytree(folder, tmp_path / "run"), change)
    called = call("ask", folder, "entity 1", "p1", "?")
    assert "Traceback" not in called.err
    if called.code:
        assert str(folder) in called.err


def test_a_table_that_is_very_deep(finished: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(finished, tmp_path / "run")
    config = (folder / "config.toml").read_text()
    for deep in (100, 900, 5_000):
        (folder / "config.toml").write_text(f"{config}\n[{'.'.join(['a'] * deep)}]\n")
        with pytest.raises(DataError, match=r"config\.toml: not a TOML file"):
            Run(folder)
        with pytest.raises(DataError, match=r"config\.toml: not a TOML file"):
            splime.read_plan(folder / "config.toml")


@pytest.mark.parametrize("name", ["about.json", "metrics.json", "segmentation.json"])
def test_json_that_is_very_deep(finished: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(finished, tmp_path / "run")
    evaluate(folder)
    value = json.loads((folder / name).read_text())
    for deep in (100, 900, 100_000):
        value["method"] = 0
        text = json.dumps(value).replace('"method": 0', f'"method": {"[" * deep}{"]" * deep}')
        (folder / name).write_text(text)
        with pytest.raises(DataError, match=rf"{name}: .*(nested|recursion)"):
            _everything(folder)


def test_sizes_beyond_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for option, value in (
        ("--dimension", 2**62),
        ("--dimension", 2**70),
        ("--epochs", 2**62),
        ("--negatives", 2**62),
    ):
        called = call("train", "demo", "--model", "complex", option, value, "--out", "nowhere")
        assert called.code in (1, 2), called.err
        assert "Traceback" not in called.err
    for edges in (2**63 - 1, 2**63, 2**70):
        relative = f"intervals:1,{edges}"
        called = call(
            "train", "demo", "--model", "path", "--relative", relative, "--out", "nowhere"
        )
        assert (called.code, "at most" in called.err) == (2, True), called.err
    assert not (tmp_path / "nowhere").exists()


def test_plain_files(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("four", encoding="utf-8")
    assert io_files.read_plain(path, 4) == "four"
    with pytest.raises(DataError, match="has 4 bytes"):
        io_files.read_plain(path, 3)
