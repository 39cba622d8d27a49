"""How splime gets to people: the line that installs it, the packages, the image."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import splime
from tests.test_docs import ROOT

LINE = "pip install '.[train,plot,serve]'"


def test_one_line_installs_it_everywhere() -> None:
    for name in ("README.md", "docs/install.md", "docs/tutorial.md"):
        blocks = re.findall(r"^```sh\n(.*?)```", (ROOT / name).read_text("utf-8"), re.S | re.M)
        assert f"{LINE}\n" in blocks, name
    assert LINE in (ROOT / "docs/cheatsheet.md").read_text("utf-8")


def test_the_image_has_what_it_copies() -> None:
    """The recipe takes only files that the context lets through, and installs as the line does."""
    recipe = (ROOT / "Dockerfile").read_text("utf-8")
    through = (ROOT / ".dockerignore").read_text("utf-8").split()
    copied = [
        name for names in re.findall(r"^COPY (.*) \S+$", recipe, re.M) for name in names.split()
    ]
    assert {f"!{name}" for name in copied} == {line for line in through if line[0] == "!"}
    assert all((ROOT / name).exists() for name in copied)
    extras = LINE.removeprefix("pip install ")
    assert re.search(rf"^RUN pip install .*{re.escape(extras)}$", recipe, re.M)
    assert 'ENTRYPOINT ["splime"]' in recipe


@pytest.mark.system
def test_the_shell_completes_commands_and_options() -> None:
    program = Path(sys.executable).with_name("splime")
    for words, expected in {
        "splime tr": {"train", "transform"},
        "splime train --dim": {"--dimension"},
    }.items():
        given = {"_SPLIME_COMPLETE": "complete_bash", "COMP_WORDS": words}
        given["COMP_CWORD"] = str(words.count(" "))
        done = subprocess.run(
            [program], env={**os.environ, **given}, capture_output=True, text=True
        )
        assert set(done.stdout.split()) == expected, done.stderr


@pytest.mark.slow
def test_packages_install_in_an_empty_environment(tmp_path: Path) -> None:
    def call(*command: str | Path, where: Path = tmp_path) -> str:
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(command, cwd=where, env=clean, capture_output=True, text=True)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def environment(name: str) -> tuple[Path, ...]:
        call(sys.executable, "-m", "venv", tmp_path / name)
        return (tmp_path / name / "bin" / "python", Path("-m"))

    builder, user = environment("builder"), environment("user")
    pins = ("--quiet", "--constraint", ROOT / "constraints.txt")
    call(*builder, "pip", "install", *pins, "hatchling")
    call(*builder, "hatchling", "build", "-d", tmp_path, where=ROOT)
    (source,) = tmp_path.glob("*.tar.gz")
    (wheel,) = tmp_path.glob("*.whl")

    package = ROOT / "src" / "splime"
    files = {
        path.relative_to(ROOT / "src").as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as packed:
        assert files <= set(packed.namelist())
        assert not any(name.startswith("experiments") for name in packed.namelist())
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    beside = {"docs/site/conf.py", "constraints.txt", "experiments/data/main.toml"}
    assert {f"src/{name}" for name in files} | beside <= names
    assert not any(name.startswith((".venv", "runs/")) for name in names)

    call(*user, "pip", "install", *pins, source)
    splime_there = tmp_path / "user" / "bin" / "splime"
    for _ in range(2):  # from the source package, and then from the wheel
        assert call(splime_there, "--version").split() == ["splime", splime.__version__]
        assert json.loads(call(splime_there, "inspect", "demo", "--json"))
        assert "complex" in call(splime_there, "models")
        call(*user, "pip", "install", *pins, "--no-deps", "--force-reinstall", wheel)
