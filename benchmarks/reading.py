"""Read a large TSV with splime, and with plain Arrow in the same run.

Plain Arrow is `pyarrow.csv.read_csv` plus dictionary encoding of the three columns of names: no ids
shared between subject and object, no parsed times, no checks. Every measurement is a process of its
own, the two alternate, and the ratios are those of the medians.

    python benchmarks/reading.py --facts 10000000
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from record import peak_mb, write_results

RESULTS = Path(__file__).parent / "results" / "reading.json"


def write_events(path: Path, facts: int) -> None:
    """Events like those of ICEWS or GDELT: many facts over 200,000 entities, by day."""
    rng = np.random.default_rng(0)
    entities = pa.array([f"Entity Number {i}" for i in range(200_000)])
    predicates = pa.array([f"predicate {i}" for i in range(200)])
    days = pa.array(np.datetime64("2010-01-01") + np.arange(3_650)).cast(pa.string())
    with path.open("wb") as sink:
        for start in range(0, facts, 1_000_000):
            count = min(1_000_000, facts - start)

            def skewed(names: pa.Array, count: int = count) -> pa.Array:
                ranks = (rng.pareto(1.0, count) * len(names) / 50).astype(np.int64)
                return names.take(pa.array(np.minimum(ranks, len(names) - 1)))

            begin = rng.integers(0, 3_000, count)
            end = begin + rng.integers(0, 600, count)
            columns = [skewed(entities), skewed(predicates), skewed(entities)]
            columns += [days.take(pa.array(times)) for times in (begin, end)]
            options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
            csv.write_csv(pa.table(columns, names=list("spobe")), sink, options)


def write_world(path: Path, facts: int) -> None:
    """The synthetic world: a new entity for every nine facts, by year, some ends unknown."""
    from experiments.world import World

    options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    with path.open("wb") as sink:
        for batch in World(facts=facts).batches():
            table = pa.Table.from_batches([batch]).drop_columns(["split"])
            columns = [column.cast(pa.string()).fill_null("") for column in table.columns]
            csv.write_csv(pa.table(columns, names=list("spobe")), sink, options)


def measure(who: str, path: Path) -> dict[str, float]:
    """Read once, in this process."""
    import splime

    _ = splime.read  # imports are not part of the reading
    before = peak_mb()
    wall, cpu = time.perf_counter(), time.process_time()
    columns = 0
    if who == "splime":
        graph = splime.read(path, split="none")
        columns = sum(column.nbytes for column in graph.train.columns())
    else:
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=list("spobe")),
            parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
        )
        _encoded = [table[name].dictionary_encode() for name in "spo"]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = peak_mb() - before
    return {"wall": wall, "cpu": cpu, "peak_mb": peak, "columns_mb": columns / 2**20}


def compare(path: Path, repeats: int) -> dict[str, Any]:
    runs: dict[str, list[dict[str, float]]] = {"arrow": [], "splime": []}
    for _ in range(repeats):
        for who, found in runs.items():
            command = [sys.executable, __file__, "--measure", who, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout))
    medians = {
        who: {key: round(statistics.median(run[key] for run in found), 2) for key in found[0]}
        for who, found in runs.items()
    }
    arrow, ours = medians["arrow"], medians["splime"]
    return {
        **medians,
        "file_mb": round(path.stat().st_size / 2**20),
        "wall_ratio": round(ours["wall"] / arrow["wall"], 2),
        "cpu_ratio": round(ours["cpu"] / arrow["cpu"], 2),
        "peak_over_columns": round(ours["peak_mb"] / ours["columns_mb"], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--facts", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--measure", nargs=2, metavar=("WHO", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure[0], Path(arguments.measure[1]))))
        return
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, write in (("events", write_events), ("world", write_world)):
            path = Path(folder) / f"{name}.tsv"
            write(path, arguments.facts)
            found[name] = compare(path, arguments.repeats)
            path.unlink()
            print(name, json.dumps(found[name], indent=2))
    command = f"python benchmarks/reading.py --facts {arguments.facts}"
    write_results(RESULTS, command, results=found)


if __name__ == "__main__":
    main()
