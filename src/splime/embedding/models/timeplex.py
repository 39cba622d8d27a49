"""TIMEPLEX (Jain et al., 2020): ComplEx, beside products of the time with each side and both."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import normalize

from splime.embedding.distances import dot
from splime.embedding.gadgets import GADGETS
from splime.embedding.models.base import PRODUCTS
from splime.embedding.models.complex import ComplEx
from splime.embedding.tables import Joined, Table, TableMaker, complex_product
from splime.errors import UsageError
from splime.settings import PREDICATE, TIME, Settings, TIMEPLEXSettings

_LAST = 5
"""The epochs of a gadget."""


class TIMEPLEX(ComplEx):
    """f(s, p, o, t) = Re(⟨s, p, ō⟩ + a ⟨s, pₛ, t̄⟩ + b ⟨t, pₒ, ō⟩ + c ⟨s, t, ō⟩).

    The weights a, b, c are 5, 5, 5, or the setting `terms`. The dimension counts complex numbers. A
    gadget adds scores from the times of other facts (`embedding/gadgets.py`).
    """

    name = "timeplex"
    settings_class = TIMEPLEXSettings
    cuts = "timestamps"
    predicate_parts = 8  # p, pₛ, pₒ and t
    strong = PRODUCTS | {"n3": 0.01, "smooth": 0.1}
    weights: tuple[float, ...] = (5.0, 5.0, 5.0)

    @classmethod
    def check(cls, settings: Settings) -> None:
        """An error also where the weights are not three numbers."""
        super().check(settings)
        _weights(settings)
        if cast(TIMEPLEXSettings, settings).gadget is not None:
            for name, value in (("loss", "softmax"), ("validate_every", 0)):
                if getattr(settings, name) != value:
                    raise UsageError(f"a gadget is learned last: {name} must be {value}")
            if settings.each == "ends":
                raise UsageError(
                    "a gadget knows no predicates of begins and ends; choose each fact"
                )

    @classmethod
    def predicate_table(cls, tables: TableMaker, width: int) -> Table:
        """Three vectors of the predicate, and one of the time."""
        of_predicate = {
            name: tables.level(PREDICATE, width // 4) for name in ("p", "of_subject", "of_object")
        }
        return Joined({**of_predicate, "time": tables.level(TIME, width // 4)})

    def prepare(self, tables: TableMaker) -> None:
        """The weights of the terms, and the gadget."""
        self.weights = _weights(tables.settings)
        if (gadget := cast(TIMEPLEXSettings, tables.settings).gadget) is not None:
            self.gadget = GADGETS[gadget](tables.static)

    def begin_epoch(self, epoch: int, epochs: int) -> bool:
        """In the last epochs only the gadget is learned."""
        if self.gadget is not None:
            late = epoch >= epochs - _LAST
            self.requires_grad_(not late)
            self.gadget.requires_grad_(late)
            self.gadget.strength.requires_grad_(False)
            self.gadget.strength.fill_(self.gadget.full if late else 0.0)
        return False

    def constrain(self, settings: Settings) -> None:
        """Times have real and imaginary parts of length 1."""
        super().constrain(settings)
        if isinstance(self.predicates, Joined):
            *_, time = self.predicates.lookups()
            time.weight.copy_(normalize(time.weight.unflatten(-1, (2, -1)), dim=-1).flatten(-2))

    def score(self, s: Tensor, p: Tensor, o: Tensor) -> Tensor:
        """The formula."""
        query = self.object_query(s, p)
        return (query[..., :-1] * o).sum(-1) + query[..., -1]

    def object_query(self, s: Tensor, p: Tensor) -> Tensor:
        """Re⟨s p + b t pₒ + c s t, ō⟩, and a Re⟨s, pₛ, t̄⟩, which is the same for all objects."""
        (p, of_subject, of_object, t), (a, b, c) = p.chunk(4, dim=-1), self.weights
        query = complex_product(s, p + c * t) + b * complex_product(t, of_object)
        return _with(query, a * (complex_product(s, of_subject) * t).sum(-1))

    def subject_query(self, p: Tensor, o: Tensor) -> Tensor:
        """Re⟨o p̄ + a t p̄ₛ + c o t̄, s̄⟩, and b Re⟨t, pₒ, ō⟩."""
        (p, of_subject, of_object, t), (a, b, c) = p.chunk(4, dim=-1), self.weights
        query = complex_product(o, p + c * t, conjugate=True)
        query = query + a * complex_product(t, of_subject, conjugate=True)
        return _with(query, b * (complex_product(t, of_object) * o).sum(-1))

    def predicate_query(self, s: Tensor, o: Tensor) -> Tensor:
        """Both; see below."""
        return torch.cat([s, o], dim=-1)

    def compare(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Inner products, and what is the same for all."""
        return dot(query[..., :-1], candidates) + query[..., -1:]

    def compare_predicates(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Each term is an inner product with something of s and o."""
        (p, of_subject, of_object, t), (a, b, c) = candidates.chunk(4, dim=-1), self.weights
        s, o = query.chunk(2, dim=-1)
        both = dot(complex_product(o, s, conjugate=True), p + c * t)
        of_s = dot(s, complex_product(t, of_subject, conjugate=True))
        return both + a * of_s + b * dot(o, complex_product(t, of_object))


def _with(query: Tensor, constant: Tensor) -> Tensor:
    return torch.cat([query, constant.unsqueeze(-1)], dim=-1)


def _weights(settings: Settings) -> tuple[float, ...]:
    terms = cast(TIMEPLEXSettings, settings).terms
    if terms is None:
        return TIMEPLEX.weights
    try:
        weights = tuple(float(each) for each in terms.split(","))
    except ValueError:
        weights = ()
    if len(weights) != 3:
        raise UsageError(f"terms are three numbers, such as 5,5,0; not {terms!r}")
    return weights
