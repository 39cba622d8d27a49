"""The code in the documents runs, and prints what its comments say."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.runs.small import call

ROOT = Path(__file__).parents[1]


def python_blocks(document: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", document.read_text(encoding="utf-8"), re.S)


def check_promises(block: str, printed: str) -> None:
    """What comments behind `print(…)` promise was printed, in that order."""
    lines = iter(printed.splitlines())
    for promise in re.findall(r"^print\(.*?\) +# (.*)$", block, re.M):
        # A comment promises the beginning of the line, up to an ellipsis or a remark.
        beginning = re.split(r"…|: | of the", promise)[0]
        assert any(line.startswith(beginning) for line in lines), promise


@pytest.mark.system
@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "docs/asking.md",
        "docs/comparing.md",
        "docs/cuts.md",
        "docs/doubts.md",
        "docs/evaluation.md",
        "docs/explore.md",
        "docs/forecasting.md",
        "docs/howto.md",
        "docs/methods.md",
        "docs/paths.md",
        "docs/predicting.md",
        "docs/python.md",
        "docs/relative-scopes.md",
        "docs/rules.md",
        "docs/sources.md",
        "docs/training.md",
        "docs/tuning.md",
        "docs/untrained.md",
    ],
)
def test_code_in_documents(
    document: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "docs/data/staff.csv", tmp_path)
    blocks = python_blocks(ROOT / document)
    assert blocks
    for block in blocks:
        exec(compile(block, document, "exec"), {})
        check_promises(block, capsys.readouterr().out)


def plain(output: str) -> str:
    """What was printed without the lines of tables, which differ with the width."""
    return " ".join(re.sub("[\u2500-\u257f]+", " ", output).split())


@pytest.mark.system
@pytest.mark.parametrize("document", ["README.md", "docs/howto.md"])
def test_commands_print_what_documents_say(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each cell of a table, or line, that stands below a command is in what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "104")
    for place in (tmp_path, tmp_path / "docs" / "data"):
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "docs/data/staff.csv", place)
    text = (ROOT / document).read_text(encoding="utf-8")
    compared = 0
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            program, *arguments = shlex.split(command)
            if program == "splime":
                done = call(*arguments)
                assert done.code == 0, (command, done.err)
                printed = plain(done.out)
            else:
                printed = plain(subprocess.check_output(command, shell=True, text=True))
            for part in re.split("[│┃\n]", shown):
                assert plain(part) in printed, (command, part)
                compared += bool(plain(part))
    assert compared > 10


def test_code_fits_its_box() -> None:
    """The site has room for 104 characters."""
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = document.read_text(encoding="utf-8")
        for block in re.findall(r"^```(?:sh|console|python|text)\n(.*?)^```", text, re.S | re.M):
            for line in block.splitlines():
                assert len(line) <= 104, (document.name, line)


def test_links_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), (document.name, target)
