"""The loop: the same seed gives the same bytes, with and without a break, and models learn."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from itertools import groupby
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from splime.embedding.losses import LOSSES
from splime.embedding.models import MODELS
from splime.embedding.objective import Objective
from splime.embedding.scorer import ModelScorer
from splime.errors import SplimeError, UsageError
from splime.settings import Settings
from splime.training import trainer as module
from splime.training.engines import EpochEnd, TrainingStep
from splime.training.trainer import Trainer
from tests.embedding.formulas import CASES, as_triples, plain_model, settings_of

# Every question has one answer, and no model has to think of two entities as the same.
TRIPLES = np.array(
    [(i, 0, i + 5) for i in range(5)] + [(i, 1, i + 6) for i in range(4)], dtype=np.int64
)
ENTITIES, PREDICATES = 10, 2


def make_trainer(*, first_seed: int = 0, norm: int = 1, **values: Any) -> Trainer:
    """A trainer whose epochs have three steps, unless the values say otherwise."""
    settings = settings_of(
        **{
            "name": values.pop("model", "distmult"),
            "dimension": 4,
            "negatives": 4,
            "batch_size": 4,
            "epochs": 3,
            "learning_rate": 0.1,
            "norm": norm,
            **values,
        }
    )
    predicates = PREDICATES * (2 if settings.reciprocal else 1)
    model = plain_model(
        settings.model, ENTITIES, predicates, settings.dimension, norm=norm, seed=first_seed
    )
    return Trainer(model, as_triples(TRIPLES), settings)


def finish(trainer: Trainer) -> list[float]:
    """The losses of the epochs that are left."""
    losses = []
    while trainer.epoch < trainer.epochs:
        losses.append(trainer.run_epoch())
    return losses


def tables(trainer: Trainer) -> list[bytes]:
    return [table.detach().numpy().tobytes() for table in trainer.model.parameters()]


def break_off(trainer: Trainer, steps: int) -> list[float]:
    """Train for so many steps; the losses of the epochs that ended."""
    losses, taken = [], 0
    with closing(trainer.train()) as events:
        while taken < steps:
            match next(events):
                case EpochEnd(loss):
                    losses.append(loss)
                case TrainingStep():
                    taken += 1
    return losses


KINDS: list[dict[str, Any]] = [
    {"optimizer": "adam"},
    {"optimizer": "adagrad", "share": "none"},
    {"optimizer": "sgd", "share": "none", "corrupt": "object", "loss": "margin"},
    {"optimizer": "adam", "share": "none", "loss": "bce", "avoid_known": True},
    {"optimizer": "adagrad", "loss": "softmax", "reciprocal": True, "n3": 0.01, "smooth": 0.1},
    {"optimizer": "sgd", "model": "transe", "reduction": "sum"},
]
every_kind = pytest.mark.parametrize(
    "kind", KINDS, ids=["-".join(map(str, kind.values())) for kind in KINDS]
)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negatives are drawn for two steps at once, so that an epoch has more than one draw."""
    monkeypatch.setattr(module, "_DRAWN", 2 * 4)


@every_kind
def test_the_seed(kind: dict[str, Any]) -> None:
    one, same, other = (make_trainer(**kind, seed=seed) for seed in (0, 0, 1))
    before = tables(one)
    losses = finish(one)
    assert finish(same) == losses
    assert tables(same) == tables(one) != before
    assert finish(other) != losses
    assert tables(other) != tables(one)


@every_kind
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 6, 8, 9])
def test_a_break_changes_nothing(kind: dict[str, Any], steps: int) -> None:
    whole = make_trainer(**kind)
    losses = finish(whole)

    broken = make_trainer(**kind)
    before = break_off(broken, steps)
    tensors, numbers = broken.state()
    saved = {name: tensor.clone() for name, tensor in tensors.items()}
    assert numbers["step"] == steps - 3 * len(before)

    resumed = make_trainer(**kind, first_seed=7)
    resumed.restore(saved, numbers)
    assert before + finish(resumed) == losses
    assert tables(resumed) == tables(whole)
    ours, theirs = whole.state(), resumed.state()
    assert ours[1] == theirs[1]
    assert ours[0].keys() == theirs[0].keys()
    assert all(torch.equal(ours[0][name], theirs[0][name]) for name in ours[0])


@every_kind
def test_a_saved_state_can_be_taken_up_twice(kind: dict[str, Any]) -> None:
    """What goes on must not write into what it was given."""
    broken = make_trainer(**kind)
    assert not break_off(broken, 2)
    tensors, numbers = broken.state()
    saved = {name: tensor.clone() for name, tensor in tensors.items()}
    ends = []
    for _ in range(2):
        resumed = make_trainer(**kind, first_seed=7)
        resumed.restore(saved, numbers)
        ends.append((finish(resumed), tables(resumed)))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("share", ["batch", "none"])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 4, 5, 9])
def test_batches(batch_size: int, share: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make_trainer(batch_size=batch_size, share=share)
    batches: list[list[tuple[int, ...]]] = []
    taken = trainer.take_step

    def spy(triples: Tensor, drawn: Tensor | None) -> None:
        batches.append([tuple(row) for row in triples.tolist()])
        assert drawn is not None
        taken(triples, drawn)

    monkeypatch.setattr(trainer, "take_step", spy)
    finish(trainer)
    assert len(batches) == 3 * trainer.steps
    epochs = [batches[k : k + trainer.steps] for k in range(0, len(batches), trainer.steps)]
    for epoch in epochs:
        sizes = [len(batch) for batch in epoch]
        assert max(sizes) <= batch_size
        assert max(sizes) == min(sizes[:-1], default=sizes[0])
        assert 0 < sizes[-1] <= max(sizes)
        assert Counter(row for batch in epoch for row in batch) == Counter(
            map(tuple, TRIPLES.tolist())
        )
    if batch_size < 9:
        assert epochs[0] != epochs[1] != epochs[2]


def test_questions_stay_together_and_change_places(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[tuple[int, ...]]] = []
    whole = Objective.backward

    def backward(self: Objective, triples: torch.Tensor, drawn: torch.Tensor | None) -> Any:
        seen.append([tuple(row) for row in triples.tolist()])
        return whole(self, triples, drawn)

    monkeypatch.setattr(Objective, "backward", backward)
    triples = np.array([(s, p, o) for s in (0, 3) for p in (0, 1) for o in (1, 2, 4)])
    settings = Settings(
        model="distmult", dimension=4, loss="softmax", reciprocal=True, batch_size=5, epochs=2
    )
    trainer = Trainer(plain_model("distmult", 5, 4, 4), as_triples(triples), settings)
    finish(trainer)
    epochs = [
        [row for batch in some for row in batch]
        for some in (seen[: trainer.steps], seen[trainer.steps :])
    ]
    both = [(s, p, o) for s, p, o in triples.tolist()]
    both += [(o, p + 2, s) for s, p, o in both]
    for epoch in epochs:
        assert sorted(epoch) == sorted(both)
        questions = [(s, p) for s, p, _ in epoch]
        assert len(list(groupby(questions))) == len(set(questions)) < len(questions)
    assert epochs[0] != epochs[1]
    assert {len(batch) for batch in seen} == {8}  # 24 questions in 3 steps


def test_negatives_are_others_in_every_step_and_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DRAWN", 2 * 20)
    trainer = make_trainer(negatives=20)
    seen: list[tuple[int, ...]] = []
    taken = trainer.take_step

    def spy(triples: Tensor, drawn: Tensor | None) -> None:
        assert drawn is not None
        seen.append(tuple(drawn.tolist()))
        taken(triples, drawn)

    monkeypatch.setattr(trainer, "take_step", spy)
    finish(trainer)
    assert len(set(seen)) == len(seen) == 9


def test_what_a_training_yields() -> None:
    events = list(make_trainer(epochs=2).train())
    steps, end = events[:3], events[3]
    assert [(*event,)[:2] for event in steps] == [(1, 3), (2, 3), (3, 3)]
    assert end == EpochEnd(steps[-1].loss)
    assert [type(event) for event in events] == 2 * [
        TrainingStep,
        TrainingStep,
        TrainingStep,
        EpochEnd,
    ]


def test_a_batch_larger_than_train() -> None:
    with pytest.raises(UsageError, match="a batch of 10 is larger than train, which has 9 triples"):
        make_trainer(batch_size=10)
    assert make_trainer(batch_size=9).steps == 1


@pytest.mark.parametrize("loss", LOSSES)
def test_divergence_is_an_error(loss: str) -> None:
    trainer = make_trainer(
        loss=loss, optimizer="sgd", learning_rate=1e18, model="complex", epochs=20
    )
    with pytest.raises(SplimeError, match=r"diverged.*Lower learning_rate \(it is 1e\+18\)"):
        finish(trainer)


def test_divergence_in_the_last_step_is_an_error() -> None:
    values: dict[str, Any] = {"learning_rate": 9e18, "l2": 9e18, "n3": 9e18, "reduction": "sum"}
    trainer = make_trainer(optimizer="sgd", batch_size=9, epochs=1, **values)
    with pytest.raises(SplimeError, match="diverged"):
        finish(trainer)


@pytest.mark.system
@pytest.mark.parametrize(("name", "norm"), CASES)
def test_every_model_learns(name: str, norm: int) -> None:
    loss = "softmax" if MODELS[name].products else "self_adversarial"
    trainer = make_trainer(
        model=name, norm=norm, loss=loss, dimension=8, epochs=60, share="none", negatives=8
    )
    losses = finish(trainer)
    assert losses[-1] < losses[0] / 2
    scorer = ModelScorer(trainer.model)
    s, p, o = torch.from_numpy(TRIPLES).T
    assert scorer.objects(s, p).argmax(1).tolist() == o.tolist()
    assert scorer.subjects(p, o).argmax(1).tolist() == s.tolist()
    assert scorer.predicates(s, o).argmax(1).tolist() == p.tolist()


def test_reciprocal_predicates_are_learned() -> None:
    trainer = make_trainer(loss="softmax", reciprocal=True, dimension=8, epochs=60)
    finish(trainer)
    scorer = ModelScorer(trainer.model, Settings(reciprocal=True))
    s, p, o = torch.from_numpy(TRIPLES).T
    assert scorer.objects(s, p).argmax(1).tolist() == o.tolist()
    assert scorer.subjects(p, o).argmax(1).tolist() == s.tolist()
    assert scorer.predicates(s, o).argmax(1).tolist() == p.tolist()
