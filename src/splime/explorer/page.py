"""The page: one file, which asks the server, or holds the replies itself."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from splime.errors import SplimeError, UsageError, counted, visible
from splime.explorer.looking import Explorer
from splime.io.files import atomic_write
from splime.progress import Progress, silent
from splime.scoring.scoping import NAMES


def _hash(text: str) -> str:
    """How a content policy names a script or style of the page itself."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


_HTML, _STYLE, *_SCRIPTS = (
    (files("splime.explorer") / name).read_text("utf-8")
    for name in ("page.html", "page.css", "elements.js", "charts.js", "page.js", "views.js")
)
_SCRIPT = "".join(_SCRIPTS)
MEGABYTES = 5.0
"""What a page without a server has at most, unless it is said."""
POLICY: str = (
    "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; connect-src 'self';"
    f" script-src {_hash(_SCRIPT)}; style-src {_hash(_STYLE)}"
)
"""What the page may load: its own script, style and answers. (The empty icon is data.)"""


def page_html(explorer: Explorer, stored: Mapping[str, Any] | None = None) -> str:
    """The page in one file, with stored replies, or without: then it asks its server."""
    return Template(_HTML).substitute(
        title=escape(visible(f"splime explore: {explorer.graph.name or 'facts'}")),
        policy=POLICY,
        style=_STYLE,
        data="null" if stored is None else f'"{b64encode(_packed(stored)).decode()}"',
        script=_SCRIPT,
    )


def _packed(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode(), 9)


def write_explorer(
    explorer: Explorer,
    path: str | Path,
    *,
    megabytes: float = MEGABYTES,
    progress: Progress = silent,
) -> str:
    """Write the page into one file that works without a server; returns what it holds.

    It holds the answers to questions about up to 100 facts, drawn at random from those of test,
    each asked who and what, as many as there is room for.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{path}: the page is an .html file")
    if not megabytes > 0:
        raise UsageError(f"megabytes is a number above 0, not {megabytes}")
    pages = _Pages(explorer)
    room = megabytes * 1e6 - len(page_html(explorer, pages.stored))
    held = pages.fill(room, progress)
    text = page_html(explorer, pages.stored)
    with atomic_write(path) as beside:
        beside.write_text(text, encoding="utf-8")
    return held


class _Pages:
    """The replies that a page of one file shows, by what its script looks them up by."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self.stored: dict[str, Any] = {}
        self._keep(self.stored, "rules", predicate="")
        for run in explorer.queries:
            self._keep(self.stored, "map", run=run)
            self._keep(self.stored, "metrics", run=run)
        self._about = self._keep(self.stored, "about")

    def fill(self, room: float, progress: Progress) -> str:
        """Keep the answers to questions, until there is no more room for them."""
        about = self._about
        doubts = [row for row in about["doubts"] if row["predicate"] is not None]
        rows = [*about["examples"], *about["tests"], *doubts]
        held = []
        for done, row in enumerate(rows):
            progress("asking", done, len(rows))
            replies = self._replies(row)
            # JSON is text of letters again: four for three bytes.
            room -= 4 / 3 * len(_packed(replies))
            if room < 0:
                break
            self.stored |= replies
            held.append(row)
        progress("asking", len(rows), len(rows))
        for part in ("examples", "tests"):
            about[part] = [row for row in about[part] if row in held]
        whole = len(held) == len(rows)
        about["held"] = counted(len(held), "question") + (
            "" if whole else f" of {len(rows)}; there was no room for more"
        )
        return str(about["held"])

    def _replies(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """All that can be looked at about one fact."""
        replies: dict[str, Any] = {}
        names = [("entity", row["subject"]), ("entity", row["object"])]
        for kind, name in [*names, ("predicate", row["predicate"])]:
            if name:
                self._keep(replies, "facts", kind=kind, name=name)
        # An example asks for one thing, a fact may be asked for both.
        kinds = (row["ask"],) if "ask" in row else ("object", "subject")
        for run in self._explorer.queries:
            self._keep(replies, "predicate", run=run, name=row["predicate"])
            for kind in kinds:
                self._ask(replies, run, kind, row)
        return replies

    def _ask(self, replies: dict[str, Any], run: str, kind: str, row: Mapping[str, Any]) -> None:
        names = {name: "" if name == kind else row[name] for name in NAMES}
        time = "" if kind == "time" else row["time"]
        asked = {"run": run, "ask": kind, **names, "time": time}
        reply = self._keep(replies, "ask", **asked)
        if reply.get("more"):
            self._keep(replies, "times", **asked)
        best = [name for _, name, *_ in reply.get("here", {"rows": []})["rows"][:1]]
        for answer in (*best, row[kind] if kind in NAMES else ""):
            if answer or kind == "time":
                self._keep(replies, "why", **asked, answer=answer)

    def _keep(self, replies: dict[str, Any], part: str, **given: str) -> Any:
        # As the script writes a part and its arguments.
        key = json.dumps([part, *given.values()], ensure_ascii=False, separators=(",", ":"))
        if key in self.stored:
            return self.stored[key]
        if key not in replies:
            try:
                replies[key] = self._explorer.answer(part, given)
            except SplimeError as error:
                replies[key] = {"error": str(error)}
        return replies[key]
