"""The client of docs/serving.md, and the commands and files that it shows."""

from __future__ import annotations

import json
import re

import pytest

import splime
from splime.cli.main import app
from splime.serving.service import VERBS
from tests.test_docs import ROOT, check_promises, python_blocks

DOCUMENT = ROOT / "docs" / "serving.md"


@pytest.mark.system
def test_the_client(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    [client] = python_blocks(DOCUMENT)
    with splime.serve("demo", port=0, token="of the document", timeout=600) as server:
        monkeypatch.setenv("SPLIME_ADDRESS", server.address)
        monkeypatch.setenv("SPLIME_TOKEN", "of the document")
        found: dict[str, object] = {}
        exec(compile(client.replace("timeout=90", "timeout=600"), DOCUMENT, "exec"), found)
        check_promises(client, capsys.readouterr().out)
        with pytest.raises(ValueError, match="no entity is called 'nobody'"):
            found["call"]("ask", subject="nobody", predicate="livesIn", object="?")  # type: ignore[operator]
    lines = [line for line in client.splitlines() if line]
    assert len(lines) <= 20


def test_all_fields_are_told() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(/[a-z/]+)` \| (.*?) \|", text, re.M))
    for name, verb in VERBS.items():
        row = rows[f"/{name.replace('_', '/')}"]
        shared = {"subject", "predicate", "object", "at", "begin", "end"} - {
            *re.findall("`([a-z]+)`", row)
        }
        fields = {*verb.takes.__struct_fields__} - (shared if name in ("when", "why") else set())
        assert fields <= {*re.findall("`([a-z]+)`", row)}, name


def test_configurations_have_commands_that_are_there() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    [configuration] = re.findall(r"```json\n(.*?)```", text, re.S)
    [server] = json.loads(configuration)["mcpServers"].values()
    assert server["args"][0] == "serve"
    used = {*re.findall(r"(?<![\w./-])splime ([a-z]+)", text)}
    assert {"serve", "predict", "update"} <= used <= {*_names()}


def _names() -> list[str]:
    return [command.callback.__name__ for command in app.registered_commands if command.callback]
