"""Search for the best method, parameters and settings on valid, with several processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splime.embedding.device import choose_device
from splime.errors import SplimeError, UsageError
from splime.graph import Facts, TemporalGraph
from splime.io import save
from splime.io.files import locked, written_beside
from splime.report.importance import plot_importance
from splime.report.style import check_picture, save_picture
from splime.runs import Interrupted
from splime.tuning.importance import importances
from splime.tuning.making import make_space, read_space
from splime.tuning.results import Tried, Tuned, best_plan, ranking, tried, write_trials
from splime.tuning.search import DATA, Search, need_optuna
from splime.tuning.trying import drop_large
from splime.tuning.worker import work

if TYPE_CHECKING:
    from optuna import Study

BEST, TABLE, PICTURE = "best.toml", "trials.csv", "importance.png"
_POLL = 0.5  # seconds between looks at what the processes did
Progress = Callable[[int, int, float | None], None]
"""Takes how many trials are done, how many there will be, and the best MRR on valid so far."""


def tune(
    graph: TemporalGraph,
    out: str | Path,
    *,
    trials: int = 50,
    processes: int = 2,
    methods: Iterable[str] | None = None,
    models: Iterable[str] = ("complex",),
    space: str | Path | Mapping[str, Any] | None = None,
    seed: int = 0,
    device: str = "auto",
    data: str | None = None,
    reading: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
    **settings: Any,
) -> Tuned:
    """Search for what gives the best MRR on valid (protocol fact, filter exact).

    The facts of test are taken away before anything else. A folder that holds the same search
    unfinished is gone on with; more trials than before go on with a finished one.

    Args:
        graph: the facts.
        out: the folder, which then has best.toml, trials.csv, importance.png and a folder with the
            history of each trial.
        trials: how many to try.
        processes: how many at the same time; the cores are shared between them.
        methods: which methods to try; all by default.
        models: which models to try.
        space: what to try instead of the defaults: a TOML file, or what is in one.
        seed: of the search and of the trainings.
        device: cpu, cuda or auto.
        data: what `splime.load` reads the facts from, for best.toml; by default they are saved.
        reading: the options of `splime.load` that go with it.
        progress: is told how far it is.
        stop: is asked whether to stop; what is there is kept.
        settings: of all trainings, such as `epochs`; what is fixed here is not searched for.

    >>> import splime, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     found = tune(splime.load("demo"), here, trials=2, processes=1, methods=["vanilla"],
    ...                  models=["distmult"], dimension=8, epochs=1)
    ...     len(found.trials), found.plan.runs[0].name
    (2, 'vanilla')
    """
    for name, value in (("trials", trials), ("processes", processes)):
        if value < 1:
            raise UsageError(f"{name} must be at least 1, not {value}")
    for name in ("train", "valid"):
        if not len(getattr(graph, name)):
            raise UsageError(f"{name} has no facts; tuning learns from train and looks at valid")
    need_optuna()
    choose_device(device)
    out = Path(out)
    check_picture(out / PICTURE)
    known = replace(graph, test=Facts.empty())
    given = read_space(space) if isinstance(space, str | Path) else space
    chosen = make_space(known, methods, models, fixed={**settings, "seed": seed}, given=given)
    search = Search.of(out, known, chosen, seed)
    with locked(out):
        search.begin(known)
        if data is None:
            data = str((out / DATA).absolute())
            save(graph, out / DATA)
        study = search.study()
        _run(search, study, trials, processes, device, progress, stop)
        done = [tried(one, chosen) for one in study.get_trials(deepcopy=False)]
        return _finish(search, done, data, reading or {}, len(graph.predicates), stop)


def _run(
    search: Search,
    study: Study,
    trials: int,
    processes: int,
    device: str,
    progress: Progress | None,
    stop: Callable[[], bool],
) -> None:
    """All trials that are left, in this process or in others."""
    begun = [one.number for one in study.get_trials(deepcopy=False) if one.state.name == "RUNNING"]
    left = len(begun) + max(0, trials - len(study.get_trials(deepcopy=False)))

    def told() -> None:
        if progress is not None:
            known = study.get_trials(deepcopy=False)
            values = [one.value for one in known if one.value is not None]
            done = sum(one.state.is_finished() for one in known)
            progress(done, max(trials, len(known)), max(values, default=None))

    told()
    if not left:
        return
    if processes == 1:
        work(search, trials, begun, device=device, stop=stop, told=told)
    else:
        _run_processes(search, trials, begun, min(processes, left), device, told, stop)
    told()


def _run_processes(
    search: Search,
    trials: int,
    begun: list[int],
    processes: int,
    device: str,
    told: Callable[[], None],
    stop: Callable[[], bool],
) -> None:
    """Processes that take trials; what they say in despair is in a log each."""
    import torch

    threads = str(max(1, torch.get_num_threads() // processes))
    logs = [search.folder / f"process-{number}.log" for number in range(processes)]
    with ExitStack() as opened:
        workers = []
        for number, log in enumerate(logs):
            begin = [str(one) for one in begun[number::processes]]
            command = [sys.executable, "-m", "splime.tuning.worker", str(search.folder)]
            workers.append(
                subprocess.Popen(
                    [*command, str(trials), device, *begin],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=opened.enter_context(log.open("wb")),
                    env={**os.environ, "OMP_NUM_THREADS": threads},
                    start_new_session=True,  # Ctrl-C is for the process that waits
                )
            )
            # The end of their input asks them to stop, also where this process is killed.
            assert workers[-1].stdin is not None
            opened.callback(workers[-1].stdin.close)
        asked = False
        while any(worker.poll() is None for worker in workers):
            if stop() and not asked:
                asked = True
                opened.pop_all().close()
            told()
            time.sleep(_POLL)
    for worker, log in zip(workers, logs, strict=True):
        if worker.returncode:
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise SplimeError(
                f"a process of the search ended with code {worker.returncode}:"
                f" {said[-1] if said else 'it said nothing'} (see {log}); the same command goes on"
            )
        log.unlink(missing_ok=True)


def _finish(
    search: Search,
    done: list[Tried],
    data: str,
    reading: Mapping[str, Any],
    predicates: int,
    stop: Callable[[], bool],
) -> Tuned:
    """Write what was found."""
    out, space = search.folder, search.space
    for one in done:
        if one.state != "begun":
            drop_large(search.trial_folder(one.number))
    write_trials(out / TABLE, done)
    if ranking(done) or not stop():
        plan = best_plan(done, space, data, reading, predicates)
        with written_beside(out / BEST) as beside:
            beside.write_text(plan.to_toml(), encoding="utf-8")
    if stop():
        ended = sum(one.state != "begun" for one in done)
        raise Interrupted(
            f"stopped after {ended:,} trials; {out} keeps what there is, the same command goes on"
        )
    valued = [one for one in done if one.valid is not None and one.same_as is None]
    chosen, values = [one.chosen for one in valued], [one.valid or 0.0 for one in valued]
    shares = importances(chosen, values)
    finished = [one.state == "finished" for one in valued]
    name = str(search.data["name"])
    figure = plot_importance(chosen, values, shares, finished=finished, name=name)
    save_picture(figure, out / PICTURE)
    return Tuned(out, done, shares, plan)
