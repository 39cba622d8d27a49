"""What programs get from a run or a graph: by HTTP, or as tools of an agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from splime.errors import SplimeError
from splime.progress import Progress, silent
from splime.query import Query, predict
from splime.query.explained import explain
from splime.query.questions import ASKED
from splime.serving import messages
from splime.serving.http import in_thread
from splime.serving.messages import Ask, AskMany, BareQuestion, Predict, When, Why

WAITING = 100
"""Questions that may wait for those before them."""


class Busy(SplimeError):  # noqa: N818  # nothing is wrong with the question
    """There was no time for an answer."""


class Service:
    """Answers one question after the other: each takes all cores, and memory for its scores.

    Args:
        query: a run or a graph, opened.
        seconds: how long an answer may take, with the time that it waits.
        brief: whether how far to trust answers is said in one remark, without numbers.
    """

    def __init__(self, query: Query, seconds: float | None = None, *, brief: bool = False) -> None:
        self.query, self._seconds, self._brief = query, seconds, brief
        self._waiting, self._free = 0, asyncio.Lock()
        self._end = 0.0

    def prepare(self, progress: Progress = silent) -> None:
        """Make what the first questions would wait for."""
        self.query.prepare(progress)
        _ = self.query.trust

    async def answer(self, name: str, asked: Struct) -> dict[str, Any]:
        """The answer to a request by its verb."""
        if self._waiting == WAITING:
            raise Busy(f"{WAITING} questions wait already; ask again later")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                try:
                    await self._free.acquire()
                finally:
                    self._waiting -= 1
                self._end = time.monotonic() + (self._seconds or float("inf"))
                work = asyncio.ensure_future(in_thread(VERBS[name].answer, self, asked))
                work.add_done_callback(self._done)
                # What takes too long cannot be interrupted, and the next one waits for it.
                reply: dict[str, Any] = await asyncio.shield(work)
                return reply
        except TimeoutError:
            raise Busy(
                f"no answer in {self._seconds:g} s (--timeout); ask for less at once, or later"
            ) from None

    def _done(self, work: asyncio.Future[Any]) -> None:
        self._free.release()
        if not work.cancelled():
            work.exception()  # seen, if nobody waits for it any more

    def _progress(self, what: str, done: int, total: int | None = None, note: str = "") -> None:
        """End long work whose time is over."""
        if time.monotonic() > self._end:
            raise Busy(f"{what} took too long")

    def ask(self, asked: Ask) -> dict[str, Any]:
        """Answer a question about dated facts: who, what, which predicate, or when."""
        given = {name: getattr(asked, name) for name in ("limit", "known", "best", "why")}
        return self._explained(asked, during=asked.during, **given)

    def _explained(self, asked: BareQuestion, **given: Any) -> dict[str, Any]:
        found = explain(self.query, *asked.names, **given).to_json()
        if self._brief and found.pop("trust", None) is not None:
            found["remarks"] = [*found["remarks"], str(self.query.trust)]
        return found

    def ask_many(self, asked: AskMany) -> dict[str, Any]:
        """Answer many questions at once; a row for each answer, with the number of its question."""
        table = self.query.ask_many(
            asked.table(),
            limit=asked.limit,
            known=asked.known,
            best=asked.best,
            progress=self._progress,
        )
        return {"answers": table.to_pylist()}

    def when(self, asked: When) -> dict[str, Any]:
        """Say when a fact held, from the most to the least likely time."""
        return self._explained(asked, time=ASKED, limit=asked.limit)

    def why(self, asked: Why) -> dict[str, Any]:
        """Show the facts that an answer rests on, as chains from the given entity to it."""
        names, during = asked.names, asked.during
        found = self.query.why(*names, answer=asked.answer, during=during, most=asked.most)
        return found.to_json()

    def predict(self, asked: Predict) -> dict[str, Any]:
        """Find the most probable facts that the graph does not state, or forecast the next ones."""
        given = {name: getattr(asked, name) for name in asked.__struct_fields__}
        return predict(self.query, progress=self._progress, **given).to_json()


class Verb(NamedTuple):
    """Something to ask for: what answers it, and the types of request and answer."""

    answer: Callable[[Service, Any], dict[str, Any]]
    takes: type[Struct]
    gives: Any

    @property
    def about(self) -> str:
        """What it does, in a sentence."""
        return self.answer.__doc__ or ""


VERBS: Mapping[str, Verb] = {
    "ask": Verb(Service.ask, Ask, messages.FoundAnswers),
    "ask_many": Verb(Service.ask_many, AskMany, messages.FoundMany),
    "when": Verb(Service.when, When, messages.FoundAnswers),
    "why": Verb(Service.why, Why, messages.FoundEvidence),
    "predict": Verb(Service.predict, Predict, messages.FoundFacts),
}
