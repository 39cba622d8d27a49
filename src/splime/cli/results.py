"""Trained runs: `splime evaluate`, `embeddings`, `compare`, `combine`, `plot` and `report`.

`splime reproduce` says where the paper's tables are.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from splime.cli import options
from splime.cli.console import Result, draw, open_page, show, warn, written
from splime.cli.help import Command, Group
from splime.cli.launch import join_workers
from splime.errors import UsageError, check_name
from splime.io.inputs import without_password
from splime.progress import progress_bar, working

embeddings = typer.Typer(cls=Group, no_args_is_help=True, help="The vectors of a run.")


def _questions(text: str | None) -> str | int | None:
    """A number of questions, or all."""
    return int(text) if text is not None and text.isdecimal() else text


def _mebibytes(number: int | None) -> int | None:
    return None if number is None else number << 20


@options.with_options(
    protocol=options.Protocol,
    split=options.Split,
    filter=options.name("triple: the leak filter: none, intra, inter (the default) or both."),
    aggregate=options.Aggregate,
    ties=options.name("Rank among equal scores: mean, worst or best. Default: the protocol's."),
    bootstrap=options.number(
        "Also confidence intervals, by bootstrap (30 facts or more).", "SAMPLES"
    ),
    questions=Option(
        metavar="all|N",
        callback=_questions,
        help="How many random queries to rank. Default: all, or 20,000 if queries x candidates are"
        " more than 5,000,000,000.",
    ),
    memory=Annotated[
        int | None,
        Option(metavar="MIB", callback=_mebibytes, help="Memory for blocks of scores."),
    ],
)
def evaluate(
    run: options.RunFolder,
    *,
    given: dict[str, Any],
    device: options.Device = "auto",
    workers: Annotated[int | None, options.Together] = None,
    strata: Annotated[
        bool,
        Option("--strata", help="Also metrics by triple (seen or not), time, predicate, period."),
    ] = False,
    evidence: Annotated[
        bool,
        Option(
            "--evidence",
            help="Instead, check that answers rest on the facts shown as evidence (path model).",
        ),
    ] = False,
    facts: dict[str, Any],
) -> Result:
    """Measure how well a run answers the facts of test; metrics and ranks are kept in its folder.

    Without a test set, facts are hidden one at a time and recovered. With --facts, nothing is
    saved, and its valid and test are used, if it has them.

    Example: splime evaluate run --protocol fact --bootstrap 1000
    """
    from splime.analysis.faithfulness import check_evidence
    from splime.analysis.hidden import HiddenFacts
    from splime.reporting.results import evaluation_parts
    from splime.runs import evaluate as evaluate_run

    join_workers(workers, device)
    if evidence:
        options.check_only(given, "--evidence", "split", "questions")
    opened = options.open_run(run, device, facts)
    with progress_bar(shorter=f"--questions {50 if evidence else 500}") as progress:
        if evidence:
            return Result(check_evidence(opened, progress=progress, **given))
        if not (opened.learned_from_facts or len(opened.graph.test)):
            options.check_only(given, "facts without a test, each of which is hidden in turn")
            return Result(HiddenFacts(opened, opened.scoring()).trust(progress))
        evaluation = evaluate_run(opened, progress=progress, warn=warn, **given)
    others = "facts" in facts and without_password(facts["facts"])
    source = others and f"{others} {'alone' if 'instead' in facts else 'beside train'}"
    return Result(evaluation, evaluation_parts(evaluation, opened, source or "", strata=strata))


@embeddings.command("export", cls=Command)
def export(
    run: options.RunFolder,
    out: Annotated[Path, options.file("The file: .parquet, .tsv, or .txt for word2vec's text.")],
    what: Annotated[str, options.name("entities (the default) or predicates.")] = "entities",
    format: Annotated[
        str, options.name("parquet, tsv or word2vec. Default: by the name of the file.")
    ] = "",
) -> None:
    """Write the vectors of a run with their names.

    Example: splime embeddings export run --what predicates --out predicates.tsv
    """
    from splime.analysis.embeddings import export_embeddings
    from splime.runs import Run

    show(f"written to {export_embeddings(Run(run, device='cpu'), out, what, format)}")


@options.with_options(
    protocol=options.Protocol,
    split=options.Split,
    filter=options.name(
        "fact, predicate: exact (the default), overlap or static. triple: the leak filter, inter by"
        " default."
    ),
    samples=options.number("Bootstrap samples. Default: 10,000."),
    device=options.Device,
)
def compare(
    runs: options.RunFolders,
    *,
    given: dict[str, Any],
    format: Annotated[
        str | None,
        options.name("table, markdown, latex or json. Default: by the file, else table."),
    ] = None,
    out: Annotated[Path | None, options.file("Also write it to a file (.md, .tex, .json).")] = None,
    plot: Annotated[Path | None, options.picture("MRR and intervals")] = None,
) -> Result:
    """Compare runs: metrics with confidence intervals, and tests of their differences.

    Runs that were not evaluated yet are evaluated first.

    Example: splime compare runs/* --out table.tex --plot runs.png
    """
    from splime.analysis import compare as compare_runs
    from splime.reporting import comparison as shown

    chosen = shown.format_of(format, out)
    with progress_bar() as progress:
        comparison = compare_runs(runs, progress=progress, warn=warn, **given)
    draw(plot, shown.plot_comparison, comparison)
    if out is not None:
        shown.write_comparison(comparison, out, chosen)
    elif chosen != "table":
        return Result(comparison, [shown.FORMATS[chosen](comparison).rstrip("\n")])
    after = [f"written to {out}"] if out is not None else []
    return Result(comparison, after=[*after, *written(MRR_and_intervals=plot)])


@options.with_options()
def combine(
    runs: options.RunFolders,
    out: Annotated[Path, options.folder("The folder of the new run.")],
    device: options.Device = "auto",
) -> Result:
    """Combine runs on the same facts: add their log-probabilities, with weights chosen on valid.

    The result is a run like others; its folder has copies of its members.

    Example: splime combine runs/path runs/complex --out runs/both
    """
    from splime.runs import combine as combine_runs

    with progress_bar() as progress:
        run = combine_runs(runs, out, device=device, progress=progress)
    path = shlex.quote(str(run.path))
    return Result(run, after=[f"{path}: written; next: splime evaluate {path}"])


@options.with_options()
def plot(
    runs: options.RunFolders,
    out: Annotated[
        Path,
        options.option("FILE_OR_DIR", "The picture (.png, .svg, .pdf); for --what all, a folder."),
    ],
    what: Annotated[
        str,
        options.name(
            "predicates, predicate, segmentation, cuts, facts, learning, strata, costs; or all (the"
            " default) that the runs allow. cuts, predicate, learning and strata compare runs."
        ),
    ] = "all",
    predicate: Annotated[
        str | None,
        options.name("predicate: the one to draw. Default: the one that all runs cut most."),
    ] = None,
) -> Result:
    """Draw runs: their embeddings (t-SNE), scopes, facts, learning curves, metrics, costs.

    Example: splime plot runs/merge runs/random --what predicate --out evolution.png
    """
    from splime.reporting import showing, style
    from splime.runs.run import open_runs

    # What is wrong is said before the work, not after it.
    check_name("picture", what, [*showing.PICTURES, "all"])
    done = [f"written to {out}"]
    if what != "all":
        style.check_picture(out)
        with working(f"drawing {what} …"):
            figure = showing.plot(runs, what, predicate=predicate, device="cpu")
            style.save_picture(figure, out)
        return Result({"pictures": [str(out)], "skipped": {}}, done)
    if out.suffix.lower() in style.FORMATS or (out.exists() and not out.is_dir()):
        raise UsageError(f"{out}: all pictures go to a folder; for a file choose one of them")
    style.make_figure(1, 1)  # an error without matplotlib
    with progress_bar() as progress:
        drawn = showing.draw_pictures(open_runs(runs, "cpu"), predicate, progress=progress)
    style.save_pictures(drawn.pictures, out)
    pictures = [str(out / f"{name}.png") for name in drawn.pictures]
    found = {"pictures": pictures, "skipped": drawn.skipped}
    return Result(found, [showing.picture_table(drawn)], done)


def report(
    runs: Annotated[
        list[str],
        Argument(metavar="RUN|DATA", help="The folders of runs; or facts, without training."),
    ],
    out: Annotated[Path, options.file("The page to write.")] = Path("report.html"),
    device: options.Device = "auto",
    show_page: options.Open = False,
) -> None:
    """Write one page about runs: metrics, data, cuts, training, embeddings, questions.

    The page is a single file that needs no network. Runs that were not evaluated yet are evaluated
    first. Without a test set, the page shows the facts, their rules, and how good answers are.

    Example: splime report runs/vanilla runs/merge --out report.html
    """
    from splime.reporting.showing import report as write_report

    with progress_bar() as progress:
        write_report(runs, out, device=device, progress=progress)
    show(f"written to {out}")
    if show_page:
        open_page(out)


def reproduce(
    arguments: Annotated[list[str] | None, Argument(metavar="[TABLE] [OPTIONS]")] = None,
) -> None:
    """The paper's tables are in a clone of the repository: python -m experiments TABLE."""
    command = shlex.join(["python", "-m", "experiments", *(arguments or ["--help"])])
    raise UsageError(
        "the paper's tables are not in the package; a clone of the repository makes them:"
        f" {command}"
    )
