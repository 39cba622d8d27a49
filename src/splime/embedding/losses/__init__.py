"""The losses. One line here makes a loss known everywhere."""

from splime.embedding.losses.base import LEFT_OUT, Loss
from splime.embedding.losses.sampled import BCE, MARGIN, SAMPLED_SOFTMAX, SELF_ADVERSARIAL
from splime.embedding.losses.softmax import SOFTMAX
from splime.plugins import Registry

_BUILTIN = [SELF_ADVERSARIAL, MARGIN, BCE, SOFTMAX, SAMPLED_SOFTMAX]
LOSSES = Registry("splime.losses", {loss.name: loss for loss in _BUILTIN})
"""Packages add their own."""

__all__ = ["LEFT_OUT", "LOSSES", "Loss"]
