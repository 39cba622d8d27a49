"""The tools of agents, by the client of the protocol's own package."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from splime.query import Query
from splime.serving.agents import make_tools
from splime.serving.service import Service
from tests.runs.small import call
from tests.serving.test_api import ASKED, FACT, NAMES, printed


def with_client(query: Query, use: Callable[[Client], Awaitable[None]], mode: str = "auto") -> None:
    async def run() -> None:
        async with Client(make_tools(Service(query, brief=True)), mode=mode) as client:
            await use(client)

    asyncio.run(run())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools(query: Query, mode: str) -> None:
    async def use(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert [*tools] == ["ask", "when", "why", "predict"]
        for tool in tools.values():
            assert tool.description
            assert tool.input_schema["type"] == "object"
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
        assert {"subject", "predicate", "object"} <= {*tools["ask"].input_schema["properties"]}
        assert client.instructions is not None
        assert "p0, p1, p2" in client.instructions

    with_client(query, use, mode)


def test_answers_are_those_of_the_command_line(query: Query, facts: Path) -> None:
    """But for what is the same for all questions: it is one remark."""
    whole = printed("ask", facts, *NAMES, "--at", 1995, "--why")
    del whole["trust"]
    expected: dict[str, tuple[dict[str, Any], Any]] = {
        "ask": ({**ASKED, "at": 1995, "why": True}, whole),
        "when": (FACT, printed("ask", facts, *FACT.values())),
        "why": ({**ASKED, "at": 1995}, whole["evidence"]),
        "predict": ({"limit": 3}, printed("predict", facts, "--limit", 3)),
    }

    async def use(client: Client) -> None:
        for name, (arguments, wanted) in expected.items():
            found = await client.call_tool(name, arguments)  # which checks it by the schema
            assert not found.is_error
            reply = found.structured_content
            assert json.loads(found.content[0].text) == reply  # type: ignore[union-attr]
            if "remarks" in wanted:
                wanted.pop("trust", None)
                assert "hidden in turn" in reply["remarks"].pop()
            assert reply == wanted

    with_client(query, use)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("ask", {**ASKED, "subject": "entity 11x"}, "entity 11"),
        ("ask", {"subject": "entity 1"}, "missing required field `predicate`"),
        ("ask", {**ASKED, "limit": 5000}, "limit: expected `int` <= 1000"),
        ("why", FACT, "who or what"),
        ("ask_many", {"questions": [ASKED]}, "there is no tool ask_many"),
        ("none", {}, "there are ask, when, why, predict"),
    ],
)
def test_what_is_wrong_is_said(
    query: Query, name: str, arguments: dict[str, Any], words: str
) -> None:
    async def use(client: Client) -> None:
        found = await client.call_tool(name, arguments)
        assert found.is_error
        assert words in found.content[0].text  # type: ignore[union-attr]

    with_client(query, use)


@pytest.mark.system
def test_over_standard_input_and_output(facts: Path) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "splime", "serve", str(facts), "--mcp", "--device", "cpu"],
        env={**os.environ},
    )

    async def run() -> None:
        async with Client(server) as client:
            found = await client.call_tool("ask", {**ASKED, "at": 1995})
            assert found.structured_content["answers"]
            wrong = await client.call_tool("ask", {**ASKED, "at": "somewhen"})
            assert wrong.is_error

    asyncio.run(run())


@pytest.mark.system
def test_nothing_else_on_standard_output(facts: Path) -> None:
    """Not even when requests are none; and the end of the input ends it."""
    command = [sys.executable, "-m", "splime", "serve", str(facts), "--mcp", "--device", "cpu"]
    client = {"name": "test", "version": "1"}
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    asked = {"name": "ask", "arguments": {**ASKED, "at": 1995}}
    messages: list[Any] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked},
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write("this is no message\n")
        program.stdin.write("".join(f"{json.dumps(one)}\n" for one in messages))
        program.stdin.flush()
        replies: list[Any] = []
        while not any(reply.get("id") == 2 for reply in replies):
            replies.append(json.loads(program.stdout.readline()))
        rest, _ = program.communicate(timeout=60)
    assert (rest, program.returncode) == ("", 0)
    assert replies[-1]["result"]["structuredContent"]["answers"]
    assert all(reply["jsonrpc"] == "2.0" for reply in replies)


def test_options_that_are_for_http(facts: Path) -> None:
    for option in (("--port", 80), ("--workers", 2), ("--host", "::1"), ("--timeout", 3)):
        done = call("serve", facts, "--mcp", *option)
        assert (done.code, "--mcp" in done.err) == (2, True)
