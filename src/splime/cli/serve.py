"""`splime serve`: answers for programs, over HTTP or as tools of an agent."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from typer import Option

from splime.cli import options
from splime.cli.console import say, show
from splime.errors import UsageError
from splime.progress import progress_bar
from splime.workers import check_workers


@options.with_options(
    host=options.name("The address to listen at. Default: 127.0.0.1, this machine alone."),
    port=options.number("The port. Default: 8766; 0 takes a free one."),
    token=Annotated[
        str | None,
        Option(
            metavar="TEXT",
            envvar="SPLIME_TOKEN",
            help="Requests need it as Authorization: Bearer TEXT. Better in the environment"
            " variable SPLIME_TOKEN, which other users cannot see.",
            show_default=False,
        ),
    ],
    timeout=Annotated[
        float | None, options.option("SECONDS", "The most time for an answer. Default: 60.")
    ],
)
def serve(
    run: options.RunFolder,
    *,
    given: dict[str, Any],
    workers: Annotated[
        int, options.option("N", "How many processes answer at once. Default: 1.")
    ] = 1,
    mcp: Annotated[
        bool,
        Option("--mcp", help="Serve tools for an agent instead: MCP on standard input and output."),
    ] = False,
    device: options.Device = "auto",
    facts: dict[str, Any],
) -> None:
    """Serve answers to programs: JSON over HTTP, or tools for language-model agents.

    /openapi.json describes the service, /health says whether it is up; Ctrl-C ends it. Examples:
    splime serve facts.csv, splime serve runs/path --workers 4, splime serve facts.csv --mcp
    """
    check_workers(workers)
    open_run = partial(options.open_run, run, device, facts)
    from splime.query import Query
    from splime.serving.service import Service

    if mcp:
        if given.keys() - {"token"} or workers > 1:
            raise UsageError("--mcp uses no network and one process; leave out the other options")
        from splime.serving.agents import run_tools

        say("ready for an agent, on standard input and output (MCP)")
        run_tools(Service(Query(open_run()), brief=True))
        return
    from splime.serving.access import Access
    from splime.serving.api import JsonServer
    from splime.serving.workers import serve_with_workers

    access = Access(**given)
    with access.listen() as at:  # an error before the work
        service = Service(Query(open_run()), access.timeout)
        with progress_bar() as progress:
            service.prepare(progress)
        address = access.address(at)
        show(f"answers at {address}, described at {address}/openapi.json; Ctrl-C ends it")
        if workers == 1:
            JsonServer(service, access, at).serve_forever()
        else:
            del service  # each worker has its own
            serve_with_workers(open_run, access, at, workers)
