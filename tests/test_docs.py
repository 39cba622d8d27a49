"""The code in the documents runs, and prints what its comments say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
    blocks = python_blocks(ROOT / document)
    assert blocks
    for block in blocks:
        exec(compile(block, document, "exec"), {})
        check_promises(block, capsys.readouterr().out)


def test_links_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), (document.name, target)
