"""Search for the best method, parameters and settings on valid, with several processes.

Trials are asked for one by one (`ask` and `tell`), not by `Study.optimize`: that would seed the
sampler once a process, so that a resumed search would try other things; would try more than
was asked for where processes race; and would give an interrupted trial a new number.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache, partial
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

import numpy as np

from splime.datasets import load
from splime.embedding.device import choose_device
from splime.errors import DataError, SplimeError, UsageError, WriteError, checked
from splime.evaluation import evaluate_facts
from splime.graph import Facts, TemporalGraph
from splime.io import read, save
from splime.io.files import LOCK, locked, read_toml, to_toml, validated, write_toml, written_beside
from splime.progress import Progress, Watching, silent
from splime.report.importance import plot_importance
from splime.report.style import check_picture, save_picture
from splime.runs import Epoch, Interrupted, Run, folder as files, train
from splime.runs.folder import checksum, checksum_of_cuts, differences
from splime.runs.spreading import Spreading, check_left, check_seen, sort_engines
from splime.segmentation import Segmentation
from splime.training.engines import make_settings
from splime.tuning.results import Tried, Tuned, best_plan, importances, ranking, write_trials
from splime.tuning.space import Configuration, Space, make_space, read_space
from splime.workers import never

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

    from splime.keywords import TrialSettings

Stop: TypeAlias = Callable[[], bool]

SEARCH, GRAPH, DATA = "search.toml", "graph.parquet", "data.parquet"
JOURNAL, TRIALS = "journal.log", "trials"
BEST, TABLE, PICTURE = "best.toml", "trials.csv", "importance.png"
_LARGE = (files.GRAPH, files.SEGMENTATION, files.CHECKPOINT, files.BEST, files.MODEL)
"""What is not kept of a trial: the best one is trained again, with all facts."""
_WAIT = 60.0  # seconds, for the locks of other processes of the same search
_PROCESSES = 2


@checked
def tune(
    graph: TemporalGraph | str | Path,
    out: str | Path,
    *,
    trials: int = 50,
    processes: int | None = None,
    processors: int | None = None,
    gpu: float | None = None,
    address: str | None = None,
    methods: Iterable[str] | None = None,
    models: Iterable[str] = ("complex",),
    engine: str | Iterable[str] = "splime",
    space: str | Path | Mapping[str, Any] | None = None,
    seed: int = 0,
    device: str = "auto",
    data: str | None = None,
    reading: Mapping[str, Any] | None = None,
    progress: Progress = silent,
    stop: Stop = never,
    **settings: Unpack[TrialSettings],
) -> Tuned:
    """Search for what gives the best MRR on valid (protocol fact, filter exact).

    The facts of test are taken away before anything else. A folder that holds the same search
    unfinished is resumed; more trials than before continue a finished one.

    Args:
        graph: the facts, or what `splime.load` reads them from.
        out: the folder, which then has best.toml, trials.csv, importance.png and a folder with the
            history of each trial.
        trials: how many to try.
        processes: how many at the same time; the cores are shared between them. By default 2, or
            with an engine for it as many as it can.
        processors: how many processors of a Ray cluster each needs; by default one.
        gpu: which share of a GPU of a Ray cluster each needs; by default a whole one, if this
            machine has one.
        address: the Ray cluster to join; by default that of RAY_ADDRESS, or else a cluster of this
            machine alone is started.
        methods: which methods to try; all by default.
        models: which models to try.
        engine: splime, or pykeen for models of PyKEEN; and what to train several at once on:
            processes of this machine (the default), or ray. May be several names.
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
    if trials < 1:
        raise UsageError(f"trials must be at least 1, not {trials}")
    trainer, spreader = sort_engines(engine)
    if spreader is None and processes is None:
        processes = _PROCESSES
    spreading = Spreading(spreader, processes, processors, gpu, address, device)
    if not isinstance(graph, TemporalGraph):
        data = str(graph) if data is None else data
        graph = load(graph, **(reading or {}))
    for name in ("train", "valid"):
        if not len(getattr(graph, name)):
            raise UsageError(f"{name} has no facts; tuning learns from train, and needs valid")
    need_optuna()
    choose_device(device)
    out = Path(out)
    check_picture(out / PICTURE)
    known = replace(graph, test=Facts.empty())
    given = read_space(space) if isinstance(space, str | Path) else space
    fixed = {**settings, "seed": seed} | ({} if trainer == "splime" else {"engine": trainer})
    chosen = make_space(known, methods, models, fixed=fixed, given=given)
    with locked(out):
        search = Search.begin(out, known, chosen, seed)
        if data is None:
            data = str((out / DATA).absolute())
            save(graph, out / DATA)
        _run(search, trials, spreading, progress, stop)
        return _finish(search, search.tried(), data, reading or {}, stop)


def _run(search: Search, trials: int, spreading: Spreading, progress: Progress, stop: Stop) -> None:
    """All trials that are left, in this process or in others."""
    unfinished = [one.number for one in search.trials() if not one.state.is_finished()]

    def tell() -> None:
        known = search.trials()
        values = [one.value for one in known if one.value is not None]
        note = f"best valid MRR {max(values):.3f}" if values else ""
        done = sum(one.state.is_finished() for one in known)
        progress("trials", done, max(trials, len(known)), note)

    def folders() -> Iterator[Path]:
        """Those of the trials that are left, each when there is a worker for it."""
        yield from map(search.trial_folder, unfinished)
        while not stop() and (number := search.ask(trials)) is not None:
            yield search.trial_folder(number)

    tell()
    if not unfinished and len(search.trials()) >= trials:
        return  # no worker needs to start
    if spreading.one_by_one:
        for folder in folders():
            if not search.attempt(int(folder.name), spreading.device, stop):
                break
            tell()
    else:
        work = partial(_attempt_on_worker, search.folder.absolute(), spreading.device)
        for _, number in spreading.over(work, folders(), stop=stop):
            there = search.trials()[number].state.is_finished()
            check_left(there, search.trial_folder(number))
            tell()
    tell()


def _finish(
    search: Search, done: list[Tried], data: str, reading: Mapping[str, Any], stop: Stop
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


class _Tables(TypedDict):
    """What search.toml must have."""

    search: _Seed
    data: _Data
    methods: dict[str, dict[str, Any]]
    models: dict[str, dict[str, Any]]
    fixed: dict[str, Any]


class _Seed(TypedDict):
    """What the search itself was given."""

    seed: int


class _Data(TypedDict):
    """The facts of a search."""

    name: str
    train: int
    valid: int
    sha256: str


@dataclass(frozen=True)
class Search:
    """What decides which trials there are; a folder belongs to one search."""

    folder: Path
    space: Space
    seed: int
    data: Mapping[str, Any]
    """Name, size and checksum of the facts, without those of test."""

    @classmethod
    def begin(cls, folder: Path, graph: TemporalGraph, space: Space, seed: int) -> Search:
        """Take a folder, which must be new, empty, or this search's own; test must be empty."""
        data = {"name": graph.name, "train": len(graph.train), "valid": len(graph.valid)}
        search = cls(folder, space, seed, {**data, "sha256": checksum(graph)})
        path, journal = folder / SEARCH, folder / JOURNAL
        tables = {"search": {"seed": seed}, "data": search.data, **space.plain()}
        wanted = tomllib.loads(to_toml(tables))
        if not path.exists():
            for other in folder.iterdir():
                if other.name not in (LOCK, GRAPH, DATA) and not other.name.endswith(".part"):
                    raise UsageError(
                        f"{folder}: holds {other.name!r} and no search; choose another"
                    )
            save(graph, folder / GRAPH)
            write_toml(path, wanted)
        elif (there := read_toml(path)) != wanted:
            raise UsageError(
                f"{folder}: holds another search ({differences(there, wanted)}); choose another"
                " folder, or remove this one"
            )
        elif journal.exists() and not (written := journal.read_bytes()).endswith(b"\n"):
            # A killed process wrote half of a line, and optuna would append to it.
            os.truncate(journal, written.rfind(b"\n") + 1)
        # Processes lock it, and a folder that a lock made would vanish with the lock.
        (folder / TRIALS).mkdir(exist_ok=True)
        return search

    @classmethod
    def open(cls, folder: Path) -> Search:
        """The search that a folder belongs to."""
        path = folder / SEARCH
        tables = read_toml(path)
        there = validated(path, tables, _Tables)
        try:
            return cls(folder, Space.of(tables), there["search"]["seed"], tables["data"])
        except UsageError as error:
            raise DataError(f"{path}: not a search: {error}") from None

    @cached_property
    def graph(self) -> TemporalGraph:
        """The facts of train and valid."""
        graph = read(self.folder / GRAPH)
        if checksum(graph) != self.data["sha256"]:
            raise DataError(f"{self.folder / GRAPH}: not the facts of this search")
        return graph

    @cached_property
    def study(self) -> Study:
        """Optuna's study, which other processes may read and change too."""
        optuna, path = need_optuna(), self.folder / JOURNAL
        # Nothing is pruned in the first third of the epochs: some improve slowly at first.
        epochs = [make_settings(model, **self.space.fixed).epochs for model in self.space.models]
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # it would report that it made a study
        try:
            return optuna.create_study(
                study_name="splime",
                storage=optuna.storages.JournalStorage(_journal(path)),
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
        study = self.study
        try:
            trials: list[FrozenTrial] = study.get_trials(deepcopy=False)
        except Exception as error:  # of lines that were added since
            raise self._damaged(error) from None
        return trials

    def tried(self) -> list[Tried]:
        """All trials so far, for people."""
        try:
            return [Tried.of(one, self.space) for one in self.trials()]
        except (ValueError, TypeError, AttributeError, RuntimeError) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> DataError:
        """What to say of a journal that this search cannot have written."""
        path = self.folder / JOURNAL
        if isinstance(error, OSError):
            return DataError(f"{path}: cannot be read: {error}")
        return DataError(
            f"{path}: cannot be read: it holds lines that are not this search's"
            f" ({type(error).__name__}: {error}); remove them, or begin in another folder"
        )

    def ask(self, trials: int) -> int | None:
        """The number of the next trial, which has its point of the space; None if there are enough.

        What it suggests follows from the seed, its number and the trials that are finished.
        """
        with locked(self.folder / TRIALS, wait=_WAIT):
            number = len(self.trials())
            if number >= trials:
                return None
            self.study.sampler = _sampler(self.seed, number)
            self.space.suggest(self.study.ask())
        return number

    def attempt(self, number: int, device: str, stop: Stop) -> bool:
        """Train what a trial suggested; False if it was stopped midway, and can be resumed."""
        state, study = need_optuna().trial.TrialState, self.study
        if self.trials()[number].state.is_finished():
            return True  # by a worker that died before it could say so
        self.study.sampler = _sampler(self.seed, number)
        # What it suggested it suggests again.
        trial = need_optuna().trial.Trial(study, self.trials()[number]._trial_id)
        chosen = self.space.suggest(trial)
        trial.set_user_attr("configuration", asdict(chosen))
        folder = self.trial_folder(number)
        watch = _Watch(trial, stop)
        try:
            graph = self.graph
            cuts = chosen.make_method().fit(graph)
            if (same := self._claim(trial, chosen, cuts)) is not None:
                trial.set_user_attr("same_as", same.number)
                ended = same.state if same.state.is_finished() else state.FAIL
                study.tell(trial, same.value if ended == state.COMPLETE else None, ended)
                return True
            with locked(folder, wait=_WAIT):
                pass  # a process that was left behind may be saving its state
            settings = {"model": chosen.model, **chosen.settings}
            run = train(graph, cuts, folder, device=device, watch=watch, **settings)
            for name in ("seconds", "epochs", "best_epoch"):
                trial.set_user_attr(name, run.about.get(name))
            study.tell(trial, _valid_mrr(run))
        except Interrupted:
            if not watch.pruned:
                return False
            study.tell(trial, state=state.PRUNED)
        except WriteError:
            raise  # the trial did nothing wrong: it is left unfinished, and resumed later
        except SplimeError as error:
            trial.set_user_attr("error", str(error))
            study.tell(trial, state=state.FAIL)
        self.drop_large(number)
        return True

    def _claim(self, trial: Trial, chosen: Configuration, cuts: Segmentation) -> FrozenTrial | None:
        """The other trial that trains the same, if there is one; else this one does."""
        settings = make_settings(chosen.model, **chosen.settings).values()
        same = {"cuts": checksum_of_cuts(cuts), **settings}
        key = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
        with locked(self.folder / TRIALS, wait=_WAIT):
            for other in self.trials():
                mine = other.number == trial.number
                if other.user_attrs.get("key") == key and other.state.name != "FAIL" and not mine:
                    return other
            trial.set_user_attr("key", key)
        return None

    def trial_folder(self, number: int) -> Path:
        """Where the training of a trial is."""
        return self.folder / TRIALS / f"{number:03}"

    def drop_large(self, number: int) -> None:
        """Remove all of a trial but its configuration, its history and about.json."""
        for name in _LARGE:
            (self.trial_folder(number) / name).unlink(missing_ok=True)


@lru_cache(maxsize=1)
def _opened(folder: Path, _written: int) -> Search:
    """A search, whose facts and trials a worker reads once; another one was written later."""
    return Search.open(folder)


def _attempt_on_worker(out: Path, device: str, folder: Path) -> int:
    """Train the trial of a folder; its number."""
    check_seen(out / SEARCH)
    number, search = int(folder.name), _opened(out, (out / SEARCH).stat().st_mtime_ns)
    with Watching(silent) as watch:
        if not search.attempt(number, device, watch.stop):
            raise Interrupted(f"{folder}: stopped")
    return number


class _Watch:
    """Reports the MRR on valid, and stops what is worse than half of the other trials were."""

    def __init__(self, trial: Trial, stop: Stop) -> None:
        self.trial, self.stop_all, self.pruned = trial, stop, False
        # A process that was killed may have reported more than it saved.
        frozen = trial.study.get_trials(deepcopy=False)[trial.number]
        self.reported = {*frozen.intermediate_values}

    def step(self, *_: float) -> None:
        """Steps are not reported."""

    def epoch(self, epoch: Epoch, best: bool) -> None:  # noqa: ARG002
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
    validated = [one.valid for one in run.history if one.valid is not None]
    if validated:
        return max(validated)
    evaluation = evaluate_facts(run.scorer, run.graph, run.segmentation, split="valid")
    return evaluation.metrics["exact"]["both"].mrr


def _journal(path: Path) -> Any:
    """Optuna's journal, of which a full disk never leaves half of a line behind."""
    journal = need_optuna().storages.journal
    # Optuna's other kind of lock needs symbolic links, which not every system has.
    lock = journal.JournalFileOpenLock(str(path))

    class Journal(journal.JournalFileBackend):  # type: ignore[misc, name-defined]
        def append_logs(self, logs: list[dict[str, Any]]) -> None:
            """Append all lines, or none."""
            lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
            try:
                lock.acquire()
                try:
                    with path.open("ab", buffering=0) as file:
                        _append(file, lines)
                finally:
                    lock.release()
            except OSError as error:
                raise WriteError(f"{path}: cannot be written: {error}") from None

    return Journal(str(path), lock)


def _append(file: FileIO, lines: bytes) -> None:
    size = file.tell()
    try:
        while lines:
            lines = lines[file.write(lines) :]
        os.fsync(file.fileno())
    except OSError:
        file.truncate(size)
        raise


def _sampler(seed: int, number: int) -> Any:
    optuna = need_optuna()
    drawn = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    with warnings.catch_warnings():
        # Older versions call this an experiment: trials that still run count as bad ones, so that
        # processes do not try the same at the same time.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(seed=drawn, constant_liar=True, multivariate=False)


def need_optuna() -> Any:
    """Optuna; an error that says how to install it, where it is not there."""
    try:
        import optuna
    except ImportError as error:
        raise SplimeError(
            f"tuning needs optuna ({error}); install it with: pip install 'splime[tune]'"
        ) from None
    return optuna
