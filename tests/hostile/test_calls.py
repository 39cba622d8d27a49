"""Public functions and classes, called with what people get wrong: an error of ours each time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import pytest

import splime
from experiments.world import World
from splime.errors import SplimeError
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
THING: tuple[object, ...] = (STRANGE, "text", 3.5, None, [], {"a": 1})
MAPPING: tuple[object, ...] = (STRANGE, "text", 3.5, ["a"], 7)
LISTED: tuple[object, ...] = (STRANGE, 3.5, 7, [STRANGE], [3.5], True)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Callable[..., Any], Any]]:
    """What can be called, with arguments that are right and what is wrong for each of them."""
    here = tmp_path_factory.mktemp("calls")
    graph = small_graph()
    run = small_run(graph, here / "run", epochs=1)
    plan = splime.Plan("demo", (splime.PlannedRun("a", splime.Vanilla()),))
    number: dict[str, tuple[object, ...]] = dict.fromkeys(
        ("dimension", "norm", "negatives", "batch_size", "epochs", "validate_every", "patience"),
        WHOLE,
    )
    settings: Wrong = {
        **number,
        **dict.fromkeys(("margin", "temperature", "l2", "n3", "smooth", "learning_rate"), NUMBER),
        **dict.fromkeys(("weighting", "share", "corrupt", "optimizer", "reduction", "each"), TEXT),
        **dict.fromkeys(("model", "init", "loss", "levels", "precision"), TEXT),
        **dict.fromkeys(("reciprocal", "avoid_known", "distinct"), FLAG),
        "seed": (*WHOLE, -1),
        "steps": WHOLE,
    }
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
    # Fields that are not listed above.
    settings = {**{one.name: (STRANGE,) for one in fields(splime.Settings)}, **settings}
    reading = {**{one.name: (STRANGE,) for one in fields(ReadOptions)}, **reading}
    training = {**settings, "model": ("transf",)}
    method: Wrong = {"target": TEXT, "fit_on": TEXT}
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
        (splime.make_settings, {}, {**training, "preset": TEXT, "engine": TEXT}),
        (splime.make_method, {"name": "split", "grow": 5}, {"name": TEXT, "grow": NUMBER}),
        (splime.Plan, {"data": "demo", "runs": plan.runs}, {"data": TEXT, "runs": LISTED,
            "reading": MAPPING, "training": MAPPING}),
        (splime.PlannedRun, {"name": "a", "method": CUTS}, {"name": TEXT, "method": THING,
            "training": MAPPING}),
        (splime.Timeline, {"granularity": "year", "starts": graph.timeline.starts,
            "ends": graph.timeline.ends},
            {"granularity": TEXT, "starts": THING, "ends": THING}),
        (World, {}, {"facts": WHOLE, "seed": (*WHOLE, -1)}),
        (splime.Parallel, {}, {"engine": TEXT, "processes": (*WHOLE, 0),
            "processors": (*WHOLE, 1)}),
        (splime.load, {"source": "demo"}, {"source": (STRANGE, 3.5, None, 7), **reading,
            "nonsense": (1,)}),
        (splime.read, {"source": [("a", "p", "b", 1990)] * 9}, {"source": (STRANGE, 3.5, None, 7,
            {"train": 3}, {3: []}, [3], [("a",)], [("a", STRANGE, "b", 1990)],
            [("a", "p", "b", STRANGE)]), **reading, "nonsense": (1,)}),
        (splime.inspect, {"data": graph}, {"data": (STRANGE, 3.5, None, 7), **reading}),
        (splime.train, {"graph": graph, "cuts": CUTS, "out": here / "out"}, training),
        # What people type into other functions: names, words, numbers, times.
        (splime.transform, {"data": graph, "method": "split"}, {"method": ("splt",),
            "format": ("tvs",), "filter": ("inner",)}),
        (splime.train, {"graph": graph, "cuts": CUTS, "out": here / "out"}, {"graph": ("dmo",),
            "cuts": ("splt",), "engine": ("torch",), "device": ("gpu",), "preset": ("best",),
            "log": ("nothing",)}),
        (splime.run, {"data": graph, "out": here / "out"}, {"method": ("splt",),
            "model": ("transf",), "engine": ("torch",), "parallel": (STRANGE, "ray", 0)}),
        (splime.tune, {"graph": graph, "out": here / "out"}, {"trials": (0,), "models": (["x"],),
            "methods": (["x"],), "space": ({"a": STRANGE},)}),
        (splime.evaluate, {"run": run}, {"protocol": ("facts",), "split": ("tset",),
            "ties": ("worse",), "aggregate": ("median",), "questions": (0, 2.5, "some"),
            "filter": ("inter",), "distinct": (True,)}),
        (splime.compare, {"runs": [run, run]}, {"protocol": ("x",), "split": ("x",),
            "filter": ("x",), "samples": (0,), "level": (0, 1)}),
        (splime.ask, {"run": run, "subject": "entity 1", "predicate": "p1", "object": "?"},
            {"subject": ("entity", 7), "at": ("then", STRANGE, 3.5), "during": ("1990", 1990,
             [1990], (1990, STRANGE)), "limit": (0, 2.5, "three"), "known": ("x",), "best": (0,),
             "aggregate": ("x",), "time": ("x", 7)}),
        (splime.plot, {"shown": run, "what": "facts"}, {"what": ("fact",), "predicate": ("p1",)}),
        (splime.explore, {"runs": run}, {"runs": ("nothing",), "port": (-1,)}),
        (splime.split_graph, {"graph": graph}, {"how": ("x",), "valid": (2,), "seed": (-1,)}),
        (graph.bucket, {"min_facts": 3}, {"min_facts": (0,)}),
    ]  # fmt: skip
    return {
        f"{function.__qualname__}({name}={value!r})": (function, {**right, name: value})
        for function, right, wrong in given
        for name, values in wrong.items()
        for value in values
    }


def test_mistakes_are_errors_of_ours(cases: Mapping[str, Any]) -> None:
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
