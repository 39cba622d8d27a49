"""`splime reproduce`: the paper's tables, from stored results or run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from splime.cli import options
from splime.cli.console import show
from splime.errors import UsageError, check_name

if TYPE_CHECKING:
    from splime.experiments.tables import Table

_STORED, _OWN = Path("experiments/results"), Path("reproduced")


def reproduce(
    what: Annotated[
        str,
        Argument(
            metavar="TABLE",
            help="datasets, duplicates, filters, main, grid, predicates, tsne, fair, paths, rivals;"
            " or document and rivals-document, which are docs/paper.md and docs/rivals.md.",
        ),
    ],
    run: Annotated[
        bool, Option("--run", help="Run the trainings that the results do not have.")
    ] = False,
    quick: Annotated[
        bool,
        Option(
            "--quick",
            help="Run a small part: a row or two, one seed, nothing else changed; minutes on two"
            " cores. Results go to reproduced/.",
        ),
    ] = False,
    row: Annotated[
        list[str] | None,
        Option(metavar="TEXT", help="Only rows whose dataset and title contain this."),
    ] = None,
    results: Annotated[
        Path | None,
        options.folder(
            help="Where results are kept. Default: experiments/results if there, else reproduced."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        options.folder(
            help="A folder with graphs saved as DATASET-READING.parquet (reading: paper, fact,"
            " point, years, fact-100, point-100, fact-years), instead of the datasets."
        ),
    ] = None,
    runs: Annotated[
        Path, options.folder(help="tsne, paths: the folder of runs that are drawn or combined.")
    ] = Path("runs"),
    figures: Annotated[
        Path | None, options.folder(help="main, tsne, grid, rivals: draw figures into this folder.")
    ] = None,
    device: options.Device = "auto",
    engine: options.Spreader = None,
    processes: options.Processes = None,
    processors: options.Processors = None,
    gpu: options.Gpu = None,
    address: options.Address = None,
    format: Annotated[str, Option(help="table or markdown.")] = "table",
) -> None:
    """Make a table of the paper, and print it beside the printed one.

    Tables come from results that are stored; trainings are run only with --run or --quick, and
    remembered one by one. The same command again resumes what was stopped.
    Example: splime reproduce main --row "yago11k vanilla" --run
    """
    from splime.embedding.device import choose_device
    from splime.experiments import studies
    from splime.experiments.rows import Results
    from splime.progress import progress_bar
    from splime.report.style import save_pictures
    from splime.runs.spreading import Spreading

    trained = studies.STUDIES
    check_name("table", what, [*studies.EXACT, *trained, *studies.PAGES])
    check_name("format", format, ["table", "markdown"])
    if quick and (run or row or what not in trained):
        raise UsageError("--quick chooses the rows itself, of a table that is trained for")
    drawn = [name for name, study in trained.items() if study.pictures is not None]
    if figures is not None and what not in drawn:
        raise UsageError(f"{what} has no figures; {', '.join(drawn)} have")
    place = results or (_STORED if _STORED.is_dir() and not quick else _OWN)
    if what in studies.PAGES:
        typer.echo(studies.document(place, studies.PAGES[what]), nl=False)
        return
    if what in studies.EXACT:
        counted = studies.count(data)
        if run:
            studies.write_counts(place / studies.FILE, counted)
        _show([studies.counts_table(what, counted)], format)
        return
    study, stored = trained[what], Results(place / f"{what}.json")
    texts = study.quick if quick else row or ()
    choose_device(device)  # a wrong one is one error, not one for each training
    spreading = Spreading(engine, processes, processors, gpu, address, device)
    if run or quick:
        with progress_bar() as progress:
            how = {"spreading": spreading, "data": data, "progress": progress}
            study.run(stored, texts, runs, quick=quick, **how)
    tables = study.tables(stored)
    if texts:
        tables = [table.only(texts) for table in tables]
    _show([table for table in tables if table.rows or table.notes], format)
    if left := stored.missing(study.cases(stored, texts, quick=quick)):
        typer.secho(
            f"not run yet: {len(left)} of the trainings; --run runs them", err=True, dim=True
        )
    elif quick:
        typer.secho("quick: one seed of these rows; settings are the table's", err=True, dim=True)
    if figures is not None and study.pictures is not None:
        pictures = study.pictures(stored, runs)
        save_pictures(pictures, figures)
        show(f"figures: {', '.join(pictures)} in {figures}")


def _show(tables: Sequence[Table], format: str) -> None:
    from splime.report.tables import make_table

    if format == "markdown":
        typer.echo("\n".join(table.to_markdown() for table in tables), nl=False)
        return
    for table in tables:
        shown = make_table(table.title, *table.columns, words=table.columns[: table.words])
        for row in table.rows:
            shown.add_row(*row)
        show(shown if table.rows else table.title, *table.notes)
