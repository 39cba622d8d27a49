"""How to read facts: the options of `splime.read`, of the command line and of plans, said once."""

# ruff: noqa: RUF009 - what `_option` gives is a field

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from splime.errors import UsageError, check_fields, check_name
from splime.io.layout import check_columns
from splime.io.notations import strptime_notation
from splime.splitting import HowToSplit
from splime.times import Granularity, When

EndBeforeBegin: TypeAlias = Literal["drop", "swap", "repair", "error"]
Duration: TypeAlias = Literal[
    "years", "months", "weeks", "days", "hours", "minutes", "seconds",
    "year", "month", "week", "day", "hour", "minute", "second",
]  # fmt: skip
WithoutTime: TypeAlias = Literal["drop", "always", "unknown"]

OWN_END, OWN_BEGIN = "end", "begin"
"""What `first` and `last` may be other than a time: the other end of the fact itself."""

SPLITTING = ("split", "valid", "test", "seed", "allow_unseen")
_OF_GRAPHS = ("name", "bucket", "bucket_on")
"""What can be chosen for a graph that splime saved."""


_OF_SOURCES = {
    "query": "databases",
    "table": "spreadsheets and JSON",
    "encoding": "text",
}
"""What can be chosen only for some kinds of sources."""


def _option(help: str, *, default: Any = None, **more: str | bool) -> Any:
    return field(default=default, metadata={"help": help, **more})


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How to read facts; None is an option that was not chosen.

    The command line is made from the fields: `flag` is their name there, `metavar` what they take.

    >>> ReadOptions.of({"bucket": 300}).bucket
    300
    >>> ReadOptions.of({"buckt": 300})
    Traceback (most recent call last):
    splime.errors.UsageError: there is no reading option 'buckt'; ... Did you mean bucket...
    """

    columns: Sequence[str] | None = _option(
        "subject, predicate, object and time (or begin, end), by name or by number from 1;"
        " SUBJECT,*,TIME makes each other column a predicate, FIRST+LAST one of two. Default: by"
        " their names and what they hold; without names, in this order",
        metavar="A,B,…",
    )
    predicate_name: str | None = _option(
        "the predicate of all rows, where no column has it; columns are then subject, object, time"
        " or subject, object, begin, end",
        metavar="NAME",
    )
    header: bool | None = _option(
        "whether the first line of text files is a header. Inferred by default"
    )
    query: str | None = _option(
        "what to ask of a database: a select whose columns are those of facts", metavar="SQL"
    )
    table: str | None = _option(
        "which table of a file that holds several: the sheet of a spreadsheet, or the list of"
        " objects in JSON, by its path (data.items). Default: the first sheet with a table, or the"
        " one list",
        metavar="NAME",
    )
    encoding: str | None = _option(
        "how text is encoded, such as windows-1250. Inferred by default: UTF-8, UTF-16 or"
        " Windows-1252 (Latin-1)",
        metavar="NAME",
    )
    entities: str | Path | None = _option(
        "dictionary file of entity ids, where facts are written with ids",
        flag="entity_ids",
        metavar="FILE",
    )
    predicates: str | Path | None = _option(
        "dictionary file of predicate ids", flag="predicate_ids", metavar="FILE"
    )
    times: str | Path | None = _option(
        "dictionary file of time ids, which gives a date for each", flag="time_ids", metavar="FILE"
    )
    granularity: Granularity | None = _option(
        "the unit of time. Inferred by default. With origin: the unit of the numbers"
    )
    origin: When | None = _option(
        "the time of the number 0, where times are numbers of hours, days, …", metavar="TIME"
    )
    time_format: str | None = _option(
        "how times are written, as strptime has it, such as '%d/%m/%Y'; what is written otherwise"
        " is unreadable. Inferred by default",
        metavar="FORMAT",
    )
    since: bool | None = _option(
        "whether the one column of times holds begins, of facts without a known end. Default: if it"
        " is called since"
    )
    duration: Duration | None = _option(
        "the unit of lengths that stand in the place of ends: the end is the begin and so many of"
        " them"
    )
    first: When | None = _option(
        "what an unknown begin becomes: a time, or end for the end of the fact. Default: the first"
        " time of the facts",
        metavar="TIME",
    )
    last: When | None = _option(
        "what an unknown end becomes: a time, or begin for the begin of the fact. Default: the last"
        " time of the facts",
        metavar="TIME",
    )
    unknown_time: str | int | Sequence[str | int] | None = _option(
        "texts that stand for an unknown time, such as 0, -1 or 9999, beside an empty cell and"
        " ####-##-##; on the command line once for each. Default: far values such as 9999-12-31"
        " that are repeated, and 0000-00-00; an empty text is none of them",
        metavar="TEXT",
        many=True,
    )
    missing_name: str | None = _option(
        "what an empty or missing name is called, such as unknown. Default: such rows are dropped",
        metavar="NAME",
    )
    without_time: WithoutTime | None = _option(
        "what to do with facts without a time: drop them, let them hold always (from the first to"
        " the last time), or keep them with an unknown begin and end. Default: unknown, and drop"
        " for events"
    )
    end_before_begin: EndBeforeBegin | None = _option(
        "what to do with facts that end before they begin; repair drops those of train and swaps"
        " those of valid and test, so that train stays clean and no test fact is lost. Default:"
        " drop"
    )
    keep_duplicates: bool | None = _option("keep facts that are repeated with the same time")
    allow_loss: bool | None = _option(
        "read the rest where more than half of the rows of a file, or all of a split, are"
        " dropped. Default: that is an error"
    )
    split: HowToSplit | None = _option(
        "how to split facts without splits; none puts all into train; time also splits again those"
        " with splits. Default: random"
    )
    valid: float | None = _option("share of valid in such a split. Default: 0.1")
    test: float | None = _option("share of test in such a split. Default: 0.1")
    seed: int | None = _option("seed of a random split. Default: 0", flag="split_seed")
    allow_unseen: bool | None = _option(
        "allow entities and predicates in valid and test that are not in train"
    )
    bucket: int | None = _option(
        "merge timestamps until each holds this many facts (the paper uses 300)", metavar="FACTS"
    )
    bucket_on: Literal["train", "all"] | None = _option(
        "whose facts decide the buckets. Default: all, as in the paper"
    )
    name: str = _option("what the graph is called", default="")

    def __post_init__(self) -> None:
        one_predicate = self.predicate_name is not None
        columns = check_columns(self.columns, one_predicate=one_predicate)
        object.__setattr__(self, "columns", columns)
        check_fields(self)
        if one_predicate and not (self.predicate_name or "").strip():
            raise UsageError("predicate_name must be a name, and is empty")
        if self.time_format is not None:
            strptime_notation(self.time_format)  # raises an error if it is none
            if self.origin is not None:
                raise UsageError("origin is for times that are numbers, time_format for dates")
        if self.encoding is not None:
            _check_encoding(self.encoding)
        if self.seed is not None and self.seed < 0:
            raise UsageError(f"seed must be 0 or more, not {self.seed}")
        if self.origin is not None and self.granularity in (None, "step"):
            raise UsageError(
                "origin is the time of the number 0; granularity must give the unit of the"
                " numbers: year, month, day, hour, minute or second"
            )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ReadOptions:
        """Options from names and values; an unknown name is an error that suggests the nearest."""
        for name in values:
            check_name("reading option", name, [one.name for one in fields(cls)])
        return cls(**values)

    def chosen(self, *names: str) -> dict[str, Any]:
        """Those of some options that were chosen."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def check_effect(self, source: object, *, saved: bool, has_splits: bool) -> None:
        """Raise UsageError if options are chosen that would have no effect on a source."""
        own_splits = "it has splits; splime.split_graph makes other ones"
        anew = self.split == "time" and not saved
        settled = [one.name for one in fields(self) if one.name not in (*SPLITTING, *_OF_GRAPHS)]
        for applies, names, why in (
            ((saved or has_splits) and not anew, SPLITTING, own_splits),
            (saved, settled, "it is a saved graph, in which that is settled"),
        ):
            if applies and (given := self.chosen(*names)):
                raise UsageError(f"{source}: {', '.join(given)} cannot be chosen: {why}")
        if self.bucket_on is not None and self.bucket is None:
            raise UsageError(
                "bucket_on says whose facts decide the buckets; it needs bucket, how many facts"
                " each holds (the paper uses 300)"
            )

    def check_taken(self, source: object, taken: Sequence[str]) -> None:
        """Raise UsageError if an option is chosen that a source of this kind has no use for."""
        for name, what in _OF_SOURCES.items():
            if name not in taken and getattr(self, name) is not None:
                raise UsageError(f"{source}: leave out {name} (--{name}), which is for {what}")

    def for_triples(self, triples: bool) -> ReadOptions:
        """The same for a folder of triples, which are read as facts: equal ones are no mistake."""
        return replace(self, keep_duplicates=True) if triples else self

    @classmethod
    def described(cls) -> str:
        """All options and what they mean, as lines of a docstring."""
        return "\n".join(f"        {one.name}: {one.metadata['help']}." for one in fields(cls))


def _check_encoding(name: str) -> None:
    try:
        "a".encode(name).decode(name)  # some codecs are not of text
    except (LookupError, ValueError, TypeError):
        raise UsageError(
            f"there is no encoding {name!r}; some are utf-8, utf-16, windows-1250, windows-1251,"
            " windows-1252, latin-1, iso-8859-2, mac-roman, shift_jis and gb18030"
        ) from None
