"""Count lines of code by package: no blank lines, no comments, no docstrings.

python3 scripts/lines.py [FOLDER]           # of a clone, by default this one
python3 scripts/lines.py --write            # also the table of docs/architecture.md
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "architecture.md"
MARKS = "<!-- lines -->\n", "<!-- end -->"
"""Between them is the table, in the document."""
BESIDE = "(modules)"
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


def count(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Room, files and lines: of the package, then all of it, then the experiments and both."""
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    package = folder / "src" / "splime"
    for path in package.rglob("*.py"):
        inside = path.relative_to(package)
        name = inside.parts[0] if len(inside.parts) > 1 else BESIDE
        lines[name] += lines_of_code(path.read_text(encoding="utf-8"))
        files[name] += 1
    for name in sorted(lines):
        yield name, files[name], lines[name]
    yield "all", files.total(), lines.total()
    beside = [*(folder / "experiments").rglob("*.py")]
    extra = sum(lines_of_code(path.read_text(encoding="utf-8")) for path in beside)
    yield "experiments", len(beside), extra
    yield "together", files.total() + len(beside), lines.total() + extra


def markdown(counted: Iterator[tuple[str, int, int]]) -> str:
    """The same as a table; sums stand out."""
    shown = {BESIDE: BESIDE, "all": "**src/splime**", "together": "**together**"}
    shown["experiments"] = "`experiments/`, beside the package"
    lines = ["| package | files | lines |", "|---|--:|--:|"]
    lines += [f"| {shown.get(name, f'`{name}`')} | {n} | {size:,} |" for name, n, size in counted]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print a row for each package, and the totals; write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT)
    parser.add_argument("--write", action="store_true", help="rewrite docs/architecture.md")
    arguments = parser.parse_args()
    for name, files, lines in count(arguments.folder):
        print(f"{name:20} {files:5} files {lines:7,} lines")
    if arguments.write:
        before, mark, rest = DOCS.read_text(encoding="utf-8").partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        text = f"{before}{mark}{markdown(count(ROOT))}{MARKS[1]}{after}"
        DOCS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
