"""Graphs of TGB 2.0: read from its files, and measured by its evaluator."""

from __future__ import annotations

import csv
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import tgb
from experiments.forecast import scoring_of
from splime.errors import DataError, UsageError

DAY = 86_400
NAMES: dict[str, Any] = {"tkgl-icews": (str, str), "tkgl-smallpedia": ("Q{}".format, "P{}".format)}


def write(folder: Path, name: str, seed: int = 0) -> list[tuple[int, str, str, str]]:
    """An edge list as TGB has it, and the known answers that its negatives leave out."""
    draw, (node, relation), rows = random.Random(seed), NAMES[name], []
    for at in range(40):
        for _ in range(8):
            head, of = draw.randrange(12), draw.randrange(3)
            tail = (head + of + draw.choice([0, 0, 0, 1])) % 12
            rows.append((1_000 * DAY + at * DAY, node(head), node(tail), relation(of)))
    with (folder / f"{name}_edgelist.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("timestamp", "head", "tail", "relation_type"), *rows])
    (folder / f"{name}_static_edgelist.csv").write_text("head,tail,relation_type\n")
    return rows


def edges(name: str, rows: list[tuple[int, str, str, str]]) -> np.ndarray[Any, Any]:
    """Both ways of each edge: source, target, time, relation, by the numbers of TGB."""
    nodes: dict[str, int] = {}
    relations: dict[str, int] = {}
    found = []
    for time, head, tail, relation in rows:
        one, other = (nodes.setdefault(each, len(nodes)) for each in (head, tail))
        of = relations.setdefault(relation, len(relations))
        if name == "tkgl-icews":
            of = int(relation)
        found.append((one, other, time, of))
    turned = [(other, one, time, of + 3) for one, other, time, of in found]
    return np.array([*found, *turned])


def split_of(every: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    until, last = np.quantile(every[:, 2], [0.7, 0.85])
    return np.searchsorted([until, last], every[:, 2], side="left")


@pytest.mark.parametrize("name", list(NAMES))
def test_a_graph_is_numbered_and_split_as_tgb_does(name: str, tmp_path: Path) -> None:
    every = edges(name, write(tmp_path, name))
    found = tgb.read_tgb(tmp_path)
    part = split_of(every)
    for number, (_, facts) in enumerate(found.graph.splits()):
        ours = np.stack(
            [
                found.node[facts.subject],
                found.node[facts.object],
                found.timestamps[facts.begin],
                found.relation[facts.predicate],
            ],
            axis=1,
        )
        half = slice(0, len(every) // 2)
        theirs = every[half][part[half] == number]
        assert sorted(map(tuple, np.unique(ours, axis=0))) == sorted(
            map(tuple, np.unique(theirs, axis=0))
        )
    assert found.graph.timeline.last - found.graph.timeline.first == 39  # days, not seconds


@pytest.mark.parametrize("name", list(NAMES))
def test_measured_by_its_evaluator_as_by_a_plain_loop(name: str, tmp_path: Path) -> None:
    pytest.importorskip("tgb.linkproppred.evaluate", reason="py-tgb is not installed")
    every = edges(name, write(tmp_path, name))
    test = every[split_of(every) == 2]
    known: dict[tuple[int, int, int], list[int]] = {}
    for source, target, time, of in test.tolist():
        targets = known.setdefault((time, source, of), [])
        targets += [target] * (target not in targets)
    kept = {key: np.array(targets) for key, targets in known.items()}
    (tmp_path / f"{name}_test_ns.pkl").write_bytes(pickle.dumps(kept))
    found = tgb.measure(tmp_path, "recurrency")
    graph = tgb.read_tgb(tmp_path)
    scoring, ranks = scoring_of(graph.graph, "recurrency", "all", None), []
    for (source, target, time, of), scores in tgb.questions(graph, "test", scoring, None):
        for row in range(len(source)):
            right = known[int(time[row]), int(source[row]), int(of[row])]
            others = [s for node, s in enumerate(scores[row]) if node not in right]
            own = scores[row, target[row]]
            ranks.append(1 + sum(s > own for s in others) + sum(s == own for s in others) / 2)
    assert len(ranks) == found["questions"] == 2 * len(graph.graph.test)
    assert found["mrr"] == pytest.approx(float(np.mean(1 / np.array(ranks))))
    assert found["mrr"] > 0.4  # the law of the edges is found


def test_hostile_folders(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"tkgl-\*_edgelist.csv"):
        tgb.read_tgb(tmp_path)
    path = tmp_path / "tkgl-icews_edgelist.csv"
    path.write_text("timestamp,head,tail,relation_type\nsoon,1,2,0\n")
    with pytest.raises(DataError, match="timestamp"):
        tgb.read_tgb(tmp_path)
    path.write_text("timestamp,head\n1,2\n")
    with pytest.raises(DataError, match="relation_type"):
        tgb.read_tgb(tmp_path)
