"""What training makes small: the loss of a batch, and its gradients."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, embedding

from splime.embedding.losses import LEFT_OUT, LOSSES, SOFTMAX, check_loss, softmax_loss
from splime.embedding.models import Model
from splime.embedding.negatives import Known, Negatives
from splime.embedding.penalties import size_penalty, smoothness
from splime.embedding.settings import Settings

# A batch is worked off in parts whose largest tensors have about this many numbers, so that memory
# is bounded and, on a processor, what is written is still in the cache when it is read.
_PART = {"cpu": 1 << 22, "cuda": 1 << 28}


class Objective:
    """The loss of a batch of triples; `backward` adds its gradients to the model's tables."""

    def __init__(
        self,
        model: Model,
        settings: Settings,
        triples: Tensor,
        follows: Tensor | None = None,
    ) -> None:
        check_loss(settings.loss)
        self.model, self.settings, self.follows = model, settings, follows
        self.negatives = Negatives(len(model.entities), settings)
        sampled = settings.loss != SOFTMAX
        self.known = None
        if settings.avoid_known and sampled:
            asked = torch.stack(self._questions(triples), dim=1)
            self.known = Known(asked, len(model.entities), len(model.predicates))
        # Adagrad and SGD do nothing where there is no gradient, so tables of which a batch touches
        # a small part need not be gone through as a whole. Adam does, and must; and a GPU has to
        # wait for the number of different entities, which a recorded step cannot.
        pools = 1 if self.negatives.shared else settings.batch_size
        touched = 2 * settings.batch_size + pools * settings.negatives
        self.sparse = (
            sampled
            and settings.optimizer != "adam"
            and len(model.entities) > 8 * touched
            and not model.entities.is_cuda
        )
        checks = torch.sparse.check_sparse_tensor_invariants
        if self.sparse and not checks.is_enabled():
            checks.disable()  # it is so anyway, but said aloud Adagrad gives no warning

    def examples(self, triples: Tensor) -> Tensor:
        """The rows that an epoch goes through: the triples, or with softmax their questions.

        Rows of the same question stand together, so that a batch scores it once.
        """
        if self.settings.loss != SOFTMAX:
            return triples
        s, p, o = self._questions(triples)
        return torch.stack([s, p, o], dim=1)[self.question(s, p).argsort(stable=True)]

    def question(self, s: Tensor, p: Tensor) -> Tensor:
        """A number for each question `(s, p, ?)`."""
        return s * len(self.model.predicates) + p

    def backward(self, triples: Tensor, drawn: Tensor | None) -> Tensor:
        """The loss of some examples `(s, p, o)` with their negatives; gradients are added."""
        both = self.settings.loss == SOFTMAX and self.settings.reciprocal
        positives = len(triples) / (2 if both else 1)
        scale = 1 / positives if self.settings.reduction == "mean" else 1.0
        total = None
        size = self._part_size(len(triples))
        for start in range(0, len(triples), size):
            part = triples[start : start + size]
            own = drawn if drawn is None or drawn.dim() == 1 else drawn[start : start + size]
            loss = self._loss(part, own)
            if scale != 1:
                loss = scale * loss
            loss.backward()
            total = loss.detach() if total is None else total + loss.detach()
        if total is None:
            raise ValueError("a batch has at least one triple")
        if self.follows is not None and self.settings.smooth:
            vectors = self.model.predicate_vectors(self.model.predicates)
            loss = self.settings.smooth * smoothness(vectors, self.follows)
            loss.backward()
            total = total + loss.detach()
        return total

    def _part_size(self, positives: int) -> int:
        """How many positives are worked on at once."""
        width = self.model.entities.shape[1]
        if self.settings.loss == SOFTMAX:
            if self.model.products:
                return positives  # the loss has blocks of its own
            each = len(self.model.entities)
        elif self.negatives.shared:
            return positives
        else:
            each = self.settings.negatives * width
        return max(1, _PART[self.model.entities.device.type] // each)

    def _loss(self, triples: Tensor, drawn: Tensor | None) -> Tensor:
        if self.settings.loss == SOFTMAX:
            return self._against_all(*triples.T)
        if drawn is None:
            raise ValueError(f"the loss {self.settings.loss} needs negatives")
        if self.settings.reciprocal and drawn.dim() == 2:
            drawn = torch.cat([drawn, drawn])
        return self._against_negatives(*self._questions(triples), drawn)

    def _questions(self, triples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Subjects, predicates and objects; with reciprocal predicates in both directions."""
        s, p, o = triples.T
        if not self.settings.reciprocal:
            return s, p, o
        # The inverse of predicate p is p + half of the table: (o, p⁻¹, ?) asks for subjects.
        inverse = p + len(self.model.predicates) // 2
        return torch.cat([s, o]), torch.cat([p, inverse]), torch.cat([o, s])

    def _against_all(self, s: Tensor, p: Tensor, o: Tensor) -> Tensor:
        """1-vs-all: each question has one answer among all entities."""
        model = self.model
        vs, vo = self._entities(s, o)
        vp = embedding(p, model.predicates)
        parts = self._sizes(vs, vp, vo)
        if self.settings.corrupt != "subject":
            row, which = self._distinct(s, p)
            query = (
                model.object_query(vs, vp) if row is None else model.object_query(vs[row], vp[row])
            )
            parts.append(self._cross_entropy(query, o, which))
        if self.settings.corrupt != "object" and not self.settings.reciprocal:
            parts.append(self._cross_entropy(model.subject_query(vp, vo), s))
        return _total(parts)

    def _distinct(self, s: Tensor, p: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """The first row of each question, and the question of each row, where that pays.

        A recorded step on a GPU has fixed sizes, and distances have a loss without questions.
        """
        if s.is_cuda or not self.model.products:
            return None, None
        _, which, count = torch.unique_consecutive(
            self.question(s, p), return_inverse=True, return_counts=True
        )
        return count.cumsum(0) - count, which

    def _cross_entropy(self, query: Tensor, target: Tensor, which: Tensor | None = None) -> Tensor:
        if self.model.products:
            return softmax_loss(query, self.model.entities, target, which)
        scores = self.model.compare(query, self.model.entities)
        return cross_entropy(scores, target, reduction="sum")

    def _against_negatives(self, s: Tensor, p: Tensor, o: Tensor, drawn: Tensor) -> Tensor:
        model = self.model
        vs, vo, vn = self._entities(s, o, drawn)
        vp = embedding(p, model.predicates)
        of_objects, of_subjects = self.negatives.split(drawn)
        as_objects, as_subjects = vn.split(self.negatives.counts, dim=-2)
        scores = []
        if of_objects.shape[-1]:
            found = model.compare(model.object_query(vs, vp), as_objects)
            if self.known is not None:
                found = found.masked_fill(self.known.objects(s, p, of_objects), LEFT_OUT)
            scores.append(found)
        if of_subjects.shape[-1]:
            found = model.compare(model.subject_query(vp, vo), as_subjects)
            if self.known is not None:
                found = found.masked_fill(self.known.subjects(p, o, of_subjects), LEFT_OUT)
            scores.append(found)
        negative = scores[0] if len(scores) == 1 else torch.cat(scores, dim=1)
        loss = LOSSES[self.settings.loss]
        if loss is None:
            raise ValueError(f"the loss {self.settings.loss} takes no negatives")
        found = loss(model.score(vs, vp, vo), negative, self.settings).sum()
        return _total([found, *self._sizes(vs, vp, vo)])

    def _entities(self, *ids: Tensor) -> tuple[Tensor, ...]:
        """Embeddings of several lists of entities, looked up together: their gradient is one."""
        flat = torch.cat([part.reshape(-1) for part in ids])
        found = embedding(flat, self.model.entities, sparse=self.sparse)
        parts = found.split([part.numel() for part in ids])
        return tuple(v.view(*i.shape, -1) for v, i in zip(parts, ids, strict=True))

    def _sizes(self, vs: Tensor, vp: Tensor, vo: Tensor) -> list[Tensor]:
        """The penalties of a batch's embeddings, those that are asked for."""
        vectors = [vs, self.model.predicate_vectors(vp), vo]
        weights = ((self.settings.l2, 2), (self.settings.n3, 3))
        return [w * size_penalty(self.model, vectors, power) for w, power in weights if w]


def _total(parts: list[Tensor]) -> Tensor:
    """The sum of one or more numbers."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
