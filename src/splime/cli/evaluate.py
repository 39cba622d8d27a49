"""`splime evaluate` and `splime embeddings`: what a trained run is worth, and its vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from splime.cli.console import console
from splime.cli.train import Device, torch_needed
from splime.cli.transform import FilterChoice
from splime.errors import UsageError
from splime.progress import progress_bar

embeddings = typer.Typer(no_args_is_help=True, help="The vectors of a run.")
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]


def evaluate(
    run: RunFolder,
    protocol: Annotated[
        str,
        typer.Option(
            help="fact (two questions for every fact, the fair one), triple (the paper's:"
            " transformed triples) or predicate (which predicate links two entities at a time)."
        ),
    ] = "fact",
    split: Annotated[str, typer.Option(help="valid or test.")] = "test",
    filter: Annotated[
        FilterChoice | None,
        typer.Option(help="triple: the leak filter. Default: inter, as in the paper."),
    ] = None,
    aggregate: Annotated[
        str | None,
        typer.Option(
            help="fact, predicate: how scores of the scopes of an interval become one: mean"
            " (weighted by overlap, the default), ends, max or sum. Choose it on valid."
        ),
    ] = None,
    ties: Annotated[
        str | None,
        typer.Option(help="Rank among equal scores: mean, worst or best. Default: the protocol's."),
    ] = None,
    bootstrap: Annotated[
        int | None,
        typer.Option(metavar="SAMPLES", help="Also confidence intervals, from so many samples."),
    ] = None,
    memory: Annotated[
        int | None, typer.Option(metavar="MIB", help="How much memory blocks of scores may take.")
    ] = None,
    device: Device = "auto",
    strata: Annotated[
        bool, typer.Option("--strata", help="Also show figures by kind, predicate and period.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Rank the answers of a trained run; figures and ranks are also kept in its folder.

    Example: splime evaluate run --protocol fact --bootstrap 1000
    """
    torch_needed()
    from splime.report.tables import evaluation_tables
    from splime.runs import Run, evaluate as evaluate_run

    options: dict[str, Any] = {
        "filter": None if filter is None else filter.value,
        "aggregate": aggregate,
        "ties": ties,
        "bootstrap": bootstrap,
        "memory": None if memory is None else memory << 20,
    }
    options = {name: value for name, value in options.items() if value is not None}
    for name, wrong in (("filter", ("fact", "predicate")), ("aggregate", ("triple",))):
        if name in options and protocol in wrong:
            raise UsageError(f"protocol {protocol} has no option --{name}")
    opened = Run(run, device=device)
    with progress_bar() as update:
        found = evaluate_run(
            opened,
            protocol,
            split=split,
            progress=update,
            estimate=_tell_estimate,
            warn=lambda text: typer.secho(text, fg=typer.colors.YELLOW, err=True),
            **options,
        )
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
        return
    out = console()
    for part in evaluation_tables(found, strata=strata):
        out.print(part)


def _tell_estimate(seconds: float) -> None:
    if seconds >= 2:
        typer.secho(f"this will take about {seconds:,.0f} s", err=True, dim=True)


@embeddings.command("export")
def export(
    run: RunFolder,
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The file: .parquet, .tsv, or .txt for word2vec's text."),
    ],
    what: Annotated[str, typer.Option(help="entities or predicates.")] = "entities",
    format: Annotated[
        str, typer.Option(help="parquet, tsv or word2vec. Default: by the name of the file.")
    ] = "",
) -> None:
    """Write the vectors of a run with their names.

    Example: splime embeddings export run --what predicates --out predicates.tsv
    """
    torch_needed()
    from splime.analysis.embeddings import export_embeddings
    from splime.runs import Run

    path = export_embeddings(Run(run, device="cpu"), out, what, format)
    console().print(f"written to {path}", soft_wrap=True)
