"""The service over HTTP: JSON to be posted, described by OpenAPI."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from splime import __version__
from splime.query import Query
from splime.runs.graph_run import open_source
from splime.serving import http
from splime.serving.access import PORT, Access
from splime.serving.http import HOST, Endpoint, Reply, WebServer, make_app, refusing
from splime.serving.messages import Error, Health, explained
from splime.serving.service import VERBS, Busy, Service

if TYPE_CHECKING:
    from splime.keywords import Reading

_BODY = 1 << 20
"""The longest request in bytes."""
_REFERENCE = "#/components/schemas/{name}"


def make_service(service: Service, hosts: Sequence[str] | None, token: str | None) -> Starlette:
    """The application: a path for each verb, and two that need no token."""
    graph = service.query.run.graph
    health = Reply(Health("ok", __version__, graph.name or "", len(graph)))
    description = Reply(describe(token is not None))

    def serving(reply: Response) -> Endpoint:
        async def show(_: Request) -> Response:
            return reply

        return show

    def answering(verb: str) -> Endpoint:
        async def answer(request: Request) -> Response:
            _check(request, token)
            body = await _body(request)
            with refusing():
                try:
                    asked = msgspec.json.decode(body, type=VERBS[verb].takes)
                    return Reply(await service.answer(verb, asked))
                except Busy as error:
                    raise HTTPException(503, str(error), {"Retry-After": "1"}) from None
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise HTTPException(400, explained(error)) from None

        return answer

    endpoints = {("POST", _path(verb)): answering(verb) for verb in VERBS}
    endpoints |= {("GET", "/health"): serving(health)}
    endpoints |= {("GET", "/openapi.json"): serving(description)}
    return make_app(endpoints, hosts)


def _path(verb: str) -> str:
    return f"/{verb.replace('_', '/')}"


def _check(request: Request, token: str | None) -> None:
    """Refuse requests without the token, whatever the time that it takes to compare them."""
    if token is None:
        return
    given = request.headers.get("Authorization", "").encode("latin-1")
    if not secrets.compare_digest(given, b"Bearer " + token.encode()):
        why = "this needs the token of splime serve, in the header Authorization: Bearer TOKEN"
        raise HTTPException(401, why, {"WWW-Authenticate": "Bearer"})


async def _body(request: Request) -> bytes:
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "send JSON, with the header Content-Type: application/json")
    body = bytearray()
    try:
        async with asyncio.timeout(http.IDLE):
            async for part in request.stream():
                body += part
                if len(body) > _BODY:
                    raise HTTPException(413, f"a request is at most {_BODY:,} bytes long")
    except TimeoutError:
        raise HTTPException(408, f"the request was not complete after {http.IDLE} s") from None
    return bytes(body)


def describe(with_token: bool) -> dict[str, Any]:
    """The service in OpenAPI, from the types that check requests."""
    kinds = [kind for verb in VERBS.values() for kind in (verb.takes, verb.gives)]
    _, schemas = msgspec.json.schema_components([*kinds, Error, Health], ref_template=_REFERENCE)

    def content(kind: Any) -> dict[str, Any]:
        return {"application/json": {"schema": {"$ref": _REFERENCE.format(name=kind.__name__)}}}

    def operation(name: str, about: str, gives: Any, **more: Any) -> dict[str, Any]:
        replies = {
            "200": {"description": "The answer.", "content": content(gives)},
            "default": {"description": "What is wrong.", "content": content(Error)},
        }
        return {"operationId": name, "summary": about, "responses": replies, **more}

    paths: dict[str, Any] = {
        _path(name): {
            "post": operation(
                name,
                verb.about,
                verb.gives,
                requestBody={"required": True, "content": content(verb.takes)},
            )
        }
        for name, verb in VERBS.items()
    }
    about = "Say whether questions are answered, and from which facts."
    paths["/health"] = {"get": operation("health", about, Health, security=[])}
    described: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "splime", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if with_token:
        described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        described["security"] = [{"token": []}]
    return described


class JsonServer(WebServer):
    """Answers programs over HTTP, in this process."""

    def __init__(self, service: Service, access: Access, at: socket.socket) -> None:
        self.service, self.token, self.address = service, access.token, access.address(at)
        super().__init__(make_service(service, access.hosts(at), access.token), at)

    def __repr__(self) -> str:
        return f"JsonServer({self.address})"


def serve(
    source: Any,
    *,
    host: str = HOST,
    port: int = PORT,
    token: str | None = None,
    timeout: float = 60.0,
    device: str = "auto",
    weights: str | None = None,
    **reading: Unpack[Reading],
) -> JsonServer:
    """Answer programs in the background: JSON over HTTP, as `splime serve` does.

    Args:
        source: a graph, a file, the name of a dataset, a run or its folder.
        host: the address to listen at; others than those of this machine need a token.
        port: 0 takes a free one.
        token: what requests must have in the header `Authorization: Bearer TOKEN`.
        timeout: how many seconds an answer may take.
        device: where to compute: auto, cpu or cuda.
        weights: the version of the weights that a graph is answered by.
        **reading: how to read the facts, as `splime.load` has it.

    Returns:
        The server, which answers at its `address` until its `stop` is called.
    """
    access = Access(host, port, token, timeout)
    query = Query(open_source(source, device=device, weights=weights, **reading))
    return JsonServer(Service(query, timeout), access, access.listen()).start()
