"""Plans: what a TOML file may say, and which errors other things give."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import DataError, UsageError
from splime.methods import METHODS, standard_methods
from splime.plans import Plan, PlannedRun, read_plan

PLAN = """
data = "demo"
[reading]
bucket = 300
[training]
model = "complex"
epochs = 20
[[run]]
method = "vanilla"
[[run]]
name = "fine split"
method = "split"
parameters = { grow = 5, by = "count" }
training = { dimension = 32, epochs = 3 }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_becomes_a_plan(tmp_path: Path) -> None:
    plan = read_plan(written(tmp_path, PLAN))
    assert plan.data == "demo"
    assert plan.reading == {"bucket": 300}
    assert [run.name for run in plan.runs] == ["vanilla", "fine split"]
    assert plan.runs[1].method == splime.Split(by="count", grow=5)
    assert plan.settings_of(plan.runs[0]) == {"model": "complex", "epochs": 20}
    assert plan.settings_of(plan.runs[1]) == {"model": "complex", "epochs": 3, "dimension": 32}


@given(
    data=st.text(min_size=1),
    names=st.lists(st.sampled_from(["a", "b c", "d=1, e", "ü", "x.y+z"]), min_size=1, unique=True),
    epochs=st.integers(1, 9),
    grow=st.floats(1.5, 100),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, data: str, names: list[str], epochs: int, grow: float
) -> None:
    methods = [splime.Split(grow=grow), splime.Vanilla(), splime.RandomSplit(predicates=7, seed=1)]
    runs = [
        PlannedRun(name, methods[at % 3], {"seed": at} if at else {})
        for at, name in enumerate(names)
    ]
    plan = Plan(data, runs, {"split": "time"}, {"model": "transe", "epochs": epochs})
    path = written(tmp_path_factory.mktemp("plan"), plan.to_toml())
    again = read_plan(path)
    assert again.to_toml() == plan.to_toml()
    assert (again.data, again.reading, again.training) == (data, plan.reading, plan.training)
    assert [(run.name, run.method, run.training) for run in again.runs] == [
        (run.name, run.method, run.training) for run in runs
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("data = \n[[run]]", "line 1"),
        ('[[run]]\nmethod = "vanilla"', 'data = "demo"'),
        ('data = "demo"', r"at least one \[\[run\]\]"),
        ('data = "demo"\nruns = 3', "no key 'runs'.*Did you mean run"),
        ('data = "demo"\nrun = 3', "at least one"),
        ('data = "demo"\n[[run]]\nname = "x"', "number 1: missing required field method"),
        ('data = "demo"\n[[run]]\nmethod = "splitt"', "number 1: .*Did you mean split"),
        (
            'data = "demo"\n[[run]]\nmethod = "split"\nparameters = 5',
            "number 1: parameters: Expected table, got int",
        ),
        (
            'data = "demo"\n[[run]]\nmethod = "split"\nparameters = { grwo = 5 }',
            "no parameter 'grwo'.*grow",
        ),
        ('data = "demo"\n[[run]]\nmethod = "vanilla"\ngrow = 5', "no key 'grow'"),
        (
            'data = "demo"\n[[run]]\nmethod = "vanilla"\n[[run]]\nmethod = "vanilla"',
            "two runs are called 'vanilla'",
        ),
        ('data = "demo"\n[[run]]\nmethod = "vanilla"\nname = "../x"', "name of a folder"),
        (
            'data = "demo"\n[training]\nmodel = "complx"\n[[run]]\nmethod = "vanilla"',
            "'vanilla': there is no model 'complx'",
        ),
        (
            'data = "demo"\n[training]\nepoch = 3\n[[run]]\nmethod = "vanilla"',
            "no setting 'epoch'.*epochs",
        ),
        (
            'data = "demo"\n[reading]\nbuckt = 3\n[[run]]\nmethod = "vanilla"',
            "no reading option 'buckt'.*bucket",
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(DataError, match=f"(?s)plan.toml: .*{complaint}"):
        read_plan(path)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_plan(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="at least one run"):
        Plan("demo", [])


def test_standard_methods_are_all_methods() -> None:
    methods = standard_methods()
    assert list(methods) == list(METHODS)
    graph = splime.load("demo")
    sizes = {name: len(method.fit(graph).predicates) for name, method in methods.items()}
    assert sizes["vanilla"] == len(graph.predicates)
    assert sizes["random"] == sizes["split"]
    assert sizes["vanilla"] < min(size for name, size in sizes.items() if name != "vanilla")
    assert max(sizes, key=lambda name: sizes[name]) == "timestamp"
