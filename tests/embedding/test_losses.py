"""Losses and their gradients against plain formulas in float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from splime.embedding.losses import LEFT_OUT, LOSSES, softmax as losses
from splime.embedding.losses.softmax import softmax_loss
from splime.errors import UsageError
from splime.settings import Settings
from splime.training.registry import make_settings

POSITIVE = [1.5, -0.3, -4.0]
NEGATIVE = [[0.5, -2.0, 3.0, 0.1], [-1.0, -1.1, -0.9, -7.0], [0.0, 2.0, -5.0, 1.0]]

SAMPLED = [name for name, loss in LOSSES.items() if loss.against == "sampled"]


def log_sigmoid(x: float) -> float:
    return -math.log(1 + math.exp(-x))


def weights_of(negative: list[float], settings: Settings) -> list[float]:
    powers = [math.exp(settings.temperature * f) for f in negative]
    return [power / sum(powers) for power in powers]


def self_adversarial(
    positive: float, negative: list[float], settings: Settings, weights: list[float]
) -> float:
    wrong = [
        weight * log_sigmoid(-f - settings.margin)
        for f, weight in zip(negative, weights, strict=True)
    ]
    return -log_sigmoid(settings.margin + positive) - sum(wrong)


def margin(positive: float, negative: list[float], settings: Settings, _: list[float]) -> float:
    return sum(max(0.0, settings.margin - positive + f) for f in negative)


def bce(positive: float, negative: list[float], settings: Settings, _: list[float]) -> float:
    return -log_sigmoid(positive) - sum(log_sigmoid(-f) for f in negative) / len(negative)


def sampled_softmax(
    positive: float, negative: list[float], settings: Settings, _: list[float]
) -> float:
    powers = [math.exp(f) for f in (positive, *negative)]
    return -math.log(powers[0] / sum(powers))


Plain = Callable[[float, list[float], Settings, list[float]], float]
PLAIN: dict[str, Plain] = {
    "self_adversarial": self_adversarial,
    "margin": margin,
    "bce": bce,
    "sampled_softmax": sampled_softmax,
}


def plain_loss(
    settings: Settings, positive: list[float], negative: list[list[float]], fixed: list[list[float]]
) -> float:
    """The sum over the positives; the weights of negatives are `fixed` if the settings say so."""
    return sum(
        PLAIN[settings.loss](
            one,
            many,
            settings,
            held if settings.weighting == "fixed" else weights_of(many, settings),
        )
        for one, many, held in zip(positive, negative, fixed, strict=True)
    )


def slopes(function: Callable[[list[float]], float], at: list[float]) -> list[float]:
    """Derivatives by small differences."""
    step, found = 1e-5, []
    for k in range(len(at)):
        more, less = at.copy(), at.copy()
        more[k] += step
        less[k] -= step
        found.append((function(more) - function(less)) / (2 * step))
    return found


def loss_and_gradients(
    settings: Settings, positive: list[float], negative: list[list[float]]
) -> tuple[Tensor, Tensor, Tensor]:
    loss = LOSSES[settings.loss].compute
    assert loss is not None
    one = torch.tensor(positive, dtype=torch.float64, requires_grad=True)
    many = torch.tensor(negative, dtype=torch.float64, requires_grad=True)
    value = loss(one, many, settings)
    assert value.shape == (len(positive),)
    of_one, of_many = torch.autograd.grad(value.sum(), [one, many])
    return value.sum().detach(), of_one, of_many


@pytest.mark.parametrize("weights", ["fixed", "learned"])
@pytest.mark.parametrize("loss", SAMPLED)
def test_values_and_gradients(loss: str, weights: str) -> None:
    settings = Settings.of({"loss": loss, "weighting": weights, "margin": 1.2, "temperature": 0.7})
    value, of_positive, of_negative = loss_and_gradients(settings, POSITIVE, NEGATIVE)
    fixed = [weights_of(many, settings) for many in NEGATIVE]
    assert float(value) == pytest.approx(plain_loss(settings, POSITIVE, NEGATIVE, fixed))

    def by_positive(positive: list[float]) -> float:
        return plain_loss(settings, positive, NEGATIVE, fixed)

    def by_negative(flat: list[float]) -> float:
        return plain_loss(settings, POSITIVE, [flat[:4], flat[4:8], flat[8:]], fixed)

    assert of_positive.tolist() == pytest.approx(slopes(by_positive, POSITIVE), abs=1e-8)
    flat = [f for many in NEGATIVE for f in many]
    assert of_negative.flatten().tolist() == pytest.approx(slopes(by_negative, flat), abs=1e-8)


def test_the_loss_of_the_paper() -> None:
    # reference.md §4: -logsigmoid(margin + f(pos)) - sum_i p_i logsigmoid(-f(neg_i) - margin), with
    # p = softmax(0.5 f(neg)) and gradients flowing through p; margin 3.
    f = torch.tensor(POSITIVE[0], dtype=torch.float64, requires_grad=True)
    negatives = torch.tensor(NEGATIVE[0], dtype=torch.float64, requires_grad=True)
    p = (0.5 * negatives).exp() / (0.5 * negatives).exp().sum()
    expected = -(1 / (1 + (-(3 + f)).exp())).log() - sum(
        p[i] * (1 / (1 + (negatives[i] + 3).exp())).log() for i in range(4)
    )
    of_positive, of_all = torch.autograd.grad(expected, [f, negatives])
    settings = Settings(
        loss="self_adversarial",
        margin=3.0,
        temperature=0.5,
        weighting="learned",
        negatives=4,
    )
    value, of_f, of_negatives = loss_and_gradients(settings, POSITIVE[:1], NEGATIVE[:1])
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(of_f, of_positive.reshape(1))
    torch.testing.assert_close(of_negatives, of_all.reshape(1, 4))


def test_fixed_and_learned_weights_differ_in_the_gradient_through_them() -> None:
    settings = {"loss": "self_adversarial", "margin": 1.2, "temperature": 0.7}
    fixed = loss_and_gradients(Settings.of({**settings, "weighting": "fixed"}), POSITIVE, NEGATIVE)
    learned = loss_and_gradients(
        Settings.of({**settings, "weighting": "learned"}), POSITIVE, NEGATIVE
    )
    torch.testing.assert_close(fixed[0], learned[0])
    torch.testing.assert_close(fixed[1], learned[1])
    for many, without, through in zip(NEGATIVE, fixed[2], learned[2], strict=True):
        # d/df_i Σ w_j c_j, where only w = softmax(0.7 f) moves, is 0.7 w_i (c_i - Σ w_j c_j).
        costs = [-log_sigmoid(-f - 1.2) for f in many]
        weights = weights_of(many, Settings(temperature=0.7))
        mean = sum(w * c for w, c in zip(weights, costs, strict=True))
        expected = [0.7 * w * (c - mean) for w, c in zip(weights, costs, strict=True)]
        assert (through - without).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("weights", ["fixed", "learned"])
@pytest.mark.parametrize("nothing", [LEFT_OUT, -math.inf])
@pytest.mark.parametrize("loss", SAMPLED)
def test_negatives_that_are_left_out(loss: str, nothing: float, weights: str) -> None:
    settings = Settings.of({"loss": loss, "weighting": weights, "margin": 1.2, "temperature": 0.7})
    with_them = [[many[0], nothing, *many[1:], nothing] for many in NEGATIVE]
    value, of_positive, of_negative = loss_and_gradients(settings, POSITIVE, with_them)
    expected, expected_positive, expected_negative = loss_and_gradients(
        settings, POSITIVE, NEGATIVE
    )
    if loss == "bce":  # its mean is one over all that were drawn
        expected = 4 / 6 * expected + (1 - 4 / 6) * sum(-log_sigmoid(f) for f in POSITIVE)
        expected_negative = 4 / 6 * expected_negative
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(of_positive, expected_positive)
    torch.testing.assert_close(of_negative[:, [0, 2, 3, 4]], expected_negative)
    assert (of_negative[:, [1, 5]] == 0).all()


@pytest.mark.parametrize("temperature", [0.0, 0.5])
@pytest.mark.parametrize("weights", ["fixed", "learned"])
@pytest.mark.parametrize("loss", SAMPLED)
def test_positives_whose_negatives_are_all_left_out(
    loss: str, weights: str, temperature: float
) -> None:
    settings = Settings.of({"loss": loss, "weighting": weights, "temperature": temperature})
    value, of_positive, of_negative = loss_and_gradients(settings, [0.5], [[LEFT_OUT] * 3])
    alone = {
        "self_adversarial": -log_sigmoid(settings.margin + 0.5),
        "margin": 0.0,
        "bce": -log_sigmoid(0.5),
        "sampled_softmax": 0.0,
    }
    assert float(value) == pytest.approx(alone[loss])
    assert of_positive.isfinite().all()
    assert (of_negative == 0).all()


@pytest.mark.parametrize("loss", SAMPLED)
def test_far_scores_stay_numbers(loss: str) -> None:
    settings = Settings.of({"loss": loss, "weighting": "learned"})
    for far in (-1e4, 1e4):
        found = loss_and_gradients(settings, [far, -far], [[far, -far], [far, far]])
        assert all(part.isfinite().all() for part in found)


def softmax_case() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(4)
    query = torch.randn(7, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    candidates = torch.randn(5, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    return query, candidates, torch.tensor([0, 4, 4, 1, 2, 0, 3])


@pytest.mark.parametrize("factor", [1.0, -0.37])
@pytest.mark.parametrize("multiple", [1, 5, 8])
@pytest.mark.parametrize("rows", [1, 10, 15, 1 << 21])
def test_softmax_loss(
    rows: int, multiple: int, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(losses._ROWS, "cpu", rows)
    monkeypatch.setitem(losses._MULTIPLE, "cpu", multiple)
    monkeypatch.setattr(losses, "_LEAST_ROWS", 1)
    query, candidates, target = softmax_case()
    found = factor * softmax_loss(query, candidates, target)
    expected = factor * cross_entropy(query @ candidates.T, target, reduction="sum")
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found, [query, candidates]),
        torch.autograd.grad(expected, [query, candidates]),
    )


@pytest.mark.parametrize("rows", [1, 10, 15, 1 << 21])
def test_softmax_loss_where_queries_have_several_answers(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(losses._ROWS, "cpu", rows)
    monkeypatch.setattr(losses, "_LEAST_ROWS", 1)
    query, candidates, _ = softmax_case()
    which = torch.tensor([0, 0, 0, 1, 3, 3, 4, 5, 6, 6])  # query 2 has none
    target = torch.tensor([0, 4, 2, 1, 2, 0, 3, 3, 1, 4])
    found = softmax_loss(query, candidates, target, which)
    expected = cross_entropy(query[which] @ candidates.T, target, reduction="sum")
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found, [query, candidates]),
        torch.autograd.grad(expected, [query, candidates]),
    )


def test_softmax_loss_of_far_scores() -> None:
    query, candidates, target = softmax_case()
    found = softmax_loss(query * 1e4, candidates, target)
    expected = cross_entropy(query * 1e4 @ candidates.T, target, reduction="sum")
    torch.testing.assert_close(found, expected)
    for part in torch.autograd.grad(found, [query, candidates]):
        assert part.isfinite().all()


def test_unknown_losses() -> None:
    with pytest.raises(UsageError, match=r"no loss 'softmx'; there are .*bce.* mean softmax\?"):
        make_settings(loss="softmx")
    for name in LOSSES:
        assert make_settings(loss=name).loss == name
