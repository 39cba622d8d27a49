"""The service over HTTP: the command line's answers and errors, limits, and its description."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import splime
from splime.errors import UsageError
from splime.query import Query
from splime.serving import service as serving
from splime.serving.access import Access
from splime.serving.api import JsonServer
from splime.serving.messages import Ask, AskMany, TimedQuestion
from splime.serving.service import VERBS, Service
from tests.runs.small import call
from tests.serving.client import Reply, post, send
from tests.serving.conftest import TOKEN

NAMES = ("entity 1", "p1", "?")
ASKED = dict(zip(("subject", "predicate", "object"), NAMES, strict=True))
FACT = {"subject": "entity 1", "predicate": "p1", "object": "entity 5"}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def ask(server: JsonServer, path: str, asked: Any) -> Reply:
    return post(server, path, asked, **BEARER)


def printed(*arguments: object) -> Any:
    """What the command line prints as JSON."""
    done = call(*arguments, "--json", "--device", "cpu")
    assert not done.code, done.err
    return json.loads(done.out)


@pytest.mark.parametrize(
    ("path", "asked", "options"),
    [
        ("/ask", {"at": 1995}, (*NAMES, "--at", 1995)),
        ("/ask", {"at": "1995", "why": True, "limit": 3},
         (*NAMES, "--at", 1995, "--why", "--limit", 3)),
        ("/ask", {"begin": 1992, "end": "1996", "known": "drop"},
         (*NAMES, "--during", "1992..1996", "--known", "drop")),
        ("/ask", {"predicate": "?", "object": "entity 5"}, ("entity 1", "?", "entity 5")),
        ("/ask", {"object": "entity 5"}, ("entity 1", "p1", "entity 5")),
        ("/when", {"object": "entity 5", "limit": 4},
         ("entity 1", "p1", "entity 5", "--limit", 4)),
        ("/ask", {"at": 2300}, (*NAMES, "--at", 2300)),
    ],
)  # fmt: skip
def test_answers_are_those_of_the_command_line(
    server: JsonServer, facts: Path, path: str, asked: dict[str, Any], options: tuple[object, ...]
) -> None:
    reply = ask(server, path, ASKED | asked)
    assert reply.status == 200, reply.json
    assert reply.json["answers"]
    assert reply.json == printed("ask", facts, *options)


def test_many_questions(server: JsonServer, facts: Path, tmp_path: Path) -> None:
    questions: list[dict[str, Any]] = [
        {**ASKED, "at": 1995},
        {**ASKED, "subject": "?", "object": "entity 3", "begin": "1993", "end": 1996},
        ASKED,
        FACT,
    ]
    file = tmp_path / "questions.csv"
    file.write_text(
        "subject,predicate,object,begin,end\nentity 1,p1,?,1995,1995\n?,p1,entity 3,1993,1996\n"
        "entity 1,p1,?,,\nentity 1,p1,entity 5,,\n"
    )
    reply = ask(server, "/ask/many", {"questions": questions, "limit": 3})
    assert reply.status == 200, reply.json
    assert reply.json["answers"] == printed("ask", facts, "--file", file, "--limit", 3)
    assert [row["question"] for row in reply.json["answers"]][::3] == [1, 2, 3, 4]


def test_why(server: JsonServer, facts: Path) -> None:
    whole = printed("ask", facts, *NAMES, "--at", 1995, "--why")["evidence"]
    assert ask(server, "/why", ASKED | {"at": 1995}).json == whole
    other = ask(server, "/why", ASKED | {"at": 1995, "answer": "entity 3", "most": 1}).json
    assert other["answer"] == "entity 3"
    assert len(other["reasons"]) <= 1


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        ({"predicate": ["p1"], "at": 1995, "limit": 5},
         ("--predicate", "p1", "--at", 1995, "--limit", 5)),
        ({"next": 2, "limit": 4, "entity": ["entity 1", "entity 2"]},
         ("--next", 2, "--limit", 4, "--entity", "entity 1,entity 2")),
    ],
)  # fmt: skip
def test_predict(
    server: JsonServer, facts: Path, asked: dict[str, Any], options: tuple[object, ...]
) -> None:
    for _ in range(2):  # also the second time, with what the first one has left
        reply = ask(server, "/predict", asked)
        assert reply.status == 200, reply.json
        assert reply.json == printed("predict", facts, *options)


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        ({**ASKED, "subject": "entity 11x"}, ("entity 11x", "p1", "?")),
        ({**ASKED, "object": "entity 5", "at": 1995}, ("entity 1", "p1", "entity 5", "--at", 1995)),
        ({**ASKED, "at": "somewhen"}, (*NAMES, "--at", "somewhen")),
        ({**ASKED, "begin": 1996, "end": 1992}, (*NAMES, "--during", "1996..1992")),
        ({**ASKED, "best": 25}, (*NAMES, "--best", 25)),
    ],
)
def test_errors_have_the_words_of_the_command_line(
    server: JsonServer, facts: Path, asked: dict[str, Any], options: tuple[object, ...]
) -> None:
    reply = ask(server, "/ask", asked)
    done = call("ask", facts, *options)
    assert (reply.status, done.code) == (400, 2)
    assert done.err.splitlines()[-1] == f"error: {reply.json['error']}"


@pytest.mark.parametrize(
    ("path", "asked", "status", "words"),
    [
        ("/ask", {"subject": "entity 1"}, 400, "missing required field `predicate`"),
        ("/ask", {**ASKED, "sbject": 1}, 400, "unknown field `sbject`"),
        ("/ask", {**ASKED, "subject": 1}, 400, "subject: expected `str`, got `int`"),
        ("/ask", {**ASKED, "limit": 0}, 400, "limit: expected `int` >= 1"),
        ("/ask", {**ASKED, "limit": 1001}, 400, "limit: expected `int` <= 1000"),
        ("/ask", {**ASKED, "at": 1995, "begin": 1994}, 400, "as at, or as begin and end"),
        ("/ask", {**ASKED, "end": 1994}, 400, "as at, or as begin and end"),
        ("/ask", {**ASKED, "known": "all"}, 400, "known: invalid enum value 'all'"),
        ("/ask", [ASKED], 400, "the request: expected `object`"),
        ("/ask", b"{", 400, "truncated"),
        ("/ask", b'{"subject": "\xff"}', 400, "the request: "),
        ("/ask", b'{"subject": "\\ud800"}', 400, "the request: "),
        ("/ask", b"[" * 100_000, 400, "the request: "),
        ("/ask", b"", 400, "the request: "),
        ("/ask", {**ASKED, "subject": "x" * 1_100_000}, 413, "at most 1,048,576 bytes"),
        ("/ask/many", {"questions": []}, 400, "questions: expected `array` of length >= 1"),
        ("/ask/many", {"questions": [ASKED] * 1001}, 400, "questions: expected `array` of length"),
        ("/ask/many", {"questions": [ASKED, {**ASKED, "object": "entity 5x"}]}, 400, "row 2"),
        ("/when", {**FACT, "subject": "?"}, 400, "2 things are asked for"),
        ("/when", {**FACT, "at": 1995}, 400, "unknown field `at`"),
        ("/why", FACT, 400, "who or what"),
        ("/why", {**ASKED, "answer": "nobody"}, 400, "nobody"),
        ("/predict", {"least": 2}, 400, "least: expected `float` <= 1.0"),
        ("/predict", {"at": 1995, "next": 2}, 400, "leave out at"),
        ("/predict", {"predicate": ["p9"]}, 400, "p9"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(
    server: JsonServer, path: str, asked: Any, status: int, words: str
) -> None:
    reply = ask(server, path, asked)
    assert (reply.status, list(reply.json)) == (status, ["error"])
    assert words in reply.json["error"]
    assert ask(server, "/ask", ASKED).status == 200


def test_only_json(server: JsonServer) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        reply = post(server, "/ask", ASKED, **BEARER, **{"Content-Type": kind})
        assert (reply.status, "Content-Type" in reply.json["error"]) == (415, True)
    kind = "Application/JSON; charset=utf-8"
    assert post(server, "/ask", ASKED, **BEARER, **{"Content-Type": kind}).status == 200


def test_a_body_that_never_ends(server: JsonServer) -> None:
    """Its length is counted, not believed."""
    part = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    headers = {"Content-Type": "application/json", "Transfer-Encoding": "chunked", **BEARER}
    reply = send(server, "/ask", "POST", headers, part * 20)
    assert reply.status == 413


def test_what_needs_no_token(server: JsonServer) -> None:
    health = send(server, "/health", "GET", {})
    assert health.json["status"] == "ok"
    assert health.json["facts"] > 100
    assert send(server, "/openapi.json", "GET", {}).status == 200
    for path in ("/ask", "/ask/many", "/when", "/why", "/predict"):
        assert post(server, path, {}).status == 401


def test_the_description(server: JsonServer, query: Query) -> None:
    """Requests and replies are what it says."""
    described = send(server, "/openapi.json", "GET", {}).json
    assert described["openapi"].startswith("3.1.")
    assert described["security"] == [{"token": []}]
    assert "token" in described["components"]["securitySchemes"]
    assert {*described["paths"]} == {"/ask", "/ask/many", "/when", "/why", "/predict", "/health"}
    requests: dict[str, Any] = {
        "/ask": {**ASKED, "at": 1995, "why": True},
        "/ask/many": {"questions": [{**ASKED, "at": 1995}], "limit": 2},
        "/when": FACT,
        "/why": {**ASKED, "at": "1995"},
        "/predict": {"limit": 3},
    }

    def checked(content: Any, value: Any) -> None:
        schema = {**content["application/json"]["schema"], "components": described["components"]}
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(value)

    for path, asked in requests.items():
        operation = described["paths"][path]["post"]
        checked(operation["requestBody"]["content"], asked)
        checked(operation["responses"]["200"]["content"], ask(server, path, asked).json)
        checked(operation["responses"]["default"]["content"], ask(server, path, {"x": 1}).json)
        with pytest.raises(jsonschema.ValidationError):
            checked(operation["requestBody"]["content"], {**asked, "x": 1})
        assert operation["summary"].endswith(".")
    health = described["paths"]["/health"]["get"]
    assert health["security"] == []


def test_without_a_token(query: Query) -> None:
    access = Access(port=0)
    with JsonServer(Service(query), access, access.listen()).start() as server:
        assert post(server, "/ask", ASKED).status == 200
        assert "security" not in send(server, "/openapi.json", "GET", {}).json


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"host": "0.0.0.0"}, "give a token"),
        ({"host": "::"}, "give a token"),
        ({"host": "example.org"}, "give a token"),
        ({"token": " "}, "the token is empty"),
        ({"timeout": 0.0}, "timeout"),
    ],
)
def test_access(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Access(**options)


def test_other_machines(query: Query) -> None:
    """With a token any host may be asked for, since nobody knows by which name it is known."""
    access = Access("0.0.0.0", 0, TOKEN)
    with JsonServer(Service(query), access, access.listen()).start() as server:
        assert post(server, "/ask", ASKED, **BEARER, Host="splime.example").status == 200
        assert post(server, "/ask", ASKED, Host="splime.example").status == 401


def test_time_is_limited(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is told; the next question waits for the one that cannot be interrupted."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(service: Service, asked: Ask) -> dict[str, Any]:
        begun.set()
        assert go_on.wait(60)
        return {}

    access = Access(port=0)
    with JsonServer(Service(query, 0.5), access, access.listen()).start() as server:
        with monkeypatch.context() as patch:
            patch.setitem(VERBS, "ask", VERBS["ask"]._replace(answer=slow))
            for _ in range(2):  # one that is being answered, and one that waits for it
                reply = post(server, "/ask", ASKED)
                assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
                assert "0.5 s (--timeout)" in reply.json["error"]
            assert begun.is_set()
        go_on.set()
        until = time.monotonic() + 60
        while (reply := post(server, "/when", FACT)).status == 503 and time.monotonic() < until:
            pass
        assert reply.status == 200
        assert send(server, "/health", "GET", {}).status == 200


def test_long_work_ends_when_its_time_is_over(query: Query) -> None:
    service = Service(query, 5)  # whose time has not begun
    with pytest.raises(serving.Busy, match="answering took too long"):
        service.ask_many(AskMany(questions=[TimedQuestion(**ASKED)]))


def test_not_too_many_wait(server: JsonServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "WAITING", 1)
    go_on = threading.Event()

    def slow(service: Service, asked: Ask) -> dict[str, Any]:
        assert go_on.wait(60)
        return {}

    monkeypatch.setitem(VERBS, "ask", VERBS["ask"]._replace(answer=slow))
    with ThreadPoolExecutor(8) as pool:
        replies = [pool.submit(ask, server, "/ask", ASKED) for _ in range(8)]
        while sum(reply.done() for reply in replies) < 6:
            time.sleep(0.01)
        go_on.set()
        codes = sorted(reply.result().status for reply in replies)
    assert codes == [200, 200, *[503] * 6]


def test_many_at_once(server: JsonServer) -> None:
    with ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(lambda _: ask(server, "/ask", ASKED), range(40)))
    assert {reply.status for reply in replies} == {200}
    assert len({reply.body for reply in replies}) == 1


def test_in_python(facts: Path) -> None:
    with splime.serve(facts, port=0, token=TOKEN, device="cpu") as server:
        assert repr(server) == f"JsonServer({server.address})"
        assert server.address == f"http://127.0.0.1:{server.server_port}"
        assert ask(server, "/ask", ASKED).json["question"]["object"] == "?"
