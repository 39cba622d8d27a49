"""The downloads, against a real server on this machine that fails in the ways it is told to."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import splime
from splime.datasets import download
from splime.datasets.download import RemoteFile, fetch
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
    length: bool = True
    chunked: bool = False
    cut: int | None = None  # bytes after which the connection ends
    stall: bool = False  # waits for `go_on` before it ends
    hang_up: bool = False  # ends without a word
    endless: bool = False  # sends the body again and again
    location: str = ""  # where it sends the client


class Server(ThreadingHTTPServer):
    """Gives the scripted answers one after another, the last of them for ever."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = [Answer()]
        self.agents: list[str | None] = []  # of each request
        self.go_on = threading.Event()
        self.sent = 0  # bytes, where they never end

    @property
    def file(self) -> RemoteFile:
        return RemoteFile(
            "train.txt", f"http://127.0.0.1:{self.server_port}/data/train", SHA256, SIZE
        )

    def handle_error(self, *request: object) -> None:
        """Clients that hang up are what these tests are about."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        server.agents.append(self.headers["User-Agent"])
        answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
        if answer.hang_up:
            return
        if answer.status:
            self.send_error(answer.status)
            return
        if answer.location:
            self.send_response(302)
            self.send_header("Location", answer.location)
            self.end_headers()
            return
        self.send_response(200)
        if answer.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif answer.length:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if answer.chunked:
            self.wfile.write(b"%x\r\n" % len(answer.body))
        while answer.endless:
            server.sent += self.wfile.write(answer.body)
        self.wfile.write(answer.body[: answer.cut])
        if answer.chunked and answer.cut is None:
            self.wfile.write(b"\r\n0\r\n\r\n")
        if answer.stall:
            server.go_on.wait(5)

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


def message_of(file: RemoteFile, folder: Path) -> str:
    """The message of the DownloadError; nothing may be left in the folder."""
    with pytest.raises(DownloadError) as caught:
        fetch(file, folder)
    assert not folder.is_dir() or list(folder.iterdir()) == []
    return str(caught.value)


# Without trouble


def test_a_file_comes_complete_and_under_its_name(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    assert fetch(server.file, folder) == folder / "train.txt"
    assert (folder / "train.txt").read_bytes() == CONTENT
    assert [path.name for path in folder.iterdir()] == ["train.txt"]
    (tmp_path / "usual").touch()
    assert (folder / "train.txt").stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert server.agents == [f"splime/{splime.__version__}"]


def test_nothing_is_printed(
    server: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fetch(server.file, tmp_path)
    assert capfd.readouterr() == ("", "")


def test_a_right_file_is_not_downloaded_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(CONTENT)
    assert fetch(server.file, tmp_path) == tmp_path / "train.txt"
    assert server.agents == []


def test_a_damaged_file_is_left_alone(server: Server, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(b"edited")
    with pytest.raises(DownloadError) as caught:
        fetch(server.file, tmp_path)
    for part in (str(tmp_path / "train.txt"), SHA256, hashlib.sha256(b"edited").hexdigest()):
        assert part in str(caught.value)
    assert "Delete it" in str(caught.value)
    assert (tmp_path / "train.txt").read_bytes() == b"edited"
    assert server.agents == []


@pytest.mark.parametrize(
    ("answer", "total"),
    [(Answer(), SIZE), (Answer(length=False), SIZE), (Answer(chunked=True), SIZE)],
)
def test_progress(server: Server, tmp_path: Path, answer: Answer, total: int) -> None:
    server.answers = [answer]
    told: list[tuple[str, int, int | None]] = []

    def progress(what: str, done: int, total: int | None = None, note: str = "") -> None:
        told.append((what, done, total))

    fetch(server.file, tmp_path, progress=progress)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert len(told) > 2
    assert {(what, of) for what, _, of in told} == {("train.txt", total)}
    counts = [done for _, done, _ in told]
    assert counts == sorted(counts)
    assert 0 < counts[0] < counts[-1]
    assert counts[-1] == SIZE


# Connections that fail


@pytest.mark.parametrize(
    "broken",
    [
        Answer(cut=70_000),
        Answer(cut=70_000, chunked=True),
        Answer(cut=0),
        Answer(hang_up=True),
        Answer(status=429),
        Answer(status=500),
        Answer(status=503),
    ],
)
def test_what_may_go_better_is_tried_again(
    server: Server, tmp_path: Path, pauses: list[float], broken: Answer
) -> None:
    server.answers = [broken, broken, Answer()]
    fetch(server.file, tmp_path)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["train.txt"]
    assert len(server.agents) == 3


@pytest.mark.parametrize("broken", [Answer(cut=3), Answer(hang_up=True), Answer(status=503)])
def test_but_not_for_ever(
    server: Server, tmp_path: Path, pauses: list[float], broken: Answer
) -> None:
    server.answers = [broken]
    message = message_of(server.file, tmp_path)
    assert len(server.agents) == 3
    for part in (server.file.url, "503" if broken.status else "", str(tmp_path), "SPLIME_DATA"):
        assert part in message


def test_a_silent_server_is_left_after_the_timeout(
    server: Server, tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "TIMEOUT", 0.1)
    server.answers = [Answer(cut=70_000, stall=True), Answer()]
    fetch(server.file, tmp_path)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert len(server.agents) == 2


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_refusal_is_final(server: Server, tmp_path: Path, status: int) -> None:
    server.answers = [Answer(status=status)]
    message = message_of(server.file, tmp_path)
    for part in (str(status), server.file.url, str(tmp_path), "SPLIME_DATA"):
        assert part in message
    assert len(server.agents) == 1


def test_wrong_bytes_are_thrown_away(server: Server, tmp_path: Path, pauses: list[float]) -> None:
    server.answers = [Answer(body=OTHER)]
    message = message_of(server.file, tmp_path)
    for part in (SHA256, hashlib.sha256(OTHER).hexdigest(), server.file.url):
        assert part in message
    # A page that a proxy put in between may be gone the next time.
    server.answers = [Answer(body=OTHER), Answer()]
    fetch(server.file, tmp_path)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT


# Limits


@pytest.mark.parametrize("chunked", [False, True])
def test_a_server_that_never_ends(
    server: Server, tmp_path: Path, pauses: list[float], chunked: bool
) -> None:
    server.answers = [Answer(endless=not chunked, length=False, chunked=chunked, body=CONTENT * 90)]
    message = message_of(server.file, tmp_path)
    assert f"more than the {SIZE:,} bytes" in message
    assert len(server.agents) == 3
    assert server.sent < 100 * SIZE


def test_a_good_redirection_is_followed(server: Server, tmp_path: Path) -> None:
    server.answers = [Answer(location="/elsewhere"), Answer()]
    assert fetch(server.file, tmp_path).read_bytes() == CONTENT


def test_redirections_come_to_an_end(server: Server, tmp_path: Path) -> None:
    server.answers = [Answer(location="/again")]
    assert "redirects" in message_of(server.file, tmp_path)
    assert len(server.agents) == 31


@pytest.mark.parametrize("scheme", ["file", "ftp", "gopher"])
def test_redirections_out_of_the_net(server: Server, tmp_path: Path, scheme: str) -> None:
    server.answers = [Answer(location=f"{scheme}:///etc/passwd")]
    assert "/etc/passwd" in message_of(server.file, tmp_path)
    assert len(server.agents) == 1


def test_a_refused_connection(
    tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    file = RemoteFile("train.txt", f"http://127.0.0.1:{port}/train", SHA256, SIZE)
    message = message_of(file, tmp_path)
    for part in (file.url, "network", str(tmp_path), "SPLIME_DATA"):
        assert part in message
    assert 0 < sum(pauses) < 10


def test_an_unknown_host(
    tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*arguments: object, **options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    file = RemoteFile("train.txt", "http://data.invalid/train", SHA256, SIZE)
    assert "Name or service not known" in message_of(file, tmp_path)


def test_ctrl_c_leaves_nothing(server: Server, tmp_path: Path) -> None:
    def interrupt(what: str, done: int, total: int | None = None, note: str = "") -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(server.file, tmp_path, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


# Disks


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of its own with 64 KiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a tmpfs cannot be mounted here: {error}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(server: Server, tiny_disk: Path) -> None:
    message = message_of(server.file, tiny_disk)
    assert str(tiny_disk) in message
    assert "No space left" in message
    assert len(server.agents) == 1


def test_a_read_only_disk(server: Server, tiny_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    assert str(tiny_disk) in message_of(server.file, tiny_disk)


def test_a_folder_that_cannot_be_made(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "data"):
        with pytest.raises(DownloadError, match="file"):
            fetch(server.file, folder)
    assert server.agents == []


def test_a_folder_without_the_right_to_write(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("root may write everywhere")
    assert str(folder) in message_of(server.file, folder)


# Several at once


@pytest.mark.system
def test_several_processes(server: Server, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from splime.datasets.download import RemoteFile, fetch\n"
        f"fetch(RemoteFile(*sys.argv[2:], {SIZE}), Path(sys.argv[1]))\n"
    )
    file = server.file
    command = [sys.executable, "-c", code, str(tmp_path), file.name, file.url, file.sha256]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["train.txt"]
