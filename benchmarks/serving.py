"""What `splime serve` gives a client on this machine: answers a second, memory, a worker killed.

Each part starts the server anew. The client keeps some connections open and asks what facts of test
state, one question after the other on each connection.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import splime
from record import write_results

_BATCH = 1000


class Server(NamedTuple):
    """The program, and the port at which it answers."""

    program: subprocess.Popen[str]
    port: int

    def answering(self) -> list[int]:
        """The processes that answer: workers, or the program itself."""
        path = Path(f"/proc/{self.program.pid}/task/{self.program.pid}/children")
        children = map(int, path.read_text().split())
        workers = [
            one for one in children if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()
        ]
        return workers or [self.program.pid]

    def cpu(self) -> float:
        """The seconds that they have computed."""
        stats = (Path(f"/proc/{one}/stat").read_text() for one in self.answering())
        fields = (one.rpartition(")")[2].split()[11:13] for one in stats)
        return sum(sum(map(int, each)) for each in fields) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """The resident megabytes of the processes that answer."""
        status = (Path(f"/proc/{one}/status").read_text() for one in self.answering())
        return sum(int(one.split("VmRSS:")[1].split()[0]) for one in status) / 1024


@contextmanager
def serving(data: str, workers: int) -> Iterator[Server]:
    command = [sys.executable, "-m", "splime", "serve", data, "--port", "0"]
    command += ["--workers", str(workers), "--device", "cpu"]
    unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=unbuffered) as program:
        try:
            assert program.stdout is not None
            found = re.search(r":(\d+)", program.stdout.readline())
            assert found
            yield Server(program, int(found[1]))
        finally:
            program.terminate()


@dataclass
class Load:
    """What clients saw."""

    seconds: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    """Replies by status, and errors of connections by name."""
    errors_at: list[float] = field(default_factory=list)
    wall: float = 0.0
    cpu: float = 0.0
    """Seconds that the server computed."""

    def summary(self) -> dict[str, Any]:
        p50, p99 = np.percentile(self.seconds, [50, 99]) * 1000
        return {
            "requests": self.outcomes.total(),
            "outcomes": dict(self.outcomes),
            "seconds": round(self.wall, 1),
            "per_second": round(len(self.seconds) / self.wall, 1),
            "cpu_ms_each": round(1000 * self.cpu / max(1, len(self.seconds)), 1),
            "p50_ms": round(float(p50), 1),
            "p99_ms": round(float(p99), 1),
        }


async def ask(
    server: Server,
    path: str,
    bodies: list[bytes],
    *,
    requests: int,
    seconds: float,
    connections: int,
) -> Load:
    """Send so many requests, or as many as the time allows."""
    load, begin, numbers = Load(cpu=-server.cpu()), time.perf_counter(), itertools.count()

    async def connection() -> None:
        stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        while (number := next(numbers)) < requests and time.perf_counter() < begin + seconds:
            body, sent = bodies[number % len(bodies)], time.perf_counter()
            try:
                stream = stream or await asyncio.open_connection("127.0.0.1", server.port)
                load.outcomes[await _send(*stream, server.port, path, body)] += 1
                load.seconds.append(time.perf_counter() - sent)
            except (OSError, EOFError) as error:
                load.outcomes[type(error).__name__] += 1
                load.errors_at.append(time.perf_counter())
                if stream is not None:
                    stream[1].close()
                stream = None
        if stream is not None:
            stream[1].close()

    await asyncio.gather(*(connection() for _ in range(connections)))
    load.wall = time.perf_counter() - begin
    load.cpu += server.cpu()
    return load


async def _send(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, path: str, body: bytes
) -> str:
    """The status of the reply."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
    reply = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    found = re.search(r"content-length: (\d+)", reply)
    assert found
    await reader.readexactly(int(found[1]))
    return reply.split()[1]


def _sockets(process: int) -> int:
    files = Path(f"/proc/{process}/fd").iterdir()
    return sum(str(file.readlink()).startswith("socket:") for file in files)


async def measure_kill(server: Server, bodies: list[bytes], **options: Any) -> dict[str, Any]:
    """Ask two workers; the one with more connections is killed after a third of the time."""
    running = asyncio.create_task(ask(server, "/ask", bodies, **options))
    await asyncio.sleep(options["seconds"] / 3)
    first = server.answering()
    connected = {one: _sockets(one) for one in first}
    worker = max(first, key=lambda one: connected[one])
    os.kill(worker, signal.SIGKILL)
    killed, replaced = time.perf_counter(), None
    while not running.done():
        await asyncio.sleep(0.2)
        if replaced is None and len({*server.answering()} - {worker}) == len(first):
            replaced = round(time.perf_counter() - killed, 1)
    load = await running
    last = max((at - killed for at in load.errors_at), default=0.0)
    lost = {"last_error_after_s": round(last, 2), "another_process_after_s": replaced}
    found = {**load.summary(), **lost, "sockets": sorted(connected.values())}
    del found["cpu_ms_each"]  # of which that of the worker that was killed is not known
    return found


PARTS = {
    "one_connection": "1 worker, 1 connection",
    "one_worker": "1 worker",
    "batches": f"1 worker, {_BATCH:,} questions in a request",
    "many_requests": "1 worker, for longer",
    "two_workers": "2 workers",
    "one_of_two_killed": "2 workers, one killed",
}


def print_table(kept: dict[str, Any]) -> None:
    print("| | requests | failed | questions a second | CPU of a request | p50 | p99 |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for part, name in PARTS.items():
        row = kept[part]
        cpu = f"{row['cpu_ms_each']:,.0f} ms" if "cpu_ms_each" in row else ""
        rate = row.get("questions_per_second", row["per_second"])
        failed = row["requests"] - row["outcomes"]["200"]
        times = (f"{row[name]:,.0f} ms" for name in ("p50_ms", "p99_ms"))
        cells = (name, f"{row['requests']:,}", str(failed), f"{rate:,.0f}", cpu, *times)
        print(f"| {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", default="demo")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the shorter parts")
    parser.add_argument("--longest", type=float, default=900.0, help="seconds of --requests")
    parser.add_argument("--only", default="one,many,two", help="of these parts; others stay")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/serving.json")
    parser.add_argument("--table", action="store_true", help="print what is stored")
    given = parser.parse_args()
    if given.table:
        print_table(json.loads(given.out.read_text()))
        return

    rows = list(splime.load(given.data).rows("test"))
    questions = [
        {"subject": row.subject, "predicate": row.predicate, "object": "?", "at": row.begin}
        for row in rows
        if row.begin
    ]
    bodies = [json.dumps(question).encode() for question in questions]
    batch = [json.dumps({"questions": questions[:_BATCH], "limit": 10}).encode()]
    short: dict[str, Any] = {"requests": given.requests, "seconds": given.seconds}
    several: dict[str, Any] = {**short, "connections": given.connections}
    kept = json.loads(given.out.read_text()) if given.out.exists() else {}
    found: dict[str, Any] = {name: kept[name] for name in kept if isinstance(kept[name], dict)}

    def keep(part: str, value: dict[str, Any]) -> None:
        # How many programs compute at once says how busy others have kept the machine.
        found[part] = {**value, "load": round(os.getloadavg()[0], 1)}
        print(part, found[part], flush=True)
        about = {"data": given.data, "connections": given.connections, "machine": "shared"}
        write_results(given.out, " ".join(["python", *sys.argv]), **about, **found)

    chosen = given.only.split(",")
    if "one" in chosen or "many" in chosen:
        with serving(given.data, 1) as server:
            asyncio.run(ask(server, "/ask", bodies, requests=20, seconds=600, connections=1))
            if "one" in chosen:
                load = asyncio.run(ask(server, "/ask", bodies, **short, connections=1))
                keep("one_connection", load.summary())
                keep("one_worker", asyncio.run(ask(server, "/ask", bodies, **several)).summary())
                load = asyncio.run(ask(server, "/ask/many", batch, **short, connections=1))
                answered = len(load.seconds) * len(questions[:_BATCH]) / load.wall
                keep("batches", {**load.summary(), "questions_per_second": round(answered, 1)})
            if "many" in chosen:
                before, longest = server.memory(), {**several, "seconds": given.longest}
                load = asyncio.run(ask(server, "/ask", bodies, **longest))
                after = round(server.memory())
                memory = {"memory_mb_before": round(before), "memory_mb_after": after}
                keep("many_requests", {**load.summary(), **memory})
    if "two" in chosen:
        with serving(given.data, 2) as server:
            asyncio.run(ask(server, "/ask", bodies, requests=40, seconds=600, connections=8))
            time.sleep(given.seconds)  # until both are ready
            keep("two_workers", asyncio.run(ask(server, "/ask", bodies, **several)).summary())
            longer = {**several, "seconds": 3 * given.seconds}
            keep("one_of_two_killed", asyncio.run(measure_kill(server, bodies, **longer)))


if __name__ == "__main__":
    main()
