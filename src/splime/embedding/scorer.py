"""A model as evaluation and questions see it: scores of all entities or predicates, by ids."""

from __future__ import annotations

from torch import Tensor

from splime.embedding.models import Model


class ModelScorer:
    """Scores of a model. With reciprocal predicates subjects are asked for by the inverse."""

    def __init__(self, model: Model, *, reciprocal: bool = False) -> None:
        self.model, self.reciprocal = model, reciprocal
        self.device = model.device
        # The vectors as they are now; autograd keeps nothing of what is made of them.
        self._entities, self._predicates = (
            table.vectors().detach() for table in (model.entities, model.predicates)
        )

    def objects(self, subject: Tensor, predicate: Tensor) -> Tensor:
        """The scores of all entities as the object."""
        query = self.model.object_query(self._entities[subject], self._predicates[predicate])
        return self.model.compare(query, self._entities)

    def subjects(self, predicate: Tensor, object: Tensor) -> Tensor:
        """The scores of all entities as the subject."""
        if self.reciprocal:
            return self.objects(object, predicate + len(self._predicates) // 2)
        query = self.model.subject_query(self._predicates[predicate], self._entities[object])
        return self.model.compare(query, self._entities)

    def predicates(self, subject: Tensor, object: Tensor) -> Tensor:
        """The scores of all predicates; with reciprocals the mean of both directions."""
        model, table = self.model, self._predicates
        vs, vo = self._entities[subject], self._entities[object]
        forth = model.predicate_query(vs, vo)
        if not self.reciprocal:
            return model.compare_predicates(forth, table)
        half = len(table) // 2
        scores = model.compare_predicates(forth, table[:half])
        back = model.predicate_query(vo, vs)
        return (scores + model.compare_predicates(back, table[half:])) / 2
