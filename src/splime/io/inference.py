"""Which column of a table is what, where the names of the columns do not say it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from splime.errors import DataError, option
from splime.io.contents import COUNTED, Contents, words_of
from splime.io.layout import (
    NAMES,
    OTHER_OBJECT,
    TIMES,
    WILDCARD,
    Layout,
    by_name,
    named_otherwise,
    roles_of,
    times_of,
    with_parts,
)
from splime.io.notations import MARK, ORDERS, ways_of
from splime.io.options import ReadOptions

_LISTED = 10
_SPARSE = 0.5  # a name that fewer rows have is a note
# A column is the predicate if it has so many fewer different values than the next one.
_CLEARLY = 2 / 3
# In the usual place, with a name like that of a predicate, or with values that are no proper names.
_MIDDLE, _HINTED, _COMMON = 0.75, 0.5, 0.5
_HINTS = re.compile(
    r"type|kind|role|action|event|status|verb|link|position|title|capacity|measure|decision|relation"
    r"|result|outcome|reason|rank|grade|deal|move|fun[ck]tion|fonction|funzione|función|r[oô]l[el]|ruolo|cargo|amt$",
    re.IGNORECASE,
)
_SURE = re.compile(r"(?i)^(?:pred|rel)")
_UNITS = re.compile(r"(second|minute|hour|day|week|month|quarter|year)s?|duration|length", re.I)
# Times of the row in the table, and those of a thing itself, which are no times of a fact.
_OF_ROWS = re.compile(
    r"\b(updated?|modified|edited|changed|change|retrieved|scraped|crawled|fetched|synced|snapshot|checked|verified)\b"
)
_OF_THINGS = re.compile(r"\b(birth\w*|born|dob|b|geb\w*|naissance|nacimiento|nascita)\b")
_DEATH = re.compile(r"\b(death\w*|died|deceased|dod|d|gest\w*|mort|tod\w*)\b")
_ENTERED = re.compile(r"\b(created?|creation|inserted|recorded|entered)\b")
_LATEST = 2100  # a number beyond is no year where others are


def find_layout(
    contents: Contents, options: ReadOptions, where: str
) -> tuple[Layout, tuple[str, ...]]:
    """Which columns are what, as chosen, by their names or by what they hold; and remarks.

    Where the columns leave more than one reading, the error has each as an option to copy.
    """
    contents = replace(contents, ways=ways_of(options.time_format))
    names, one_predicate = contents.names, options.predicate_name is not None
    if options.columns is not None:
        layout = by_name(names, options.columns, where, one_predicate=one_predicate)
        return layout, tuple(_dates_as_names(contents, layout))
    contents = contents.together()
    first = {other: at for at, others in contents.parts.items() for other in others}
    roles = {role: first.get(at, at) for role, at in roles_of(names).items()}
    if one_predicate:
        roles.pop("predicate", None)
    wanted = [name for name in NAMES if not (one_predicate and name == "predicate")]
    times = times_of(roles)
    if {*wanted, *times} <= roles.keys() and not options.since:
        chosen = [*wanted, *times, *(["split"] if "split" in roles else [])]
        layout = {role: roles[role] for role in chosen}
        remarks = named_otherwise(names, layout)
    else:
        layout, remarks = _by_contents(contents, roles, wanted, options, where)
    wholes = {role: (at, *contents.parts.get(at, ())) for role, at in layout.items()}
    layout = with_parts(layout, wholes)
    remarks += [
        f"{', '.join(repr(names[one]) for one in (at, *others))} are read as one column"
        for at, others in contents.parts.items()
        if at in layout.values()
    ]
    unused = (name for at, name in enumerate(names) if at not in layout.values())
    return layout, (*remarks, *left_out(unused))


def _by_contents(
    contents: Contents,
    roles: dict[str, int],
    wanted: Sequence[str],
    options: ReadOptions,
    where: str,
) -> tuple[dict[str, int], list[str]]:
    names, dated = contents.names, contents.of_kind("time")
    for pair in (("begin", "end"), ("time",)):  # "from" and "to" may be places
        called = {role: roles[role] for role in pair if role in roles}
        if dated and called and not {*dated} & {*called.values()}:
            roles = {role: at for role, at in roles.items() if role not in called}
    alone = [role for role in NAMES if role in roles]
    if len(alone) == 1 and not _SURE.search(names[roles[alone[0]]]):
        roles = {role: at for role, at in roles.items() if role not in alone}  # another `source`
    times = _times(contents, roles, wanted, options, where)
    taken = {*times.values(), *(roles[role] for role in (*wanted, "split") if role in roles)}
    missing = [role for role in wanted if role not in roles]
    free = _names(contents, missing, taken)
    named = {role: roles[role] for role in wanted if role in roles}
    readings = _readings(contents, named, missing, free)
    if len(free) != len(missing) or ("predicate" in missing and not _is_clear(contents, readings)):
        raise _unclear(contents, where, named, missing, [[*times.values()]])
    named = dict(zip(wanted, readings[0], strict=True))
    layout = {role: named[role] for role in wanted} | times
    if "split" in roles:
        layout["split"] = roles["split"]
    said = ", ".join(f"{contents.called(at)!r:.60} is the {role}" for role, at in layout.items())
    others = option("columns", "A,B,…")
    return layout, [f"by what the columns hold: {said}; {others} chooses others"]


def left_out(names: Iterable[str]) -> list[str]:
    """A remark about columns that are not used, or none."""
    listed = [name[:60] if name.isprintable() else f"{name!r:.60}" for name in names]
    more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return [f"columns that are not used: {', '.join(listed[:_LISTED])}{more}"] if listed else []


def _times(
    contents: Contents,
    roles: dict[str, int],
    wanted: Sequence[str],
    options: ReadOptions,
    where: str,
) -> dict[str, int]:
    """The columns of times, by their names or as the columns that hold times."""
    named = {role: roles[role] for role in TIMES if role in roles}
    if {"begin", "end"} <= named.keys():
        return {role: named[role] for role in ("begin", "end")}
    taken = [at for role, at in roles.items() if role not in TIMES]
    columns = [at for at in contents.of_kind("time") if at not in taken]
    columns = _likely_times(contents, columns)
    columns = sorted({*columns, *named.values()})
    lengths = [at for at in contents.of_kind("number", "row number") if at not in taken]
    if options.duration is not None and len(columns) == 1:
        spoken = [at for at in lengths if _UNITS.fullmatch(contents.names[at])] or lengths
        if len(spoken) == 1:
            return {"begin": columns[0], "end": spoken[0]}
    if len(columns) == 2 and "time" not in named:
        return _in_order(contents, named, *columns)
    if len(columns) == 1:
        is_begin = options.since or "begin" in named
        if is_begin and not options.since:
            _check_length(contents, columns[0], lengths, where)
        return {"begin" if is_begin else "time": columns[0]}
    if columns:
        known = {role: roles[role] for role in NAMES if role in roles}
        pairs = [
            [*_in_order(contents, {}, *pair).values()]
            for pair in itertools.combinations(columns, 2)
        ]
        missing = [role for role in wanted if role not in known]
        alone = [[named["time"]]] if "time" in named else []
        raise _unclear(contents, where, known, missing, [*alone, *pairs])
    raise _no_time(contents, where, roles, wanted)


def _likely_times(contents: Contents, columns: Sequence[int]) -> list[int]:
    """Of the columns that may hold times, those that are the likeliest to hold the times of facts.

    Before bare numbers that may be years, these are dates.
    """
    names = [words_of(name) for name in contents.names]
    dead = any(_DEATH.search(names[at]) for at in columns)

    def likelihood(at: int) -> int:
        cells = [text for cell in contents.cells[at] if (text := cell.strip())]
        numbers = [int(text) for text in cells if text.isdecimal()]
        if _OF_ROWS.search(names[at]) or (_OF_THINGS.search(names[at]) and not dead):
            return 1
        if 2 * len(numbers) <= len(cells):
            return 3
        return 2 if 2 * sum(number <= _LATEST for number in numbers) > len(numbers) else 0

    ranks = {at: likelihood(at) for at in columns}
    best = [at for at in columns if ranks[at] == max(ranks.values())]
    others = [at for at in best if not _ENTERED.search(names[at])]
    return others if len(best) > 2 and others else best


def _no_time(
    contents: Contents, where: str, roles: Mapping[str, int], wanted: Sequence[str]
) -> DataError:
    """What to say where no column holds times; one of texts with digits may be it."""
    columns = _listed(contents, range(len(contents.names)))
    said = f"{where}: the columns leave open which is the time; they are {columns}"
    likely = [at for at in contents.of_kind("name", "text") if _has_digits(contents.cells[at])]
    known = {role: roles[role] for role in wanted if role in roles}
    missing = [role for role in wanted if role not in known]
    for when in [likely[:2], *([at] for at in likely)] if likely else []:
        free = _names(contents, missing, {*known.values(), *when})
        for reading in _readings(contents, known, missing, free)[:1]:
            example = next(text for cell in contents.cells[when[0]] if (text := cell.strip()))
            return DataError(
                f"{said}. If times are such as {example!r:.60}, put how they are written, as"
                f" strptime has it, in the place of FORMAT:\n  {contents.line([*reading, *when])}"
                f" {option('time_format', 'FORMAT')}"
            )
    return DataError(f"{said}. None of them holds times in a way that is known")


def _has_digits(cells: Sequence[str]) -> bool:
    """Whether most cells have two digits or more in a row."""
    given = [cell for cell in cells if cell.strip()]
    return 2 * sum(bool(re.search("[0-9]{2}", cell)) for cell in given) > len(given)


def _in_order(
    contents: Contents, named: Mapping[str, int], first: int, second: int
) -> dict[str, int]:
    """Which of two columns of times is the begin: by its name, or as the earlier one."""
    if "begin" in named or "end" in named:
        swapped = named.get("begin") == second or named.get("end") == first
    else:
        swapped = _is_later(contents, first, second)
    return {"begin": second, "end": first} if swapped else {"begin": first, "end": second}


def _check_length(contents: Contents, begin: int, lengths: Sequence[int], where: str) -> None:
    """An error where a begin stands alone, and a column beside it has the name of a unit."""
    for name in (contents.names[at] for at in lengths if _UNITS.fullmatch(contents.names[at])):
        unit = name.lower() if name.lower() not in ("duration", "length") else "days"
        raise DataError(
            f"{where}: {contents.names[begin]!r} is a begin, and there is no end; if {name!r} is"
            f" how long the fact holds: {option('duration', unit)}; {option('since')} lets facts"
            " hold on"
        )


def _is_later(contents: Contents, one: int, other: int) -> bool:
    """Whether the times of a column are mostly later than those of another."""

    ways = [*(way.iso for way in contents.ways), *(order.iso for order in ORDERS)]

    def place(cell: str) -> tuple[int, str] | None:
        text = re.sub(MARK, "", cell.strip())
        iso = next((found for way in ways if (found := way(text))), text)
        year = re.match("[+-]?[0-9]{1,4}", iso)
        return (int(year[0]), iso) if year and int(year[0]) else None

    cells = zip(contents.cells[one], contents.cells[other], strict=True)
    pairs = [(first, second) for a, b in cells if (first := place(a)) and (second := place(b))]
    return sum((first > second) - (first < second) for first, second in pairs) > 0


def _names(contents: Contents, missing: Sequence[str], taken: Iterable[int]) -> list[int]:
    """The columns that can be names: numbers only as ids of things where texts are too few."""
    all_texts, numbers = (
        [at for at in contents.of_kind(kind) if at not in taken] for kind in ("name", "number")
    )
    texts = [at for at in all_texts if contents.filled(at) >= _SPARSE]
    ids = [at for at in numbers if _is_repeated_id(contents, at)] if texts else []
    texts = _without_doubles(contents, sorted([*texts, *ids]))
    things = [role for role in missing if role != "predicate"]
    if not texts or len(texts) < len(things):
        return sorted({*all_texts, *numbers})
    return _without_spare(contents, texts, len(missing))


def _without_spare(contents: Contents, columns: list[int], count: int) -> list[int]:
    """The columns without some that say nothing, as long as there are more than are needed.

    These have one value that is no verb; or say once more what another column says.
    """
    said = [at for at in columns if len(contents.values(at)) > 1 or _is_common(contents, at)]
    columns = said if len(said) >= count else columns
    new = [at for at in columns if not any(_repeats(contents, at, o) for o in columns if o < at)]
    return new if len(new) >= count else columns


def _repeats(contents: Contents, at: int, other: int) -> bool:
    """Whether each value of a column goes with one of another, and the reverse, more than once."""
    values = len(contents.values(at))
    pairs = {*zip(contents.cells[at], contents.cells[other], strict=True)}
    return len(pairs) == values == len(contents.values(other)) < len(contents.cells[at])


def _is_repeated_id(contents: Contents, at: int) -> bool:
    """Whether numbers are ids of things, of which some are in several rows."""
    is_id = re.search("(?i)(?:[ _.-]|[a-z](?=I))id$", contents.names[at])
    return is_id is not None and len(contents.values(at)) < len(contents.cells[at])


def _without_doubles(contents: Contents, columns: Sequence[int]) -> list[int]:
    """Columns of names without those of their ids; the ids instead where several share a name.

    >>> rows = [["7", "Ann"], ["8", "Ann"], ["7", "Ann"]]
    >>> _without_doubles(Contents.of_rows(["person_id", "person_name"], rows), [1])
    [0]
    """
    chosen = {*columns}
    stems = [
        re.sub(r"(?i)[ _.-]*(?:id|no|nr|number|code|key|sku)\.?$", "", n) for n in contents.names
    ]
    for at in columns:
        name = contents.names[at]
        stem = re.sub("(?i)[ _.-]*(?:name|title|label)$", "", name)
        ids = [
            one
            for one, other in enumerate(stems)
            if one != at and other == stem and {name, contents.names[one]} != {stem}
        ]
        for one in ids:
            pairs = {*zip(contents.cells[one], contents.cells[at], strict=True)}
            if len(contents.values(one)) == len(pairs) < len(contents.cells[at]):
                alone = len(pairs) == len(contents.values(at))
                chosen = (chosen | {one, at}) - {one if alone else at}
    return sorted(chosen)


def _is_clear(contents: Contents, readings: Sequence[Sequence[int]]) -> bool:
    """Whether the predicate of the first reading can be one, and has clearly the fewest values."""
    columns, predicate = readings[0], readings[0][1]
    rows, values = len(contents.cells[predicate]), len(contents.values(predicate))
    if values > 1 and not _may_be_verbs(contents, predicate):
        return False
    most = rows - 1 if _is_common(contents, predicate) else rows / 2
    if rows < 2 or (values > 1 and values > most) or not _may_link(contents, columns, predicate):
        return False
    lightest = _weight(contents, columns, predicate)
    others = {reading[1] for reading in readings[1:]} - {predicate}
    return all(
        lightest <= _CLEARLY * _weight(contents, columns, at)
        for at in others
        if _may_link(contents, columns, at)
    )


def _may_be_verbs(contents: Contents, at: int) -> bool:
    """Whether the values of a column are no proper names, as of cities, or its name says so."""
    return _is_common(contents, at) or bool(_HINTS.search(contents.names[at]))


def _may_link(contents: Contents, columns: Sequence[int], at: int) -> bool:
    return not any(contents.are_alike(at, other) for other in columns if other != at)


def _weight(contents: Contents, columns: Sequence[int], at: int) -> float:
    name = contents.names[at].strip()  # some columns are called as one of their values is
    hinted = _HINTED if _HINTS.search(name) or name in contents.values(at) else 1
    middle = _MIDDLE if len(columns) > 2 and at == sorted(columns)[1] else 1
    common = _COMMON if _is_common(contents, at) else 1
    return len(contents.values(at)) * hinted * middle * common


def _is_common(contents: Contents, at: int) -> bool:
    """Whether most values of a column begin with a small letter, so are no proper names."""
    values = contents.values(at)
    small = [text for text in values if text[0].isalpha() and not text[0].isupper()]
    return 2 * len(small) > len(values)


def _readings(
    contents: Contents, named: Mapping[str, int], missing: Sequence[str], free: Sequence[int]
) -> list[list[int]]:
    """What the roles of names may be, where some are missing; the likeliest first."""
    wanted = [role for role in NAMES if role in named or role in missing]
    rows = max(1, len(contents.cells[0]))

    def doubt(reading: Mapping[str, int]) -> float:
        columns, things = [*reading.values()], [reading["subject"], reading["object"]]
        sum_of = 0.02 * sum(columns) - contents.are_alike(*things)
        for at in things:
            values = len(contents.values(at))
            is_key = values == rows > 1 and COUNTED.search(words_of(contents.names[at]))
            sum_of += (values < 2) + 0.25 * bool(is_key) - 0.2 * values / rows
        if (predicate := reading.get("predicate")) is not None:
            sum_of += 2 * (not _may_link(contents, columns, predicate))
            sum_of += _weight(contents, columns, predicate) / rows
        return sum_of

    found = []
    for chosen in itertools.combinations(free, len(missing)):
        for predicate in chosen if "predicate" in missing else [None]:
            rest = iter(at for at in chosen if at != predicate)
            of_role = named if predicate is None else {**named, "predicate": predicate}
            found.append({r: of_role[r] if r in of_role else next(rest) for r in wanted})
    return [[*reading.values()] for reading in sorted(found, key=doubt)]


def _unclear(
    contents: Contents,
    where: str,
    named: Mapping[str, int],
    missing: Sequence[str],
    times: Sequence[Sequence[int]],
) -> DataError:
    """What to say of columns that leave no reading, or more than one; `times` are those to try."""
    at_times = {at for when in times for at in when}
    free = _names(contents, missing, {*named.values(), *at_times})
    names = _listed(contents, [*named.values(), *free]) or "none"
    things = [role for role in missing if role != "predicate"]
    whole = _readings(contents, named, missing, free)
    choices: list[tuple[list[int | str], str]] = [
        ([*reading], "") for reading in whole[: 2 if len(times) == 1 else 1]
    ]
    star = ""
    if "predicate" in missing:
        one = f" {option('predicate_name', 'worksFor')}"
        first = len(choices) if whole and _may_be_verbs(contents, whole[0][1]) else 0
        for pair in _readings(contents, named, things, free)[:1]:
            choices.insert(first, ([*pair], one))
        if len(free) > len(missing):
            choices.append(([named.get("subject", free[0]), WILDCARD], ""))
            star = f" With {WILDCARD}, each other column is a predicate."
    if not choices:
        return DataError(
            f"{where}: a fact needs a subject, an object and a time, and these columns could be"
            f" names: {names}"
        )
    unsaid = f"is the {' and the '.join(missing)}" if len(times) == 1 else "are the times"
    lines = [
        f"  {contents.line([*reading, *when])}{more}"
        for when in times
        for reading, more in choices[: 4 if len(times) == 1 else 1]
    ]
    return DataError(
        f"{where}: the columns leave open which {unsaid}; choose, by name or number from 1:\n"
        + "\n".join(lines)
        + f"\nNames could be {names}; times {_listed(contents, [*at_times]) or 'none'}.{star}"
    )


def _listed(contents: Contents, columns: Sequence[int]) -> str:
    names = [contents.called(at) for at in sorted(columns)]
    shown = [name[:40] if name.isprintable() else f"{name!r:.40}" for name in names[:12]]
    return ", ".join(shown) + (" …" if len(names) > 12 else "")


def _dates_as_names(contents: Contents, layout: Layout) -> list[str]:
    """A remark where a column that was chosen for names holds times."""
    wrong = [role for role in NAMES if role in layout and contents.kinds[layout[role]] == "time"]
    return [
        f"the {role}s, {contents.names[layout[role]]!r:.60}, look like times; begin and end take"
        f" five columns, or four with {option('predicate_name', 'NAME')}"
        for role in wrong
        if not role.startswith(OTHER_OBJECT)
    ]
