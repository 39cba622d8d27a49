"""The page: one file, which asks the server, or holds the replies itself."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
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


def _hash(text: str) -> str:
    """How a content policy names a script or style of the page itself."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


_HTML, _STYLE, _SCRIPT = (
    (files("splime.explorer") / f"page.{suffix}").read_text("utf-8")
    for suffix in ("html", "css", "js")
)
POLICY: str = (
    "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; connect-src 'self';"
    f" script-src {_hash(_SCRIPT)}; style-src {_hash(_STYLE)}"
)
"""What the page may load: its own script, style and answers. (The empty icon is data.)"""


def page_html(explorer: Explorer, stored: Mapping[str, Any] | None = None) -> str:
    """The page in one file, with stored replies, or without: then it asks its server."""
    data = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
    return Template(_HTML).substitute(
        title=escape(visible(f"splime explore: {explorer.graph.name or 'facts'}")),
        policy=POLICY,
        style=_STYLE,
        data=data.replace("<", "\\u003c"),  # no "<" in it could end its element
        script=_SCRIPT,
    )


def write_explorer(explorer: Explorer, path: str | Path, *, progress: Progress = silent) -> None:
    """Write the page into one file that works without a server, with questions about facts of test.

    There are up to 100 of these, drawn at random, each asked who and what.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{path}: the page is an .html file")
    text = page_html(explorer, _everything(explorer, progress))
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

    about = keep("about")
    tests = [*about["tests"], *(row for row in about["doubts"] if row["predicate"] is not None)]
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
