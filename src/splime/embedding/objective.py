"""What training makes small: the loss of a batch with its penalties, and the gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import torch
from torch import Tensor

from splime import collective
from splime.embedding.losses import LEFT_OUT, LOSSES
from splime.embedding.models.base import Model
from splime.embedding.negatives import Known, Negatives
from splime.embedding.tables import Lookup, added
from splime.settings import Settings

# A batch is worked off in parts whose largest tensors have about this many numbers, so that memory
# is bounded and, on a processor, what is written is still in the cache when it is read.
_PART = {"cpu": 1 << 22, "cuda": 1 << 28}


Parts: TypeAlias = list[Tensor]
"""Vectors as the tensors that they are the sum of."""


class Objective:
    """The loss of a batch of triples; `backward` adds its gradients to the model's tables.

    Each of several workers takes its share of the batch, so losses and gradients have to be added
    over all of them.
    """

    def __init__(self, model: Model, settings: Settings, triples: Tensor) -> None:
        self.model, self.settings, self.loss = model, settings, LOSSES[settings.loss]
        self.negatives = Negatives(len(model.entities), settings)
        self.sampled = self.loss.against == "sampled"
        self.steps_taken = torch.zeros((), dtype=torch.int64, device=model.device)
        """How many steps a training has taken, for what is random in one."""
        self.known = None
        if settings.avoid_known and self.sampled:
            queries = torch.stack(self._queries(triples), dim=1)
            self.known = Known(queries, len(model.entities), len(model.predicates))
        # Adagrad and SGD do nothing where there is no gradient, so tables of which a batch touches
        # a small part need not be gone through as a whole. Adam does, and must; and a GPU has to
        # wait for the number of different entities, which a recorded step cannot.
        pools = 1 if self.negatives.shared else settings.batch_size
        touched = 2 * settings.batch_size + pools * settings.negatives
        if (
            isinstance(model.entities, Lookup)
            and self.sampled
            and settings.optimizer != "adam"
            and len(model.entities) > 8 * touched
            and model.device.type != "cuda"
        ):
            model.entities.sparse = True
            checks = torch.sparse.check_sparse_tensor_invariants
            if not checks.is_enabled():
                checks.disable()  # already off; saying so silences Adagrad

    def examples(self, triples: Tensor) -> Tensor:
        """The rows that an epoch goes through: the triples, or against all entities their queries.

        Rows of the same query stand together, so that a batch scores it once.
        """
        if self.sampled:
            return triples
        s, p, o = self._queries(triples)
        return torch.stack([s, p, o], dim=1)[self.query_numbers(s, p).argsort(stable=True)]

    def query_numbers(self, s: Tensor, p: Tensor) -> Tensor:
        """A number for each query `(s, p, ?)`; where entities move in time, that of its time."""
        if self.model.time_of is not None:
            return self.model.time_of[p]
        return s * len(self.model.predicates) + p

    def backward(self, triples: Tensor, drawn: Tensor | None) -> Tensor:
        """The loss of some examples `(s, p, o)` with their negatives; gradients are added."""
        both = not self.sampled and self.settings.reciprocal
        positives = len(triples) / (2 if both else 1)
        scale = 1 / positives if self.settings.reduction == "mean" else 1.0
        losses = []
        share = collective.share(len(triples))
        size = self._part_size(share.stop - share.start)
        for start in range(share.start, share.stop, size):
            rows = slice(start, min(start + size, share.stop))
            beside = drawn if drawn is None or drawn.dim() == 1 else drawn[rows]
            loss = scale * self._loss(triples[rows], beside)
            loss.backward()
            losses.append(loss.detach())
        if self.settings.smooth:
            for lookup in self.model.predicates.lookups():
                if lookup.follows is not None:
                    weight = self.settings.smooth / collective.size()
                    cubes = self.settings.smooth_cubes
                    loss = weight * smoothness(self.model, lookup, lookup.follows, cubes=cubes)
                    if loss.requires_grad:  # the vectors do not stay as they are
                        loss.backward()
                    losses.append(loss.detach())
        return added(losses)

    def _part_size(self, positives: int) -> int:
        """How many positives are worked on at once."""
        if not self.sampled:
            if self._short_way:
                return positives  # the loss has separate blocks
            width = len(self.model.entities)
        elif self.negatives.shared and self.model.time_of is None and not self.settings.dropout:
            return positives
        else:
            width = self.settings.negatives * self.model.entities.width
        return max(1, _PART[self.model.device.type] // width)

    @property
    def _short_way(self) -> bool:
        products = self.model.products and self.loss.of_products is not None
        return products and (self.model.gadget is None or not bool(self.model.gadget.strength))

    def _loss(self, triples: Tensor, drawn: Tensor | None) -> Tensor:
        if self.sampled and drawn is None:
            raise ValueError(f"the loss {self.settings.loss} needs negatives")
        if drawn is not None and drawn.dim() == 2 and self.settings.reciprocal:
            drawn = torch.cat([drawn, drawn])
        s, p, o = self._queries(triples) if self.sampled else triples.T

        def of(p: Tensor) -> Tensor:
            if drawn is None:
                return self._against_all(s, p, o)
            return self._against_negatives(self.model.predicates.parts(p), s, p, o, drawn)

        loss = of(p)
        if self.model.previous is not None:
            loss = loss + self.model.auxiliary * of(self.model.previous[p])
        return loss

    def _queries(self, triples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Subjects, predicates and objects; with reciprocal predicates in both directions."""
        s, p, o = triples.T
        if not self.settings.reciprocal:
            return s, p, o
        # The inverse of predicate p is p + half of the table: (o, p⁻¹, ?) asks for subjects.
        inverse = p + len(self.model.predicates) // 2
        return torch.cat([s, o]), torch.cat([p, inverse]), torch.cat([o, s])

    def _against_all(self, s: Tensor, p: Tensor, o: Tensor) -> Tensor:
        """1-vs-all: each query has one answer among all entities."""
        model = self.model
        time = None if model.time_of is None else model.time_of[p]
        subjects, objects = (self._at(vectors, time) for vectors in self._entities(s, o))
        predicates = model.predicates.parts(p)
        vs, vp, vo = added(subjects), added(predicates), added(objects)
        terms = self._sizes(subjects, predicates, objects)
        asked = [("object", s, vs, o), ("subject", o, vo, s)]
        for kind, given, known, target in asked[:1] if self.settings.reciprocal else asked:
            if self.settings.corrupt in ("both", kind):
                rows, which = self._distinct(s, p) if kind == "object" else (slice(None), None)
                query = model.query(kind, known[rows], vp[rows])
                more = model.gadget_scores(kind, given, p, target)
                for at, entities in self._moved(time):
                    terms.append(self._all_of(query[at], entities, target[at], which, more))
        return added(terms)

    def _at(self, parts: Parts, time: Tensor | None) -> Parts:
        """Entities as they are at times, where they move."""
        return parts if time is None else [self.model.at(part, time) for part in parts]

    def _distinct(self, s: Tensor, p: Tensor) -> tuple[Tensor | slice, Tensor | None]:
        """The first row of each query, and the query of each row, where that pays.

        A recorded step on a GPU has fixed sizes, and only the short way takes several answers.
        """
        if s.is_cuda or not self._short_way or self.model.time_of is not None:
            return slice(None), None
        _, which, count = torch.unique_consecutive(
            self.query_numbers(s, p), return_inverse=True, return_counts=True
        )
        return count.cumsum(0) - count, which

    def _moved(self, time: Tensor | None) -> Iterator[tuple[Tensor | slice, Tensor]]:
        """Rows, and all entities as they are for them: at each time, where they move."""
        entities = self.model.entities.vectors()
        if time is None:
            yield slice(None), entities
            return
        for timestamp in time.unique():
            yield (time == timestamp).nonzero().squeeze(1), self.model.at(entities, timestamp)

    def _all_of(
        self,
        query: Tensor,
        entities: Tensor,
        target: Tensor,
        which: Tensor | None,
        more: Tensor | None,
    ) -> Tensor:
        """The loss of queries among all entities; `which` has the query of each target."""
        if self._short_way:
            assert self.loss.of_products is not None
            # What a query has behind the vector adds the same to all scores, and does not count.
            width = entities.shape[1]
            return self.loss.of_products(query[:, :width], entities, target, which)
        scores = self.model.compare(query, entities)
        scores = scores if more is None else scores + more
        return self.loss.compute(scores, target, self.settings).sum()

    def compile(self) -> None:
        """Let torch fuse what is done with negatives.

        Where each triple's are moved to its time, these are dozens of passes over them.
        """
        compiled = torch.compile(self._against_negatives, dynamic=False)
        self._against_negatives = compiled  # type: ignore[method-assign]

    def _against_negatives(
        self, predicates: Parts, s: Tensor, p: Tensor, o: Tensor, drawn: Tensor
    ) -> Tensor:
        model = self.model
        subjects, objects, negatives = self._entities(s, o, drawn)
        if model.time_of is not None:
            time = model.time_of[p]
            subjects, objects = self._at(subjects, time), self._at(objects, time)
            negatives = self._at(negatives, time.unsqueeze(1))
        vs, vp, vo, vn = map(added, (subjects, predicates, objects, negatives))
        if self.settings.dropout:
            vs, vp, vo, vn = self._dropped(vs, vp, vo, vn)
        scores = []
        sides = (("object", s, vs), ("subject", o, vo))
        split = drawn.split(self.negatives.counts, -1), vn.split(self.negatives.counts, -2)
        for (kind, given, known), ids, candidates in zip(sides, *split, strict=True):
            if ids.shape[-1]:
                of_side = model.compare(model.query(kind, known, vp), candidates)
                if self.known is not None:
                    among = self.known.among(kind, given, p, ids)
                    of_side = of_side.masked_fill(among, LEFT_OUT)
                scores.append(of_side)
        negative = scores[0] if len(scores) == 1 else torch.cat(scores, dim=1)
        loss = self.loss.compute(model.score(vs, vp, vo), negative, self.settings).sum()
        return added([loss, *self._sizes(subjects, predicates, objects)])

    def _dropped(self, s: Tensor, p: Tensor, o: Tensor, negatives: Tensor) -> tuple[Tensor, ...]:
        """Vectors without some coordinates, in each row the same of all.

        A product of three is as if it had lost them, a difference likewise. Which ones follows from
        the seed and the step alone, as a recorded step needs it.
        """
        share, width = self.settings.dropout or 0.0, self.settings.dimension
        kept = 1 / (1 - share)
        cells = torch.arange(len(s) * width, device=s.device)
        seed = (self.settings.seed << 20) + (collective.rank() << 44)  # other ones for each worker
        mixed = scrambled(cells + scrambled(self.steps_taken + seed))
        mask = (mixed.view(-1, width) & 0xFFFF) >= share * 0x10000
        scale = mask * (kept ** (1 / 3) if self.model.products else kept)

        def drop(x: Tensor) -> Tensor:
            factor = scale.repeat(1, x.shape[-1] // width).to(x.dtype)
            return x * (factor.unsqueeze(1) if x.dim() == 3 else factor)

        # Negatives that the batch shares lose other coordinates beside each positive.
        beside = negatives if negatives.dim() == 3 else negatives.unsqueeze(0)
        return drop(s), drop(p), drop(o), drop(beside)

    def _entities(self, *ids: Tensor) -> tuple[Parts, ...]:
        """Parts of several lists of entities, looked up together: their gradient is one."""
        flat = torch.cat([column.reshape(-1) for column in ids])
        sizes = [column.numel() for column in ids]
        split = [part.split(sizes) for part in self.model.entities.parts(flat)]
        return tuple(
            [part.view(*column.shape, -1) for part in parts]
            for column, parts in zip(ids, zip(*split, strict=True), strict=True)
        )

    def _sizes(self, subjects: Parts, predicates: Parts, objects: Parts) -> list[Tensor]:
        """The penalties of a batch's vectors, as set."""
        terms = [
            weight * size_penalty(self.model, subjects, predicates, objects, power)
            for weight, power in ((self.settings.l2, 2), (self.settings.n3, 3))
            if weight
        ]
        if self.settings.unit == "penalty":
            vectors = (*subjects, *predicates, *objects)
            terms += [torch.relu(x.square().sum(-1) - 1).sum() for x in vectors]
        return terms


def scrambled(numbers: Tensor) -> Tensor:
    """Integers mixed so that neighbours have nothing in common (the finaliser of MurmurHash3)."""
    mixed = numbers * -0x61C8864680B583EB
    for factor in (-0xAE502812AA7333, -0x3B314601E57A13AD):
        mixed = (mixed ^ ((mixed >> 33) & 0x7FFFFFFF)) * factor
    return mixed ^ ((mixed >> 33) & 0x7FFFFFFF)


def size_penalty(
    model: Model, subjects: Parts, predicates: Parts, objects: Parts, power: int
) -> Tensor:
    """The sum of the coordinates' sizes to a power: L2 is power 2, N3 (Lacroix et al.) power 3."""
    turned = [model.predicate_vectors(part) for part in predicates]
    weighed = ((model.entity_penalty, subjects), (1.0, turned), (model.entity_penalty, objects))
    sizes = [
        share * model.sizes(part).pow(power).sum() for share, parts in weighed for part in parts
    ]
    return torch.stack(sizes).sum()


def smoothness(
    model: Model, lookup: Lookup, follows: Tensor, *, cubes: bool | None = False
) -> Tensor:
    """The mean squared distance between rows that are neighbours in time, but for their drift.

    `follows` says for every row but the first whether it comes next after the row above. With
    `cubes`, these of the coordinates' sizes instead of squares.
    """
    vectors = model.predicate_vectors(lookup.weight)
    apart = vectors[1:] - vectors[:-1]
    if lookup.drift is not None:
        apart = apart - model.predicate_vectors(lookup.drift)
    steps = (model.sizes(apart).pow(3) if cubes else apart.square()).sum(1)
    return (steps * follows).sum() / follows.sum().clamp_min(1)
