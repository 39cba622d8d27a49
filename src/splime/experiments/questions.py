"""The sixteen questions of the paper's qualitative table: which predicate links two entities."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from splime.runs import Run

QUESTIONS = "questions"
"""In the place of a protocol: ask the sixteen questions."""
# As the paper asked: of so many best scoped predicates those that overlap the time.
BEST = 25
SHOWN = 2


class Asked(NamedTuple):
    """A question of the table; names are those of YAGO11k without their brackets."""

    subject: str
    predicate: str
    object: str
    begin: int
    end: int
    transe: str
    """The two first answers that the paper prints for vanilla TransE."""
    splime: str
    """And for the graph split by time, grow 20."""
    in_train: bool = False
    """Whether the fact is in train, although the paper takes all of them to be of test."""

    @property
    def text(self) -> str:
        """The question with its answer, for a table."""
        names = f"{self.subject}, {self.predicate}, {self.object}".replace("_", " ")
        return f"{names}, {self.begin}..{self.end}{' (train)' if self.in_train else ''}"


def answer_questions(run: Run) -> list[list[str]]:
    """The first two predicates of each answer, without brackets."""
    from splime.query import Query

    query = Query(run)
    found = []
    for asked in ASKED:
        subject, object_ = (f"<{name}>" for name in (asked.subject, asked.object))
        last = int(run.graph.timeline.last)
        during = (min(asked.begin, last), min(asked.end, last))
        answers = query.ask(subject, "?", object_, during=during, best=BEST, limit=SHOWN)
        found.append([answer.name.strip("<>") for answer in answers])
    return found


_BORN, _DIED, _MARRIED = "wasBornIn", "diedIn", "isMarriedTo"
_WORKS, _STUDIED = "worksAt", "graduatedFrom"
_ADELHEID, _EDMOND = "Adelheid_von_Rothschild", "Edmond_James_de_Rothschild"
_BOULOGNE = "Boulogne-Billancourt"
ASKED = tuple(
    Asked(*row)
    for row in (
        ("Gordon_Carroll", _BORN, "Baltimore", 1928, 1928,
         "wasBornIn, diedIn", "wasBornIn, diedIn"),
        ("Sanders_Anne_Laubenthal", _DIED, "Washington,_D.C.", 2002, 2002,
         "diedIn, wasBornIn", "diedIn, isMarriedTo"),
        ("Eugene_G._Sander", _STUDIED, "Cornell_University", 1959, 1965,
         "worksAt, graduatedFrom", "worksAt, graduatedFrom"),
        ("Ernesto_Maceda", "isAffiliatedTo", "Nacionalista_Party", 1971, 1987,
         "isAffiliatedTo, isMarriedTo", "isAffiliatedTo, isMarriedTo"),
        (_ADELHEID, _MARRIED, _EDMOND, 1877, 2020, "isMarriedTo, wasBornIn", "isMarriedTo, owns"),
        (_ADELHEID, _DIED, "Paris", 1935, 1935, "diedIn, wasBornIn", "diedIn, wasBornIn", True),
        (_EDMOND, _BORN, _BOULOGNE, 1845, 1845, "wasBornIn, diedIn", "wasBornIn, diedIn", True),
        (_EDMOND, _DIED, _BOULOGNE, 1934, 1934, "wasBornIn, diedIn", "diedIn, wasBornIn", True),
        ("Vilhelm_Aubert", _WORKS, "University_of_Oslo", 1954, 1988,
         "worksAt, graduatedFrom", "worksAt, graduatedFrom", True),
        ("Marie_Curie", _MARRIED, "Pierre_Curie", 1859, 1906,
         "isMarriedTo, created", "isMarriedTo, created", True),
        ("Marie_Curie", "hasWonPrize", "Willard_Gibbs_Award", 1921, 1921,
         "hasWonPrize, wasBornIn", "hasWonPrize, isMarriedTo"),
        ("Marie_Curie", _BORN, "Warsaw", 1867, 1867,
         "wasBornIn, diedIn", "wasBornIn, diedIn", True),
        ("Pierre_Curie", _BORN, "Paris", 1859, 1859, "diedIn, wasBornIn", "wasBornIn, diedIn"),
        ("Pierre_Curie", _DIED, "Paris", 1906, 1906, "diedIn, wasBornIn", "wasBornIn, diedIn"),
        ("King-Sun_Fu", _WORKS, "Massachusetts_Institute_of_Technology", 1961, 2020,
         "worksAt, graduatedFrom", "worksAt, graduatedFrom"),
        ("King-Sun_Fu", _STUDIED, "University_of_Toronto", 1955, 2020,
         "worksAt, graduatedFrom", "worksAt, graduatedFrom"),
    )
)  # fmt: skip
