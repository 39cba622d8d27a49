"""Where requests come from, and what they must have."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from dataclasses import dataclass

from splime.errors import UsageError
from splime.serving.http import HOST, listen

PORT = 8766


@dataclass(frozen=True)
class Access:
    """Where a service listens, to whom, and how long it takes for an answer at most."""

    host: str = HOST
    port: int = PORT
    token: str | None = None
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if self.token is not None and not self.token.strip():
            raise UsageError("the token is empty")
        if not self.timeout > 0:
            raise UsageError(f"timeout is a number of seconds, not {self.timeout:g}")
        if self.token is None and not self._loopback:
            raise UsageError(
                f"other machines can reach {self.host}; give a token that requests must have"
                " (--token, or the environment variable SPLIME_TOKEN)"
            )

    @property
    def _loopback(self) -> bool:
        with suppress(ValueError):  # a name
            return ipaddress.ip_address(self.host).is_loopback
        return self.host == "localhost"

    def listen(self) -> socket.socket:
        """The socket that requests come to."""
        return listen(self.host, self.port)

    def address(self, at: socket.socket) -> str:
        """Where that is."""
        return f"http://{self._named(self.host, at)}"

    def hosts(self, at: socket.socket) -> list[str] | None:
        """The hosts that requests are for; None is any, since a token is asked for."""
        names = dict.fromkeys((self.host, HOST, "localhost"))
        return [self._named(name, at) for name in names] if self._loopback else None

    def _named(self, name: str, at: socket.socket) -> str:
        return f"{f'[{name}]' if ':' in name else name}:{at.getsockname()[1]}"
