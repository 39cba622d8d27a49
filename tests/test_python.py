"""splime in Python: names for what they name, tables, notebooks, scikit-learn, editors."""

from __future__ import annotations

import inspect
import runpy
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints
from urllib.error import URLError
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import splime
from splime.errors import SplimeError
from splime.reporting import views
from splime.runs import Run
from splime.shown import Rows, Shown, Tabular
from tests.runs.small import CUTS, SETTINGS, small_graph, small_run

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    here, graph = tmp_path_factory.mktemp("python"), small_graph(test=40)
    return [small_run(graph, here / str(seed), seed=seed) for seed in (0, 1)]


# Names for what they name


def test_a_dataset_a_method_and_a_folder_by_name(tmp_path: Path) -> None:
    run = splime.train("demo", "split", tmp_path / "a", model="distmult", dimension=4, epochs=1)
    assert run.method == splime.Split(**splime.Split.standard)
    assert run.graph == splime.load("demo")


def test_names_that_are_wrong_say_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(splime.UsageError, match=r"no dataset.*Did you mean demo"):
        splime.train("dmo", "split", tmp_path)
    with pytest.raises(splime.UsageError, match=r"no method 'splt'.*Did you mean split"):
        splime.train("demo", "splt", tmp_path)
    with pytest.raises(splime.UsageError, match="not a run"):
        splime.evaluate(tmp_path)
    assert not [*tmp_path.iterdir()]


# The verbs of the command line


def test_evaluate(runs: list[Run]) -> None:
    assert splime.evaluate(str(runs[0].path)).metrics == splime.evaluate(runs[0]).metrics


def test_ask(runs: list[Run]) -> None:
    query = splime.Query(runs[0])
    asked = splime.ask(str(runs[0].path), "entity 1", "p1", "?", at=1995, limit=3)
    assert asked == query.ask("entity 1", "p1", "?", at=1995, limit=3)
    when = splime.ask(runs[0], "entity 1", "p1", "entity 4")
    assert when == query.ask("entity 1", "p1", "entity 4", "?")


def test_plot(runs: list[Run]) -> None:
    assert splime.plot(runs, "learning").axes
    of_run: Any = splime.plot(runs[0].path, "facts")
    of_graph: Any = splime.plot(runs[0].graph, "facts")
    assert of_run._repr_png_() == of_graph._repr_png_()
    assert of_run._repr_png_().startswith(b"\x89PNG")


def test_report(runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert splime.report(runs[0].path) == Path("report.html")
    assert "<html" in (tmp_path / "report.html").read_text("utf-8")


def test_inspect(tmp_path: Path) -> None:
    graph = small_graph()
    inspection = splime.inspect(graph)
    assert inspection.statistics == splime.describe(graph)
    assert str(inspection.leaks) == str(splime.leakage.report(graph))
    splime.save(graph, tmp_path / "graph.parquet")
    assert splime.inspect(tmp_path / "graph.parquet").to_json().keys() == {
        "statistics", "reading", "leakage",
    }  # fmt: skip
    assert len(splime.inspect("demo", bucket=300).graph.timeline) < 71
    assert "leakage" in inspection._repr_html_()


def test_transform(tmp_path: Path) -> None:
    graph = small_graph()
    made = splime.transform(graph, splime.Split(grow=2), tmp_path / "out", filter="inter")
    assert isinstance(made, splime.Transformed)
    expected, removed = splime.Split(grow=2).fit_transform(graph).filter("inter")
    for split in ("train", "valid", "test"):
        assert (getattr(made.static, split).array() == getattr(expected, split).array()).all()
    assert made.removed.removed == removed.removed
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "segmentation.json", "triples.parquet",
    }  # fmt: skip
    assert "removed by inter" in made._repr_html_()
    loaded = splime.transform("demo", "vanilla")
    assert isinstance(loaded, splime.Transformed)
    assert loaded.static.predicates is not None
    with pytest.raises(splime.UsageError, match="Did you mean tsv"):
        splime.transform(graph, "split", tmp_path / "wrong", format="tvs")
    with pytest.raises(splime.UsageError, match="Did you mean inter"):
        splime.transform(graph, "split", filter="inner")
    with pytest.raises(splime.UsageError, match="not empty"):
        splime.transform(graph, "split", tmp_path / "out")


@pytest.mark.system
def test_transform_chooses_to_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the number of rows, unless it is said; the triples are the same."""
    source = tmp_path / "facts.parquet"
    splime.save(small_graph(), source)

    def transformed(**options: Any) -> tuple[type, str, pa.Table]:
        out = tmp_path / "out"
        result = splime.transform(source, "split", out, overwrite=True, **options)
        assert result.segmentation == splime.load_segmentation(out / "segmentation.json")
        if (out / "manifest.json").exists():
            return type(result), "parts", splime.read(out).to_table()
        return type(result), "file", pq.read_table(out / "triples.parquet")

    kind, _, loaded = transformed()
    assert kind is splime.Transformed
    kind, files, streamed = transformed(stream=True)
    assert (kind, files) == (splime.StreamResult, "file")
    assert streamed.to_pylist() == loaded.to_pylist()
    monkeypatch.setattr("splime.streaming.LARGE", 1)
    assert transformed()[:2] == (splime.StreamResult, "file")
    assert transformed(stream=False)[0] is splime.Transformed
    assert isinstance(splime.transform(source, "split"), splime.Transformed)  # nothing is written
    monkeypatch.setattr("splime.streaming.PART", 1)
    kind, files, parts = transformed(workers=None)
    assert (kind, files) == (splime.StreamResult, "parts")
    assert len(parts) == len(loaded)
    shown = splime.transform(source, "split", tmp_path / "other", stream=True)
    assert "rows per second" in shown._repr_html_()
    for data, options, message in (
        (source, {"stream": True, "filter": "inter"}, "streaming writes Parquet"),
        (source, {"engine": "ray", "format": "tsv"}, "streaming writes Parquet"),
        (source, {"engine": "ray", "stream": True}, "choose one"),
        (source, {"workers": 2}, "need an engine"),
        ("demo", {"stream": True}, "reads Parquet files"),
        (small_graph(), {"stream": True}, "reads Parquet files"),
    ):
        with pytest.raises(splime.UsageError, match=message):
            splime.transform(data, "split", tmp_path / "refused", **options)
    assert not (tmp_path / "refused").exists()


def test_explore(runs: list[Run], tmp_path: Path) -> None:
    page = splime.explore(runs[0].path, tmp_path / "page.html")
    assert "<html" in page.read_text("utf-8")
    with pytest.raises(splime.UsageError, match="leave out port"):
        splime.explore(runs, tmp_path / "page.html", port=0)  # type: ignore[call-overload]
    server = splime.explore(runs, port=0)
    try:
        with urlopen(server.address) as reply:
            assert reply.status == 200
        assert server.address in server._repr_html_()
    finally:
        server.stop()
    with pytest.raises(URLError):
        urlopen(server.address)


def test_results_say_in_a_line_what_they_are(runs: list[Run]) -> None:
    evaluation, graph = splime.evaluate(runs[0]), runs[0].graph
    results = (
        evaluation, splime.compare(runs, samples=50), graph, splime.inspect(graph),
        splime.transform(graph, CUTS),
    )  # fmt: skip
    for each in results:
        text = repr(each)
        assert text.startswith(f"{type(each).__name__}(")
        assert "\n" not in text
        assert len(text) < 250
    assert f"exact {evaluation.metrics['exact']['both'].mrr:.3f}" in repr(evaluation)


@pytest.mark.system
def test_run(tmp_path: Path) -> None:
    small = {name: value for name, value in SETTINGS.items() if name != "model"}
    methods = [splime.Split(grow=2), splime.Split(grow=3)]
    graph, out = small_graph(), tmp_path / "a"
    done = splime.run(graph, out, method=methods, model="distmult", **small)
    assert list(done.runs) == ["split, grow=2", "split, grow=3"]
    assert "Hits@10" in done._repr_html_()
    assert repr(done).startswith(f"PlanResult({out}: Comparison(")
    assert done.report.exists()
    # Its plan can be carried out; what is there is not done again.
    models = [run.path / "model.safetensors" for run in done.runs.values()]
    written = [model.stat().st_mtime_ns for model in models]
    assert splime.load(out / "data.parquet") == graph
    assert splime.run(out / "plan.toml", out).comparison == done.comparison
    assert [model.stat().st_mtime_ns for model in models] == written
    with pytest.raises(splime.UsageError, match="a plan says everything: leave out model, epochs"):
        splime.run(out / "plan.toml", tmp_path / "b", model="transe", epochs=3)


def test_options_of_other_protocols_are_errors(runs: list[Run]) -> None:
    for options in ({"filter": "inter"}, {"distinct": True}):
        with pytest.raises(splime.UsageError, match=f"fact has no option {next(iter(options))}"):
            splime.evaluate(runs[0], **options)
    with pytest.raises(splime.UsageError, match="triple has no option aggregate"):
        splime.evaluate(runs[0], "triple", aggregate="mean")


def test_every_verb_has_its_name() -> None:
    from splime.cli.main import app

    verbs = {command.callback.__name__ for command in app.registered_commands if command.callback}
    # Those that only print: lists, and tables of the paper.
    assert verbs - {"cache", "methods", "models", "reproduce"} <= set(splime.__all__)


# Editors


def test_keywords_are_those_of_the_dataclasses() -> None:
    made = runpy.run_path(str(ROOT / "scripts/keywords.py"))
    assert made["keywords"]() == made["FILE"].read_text("utf-8"), "run scripts/keywords.py"


def test_no_public_function_takes_anything() -> None:
    """Names of parameters and settings are written out, or typed, for editors."""
    for name in splime.__all__:
        function = getattr(splime, name)
        if not inspect.isfunction(function) or name == "make_method":  # which any method has
            continue
        for one in inspect.signature(function).parameters.values():
            if one.kind is one.VAR_KEYWORD:
                assert one.annotation.startswith("Unpack["), (name, one)


# Tables


def columns(table: pa.Table) -> dict[str, list[Any]]:
    return {name: table[name].to_pylist() for name in table.column_names}


def test_results_are_tables(runs: list[Run]) -> None:
    evaluation = splime.evaluate(runs[0], bootstrap=50)
    comparison = splime.compare(runs, samples=50)
    answers = splime.ask(runs[0], "entity 1", "p1", "?")
    results: list[Tabular] = [runs[0].graph, runs[0].history, evaluation, comparison, answers]
    for each in results:
        table = each.to_table()
        assert pa.RecordBatchReader.from_stream(each).read_all().equals(table)
        assert list(each.to_pandas().columns) == table.column_names
        assert len(each.to_pandas()) == len(table) > 0
    history = columns(runs[0].history.to_table())
    assert history["valid"] == [one.valid for one in runs[0].history]
    rows = evaluation.to_table().to_pylist()
    [every] = [row for row in rows if row["filter"] == "overlap" and row["by"] is None]
    both = evaluation.metrics["overlap"]["both"]
    interval = evaluation.intervals["overlap"]["both"]
    assert interval is not None
    assert (every["mrr"], every["queries"]) == (both.mrr, both.queries)
    assert (every["mrr_low"], every["mrr_high"]) == interval["mrr"]
    strata = {
        (row["filter"], row["by"], row["group"]): row["hits3"]
        for row in rows
        if row["by"] not in (None, "asked for")
    }
    assert strata == {
        (name, by, group): metrics.hits3
        for name, kinds in evaluation.strata.items()
        for by, groups in kinds.items()
        for group, metrics in groups.items()
    }
    compared = columns(comparison.to_table())
    assert compared["mrr"] == [row.metrics.mrr for row in comparison.rows]
    assert compared["run"] == [row.name for row in comparison.rows]


def test_a_graph_reads_its_own_table() -> None:
    graph = splime.load("demo")
    assert splime.read(graph.to_pandas()) == graph
    assert splime.read(graph) == graph


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SplimeError, match=r"to_pandas\(\) needs pandas.*splime-kg\[pandas\]"):
        small_graph().to_pandas()


# Notebooks


def test_results_show_themselves(runs: list[Run]) -> None:
    rows = [("<b>x</b>", "p[red]", "y\x1b", 1990 + year) for year in range(20)]
    hostile = splime.read(rows, split="none")._repr_html_()
    assert "p[red]" in hostile
    assert "<b>x" not in hostile
    assert "\x1b" not in hostile
    results: dict[str, Shown] = {
        "12</td>": runs[0].graph,
        "scoped predicates of 3": runs[0].segmentation,
        "triples in valid": runs[0].static,
        "distmult": runs[0],
        "protocol fact, test": splime.evaluate(runs[0]),
        "Hits@10": splime.compare(runs, samples=50),
        "entity": splime.ask(runs[0], "entity 1", "p1", "?"),
    }
    for words, each in results.items():
        assert words in each._repr_html_()
    shown = {kind.__name__ for kind in [*Shown.__subclasses__(), *Rows.__subclasses__()]}
    assert shown - {Rows.__name__} <= set(views._PARTS)


@pytest.mark.system
def test_graphs_show_themselves_without_torch() -> None:
    from tests.test_package import imported

    code = "splime.Split(grow=5).fit(splime.load('demo'))._repr_html_()"
    assert imported(code, "torch", "rich") == ["rich"]


# scikit-learn


@pytest.mark.parametrize("method", [*splime.standard_methods().values(), CUTS])
def test_methods_are_cloned(method: Any) -> None:
    assert clone(method) == method
    assert type(method)(**method.get_params()) == method
    changed = method.set_params(fit_on="all")
    assert (changed.fit_on, method.fit_on) == ("all", "train")
    with pytest.raises(splime.UsageError, match=r"no parameter 'fitt_on'.*Did you mean fit_on"):
        method.set_params(fitt_on="all")


def test_hints_can_be_read() -> None:
    """What is typed for editors alone does not stop those who read types of the rest."""
    (run,) = get_args(get_type_hints(splime.compare)["runs"])
    assert Run in get_args(run)
