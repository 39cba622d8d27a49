"""All models. An entry says everything about one; everything else asks what it can do."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Unpack

from splime.embedding.models import MODELS as FACTOR_MODELS
from splime.embedding.presets import PRESETS, QUICK, QUICKER, STRONG
from splime.errors import UsageError, check_kind, check_name, nearest
from splime.methods import Timestamp, Vanilla
from splime.settings import BaseSettings

if TYPE_CHECKING:
    from splime.embedding.models.base import Model
    from splime.keywords import Training
    from splime.training.engines import Engine

Cuts = Literal["any", "timestamps", "none"]
Preset = str | Mapping[str, Any]
"""The name of a preset, or its settings."""
_ENGINES = {
    "splime": "splime.training.native",
    "pykeen": "splime.training.pykeen",
    "paths": "splime.training.paths",
    "latest": "splime.training.latest",
    "recurrency": "splime.training.recurrency",
    "combined": "splime.training.combined",
}
"""The module of each engine, which has an `engine`."""
_OTHERS = {name: name for name in ("latest", "recurrency", "combined")} | {"path": "paths"}
"""Models without vectors of entities, each the `entry` in the module of its engine."""
WITHOUT_CUTS = "path"
"""The model that is trained where neither a model nor cuts are chosen."""
LIBRARIES = ("splime", "pykeen")
"""The libraries that train: splime, or one with other models."""


@dataclass(frozen=True)
class ModelEntry:
    """What a model says about itself."""

    name: str
    about: str
    """What it scores, in a line."""
    engine: str
    settings: type[BaseSettings]
    cuts: Cuts = "none"
    """Which cuts it is trained over: any; each timestamp, unless others are given; or none."""
    entity_vectors: bool = False
    """Whether there are vectors of entities and predicates to look at."""
    reads_facts: bool = False
    """Whether facts are an input, so that it can be asked over others."""
    trained: bool = True
    """Whether there is anything to train."""
    explains: bool = False
    """Whether it knows which facts an answer rests on."""
    presets: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: {STRONG: {}, QUICK: {}}
    )
    check: Callable[[Any, Mapping[str, Any]], None] = lambda settings, given: None  # noqa: ARG005
    """An error unless the settings fit the model; the second are those that were given."""

    @classmethod
    def of(cls, model: type[Model]) -> ModelEntry:
        """Of a class of models with vectors of entities."""
        from splime.training.native import check_settings

        presets = {**PRESETS, STRONG: model.strong, QUICK: {**model.strong, **QUICKER}}
        return cls(
            name=model.name,
            about=(model.__doc__ or "").partition("\n")[0],
            engine="splime",
            settings=model.settings_class,
            cuts=model.cuts,
            entity_vectors=True,
            presets=presets,
            check=check_settings,
        )

    @property
    def method(self) -> str:
        """The name of the method that cuts a graph for it where none is chosen."""
        return Timestamp.name if self.cuts == "timestamps" else Vanilla.name

    @property
    def is_temporal(self) -> bool:
        """Whether it distinguishes times without cuts of a method."""
        return self.cuts != "any"

    def make_settings(self, preset: Preset | None = None, **given: Any) -> BaseSettings:
        """Settings of a preset, changed by what is given."""
        for old, value in [*given.items()]:
            if (new := self.settings.new_name(old, value)) != old:
                warnings.warn(f"{old} is called {new} now", FutureWarning, stacklevel=3)
                given[new] = given.pop(old)
        for name in given:
            self.settings.check_name(name, self.name)
        values = {**self._preset(preset or STRONG), **given, "model": self.name}
        settings = self.settings.of(values)
        self.check(settings, given)
        return settings

    def _preset(self, preset: Preset) -> Mapping[str, Any]:
        if not isinstance(preset, str):
            return preset
        if preset.startswith("published"):
            raise UsageError(
                f"the preset {preset} is not in the package: a clone of the repository has what"
                " the authors of other models used, in experiments/data/published.toml"
            )
        check_name("preset", preset, self.presets)
        return self.presets[preset]

    def check_cuts(self, method: str | None) -> None:
        """An error where a method is chosen for a model without cuts."""
        if self.cuts == "none" and method not in (None, Vanilla.name):
            raise UsageError(f"the model {self.name} has no cuts; leave out the method")


def model_names() -> list[str]:
    """The names of splime's own models, and of those that installed packages add."""
    return [*FACTOR_MODELS, *(name for name in _OTHERS if name != "combined")]


def find_model(name: str, engine: str = "splime") -> ModelEntry:
    """What a model says about itself.

    >>> find_model("path").cuts, find_model("TComplEx").cuts
    ('none', 'timestamps')
    """
    check_kind("model", name, str)
    if engine == "pykeen":
        from splime.training.pykeen import entry_of, model_name

        return entry_of(model_name(name))
    lower = name.lower()
    if lower in _OTHERS:
        entry: ModelEntry = import_module(_ENGINES[_OTHERS[lower]]).entry
        return entry
    if lower not in FACTOR_MODELS:
        known = model_names()
        raise UsageError(
            f"there is no model {name!r}; there are {', '.join(known)}, and with the engine pykeen"
            f" those of PyKEEN.{nearest(lower, known)}"
        )
    found = FACTOR_MODELS[lower]
    return found if isinstance(found, ModelEntry) else ModelEntry.of(found)


def entry_of_run(model: str, engine: str) -> ModelEntry:
    """What the model of a finished run says about itself; PyKEEN need not be installed for it."""
    check_name("engine", engine, _ENGINES)
    if engine == "pykeen":
        from splime.training.pykeen import entry_of

        return entry_of(model)
    entry = find_model(model)
    if (entry.engine, entry.name) != (engine, model):
        raise UsageError(f"the engine {engine} has no model {model!r}")
    return entry


def find_engine(name: str) -> Engine[Any]:
    """The engine of a name."""
    check_name("engine", name, _ENGINES)
    engine: Engine[Any] = import_module(_ENGINES[name]).engine
    return engine


def entry_for(
    model: str | None = None,
    preset: Preset | None = None,
    engine: str = "splime",
    *,
    default: str = BaseSettings.model,
) -> ModelEntry:
    """The model of a name; where there is none, that of the preset, or the default."""
    check_name("engine", engine, LIBRARIES)
    if not isinstance(preset, Mapping):
        check_kind("preset", preset, str | None)
    if engine == "pykeen" and (model is None or preset is not None):
        raise UsageError("the engine pykeen needs a model, and has no presets")
    values = PRESETS.get(preset or "", {}) if isinstance(preset, str | None) else preset
    return find_model(model or values.get("model", default), engine)


def make_settings(
    model: str | None = None,
    preset: Preset | None = None,
    *,
    engine: str = "splime",
    **given: Unpack[Training],
) -> Any:
    """Settings of a preset (by default the strong one of the model), changed by what is given.

    >>> make_settings("complex").loss, make_settings(preset="paper", margin=1.0).margin
    ('softmax', 1.0)
    """
    return entry_for(model, preset, engine).make_settings(preset, **given)
