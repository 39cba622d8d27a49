"""Embeddings in files of other programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import splime
from splime.analysis.embeddings import FORMATS, export_embeddings
from splime.errors import SplimeError, UsageError
from splime.runs import Run
from tests.runs.small import small_run

Read = tuple[list[str], np.ndarray]


def read_parquet(path: Path) -> Read:
    table = pq.read_table(path)
    return table["name"].to_pylist(), np.array(table["vector"].to_pylist(), np.float32)


def read_tsv(path: Path) -> Read:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    return [row[0] for row in rows], np.array([row[1:] for row in rows], np.float32)


def read_word2vec(path: Path) -> Read:
    first, *lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    rows = [line.split(" ") for line in lines]
    vectors = np.array([row[1:] for row in rows], np.float32)
    assert first == f"{len(rows)} {vectors.shape[1]}"
    return [row[0] for row in rows], vectors


READERS = {"parquet": read_parquet, "tsv": read_tsv, "word2vec": read_word2vec}
SUFFIXES = {"parquet": "parquet", "tsv": "tsv", "word2vec": "txt"}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("what", ["entities", "predicates"])
def test_they_come_back(run: Run, format: str, what: str, tmp_path: Path) -> None:
    path = export_embeddings(run, tmp_path / f"out.{SUFFIXES[format]}", what)
    names, vectors = READERS[format](path)
    assert np.array_equal(vectors, run.tensors[what].numpy())
    expected = list(getattr(run.static, what).labels.to_pylist())
    if what == "predicates":
        assert run.settings.reciprocal
        assert len(set(expected)) == 6
        expected += [f"{name}⁻¹" for name in expected]
    if format == "word2vec":
        expected = [name.replace(" ", "_") for name in expected]
    assert names == expected


def test_formats_by_name(run: Run, tmp_path: Path) -> None:
    for name, format in (("a.PARQUET", ""), ("a.vec", ""), ("a.csv", "tsv"), ("a", "parquet")):
        path = export_embeddings(run, tmp_path / name, format=format)
        reader = {"a.vec": read_word2vec, "a.csv": read_tsv}.get(name, read_parquet)
        assert len(reader(path)[0]) == 12


def test_without_reciprocal_predicates_there_are_no_inverses(run: Run, tmp_path: Path) -> None:
    other = small_run(run.graph, tmp_path / "run", reciprocal=False)
    names, vectors = read_tsv(export_embeddings(other, tmp_path / "p.tsv", "predicates"))
    assert len(names) == len(vectors) == 6
    assert not any(name.endswith("⁻¹") for name in names)


def odd_run(names: list[str], out: Path) -> Run:
    rows = [(a, "p q", b, 1990 + n) for n, a in enumerate(names) for b in names]
    graph = splime.read({"train": rows, "valid": rows[:2]}, granularity="year")
    return small_run(graph, out, splime.Vanilla(), batch_size=4)


def test_odd_names(tmp_path: Path) -> None:
    """Names are kept as they are, or the format is refused: nothing is mangled silently."""
    names = ["a b", "a  b", "Ærøskøbing\u00a0By", '"quoted"', "日本"]
    run = odd_run(names, tmp_path / "run")
    assert read_parquet(export_embeddings(run, tmp_path / "e.parquet"))[0] == sorted(names)
    assert read_tsv(export_embeddings(run, tmp_path / "e.tsv"))[0] == sorted(names)
    words, vectors = read_word2vec(export_embeddings(run, tmp_path / "e.txt"))
    assert words == [name.replace(" ", "_").replace("\u00a0", "_") for name in sorted(names)]
    assert np.array_equal(vectors, run.tensors["entities"].numpy())


def test_tabs_and_what_cannot_be_told_apart(tmp_path: Path) -> None:
    run = odd_run(["a\tb", "a b", "c"], tmp_path / "run")
    assert read_parquet(export_embeddings(run, tmp_path / "e.parquet"))[0] == ["a\tb", "a b", "c"]
    with pytest.raises(UsageError, match=r"'a\\tb' holds a tab .* TSV cannot; export as parquet"):
        export_embeddings(run, tmp_path / "e.tsv")
    with pytest.raises(UsageError, match=r"'a\\tb' and 'a b' would both be 'a_b' in word2vec"):
        export_embeddings(run, tmp_path / "e.txt")
    assert {path.name for path in tmp_path.iterdir()} == {"run", "e.parquet"}


@pytest.mark.parametrize(
    ("name", "what", "format", "message"),
    [
        ("e.npy", "entities", "", r"e\.npy: choose a format, .* there are parquet, tsv"),
        ("e", "entities", "", "choose a format"),
        ("e.tsv", "entities", "word2vex", r"no format 'word2vex'.*Did you mean word2vec\?"),
        ("e.tsv", "entity", "", r"'entity'.*Did you mean entities\?"),
    ],
)
def test_wrong_arguments(
    run: Run, name: str, what: str, format: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        export_embeddings(run, tmp_path / name, what, format)


def test_places_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    for format in FORMATS:
        for path in (tmp_path / "missing" / "e", tmp_path):
            with pytest.raises(SplimeError, match="cannot be written"):
                export_embeddings(run, path, format=format)
