"""What the counts of a graph say: rules over facts in relative time, which can be checked by hand.

A rule is about questions for the object (X playsFor ?) or the subject (? playsFor X) of facts of a
predicate. It says how often a known fact of X in a relative scope, or two in a row, ends at the
answer; the fact that is asked for is left out each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

import numpy as np

from splime.arrays import changes
from splime.errors import UsageError, check_kind, visible
from splime.graph import Fact
from splime.paths.chains import (
    FACTS,
    QUESTIONS,
    Counted,
    Ways,
    count_chains,
    count_pairs,
    find_ways,
    thinned,
)
from splime.paths.counted import BINS
from splime.paths.counting import (
    BEGINS,
    ENDS,
    FactCounts,
    Questions,
    facts_by_entity,
    sample_questions,
)
from splime.paths.relative import IntervalScopes, growing_scopes
from splime.paths.scorer import relative_scopes
from splime.progress import Progress, silent
from splime.runs import Run
from splime.runs.graph_run import open_source
from splime.shown import Shown, Tabular

if TYPE_CHECKING:
    import pyarrow as pa

    from splime.keywords import Reading

Asked = Literal["object", "subject"]
ASKED: tuple[Asked, ...] = ("object", "subject")
LIMIT, FEW = 10, 3
"""How many rules of one predicate are given, and of each where there are several."""
_CURVES = 6
_Z, _SURE = 1.96, 4.0
"""Of an interval of 95 %; and of chains, of which there are so many that some hold by chance."""


class Pattern(NamedTuple):
    """A known fact as a rule has it: X is the given entity, ? the answer, Z one between them."""

    subject: str
    predicate: str
    object: str
    scope: str
    """How its time relates to the time asked about."""

    @property
    def fact(self) -> str:
        """Without the time."""
        return " ".join(self[:3])

    def __str__(self) -> str:
        return f"{self.fact} ({self.scope})"


class Example(NamedTuple):
    """A fact that is asked for, and the known ones that lead to it."""

    asked: Fact
    known: tuple[Fact, ...]


@dataclass(frozen=True)
class Rule:
    """How often known facts in relative scopes end at the answer."""

    predicate: str
    asked: Asked
    facts: tuple[Pattern, ...]
    """One, or two in a row."""
    begins: int
    """Such facts of X in all questions."""
    support: int
    """Those of them that end at the answer."""
    pairs: int
    """The different pairs of X and answer that these are of."""
    examples: tuple[Example, ...] = ()

    @property
    def confidence(self) -> float:
        """The share of such facts that end at the answer."""
        return self.support / self.begins

    @property
    def at_least(self) -> float:
        """The lower end of the confidence's interval, which favours support: the best is first.

        It is Wilson's, of 95 %, with as many cases as there are pairs: facts repeat themselves.

        >>> few, many = (Rule("p", "object", (), 100, 50, pairs) for pairs in (5, 50))
        >>> few.confidence == many.confidence, round(few.at_least, 3), round(many.at_least, 3)
        (True, 0.237, 0.404)
        """
        return float(interval(self.begins, self.support, self.pairs)[0])

    @property
    def question(self) -> str:
        """What is asked."""
        return question_text(self.predicate, self.asked)

    def __str__(self) -> str:
        known = ", ".join(map(str, self.facts))
        share = f"{self.confidence:.0%}".replace("%", " %")
        return visible(f"{known} ⇒ {self.question}: {share} of {self.begins:,}")


class Curve(NamedTuple):
    """How often facts of one predicate end at the answer, by their distance in time."""

    question: str
    fact: str
    begins: tuple[int, ...]
    """From long before over the same time to long after, by `Rules.edges`."""
    ends: tuple[int, ...]
    pairs: tuple[int, ...]

    def confidence(self, least: int = 1) -> tuple[Any, Any, Any]:
        """Shares, and the ends of their intervals; NaN where fewer facts begin."""
        begins, ends, pairs = (np.array(column, float) for column in self[2:])
        begins[begins < max(least, 1)] = np.nan
        return ends / begins, *interval(begins, ends, pairs)


@dataclass(frozen=True)
class Rules(Shown, Tabular):
    """Rules of a graph: by predicate and question, those of one fact before chains, best first."""

    source: str
    rules: tuple[Rule, ...]
    remarks: tuple[str, ...]
    granularity: str
    edges: tuple[int, ...]
    """The first of the distances in time that belong together."""
    predicate: str | None = None
    """The only one, if one was named."""
    curves: tuple[Curve, ...] = ()
    """Of the predicates that say most, where one was named."""

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __getitem__(self, position: int) -> Rule:
        return self.rules[position]

    def __repr__(self) -> str:
        return visible("\n".join([*map(str, self.rules), *self.remarks]))

    def groups(self) -> list[list[Rule]]:
        """The rules of each question."""
        found: dict[str, list[Rule]] = {}
        for rule in self.rules:
            found.setdefault(f"{rule.asked} {rule.predicate}", []).append(rule)
        return [*found.values()]

    def to_table(self) -> pa.Table:
        """As an Arrow table, a row for each rule."""
        import pyarrow as pa

        rows = []
        for rule in self.rules:
            (first, *more), values = rule.facts, _values(rule)
            second = more[0] if more else None
            known = {"fact": first.fact, "scope": first.scope}
            then = {"then": second and second.fact, "then_scope": second and second.scope}
            rows.append({**values, **known, **then})
        texts = ("predicate", "asked", "fact", "scope", "then", "then_scope")
        counts, shares = ("support", "begins", "pairs"), ("confidence", "at_least")
        schema = [(name, pa.string()) for name in texts]
        schema += [(name, pa.int64()) for name in counts]
        schema += [(name, pa.float64()) for name in shares]
        return pa.Table.from_pylist(rows, schema=pa.schema(schema))

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "source": self.source,
            "granularity": self.granularity,
            "edges": list(self.edges),
            "rules": [
                {
                    **_values(rule),
                    "facts": [pattern._asdict() for pattern in rule.facts],
                    "examples": [
                        {"asked": asked._asdict(), "known": [fact._asdict() for fact in known]}
                        for asked, known in rule.examples
                    ],
                }
                for rule in self.rules
            ],
            "curves": [curve._asdict() for curve in self.curves],
            "remarks": list(self.remarks),
        }


def _values(rule: Rule) -> dict[str, Any]:
    names = ("predicate", "asked", "support", "begins", "pairs", "confidence", "at_least")
    return {name: getattr(rule, name) for name in names}


def question_text(predicate: str, asked: Asked) -> str:
    """A question about a predicate.

    >>> question_text("playsFor", "subject")
    '? playsFor X'
    """
    return f"X {predicate} ?" if asked == "object" else f"? {predicate} X"


def interval(begins: Any, ends: Any, pairs: Any, z: float = _Z) -> tuple[Any, Any]:
    """Wilson's interval of ends / begins, for as many cases of success as there are pairs.

    Of arrays, too. Where nothing ends, there are as many cases as begin.
    """
    share, cases = ends / begins, np.where(ends > 0, begins * pairs / np.maximum(ends, 1), begins)
    more = z * z / cases
    middle = (share + more / 2) / (1 + more)
    half = np.sqrt(share * (1 - share) * more + more * more / 4) / (1 + more)
    return middle - half, middle + half


def rules(
    source: Any,
    predicate: str | None = None,
    *,
    support: int = 5,
    limit: int | None = None,
    examples: int = 0,
    progress: Progress = silent,
    **reading: Unpack[Reading],
) -> Rules:
    """What the counts of a graph say about its predicates, or one of them, as rules.

    The confidence of a rule is a share of facts: of those of its kind and time at the given entity
    of a question, how many end at the answer. Each question is made of a fact of the graph (those
    of train, if it has splits), and that fact itself is left out.

    Args:
        source: a graph, a file, the name of a dataset, or a run of a model that answers from facts.
        predicate: which one is asked about; only then chains of two facts are counted. Default: a
            few rules of every predicate.
        support: how many facts end at answers at least.
        limit: how many rules of a kind for a question. Default: 10, and 3 where no predicate is
            named.
        examples: how many examples each rule has at most.
        progress: called after each predicate.
        **reading: how to read the facts, as `splime.load` has it.

    >>> import splime
    >>> found = splime.rules("demo", "wonElection", limit=1)
    >>> print(found[0])
    X holdsOffice ? (same begin) ⇒ X wonElection ?: 100 % of ...
    """
    for name, number, least in (
        ("support", support, 1), ("limit", limit, 1), ("examples", examples, 0),
    ):  # fmt: skip
        check_kind(name, number, int | None if name == "limit" else int)
        if number is not None and number < least:
            raise UsageError(f"{name} is a number from {least} on, not {number}")
    run = open_source(source, device="cpu", **reading)
    if not run.reads_facts:
        raise UsageError(
            f"{run.path}: rules are counted from facts, which this model does not answer from; name"
            " the file or dataset with its facts instead"
        )
    counter = _Counter(run, predicate)
    limit = limit or (FEW if predicate is None else LIMIT)
    found: list[Rule] = []
    for done, number in enumerate(counter.wanted):
        progress("counting", done, len(counter.wanted))
        for asked in ASKED:
            found += counter.rules(number, asked, support=support, limit=limit, examples=examples)
    return Rules(
        run.graph.name or str(run.path),
        tuple(found),
        tuple(counter.remarks(support, bool(found))),
        counter.relative.granularity,
        counter.relative.edges,
        predicate,
        tuple(counter.curves),
    )


class _Counter:
    """The counts of a graph, of all its predicates or of one."""

    def __init__(self, run: Run, predicate: str | None) -> None:
        self.graph, self.known, self.relative = run.graph, run.graph.train, _relative(run)
        self.predicates, self.kinds = len(self.graph.predicates), len(self.relative)
        frequent, counts = np.unique(self.known.predicate, return_counts=True)
        self.wanted: list[int] = frequent[np.argsort(-counts, kind="stable")].tolist()
        """The predicates that are asked about."""
        self.about = None if predicate is None else self.graph.predicates.id(predicate)
        if self.about is not None:
            if self.about not in self.wanted:
                raise UsageError(f"train has no fact of {predicate}: there is nothing to count")
            self.wanted = [self.about]
        entities, whole = len(self.graph.entities), (self.predicates, self.relative)
        self.by_entity = facts_by_entity(self.known, entities, self.predicates)
        self.counts = FactCounts.of(self.known, entities, *whole, about=self.about)
        # The same ones that were counted.
        random = np.random.default_rng(0)
        self.questions = sample_questions(
            self.known, self.by_entity, *whole, random, about=self.about
        )
        ends = np.concatenate([self.known.subject, self.known.object])
        self.number = np.argsort(ends, kind="stable") % max(len(self.known), 1)
        """Of each fact of `by_entity`."""
        self.curves: list[Curve] = []

    def rules(
        self, predicate: int, asked: Asked, *, support: int, limit: int, examples: int
    ) -> Iterator[Rule]:
        """The best rules of one fact, then the best chains that pay."""
        whole = self.predicates, self.relative
        directed = predicate + self.predicates * (asked == "subject")
        questions = self.questions.about(directed)
        ways = find_ways(questions, self.by_entity, *whole)
        cells = self._cells(directed, ways, questions)
        if self.about is not None:
            question = question_text(self.graph.predicates[predicate], asked)
            self.curves += self._curves(question, cells, support)
        ways = ways._replace(question=questions.fact[ways.question])
        for counted in zip(*_best(cells, support, limit), strict=True):
            yield self._rule(predicate, asked, counted, ways, examples, two=False)
        if self.about is None:
            return
        part, kept = thinned(self.by_entity)
        questions = self.questions.about(directed, QUESTIONS)
        ways = find_ways(questions, part, *whole, two=True)
        two = count_chains(ways, questions, part, *whole, support=support)
        two = self._paying(two, cells, support)
        asked_for, first, second, cell = ways
        ways = Ways(questions.fact[asked_for], kept[first], kept[second], cell)
        for counted in zip(*_best(two, support, limit), strict=True):
            yield self._rule(predicate, asked, counted, ways, examples, two=True)

    def _cells(self, directed: int, ways: Ways, questions: Questions) -> Counted:
        """The counts of one fact."""
        inside = slice(self.counts.starts[directed], self.counts.starts[directed + 1])
        values = self.counts.values[inside].astype(np.int64)
        cell = self.counts.cell[inside].astype(np.int64)
        pairs = count_pairs(ways, questions, cell)
        return Counted(cell, values[:, BEGINS], values[:, ENDS], pairs)

    def _paying(self, two: Counted, one: Counted, support: int) -> Counted:
        """The chains that are surely better than each of their facts alone, for enough pairs."""
        size = 2 * self.predicates * self.kinds
        alone = np.zeros(size)
        alone[one.cell] = one.ends / np.maximum(one.begins, 1)
        before = np.maximum(alone[two.cell // size], alone[two.cell % size])
        sure = interval(*two[1:], _SURE)[0] > before
        return two.take(np.flatnonzero(sure & (two.pairs >= support)))

    def _rule(
        self,
        predicate: int,
        asked: Asked,
        counted: Iterable[int],
        ways: Ways,
        examples: int,
        *,
        two: bool,
    ) -> Rule:
        cell, begins, ends, pairs = (int(column) for column in counted)
        shown = islice(self._examples(ways, cell, two), examples)
        size = 2 * self.predicates * self.kinds
        cells, places = (divmod(cell, size), "XZ?") if two else ((cell,), "X?")
        steps = zip(cells, pairwise(places), strict=True)
        patterns = tuple(self._pattern(one, *between) for one, between in steps)
        name = self.graph.predicates[predicate]
        return Rule(name, asked, patterns, begins, ends, pairs, tuple(shown))

    def _pattern(self, cell: int, here: str, there: str) -> Pattern:
        directed, scope = divmod(cell, self.kinds)
        inverse, predicate = divmod(directed, self.predicates)
        first, last = (there, here) if inverse else (here, there)
        return Pattern(first, self.graph.predicates[predicate], last, self.relative.name(scope))

    def _examples(self, ways: Ways, cell: int, two: bool) -> Iterator[Example]:
        """Of different facts that are asked for."""
        rows = np.flatnonzero(ways.cell == cell)
        for row in rows[changes(ways.question[rows])].tolist():
            used = [ways.first[row], *[ways.second[row]] * two]
            numbers = np.array([ways.question[row], *self.number[used]])
            asked, *known = replace(self.graph, train=self.known.take(numbers)).rows("train")
            yield Example(asked, tuple(known))

    def _curves(self, question: str, cells: Counted, support: int) -> Iterator[Curve]:
        """By distance, of the predicates that lead best to answers at some distance."""
        bins = len(self.relative.edges)
        table = np.zeros((3, 2 * self.predicates, self.kinds), np.int64)
        table.reshape(3, -1)[:, cells.cell] = cells[1:]
        before, after, touching = np.split(table, [bins, 2 * bins], 2)
        middle = touching.sum(2, keepdims=True)
        begins, ends, pairs = np.concatenate([before[:, :, ::-1], middle, after], 2)
        enough = ends >= support
        low = np.where(enough, interval(np.maximum(begins, 1), ends, pairs)[0], 0).max(1)
        best = np.argsort(-low, kind="stable")[:_CURVES]
        for directed in best[low[best] > 0].tolist():
            fact = self._pattern(directed * self.kinds, "X", "?").fact
            numbers = (tuple(one[directed].tolist()) for one in (begins, ends, pairs))
            yield Curve(question, fact, *numbers)

    def remarks(self, support: int, found: bool) -> Iterator[str]:
        """What one should know to read the rules."""
        asked = int(self.counts.asked.sum())
        every = 2 * int(np.isin(self.known.predicate, self.wanted).sum())
        some = f"{asked:,} of {every:,} questions, drawn at random"
        yield f"counted from {some if asked < every else f'{asked:,} questions'}, two for each fact"
        if self.about is not None:
            most = int(min(QUESTIONS, self.counts.asked.max(initial=0)))
            yield (
                "chains: those that are surely better than each of their facts alone, from at most"
                f" {most:,} questions for the object and for the subject each; of an entity with"
                f" more than {FACTS} facts, {FACTS} drawn at random are looked at"
            )
        if self.relative.past:
            yield "only facts that begin before the time asked about, as the run forecasts"
        unknown = self.known.unknown
        timeless = int(self.known.timeless.sum())
        if half := int((unknown > 0).sum()) - timeless:
            yield f"{_facts(half)} an unknown begin or end, for which the known one is taken"
        if timeless:
            yield f'{_facts(timeless)} no time at all, which counts as "contains it"'
        if not found:
            of = "any predicate" if self.about is None else self.graph.predicates[self.about]
            times = "once" if support == 1 else f"{support:,} times"
            yield f"no rules: no kind of known fact ends at the answer about {of} {times} or more"


def _facts(count: int) -> str:
    return f"{count:,} fact has" if count == 1 else f"{count:,} facts have"


def _relative(run: Run) -> IntervalScopes:
    """The relative scopes of a run that counts, else scopes that suit the facts."""
    graph, values = run.graph, run.settings.values()
    if values.get("messages") == "counted":
        relative = relative_scopes(graph, run.settings)
        if isinstance(relative, IntervalScopes) and not relative.unknown:
            return relative
    growing = growing_scopes(graph.train, graph.timeline.granularity, BINS)
    return replace(growing, past=run.past is not None)


def _best(counted: Counted, support: int, limit: int) -> Counted:
    """Those with enough support, by the lower end of their confidence's interval."""
    counted = counted.take(np.flatnonzero(counted.ends >= support))
    low = interval(*counted[1:])[0]
    return counted.take(np.lexsort((counted.cell, -counted.ends, -low))[:limit])
