from __future__ import annotations

from pathlib import Path

import pytest

import splime
from splime.errors import DataError
from splime.io.ids import read_ids


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "Ada\t0\nUlm\t1\n",
        "0\tAda\n1\tUlm\n",
        "2\nAda\t0\nUlm\t1\n",
        "Ada\t0\t1990-##-##\nUlm\t1\t\n",
    ],
)
def test_kinds_of_dictionary_files(tmp_path: Path, text: str) -> None:
    assert read_ids(write(tmp_path / "e.txt", text)) == {"0": "Ada", "1": "Ulm"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("Ada\t0\nUlm\n", r"line 2: expected a name and an id"),
        ("Ada\tx\n", "neither the first nor the second column holds ids"),
        ("1\t0\n0\t1\n", "both columns look like ids"),
        ("Ada\t0\nUlm\t0\n", r"line 2: the id 0 is given twice"),
        ("Ada\t0\nAda\t1\n", r"line 2: the name 'Ada' is given twice, first in line 1"),
    ],
)
def test_broken_dictionary_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_ids(write(tmp_path / "e.txt", text))


def test_ids_of_named_files(tmp_path: Path) -> None:
    facts = write(tmp_path / "f.tsv", "0\t0\t1\t1990\n")
    entities = write(tmp_path / "e.txt", "Ada\t0\nUlm\t1\n")
    predicates = write(tmp_path / "p.txt", "bornIn\t0\n")
    graph = splime.read(facts, entities=entities, predicates=predicates, split="none")
    assert list(graph.rows()) == [("Ada", "bornIn", "Ulm", "1990", "1990")]
    only = splime.read(facts, entities=entities, split="none")
    assert list(only.rows()) == [("Ada", "0", "Ulm", "1990", "1990")]


def test_unknown_ids(tmp_path: Path) -> None:
    facts = write(tmp_path / "f.tsv", "0\t0\t1\t1990\n\n0\t0\t7\t1990\n")
    entities = write(tmp_path / "e.txt", "Ada\t0\nUlm\t1\n")
    with pytest.raises(DataError, match=r"f.tsv, line 3: the entity id '7' is not in .* its 2 ids"):
        splime.read(facts, entities=entities)


@pytest.mark.parametrize(
    "names", [("entity2id.txt", "relation2id.txt"), ("entities.dict", "relations.dict")]
)
def test_dictionary_files_in_the_folder(tmp_path: Path, names: tuple[str, str]) -> None:
    write(tmp_path / names[0], "Ada\t0\nUlm\t1\n")
    write(tmp_path / names[1], "bornIn\t0\n")
    write(tmp_path / "train.txt", "0\t0\t1\t1990\n")
    wanted = [("Ada", "bornIn", "Ulm", "1990", "1990")]
    assert list(splime.read(tmp_path).rows()) == wanted
    # Other people put names into the facts and the dictionaries beside them.
    write(tmp_path / "train.txt", "Ada\tbornIn\tUlm\t1990\n")
    assert list(splime.read(tmp_path).rows()) == wanted


def test_all_facts_decide_whether_they_use_ids(tmp_path: Path) -> None:
    write(tmp_path / "entity2id.txt", "Ada\t0\n1\t1\nUlm\t2\n")
    write(tmp_path / "relation2id.txt", "bornIn\t0\n")
    # The first fact reads as ids too, but the second one tells.
    write(tmp_path / "train.txt", "1\tbornIn\t1\t1990\nAda\tbornIn\tUlm\t1990\n")
    assert [fact.subject for fact in splime.read(tmp_path).rows()] == ["1", "Ada"]
    write(tmp_path / "train.txt", "7\t0\t2\t1990\n0\t0\t1\t1990\n")
    message = r"train.txt, line 1: the entity id '7' is not in entity2id.txt, which lies beside it"
    with pytest.raises(DataError, match=message):
        splime.read(tmp_path)


def test_one_dictionary_file_in_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "relation2id.txt", "bornIn\t0\n")
    write(tmp_path / "train.txt", "Ada\t0\tUlm\t1990\n")
    assert list(splime.read(tmp_path).rows()) == [("Ada", "bornIn", "Ulm", "1990", "1990")]


def test_numbered_dictionary_files(tmp_path: Path) -> None:
    """Those of one of several graphs are used for it, and mentioned beside others."""
    for number, name in (("1", "Ada"), ("2", "Eva")):
        write(tmp_path / f"ent_ids_{number}", f"0\t{name}\n1\tUlm {number}\n")
        write(tmp_path / f"triples_{number}", "0\tp\t1\t2001\n")
    for number, name in (("1", "Ada"), ("2", "Eva")):
        graph = splime.read(tmp_path / f"triples_{number}", split="none")
        assert list(graph.entities) == [name, f"Ulm {number}"]
        assert f"ent_ids_{number}" in str(graph.reading.remarks)
    other = write(tmp_path / "facts.tsv", "0\tp\t1\t2001\n")
    assert "ent_ids_1 and ent_ids_2 left alone" in str(splime.read(other).reading.remarks)
