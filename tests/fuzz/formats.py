"""Read the layouts in which temporal knowledge graphs are published, whole and broken.

Every layout is a function in LAYOUTS that makes small files, and knows by literal means which facts
their rows are. The whole files give the table of docs/reading.md. Then many files are broken at
random and read: each ends in a clean error, or in a graph whose facts all stand in the files and
whose account has every row. What is read otherwise than it was meant has to be said in a remark, a
note or a header that the unbroken files do not have.

    python -m tests.fuzz.formats --files 100000
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import logging
import multiprocessing
import platform
import random
import re
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

import splime
from splime.errors import SplimeError, speaking_of_flags
from splime.reading import IN_TWO_ROWS

RESULTS = Path(__file__).parent / "results" / "formats.json"
CHUNK = 250
SHOWN = 5
"""How many failures of a kind are kept."""

Fact: TypeAlias = tuple[str | None, ...]
Pick: TypeAlias = Callable[[list[str]], Fact]


class Sample(NamedTuple):
    """The files of one small graph, and what is in them."""

    files: dict[str, bytes]
    facts: Callable[[str], list[Fact | None]]
    """The fact of every row of a text; None for what is no fact, such as a header or a count."""
    holds_facts: str = r"train|valid|test"
    """Which files hold facts, by a pattern of their names."""
    source: str = ""
    """The file to read; empty for the folder."""


def number(text: str) -> str:
    """A number as splime shows it."""
    if not re.fullmatch("[+-]?[0-9]{1,18}", text.strip()):
        raise ValueError(text)
    return str(int(text.strip()))


def by_lines(pick: Pick, delimiter: str = "\t", spaced: bool = False) -> Any:
    """Rows that are lines."""

    def facts(text: str) -> list[Fact | None]:
        rows: list[Fact | None] = []
        for line in re.split("\r\n|\r|\n", text):
            cells = [c for c in re.split("[ \t]+", line) if c] if spaced else line.split(delimiter)
            if line.strip(" \t") and cells:
                rows.append(picked(pick, cells))
        return rows

    return facts


def by_csv(pick: Pick) -> Any:
    """Rows that may have quoted values; lines of blanks are none."""

    def facts(text: str) -> list[Fact | None]:
        rows = csv.reader(io.StringIO(text, newline=""))
        return [picked(pick, cells) for cells in rows if "".join(cells).strip() or len(cells) > 1]

    return facts


def picked(pick: Pick, cells: list[str]) -> Fact | None:
    try:
        return pick(cells)
    except (IndexError, KeyError, ValueError):
        return None


def quads(rng: random.Random, count: int, times: int = 12) -> list[tuple[int, int, int, int]]:
    """Facts with ids that do not repeat within a call."""
    wanted: dict[tuple[int, int, int, int], None] = {}
    while len(wanted) < count:
        s, o, t = rng.randrange(9), 9 + rng.randrange(9), rng.randrange(times)
        wanted[s, rng.randrange(4), o, t] = None
    return list(wanted)


def splits(
    rng: random.Random, name: str, line: Callable[..., str], **more: Any
) -> dict[str, bytes]:
    """Train, valid and test, of lines that `line` makes of facts."""
    first, end = more.get("first", ""), more.get("end", "\n")
    files = {}
    for split, count in (("train", 24), ("valid", 6), ("test", 6)):
        facts = quads(rng, count, more.get("times", 12))
        lines = [*([first.format(count)] if first else []), *(line(*fact) for fact in facts)]
        files[name.format(split)] = "".join(text + end for text in lines).encode()
    return files


def dictionary(names: list[str], line: str = "{}\t{}") -> bytes:
    return "".join(line.format(name, at) + "\n" for at, name in enumerate(names)).encode()


ENTITIES = [f"Person {n} (Utopia)" for n in range(18)]
PREDICATES = ["Make statement", "Consult", "Make a visit", "Threaten"]


def event(cells: list[str], time: int = 3) -> Fact:
    s, p, o = (cell.strip(" ") if cell.strip(" ").isdigit() else cell for cell in cells[:3])
    return s, p, o, number(cells[time]), number(cells[time])


def named_event(cells: list[str]) -> Fact:
    s, p, o = (int(number(cell)) for cell in cells[:3])
    if min(s, p, o) < 0:
        raise ValueError(cells)
    return ENTITIES[s], PREDICATES[p], ENTITIES[o], number(cells[3]), number(cells[3])


def exactly(count: int, pick: Pick, cells: list[str]) -> Fact:
    if len(cells) != count:
        raise ValueError(cells)
    return pick(cells)


def renet_hours(rng: random.Random) -> Sample:
    """`s r o t 0` in steps of 24 hours, with dictionaries and stat.txt (ICEWS18 of RE-Net)"""
    files = splits(rng, "{}.txt", lambda s, r, o, t: f"{s}\t{r}\t{o}\t{24 * t}\t0")
    files |= {"entity2id.txt": dictionary(ENTITIES), "relation2id.txt": dictionary(PREDICATES)}
    return Sample(files | {"stat.txt": b"18\t4\t0\n"}, by_lines(partial(exactly, 5, named_event)))


def renet_minutes(rng: random.Random) -> Sample:
    """`s r o t 0` in steps of 15 minutes (GDELT of RE-Net)"""
    files = splits(rng, "{}.txt", lambda s, r, o, t: f"{s}\t{r}\t{o}\t{15 * t}\t0")
    return Sample(files, by_lines(partial(exactly, 5, event)))


def regcn_years(rng: random.Random) -> Sample:
    """`s r o t -1` in years from 0, spaces (YAGO and WIKI of RE-GCN)"""
    files = splits(rng, "{}.txt", lambda s, r, o, t: f"{s} {r} {o} {t} -1")
    return Sample(files, by_lines(partial(exactly, 5, event), spaced=True))


def count_first(rng: random.Random) -> Sample:
    """a count in the first line, runs of spaces, CRLF (OpenKE style)"""
    line, end = (lambda s, r, o, t: f"{s}   {r} {o}  {t}"), "\r\n"
    files = splits(rng, "{}2id.txt", line, first="{}", end=end)
    return Sample(files, by_lines(partial(exactly, 4, event), spaced=True))


def padded_ids(rng: random.Random) -> Sample:
    """ids padded with spaces, names such as train_500.txt"""

    def line(s: int, r: int, o: int, t: int) -> str:
        return f"{s!s:<{rng.choice((0, 5))}}\t{r}\t{o!s:>{rng.choice((0, 5))}}\t{t}"

    return Sample(splits(rng, "{}_500.txt", line), by_lines(partial(exactly, 4, event)))


def without_suffix(rng: random.Random) -> Sample:
    """intervals of ids in a file without a suffix (triples_1 of alignment benchmarks)"""

    def interval(cells: list[str]) -> Fact:
        begin, end = (number(cell) if cell.strip().strip("-#") else None for cell in cells[3:])
        return (*event([*cells[:3], "0"])[:3], begin, end)

    lines = [f"{s}\t{r}\t{o}\t{t}\t{t + 3}\n" for s, r, o, t in quads(rng, 30)]
    files = {"triples_1": "".join(lines).encode(), "triples_2": b"0\t0\t1\t0\t1\n"}
    facts = by_lines(partial(exactly, 5, interval))
    return Sample(files, facts, r"triples_1", source="triples_1")


def time_ids(rng: random.Random) -> Sample:
    """ids of times with a dictionary, names such as icews_2014_train.txt"""
    dates = [f"2014-01-{day:02}" for day in range(1, 13)]

    def dated(cells: list[str]) -> Fact:
        s, p, o, time, _ = event(cells)
        date = dates[int(str(time))] if int(str(time)) >= 0 else ""
        return s, p, o, date, date

    line, name = (
        (lambda s, r, o, t: f"{s}\t{r}\t{o}\t{t}"),
        rng.choice(["time2id.txt", "ts2id.txt"]),
    )
    form = rng.choice(["{}\t{}", "{} {}", "{1}\t{0}"])
    files = splits(rng, "icews_2014_{}.txt", line) | {name: dictionary(dates, form)}
    return Sample(files, by_lines(partial(exactly, 4, dated)))


def header_synonyms(rng: random.Random) -> Sample:
    """a header with other names in another order, and quoted values"""

    def pick(cells: list[str]) -> Fact:
        tail, date, head, relation, _note = cells
        if not re.fullmatch(r"\+?[0-9]{1,6}-[0-9]{2}-[0-9]{2}", date.strip()):
            raise ValueError(date)
        date = date.strip().lstrip("+").rjust(10, "0")
        return head, relation, tail, date, date

    lines = ["tail,date,head,relation,note\n"]
    for s, r, o, t in quads(rng, 30):
        lines.append(f'"Person, {o}",2014-03-{t + 1:02},"Person ""{s}""",rel {r},x\n')
    return Sample({"facts.csv": "".join(lines).encode()}, by_csv(pick), "facts", source="facts.csv")


def year(text: str) -> str | None:
    """The year that a time of mmkb or JSON begins with; None if it is unknown."""
    match = re.fullmatch('"? *([+-]?[0-9]{1,18}|#*)(-##-##)? *"?', text.strip())
    if match is None:
        raise ValueError(text)
    return str(int(match[1])) if match[1].strip("#") else None


def half(cells: list[str]) -> Fact:
    """A row that says one end of a fact, none, or both."""
    if len(cells) == 3:
        return (*cells, None, None)
    s, p, o, word, time = cells
    match = re.fullmatch("<?(?:occurs?_?)?(since|until)>?", word.strip(), re.IGNORECASE)
    if match is None:
        return s, p, o, year(word), year(time)
    return (s, p, o, *((year(time), None) if match[1].lower() == "since" else (None, year(time))))


def since_until(rng: random.Random, word: str, time: str) -> Callable[..., str]:
    """Lines that say the begin and the end of a fact, or one of them."""

    def line(s: int, r: int, o: int, t: int) -> str:
        fact = f"E{s}\tP{r}\tE{o}"
        begin = f"{fact}\t{word.format('Since')}\t{time.format(1990 + t)}"
        end = f"{fact}\t{word.format('Until')}\t{time.format(1993 + t)}"
        return rng.choice([begin, end, f"{begin}\n{end}"])

    return line


def yago15k(rng: random.Random) -> Sample:
    """since and until in rows of their own, others without a time (YAGO15k of mmkb)"""
    timed = since_until(rng, "<occurs{}>", '"{}-##-##"')

    def line(s: int, r: int, o: int, t: int) -> str:
        return timed(s, r, o, t) if rng.random() < 0.7 else f"E{s}\tP{r}\tE{o}"

    return Sample(splits(rng, "yago15k_{}.txt", line), by_lines(half))


def wikidata_mmkb(rng: random.Random) -> Sample:
    """since and until in a column (Wikidata of mmkb)"""
    line = since_until(rng, "occur{}", "{}")
    return Sample(splits(rng, "wiki_{}.txt", line), by_lines(partial(exactly, 5, half)))


def json_lines(rng: random.Random) -> Sample:
    """JSON, an object a line"""

    def pick(cells: list[str]) -> Fact:
        fact = json.loads(cells[0])
        given = (fact.get(each) or "" for each in ("begin", "end"))
        times = (year(f"{each:.0f}" if isinstance(each, float) else str(each)) for each in given)
        names = (fact[each] for each in ("subject", "predicate", "object"))
        return (*(each if isinstance(each, str) else str(int(each)) for each in names), *times)

    def facts(text: str) -> list[Fact | None]:
        return [picked(pick, [line]) for line in re.split("\r\n|\r|\n", text) if line.strip()]

    def line(s: int, r: int, o: int, t: int) -> str:
        fact = {"subject": f"E{s}", "predicate": f"P{r}", "object": f"E{o}", "begin": 1990 + t}
        return json.dumps(fact | ({"end": 1993 + t} if t % 2 else {}))

    return Sample(splits(rng, "{}.jsonl", line), facts)


def query_service(rng: random.Random) -> Sample:
    """IRIs, labels, times with precisions (CSV of Wikidata's query service)"""
    iri = "http://www.wikidata.org/entity/"

    def pick(cells: list[str]) -> Fact:
        item, label, predicate, value, start, _, end, _, point, _ = cells
        times = (start, end) if start or end else (point, point)
        years = [year(re.sub("-..-..(T.*)?$", "", time)) for time in times]
        names = (
            re.sub(f"^{re.escape(iri)}([QP][0-9]+)$", r"\1", each)
            for each in (item, predicate, value)
        )
        item, predicate, value = names
        return label or item, predicate, value, *years

    lines = [
        "item,itemLabel,property,value,start,startPrecision,end,endPrecision,pointInTime,"
        "pointInTimePrecision\n"
    ]
    for s, r, o, t in quads(rng, 30):
        date = f"{1990 + t}-01-01T00:00:00Z"
        times = rng.choice([f"{date},9,,,,", f",,{date},9,,", f",,,,{date},9"])
        lines.append(f'{iri}Q{s},"Person, {s}",{iri}P{r},{iri}Q{o},{times}\n')
    return Sample({"query.csv": "".join(lines).encode()}, by_csv(pick), "query", source="query.csv")


LAYOUTS: tuple[Callable[[random.Random], Sample], ...] = (
    renet_hours,
    renet_minutes,
    regcn_years,
    count_first,
    padded_ids,
    without_suffix,
    time_ids,
    header_synonyms,
    yago15k,
    wikidata_mmkb,
    json_lines,
    query_service,
)

ODD = [
    b"\t", b"\n", b"\r", b'"', b"\x00", b"\xff", b"####", b",", b"\xef\xbb\xbf", b"\xc3", b" ",
    b"  ", b";", b"|", b"-1", b"0", b"2014", b"2014-05-01", b"1e9", b"99999999999999999999",
    b"\xc2\xa0",
]  # fmt: skip


def break_bytes(rng: random.Random, data: bytes) -> bytes:
    """The text with something cut, changed, doubled, inserted or moved."""
    at, kind = rng.randrange(len(data) + 1), rng.randrange(11)
    lines = data.splitlines(keepends=True) or [b""]
    line = rng.randrange(len(lines))
    cells = re.split(rb"([ \t,]+)", lines[line])
    cell = rng.randrange(len(cells))
    match kind:
        case 0 if at < len(data):
            return data[:at] + bytes([data[at] ^ rng.randrange(1, 256)]) + data[at + 1 :]
        case 1:
            return data[:at]
        case 2:
            return data[:at] + data[at + rng.randrange(1, 40) :]
        case 3:
            return data[:at] + rng.choice(ODD) + data[at:]
        case 4:
            return data[:at] + data[at : at + rng.randrange(1, 200)] + data[at:]
        case 5:
            del cells[cell]
        case 6:
            cells[cell] = rng.choice(ODD)
        case 7:
            cells += [rng.choice(cells)]
        case 8:
            return b"".join(rng.sample(lines, len(lines)))
        case 9:
            return data.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n", b" \n", b"\n \n"]))
        case _:
            return b"".join(lines[:line] + lines[line + 1 :])
    return b"".join([*lines[:line], *cells, *lines[line + 1 :]])


def break_files(rng: random.Random, sample: Sample) -> tuple[dict[str, bytes], str]:
    """The files with one of them broken, and its name."""
    files = dict(sample.files)
    name = rng.choice([*files])
    if rng.random() < 0.03 and name != sample.source:
        del files[name]
        return files, name
    for _ in range(rng.randrange(1, 4)):
        files[name] = break_bytes(rng, files[name])
    return files, name


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def outcome(sample: Sample, folder: Path, files: dict[str, bytes], broken: str, usual: Any) -> str:
    """What comes of reading some files."""
    write_files(folder, files)
    try:
        source = folder / sample.source if sample.source else folder
        graph = splime.read(source, split="none" if sample.source else None)
    except SplimeError as error:
        lines = str(error).splitlines()
        tidy = len(lines) <= 12 and all(line.isprintable() for line in lines)
        return "clean error" if tidy else f"untidy error: {error!r}"
    except Exception:
        return f"traceback: {traceback.format_exc()}"
    reading = graph.reading
    if reading.kept != len(graph) or reading.rows != reading.kept + sum(reading.dropped.values()):
        return "rows lost: the account does not add up"
    meant: Counter[Fact | None] = Counter()
    for own in reading.sources:
        try:
            text = files[own.name].decode().removeprefix("\ufeff")
        except UnicodeDecodeError:  # one of the bytes was broken, and a remark says so
            text = files[own.name].decode("windows-1252")
        rows = sample.facts(text)
        count = any(
            "first line is a count" in remark and (own.name in remark or ": " not in remark)
            for remark in reading.remarks
        )
        in_two_rows = own.notes.get(IN_TWO_ROWS, 0)
        if len(rows) != own.rows + in_two_rows + count + (own.header is not None):
            return f"rows lost: {own.name} has {len(rows)} rows, {own.rows} were read"
        if not any(rows):
            return "read"  # so little is left of it that it has another layout now
        meant.update(rows)
    shown = {*reading.remarks, *reading.notes} - usual
    if any(own.header for own in reading.sources) and "header" not in usual:
        shown.add("header")
    if not re.search(sample.holds_facts, broken):
        # A broken dictionary gives other names, but no name that is in no file.
        text = b"\n".join(files.values()).decode(errors="replace")
        names = {*graph.entities.labels.to_pylist(), *graph.predicates.labels.to_pylist()}
        return "read" if all(name in text for name in names) else "not shown: invented names"
    other = [fact for fact in facts_of(graph) if not meant[fact] and not in_halves(fact, meant)]
    if not other:
        return "read"
    return "read otherwise, and shown" if shown else f"not shown: {other[:3]} is in no file"


def in_halves(fact: Fact, meant: Counter[Fact | None]) -> bool:
    """Whether one row says when a fact begins, and another when it ends."""
    *names, begin, end = fact
    return bool(meant[(*names, begin, None)] and meant[(*names, None, end)])


def facts_of(graph: splime.TemporalGraph) -> Iterator[Fact]:
    """The facts, with times as they were written: steps may have been divided."""
    remarks = " ".join(graph.reading.remarks)
    step = re.search("times are steps of ([0-9]+)", remarks)
    for fact in graph.rows():
        times: Fact = (fact.begin, fact.end)
        if step:
            times = tuple(None if each is None else str(int(each) * int(step[1])) for each in times)
        yield fact.subject, fact.predicate, fact.object, *times


def try_some(seeds: range) -> tuple[Counter[str], dict[str, list[str]]]:
    """Break and read files; how often what happened, and the first of each kind of failure."""
    counts: Counter[str] = Counter()
    failures: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(dir=_fast()) as name:
        folder = Path(name)
        for seed in seeds:
            rng = random.Random(seed)
            layout = LAYOUTS[seed % len(LAYOUTS)]
            sample = layout(rng)
            files, broken = break_files(rng, sample)
            what = outcome(sample, folder, files, broken, usual_of(layout, folder))
            kind = what.split(":")[0]
            counts[kind] += 1
            if what != kind and len(failures.setdefault(kind, [])) < SHOWN:
                failures[kind].append(f"seed {seed} ({layout.__name__}, {broken}) {what}")
    return counts, failures


_USUAL: dict[str, set[str]] = {}


def usual_of(layout: Callable[[random.Random], Sample], folder: Path) -> set[str]:
    """What is said of the unbroken files of a layout."""
    if layout.__name__ not in _USUAL:
        graph = read_whole(layout(random.Random(0)), folder)
        said = {*graph.reading.remarks, *graph.reading.notes}
        header = {"header"} if any(own.header for own in graph.reading.sources) else set()
        _USUAL[layout.__name__] = said | header
    return _USUAL[layout.__name__]


def read_whole(sample: Sample, folder: Path) -> splime.TemporalGraph:
    write_files(folder, sample.files)
    if sample.source:
        return splime.read(folder / sample.source, split="none")
    return splime.read(folder)


def _fast() -> str | None:
    """A folder in memory, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def table() -> str:
    """The layouts, as Markdown: what is read, kept, dropped, and what splime says."""
    lines = ["| layout | rows | kept | dropped | automatic choices |", "|---|--:|--:|---|---|"]
    with tempfile.TemporaryDirectory(dir=_fast()) as name:
        for layout in LAYOUTS:
            sample = layout(random.Random(1))
            file = next(each for each in sample.files if re.search(sample.holds_facts, each))
            last = sample.files[file].splitlines(keepends=True)[-1]
            sample.files[file] += last  # so that something is dropped
            with speaking_of_flags():
                reading = read_whole(sample, Path(name)).reading
            dropped = ", ".join(f"{n} × {why}" for why, n in reading.dropped.items()) or "0"
            said = "<br>".join(reading.remarks)
            about = (layout.__doc__ or "").strip()
            lines.append(f"| {about} | {reading.rows} | {reading.kept} | {dropped} | {said} |")
    return "\n".join(lines)


def main() -> None:
    logging.getLogger("splime").setLevel(logging.ERROR)  # warnings about broken files
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=100_000, help="how many graphs to break")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--table", action="store_true", help="only print the table of layouts")
    arguments = parser.parse_args()
    print(table())
    if arguments.table:
        return
    stop = arguments.first + arguments.files
    chunks = [range(at, min(at + CHUNK, stop)) for at in range(arguments.first, stop, CHUNK)]
    counts: Counter[str] = Counter()
    failures: dict[str, list[str]] = {}
    start = time.perf_counter()
    # One thread in each process: they would get in each other's way.
    with multiprocessing.Pool(arguments.processes, pa.set_cpu_count, (1,)) as pool:
        for done, (some, bad) in enumerate(pool.imap_unordered(try_some, chunks), start=1):
            counts += some
            for kind, texts in bad.items():
                failures[kind] = [*failures.get(kind, []), *texts][:SHOWN]
            if done % 40 == 0:
                print(f"{sum(counts.values()):,}: {dict(counts)}", flush=True)
    seconds = time.perf_counter() - start
    speed = arguments.files / seconds / arguments.processes
    print(f"{arguments.files:,} in {seconds:.0f} s, {speed:.0f} a second and process")
    for kind, count in counts.most_common():
        print(f"{count:>9,}  {kind}")
        for text in failures.get(kind, []):
            print(text)
    results = {
        "command": f"python -m tests.fuzz.formats --files {arguments.files}",
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
        "files": arguments.files,
        "outcomes": dict(counts.most_common()),
        "failures": failures,
        "a_second_and_process": round(speed),
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
