"""The commands that `splime inspect` suggests work when they are copied."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.runs.small import call

FEW = (
    "Ada;worksFor;Norport;1990;1999\nBo;worksFor;Norport;1991;1999\nBo;worksFor;Eastby;2001;2009\n"
)
FILES: dict[str, tuple[str, list[str]]] = {
    "plain.csv": ("subject,predicate,object,time\n" + "Ada,met,Bo,2014-05-03\n" * 2, []),
    "other order.csv": (
        "from;to;who;which;what\n1990;1999;Ada;Norport;worksFor\n1992;;Bo;Norport;worksFor\n",
        ["--columns", "who,what,which,from,to"],
    ),
    "no-header.csv": (FEW, ["--no-header"]),
    "names.csv": (FEW.replace("Bo", "_").replace("Ada", "?"), ["--no-header"]),
    "dashes.csv": (FEW.replace("Bo", "-Bo $(x) 'y'").replace("worksFor", "--at"), ["--no-header"]),
    "unknown.csv": (FEW.replace("1999", "0"), ["--no-header", "--unknown-time", "0"]),
    "timeless.csv": ("Ada,met,Bo,,\nAda,met,Cleo,,\nCleo,met,Bo,1990,\n", ["--no-header"]),
    "split.csv": (
        FEW.replace("Ada", "Bo") * 4,
        ["--no-header", "--keep-duplicates", "--split", "none", "--bucket", "2"],
    ),
}


def suggested(*arguments: object) -> list[list[str]]:
    done = call("inspect", *arguments)
    assert done.code == 0, done.err
    commands = [line.partition(": ")[2] for line in done.out.splitlines()[-2:]]
    return [shlex.split(command) for command in commands]


@pytest.mark.parametrize("name", FILES)
def test_what_is_suggested_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPLIME_NO_CACHE", "1")
    text, options = FILES[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    ask, more = suggested(name, *options)
    assert (ask[:2], more[:2]) == (["splime", "ask"], ["splime", "predict"])
    done = call(*ask[1:])
    assert done.code == 0, (ask, done.err)
    assert done.out.startswith("What: ")
    done = call(*more[1:])
    assert done.code == 0 or "to calibrate" in done.err or "too few" in done.err, done.err


def test_facts_with_splits_are_evaluated(tmp_path: Path) -> None:
    folder = tmp_path / "my facts"
    folder.mkdir()
    for split, rows in (("train", 12), ("valid", 1), ("test", 2)):
        lines = (f"p{row % 4}\tknows\tp{(row + 1) % 4}\t{1990 + row % 3}\n" for row in range(rows))
        (folder / f"{split}.txt").write_text("".join(lines), encoding="utf-8")
    ask, more = suggested(folder, "--keep-duplicates")
    assert more == ["splime", "evaluate", str(folder), "--keep-duplicates"]
    for command in (ask, more):
        done = call(*command[1:])
        assert done.code == 0, (command, done.err)
