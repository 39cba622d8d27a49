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
from typing import Any

from splime.embedding.device import choose_device
from splime.errors import SplimeError, UsageError
from splime.graph import Facts, TemporalGraph
from splime.io import save
from splime.io.files import locked, written_beside
from splime.progress import Progress, silent
from splime.report.importance import plot_importance
from splime.report.style import check_picture, save_picture
from splime.runs import Interrupted
from splime.tuning.results import Tried, Tuned, best_plan, importances, ranking, write_trials
from splime.tuning.search import DATA, Search, need_optuna
from splime.tuning.space import make_space, read_space

BEST, TABLE, PICTURE = "best.toml", "trials.csv", "importance.png"
_POLL = 0.5  # seconds between updates of the progress
_PROCESS = "import sys; from splime.tuning.search import main; main(*sys.argv[1:])"


def tune(
    graph: TemporalGraph,
    out: str | Path,
    *,
    trials: int = 50,
    processes: int = 2,
    methods: Iterable[str] | None = None,
    models: Iterable[str] = ("complex",),
    engine: str = "splime",
    space: str | Path | Mapping[str, Any] | None = None,
    seed: int = 0,
    device: str = "auto",
    data: str | None = None,
    reading: Mapping[str, Any] | None = None,
    progress: Progress = silent,
    stop: Callable[[], bool] = lambda: False,
    **settings: Any,
) -> Tuned:
    """Search for what gives the best MRR on valid (protocol fact, filter exact).

    The facts of test are taken away before anything else. A folder that holds the same search
    unfinished is resumed; more trials than before continue a finished one.

    Args:
        graph: the facts.
        out: the folder, which then has best.toml, trials.csv, importance.png and a folder with the
            history of each trial.
        trials: how many to try.
        processes: how many at the same time; the cores are shared between them.
        methods: which methods to try; all by default.
        models: which models to try.
        engine: splime, or pykeen for models of PyKEEN.
        space: what to try instead of the defaults: a TOML file, or what is in one.
        seed: of the search and of the trainings.
        device: cpu, cuda or auto.
        data: what `splime.load` reads the facts from, for best.toml; by default they are saved.
        reading: the options of `splime.load` that go with it.
        progress: is told how many trials are done, and the best MRR on valid so far.
        stop: is asked whether to stop; what is there is kept.
        settings: of all trainings, such as `epochs`; what is fixed here is not searched for.

    >>> import splime, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     tuned = tune(splime.load("demo"), here, trials=2, processes=1, methods=["vanilla"],
    ...                  models=["distmult"], dimension=8, epochs=1)
    ...     len(tuned.trials), tuned.plan.runs[0].name
    (2, 'vanilla')
    """
    for name, value in (("trials", trials), ("processes", processes)):
        if value < 1:
            raise UsageError(f"{name} must be at least 1, not {value}")
    for name in ("train", "valid"):
        if not len(getattr(graph, name)):
            raise UsageError(f"{name} has no facts; tuning learns from train, and needs valid")
    need_optuna()
    choose_device(device)
    out = Path(out)
    check_picture(out / PICTURE)
    known = replace(graph, test=Facts.empty())
    given = read_space(space) if isinstance(space, str | Path) else space
    fixed = {**settings, "seed": seed} | ({} if engine == "splime" else {"engine": engine})
    chosen = make_space(known, methods, models, fixed=fixed, given=given)
    search = Search.of(out, known, chosen, seed)
    with locked(out):
        search.begin(known)
        if data is None:
            data = str((out / DATA).absolute())
            save(graph, out / DATA)
        _run(search, trials, processes, device, progress, stop)
        done = [Tried.of(one, chosen) for one in search.trials()]
        return _finish(search, done, data, reading or {}, stop)


def _run(
    search: Search,
    trials: int,
    processes: int,
    device: str,
    progress: Progress,
    stop: Callable[[], bool],
) -> None:
    """All trials that are left, in this process or in others."""
    unfinished = [one.number for one in search.trials() if not one.state.is_finished()]
    left = len(unfinished) + max(0, trials - len(search.trials()))

    def tell() -> None:
        known = search.trials()
        values = [one.value for one in known if one.value is not None]
        note = f"best valid MRR {max(values):.3f}" if values else ""
        done = sum(one.state.is_finished() for one in known)
        progress("trials", done, max(trials, len(known)), note)

    tell()
    if left and processes == 1:
        search.work(trials, unfinished, device=device, stop=stop, tell=tell)
    elif left:
        _run_processes(search, trials, unfinished, min(processes, left), device, tell, stop)
    tell()


def _run_processes(
    search: Search,
    trials: int,
    unfinished: list[int],
    processes: int,
    device: str,
    tell: Callable[[], None],
    stop: Callable[[], bool],
) -> None:
    """Processes that take trials; each has a log for what goes wrong."""
    import torch

    threads = str(max(1, torch.get_num_threads() // processes))
    logs = [search.folder / f"process-{number}.log" for number in range(processes)]
    workers = []
    with ExitStack() as opened:
        for number, log in enumerate(logs):
            command = [sys.executable, "-c", _PROCESS, str(search.folder), str(trials), device]
            worker = subprocess.Popen(
                [*command, *map(str, unfinished[number::processes])],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=opened.enter_context(log.open("wb")),
                env={**os.environ, "OMP_NUM_THREADS": threads},
                start_new_session=True,  # Ctrl-C is for the process that waits
            )
            # The end of their input asks them to stop, also where this process is killed.
            assert worker.stdin is not None
            opened.callback(worker.stdin.close)
            workers.append(worker)
        asked = False
        while any(worker.poll() is None for worker in workers):
            if stop() and not asked:
                asked = True
                opened.pop_all().close()
            tell()
            time.sleep(_POLL)
    for worker, log in zip(workers, logs, strict=True):
        if worker.returncode:
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise SplimeError(
                f"a process of the search ended with code {worker.returncode}:"
                f" {said[-1] if said else 'it said nothing'} (see {log}); the same command resumes"
                " the search"
            )
        log.unlink(missing_ok=True)


def _finish(
    search: Search,
    done: list[Tried],
    data: str,
    reading: Mapping[str, Any],
    stop: Callable[[], bool],
) -> Tuned:
    """Write what the search gave."""
    out, stopped = search.folder, stop()
    ended = [one for one in done if one.state != "begun"]
    for one in ended:
        search.drop_large(one.number)
    write_trials(out / TABLE, done)
    if ranking(done) or not stopped:
        plan = best_plan(done, search.space, data, reading)
        with written_beside(out / BEST) as beside:
            beside.write_text(plan.to_toml(), encoding="utf-8")
    if stopped:
        raise Interrupted(
            f"stopped after {len(ended):,} trials; {out} keeps them, and the same command resumes"
            " the search"
        )
    valued = [one for one in done if one.valid is not None and one.same_as is None]
    chosen, values = [one.chosen for one in valued], [one.valid or 0.0 for one in valued]
    shares = importances(chosen, values)
    finished = [one.state == "finished" for one in valued]
    name = str(search.data["name"])
    picture = plot_importance(chosen, values, shares, finished=finished, name=name)
    save_picture(picture, out / PICTURE)
    return Tuned(out, done, shares, plan)
