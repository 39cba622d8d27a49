"""Temporal knowledge graphs of TGB 2.0 (`tkgl-*`), asked and measured by its own evaluator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc, csv

from experiments.forecast import scoring_of
from splime.errors import DataError, UsageError
from splime.graph import SplitName, TemporalGraph
from splime.io import read
from splime.paths.shipped import Weights
from splime.progress import Progress, silent
from splime.scoring.scoping import Kind
from splime.times import Ints

_COLUMNS = ("timestamp", "head", "tail", "relation_type")
_BY_NAME = ("tkgl-wikidata", "tkgl-smallpedia")
"""Whose relations are names, which TGB numbers as they come; elsewhere they are numbers."""
_SHARE = {"tkgl-yago": 0.1}
_USUAL = 0.15
"""The share of the edges, by time, that is valid, and that is test."""
_SPLITS: dict[SplitName, str] = {"valid": "val", "test": "test"}
_BLOCK = 256


@dataclass(frozen=True)
class TgbGraph:
    """A graph of TGB, and what its entities, relations and times are there."""

    name: str
    folder: Path
    graph: TemporalGraph
    node: Ints
    """Of each entity."""
    relation: Ints
    """Of each predicate."""
    relations: int
    timestamps: Ints
    """By tick."""


def read_tgb(folder: Path) -> TgbGraph:
    """Read the edge list of a folder, split by time as TGB splits it; static edges are left out."""
    found = sorted(folder.glob("tkgl-*_edgelist.csv"))
    found = [path for path in found if not path.name.endswith("_static_edgelist.csv")]
    if len(found) != 1:
        raise UsageError(f"{folder}: expected one file tkgl-*_edgelist.csv, as TGB's archives have")
    [path] = found
    name = path.name.removesuffix("_edgelist.csv")
    options = csv.ConvertOptions(column_types={each: pa.string() for each in _COLUMNS[1:]})
    try:
        table = csv.read_csv(path, convert_options=options)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: {error}") from None
    if table.num_columns < len(_COLUMNS) or not pa.types.is_integer(table.column(0).type):
        raise DataError(f"{path}: expected the columns {', '.join(_COLUMNS)}; times are whole")
    time, head, tail, relation = (table.column(at).combine_chunks() for at in range(4))
    times, at = np.unique(time.to_numpy(), return_inverse=True)
    unit = int(np.gcd.reduce(np.diff(times))) if len(times) > 1 else 1
    ticks = (times - times[0]) // max(unit, 1)
    facts = pa.table({"subject": head, "predicate": relation, "object": tail, "time": ticks[at]})
    twice = np.tile(time.to_numpy(), 2)  # as TGB has it, with inverse edges
    share = _SHARE.get(name, _USUAL)
    until, last = np.quantile(twice, [1 - 2 * share, 1 - share])
    part = np.searchsorted([until, last], time.to_numpy(), side="left")
    splits = {
        split: facts.filter(pa.array(part == number))
        for number, split in enumerate(("train", "valid", "test"))
    }
    graph = read(splits, granularity="step")
    ends = pa.concat_arrays([head, tail]).take(
        pa.array(np.arange(2 * len(head)).reshape(2, -1).T.reshape(-1))
    )
    node = _numbers(ends, list(graph.entities))
    names = list(graph.predicates)
    of = _numbers(relation, names) if name in _BY_NAME else np.array([int(one) for one in names])
    stamps = np.full(int(ticks[-1]) + 1, -1)
    stamps[ticks] = times
    return TgbGraph(name, folder, graph, node, of, len(names), stamps)


def _numbers(values: Any, names: list[str]) -> Ints:
    """Of each name the number that TGB gives it: the place where it first comes up."""
    place = pc.index_in(pa.array(names, pa.string()), value_set=pc.unique(values))
    return np.asarray(place.to_numpy(zero_copy_only=False), np.int64)


def questions(
    tgb: TgbGraph, split: SplitName, scoring: Any, most: int | None
) -> Iterator[tuple[Any, Any]]:
    """Of each block: source, target, timestamp and relation as TGB numbers them, and the scores.

    Of each edge both ways are asked; scores are in the order of TGB's nodes.
    """
    facts = getattr(tgb.graph, split)
    if most is not None and len(facts) > most:
        drawn = np.random.default_rng(0).choice(len(facts), most, replace=False)
        facts = facts.take(np.sort(drawn))
    sides: tuple[tuple[Kind, str], ...] = (("object", "subject"), ("subject", "object"))
    for start in range(0, len(facts), _BLOCK):
        some = facts.take(slice(start, start + _BLOCK))
        for way, (asked, given) in enumerate(sides):
            for block in scoring.blocks(asked, some):
                own = some.take(block.rows)
                scores = np.full((len(own), len(tgb.node)), -np.inf)
                scores[:, tgb.node] = (block.scores / block.weight[:, None]).cpu().numpy()
                edges = (
                    tgb.node[getattr(own, given)],
                    tgb.node[getattr(own, asked)],
                    tgb.timestamps[own.begin],
                    tgb.relation[own.predicate] + way * tgb.relations,
                )
                yield edges, scores


def measure(
    folder: Path,
    forecaster: str,
    *,
    split: SplitName = "test",
    weights: Weights | None = None,
    most: int | None = None,
    progress: Progress = silent,
) -> dict[str, float]:
    """The MRR and Hits@10 of `py-tgb` with its negatives, by single step."""
    try:
        from tgb.linkproppred.evaluate import Evaluator
        from tgb.linkproppred.tkg_negative_sampler import TKGNegativeEdgeSampler
        from tgb.utils.info import DATA_NS_STRATEGY_DICT
    except ImportError as error:
        raise UsageError(f"this needs py-tgb: pip install py-tgb ({error})") from None
    tgb = read_tgb(folder)
    if tgb.name not in DATA_NS_STRATEGY_DICT:
        raise UsageError(f"{folder}: py-tgb has no graph {tgb.name}")
    negatives = folder / f"{tgb.name}_{_SPLITS[split]}_ns.pkl"
    if not negatives.exists():
        raise UsageError(f"{negatives}: there is no such file; TGB's archive has it")
    sampler = TKGNegativeEdgeSampler(
        tgb.name, 0, len(tgb.node) - 1, strategy=DATA_NS_STRATEGY_DICT[tgb.name]
    )
    sampler.load_eval_set(str(negatives), _SPLITS[split])
    evaluator, total, done = Evaluator(tgb.name), np.zeros(2), 0
    asked = len(getattr(tgb.graph, split))
    scoring = scoring_of(tgb.graph, forecaster, "all", weights)
    for edges, scores in questions(tgb, split, scoring, most):
        wrong = sampler.query_batch(*edges, split_mode=_SPLITS[split])
        for row, others in enumerate(wrong):
            given = {"y_pred_pos": scores[row, edges[1][[row]]], "y_pred_neg": scores[row, others]}
            given["y_pred_neg"] = given["y_pred_neg"].reshape(1, -1)
            found = evaluator.eval({**given, "eval_metric": ["mrr"]})
            total += (found["mrr"], found["hits@10"])
            done += 1
        progress("asking", done, 2 * min(asked, most or asked))
    mrr, hits = (total / max(done, 1)).tolist()
    return {"mrr": mrr, "hits10": hits, "questions": done}
