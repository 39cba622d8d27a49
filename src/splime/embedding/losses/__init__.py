"""The losses. One line here makes a loss known everywhere."""

from splime.embedding.losses.base import LEFT_OUT, Loss
from splime.embedding.losses.sampled import BCE, MARGIN, SAMPLED_SOFTMAX, SELF_ADVERSARIAL
from splime.embedding.losses.softmax import SOFTMAX

LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        SELF_ADVERSARIAL,
        MARGIN,
        BCE,
        SOFTMAX,
        SAMPLED_SOFTMAX,
    )
}

__all__ = ["LEFT_OUT", "LOSSES", "Loss"]
