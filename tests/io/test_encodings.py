"""Text that is not UTF-8: read where it is clear what it is, and said; else an error."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import DataError, SplimeError, UsageError
from tests.runs.small import call

HEADER = ("subject", "predicate", "object", "begin", "end")
NAMES = [("Jürgen Groß", "führt", "Büro"), ("Ada", "führt", "Büro")]
FACTS = [(*fact, "1990", "1994") for fact in NAMES]


def text(
    facts: Sequence[tuple[str, ...]] = FACTS, delimiter: str = "\t", *, header: bool = True
) -> str:
    rows = [HEADER, *facts] if header else facts
    return "".join(delimiter.join(row) + "\n" for row in rows)


def rows(graph: splime.TemporalGraph) -> set[tuple[Any, ...]]:
    return {tuple(fact) for fact in graph.rows()}


def read(path: Path, data: bytes, **options: Any) -> splime.TemporalGraph:
    path.write_bytes(data)
    return splime.read(path, split="none", **options)


@pytest.mark.parametrize("delimiter", ["\t", ";", ","])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("latin-1", "is read as Windows-1252 (Latin-1), such as 'Jürgen"),
        ("windows-1252", "is read as Windows-1252 (Latin-1), such as"),
        ("utf-16", "the text is UTF-16"),
        ("utf-16-le", "the text is UTF-16-LE"),
        ("utf-16-be", "the text is UTF-16-BE"),
        ("utf-32", "the text is UTF-32"),
        ("utf-8", ""),
        ("utf-8-sig", ""),
    ],
)
def test_encodings(tmp_path: Path, encoding: str, said: str, delimiter: str, header: bool) -> None:
    data = text(delimiter=delimiter, header=header).encode(encoding)
    for name, content in (("facts.csv", data), ("facts.txt.gz", gzip.compress(data))):
        graph = read(tmp_path / name, content)
        assert rows(graph) == {*FACTS}
        remarks = [remark for remark in graph.reading.remarks if remark.startswith("the text")]
        assert [said in remark for remark in remarks] == [True] * bool(said)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig"])
def test_json(tmp_path: Path, encoding: str) -> None:
    records = [dict(zip(HEADER, fact, strict=True)) for fact in FACTS]
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    assert rows(read(tmp_path / "facts.jsonl", lines.encode(encoding))) == {*FACTS}
    whole = json.dumps(records, ensure_ascii=False, indent=1)
    assert rows(read(tmp_path / "facts.json", whole.encode(encoding))) == {*FACTS}


def test_the_folder_of_splits_may_mix_them(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_bytes(text(delimiter=",").encode("latin-1"))
    (tmp_path / "test.csv").write_bytes(text(delimiter=",").encode())
    graph = splime.read(tmp_path)
    assert rows(graph) == {*FACTS}
    assert any("train.csv: the text is not UTF-8" in one for one in graph.reading.remarks)


def test_a_byte_far_behind(tmp_path: Path) -> None:
    """It is not in the part that is looked at first."""
    many = [(f"entity {n}", "p", "x", "1990", "1991") for n in range(60_000)]
    graph = read(tmp_path / "facts.tsv", text([*many, *FACTS]).encode("latin-1"))
    assert len(graph) == 60_002
    assert "Jürgen Groß" in graph.entities
    broken = text([("Ærø", "p", "x", "1990", "1991"), *many]).encode() + b"a\tp\t\xe9\t1\t2\n"
    with pytest.raises(
        DataError, match=r"line 60003, character 5: the byte 0xe9 .*line 2 is UTF-8"
    ):
        read(tmp_path / "facts.tsv", broken)


@pytest.mark.parametrize(
    "data",
    [
        text([*FACTS, ("Ada", "p", "b\xe9?", "1990", "1991")])
        .encode()
        .replace(b"\xc3\xa9", b"\xe9"),
        text([("Ada", "p", "?", "1990", "1991")]).encode().replace(b"?", b"\xff"),
        text([("Ada", "p", "?", "1990", "1991")]).encode().replace(b"?", b"a\x81b"),
        text([("Иван Петров", "p", "x", "1990", "1991")]).encode("windows-1251"),
        text([("Łódź", "p", "x", "1990", "1991")]).encode("windows-1250"),
        text([("東京", "p", "x", "1990", "1991")]).encode("shift_jis"),
    ],
)
def test_doubtful_text_is_an_error_with_its_line(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(DataError, match=r"facts.tsv, line \d, .* is not UTF-8; .*encoding='"):
        read(tmp_path / "facts.tsv", data)


@pytest.mark.parametrize(
    "encoding", ["windows-1250", "shift_jis", "utf-16-le", "mac-roman", "utf-8"]
)
def test_a_chosen_encoding(tmp_path: Path, encoding: str) -> None:
    name = "東京" if encoding == "shift_jis" else "Žižka" if encoding == "windows-1250" else "Café"
    facts = [(name, "p", "x", "1990", "1991")]
    graph = read(tmp_path / "facts.tsv", text(facts).encode(encoding), encoding=encoding)
    assert rows(graph) == {*facts}
    assert not any("text" in remark for remark in graph.reading.remarks)


def test_wrong_encodings(tmp_path: Path) -> None:
    latin = text().encode("latin-1")
    for wrong in ("utf-8", "ascii", "utf-16", "shift_jis"):
        with pytest.raises(SplimeError, match=r"facts\.tsv"):
            read(tmp_path / "facts.tsv", latin, encoding=wrong)
    for unknown in ("nonsense", "base64", "", "\0"):
        with pytest.raises(UsageError, match="there is no encoding"):
            read(tmp_path / "facts.tsv", latin, encoding=unknown)
    with pytest.raises(UsageError, match=r"leave out encoding \(--encoding\)"):
        splime.read(FACTS, encoding="utf-8")
    refused = call("inspect", tmp_path / "facts.tsv", "--encoding", "ascii")
    assert refused.code == 3
    assert "not ascii" in refused.err


@given(st.binary(max_size=80), st.sampled_from(["utf-16", "utf-16-le", "latin-1"]))
def test_a_file_that_is_cut_or_damaged(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, encoding: str
) -> None:
    """It is read, or one clear error."""
    path = tmp_path_factory.mktemp("cut") / "facts.tsv"
    data = text(FACTS * 3).encode(encoding)
    for content in (data[: len(data) - 1 - len(noise)], data[: len(noise)] + noise + data, noise):
        with suppress(SplimeError):
            reading = read(path, content, allow_loss=True).reading
            assert reading.rows == reading.kept + sum(reading.dropped.values())
