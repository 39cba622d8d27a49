"""`python -m experiments`: tables and documents from stored results or run again, and the world."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from experiments import (
    calibration as calibration_study,
    doubts as doubts_study,
    evidence as evidence_study,
    factwise,
    forecast as forecast_study,
    small as small_study,
    studies,
    tgb as tgb_study,
    universal as universal_study,
)
from experiments.pretrain import SOURCES, Pretraining
from experiments.rivals import by_dataset, entries
from experiments.rivals_page import rivals_parts
from experiments.rows import Results
from experiments.running import load_graph
from experiments.studies import Study
from experiments.tables import ResultTable
from experiments.world import World, make_world
from splime.cli import main as program, options
from splime.cli.console import show
from splime.device import choose_device
from splime.errors import UsageError, check_name
from splime.paths.shipped import load_weights, read_weights
from splime.progress import progress_bar
from splime.reporting.style import save_pictures
from splime.reporting.tables import make_table
from splime.workers import Parallel

STORED = Path(__file__).parent / "results"
_QUICK = Path("reproduced")

_Run = Annotated[bool, Option("--run", help="Run the trainings that the results do not have.")]
_ResultsFolder = Annotated[
    Path | None, options.folder(help="Where results are kept. Default: those of the clone.")
]
_Data = Annotated[
    Path | None,
    options.folder(
        help="A folder with graphs saved as DATASET-READING.parquet (reading: paper, fact, point,"
        " years, fact-100, point-100, fact-years), instead of the datasets."
    ),
]
_Format = Annotated[str, Option(help="table or markdown.")]


def make_app() -> typer.Typer:
    """The program, with a command for each table, document and the world."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
        help="The paper's tables and documents, from stored results or run again.",
    )
    app.callback()(program.options)
    for name, study in studies.STUDIES.items():
        app.command(name, short_help=study.about)(trained_table)
    for name in studies.EXACT:
        app.command(name)(counted_table)
    for name, page in studies.PAGES.items():
        app.command(name, short_help=f"docs/{page}.md")(document)
    app.command("pretrain")(pretrain)
    app.command("universal")(universal)
    app.command("small-graphs")(small_graphs)
    app.command("forecast")(forecast)
    app.command("evidence")(evidence)
    app.command("rivals-facts")(rivals_facts)
    app.command("calibration")(calibration)
    app.command("doubts")(doubts)
    app.command("tgb")(tgb)
    app.command("world")(world)
    return app


def main() -> None:
    """Run the program."""
    program.main(make_app())


@options.with_options()
def trained_table(
    context: typer.Context,
    run: _Run = False,
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
    results: _ResultsFolder = None,
    data: _Data = None,
    runs: Annotated[
        Path, options.folder(help="tsne, paths: the folder of runs that are drawn or combined.")
    ] = Path("runs"),
    figures: Annotated[
        Path | None, options.folder(help="main, tsne, grid, rivals: draw figures into this folder.")
    ] = None,
    device: options.Device = "auto",
    engine: Annotated[
        str | None, options.name("processes of this machine, or ray for a Ray cluster.")
    ] = None,
    format: _Format = "table",
    *,
    parallel: dict[str, Any],
) -> None:
    """Make a table of the paper, and print it beside the printed one.

    Tables come from results that are stored; trainings are run only with --run or --quick, and
    remembered one by one. The same command again resumes what was stopped.
    Example: python -m experiments main --row "yago11k vanilla" --run --results mine
    """
    study = studies.STUDIES[str(context.info_name)]
    check_name("format", format, ["table", "markdown"])
    if quick and (run or row):
        raise UsageError("--quick chooses the rows itself")
    if figures is not None:
        _check_figures(study)
    stored = Results((results or (_QUICK if quick else STORED)) / f"{study.name}.json")
    texts = study.quick if quick else row or ()
    choose_device(device)  # a wrong one is one error, not one for each training
    pool = Parallel(engine, device=device, **parallel)
    if run or quick:
        with progress_bar() as progress:
            how = {"parallel": pool, "data": data, "progress": progress}
            study.run(stored, texts, runs, quick=quick, **how)
    _show_study(study, stored, texts, format, quick=quick)
    if figures is not None:
        _draw(study, stored, runs, figures)


def counted_table(
    context: typer.Context,
    run: _Run = False,
    results: _ResultsFolder = None,
    data: _Data = None,
    format: _Format = "table",
) -> None:
    """Count the datasets or their duplicates, beside the paper's; --run also stores the counts."""
    check_name("format", format, ["table", "markdown"])
    counted = studies.count(data)
    if run:
        studies.write_counts((results or STORED) / studies.FILE, counted)
    _show([studies.counts_table(str(context.info_name), counted)], format)


def document(context: typer.Context, results: _ResultsFolder = None) -> None:
    """Print a page of the documentation with all its tables, from stored results."""
    page = studies.PAGES[str(context.info_name)]
    typer.echo(studies.document(results or STORED, page), nl=False)


def pretrain(
    out: Annotated[Path, Argument(metavar="FILE", help="The weights, a .safetensors file.")],
    without: Annotated[
        list[str] | None,
        Option(metavar="SOURCE", help=f"Leave a source out: {', '.join(SOURCES)}."),
    ] = None,
    steps: Annotated[int, Option(help="How many batches.")] = Pretraining.steps,
    seed: Annotated[int, Option(help="The same seed gives the same weights.")] = 0,
    forecasts: Annotated[
        bool,
        Option("--forecasts", help="For forecasts: added to FILE, beside what it has."),
    ] = False,
) -> None:
    """Train weights that answer any graph, on parts of many graphs (SPLIME_DATA has them).

    Twenty minutes for 20,000 steps on one processor. Example: SPLIME_DATA=../datasets python -m
    experiments pretrain weights.safetensors --without yago
    """
    sources = universal_study.without(without or ())
    made = Pretraining(sources, steps, seed=seed, forecasts=forecasts)
    with progress_bar() as progress:
        universal_study.make_weights(out, made, out.stem, progress)
    show(f"written to {out}")


def universal(
    measure: Annotated[
        list[str] | None,
        Option(metavar="DATASET", help="Measure --weights on a dataset, and store it."),
    ] = None,
    weights: Annotated[Path | None, options.file(help="Weights of `pretrain`.")] = None,
    questions: Annotated[int | None, Option(help="So many, drawn at random; else all.")] = None,
    results: _ResultsFolder = None,
    format: _Format = "table",
) -> None:
    """Graphs that are asked without training: the figures, or measure them again.

    Example: python -m experiments universal --weights weights.safetensors --measure yago11k
    """
    check_name("format", format, ["table", "markdown"])
    if (weights is None) != (not measure):
        raise UsageError("--weights and --measure go together")
    for dataset in measure or ():
        assert weights is not None
        record = universal_study.measure(read_weights(weights), dataset, questions or "all")
        universal_study.store(results or STORED, record)
    _show(universal_study.tables(results or STORED), format)


def small_graphs(
    measure: Annotated[
        list[str] | None,
        Option(metavar="DATASET", help="Measure on parts of a dataset, and store it."),
    ] = None,
    weights: Annotated[
        list[Path] | None,
        options.file(
            help="Weights of `pretrain`, one or several; those that have seen nothing of the"
            " dataset's source are taken, for demo the shipped ones."
        ),
    ] = None,
    results: _ResultsFolder = None,
    format: _Format = "table",
) -> None:
    """Small graphs, asked without training and after it: the figures, or measure them again.

    Some minutes for the five parts of a dataset. Example: python -m experiments small-graphs
    --measure demo
    """
    check_name("format", format, ["table", "markdown"])
    for dataset in measure or ():
        check_name("dataset", dataset, [*small_study.TITLES])
        with progress_bar() as progress:
            record = small_study.measure(dataset, weights or [], progress)
        small_study.store(results or STORED, dataset, record)
    _show(small_study.tables(results or STORED), format)


def forecast(
    measure: Annotated[
        list[str] | None,
        Option(metavar="DATASET", help="Measure on a dataset, and store it."),
    ] = None,
    weights: Annotated[
        Path | None,
        options.file(help="Forecast with weights of `pretrain --forecasts`; else the baselines."),
    ] = None,
    questions: Annotated[int | None, Option(help="So many, drawn at random; else all.")] = None,
    results: _ResultsFolder = None,
    format: _Format = "table",
) -> None:
    """Forecasts on the field's benchmarks: the figures, or measure them again.

    Example: python -m experiments forecast --measure icews14-forecast
    """
    check_name("format", format, ["table", "markdown"])
    chosen = None if weights is None else read_weights(weights)
    names = forecast_study.BASELINES if chosen is None else (forecast_study.WITHOUT_TRAINING,)
    for dataset in measure or ():
        for name in names:
            record = forecast_study.measure(
                dataset, name, weights=chosen, questions=questions or "all"
            )
            forecast_study.store(results or STORED, record)
    _show(forecast_study.tables(results or STORED), format)


def evidence(
    measure: Annotated[
        list[str] | None,
        Option(metavar="DATASET", help="Measure on a dataset, and store it."),
    ] = None,
    questions: Annotated[
        int, Option(help="So many, half for objects and half for subjects, drawn at random.")
    ] = 2_000,
    trained: Annotated[
        bool, Option("--trained", help="Train on the graph first, with the defaults.")
    ] = False,
    results: _ResultsFolder = None,
    format: _Format = "table",
) -> None:
    """Whether answers rest on the facts shown as evidence: the figures, or measure them again.

    Example: python -m experiments evidence --measure demo
    """
    check_name("format", format, ["table", "markdown"])
    for dataset in measure or ():
        check_name("dataset", dataset, [*evidence_study.TITLES])
        with progress_bar() as progress:
            record = evidence_study.measure(dataset, questions, trained=trained, progress=progress)
        evidence_study.store(results or STORED, record)
    _show(evidence_study.tables(results or STORED), format)


def rivals_facts(
    measure: Annotated[
        list[str] | None,
        Option(metavar="DATASET", help="Compare the rivals on a dataset, and store it."),
    ] = None,
    results: _ResultsFolder = None,
    data: _Data = None,
    format: _Format = "table",
) -> None:
    """The rivals fact by fact, from their stored ranks: p-values, and what train says of a pair.

    Some minutes for a dataset. Example: python -m experiments rivals-facts --measure yago11k
    """
    check_name("format", format, ["table", "markdown"])
    stored = Results((results or STORED) / "rivals.json")
    for dataset in measure or ():
        check_name("dataset", dataset, [*by_dataset()])
        measured = factwise.measure(entries(stored, dataset), load_graph(dataset, "fact", data))
        factwise.store(stored, dataset, measured)
    _show([table for table in rivals_parts(stored)["pairs"] if table.rows], format)
    show(f"{factwise.Factwise(stored).compared:,} differences have p-values")


def calibration(
    run: _Run = False, results: _ResultsFolder = None, format: _Format = "table"
) -> None:
    """How far probabilities on `demo` can be trusted: the table of docs/asking.md."""
    check_name("format", format, ["table", "markdown"])
    if run:
        calibration_study.store(results or STORED, calibration_study.measure())
    _show(calibration_study.tables(results or STORED), format)


def doubts(
    measure: Annotated[
        list[str] | None,
        Option(metavar="DATASET", help="Break a dataset, look for what is wrong, and store it."),
    ] = None,
    facts: Annotated[
        int | None, Option(help="Look at so many facts, drawn at random; else at all.")
    ] = None,
    results: _ResultsFolder = None,
    format: _Format = "table",
) -> None:
    """Facts that are wrong on purpose: how many are found, or measure it again.

    Example: python -m experiments doubts --measure yago11k
    """
    check_name("format", format, ["table", "markdown"])
    for dataset in measure or ():
        with progress_bar() as progress:
            record = doubts_study.measure(dataset, facts, progress)
        doubts_study.store(results or STORED, record)
    _show(doubts_study.tables(results or STORED), format)


def tgb(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="With tkgl-*_edgelist.csv.")],
    forecaster: Annotated[
        str, Option(help=f"{', '.join(forecast_study.BASELINES)}, or path, without training.")
    ] = "recurrency",
    weights: Annotated[
        Path | None, options.file(help="Weights of `pretrain --forecasts`, for path.")
    ] = None,
    split: Annotated[str, Option(help="test or valid.")] = "test",
    questions: Annotated[int | None, Option(help="Of so many edges, drawn at random.")] = None,
) -> None:
    """Measure a forecaster on a graph of TGB 2.0 by the evaluator and the negatives of py-tgb.

    FOLDER is an archive of TGB, unpacked. Single step: a question sees everything before its time.
    Both ways of each edge are asked, and of equal scores the mean rank counts. Static edges are not
    read. Example: python -m experiments tgb tkgl_smallpedia
    """
    check_name("split", split, ["valid", "test"])
    check_name("forecaster", forecaster, [*forecast_study.BASELINES, "path"])
    chosen = None
    if forecaster == "path":
        chosen = load_weights() if weights is None else read_weights(weights)
    with progress_bar() as progress:
        found = tgb_study.measure(
            folder,
            forecaster,
            split="test" if split == "test" else "valid",
            weights=chosen,
            most=questions,
            progress=progress,
        )
    show(
        f"{forecaster}: MRR {found['mrr']:.3f}, Hits@10 {found['hits10']:.3f}, {split},"
        f" {found['questions']:,} questions"
    )


def world(
    path: Annotated[Path, Argument(metavar="FILE", help="The Parquet file to write.")],
    facts: Annotated[int, Option(help="How many facts, from 1,000 to 1,000,000,000.")] = 10_000,
    seed: Annotated[int, Option(help="The same seed makes the same world.")] = 0,
) -> None:
    """Make a synthetic world of any size: people who move, change clubs and get elected.

    The file is streamed, whatever its size; it also records the years at which predicates change
    their behaviour. Example: python -m experiments world big.parquet --facts 10000000
    """
    made = World(facts=facts, seed=seed)
    with progress_bar() as progress:
        make_world(path, made, progress=progress)
    show(f"{path}: {facts:,} facts from seed {seed}")
    for predicate, years in made.planted().items():
        if years:
            show(f"  {predicate} changes in {', '.join(map(str, years))}")


def _show_study(
    study: Study, stored: Results, texts: Sequence[str], format: str, *, quick: bool
) -> None:
    """Print the tables, or their rows that contain a text, and say what was not run."""
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


def _check_figures(study: Study) -> None:
    if study.pictures is None:
        drawn = [name for name, other in studies.STUDIES.items() if other.pictures is not None]
        raise UsageError(f"{study.name} has no figures; {', '.join(drawn)} have")


def _draw(study: Study, stored: Results, runs: Path, folder: Path) -> None:
    assert study.pictures is not None
    pictures = study.pictures(stored, runs)
    save_pictures(pictures, folder)
    show(f"figures: {', '.join(pictures)} in {folder}")


def _show(tables: Sequence[ResultTable], format: str) -> None:
    if format == "markdown":
        typer.echo("\n".join(table.to_markdown() for table in tables), nl=False)
        return
    for table in tables:
        shown = make_table(table.title, *table.columns, words=table.columns[: table.words])
        for row in table.rows:
            shown.add_row(*row)
        show(shown if table.rows else table.title, *table.notes)
