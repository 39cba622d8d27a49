"""Stream synthetic worlds of growing size from Parquet to Parquet.

The cuts of `Merge(shrink=4)` are chosen and applied in two passes, after a pass that finds
duplicates. Measured in the same run: the same without the search for duplicates; the same in
several processes; plain Arrow that copies the file of triples batch by batch (the least that moving
so much data costs); and the same transform in memory, if the facts fit. Every measurement is a
process of its own. At the end, a segmentation is applied to facts in memory, on one core.

    python benchmarks/streaming.py --largest 100000000
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from record import peak_mb, write_results

if TYPE_CHECKING:
    from splime.streaming import StreamResult

RESULTS = Path(__file__).parent / "results" / "streaming.json"
IN_MEMORY = 10**7
BATCH = 1 << 17
ONCE = 10**7  # measured once from here on
PROCESSES = os.cpu_count() or 1
PARTS = 2 * 10**7  # with fewer facts there is only one part


def stream(source: Path, target: Path, **options: Any) -> dict[str, Any]:
    import splime
    from splime.streaming import stream_transform

    return about(stream_transform(source, target, splime.Merge(shrink=4), **options))


def processes(source: Path, target: Path) -> dict[str, Any]:
    import splime
    from splime.streaming import transform_parts

    folder = target.with_suffix("")
    result = transform_parts(source, folder, splime.Merge(shrink=4), workers=PROCESSES)
    rmtree(folder)
    return about(result)


def about(result: StreamResult) -> dict[str, Any]:
    return {
        "scopes": len(result.segmentation.predicates),
        "triples": sum(result.triples.values()),
        **result.seconds,
    }


def copy(source: Path, target: Path) -> dict[str, Any]:
    from splime.streaming.passes import PARQUET

    file = pq.ParquetFile(source, pre_buffer=False)
    with pq.ParquetWriter(target, file.schema_arrow, **PARQUET) as writer:
        for batch in file.iter_batches(1 << 20):
            writer.write_batch(batch)
    return {}


def in_memory(source: Path, target: Path) -> dict[str, Any]:
    import splime

    assert not target.exists()
    return {"triples": len(splime.Merge(shrink=4).fit_transform(splime.load(source)))}


def applying(source: Path, target: Path) -> dict[str, Any]:
    """Turn facts into triples, both as integers; nothing is written."""
    assert not target.exists()
    import splime

    graph = splime.load(source)
    scopes = splime.Merge(shrink=4).fit(graph).predicates
    facts = graph.facts()
    begin, end = graph.timestamps(facts)
    row = np.arange(len(facts))
    seconds = []
    for _ in range(7):
        started, triples = time.process_time(), 0
        for at in range(0, len(facts), BATCH):
            part = slice(at, at + BATCH)
            name, first, last = facts.predicate[part], begin[part], end[part]
            low, high = scopes.find(name, first, last)
            count = scopes.cut(name, first, last, low, high)[0]
            for column in (facts.subject, facts.object, row):
                triples += len(np.repeat(column[part], count))
        seconds.append(time.process_time() - started)
    triples //= 3  # each was counted with every column
    median = statistics.median(seconds)
    return {
        "facts": len(facts),
        "triples": triples,
        "facts_per_second": round(len(facts) / median),
        "triples_per_second": round(triples / median),
    }


WORK: dict[str, Callable[[Path, Path], dict[str, Any]]] = {
    "stream": stream,
    "keep_duplicates": partial(stream, keep_duplicates=True),
    "processes": processes,
    "copy": copy,
    "in_memory": in_memory,
    "applying": applying,
}


def measure(who: str, source: Path, target: Path) -> dict[str, Any]:
    """Do one thing in this process, and return its time and memory."""
    for module in ("pyarrow.compute", "splime.datasets.loading", "splime.streaming"):
        import_module(module)  # not part of it
    pa.array([0])  # Arrow imports pandas with the first array, if it is installed
    before = peak_mb()
    wall, cpu = time.perf_counter(), time.process_time()
    results = WORK[who](source, target)
    return {
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "peak_mb": peak_mb(),
        "imports_mb": before,
        **results,
    }


def measured(who: str, source: Path, target: Path, repeats: int) -> dict[str, Any]:
    runs = []
    for _ in range(repeats):
        target.unlink(missing_ok=True)
        command = [sys.executable, __file__, "--measure", who, str(source), str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout))
    return {key: round(statistics.median(run[key] for run in runs), 3) for key in runs[0]}


def grow(folder: Path, facts: int, repeats: int) -> dict[str, Any]:
    """All results for one size."""
    from experiments.world import World, make_world

    source, target, copied = (folder / f"{name}.parquet" for name in ("facts", "triples", "copy"))
    started = time.perf_counter()
    make_world(source, World(facts=facts))
    making = time.perf_counter() - started
    streamed = measured("stream", source, target, repeats)
    results = {
        "facts": facts,
        "making_seconds": round(making, 2),
        "facts_mb": round(source.stat().st_size / 1e6, 1),
        "triples_mb": round(target.stat().st_size / 1e6, 1),
        "facts_per_second": round(facts / streamed["seconds"]),
        "stream": streamed,
        "keep_duplicates": measured("keep_duplicates", source, target, repeats),
        "copy": measured("copy", target, copied, repeats),
    }
    copied.unlink()
    if facts >= PARTS:
        results["processes"] = measured("processes", source, target, repeats)
    results["seconds_over_copy"] = round(streamed["seconds"] / results["copy"]["seconds"], 2)
    if facts <= IN_MEMORY:
        results["in_memory"] = measured("in_memory", source, target, repeats)
    if facts == 10**6:
        results["applying"] = measured("applying", source, target, 1)
    for path in (source, target):
        path.unlink(missing_ok=True)
    return results


def plot(sizes: list[dict[str, Any]], path: Path) -> None:
    from splime.reporting.style import make_figure, save_picture, series_style

    figure = make_figure(9, 3.6)
    axes = figure.subplots(1, 2)
    lines = {"stream": "streaming", "in_memory": "in memory", "copy": "Arrow copies the triples"}
    for axis, key, label in ((axes[0], "seconds", "seconds"), (axes[1], "peak_mb", "peak MB")):
        for number, (who, name) in enumerate(lines.items()):
            there = [size for size in sizes if who in size]
            at, values = [size["facts"] for size in there], [size[who][key] for size in there]
            axis.loglog(at, values, label=name, markersize=5, **series_style(number))
        axis.set(xlabel="facts", ylabel=label)
        axis.grid(alpha=0.3)
    axes[1].set_ylim(bottom=50)
    axes[0].legend(frameon=False)
    save_picture(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--largest", type=int, default=10**7)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to put the files meanwhile")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        who, source, target = arguments.measure
        print(json.dumps(measure(who, Path(source), Path(target))))
        return
    sizes = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for power in range(5, 10):
            if 10**power <= arguments.largest:
                repeats = arguments.repeats if 10**power < ONCE else 1
                sizes.append(grow(Path(folder), 10**power, repeats))
                print(json.dumps(sizes[-1], indent=2), flush=True)
    command = f"python benchmarks/streaming.py --largest {arguments.largest}"
    write_results(RESULTS, command, results=sizes)
    plot(sizes, RESULTS.with_suffix(".png"))


if __name__ == "__main__":
    main()
