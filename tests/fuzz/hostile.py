"""Attacks on splime for as long as one likes: broken files, flipped bits, kills, full disks.

    python -m tests.fuzz.hostile [--minutes 60] [--seed 0 1] [--workers 2] [--no-store]

The cases follow from the seed, one after the other: more minutes are more cases. The minutes are
divided among the seeds. Each case ends in one of these ways:

- fine: the right result, or an untouched one
- clean: an error of splime's own, with nothing half-written
- accepted: a changed text without a checksum (metrics, dates, cuts on their own) was read as it is
- traceback: any other error, or a process that ended in another way than it should
- loss: rows that nobody accounts for, or a folder in which the same command cannot go on
- difference: a result that is not that of an undisturbed run, and no error

The last three are failures, and make the exit code 1. The table is put into docs/reliability.md.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import importlib.metadata
import json
import os
import platform
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

RESULTS = Path(__file__).parent / "results" / "hostile.json"
DOCS = Path(__file__).parents[2] / "docs" / "reliability.md"
MARKS = "<!-- campaign -->", "<!-- end -->"
"""Between them is the table, in the document."""
WAYS = ("fine", "clean", "accepted", "traceback", "loss", "difference")
FAILURES = WAYS[3:]
KEPT = 5  # cases of a failure that the results show
LIMIT = 300.0  # seconds for a command, after which it is ended
CLEAN = (1, 2, 3, 4, 130, 143)
SETTINGS = [
    "--epochs",
    "4",
    "--dimension",
    "8",
    "--batch-size",
    "64",
    "--validate-every",
    "1",
    "--device",
    "cpu",
]


Attack: TypeAlias = Callable[[Path, Path, random.Random], "Case"]
"""With what is attacked, a folder of its own, and what draws the case."""


class Case(NamedTuple):
    """What was tried, and how it ended."""

    kind: str
    what: str
    way: str
    why: str = ""


# What is attacked, made once


def make_base(base: Path) -> None:
    """Files of every layout, a saved graph, a finished run, an unfinished one, and a search."""
    import splime
    from splime.errors import Interrupted

    draw = random.Random(0)
    rows = []
    for _ in range(300):
        subject, predicate, begin = draw.randrange(20), draw.randrange(4), draw.randrange(20)
        object_ = (subject + 3 * predicate + begin // 4 + draw.randrange(2)) % 20
        rows.append((f"entity {subject}", f"p{predicate}", f"entity {object_}", 1990 + begin))
    write_layouts(base / "layouts", rows)
    splits = {"train": rows[:200], "valid": rows[200:260], "test": rows[260:]}
    graph = splime.read(splits, granularity="year", keep_duplicates=True)
    splime.save(graph, base / "graph.parquet")
    small: dict[str, Any] = {"epochs": 3, "dimension": 8, "batch_size": 64, "validate_every": 1}
    run = splime.train(graph, splime.Split(grow=2), base / "run", **small)
    splime.save_segmentation(run.segmentation, base / "segmentation.json")
    splime.evaluate(run)
    splime.Query(run).ask("entity 1", "p1", "?")
    with suppress(Interrupted):
        splime.train(graph, splime.Split(grow=2), base / "unfinished", watch=Stop(), **small)
    search(graph, base / "search")
    second = splime.train(graph, splime.Vanilla(), base / "second", **small)
    splime.combine([run, second], base / "both")
    for name, work in UNFINISHED.items():
        (base / name).mkdir()
        with suppress(KeyboardInterrupt):
            work(graph, base / name / f"{name}.json", progress=interrupting())
        assert any(path.suffix == ".unfinished" for path in (base / name).iterdir())
    (base / "asked").mkdir()
    shutil.copy(base / "layouts" / "points.tsv", base)
    use_asked(base / "asked")


def predict(graph: Any, out: Path, **more: Any) -> Any:
    """Predicted facts, which resume what is there."""
    import splime

    options: dict[str, Any] = {"at": 2000, "limit": 20, "device": "cpu"}
    return splime.predict(graph, out=out.with_suffix(".jsonl"), **options, **more)


def backtest(graph: Any, out: Path, **more: Any) -> Any:
    """Windows, which resume what is there."""
    import splime

    options: dict[str, Any] = {"begin": 2003, "every": "year", "questions": 20, "device": "cpu"}
    return splime.backtest(graph, out=out, **options, **more)


UNFINISHED: dict[str, Callable[..., Any]] = {"predict": predict, "backtest": backtest}
"""Work that saves what is done beside its file."""


def interrupting() -> Callable[..., None]:
    """A progress that interrupts as Ctrl-C does, when some of the work is done."""

    def progress(what: str, done: int, total: int | None = None, note: str = "") -> None:
        if what in ("asking", "backtest") and done and done >= (total or 0) // 2:
            raise KeyboardInterrupt

    return progress


def search(graph: Any, place: Path) -> Any:
    """A small search, which resumes what is there."""
    import splime

    searched: dict[str, Any] = {"methods": ["split"], "models": ["distmult"], "epochs": 2}
    return splime.tune(graph, place, trials=2, parallel=1, dimension=8, **searched)


class Stop:
    """Stops a training in its second epoch."""

    def __init__(self) -> None:
        self.epochs = 0

    def step(self, *_: object) -> None:
        """Nothing."""

    def epoch(self, *_: object) -> None:
        self.epochs += 1

    def stop(self) -> bool:
        return self.epochs > 0


def write_layouts(folder: Path, rows: list[tuple[str, str, str, int]]) -> None:
    """The same facts in the layouts that splime reads."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    dated = ["\t".join(map(str, row)) for row in rows]
    spans = [f"{line}\t{row[3] + 2}" for line, row in zip(dated, rows, strict=True)]
    days = [f"{line}-05-0{1 + row[3] % 9}" for line, row in zip(dated, rows, strict=True)]
    (folder / "points.tsv").write_text("\n".join(dated) + "\n")
    (folder / "spans.txt").write_text("\n".join(spans) + "\n")
    (folder / "days.tsv").write_text("\n".join(days) + "\n")
    header = "subject,predicate,object,begin,end"
    comma = [f'"{line.replace(chr(9), chr(34) + "," + chr(34))}"' for line in spans]
    (folder / "header.csv").write_text("\n".join([header, *comma]) + "\n")
    with gzip.open(folder / "packed.tsv.gz", "wt") as file:
        file.write("\n".join(spans) + "\n")
    names = ("subject", "predicate", "object", "begin")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "table.parquet")
    (folder / "splits").mkdir()
    for name, part in (("train", dated[:240]), ("valid", dated[240:270]), ("test", dated[270:])):
        (folder / "splits" / f"{name}.txt").write_text("\n".join(part) + "\n")
    entities = sorted({name for row in rows for name in (row[0], row[2])})
    (folder / "ids").mkdir()
    (folder / "ids" / "entity2id.txt").write_text(
        "".join(f"{name}\t{number}\n" for number, name in enumerate(entities))
    )
    (folder / "ids" / "relation2id.txt").write_text("".join(f"p{n}\t{n}\n" for n in range(4)))
    numbered = [
        f"{entities.index(s)}\t{p[1:]}\t{entities.index(o)}\t{at}\t{at}" for s, p, o, at in rows
    ]
    for name, part in (("train", numbered[:240]), ("test", numbered[240:])):
        (folder / "ids" / f"{name}.txt").write_text("\n".join(part) + "\n")


# Broken files


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Bytes or lines changed, lost, doubled or put in."""
    lines = data.splitlines(keepends=True)
    at = draw.randrange(len(data) or 1)
    line = draw.randrange(len(lines) or 1)
    junk = draw.choice(
        [b"\t", b"\n", b'"', b"\0", b"\xff\xfe", b"\r", b",", b"-", b"9" * 30, "東\u202e".encode()]
    )
    ways: list[Callable[[], bytes]] = [
        lambda: data[:at],
        lambda: data[:at] + junk + data[at:],
        lambda: data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :],
        lambda: data[:at] + data[at + draw.randrange(1, 50) :],
        lambda: b"".join(lines[:line] + lines[line + 1 :]),
        lambda: b"".join([*lines[: line + 1], *lines[line:]]),
        lambda: b"".join([*lines[:line], junk * 3, b"\n", *lines[line:]]),
        lambda: b"".join(draw.sample(lines, len(lines))),
        lambda: junk * draw.randrange(1, 100),
        lambda: data + data[at:],
        lambda: b"",
    ]
    return draw.choice(ways)()


def broken_file(base: Path, here: Path, draw: random.Random) -> Case:
    """A mutated file of facts: an error, or a graph in which every row is accounted for."""
    import splime

    place = draw.choice(sorted((base / "layouts").iterdir()))
    copied = here / place.name
    if place.is_dir():
        shutil.copytree(place, copied)
        path = draw.choice(sorted(copied.iterdir()))
    else:
        path = Path(shutil.copy(place, copied))
    for _ in range(draw.choice([1, 1, 1, 3])):
        path.write_bytes(mutate(path.read_bytes(), draw))
    what = f"{place.name}: {path.name}"

    def use() -> Case:
        reading = splime.load(str(copied)).reading
        for source in reading.sources:
            if source.rows != source.kept + sum(source.dropped.values()):
                return Case("broken file", what, "loss", f"{source.rows} rows: {source}")
        return Case("broken file", what, "fine")

    return guarded("broken file", what, use)


def guarded(kind: str, what: str, use: Callable[[], Case]) -> Case:
    """What becomes of a use: our errors are clean, others are not."""
    from splime.errors import SplimeError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return use()
    except SplimeError:
        return Case(kind, what, "clean")
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
        return Case(kind, what, "traceback", why[:300])


# Flipped bits


def facts_of(graph: Any) -> str:
    from splime.runs.folder import checksum

    return checksum(graph)


def use_graph(place: Path) -> Any:
    import splime

    return facts_of(splime.load(str(place)))


def use_segmentation(place: Path) -> Any:
    import splime
    from splime.runs.folder import checksum_of_cuts

    return checksum_of_cuts(splime.load_segmentation(place))


def use_run(place: Path) -> Any:
    """The answers, the facts and the ranks of a run."""
    import splime
    from splime.runs import evaluating

    run = splime.Run(place)
    answers = splime.Query(run).ask("entity 1", "p1", "?", limit=None)
    scores = [(row.name, row.score) for row in answers]
    kept = evaluating.kept(run)
    ranks = None if kept is None else {name: each.tolist() for name, each in kept.ranks.items()}
    return facts_of(run.graph), scores, ranks


def use_texts(place: Path) -> Any:
    """What a run says besides, for people."""
    import splime
    from splime.runs import evaluating

    run = splime.Run(place)
    repr(run)
    temperature = splime.Query(run).ask("entity 1", "p1", "?", limit=1).temperature
    return run.about, run.history, evaluating.evaluations(run), temperature


def use_unfinished(place: Path) -> Any:
    """What comes of a training that resumes."""
    import splime

    graph = splime.load(str(place.parent / "graph.parquet"))
    small: dict[str, Any] = {"epochs": 3, "dimension": 8, "batch_size": 64, "validate_every": 1}
    splime.train(graph, splime.Split(grow=2), place, **small)
    return hashlib.sha256((place / "model.safetensors").read_bytes()).hexdigest()


def use_search(place: Path) -> Any:
    import splime

    return search(splime.load(str(place.parent / "graph.parquet")), place).plan.to_toml()


def use_both(place: Path) -> Any:
    """The answers of a combination."""
    import splime

    run = splime.Run(place)
    return [(row.name, row.score) for row in splime.Query(run).ask("entity 1", "p1", "?")]


def use_predict(place: Path) -> Any:
    return use_of_unfinished(place, "predict")


def use_backtest(place: Path) -> Any:
    return use_of_unfinished(place, "backtest")


def use_of_unfinished(place: Path, name: str) -> Any:
    """What comes of work that goes on."""
    import splime

    graph = splime.load(str(place.parent / "graph.parquet"))
    UNFINISHED[name](graph, place / f"{name}.json")
    return [(path.name, content(path)) for path in sorted(place.iterdir())]


def use_asked(place: Path) -> Any:
    """What a file that is asked without training answers, with a cache in the folder."""
    import splime
    from splime.runs.graph_run import open_source

    facts = place.parent / "points.tsv"
    with environment(SPLIME_CACHE=str(place), SPLIME_NO_CACHE="0"):
        query = splime.Query(open_source(str(facts), device="cpu"))
        answers = query.ask("entity 1", "p1", "?", at=2000)
        return [(row.name, row.score, row.probability) for row in answers]


@contextmanager
def environment(**given: str) -> Iterator[None]:
    """Other environment variables inside of the block."""
    before = dict(os.environ)
    os.environ.update(given)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


# What is copied, how it is used, and whether it is text that has no checksum.
FLIPPED: tuple[tuple[str, Callable[[Path], Any], tuple[str, ...], bool], ...] = (
    ("graph.parquet", use_graph, (), False),
    ("segmentation.json", use_segmentation, (), True),
    (
        "run",
        use_run,
        (
            *("config.toml", "graph.parquet", "segmentation.json", "model.safetensors"),
            "ranks-fact-test-mean-mean.parquet",
        ),
        False,
    ),
    ("run", use_texts, ("about.json", "history.csv", "metrics.json", "calibration.json"), True),
    (
        "unfinished",
        use_unfinished,
        ("checkpoint.safetensors", "best.safetensors", "config.toml", "segmentation.json"),
        False,
    ),
    ("search", use_search, ("search.toml", "journal.log"), True),
    ("both", use_both, ("config.toml", "model.safetensors", "graph.parquet"), False),
    ("predict", use_predict, (), False),
    ("backtest", use_backtest, (), False),
    ("asked", use_asked, (), False),
)


@cache
def undisturbed(base: Path, number: int) -> Any:
    """What the use of a copy gives."""
    name, use, _, _ = FLIPPED[number]
    with tempfile.TemporaryDirectory() as folder:
        return use(copy_of(base, Path(folder), name))


def copy_of(base: Path, here: Path, name: str) -> Path:
    shutil.copy(base / "graph.parquet", here / "graph.parquet")
    shutil.copy(base / "layouts" / "points.tsv", here / "points.tsv")
    source = base / name
    copied = shutil.copytree(source, here / name) if source.is_dir() else shutil.copy(source, here)
    return Path(copied)


def files_below(place: Path, members: tuple[str, ...]) -> list[Path]:
    """The files that are attacked: some of a folder, or all, or the one that it is itself."""
    if members:
        return [place / name for name in members]
    return sorted(path for path in place.rglob("*") if path.is_file()) or [place]


# Files of strangers


def strange_file(base: Path, here: Path, draw: random.Random) -> Case:
    """A file of splime's that is no plain file, has no end, or holds something else."""
    number = draw.randrange(len(FLIPPED))
    name, use, members, is_text = FLIPPED[number]
    right = undisturbed(base, number)
    place = copy_of(base, here, name)
    path = draw.choice(files_below(place, members))
    data = path.read_bytes()
    other = here / "other"
    other.write_bytes(data)
    path.unlink()
    ways: dict[str, Callable[[], object]] = {
        "/dev/zero": lambda: path.symlink_to("/dev/zero"),
        "/dev/null": lambda: path.symlink_to("/dev/null"),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "nothing": lambda: None,
        "link to itself": lambda: path.symlink_to(path.name),
        "a terabyte": lambda: endless(path),
        "deep": lambda: path.write_text(draw.choice(["[", '{"a":', "a = {a = "]) * 10_000),
        "changed": lambda: path.write_bytes(mutate(data, draw)),
        "link": lambda: path.symlink_to(other),
    }
    way = draw.choice(sorted(ways))
    ways[way]()
    what = f"{name}: {path.name}, {way}"

    def attempt() -> Case:
        expected = right
        if path.name.startswith("ranks") and not path.exists():  # they are made again
            expected = (*right[:2], None)
        if repr(use(place)) == repr(expected):
            return Case("strange file", what, "fine")
        unlike = "accepted" if is_text else "difference"
        return Case("strange file", what, unlike)

    with in_time(60):
        return guarded("strange file", what, attempt)


def endless(path: Path) -> None:
    """A file of a terabyte, of which no byte is stored."""
    path.touch()
    os.truncate(path, 1 << 40)


@contextmanager
def in_time(seconds: int) -> Iterator[None]:
    """What takes longer is an error."""

    def late(number: int, _: object) -> None:
        raise TimeoutError(f"it did not end within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def flipped_bit(base: Path, here: Path, draw: random.Random) -> Case:
    """A bit flipped in a file that splime wrote: an error, or the same result."""
    number = draw.randrange(len(FLIPPED))
    name, use, members, is_text = FLIPPED[number]
    right = undisturbed(base, number)
    place = copy_of(base, here, name)
    path = draw.choice(files_below(place, members))
    data = bytearray(path.read_bytes())
    at, bit = draw.randrange(len(data)), draw.randrange(8)
    data[at] ^= 1 << bit
    path.write_bytes(bytes(data))
    what = f"{name}: {path.name}, byte {at}, bit {bit}"

    def attempt() -> Case:
        if repr(use(place)) == repr(right):
            return Case("flipped bit", what, "fine")
        return Case("flipped bit", what, "accepted" if is_text else "difference")

    return guarded("flipped bit", what, attempt)


# Commands, which are killed, run out of disk, or run twice at once

COMMANDS: dict[str, list[str]] = {
    "train": ["train", "facts.tsv", "--out", "out", "--method", "split", "--grow", "2", *SETTINGS],
    "run": ["run", "facts.tsv", "--out", "out", "--method", "split", "--grow", "2", *SETTINGS],
    "tune": [
        *("tune", "facts.tsv", "--out", "out", "--trials", "2", "--processes", "1"),
        *("--methods", "split", "--epochs", "3", "--dimension", "8", "--device", "cpu"),
    ],
    "transform": [
        *("transform", "facts.tsv", "--out", "out", "--method", "merge", "--shrink", "2"),
        "--overwrite",
    ],
    "export": ["embeddings", "export", "run", "--out", "out.parquet"],
    "evaluate": ["evaluate", "run", "--protocol", "triple", "--device", "cpu"],
    "combine": ["combine", "run", "second", "--out", "out", "--device", "cpu"],
    "ask": [
        *("ask", "facts.tsv", "--file", "questions.tsv", "--out", "answers.tsv"),
        *("--device", "cpu"),
    ],
    "predict": [
        *("predict", "facts.tsv", "--at", "2000", "--out", "missing.csv", "--limit", "20"),
        *("--device", "cpu"),
    ],
    "backtest": [
        *("backtest", "facts.tsv", "--from", "2003", "--every", "year", "--questions", "40"),
        *("--out", "windows.json", "--device", "cpu"),
    ],
    "rules": ["rules", "facts.tsv"],
    "trust": ["evaluate", "facts.tsv", "--device", "cpu"],
}
ONCE = ("combine",)
"""Those that refuse to replace what they made."""


def start(here: Path, command: str, **more: Any) -> subprocess.Popen[bytes]:
    cache = {"SPLIME_CACHE": str(here / "cache"), "SPLIME_NO_CACHE": "0"}
    given = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", **cache}
    return subprocess.Popen(
        [sys.executable, "-m", "splime", *COMMANDS[command]],
        cwd=here,
        env=given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        **more,
    )


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """How a command ended; one that takes too long is killed, and that is a failure."""
    try:
        _, said = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return -1, f"Traceback: it did not end within {LIMIT:.0f} s"
    return process.returncode, said.decode(errors="replace").strip()


def prepare(base: Path, here: Path) -> None:
    """A folder of its own, with what the commands need."""
    shutil.copy(base / "layouts" / "points.tsv", here / "facts.tsv")
    for name in ("run", "second"):
        shutil.copytree(base / name, here / name)
    (here / "questions.tsv").write_text("entity 1\tp1\t?\t2000\n?\tp2\tentity 3\t1995\n")


def digest(here: Path) -> dict[str, str]:
    """The files of a folder, without what is another each time: seconds, dates, machines."""
    kept = {}
    for path in sorted(here.rglob("*")):
        name = str(path.relative_to(here))
        if path.is_file():
            kept[name] = content(path)
    return kept


def content(path: Path) -> str:
    if path.name in ("about.json", "report.html", "journal.log", "importance.png"):
        return "there"
    data = path.read_bytes()
    if path.suffix == ".json":
        data = json.dumps(without_seconds(json.loads(data))).encode()
    elif path.name == "trials.csv":
        rows = list(csv.DictReader(data.decode().splitlines()))
        data = repr([{**row, "seconds": ""} for row in rows]).encode()
    elif path.suffix == ".md":
        data = b"there"
    return hashlib.sha256(data).hexdigest()[:16]


def without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_seconds(each) for key, each in value.items() if key != "seconds"}
    return [without_seconds(each) for each in value] if isinstance(value, list) else value


def baselines(base: Path) -> None:
    """What every command gives undisturbed, and how long it takes."""
    right = {}
    for command in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder)
            prepare(base, here)
            began = time.monotonic()
            code, said = ended(start(here, command))
            assert code == 0, f"{command}: {said}"
            right[command] = {"seconds": time.monotonic() - began, "files": digest(here)}
    (base / "baselines.json").write_text(json.dumps(right))


def again(base: Path, here: Path, kind: str, what: str, command: str) -> Case:
    """The same command once more: it must end well, with what it always gives."""
    code, said = ended(start(here, command))
    if code != 0 and not (command in ONCE and "is there already" in said):
        return Case(kind, what, "traceback" if "Traceback" in said else "loss", said[-300:])
    right = json.loads((base / "baselines.json").read_text())[command]["files"]
    there = digest(here)
    wrong = sorted(name for name in {*right, *there} if right.get(name) != there.get(name))
    if wrong:
        return Case(kind, what, "difference", ", ".join(wrong)[:300])
    return Case(kind, what, "fine")


def killed(base: Path, here: Path, draw: random.Random) -> Case:
    """A command that is killed or asked to end at a random moment, perhaps twice."""
    command = draw.choice(sorted(COMMANDS))
    how = draw.choice([signal.SIGKILL, signal.SIGTERM])
    seconds = json.loads((base / "baselines.json").read_text())[command]["seconds"]
    moments = [draw.uniform(0.1, 1.1) * seconds for _ in range(draw.choice([1, 1, 2]))]
    what = f"{command}, {how.name} after {', '.join(f'{at:.2f} s' for at in moments)}"
    prepare(base, here)
    for moment in moments:
        process = start(here, command)
        with suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        process.send_signal(how)
        code, said = ended(process)
        if "Traceback" in said or (how == signal.SIGTERM and code not in (0, -15, *CLEAN)):
            return Case("kill", what, "traceback", f"code {code}: {said[-300:]}")
    return again(base, here, "kill", what, command)


@contextmanager
def own_disk(folder: Path) -> Iterator[bool]:
    """A folder on a disk of its own, where this user may mount one."""
    mount = ["mount", "-t", "tmpfs", "none", str(folder)]
    is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", folder], capture_output=True, check=False)


def full_disk(base: Path, here: Path, draw: random.Random) -> Case:
    """A command on a disk that fills; with room again it must go on."""
    command = draw.choice(sorted(COMMANDS))
    room = int(4 ** draw.uniform(0, 6) * 512)  # bytes
    what = f"{command}, {room:,} bytes"
    disk = here / "disk"
    disk.mkdir()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    with own_disk(disk) as is_mounted:
        prepare(base, disk)
        if is_mounted:
            size = shutil.disk_usage(disk).used + room
            subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)
        code, said = ended(start(disk, command, preexec_fn=None if is_mounted else limit))
        if code not in (0, *CLEAN) or "Traceback" in said:
            return Case("full disk", what, "traceback", f"code {code}: {said[-300:]}")
        rest = here / "rest"
        shutil.copytree(disk, rest)
    return again(base, rest, "full disk", what, command)


def two_writers(base: Path, here: Path, draw: random.Random) -> Case:
    """The same command twice at once, in one folder."""
    command = draw.choice(sorted(COMMANDS))
    prepare(base, here)
    one = start(here, command)
    time.sleep(draw.uniform(0, 2))
    other = start(here, command)
    for code, said in (ended(one), ended(other)):
        if code not in (0, *CLEAN) or "Traceback" in said:
            return Case("two writers", command, "traceback", f"code {code}: {said[-300:]}")
    return again(base, here, "two writers", command, command)


# Files are quick, processes are not: so many of each in a round.
ROUND: tuple[Attack, ...] = (
    *((broken_file,) * 40),
    *((flipped_bit,) * 40),
    *((strange_file,) * 10),
    *((killed,) * 4),
    *((full_disk, two_writers) * 2),
)


def attempt(base: Path, seed: int, number: int) -> Case:
    """The case with a number."""
    draw = random.Random(f"{seed} {number}")
    attack = ROUND[number % len(ROUND)]
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        return attack(base, Path(folder), draw)


def campaign(base: Path, minutes: float, seed: int, workers: int) -> Iterator[tuple[int, Case]]:
    """Cases until the time is over."""
    end, number = time.monotonic() + 60 * minutes, 0
    waiting: dict[Future[Case], int] = {}
    with ProcessPoolExecutor(workers) as pool:
        while waiting or time.monotonic() < end:
            while len(waiting) < 2 * workers and time.monotonic() < end:
                waiting[pool.submit(attempt, base, seed, number)] = number
                number += 1
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield waiting.pop(future), future.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--case", type=int, help="only the case with this number")
    parser.add_argument("--no-store", action="store_true", help="change no file of the repository")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(prefix="hostile-base-") as folder:
        base = Path(folder)
        make_base(base)
        baselines(base)
        if given.case is not None:
            print(attempt(base, given.seed[0], given.case))
            return
        began = time.monotonic()
        counts: dict[str, Counter[str]] = {}
        shown: dict[str, list[dict[str, Any]]] = {}
        cases = (
            (seed, number, case)
            for seed in given.seed
            for number, case in campaign(base, given.minutes / len(given.seed), seed, given.workers)
        )
        for seed, number, case in cases:
            counts.setdefault(case.kind, Counter())[case.way] += 1
            kept = shown.setdefault(f"{case.kind}: {case.way}", [])
            if case.way in FAILURES and len(kept) < KEPT:
                kept.append({"seed": seed, "case": number, "what": case.what, "why": case.why})
                where = f"seed {seed}, case {number}: {case.kind}: {case.what}"
                print(f"{where}: {case.way}: {case.why}", flush=True)
        minutes = (time.monotonic() - began) / 60
    print(table(counts))
    if not given.no_store:
        store(given, counts, shown, minutes)
    sys.exit(any(each[way] for each in counts.values() for way in FAILURES))


def store(
    given: argparse.Namespace,
    counts: Mapping[str, Mapping[str, int]],
    shown: Mapping[str, list[dict[str, Any]]],
    minutes: float,
) -> None:
    """Keep the result, and put the table into the document."""
    text = DOCS.read_text(encoding="utf-8")
    before, mark, rest = text.partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    DOCS.write_text(f"{before}{mark}\n{table(counts)}\n{MARKS[1]}{after}", encoding="utf-8")
    packages = ("numpy", "pyarrow", "torch", "safetensors", "optuna")
    results = {
        "command": f"python -m tests.fuzz.hostile --minutes {given.minutes:g}"
        f" --seed {' '.join(map(str, given.seed))} --workers {given.workers}",
        "date": time.strftime("%Y-%m-%d"),
        "seed": given.seed,
        "minutes": round(minutes, 1),
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "cores": os.cpu_count(),
        "counts": {kind: dict(each) for kind, each in counts.items()},
        "failures": {name: cases for name, cases in shown.items() if cases},
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def table(counts: Mapping[str, Mapping[str, int]]) -> str:
    """The counts in Markdown: a row for each kind of attack."""
    lines = [f"| attack | tries | {' | '.join(WAYS)} |", f"|---{'|--:' * (len(WAYS) + 1)}|"]
    for kind, each in sorted(counts.items()):
        cells = " | ".join(f"{each.get(way, 0):,}" for way in WAYS)
        lines.append(f"| {kind} | {sum(each.values()):,} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
