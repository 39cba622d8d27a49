"""What a run leaves: files that explain themselves, and that other programs can open."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from safetensors import safe_open

import splime
from splime.embedding.losses import LOSSES
from splime.embedding.models import MODELS
from splime.errors import DataError, SplimeError, UsageError
from splime.evaluation import evaluate_facts
from splime.graph import TemporalGraph
from splime.io.files import locked, read_json, to_toml as write_toml
from splime.runs import Epoch, Run, folder, is_finished
from splime.runs.folder import checksum, checksum_of_cuts, fingerprint, read_history, write_history
from splime.settings import Settings
from splime.training.registry import make_settings
from tests.graphs import graphs
from tests.runs.small import CUTS, SETTINGS, StopAfter, small_graph, small_run


def test_its_files(finished: Path) -> None:
    assert {path.name for path in finished.iterdir()} == {
        "about.json", "config.toml", "graph.parquet", "history.csv", "model.safetensors",
        "segmentation.json",
    }  # fmt: skip
    assert is_finished(finished)
    for path in finished.iterdir():
        assert path.stat().st_mode & 0o777 == 0o644


def test_the_configuration(finished: Path, graph: TemporalGraph) -> None:
    config = tomllib.loads((finished / "config.toml").read_text(encoding="utf-8"))
    assert config["run"] == {"engine": "splime"}
    assert config["data"] == {
        "name": "", "sha256": checksum(graph), "train": len(graph.train),
        "valid": len(graph.valid), "test": len(graph.test), "timestamps": len(graph.timeline),
    }  # fmt: skip
    assert config["method"] == {
        "name": "Split", "target": "predicates", "fit_on": "train", "by": "time", "grow": 2,
    }  # fmt: skip
    assert config["cuts"] == {"predicates": 6, "sha256": checksum_of_cuts(CUTS.fit(graph))}
    stored = config["settings"]
    unset = {one.name for one in fields(Settings) if one.default is None}
    assert stored.keys() == {one.name for one in fields(Settings)} - unset
    assert {key: stored[key] for key in SETTINGS} == SETTINGS
    assert Run(finished).settings == Settings.of(stored)


def test_how_many_steps_is_a_setting_too(graph: TemporalGraph, tmp_path: Path) -> None:
    run = small_run(graph, tmp_path / "run", steps=5, validate_every=1)
    assert run.config["settings"]["steps"] == run.settings.steps == 5
    assert len(run.history) == 2


def test_repeated_triples_count_once_where_each_triple_does(
    graph: TemporalGraph, tmp_path: Path
) -> None:
    static = splime.Vanilla().fit_transform(graph)
    for distinct, wanted in ((True, static.distinct()[0]), (False, static)):
        run = small_run(
            graph, tmp_path / f"{distinct}", splime.Vanilla(), each="triple", distinct=distinct
        )
        assert run.about["triples"] == len(wanted.train)
    assert len(static.distinct()[0].train) < len(static.train)


def test_what_it_tells_about_the_machine(finished: Path) -> None:
    about = json.loads((finished / "about.json").read_text(encoding="utf-8"))
    assert about["versions"]["splime"] == splime.__version__
    assert about["versions"]["torch"] == torch.__version__
    assert about["device"].startswith(("cpu", "cuda"))
    assert about["parameters"] == 12 * 4 + 2 * 6 * 4
    assert about["triples"] == len(Run(finished).static.train)
    assert 0 <= about["seconds"] < 60
    assert (about["epochs"], about["best_epoch"]) == (6, best_of(Run(finished)).epoch)


def best_of(run: Run) -> Epoch:
    return max((one for one in run.history if one.valid is not None), key=lambda e: e.valid or 0)


def test_the_history(finished: Path) -> None:
    with (finished / "history.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    assert [bool(row["valid"]) for row in rows] == [False, True] * 3
    history = Run(finished).history
    assert [float(row["loss"]) for row in rows] == [one.loss for one in history]
    assert history[-1].loss < history[0].loss


def test_the_graph_and_the_cuts_come_back(finished: Path, graph: TemporalGraph) -> None:
    run = Run(finished)
    assert run.graph == graph
    assert splime.load(finished / "graph.parquet") == graph
    assert checksum_of_cuts(run.segmentation) == checksum_of_cuts(CUTS.fit(graph))


@settings(max_examples=20)
@given(graph=graphs())
def test_checksums_outlive_the_files(
    graph: TemporalGraph, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("saved")
    bucketed = graph.bucket(5)
    for one in (graph, bucketed):
        assert checksum(splime.read(splime.save(one, folder / "g.parquet"))) == checksum(one)
        cuts = splime.Timestamp(target="both").fit(one)
        again = splime.load_segmentation(splime.save_segmentation(cuts, folder / "s.json"))
        assert checksum_of_cuts(again) == checksum_of_cuts(cuts)
    if bucketed.timeline != graph.timeline:
        assert checksum(bucketed) != checksum(graph)


def test_checksums_tell_graphs_and_cuts_apart(graph: TemporalGraph) -> None:
    assert checksum(graph) == checksum(small_graph()) != checksum(small_graph(1))
    cuts = [splime.Vanilla(), CUTS, splime.Split(grow=2, by="count"), splime.Timestamp()]
    cuts += [splime.Vanilla(target="both"), splime.Timestamp(target="both")]
    assert len({checksum_of_cuts(one.fit(graph)) for one in cuts}) == 6


def test_the_model_opens_without_splime(finished: Path) -> None:
    run = Run(finished)
    with safe_open(finished / "model.safetensors", framework="np") as file:
        assert sorted(file.keys()) == ["entities", "predicates"]
        assert file.get_tensor("entities").shape == (12, 4)
        assert file.get_tensor("predicates").shape == (12, 4)  # six, and their inverses
        about = json.loads(file.metadata()["splime"])["about"]
    assert about["config"] == fingerprint(run.config)
    assert about["epoch"] == run.about["best_epoch"]


def test_opening_a_run_gives_the_trained_model(graph: TemporalGraph, tmp_path: Path) -> None:
    """The valid MRR of the best epoch can only come out again if everything is the same."""
    for number, method in enumerate((CUTS, splime.Split(grow=2, target="both"))):
        run = small_run(graph, tmp_path / str(number), method)
        again = Run(run.path)
        found = evaluate_facts(again.scorer, again.graph, again.segmentation, split="valid")
        assert found.metrics["exact"]["both"].mrr == best_of(run).valid
        ids = torch.arange(3)
        for ask in ("objects", "subjects", "predicates"):
            mine, theirs = (getattr(one.scorer, ask)(ids, ids) for one in (run, again))
            assert torch.equal(mine, theirs)
    assert repr(again) == f"Run({again.path}: distmult on facts, Split)"


@pytest.mark.parametrize(
    "model", [name for name, model in MODELS.items() if model.cuts != "timestamps"]
)
def test_every_model_opens_again(model: str, graph: TemporalGraph, tmp_path: Path) -> None:
    sampled = LOSSES[make_settings(model).loss].against == "sampled"
    few: dict[str, Any] = {"negatives": 4} if sampled else {}
    run = small_run(graph, tmp_path / "run", model=model, epochs=2, **few)
    found = evaluate_facts(run.scorer, run.graph, run.segmentation, split="valid")
    assert found.metrics["exact"]["both"].mrr == best_of(run).valid


def test_nothing_is_pickled(finished: Path) -> None:
    forbidden = re.compile(
        r"\b(pickle|dill|joblib|shelve|marshal|cloudpickle)\b|torch\.(load|save)\b"
        r"|allow_pickle=True|\b(exec|eval)\("
    )
    source = Path(splime.__file__).parent
    lines = [
        f"{path.name}: {line}"
        for path in source.rglob("*.py")
        if path.name != "workers.py"  # which sends tasks to processes of its own
        for line in path.read_text(encoding="utf-8").splitlines()
        if forbidden.search(line) and "model" not in line
    ]
    assert lines == []
    for path in finished.iterdir():
        assert not path.read_bytes().startswith((b"\x80", b"PK"))


# The folder itself


def test_a_finished_run_is_not_trained_again(run: Run, graph: TemporalGraph) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in run.path.iterdir()}
    watch = StopAfter(1)
    again = small_run(graph, run.path, watch=watch)
    assert watch.told == []
    assert again.history == run.history
    assert {path.name: path.stat().st_mtime_ns for path in run.path.iterdir()} == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimension": 5, "seed": 1}, "settings.seed is 0, not 1; settings.dimension is 4, not 5"),
        ({"steps": 7}, "settings.steps is not set, not 7"),
        ({"cuts": splime.Split(grow=1)}, "method.grow is 2, not 1; cuts.predicates is 6, not 3"),
        ({"cuts": splime.Vanilla()}, "method.name is 'Split', not 'Vanilla'; method.by is 'time',"),
        ({"dimension": 5, "seed": 1, "n3": 0.5, "patience": 7, "epochs": 9}, "; and 2 more)"),
    ],
)
def test_a_folder_with_another_configuration(
    run: Run, graph: TemporalGraph, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match="holds a run with another configuration") as error:
        small_run(graph, run.path, **changes)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert "choose another folder, or remove this one" in str(error.value)


def test_a_folder_with_other_facts(run: Run) -> None:
    other = small_graph(1)
    with pytest.raises(UsageError, match=r"another configuration \((the data are others|data\.)"):
        small_run(other, run.path, run.segmentation)


def test_the_same_method_may_have_come_to_other_cuts(run: Run, graph: TemporalGraph) -> None:
    """Cuts that somebody moved by hand still tell of the method that chose them."""
    path = run.path.parent / "moved.json"
    described = json.loads((run.path / "segmentation.json").read_text(encoding="utf-8"))
    one = next(p for p in described["predicates"].values() if p["cuts"])
    one["cuts"] = [cut + 0.5 for cut in one["cuts"]]
    del described["sha256"]
    path.write_text(json.dumps(described), encoding="utf-8")
    with pytest.raises(UsageError, match=r"another configuration \(the cuts are others\)"):
        small_run(graph, run.path, splime.load_segmentation(path))


def test_a_folder_with_other_files(graph: TemporalGraph, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious", encoding="utf-8")
    with pytest.raises(UsageError, match=r"holds 'thesis\.tex' and no run; choose another folder"):
        small_run(graph, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "config.toml").write_text("[tool]\nname = 1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"config\.toml: not the configuration of a run: run\.eng"):
        small_run(graph, tmp_path / "foreign")


def test_a_file_in_place_of_the_folder(graph: TemporalGraph, tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_text("text", encoding="utf-8")
    for out in (path, path / "inside"):
        with pytest.raises(UsageError, match="there is a file of this name"):
            small_run(graph, out)
        with pytest.raises(UsageError, match="not a run of splime: there is no such folder"):
            Run(out)
    with pytest.raises(UsageError, match=r"not a run of splime: it has no config\.toml"):
        Run(tmp_path)
    assert path.read_text(encoding="utf-8") == "text"


def test_a_place_without_the_right_to_write(graph: TemporalGraph, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("root may write everywhere")
    for out in (folder, folder / "run"):
        with pytest.raises(SplimeError, match="cannot be written"):
            small_run(graph, out)


@pytest.mark.system
def test_a_folder_in_use(graph: TemporalGraph, tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from splime.io.files import locked
        with locked(Path(sys.argv[1])):
            print("locked", flush=True)
            sys.stdin.read()
        """
    )
    out = tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stdin=-1, stdout=-1, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(UsageError, match="another process is working"):
            small_run(graph, out)
        other.kill()
    assert (out / "lock").exists()  # left by the killed one, and no hindrance
    assert small_run(graph, out).history
    assert not (out / "lock").exists()


def test_a_lock_leaves_no_trace(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    with locked(out):
        assert out.is_dir()
        with pytest.raises(UsageError, match="another process"), locked(out):
            pass
        with pytest.raises(UsageError, match="another process"), locked(out, wait=0.05):
            pass
    assert list(tmp_path.iterdir()) == []
    out.mkdir(parents=True)
    with locked(out):
        pass
    assert list(out.iterdir()) == []


def test_what_was_only_begun_gives_way(graph: TemporalGraph, tmp_path: Path) -> None:
    """Killed before anything was learned: neither the same nor another try is hindered."""
    whole = small_run(graph, tmp_path / "whole")
    for left in (["config.toml"], ["config.toml", "graph.parquet", "segmentation.json"]):
        tries: list[dict[str, Any]] = [{}, {"dimension": 5}]
        for changes in tries:
            out = tmp_path / f"{len(left)}{len(changes)}"
            out.mkdir()
            for name in left:
                (out / name).write_bytes((whole.path / name).read_bytes())
            (out / ".checkpoint.safetensors.123.part").write_bytes(b"half")
            run = small_run(graph, out, **changes)
            assert run.settings.dimension == changes.get("dimension", 4)
            assert run.scorer
            assert not list(out.glob(".*"))


@pytest.mark.parametrize("name", ["save", "save_segmentation", "write_toml"])
def test_a_kill_at_the_very_beginning(
    name: str, graph: TemporalGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(folder, name, killed)
        with pytest.raises(KeyboardInterrupt):
            small_run(graph, tmp_path / "run")
    assert small_run(graph, tmp_path / "run").scorer


def test_an_unfinished_run_cannot_be_opened(graph: TemporalGraph, tmp_path: Path) -> None:
    with pytest.raises(SplimeError):
        small_run(graph, tmp_path / "run", watch=StopAfter(1))
    with pytest.raises(UsageError, match="not finished; the command that began it resumes it"):
        Run(tmp_path / "run")


# The small formats

texts = st.text(st.characters(codec="utf-8"))
plain = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(
        texts,
        st.dictionaries(texts, plain, max_size=4),
        max_size=3,
    )
)
def test_toml_comes_back(tables: dict[str, dict[str, object]]) -> None:
    assert tomllib.loads(write_toml(tables)) == tables


def test_toml_of_numbers_of_numpy() -> None:
    values = {"a": np.float64(0.1), "b": np.int64(3), "c": np.float32(0.5), "d": float("inf")}
    text = write_toml({"t": {**values, "none": None}})
    assert tomllib.loads(text)["t"] == {"a": 0.1, "b": 3, "c": 0.5, "d": float("inf")}
    with pytest.raises(TypeError, match="TOML"):
        write_toml({"t": {"a": object()}})


def test_the_history_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    history = [Epoch(1, 0.1 + 0.2, None), Epoch(2, 1e-300, 1 / 3)]
    write_history(path, history)
    assert read_history(path) == history
    text = path.read_text(encoding="utf-8")
    for wrong in ("", "a,b\n1,2\n", "epoch,loss,valid\n", text.replace("2,", "3,", 1), text[:-30]):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(DataError, match=r"history\.csv"):
            read_history(path)


def test_json_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "about.json"
    for wrong in (b"", b"[]", b"{", b"\xff", b"[" * 100_000):
        path.write_bytes(wrong)
        with pytest.raises(DataError, match=r"about\.json"):
            read_json(path)
