"""JSON, and the files of Wikidata's query service."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import splime
from splime.errors import DataError
from tests.io.test_fuzz import check_reading, mutations, zstd

LINES = """\
{"subject": "Ada", "predicate": "playsFor", "object": "Ajax", "begin": 1990, "end": 1994}
{"subject": "Ada", "predicate": "playsFor", "object": "PSV", "begin": "1995", "note": {"a": [1]}}

{"id": 3, "subject": "Bob", "predicate": "playsFor", "object": 7, "begin": null, "end": 1999.0}
"""
OF_LINES = [
    ("Ada", "playsFor", "Ajax", "1990", "1994"),
    ("Ada", "playsFor", "PSV", "1995", None),
    ("Bob", "playsFor", "7", None, "1999"),
]
ENTITY = "http://www.wikidata.org/entity/"
EXPORT = [
    line.replace("wd:", ENTITY).split("|")
    for line in """\
item|itemLabel|property|propertyLabel|value|valueLabel|start|startPrecision|end|endPrecision\
|pointInTime|pointInTimePrecision
wd:Q1|John|wd:P54|member of|wd:Q5|Ajax|1995-01-01T00:00:00Z|9|1996-05-01T00:00:00Z|10||
wd:Q2|John|wd:P54|member of|wd:Q5|Ajax|1990-01-01T00:00:00Z|8||||
wd:Q3|Q3|wd:P166|award|wd:Q6|Cup, the|||||1999-05-06T00:00:00Z|11
wd:Q2|John|wd:P54|member of|wd:Q6|Cup, the|http://www.wikidata.org/.well-known/genid/9f||\
2001-01-01T00:00:00Z|9||
""".splitlines()
]
OF_EXPORT = [
    ("John (Q1)", "member of", "Ajax", "1995", "1996"),
    ("Q3", "award", "Cup, the", "1999", "1999"),
    ("John (Q2)", "member of", "Cup, the", None, "2001"),
]


def write(path: Path, content: str | bytes | list[Any]) -> Path:
    if isinstance(content, list):
        content = json.dumps(content, indent=1)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Path, **options: Any) -> splime.TemporalGraph:
    return splime.read(path, split="none", **options)


def facts(path: Path, **options: Any) -> list[tuple[str | None, ...]]:
    return [tuple(fact) for fact in read(path, **options).rows()]


def cell(text: str) -> str:
    return f'"{text}"' if "," in text else text


def term(text: str) -> str:
    """As the query service writes TSV."""
    if text.startswith("http"):
        return f"<{text}>"
    kind = "dateTime" if text.endswith("Z") else "integer"
    typed = f"^^<http://www.w3.org/2001/XMLSchema#{kind}>"
    return f'"{text}"{typed}' if text[:1].isdigit() else f'"{text}"@en' if text else ""


def binding(text: str) -> dict[str, str]:
    return {"type": "uri" if text.startswith("http") else "literal", "value": text}


def results(rows: list[list[str]]) -> dict[str, Any]:
    """SPARQL results: what is not bound is left out."""
    names, *values = rows
    bindings = [
        {name: binding(text) for name, text in zip(names, row, strict=True) if text}
        for row in values
    ]
    return {"head": {"vars": names}, "results": {"bindings": bindings}}


@pytest.mark.parametrize(
    "name", ["f.jsonl", "f.ndjson", "f.json", "F.JSONL", "f.jsonl.gz", "f.json.zst"]
)
def test_lines(tmp_path: Path, name: str) -> None:
    pack = {".gz": gzip.compress, ".zst": zstd}.get(Path(name).suffix, bytes)
    assert facts(write(tmp_path / name, pack(LINES.encode()))) == OF_LINES


def test_array(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in LINES.splitlines() if line]
    for content in (rows, json.dumps(rows), "\ufeff" + json.dumps(rows)):
        assert facts(write(tmp_path / "f.json", content)) == OF_LINES


def test_folder(tmp_path: Path) -> None:
    first, *others = LINES.splitlines()
    write(tmp_path / "train.jsonl", "\n".join(others))
    write(tmp_path / "test.jsonl", first)
    graph = splime.load(tmp_path)
    assert (len(graph.train), len(graph.test)) == (2, 1)


@pytest.mark.parametrize("kind", ["csv", "tsv", "terms.tsv", "json", "results.json"])
def test_wikidata(tmp_path: Path, kind: str) -> None:
    names, *rows = EXPORT
    path = tmp_path / f"query.{kind}"
    content = {
        "csv": lambda: "".join(",".join(map(cell, row)) + "\r\n" for row in EXPORT),
        "tsv": lambda: "".join("\t".join(row) + "\n" for row in EXPORT),
        "terms.tsv": lambda: "".join(
            "\t".join(row) + "\n"
            for row in [[f"?{name}" for name in names], *([term(t) for t in row] for row in rows)]
        ),
        "json": lambda: json.dumps([dict(zip(names, row, strict=True)) for row in rows]),
        "results.json": lambda: json.dumps(results(EXPORT), indent=2),
    }[kind]()
    graph = read(write(path, content))
    assert [tuple(fact) for fact in graph.rows()] == OF_EXPORT
    assert graph.timeline.granularity == "year"
    assert any("'item' is the subject" in guess for guess in graph.reading.remarks)
    # A decade is no year, and the account says so.
    assert dict(graph.reading.dropped) == {"unreadable time": 1}
    example = next(one for one in graph.reading.examples if one.why.startswith("unreadable"))
    assert "1990-01-01T00:00:00Z" in example.fact
    assert "8" in example.fact


def test_days_stay_days(tmp_path: Path) -> None:
    rows = [["item", "property", "value", "pointInTime", "precision"]]
    rows += [[f"{ENTITY}Q{n}", "P1", "Q9", f"1999-05-{n:02d}T00:00:00Z", "11"] for n in range(1, 9)]
    path = write(tmp_path / "f.csv", "".join(",".join(row) + "\n" for row in rows))
    graph = read(path)
    assert graph.timeline.granularity == "day"
    assert next(graph.rows()) == ("Q1", "P1", "Q9", "1999-05-01", "1999-05-01")


def test_years_that_look_like_days_are_doubted(tmp_path: Path) -> None:
    text = "item,property,value,start,end\nQ1,P1,Q2,1999-01-01T00:00:00Z,2001-01-01T00:00:00Z\n"
    graph = read(write(tmp_path / "f.csv", text))
    assert any("1st of January" in guess for guess in graph.reading.remarks)


def test_labels_agree_between_files(tmp_path: Path) -> None:
    """John is one person in train; test has another one, so both are told apart everywhere."""
    names, first, second, *_ = EXPORT
    second = [text.replace("1990", "1993") if text != "8" else "9" for text in second]
    for name, row in (("train", first), ("test", second)):
        write(tmp_path / f"{name}.csv", "".join(",".join(row) + "\n" for row in (names, row)))
    graph = splime.load(tmp_path)
    assert graph.entities.labels.to_pylist() == ["Ajax", "John (Q1)", "John (Q2)"]


def test_labels_never_merge(tmp_path: Path) -> None:
    text = "item,itemLabel,property,value,pointInTime\n" + "".join(
        f"{item},{label},P1,x,2001\n"
        for item, label in [("Q1", "A"), ("Q2", "A"), ("Q3", "A (Q1)"), ("Q4", "Q5"), ("Q5", "")]
    )
    graph = read(write(tmp_path / "f.csv", text))
    assert len({fact.subject for fact in graph.rows()}) == 5


def test_several_labels_of_one_thing(tmp_path: Path) -> None:
    text = "item,itemLabel,property,value,pointInTime\nQ1,B,P1,x,2001\nQ1,A,P1,x,2002\n"
    graph = read(write(tmp_path / "f.csv", text))
    assert [fact.subject for fact in graph.rows()] == ["B", "B"]


def test_markers_in_a_column_that_is_chosen(tmp_path: Path) -> None:
    rows = [("Ada", "since", 1990), ("Ada", "until", 1994)]
    keys = ("subject", "what", "time")
    lines = [dict(zip(keys, row, strict=True)) | {"predicate": "p", "object": "o"} for row in rows]
    wanted = [("Ada", "p", "o", "1990", "1994")]
    columns = ["subject", "predicate", "object", "what", "time"]
    assert facts(write(tmp_path / "f.json", lines), columns=columns) == wanted
    text = "subject,predicate,object,what,time\n" + "".join(
        f"{s},p,o,{w},{t}\n" for s, w, t in rows
    )
    assert facts(write(tmp_path / "f.csv", text), columns=columns) == wanted


def test_chosen_fields(tmp_path: Path) -> None:
    line = {"player": "Ada", "did": "playsFor", "club": "Ajax", "from": "1990", "x": [1]}
    path = write(tmp_path / "f.jsonl", json.dumps(line))
    columns = ["player", "did", "club", "from"]
    assert facts(path, columns=columns) == [("Ada", "playsFor", "Ajax", "1990", "1990")]
    with pytest.raises(DataError, match=r"(?s)f.jsonl: .* which is the subject .*columns="):
        read(path)


def test_a_column_of_splits(tmp_path: Path) -> None:
    line = {"subject": "a", "predicate": "p", "object": "b", "time": 1990}
    rows = [line | {"split": split} for split in ("train", "test")]
    graph = splime.load(write(tmp_path / "f.json", json.dumps(rows)))
    assert (len(graph.train), len(graph.test)) == (1, 1)
    write(tmp_path / "test.json", json.dumps(rows))
    with pytest.raises(DataError, match=r"test.json, record 1: the split is 'train', but"):
        splime.read({"train": [("a", "p", "b", 1990)], "test": tmp_path / "test.json"})


GOOD = '{"subject": "a", "predicate": "p", "object": "b", "time": 1990}'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("f.jsonl", "", "f.jsonl: the file is empty"),
        ("f.jsonl", f"{GOOD}\n{{", "f.jsonl, line 2: not JSON"),
        ("f.jsonl", f"{GOOD}\n{GOOD} x", "f.jsonl, line 2: not JSON: Extra data"),
        ("f.jsonl", f"{GOOD}\n[1, 2]", r"f.jsonl, line 2: expected an object .* found \[1, 2\]"),
        ("f.jsonl", f"{GOOD}\n\n{GOOD.replace('1990', '[1990]')}", r"line 3: 'time' is \[1990\]"),
        ("f.jsonl", f"{GOOD}\n{GOOD.replace('1990', '1990.5')}", "line 2: 'time' is 1990.5"),
        ("f.jsonl", GOOD.replace('"a"', '["a"]'), r"line 1: 'subject' is \['a'\]"),
        ("f.jsonl", GOOD.replace('"a"', "true"), "line 1: 'subject' is True; expected text"),
        ("f.jsonl", GOOD.replace('"a"', "null"), "f.jsonl: a name is missing in every row"),
        ("f.jsonl", GOOD.replace('"a"', r'"\ud800"'), "line 1: .* not valid Unicode"),
        ("f.jsonl", GOOD.encode() + b"\n\xff", "f.jsonl, line 2, character 1: the byte 0xff"),
        ("f.jsonl", GOOD.replace("1990", "9" * 5000), "f.jsonl, line 1: not JSON"),
        ("f.jsonl", f"{GOOD}\n" + "[" * 100_000, "f.jsonl, line 2: "),
        ("f.json", f"[{GOOD},\n{GOOD}", "f.json, line 2: not JSON"),
        ("f.json", f"[{GOOD},\n\n{GOOD},", "f.json, line 3: not JSON"),
        ("f.json", f"[{GOOD},\n1]", "f.json, record 2: expected an object"),
        ("f.json", f"[{GOOD}]\n]", "f.json, line 2: not JSON: Extra data"),
        ("f.json", "[]", "f.json: there are no facts"),
        ("f.json", '{"head": {}, "results": {"bindings": []}}', "f.json: there are no facts"),
        ("f.json", '{"results": {"bindings": [{}\n', "f.json, line 2: not JSON"),
        ("f.json", '{"results": {"bindings": [{}]\n', "f.json, line 2: not JSON"),
        ("f.json", '{"head": {}, "results": 1}', "f.json: expected an object a line"),
        ("f.json", "17", "f.json: expected an object a line"),
        ("f.json", '{"a": {}}', "f.json: .* which is the time"),
        ("f.csv", "item,property,value,pointInTime\nQ1,P1,Q2\n", "line 2: expected 4 columns"),
        ("f.csv", "item,item,prop,value,start\n1,2,3,4,5\n", "which is the subject"),
    ],
)
def test_broken(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(write(tmp_path / name, content))
    assert len(str(caught.value)) < 1000


def test_one_long_line(tmp_path: Path) -> None:
    long = "x" * 5_000_000
    path = write(tmp_path / "f.jsonl", GOOD.replace('"a"', f'"{long}"'))
    assert facts(path)[0][0] == long
    with pytest.raises(DataError, match="not JSON") as caught:
        read(write(path, GOOD.replace('"a"', f'"{long}')))
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("seed", [LINES, json.dumps(results(EXPORT), indent=1)])
def test_fuzz(tmp_path_factory: pytest.TempPathFactory, seed: str) -> None:
    @settings(max_examples=max(150, settings().max_examples))
    @given(data=mutations(seed.encode()))
    def check(data: bytes) -> None:
        path = tmp_path_factory.mktemp("fuzz") / "f.json"
        path.write_bytes(data)
        check_reading(path)

    check()


def test_terms_that_differ_only_in_their_language_are_one_name(tmp_path: Path) -> None:
    """So the two rows of a fact find each other."""
    rows = ["?subject\t?predicate\t?object\t?what\t?time"]
    rows += ['"Ada"@en\t"p"\t"o"\t"since"\t"1990"', '"Ada"@de\t"p"\t"o"\t"until"\t"1994"']
    path = write(tmp_path / "f.tsv", "".join(f"{row}\n" for row in rows))
    columns = ["subject", "predicate", "object", "what", "time"]
    assert facts(path, columns=columns) == [("Ada", "p", "o", "1990", "1994")]


def test_lists_in_records(tmp_path: Path) -> None:
    """Each object is a record; an empty list is a row without a name, that is counted."""
    stay = {"at": "Ulm", "did": "lived", "from": "2001", "to": "2003"}
    records: list[dict[str, object]] = [
        {"who": "Ada", "stays": [stay, {**stay, "at": "Bonn", "from": "2003", "to": None}]},
        {"who": "Ben", "stays": [stay]},
        {"who": "Cleo", "stays": []},
    ]
    path = tmp_path / "f.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    graph = splime.read(path, split="none")
    assert set(graph.rows()) == {
        ("Ada", "lived", "Ulm", "2001", "2003"),
        ("Ada", "lived", "Bonn", "2003", None),
        ("Ben", "lived", "Ulm", "2001", "2003"),
    }
    assert sum(graph.reading.dropped.values()) == 1
    assert "each object in 'stays' is a record" in str(graph.reading.remarks)
    # Which of two lists holds the facts is not said.
    path.write_text(json.dumps([{**each, "pets": [{"a": 1}]} for each in records]), "utf-8")
    with pytest.raises(DataError, match="None of them holds times"):
        splime.read(path, split="none")


def test_objects_by_their_keys(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    facts = {
        name: {"does": "visits", "place": "Ulm", "year": 2000 + at}
        for at, name in enumerate(["Ada", "Ben", "Cleo"])
    }
    path.write_text(json.dumps({"meta": {"count": 3}, "people": facts}), encoding="utf-8")
    assert list(splime.read(path, split="none").rows())[1][:4] == ("Ben", "visits", "Ulm", "2001")
