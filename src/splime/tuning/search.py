"""Search for the best method, parameters and settings on valid, with several processes.

Trials are requested one by one (`ask` and `tell` of optuna), not by `Study.optimize`: that seeds
the sampler once a process, so that a resumed search would try other things, and gives an
interrupted trial a new number, so that its checkpoint would be lost.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np

from splime.datasets import load
from splime.device import choose_device
from splime.errors import DataError, SplimeError, UsageError, WriteError, counted, not_installed
from splime.evaluation import evaluate_facts
from splime.graph import Facts, TemporalGraph
from splime.io import save
from splime.io.files import (
    atomic_write,
    check_plain,
    content,
    locked,
    read_toml,
    to_toml,
    write_toml,
)
from splime.io.inputs import is_stored
from splime.progress import Progress, Watching, silent
from splime.reporting.style import check_picture, save_picture
from splime.runs import Epoch, Interrupted, Run, folder as files, train
from splime.runs.folder import checksum, checksum_of_cuts, differences
from splime.runs.parallel import as_parallel, check_left, check_seen, map_trainings
from splime.segmentation import Segmentation
from splime.training.registry import make_settings
from splime.tuning.results import (
    TrialResult,
    TuningResult,
    best_plan,
    plot_importances,
    ranking,
    write_trials,
)
from splime.tuning.space import Configuration, Space, make_space
from splime.workers import Parallel, never

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

    from splime.keywords import TrialSettings

Stop: TypeAlias = Callable[[], bool]

SEARCH, DATA = "search.toml", "data.parquet"
JOURNAL, TRIALS = "journal.log", "trials"
_JOURNAL = 1 << 30
"""Bytes of a journal, at most: some hundreds for each trial."""
BEST, TABLE, PICTURE = "best.toml", "trials.csv", "importance.png"
_LARGE = (files.GRAPH, files.SEGMENTATION, files.CHECKPOINT, files.BEST, files.MODEL)
"""What is not kept of a trial: the best one is trained again, with all facts."""
_WAIT = 60.0  # seconds, for a worker that was left behind and saves its checkpoint
_PROCESSES = 2
_FEWEST = 8  # trials, below which importances are noise


def tune(
    graph: TemporalGraph | str | Path,
    out: str | Path,
    *,
    trials: int = 50,
    parallel: Parallel | int | None = None,
    methods: Iterable[str] | None = None,
    models: Iterable[str] = ("complex",),
    engine: str = "splime",
    space: str | Path | Mapping[str, Any] | None = None,
    seed: int = 0,
    device: str = "auto",
    data: str | None = None,
    reading: Mapping[str, Any] | None = None,
    progress: Progress = silent,
    stop: Stop = never,
    processes: int | None = None,
    **settings: Unpack[TrialSettings],
) -> TuningResult:
    """Search for what gives the best MRR on valid (protocol fact, filter exact).

    The facts of test are taken away before anything else. A folder that holds the same search
    unfinished is resumed; more trials than before continue a finished one.

    Args:
        graph: the facts, or what `splime.load` reads them from.
        out: the folder, which then has best.toml, trials.csv, importance.png and a folder with the
            history of each trial.
        trials: how many to try.
        parallel: how many to try at once, or a `splime.Parallel`; by default 2 processes.
        methods: which methods to try; all by default.
        models: which models to try.
        engine: splime, or pykeen for models of PyKEEN.
        space: what to try instead of the defaults: a TOML file, or its content.
        seed: of the search and of the trainings.
        device: cpu, cuda or auto.
        data: what `splime.load` reads the facts from, for best.toml; by default they are saved.
        reading: the options of `splime.load` that go with it.
        progress: reports how many trials are done, and the best MRR on valid so far.
        stop: whether to stop; finished trials are kept.
        processes: the old name of parallel.
        settings: of all trainings, such as `epochs`; what is fixed here is not searched for.

    >>> import splime, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     tuned = tune(splime.load("demo"), here, trials=2, parallel=1, methods=["vanilla"],
    ...                  models=["distmult"], dimension=8, epochs=1)
    ...     len(tuned.trials), tuned.plan.runs[0].name
    (2, 'vanilla')
    """
    if trials < 1:
        raise UsageError(f"trials must be at least 1, not {trials}")
    if processes is not None:
        warnings.warn("processes is now parallel", DeprecationWarning, stacklevel=2)
        parallel = processes
    pool = as_parallel(_PROCESSES if parallel is None else parallel, device)
    if isinstance(graph, str | Path) and is_stored(graph) and data is None:
        data = str(graph)  # else it may be other facts the next time, and they are saved
    graph = _facts(graph, reading or {})
    need_optuna()
    choose_device(device)
    out = Path(out)
    check_picture(out / PICTURE)
    known = replace(graph, test=Facts.empty())  # the only facts that a search has
    given = read_toml(Path(space)) if isinstance(space, str | Path) else space
    fixed = {**settings, "seed": seed} | ({} if engine == "splime" else {"engine": engine})
    chosen = make_space(known, methods, models, fixed=fixed, given=given)
    with locked(out):
        search = Search(out, known, chosen, seed)
        search.begin()
        if data is None:
            data, reading = str((out / DATA).absolute()), None
            save(graph, out / DATA)
        try:
            _run(search, trials, pool, progress, stop)
        except OSError as error:  # optuna's, of its journal
            raise WriteError(f"{out / JOURNAL}: cannot be written: {error}") from None
        return _finish(search, search.results(), data, reading or {}, stop)


def _facts(source: TemporalGraph | str | Path, reading: Mapping[str, Any]) -> TemporalGraph:
    """The facts of a source; an error where there are none to learn from, or to choose by."""
    graph = source if isinstance(source, TemporalGraph) else load(source, **reading)
    for name in ("train", "valid"):
        if not len(getattr(graph, name)):
            raise UsageError(f"{name} has no facts; tuning learns from train, and needs valid")
    return graph


def _run(search: Search, trials: int, parallel: Parallel, progress: Progress, stop: Stop) -> None:
    """All trials that are left, in this process or in others."""
    unfinished = [trial.number for trial in search.trials() if not trial.state.is_finished()]

    def tell() -> None:
        known = search.trials()
        values = [trial.value for trial in known if trial.value is not None]
        note = f"best valid MRR {max(values):.3f}" if values else ""
        done = sum(trial.state.is_finished() for trial in known)
        progress("trials", done, max(trials, len(known)), note)

    def folders() -> Iterator[Path]:
        """Those of the trials that are left, each when there is a worker for it."""
        yield from map(search.trial_folder, unfinished)
        while not stop() and len(search.trials()) < trials:
            yield search.trial_folder(search.ask())

    tell()
    if not unfinished and len(search.trials()) >= trials:
        return  # no worker needs to start
    if parallel.one_by_one:
        work = partial(search.attempt, device=parallel.device, stop=stop)
    else:
        fresh = replace(search, folder=search.folder.absolute())
        work = partial(_attempt_on_worker, fresh, parallel.device)
    with suppress(Interrupted):  # in this process
        for _, number in map_trainings(work, folders(), parallel, stop=stop):
            there = search.trials()[number].state.is_finished()
            check_left(there, search.trial_folder(number))
            tell()
    tell()


def _finish(
    search: Search, results: list[TrialResult], data: str, reading: Mapping[str, Any], stop: Stop
) -> TuningResult:
    """Write what the search found."""
    out, stopped = search.folder, stop()
    ended = [result for result in results if result.state != "begun"]
    for result in ended:
        search.drop_large(result.number)
    write_trials(out / TABLE, results)
    if ranking(results) or not stopped:
        plan = best_plan(results, search.space, data, reading)
        with atomic_write(out / BEST) as beside:
            beside.write_text(plan.to_toml(), encoding="utf-8")
    if stopped:
        raise Interrupted(
            f"stopped after {counted(len(ended), 'trial')}; {out} keeps them, and the same"
            " command resumes the search"
        )
    shares = search.importances()
    save_picture(plot_importances(shares, search.graph.name, len(results)), out / PICTURE)
    return TuningResult(out, results, shares, plan)


@dataclass(frozen=True)
class Search:
    """What decides which trials there are; a folder belongs to one search."""

    folder: Path
    graph: TemporalGraph
    """The facts of train and valid."""
    space: Space
    seed: int

    def begin(self) -> None:
        """Take the folder, which must be new, empty, or this search's own."""
        path, journal, graph = self.folder / SEARCH, self.folder / JOURNAL, self.graph
        sizes = {"train": len(graph.train), "valid": len(graph.valid)}
        data = {"name": graph.name, **sizes, "sha256": checksum(graph)}
        tables = {"search": {"seed": self.seed}, "data": data, **self.space.plain()}
        wanted = tomllib.loads(to_toml(tables))
        if not path.exists():
            for other in content(self.folder):
                if other.name != DATA and not other.name.endswith(".part"):
                    raise UsageError(
                        f"{self.folder}: holds {other.name!r} and no search; choose another"
                    )
            write_toml(path, wanted)
        elif (there := read_toml(path)) != wanted:
            there = {title: table for title, table in there.items() if isinstance(table, dict)}
            raise UsageError(
                f"{self.folder}: holds another search ({differences(there, wanted)}); choose"
                " another folder, or remove this one"
            )
        elif journal.exists():
            check_plain(journal, _JOURNAL)
            if not (written := journal.read_bytes()).endswith(b"\n"):
                # A killed process wrote half of a line, and optuna would append to it.
                os.truncate(journal, written.rfind(b"\n") + 1)
        (self.folder / TRIALS).mkdir(exist_ok=True)  # here, since a lock removes what it made

    @cached_property
    def study(self) -> Study:
        """Optuna's study, which other processes may read and change too."""
        optuna, path = need_optuna(), str(self.folder / JOURNAL)
        journal = optuna.storages.journal
        # Nothing is pruned in the first third of the epochs: some improve slowly at first.
        settings = (make_settings(model, **self.space.fixed) for model in self.space.models)
        epochs = [one.values().get("epochs", 1) for one in settings]
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # it would report that it made a study
        try:
            # Optuna's default lock needs symbolic links, which not every system has.
            backend = journal.JournalFileBackend(path, journal.JournalFileOpenLock(path))
            return optuna.create_study(
                study_name="splime",
                storage=optuna.storages.JournalStorage(backend),
                direction="maximize",
                load_if_exists=True,
                pruner=optuna.pruners.MedianPruner(n_warmup_steps=1 + max(epochs) // 3),
            )
        except Exception as error:  # optuna fails in many ways at lines that are not its own
            raise self._damaged(error) from None
        finally:
            optuna.logging.set_verbosity(before)

    def trials(self) -> list[FrozenTrial]:
        """All trials so far."""
        trials: list[FrozenTrial] = self.study.get_trials(deepcopy=False)
        return trials

    def results(self) -> list[TrialResult]:
        """All trials so far, as they are shown."""
        try:
            return [TrialResult.of(trial, self.space) for trial in self.trials()]
        except Exception as error:
            raise self._damaged(error) from None

    def importances(self) -> dict[str, float]:
        """The shares of the choices by optuna (PED-ANOVA); empty where trials are few or alike."""
        values = [trial.value for trial in self.trials() if trial.state.name == "COMPLETE"]
        if len(values) < _FEWEST or len({*values}) == 1:
            return {}
        shares = need_optuna().importance.get_param_importances(self.study)
        return {name: share for name, share in shares.items() if share > 0}

    def _damaged(self, error: Exception) -> DataError:
        """The error for a journal that this search cannot have written."""
        return DataError(
            f"{self.folder / JOURNAL}: cannot be read, so that the search cannot be resumed"
            f" ({type(error).__name__}: {error}); begin in another folder"
        )

    def _trial(self, number: int) -> Trial:
        """The next trial; what it suggests follows from the seed, its number and results."""
        optuna = need_optuna()
        drawn = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        # Trials that still run count as bad ones, so that processes do not try the same.
        self.study.sampler = optuna.samplers.TPESampler(seed=drawn, constant_liar=True)
        if number == len(self.trials()):
            return self.study.ask()
        trial: Trial = optuna.trial.Trial(self.study, self.trials()[number]._trial_id)
        return trial

    def ask(self) -> int:
        """The number of a new trial, which has its point of the space."""
        number = len(self.trials())
        self.space.suggest(self._trial(number))
        return number

    def attempt(self, folder: Path, *, device: str, stop: Stop) -> int:
        """Train what the trial of a folder suggested, and tell optuna; the number of the trial."""
        number, state, study = int(folder.name), need_optuna().trial.TrialState, self.study
        if self.trials()[number].state.is_finished():
            return number  # by a worker that died before it could report it
        trial = self._trial(number)
        chosen = self.space.suggest(trial)  # the same as before
        trial.set_user_attr("configuration", asdict(chosen))
        watch = _Watch(trial, stop)
        try:
            cuts = chosen.make_method().fit(self.graph)
            if (same := self._same(trial, chosen, cuts)) is not None:
                trial.set_user_attr("same_as", same.number)
                ended = same.state if same.state.is_finished() else state.FAIL
                study.tell(trial, same.value if ended == state.COMPLETE else None, ended)
                return number
            with locked(folder, wait=_WAIT):
                pass  # a process that was left behind may be saving its state
            settings = {"model": chosen.model, **chosen.settings}
            run = train(self.graph, cuts, folder, device=device, watch=watch, **settings)
            for name in ("seconds", "epochs", "best_epoch"):
                trial.set_user_attr(name, run.about.get(name))
            study.tell(trial, _valid_mrr(run))
        except Interrupted:
            if not watch.pruned:
                raise  # it can be resumed
            study.tell(trial, state=state.PRUNED)
        except WriteError:
            raise  # the trial did nothing wrong: it is left unfinished, and resumed later
        except SplimeError as error:
            trial.set_user_attr("error", str(error))
            study.tell(trial, state=state.FAIL)
        self.drop_large(number)
        return number

    def _same(self, trial: Trial, chosen: Configuration, cuts: Segmentation) -> FrozenTrial | None:
        """An earlier trial that trains the same."""
        settings = make_settings(chosen.model, **chosen.settings).values()
        same = {"cuts": checksum_of_cuts(cuts), **settings}
        key = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
        trial.set_user_attr("key", key)
        alike = (
            earlier
            for earlier in self.trials()[: trial.number]
            if earlier.user_attrs.get("key") == key and earlier.state.name != "FAIL"
        )
        return next(alike, None)

    def trial_folder(self, number: int) -> Path:
        """Where the training of a trial is."""
        return self.folder / TRIALS / f"{number:03}"

    def drop_large(self, number: int) -> None:
        """Remove all of a trial but its configuration, its history and about.json."""
        for name in _LARGE:
            (self.trial_folder(number) / name).unlink(missing_ok=True)


def _attempt_on_worker(search: Search, device: str, folder: Path) -> int:
    """Train the trial of a folder; its number."""
    check_seen(search.folder / SEARCH)
    with Watching(silent) as watch:
        return search.attempt(folder, device=device, stop=watch.stop)


class _Watch:
    """Reports the MRR on valid, and stops what is worse than half of the other trials were."""

    def __init__(self, trial: Trial, stop: Stop) -> None:
        self.trial, self.stop_all, self.pruned = trial, stop, False
        # A process that was killed may have reported more than it saved.
        frozen = trial.study.get_trials(deepcopy=False)[trial.number]
        self.reported = {*frozen.intermediate_values}

    def step(self, *_: float) -> None:
        """Steps are not reported."""

    def epoch(self, epoch: Epoch, best: bool) -> None:
        """Report a validation."""
        if epoch.valid is not None:
            if epoch.epoch not in self.reported:
                self.trial.report(epoch.valid, epoch.epoch)
            self.pruned = bool(self.trial.should_prune())

    def stop(self) -> bool:
        """Whether to stop after this step."""
        return self.pruned or self.stop_all()


def _valid_mrr(run: Run) -> float:
    """The best MRR on valid; of the finished model, where the training did not validate."""
    validated = [epoch.valid for epoch in run.history if epoch.valid is not None]
    if validated:
        return max(validated)
    evaluation = evaluate_facts(run.scorer, run.graph, run.segmentation, split="valid")
    return evaluation.metrics["exact"]["both"].mrr


def need_optuna() -> Any:
    """Optuna; an error that says how to install it, where it is not there."""
    try:
        import optuna
    except ImportError as error:
        raise not_installed("tuning", error) from None
    return optuna
