"""Scores equal PyKEEN's for the same weights.

Two models of PyKEEN 1.11.1 do not do what their own description says, and get a hand (`repair`):
TransH takes the vector that is kept at length 1 for the translation and the other one for the
normal; SimplE compares first vectors with first ones and second with second, which is two DistMult.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from splime.embedding.models import MODELS
from splime.embedding.scorer import ModelScorer
from tests.embedding.formulas import plain_model

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        importlib.util.find_spec("pykeen") is None,
        reason="pykeen is not installed (splime-kg[pykeen])",
    ),
]

ENTITIES, PREDICATES, DIMENSION = 9, 4, 6

# Each of our models with PyKEEN's name of it and the parameters that make it the same formula.
CASES: list[tuple[str, int, str, dict[str, Any]]] = [
    ("transe", 1, "TransE", {"scoring_fct_norm": 1}),
    ("transe", 2, "TransE", {"scoring_fct_norm": 2}),
    ("transh", 1, "TransH", {"scoring_fct_norm": 2, "power_norm": True}),
    ("distmult", 1, "DistMult", {}),
    ("cp", 1, "CP", {"rank": 1}),
    ("simple", 1, "SimplE", {}),
    ("complex", 1, "ComplEx", {}),
    ("rotate", 2, "RotatE", {}),  # Sun et al.'s own code sums moduli; PyKEEN has only this norm
]


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Triples of every entity and predicate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSTOW_HOME", str(tmp_path_factory.mktemp("pykeen")))
        from pykeen.triples import CoreTriplesFactory

        rows = [(i, i % PREDICATES, (i + 1) % ENTITIES) for i in range(ENTITIES)]
        yield CoreTriplesFactory(
            mapped_triples=torch.tensor(rows),
            num_entities=ENTITIES,
            num_relations=PREDICATES,
        )


def repair(peer: Any, name: str) -> None:
    """Let PyKEEN compute the formula of its documentation."""
    if name == "transh":
        normals = next(peer.relation_representations[0].parameters())
        normals.copy_(torch.nn.functional.normalize(normals, dim=-1))
    elif name == "simple":
        peer.interaction._tail_indices = (1, 0)  # what an entity is as an object comes first


def as_ours(tables: list[Tensor]) -> Tensor:
    """PyKEEN's tables of the entities (or predicates) side by side, as one of ours."""
    parts = [table.detach().reshape(len(table), -1) for table in tables]
    if parts[0].is_complex():
        parts = [half for table in parts for half in (table.real, table.imag)]
    return torch.cat(parts, dim=1)


@pytest.mark.parametrize(
    ("name", "norm", "theirs", "options"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES]
)
def test_scores(name: str, norm: int, theirs: str, options: dict[str, Any], factory: Any) -> None:
    from pykeen.models import model_resolver

    peer = model_resolver.make(
        theirs, triples_factory=factory, embedding_dim=DIMENSION, random_seed=5, **options
    ).eval()
    with torch.no_grad():
        # Its first embeddings are small, and some scores near 0: any formula would pass.
        for table in peer.parameters():
            table.mul_(2)
        # As a training step does, so that turns have length 1 and TransE's entities too.
        peer.post_parameter_update()
        repair(peer, name)
        entities = [part(indices=None) for part in peer.entity_representations]
        predicates = [part(indices=None) for part in peer.relation_representations]

    model = plain_model(name, ENTITIES, PREDICATES, DIMENSION, norm=norm)
    with torch.no_grad():
        model.entities.vectors().copy_(as_ours(entities))
        if name == "rotate":
            model.predicates.vectors().copy_(torch.angle(predicates[0].detach()))
        else:
            model.predicates.vectors().copy_(as_ours(predicates))

    generator = np.random.default_rng(3)
    triples = torch.from_numpy(
        np.stack([generator.integers(0, top, 40) for top in (ENTITIES, PREDICATES, ENTITIES)], 1)
    )
    s, p, o = triples.T
    scorer = ModelScorer(model)

    def close(found: Tensor, expected: Tensor) -> None:
        assert float(expected.std()) > 0.05
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)

    with torch.no_grad():
        scores = model.score(
            model.entities.vectors()[s], model.predicates.vectors()[p], model.entities.vectors()[o]
        )
        close(scores, peer.score_hrt(triples).squeeze(1))
        close(scorer.objects(s, p), peer.score_t(triples[:, :2]))
        close(scorer.subjects(p, o), peer.score_h(triples[:, 1:]))
        close(scorer.predicates(s, o), peer.score_r(triples[:, ::2]))


def test_every_model_that_pykeen_has_is_compared() -> None:
    from pykeen.models import model_resolver

    known = {name.lower() for name in model_resolver.lookup_dict}
    assert {case[0] for case in CASES} == {name for name in MODELS if name in known}
