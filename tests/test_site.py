"""The documentation site builds without a warning, is complete, and loads nothing from outside."""

from __future__ import annotations

import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import typer

import splime
from splime.cli.main import app
from splime.embedding.losses import LOSSES
from splime.embedding.models import MODELS
from splime.exports import FORMATS
from splime.methods import METHODS
from splime.reporting.showing import PICTURES
from tests.report.test_page import CHROMIUM, browse
from tests.test_docs import ROOT

pytestmark = pytest.mark.slow
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium (Debian's package chromium)"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-qWEa", "--keep-going", "-c", "docs/site", ".", folder],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def words(page: Path) -> str:
    return unescape(re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8")))


def test_every_document_is_on_it(site: Path) -> None:
    for document in [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/notebooks/*.ipynb")]:
        assert (site / document.relative_to(ROOT).with_suffix(".html")).exists(), document
    for name in ("README", "CHANGELOG", "CONTRIBUTING", "benchmarks/README"):
        assert (site / f"{name}.html").exists()
    assert 'url=docs/index.html"' in (site / "index.html").read_text(encoding="utf-8")


def test_it_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        # Links that a reader may follow are no loads.
        html = re.sub(r"<a\s[^>]*>", "", page.read_text(encoding="utf-8"))
        assert not re.search(r"""(?:src|href|srcset|data)=["']?(?:https?:)?//""", html), page
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"""@import|url\(["']?(?:https?:)?//""", text), style


def test_every_public_name_has_a_page(site: Path) -> None:
    listed = (site / "docs/python.html").read_text(encoding="utf-8")
    for name in dir(splime):
        (page,) = [
            *site.glob(f"docs/python/{name}.html"),
            *site.glob(f"docs/python/class-{name}.html"),
        ]
        html = page.read_text(encoding="utf-8")
        assert re.search(rf'id="(?:module-)?splime\.{name}"', html), name
        assert f'href="python/{page.name}"' in listed, name


def commands(group: Any, before: str) -> list[tuple[str, Any]]:
    parts = []
    for name, command in group.commands.items():
        deeper = hasattr(command, "commands")
        parts += (
            commands(command, f"{before} {name}") if deeper else [(f"{before} {name}", command)]
        )
    return parts


def test_every_option_is_explained(site: Path) -> None:
    listed = (site / "docs/commands.html").read_text(encoding="utf-8")
    brief = words(site / "docs/cheatsheet.html")
    known = commands(typer.main.get_command(app), "splime")
    pages = {name: "-".join(name.split()[1:]) for name, _ in known}
    assert {page.stem for page in site.glob("docs/commands/*.html")} == {*pages.values()}
    for name, command in known:
        assert name.removeprefix("splime ") in brief
        assert f'href="commands/{pages[name]}.html"' in listed
        page = (site / f"docs/commands/{pages[name]}.html").read_text(encoding="utf-8")
        text = unescape(re.sub(r"<[^>]*>", " ", page))
        for parameter in command.params:
            for option in parameter.opts if parameter.param_type_name == "option" else []:
                assert re.search(rf"{option}\b", text), (name, option)


def test_everything_of_the_registries_is_in_tables(site: Path) -> None:
    html = (site / "docs/registries.html").read_text(encoding="utf-8")
    for name in (*METHODS, *MODELS, *LOSSES, *FORMATS, *PICTURES):
        assert f'<span class="pre">{name}</span>' in html, name


def test_notebooks_have_their_pictures(site: Path) -> None:
    for page in site.glob("docs/notebooks/*.html"):
        assert page.read_text(encoding="utf-8").count('src="data:image/png;base64,') >= 2


@needs_chromium
class TestInABrowser:
    def test_pages_fit_a_phone(self, site: Path, tmp_path: Path) -> None:
        """Opened side by side, no page is wider than a phone, and the console stays empty."""
        pages = [page.relative_to(site).as_posix() for page in site.rglob("*.html")]
        frames = "".join(
            f'<iframe src="{page}" width="390" height="800"></iframe>' for page in pages
        )
        probe = site / "probe.html"
        probe.write_text(
            f"""<body>{frames}<script>onload = () => {{ document.body.dataset.wide =
            [...document.querySelectorAll("iframe")].filter(
              each => each.contentDocument.documentElement.scrollWidth > 390).map(
              each => each.getAttribute("src")).join(" ") + ";"; }}</script>""",
            encoding="utf-8",
        )
        flag = "--allow-file-access-from-files"
        document, console = browse(probe, tmp_path / "pages.png", "--dump-dom", flag)
        probe.unlink()
        assert console == []
        assert re.findall(r'data-wide="([^"]*)"', document) == [";"]

    @pytest.mark.parametrize(
        ("query", "page"),
        [
            ("fallback", "glossary"),
            ("which model", "which-model"),
            ("deploy", "faq"),
            ("forecast", "forecasting"),
            ("own data", "faq"),
            ("missing end", "faq"),
        ],
    )
    def test_search_works_without_a_server(
        self, site: Path, tmp_path: Path, query: str, page: str
    ) -> None:
        search = site / "search.html"
        probe = site / f"probe-{page}.html"
        script = f'<script>history.replaceState(null, "", "?q={query.replace(" ", "+")}");</script>'
        text = search.read_text(encoding="utf-8")
        probe.write_text(text.replace("<head>", f"<head>{script}", 1), encoding="utf-8")
        document, console = browse(probe, tmp_path / "search.png", "--dump-dom")
        probe.unlink()
        assert console == []
        assert f'href="docs/{page}.html' in document
        assert "Search finished" in document

    def test_code_fits_its_box_and_can_be_copied(self, site: Path, tmp_path: Path) -> None:
        """At 1400 pixels no line of code is cut, and each block has a button."""
        for name in ("README", "docs/howto", "docs/training", "docs/python/train"):
            page = site / f"{name}.html"
            probe = page.with_name("probe.html")
            script = """<script>addEventListener("load", () => setTimeout(() => {
                const all = [...document.querySelectorAll("div.highlight pre")];
                document.body.dataset.cut = all.filter(
                  each => each.scrollWidth > each.clientWidth).length + " of " + all.length;
                document.body.dataset.buttons = document.querySelectorAll("button.copybtn").length;
                }, 500))</script></body>"""
            text = page.read_text(encoding="utf-8")
            probe.write_text(text.replace("</body>", script, 1), encoding="utf-8")
            document, console = browse(
                probe, tmp_path / "code.png", "--dump-dom", "--window-size=1400,1000"
            )
            probe.unlink()
            assert console == []
            assert re.search(r'data-cut="0 of [1-9]', document), name
            assert re.search(r'data-buttons="[1-9]', document), name

    def test_the_cheat_sheet_is_one_page(self, site: Path, tmp_path: Path) -> None:
        sheet = tmp_path / "sheet.pdf"
        subprocess.run(
            [str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", f"--user-data-dir={tmp_path / 'profile'}",
             "--no-pdf-header-footer", f"--print-to-pdf={sheet}",
             (site / "docs/cheatsheet.html").as_uri()],
            capture_output=True, timeout=120, check=True,
        )  # fmt: skip
        assert len(re.findall(rb"/Type /Page\b", sheet.read_bytes())) == 1
