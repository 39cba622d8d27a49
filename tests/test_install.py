"""How splime gets to people: the line that installs it, the packages, the image."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from email import message_from_bytes
from functools import partial
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


def test_nothing_installs_another_project() -> None:
    """On the public index `splime` is another project; so no message or document may name it."""
    documents = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.ipynb")]
    for path in (*documents, *ROOT.glob("src/**/*.py"), *ROOT.glob("experiments/**/*.py")):
        wrong = re.search(r"pip install '?splime(?!-kg).*", path.read_text("utf-8"))
        assert wrong is None, (path.name, wrong)


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


Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a command, by default in an empty folder, without the variables of Python."""
    here = tmp_path / "here"
    here.mkdir()

    def run(*command: str | Path, where: Path = here, **more: str) -> str:
        clean = {name: value for name, value in os.environ.items() if name[:6] != "PYTHON"}
        environment = clean | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"} | more
        done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    return run


def python_of(minor: int) -> Path:
    """An interpreter of this machine, also one of pyenv that is not the chosen one."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [Path(path)] if (path := shutil.which(f"python3.{minor}")) else []
    for python in (*found, *pyenv.glob(f"3.{minor}.*/bin/python")):
        if not subprocess.run([python, "-c", ""], capture_output=True).returncode:
            return python
    pytest.skip(f"there is no Python 3.{minor}")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source package, and the wheel that is made from it."""
    folder = tmp_path_factory.mktemp("packages")
    call = partial(subprocess.run, check=True, capture_output=True)
    call([sys.executable, "-m", "venv", folder / "builder"])
    python = folder / "builder" / "bin" / "python"
    call([python, "-m", "pip", "install", "build", "twine"])
    call([python, "-m", "build", "--outdir", folder / "dist", ROOT])
    (source,), (wheel,) = (folder.glob(f"dist/{name}") for name in ("*.tar.gz", "*.whl"))
    call([python, "-m", "twine", "check", "--strict", source, wheel])
    return source, wheel


@pytest.mark.slow
def test_packages_have_what_they_need(packages: tuple[Path, Path]) -> None:
    source, wheel = packages
    package = ROOT / "src" / "splime"
    files = {
        path.relative_to(ROOT / "src").as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as packed:
        assert files <= set(packed.namelist())
        assert not any(name.startswith("experiments") for name in packed.namelist())
        (about,) = (name for name in packed.namelist() if name.endswith("dist-info/METADATA"))
        metadata = message_from_bytes(packed.read(about))
    assert (metadata["Name"], metadata["Version"]) == ("splime-kg", splime.__version__)
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    beside = {"docs/site/conf.py", "constraints.txt", "experiments/data/main.toml", "SECURITY.md"}
    assert {f"src/{name}" for name in files} | beside <= names
    assert not any(name.startswith((".venv", "runs/")) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("minor", [11, 12, 13])
def test_packages_install_in_an_empty_environment(
    packages: tuple[Path, Path], tmp_path: Path, run: Run, minor: int
) -> None:
    run(python_of(minor), "-m", "venv", tmp_path / "user")
    python, program = (tmp_path / "user" / "bin" / name for name in ("python", "splime"))
    pip = (python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt")
    source, wheel = packages
    run(*pip, source)
    for _ in range(2):  # from the source package, and then from the wheel
        assert run(program, "--version").split() == ["splime", splime.__version__]
        assert json.loads(run(program, "inspect", "demo", "--json"))
        assert "pip install 'splime-kg[train]'" in run(program, "inspect", "demo")
        assert "complex" in run(program, "models")
        run(*pip, "--no-deps", "--force-reinstall", wheel)


@pytest.mark.slow
def test_the_steps_of_the_image(tmp_path: Path, run: Run) -> None:
    """The Dockerfile, step by step: an environment and folders stand for those of the image."""
    image = tmp_path / "image"
    run(sys.executable, "-m", "venv", tmp_path / "python")
    path = f"{tmp_path / 'python' / 'bin'}{os.pathsep}{os.defpath}"
    variables, folder, first = {"PATH": path}, image, {}
    recipe = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text("utf-8"))
    for line in recipe.splitlines():
        step, _, rest = line.partition(" ")
        match step:
            case "FROM":
                assert re.fullmatch(r"python:3\.1[1-3]-slim", rest)
            case "WORKDIR":
                folder = image / rest.lstrip("/")
                folder.mkdir(parents=True, exist_ok=True)
            case "COPY":
                *names, target = rest.split()
                for name in names:
                    if (ROOT / name).is_dir():
                        unwanted = shutil.ignore_patterns("__pycache__")
                        shutil.copytree(ROOT / name, folder / target, ignore=unwanted)
                    else:
                        shutil.copy(ROOT / name, folder / target)
            case "RUN":
                run("/bin/sh", "-c", rest, where=folder, **variables)
            case "ENV":
                name, _, value = rest.partition("=")
                variables[name] = str(tmp_path / "home") if name == "HOME" else value
            case "ENTRYPOINT" | "CMD":
                first[step] = json.loads(rest)
            case _:
                assert not step or step.startswith("#"), line
    (tmp_path / "home").mkdir()
    begin = partial(run, *first["ENTRYPOINT"], where=folder, **variables)
    assert "next: splime ask demo" in begin(*first["CMD"])
    asked = begin("ask", "demo", "Sara Finnby", "livesIn", "?", "--at", "1982", "--json")
    assert json.loads(asked)


@pytest.mark.system
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"src/splime/__init__.py": '__version__ = "1.2.dev0"\n'}, "no version of a release"),
        ({"src/splime/__init__.py": '__version__ = "1.2.0"\n'}, "CHANGELOG.md does not begin"),
        ({"CITATION.cff": "version: 1.2.0\n"}, "CITATION.cff has another version"),
        ({"dist/old.whl": ""}, "dist is not empty"),
    ],
)
def test_nothing_is_released_by_mistake(
    tmp_path: Path, change: dict[str, str], message: str
) -> None:
    for name in ("src/splime/__init__.py", "CHANGELOG.md", "CITATION.cff", "scripts/release"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".gitignore").write_text("dist/\n")
    for name, text in change.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run([*git, "init", "--quiet"], check=True)
    command = ["sh", str(tmp_path / "scripts/release"), "--no-tests"]
    release = partial(subprocess.run, command, capture_output=True, text=True)
    dirty = release()
    assert dirty.returncode == 1
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "all"], check=True)
    done = release()
    assert done.returncode == 1
    assert message in done.stderr
