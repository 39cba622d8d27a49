"""Figures in documents are those of stored results, or of what was published.

Tables that commands print are compared elsewhere. Here it is the figures in what people write: an
MRR such as .304, one with that by the filter overlap as .304 (.310), one with its hits as
.304 / 22.3 / 32.4 / 46.3. A figure must be stored, and what stands together must be of one row. A
wrong figure that stands alone may be right somewhere else, so a page names the studies it cites.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import pytest

from experiments.commands import STORED
from experiments.forecast import tables as forecast_tables
from experiments.rivals import by_dataset, entries
from experiments.rows import (
    FAIR,
    FILTERS,
    GRID,
    MAIN,
    METRICS,
    PATHS,
    SEARCH,
    VARIATIONS,
    Case,
    Results,
)
from experiments.tables import mrr, percent
from tests.test_docs import ROOT

_MRR = r"(?<![\w.])\.\d{3}(?![\d])"
_HIT = r"\d{1,2}\.\d"
TOGETHER = re.compile(rf"{_MRR}(?: / (?:{_HIT}|–)){{3}}")
PAIR = re.compile(rf"({_MRR}) \((?:overlap )?({_MRR})\)")
ALONE = re.compile(_MRR)
LOWEST = 0.03
"""Below it a figure is a difference, or a setting."""


class Figures(NamedTuple):
    """What may stand in a document."""

    alone: frozenset[str]
    pairs: frozenset[tuple[str, str]] = frozenset()
    together: frozenset[str] = frozenset()


def of_cases(results: Results, cases: Iterable[Case]) -> Iterator[Figures]:
    """The means over some trainings, by what they were evaluated on."""
    ran = [case for case in cases if case in results]
    if not ran:
        return
    for options in ran[0].evaluations:
        wanted = {name: value for name, value in options.items() if name in ("split", "aggregate")}
        if options["protocol"] != "fact":
            continue
        names = results[ran[0]]["figures"][0]["metrics"]
        means = [results.average(ran, name, **wanted).mean for name in names]
        texts = [mrr(mean["mrr"]) for mean in means]
        hits = [
            " / ".join([mrr(one["mrr"]), *(percent(one[m]) for m in METRICS[1:])]) for one in means
        ]
        yield Figures(frozenset(texts), frozenset([(texts[0], texts[1])]), frozenset(hits))
    valid = [results[case]["valid"] for case in ran if results[case].get("valid")]
    if valid:
        yield Figures(frozenset([mrr(sum(valid) / len(valid))]))


def joined(every: Iterable[Figures]) -> Figures:
    listed = [*every]
    return Figures(*(frozenset(chain(*of)) for of in zip(*listed, strict=True)))


@cache
def stored(name: str) -> Figures:
    """The figures of a study: rows with all of their seeds, and single trainings."""
    return joined(_SOURCES[name]())


def _paths() -> Iterator[Figures]:
    results = Results(STORED / "paths.json")
    for row in chain(*PATHS.values()):
        yield from of_cases(results, row.cases)


def _rivals() -> Iterator[Figures]:
    results = Results(STORED / "rivals.json")
    for dataset in by_dataset():
        for entry in entries(results, dataset):
            yield from of_cases(entry.results, entry.cases)


def _tries() -> Iterator[Figures]:
    results = Results(STORED / "rivals.json")
    for rows in by_dataset().values():
        for case in (case for row in rows for case in row.cases):
            yield from of_cases(results, [case])


def _strata() -> Iterator[Figures]:
    results = Results(STORED / "rivals.json")
    for dataset in by_dataset():
        for entry in entries(results, dataset):
            values = [
                entry.stratum("exact", "train", f"triple {which} in train")
                for which in ("seen", "unseen")
            ]
            yield Figures(frozenset(mrr(value) for value in values if value is not None))


def _fair() -> Iterator[Figures]:
    results = Results(STORED / "fair.json")
    for case in chain(*(row.cases for row in FAIR), *SEARCH.values()):
        yield from of_cases(results, [case])


def _main() -> Iterator[Figures]:
    """The paper's tables, trained again: the mean of each row, its lowest and its highest run."""
    for name, rows in (("main", MAIN), ("filters", FILTERS), ("grid", GRID)):
        results = Results(STORED / f"{name}.json")
        changed = [variation.cases for variation in VARIATIONS] if name == "main" else []
        for cases in (*(row.cases for row in rows), *changed):
            ran = results.average(cases)
            if ran.mrrs:
                values = (ran.mean["mrr"], min(ran.mrrs), max(ran.mrrs))
                yield Figures(frozenset(map(mrr, values)))


def _published() -> Iterator[Figures]:
    """What others print, as declared, with where it stands."""
    for name in ("rivals", "fair", "paths", "main"):
        text = (ROOT / "experiments" / "data" / f"{name}.toml").read_text("utf-8")
        yield Figures(frozenset(ALONE.findall(text)), together=frozenset(TOGETHER.findall(text)))
        written = re.findall(r"mrr = (0\.\d+)", text)
        yield Figures(frozenset(mrr(float(value)) for value in written))


def _benchmarks() -> Iterator[Figures]:
    """Every number below 1 of the benchmarks."""
    for path in (ROOT / "benchmarks" / "results").glob("*.json"):
        numbers = _leaves(json.loads(path.read_text("utf-8")))
        yield Figures(frozenset(mrr(number) for number in numbers if 0 < number < 1))


def _leaves(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    elif isinstance(value, float):
        yield value


def _universal() -> Iterator[Figures]:
    """Weights that have not seen the source, by what they were asked about."""
    for record in json.loads((STORED / "universal.json").read_text("utf-8")).values():
        for split in ("valid", "test"):
            exact, overlap = (mrr(record[split][name]["mrr"]) for name in ("exact", "overlap"))
            yield Figures(frozenset([exact, overlap]), frozenset([(exact, overlap)]))


def _forecast() -> Iterator[Figures]:
    """Forecasts, beside published ones."""
    for table in forecast_tables(STORED):
        for row in table.rows:
            yield Figures(frozenset(ALONE.findall(" ".join(map(str, row)))))


_SOURCES: Mapping[str, Any] = {
    "forecast": _forecast,
    "paths": _paths,
    "universal": _universal,
    "rivals": _rivals,
    "tries": _tries,
    "strata": _strata,
    "fair": _fair,
    "main": _main,
    "published": _published,
    "benchmarks": _benchmarks,
}

PAGES: Mapping[str, tuple[str, ...]] = {
    "README.md": ("paths", "rivals", "universal", "published"),
    "CHANGELOG.md": ("paths",),
    "docs/paths.md": ("paths", "rivals", "published"),
    "docs/paths.md: A bound on what a question reads": ("benchmarks",),
    "docs/training.md: Settings": ("tries",),
    "docs/training.md": ("fair",),
    "docs/which-model.md": ("paths", "rivals", "universal"),
    "docs/which-model.md: By kind of time": ("fair",),
    "docs/which-model.md: Forecasts": ("paths", "forecast"),
    "experiments/paper.md": ("main", "published"),
    "experiments/rivals.md": ("paths", "rivals", "published"),
    "experiments/rivals-appendix.md": ("rivals", "tries", "published"),
    "experiments/rivals-strata.md": ("strata",),
    "experiments/rivals-search.md": ("tries",),
    "benchmarks/README.md": ("benchmarks",),
}
"""The documents with figures, or their sections, and the studies that they cite."""
_DEMO = "of `demo`, by the commands that stand there, in seconds or minutes"
_SEARCH = "a search on valid whose runs were not kept"
UNSTORED: Mapping[str, str] = {
    "benchmarks/README.md: Training the path model on a processor": _DEMO,
    "docs/asking.md: What probabilities mean": "errors of calibration, no MRR",
    "docs/asking.md: Real people": "two runs, by the commands that stand there",
    "docs/paths.md: The idea in one picture": _DEMO,
    "docs/paths.md: Settings": _SEARCH,
    "docs/paths.md: Forecasting": "of a baseline, by the commands that stand there, in seconds",
    "docs/training.md: Models": _DEMO,
    "docs/training.md: Very many entities": _DEMO,
    "docs/training.md: Vectors from several levels": _SEARCH,
    "docs/training.md: Presets": _SEARCH,
    "docs/tuning.md": _DEMO,
    "docs/which-model.md: On your own table": _DEMO,
    "experiments/paper.md: Where it differs, and why": "differences, and an independent program",
    "experiments/rivals-appendix.md: Published figures and ours": (
        "two models trained by changed programs"
    ),
    "experiments/rivals-search.md: Which levels help": _SEARCH,
    "experiments/rivals-search.md: Settings that were revised": "results that were set aside",
}
"""Sections with other figures, and where these come from."""


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Headings and what stands below them, without what commands print there."""
    text = re.sub(r"<!-- (\w+) -->\n.*?<!-- end -->", "", text, flags=re.S)
    parts = re.split(r"^#+ (.*)$", text, flags=re.M)
    yield from zip(["", *parts[1::2]], parts[::2], strict=True)


def wrong(text: str, known: Figures) -> list[str]:
    """The figures of a text that are not known."""
    text = " ".join(text.replace("**", "").split())
    found = [whole for whole in TOGETHER.findall(text) if whole not in known.together]
    text = TOGETHER.sub("", text)
    found += [
        f"{one} ({other})" for one, other in PAIR.findall(text) if (one, other) not in known.pairs
    ]
    text = PAIR.sub("", text)
    alone = (one for one in ALONE.findall(text) if float(one) >= LOWEST)
    return [*found, *(one for one in alone if one not in known.alone)]


def documents() -> Iterator[str]:
    """Everything that people write; of pages made from templates these."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("experiments/*.md")]
    templates = {path.name for path in ROOT.glob("experiments/*.md")}
    for path in [*pages, ROOT / "benchmarks" / "README.md"]:
        if path.parent.name != "docs" or path.name not in templates:
            yield path.relative_to(ROOT).as_posix()


def unknown(document: str) -> dict[str, list[str]]:
    """The figures of a document that are not stored, by section."""
    found = {}
    for heading, text in sections((ROOT / document).read_text("utf-8")):
        place = f"{document}: {heading}"
        sources = PAGES.get(place, PAGES.get(document, ()))
        if of_section := wrong(
            text, joined(map(stored, sources)) if sources else Figures(frozenset())
        ):
            found[place] = of_section
    return found


@pytest.mark.parametrize("document", [*documents()])
def test_figures_are_stored_ones(document: str) -> None:
    found = {
        place: figures
        for place, figures in unknown(document).items()
        if place not in UNSTORED and document not in UNSTORED
    }
    assert not found, "not in stored results: correct them, or store what gives them"


def test_what_is_not_stored_is_needed() -> None:
    """No place is excused where there is nothing to excuse."""
    places = {place for document in documents() for place in unknown(document)}
    needed = {name for name in UNSTORED for place in places if place.startswith(name)}
    assert needed == UNSTORED.keys()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("path has .304 (.310)", []),
        ("path has .304 (.311)", [".304 (.311)"]),
        ("**.304** / 22.3 / 32.4 / 46.3 on test", []),
        (".304 / 22.3 / 32.4 / 46.4", [".304 / 22.3 / 32.4 / 46.4"]),
        ("of .304, and .1 more; a rate of .0002", []),
        ("it has .303 here, with n3 .005", []),
        ("it has .999", [".999"]),
    ],
)
def test_wrong_figures_are_found(text: str, left: list[str]) -> None:
    assert wrong(text, stored("paths")) == left
