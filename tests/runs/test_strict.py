"""A run restores every parameter of its model, whatever tables the model has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from torch import Tensor, nn

import splime
from splime.analysis.embeddings import export_embeddings
from splime.embedding.models import MODELS
from splime.embedding.models.distmult import DistMult
from splime.errors import DataError
from splime.graph import TemporalGraph
from splime.runs import Interrupted, Run, evaluate
from splime.tensors import load_tensors, save_tensors
from tests.runs.small import StopAfter, small_run

TABLES: dict[str, dict[str, Any]] = {
    **{
        name: {"model": name, "batch_size": 30}
        for name, kind in MODELS.items()
        if kind.cuts == "timestamps"
    },
    "ends": {"model": "telm", "each": "ends", "batch_size": 30},
    "moved": {
        **{"model": "tero", "each": "ends", "unit": "clip", "loss": "margin", "margin": 25.0},
        **{"optimizer": "adagrad", "share": "none", "reciprocal": True, "both_ways": True},
        **{"negatives": 10, "epochs": 4, "batch_size": 30},
    },
    "levels": {"model": "complex", "levels": "predicate,2,1,time,product", "batch_size": 16},
}
"""All models that know time, and several levels: the trainer knows nothing of them."""


class Scaled(DistMult):
    """DistMult with a third parameter, which scales all scores."""

    name = "scaled"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.scale = nn.Parameter(torch.ones(1))

    def compare(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Inner products, scaled."""
        return super().compare(query, candidates) * self.scale


def test_a_third_parameter_is_restored(
    graph: TemporalGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODELS._builtin, "scaled", Scaled)  # type: ignore[attr-defined]
    values: dict[str, Any] = {"model": "scaled", "loss": "bce", "learning_rate": 0.2}
    run = small_run(graph, tmp_path / "run", **values)
    saved = load_tensors(run.path / "model.safetensors")[0]["scale"]
    assert float(saved) != 1.0
    restored = Run(run.path).model
    assert isinstance(restored, Scaled)
    assert torch.equal(restored.scale.detach(), saved)
    tensors, about = load_tensors(run.path / "model.safetensors")
    for wrong, message in (
        ({k: v for k, v in tensors.items() if k != "scale"}, "scale missing"),
        ({**tensors, "bias": torch.zeros(1)}, "the model has no bias"),
    ):
        save_tensors(run.path / "model.safetensors", wrong, about)
        with pytest.raises(DataError, match=message):
            _ = Run(run.path).scorer


@pytest.mark.system
@pytest.mark.parametrize("name", TABLES)
def test_tables_train_resume_evaluate_and_answer(
    name: str, graph: TemporalGraph, tmp_path: Path
) -> None:
    settings = {"epochs": 4, "validate_every": 2, **TABLES[name]}
    cuts = splime.Timestamp()
    whole = small_run(graph, tmp_path / "whole", cuts, **settings)
    with pytest.raises(Interrupted):
        small_run(graph, tmp_path / "stopped", cuts, watch=StopAfter(7), **settings)
    resumed = small_run(graph, tmp_path / "stopped", cuts, **settings)
    files = [(run.path / "model.safetensors").read_bytes() for run in (whole, resumed)]
    assert files[0] == files[1]
    with_ends = whole.settings.each == "ends"
    for protocol in ("fact", "predicate") if with_ends else ("fact", "triple", "predicate"):
        metrics = evaluate(whole, protocol).metrics
        assert 0 < next(iter(metrics.values()))["both"].mrr <= 1
    # The scores are those of the formula over the tables.
    model, settings_of = whole.model, whole.settings
    entities, predicates = model.entities.vectors(), model.predicates.vectors()
    s, p, o = torch.from_numpy(whole.static.train.array()[:5].astype(np.int64)).T
    subjects, objects = entities[s], entities[o]
    if model.time_of is not None:
        subjects, objects = (model.at(each, model.time_of[p]) for each in (subjects, objects))
    own = model.score(subjects, predicates[p], objects)
    if whole.settings.both_ways:
        own = own + model.score(objects, predicates[p + len(predicates) // 2], subjects)
    torch.testing.assert_close(whole.scorer.objects(s, p).gather(1, o[:, None])[:, 0], own)
    assert settings_of.model == TABLES[name]["model"]
    fact = next(graph.rows("test"))
    answers = splime.Query(whole).ask(fact.subject, fact.predicate, "?", at=fact.begin, limit=3)
    assert len(answers) == 3
    assert len(splime.Query(whole).ask(fact.subject, fact.predicate, fact.object, "?")) > 0
    assert splime.smoothness(whole) is not None
    for what in ("entities", "predicates"):
        table = pq.read_table(export_embeddings(whole, tmp_path / f"{what}.parquet", what))
        assert len(set(table["name"].to_pylist())) == len(getattr(model, what))
