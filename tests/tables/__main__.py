"""What the tables are, and how long each takes to open: `python -m tests.tables`."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import splime
from splime.errors import speaking_of_flags
from tests.tables.test_tables import TABLES, the_file


def main() -> None:
    lines = [
        "| table | what it has | facts | entities | first | last | option | ms |",
        "|---|---|--:|--:|---|---|---|--:|",
    ]
    with tempfile.TemporaryDirectory() as name, speaking_of_flags():
        splime.load("demo")  # what is imported by the first
        for table, expected in TABLES.items():
            path, chosen = the_file(table, Path(name)), expected.get("option", {})
            began = time.perf_counter()
            graph = splime.load(str(path), **chosen)
            taken = time.perf_counter() - began
            first, last = (graph.timeline.label(at) for at in (0, -1))
            option = ", ".join(f"`--{key.replace('_', '-')}`" for key in chosen)
            lines.append(
                f"| {table} | {expected['about']} | {len(graph)} | {len(graph.entities)} | {first}"
                f" | {last} | {option} | {1000 * taken:.0f} |"
            )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
