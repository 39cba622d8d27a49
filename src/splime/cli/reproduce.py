"""`splime reproduce`: the paper's tables, from stored results or run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from splime.cli.console import console
from splime.cli.train import Device, torch_needed
from splime.errors import UsageError, check_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from splime.experiments.results import Results
    from splime.experiments.studies import Study
    from splime.experiments.table import Table

_DOCUMENT = "document"
_FORMATS = ("table", "markdown")
_STORED, _OWN = Path("experiments/results"), Path("reproduced")


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="datasets, duplicates, filters, main, grid, predicates, tsne, fair; or document,"
            " all of them as docs/paper.md.",
        ),
    ],
    run: Annotated[
        bool, typer.Option("--run", help="Run the trainings that the results do not have.")
    ] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run a small part: a row or two, one seed, nothing else changed; minutes on two"
            " cores. Results go to reproduced/.",
        ),
    ] = False,
    row: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Only rows whose dataset and title contain this."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where results are kept. Default: experiments/results if it is there, else"
            " reproduced.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A folder with graphs saved as DATASET-READING.parquet (reading: paper, fact,"
            " point, years), instead of the datasets.",
        ),
    ] = None,
    runs: Annotated[
        Path, typer.Option(metavar="DIR", help="tsne: the folder of the runs that are drawn.")
    ] = Path("runs"),
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="main, tsne, grid: draw figures into this folder."),
    ] = None,
    device: Device = "auto",
    processes: Annotated[int, typer.Option(help="How many trainings to run at once.")] = 1,
    format: Annotated[str, typer.Option(help="table or markdown.")] = "table",
) -> None:
    """Make a table of the paper, and print it beside the printed one.

    Tables come from results that are stored; trainings are run only with --run or --quick, and
    remembered one by one. Example: splime reproduce main --row "yago11k vanilla" --run
    """
    torch_needed()
    from splime.experiments import document, exact
    from splime.experiments.results import Results
    from splime.experiments.studies import EXACT, STUDIES

    check_name("table", what, [*EXACT, *STUDIES, _DOCUMENT])
    check_name("format", format, _FORMATS)
    if processes < 1:
        raise UsageError(f"processes must be at least 1, not {processes}")
    if quick and (run or row or what not in STUDIES):
        raise UsageError("--quick chooses the rows itself, of a table that is trained for")
    drawn = [name for name, study in STUDIES.items() if study.pictures is not None]
    if figures is not None and what not in drawn:
        raise UsageError(f"{what} has no figures; {', '.join(drawn)} have")
    place = results or (_STORED if _STORED.is_dir() and not quick else _OWN)
    if what == _DOCUMENT:
        typer.echo(document.document(place), nl=False)
        return
    if what in EXACT:
        counts = exact.count(data)
        if run:
            exact.write_counts(place / document.COUNTS, counts)
        make = exact.datasets_table if what == "datasets" else exact.duplicates_table
        _show([make(counts)], format)
        return
    study, stored = STUDIES[what], Results(place / f"{what}.json")
    _run(study, stored, row or (), runs, data, device, processes, run=run, quick=quick)
    tables = study.tables(stored)
    if shown := study.quick if quick else row:
        tables = [table.only(shown) for table in tables]
    _show([table for table in tables if table.rows or table.notes], format)
    _tell_missing(study, stored, row or (), quick)
    if figures is not None and study.pictures is not None:
        _save(study.pictures(stored, runs), figures)


def _run(
    study: Study,
    stored: Results,
    rows: Sequence[str],
    runs: Path,
    data: Path | None,
    device: str,
    processes: int,
    *,
    run: bool,
    quick: bool,
) -> None:
    from splime.embedding.device import choose_device
    from splime.experiments.running import run_cases
    from splime.experiments.studies import complete
    from splime.progress import progress_bar

    choose_device(device)  # a wrong one is one error, not one for each training
    with progress_bar() as update:
        how: dict[str, Any] = {
            "data": data,
            "device": device,
            "processes": processes,
            "keep": study.folders(runs),
            "advance": lambda done, of, last: update("trainings", done, of, last),
        }
        if quick:
            run_cases(stored.missing(study.quick_cases(stored)), stored, **how)
        elif run:
            complete(study, stored, rows, **how)


def _show(tables: Sequence[Table], format: str) -> None:
    from splime.report.tables import make_table

    if format == "markdown":
        typer.echo("\n".join(table.to_markdown() for table in tables), nl=False)
        return
    out = console()
    for table in tables:
        shown = make_table(table.title, *table.columns, words=table.columns[: table.words])
        for row in table.rows:
            shown.add_row(*row)
        out.print(shown if table.rows else table.title)
        for note in table.notes:
            out.print(note, soft_wrap=True)


def _tell_missing(study: Study, stored: Results, rows: Sequence[str], quick: bool) -> None:
    cases = study.quick_cases(stored) if quick else study.cases(stored, rows)
    if left := stored.missing(cases):
        typer.secho(f"{len(left)} trainings are not run yet; --run runs them", err=True, dim=True)
    elif quick:
        typer.secho("quick: one seed of these rows; settings are the table's", err=True, dim=True)


def _save(pictures: dict[str, Figure], figures: Path) -> None:
    from splime.report.style import save_pictures

    save_pictures(pictures, figures)
    console().print(f"figures: {', '.join(pictures)} in {figures}", soft_wrap=True)
