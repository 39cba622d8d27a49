"""`splime evaluate` and `splime embeddings`: what a trained run is worth, and its vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from splime.cli.console import show, show_json, warn
from splime.cli.options import AsJson, Device, RunFolder, Split
from splime.errors import UsageError
from splime.progress import progress_bar

embeddings = typer.Typer(no_args_is_help=True, help="The vectors of a run.")


def evaluate(
    run: RunFolder,
    protocol: Annotated[
        str,
        Option(
            help="fact (two questions for every fact, the fair one), triple (the paper's:"
            " transformed triples) or predicate (which predicate links two entities at a time)."
        ),
    ] = "fact",
    split: Split = "test",
    filter: Annotated[
        str | None,
        Option(
            metavar="<none|intra|inter|both>",
            help="triple: the leak filter. Default: inter, as in the paper.",
        ),
    ] = None,
    aggregate: Annotated[
        str | None,
        Option(
            help="fact, predicate: how scores of the scopes of an interval become one: mean"
            " (weighted by overlap, the default), ends, max or sum. Choose it on valid."
        ),
    ] = None,
    ties: Annotated[
        str | None,
        Option(help="Rank among equal scores: mean, worst or best. Default: the protocol's."),
    ] = None,
    bootstrap: Annotated[
        int | None,
        Option(metavar="SAMPLES", help="Also confidence intervals, from so many samples."),
    ] = None,
    memory: Annotated[
        int | None, Option(metavar="MIB", help="How much memory blocks of scores may take.")
    ] = None,
    device: Device = "auto",
    strata: Annotated[
        bool, Option("--strata", help="Also show metrics by kind, predicate and period.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Rank the answers of a trained run; metrics and ranks are also kept in its folder.

    Example: splime evaluate run --protocol fact --bootstrap 1000
    """
    from splime.report.tables import evaluation_tables
    from splime.runs import Run, evaluate as evaluate_run

    options: dict[str, Any] = {
        "filter": filter,
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
    with progress_bar() as progress:
        evaluation = evaluate_run(
            opened,
            protocol,
            split=split,
            progress=progress,
            estimate=_show_estimate,
            warn=warn,
            **options,
        )
    if as_json:
        show_json(evaluation.to_json())
    else:
        show(*evaluation_tables(evaluation, strata=strata))


def _show_estimate(seconds: float) -> None:
    if seconds >= 2:
        typer.secho(f"this will take about {seconds:,.0f} s", err=True, dim=True)


@embeddings.command("export")
def export(
    run: RunFolder,
    out: Annotated[
        Path, Option(metavar="FILE", help="The file: .parquet, .tsv, or .txt for word2vec's text.")
    ],
    what: Annotated[str, Option(help="entities or predicates.")] = "entities",
    format: Annotated[
        str, Option(help="parquet, tsv or word2vec. Default: by the name of the file.")
    ] = "",
) -> None:
    """Write the vectors of a run with their names.

    Example: splime embeddings export run --what predicates --out predicates.tsv
    """
    from splime.analysis.embeddings import export_embeddings
    from splime.runs import Run

    show(f"written to {export_embeddings(Run(run, device='cpu'), out, what, format)}")
