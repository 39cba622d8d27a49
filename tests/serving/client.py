"""Plain requests to the servers of the tests."""

from __future__ import annotations

import json
from email.message import Message
from http.client import HTTPConnection
from typing import Any, NamedTuple

from splime.serving.http import WebServer


class Reply(NamedTuple):
    status: int
    headers: Message  # whose names are in any case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def send(
    server: WebServer, path: str, method: str, given: dict[str, str], body: bytes = b""
) -> Reply:
    """One request; with a host of its own only if that is given."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.putrequest(method, path, skip_host="Host" in given)
    if body and "Transfer-Encoding" not in given:
        given = {"Content-Length": str(len(body)), **given}
    for name, value in given.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    reply = connection.getresponse()
    made = Reply(reply.status, reply.headers, reply.read())
    connection.close()
    return made


def post(server: WebServer, path: str, asked: Any, **headers: str) -> Reply:
    """A request of a program: a value, or bytes that may be none."""
    body = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
    return send(server, path, "POST", {"Content-Type": "application/json", **headers}, body)
