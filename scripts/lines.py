"""Count lines of code by room: no blank lines, no comments, no docstrings.

python3 scripts/lines.py [FOLDER]
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

SKIPPED = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def lines_of_code(source: str) -> int:
    """How many lines hold something else than a comment or a docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SKIPPED:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        text = node.value if isinstance(node, ast.Expr) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            lines.difference_update(range(text.lineno, (text.end_lineno or 0) + 1))
    return len(lines)


def main() -> None:
    """Print a row for each room, and the total."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "src" / "splime"
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path in root.rglob("*.py"):
        inside = path.relative_to(root)
        room = inside.parts[0] if len(inside.parts) > 1 else "(beside the rooms)"
        lines[room] += lines_of_code(path.read_text(encoding="utf-8"))
        files[room] += 1
    for room in sorted(lines):
        print(f"{room:20} {files[room]:5} files {lines[room]:7,} lines")
    print(f"{'all':20} {files.total():5} files {lines.total():7,} lines")


if __name__ == "__main__":
    main()
