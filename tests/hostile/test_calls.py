"""Every public function and class, called with wrong types: an error of ours each time."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pytest

import splime
import splime.plans
from splime.errors import SplimeError
from splime.explore import explore
from splime.io.options import ReadOptions
from tests.runs.small import CUTS, small_graph, small_run

Wrong = Mapping[str, tuple[object, ...]]


class Strange:
    """An object that fits nowhere."""

    def __repr__(self) -> str:
        return "Strange()"


STRANGE = Strange()
TEXT: tuple[object, ...] = (STRANGE, 3.5, 7, b"b", ["a"], {"a": 1}, True)
NUMBER: tuple[object, ...] = (STRANGE, "three", [1], {"a": 1}, b"b")
WHOLE: tuple[object, ...] = (*NUMBER, 2.5, True)
FLAG: tuple[object, ...] = (STRANGE, "yes", 2, [True], 0.5)
PATH: tuple[object, ...] = (STRANGE, 3.5, 7, ["a"], {"a": 1}, None, True)
THING: tuple[object, ...] = (STRANGE, "text", 3.5, None, [], {"a": 1})
GIVEN = tuple(each for each in THING if each is not None)
CALLED: tuple[object, ...] = (STRANGE, "text", 3.5, [1])
MAPPING: tuple[object, ...] = (STRANGE, "text", 3.5, ["a"], 7)
LISTED: tuple[object, ...] = (STRANGE, 3.5, 7, [STRANGE], [3.5], True)

# Results, which people do not make themselves; errors; and what is no function.
NOT_CALLED = {
    *(
        "Answer",
        "Answers",
        "Comparison",
        "Evaluation",
        "Fact",
        "Facts",
        "Inspection",
        "Transformed",
    ),
    "Tuned",
    *("Segmentation", "StaticGraph", "TemporalGraph"),
    *("DataError", "DownloadError", "SplimeError", "UsageError", "METHODS", "leakage"),
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Callable[..., Any], Any]]:
    """What can be called, with arguments that are right and what is wrong for each of them."""
    here = tmp_path_factory.mktemp("calls")
    graph = small_graph()
    run = small_run(graph, here / "run", epochs=1)
    other = small_run(graph, here / "other", epochs=1, seed=1)
    static = CUTS.fit_transform(graph)
    cuts, query = static.segmentation, splime.Query(run)
    plan = splime.Plan("demo", (splime.PlannedRun("a", splime.Vanilla()),))
    out = here / "out"
    seen = {"progress": CALLED}
    number: dict[str, tuple[object, ...]] = dict.fromkeys(
        ("dimension", "norm", "negatives", "batch_size", "epochs", "validate_every", "patience"),
        WHOLE,
    )
    settings: Wrong = {
        **number,
        **dict.fromkeys(("margin", "temperature", "l2", "n3", "smooth", "learning_rate"), NUMBER),
        **dict.fromkeys(("weights", "share", "corrupt", "optimizer", "reduction", "each"), TEXT),
        **dict.fromkeys(("model", "init", "loss", "levels", "precision"), TEXT),
        **dict.fromkeys(("reciprocal", "avoid_known", "distinct"), FLAG),
        "seed": (*WHOLE, -1),
        "steps": WHOLE,
    }
    named_settings = {name: wrong for name, wrong in settings.items() if name != "model"}
    reading: Wrong = {
        **dict.fromkeys(("granularity", "end_before_begin", "split", "bucket_on", "name"), TEXT),
        **dict.fromkeys(("header", "keep_duplicates", "allow_unseen"), FLAG),
        **dict.fromkeys(("entities", "predicates"), (STRANGE, 3.5, 7, ["a"], True)),
        **dict.fromkeys(("valid", "test"), NUMBER),
        **dict.fromkeys(("first", "last"), (STRANGE, [1990], {"a": 1}, b"b", 3.5)),
        "columns": LISTED,
        "bucket": WHOLE,
        "seed": (*WHOLE, -1),
    }
    # Those that nobody put here yet.
    settings = {**{one.name: (STRANGE,) for one in fields(splime.Settings)}, **settings}
    reading = {**{one.name: (STRANGE,) for one in fields(ReadOptions)}, **reading}
    method: Wrong = {"target": TEXT, "fit_on": TEXT}
    common: Wrong = {
        "split": TEXT,
        "ties": TEXT,
        "memory": WHOLE,
        "bootstrap": WHOLE,
        "seed": (*WHOLE, -1),
        "questions": (STRANGE, 2.5, [1], True),
        **seen,
    }
    at: Wrong = {
        "at": (STRANGE, [1990], {"a": 1}, b"b", 3.5),
        "during": (STRANGE, "1990", 1990, [1990], (1990, STRANGE), {"a": 1}),
        "limit": WHOLE,
    }
    ask: Wrong = {"known": TEXT, "best": WHOLE}
    named = {"graph": THING, "segmentation": THING, "scorer": THING}
    many: Wrong = {
        "processes": (*WHOLE, 0),
        "processors": (*WHOLE, 1),
        "gpu": (*NUMBER, 1),
        "address": TEXT,
    }
    given: list[tuple[Callable[..., Any], Any, Wrong]] = [
        (splime.ChangePointSplit, {"epsilon": 5}, {**method, "proximity": TEXT, "epsilon": NUMBER,
            "penalty": NUMBER, "changes": WHOLE, "min_size": WHOLE, "closed": FLAG}),
        (splime.Merge, {"shrink": 4}, {**method, "shrink": NUMBER, "predicates": WHOLE}),
        (splime.RandomSplit, {"grow": 4}, {**method, "grow": NUMBER, "predicates": WHOLE,
            "seed": (*WHOLE, -1)}),
        (splime.Split, {"grow": 4}, {**method, "by": TEXT, "grow": NUMBER, "predicates": WHOLE,
            "triples": WHOLE}),
        (splime.Timestamp, {}, method),
        (splime.Vanilla, {}, method),
        (splime.Settings, {}, settings),
        (splime.make_settings, {}, {**settings, "preset": TEXT, "engine": TEXT}),
        (splime.make_method, {"name": "split", "grow": 5}, {"name": TEXT, "grow": NUMBER}),
        (splime.standard_methods, {}, {"predicates": WHOLE}),
        (splime.Plan, {"data": "demo", "runs": plan.runs}, {"data": TEXT, "runs": LISTED,
            "reading": MAPPING, "training": MAPPING}),
        (splime.PlannedRun, {"name": "a", "method": CUTS}, {"name": TEXT, "method": THING,
            "training": MAPPING}),
        (splime.Query, {"run": run}, {"run": THING, "aggregate": TEXT, "memory": WHOLE}),
        (query.ask, {"subject": "entity 1", "predicate": "p1", "object": "?"},
            {"subject": TEXT, "predicate": TEXT, "object": TEXT, "time": TEXT, **at, **ask}),
        (query.why, {"subject": "entity 1", "predicate": "p1", "object": "?"},
            {"subject": TEXT, "predicate": TEXT, "object": TEXT, "answer": TEXT, "most": WHOLE,
             "at": at["at"], "during": at["during"]}),
        (splime.ask, {"run": run, "subject": "entity 1", "predicate": "p1", "object": "?"},
            {"run": THING, "subject": TEXT, "predicate": TEXT, "object": TEXT, "time": TEXT,
             "aggregate": TEXT, "device": TEXT, **at, **ask}),
        (query.near, {"name": "p1"}, {"name": TEXT, "kind": TEXT, **at}),
        (query.ask_many, {"questions": pa.table({"subject": ["entity 1"], "predicate": ["p1"],
            "object": ["?"]})}, {"questions": THING, "limit": WHOLE, **ask, **seen}),
        (splime.Run, {"path": run.path}, {"path": PATH, "device": TEXT, "shard": FLAG}),
        (splime.Timeline, {"granularity": "year", "starts": graph.timeline.starts,
            "ends": graph.timeline.ends},
            {"granularity": TEXT, "starts": THING, "ends": THING}),
        (splime.Vocabulary, {"labels": ["a"], "kind": "entity"}, {"labels": LISTED, "kind": TEXT}),
        (splime.World, {}, {"facts": WHOLE, "seed": (*WHOLE, -1)}),
        (splime.apply, {"segmentation": cuts, "graph": graph},
            {"segmentation": THING, "graph": THING}),
        (CUTS.fit, {"graph": graph}, {"graph": THING, **seen}),
        (CUTS.fit_transform, {"graph": graph}, {"graph": THING, **seen}),
        (static.filter, {"kind": "inter"}, {"kind": TEXT}),
        (graph.bucket, {"min_facts": 3}, {"min_facts": WHOLE}),
        (splime.carry_out, {"plan": plan, "out": out}, {"plan": THING, "out": PATH,
            "graph": (STRANGE, "text", 3.5, []), "device": TEXT, "watching": CALLED, "log": TEXT,
            **many, "engine": TEXT, **seen}),
        (splime.run, {"data": graph, "out": out}, {"data": THING, "out": PATH, "method": LISTED,
            "model": LISTED, "preset": TEXT, "engine": LISTED, "device": TEXT, "reading": MAPPING,
            "log": TEXT, "watching": CALLED, **many, **seen, **named_settings}),
        (splime.combine, {"runs": [run, other], "out": here / "both"}, {"runs": LISTED,
            "out": PATH, "device": TEXT, **seen}),
        (splime.compare, {"runs": [run, run.path]}, {"runs": LISTED, "protocol": TEXT,
            "split": TEXT, "filter": TEXT, "samples": WHOLE, "level": NUMBER,
            "seed": (*WHOLE, -1), "device": TEXT, **seen}),
        (splime.describe, {"graph": graph}, {"graph": THING}),
        (splime.evaluate, {"run": run}, {"run": THING, "protocol": TEXT, **common,
            "aggregate": TEXT, "filter": (*TEXT, "inter"), "distinct": (*FLAG, True),
            "device": TEXT, "shard": FLAG, "estimate": CALLED}),
        (splime.evaluate, {"run": run, "protocol": "triple"}, {"aggregate": ("mean",),
            "filter": (*TEXT, "x"), "distinct": FLAG}),
        (splime.evaluate_facts, {"scorer": run.scorer, "graph": graph, "segmentation": cuts},
            {**named, **common, "aggregate": TEXT, "estimate": CALLED}),
        (splime.evaluate_predicates, {"scorer": run.scorer, "graph": graph, "segmentation": cuts},
            {**named, **common, "aggregate": TEXT, "estimate": CALLED}),
        (splime.evaluate_triples, {"scorer": run.scorer, "static": static},
            {"scorer": THING, "static": THING, **common, "filter": TEXT, "distinct": FLAG,
            "estimate": CALLED}),
        (splime.export, {"static": static, "folder": out, "overwrite": True}, {"static": THING,
            "folder": PATH, "format": TEXT, "overwrite": FLAG, "also": CALLED}),
        (splime.labelled_triples, {"static": static, "split": "test"},
            {"static": THING, "split": TEXT}),
        (splime.to_pykeen, {"static": static}, {"static": THING}),
        (splime.load, {"source": "demo"}, {"source": (STRANGE, 3.5, None, 7), **reading,
            "nonsense": (1,)}),
        (splime.read, {"source": [("a", "p", "b", 1990)] * 9}, {"source": (STRANGE, 3.5, None, 7,
            {"train": 3}, {3: []}, [3], [("a",)], [("a", STRANGE, "b", 1990)],
            [("a", "p", "b", STRANGE)]), **reading, "nonsense": (1,)}),
        (splime.inspect, {"data": graph}, {"data": (STRANGE, 3.5, None, 7), **reading}),
        (splime.transform, {"data": graph, "method": "split"}, {"data": (STRANGE, 3.5, None, 7),
            "method": THING, "out": (STRANGE, 3.5, 7, ["a"], True), "format": TEXT, "filter": TEXT,
            "distinct": FLAG, "overwrite": FLAG, **seen, **reading}),
        (explore, {"runs": run}, {"runs": LISTED,
            "out": (STRANGE, 3.5, 7, ["a"], True), "port": WHOLE, "device": TEXT, **seen}),
        (splime.load_segmentation, {"path": here / "none"}, {"path": PATH}),
        (splime.read_plan, {"path": here / "none"}, {"path": PATH}),
        (splime.parse_times, {"values": pa.array(["1990"])}, {"values": THING,
            "weights": CALLED, "granularity": TEXT}),
        (splime.save, {"graph": graph, "path": here / "g.parquet"},
            {"graph": THING, "path": PATH}),
        (splime.save_segmentation, {"segmentation": cuts, "path": here / "s.json"},
            {"segmentation": THING, "path": PATH}),
        (splime.smoothness, {"run": run}, {"run": THING}),
        (splime.split_graph, {"graph": graph}, {"graph": THING, "how": TEXT, "valid": NUMBER,
            "test": NUMBER, "seed": (*WHOLE, -1), "allow_unseen": FLAG}),
        (splime.to_table, {"graph": graph}, {"graph": THING}),
        (splime.train, {"graph": graph, "cuts": CUTS, "out": out}, {"graph": THING, "cuts": GIVEN,
            "out": PATH, "engine": TEXT, "device": TEXT, "preset": TEXT, "watch": CALLED,
            "log": (*TEXT, "nothing"), "save_seconds": NUMBER, "shard": FLAG, **seen, **settings}),
        (splime.tune, {"graph": graph, "out": out}, {"graph": THING, "out": PATH, "trials": WHOLE,
            **many, "methods": LISTED, "models": LISTED, "engine": LISTED,
            "space": (STRANGE, 3.5, ["a"], 7, {"a": STRANGE}), "seed": (*WHOLE, -1),
            "device": TEXT, "data": TEXT, "reading": MAPPING, "stop": CALLED, **seen}),
        (splime.plot, {"shown": run, "what": "facts"}, {"shown": THING, "what": TEXT,
            "predicate": (*TEXT, "p1"), "device": TEXT}),
        (splime.plot, {"shown": graph, "what": "facts"}, {"what": ("predicates",)}),
        (splime.plans.report, {"runs": [run], "path": here / "page.html"}, {"runs": LISTED,
            "path": PATH, "device": TEXT, **seen}),
        (splime.progress_bar, {}, {"bytes": FLAG}),
        (splime.write_page, {"runs": [run], "path": out}, {"runs": LISTED, "path": PATH, **seen}),
        (splime.write_text, {"graph": graph, "folder": here / "text"}, {"graph": THING,
            "folder": PATH, "format": TEXT}),
    ]  # fmt: skip
    return {
        f"{function.__qualname__}({name}={value!r})": (function, {**right, name: value})
        for function, right, wrong in given
        for name, values in wrong.items()
        for value in values
    }


def test_every_public_name_is_here(cases: Mapping[str, Any]) -> None:
    called = {name.partition("(")[0] for name in cases}
    assert set(splime.__all__) - {"__version__"} - NOT_CALLED <= called
    assert not NOT_CALLED & called


def test_every_parameter_is_here(cases: Mapping[str, Any]) -> None:
    left_out = {"among", "warn", "splits", "parameters", "options", "settings", "given"}
    for name, (function, _) in cases.items():
        whose = name.partition("(")[0]
        parameters = inspect.signature(function).parameters.values()
        named = {one.name for one in parameters if one.kind not in (one.VAR_KEYWORD,)}
        tried = {
            each.partition("(")[2].partition("=")[0]
            for each in cases
            if each.startswith(f"{whose}(")
        }
        assert named - tried <= left_out, whose


def test_wrong_types_are_errors_of_ours(cases: Mapping[str, Any]) -> None:
    wrong = {}
    for name, (function, arguments) in cases.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                function(**arguments)
            wrong[name] = "no error"
        except SplimeError:
            pass
        except Exception as error:
            wrong[name] = f"{type(error).__name__}: {error}"[:120]
    assert not wrong, "\n".join(f"{name}: {why}" for name, why in wrong.items())
