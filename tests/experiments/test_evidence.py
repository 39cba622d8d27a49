"""Evidence measured: what is stored is what the check gives, and the table shows both sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import evidence
from experiments.running import load_graph
from splime.analysis.faithfulness import check_evidence
from splime.errors import UsageError
from splime.io.files import read_json
from splime.runs.graph_run import GraphRun
from tests.experiments.small import call_experiments

pytestmark = pytest.mark.system


def test_it_is_measured_stored_and_shown(tmp_path: Path) -> None:
    done = call_experiments(
        "evidence", "--measure", "demo", "--questions", "40", "--results", tmp_path / "results"
    )
    assert done.code == 0, done.err
    [(name, record)] = read_json(tmp_path / "results" / evidence.FILE).items()
    assert name == record["dataset"] == "demo"
    assert not record["seen"]  # the weights were not trained on it
    again = check_evidence(GraphRun(load_graph("demo", "point")), questions=40).to_json()
    assert {key: record[key] for key in again} == again
    [table] = evidence.tables(tmp_path / "results")
    [row] = table.rows
    assert row[:2] == ("demo", f"{record['questions']:,}")
    assert row[3].startswith(f"{record['evidence']['fall']:.2f} (")
    assert "demo" in done.out


def test_public_datasets_were_seen() -> None:
    """The shipped weights had parts of them; the table must not be read as what they reach."""
    stored = read_json(Path(evidence.__file__).with_name("results") / evidence.FILE)
    assert {record["dataset"]: record["seen"] for record in stored.values()} == {
        "demo": False,
        "yago11k": True,
        "wikidata12k": True,
        "icews14": True,
    }
    for record in stored.values():
        assert record["questions"] + record["without"] == record["asked"] <= record["of"]


def test_what_cannot_be_asked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="from 1 on"):
        evidence.measure("demo", 0)
    done = call_experiments("evidence", "--measure", "nowhere", "--results", tmp_path)
    assert done.code != 0
    assert "nowhere" in done.err
    assert not (tmp_path / evidence.FILE).exists()


def test_a_fall_of_nothing_has_no_sign(tmp_path: Path) -> None:
    record = evidence.measure("demo", 2)
    record["others"]["fall"] = -0.001
    evidence.store(tmp_path, record)
    [table] = evidence.tables(tmp_path)
    assert table.rows[0][3].endswith("(0.00)")
    assert evidence.tables(tmp_path / "nothing")[0].rows == []
