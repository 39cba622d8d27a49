"""The page about runs: what is on it, and that a browser opens it without a complaint."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

import splime
from splime.errors import UsageError
from splime.reporting.showing import write_page
from splime.runs import Run
from tests.runs.small import call, small_graph, small_run

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
SECTIONS = (
    "summary", "data", "cuts", "training", "by-predicate-and-period", "embeddings", "questions",
    "how-it-was-made",
)  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder, graph = tmp_path_factory.mktemp("runs"), small_graph()
    methods = {
        "vanilla": splime.Vanilla(),
        "split <b>": splime.Split(grow=4),
        "random": splime.RandomSplit(predicates=12),
        "changes": splime.ChangePointSplit(penalty=0.2),
    }
    return [small_run(graph, folder / name, method) for name, method in methods.items()]


@pytest.fixture(scope="module")
def page(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    done: dict[str, list[int]] = {}
    write_page(runs, path, progress=lambda what, now, *_: done.setdefault(what, []).append(now))
    assert done["drawing"] == list(range(len(SECTIONS) + 1))
    return path


def words(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<(style|script)>.*?</\1>", "", html)))


def test_everything_is_on_it(page: Path, runs: list[Run]) -> None:
    html = page.read_text(encoding="utf-8")
    assert tuple(re.findall(r'<section id="([^"]*)"', html)) == SECTIONS
    text = words(html)
    for run in runs:
        assert run.path.name in text
        mrr = splime.evaluate(run).metrics["exact"]["both"].mrr
        assert f"{mrr:.3f}" in text
    for part in ("duplicates in the split", "scoped predicates", "smooth over time"):
        assert part in text
    # A run is called "split <b>": nowhere is it markup.
    assert "split <b>" not in html
    assert "split &lt;b&gt;" in html


def test_it_has_its_pictures_and_needs_nothing_else(page: Path) -> None:
    html = page.read_text(encoding="utf-8")
    pictures = re.findall(r'<img src="data:image/(svg\+xml|png);base64,[^"]+" alt="([^"]+)"', html)
    about = " ".join(alt for _, alt in pictures)
    for part in ("MRR of every run", "Facts that hold", "Scopes of the most frequent", "cost",
                 "Loss and MRR", "each predicate and period", "t-SNE", "from old"):  # fmt: skip
        assert part in about, part
    assert about.count("Scopes") == 1  # not one for each run
    assert len(pictures) == html.count("<img")
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//|@import|url\((?!data:)""", html)


def test_the_summary_comes_first_and_mrr_after_the_name(page: Path) -> None:
    html = page.read_text(encoding="utf-8")
    summary = html.partition('id="data"')[0].partition('id="summary"')[2]
    assert "Best: " in summary
    assert re.findall(r"<th[^>]*>([^<]*)</th>", summary)[:2] == ["run", "MRR"]
    mark = "†" in words(summary.partition("<tbody>")[2].partition("</tbody>")[0])
    assert ("† The difference" in words(summary)) == mark  # explained where it is used
    # All questions but the first wait for a click.
    questions = html.partition('id="questions"')[2].partition("</section>")[0]
    assert questions.partition("<details>")[0].count("<h3>") == 1


def browse(path: Path, screenshot: Path, *more: str) -> tuple[str, list[str]]:
    """Open a page in a phone's size: the document afterwards, and what the console has."""
    assert CHROMIUM is not None
    done = subprocess.run(
        [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--enable-logging=stderr", "--log-level=0", "--virtual-time-budget=5000",
         "--window-size=500,900", f"--user-data-dir={screenshot.parent / 'profile'}",
         f"--screenshot={screenshot}", *more, path.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout, re.findall(r":CONSOLE.*", done.stderr)


@pytest.mark.system
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (Debian's package chromium)")
class TestInABrowser:
    def test_the_console_is_quiet(self, page: Path, tmp_path: Path) -> None:
        picture = tmp_path / "page.png"
        _, console = browse(page, picture)
        assert console == []
        assert picture.stat().st_size > 20_000

    def test_it_would_be_heard(self, page: Path, tmp_path: Path) -> None:
        """The same test fails where a script is wrong, or something is loaded from elsewhere."""
        html = page.read_text(encoding="utf-8")
        for wrong in ("<script>nobody.knows()</script>", '<img src="https://example.org/x.png">'):
            path = tmp_path / "wrong.html"
            path.write_text(html.replace("</body>", f"{wrong}</body>"), encoding="utf-8")
            _, console = browse(path, tmp_path / "wrong.png")
            assert len(console) == 1

    def test_it_fits_a_phone_and_sorts(self, page: Path, tmp_path: Path) -> None:
        """Nothing is wider than the window, and a click sorts a table."""
        probe = """<script>
          const head = document.querySelectorAll("#summary th");
          const cells = () => [...document.querySelectorAll("#summary tbody td:first-child")].map(
            cell => cell.textContent).join(";");
          head[0].click(); const up = cells(); head[0].click(); const down = cells();
          document.body.dataset.sizes = [window.innerWidth,
            document.documentElement.scrollWidth, up, down].join("|");
        </script>"""
        path = tmp_path / "probe.html"
        html = page.read_text(encoding="utf-8")
        path.write_text(html.replace("</body>", f"{probe}</body>"), encoding="utf-8")
        document, console = browse(path, tmp_path / "probe.png", "--dump-dom")
        assert console == []
        sizes = re.search(r'data-sizes="([^"]*)"', document)
        assert sizes is not None
        inner, width, up, down = unescape(sizes[1]).split("|")
        assert int(width) <= int(inner)
        assert up.split(";") == sorted(up.split(";"))
        assert down.split(";") == up.split(";")[::-1]


@pytest.mark.system
def test_one_run_without_cuts(runs: list[Run], tmp_path: Path) -> None:
    write_page(runs[:1], tmp_path / "one.html")
    text = words((tmp_path / "one.html").read_text(encoding="utf-8"))
    assert "How it was made" in text
    assert not {"Cuts", "Embeddings"} & set(text.split())


@pytest.mark.system
def test_facts_without_a_test(tmp_path: Path) -> None:
    run = Run.of(splime.split_graph(small_graph(), "none"))
    write_page([run], tmp_path / "facts.html")
    html = (tmp_path / "facts.html").read_text(encoding="utf-8")
    assert re.findall(r'<section id="([^"]*)"', html) == ["summary", "data", "rules"]
    assert "each fact hidden in turn" in words(html)
    assert "leaks" not in words(html)
    with pytest.raises(UsageError, match="name them alone"):
        write_page([run, run], tmp_path / "two.html")


def test_mistakes(runs: list[Run], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"report\.pdf: the page is an \.html file"):
        write_page(runs, tmp_path / "report.pdf")
    with pytest.raises(UsageError, match="at least one run"):
        write_page([], tmp_path / "report.html")
    other = small_run(small_graph(seed=1), tmp_path / "other")
    with pytest.raises(UsageError, match="other"):
        write_page([runs[0], other], tmp_path / "report.html")
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.system
def test_on_the_command_line(runs: list[Run], tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = call("report", runs[0].path, runs[1].path, "--out", out)
    assert done.code == 0, done.err
    assert str(out) in done.out.replace("\n", "")
    assert "<!doctype html>" in out.read_text(encoding="utf-8")
    done = call("report", tmp_path / "nothing", "--out", tmp_path / "no.html")
    assert done.code == 2
    assert "there is no such run" in done.err
    assert not (tmp_path / "no.html").exists()
