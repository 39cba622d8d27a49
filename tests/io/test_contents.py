"""Which column is what, where the header does not say it in the usual words."""

from __future__ import annotations

import shlex
from datetime import date
from itertools import pairwise, permutations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import DataError, UsageError
from splime.io.contents import Contents, kind_of
from tests.runs.small import call

HEADER = "winner,outcome,loser,date"
PEOPLE = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Fay", "Gus", "Hal"]
ROWS = [
    f"{one},{what},{other},{year}"
    for year, (one, other) in enumerate(zip(PEOPLE, reversed(PEOPLE), strict=True), 2001)
    for what in ("beats", "meets")
]


def table(folder: Path, *lines: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def rows_of(path: Path, **options: object) -> list[tuple[object, ...]]:
    return list(splime.read(path, split="none", **options).rows())  # type: ignore[arg-type]


WORDS = st.sampled_from(["north", "Ada Lovelace", "a-1", "18-0213", "114/2", "CVE-2020-1"])
TIMES = st.one_of(
    st.dates(date(1000, 1, 1)).map(str),
    st.integers(1000, 2999).map(str),
    st.dates(date(1000, 1, 1)).map(lambda day: day.strftime("%d/%m/%Y")),
    st.sampled_from(["Mar 2019", "March 4, 2019", "4.3.2019", "49 BC", "c. 1850", "1998–2003"]),
    st.sampled_from(["2018Q1", "2018-W05", "20180101", "201801", "1546300800", "2003-2007"]),
)


@given(st.lists(WORDS, min_size=1), st.lists(TIMES, min_size=1))
def test_names_are_no_times(names: list[str], times: list[str]) -> None:
    assert kind_of(names) == "name"
    assert kind_of(times) == "time"
    assert kind_of([*times, *["", "present", "-"]]) == "time"


@pytest.mark.parametrize("cells", [["3,5", "12,0"], ["7", "12", "7"], ["€ 3.50"], ["12%", "9"]])
def test_amounts_are_neither(cells: list[str]) -> None:
    assert kind_of(cells) == "number"


@given(st.permutations(range(4)))
def test_a_file_a_table_and_records_are_understood_alike(order: list[int]) -> None:
    """The predicate is found wherever it stands; subject and object keep their order."""
    header = [HEADER.split(",")[at] for at in order]
    cells = [[row.split(",")[at] for at in order] for row in ROWS]
    arrow = pa.table({name: [row[at] for row in cells] for at, name in enumerate(header)})
    graph = splime.read(arrow, split="none", keep_duplicates=True)
    assert set(graph.predicates) == {"beats", "meets"}
    people = [name for name in header if name in ("winner", "loser")]
    first = splime.read(arrow, columns=[people[0], "outcome", people[1], "date"], split="none")
    assert set(graph.rows()) == set(first.rows())


def test_the_reading_is_said_and_can_be_chosen(tmp_path: Path) -> None:
    path = table(tmp_path, HEADER, *ROWS)
    remark = "".join(splime.read(path, split="none").reading.remarks)
    assert "'outcome' is the predicate" in remark
    chosen = ["winner", "outcome", "loser", "date"]
    assert rows_of(path, columns=chosen) == rows_of(path)


def test_one_predicate_for_all_rows(tmp_path: Path) -> None:
    path = table(tmp_path, "person,club,joined,left", "Ada,Ajax,2001,2003", "Ben,Ajax,2002,")
    with pytest.raises(DataError, match="predicate_name"):
        splime.read(path)
    wanted = [
        ("Ada", "playsFor", "Ajax", "2001", "2003"),
        ("Ben", "playsFor", "Ajax", "2002", None),
    ]
    assert rows_of(path, predicate_name="playsFor") == wanted
    chosen = ["person", "club", "joined", "left"]
    assert rows_of(path, predicate_name="playsFor", columns=chosen) == wanted
    events = rows_of(path, predicate_name="joined", columns=chosen[:3])
    assert events[0] == ("Ada", "joined", "Ajax", "2001", "2001")
    bare = table(tmp_path, "Ada,Ajax,2001", "Ben,Ajax,2002", name="bare.csv")
    assert rows_of(bare, predicate_name="playsFor")[1] == (
        "Ben",
        "playsFor",
        "Ajax",
        "2002",
        "2002",
    )


def test_each_other_column_is_a_predicate(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        "person,club,city,from,to",
        "Ada,Ajax,Ulm,2001,2003",
        "Ben,,Bonn,2002,",
        "Cleo,,,2002,2003",
    )
    wanted = [
        ("Ada", "club", "Ajax", "2001", "2003"),
        ("Ada", "city", "Ulm", "2001", "2003"),
        ("Ben", "city", "Bonn", "2002", None),
    ]
    graph = splime.read(path, columns=["person", "*", "from", "to"], split="none")
    assert set(graph.rows()) == set(wanted)
    assert len(graph) == 3
    assert "1 row with nothing" in str(graph.reading.remarks)
    arrow = pa.table({"person": ["Ada"], "club": ["Ajax"], "when": [2001]})
    (row,) = splime.read(arrow, columns=["person", "*", "when"], split="none").rows()
    assert row == ("Ada", "club", "Ajax", "2001", "2001")
    with pytest.raises(UsageError, match=r"subject, \*, time"):
        splime.read(path, columns=["*", "person", "from", "to"])


def test_the_row_of_a_bad_time_is_named_below_a_wildcard(tmp_path: Path) -> None:
    lines = [f"p{at},a{at},b{at},{2000 + at}" for at in range(9)]
    path = table(tmp_path, "person,club,city,when", *lines, "x,y,z,soon")
    graph = splime.read(path, columns=["person", "*", "when"], split="none")
    assert sum(graph.reading.dropped.values()) == 2
    assert "line 11" in str(graph.reading.examples[0])


def test_columns_that_leave_several_readings_are_refused(tmp_path: Path) -> None:
    names = [f"{person},{town},{firm},2001" for person in "ab" for town in "cd" for firm in "ef"]
    path = table(tmp_path, "one,two,three,when", *names)
    refused = call("inspect", path)
    assert refused.code
    lines = [line.strip() for line in refused.err.splitlines() if "--columns" in line]
    assert len(lines) >= 2
    for line in lines:  # each can be copied
        assert call("inspect", path, *shlex.split(line)).code == 0


def test_places_called_from_and_to(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        "from,move,to,day",
        *(row.replace("200", "2001-01-0") for row in ROWS),
    )
    assert rows_of(path)[0] == ("Ada", "beats", "Hal", "2001-01-01", "2001-01-01")


def test_dates_chosen_for_names_are_said(tmp_path: Path) -> None:
    path = table(tmp_path, "person,club,from,to", "Ada,Ajax,2001,2003", "Ben,Ajax,2002,2004")
    graph = splime.read(path, columns=["person", "club", "from", "to"], split="none")
    assert "look like times" in str(graph.reading.remarks)


def test_rows_of_other_lengths_and_comments(tmp_path: Path) -> None:
    lines = ["# exported", "who,relation,whom,begin,end", "a,p,b,2001", "", "a,p,c,2002,2003,"]
    path = table(tmp_path, *lines, "# half time", "a,p,d,2003,2004")
    graph = splime.read(path, split="none")
    assert [row.end for row in graph.rows()] == [None, "2003", "2004"]
    remarks = str(graph.reading.remarks)
    assert "1 row shorter" in remarks
    assert "1 comment" in remarks
    path = table(tmp_path, "#subject,predicate,object,time", "a,p,b,2001")
    assert rows_of(path) == [("a", "p", "b", "2001", "2001")]


@pytest.mark.parametrize("row", ["Smith, J,p,b,2001,2002", 'a,"p,b,2001,2002\na,p,b,2001,2002'])
def test_a_delimiter_in_a_name_is_no_longer_row(tmp_path: Path, row: str) -> None:
    path = table(tmp_path, "subject,predicate,object,begin,end", "a,p,b,2001,2002", row)
    with pytest.raises(DataError, match="line 3"):
        splime.read(path)


def test_spaces_and_quotes_around_all_names_are_no_part_of_them(tmp_path: Path) -> None:
    wanted = rows_of(table(tmp_path, HEADER, *ROWS))
    spaced = table(tmp_path, HEADER.replace(",", " , "), *(r.replace(",", " , ") for r in ROWS))
    assert rows_of(spaced) == wanted
    lines = ["\t".join(f'"{cell}"' for cell in row.split(",")) for row in (HEADER, *ROWS)]
    quoted = table(tmp_path, *lines, name="table.tsv")
    assert rows_of(quoted) == wanted
    assert "quotes around names" in str(splime.read(quoted).reading.remarks)
    # Of one name they may be a part.
    one = table(tmp_path, "subject\tpredicate\tobject\ttime", 'a\t"p"\tb\t1990', "c\tp\td\t1991")
    assert rows_of(one)[0][1] == '"p"'


def test_contents_of_uneven_rows() -> None:
    contents = Contents.of_rows(["a", "b"], [["1"], ["x", "2001", "beyond"]])
    assert contents.cells == [["1", "x"], ["", "2001"]]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["yes", "no", "Yes"], "flag"),
        (["08:15", "23:59:01"], "number"),
        (["Waited.\nNever again", "ok"], "text"),
        (["a text of more words than any name has here"], "text"),
        (["00017", "00018"], "name"),
        (["0402.10", "8471.30"], "name"),
        (["3-1", "0-0"], "number"),
        (["45.1, 12.9", "-3.5, 7.25"], "number"),
        (["M", "F"], "flag"),
        (["3 Mill Lane,\nFlat 2"], "name"),
        (["2015/16", "2016/17"], "time"),
        (["1998–2003, 2006"], "time"),
        (["4 May 1997[1]", "1999"], "time"),
    ],
)
def test_kinds(cells: list[str], kind: str) -> None:
    assert kind_of(cells) == kind


def test_columns_of_one_kind_are_no_predicate(tmp_path: Path) -> None:
    """Lenders borrow, too: what they have in common makes neither of the columns a link."""
    rows = [
        f"Vase {at},{one},{other},201{at}" for at, (one, other) in enumerate(pairwise("ABABAC"))
    ]
    path = table(tmp_path, "Object,Lender,Borrower,Out", *rows)
    with pytest.raises(DataError, match="leave open"):
        splime.read(path)


def test_begin_and_end_by_their_values(tmp_path: Path) -> None:
    rows = ["2025-05-01,2020-05-01,Ada,x", "2022-03-15,2017-03-15,Ben,y", ",2019-01-01,Eve,x"]
    path = table(tmp_path, "Expires,Issued,Holder,Licence", *rows)
    wanted = ("Ada", "holds", "x", "2020-05-01", "2025-05-01")
    assert rows_of(path, predicate_name="holds")[0] == wanted
    rows = ["Djoser,king,c. 2686 BC,c. 2649 BC", "Wu,king,141 BC,87 BC"]
    path = table(tmp_path, "Ruler,Style,Accession,Death", *rows)
    assert rows_of(path, predicate_name="was")[1][3:] == ("-141", "-87")


def test_a_file_without_a_header_that_counts_its_rows(tmp_path: Path) -> None:
    path = table(tmp_path, "1,Ada,Ajax,2001", "2,Ben,Ajax,2002", "3,Ada,PSV,2003")
    with pytest.raises(DataError, match="predicate_name"):
        splime.read(path)
    assert rows_of(path, predicate_name="in")[0] == ("Ada", "in", "Ajax", "2001", "2001")


def test_a_header_whose_words_may_end_facts(tmp_path: Path) -> None:
    rows = ["Pact,Norway,4 Apr 1949,24 Aug 1949,", "Pact,France,5 Apr 1949,25 Aug 1949,1 Jul 1966"]
    path = table(tmp_path, "Treaty,Party,Signed,In force,Terminated", *rows)
    with pytest.raises(DataError, match="are the times") as refused:
        splime.read(path)
    line = "'Treaty', 'Party', 'In force', 'Terminated'"
    assert line in str(refused.value)
    with pytest.raises(DataError, match="are the times") as refused:
        splime.read(path, predicate_name="signed by")
    assert line in str(refused.value)
    chosen = ["Treaty", "Party", "In force", "Terminated"]
    graph = splime.read(path, predicate_name="signed by", columns=chosen, split="none")
    assert [fact.end for fact in graph.rows()] == [None, "1966-07-01"]


def test_rows_above_a_table(tmp_path: Path) -> None:
    path = table(tmp_path, "Register", "of 3 May 2021,,,", ",,,", HEADER, *ROWS)
    graph = splime.read(path, split="none")
    assert len(graph) == len(ROWS)
    assert "rows above the table" in str(graph.reading.remarks)


def test_names_that_may_stand_for_none_are_said(tmp_path: Path) -> None:
    path = table(tmp_path, "subject,predicate,object,time", "a,p,N/A,2001", "b,p,c,2002")
    assert "'N/A' among the names" in str(splime.read(path, split="none").reading.remarks)


def test_ids_and_amounts_are_no_years_and_no_predicates(tmp_path: Path) -> None:
    rows = [f"{1000 + at},{name},{200 + at},2001-0{at + 1}-03" for at, name in enumerate(PEOPLE)]
    staff = table(tmp_path, "Employee ID,Name,Desk,Hired", *rows)
    with pytest.raises(DataError, match=r"times Hired\."):
        splime.read(staff)
    rows = [f"{name},{name} Ltd,{51 + at % 3},200{at}" for at, name in enumerate(PEOPLE)]
    owned = table(tmp_path, "parent,subsidiary,share,acquired", *rows)
    with pytest.raises(DataError, match="predicate_name"):
        splime.read(owned)
    graph = splime.read(owned, predicate_name="owns", split="none")
    assert "51" not in graph.entities


def test_letters_from_and_to_people(tmp_path: Path) -> None:
    rows = [row.split(",") for row in ROWS]
    lines = [f"{one},{what},{other},{year}-05-01" for one, what, other, year in rows]
    graph = splime.read(table(tmp_path, "From,Kind,To,Date", *lines), split="none")
    assert set(graph.predicates) == {"beats", "meets"}
    assert set(graph.entities) == {*PEOPLE}


def test_a_status_that_is_a_word_for_an_open_end_is_a_name() -> None:
    assert kind_of(["active", "active"]) == kind_of(["open", "current"]) == "name"


def test_columns_that_are_one(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        "First Name,Last Name,role,club,year,month,day,checked_at",
        "Ada,Moreau,plays for,Ajax,2001,5,3,2020-01-01",
        "Ben,Moreau,plays for,Ajax,2002,11,,2020-01-02",
        ",Quinn,coaches,Porto,2003,,,2020-01-02",
        "Cleo,,coaches,Ajax,,7,1,2020-01-03",
    )
    graph = splime.read(path, split="none", granularity="year", without_time="unknown")
    wanted = {
        ("Ada Moreau", "plays for", "Ajax", "2001", "2001"),
        ("Ben Moreau", "plays for", "Ajax", "2002", "2002"),
        ("Quinn", "coaches", "Porto", "2003", "2003"),
        ("Cleo", "coaches", "Ajax", None, None),
    }
    assert set(graph.rows()) == wanted
    said = "'year', 'month', 'day' are read as one column"
    assert said in graph.reading.remarks
    chosen = ["First Name+Last Name", "role", "club", "year+month+day"]
    again = splime.read(
        path, columns=chosen, split="none", granularity="year", without_time="unknown"
    )
    assert set(again.rows()) == wanted
    wide = rows_of(path, columns=["1+2", "*", "checked_at"])
    assert ("Ada Moreau", "club", "Ajax", "2020-01-01", "2020-01-01") in wide
    assert not any(fact[1] == "Last Name" for fact in wide)
    arrow = pa.table(
        {"who": ["Ada"], "does": ["naps"], "at": ["home"], "year": [2001], "month": [5]}
    )
    columns = ["who", "does", "at", "year+month"]
    assert next(iter(splime.read(arrow, columns=columns).rows())).begin == "2001-05"
    shifts = {"who": ["Ada"], "does": ["naps"], "at": ["home"]}
    shifts |= {"day": ["2001-05-03"], "start": ["8:15"], "end": ["16:30"]}
    columns = ["who", "does", "at", "day+start", "day+end"]
    fact = ("Ada", "naps", "home", "2001-05-03T08:15", "2001-05-03T16:30")
    assert list(splime.read(pa.table(shifts), columns=columns).rows()) == [fact]
    text = table(tmp_path, ",".join(shifts), ",".join(cell for (cell,) in shifts.values()))
    pq.write_table(pa.table(shifts), tmp_path / "shifts.parquet")
    for source in (text, tmp_path / "shifts.parquet"):
        assert rows_of(source, columns=columns) == [fact]
    with pytest.raises(DataError, match="no column 'months'"):
        rows_of(text, columns=["who", "does", "at", "day+months"])


@pytest.mark.parametrize(
    ("header", "row", "begin", "end"),
    [
        ("signed,expires,updated_at", "2001-01-01,2002-01-01,2020-01-01", "signed", "expires"),
        ("born,hired,left", "1970-01-01,2001-01-01,2002-01-01", "hired", "left"),
        ("born,died,modified", "1900-01-01,1970-01-01,2020-01-01", "born", "died"),
        ("created,opened,closed", "2000-01-01,2000-01-02,2000-01-03", "opened", "closed"),
        ("created,updated", "2000-01-01,2000-01-02", "created", None),
        ("awarded,rating", "1999,2650", "awarded", None),
    ],
)
def test_times_that_are_not_those_of_facts(
    header: str, row: str, begin: str, end: str | None, tmp_path: Path
) -> None:
    lines = [f"{one},meets,{other},{row}" for one, other in pairwise(PEOPLE)]
    graph = splime.read(table(tmp_path, f"who,does,whom,{header}", *lines), split="none")
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    assert {(fact.begin, fact.end) for fact in graph.rows()} == {
        (cells[begin], cells[end or begin])
    }


def test_columns_that_say_nothing_are_left_out(tmp_path: Path) -> None:
    """One value, or those of another column once more."""
    lines = [
        f"{one},{one[0].lower()}@example.org,{what},{other},Europe,{year}"
        for year, (one, other) in enumerate(permutations(PEOPLE, 2), 2001)
        for what in ("beats", "meets")
    ]
    graph = splime.read(table(tmp_path, "who,mail,what,whom,area,year", *lines), split="none")
    assert set(graph.predicates) == {"beats", "meets"}
    assert "columns that are not used: mail, area" in graph.reading.remarks
    assert set(graph.entities) == {*PEOPLE}


@pytest.mark.parametrize(
    "lines",
    [
        ["who,does,whom,ordered,shipped,paid", "Ada,pays,Ben,2001-01-01,2001-01-03,2001-01-02"],
        ["who,city,club,from,to", "Ada,Ulm,Ajax,2001,2002", "Ben,Bonn,Porto,2002,2003"],
        ["id,who,whom,court,filed", "A-1,Ada,Ben,Ulm,2001", "A-2,Ben,Ada,Ulm,2002"],
        ["who,whom,filed", "Ada,Ben,2001", "Ben,Cleo,2002"],
        ["who,does,whom,in", "Ada,meets,Ben,week 3 of 2001", "Ben,meets,Ada,week 4 of 2002"],
    ],
)
def test_each_hint_can_be_copied(lines: list[str], tmp_path: Path) -> None:
    path = table(tmp_path, *lines)
    refused = call("inspect", path)
    assert refused.code
    hints = [line for line in refused.err.splitlines() if line.startswith("  --columns")]
    assert hints
    for hint in hints:
        chosen = shlex.split(hint.replace("FORMAT", "'week 3 of %Y'"))
        assert call("inspect", path, *chosen, "--allow-loss").code == 0


def test_a_table_without_times_or_names(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="None of them holds times"):
        rows_of(table(tmp_path, "who,does,whom,note", "Ada,meets,Ben,often"))
    with pytest.raises(DataError, match="names: who"):
        rows_of(table(tmp_path, "who,note,year", "Ada,,2001", "Ben,,2002"), header=True)


def test_labels_stand_for_what_they_name(tmp_path: Path) -> None:
    lines = [f"Q{at},Person {at},{what},P{at},Town {at},2001" for at in (1, 2) for what in "ab"]
    path = table(tmp_path, "item,itemLabel,what,place,placeLabel,year", *lines)
    assert {fact[0] for fact in rows_of(path)} == {"Person 1", "Person 2"}


def test_the_order_of_times_is_that_of_what_they_say(tmp_path: Path) -> None:
    row = "19/Jul/21 6:33 PM,22/Nov/21 10:27 AM"
    lines = [f"{one},meets,{other},{row}" for one, other in pairwise(PEOPLE)]
    (fact, *_) = rows_of(table(tmp_path, "who,does,whom,opened,closed", *lines))
    assert fact[3:] == ("2021-07-19T18:33", "2021-11-22T10:27")
