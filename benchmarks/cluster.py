"""Transform synthetic worlds on many workers: rows per second, memory of a worker, overhead.

    python benchmarks/cluster.py --facts 10000000 --workers 1,2 --engines processes,ray
    python benchmarks/cluster.py --facts 1000000000 --workers 16 --no-alone --no-small

The world is made in several files, by several processes. `Merge(shrink=4)` is chosen and applied,
with the search for duplicates. Every measurement is a process of its own; what it wrote is deleted
before the next one. `cpu` is what the process and its workers computed, in seconds: on a machine
that is busy with other things it tells more than the time that passed. 10^9 facts need 26 GB: 7 for
the facts, and then 16 for the search for duplicates or 19 for the triples. Without --engines ray,
Ray is not needed; and of splime's packages only numpy, pyarrow, msgspec, lazy-loader and filelock.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from record import peak_mb, write_results

RESULTS = Path(__file__).parent / "results" / "cluster.json"
FILE = 12_500_000  # facts of a file
SMALL = (10_000, 100_000, 1_000_000)


def make_file(task: tuple[Path, int, int]) -> None:
    from experiments.world import World, make_world

    path, facts, seed = task
    make_world(path, World(facts=facts, seed=seed))


def make(folder: Path, facts: int) -> float:
    """Make a world, and return how long it took."""
    from splime.workers import Parallel, worker_pool

    started = time.perf_counter()
    folder.mkdir()
    sizes = [FILE] * (facts // FILE) + [facts % FILE] * (facts % FILE > 0)
    tasks = [(folder / f"{seed:05}.parquet", size, seed) for seed, size in enumerate(sizes)]
    with worker_pool(Parallel()) as pool:
        for number, _ in pool.map_unordered(make_file, tasks):
            print(f"made file {number + 1} of {len(tasks)}", file=sys.stderr, flush=True)
    return time.perf_counter() - started


def descendants(process: int) -> Iterator[int]:
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            yield child
            yield from descendants(child)


def workers_mb(engine: str) -> float:
    """The peak resident memory of the worker that had most (Linux)."""
    own = [each.pid for each in multiprocessing.active_children() if each.pid is not None]
    if engine == "ray":
        own = [*descendants(os.getpid())]
    most = 0.0
    for process in own:
        try:
            about = Path(f"/proc/{process}/status").read_text()
        except OSError:
            continue
        if engine != "ray" or "ray::_attempt" in about or "ray::IDLE" in about:
            most = max(most, int(about.split("VmHWM:")[1].split()[0]) / 1024)
    return most


def measure(source: Path, target: Path, engine: str, workers: int, part: int) -> dict[str, Any]:
    """Transform in this process, or on workers that it starts."""
    import pyarrow as pa

    from splime.methods import Merge
    from splime.streaming import stream_transform, transform_parts

    pa.array([0])  # Arrow imports pandas with the first array, if it is installed
    method, most = Merge(shrink=4), 0.0
    told = time.perf_counter()

    def watch(what: str, done: int, total: int | None = None, note: str = "") -> None:  # noqa: ARG001
        nonlocal most, told
        most = max(most, workers_mb(engine))
        if time.perf_counter() - told > 20:
            told = time.perf_counter()
            print(f"{engine} {workers}: {what} {done:,}", file=sys.stderr, flush=True)

    started = time.perf_counter()
    if engine == "alone":
        result = stream_transform(source, target, method)
    else:
        options: dict[str, Any] = {"engine": engine, "workers": workers, "part_rows": part}
        result = transform_parts(source, target, method, progress=watch, **options)
    seconds = time.perf_counter() - started
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    files = [target] if target.is_file() else [*target.glob("*.parquet")]
    return {
        "engine": engine,
        "workers": workers,
        "facts": result.rows,
        "triples": sum(result.triples.values()),
        "dropped": sum(result.dropped.values()),
        "triples_mb": round(sum(file.stat().st_size for file in files) / 1e6, 1),
        "seconds": round(seconds, 2),
        "cpu": round(sum(own.ru_utime + own.ru_stime for own in used), 2),
        "rows_per_second": round(result.rows / seconds),
        "peak_mb": round(peak_mb()),
        "worker_peak_mb": round(most) or None,
        "steps": {step: round(took, 2) for step, took in result.seconds.items()},
    }


def measured(source: Path, engine: str, workers: int, part: int) -> dict[str, Any]:
    target = source.with_name("triples")
    command = [sys.executable, __file__, "--measure", source, target, engine, workers, part]
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=True)
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    # Ray writes to the standard output, too.
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(result), flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--facts", type=int, default=10**7)
    parser.add_argument("--workers", default="1,2", help="numbers of workers")
    parser.add_argument("--engines", default="processes", help="processes, ray, or both")
    parser.add_argument("--part", type=int, default=10**7, help="facts of a part")
    parser.add_argument("--alone", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--small", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--folder", type=Path, help="where to put the files meanwhile")
    parser.add_argument("--out", type=Path, default=RESULTS, help="what to write")
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        source, target, engine, workers, part = arguments.measure
        print(json.dumps(measure(Path(source), Path(target), engine, int(workers), int(part))))
        return
    engines = arguments.engines.split(",")
    numbers = [int(number) for number in arguments.workers.split(",")]
    results: dict[str, Any] = {"part": arguments.part, "small": [], "runs": []}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as made:
        folder = Path(made)
        if arguments.small:
            for facts in SMALL:
                make(source := folder / str(facts), facts)
                for engine in ("alone", *engines):
                    workers = 1 if engine == "alone" else 2
                    results["small"].append(measured(source, engine, workers, arguments.part))
        source = folder / "facts"
        results["making_seconds"] = round(make(source, arguments.facts), 1)
        size = sum(file.stat().st_size for file in source.iterdir())
        results["facts_mb"] = round(size / 1e6, 1)
        if arguments.alone:
            results["runs"].append(measured(source, "alone", 1, arguments.part))
        for engine in engines:
            for workers in numbers:
                results["runs"].append(measured(source, engine, workers, arguments.part))
    command = f"python benchmarks/cluster.py --facts {arguments.facts} --part {arguments.part}"
    command += f" --workers {arguments.workers} --engines {arguments.engines}"
    write_results(arguments.out, command, **results)


if __name__ == "__main__":
    main()
