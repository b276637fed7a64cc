"""docs/writing-a-strategy.md: its code is that of docs/examples, and its commands run."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ctxbench.harness.invariants import steps
from ctxbench.strategies.chain import parse
from tests.builders import talk
from tests.harness.command import ctxbench, forked
from tests.harness.test_pytest_plugin import PLUGIN

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples"
OTHERS = {"__pycache__", "defects"}  # folders without examples of the page
TEXT = (DOCS / "writing-a-strategy.md").read_text("utf-8")
NAMED = re.findall(r"^`(\S+)`\n\n```\w+\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
BLOCKS = [block.splitlines() for block in re.findall(r"^```console\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)]
INSTALL = "pip install ./package"
EACH = """
import contextlib, io, json, sys
from ctxbench.cli import main
told = []
for words in map(json.loads, sys.argv[1:]):
    sys.argv = ["ctxbench", *words]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as end:
            told.append((end.code or 0, out.getvalue(), err.getvalue()))
print(json.dumps(told))
"""
"""A program that runs commands, and prints code, output and errors of each as JSON."""


@pytest.mark.parametrize(("name", "code"), NAMED, ids=[name for name, _ in NAMED])
def test_the_page_shows_the_files_that_are_tested(name: str, code: str) -> None:
    """Each code block is, to the letter, the file whose name stands over it."""
    assert code == (EXAMPLES / name).read_text("utf-8")


def test_every_example_is_on_the_page() -> None:
    """No example is left behind when the page changes."""
    files = {str(each.relative_to(EXAMPLES)) for each in EXAMPLES.rglob("*.*") if not OTHERS & {*each.parts}}
    assert {name for name, _ in NAMED} == {name for name in files if name.endswith((".py", ".toml"))}


def test_the_commands_run(tmp_path: Path) -> None:
    """Each command of the page does what it says, beside the example files."""
    for each in EXAMPLES.glob("*.py"):
        shutil.copy(each, tmp_path)
    alone = [command for block in BLOCKS if INSTALL not in block for command in block]
    assert len(alone) == 4
    for command in alone:
        program, *words = shlex.split(command)
        assert program == "ctxbench"
        ctxbench(*words, cwd=tmp_path)


def test_a_strategy_of_a_library_runs() -> None:
    """The page's live strategy sends what the adapter of the same function does, where no message must come first."""
    pytest.importorskip("langchain_core")
    conversation = talk(*((("user", "assistant")[at % 2], f"message {at}") for at in range(40)))
    texts = (f"{EXAMPLES}/trimmed.py:trimmed(max_tokens=60)", "langchain.trim_messages(max_tokens=60, start_on=None)")
    own, ready = (steps(parse(text), conversation) for text in texts)
    assert [step.context for step in own] == [step.context for step in ready]
    assert len(own[-1].context.messages) < len(conversation.messages) // 2


def test_the_example_keeps_the_laws(tmp_path: Path) -> None:
    """The page's own test passes."""
    words = ["pytest", "-q", *PLUGIN, "-p", "no:cacheprovider", "-c", os.devnull, str(EXAMPLES)]
    done = forked("pytest", words, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The package of the page, put together and installed as it says, and beside it a name that is broken."""
    pytest.importorskip("setuptools")
    pytest.importorskip("pip")
    tree = re.search(r"^```text\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert tree is not None
    assert [line.split()[0] for line in tree[1].splitlines()] == [
        "package/", "pyproject.toml", "my_strategies/", "__init__.py", "head_and_tail.py", "last_turns.py",
    ]  # fmt: skip
    folder = tmp_path / "package"
    shutil.copytree(EXAMPLES / "package", folder)
    (folder / "my_strategies").mkdir()
    (folder / "my_strategies" / "__init__.py").touch()
    for name in ("head_and_tail.py", "last_turns.py"):
        shutil.copy(EXAMPLES / name, folder / "my_strategies")
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write('gone = "no_such_module:Gone"\n')
    offline = ["--no-build-isolation", "--no-deps", "--no-index", "--quiet", "--target", "site"]
    command = [sys.executable, "-m", *shlex.split(INSTALL), *offline]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path


def test_a_package_s_strategies_are_known_by_their_names(installed: Path) -> None:
    """Its entry points, a class and a function, work like our own; a broken one breaks itself; an edit is noticed."""

    def run(*commands: list[str]) -> list[tuple[int, str, str]]:
        """Run commands one after the other in a process that knows the package: code, output and errors of each."""
        environment = {**os.environ, "PYTHONPATH": str(installed / "site")}
        words = [sys.executable, "-c", EACH, *map(json.dumps, commands)]
        done = subprocess.run(words, cwd=installed, env=environment, capture_output=True, text=True, check=True)
        return [tuple(part) for part in json.loads(done.stdout)]

    pip, explain, measure = map(shlex.split, next(block for block in BLOCKS if INSTALL in block))
    assert pip == shlex.split(INSTALL)
    gone = ["run", "smoke", "-s", "gone"]
    commands = (["list", "strategies", "--json"], explain[1:], [*measure[1:], "-j", "2", "--json"], gone)
    known, explained, ran, refused = run(*commands)
    assert [part[0] for part in (known, explained, ran, refused)] == [0, 0, 0, 2]
    listed = json.loads(known[1])
    assert listed["head_and_tail"]["parameters"] == {"head": 4, "tail": 16}
    assert listed["head_and_tail"]["fails"] == "what matters was said in the middle"
    assert listed["last_turns"]["parameters"] == {"turns": 3}
    assert "cannot be used" in listed["gone"]["about"]
    assert "tail: int = 16" in explained[1]
    assert "head_and_tail(tail=8) | last_turns(turns=1)" in ran[1]
    assert "no_such_module" in refused[2]
    versions = json.loads((installed / "runs" / "package" / "manifest.json").read_text("utf-8"))["versions"]
    assert versions["strategy last_turns"].startswith("my-strategies 1.0 ")
    for edited in (installed / "site" / "my_strategies").glob("*_*.py"):
        with edited.open("a", encoding="utf-8") as file:
            file.write("# edited\n")
    [(code, _, error)] = run(measure[1:])
    assert code == 2
    assert "it differs in strategy head_and_tail, strategy last_turns" in error
