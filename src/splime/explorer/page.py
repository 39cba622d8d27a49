"""The page: its files as they are served, and all in one file that needs no server."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from splime.errors import SplimeError, UsageError, visible
from splime.explorer.looking import Explorer
from splime.io.files import atomic_write
from splime.progress import Progress, silent
from splime.scoring.scoping import NAMES

_NOTHING = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"
POLICY = (
    f"{_NOTHING}; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'"
)
"""What the page may load: its own files and answers. (The empty icon is data.)"""


def _read(suffix: str) -> str:
    return (files("splime.explorer") / f"page.{suffix}").read_text("utf-8")


def _title(explorer: Explorer) -> str:
    return escape(visible(f"splime explore: {explorer.graph.name or 'facts'}"))


def served_files(explorer: Explorer) -> dict[str, tuple[str, bytes]]:
    """The files of the page by their addresses: the kind, and the content."""
    html = Template(_read("html")).substitute(
        title=_title(explorer),
        head='<link rel="stylesheet" href="page.css">',
        foot='<script src="page.js"></script>',
    )
    return {
        "/": ("text/html", html.encode()),
        "/page.css": ("text/css", _read("css").encode()),
        "/page.js": ("text/javascript", _read("js").encode()),
    }


def write_explorer(explorer: Explorer, path: str | Path, *, progress: Progress = silent) -> None:
    """Write the page into one file that works without a server, with questions about facts of test.

    There are up to 100 of these, drawn at random, each asked who and what.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{path}: the page is an .html file")
    stored = _everything(explorer, progress)
    style, script = _read("css"), _read("js")
    # No "<" in it could end the element that holds the data.
    data = json.dumps(stored, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    policy = f"{_NOTHING}; script-src {_hash(script)}; style-src {_hash(style)}"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    text = Template(_read("html")).substitute(
        title=_title(explorer),
        head=f"{meta}<style>{style}</style>",
        foot=f'<script type="application/json" id="data">{data}</script><script>{script}</script>',
    )
    with atomic_write(path) as beside:
        beside.write_text(text, encoding="utf-8")


def _everything(explorer: Explorer, progress: Progress) -> dict[str, dict[str, Any]]:
    """All that the page of one file shows, by what its script looks it up by."""
    stored: dict[str, dict[str, Any]] = {}

    def keep(part: str, **given: str) -> dict[str, Any]:
        # As the script writes a part and its arguments.
        key = json.dumps([part, *given.values()], ensure_ascii=False, separators=(",", ":"))
        if key not in stored:
            try:
                stored[key] = explorer.answer(part, given)
            except SplimeError as error:
                stored[key] = {"error": str(error)}
        return stored[key]

    tests = keep("about")["tests"]
    for done, fact in enumerate(tests):
        progress("asking", done, len(tests))
        keep("entity", name=fact["subject"])
        keep("entity", name=fact["object"])
        for run in explorer.queries:
            keep("predicate", run=run, name=fact["predicate"])
            for kind in ("object", "subject"):
                names = {name: "" if name == kind else fact[name] for name in NAMES}
                asked = {"run": run, "ask": kind, **names, "time": fact["time"]}
                reply = keep("ask", **asked)
                if reply.get("more"):
                    keep("times", **asked)
                best = reply.get("here", {"rows": []})["rows"][:1]
                for answer in (*(name for _, name, *_ in best), fact[kind]):
                    keep("why", **asked, answer=answer)
    for run in explorer.queries:
        keep("map", run=run)
        keep("metrics", run=run)
    progress("asking", len(tests), len(tests))
    return stored


def _hash(text: str) -> str:
    """How a content policy names a script or style of the page itself."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
