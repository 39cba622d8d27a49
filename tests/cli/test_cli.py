"""The command line from end to end, as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table
from typer.testing import CliRunner

import splime
from splime.cli.console import open_page, show, warn
from splime.cli.main import app
from splime.reporting.tables import make_table
from tests.runs.small import call, call_program


def test_help_and_version() -> None:
    for arguments in (["--help"], ["-h"], ["inspect", "--help"], ["datasets", "--help"], []):
        done = call(*arguments)
        assert "Usage: " in done.out + done.err, arguments
    assert call("--version").out == f"splime {splime.__version__}\n"
    assert "Exit codes" in call("--help").out


def test_inspect_demo() -> None:
    done = call("inspect", "demo")
    assert done.code == 0, done.err
    assert "10,000" in done.out
    assert "livesIn" in done.out
    assert "1950 to 2020, by year" in done.out
    assert done.err == "demo: read 10,000 facts\n"


@pytest.fixture
def lossy(tmp_path: Path) -> Path:
    """A file of 40 facts, 8 of which end before they begin, and 2 of which are repeated."""
    years = [(1990 + n, 1990 + n + (-3 if n % 5 == 0 else 2)) for n in range(40)]
    lines = [f"a{n % 4}\tp\tb{n % 3}\t{begin}\t{end}" for n, (begin, end) in enumerate(years)]
    path = tmp_path / "lossy.tsv"
    path.write_text("\n".join(["subject\tpredicate\tobject\tbegin\tend", *lines, *lines[1:3]]))
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect"],
        ["inspect", "--json"],
        ["transform", "--method", "vanilla", "--out", "out"],
        ["train", "--method", "vanilla", "--epochs", "1", "--dimension", "2", "--out", "run"],
        ["run", "--method", "vanilla", "--epochs", "1", "--dimension", "2", "--out", "all"],
        ["tune", "--trials", "1", "--processes", "1", "--methods", "vanilla", "--epochs", "1",
         "--dimension", "2", "--out", "search"],
    ],
)  # fmt: skip
def test_every_command_says_what_it_dropped(
    arguments: list[str], lossy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lossy.parent)
    monkeypatch.setattr("splime.plans.write_page", lambda *_, **__: None)  # which takes long
    command, *others = arguments
    done = CliRunner().invoke(app, [command, str(lossy), *others])
    assert done.exit_code == 0, done.output
    line = "lossy: read 42 rows and 1 header line, kept 32, dropped 10: 8 × end before begin,"
    assert f"{line} 2 × duplicate\n" in done.stderr
    warning = next(line for line in done.stderr.splitlines() if line.startswith("warning: "))
    assert "10 of 42" in warning
    assert "--end-before-begin swap" in warning
    assert "--keep-duplicates" in warning


def test_options_keep_what_was_dropped(lossy: Path) -> None:
    kept = call("inspect", lossy, "--keep-duplicates", "--end-before-begin", "swap", "--json")
    assert kept.err == "lossy: read 42 facts and 1 header line\n"
    assert sum(json.loads(kept.out)["statistics"]["facts"].values()) == 42


def test_a_plan_says_what_it_dropped(lossy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splime.plans.write_page", lambda *_, **__: None)
    plan = lossy.parent / "plan.toml"
    plan.write_text(
        f'data = "{lossy}"\n[reading]\nkeep_duplicates = true\nallow_loss = true\n'
        '[training]\nepochs = 1\ndimension = 2\n[[run]]\nmethod = "vanilla"\n'
    )
    done = CliRunner().invoke(app, ["run", str(plan), "--out", str(lossy.parent / "out")])
    assert "kept 34, dropped 8: 8 × end before begin\n" in done.stderr, done.stderr
    assert "warning" not in done.stderr


def test_inspect_says_what_train_does_not_have(tmp_path: Path) -> None:
    lines = [f"a{n % 4}\tp\ta{n % 3}\t{2000 + n % 10}" for n in range(100)]
    lines += ["a1\tp\ta1\t1999", "a1\tp\ta2\t9876"]
    (tmp_path / "train.tsv").write_text("\n".join(lines))
    later = ["new\tp\ta1\t2012", "a1\tp\ta2\t2013", "a1\tother\ta2\t2014"]
    (tmp_path / "test.tsv").write_text("\n".join(later))
    done = call("inspect", tmp_path, "--json")
    inspected = json.loads(done.out)
    beside = inspected["statistics"]["beside_train"]["test"]
    assert (beside["unseen_entities"], beside["unseen_predicates"], beside["unseen"]) == (1, 1, 2)
    assert inspected["statistics"]["far_times"]["count"] == 1
    assert inspected["leakage"]["self_loops"]["train"]["count"] > 1
    shown = " ".join(call("inspect", tmp_path).out.split())
    assert "1 (33.3 %)" in shown  # of the entities
    assert "a1 | p | a2 | 9876 | 9876" in shown
    assert "self-loop" in shown
    assert "chronological" not in shown
    (tmp_path / "train.tsv").write_text("\n".join(lines[:-1]))
    shown = " ".join(call("inspect", tmp_path).out.split())
    assert "the split is chronological: test begins at 2012" in shown
    assert "no cut can be learned there" in shown
    assert "--model path --past all" in shown
    assert "--model latest" in shown


def test_losing_most_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("".join(f"a\tp\tb{n}\t2000\t{1990 + n}\n" for n in range(13)))
    done = call("inspect", path)
    assert done.code == 3
    assert "mine.tsv: 10 of 13 rows were dropped" in done.err
    assert "mine.tsv, line 1: a | p | b0 | 2000 | 1990" in done.err
    assert done.out == ""
    assert call("inspect", path, "--allow-loss").code == 0


def test_inspect_published(published: Path) -> None:
    done = call("inspect", "wikidata12k", SPLIME_DATA=str(published))
    assert done.code == 0, done.err
    for number in ("12,554", "70 (buckets of years)", "4,720 (14.53 %)", "1,042 (27.10 %)"):
        assert number in done.out
    assert "train.txt, line 216" in done.out


def test_inspect_json(published: Path) -> None:
    done = call("inspect", "icews14", "--json", SPLIME_DATA=str(published))
    inspected = json.loads(done.out)
    assert inspected["statistics"]["timestamps"] == 365
    assert inspected["leakage"]["in_train"]["test"] == {"count": 3499, "of": 7419}
    assert inspected["reading"]["sources"][0]["rows"] == 72_826


def test_inspect_plot(tmp_path: Path) -> None:
    done = call("inspect", "demo", "--plot", tmp_path / "facts.png")
    assert done.code == 0, done.err
    assert (tmp_path / "facts.png").read_bytes().startswith(b"\x89PNG")
    wrong = call("inspect", "demo", "--plot", tmp_path / "facts.bmp")
    assert wrong.code == 2
    assert "pictures are .png, .svg, .pdf files" in wrong.err


def test_inspect_my_own_csv(tmp_path: Path) -> None:
    lines = ["player,verb,club,from,to"]
    lines += [f"Ada,playsFor,Club {n % 5},{1990 + n},{1992 + n}" for n in range(20)]
    lines += ["Ada,playsFor,Club 1,1999,1990", "[b]Bo[/b],playsFor,Club 2,soon,"]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    done = call(
        "inspect", path, "--columns", "player,verb,club,from,to", "--split", "time",
        "--granularity", "year", "--end-before-begin", "swap", "--bucket", "5", "--json",
    )  # fmt: skip
    inspected = json.loads(done.out)
    assert inspected["reading"]["sources"][0]["dropped"] == {"unreadable time": 1}
    assert inspected["reading"]["sources"][0]["notes"] == {"end before begin, swapped": 1}
    assert inspected["reading"]["remarks"][0].startswith("split by time")
    assert inspected["statistics"]["bucketed"] is True
    shown = call("inspect", path, "--columns", "1,2,3,4,5", "--header")
    assert "mine.csv, line 23: [b]Bo[/b] | playsFor" in shown.out


def test_inspect_with_repair_and_buckets_of_train(tmp_path: Path) -> None:
    for split, end in (("train", 2010), ("valid", 2011), ("test", 2012)):
        lines = [f"a\tp\tb{year}\t{year}\t{year}" for year in range(2000, end)]
        (tmp_path / f"{split}.tsv").write_text("\n".join([*lines, "a\tp\tb2000\t2012\t1990"]))
    arguments = (
        "inspect", tmp_path,
        "--end-before-begin", "repair", "--bucket", "5", "--bucket-on", "train",
    )  # fmt: skip
    inspected = json.loads(call(*arguments, "--json").out)
    assert inspected["statistics"]["facts"] == {"train": 10, "valid": 12, "test": 13}
    assert inspected["statistics"]["timestamps"] == 2
    train, valid, _ = inspected["reading"]["sources"]
    assert train["dropped"] == {"end before begin": 1}
    assert valid["notes"] == {"end before begin, swapped": 1}
    shown = " ".join(call(*arguments).out.split())
    assert "end before begin, swapped (1 in valid.tsv, 1 in test.tsv)" in shown
    alone = call("inspect", tmp_path / "train.tsv", "--end-before-begin", "repair")
    assert alone.code == 2
    assert "has no splits; choose drop or swap" in " ".join(alone.err.split())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["inspect", "wikidata12"], 2, "Did you mean wikidata12k"),
        (["inspect", "no/such.tsv"], 3, "no such file"),
        (["inspect", "demo", "--bucket", "0"], 2, "at least 1 fact"),
        (["inspect", "demo", "--bucket-on", "train"], 2, "it needs bucket"),
        (["inspect", "demo", "--granularity", "yera"], 2, "Did you mean year?"),
        (["inspect"], 2, "Missing argument"),
        (["inspct"], 2, "No such command"),
        (["datasets", "show", "yago11"], 2, "Did you mean yago11k"),
        (["datasets", "fetch", "demo"], 2, "nothing to download"),
    ],
)
def test_errors_are_for_people(
    arguments: list[str], code: int, message: str, tmp_path: Path
) -> None:
    done = call(*arguments, SPLIME_CACHE=str(tmp_path))
    assert done.code == code, done.err
    assert message in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


@pytest.mark.system
def test_debug_shows_the_traceback() -> None:
    done = call_program("--debug", "inspect", "no/such.tsv")
    assert "Traceback" in done.err
    assert done.code != 0


def test_bad_data_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.tsv"
    path.write_text("a\tp\tb\t2001\na\tp\n", encoding="utf-8")
    done = call("inspect", path)
    assert done.code == 3
    assert f"error: {path}, line 2: expected 4 columns" in done.err


def test_datasets(published: Path, tmp_path: Path) -> None:
    listed = call("datasets", "list", SPLIME_DATA=str(published)).out
    for name in ("demo", "icews14", "wikidata12k", "yago11k"):
        assert name in listed
    shown = call("datasets", "show", "yago11k", SPLIME_DATA="", SPLIME_CACHE=str(tmp_path)).out
    assert "HyTE" in shown
    assert "e709ff0e8eced3ec9332dba5c5da95c0db403f8eddda52f3b100486b63c4e580" in shown
    assert "splime datasets fetch yago11k" in shown
    fetched = call("datasets", "fetch", "yago11k", SPLIME_DATA=str(published))
    assert fetched.out == f"yago11k: {published / 'yago11k'}\n"
    refused = call(
        "datasets", "fetch", "icews14", SPLIME_DATA="", SPLIME_CACHE=str(tmp_path / "cache"),
        SPLIME_MIRROR="http://127.0.0.1:9",
    )  # fmt: skip
    assert refused.code == 4
    assert "network" in refused.err


@pytest.mark.system
def test_a_reader_that_leaves_is_no_error() -> None:
    command = f"{sys.executable} -m splime inspect demo | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert "demo" in done.stdout


@pytest.mark.system
def test_terminals_that_are_not_utf8() -> None:
    for arguments in (["inspect", "demo"], ["inspect", "--help"], ["methods"]):
        done = call_program(*arguments, PYTHONUTF8="0", PYTHONIOENCODING="ascii", LC_ALL="C")
        assert done.code == 0, done.err
        assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("arguments", "name"),
    [(["models"], "complex"), (["methods"], "merge"), (["datasets", "list"], "demo")],
)
def test_lists_as_json(arguments: list[str], name: str) -> None:
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert name in json.dumps(json.loads(done.stdout))


@pytest.mark.parametrize("width", [39, 40, 46, 52, 80])
def test_narrow_tables_break_no_word(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though one column has a long word, another many short ones, and a third does not wrap."""
    monkeypatch.setenv("COLUMNS", str(width))
    table = make_table("", "fact", "time", "right", words=("fact", "time"))
    table.add_row("X hasLongPredicate ?", "ended more than 13 years before it", "100.0 %")
    table.columns[2].no_wrap = True
    show(table)
    printed = capsys.readouterr().out
    for word in ("hasLongPredicate", "before", "years", "100.0 %"):
        assert word in printed
    assert max(map(len, printed.splitlines())) <= width


def test_narrow_tables_leave_columns_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words and numbers are never broken; the width is what COLUMNS says, also in a pipe."""
    for width, left_out in (("80", []), ("30", ["interval"]), ("24", ["MRR", "interval"])):
        monkeypatch.setenv("COLUMNS", width)
        table = Table("run", "method", "MRR", "interval", box=None)
        table.add_row("first", "timestamp", "0.4512", "0.4361–0.4653")
        show(table)
        printed = capsys.readouterr().out
        for column, cell in (("MRR", "0.4512"), ("interval", "0.4361–0.4653")):
            assert (cell in printed) == (column not in left_out)
        assert ("not shown" in printed) == bool(left_out)
        assert max(map(len, printed.splitlines()[:2])) <= int(width)


def test_open_shows_a_page_in_the_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    def opens(page: str) -> bool:
        shown.append(page)
        return len(shown) < 2

    monkeypatch.setattr("webbrowser.open", opens)
    open_page(tmp_path / "a b.html")
    assert shown == [(tmp_path / "a b.html").as_uri()]
    assert capsys.readouterr().err == ""
    open_page("http://127.0.0.1:8765/#token")
    assert shown[1] == "http://127.0.0.1:8765/#token"
    assert "no browser" in capsys.readouterr().err


def test_errors_have_no_colour_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    styles: list[dict[str, object]] = []
    monkeypatch.setattr("typer.secho", lambda _, **style: styles.append(style))
    monkeypatch.delenv("NO_COLOR", raising=False)
    warn("careful")
    monkeypatch.setenv("NO_COLOR", "1")
    warn("careful")
    assert ["fg" in style for style in styles] == [True, False]
