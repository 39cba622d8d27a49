from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

import splime
from splime.errors import DataError, UsageError

ODD = ["nan", "NULL", "007", "TRUE", "None", '"', "'", '""x', " x ", "é", "#", "a,b", "[b]", "1e5"]


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def compressed(path: Path, data: bytes) -> Path:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(data))
    else:
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(data)
    return path


@pytest.mark.parametrize("suffix", [".tsv", ".txt"])
def test_odd_labels_stay_what_they_are(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"odd{suffix}", "".join(f"{o}\tp\t{o}!\t2001\n" for o in ODD))
    graph = splime.read(path, split="none")
    assert [fact.subject for fact in graph.rows()] == ODD
    assert graph.reading.kept == len(ODD)


def test_quotes_in_csv(tmp_path: Path) -> None:
    path = write(tmp_path / "q.csv", '"a,b","say ""hi""","two\nlines",2001\nnan,p," ""b",2002\n')
    graph = splime.read(path, split="none")
    assert [fact[:3] for fact in graph.rows()] == [
        ("a,b", 'say "hi"', "two\nlines"),
        ("nan", "p", ' "b'),
    ]


@pytest.mark.parametrize("suffix", [".tsv.gz", ".tsv.zst", ".txt.gz", ".csv.zst"])
def test_compressed(tmp_path: Path, suffix: str) -> None:
    between = b"," if ".csv" in suffix else b"\t"
    data = between.join([b"a", b"p", b"b", b"2001", b"2003"]) + b"\n"
    graph = splime.read(compressed(tmp_path / f"facts{suffix}", data), split="none")
    assert list(graph.rows()) == [("a", "p", "b", "2001", "2003")]
    assert graph.name == "facts"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_blank_lines_and_bom(tmp_path: Path, end: str) -> None:
    text = "\ufeffa\tp\tb\t2001" + end + end + "a\tp\tc\t2002" + end + end
    graph = splime.read(write(tmp_path / "f.tsv", text), split="none")
    assert [fact[0::2] for fact in graph.rows()] == [("a", "b", "2001"), ("a", "c", "2002")]


def test_line_numbers_count_blank_lines_and_header(tmp_path: Path) -> None:
    text = (
        "s\tp\to\tbegin\tend\n\na\tp\tb\t2001\t2002\n\na\tp\tb\t2005\t2002\na\tp\tb\t200#-##-##\t\n"
    )
    graph = splime.read(write(tmp_path / "f.tsv", text), split="none", allow_loss=True)
    assert [example.where for example in graph.reading.examples] == [
        "f.tsv, line 6",
        "f.tsv, line 5",
    ]
    assert graph.reading.sources[0].header == "s p o begin end"
    assert dict(graph.reading.dropped) == {"unreadable time": 1, "end before begin": 1}


def test_a_header_below_blank_lines_and_over_two(tmp_path: Path) -> None:
    text = '\n\n"sub\nject",predicate,object,time\n\na,p,b,2001\na,p,b,soon\n'
    graph = splime.read(write(tmp_path / "f.csv", text), split="none")
    assert list(graph.rows()) == [("a", "p", "b", "2001", "2001")]
    assert graph.reading.examples[0].where == "f.csv, line 7"


def test_line_numbers_in_quoted_files(tmp_path: Path) -> None:
    text = '"a\nb",p,o,2001\na,p,o,not a time\n'
    graph = splime.read(write(tmp_path / "f.csv", text), split="none")
    assert graph.reading.examples[0].where == "f.csv, line 3"
    assert "not a time: 'not a time'" in graph.reading.examples[0].why


@pytest.mark.parametrize("first", ["subject,predicate,object,begin,end", "h,rel,t,from,to"])
def test_header_is_found(tmp_path: Path, first: str) -> None:
    graph = splime.read(write(tmp_path / "f.csv", f"{first}\nx,p,y,2001,2002\n"), split="none")
    assert list(graph.rows()) == [("x", "p", "y", "2001", "2002")]


def test_header_can_be_denied_and_forced(tmp_path: Path) -> None:
    path = write(tmp_path / "f.csv", "a,p,b,never\nx,p,y,2001\n")
    denied = splime.read(path, header=False, split="none")
    assert dict(denied.reading.dropped) == {"unreadable time": 1}
    path = write(tmp_path / "g.csv", "a,p,b,2000\nx,p,y,2001\n")
    forced = splime.read(path, header=True, columns=[1, 2, 3, 4], split="none")
    assert [fact.begin for fact in forced.rows()] == ["2001"]


def test_a_bad_first_time_is_no_header(tmp_path: Path) -> None:
    path = write(tmp_path / "f.tsv", "a\tp\tb\t195#-##-##\nx\tp\ty\t2001-##-##\n")
    graph = splime.read(path, split="none")
    assert graph.reading.rows == 2
    assert graph.reading.examples[0].where == "f.tsv, line 1"


def test_named_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "f.csv", "id,player,rel,club,from,to\n1,Ada,playsFor,Ajax,1990,1994\n")
    columns = ["player", "rel", "club", "from", "to"]
    assert list(splime.read(path, columns=columns, split="none").rows()) == [
        ("Ada", "playsFor", "Ajax", "1990", "1994")
    ]
    event = splime.read(path, columns=["2", "3", "4", "5"], header=True, split="none")
    assert list(event.rows()) == [("Ada", "playsFor", "Ajax", "1990", "1990")]
    with pytest.raises(DataError, match=r"no column 'clb' among .* Did you mean club"):
        splime.read(path, columns=["player", "rel", "clb", "from"])
    assert "rel" not in (graph := splime.read(path, split="none")).entities  # an id counts rows
    assert list(graph.rows()) == [("Ada", "playsFor", "Ajax", "1990", "1994")]


def test_usual_names_in_any_order_with_more_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "f.csv", "note,Object,subject,time,predicate,x\n-,b,a,2001,p,\n")
    assert list(splime.read(path, split="none").rows()) == [("a", "p", "b", "2001", "2001")]


def test_numbered_columns_without_header(tmp_path: Path) -> None:
    path = write(tmp_path / "f.tsv", "9\ta\tp\tb\t2001\t5\n")
    graph = splime.read(path, columns=["2", "3", "4", "5"], split="none")
    assert list(graph.rows()) == [("a", "p", "b", "2001", "2001")]
    with pytest.raises(DataError, match="none has that number"):
        splime.read(path, columns=["2", "3", "4", "9"])
    with pytest.raises(DataError, match="only where the file has a header"):
        splime.read(path, columns=["s", "p", "o", "t"], header=False)


@pytest.mark.parametrize("columns", [["a"], ["a", "b", "c", "c"], "a,b,c,d"])
def test_nonsense_columns(tmp_path: Path, columns: list[str]) -> None:
    with pytest.raises(UsageError, match="columns"):
        splime.read(write(tmp_path / "f.csv", "a,p,b,2001\n"), columns=columns)


def test_a_split_column(tmp_path: Path) -> None:
    text = "split,subject,predicate,object,time\ntrain,a,p,b,2001\ntest,a,p,c,2002\n"
    graph = splime.read(write(tmp_path / "f.csv", text))
    assert (len(graph.train), len(graph.valid), len(graph.test)) == (1, 0, 1)
    with pytest.raises(DataError, match=r"line 3: the split is 'dev'; expected train"):
        splime.read(write(tmp_path / "g.csv", text.replace("test", "dev")))


@pytest.mark.parametrize("between", [",", ";", "|", "\t"])
def test_delimiters(tmp_path: Path, between: str) -> None:
    text = between.join(["a", "p", "b", "2001"]) + "\n"
    assert len(splime.read(write(tmp_path / "f.csv", text), split="none")) == 1


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("f.tsv", b"", r"f.tsv: the file is empty; expected 4 columns"),
        ("f.tsv", b"\n\n", r"the file is empty"),
        ("f.csv", b"subject,predicate,object,begin,end\n", r"no facts below the header"),
        ("f.tsv", b"a\tp\tb\t2001\na\tp\tb\n", r"f.tsv, line 2: expected 4 columns .* found 3: 'a"),
        ("f.tsv", b"a\tp\tb\t2001\n\na\tp\tb\t1\t2\n", r"line 3: expected 4 columns .* found 5"),
        ("f.csv", b"a,p,b,2001\na,p,b\n", r"f.csv, line 2: expected 4 columns .* found 3"),
        ("f.tsv", b"a\tp\n", r"f.tsv, line 1: expected 4 columns .* or 5 .* found 2"),
        (
            "f.tsv",
            b"a\tp\tb\t2001\na\tp\t\xff\t2001\n",
            r"line 2, character 5: the byte 0xff is not",
        ),
        ("f.tsv", b"\xff\xfea\x00", r"f.tsv, line 1: expected 4 columns .* found 1"),
        ("f.csv", b"\xc3\xa9,p,b,2001\n\xe9,p,b,2001\n", r"line 2, character 1: the byte 0xe9"),
        ("f.tsv", b"a\tp\tb\t?\n" * 3, r"no fact has a usable time"),
        ("f.tsv.gz", b"not gzip at all", r"f.tsv.gz: .*"),
        ("f.tsv.zst", b"not zstd at all", r"f.tsv.zst: .*"),
        ("f.parquet", b"PAR1 not really", r"cannot be read as Parquet"),
        ("f.xlsx", b"PK\x03\x04\x00", r"f.xlsx: cannot be read as an Excel file"),
    ],
)
def test_broken_files(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DataError, match=message):
        splime.read(path)


def test_an_error_far_down_names_its_line(tmp_path: Path) -> None:
    lines = ["a\tp\tb\t2001"] * 300_000
    lines[250_000] = "a\tp\tb"
    with pytest.raises(DataError, match="line 250001"):
        splime.read(write(tmp_path / "f.tsv", "\n".join(lines)))


def test_a_truncated_gzip(tmp_path: Path) -> None:
    path = tmp_path / "f.tsv.gz"
    data = gzip.compress(b"".join(b"a%d\tp\tb\t2001\n" % n for n in range(100_000)))
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=r"f\.tsv\.gz"):
        splime.read(path)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    write(tmp_path / "facts.tsv", "a\tp\tb\t2001\n")
    with pytest.raises(DataError, match=r"no such file or folder\. Did you mean facts.tsv"):
        splime.read(tmp_path / "fcts.tsv")
    with pytest.raises(DataError, match="expected a file train"):
        splime.read(tmp_path)
    for name in ("train.tsv", "train.csv"):
        write(tmp_path / name, "a\tp\tb\t2001\n")
    with pytest.raises(DataError, match=r"both train.csv and train.tsv"):
        splime.read(tmp_path)


def test_a_folder_of_splits(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", "a\tp\tb\t2001\n")
    write(tmp_path / "valid.csv", "a,p,b,2002\n")
    compressed(tmp_path / "test.txt.gz", b"a\tp\tb\t2003\n")
    graph = splime.read(tmp_path)
    assert [fact.begin for fact in graph.rows()] == ["2001", "2002", "2003"]
    assert [source.split for source in graph.reading.sources] == ["train", "valid", "test"]


def test_files_of_the_same_name_from_different_folders(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    one = write(tmp_path / "f.tsv", "a\tp\tb\t2001\n")
    two = write(tmp_path / "x" / "f.tsv", "a\tp\tb\t2002\t2005\n")
    graph = splime.read({"train": one, "test": two})
    assert list(graph.rows()) == [("a", "p", "b", "2001", "2001"), ("a", "p", "b", "2002", "2005")]


@pytest.mark.parametrize("name", ["f.TSV.GZ", "f.Csv.gz", "F.CSV", "f.TXT"])
def test_suffixes_in_any_case(tmp_path: Path, name: str) -> None:
    text = b"a,p,b,2001\n" if "CSV" in name.upper() else b"a\tp\tb\t2001\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.lower().endswith("gz") else text)
    assert len(splime.read(tmp_path / name, split="none")) == 1


@pytest.mark.parametrize("name", ["validation.tsv", "val.csv", "DEV.txt"])
def test_other_names_of_valid(tmp_path: Path, name: str) -> None:
    write(tmp_path / "train.tsv", "a\tp\tb\t2001\n")
    write(tmp_path / name, "a\tp\tb\t2002\n")
    assert len(splime.read(tmp_path).valid) == 1


@pytest.mark.parametrize("name", ["f.tsv", "f.csv"])
def test_long_values(tmp_path: Path, name: str) -> None:
    long = "x" * (20 << 20)
    tab = "\t" if name == "f.tsv" else ","
    rows = [("a", "p", "b", "2001"), (long, "p", "b", "2002"), ("a", "p", "c", "never")]
    path = write(tmp_path / name, "".join(tab.join(row) + "\n" for row in rows))
    graph = splime.read(path, split="none")
    assert [len(fact.subject) for fact in graph.rows()] == [1, len(long)]
    assert graph.reading.examples[0].where == f"{name}, line 3"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("f.txt", "Smith, J, K, L, M, N;p;b;2001"),
        ("f.csv", "a;p, q, r, s, t, u;b;2001"),
        ("f.csv", "a\tp\tb\t2001"),
        ("f.csv", '"a\tb\tc\td",p,b,2001'),
        ("f.csv", '"a\nb",p,b,2001'),
    ],
)
def test_the_delimiter_that_gives_facts(tmp_path: Path, name: str, line: str) -> None:
    graph = splime.read(write(tmp_path / name, f"{line}\n"), split="none")
    assert [fact.begin for fact in graph.rows()] == ["2001"]


def test_headers_with_some_of_the_usual_names(tmp_path: Path) -> None:
    path = write(tmp_path / "f.csv", "id,subject,predicate,object,jahr\n1,a,p,b,2001\n")
    wanted = [("a", "p", "b", "2001", "2001")]
    columns = ["subject", "predicate", "object", "jahr"]
    for chosen in (None, columns):
        assert list(splime.read(path, columns=chosen, split="none").rows()) == wanted
    write(path, "object,subject,predicate,year\nb,a,p,2001\n")
    assert list(splime.read(path, split="none").rows()) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "| who | does | whom | year |\n|-----|:-----|------|---|\n| Ada | meets | Ben | 2001 |\n"
        "| Ben | meets | Cleo | |\n",
        " who | does  | whom | year \n-----+-------+------+------\n Ada | meets | Ben  | 2001\n"
        " Ben | meets | Cleo |     \n(2 rows)\n",
        "+---+---+---+---+\n| who | does | whom | year |\n+---+---+---+---+\n"
        "| Ada | meets | Ben | 2001 |\n| Ben | meets | Cleo |  |\n+---+---+---+---+\n",
    ],
)
def test_drawn_tables(text: str, tmp_path: Path) -> None:
    """As Markdown and the terminals of databases have them."""
    path = tmp_path / "table.md"
    path.write_text(text, encoding="utf-8")
    graph = splime.read(path, split="none", without_time="unknown")
    assert [fact[:4] for fact in graph.rows()] == [
        ("Ada", "meets", "Ben", "2001"),
        ("Ben", "meets", "Cleo", None),
    ]
    assert "dashes" in str(graph.reading.remarks)
