"""Many questions, answered a block at a time: tables, and the files that they are written to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from splime.errors import UsageError, nearest
from splime.io.files import atomic_write, check_one_line
from splime.progress import Progress
from splime.query.answers import AnswerOptions, answer
from splime.query.questions import ASKED, Asked
from splime.scoring.queries import Scoring
from splime.scoring.scoping import KINDS, NAMES, Kind
from splime.scoring.scorer import memory_errors
from splime.times import Ints, format_ticks

# Questions at a time: enough to share scores among them, few enough to hold all their answers.
_BLOCK = 4096

_TEXT = pa.large_string()
SCHEMA = pa.schema(
    [
        ("question", pa.int64()),
        *((name, _TEXT) for name in (*NAMES, "begin", "end")),
        ("rank", pa.int64()),
        ("answer", _TEXT),
        ("score", pa.float32()),
        ("probability", pa.float32()),
        *((name, _TEXT) for name in ("scope", "scope_begin", "scope_end", "known", "remark")),
    ]
)
"""A row for each answer: the number of its question from 1, the question, the answer; the remark
says why there is no probability where train lacks what is asked or answered."""


def answer_tables(
    scoring: Scoring,
    asked: Asked,
    options: AnswerOptions,
    temperatures: Mapping[Kind, float | None],
    progress: Progress,
) -> Iterator[pa.Table]:
    """The answers to questions in their order, a table for each block of them."""
    questions = len(asked.facts)
    progress("answering", 0, questions)
    for start in range(0, questions, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, questions))
        tables = [SCHEMA.empty_table()]
        with torch.inference_mode(), memory_errors():
            for number, kind in enumerate(KINDS):
                chosen = rows[asked.kind[rows] == number]
                if len(chosen):
                    tables.append(_table(scoring, kind, chosen, asked, options, temperatures[kind]))
        table = pa.concat_tables(tables)
        yield table.take(pa.array(np.argsort(table["question"].to_numpy(), kind="stable")))
        progress("answering", int(rows[-1]) + 1, questions)


def _table(
    scoring: Scoring,
    kind: Kind,
    rows: Ints,
    asked: Asked,
    options: AnswerOptions,
    temperature: float | None,
) -> pa.Table:
    """The answers to questions of one kind."""
    facts = asked.facts.take(rows)
    answers = answer(scoring, kind, facts, options, temperature)
    best, granularity = answers.best, scoring.graph.timeline.granularity
    questions = facts.take(best.question)
    columns: dict[str, Any] = {"question": rows[best.question] + 1}
    for name in NAMES:
        ids, labels = pa.array(getattr(questions, name)), scoring.names(name).labels
        columns[name] = pa.repeat(ASKED, len(ids)) if name == kind else labels.take(ids)
    for name in ("begin", "end"):
        dates = pa.array(format_ticks(getattr(facts, name), granularity), _TEXT)
        given = pa.nulls(len(dates), _TEXT) if kind == "time" else dates
        columns[name] = given.take(pa.array(best.question))
    reasons = scoring.coverage.reasons(kind, facts)
    of_answers = scoring.coverage.remarks(kind, best.id, questions)
    both = ((reasons[at], remark) for at, remark in zip(best.question, of_answers, strict=True))
    columns |= {
        "rank": best.rank,
        "answer": answers.names,
        "score": best.score,
        "probability": pa.array(best.probability, mask=np.isnan(best.probability)),
        "scope": pc.binary_join(answers.scopes, pa.scalar(", ", _TEXT)),
        "scope_begin": answers.begin,
        "scope_end": answers.end,
        "known": [fact and str(fact) for fact in scoring.known.describe(best.fact)],
        "remark": ["; ".join(filter(None, each)) or None for each in both],
    }
    return pa.table(columns, SCHEMA)


def check_out(path: Path) -> None:
    """An error if answers cannot be written in the format of a file's ending."""
    if path.suffix.lower() not in _WRITERS:
        raise UsageError(
            f"{path}: answers are written as {', '.join(_WRITERS)}.{nearest(path.suffix, _WRITERS)}"
        )


def write_answers(tables: Iterable[pa.Table], path: str | Path) -> int:
    """Write answers to a file (.tsv, .json, .parquet); returns how many there are."""
    path = Path(path)
    check_out(path)
    count = 0

    def counted() -> Iterator[pa.Table]:
        nonlocal count
        for table in tables:
            count += len(table)
            yield table

    with atomic_write(path) as beside:
        _WRITERS[path.suffix.lower()](counted(), beside)
    return count


def _parquet(tables: Iterator[pa.Table], path: Path) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)


def _tsv(tables: Iterator[pa.Table], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(SCHEMA.names) + "\n")
        for table in tables:
            columns = [column.cast(_TEXT) for column in table.columns]
            for column in columns:
                check_one_line(column, "TSV", "write .parquet or .json")
            joined = pc.binary_join_element_wise(
                *columns, pa.scalar("\t", _TEXT), null_handling="replace", null_replacement=""
            )
            file.writelines(f"{line}\n" for line in joined.to_pylist())


def _json(tables: Iterator[pa.Table], path: Path) -> None:
    """A list, an answer in each line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        between = "[\n"
        for table in tables:
            for row in table.to_pylist():
                file.write(between + json.dumps(row, ensure_ascii=False))
                between = ",\n"
        file.write("[]\n" if between == "[\n" else "\n]\n")


_WRITERS: Mapping[str, Callable[[Iterator[pa.Table], Path], None]] = {
    ".tsv": _tsv,
    ".json": _json,
    ".parquet": _parquet,
}
