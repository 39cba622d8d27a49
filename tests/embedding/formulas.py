"""The models' formulas, one coordinate after the other, and models with random weights.

A formula takes the vectors of one triple in float64. It is written with loops and complex numbers,
slow and plain: what the fast code is compared with. Autograd finds its gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from splime.embedding.initial import make_weights
from splime.embedding.models import MODELS
from splime.embedding.models.base import Model
from splime.embedding.tables import Lookup
from splime.settings import Settings
from splime.static import Triples

Formula = Callable[[Tensor, Tensor, Tensor, int], Tensor]


def _transe(s: Tensor, p: Tensor, o: Tensor, norm: int) -> Tensor:
    return -_length([a + b - c for a, b, c in zip(s, p, o, strict=True)], norm)


def _transh(s: Tensor, p: Tensor, o: Tensor, norm: int) -> Tensor:
    w, d = _halves(p)
    w = w / _length(list(w), 2)
    total = torch.zeros((), dtype=s.dtype)
    along_s, along_o = _product(w, s), _product(w, o)
    for k in range(len(s)):
        total = total + ((s[k] - along_s * w[k]) + d[k] - (o[k] - along_o * w[k])) ** 2
    return -total


def _distmult(s: Tensor, p: Tensor, o: Tensor, norm: int) -> Tensor:
    return _product(s, p, o)


def _cp(s: Tensor, p: Tensor, o: Tensor, norm: int) -> Tensor:
    return _product(_halves(s)[0], p, _halves(o)[1])


def _simple(s: Tensor, p: Tensor, o: Tensor, norm: int) -> Tensor:
    (s1, s2), (forth, back), (o1, o2) = _halves(s), _halves(p), _halves(o)
    return (_product(s1, forth, o2) + _product(o1, back, s2)) / 2


def _complex(s: Tensor, p: Tensor, o: Tensor, norm: int) -> Tensor:
    return _product(_numbers(s), _numbers(p), _numbers(o).conj()).real


def _fitting(formula: Formula) -> Formula:
    """A formula beside what the last vectors of entities and predicates add."""

    def fitting(s: Tensor, p: Tensor, o: Tensor, norm: int) -> Tensor:
        d = len(p) - len(s)
        return formula(s[:-d], p[: -2 * d], o[:-d], norm) + (
            _product(s[-d:], p[-2 * d : -d]) + _product(o[-d:], p[-d:])
        )

    return fitting


def _rotate(s: Tensor, p: Tensor, o: Tensor, norm: int) -> Tensor:
    turned = [a * torch.exp(1j * angle) for a, angle in zip(_numbers(s), p, strict=True)]
    return -_length([a - b for a, b in zip(turned, _numbers(o), strict=True)], norm)


def _atise(s: Tensor, p: Tensor, o: Tensor, norm: int) -> Tensor:
    (ms, vs), (mp, vp), (mo, vo) = _halves(s), _halves(p), _halves(o)
    total = torch.zeros((), dtype=s.dtype)
    for k in range(len(ms)):
        ce, cp = (vs[k] + vo[k]).clamp_min(1e-6), vp[k].clamp_min(1e-6)
        square = (mp[k] - ms[k] + mo[k]) ** 2
        total = total + (ce / cp + square / cp + cp / ce + square / ce - 2) / 4
    return -total


def _tero(s: Tensor, p: Tensor, o: Tensor, norm: int) -> Tensor:
    apart = _numbers(s) + _numbers(p) - _numbers(o).conj()
    return -(apart.real.abs() + apart.imag.abs()).sum()


def _telm(s: Tensor, p: Tensor, o: Tensor, norm: int) -> Tensor:
    """Multivectors as 2 x 2 matrices: 1, e₁ = diag(1, -1), e₂ = swap, e₁₂ = their product."""
    basis = torch.tensor(
        [[[1, 0], [0, 1]], [[1, 0], [0, -1]], [[0, 1], [1, 0]], [[0, 1], [-1, 0]]], dtype=s.dtype
    )
    signs = torch.tensor([1, -1, -1, -1], dtype=s.dtype)
    conjugate = (o.view(4, -1) * signs[:, None]).flatten()
    factors = (torch.einsum("bk,bij->kij", x.view(4, -1), basis) for x in (s, p, conjugate))
    traces = [(a @ b @ c).trace() / 2 for a, b, c in zip(*factors, strict=True)]
    return torch.stack(traces).sum()


def _timeplex(s: Tensor, p: Tensor, o: Tensor, norm: int) -> Tensor:
    predicate, of_subject, of_object, t = (_numbers(x) for x in p.view(4, -1))
    s, o = _numbers(s), _numbers(o)
    total = _product(s, predicate, o.conj()) + 5 * _product(s, of_subject, t.conj())
    return (total + 5 * _product(t, of_object, o.conj()) + 5 * _product(s, t, o.conj())).real


FORMULAS: Mapping[str, Formula] = {
    "transe": _transe,
    "transh": _transh,
    "distmult": _distmult,
    "cp": _cp,
    "simple": _simple,
    "complex": _complex,
    "e-distmult": _fitting(_distmult),
    "e-complex": _fitting(_complex),
    "rotate": _rotate,
    # Over plain lookups these are the models that they are made of.
    "ttranse": _transe,
    "hyte": _transe,
    "ta-transe": _transe,
    "ta-distmult": _distmult,
    "atise": _atise,
    "tdg2e": _transe,
    "tero": _tero,
    "telm": _telm,
    "timeplex": _timeplex,
    "de-transe": _transe,
    "de-distmult": _distmult,
    "de-simple": _simple,
    "tcomplex": _complex,
    "tntcomplex": _complex,
}


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[: len(x) // 2], x[len(x) // 2 :]


def _numbers(x: Tensor) -> Tensor:
    return torch.complex(*_halves(x))


def _product(*vectors: Tensor) -> Tensor:
    total = torch.zeros((), dtype=vectors[0].dtype)
    for parts in zip(*vectors, strict=True):
        one = parts[0]
        for part in parts[1:]:
            one = one * part
        total = total + one
    return total


def _length(coordinates: list[Tensor], norm: int) -> Tensor:
    if norm == 1:
        return torch.stack([x.abs() for x in coordinates]).sum()
    return torch.stack([x.abs() ** 2 for x in coordinates]).sum().sqrt()


def entity_sizes(name: str, x: Tensor) -> Tensor:
    """What the penalties of an entity add up: moduli of complex numbers, else absolute values.

    Of dimension 2, or 3.
    """
    if name == "telm":
        return torch.stack([part.norm() for part in x.view(4, -1).T])
    if name == "e-complex":  # an entity has three vectors, a predicate four
        own = 4 if len(x) in (6, 8) else 6
        return torch.cat([_numbers(x[:own]).abs(), x[own:].abs()])
    complex_ones = ("complex", "rotate", "tcomplex", "tntcomplex", "tero", "timeplex")
    return (_numbers(x) if name in complex_ones else x).abs()


def predicate_vector(name: str, x: Tensor) -> Tensor:
    """A predicate as its formula uses it, real parts first."""
    if name == "rotate":
        return torch.cat([x.cos(), x.sin()])
    if name == "transh":
        w, d = _halves(x)
        return torch.cat([w / _length(list(w), 2), d])
    return x


CASES = [(name, norm) for name, kind in MODELS.items() for norm in kind.norms or (1,)]
"""Every model with every norm that it has."""


def settings_of(name: str, **values: Any) -> Settings:
    """Settings of the class that a model has."""
    return MODELS[name].settings_class.of({"model": name, **values})


def plain_model(
    name: str,
    entities: int,
    predicates: int,
    dimension: int,
    *,
    norm: int = 1,
    init: str = "xavier_normal",
    seed: int = 0,
) -> Model:
    """A model over plain lookups, whose predicates follow each other in time."""
    kind, generator = MODELS[name], torch.Generator().manual_seed(seed)
    kind.check(settings_of(name, dimension=dimension, norm=norm))
    ours = make_weights(init, entities, dimension * kind.entity_parts, generator)
    theirs = make_weights(init, predicates, dimension * kind.predicate_parts, generator)
    follows = torch.ones(predicates - 1)
    return kind(Lookup(ours), Lookup(theirs, follows=follows), norm=norm)


def as_triples(rows: Any) -> Triples:
    """Triples that came from a fact each."""
    s, p, o = np.asarray(rows, np.int32).T
    return Triples(s, p, o, np.arange(len(s)), np.ones(len(s), np.int32))


def make_model(
    name: str,
    norm: int = 1,
    *,
    entities: int = 6,
    predicates: int = 4,
    dimension: int = 3,
    seed: int = 0,
) -> Model:
    """A model in float64 whose weights are large enough to matter."""
    generator = torch.Generator().manual_seed(seed)
    model = plain_model(name, entities, predicates, dimension, norm=norm)
    model.double()
    with torch.no_grad():
        for table in model.parameters():
            drawn = torch.randn(table.shape, generator=generator, dtype=torch.float64)
            # Variances are positive; a product of three times 5 is large as it is.
            drawn = 0.5 + drawn.abs() if name == "atise" else drawn
            table.copy_(0.4 * drawn if name == "timeplex" else drawn)
    return model


def score_of(name: str, model: Model, s: int, p: int, o: int) -> Tensor:
    """The score of one triple, by the formula."""
    return FORMULAS[name](
        model.entities.vectors()[s],
        model.predicates.vectors()[p],
        model.entities.vectors()[o],
        model.norm,
    )
