"""The models. One line here makes a model known everywhere."""

from splime.embedding.models.atise import ATiSE
from splime.embedding.models.base import Model
from splime.embedding.models.complex import ComplEx
from splime.embedding.models.cp import CP
from splime.embedding.models.de_distmult import DEDistMult
from splime.embedding.models.de_simple import DESimplE
from splime.embedding.models.de_transe import DETransE
from splime.embedding.models.distmult import DistMult
from splime.embedding.models.fitting import EComplEx, EDistMult
from splime.embedding.models.hyte import HyTE
from splime.embedding.models.rotate import RotatE
from splime.embedding.models.simple import SimplE
from splime.embedding.models.ta_distmult import TADistMult
from splime.embedding.models.ta_transe import TATransE
from splime.embedding.models.tcomplex import TComplEx
from splime.embedding.models.tdg2e import TDG2E
from splime.embedding.models.telm import TeLM
from splime.embedding.models.tero import TeRo
from splime.embedding.models.timeplex import TIMEPLEX
from splime.embedding.models.tntcomplex import TNTComplEx
from splime.embedding.models.transe import TransE
from splime.embedding.models.transh import TransH
from splime.embedding.models.ttranse import TTransE

MODELS: dict[str, type[Model]] = {
    model.name: model
    for model in (
        TransE,
        TransH,
        DistMult,
        CP,
        SimplE,
        ComplEx,
        EDistMult,
        EComplEx,
        RotatE,
        TTransE,
        HyTE,
        TATransE,
        TADistMult,
        DETransE,
        DEDistMult,
        DESimplE,
        ATiSE,
        TDG2E,
        TComplEx,
        TNTComplEx,
        TeRo,
        TeLM,
        TIMEPLEX,
    )
}

__all__ = ["MODELS", "Model"]
