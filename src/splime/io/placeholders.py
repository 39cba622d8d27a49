"""Times that stand for an unknown one: 9999-12-31, 1900-01-01 and other far times that repeat."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from splime.times import DATES, Bools, Granularity, Ints, calendar

Floats: TypeAlias = npt.NDArray[np.float64]

_NEVER, _FUTURE = 9999, 2037
_FAR, _APART = 50, 5  # years to the nearest other time: of any time, and of the usual placeholders
_TIMES_USUAL = 3  # a usual placeholder lies so many times the usual distance from others
_YEARS = {"year": 1.0, "month": 12.0, "day": 365.25, "hour": 8_766.0, "minute": 525_960.0}
_SECONDS_OF_YEAR = 31_557_600.0
_USUAL = np.array(
    [
        "0001-01-01", "1000-01-01", "1111-11-11", "1753-01-01", "1800-01-01", "1899-12-30",
        "1899-12-31", "1900-01-01", "1901-01-01", "1970-01-01", "2038-01-19", "2099-12-31",
        "2100-01-01", "2100-12-31", "2262-04-11", "2999-12-31", "3000-01-01", "3000-12-31",
        "4712-12-31",
    ],
    "M8[D]",
)  # fmt: skip


def placeholders(ticks: Ints, rows: Ints, granularity: Granularity) -> Bools:
    """Which different ticks, in their order, stand for an unknown time.

    That is a year 9999, and what is repeated and far from all other times: farther than these are
    from each other, in the far future or at a round date; or not so far, but one that databases and
    people use for it.

    >>> years = np.array([1900, 1994, 2001, 2016, 9999])
    >>> placeholders(years, np.array([1, 1, 1, 1, 5]), "year").tolist()
    [False, False, False, False, True]
    """
    found = np.zeros(len(ticks), bool)
    if granularity == "step" or not len(ticks):
        return found
    years = calendar(ticks, granularity)[:, 0]
    unit = _YEARS.get(granularity, _SECONDS_OF_YEAR)
    usual, first = np.zeros(len(ticks), bool), np.ones(len(ticks), bool)
    if granularity not in ("year", "month"):
        dates = ticks.astype(DATES[granularity]).astype("M8[D]")
        usual, first = np.isin(dates, _USUAL), dates == dates.astype("M8[Y]").astype("M8[D]")
    late, early = usual | (years >= _FUTURE), usual | (first & np.isin(years % 100, (0, 1, 99)))
    times, low, high = ticks / unit, 0, len(ticks) - 1
    while high - low > 0 and (
        years[high] == _NEVER or _is_far(times[low : high + 1], rows[high], late[high], usual[high])
    ):
        found[high], high = True, high - 1
    while _is_far(-times[low : high + 1][::-1], rows[low], early[low], usual[low]):
        found[low], low = True, low + 1
    return found


def _is_far(times: Floats, rows: int, odd: bool, usual: bool) -> bool:
    """Whether the last of some times, in years, stands for no time."""
    if rows < 2 or not odd or len(times) < 3:
        return False
    gap, others = times[-1] - times[-2], times[:-1]
    if gap > max(_FAR, others[-1] - others[0]):
        return True
    return bool(usual and gap >= _APART and gap > _TIMES_USUAL * np.median(np.diff(others)))
