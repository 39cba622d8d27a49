"""The page in a real browser: asking, moving the time, the map, addresses, keys, hostile names."""

from __future__ import annotations

import ast
import csv
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

import splime
from splime.errors import visible
from splime.explorer import Explorer, write_explorer
from splime.explorer.server import Server
from splime.query.questions import quoted
from splime.runs import Run
from splime.runs.graph_run import GraphRun
from splime.scoring.scoping import NAMES
from tests.explore.browser import CHROMIUM, Browser
from tests.explore.conftest import ENTITIES, PREDICATES
from tests.runs.small import small_graph

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (Debian's package chromium)"),
]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """A browser that has seen nothing wrong, and still has not when the test ends."""
    chromium.size(1100, 900)
    chromium.clear()
    yield chromium
    chromium.run("0")  # what has not arrived yet
    assert chromium.console == []
    assert chromium.run("document.title").startswith("splime explore: <i>facts</i>")
    assert chromium.run("document.querySelectorAll('img, i i, main script, u, main b').length") == 0


def address(server: Server, **asked: str) -> str:
    given = {
        "ask": "object",
        "subject": "",
        "predicate": PREDICATES[0],
        "object": "",
        "time": "1998",
    }
    query = urlencode({**given, "run": "split", "beside": "", **asked})
    return f"http://127.0.0.1:{server.server_port}/?{query}#{server.token}"


def answers(browser: Browser, column: int = 0) -> list[str]:
    names: list[str] = browser.run(
        f"[...document.querySelectorAll('#answers > div')[{column}].querySelectorAll('tbody tr')]"
        ".map(row => row.querySelector('.name').textContent)"
    )
    return names


def first_ten(rows: list[list[Any]]) -> list[str]:
    """What is shown of the answers unless the known ones are hidden."""
    return [visible(name) for rank, name, *_ in rows if rank <= 10]


def by_rank(spans: list[dict[str, Any]]) -> list[str]:
    return [
        span["begin"] if span["begin"] == span["end"] else f"{span['begin']} to {span['end']}"
        for span in sorted(spans, key=lambda span: span["rank"])
    ]


def questions(browser: Browser) -> list[str]:
    browser.run("0")
    return [each for each in browser.requests if "/api/ask?" in each or "/api/times?" in each]


def asked_by(address: str) -> dict[str, str]:
    """The question of an address, to the first run."""
    given = dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))
    given.pop("beside")
    return given


def test_the_first_address(browser: Browser, server: Server, explorer: Explorer) -> None:
    """A first question is asked, of two runs; the token leaves the address."""
    browser.open(server.address)
    here = browser.run("location.href")
    assert server.token not in here
    given = asked_by(here)
    assert given["run"] == "split"
    for column, run in enumerate(("split", "<u>plain")):
        expected = explorer.answer("ask", {**given, "run": run})["here"]["rows"]
        assert answers(browser, column) == first_ten(expected)
    text = browser.run("document.getElementById('answers').textContent")
    assert "%" in text
    assert "Test says" in text
    # Opened again without the token: the browser has kept it.
    browser.open(here)
    assert answers(browser)
    hosts = {urlsplit(each).netloc for each in browser.requests if each.startswith("http")}
    assert hosts == {f"127.0.0.1:{server.server_port}"}


def test_asking_by_keys_alone(browser: Browser, server: Server, explorer: Explorer) -> None:
    """Tab, type, arrows, Enter; then the slider, an answer and its reasons, all without a mouse."""
    browser.open(address(server, subject=ENTITIES[3]))
    browser.run(
        "document.getElementById('subject').focus(); document.getElementById('subject').select()"
    )
    browser.type("<img")
    browser.wait("document.querySelector('#subject-names li')")
    browser.key("ArrowDown", "Enter")
    assert browser.run("document.getElementById('subject').value") == ENTITIES[0]
    browser.key("Tab")
    assert browser.run("document.activeElement.id") == "predicate"
    before = len(questions(browser))
    browser.key("Enter")
    browser.wait(
        f"document.getElementById('asked').textContent.includes({json.dumps(ENTITIES[0])})"
    )
    browser.wait("!document.getElementById('result').hasAttribute('aria-busy')")
    assert len(questions(browser)) == before + 1
    given = asked_by(browser.run("location.href"))
    assert given["subject"] == ENTITIES[0]
    reply = explorer.answer("ask", given)
    assert answers(browser) == first_ten(reply["here"]["rows"])
    # From field to field to the slider, which then moves without a request.
    for _ in range(12):
        if browser.run("document.activeElement.id") == "slider":
            break
        browser.key("Tab")
    assert browser.run("document.activeElement.id") == "slider"
    browser.key("ArrowLeft", "ArrowLeft")
    assert browser.run("document.getElementById('moment').textContent") == "1996"
    browser.wait("document.querySelector('#reasons .evidence')")
    browser.key("Tab", " ")
    assert "known=drop" in browser.run("location.href")
    browser.key("Tab", "Enter")
    browser.wait("document.activeElement.id === 'reasons'")
    assert len(questions(browser)) == before + 1


def test_the_slider(browser: Browser, server: Server, explorer: Explorer) -> None:
    """Every time has the answers that the question has then, and none needs a request."""
    browser.open(address(server, subject="plain", beside="entities"))
    before, times = len(questions(browser)), explorer.graph.timeline.labels()
    seen = set()
    for at, time in enumerate(times):
        browser.run(
            f"(() => {{ const s = document.getElementById('slider'); s.value = {at};"
            " s.dispatchEvent(new Event('input')); s.dispatchEvent(new Event('change')); })()"
        )
        given = asked_by(browser.run("location.href"))
        assert given["time"] == time
        assert time in browser.run("document.getElementById('asked').textContent")
        for column, run in enumerate(("split", "entities")):
            expected = explorer.answer("ask", {**given, "run": run})["here"]["rows"]
            assert answers(browser, column) == first_ten(expected)
            seen.add(str(expected))
    browser.run("new Promise(done => setTimeout(done, 300))")  # longer than a request is held back
    assert len(questions(browser)) == before
    assert len(seen) > 4


def test_the_slider_of_a_model_that_takes_longer(
    browser: Browser, server: Server, explorer: Explorer
) -> None:
    """It has answered at one time; the others come after that, with one more request."""
    browser.open(address(server, subject="plain", run="path"))
    given, times = asked_by(browser.run("location.href")), explorer.graph.timeline.labels()
    browser.run("0")
    parts = [urlsplit(each).path for each in browser.requests]
    assert parts.count("/api/ask") == parts.count("/api/times") == 1
    assert parts.index("/api/ask") < parts.index("/api/times")
    before = len(questions(browser))
    for at in range(0, len(times), 4):
        browser.run(
            f"(() => {{ const s = document.getElementById('slider'); s.value = {at};"
            " s.dispatchEvent(new Event('input')); })()"
        )
        expected = explorer.answer("ask", {**given, "time": times[at]})["here"]["rows"]
        assert answers(browser) == first_ten(expected)
    browser.run("new Promise(done => setTimeout(done, 300))")  # longer than a request is held back
    assert len(questions(browser)) == before


@pytest.mark.parametrize("run", ["split", "path"])
def test_the_slider_beyond_what_was_asked_at_once(
    browser: Browser,
    server: Server,
    explorer: Explorer,
    monkeypatch: pytest.MonkeyPatch,
    run: str,
) -> None:
    monkeypatch.setattr("splime.explorer.asking.TIMES", 4)
    monkeypatch.setattr("splime.explorer.asking._TIMED", 4)
    browser.open(address(server, subject="plain", time="1995", run=run))
    browser.run(
        "(() => { const s = document.getElementById('slider'); s.value = s.max;"
        " s.dispatchEvent(new Event('input')); })()"
    )
    browser.wait("document.querySelectorAll('#answers tbody tr').length")
    last = explorer.graph.timeline.labels()[-1]
    given = {**asked_by(browser.run("location.href")), "time": last}
    assert answers(browser) == first_ten(explorer.answer("ask", given)["here"]["rows"])


def test_an_address_back_and_forth(browser: Browser, server: Server, explorer: Explorer) -> None:
    """Each kind of question by its address; the browser's own buttons lead back."""
    fact = explorer.answer("about", {})["tests"][0]
    for kind in ("subject", "predicate", "time"):
        names = {
            name: "" if name == kind else fact[name] for name in ("subject", "predicate", "object")
        }
        time = "" if kind == "time" else fact["time"]
        browser.open(address(server, **{**names, "ask": kind, "time": time}))
        reply = explorer.answer("ask", asked_by(browser.run("location.href")))
        if kind == "time":
            assert answers(browser) == by_rank(reply["spans"])
            bars = browser.run("document.querySelectorAll('#answers .spans rect').length")
            assert bars == len(reply["spans"])
        else:
            assert answers(browser) == first_ten(reply["here"]["rows"])
            assert browser.run("document.getElementById('time').value") == time
    first = browser.run("document.getElementById('asked').textContent")
    browser.run("document.getElementById('tests').open = true")
    asks = "[...document.querySelectorAll('#tests a')].filter(e => e.textContent === 'what?')"
    browser.wait(f"{asks}.length > 8")
    browser.click(f"{asks}[8]")
    browser.wait(f"document.getElementById('asked').textContent !== {json.dumps(first)}")
    browser.run("history.back()")
    browser.wait(f"document.getElementById('asked').textContent === {json.dumps(first)}")


def test_when_with_many_times(browser: Browser, server: Server) -> None:
    """The best and the known are at hand; all of them can be opened."""
    browser.open(address(server, subject="plain"))
    spans = [
        {"rank": 1 + at * 7 % 40, "name": f"p[{at}]", "score": 1.0, "probability": None,
         "known": "train" if at == 39 else None, "remark": "", "begin": "1990", "end": "1991",
         "share": 0.5}
        for at in range(40)
    ]  # fmt: skip
    browser.run(
        "document.getElementById('answers').replaceChildren("
        f"...spanTables('split', {{spans: {json.dumps(spans)}}}))"
    )
    rows = "document.querySelectorAll('#answers tbody tr').length"
    assert browser.run(rows) == 11
    ranks = browser.run(
        "[...document.querySelectorAll('#answers td:first-child')].map(e => e.textContent)"
    )
    assert ranks == [*map(str, range(1, 11)), str(1 + 39 * 7 % 40)]
    browser.click("document.querySelector('#answers summary')")
    browser.wait(f"{rows} === 51")


def test_evidence_of_another_time_is_not_left(
    browser: Browser, server: Server, explorer: Explorer
) -> None:
    """Neither what is shown when the time moves, nor what arrives afterwards."""
    browser.open(address(server, subject="plain", run="path"))
    why = "document.getElementById('reasons')"
    browser.wait(f"{why}.querySelector('ul, .note')")
    move = (
        "(() => { const s = document.getElementById('slider'); s.value = %d;"
        " s.dispatchEvent(new Event('input')); })()"
    )
    asked = "new URLSearchParams(asked[asked.length - 1])"
    browser.run(
        "window.asked = []; window.held = window.get; window.get = async (...all) => {"
        " const reply = await held(...all); if (all[0] === 'why') {"
        f" asked.push(all[1]); if (asked.length === 1) {move % 5}; }} return reply; }}"
    )
    browser.run(move % 2)
    assert browser.run(f"{why}.textContent") == ""
    # That of the first move arrives after the second one, and is dropped for the next.
    browser.wait("asked.length === 2")
    times = explorer.graph.timeline.labels()
    assert browser.run(f"{asked}.get('time')") == times[5]
    best = browser.run("document.querySelector('#answers .name').textContent")
    assert browser.run(f"{asked}.get('answer')") == best
    browser.wait(f"{why}.querySelector('h2 .name').textContent === {json.dumps(best)}")
    browser.run("window.get = window.held")


def test_bars_of_two_runs_have_one_scale(browser: Browser, server: Server) -> None:
    browser.open(address(server, subject="plain", beside="<u>plain"))
    browser.run(
        "document.querySelectorAll('#answers td:last-child')[0].textContent = '1'.repeat(30)"
    )
    lengths = browser.run(
        "[...document.querySelectorAll('#answers tbody tr')].map(row =>"
        " [parseFloat(row.children[2].textContent),"
        " row.querySelector('.sure').getBoundingClientRect().width])"
        ".filter(([sure]) => sure >= 1)"
    )
    assert len(lengths) > 4
    for sure, width in lengths:
        assert width == pytest.approx(1.28 * sure, abs=0.2)


def test_marks_of_direction_are_seen(browser: Browser, server: Server, explorer: Explorer) -> None:
    """As in the terminal, in text and fields; what is asked for is the name itself."""
    marked = next(name for name in ENTITIES if "\u202e" in name)
    browser.open(address(server, subject=marked))
    assert browser.run("document.getElementById('subject').value") == visible(marked)
    assert visible(marked) in browser.run("document.getElementById('asked').textContent")
    browser.click("document.querySelector('button[type=submit]')")
    browser.wait("!document.getElementById('result').hasAttribute('aria-busy')")
    given = asked_by(browser.run("location.href"))
    assert given["subject"] == marked
    expected = explorer.answer("ask", given)["here"]["rows"]
    assert answers(browser) == first_ten(expected)
    browser.run("for (const each of document.querySelectorAll('details')) each.open = true")
    browser.wait("document.querySelectorAll('#tests a').length")
    browser.wait("document.querySelector('#rules td') && document.querySelector('#map .points')")
    browser.wait("document.querySelector('#metrics td')")
    assert "\u202e" not in browser.run("document.body.innerText")
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11000)])) + "\U0001f469"
    assert browser.run(f"seen({json.dumps(every)})") == visible(every)
    assert browser.run('seen("\\ud800a")') == visible("\ud800a")


def test_the_map(browser: Browser, server: Server, explorer: Explorer) -> None:
    """A click on a point asks about a fact of it; so do arrows and Enter."""
    browser.open(address(server, subject="plain"))
    browser.run("document.getElementById('map').open = true")
    browser.wait("document.querySelector('#map .points path')")
    points = explorer.answer("map", {"run": "split"})["points"]
    assert browser.run("document.querySelectorAll('#map .points path').length") == len(points)
    keys = browser.run("document.getElementById('map').textContent")
    assert all(predicate in keys for predicate in PREDICATES)
    browser.run(
        "(() => { const s = document.querySelectorAll('#map select')[1]; s.value = 'time';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    painted = browser.run(
        "[...document.querySelectorAll('#map .points path')].map(e => e.getAttribute('class'))"
    )
    size = len(explorer.graph.timeline)
    assert painted == [f"t{int(9.99 * point[4] / size)}" for point in points]
    times = explorer.graph.timeline.labels()
    # The last is drawn over the others.
    browser.click("[...document.querySelectorAll('#map .points path')].at(-1)")
    browser.wait("!document.getElementById('result').hasAttribute('aria-busy')")
    given = asked_by(browser.run("location.href"))
    _, _, label, _, time, subject = points[-1]
    assert (given["subject"], given["time"], given["ask"]) == (subject, times[time], "object")
    assert label.startswith(given["predicate"])
    browser.run("document.querySelector('#map .points').focus()")
    browser.key("ArrowRight", "Enter")  # behind the last is the first
    browser.wait(
        f"new URLSearchParams(location.search).get('subject') === {json.dumps(points[0][5])}"
    )
    browser.wait("!document.getElementById('result').hasAttribute('aria-busy')")
    assert asked_by(browser.run("location.href"))["time"] == times[points[0][4]]


def test_the_map_is_zoomed_and_dragged(browser: Browser, server: Server) -> None:
    """By Ctrl and the wheel, by keys and the mouse; a drag asks nothing, and 0 shows all again."""
    browser.open(address(server, subject="plain"))
    browser.run("document.getElementById('map').open = true")
    browser.wait("document.querySelector('#map .points path')")
    browser.run("document.querySelector('#map .points').scrollIntoView({block: 'center'})")
    box = "document.querySelector('#map .points').getBoundingClientRect()"
    x, y = browser.run(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box})")

    def view() -> list[float]:
        shown = browser.run("document.querySelector('#map .points').getAttribute('viewBox')")
        return [float(number) for number in shown.split()]

    def mouse(kind: str, x: float, y: float, **more: object) -> None:
        browser.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    whole = view()
    for modifiers in (0, 2):  # the wheel alone scrolls the page, with Ctrl it zooms
        mouse("mouseWheel", x, y, deltaX=0, deltaY=-120, modifiers=modifiers)
        browser.run("new Promise(requestAnimationFrame)")
        assert (view()[2] < whole[2]) is bool(modifiers)
        browser.run("document.querySelector('#map .points').scrollIntoView({block: 'center'})")
    left, top, size, _ = view()
    assert left > whole[0]  # about the pointer
    assert left + size < whole[0] + whole[2]
    href = browser.run("location.href")
    mouse("mousePressed", x, y, button="left", clickCount=1)
    mouse("mouseMoved", x + 40, y + 20, button="left", buttons=1)
    mouse("mouseReleased", x + 40, y + 20, button="left", clickCount=1)
    moved = view()
    assert moved[0] < left
    assert moved[1] < top
    assert moved[2] == size
    assert browser.run("location.href") == href
    browser.run("document.querySelector('#map .points').focus()")
    browser.run(
        "for (const key of ['+', '+', '-']) document.activeElement.dispatchEvent("
        "new KeyboardEvent('keydown', {key, bubbles: true}))"
    )
    assert view()[2] == pytest.approx(size / 1.5)
    browser.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: '0'}))")
    assert view() == whole


def test_looking_at_entities_evidence_and_metrics(
    browser: Browser, server: Server, explorer: Explorer
) -> None:
    browser.open(address(server, subject=ENTITIES[1], run="path", beside="split"))
    browser.click("document.querySelector('#asked a')")
    browser.wait("!document.getElementById('page').hidden")
    shown = browser.run("document.querySelectorAll('#page dt').length")
    assert shown == len(explorer.answer("facts", {"kind": "entity", "name": ENTITIES[1]})["facts"])
    # The address has it, too.
    browser.open(browser.run("location.href"))
    browser.wait("!document.getElementById('page').hidden")
    for column, words in ((0, ("behind the answer", "No chain")), (1, ("nearest known facts",))):
        browser.click(
            f"document.querySelectorAll('#answers > div')[{column}].querySelector('button.name')"
        )
        has_words = " || ".join(
            f"document.getElementById('reasons').textContent.includes({json.dumps(word)})"
            for word in words
        )
        browser.wait(has_words)
    browser.run("for (const name of ['metrics', 'map']) document.getElementById(name).open = true")
    browser.wait("document.getElementById('metrics').textContent.includes('MRR')")
    # The first run has no map, and the second one has.
    browser.wait("document.querySelector('#map svg.points')")


def test_the_picture_of_evidence(browser: Browser, server: Server, explorer: Explorer) -> None:
    """A bar for each fact, a lane for each name; both can be clicked, and reached by keys."""
    first = explorer.answer("about", {})["examples"][0]
    browser.open(address(server, **first, run="path"))
    browser.wait("document.querySelector('#reasons .evidence')")
    best = explorer.answer("ask", {"run": "path", **first})["here"]["rows"][0][1]
    reply = explorer.answer("why", {"run": "path", **first, "answer": best})
    names = {fact[side] for fact in reply["facts"] for side in ("subject", "object")}
    assert browser.run("document.querySelectorAll('.evidence .fact').length") == len(reply["facts"])
    lanes = browser.run("[...document.querySelectorAll('.evidence .node')].map(e => e.textContent)")
    assert len(lanes) == len(names)
    chains = browser.run("document.querySelectorAll('.chains strong').length")
    assert chains == len(reply["chains"])
    bar = "document.querySelector('.evidence .fact[data-number=\"0\"]')"
    browser.run(f"{bar}.focus()")
    browser.key("Enter")
    fact = reply["facts"][0]
    detail = browser.run("document.querySelector('.detail').textContent")
    assert visible(f"{fact['subject']} {fact['predicate']} {fact['object']}") in detail
    asks = "[...document.querySelectorAll('.detail a')].map(e => e.textContent).slice(-3)"
    assert browser.run(asks) == ["what?", "who?", "when?"]
    browser.click("document.querySelector('.evidence .node rect')")
    browser.wait("!document.getElementById('page').hidden")
    given = dict(parse_qsl(urlsplit(browser.run("location.href")).query))
    assert given["about"] == "entity"
    assert given["of"] in names


def test_what_changed_between_two_runs(
    browser: Browser, server: Server, explorer: Explorer
) -> None:
    browser.open(address(server, subject="plain", beside="entities"))
    given = asked_by(browser.run("location.href"))
    before, after = (
        {row[1]: row[0] for row in explorer.answer("ask", {**given, "run": run})["here"]["rows"]}
        for run in ("split", "entities")
    )
    expected = []
    for name, rank in after.items():
        by = before.get(name, 99) - rank
        mark = "=" if by == 0 else f"{'↑' if by > 0 else '↓'}{abs(by)}"
        expected += [mark if before.get(name, 99) <= 10 else "new"] * (rank <= 10)
    shown = browser.run(
        "[...document.querySelectorAll('#answers > div:nth-child(2) tbody tr')]"
        ".map(row => row.children[3].textContent)"
    )
    assert shown == expected
    assert len(set(shown)) > 2


def test_copies(browser: Browser, server: Server, runs: dict[str, Run]) -> None:
    """The command and the program ask the same, whatever names hold."""
    for name in ENTITIES:
        browser.open(address(server, subject=name, run="path", time="1993..1995"))
        browser.run("document.getElementById('command').click()")
        text = browser.run("document.getElementById('copied').textContent")
        assert text == visible(text)
        done = subprocess.run(
            ["bash", "-c", f"printf '%s\\0' {text}"], capture_output=True, env={"LC_ALL": "C.UTF-8"}
        )
        path = str(runs["path"].path)
        expected = ["splime", "ask", path, quoted(name), PREDICATES[0], "?", "--during"]
        assert done.stdout.decode().split("\0")[:-1] == [*expected, "1993..1995", "--why"]
        browser.run("document.getElementById('python').click()")
        program = browser.run("document.getElementById('copied').textContent")
        call = ast.parse(program).body[1].value.args[0]
        assert [each.value for each in call.args] == [path, quoted(name), PREDICATES[0], "?"]
        assert ast.literal_eval(call.keywords[0].value) == ("1993", "1995")


def test_downloads(browser: Browser, server: Server, tmp_path: Path) -> None:
    formula = next(name for name in ENTITIES if name.startswith("="))
    browser.open(address(server, subject=formula))
    browser.do("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    for kind in ("csv", "json"):
        browser.click(f"document.getElementById('{kind}')")
    files = [tmp_path / f"answers.{kind}" for kind in ("csv", "json")]
    browser._wait_for(lambda: all(file.exists() and file.stat().st_size for file in files))
    expected = browser.run(
        "shownAnswers().map(({answer}) => answer.startsWith('=') ? `'${answer}` : answer)"
    )
    with files[0].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["answer"] for row in rows] == expected
    assert {row["subject"] for row in rows} == {f"'{formula}"}
    assert any(float(row["score"]) < 0 for row in rows)  # numbers stay numbers
    loaded = json.loads(files[1].read_text(encoding="utf-8"))
    assert [row["answer"] for row in loaded] == [name.removeprefix("'") for name in expected]
    assert [float(row["score"]) for row in rows] == [row["score"] for row in loaded]


def test_without_facts_of_test(chromium: Browser, tmp_path: Path) -> None:
    """The page opens without a question, and then takes one."""
    rows = [(f"e{n % 5}", "<b>p", f"e{(n + 1) % 7}", 1990 + n % 9) for n in range(60)]
    run = splime.train(
        splime.read(rows, split="none"), "vanilla", tmp_path / "run", model="distmult", dimension=4,
        epochs=1, validate_every=0,
    )  # fmt: skip
    server = splime.explore(run, port=0)
    try:
        chromium.open(server.address)
        assert chromium.run("document.getElementById('message').textContent") == ""
        assert answers(chromium)  # about a fact of train, just beside its time
        for name, value in {"subject": "e1", "predicate": "<b>p", "time": "1992"}.items():
            chromium.run(f"document.getElementById('{name}').value = '{value}'")
        chromium.click("document.querySelector('button[type=submit]')")
        chromium.wait("document.querySelectorAll('#answers tbody tr').length")
    finally:
        server.stop()


def test_a_backtest_is_drawn(chromium: Browser, tmp_path: Path) -> None:
    graph, path = small_graph(), tmp_path / "backtest.json"
    found = splime.backtest(graph, questions=20, every=4, out=path)
    server = splime.explore(GraphRun(graph, device="cpu"), port=0, backtest=path)
    chromium.clear()
    try:
        chromium.open(server.address)
        chromium.run("document.getElementById('backtest').open = true")
        rows = "document.querySelectorAll('#backtest tbody tr')"
        chromium.wait(f"{rows}.length === {len(found)}")
        text = chromium.run("document.getElementById('backtest').textContent")
        for name in ("path", "recurrency", "latest"):
            assert f"{found.mean(name).mrr:.3f}" in text
        assert chromium.run("document.querySelectorAll('#backtest .chart .line').length") == 5
        assert chromium.console == []
    finally:
        server.stop()


def test_wrong_names_are_said_and_the_page_goes_on(chromium: Browser, server: Server) -> None:
    chromium.open(address(server, subject="nobody <b>at all</b>"))
    assert "no entity is called" in chromium.run("document.getElementById('message').textContent")
    assert chromium.run("document.getElementById('result').hidden")
    chromium.run("document.getElementById('subject').value = 'plain'")
    chromium.click("document.querySelector('button[type=submit]')")
    chromium.wait("document.querySelectorAll('#answers tbody tr').length")
    assert chromium.run("document.getElementById('message').textContent") == ""


def test_one_run_that_cannot_answer_does_not_hide_the_other(
    chromium: Browser, server: Server, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("splime.explorer.asking._SPANS", 1)
    fact = explorer.answer("about", {})["tests"][0]
    names = {name: fact[name] for name in NAMES}
    chromium.open(address(server, **names, ask="time", time="", run="path", beside="split"))
    given = asked_by(chromium.run("location.href"))
    assert "too long" in chromium.run("document.getElementById('answers').textContent")
    spans = explorer.answer("ask", {**given, "run": "split"})["spans"]
    assert answers(chromium, 1) == by_rank(spans)


def test_without_the_token(chromium: Browser, server: Server) -> None:
    chromium.open(address(server).partition("#")[0] + "#wrong", ready="true")
    chromium.wait("document.getElementById('message')?.textContent.includes('has printed')")
    chromium.open(server.address)
    assert answers(chromium)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(browser: Browser, server: Server, tmp_path: Path, scheme: str) -> None:
    """Nothing is wider than the window, and letters differ enough from what is behind them."""
    browser.scheme(scheme)
    browser.size(360, 700)
    browser.open(address(server, subject=ENTITIES[0], beside="path"))
    answer = browser.run("document.getElementById('best').getBoundingClientRect().bottom")
    assert answer < 700  # on the first screen
    browser.click("document.querySelector('#asked a')")
    browser.run("for (const each of document.querySelectorAll('details')) each.open = true")
    browser.wait("document.querySelector('#map .points') && document.querySelector('#page dt')")
    browser.wait("document.querySelector('#rules td')")
    browser.run("for (const each of document.querySelectorAll('details')) each.open = true")
    assert browser.run("document.documentElement.scrollWidth") <= 360
    browser.wait("document.querySelector('#metrics td')")
    words = browser.run(
        "[...document.querySelectorAll('#metrics td')].filter(e => !e.children.length)"
        ".map(cell => {"
        " const text = document.createRange(); text.selectNodeContents(cell);"
        " return [cell.textContent.split(' ').length, text.getClientRects().length]; })"
    )
    assert all(lines <= count for count, lines in words)  # no word is broken
    ink, back = browser.run(
        "(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))"
    )
    assert (luminance(ink) < luminance(back)) == (scheme == "light")
    pairs = {tuple(pair) for pair in browser.run(_COLOURS)}
    assert len(pairs) > 5
    for letters, behind in pairs:
        low, high = sorted(map(luminance, (letters, behind)))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (letters, behind)


_COLOURS = """
[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && !e.disabled
  && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())).map(e => {
  let behind = e;
  const back = () => getComputedStyle(behind).backgroundColor;
  while (back() === 'rgba(0, 0, 0, 0)' && behind.parentElement) behind = behind.parentElement;
  const node = e.closest('.node')?.querySelector('rect'), style = getComputedStyle(e);
  const isSvg = e instanceof SVGElement && e.tagName !== 'title';
  return [isSvg ? style.fill : style.color, node ? getComputedStyle(node).fill : back()];
})
"""
"""The colours of letters, and of what is behind them."""


def luminance(colour: str) -> float:
    """As the guidelines for accessible pages have it."""
    parts = [int(part) / 255 for part in colour.strip("rgb()").split(", ")]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_console_would_be_heard(chromium: Browser, server: Server) -> None:
    """A wrong script, markup that loads something, and a request to elsewhere would be noticed."""
    chromium.open(address(server, subject="plain"))
    chromium.console.clear()
    chromium.run(
        "document.body.insertAdjacentHTML('beforeend', '<img src=\"https://example.org/x\">')"
    )
    chromium.run("setTimeout(() => nobody.knows())")
    chromium.run("fetch('https://example.org/').catch(() => 0)")
    chromium.run("new Promise(done => setTimeout(done, 100))")
    text = " ".join(chromium.console)
    assert "img-src" in text
    assert "connect-src" in text
    assert "nobody" in text


def test_a_page_without_a_server(
    browser: Browser, runs: dict[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("splime.explorer.looking._TESTS", 5)
    explorer, path = Explorer([runs["split"], runs["path"]]), tmp_path / "page.html"
    write_explorer(explorer, path)
    html = path.read_text(encoding="utf-8")
    assert html.count("<script") == 2  # the data and the script, whatever names there are
    assert "'unsafe-inline'" not in html
    browser.open(path.as_uri())
    given = asked_by(browser.run("location.href"))
    stored = explorer.answer("ask", given)
    assert answers(browser) == first_ten(stored["here"]["rows"])
    assert len(browser.run("[...document.querySelectorAll('#answers > div')]")) == 2
    browser.run(
        "(() => { const s = document.getElementById('slider'); s.value = 3;"
        " s.dispatchEvent(new Event('input')); s.dispatchEvent(new Event('change')); })()"
    )
    step = [each for each in stored["steps"] if each["from"] <= 3][-1]
    assert answers(browser) == first_ten(step["rows"])
    others = explorer.answer("times", {**given, "run": "path"})["steps"]
    step = [each for each in others if each["from"] <= 3][-1]
    assert answers(browser, 1) == first_ten(step["rows"])
    browser.run("document.getElementById('tests').open = true")
    asks = "[...document.querySelectorAll('#tests a')].filter(e => e.textContent === 'what?')"
    browser.click(f"{asks}[2]")
    browser.wait("document.querySelectorAll('#answers tbody tr').length")
    # Whatever can be clicked is in the page.
    buttons = browser.run("document.querySelectorAll('#answers button.name').length")
    assert buttons >= 2
    for at in range(buttons):
        browser.click(f"document.querySelectorAll('#answers button.name')[{at}]")
        browser.wait("document.activeElement.id === 'reasons'")
        browser.run("document.activeElement.blur()")
    names = "document.querySelectorAll('#asked a')"
    for at in range(browser.run(f"{names}.length")):
        browser.run("document.getElementById('page').hidden = true")
        browser.click(f"{names}[{at}]")
        browser.wait("!document.getElementById('page').hidden")
    browser.run("for (const each of document.querySelectorAll('details')) each.open = true")
    browser.wait("document.querySelector('#map .points') && document.querySelector('#rules td')")
    assert {urlsplit(each).scheme for each in browser.requests} <= {"file", "data", "about"}
