"""Seconds of a first answer from a file that was never asked, and of the next one with the cache.

    python benchmarks/first_answer.py FILE …

Each answer is a process of its own, `splime ask FILE SUBJECT PREDICATE ?` about the first fact at
its begin: without the cache, with an empty one, and with what that left. A file of two facts shows
what the program takes in any case. CPU seconds, user and system, count where the machine is shared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import splime
from record import write_results
from splime.io.cache import VARIABLE

RESULTS = Path(__file__).parent / "results" / "first_answer.json"


def ask(file: Path, question: list[str], **environment: str) -> tuple[dict[str, float], str]:
    """Seconds of one answer, and the answer."""
    command = [sys.executable, "-m", "splime", "ask", str(file), *question]
    begun, before = time.perf_counter(), os.times()
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    wall, after = time.perf_counter() - begun, os.times()
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    return {"wall": round(wall, 2), "cpu": round(cpu, 2)}, done.stdout


def measure(file: Path) -> dict[str, Any]:
    graph = splime.load(str(file), split="none")
    fact = next(graph.rows())
    question = [fact.subject, fact.predicate, "?", *(["--at", fact.begin] if fact.begin else [])]
    with tempfile.TemporaryDirectory() as folder:
        off, plain = ask(file, question, **{VARIABLE: "1"})
        first, one = ask(file, question, SPLIME_CACHE=folder, **{VARIABLE: "0"})
        second, two = ask(file, question, SPLIME_CACHE=folder, **{VARIABLE: "0"})
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    assert plain == one == two, "the answers differ"
    found = {"facts": len(graph), "off": off, "first": first, "second": second}
    return {**found, "cache_mb": round(size / 1e6, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    files = parser.parse_args().files
    results = {}
    for file in files:
        results[file.name] = found = measure(file)
        seconds = (
            f"{name} {found[name]['wall']:.1f} s ({found[name]['cpu']:.1f} s of CPU)"
            for name in ("off", "first", "second")
        )
        print(
            f"{file.name}, {found['facts']:,} facts: {', '.join(seconds)}; {found['cache_mb']} MB"
        )
    write_results(RESULTS, " ".join(["first_answer.py", *(file.name for file in files)]), **results)


if __name__ == "__main__":
    main()
