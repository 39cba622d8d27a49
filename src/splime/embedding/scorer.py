"""A model as evaluation and questions see it: scores of all entities or predicates, by ids."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from splime.embedding.models.base import Model
from splime.scoring.scorer import Scorer
from splime.settings import Settings


class ModelScorer(Scorer):
    """Scores of a model. With reciprocal predicates subjects are scored by the inverse.

    Where `each` is ends, predicates have other ids at the ends of facts, behind those at begins;
    with `both_ways` questions are asked with the predicate and its inverse, and the scores added.
    """

    def __init__(self, model: Model, settings: Settings | None = None) -> None:
        settings = Settings() if settings is None else settings
        self.model, self.reciprocal, self.ends = model, settings.reciprocal, settings.each == "ends"
        self._both_ways, self.device = bool(settings.both_ways), model.device
        self.every_timestamp = model.cuts == "timestamps" or settings.shares_times
        if model.time_of is not None:
            self.time_of = model.time_of.numpy(force=True)
        # The vectors as they are now; autograd keeps nothing of what is made of them.
        self._entities = model.entities.vectors().detach()
        self._time, self._moved = -1, self._entities  # the entities that were moved last

    def objects(self, subject: Tensor, predicate: Tensor) -> Tensor:
        """The scores of all entities as the object."""
        forth = self._scores("object", subject, predicate)
        if not self._both_ways:
            return forth
        return forth + self._scores("subject", subject, self._inverse(predicate))

    def subjects(self, predicate: Tensor, object: Tensor) -> Tensor:
        """The scores of all entities as the subject."""
        if not self.reciprocal:
            return self._scores("subject", object, predicate)
        by_inverse = self._scores("object", object, self._inverse(predicate))
        if not self._both_ways:
            return by_inverse
        return self._scores("subject", object, predicate) + by_inverse

    def _inverse(self, predicate: Tensor) -> Tensor:
        return predicate + len(self.model.predicates) // 2

    @torch.no_grad()
    def _scores(self, kind: str, given: Tensor, predicate: Tensor) -> Tensor:
        """The scores of all entities as the object (or subject) beside a given one."""
        scores = self._compare(kind, given, predicate)
        more = self.model.gadget_scores(kind, given, predicate)
        return scores if more is None else scores + more

    def _compare(self, kind: str, given: Tensor, predicate: Tensor) -> Tensor:
        model, predicates = self.model, self.model.predicates(predicate)
        if model.time_of is None:
            query = model.query(kind, self._entities[given], predicates)
            return model.compare(query, self._entities)
        scores: Tensor = predicates.new_empty(len(given), len(self._entities))
        time = model.time_of[predicate]
        for each in time.unique().tolist():
            rows, entities = (time == each).nonzero().squeeze(1), self._at(each)
            query = model.query(kind, entities[given[rows]], predicates[rows])
            scores[rows] = model.compare(query, entities)
        return scores

    def _at(self, time: int) -> Tensor:
        """All entities at a time."""
        if time != self._time:
            at = torch.tensor(time, device=self.device)
            self._moved, self._time = self.model.at(self._entities, at), time
        return self._moved

    @torch.no_grad()
    def predicates(self, subject: Tensor, object: Tensor) -> Tensor:
        """The scores of all predicates; with reciprocals the mean of both directions."""
        table, gadget = self._predicates, self.model.gadget
        half = len(table) // (2 if self.reciprocal else 1)
        scores = self._compare_predicates(subject, object, table[:half])
        if self.reciprocal:
            scores = (scores + self._compare_predicates(object, subject, table[half:])) / 2
        return scores if gadget is None else scores + gadget.all_scopes(subject, object)

    @cached_property
    def _predicates(self) -> Tensor:
        """The vectors of all predicates, which only questions for predicates need."""
        return self.model.predicates.vectors().detach()

    def _compare_predicates(self, subject: Tensor, object: Tensor, table: Tensor) -> Tensor:
        model, entities = self.model, (self._entities[subject], self._entities[object])
        if model.time_of is None:
            return model.compare_predicates(model.predicate_query(*entities), table)
        scores = table.new_empty(len(subject), len(table))
        time_of = model.time_of[: len(table)]  # the inverses are at the same times
        for time in time_of.unique():
            columns = (time_of == time).nonzero().squeeze(1)
            query = model.predicate_query(*(model.at(each, time) for each in entities))
            scores[:, columns] = model.compare_predicates(query, table[columns])
        return scores
