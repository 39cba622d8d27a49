"""The first broken files of `python -m tests.fuzz.formats`, and its table in the document."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import formats

DOCS = Path(__file__).parents[2] / "docs" / "reading.md"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_first_files() -> None:
    counts, failures = formats.try_some(range(500))
    assert counts.total() == 500
    assert not failures


def test_the_document_has_the_table() -> None:
    assert formats.table() in DOCS.read_text(encoding="utf-8")
