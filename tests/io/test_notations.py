"""Times as people write them: read as their owner means them, each guess said, none in silence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dateutil.relativedelta import relativedelta
from hypothesis import given, strategies as st

import splime
from splime.errors import DataError, SplimeError, UsageError
from splime.graph import TemporalGraph
from splime.io.notations import begins_and_ends
from splime.methods import Vanilla
from splime.streaming import stream_transform
from tests.runs.small import call

Span = tuple[str | None, str | None]


def events(*times: object, **options: Any) -> TemporalGraph:
    """A graph of an event at each time."""
    rows = [("Ada", f"does {at}", "it", time) for at, time in enumerate(times)]
    return splime.read(rows, split="none", allow_loss=True, **options)


def intervals(*spans: tuple[object, object], **options: Any) -> TemporalGraph:
    """A graph of a fact from each begin to each end."""
    rows = [("Ada", f"does {at}", "it", *span) for at, span in enumerate(spans)]
    return splime.read(rows, split="none", allow_loss=True, **options)


def times(graph: TemporalGraph) -> list[str | None]:
    return [fact.begin for fact in graph.rows()]


def spans(graph: TemporalGraph) -> list[Span]:
    return [(fact.begin, fact.end) for fact in graph.rows()]


@pytest.mark.parametrize(
    ("written", "read", "said"),
    [
        ("20180101 20191231", "2018-01-01 2019-12-31", "without separators.*granularity='step'"),
        ("201801 201912", "2018-01 2019-12", "without separators.*granularity='step'"),
        ("20180101123000 20180101123005", "2018-01-01T12:30:00 2018-01-01T12:30:05", "separators"),
        ("2018010112 2018010223", "2018-01-01T12 2018-01-02T23", "without separators"),
        ("2018Q1 2018-Q3 Q4_2019 3Q2019", "2018-01 2018-07 2019-10 2019-07", "quarter or half"),
        ("H2_2018 2019H1", "2018-07 2019-01", "quarter or half"),
        ("2018-W05 2020W01 2018-W05-3", "2018-01-29 2019-12-30 2018-01-31", "week begins"),
        ("1546300800 1546304460", "2019-01-01T00:00 2019-01-01T01:01", None),
        ("1546300800000 1546387200000", "2019-01-01 2019-01-02", "milliseconds since 1970"),
        ("12/03/2019 25/03/2019", "2019-03-12 2019-03-25", "day first; time_format='%m/%d/%Y'"),
        ("12/03/2019 12/25/2019", "2019-12-03 2019-12-25", "month first; time_format='%d/%m/%Y'"),
        ("4.3.2019 14.3.2019", "2019-03-04 2019-03-14", "day first; time_format='%m.%d.%Y'"),
        ("12-03-2019 13-03-2019", "2019-03-12 2019-03-13", "day first"),
        ("12-03-19 31-12-99", "2019-03-12 1999-12-31", "day first; years of two digits"),
        ("99/12/31 00/01/30", "1999-12-31 2000-01-30", "year first; years of two digits"),
        ("2019/3/4 2019/12/25", "2019-03-04 2019-12-25", "year first; time_format="),
        ("03/2019 11.2020", "2019-03 2020-11", "month and year"),
        ("2019/3 2019/12 2020/01", "2019-03 2019-12 2020-01", "month and year"),
        ("Aug-15 Jun-99", "2015-08 1999-06", "two digits are 1969 to 2068"),
        ("1612345678.25 1612345699.5", "2021-02-03T09:47:58 2021-02-03T09:48:19", "seconds since"),
        ("FY2020 FY_19", "2020 2019", "the year a fiscal year is called by"),
        (
            "Mai_2019 17_août_2018 4_de_marzo_de_2019",
            "2019-05 2018-08 2019-03",
            "name of the month",
        ),
        ("1er_janvier_1815 4._März_2003", "1815-01-01 2003-03-04", "name of the month"),
        ("Mar_2019 Sept._2016 December_2010", "2019-03 2016-09 2010-12", "name of the month"),
        ("March_4,_2019 4_March_2019", "2019-03-04 2019-03-04", "name of the month"),
        ("12_June_1999 1st_of_May_2004 2001-Feb-28", "1999-06-12 2004-05-01 2001-02-28", "name"),
        ("Thursday,_March_4,_2021 Mon_8_Mar_2021", "2021-03-04 2021-03-08", "name of the month"),
        ("04-Mar-19 05-Apr-99", "2019-03-04 1999-04-05", "two digits are 1969 to 2068"),
        ("2001.0 2002.0", "2001 2002", "a whole number"),
        ("20180101T103000Z 20180102T1031Z", "2018-01-01T10:30 2018-01-02T10:31", "ISO 8601"),
        ("49_BC 27_BCE 14_AD 37_CE AD_69", "-49 -27 14 37 69", "before Christ.*unknown_time="),
        ("07SEP2007 12_Feb_2001", "2007-09-07 2001-02-12", "by the name"),
        ("2012年4月14日 2012年11月3日", "2012-04-14 2012-11-03", "year first"),
        ("mid-1968 early_1970", "1968 1970", "exact"),
        ("1855? 1862_(c.) 1870", "1855 1862 1870", "exact"),
        ("c._1850 ca._1640 circa_1700 1788 c._44_BC", "1850 1640 1700 1788 -44", "exact"),
        (
            "12/03/2019_9:05_PM 13/03/2019_00:30",
            "2019-03-12T21:05 2019-03-13T00:30",
            "'%m/%d/%Y %I:%M %p' reads the month first",
        ),
        ("4_March_2019_10:30 5_Mar_2019_12:15_am", "2019-03-04T10:30 2019-03-05T00:15", "month"),
    ],
)
def test_formats(written: str, read: str, said: str | None) -> None:
    texts = [text.replace("_", " ") for text in written.split()]
    graph = events(*texts)
    assert times(graph) == read.split()
    (remark,) = graph.reading.remarks
    assert remark.startswith(f"times such as {texts[0]!r} are read as ")
    assert re.search(said or "seconds since 1970", remark)


def test_months_and_years_of_two_digits_are_no_interval() -> None:
    with pytest.raises(DataError, match="no fact has a usable time"):
        events("08/93", "11/98", "01/02")
    assert times(events("08/93", "11/98", time_format="%m/%y")) == ["1993-08", "1998-11"]


def test_seasons() -> None:
    """2009/10 alone is a month; among others that can be none, it is a season."""
    graph = events("2014/15", "2015/16", "2009/10")
    assert spans(graph) == [("2014", "2015"), ("2015", "2016"), ("2009", "2010")]
    assert times(events("2009/10", "2009/11")) == ["2009-10", "2009-11"]


@pytest.mark.parametrize(
    ("texts", "hint"),
    [
        (["40909", "42369", "41275"], "granularity='day' origin='1899-12-30'"),
        (["31122003", "15062002"], "time_format='%d%m%Y'"),
        (["3", "17"], "granularity='UNIT' origin='TIME'"),
    ],
)
def test_numbers_that_are_no_times_by_themselves(
    tmp_path: Path, texts: list[str], hint: str
) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("".join(f"a\tp\tb\t{text}\n" for text in texts), encoding="utf-8")
    (remark,) = splime.read(path, split="none").reading.remarks
    assert remark.endswith(hint)


def test_marks_of_footnotes() -> None:
    graph = events("4 May 1997[1]", "1999[a][12]", "2001 [citation needed]", "2003")
    assert times(graph) == ["1997", "1999", "2001", "2003"]
    assert "'4 May 1997[1]'" in str(graph.reading.remarks)


def test_kinds_of_sources_agree(tmp_path: Path) -> None:
    """Tuples, tables, text and Parquet: numbers, too."""
    days = [20180101, 20191231, 20200229]
    expected = ["2018-01-01", "2019-12-31", "2020-02-29"]
    columns = {"subject": list("abc"), "predicate": ["p"] * 3, "object": list("xyz"), "time": days}
    table = pa.table(columns)
    table.to_pandas().to_csv(tmp_path / "f.csv", index=False)
    pq.write_table(table, tmp_path / "f.parquet")
    read = [
        events(*days),
        *(
            splime.read(source, split="none")
            for source in (table, pd.DataFrame(columns), tmp_path / "f.csv", tmp_path / "f.parquet")
        ),
    ]
    assert [times(graph) for graph in read] == [expected] * 5
    assert all("20180101" in graph.reading.remarks[0] for graph in read)
    assert times(events(*days, granularity="step")) == ["20180101", "20191231", "20200229"]


def test_all_columns_and_files_decide_together() -> None:
    graph = intervals(("03/04/2019", "05/06/2019"), ("01/02/2019", "25/06/2019"))
    assert spans(graph) == [("2019-04-03", "2019-06-05"), ("2019-02-01", "2019-06-25")]
    row = ("a", "p", "b")
    both = {"train": [(*row, "03/04/2019")], "test": [(*row, "31/03/2019")]}
    graph = splime.read(both)
    assert [fact.begin for fact in graph.rows()] == ["2019-04-03", "2019-03-31"]


@pytest.mark.parametrize(
    ("texts", "offered"),
    [
        (("03/04/2019", "05/06/2019"), ("%d/%m/%Y", "%m/%d/%Y")),
        (("3.4.2019 10:30:15", "5.6.2019 11:00:00"), ("%d.%m.%Y %H:%M:%S", "%m.%d.%Y %H:%M:%S")),
        (("03-04-05", "05-06-07"), ("%d-%m-%y", "%m-%d-%y", "%y-%m-%d")),
        (("13/04/2019", "04/13/2019"), ("%d/%m/%Y", "%m/%d/%Y")),
    ],
)
def test_undecided_dates_are_an_error_with_options_to_copy(
    texts: Sequence[str], offered: Sequence[str]
) -> None:
    with pytest.raises(DataError, match=r"^rows, row 1: dates such as") as error:
        events(*texts)
    for format in offered:
        assert f"time_format={format!r}" in str(error.value)
    readable = [format for format in offered if _all_match(texts, format)]
    for format in readable:
        first = datetime.strptime(texts[0], format)
        assert times(events(*texts, time_format=format))[0] in (
            first.date().isoformat(),
            first.isoformat(),
        )


def _all_match(texts: Sequence[str], format: str) -> bool:
    try:
        return all(datetime.strptime(text, format) for text in texts)
    except ValueError:
        return False


def test_dates_that_are_the_same_either_way_need_no_order() -> None:
    assert times(events("03/03/2019", "11/11/2019")) == ["2019-03-03", "2019-11-11"]


def test_a_stray_date_does_not_stop_the_others() -> None:
    graph = events(*[f"2019-01-{day:02}" for day in range(1, 29)] * 8, "03/04/2019")
    assert dict(graph.reading.dropped) == {"unreadable time": 1}


def test_impossible_dates_are_dropped_and_none_is_filled_in() -> None:
    graph = events("4 March 2019", "31 Feb 2019", "March 4", "Monday March 2019", "Smarch 2019")
    assert times(graph) == ["2019-03-04"]
    assert graph.reading.dropped == {"unreadable time": 4}
    graph = events("20180101", *["20180102"] * 20, "20180231", "20181301")
    assert times(graph)[:2] == ["2018-01-01", "2018-01-02"]
    assert graph.reading.dropped["unreadable time"] == 2
    assert "impossible date" in graph.reading.examples[0].why


@given(st.lists(st.dates(date(1700, 1, 1), date(2100, 1, 1)), min_size=1, max_size=20, unique=True))
def test_the_order_is_the_only_one_that_fits(days: list[date]) -> None:
    """Against a literal loop over both orders."""
    texts = [f"{day.day}/{day.month}/{day.year}" for day in days]
    swapped = []
    for day in days:
        try:
            swapped.append(day.replace(month=day.day, day=day.month))
        except ValueError:
            swapped = []
            break
    if swapped in ([], days):
        assert times(events(*texts)) == [day.isoformat() for day in days]
    else:
        with pytest.raises(DataError, match="time_format="):
            events(*texts)
        assert times(events(*texts, time_format="%m/%d/%Y")) == [d.isoformat() for d in swapped]


@given(
    st.lists(
        st.datetimes(datetime(2002, 1, 1), datetime(2049, 1, 1)).map(
            lambda when: when.replace(microsecond=0)
        ),
        min_size=1,
        max_size=20,
        unique=True,
    ),
    st.sampled_from(["%Y%m%d%H%M%S", "epoch", "%d %B %Y %H:%M:%S", "%b %d, %Y %I:%M:%S %p"]),
)
def test_instants_come_back(instants: list[datetime], format: str) -> None:
    if format == "epoch":
        texts = [str(int(instant.replace(tzinfo=UTC).timestamp())) for instant in instants]
    else:
        texts = [instant.strftime(format) for instant in instants]
    # All at full hours are hours, and so on: nothing is lost.
    assert [datetime.fromisoformat(time or "") for time in times(events(*texts))] == instants


@pytest.mark.parametrize(
    "numbers",
    [
        range(0, 24 * 40, 24),
        range(1, 366),
        range(0, 200_000, 1_440),
        [0, 1_440, 2_880],
        [100_000, 250_013, 777_777],
        [20_180_001, 20_189_999, 20_185_050],
        [631_152_000, 700_000_000],
        [999, 10_000],
        range(10**9, 10**9 + 10**8, 10**7 + 3),
    ],
)
def test_steps_stay_steps(numbers: Sequence[int]) -> None:
    if min(numbers) == 10**9:  # but seconds since 1970 look like this
        assert "seconds since 1970" in events(*numbers).reading.remarks[0]
        return
    graph = events(*numbers)
    assert graph.timeline.granularity == "step"
    assert times(graph) == [str(number) for number in numbers]
    assert graph.reading.remarks == ()


@given(st.lists(st.integers(0, 10**5), min_size=1, max_size=30))
def test_small_numbers_are_read_as_before(numbers: list[int]) -> None:
    graph = events(*numbers, unknown_time="")
    if graph.timeline.granularity == "step":
        assert times(graph) == [*dict.fromkeys(map(str, numbers))] or len(graph) == len(numbers)
    else:
        assert all(1000 <= number <= 2999 for number in graph.timeline.starts.tolist()) or (
            sum(1000 <= number <= 2999 for number in numbers) * 10 >= len(numbers)
        )


@pytest.mark.parametrize(
    ("cell", "span"),
    [
        ("1998-2003", ("1998", "2003")),
        ("1998–2003", ("1998", "2003")),
        ("1998 — 2003", ("1998", "2003")),
        ("1998 to 2003", ("1998", "2003")),
        ("from 1998 to 2003", ("1998", "2003")),
        ("1998–03", ("1998", "2003")),
        ("1998–99", ("1998", "1999")),
        ("49 BC–44 BC", ("-49", "-44")),
        ("49–44 BC", ("-49", "-44")),
        ("27 BC–14 AD", ("-27", "14")),
        ("27 BC–14", ("-27", "14")),
        ("14-37", ("14", "37")),
        ("c. 1058–1093", ("1058", "1093")),
        ("ca 1850–60", ("1850", "1860")),
        ("1998‑2003", ("1998", "2003")),
        ("1991-present", ("1991", None)),
        ("1991 – now", ("1991", None)),
        ("2010-", ("2010", None)),
        ("since 2010", ("2010", None)),
        ("–2010", (None, "2010")),
        ("<1900", (None, "1900")),
        ("1850s", ("1850", "1859")),
        ("(1901–1950)", ("1901", "1950")),
        ("1998 bis heute", ("1998", None)),
        ("19th century", ("1801", "1900")),
        ("1998/..", ("1998", None)),
        ("until 2010", (None, "2010")),
        ("2014", ("2014", "2014")),
        ("", (None, None)),
    ],
)
def test_an_interval_in_one_cell(cell: str, span: Span) -> None:
    graph = events("1066–1087", "1558–1603", "1837-1901", cell)
    assert spans(graph)[3] == span
    assert any("hold a begin and an end" in remark for remark in graph.reading.remarks)


def test_several_times_in_one_cell() -> None:
    graph = events("1998–2003, 2006–2008", "2010", "2011; 2012 and 2014", None)
    assert spans(graph) == [
        ("1998", "2003"),
        ("2006", "2008"),
        *((year, year) for year in ("2010", "2011", "2012", "2014")),
        (None, None),
    ]
    assert [fact.predicate for fact in graph.rows()][:3] == ["does 0", "does 0", "does 1"]
    assert "hold several times" in str(graph.reading.remarks)
    assert times(events("March 4, 2019", "May 6, 2019")) == ["2019-03-04", "2019-05-06"]


def test_an_interval_in_a_column_of_begins_or_ends() -> None:
    graph = intervals(("1998", "2003"), ("<1900", "1850s"), ("1850s", "1998-2003"))
    assert spans(graph) == [("1998", "2003"), (None, "1859"), ("1850", "2003")]


def test_intervals_of_months_and_days() -> None:
    graph = events("Mar 2010 – Apr 2012", "Mar 2013", "2014-02-2015-03")
    assert spans(graph) == [("2010-03", "2012-04"), ("2013-03", "2013-03"), ("2014-02", "2015-03")]
    graph = events("2010-01-02 - 2010-02-03", "2010-01-02/2010-02-03", "5/6/2010-25/6/2010")
    assert spans(graph) == [("2010-01-02", "2010-02-03")] * 2 + [("2010-06-05", "2010-06-25")]


def test_a_month_is_no_interval_unless_the_column_says_so() -> None:
    assert spans(events("2012-03", "2013-04")) == [("2012-03", "2012-03"), ("2013-04", "2013-04")]
    graph = events("1998-2003", "1998-03")
    assert spans(graph)[1] == ("1998", "1998")
    assert "'1998-03' is read as a month, not as 1998 to 2003" in graph.reading.remarks
    # A season ends in the next year, so these cannot be months.
    assert spans(events("1998-99", "2003-04")) == [("1998", "1999"), ("2003", "2004")]
    # A slip among many months does not make intervals of them.
    months = [f"20{year:02}-{month:02}" for year in range(10, 20) for month in range(1, 13)]
    graph = events(*months, "2014-13")
    assert graph.timeline.granularity == "month"
    assert graph.reading.dropped == {"unreadable time": 1}


@pytest.mark.parametrize(
    "word",
    [
        "present",
        "now",
        "ongoing",
        "-",
        "–",
        "—",
        "today",
        "current",
        "to date",
        "Present",
        "till now",
        "bis heute",
        "actualidad",
    ],
)
def test_words_for_an_open_end(word: str) -> None:
    graph = intervals(("Mar 2003", "Nov 2011"), ("Jan 2006", word))
    assert spans(graph) == [("2003-03", "2011-11"), ("2006-01", None)]
    # A word is no begin.
    if word.isalpha():
        graph = intervals((word, "2011"), ("2006", "2007"))
        assert spans(graph) == [("2006", "2007")]


def test_times_with_zones_become_utc_in_begin_and_end() -> None:
    graph = intervals(
        ("2021-03-01T06:30:00+01:00", "2021-03-02T18:00:00+02:00"),
        ("2021-03-01T06:30:00Z", "2021-03-01T06:30:00-0530"),
        ("01/03/2021 06:30 +01:00", "31/03/2021 06:30 GMT"),
    )
    assert spans(graph) == [
        ("2021-03-01T05:30", "2021-03-02T16:00"),
        ("2021-03-01T06:30", "2021-03-01T12:00"),
        ("2021-03-01T05:30", "2021-03-31T06:30"),
    ]


@pytest.mark.parametrize(
    ("format", "text", "read"),
    [
        ("%d/%m/%Y", "03/04/2019", "2019-04-03"),
        ("%m/%d/%y", "03/04/69", "1969-03-04"),
        ("%Y", "2019", "2019"),
        ("%Y_%m", "2019_04", "2019-04"),
        ("%Y-%j", "2019-032", "2019-02-01"),
        ("%G-W%V-%u", "2018-W05-1", "2018-01-29"),
        ("%d.%m.%Y %H:%M", "03.04.2019 10:30", "2019-04-03T10:30"),
        ("%d.%m.%Y %Hh", "03.04.2019 10h", "2019-04-03T10"),
        ("%d.%m.%Y %H:%M:%S %z", "03.04.2019 10:30:15 +0200", "2019-04-03T08:30:15"),
        ("%d/%b/%Y:%H:%M:%S.%f", "03/Apr/2019:10:30:15.5", "2019-04-03T10:30:15"),
    ],
)
def test_a_format_of_ones_own(format: str, text: str, read: str) -> None:
    graph = events(text, time_format=format)
    assert times(graph) == [read]
    assert format in graph.reading.remarks[0]


def test_what_does_not_match_the_format_is_dropped_and_counted() -> None:
    graph = intervals(
        ("03/04/2019", "05/04/2019"),
        ("2019-04-03", "05/04/2019"),
        ("2019", "05/04/2019"),
        ("04/04/2019", "present"),
        ("05/04/2019", ""),
        time_format="%d/%m/%Y",
    )
    assert spans(graph) == [
        ("2019-04-03", "2019-04-05"),
        ("2019-04-04", None),
        ("2019-04-05", None),
    ]
    assert graph.reading.dropped == {"unreadable time": 2}
    assert "not %d/%m/%Y: 2019" in graph.reading.examples[0].why
    graph = events("03/04/2019–05/06/2019", time_format="%m/%d/%Y")
    assert spans(graph) == [("2019-03-04", "2019-05-06")]


@pytest.mark.parametrize(
    ("format", "why"),
    [
        ("%Q", "'Q' is a bad directive"),
        ("%", "stray %"),
        ("", "does not give a date"),
        ("date", "does not give a date"),
        ("%H:%M", "does not give a date"),
        ("%d/%Y", "all units down to the finest"),
        ("%Y-W%W", "all units down to the finest"),
        ("%d/%m", "does not give a date"),
    ],
)
def test_formats_that_give_no_date(format: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="time_format") as error:
        events("2019", time_format=format)
    assert why in str(error.value)
    path = tmp_path / "f.csv"
    path.write_text("a,p,b,2019\n")
    done = call("inspect", path, "--time-format", format)
    assert done.code == 2
    assert why in done.err


ROWS = [("1994-05-16", "2012-12-28"), ("2001-02-01", "2016-08-31"), ("2006-11-20", "2018-03-29")]


@pytest.mark.parametrize(
    "far",
    [
        "9999-12-31", "2999-12-31", "2999-01-01", "3000-01-01", "2262-04-11", "0000-00-00",
        "2099-12-31", "99991231",
    ],
)  # fmt: skip
def test_far_ends_are_open(far: str) -> None:
    rows = [*ROWS, ("2007-01-01", far), ("2008-01-01", far)]
    if far == "99991231":
        rows = [(begin.replace("-", ""), end.replace("-", "")) for begin, end in rows]
    graph = intervals(*rows)
    assert [end for _, end in spans(graph)[3:]] == [None, None]
    assert graph.timeline.labels()[-1] == "2018-03-29"
    (remark,) = [one for one in graph.reading.remarks if "unknown time" in one]
    assert "(2 times)" in remark
    assert "unknown_time=''" in remark
    if far[:4] != "0000":
        kept = intervals(*rows, unknown_time="")
        assert [end for _, end in spans(kept)[3:]] != [None, None]
        assert kept.timeline.labels()[-1][:2] == far[:2]


@pytest.mark.parametrize("far", ["1900-01-01", "1800-01-01", "0001-01-01", "1970-01-01"])
def test_far_begins_are_unknown(far: str) -> None:
    graph = intervals(*ROWS, (far, "2008-01-01"), (far, "2009-01-01"))
    assert spans(graph)[3:] == [(None, "2008-01-01"), (None, "2009-01-01")]
    assert graph.timeline.labels()[0] == "1994-05-16"
    kept = intervals(*ROWS, (far, "2008-01-01"), (far, "2009-01-01"), unknown_time=[])
    assert kept.timeline.labels()[0] == far


def test_years_that_stand_for_none() -> None:
    years = [(1990, 1995), (1998, 2004), (2001, 2011)]
    graph = intervals(*years, (2003, 9999), (2007, 9999))
    assert spans(graph)[3:] == [("2003", None), ("2007", None)]
    assert graph.timeline.labels()[-1] == "2011"
    graph = intervals(*years, (2003, 0), (2007, -1), (0, 2008))
    assert graph.timeline.granularity == "year"
    assert spans(graph)[3:] == [("2003", None), ("2007", None), (None, "2008")]
    assert spans(intervals(*years, (2003, 9999), (2007, 9999), unknown_time="7"))[3][1] == "9999"
    # Among days neither makes years of them.
    graph = intervals(*ROWS, ("2007-01-01", "9999"), ("2008-01-01", "0"))
    assert graph.timeline.granularity == "day"
    assert spans(graph)[3:] == [("2007-01-01", None), ("2008-01-01", None)]
    compact = intervals(("20180101", "00000000"), ("20180201", "0"), ("20180201", "20190101"))
    assert [fact.end for fact in compact.rows()] == [None, None, "2019-01-01"]


def test_real_times_that_are_far_stay() -> None:
    """Once only, or no round date, or among times that are as far from each other."""
    once = intervals(*ROWS, ("1900-01-01", "2008-01-01"))
    assert once.timeline.labels()[0] == "1900-01-01"
    ancient = events(-753, -753, 476, 1066, 2024, 2024)
    assert len(ancient.timeline) == 5 - 1
    assert ancient.reading.remarks == ()
    days = events("1912-04-15", "1912-04-15", "1997-12-19", "2012-04-04")
    assert days.timeline.labels()[0] == "1912-04-15"
    modern = events("49 BC", "44 BC", "14 AD", "2024", "2024")
    assert modern.timeline.labels()[-1] == "2024"


@pytest.mark.parametrize("slip", ["20088", 20088, "19999"])
@pytest.mark.parametrize("others", [4, 30])
def test_a_digit_too_many_among_years(slip: object, others: int) -> None:
    graph = events(*range(1990, 1990 + others), slip)
    assert graph.timeline.granularity == "year"
    assert len(graph) == others
    assert graph.reading.dropped == {"unreadable time": 1}
    assert str(slip) in graph.reading.examples[0].why
    assert events(*range(1990, 1990 + others), slip, granularity="step").reading.dropped == {}


def test_slips_among_seconds_are_no_seconds() -> None:
    seconds = [1_546_300_800 + 61 * at for at in range(30)]
    graph = intervals(*((at, at + 1) for at in seconds), (seconds[0], 0), (5, seconds[0]))
    assert graph.timeline.labels()[0] == "2019-01-01T00:00:00"
    assert spans(graph)[-1] == ("2019-01-01T00:00:00", None)
    assert graph.reading.dropped == {"unreadable time": 1}


def test_a_begin_alone_is_open(tmp_path: Path) -> None:
    assert spans(events(1999, 2004, since=True)) == [("1999", None), ("2004", None)]
    table = pa.table({"s": ["a"], "p": ["q"], "o": ["b"], "since": [1999]})
    chosen: dict[str, Any] = {"columns": ["s", "p", "o", "since"], "split": "none"}
    path = tmp_path / "f.csv"
    path.write_text("s,p,o,since\na,q,b,1999\n")
    parquet = tmp_path / "f.parquet"
    pq.write_table(table, parquet)
    for source in (table, path, parquet):
        for options in (chosen, {"split": "none"}):
            graph = splime.read(source, **options)
            assert spans(graph) == [("1999", None)]
            assert any("since=False" in remark for remark in graph.reading.remarks)
            assert spans(splime.read(source, **options, since=False)) == [("1999", "1999")]
    with pytest.raises(UsageError, match="there is a column of ends, too"):
        intervals((1999, 2004), since=True)
    for flag, kind in (("--since", "open"), ("--no-since", "instant")):
        done = call("inspect", path, "--split", "none", flag)
        assert done.code == 0
        assert re.search(rf"facts: {kind}.* 1 \(100", done.out)


@pytest.mark.parametrize(
    ("begin", "length", "unit", "end"),
    [
        ("2015-03-01", "92", "days", "2015-06-01"),
        ("2015-03-01", 92, "day", "2015-06-01"),
        ("2015-03-01", "0", "days", "2015-03-01"),
        ("2016-02-29", "1", "year", "2017-02-28"),
        ("2015-01-31", "1", "months", "2015-02-28"),
        ("2015-01-31", "2.0", "weeks", "2015-02-14"),
        ("2015-01", "14", "months", "2016-03"),
        ("2015", "3", "years", "2018"),
        ("2015-01-31T10:30", "1", "month", "2015-02-28T10:30"),
        ("2015-01-31T10:30", "90", "minutes", "2015-01-31T12:00"),
        ("01.02.2015", "30", "days", "2015-03-03"),
    ],
)
def test_a_begin_and_a_length(begin: str, length: object, unit: Any, end: str) -> None:
    options: dict[str, Any] = {"time_format": "%d.%m.%Y"} if "." in begin else {}
    graph = intervals((begin, length), duration=unit, **options)
    assert [fact.end for fact in graph.rows()] == [end]


@given(
    st.lists(
        st.tuples(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.integers(0, 999)),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from(["years", "months", "weeks", "days"]),
)
def test_lengths_agree_with_dateutil(facts: list[tuple[date, int]], unit: Any) -> None:
    rows = [(begin.isoformat(), length) for begin, length in facts]
    graph = intervals(*rows, duration=unit, unknown_time="")
    expected = [begin + relativedelta(**{unit: length}) for begin, length in facts]
    assert [fact.end for fact in graph.rows()] == [end.isoformat() for end in expected]


def test_lengths_that_are_none() -> None:
    graph = intervals(
        ("2015-03-01", "92"), ("2015-03-01", "long"), ("2015-03-02", ""), (None, "3"),
        ("2015-03-01", "-4"), ("x", "3"), duration="days",
    )  # fmt: skip
    assert spans(graph) == [("2015-03-01", "2015-06-01"), ("2015-03-02", None), (None, None)]
    assert graph.reading.dropped == {"unreadable time": 3}
    assert "not a length: long" in graph.reading.examples[0].why
    with pytest.raises(DataError, match=r"'92' stands where the end.*duration='days'"):
        intervals(("2015-03-01", "92"), ("2015-04-01", "61"))
    with pytest.raises(UsageError, match="there is one column of times"):
        events("2015-03-01", duration="days")
    with pytest.raises(UsageError, match="numbers of an unknown unit"):
        intervals((3, 4), duration="days")
    with pytest.raises(UsageError, match="duration"):
        intervals(("2015", 3), duration="decades")


NUMBERS = "0 1 3 12 13 31 49 99 1066 1850 1998 2003 2019 9999 20180101 20088 1546300800"
WORDS = "BC AD c. ca. to since until now present March Sept of PM null T Z W Q"
MARKS = "- – / . , : ~ ( ) % ## #### é 0000-00-00 9999-12-31 1900-01-01 +02:00"
PIECES = [*NUMBERS.split(), *WORDS.split(), *MARKS.split(), " ", "", "\u00a0"]


@given(
    st.lists(
        st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join),
        min_size=2,
        max_size=8,
    ),
    st.booleans(),
    st.sampled_from([None, "%d/%m/%Y", "%Y"]),
    st.sampled_from([None, "days", "years"]),
    st.sampled_from([None, "year", "day", "step"]),
)
def test_whatever_is_written_is_read_or_refused(
    texts: list[str], pairs: bool, format: str | None, unit: str | None, granularity: Any
) -> None:
    options: dict[str, Any] = {"time_format": format, "duration": unit, "granularity": granularity}
    try:
        if pairs:
            graph = intervals(*zip(texts[::2], texts[1::2], strict=False), **options)
        else:
            graph = events(*texts, **options)
    except SplimeError:
        return
    reading = graph.reading
    assert reading.rows == len(texts) // (2 if pairs else 1)
    assert reading.kept + sum(reading.dropped.values()) == reading.rows
    # What is shown reads back as itself.
    if graph.timeline.granularity != "step" and granularity is None:
        written = [(one.begin, one.end) for one in graph.rows()]
        again = intervals(*written, unknown_time="", without_time="unknown")
        if again.timeline.granularity == graph.timeline.granularity:
            assert spans(again) == written


@pytest.mark.system
def test_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "loans.csv"
    path.write_text("s,p,o,begin,end\na,borrowed,b,03/04/2019,05/06/2019\n", encoding="utf-8")
    refused = call("inspect", path)
    assert refused.code == 3
    assert "loans.csv, line 2" in refused.err
    option = re.findall(r"--time-format (%d\S*)", refused.err)[0]
    done = call("inspect", path, "--time-format", option, "--split", "none")
    assert done.code == 0
    assert "2019-04-03" in done.out
    path.write_text("s,p,o,begin,end\na,lent,b,2019-03-04,12\n", encoding="utf-8")
    refused = call("inspect", path)
    assert "--duration days" in refused.err
    done = call("inspect", path, "--duration", "days", "--split", "none")
    assert "2019-03-16" in done.out


COLUMNS: dict[str, list[Any]] = {
    "years": ["2001", "2002", "2003"],
    "days": ["2001-05-01", "2002-05-01", ""],
    "compact": ["20180101", "20190101", "20200101"],
    "compact numbers": [20180101, 20190101, 20200101],
    "epoch": [1546300800, 1546300801, 1546300802],
    "day first": ["25/03/2019", "03/04/2019", "05/06/2019"],
    "undecided": ["03/04/2019", "05/06/2019", "07/08/2019"],
    "words": ["Mar 2019", "2019-04", "2019-05"],
    "intervals": ["1998-2003", "2004", "2005-2006"],
    "several": ["1998, 2003", "2004", "2005"],
    "far": ["2001-05-01", "2004-05-01", "9999-12-31"],
    "zeros": ["2001-05-01", "2004-05-01", "0"],
    "no date": ["2001-05-01", "2004-05-01", "0000-00-00"],
    "eras": ["49 BC", "44 BC", "14 AD"],
    "slip": ["2001", "2004", "20088"],
    "rubbish": ["2001", "2004", "soon"],
    "steps": [0, 24, 48],
    "timestamps": [datetime(2019, 1, day) + timedelta(hours=day) for day in (1, 2, 3)],
}


REFUSED = COLUMNS.keys() - {"years", "days", "slip", "rubbish", "steps", "timestamps"}


@pytest.mark.parametrize("role", ["time", "begin", "end", "since"])
@pytest.mark.parametrize("kind", COLUMNS)
def test_streaming_agrees_or_refuses(kind: str, role: str, tmp_path: Path) -> None:
    """It never reads times in silence as others than loading does."""
    columns: dict[str, Any] = {
        "subject": list("abc"),
        "predicate": list("ppq"),
        "object": list("def"),
    }
    columns |= {role: COLUMNS[kind]}
    if role in ("begin", "end"):
        columns["end" if role == "begin" else "begin"] = ["2000-01-01", "2010-01-01", None]
    path, triples = tmp_path / "f.parquet", tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path)
    options: dict[str, Any] = {"split": "none", "allow_loss": True}
    # Of several begins, none is said to belong to an end: that row is dropped by both.
    refused = kind in REFUSED or role == "since" or (kind, role) == ("steps", "end")
    if refused and (kind, role) not in (("several", "begin"), ("several", "end")):
        with pytest.raises(SplimeError, match=r"f\.parquet"):
            stream_transform(path, triples, Vanilla(), **options)
        assert not triples.exists()
        return
    result = stream_transform(path, triples, Vanilla(), **options)
    graph = splime.read(path, **options)
    assert result.facts["train"] == len(graph)
    assert result.segmentation.predicates.timeline.labels() == graph.timeline.labels()
    assert {why: n for why, n in result.dropped.items() if n} == dict(graph.reading.dropped)


def test_the_options_that_keep_a_few_times_that_cannot_be_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    few = ["spring 2020", "1998-03-01, then 2007"]
    days = [f"2014-03-{day:02}" for day in range(1, 9)]
    rows = [("Ada", f"does {at}", "it", time) for at, time in enumerate([*days, *few])]
    assert splime.read(rows, split="none").reading.dropped == {"unreadable time": 2}
    assert "unknown_time='spring 2020'" in caplog.text
    assert "without_time='unknown'" in caplog.text
    assert events(*days, *few, unknown_time=few, without_time="unknown").reading.kept == 10
    # Where most cannot be read, it is how they are written that is not known.
    caplog.clear()
    german = [f"{day}. 03 im Jahr 2014" for day in range(1, 9)]
    assert len(events(*german, time_format="%d. %m im Jahr %Y")) == 8
    with pytest.raises(DataError, match="time_format"):
        splime.read([("Ada", "does", "it", time) for time in german], split="none")


def test_a_row_of_dashes_is_no_time() -> None:
    """As below a header; each dash could divide a begin from an end, and each half again."""
    rows = [("who", "did", "what", "when"), ("-" * 70,) * 4]
    rows += [(f"person {n}", "met", f"guest {n}", f"{1990 + n}") for n in range(9)]
    graph = splime.read(rows)
    assert [fact.begin for fact in graph.rows()][-1] == "1998"
    zoned = "2019-05-01T08:00-05:00 - 2019-06-01T09:00-05:00"
    assert ("2019-05-01T08:00-05:00", "2019-06-01T09:00-05:00") in begins_and_ends(zoned)
