"""The models with vectors of entities. One line here makes a model known everywhere."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from splime.plugins import Registry

if TYPE_CHECKING:
    from splime.embedding.models.base import Model

_PLACES = {
    "transe": "transe:TransE",
    "transh": "transh:TransH",
    "distmult": "distmult:DistMult",
    "cp": "cp:CP",
    "simple": "simple:SimplE",
    "complex": "complex:ComplEx",
    "e-distmult": "fitting:EDistMult",
    "e-complex": "fitting:EComplEx",
    "rotate": "rotate:RotatE",
    "ttranse": "transe:TTransE",
    "hyte": "hyte:HyTE",
    "ta-transe": "sequences:TATransE",
    "ta-distmult": "sequences:TADistMult",
    "de-transe": "diachronic:DETransE",
    "de-distmult": "diachronic:DEDistMult",
    "de-simple": "diachronic:DESimplE",
    "atise": "atise:ATiSE",
    "tdg2e": "tdg2e:TDG2E",
    "tcomplex": "tcomplex:TComplEx",
    "tntcomplex": "tcomplex:TNTComplEx",
    "tero": "tero:TeRo",
    "telm": "telm:TeLM",
    "timeplex": "timeplex:TIMEPLEX",
}
MODELS: Mapping[str, type["Model"]] = Registry(
    "splime.models", {}, {name: f"{__name__}.{place}" for name, place in _PLACES.items()}
)
"""Imported when they are used: the names are known without PyTorch. Packages add their own."""
