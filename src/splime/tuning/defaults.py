"""What is tried where nobody says what: a table of methods, and one of settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from splime.axes import Axis, Range, Values
from splime.embedding.settings import Settings
from splime.tuning.space import Axes

_GROW = Range(2.0, 50.0, log=True)
METHOD_AXES: Mapping[str, Axes] = {
    "vanilla": {},
    # So many times as many predicates, as for split, which it is there to compare with.
    "random": {"grow": _GROW},
    "timestamp": {},
    "split": {"by": Values(("time", "count")), "grow": _GROW},
    "changepoint": {
        "proximity": Values(("jaccard", "adamic_adar", "preferential_attachment")),
        "epsilon": Range(0.5, 50.0, log=True),
    },
    "merge": {"shrink": Range(1.5, 20.0, log=True)},
}

HOW_FAR = ("grow", "shrink", "predicates", "triples", "epsilon", "penalty", "changes")
"""Parameters of which a method takes one: how far it goes."""


class SettingAxis(NamedTuple):
    """What a setting may be, and with which other settings it has an effect."""

    name: str
    axis: Axis
    used: Callable[[Settings], bool]


def _loss(*losses: str) -> Callable[[Settings], bool]:
    return lambda settings: settings.loss in losses


def _optimizer(*optimizers: str) -> Callable[[Settings], bool]:
    return lambda settings: settings.optimizer in optimizers


def _always(_: Settings) -> bool:
    return True


SETTING_AXES: Sequence[SettingAxis] = (
    SettingAxis("dimension", Values((50, 100, 200)), _always),
    SettingAxis("learning_rate", Range(0.0001, 0.01, log=True), _optimizer("adam")),
    SettingAxis("learning_rate", Range(0.01, 1.0, log=True), _optimizer("adagrad", "sgd")),
    SettingAxis("n3", Range(0.001, 0.3, log=True), _loss("softmax")),
    SettingAxis("smooth", Values((0.0, 0.01, 0.1, 1.0, 10.0)), _always),
    SettingAxis("negatives", Values((100, 500, 1000)), _loss("self_adversarial", "margin", "bce")),
    SettingAxis("margin", Range(1.0, 12.0), _loss("self_adversarial", "margin")),
    SettingAxis("temperature", Values((0.5, 1.0, 2.0)), _loss("self_adversarial")),
)
