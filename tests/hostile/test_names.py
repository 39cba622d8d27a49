"""Names that are commands to a terminal, marks of a question, options, or have no font."""

from __future__ import annotations

import base64
import io
import json
import random
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from xml.dom.minidom import parseString

import pytest
from hypothesis import given, strategies as st

import splime
from splime.errors import SplimeError, visible
from splime.query.questions import quoted
from splime.reporting import plots, style
from tests.runs.small import Called, call

pytestmark = pytest.mark.system

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]"
)
CONTROLS = [
    "red \x1b[31m",
    "title \x1b]0;owned\x07",
    "report \x9b6n",
    "delete \x7f",
    "turned \u202eround",
    "isolated \u2067name",
    "form \x0c feed",
    "no \u200bwidth",
]
NAMES = [
    *CONTROLS,
    "?",
    "_",
    r"\?",
    "-x",
    "--at",
    "東京",
    "it's",
    '"quoted"',
    "[/b]",
    "$x^$",
    "<b>",
]
PREDICATES = ["p \x1b[2J", "-q", "出生地", "?", "[red]"]


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose names are all hostile, and so is its own."""
    draw, path = random.Random(0), tmp_path_factory.mktemp("names") / "file\x1b[5m.tsv"
    rows = [
        (draw.choice(NAMES), draw.choice(PREDICATES), draw.choice(NAMES), f"{1990 + number % 20}")
        for number in range(240)
    ]
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8", newline="")
    return path


@pytest.fixture(scope="module")
def carried(facts: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Called]:
    """What `splime run` made of it."""
    out = tmp_path_factory.mktemp("carried") / "out"
    settings = ("--epochs", 1, "--dimension", 4, "--method", "split", "--grow", 3)
    done = call("run", facts, "--out", out, "--method", "vanilla", *settings)
    assert done.code == 0, done.err
    return out, done


@given(st.text())
def test_what_is_visible_stays(text: str) -> None:
    shown = visible(text)
    assert not UNSEEN.search(shown)
    assert not re.search("[\ud800-\udfff]", shown)
    assert shown == text or UNSEEN.search(text) or re.search("[\ud800-\udfff]", text)
    assert visible(shown) == shown


def safe(done: Called) -> str:
    assert not UNSEEN.search(done.out + done.err), done
    assert "Traceback" not in done.err
    return done.out + done.err


def test_commands_show_controls(facts: Path, carried: tuple[Path, Called], tmp_path: Path) -> None:
    run = carried[0] / "runs" / "split"
    shown = [
        safe(carried[1]),
        safe(call("inspect", facts)),
        safe(call("transform", facts, "--method", "split", "--grow", 3, "--out", tmp_path / "t")),
        safe(call("ask", run, "--limit", 50, "--", "?", "p \x1b[2J", "red \x1b[31m")),
        safe(call("ask", run, "red \x1b[31m", "p \x1b[2J", "?")),
        safe(call("ask", run, "--near", "red \x1b[31m", "--limit", 50)),
        safe(call("ask", run, "red \x1b[31", "p \x1b[2J", "?")),  # a suggestion
        safe(call("ask", run, "--limit", 50, "red \x1b[31m", "?", "red \x1b[31m")),
        safe(call("compare", run, carried[0] / "runs" / "vanilla", "--format", "markdown")),
        safe(call("inspect", tmp_path / "gone\x1b[2J.tsv")),
    ]
    assert all(r"\x1b" in text for text in (*shown[1:8], shown[9]))
    assert r"\u202e" in shown[3]


def test_json_stays_json(facts: Path, carried: tuple[Path, Called]) -> None:
    run = carried[0] / "runs" / "split"
    done = call("ask", run, "--limit", 50, "--json", "--", "?", "p \x1b[2J", "red \x1b[31m")
    names = {row["name"] for row in json.loads(safe(done))["answers"]}
    assert names == set(splime.load(str(facts)).entities)
    done = call("inspect", facts, "--json")
    assert safe(done)
    assert json.loads(done.out)["statistics"]["name"] == facts.stem


def test_what_python_prints(facts: Path, carried: tuple[Path, Called]) -> None:
    run = splime.Run(carried[0] / "runs" / "split")
    answers = splime.Query(run).ask("red \x1b[31m", "p \x1b[2J", "?", limit=None)
    for thing in (answers, run, run.graph, run.graph.entities, *answers):
        assert not UNSEEN.search(repr(thing)), repr(thing)
    with pytest.raises(SplimeError) as caught:
        splime.Query(run).ask("red \x1b[3", "p \x1b[2J", "?")
    assert not UNSEEN.search(str(caught.value))


def test_the_page_and_its_pictures(carried: tuple[Path, Called]) -> None:
    page = (carried[0] / "report.html").read_text(encoding="utf-8")
    assert not UNSEEN.search(page)
    assert r"\x1b" in page
    pictures = re.findall(r'data:image/svg\+xml;base64,([^"]*)', page)
    assert pictures
    for picture in pictures:
        text = base64.b64decode(picture).decode()
        assert not UNSEEN.search(text)
        parseString(text)  # XML has no place for control characters


def test_a_saved_picture(facts: Path, tmp_path: Path) -> None:
    for suffix in ("svg", "png", "pdf"):
        safe(call("inspect", facts, "--plot", tmp_path / f"facts.{suffix}"))
    text = (tmp_path / "facts.svg").read_text(encoding="utf-8")
    parseString(text)
    assert r"p \x1b[2J" in text


def test_letters_come_from_the_font_that_has_them(tmp_path: Path) -> None:
    """No warnings, which are errors here, and no boxes."""
    letters = {letter: style._font_of(letter) for letter in "a˯東"}
    assert letters["a"] == "sans-serif"
    graph = splime.read([("a", "".join(letters), "b", 1990), ("a", "p", "b", 1991)], split="none")
    figure = plots.plot_facts_over_time(graph)
    style.save_picture(figure, tmp_path / "facts.png")
    label = next(
        label for label in figure.axes[1].get_yticklabels() if label.get_text().startswith("a")
    )
    for letter, font in letters.items():
        assert (letter in label.get_text()) == (font is not None)
        assert font is None or font in label.get_fontfamily()


def test_pictures_of_tiny_type(tmp_path: Path) -> None:
    """A letter without any font is an escape, which tells names apart."""
    private = "\U0010fffd"
    assert style.short(f"a{private}") == r"a\U0010fffd"
    figure = style.make_figure(2, 2)
    figure.subplots().set_title(style.short(private * 3))
    buffer = io.BytesIO()
    style.render(figure, buffer, "svg", 72)
    assert b"10fffd" in buffer.getvalue()
    assert not list(tmp_path.iterdir())


Ask = Callable[..., splime.Answers]


@pytest.fixture(scope="module")
def ask(carried: tuple[Path, Called]) -> Ask:
    return splime.Query(splime.Run(carried[0] / "runs" / "split")).ask


def test_an_entity_called_by_the_mark(ask: Ask, carried: tuple[Path, Called]) -> None:
    run = carried[0] / "runs" / "split"
    assert [ask(r"\?", "-q", "?").question.kind, ask("?", r"\?", r"\?").question.kind] == [
        "object",
        "subject",
    ]
    for name in NAMES:  # every name can be asked about, and each is another one
        assert ask(quoted(name), "-q", "?").rows[0].score is not None
    plain = {row.name: row.score for row in ask("?", "-q", r"\?", limit=None)}
    other = {row.name: row.score for row in ask("?", "-q", r"\\?", limit=None)}
    assert plain.keys() == other.keys() == set(NAMES)
    assert plain != other
    done = call("ask", run, "--", "?", "-q", "?")
    assert done.code == 2
    assert r"is written \?" in done.err
    done = call("ask", run, "--", r"\?", "-q", "_")
    assert done.code == 0, done.err
    done = call("ask", run, "--json", "--", r"\_", "-q", "_")
    assert json.loads(done.out)["question"]["subject"] == "_"


def test_the_mark_in_a_file_of_questions(carried: tuple[Path, Called], tmp_path: Path) -> None:
    query = splime.Query(splime.Run(carried[0] / "runs" / "split"))
    path = tmp_path / "questions.tsv"
    path.write_text("subject\tpredicate\tobject\n\\?\t-q\t?\n?\t\\?\t\\\\?\n", encoding="utf-8")
    table = query.ask_many(path, limit=1).to_pydict()
    one, other = query.ask(r"\?", "-q", "?", limit=1)[0], query.ask("?", r"\?", r"\\?", limit=1)[0]
    assert table["answer"] == [one.name, other.name]
    assert table["subject"][0] == "?"


def test_a_name_that_looks_like_an_option(carried: tuple[Path, Called]) -> None:
    run = carried[0] / "runs" / "split"
    done = call("ask", run, "-x", "-q", "?", "--at", 1995)
    assert done.code == 2
    assert "goes after all options and a --" in " ".join(done.err.replace("│", " ").split())
    done = call("ask", run, "--at", 1995, "--", "-x", "-q", "?")
    assert done.code == 0, done.err


def test_the_printed_question_can_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splime.plans.write_page", lambda *_, **__: None)  # takes a second
    for number, name in enumerate(["-x", "it's", "_", "?", '"a b"', "$HOME", "--json"]):
        path = tmp_path / f"{number}.tsv"
        rows = [f"{name}\t{name}\te{at % 3}\t{1990 + at % 7}\n" for at in range(30)]
        path.write_text("".join(rows), encoding="utf-8")
        out = tmp_path / f"out of {number}"
        settings = ("--method", "vanilla", "--epochs", 1, "--dimension", 2)
        done = call("run", path, "--out", out, *settings)
        assert done.code == 0, done.err
        line = next(line for line in done.out.splitlines() if line.startswith("ask it: "))
        program, *arguments = shlex.split(line.removeprefix("ask it: "))
        assert program == "splime"
        done = call(*arguments)
        assert (done.code, done.err) == (0, ""), (arguments, done.err)
        assert done.out.startswith("What: ")
