"""The first cases of `python -m tests.fuzz.hostile`, and its last result in the document."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import hostile


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaign") / "base"
    folder.mkdir()
    hostile.make_base(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("attack", [hostile.broken_file, hostile.flipped_bit, hostile.strange_file])
def test_the_first_cases(base: Path, tmp_path: Path, attack: Any) -> None:
    for number in range(30):
        here = tmp_path / str(number)
        here.mkdir()
        case = attack(base, here, random.Random(number))
        assert case.way not in hostile.FAILURES, case


def test_the_document_has_the_last_result() -> None:
    if not hostile.RESULTS.exists():
        pytest.skip("the campaign was not run")
    counts = json.loads(hostile.RESULTS.read_text(encoding="utf-8"))["counts"]
    text = hostile.DOCS.read_text(encoding="utf-8")
    shown = text.partition(hostile.MARKS[0])[2].partition(hostile.MARKS[1])[0]
    assert shown.strip() == hostile.table(counts)
