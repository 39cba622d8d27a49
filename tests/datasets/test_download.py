"""The downloads, against a real server on this machine that fails in the ways it is told to."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import splime
from splime.datasets import download
from splime.datasets.download import RemoteFile, fetch, sha256_of
from splime.errors import DownloadError

CONTENT = bytes(range(256)) * 800  # 200 KiB: several chunks
SIZE = len(CONTENT)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
OTHER = CONTENT[::-1]


@dataclass(frozen=True)
class Answer:
    """How the server treats one request; as it stands, as a good server would."""

    status: int = 0  # an error to answer with
    body: bytes = CONTENT
    ranges: bool = True
    content_range: str = ""  # sent in place of the right one
    length: bool = True
    chunked: bool = False
    cut: int | None = None  # bytes after which the connection ends
    reset: bool = False  # ends with a reset, not in good order
    stall: bool = False  # waits for `go_on` before it ends; `stalled` says that it does
    hang_up: bool = False  # ends without a word


class Server(ThreadingHTTPServer):
    """Gives the scripted answers one after another, the last of them for ever."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = [Answer()]
        self.ranges: list[str | None] = []  # the Range header of each request
        self.agents: list[str | None] = []
        self.stalled = threading.Event()
        self.go_on = threading.Event()

    @property
    def file(self) -> RemoteFile:
        return RemoteFile("train.txt", f"http://127.0.0.1:{self.server_port}/data/train", SHA256)

    def handle_error(self, *request: object) -> None:
        """Clients that hang up are what these tests are about."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        server.ranges.append(self.headers["Range"])
        server.agents.append(self.headers["User-Agent"])
        answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
        if answer.hang_up:
            return
        if answer.status:
            self.send_error(answer.status)
            return
        size = len(answer.body)
        asked = self.headers["Range"] if answer.ranges else None
        first = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if asked and first >= size:
            self.send_error(416)
            return
        if asked:
            self.send_response(206)
            right = f"bytes {first}-{size - 1}/{size}"
            self.send_header("Content-Range", answer.content_range or right)
        else:
            self.send_response(200)
        if answer.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif answer.length:
            self.send_header("Content-Length", str(size - first))
        self.end_headers()
        if answer.stall:
            server.stalled.set()
        if answer.chunked:
            self.wfile.write(b"%x\r\n" % (size - first))
        self.wfile.write(answer.body[first:][: answer.cut])
        if answer.chunked and answer.cut is None:
            self.wfile.write(b"\r\n0\r\n\r\n")
        if answer.stall:
            server.go_on.wait(5)
            server.stalled.clear()
        if answer.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the tests look at what the server noted."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.go_on.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses asked for, which are not made."""
    made: list[float] = []
    monkeypatch.setattr(time, "sleep", made.append)
    return made


def message_of(
    file: RemoteFile, folder: Path, *, attempts: int = 4, has_part: bytes | None = None
) -> str:
    """The message of the DownloadError; nothing but `has_part` may be left under the names."""
    with pytest.raises(DownloadError) as caught:
        fetch([file], folder, attempts=attempts, pause=0.0)
    part = folder / f"{file.name}.part"
    assert (part.read_bytes() if part.exists() else None) == has_part
    assert not (folder / file.name).exists()
    return str(caught.value)


def part_of(server: Server, folder: Path) -> Path:
    return folder / f"{server.file.name}.part"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# Without trouble


def test_files_come_complete_and_under_their_names(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    second = RemoteFile("valid.txt", server.file.url, SHA256)
    paths = fetch([server.file, second], folder)
    assert paths == [folder / "train.txt", folder / "valid.txt"]
    assert [path.read_bytes() for path in paths] == [CONTENT, CONTENT]
    assert names_in(folder) == ["train.txt", "valid.txt"]
    assert server.ranges == [None, None]
    assert server.agents == [f"splime/{splime.__version__}"] * 2


def test_a_right_file_is_not_downloaded_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(CONTENT)
    assert fetch([server.file], tmp_path) == [tmp_path / "train.txt"]
    assert server.ranges == []


def test_a_wrong_file_is_left_alone(server: Server, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(b"edited")
    with pytest.raises(DownloadError) as caught:
        fetch([server.file], tmp_path)
    for part in (str(tmp_path / "train.txt"), SHA256, hashlib.sha256(b"edited").hexdigest()):
        assert part in str(caught.value)
    assert "Delete it" in str(caught.value)
    assert (tmp_path / "train.txt").read_bytes() == b"edited"
    assert names_in(tmp_path) == ["train.txt"]
    assert server.ranges == []


@pytest.mark.parametrize("answer", [Answer(length=False), Answer(chunked=True)])
def test_a_server_that_tells_no_length(server: Server, tmp_path: Path, answer: Answer) -> None:
    server.answers = [answer]
    told: list[tuple[str, int, int | None]] = []
    fetch([server.file], tmp_path, progress=lambda *news: told.append(news))
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert told[-1] == ("train.txt", SIZE, None)


def test_progress_counts_the_resumed_bytes(server: Server, tmp_path: Path) -> None:
    part_of(server, tmp_path).write_bytes(CONTENT[:1000])
    told: list[tuple[str, int, int | None]] = []
    fetch([server.file], tmp_path, progress=lambda *news: told.append(news))
    counts = [so_far for _, so_far, _ in told]
    assert counts[0] > 1000
    assert len(counts) > 2
    assert counts == sorted(set(counts))
    assert told[-1] == ("train.txt", SIZE, SIZE)


def test_a_connection_that_stays_open_is_not_waited_for(server: Server, tmp_path: Path) -> None:
    server.answers = [Answer(stall=True)]
    fetch([server.file], tmp_path)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert server.stalled.is_set()


# Resuming


def test_a_part_is_resumed(server: Server, tmp_path: Path) -> None:
    part_of(server, tmp_path).write_bytes(CONTENT[:5000])
    fetch([server.file], tmp_path)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert names_in(tmp_path) == ["train.txt"]
    assert server.ranges == ["bytes=5000-"]


def test_a_complete_part_needs_no_server(server: Server, tmp_path: Path) -> None:
    part_of(server, tmp_path).write_bytes(CONTENT)
    fetch([server.file], tmp_path)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert names_in(tmp_path) == ["train.txt"]
    assert server.ranges == []


def test_a_part_that_is_too_long_is_thrown_away(server: Server, tmp_path: Path) -> None:
    part_of(server, tmp_path).write_bytes(CONTENT + b"more")
    fetch([server.file], tmp_path, attempts=1)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert server.ranges == [f"bytes={SIZE + 4}-", None]  # the server answered 416


def test_a_server_without_ranges_starts_the_part_anew(server: Server, tmp_path: Path) -> None:
    server.answers = [Answer(ranges=False)]
    part_of(server, tmp_path).write_bytes(CONTENT[:5000])
    fetch([server.file], tmp_path, attempts=1)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert server.ranges == ["bytes=5000-"]


@pytest.mark.parametrize("wrong", [f"bytes 0-{SIZE - 1}/{SIZE}", "bytes 5-9/10", "nonsense"])
def test_another_range_than_asked_for_is_not_taken(
    server: Server, tmp_path: Path, wrong: str
) -> None:
    server.answers = [Answer(content_range=wrong), Answer()]
    part_of(server, tmp_path).write_bytes(CONTENT[:5000])
    fetch([server.file], tmp_path, attempts=1)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert server.ranges == ["bytes=5000-", None]


def test_a_range_shorter_than_asked_for_is_gone_on_with(server: Server, tmp_path: Path) -> None:
    # The server says that the file is longer than what it sends; only Content-Range tells.
    short = Answer(body=CONTENT[:9000], content_range=f"bytes 5000-8999/{SIZE}")
    server.answers = [short, Answer()]
    part_of(server, tmp_path).write_bytes(CONTENT[:5000])
    fetch([server.file], tmp_path, pause=0.0)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert server.ranges == ["bytes=5000-", "bytes=9000-"]


def test_a_wrong_part_is_replaced_from_zero(server: Server, tmp_path: Path) -> None:
    part_of(server, tmp_path).write_bytes(OTHER[:5000])
    fetch([server.file], tmp_path, attempts=1)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert server.ranges == ["bytes=5000-", None]


def test_a_wrong_part_is_replaced_only_once(server: Server, tmp_path: Path) -> None:
    server.answers = [Answer(body=OTHER), Answer(body=OTHER, cut=5000), Answer(body=OTHER)]
    part_of(server, tmp_path).write_bytes(CONTENT[:5000])
    assert SHA256 in message_of(server.file, tmp_path)
    assert server.ranges == ["bytes=5000-", None, "bytes=5000-"]


def start_fetch(file: RemoteFile, folder: Path) -> subprocess.Popen[bytes]:
    """Another process that fetches the file."""
    code = (
        "import sys; from pathlib import Path\n"
        "from splime.datasets.download import RemoteFile, fetch\n"
        "fetch([RemoteFile(*sys.argv[2:])], Path(sys.argv[1]))\n"
    )
    arguments = [str(folder), file.name, file.url, file.sha256]
    return subprocess.Popen([sys.executable, "-c", code, *arguments])


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_a_killed_run_is_resumed(server: Server, tmp_path: Path) -> None:
    server.answers = [Answer(cut=150_000, stall=True), Answer()]
    part = part_of(server, tmp_path)
    with start_fetch(server.file, tmp_path) as process:
        wait_until(lambda: part.exists() and part.stat().st_size == 150_000)
        process.kill()
    assert process.returncode == -9
    assert part.read_bytes() == CONTENT[:150_000]
    assert not (tmp_path / "train.txt").exists()
    fetch([server.file], tmp_path)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=150000-"]


def test_ctrl_c_leaves_a_part_to_resume(server: Server, tmp_path: Path) -> None:
    def interrupt(name: str, so_far: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch([server.file], tmp_path, progress=interrupt)
    begun = part_of(server, tmp_path).read_bytes()
    assert 0 < len(begun) < SIZE
    assert CONTENT.startswith(begun)
    fetch([server.file], tmp_path)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={len(begun)}-"]


# Connections that are cut


@pytest.mark.parametrize(
    "broken",
    [
        Answer(cut=70_000),
        Answer(cut=70_000, chunked=True),
        Answer(cut=0),
        Answer(hang_up=True),
        Answer(cut=0, reset=True),
    ],
)
def test_a_cut_connection_is_taken_up_again(server: Server, tmp_path: Path, broken: Answer) -> None:
    server.answers = [broken, Answer()]
    fetch([server.file], tmp_path, pause=0.0)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={broken.cut}-" if broken.cut else None]


def test_a_reset_in_the_middle_loses_nothing(server: Server, tmp_path: Path) -> None:
    server.answers = [Answer(cut=70_000, stall=True, reset=True), Answer()]
    part = part_of(server, tmp_path)

    def reset_when_all_is_written(name: str, so_far: int, total: int | None) -> None:
        if so_far == 70_000:
            server.go_on.set()

    fetch([server.file], tmp_path, pause=0.0, progress=reset_when_all_is_written)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=70000-"]
    assert not part.exists()


def test_a_silent_server_is_left_after_the_timeout(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "TIMEOUT", 0.1)
    server.answers = [Answer(cut=70_000, stall=True), Answer()]
    fetch([server.file], tmp_path, pause=0.0)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=70000-"]
    assert server.stalled.is_set()


def test_a_server_that_drips_is_given_up_and_resumed_later(
    server: Server, tmp_path: Path, pauses: list[float]
) -> None:
    server.answers = [Answer(cut=3)]
    with pytest.raises(DownloadError) as caught:
        fetch([server.file], tmp_path)
    assert server.ranges == [None, "bytes=3-", "bytes=6-", "bytes=9-"]
    assert pauses == [0.5, 1.0, 2.0]
    assert f"12 of {SIZE} bytes" in str(caught.value)
    assert server.file.url in str(caught.value)
    assert "again resumes" in str(caught.value)
    assert part_of(server, tmp_path).read_bytes() == CONTENT[:12]
    server.answers = [Answer()]
    fetch([server.file], tmp_path)
    assert server.ranges[4:] == ["bytes=12-"]
    assert (tmp_path / "train.txt").read_bytes() == CONTENT


def test_pauses_grow_only_so_far(server: Server, tmp_path: Path, pauses: list[float]) -> None:
    server.answers = [Answer(status=503)]
    with pytest.raises(DownloadError):
        fetch([server.file], tmp_path, attempts=12, pause=1.0)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0, 30.0, 30.0]


# Wrong bytes and refusals


def test_wrong_bytes_are_thrown_away(server: Server, tmp_path: Path) -> None:
    server.answers = [Answer(body=OTHER)]
    message = message_of(server.file, tmp_path)
    assert SHA256 in message
    assert hashlib.sha256(OTHER).hexdigest() in message
    assert server.file.url in message
    assert server.ranges == [None]


@pytest.mark.parametrize("status", [403, 404, 410, 416])
def test_a_refusal_is_final(server: Server, tmp_path: Path, status: int) -> None:
    server.answers = [Answer(status=status)]
    message = message_of(server.file, tmp_path)
    assert str(status) in message
    assert server.file.url in message
    assert len(server.ranges) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(server: Server, tmp_path: Path, status: int) -> None:
    server.answers = [Answer(status=status), Answer()]
    fetch([server.file], tmp_path, pause=0.0)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert server.ranges == [None, None]


def test_a_server_that_stays_busy_is_given_up(server: Server, tmp_path: Path) -> None:
    server.answers = [Answer(status=503)]
    message = message_of(server.file, tmp_path, attempts=3)
    assert "503" in message
    assert server.file.url in message
    assert len(server.ranges) == 3


def test_a_refusal_keeps_the_part(server: Server, tmp_path: Path) -> None:
    server.answers = [Answer(status=404)]
    part_of(server, tmp_path).write_bytes(CONTENT[:5000])
    assert "404" in message_of(server.file, tmp_path, has_part=CONTENT[:5000])


# No network


def test_a_refused_connection_is_retried_once(
    tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    file = RemoteFile("train.txt", f"http://127.0.0.1:{port}/train", SHA256)
    message = message_of(file, tmp_path)
    assert len(pauses) == 1
    for part in (file.url, "no network", str(tmp_path), "SPLIME_DATA"):
        assert part in message


def test_an_unknown_host(
    tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*arguments: object, **options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    file = RemoteFile("train.txt", "http://data.invalid/train", SHA256)
    message = message_of(file, tmp_path)
    assert len(pauses) == 1
    assert "no network" in message
    assert "Name or service not known" in message


def test_a_network_lost_on_the_way_gets_every_attempt(
    server: Server, tmp_path: Path, pauses: list[float]
) -> None:
    def shut_down(name: str, so_far: int, total: int | None) -> None:
        server.shutdown()
        server.socket.close()

    server.answers = [Answer(cut=10)]
    with pytest.raises(DownloadError) as caught:
        fetch([server.file], tmp_path, progress=shut_down)
    assert len(pauses) == 3
    assert "no network" in str(caught.value)
    assert f"10 of {SIZE} bytes" in str(caught.value)
    assert part_of(server, tmp_path).read_bytes() == CONTENT[:10]


# Disks


def mount(folder: Path, options: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a tmpfs cannot be mounted here: {error}")


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of its own with 64 KiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount(folder, "size=64k")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_really_full_disk(server: Server, tiny_disk: Path) -> None:
    message = message_of(server.file, tiny_disk, has_part=CONTENT[: 64 * 1024])
    assert str(tiny_disk) in message
    assert f"{SIZE - 64 * 1024} more bytes" in message
    assert "0 are free" in message
    assert len(server.ranges) == 1
    subprocess.run(["mount", "-o", "remount,size=1m", str(tiny_disk)], check=True)
    fetch([server.file], tiny_disk)
    assert (tiny_disk / "train.txt").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=65536-"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_is_full_at_a_write(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def write_some(out: io.FileIO, data: bytes) -> None:
        out.write(data[:100])
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(download, "_write_all", write_some)
    message = message_of(server.file, tmp_path, has_part=CONTENT[:100])
    assert "disk is full" in message
    assert f"{SIZE - 100} more bytes" in message
    assert str(tmp_path) in message
    monkeypatch.undo()
    monkeypatch.setenv("no_proxy", "*")
    fetch([server.file], tmp_path)
    assert server.ranges == [None, "bytes=100-"]


def test_a_disk_that_is_full_at_the_fsync(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    message = message_of(server.file, tmp_path)  # no .part: nobody knows what is on the disk
    assert f"{SIZE} more bytes" in message


def test_short_writes_are_gone_on_with(tmp_path: Path) -> None:
    class ShortWriter(io.FileIO):
        def write(self, data: object) -> int:
            assert isinstance(data, memoryview)
            return super().write(data[:7])

    with ShortWriter(tmp_path / "file", "w") as out:
        download._write_all(out, CONTENT[:100])
    assert (tmp_path / "file").read_bytes() == CONTENT[:100]


def test_a_folder_that_cannot_be_made(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "data"):
        with pytest.raises(DownloadError, match="file"):
            fetch([server.file], folder)
    assert server.ranges == []


def test_a_disk_too_full_for_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "mkdir", full)
    file = RemoteFile("train.txt", "http://127.0.0.1:9/train", SHA256)
    assert os.strerror(errno.ENOSPC) in message_of(file, tmp_path / "data")


def test_a_read_only_disk(server: Server, tiny_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    assert str(tiny_disk) in message_of(server.file, tiny_disk)


def test_a_folder_without_the_right_to_write(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("root may write everywhere")
    assert str(folder) in message_of(server.file, folder)


# Several at once


def test_a_second_process_waits_for_the_first(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    server.answers = [Answer(cut=70_000, stall=True), Answer()]
    lock = fcntl.flock
    waited: list[bool] = []

    def lock_and_let_the_first_go_on(handle: io.BufferedWriter, kind: int) -> None:
        waited.append((tmp_path / "train.txt").exists())
        server.go_on.set()
        lock(handle, kind)

    with start_fetch(server.file, tmp_path) as first:
        assert server.stalled.wait(5)
        monkeypatch.setattr(fcntl, "flock", lock_and_let_the_first_go_on)
        fetch([server.file], tmp_path)
    assert first.returncode == 0
    assert waited == [False]
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert names_in(tmp_path) == ["train.txt"]
    assert server.ranges == [None, "bytes=70000-"]  # both of the first process


def test_many_processes_download_once(server: Server, tmp_path: Path) -> None:
    processes = [start_fetch(server.file, tmp_path) for _ in range(4)]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert names_in(tmp_path) == ["train.txt"]
    assert server.ranges == [None]


def test_a_process_that_waited_in_vain_downloads_itself(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The lock is got on a file that its owner has deleted in the meantime.
    fcntl = pytest.importorskip("fcntl")
    lock = fcntl.flock
    part = part_of(server, tmp_path)
    locked: list[bool] = []

    def lock_what_is_gone_at_first(handle: io.BufferedWriter, kind: int) -> None:
        lock(handle, kind)
        if not locked:
            part.unlink()
        locked.append(part.exists())

    monkeypatch.setattr(fcntl, "flock", lock_what_is_gone_at_first)
    fetch([server.file], tmp_path)
    assert locked == [False, True]
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert server.ranges == [None]


def test_a_file_finished_just_before_the_lock_is_taken(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def finish_elsewhere(handle: io.BufferedWriter, kind: int) -> None:
        (tmp_path / "train.txt").write_bytes(CONTENT)

    monkeypatch.setattr(fcntl, "flock", finish_elsewhere)
    fetch([server.file], tmp_path)
    assert server.ranges == []
    assert names_in(tmp_path) == ["train.txt"]


def test_a_file_system_without_locks(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refuse(handle: io.BufferedWriter, kind: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", refuse)
    fetch([server.file], tmp_path)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT


def test_sha256_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    assert sha256_of(tmp_path / "file") == SHA256
