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
from splime.cli.console import show, show_json, warn
from splime.cli.help import Command, Group
from splime.cli.launch import join_workers
from splime.errors import UsageError, check_name, visible
from splime.io.inputs import without_password
from splime.progress import progress_bar, working

embeddings = typer.Typer(cls=Group, no_args_is_help=True, help="The vectors of a run.")


@options.with_options(
    split=options.Split,
    filter=options.name("triple: the leak filter: none, intra, inter (the default) or both."),
    aggregate=options.Aggregate,
    ties=options.name("Rank among equal scores: mean, worst or best. Default: the protocol's."),
    bootstrap=options.number(
        "Also confidence intervals, by bootstrap (30 facts or more).", "SAMPLES"
    ),
    questions=options.option(
        "all|N",
        "How many queries to rank, of facts drawn at random. Default: all; 20,000 where queries x"
        " candidates are more than 5,000,000,000.",
    ),
    memory=options.number("Memory for blocks of scores.", "MIB"),
)
def evaluate(
    run: options.RunFolder,
    protocol: Annotated[str, options.Protocol] = "fact",
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
            help="Instead: whether answers rest on the facts shown as evidence (path model).",
        ),
    ] = False,
    as_json: options.AsJson = False,
    facts: dict[str, Any],
) -> None:
    """Rank the answers of a trained run; metrics and ranks are also kept in its folder.

    Over --facts they are not kept, and valid and test are those of --facts where it has some.
    Example: splime evaluate run --protocol fact --bootstrap 1000
    """
    from splime.analysis.faithfulness import QUESTIONS, check_evidence
    from splime.analysis.hidden import HiddenFacts
    from splime.reporting.results import evaluation_tables, members_table
    from splime.reporting.trust import trust_tables
    from splime.runs import evaluate as evaluate_run
    from splime.runs.evaluating import kept_of_members

    join_workers(workers, device)
    if "memory" in given:
        given["memory"] <<= 20
    if given.get("questions", "").isdecimal():
        given["questions"] = int(given["questions"])
    opened = options.open_run(run, device, facts)
    if evidence:
        split, asked = given.get("split", "test"), given.get("questions", QUESTIONS)
        most = 2 * len(opened.graph) if asked == "all" else asked
        with progress_bar(shorter="--questions 50") as progress:
            checked = check_evidence(opened, split=split, questions=most, progress=progress)
        show_json(checked.to_json()) if as_json else show(str(checked))
        return
    if not (opened.learned_from_facts or len(opened.graph.test)):
        with progress_bar() as progress:
            found = HiddenFacts(opened, opened.scoring()).trust(progress)
        if as_json:
            show_json(found.to_json())
        else:
            show(*trust_tables(found))
        return
    with progress_bar(shorter="--questions 500") as progress:
        evaluation = evaluate_run(opened, protocol, progress=progress, warn=warn, **given)
    if as_json:
        show_json(evaluation.to_json())
        return
    show(*evaluation_tables(evaluation, strata=strata))
    if opened.updates is not None:
        show(f"the run was updated {opened.updates}; questions are answered from its facts now")
    if "facts" in facts:
        place = without_password(facts["facts"])
        source = f"{place} {'alone' if 'instead' in facts else 'beside train'}"
        show(f"answered from the facts of {source}; these metrics are not kept")
    if members := kept_of_members(opened, evaluation):
        show(members_table(evaluation, members))


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
    protocol: Annotated[str, options.Protocol] = "fact",
    *,
    given: dict[str, Any],
    format: Annotated[
        str | None,
        options.name("table, markdown, latex or json. Default: by the file, else table."),
    ] = None,
    out: Annotated[Path | None, options.file("Also write it to a file (.md, .tex, .json).")] = None,
    plot: Annotated[Path | None, options.picture("MRR and intervals")] = None,
) -> None:
    """Compare runs: metrics with confidence intervals, and tests of their differences.

    Evaluations that the folders do not have yet are made, and kept there. Example: splime compare
    runs/* --out table.tex --plot runs.png
    """
    from splime.analysis import compare as compare_runs
    from splime.reporting import comparison as shown
    from splime.reporting.style import save_picture

    chosen = shown.format_of(format, out)
    with progress_bar() as progress:
        comparison = compare_runs(runs, protocol, progress=progress, warn=warn, **given)
    if plot is not None:
        save_picture(shown.plot_comparison(comparison), plot)
    if out is None and chosen != "table":
        typer.echo(visible(shown.FORMATS[chosen](comparison)), nl=False)
        return
    show(*shown.comparison_table(comparison))
    if out is not None:
        shown.write_comparison(comparison, out, chosen)
        show(f"written to {out}")
    if plot is not None:
        show(f"MRR and intervals: {plot}")


def combine(
    runs: options.RunFolders,
    out: Annotated[Path, options.folder("The folder of the new run.")],
    device: options.Device = "auto",
) -> None:
    """Combine runs on the same facts: add their log-probabilities, with weights chosen on valid.

    The result is a run like others, and its folder holds copies of those that it adds up. Example:
    splime combine runs/path runs/complex --out runs/both
    """
    from splime.reporting.results import run_table
    from splime.runs import combine as combine_runs

    with progress_bar() as progress:
        run = combine_runs(runs, out, device=device, progress=progress)
    path = shlex.quote(str(run.path))
    show(run_table(run), f"{path}: written; next: splime evaluate {path}")


def plot(
    runs: options.RunFolders,
    out: Annotated[
        Path,
        options.option("FILE_OR_DIR", "The picture (.png, .svg, .pdf); for --what all, a folder."),
    ],
    what: Annotated[
        str,
        options.name(
            "predicates, predicate, segmentation, facts, learning, strata, costs; or all (the"
            " default) that the runs allow. predicate, learning and strata compare several runs."
        ),
    ] = "all",
    predicate: Annotated[
        str | None,
        options.name("predicate: the one to draw. Default: the one that all runs cut most."),
    ] = None,
) -> None:
    """Draw runs: their embeddings (t-SNE), scopes, facts, learning curves, metrics, costs.

    Example: splime plot runs/merge runs/random --what predicate --out evolution.png
    """
    from splime.reporting import showing, style
    from splime.runs.run import open_runs

    # What is wrong is said before the work, not after it.
    check_name("picture", what, [*showing.PICTURES, "all"])
    if what != "all":
        style.check_picture(out)
        with working(f"drawing {what} …"):
            figure = showing.plot(runs, what, predicate=predicate, device="cpu")
            style.save_picture(figure, out)
    else:
        if out.suffix.lower() in style.FORMATS or (out.exists() and not out.is_dir()):
            raise UsageError(f"{out}: all pictures go to a folder; for a file choose one of them")
        style.make_figure(1, 1)  # an error without matplotlib
        with progress_bar() as progress:
            drawn = showing.draw_pictures(open_runs(runs, "cpu"), predicate, progress=progress)
        style.save_pictures(drawn.pictures, out)
        show(showing.picture_table(drawn))
    show(f"written to {out}")


def report(
    runs: options.RunFolders,
    out: Annotated[Path, options.file("The page to write.")] = Path("report.html"),
    device: options.Device = "auto",
) -> None:
    """Write one page about runs: metrics, data, leaks, cuts, training, embeddings, questions.

    The page needs nothing but itself: it can be sent by mail, and read on a phone. What was not
    evaluated yet is evaluated. Example: splime report runs/vanilla runs/merge --out report.html
    """
    from splime.reporting.showing import report as write_report

    with progress_bar() as progress:
        write_report(runs, out, device=device, progress=progress)
    show(f"written to {out}")


def reproduce(
    arguments: Annotated[list[str] | None, Argument(metavar="[TABLE] [OPTIONS]")] = None,
) -> None:
    """The paper's tables are in a clone of the repository: python -m experiments TABLE."""
    command = shlex.join(["python", "-m", "experiments", *(arguments or ["--help"])])
    raise UsageError(
        "the paper's tables are not in the package; a clone of the repository makes them:"
        f" {command}"
    )
