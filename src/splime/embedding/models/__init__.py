"""The static models of the paper. One line here makes a model known everywhere."""

from collections.abc import Mapping

from splime.embedding.models.base import Model
from splime.embedding.models.complex import ComplEx
from splime.embedding.models.cp import CP
from splime.embedding.models.distmult import DistMult
from splime.embedding.models.rotate import RotatE
from splime.embedding.models.simple import SimplE
from splime.embedding.models.transe import TransE
from splime.embedding.models.transh import TransH

MODELS: Mapping[str, type[Model]] = {
    "transe": TransE,
    "transh": TransH,
    "distmult": DistMult,
    "cp": CP,
    "simple": SimplE,
    "complex": ComplEx,
    "rotate": RotatE,
}

__all__ = ["CP", "MODELS", "ComplEx", "DistMult", "Model", "RotatE", "SimplE", "TransE", "TransH"]
