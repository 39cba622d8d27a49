"""The service as tools of language-model agents, over the Model Context Protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from splime import __version__
from splime.errors import SplimeError, counted
from splime.serving.messages import explained
from splime.serving.service import VERBS, Service

_TOOLS = ("ask", "when", "why", "predict")
_PREDICATES = 50


def run_tools(service: Service) -> None:
    """Answer an agent on standard input and output, until it closes them."""
    asyncio.run(_run(make_tools(service)))


async def _run(server: Server[Any]) -> None:
    async with stdio_server() as (requests, replies):
        await server.run(requests, replies, server.create_initialization_options())


def make_tools(service: Service) -> Server[Any]:
    """The tools, with what an agent must know of the facts to use them."""

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        read_only = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=f"{VERBS[name].about} {VERBS[name].takes.__doc__}",
                    input_schema=_schema(VERBS[name].takes),
                    output_schema=_schema(VERBS[name].gives),
                    annotations=read_only,
                )
                for name in _TOOLS
            ]
        )

    async def call_tool(_: Any, given: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            if given.name not in _TOOLS:
                raise SplimeError(f"there is no tool {given.name}; there are {', '.join(_TOOLS)}")
            asked = msgspec.convert(given.arguments or {}, VERBS[given.name].takes)
            reply = await service.answer(given.name, asked)
        except (SplimeError, msgspec.ValidationError) as error:
            why = explained(error) if isinstance(error, msgspec.ValidationError) else str(error)
            return types.CallToolResult(content=[types.TextContent(text=why)], is_error=True)
        text = msgspec.json.encode(reply).decode()
        return types.CallToolResult(
            content=[types.TextContent(text=text)], structured_content=msgspec.json.decode(text)
        )

    return Server(
        "splime",
        version=__version__,
        instructions=_instructions(service),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _schema(kind: Any) -> dict[str, Any]:
    """The schema of an object, which it is at its root."""
    _, schemas = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    return {**schemas.pop(kind.__name__), "$defs": schemas}


def _instructions(service: Service) -> str:
    graph = service.query.run.graph
    times, predicates = graph.timeline.labels(), [*graph.predicates]
    more = ", …" if len(predicates) > _PREDICATES else ""
    return (
        f"Answers from {counted(len(graph), 'fact')} ({graph.name or 'facts'}) that hold for a"
        f" time, from {times[0]} to {times[-1]}. Names are written as the facts have them; an error"
        " suggests the nearest ones. Probabilities suppose that there is such a fact; there_is_one"
        f" says how likely that is. Predicates: {', '.join(predicates[:_PREDICATES])}{more}."
    )
