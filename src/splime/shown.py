"""What results have in common: they show themselves in a notebook, and become tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from splime.errors import not_installed

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Row = TypeVar("Row")

to_html: Callable[[Any], str] = repr
"""Makes the HTML of a result; `splime/__init__.py` sets it to what `reporting` has for it."""


class Shown:
    """Shows itself in a notebook, by the tables that the terminal has for it."""

    def _repr_html_(self) -> str:
        return to_html(self)


class Tabular:
    """Gives itself as a table: Arrow's, which polars and DuckDB take as it is, or pandas'."""

    @abstractmethod
    def to_table(self) -> pa.Table:
        """As an Arrow table."""

    def to_pandas(self) -> pd.DataFrame:
        """As a data frame of pandas."""
        try:
            import pandas  # noqa: F401
        except ImportError as error:
            raise not_installed("to_pandas()", error) from None
        return self.to_table().to_pandas()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_table().__arrow_c_stream__(requested_schema)


class Rows(Shown, Tabular, Generic[Row]):
    """A result that is a list of rows, from the best to the worst."""

    rows: list[Row]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, position: int) -> Row:
        return self.rows[position]
