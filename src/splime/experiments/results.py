"""What was run: a file for each table, with a record for each case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from splime.errors import DataError, UsageError
from splime.experiments.case import Case
from splime.io.files import read_json, write_json


class Results:
    """The records of a table, in a JSON file that is written again after every case."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.parent.exists() and not path.parent.is_dir():
            raise UsageError(f"{path.parent}: results are kept in a folder, and this is a file")
        self._records: dict[str, Any] = read_json(path) if path.exists() else {}
        for key, record in self._records.items():
            if not isinstance(record, dict) or not {"case", "figures"} <= set(record):
                raise DataError(f"{path}: the record {key!r} has no case or no figures")

    def __contains__(self, case: Case) -> bool:
        return case.key() in self._records

    def __getitem__(self, case: Case) -> Mapping[str, Any]:
        record: Mapping[str, Any] = self._records[case.key()]
        return record

    def __len__(self) -> int:
        return len(self._records)

    def keys(self) -> Iterable[str]:
        """The keys of what was run."""
        return self._records.keys()

    def missing(self, cases: Iterable[Case]) -> list[Case]:
        """The cases that were not run yet, each once, in their order."""
        return list({case.key(): case for case in cases if case not in self}.values())

    def add(self, case: Case, record: Mapping[str, Any]) -> None:
        """Remember what a case gave."""
        self._records[case.key()] = {
            "command": f"splime reproduce {self.path.stem} --run",
            "case": case.to_json(),
            **record,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, dict(sorted(self._records.items())))
