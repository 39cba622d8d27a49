"""A PostgreSQL server of the tests' own, in a folder of theirs."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

USER, PASSWORD = "ada", "s3cret%20Pass-w0rd"
"""The password as it stands in an address; there is a space in it."""
_PLACES = (*Path("/usr/lib/postgresql").glob("*/bin"), Path("/usr/local/pgsql/bin"))


@dataclass(frozen=True)
class Server:
    """A server that is running."""

    port: int
    folder: Path
    bin: Path

    @property
    def address(self) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def execute(self, *statements: str) -> None:
        for statement in statements:
            subprocess.run(
                [
                    self.bin / "psql",
                    "-X",
                    "-q",
                    "-v",
                    "ON_ERROR_STOP=1",
                    "-c",
                    statement,
                    self.address,
                ],
                check=True,
                capture_output=True,
            )


def _binaries() -> Path:
    found = shutil.which("initdb")
    places = ([Path(found).parent] if found else []) + sorted(_PLACES)
    for place in reversed(places):
        if (place / "initdb").exists() and (place / "psql").exists():
            return place
    pytest.skip("there is no PostgreSQL (initdb) on this machine")


def _as_user() -> Sequence[str]:
    """What begins the command line of a server, which refuses to be run by root."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root cannot start PostgreSQL, and there is no setpriv")
    try:
        import pwd

        pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("root cannot start PostgreSQL, and there is no user postgres")
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


@contextmanager
def running() -> Iterator[Server]:
    """A new server, on a free port, with its socket in its folder."""
    bin, user = _binaries(), _as_user()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Not below pytest's folder, which is closed to other users, and too long a name for a socket.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    password = folder / "password"
    password.write_text("s3cret Pass-w0rd\n", encoding="utf-8")
    if user:
        for path in (folder, password):
            shutil.chown(path, "postgres")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    control = [*user, bin / "pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log"]
    initial = ["-U", USER, "-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8", "--no-sync"]
    quiet: dict[str, object] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
    try:
        subprocess.run([*user, bin / "initdb", "-D", folder / "data", *initial], **quiet)  # type: ignore[call-overload]
        subprocess.run([*control, "-o", options, "start"], **quiet)  # type: ignore[call-overload]
        try:
            yield Server(port, folder, bin)
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet)  # type: ignore[call-overload]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
