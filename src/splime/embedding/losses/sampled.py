"""Losses that compare a positive with sampled negatives."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from splime.axes import Range, Values
from splime.embedding.losses.base import Loss
from splime.settings import Settings

_SETTINGS = ("negatives", "share", "corrupt", "avoid_known", "dropout")
_NEGATIVES = Values((100, 500, 1000))
_MARGIN = Range(1.0, 12.0)


def self_adversarial(positive: Tensor, negative: Tensor, settings: Settings) -> Tensor:
    """Sun et al.: -log σ(m + f⁺) - Σ wᵢ log σ(-m - fᵢ⁻), w = softmax(temperature f⁻)."""
    weights = torch.softmax(settings.temperature * negative, dim=1)
    if settings.weighting == "fixed":
        weights = weights.detach()
    # softplus(x) = -log σ(-x); unlike log σ it has a derivative of 0 where negatives are left out.
    wrong = (weights * softplus(settings.margin + negative)).sum(1)
    return wrong - logsigmoid(settings.margin + positive)


def margin(positive: Tensor, negative: Tensor, settings: Settings) -> Tensor:
    """Pairwise: Σ max(0, m - f⁺ + fᵢ⁻)."""
    return torch.relu(settings.margin - positive.unsqueeze(1) + negative).sum(1)


def bce(positive: Tensor, negative: Tensor, settings: Settings) -> Tensor:  # noqa: ARG001
    """Binary cross-entropy: -log σ(f⁺) - mean log σ(-f⁻); negatives that are left out add 0."""
    return softplus(-positive) + softplus(negative).mean(1)


def sampled_softmax(positive: Tensor, negative: Tensor, settings: Settings) -> Tensor:  # noqa: ARG001
    """Cross-entropy of the positive among itself and its negatives: log(1 + Σ exp(fᵢ⁻ - f⁺))."""
    return softplus(negative.logsumexp(1) - positive)


SELF_ADVERSARIAL = Loss(
    "self_adversarial",
    "log loss over negatives weighted by how hard they are (Sun et al.)",
    "sampled",
    self_adversarial,
    (*_SETTINGS, "margin", "temperature", "weighting"),
    {"negatives": _NEGATIVES, "margin": _MARGIN, "temperature": Values((0.5, 1.0, 2.0))},
)
MARGIN = Loss(
    "margin",
    "pairwise hinge: each negative at least a margin below",
    "sampled",
    margin,
    (*_SETTINGS, "margin"),
    {"negatives": _NEGATIVES, "margin": _MARGIN},
)
BCE = Loss("bce", "binary cross-entropy", "sampled", bce, _SETTINGS, {"negatives": _NEGATIVES})
SAMPLED_SOFTMAX = Loss(
    "sampled_softmax",
    "cross-entropy over sampled negatives: softmax for very many entities",
    "sampled",
    sampled_softmax,
    _SETTINGS,
    {"n3": Range(0.001, 0.3, log=True), "negatives": _NEGATIVES},
)
