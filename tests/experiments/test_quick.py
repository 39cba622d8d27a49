"""`python -m experiments … --quick` for real: a training of the paper's, beside the stored one."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.rows import PREDICATES, Results
from tests.experiments.small import call_experiments

STORED = Path(__file__).parents[2] / "experiments" / "results"


@pytest.mark.slow
def test_quick_gives_what_is_stored(
    published: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The stored metrics are a GPU's; the same seed draws other numbers on a CPU."""
    monkeypatch.setenv("SPLIME_DATA", str(published))
    quick = call_experiments("predicates", "--quick", "--results", tmp_path, "--device", "cpu")
    assert quick.code == 0
    assert "Marie Curie" in quick.out
    again, stored = (
        Results(folder / "predicates.json").average(PREDICATES[0].cases, protocol="predicate").mean
        for folder in (tmp_path, STORED)
    )
    assert again["mrr"] == pytest.approx(stored["mrr"], abs=0.02)
    assert again["hits1"] == pytest.approx(stored["hits1"], abs=0.04)
