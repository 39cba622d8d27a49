"""The layouts in which temporal knowledge graphs are published: each opens without options."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import splime
from splime.errors import DataError, UsageError
from splime.graph import TemporalGraph
from splime.io.ids import read_ids
from tests.runs.small import call

Quad = tuple[int, int, int, int]


def quads(count: int, start: int = 0) -> list[Quad]:
    """Different facts with ids, at the times 0, 1, 2, … and again."""
    return [(n % 7, n % 3, 7 + n // 7 % 9, n % 11) for n in range(start, start + count)]


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def write_splits(
    folder: Path, name: str, line: Callable[[Quad], str], *, count: str = "", end: str = "\n"
) -> None:
    """Files of 30, 10 and 10 quadruples, perhaps with their number in the first line."""
    for split, start, facts in (("train", 0, 30), ("valid", 30, 10), ("test", 40, 10)):
        lines = [count.format(facts)] if count else []
        lines += [line(quad) for quad in quads(facts, start)]
        write(folder / name.format(split), "".join(text + end for text in lines))


def check(
    source: Path,
    *shown: str,
    step: int = 1,
    not_rows: int = 0,
    of: tuple[int, ...] = (30, 10, 10),
    **options: Any,
) -> TemporalGraph:
    """Read it: every line is a row, a header or a count; and each guess is shown."""
    graph = splime.read(source, **options)
    reading = graph.reading
    assert tuple(own.kept for own in reading.sources) == of
    assert not reading.dropped
    files = [source] if source.is_file() else source.iterdir()
    names = {own.name for own in reading.sources}
    lines = sum(
        len([line for line in path.read_text().splitlines() if line.strip()])
        for path in files
        if path.name in names
    )
    assert lines == reading.rows + not_rows
    for text in shown:
        assert any(text in remark for remark in reading.remarks), (text, reading.remarks)
    return graph


def facts_of(graph: TemporalGraph) -> list[tuple[str | None, ...]]:
    return [
        (fact.subject, fact.predicate, fact.object, fact.begin, fact.end) for fact in graph.rows()
    ]


def as_events(facts: list[Quad]) -> list[tuple[str | None, ...]]:
    return [(str(s), str(p), str(o), str(t), str(t)) for s, p, o, t in facts]


@pytest.mark.parametrize("between", ["\t", " ", "   "])
@pytest.mark.parametrize("fifth", ["0", "-1", "7"])
def test_a_constant_fifth_column(tmp_path: Path, between: str, fifth: str) -> None:
    step = 24
    write_splits(
        tmp_path,
        "{}.txt",
        lambda q: between.join(map(str, (*q[:3], step * q[3], fifth))),
    )
    write(tmp_path / "stat.txt", "16\t3\t0\n")
    graph = check(
        tmp_path,
        f"the fifth column is always {fifth} and was left out",
        "steps of 24",
        "granularity='hour' origin='TIME'",
    )
    assert facts_of(graph) == as_events(quads(50))
    assert (graph.timeline.first, graph.timeline.last, len(graph.timeline)) == (0, 10, 11)
    kept = splime.read(tmp_path, granularity="step")
    assert kept.timeline.labels() == [str(24 * t) for t in range(11)]


def test_quarters_of_an_hour_and_years(tmp_path: Path) -> None:
    """GDELT and YAGO, as RE-Net and RE-GCN have them."""
    gdelt, yago = tmp_path / "gdelt", tmp_path / "yago"
    gdelt.mkdir()
    yago.mkdir()
    write_splits(gdelt, "{}.txt", lambda q: f"{q[0]}\t{q[1]}\t{q[2]}\t{15 * q[3]}\t0")
    graph = check(gdelt, "steps of 15", "granularity='minute'")
    assert graph.timeline.labels() == [str(t) for t in range(11)]
    dated = splime.read(gdelt, granularity="minute", origin="2018-01-01")
    assert dated.timeline.granularity == "minute"
    assert dated.timeline.labels()[:2] == ["2018-01-01T00:00", "2018-01-01T00:15"]

    write_splits(yago, "{}.txt", lambda q: "\t".join(map(str, (*q, -1))))
    write(yago / "entity2id.txt", "".join(f"<e{n}>\t{n}\n" for n in range(16)))
    write(yago / "relation2id.txt", "".join(f"<r{n}>\t{n}\n" for n in range(3)))
    graph = check(yago, "unknown unit", "entity ids are named by entity2id.txt")
    assert graph.reading.remarks[-1].endswith("granularity='UNIT' origin='TIME'")
    first = next(iter(graph.rows()))
    assert (first.subject, first.predicate, first.begin) == ("<e0>", "<r0>", "0")
    years = splime.read(yago, granularity="year", origin=1830)
    assert (years.timeline.granularity, years.timeline.first) == ("year", 1830)


def test_numbers_that_may_be_years(tmp_path: Path) -> None:
    """Hours from 24 on, without 0, look like years; that is said."""
    lines = [f"a\tp\tb\t{24 * n}\n" for n in range(1, 301)]
    path = write(tmp_path / "f.txt", "".join(lines))
    graph = check(path, "read as years; granularity='step'", of=(300,), split="none")
    assert graph.timeline.granularity == "year"
    years = [f"a\tp\tb\t{1990 + n}\n" for n in range(9)]
    assert splime.read(write(path, "".join(years)), split="none").reading.remarks == ()
    dated = [*years, "a\tp\tb\t360-##-##\n"]
    assert splime.read(write(path, "".join(dated)), split="none").reading.remarks == ()


def test_times_given_in_the_numbers_of_the_file(tmp_path: Path) -> None:
    lines = [f"a\tp\tb{n}\t{24 * n}\t{24 * n if n < 9 else ''}\n" for n in range(10)]
    path = write(tmp_path / "f.txt", "".join(lines))
    graph = splime.read(path, last=480, split="none")
    assert (graph.timeline.last, graph.train.end.max()) == (20, 20)


def test_hours_that_are_days(tmp_path: Path) -> None:
    write_splits(tmp_path, "{}.txt", lambda q: f"{q[0]} {q[1]} {q[2]} {24 * q[3]} 0")
    graph = check(tmp_path, granularity="hour", origin="2018-01-01")
    assert graph.timeline.granularity == "day"
    assert graph.timeline.labels()[-1] == "2018-01-11"


def test_what_origin_needs(tmp_path: Path) -> None:
    path = write(tmp_path / "f.txt", "a\tp\tb\t2001-05-01\n")
    with pytest.raises(UsageError, match="granularity must give"):
        splime.read(path, origin="2018")
    with pytest.raises(DataError, match=r"f.txt, line 1: '2001-05-01' is not a number of days"):
        splime.read(path, origin="2018", granularity="day")
    times = ["99999999999", "1", "####-##-##", "2", "3", "-1"]
    write(path, "".join(f"a\tp\tb\t{time}\n" for time in times))
    graph = splime.read(path, origin="2018", granularity="day", split="none")
    assert graph.timeline.labels() == ["2017-12-31", "2018-01-02", "2018-01-03", "2018-01-04"]
    assert dict(graph.reading.dropped) == {"unreadable time": 1, "event without a time": 1}


def test_real_ends_stay(tmp_path: Path) -> None:
    """A fifth column that may be an end is one, also if it is the same in all rows."""
    path = write(
        tmp_path / "f.tsv", "a\tp\tb\t2001\t2020\na\tp\tc\t2002\t2020\na\tp\td\t2021\t2020\n"
    )
    graph = splime.read(path, split="none")
    assert [fact.end for fact in graph.rows()] == ["2020", "2020"]
    assert dict(graph.reading.dropped) == {"end before begin": 1}
    assert graph.reading.remarks == ()
    # One row tells nothing, and whoever names the columns is believed.
    with pytest.raises(DataError, match="no fact has a usable time"):
        splime.read(write(path, "a\tp\tb\t2001\t0\n"))
    write(path, "s\tp\to\tbegin\tend\na\tp\tb\t2001\t1990\na\tp\tb\t2002\t2003\n")
    assert dict(splime.read(path, split="none").reading.dropped) == {"end before begin": 1}


def test_a_fifth_column_that_is_nearly_constant(tmp_path: Path) -> None:
    lines = [f"a\tp\tb{n}\t{24 * (n + 1)}\t0\n" for n in range(20)]
    path = write(tmp_path / "f.txt", "".join(lines)[:-2])  # cut off
    check(path, "always 0 or empty and was left out", of=(20,), split="none")
    lines = [f"a\tp\tb{n}\t{24 * (n % 3 // 2)}\t0\n" for n in range(20)]
    write(path, "".join([*lines, "a\tp\tb\t24\t48\n"]))
    reading = splime.read(path, split="none").reading
    assert dict(reading.dropped) == {"end before begin": 6}
    assert "0 in 20 of 21 rows, and was read as the end; columns=[1, 2, 3, 4]" in reading.remarks[0]


def test_a_constant_beside_dates(tmp_path: Path) -> None:
    path = write(tmp_path / "f.tsv", "a\tp\tb\t2014-01-01\t0\na\tp\tb\t2014-01-02\t0\n")
    graph = check(path, "the fifth column is always 0", of=(2,), split="none")
    assert graph.timeline.labels() == ["2014-01-01", "2014-01-02"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("between", ["\t", " ", "  \t "])
def test_a_count_first(tmp_path: Path, between: str, end: str) -> None:
    write_splits(tmp_path, "{}2id.txt", lambda q: between.join(map(str, q)), count="{}", end=end)
    graph = check(tmp_path, "the first line is a count (30) and was skipped", not_rows=3)
    assert facts_of(graph) == as_events(quads(50))
    spaced = "fields are separated by spaces" in graph.reading.remarks
    assert spaced == ("\t" not in between)
    padded = "spaces around ids were left out" in graph.reading.remarks
    assert padded == (between == "  \t ")
    # A count that does not hold is a file that was cut off.
    whole = (tmp_path / "train2id.txt").read_text()
    write(tmp_path / "train2id.txt", whole[: len(whole) // 2].rsplit("\n", 1)[0])
    again = splime.read(tmp_path)
    assert any("count (30)" in remark and "but" in remark for remark in again.reading.remarks)


def test_padded_ids(tmp_path: Path) -> None:
    path = write(
        tmp_path / "f.txt", "563  \t1\t 8\t0\n563\t1 \t8\t1\nx  \t1\t8\t2\n".replace("x", "7")
    )
    graph = check(path, "spaces around ids were left out", of=(3,), split="none")
    assert [fact.subject for fact in graph.rows()] == ["563", "563", "7"]
    assert len(graph.entities) == 3
    # Names are taken literally.
    write(path, "Ada \tp\tb\t2001\nAda\tp\tb\t2002\n")
    assert len(splime.read(path, split="none").entities) == 3


def test_names_of_splits(tmp_path: Path) -> None:
    for number, name in enumerate(
        (
            "icews_2014_{}.txt",
            "{}_500.txt",
            "wiki_{}.tsv",
            "{}.quad",
            "{}",
            "icews14.{}",
            "{}2id.txt",
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_splits(folder, name, lambda q: "\t".join(map(str, q)))
        for other in ("train.log", "training.txt", "trainer.py", "latest.txt", "train_test.txt"):
            write(folder / other, "nothing\n")
        check(folder)


@pytest.mark.parametrize("name", ["x_validation", "x-dev.txt", "x.VAL.tsv", "valid1.csv"])
def test_names_of_valid(tmp_path: Path, name: str) -> None:
    write(tmp_path / "train.txt", "a\tp\tb\t2001\n")
    write(tmp_path / name, "a\tp\tb\t2002\n")
    assert len(splime.read(tmp_path).valid) == 1


def test_a_folder_to_write_to(tmp_path: Path) -> None:
    graph = splime.read([("a", "p", "b", 2001)], split="none")
    write(tmp_path / "my_train.txt", "x\n")
    assert [path.name for path in splime.write_text(graph, tmp_path)] == ["train.tsv"]
    assert facts_of(splime.read(tmp_path)) == [("a", "p", "b", "2001", "2001")]
    write(tmp_path / "my_valid.txt", "x\n")
    with pytest.raises(UsageError, match=r"my_valid.txt would be read together"):
        splime.write_text(graph, tmp_path)


def test_two_files_for_one_split(tmp_path: Path) -> None:
    write(tmp_path / "a_train.txt", "a\tp\tb\t2001\n")
    write(tmp_path / "b_train.txt", "a\tp\tb\t2002\n")
    with pytest.raises(DataError, match=r"a_train.txt and b_train.txt .* Keep one .*splime.read"):
        splime.read(tmp_path)
    # The plain name is meant, and the others are mentioned.
    write(tmp_path / "train.txt", "a\tp\tb\t2003\n")
    graph = check(tmp_path, "b_train.txt was left alone", of=(1,))
    assert graph.timeline.labels() == ["2003"]


def test_numbered_files_are_not_guessed(tmp_path: Path) -> None:
    for number in (1, 2):
        write(tmp_path / f"triples_{number}", "1\t2\t3\t4\t5\n6\t7\t8\t9\t10\n")
        write(tmp_path / f"ent_ids_{number}", "0\tx\n")
    with pytest.raises(DataError, match=r"triples_1 and triples_2 may be parts .* or two graphs"):
        splime.read(tmp_path)
    assert len(splime.read(tmp_path / "triples_1", split="none")) == 2


@pytest.mark.parametrize(
    "name", ["time2id.txt", "ts2id.txt", "timestamp2id.txt", "times.dict", "time_id"]
)
@pytest.mark.parametrize("form", ["{0}\t{1}", "{1}\t{0}", "{0} {1}", "{1}   {0}", "{0}\t{1}\tx"])
def test_dictionaries_of_times(tmp_path: Path, name: str, form: str) -> None:
    write_splits(tmp_path, "{}.txt", lambda q: "\t".join(map(str, (*q, 0))))
    for dates in ([f"2014-01-{n:02}" for n in range(1, 12)], [str(1990 + n) for n in range(11)]):
        lines = [form.format(date, n) for n, date in enumerate(dates)]
        write(tmp_path / name, "\n".join(["11", *lines]))
        graph = check(tmp_path, f"time ids are named by {name}")
        assert graph.timeline.labels() == dates
        (tmp_path / name).rename(tmp_path / "other.txt")
        assert splime.read(tmp_path, times=tmp_path / "other.txt") == graph
        (tmp_path / "other.txt").unlink()


def test_dictionaries_of_numbers(tmp_path: Path) -> None:
    """GDELT's predicates are codes, and the ids of ICEWS14's days are hours."""
    write_splits(tmp_path, "{}.txt", lambda q: f"{q[0]}\t{q[1]}\t{q[2]}\t{24 * q[3]}\t0")
    write(tmp_path / "relation2id.txt", "020\t0\n0841\t1\n030\t2\n")
    write(tmp_path / "time2id.txt", "".join(f"2014-01-{n + 1:02}\t{24 * n}\n" for n in range(11)))
    graph = check(tmp_path, "predicate ids are named by relation2id.txt")
    assert list(graph.predicates) == ["020", "030", "0841"]
    assert (graph.timeline.granularity, graph.timeline.labels()[-1]) == ("day", "2014-01-11")


def test_times_that_are_no_ids(tmp_path: Path) -> None:
    write_splits(tmp_path, "{}.txt", lambda q: f"a\tp\tb{q}\t{2000 + q[3]}")
    write(tmp_path / "time2id.txt", "".join(f"{2000 + n}\t{n}\n" for n in range(11)))
    assert check(tmp_path).timeline.first == 2000  # written with the names of the dictionary
    write(tmp_path / "time2id.txt", "-431\t1782\t0\n1783\t1900\t1\n")  # of something else
    assert check(tmp_path, "time2id.txt was left alone").timeline.first == 2000
    write_splits(tmp_path, "{}.txt", lambda q: f"a\tp\tb{q}\t{q[3]}")
    write(tmp_path / "time2id.txt", "".join(f"{2000 + n}\t{n}\n" for n in range(9)))
    with pytest.raises(DataError, match=r"train.txt, line 10: the time id '9' is not in time2id"):
        splime.read(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["Ada Lovelace 0\nUlm 1\n", "0 Ada Lovelace\n1   Ulm\n", "name\tid\nAda Lovelace\t0\nUlm\t1\n"],
)
def test_dictionaries_with_spaces_and_headers(tmp_path: Path, text: str) -> None:
    assert read_ids(write(tmp_path / "e.txt", text)) == {"0": "Ada Lovelace", "1": "Ulm"}


def test_a_dictionary_beside_one_file(tmp_path: Path) -> None:
    path = write(tmp_path / "facts", "0 0 1 2001\n1 0 0 2002\n")
    write(tmp_path / "entity2id.txt", "Ada\t0\nUlm\t1\n")
    graph = check(path, "entity ids are named by entity2id.txt", of=(2,), split="none")
    assert [fact.subject for fact in graph.rows()] == ["Ada", "Ulm"]
    # It may belong to other facts, or be something else.
    for text in ("Ada\t0\n", "what is this\n"):
        write(tmp_path / "entity2id.txt", text)
        graph = check(path, "entity2id.txt was left alone", of=(2,), split="none")
        assert [fact.subject for fact in graph.rows()] == ["0", "1"]


def test_predicates_in_the_third_column(tmp_path: Path) -> None:
    """OpenKE writes subject, object, predicate; nothing in the facts says so, but ids may."""
    path = write(
        tmp_path / "train.txt", "".join(f"{n}\t{n + 1}\t{n % 2}\t{n}\n" for n in range(20))
    )
    check(tmp_path, "columns=[1, 3, 2, 4]", of=(20,))
    graph = splime.read(tmp_path, columns=[1, 3, 2, 4])
    assert (len(graph.predicates), graph.reading.sources[0].kept) == (2, 20)
    write(tmp_path / "relation2id.txt", "p\t0\nq\t1\n")
    with pytest.raises(DataError, match=r"predicate id '20?' is not in .* columns=\[1, 3, 2, 4\]"):
        splime.read(path.parent)


@pytest.mark.parametrize(
    "header",
    [
        "subject,predicate,object,time",
        "head,relation,tail,timestamp",
        "Source,REL,Target,Date",
        "s,p,o,t",
        "h,r,t,year",
        "from_entity,property,to_entity,when",
    ],
)
def test_headers_with_synonyms(tmp_path: Path, header: str) -> None:
    path = write(tmp_path / "f.csv", f"{header}\na,p,b,2001\nb,p,a,2002\n")
    graph = check(path, of=(2,), not_rows=1, split="none")
    assert facts_of(graph)[0] == ("a", "p", "b", "2001", "2001")
    assert graph.reading.sources[0].header == header.replace(",", " ")
    others = [name for name in header.split(",") if name not in ("subject", "predicate", "object")]
    assert all(
        f"'{name}' is the" in str(graph.reading.remarks) for name in others if name != "time"
    )


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("player,club,number,from,to", "player,club,number,from,to"),
        ("subject,club,object,since,until", "subject,club,object,since,until"),
        ("who,what,whom,year", "who,what,whom,year"),
        ("head,source,predicate,object,time", "head,predicate,object,time"),
        ("who,predicate,club,stadium,time", "who,predicate,club,time"),
    ],
)
def test_headers_that_are_not_understood(tmp_path: Path, header: str, line: str) -> None:
    """One row says little of its columns; the message has a line that can be copied."""
    row = ",".join(["x"] * header.count(","))
    path = write(tmp_path / "f.csv", f"{header}\n{row},2001\n")
    with pytest.raises(DataError, match=re.escape(f"columns={line.split(',')}")) as error:
        splime.read(path)
    assert "line 1: " in str(error.value)
    assert f"--columns {line}" in call("inspect", path).err


def test_space_separated_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks end within lines, lines are blank, and errors and examples name their lines."""
    monkeypatch.setattr("splime.io.delimited._BLOCK", 40)
    facts = quads(60)
    text = "\ufeff  60 \n" + "".join(f"{s}  {p} {o}\t{t} \n  \n" for s, p, o, t in facts)
    path = write(tmp_path / "f", text)
    graph = check(path, "count (60)", not_rows=1, of=(60,), split="none")
    assert facts_of(graph) == as_events(facts)
    write(path, text.replace("\t10 \n", " ? \n"))
    example = splime.read(path, split="none").reading.examples[0]
    assert example.where == "f, line 22"
    write(path, text + "1 2 3\n")
    with pytest.raises(DataError, match=r"f, line 122: expected 4 columns .* found 3"):
        splime.read(path)
    packed = tmp_path / "f.txt.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert facts_of(splime.read(packed, split="none")) == as_events(facts)


def test_names_with_spaces_are_not_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "f.txt", "Ada Lovelace bornIn London\nAda diedIn Ulm 1852 today\n")
    with pytest.raises(DataError, match="found 1"):
        splime.read(path)


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        (
            "f.txt",
            "one\ntwo \x1b[31m\nthree\nfour\n",
            [r"line 2: [1] 'two \x1b[31m'", "4 or 5 columns"],
        ),
        ("f", "1 2 3 4 5 6\n", ["[6] '6'", "6 by spaces", "columns="]),
        ("stat.txt", "23033\t256\t0\n", ["[2] '256'", "3 by tabs"]),
        (
            "f.csv",
            "player,club,from,to\nAda,Ajax,1,2\n",
            ["player, club", "predicate_name=", "'player', 'club', 'from', 'to'"],
        ),
        ("f.tsv", "x" * 1000 + "\n", ["…"]),
    ],
)
def test_what_is_not_understood_is_shown(
    tmp_path: Path, name: str, text: str, shown: list[str]
) -> None:
    with pytest.raises(DataError) as caught:
        splime.read(write(tmp_path / name, text))
    message = str(caught.value)
    assert len(message.splitlines()) <= 10
    assert message.isprintable() or all(line.isprintable() for line in message.split("\n"))
    for part in shown:
        assert part in message


def test_inspect_shows_guesses_and_errors(tmp_path: Path) -> None:
    write_splits(tmp_path, "{}.txt", lambda q: f"{q[0]}\t{q[1]}\t{q[2]}\t{24 * q[3]}\t0")
    done = call("inspect", tmp_path)
    assert done.code == 0, done.err
    assert "the fifth column is always 0 and was left out" in done.out
    assert "times are steps of 24" in done.out
    done = call("inspect", write(tmp_path / "stat", "3 4\n"))
    assert done.code == 3
    assert "[2] '4'" in done.err


def test_a_hint_has_numbers_where_names_would_not_survive(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("item,value,start,e\tnd\na,b,1990,1991\n", encoding="utf-8")
    with pytest.raises(DataError) as error:
        splime.read(path, split="none")
    assert all(line.isprintable() for line in str(error.value).splitlines())
    assert ", 3, 4]" in str(error.value)
