"""Settings say what is wrong with them, and come back from a file as they were."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, strategies as st

import splime
from splime.embedding.initial import INITIALISERS
from splime.embedding.making import make_model
from splime.errors import UsageError
from splime.settings import (
    ALL_SETTINGS,
    ATiSESettings,
    BaseSettings,
    DiachronicSettings,
    LatestSettings,
    PathSettings,
    PykeenSettings,
    Settings,
    TIMEPLEXSettings,
)

CLASSES = {name: kind for name, (kind, _) in ALL_SETTINGS.items()} | {"model": Settings}
"""A class that has a setting."""
HINTS = {name: get_type_hints(kind)[name] for name, kind in CLASSES.items()}
LITERALS = [name for name, hint in HINTS.items() if get_origin(hint) is Literal]
MAYBE = {name: get_args(hint)[0] for name, hint in HINTS.items() if type(None) in get_args(hint)}
"""Settings that need not be set, with their type."""
CHOSEN = [name for name, hint in MAYBE.items() if get_origin(hint) is Literal]
AT_LEAST_1 = [
    *("dimension", "negatives", "batch_size", "epochs", "patience", "steps", "layers", "reach"),
    *("gran", "valid_questions"),
]
KINDS = (
    *(Settings, DiachronicSettings, ATiSESettings, TIMEPLEXSettings),
    *(PathSettings, LatestSettings, PykeenSettings),
)
AT_LEAST_0 = ["margin", "temperature", "l2", "n3", "smooth", "validate_every", "seed"]


def one(name: str, value: Any) -> BaseSettings:
    """A setting, in a class that has it."""
    return CLASSES[name].of({name: value})


@pytest.mark.parametrize(
    ("name", "right"),
    [("dimensions", "dimension"), ("learn_rate", "learning_rate"), ("smoth", "smooth")],
)
def test_unknown_names(name: str, right: str) -> None:
    with pytest.raises(UsageError, match=rf"no setting '{name}'\. Did you mean .*\b{right}\b"):
        Settings.of({name: 1})


def test_unknown_names_that_are_near_nothing() -> None:
    with pytest.raises(UsageError, match=r"no setting 'xyz'\.$"):
        Settings.of({"xyz": 1})


@pytest.mark.parametrize("name", LITERALS)
def test_words(name: str) -> None:
    for word in get_args(HINTS[name]):
        assert getattr(one(name, word), name) == word
    word = get_args(HINTS[name])[0]
    with pytest.raises(UsageError, match=rf"{name} is one of {word}, .*Did you mean .*{word}"):
        one(name, word + "x")
    for wrong in (None, 1, True, [word]):
        with pytest.raises(UsageError, match=f"{name} is one of"):
            one(name, wrong)


WRONG: dict[Any, list[Any]] = {
    int: [1.5, "3", None, True, [2]],
    float: ["0.1", None, False],
    str: [1, None, True],
    bool: [1, 0, "true", None],
    int | None: [1.5, "3", True],
    str | None: [1, True],
    float | None: ["0.1", False],
    bool | None: [1, 0, "true"],
}


@pytest.mark.parametrize("name", [name for name in HINTS if name not in [*LITERALS, *CHOSEN]])
def test_kinds(name: str) -> None:
    for wrong in WRONG[HINTS[name]]:
        with pytest.raises(UsageError, match=rf"^{name} must be"):
            one(name, wrong)


@pytest.mark.parametrize("name", CHOSEN)
def test_words_that_need_not_be_set(name: str) -> None:
    assert getattr(one(name, None), name) is None
    for wrong in ("x", 1, True):
        with pytest.raises(UsageError, match=f"{name} is one of"):
            one(name, wrong)


@pytest.mark.parametrize("share", [-0.1, 1.0, math.nan])
@pytest.mark.parametrize("name", ["dropout", "static_share"])
def test_shares(name: str, share: float) -> None:
    with pytest.raises(UsageError, match=name):
        one(name, share)


@pytest.mark.parametrize("variance", [0.0, -1.0, math.inf, math.nan])
def test_variances(variance: float) -> None:
    with pytest.raises(UsageError, match="variance must be positive"):
        ATiSESettings(variance=variance)


@pytest.mark.parametrize("levels", ["", "day", "0", "predicate,,1", "1,-2", "1,1", "time, time"])
def test_wrong_levels(levels: str) -> None:
    with pytest.raises(UsageError, match="levels"):
        Settings(levels=levels)


def test_levels() -> None:
    assert Settings(levels="predicate, 8,1 ,time").level_names == ["predicate", "8", "1", "time"]
    assert Settings().level_names == []


def test_whole_numbers_are_numbers() -> None:
    assert Settings(margin=3, learning_rate=1).margin == 3


@pytest.mark.parametrize("name", AT_LEAST_1)
def test_less_than_1(name: str) -> None:
    for wrong in (0, -1):
        with pytest.raises(UsageError, match=f"{name} must be at least 1, not {wrong}"):
            one(name, wrong)


@pytest.mark.parametrize("name", AT_LEAST_0)
def test_less_than_0(name: str) -> None:
    assert getattr(one(name, 0), name) == 0
    wrong: list[Any] = [-1, 2**63]
    if HINTS[name] is float:
        wrong += [-1e-9, math.inf, math.nan]
    for value in wrong:
        with pytest.raises(
            UsageError,
            match=f"{name} must (not be negative, or infinite|be 0 or more|be less than)",
        ):
            one(name, value)


@pytest.mark.parametrize("rate", [0, -0.1, 1e39, math.inf, math.nan])
def test_learning_rates(rate: float) -> None:
    with pytest.raises(UsageError, match="learning_rate must be positive"):
        Settings(learning_rate=rate)


def test_every_number_has_a_limit() -> None:
    """A new number must say which it may be."""
    numbers = [name for name, hint in HINTS.items() if hint in (int, float, int | None)]
    # The norms are the models'.
    assert {*numbers} == {*AT_LEAST_1, *AT_LEAST_0, "learning_rate", "norm"}


@pytest.mark.parametrize("side", ["subject", "object"])
def test_one_side_with_reciprocal_predicates(side: Any) -> None:
    with pytest.raises(UsageError, match="with reciprocal predicates both sides are corrupted"):
        Settings(reciprocal=True, corrupt=side)
    assert Settings(reciprocal=True).corrupt == "both"


def test_both_ways() -> None:
    with pytest.raises(UsageError, match="both_ways needs reciprocal predicates"):
        Settings(both_ways=True)
    with pytest.raises(UsageError, match="negatives must be at least 2"):
        Settings(reciprocal=True, both_ways=True, negatives=1)


def test_a_negative_for_each_side() -> None:
    with pytest.raises(UsageError, match="negatives must be at least 2"):
        Settings(negatives=1)
    assert Settings(negatives=1, corrupt="object").negatives == 1
    assert Settings(negatives=1, reciprocal=True).negatives == 1


def test_every_setting_explains_itself() -> None:
    assert all(own.metadata["help"] for kind in KINDS for own in fields(kind))


def any_value(name: str) -> st.SearchStrategy[Any]:
    hint = HINTS[name]
    if name in LITERALS:
        return st.sampled_from(get_args(hint))
    if name == "levels":
        return st.sampled_from([None, "1", "predicate,4,time"])
    if name in CHOSEN:
        return st.none() | st.sampled_from(get_args(MAYBE[name]))
    if name in ("dropout", "static_share"):
        return st.none() | st.floats(0, 0.9)
    if hint in (bool, bool | None):
        return st.booleans()
    if hint in (str, str | None):
        return st.text(max_size=8)
    least = 2 if name in AT_LEAST_1 or name == "norm" else 0
    if hint in (float, float | None):
        return st.floats(1e-9, 1e9)
    number = st.integers(least, 2**31 - 1)
    return st.none() | number if hint == int | None else number


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_there_and_back(kind: type[BaseSettings], data: st.DataObject) -> None:
    own = {name: any_value(name) for name in ("model", *kind.names())}
    values = data.draw(st.fixed_dictionaries({}, optional=own))
    values.pop("corrupt" if values.get("reciprocal") else "both_ways", None)
    settings = kind.of(values)
    for name, value in values.items():
        assert getattr(settings, name) == value
    written = settings.values()
    assert None not in written.values()  # TOML has no word for it
    if kind is not PykeenSettings or settings.validate_every:
        assert kind.of(written) == settings
        assert hash(kind.of(written)) == hash(settings)


def test_help_names_what_there_is() -> None:
    about = {own.name: own.metadata["help"] for own in fields(Settings)}
    assert set(re.findall(r"\w+", about["init"])) >= set(INITIALISERS)
    widened = [Settings(model="transe", init="uniform", margin=margin) for margin in (1.0, 9.0)]
    static = splime.Vanilla().fit_transform(splime.read([("a", "p", "b", 1)], split="none"))
    narrow, wide = (make_model(each, static).entities.vectors().abs().max() for each in widened)
    assert wide > narrow
