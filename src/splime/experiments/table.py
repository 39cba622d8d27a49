"""A table as text: for the terminal, and for documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from splime.report.tables import escaped, markdown_lines

TITLES = {"wikidata12k": "Wikidata12k", "yago11k": "YAGO11k", "icews14": "ICEWS14"}
"""The datasets as people write them."""


@dataclass(frozen=True)
class Table:
    """A title, columns, rows of text, and what one must know to read it."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    notes: list[str] = field(default_factory=list)
    words: int = 1
    """How many columns hold words; those behind them hold numbers, and stand to the right."""
    dataset: str = ""
    """The one that all rows are of, where no column says it."""
    whole: bool = False
    """Whether the rows are not those that are run, so that all are shown or none."""

    def to_markdown(self) -> str:
        """As Markdown.

        >>> print(Table("", ("method", "MRR"), [("merge", ".358")]).to_markdown())
        | method | MRR |
        |---|--:|
        | merge | .358 |
        <BLANKLINE>
        """
        if not self.rows:
            return "\n".join(f"{escaped(note)}\n" for note in self.notes)
        header, *rows = [[*map(escaped, cells)] for cells in (self.columns, *self.rows)]
        lines = [f"**{self.title}**\n"] if self.title else []
        lines += [*markdown_lines(header, rows, words=self.words), ""]
        for note in self.notes:
            lines += [escaped(note), ""]
        return "\n".join(lines)

    def only(self, texts: Sequence[str]) -> Table:
        """The rows that one of some texts belongs to; their dataset and title contain it.

        >>> rows = [("Vanilla", ".1"), ("Merge, 4", ".2")]
        >>> table = Table("", ("method", "MRR"), rows, dataset="a")
        >>> table.only(["A merge"]).rows
        [('Merge, 4', '.2')]
        """
        wanted = [text.casefold() for text in texts]
        rows = []
        for row in self.rows:
            words = () if self.whole else row[: self.words]
            label = " ".join([self.dataset, *words]).strip().casefold()
            if any(text in label or label in text for text in wanted):
                rows.append(row)
        return replace(self, rows=rows, notes=self.notes if rows else [])


def mrr(value: float | None) -> str:
    """An MRR as the paper writes it, without the leading zero.

    >>> mrr(0.3581), mrr(None)
    ('.358', '–')
    """
    return "–" if value is None else f"{value:.3f}".removeprefix("0")


def signed(value: float) -> str:
    """A difference of MRRs.

    >>> signed(0.0163), signed(-0.0001)
    ('+.016', '.000')
    """
    text = mrr(abs(value))
    return text if text == ".000" else f"{'-' if value < 0 else '+'}{text}"


def percent(share: float | None) -> str:
    """A fraction in percent."""
    return "–" if share is None else f"{100 * share:.1f}"
