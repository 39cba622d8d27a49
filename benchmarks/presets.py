"""How the presets called `strong` were chosen: settings tried on valid, never on test.

    python benchmarks/presets.py FOLDER

FOLDER has NAME.parquet for each dataset, saved from
`splime.load(NAME, end_before_begin="repair", bucket_on="train")` (icews14 without buckets). Every
training validates by protocol `fact`, keeps its best epoch, and stops early after three validations
without a better MRR. All of it takes about ten minutes on one H200.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import splime
from record import write_results
from splime.device import choose_device, matrix_precision
from splime.embedding.making import make_model
from splime.embedding.scorer import ModelScorer
from splime.evaluation import evaluate_facts
from splime.graph import TemporalGraph
from splime.static import StaticGraph
from splime.training.registry import make_settings
from splime.training.trainer import Trainer

RESULTS = Path(__file__).parent / "results"
CUTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "wikidata split": ("wikidata12k", "split", {"by": "time", "grow": 10.0}),
    "wikidata timestamp": ("wikidata12k", "timestamp", {}),
    "yago split": ("yago11k", "split", {"by": "time", "grow": 20.0}),
    "icews timestamp": ("icews14", "timestamp", {}),
}
# An epoch over all triples; `each="fact"` in `strong` was chosen later (each.json).
_BOTH: dict[str, Any] = {"dimension": 200, "smooth": 0.01, "each": "triple"}
BASE: dict[str, dict[str, Any]] = {
    "products": {**_BOTH, "validate_every": 10, "epochs": 60},
    "distances": {**_BOTH, "validate_every": 20, "epochs": 200},
}


def tries() -> Iterator[tuple[str, dict[str, Any]]]:
    """What was tried: the cuts, and the settings."""
    products, distances = BASE["products"], BASE["distances"]
    for n3 in (0.001, 0.01, 0.1):
        for smooth in (0.0, 0.01, 1.0):
            yield "wikidata split", {"model": "complex", **products, "n3": n3, "smooth": smooth}
        for model in ("distmult", "cp", "simple"):
            yield "wikidata split", {"model": model, **products, "n3": n3}
    for model, n3 in (("simple", 0.03), ("cp", 0.03), ("distmult", 0.05)):
        yield "wikidata split", {"model": model, **products, "n3": n3, "smooth": 0.0}
    for smooth in (0.0, 0.001, 0.01, 0.1):
        settings = {"model": "complex", **products, "n3": 0.1, "smooth": smooth, "epochs": 30}
        yield "wikidata timestamp", settings
    for n3, smooth in ((0.01, 0.0), (0.1, 0.0), (0.03, 0.01)):
        settings = {"model": "complex", **products, "n3": n3, "smooth": smooth, "epochs": 30}
        yield "yago split", settings
    for n3, smooth in (
        (0.01, 0.0),
        (0.01, 0.01),
        (0.01, 0.1),
        (0.01, 1.0),
        (0.1, 0.01),
        (0.03, 0.1),
    ):
        yield "icews timestamp", {"model": "complex", **products, "n3": n3, "smooth": smooth}
    for model, n3 in (("simple", 0.01), ("cp", 0.01), ("distmult", 0.05)):
        yield "icews timestamp", {"model": model, **products, "n3": n3, "smooth": 0.1}
    margins = {
        "transe": (3.0, 6.0, 12.0),
        "transh": (1.0, 3.0, 6.0),
        "rotate": (3.0, 6.0, 12.0, 24.0),
    }
    for model, all_margins in margins.items():
        for margin in all_margins:
            yield "wikidata split", {"model": model, **distances, "margin": margin, "smooth": 0.0}
    for margin in (3.0, 6.0):
        settings = {"model": "transe", **distances, "margin": margin, "learning_rate": 0.003}
        yield "wikidata split", settings
    for smooth in (0.0, 0.01, 0.1):
        yield "icews timestamp", {"model": "transe", **distances, "smooth": smooth, "epochs": 100}
    for smooth in (0.01, 0.1):
        yield "icews timestamp", {"model": "rotate", **distances, "smooth": smooth, "epochs": 100}
    yield "icews timestamp", {"model": "transh", **distances, "margin": 1.0, "epochs": 100}


def train(graph: TemporalGraph, static: StaticGraph, given: dict[str, Any]) -> dict[str, Any]:
    """The best validation of a training, and all others."""
    settings = make_settings(**given)
    model = make_model(settings, static).to(choose_device())
    trainer = Trainer(model, static.distinct()[0].train, settings)
    scorer = ModelScorer(model, settings)
    began, looks, best = time.monotonic(), [], {"exact": 0.0, "overlap": 0.0, "epoch": 0.0}
    with matrix_precision(settings.precision):
        while trainer.epoch < trainer.epochs:
            trainer.run_epoch()
            if trainer.epoch % settings.validate_every:
                continue
            found = evaluate_facts(scorer, graph, static.segmentation, split="valid").metrics
            exact, overlap = found["exact"]["both"].mrr, found["overlap"]["both"].mrr
            looks.append((trainer.epoch, round(exact, 4)))
            if exact > best["exact"]:
                best = {"exact": exact, "overlap": overlap, "epoch": trainer.epoch}
            elif trainer.epoch >= best["epoch"] + 3 * settings.validate_every:
                break
    return {
        "valid_mrr_exact": round(best["exact"], 4),
        "valid_mrr_overlap": round(best["overlap"], 4),
        "curve": looks,
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS / "presets.json")
    given = parser.parse_args()
    statics: dict[str, tuple[TemporalGraph, StaticGraph]] = {}
    runs = []
    for cuts, settings in tries():
        data, method, parameters = CUTS[cuts]
        if cuts not in statics:
            graph = splime.load(str(given.folder / f"{data}.parquet"))
            statics[cuts] = graph, splime.make_method(method, **parameters).fit_transform(graph)
        found = train(*statics[cuts], settings)
        print(cuts, settings, found, flush=True)
        runs.append({"data": data, "method": method, "settings": settings, **found})
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    write_results(
        given.out,
        "python benchmarks/presets.py FOLDER",
        device=device,
        torch=torch.__version__,
        runs=runs,
    )


if __name__ == "__main__":
    main()
