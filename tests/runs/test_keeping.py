"""What is kept of files that are asked: the same answers, anew when a file changed, private."""

from __future__ import annotations

import errno
import gzip
import json
import logging
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import splime
from splime.analysis import calibration, hidden
from splime.cli.main import main
from splime.datasets.loading import load_unsplit
from splime.io import cache as caching
from splime.paths.counting import FactCounts
from splime.paths.shipped import load_weights
from splime.runs import Run, graph_run, keeping
from splime.runs.graph_run import GraphRun, open_source
from tests.runs.small import Called, call, call_program, small_graph

QUESTION = ("entity 1", "p1", "?", "--at", 1995)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache that is switched on."""
    monkeypatch.delenv("SPLIME_NO_CACHE")
    for place, name in ((hidden, "MOST"), (hidden, "FEWEST"), (calibration, "FEWEST")):
        monkeypatch.setattr(place, name, 8)  # facts that are hidden, which takes longest
    monkeypatch.setenv("SPLIME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "graphs"


def write_facts(path: Path, seed: int = 0) -> Path:
    rows = ["subject,predicate,object,begin,end"]
    rows += [",".join(value or "" for value in fact) for fact in small_graph(seed).rows()]
    rows += rows[1:30]  # repeated, which is worth a warning
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    return write_facts(tmp_path / "data" / "facts.csv")


def ask(source: object, *more: object, **environment: str) -> Called:
    done = call("ask", source, *(more or QUESTION), program=main, **environment)
    assert done.code == 0, done.err
    return done


def kept(folder: Path) -> list[str]:
    """What each folder of a cache holds, without checksums."""
    return sorted(f"{path.name.split('.')[0].split('-')[0]}" for path in folder.glob("*/*"))


ALL = ["about", "calibration", "counts", "graph", "trust"]


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any, **__: Any) -> Any:
        raise AssertionError("made again")

    monkeypatch.setattr(graph_run, "load_unsplit", forbidden)
    monkeypatch.setattr(FactCounts, "of", forbidden)
    monkeypatch.setattr(hidden.HiddenFacts, "cases", forbidden)


def test_the_same_answers_to_the_byte(
    cache: Path, facts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = ask(facts, SPLIME_NO_CACHE="1")
    assert not cache.exists()
    assert "rows were dropped" in without.err
    assert ask(facts) == without
    assert kept(cache) == ALL
    forbid(monkeypatch)
    assert ask(facts) == without
    with pytest.raises(AssertionError, match="made again"):
        ask(facts, SPLIME_NO_CACHE="1")


def test_every_kind_of_question(cache: Path, facts: Path) -> None:
    for names in (("?", "p1", "entity 3"), ("entity 1", "?", "entity 3")):
        asked = (*names, "--at", 1999, "--json")
        wanted = ask(facts, *asked, SPLIME_NO_CACHE="1").out
        assert [ask(facts, *asked).out for _ in range(2)] == [wanted, wanted]
    assert kept(cache).count("calibration") == 2


def test_trust_is_the_same(cache: Path, facts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = hidden.trust(facts)
    forbid(monkeypatch)
    again = hidden.trust(facts)
    assert first == again
    assert [*first.predicates] == [*again.predicates]
    assert repr(first) == repr(again)


def in_splits(folder: Path, ending: str = "") -> Path:
    """A folder with splits, written with ids."""
    graph, folder = small_graph(), folder / "in.splits"
    folder.mkdir(parents=True)
    pack: Callable[[bytes], bytes] = gzip.compress if ending else bytes
    for split, part in graph.splits():
        columns = (part.subject, part.predicate, part.object, part.begin)
        lines = "".join("\t".join(map(str, row)) + "\n" for row in zip(*columns, strict=True))
        (folder / f"{split}.txt{ending}").write_bytes(pack(lines.encode()))
    for name, names in (("entity", graph.entities), ("relation", graph.predicates)):
        lines = "".join(f"{names[at]}\t{at}\n" for at in range(len(names)))
        (folder / f"{name}2id.txt").write_text(lines)
    return folder


def saved(folder: Path) -> Path:
    return splime.save(small_graph(), folder / "saved.parquet")


def table(folder: Path) -> Path:
    import pyarrow.parquet as pq

    path = folder / "parts" / "a.parquet"
    path.parent.mkdir()
    pq.write_table(small_graph().to_table().drop_columns(["split"]), path)
    shutil.copy(path, path.with_name("b.parquet"))
    return path.parent


SOURCES: dict[str, tuple[Callable[[Path], Any], dict[str, Any]]] = {
    "text": (lambda folder: write_facts(folder / "a.b.csv"), {}),
    "named": (lambda folder: write_facts(folder / "a.csv"), {"name": "mine", "bucket": 20}),
    "split": (lambda folder: write_facts(folder / "a.csv"), {"split": "time", "valid": 0.2}),
    "splits": (in_splits, {}),
    "packed": (lambda folder: in_splits(folder, ".gz"), {"granularity": "year"}),
    "saved": (saved, {}),
    "parts": (table, {"keep_duplicates": True}),
    "pattern": (lambda folder: table(folder) / "*.parquet", {}),
    "dataset": (lambda _: "demo", {}),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_graphs_are_the_same(
    kind: str, cache: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make, reading = SOURCES[kind]
    source = make(tmp_path)
    caplog.set_level(logging.DEBUG, "splime")
    wanted, said = load_unsplit(source, **reading), [*caplog.messages]
    for _ in range(2):
        caplog.clear()
        graph = open_source(source, **reading).graph
        assert caplog.messages == said
        assert graph == wanted
        assert (graph.name, graph.reading) == (wanted.name, wanted.reading)
        for (_, part), (_, like) in zip(graph.splits(), wanted.splits(), strict=True):
            for one, other in zip(part.columns(), like.columns(), strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)
    assert ("graph" in kept(cache)) == (kind not in ("saved", "pattern"))


def test_counts_are_the_same(cache: Path, facts: Path) -> None:
    runs = [open_source(facts) for _ in range(2)]
    runs.append(GraphRun(runs[0].graph))
    first, *others = (run.scoring().scorer._start.counts for run in runs)
    for other in others:
        for name, value in vars(first).items():
            one = getattr(other, name)
            assert type(one) is type(value)
            np.testing.assert_array_equal(one, value)
            assert np.asarray(one).dtype == np.asarray(value).dtype


def test_what_is_changed_is_read_anew(cache: Path, facts: Path) -> None:
    ask(facts)
    changed = facts.read_text().replace("entity 11,", "entity new,")
    os.utime(facts, (0, 0))
    before = facts.stat()
    facts.write_text(changed)
    os.utime(facts, (before.st_atime, before.st_mtime))
    assert "entity new" in open_source(facts).graph.entities
    assert len([*cache.iterdir()]) == 2


def test_all_that_decides_counts(cache: Path, facts: Path, tmp_path: Path) -> None:
    def names(**reading: Any) -> tuple[str, int, int]:
        graph = open_source(facts, **reading).graph
        return graph.name, len(graph), len(graph.timeline)

    first = names()
    assert names(keep_duplicates=True)[1] > first[1]
    assert names(bucket=20)[2] < first[2]
    assert names(name="other")[0] == "other"
    assert names() == first
    moved = shutil.copy(facts, tmp_path / "facts.csv")
    size = len([*cache.iterdir()])
    assert open_source(moved).graph.name == "facts"
    assert len([*cache.iterdir()]) == size  # the same name and bytes
    assert open_source(shutil.copy(facts, tmp_path / "renamed.csv")).graph.name == "renamed"


@pytest.mark.parametrize("name", ["valid.txt", "entity2id.txt", "time2id.txt"])
def test_every_file_of_a_folder_counts(name: str, cache: Path, tmp_path: Path) -> None:
    folder = in_splits(tmp_path)
    before = open_source(folder).graph
    path = folder / name
    if name == "time2id.txt":
        path.write_text("".join(f"{when + 100}-01-01\t{when}\n" for when in range(1980, 2030)))
    elif name == "valid.txt":
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    else:
        path.write_text(path.read_text().replace("entity 3\t", "entity x\t"))
    after = open_source(folder).graph
    assert after == load_unsplit(folder)
    assert after != before


def test_dictionaries_that_are_named(cache: Path, tmp_path: Path) -> None:
    folder = in_splits(tmp_path)
    other = shutil.move(folder / "entity2id.txt", tmp_path / "names.txt")
    reading: dict[str, Any] = {"entities": other}
    before = open_source(folder, **reading).graph
    Path(other).write_text(Path(other).read_text().replace("entity 3\t", "entity x\t"))
    assert open_source(folder, **reading).graph != before


def test_a_file_that_changes_meanwhile(
    cache: Path, facts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(source: Path, **reading: Any) -> Any:
        graph = load_unsplit(source, **reading)
        write_facts(facts, seed=1)
        return graph

    monkeypatch.setattr(graph_run, "load_unsplit", load)
    ask(facts)
    assert kept(cache) == []


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_only_the_owner_reads_it(mask: int, cache: Path, facts: Path) -> None:
    before = os.umask(mask)
    try:
        if not mask:  # others made it before
            cache.mkdir(parents=True, mode=0o777)
        ask(facts)
        call("cache", "--off")
    finally:
        os.umask(before)
    found = [cache, *cache.rglob("*")]
    assert len(found) == 3 + len(ALL)
    for path in found:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_the_bound_holds(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (write_facts(tmp_path / f"{at}.csv", at) for at in range(3))
    for at, path in enumerate((first, second)):
        open_source(path).scoring()
        for folder in cache.iterdir():
            if folder.stat().st_mtime > 10:
                os.utime(folder, (at, at))
    one = max(found.bytes for found in caching.Cache(cache).kept())
    monkeypatch.setattr(caching, "MOST", int(2.5 * one))
    open_source(first)  # now the second is the one that was not used for longest
    open_source(third).scoring()
    found = caching.Cache(cache).kept()
    assert {entry.source for entry in found} == {"0.csv", "2.csv"}
    assert sum(entry.bytes for entry in found) <= 2.5 * one
    monkeypatch.setattr(caching, "MOST", 100)
    ask(second)
    assert sum(path.stat().st_size for path in cache.glob("*/*")) <= 100


def test_damage_is_made_good(cache: Path, facts: Path) -> None:
    wanted = ask(facts)
    for at, path in enumerate([*cache.glob("*/*")]):
        whole = path.read_bytes()
        broken = (b"", whole[: len(whole) // 2], whole[:-2] + bytes([whole[-2] ^ 1]) + whole[-1:])
        path.write_bytes(broken[at % len(broken)])
        done = ask(facts)
        assert done.out == wanted.out
        assert f"{path} is damaged (its checksum differs), and made again\n" in done.err
        assert path.read_bytes() == whole  # under the same name, for all are made as before
    assert ask(facts) == wanted


def test_a_full_disk_and_a_place_that_is_no_folder(
    cache: Path, facts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ask(facts, SPLIME_NO_CACHE="1")
    line = "nothing is kept for later"

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(keeping, "save", full)
        done = ask(facts)
    assert done.out == wanted.out
    assert done.err.replace(wanted.err, "").count("\n") == done.err.count(line) == 1
    assert kept(cache) == []
    shutil.rmtree(cache)
    cache.write_text("")
    done = ask(facts)
    assert done.out == wanted.out
    assert done.err.count(line) == 1
    assert call("cache").code == 0
    assert call("cache", "--off").err.startswith(f"error: {cache}: cannot be written: ")


def test_only_files_are_kept(cache: Path, facts: Path, tmp_path: Path) -> None:
    run = Run(Path(__file__).parents[1] / "data" / "run-0.2.0")
    assert [open_source(one).path for one in (run, run.path)] == [run.path] * 2
    open_source(small_graph()).scoring()
    assert not cache.exists()
    with pytest.raises(splime.SplimeError):
        open_source(tmp_path / "missing.csv")
    for text in ("", "a,b\n", "\0\0"):
        (tmp_path / "bad.csv").write_text(text)
        for _ in range(2):
            with pytest.raises(splime.SplimeError):
                open_source(tmp_path / "bad.csv")
    assert not cache.exists()


def test_other_facts_are_not_kept(cache: Path, facts: Path, tmp_path: Path) -> None:
    ask(facts)
    before = sorted(cache.rglob("*"))
    newer = write_facts(tmp_path / "newer.csv", seed=3)
    asked = (*QUESTION, "--facts", newer)
    wanted = ask(facts, *asked, SPLIME_NO_CACHE="1")
    assert [ask(facts, *asked) for _ in range(2)] == [wanted, wanted]
    assert sorted(cache.rglob("*")) == before


def test_other_weights_are_measured_again(
    cache: Path, facts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(facts)
    shipped = load_weights()
    other = replace(shipped, sha256="0" * 64)
    monkeypatch.setattr(graph_run, "load_weights", lambda _: other)
    ask(facts)
    assert kept(cache) == sorted([*ALL, "calibration", "trust"])


def test_the_command(cache: Path, facts: Path) -> None:
    nothing = json.loads(call("cache", "--json").out)
    folder = {"folder": str(cache), "on": True, "bytes": 0, "most": 10**9}
    assert nothing == {**folder, "entries": []}
    wanted = ask(facts)
    shown = json.loads(call("cache", "--json").out)
    [entry] = shown["entries"]
    size = sum(path.stat().st_size for path in cache.glob("*/*"))
    assert (entry["source"], entry["bytes"], shown["bytes"]) == ("facts.csv", size, size)
    assert entry["facts"] == len(open_source(facts).graph)
    assert f"facts.csv  {entry['facts']}" in call("cache").out
    assert "off: " in call("cache", "--clear", "--off").out
    assert [path.name for path in cache.rglob("*")] == ["off"]
    assert ask(facts) == wanted
    assert kept(cache) == []
    assert "off: " not in call("cache", "--on").out
    ask(facts, SPLIME_NO_CACHE="1")
    assert kept(cache) == []
    ask(facts)
    assert kept(cache) == ALL


def test_two_that_make_the_same(cache: Path, tmp_path: Path) -> None:
    texts = [caching.Cache(tmp_path).entry("a") for _ in range(2)]

    def get(entry: caching.Entry, text: str, meanwhile: Callable[[], Any] = str) -> str:
        def make() -> str:
            meanwhile()
            return text

        def write(made: str, path: Path) -> None:
            path.write_text(made)

        return entry.get("one.txt", make, read=Path.read_text, write=write)

    assert get(texts[0], "first", lambda: get(texts[1], "second")) == "first"
    assert get(texts[0], "third") in ("first", "second")
    shutil.rmtree(tmp_path / "a")
    assert get(texts[1], "fourth") == "fourth"
    for left in tmp_path.rglob(".*"):
        raise AssertionError(left)


@pytest.mark.system
def test_many_processes_at_once(cache: Path, facts: Path) -> None:
    wanted = call_program("ask", facts, *QUESTION, SPLIME_NO_CACHE="1")
    with ThreadPoolExecutor(3) as pool:
        done = [*pool.map(lambda _: call_program("ask", facts, *QUESTION), range(3))]
    assert {one.out for one in done} == {wanted.out}
    for one in done:
        assert "damaged" not in one.err
        assert "nothing is kept" not in one.err
    assert kept(cache) == ALL
