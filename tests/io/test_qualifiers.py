"""Begins and ends in rows of their own, and facts without a time among others."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import splime
from splime.cli.main import app
from splime.errors import DataError, UsageError
from splime.io.options import WithoutTime
from splime.reading import IN_TWO_ROWS
from tests.io.test_fuzz import check_reading, mutations
from tests.io.test_records import ENTITY

YAGO15K = """\
<Nathan_Eccleston>\t<isAffiliatedTo>\t<Charlton_Athletic_F.C.>
<James_Tavernier>\t<playsFor>\t<Milton_Keynes_Dons_F.C.>\t<occursSince>\t"2012-##-##"
<Neil_Grayson>\t<playsFor>\t<Boston_United_F.C.>\t<occursSince>\t"1992-##-##"
<Neil_Grayson>\t<playsFor>\t<Boston_United_F.C.>\t<occursUntil>\t"1994-##-##"
<Chester_County,_Pennsylvania>\t<isLocatedIn>\t<West_Chester,_Pennsylvania>
<Dennis_Quaid>\t<isMarriedTo>\t<Meg_Ryan>\t<occursUntil>\t"2001-06-##"
"""
WIKIDATA = """\
Q470340\tP54\tQ18741\toccurSince\t2005
Q725629\tP1087\t2470\toccurSince\t2007
Q725629\tP1087\t2470\toccurUntil\t2005
Q527913\tP1087\t2320\toccurSince\t2016
Q527913\tP1087\t2320\toccurUntil\t2016
"""


def folder(path: Path, **files: str) -> Path:
    for name, text in files.items():
        (path / f"{name}.txt").write_text(text, encoding="utf-8")
    return path


def facts(source: Any, **options: Any) -> list[tuple[str | None, ...]]:
    return [tuple(fact) for fact in splime.read(source, split="none", **options).rows()]


def guessed(graph: splime.TemporalGraph) -> str:
    return "\n".join(graph.reading.remarks)


def test_yago15k(tmp_path: Path) -> None:
    first = YAGO15K.splitlines()[0] + "\n"
    last = YAGO15K.splitlines()[-1] + "\n"
    graph = splime.load(folder(tmp_path, train=YAGO15K, valid=first + last, test=last))
    assert [tuple(fact) for fact in graph.rows("train")] == [
        ("<Nathan_Eccleston>", "<isAffiliatedTo>", "<Charlton_Athletic_F.C.>", None, None),
        ("<James_Tavernier>", "<playsFor>", "<Milton_Keynes_Dons_F.C.>", "2012", None),
        ("<Neil_Grayson>", "<playsFor>", "<Boston_United_F.C.>", "1992", "1994"),
        (
            "<Chester_County,_Pennsylvania>",
            "<isLocatedIn>",
            "<West_Chester,_Pennsylvania>",
            None,
            None,
        ),
        ("<Dennis_Quaid>", "<isMarriedTo>", "<Meg_Ryan>", None, "2001"),
    ]
    train = graph.reading.sources[0]
    assert (train.rows, train.kept, dict(train.dropped)) == (5, 5, {})
    assert train.notes[IN_TWO_ROWS] == 1
    assert train.notes["without a time, so begin and end are unknown"] == 2
    assert "since and until" in guessed(graph)
    assert "three columns" in guessed(graph)


def test_wikidata_of_mmkb(tmp_path: Path) -> None:
    path = folder(tmp_path, train=WIKIDATA)
    assert [tuple(fact) for fact in splime.load(path).rows()] == [
        ("Q470340", "P54", "Q18741", "2005", None),
        # An until before a since ends another time of the fact.
        ("Q725629", "P1087", "2470", "2007", None),
        ("Q725629", "P1087", "2470", None, "2005"),
        ("Q527913", "P1087", "2320", "2016", "2016"),
    ]


def test_rows_without_such_a_word_have_both_times(tmp_path: Path) -> None:
    text = "a\tp\tb\tsince\t1999\na\tp\tb\tuntil\t2003\na\tp\tc\t2001\t2002\n"
    wanted = [("a", "p", "b", "1999", "2003"), ("a", "p", "c", "2001", "2002")]
    assert sorted(facts(folder(tmp_path, train=text) / "train.txt")) == wanted


def test_numbers_since_an_origin(tmp_path: Path) -> None:
    text = "a\tp\tb\tsince\t1\na\tp\tb\tuntil\t3\na\tp\tc\tsince\t0\n"
    path = folder(tmp_path, train=text) / "train.txt"
    dates = facts(path, origin="2014-01-01", granularity="day", unknown_time=0)
    assert dates == [("a", "p", "b", "2014-01-02", "2014-01-04"), ("a", "p", "c", None, None)]


def test_words_that_are_no_markers() -> None:
    """A predicate may be called since, and one that is only the word has no fact behind it."""
    rows = [("a", "friend since", "b", 1999), ("a", "occursSince", "b", 2000)]
    assert [fact[1] for fact in facts(rows)] == ["friend since", "occursSince"]


def test_tables_and_rows_too() -> None:
    rows = [("a", "p", "b", "occursSince", "1999"), ("a", "p", "b", "occursUntil", "2003")]
    assert facts(rows) == [("a", "p", "b", "1999", "2003")]


def test_parquet_is_taken_as_it_is(tmp_path: Path) -> None:
    """As when it is streamed."""
    names = [f"{ENTITY}Q1", "playsFor", f"{ENTITY}Q2"]
    rows = [[*names, "since", "1999"], [*names, "1998", "2001"]]
    columns = ["s", "p", "o", "begin", "end"]
    table = pa.table([list(column) for column in zip(*rows, strict=True)], names=columns)
    pq.write_table(table, tmp_path / "f.parquet")
    assert facts(tmp_path / "f.parquet", allow_loss=True) == [(*names, "1998", "2001")]
    wanted = [("1999", None), ("1998", "2001")]
    assert facts(table) == [("Q1", "playsFor", "Q2", *times) for times in wanted]


def test_a_finer_end_is_noted() -> None:
    rows = [("a", "p", "b", "since", str(year)) for year in range(1990, 1999)]
    graph = splime.read([*rows, ("a", "p", "b", "until", "2014-05-01")], split="none")
    assert graph.reading.notes[IN_TWO_ROWS] == 1
    assert graph.reading.notes["time finer than a year, cut to it"] == 1


def test_splits_do_not_share_facts() -> None:
    since, until = ("a", "p", "b", "since", "1999"), ("a", "p", "b", "until", "2003")
    graph = splime.read({"train": [since], "test": [until]})
    assert [fact[3:] for fact in graph.rows()] == [("1999", None), (None, "2003")]


def literal(
    rows: list[tuple[str, str, int]],
) -> tuple[list[tuple[str, int | None, int | None]], int]:
    """What the rows (triple, since or until, year) mean, by a loop; and how many repeat."""
    by_triple = defaultdict(set)
    for triple, word, year in rows:
        by_triple[triple].add((year, word))
    made: list[tuple[str, int | None, int | None]] = []
    for triple, ends in by_triple.items():
        begun = None
        for year in sorted({year for year, _ in ends}):
            words = {word for at, word in ends if at == year}
            if begun is None and words == {"since", "until"}:
                made.append((triple, year, year))
                continue
            if "until" in words:
                made.append((triple, begun, year))
                begun = None
            if "since" in words:
                if begun is not None:
                    made.append((triple, begun, None))
                begun = year
        if begun is not None:
            made.append((triple, begun, None))
    return made, len(rows) - len(set(rows))


@given(
    st.lists(
        st.tuples(
            st.sampled_from("xyz"), st.sampled_from(["since", "until"]), st.integers(1990, 1999)
        ),
        min_size=1,
        max_size=40,
    )
)
def test_pairs_are_those_of_a_loop(rows: list[tuple[str, str, int]]) -> None:
    graph = splime.read([(t, "p", "o", word, str(year)) for t, word, year in rows], split="none")
    wanted, repeated = literal(rows)
    made = [(s, b and int(b), e and int(e)) for s, _, _, b, e in graph.rows()]
    assert sorted(map(repr, made)) == sorted(map(repr, wanted))
    # Every row is a fact, was dropped, or is the other end of a fact.
    reading = graph.reading
    assert reading.kept == len(graph)
    assert reading.rows == reading.kept + sum(reading.dropped.values())
    assert len(rows) == reading.rows + reading.notes[IN_TWO_ROWS]
    assert dict(reading.dropped) == ({"duplicate": repeated} if repeated else {})


@settings(max_examples=max(100, settings().max_examples))
@given(data=mutations(YAGO15K.encode()))
def test_broken_files_lose_nothing(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "f.txt"
    path.write_bytes(data)
    graph = check_reading(path)
    if graph is not None:
        reading = graph.reading
        lines = [line for line in re.split(rb"\r\n|\r|\n", data) if line.strip(b" \xef\xbb\xbf")]
        header = reading.sources[0].header is not None
        assert reading.rows + reading.notes[IN_TWO_ROWS] == len(lines) - header


def test_repeated_rows() -> None:
    rows = [("a", "p", "b", "since", "1999"), ("a", "p", "b", "until", "2003")] * 2
    graph = splime.read(rows, split="none")
    assert len(graph) == 1
    example = next(one for one in graph.reading.examples if one.why == "duplicate")
    assert (example.where, example.fact) == ("rows, row 3", ("a", "p", "b", "since", "1999"))
    assert facts(rows, keep_duplicates=True) == [("a", "p", "b", "1999", "2003")]


def test_rows_that_cannot_be_paired() -> None:
    rows = [
        ("a", "p", "b", "since", "1999"),
        ("a", "p", "b", "until", "soon"),
        ("a", "p", "c", "since", ""),
        ("a", "p", "c", "until", "2003"),
    ]
    graph = splime.read(rows, split="none")
    assert [fact[2:] for fact in graph.rows()] == [
        ("b", "1999", None),
        ("c", None, None),
        ("c", None, "2003"),
    ]
    assert graph.reading.examples[0].fact == ("a", "p", "b", "until", "soon")


INTERVALS = [("a", "p", "b", 1990, 1995), ("a", "p", "c", None, None), ("d", "p", "b", 1993, None)]
EVENTS = [("a", "p", "b", 1990), ("a", "p", "c", None), ("a", "p", "d", 1995)]


@pytest.mark.parametrize(
    ("rows", "how", "times", "unknown"),
    [
        (INTERVALS, None, [(1990, 1995), (1990, 1995), (1993, 1995)], [0, 3, 2]),
        (INTERVALS, "unknown", [(1990, 1995), (1990, 1995), (1993, 1995)], [0, 3, 2]),
        (INTERVALS, "always", [(1990, 1995), (1990, 1995), (1993, 1995)], [0, 0, 2]),
        (INTERVALS, "drop", [(1990, 1995), (1993, 1995)], [0, 2]),
        (EVENTS, None, [(1990, 1990), (1995, 1995)], [0, 0]),
        (EVENTS, "unknown", [(1990, 1990), (1990, 1995), (1995, 1995)], [0, 3, 0]),
        (EVENTS, "always", [(1990, 1990), (1990, 1995), (1995, 1995)], [0, 0, 0]),
        (EVENTS, "drop", [(1990, 1990), (1995, 1995)], [0, 0]),
    ],
)
def test_facts_without_a_time(
    rows: list[Any],
    how: WithoutTime | None,
    times: list[tuple[int, int]],
    unknown: list[int],
    tmp_path: Path,
) -> None:
    graph = splime.read(rows, split="none", without_time=how)
    own = graph.train
    assert list(zip(own.begin.tolist(), own.end.tolist(), strict=True)) == times
    assert own.unknown.tolist() == unknown
    reading = graph.reading
    said = sum(reading.dropped.values()) + sum(
        count for note, count in reading.notes.items() if note.startswith("without a time")
    )
    assert said == 1
    assert reading.rows == reading.kept + sum(reading.dropped.values())
    splime.save(graph, tmp_path / "graph.parquet")
    assert splime.load(tmp_path / "graph.parquet") == graph


def test_dropping_most_of_a_file_can_be_meant() -> None:
    rows = [("a", "p", "b", 1990, 1995), *(("a", "p", f"x{n}", None, None) for n in range(9))]
    assert len(splime.read(rows, split="none", without_time="drop")) == 1


def test_the_options_are_on_the_command_line(tmp_path: Path) -> None:
    folder(tmp_path, train=YAGO15K.replace("1994", "-1"))
    arguments = ["inspect", str(tmp_path), "--without-time", "drop", "--unknown-time", "-1-##-##"]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    (source,) = json.loads(done.stdout)["reading"]["sources"]
    assert source["dropped"] == {"fact without a time": 3}


def test_without_time_refuses_other_words() -> None:
    with pytest.raises(UsageError, match="without_time is one of drop, always, unknown"):
        splime.read(EVENTS, without_time="forever")  # type: ignore[arg-type]


def test_rows_of_three_columns_have_to_be_asked_for(tmp_path: Path) -> None:
    """Without since and until, a short row may also be one that lost its time."""
    path = folder(tmp_path, train="a\tp\tb\t1990\na\tp\tc\n") / "train.txt"
    with pytest.raises(DataError, match=r"train.txt, line 2: expected 4 columns .*without_time="):
        splime.read(path, split="none")
    assert facts(path, without_time="always") == [
        ("a", "p", "b", "1990", "1990"),
        ("a", "p", "c", "1990", "1990"),
    ]
    assert facts(path, without_time="drop") == [("a", "p", "b", "1990", "1990")]
    triples = folder(tmp_path, train="a\tp\tb\na\tp\tc\n") / "train.txt"
    with pytest.raises(DataError, match=r"line 1: expected 4 columns .* found 3"):
        splime.read(triples)
    with pytest.raises(DataError, match="no fact has a usable time"):
        splime.read(triples, without_time="always")


@pytest.mark.parametrize("unknown", ["0", 0, " 0 "])
def test_a_text_for_unknown(tmp_path: Path, unknown: str | int) -> None:
    text = "a\tp\tb\t1990\t0\na\tp\tc\t0\t1995\na\tp\td\t0\t0\na\tp\te\t1991\t1992\n"
    path = folder(tmp_path, train=text) / "train.txt"
    graph = splime.read(path, split="none", unknown_time=unknown)
    assert graph.timeline.granularity == "year"
    assert [fact[3:] for fact in graph.rows()] == [
        ("1990", None),
        (None, "1995"),
        (None, None),
        ("1991", "1992"),
    ]
    # Examples show what the file says.
    assert graph.reading.examples[0].fact == ("a", "p", "d", "0", "0")


def test_a_number_that_begins_with_a_minus(tmp_path: Path) -> None:
    path = folder(tmp_path, train="a\tp\tb\t3\t-1\na\tp\tc\t1\t2\n") / "train.txt"
    assert facts(path, unknown_time=-1) == [("a", "p", "b", "3", None), ("a", "p", "c", "1", "2")]


def test_a_dictionary_says_that_0_is_unknown(tmp_path: Path) -> None:
    folder(
        tmp_path,
        train="0\t0\t1\t1\t2\n1\t0\t0\t1\t0\n",
        time2id="####-##-##\t0\n1999-##-##\t1\n2001-##-##\t2\n",
        entity2id="Ada\t0\nUlm\t1\n",
        relation2id="livesIn\t0\n",
    )
    assert [tuple(fact) for fact in splime.load(tmp_path).rows()] == [
        ("Ada", "livesIn", "Ulm", "1999", "2001"),
        ("Ulm", "livesIn", "Ada", "1999", None),
    ]


def test_a_first_row_without_times_is_no_header(tmp_path: Path) -> None:
    text = "a\tp\tb\tnull\tnull\nc\tp\td\t1990\tNULL\n"
    assert facts(folder(tmp_path, train=text) / "train.txt") == [
        ("a", "p", "b", None, None),
        ("c", "p", "d", "1990", None),
    ]


def test_duplicates_are_shown_as_written(tmp_path: Path) -> None:
    text = "a\tp\tb\t1990-##-##\t####-##-##\na\tp\tb\t1990\t\n"
    graph = splime.read(folder(tmp_path, train=text) / "train.txt", split="none")
    (example,) = (one for one in graph.reading.examples if one.why == "duplicate")
    assert example.fact == ("a", "p", "b", "1990", "")
    text = "a\tp\tb\t1990-##-##\t1980-##-##\nc\tp\td\t1991\t\n"
    graph = splime.read(folder(tmp_path, train=text) / "train.txt", split="none")
    assert graph.reading.examples[0].fact == ("a", "p", "b", "1990-##-##", "1980-##-##")
