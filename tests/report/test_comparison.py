"""Comparisons in every format."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from splime.analysis import ComparedRun, Comparison, Pair
from splime.errors import UsageError
from splime.evaluation.metrics import Difference, Metrics
from splime.reporting.comparison import (
    FORMATS,
    comparison_latex,
    comparison_markdown,
    comparison_table,
    comparison_text,
    format_of,
    in_short,
    plot_comparison,
    write_comparison,
)
from splime.reporting.style import save_picture
from tests.report.test_report import printed


def row(name: str, mrr: float, **more: object) -> ComparedRun:
    made = ComparedRun(
        name=name,
        path=f"runs/{name}",
        data="demo",
        method="split",
        method_parameters={"grow": 5.0},
        model="complex",
        settings={"dimension": 32, "seed": 0},
        predicates=45,
        parameters=71_616,
        seconds=2.2,
        uses_time=True,
        metrics=Metrics(
            mrr=mrr, mr=9.0, hits1=mrr - 0.1, hits3=mrr, hits10=mrr + 0.1, queries=2_000
        ),
        intervals={"mrr": (mrr - 0.01, mrr + 0.02)},
    )
    return replace(made, **more)  # type: ignore[arg-type]


def pair(first: str, second: str, p: float) -> Pair:
    metrics = ("mrr", "hits1", "hits3", "hits10")
    difference = Difference(0.1, 0.0, 0.2, p)
    return Pair(first, second, dict.fromkeys(metrics, difference), dict.fromkeys(metrics, p))


def comparison(*rows: ComparedRun, pairs: list[Pair], **more: object) -> Comparison:
    made = Comparison(
        protocol="fact",
        split="test",
        filter="exact",
        ties="mean",
        candidates=[1_029],
        test_sets=[1_000],
        samples=10_000,
        level=0.95,
        rows=[*rows],
        pairs=pairs,
        remarks=[],
    )
    return replace(made, **more)  # type: ignore[arg-type]


COMPARED = comparison(
    row("best", 0.42),
    row("near", 0.41, settings={"dimension": 32, "seed": 1}),
    row("a_b|c*", 0.3),
    row("last", 0.29, model="transe"),
    pairs=[
        pair("best", "near", 0.2),
        pair("best", "a_b|c*", 0.001),
        pair("best", "last", 0.001),
        pair("near", "a_b|c*", 0.001),
        pair("near", "last", 0.04),
        pair("a_b|c*", "last", 0.7),
    ],
)


def test_the_table() -> None:
    text = printed(*comparison_table(COMPARED))
    for shown in (
        "demo, test: protocol fact, filter exact",
        "0.420 ",
        "0.410–0.440",
        "0.410†",
        "0.300 ",
        "31.0†",  # hits
        "a_b|c*",
        "(seed 1)",
        "1,000 facts, 10,000 samples",
        "Holm's correction for 6 pairs",
        "95 %",
        "so could be the difference in MRR between a_b|c* and last",
    ):
        assert shown in " ".join(text.split()), shown
    assert "0.300†" not in text
    assert "seed 0" in text
    assert comparison_text(COMPARED).splitlines()[0] == "demo, test: protocol fact, filter exact"


def test_bold_is_the_best_of_each_column() -> None:
    other = row(
        "near",
        0.41,
        metrics=Metrics(mrr=0.41, mr=9.0, hits1=0.9, hits3=0.41, hits10=0.51, queries=2_000),
    )
    compared = comparison(row("best", 0.42), other, pairs=[pair("best", "near", 0.2)])
    lines = comparison_markdown(compared).splitlines()
    assert "| **0.420** (0.410–0.440) | 32.0† | **42.0** | **52.0** |" in lines[4]
    assert "| 0.410† (0.400–0.430) | **90.0** | 41.0† | 51.0† |" in lines[5]


def test_markdown() -> None:
    lines = comparison_markdown(COMPARED).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 6
    # A name with a bar is still one cell.
    assert {line.replace("\\|", "").count("|") for line in table} == {11}
    assert any(r"| a\_b\|c\* |" in line for line in table)


def test_latex() -> None:
    hostile = row("50% of_{x}\\y & $z# ~^", 0.1)
    text = comparison_latex(comparison(COMPARED.rows[0], hostile, pairs=[pair("best", "x", 0.1)]))
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert [line.count(" & ") for line in rows] == [9, 9, 9]
    assert rows[2].startswith(
        r"50\% of\_\{x\}\textbackslash{}y \& \$z\# \textasciitilde{}\textasciicircum{} & 0.1"
    )
    assert rows[1].count(r"\textbf{") == 4
    for rule in ("top", "mid", "bottom"):
        assert text.count(f"\\{rule}rule") == 1
    plain = text.replace("\\{", "").replace("\\}", "")
    assert plain.count("{") == plain.count("}")
    assert text.isascii()


def test_few_facts_of_one_test_set() -> None:
    untested = Pair(
        "two",
        "three",
        dict.fromkeys(("mrr", "hits1", "hits3", "hits10"), Difference(0.1)),
        dict.fromkeys(("mrr", "hits1", "hits3", "hits10")),
    )
    compared = comparison(
        row("one", 0.9),
        row("four", 0.8),
        row("two", 0.5, test_set=1, intervals=None),
        row("three", 0.4, test_set=1, intervals=None),
        pairs=[pair("one", "four", 0.3), untested],
        protocol="triple",
        test_sets=[200, 12],
    )
    text = comparison_markdown(compared)
    assert "bootstrap over 200 triples (test set 1), 10,000 samples" in text
    assert "test has only 12 triples (test set 2): with fewer than 30 triples" in text
    assert "Holm's correction for 1 pair)." in text
    assert "| 0.400 |" in text
    assert "0.800†" in text


def headline(best: str, other: str, p: float | None) -> str:
    tested = pair(best, other, p or 0)
    if p is None:
        tested = replace(
            tested,
            differences={"mrr": Difference(0.1)},
            corrected={"mrr": None},
        )
    rows = [
        row(name, mrr, uses_time=name != "vanilla") for name, mrr in ((best, 0.5), (other, 0.4))
    ]
    return in_short(comparison(*rows, pairs=[tested], test_sets=[12 if p is None else 1_000]))


def test_the_headline_says_whether_time_helps() -> None:
    lower = "is 0.100 lower (between 0.000 and 0.200)"
    plain = f"vanilla, which ignores time, {lower}; the difference"
    assert headline("split", "vanilla", 0.001) == (
        f"Best: split, MRR 0.500. Time helps: {plain} is larger than chance."
    )
    assert headline("split", "vanilla", 0.2) == (
        f"Best: split, MRR 0.500. Time is not shown to help: {plain} could be chance."
    )
    without = (
        "Best: vanilla, MRR 0.500. Time does not help: vanilla ignores it, and split, the best that"
    )
    for p, chance in ((0.2, "could be chance"), (0.001, "is larger than chance")):
        expected = f"{without} uses it, {lower}; the difference {chance}."
        assert headline("vanilla", "split", p) == expected
    few = headline("split", "vanilla", None)
    assert (
        "Whether time helps is open: vanilla, which ignores time, is 0.100 lower; 12 facts" in few
    )
    assert in_short(comparison(row("only", 0.5), pairs=[])) == "Best: only, MRR 0.500."


def test_time_is_told_apart_from_the_model() -> None:
    """Another model differs in more than time, however much better it is."""
    path = row("path", 0.6, model="path")
    cut, plain = row("cut", 0.5), row("plain", 0.4, uses_time=False)
    rows, pairs = [path, cut, plain], [pair("path", "cut", 0.001), pair("path", "plain", 0.001)]
    assert in_short(comparison(path, plain, pairs=pairs[1:])) == "Best: path, MRR 0.600."
    pairs.append(pair("cut", "plain", 0.001))
    lower = "is 0.100 lower than cut (between 0.000 and 0.200); the difference is larger"
    assert in_short(comparison(*rows, pairs=pairs)) == (
        "Best: path, MRR 0.600. Time helps complex: plain, which ignores time,"
        f" {lower} than chance."
    )
    # Of the model whose run is best, where it has both.
    timeless = row("timeless", 0.3, model="path", uses_time=False)
    pairs += [pair(name, "timeless", 0.001) for name in ("path", "cut", "plain")]
    assert "Time helps: timeless, which" in in_short(comparison(*rows, timeless, pairs=pairs))


def test_what_a_combination_uses_is_open() -> None:
    static = row("static", 0.4, uses_time=False)
    both = row("both", 0.5, uses_time=None)
    text = in_short(comparison(both, static, pairs=[pair("both", "static", 0.001)]))
    assert text == "Best: both, MRR 0.500."


def test_one_fact() -> None:
    rows = [row("split", 0.5), row("vanilla", 0.4, uses_time=False)]
    untested = Pair("split", "vanilla", {"mrr": Difference(0.1)}, {"mrr": None})
    assert "1 fact is too few" in in_short(comparison(*rows, pairs=[untested], test_sets=[1]))


def test_several_test_sets() -> None:
    """A run that nothing was compared with is not called the best."""
    compared = comparison(
        row("one", 0.9),
        row("two", 0.5, test_set=1),
        row("three", 0.4, test_set=1),
        pairs=[pair("two", "three", 0.3)],
        protocol="triple",
        filter="inter",
        test_sets=[200, 300],
        remarks=["only some are compared"],
    )
    text = comparison_markdown(compared)
    assert text.count("**0.") == 1
    assert "**0.500**" in text
    assert "0.400†" in text
    rows_shown = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert [cells[7] for cells in rows_shown] == ["test set", "1", "2", "2"]
    assert "200 triples (test set 1), 300 triples (test set 2)" in text
    assert "leak filter inter" in text
    assert text.endswith("Only some are compared.\n")


def test_one_run() -> None:
    text = comparison_markdown(comparison(row("only", 0.5), pairs=[]))
    assert "**" not in text
    assert "†" not in text


def test_many_alike_and_many_settings() -> None:
    names = [f"r{number}" for number in range(6)]
    pairs = [pair(a, b, 0.5) for at, a in enumerate(names) for b in names[at + 1 :]]
    settings = [{f"s{key}": key * number for key in range(12)} for number in range(6)]
    rows = [row(n, 0.5 - i / 100, settings=settings[i]) for i, n in enumerate(names)]
    text = comparison_markdown(comparison(*rows, pairs=pairs))
    assert "; and 4 more pairs (" in text
    assert "complex (s1 0, s2 0, s3 0, s4 0, s5 0, s6 0, …)" in text


def test_formats(tmp_path: Path) -> None:
    assert format_of(None, None) == "table"
    assert format_of(None, Path("a.TEX")) == "latex"
    assert format_of(None, Path("a.txt")) == "table"
    assert format_of("json", Path("a.md")) == "json"
    with pytest.raises(UsageError, match="Did you mean latex"):
        format_of("latx", None)
    for name, make in FORMATS.items():
        write_comparison(COMPARED, tmp_path / name, name)
        assert (tmp_path / name).read_text(encoding="utf-8") == make(COMPARED)
    assert json.loads(FORMATS["json"](COMPARED)) == COMPARED.to_json()


def test_the_picture(tmp_path: Path) -> None:
    figure = plot_comparison(COMPARED)
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [r.name for r in COMPARED.rows]
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert [np.ravel(line.get_xdata()).item() for line in dots] == [
        r.metrics.mrr for r in COMPARED.rows
    ]
    colors = [line.get_color() for line in dots]
    assert len({*colors}) == 3
    assert colors[2] == colors[3]
    many = [row(f"$run {n}", 0.5 - n / 100) for n in range(30)]
    one, more = comparison(*many[:1], pairs=[]), comparison(*many, pairs=[])
    for number, compared in enumerate((COMPARED, one, more)):
        save_picture(plot_comparison(compared), tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").stat().st_size > 1_000
