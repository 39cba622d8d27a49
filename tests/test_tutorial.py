"""The tutorial from the top: its commands and its code, in order, in one folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.runs.small import call
from tests.test_docs import ROOT, check_promises


@pytest.mark.slow
def test_the_tutorial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(console|python)\n(.*?)```", text, re.S)
    assert [kind for kind, _ in blocks].count("console") >= 6
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, "tutorial.md", "exec"), {})
            check_promises(block, capsys.readouterr().out)
            continue
        for line in block.replace("\\\n", "").splitlines():
            dollar, program, *arguments = shlex.split(line)
            assert (dollar, program) == ("$", "splime")
            done = call(*arguments)
            assert done.code == 0, (line, done.err)
            assert done.out
    made = {path.name for path in tmp_path.iterdir()}
    pictures = {"facts.png", "compared.png", "why.png", "pictures"}
    assert made >= pictures | {"report.html", "everything", "again"}
