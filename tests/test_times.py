from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from splime.errors import UsageError
from splime.times import (
    GRANULARITIES,
    IMPOSSIBLE,
    KNOWN,
    NOT_A_TIME,
    PARTLY_MASKED,
    TOO_COARSE,
    UNKNOWN,
    ZONE_MIXED,
    Granularity,
    ParsedTimes,
    format_ticks,
    parse_times,
    raw_time,
    tick_range,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}


def parse(*texts: str, granularity: Granularity | None = None) -> ParsedTimes:
    return parse_times(pa.array(texts, pa.string()), granularity=granularity)


@pytest.mark.parametrize(
    ("texts", "granularity", "ticks"),
    [
        (["2012", "19", "-431"], "year", [2012, 19, -431]),
        (["2012-##-##", "-431-##-##", "19-##-##"], "year", [2012, -431, 19]),
        (["0", "17", "364"], "step", [0, 17, 364]),
        (["1", "99999"], "step", [1, 99999]),
        (["2012-05", "1969-12"], "month", [42 * 12 + 4, -1]),
        (["2012-05-##", "2012-06-##"], "month", [42 * 12 + 4, 42 * 12 + 5]),
        (["1970-01-02", "1969-12-31", "-0044-03-15"], "day", [1, -1, -735525]),
        (["1970-01-01T05", "1970-01-02 07"], "hour", [5, 31]),
        (["1970-01-01T05:30", "1970-01-01T06:00"], "minute", [330, 360]),
        (["1970-01-01T00:00:07", "1970-01-01 00:01:00.25"], "second", [7, 60]),
        (["1970-01-01T05:30:00Z", "1970-01-01T05:30+05:30"], "minute", [330, 0]),
        (["1970-01-01T00:30:00-0200", "1970-01-01T00:00:00Z"], "minute", [150, 0]),
        (["2014-05-13 00:00:00", "2014-05-14T00:00:00"], "day", [16203, 16204]),
        (["2014-05-13 10:00:00", "2014-05-14T00:00:00"], "hour", [388882, 388896]),
        (["+2012-01-01T00:00:00Z"], "day", [15340]),
        ([" 2012 "], "year", [2012]),
    ],
)
def test_reads_and_infers(texts: list[str], granularity: str, ticks: list[int]) -> None:
    parsed = parse(*texts)
    assert parsed.granularity == granularity
    assert parsed.state.tolist() == [KNOWN] * len(texts)
    assert parsed.ticks.tolist() == ticks


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("####-##-##", UNKNOWN),
        ("####", UNKNOWN),
        ("", UNKNOWN),
        ("   ", UNKNOWN),
        ("nan", UNKNOWN),
        ("NULL", UNKNOWN),
        ("unknown", UNKNOWN),
        ("-", UNKNOWN),
        (r"\N", UNKNOWN),
        ('"####-##-##"', UNKNOWN),
        ('""', UNKNOWN),
        ('"2014-05-13', NOT_A_TIME),
        ("nil", NOT_A_TIME),
        ("195#-##-##", PARTLY_MASKED),
        ("19##-##-##", PARTLY_MASKED),
        ("2012-##-05", PARTLY_MASKED),
        ("2014-02-30", IMPOSSIBLE),
        ("2014-13-01", IMPOSSIBLE),
        ("2014-00-01", IMPOSSIBLE),
        ("2013-02-29", IMPOSSIBLE),
        ("2014-05-13T24:00", IMPOSSIBLE),
        ("2014-05-13T10:60", IMPOSSIBLE),
        ("9999999-01-01", IMPOSSIBLE),
        ("05/13/2014", NOT_A_TIME),
        ("13.05.2014", NOT_A_TIME),
        ("May 2014", NOT_A_TIME),
        ("2014-5-1", NOT_A_TIME),
        ("2014-05-13T", NOT_A_TIME),
        ("99999999999999999999", NOT_A_TIME),
        ("20140513", NOT_A_TIME),
        ("２０１４", NOT_A_TIME),
        ("2014", TOO_COARSE),
    ],
)
def test_what_is_no_day_is_never_guessed(text: str, state: int) -> None:
    parsed = parse(*["2014-05-13"] * 200, text)
    assert parsed.granularity == "day"
    assert parsed.state[-1] == state
    assert parsed.state[0] == KNOWN


def test_quotes_and_types_of_rdf() -> None:
    texts = [
        '"2014-05-13"',
        '"2014-05-13"^^xsd:date',
        '"2014-05-13"^^<http://www.w3.org/2001/XMLSchema#date>',
        "2014-05-13^^xsd:date",
        ' " 2014-05-13 " ',
    ]
    parsed = parse(*texts)
    assert parsed.granularity == "day"
    assert set(parsed.state.tolist()) == {KNOWN}
    assert len(set(parsed.ticks.tolist())) == 1


def test_leap_years() -> None:
    assert parse("2012-02-29", "2000-02-29", "1900-02-29").state.tolist() == [0, 0, IMPOSSIBLE]


def test_the_granularity_is_the_coarsest_that_is_no_stray() -> None:
    few = parse(*["2014-05-13"] * 200, "2014")
    assert (few.granularity, few.state[-1]) == ("day", TOO_COARSE)
    many = parse(*["2014-05-13"] * 50, "2014")
    assert many.granularity == "year"
    assert many.truncated.tolist() == [True] * 50 + [False]


def test_weights_count_as_rows() -> None:
    texts = pa.array(["2014-05-13", "2014"])
    assert parse_times(texts, weights=np.array([1000, 1])).granularity == "day"
    assert parse_times(texts, weights=np.array([1, 1000])).granularity == "year"


def test_times_with_and_without_zone_do_not_mix() -> None:
    parsed = parse("2014-05-13T10:07", "2014-05-13T11:00Z", "2014-05-13T12:00Z")
    assert parsed.state.tolist() == [ZONE_MIXED, KNOWN, KNOWN]
    # For years it does not matter.
    assert parse("2014-05-13T10:07", "2014-05-13T11:00Z", granularity="year").state.max() == KNOWN


def test_a_forced_granularity_reads_only_the_front() -> None:
    parsed = parse("307-13047-09", "2012-05-03", "2012-02-30", "195#-##-##", granularity="year")
    assert parsed.ticks.tolist() == [307, 2012, 2012, 0]
    assert parsed.state.tolist() == [KNOWN, KNOWN, KNOWN, PARTLY_MASKED]
    assert parsed.truncated.tolist() == [True, True, True, False]
    forced = parse("2012-05-03T99:99", "2012-05", "2012-02-30T10:00", granularity="day")
    assert forced.state.tolist() == [KNOWN, TOO_COARSE, IMPOSSIBLE]


def test_forced_steps_take_only_numbers() -> None:
    assert parse("2012", "2012-05", granularity="step").state.tolist() == [KNOWN, NOT_A_TIME]


def test_unknown_granularity_suggests() -> None:
    with pytest.raises(UsageError, match="Did you mean month"):
        parse("2012", granularity="months")  # type: ignore[arg-type]


@given(
    st.lists(st.integers(-60_000_000_000, 200_000_000_000), min_size=1),
    st.sampled_from(GRANULARITIES),
)
def test_ticks_read_back(ticks: list[int], granularity: Granularity) -> None:
    # The largest range that stays within the calendar for every unit.
    unit = {"step": 1, "year": 40_000_000, "month": 3_000_000}.get(granularity) or SECONDS[
        granularity
    ]
    numbers = np.array(ticks) // unit
    texts = format_ticks(numbers, granularity)
    parsed = parse(*texts, granularity=granularity)
    assert parsed.state.max() == KNOWN
    assert not parsed.truncated.any()
    assert parsed.ticks.tolist() == numbers.tolist()


@given(
    st.datetimes(),
    st.integers(-14 * 60, 14 * 60),
    st.sampled_from(["day", "hour", "minute", "second"]),
)
def test_agrees_with_datetime(when: datetime, offset: int, granularity: Granularity) -> None:
    local = when.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=offset)))
    parsed = parse(local.isoformat(), granularity=granularity)
    seconds = (local - EPOCH) // timedelta(seconds=1)
    assert parsed.ticks[0] == seconds // SECONDS[granularity]


@given(st.dates(), st.sampled_from(["year", "month", "day"]))
def test_a_coarse_time_covers_the_finer_ones(day: date, coarse: Granularity) -> None:
    text = day.isoformat()[: {"year": 4, "month": 7, "day": 10}[coarse]]
    for fine in ("day", "hour", "second"):
        first, last = tick_range(text, fine)
        inside = tick_range(f"{day.isoformat()}T12:00:00", fine)[0]
        assert first <= inside <= last
        before, after = format_ticks(np.array([first - 1, last + 1]), fine)
        assert not before.startswith(text)
        assert not after.startswith(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    parsed = parse(text)
    assert parsed.state[0] in range(7)


def test_python_times() -> None:
    assert tick_range(date(2012, 5, 3), "day") == (15463, 15463)
    assert tick_range(datetime(2012, 5, 3, 10, tzinfo=UTC), "hour") == (371122, 371122)
    assert raw_time(np.datetime64("2012-05")) == "2012-05"
    assert raw_time(np.datetime64("NaT")) == ""
    for wrong in (1.5, True, object()):
        with pytest.raises(UsageError, match="is not a time"):
            raw_time(wrong)


@pytest.mark.parametrize("text", ["195#-##-##", "yesterday", "2014-02-30", ""])
def test_a_bad_time_in_a_question(text: str) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        tick_range(text, "day")


def test_a_date_in_a_graph_of_steps() -> None:
    with pytest.raises(UsageError, match="plain integers"):
        tick_range("2014-05", "step")


def test_the_rarer_kind_of_zone_is_that_of_fewer_facts() -> None:
    times = pa.array(["2014-01-01T10:00Z", "2014-01-01T11:00", "2014-01-01T12:00"])
    state = parse_times(times, weights=np.array([10, 1, 1])).state.tolist()
    assert state == [KNOWN, ZONE_MIXED, ZONE_MIXED]


@pytest.mark.parametrize("zone", ["+15:00", "-99", "+0260", "-14:60"])
def test_zones_that_are_none(zone: str) -> None:
    times = pa.array([f"2014-01-01T10:00{zone}", "2014-01-01T10:00+14:59"])
    assert parse_times(times).state.tolist() == [IMPOSSIBLE, KNOWN]
