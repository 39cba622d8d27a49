"""Predicates as sequences (García-Durán et al., 2018): an LSTM reads a predicate and a date.

TA-TransE and TA-DistMult are TransE and DistMult with what it makes of them.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from splime.embedding.initial import fill_recurrent
from splime.embedding.models.distmult import DistMult
from splime.embedding.models.transe import TransE
from splime.embedding.tables import Lookup, Table, TableMaker
from splime.settings import PREDICATE
from splime.times import Ints

# Digits of years, months, digits of days; then since and until, and the sign of years before 1.
_MONTH, _DAY, _SINCE, _MINUS, _TOKENS = 10, 22, 32, 34, 35


class Sequences(Table):
    """The last state of an LSTM without tanh, after a predicate and the tokens of its time."""

    tokens_of: Tensor

    def __init__(self, predicates: Lookup, tokens: Lookup, tokens_of: Tensor) -> None:
        super().__init__(len(predicates), predicates.width)
        self.predicates, self.tokens = predicates, tokens
        self.register_buffer("tokens_of", tokens_of, persistent=False)
        width, place = self.width, predicates.weight.device
        self.input = nn.Parameter(torch.empty(4 * width, width, device=place))
        self.recurrent = nn.Parameter(torch.empty(4 * width, width, device=place))
        self.bias = nn.Parameter(torch.zeros(4 * width, device=place))

    @classmethod
    def make(cls, tables: TableMaker, width: int) -> Sequences:
        """For the scoped predicates of a graph."""
        predicates = tables.level(PREDICATE, width)
        table = cls(predicates, Lookup(tables.weights(_TOKENS, width)), tokens_of(tables))
        fill_recurrent(tables.generator, table.input, table.recurrent)
        return table

    def parts(self, ids: Tensor) -> list[Tensor]:
        """The one vector that the LSTM makes for each id."""
        tokens = self.tokens(self.tokens_of[ids])
        state = cell = tokens.new_zeros(len(ids), self.width)
        for x in (self.predicates(ids), *tokens.unbind(1)):
            i, f, o, g = (x @ self.input.T + state @ self.recurrent.T + self.bias).chunk(4, dim=-1)
            cell = f.sigmoid() * cell + i.sigmoid() * g
            state = o.sigmoid() * cell
        return [state]


def tokens_of(tables: TableMaker) -> Tensor:
    """The tokens of the time of each scoped predicate; of a bucket, those of its middle."""
    tokens = torch.from_numpy(date_tokens(tables.dates()))[tables.times()]
    if tables.settings.each == "ends":
        scopes = len(tables.static.predicates)
        role = torch.tensor([_SINCE, _SINCE + 1]).repeat_interleave(scopes)
        tokens = torch.cat([role.repeat(len(tokens) // len(role)).unsqueeze(1), tokens], dim=1)
    return tokens


def date_tokens(dates: Ints) -> Ints:
    """Four digits of the year, the month, and two digits of the day, as far as dates go.

    A year before 1 has a minus in the place of its first digit; of longer years the last four
    digits are read, and what is finer than a day is not.

    >>> date_tokens(np.array([[2014, 3, 6]])).tolist(), date_tokens(np.array([[-431]])).tolist()
    ([[2, 0, 1, 4, 12, 22, 28]], [[34, 4, 3, 1]])
    """
    year = np.abs(dates[:, 0])
    columns = [year // 10**place % 10 for place in (3, 2, 1, 0)]
    columns[0] = np.where(dates[:, 0] < 0, _MINUS, columns[0])
    if dates.shape[1] > 1:
        columns.append(_MONTH + dates[:, 1] - 1)
    if dates.shape[1] > 2:
        columns += [_DAY + dates[:, 2] // 10, _DAY + dates[:, 2] % 10]
    return np.stack(columns, axis=1).astype(np.int64)


class TATransE(TransE):
    """f(s, p, o, t) = -‖s + LSTM(p, t) - o‖, with norm 1 or 2; t is read digit by digit."""

    name = "ta-transe"
    cuts = "timestamps"

    predicate_table = Sequences.make


class TADistMult(DistMult):
    """f(s, p, o, t) = ⟨s, LSTM(p, t), o⟩; t is read digit by digit."""

    name = "ta-distmult"
    cuts = "timestamps"
    strong = DistMult.strong | {"optimizer": "adam", "learning_rate": 1e-3, "init": "xavier_normal"}

    predicate_table = Sequences.make
