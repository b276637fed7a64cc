"""docs/writing-a-strategy.md: its code is that of docs/examples, and its commands run."""

from __future__ import annotations

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
from tests.harness.command import CTXBENCH, ctxbench

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples"
OTHERS = {"__pycache__", "defects"}
"""Folders without examples of the page."""
TEXT = (DOCS / "writing-a-strategy.md").read_text("utf-8")
NAMED = re.findall(r"^`(\S+)`\n\n```\w+\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
BLOCKS = [block.splitlines() for block in re.findall(r"^```console\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)]
INSTALL = "pip install ./package"


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
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, EXAMPLES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
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

    def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(installed / "site")}
        found = subprocess.run(
            [CTXBENCH, *words], cwd=installed, env=environment, capture_output=True, text=True, check=False
        )
        assert found.returncode == code, found.stdout + found.stderr
        return found

    listed = json.loads(run("list", "strategies", "--json").stdout)
    assert listed["head_and_tail"]["parameters"] == {"head": 4, "tail": 16}
    assert listed["head_and_tail"]["fails"] == "what matters was said in the middle"
    assert listed["last_turns"]["parameters"] == {"turns": 3}
    assert "cannot be used" in listed["gone"]["about"]
    pip, explain, measure = next(block for block in BLOCKS if INSTALL in block)
    assert pip == INSTALL
    assert "tail: int = 16" in run(*shlex.split(explain)[1:]).stdout
    ran = run(*shlex.split(measure)[1:], "-j", "2", "--json")
    assert "head_and_tail(tail=8) | last_turns(turns=1)" in ran.stdout
    assert "no_such_module" in run("run", "smoke", "-s", "gone", code=2).stderr
    versions = json.loads((installed / "runs" / "package" / "manifest.json").read_text("utf-8"))["versions"]
    assert versions["strategy last_turns"].startswith("my-strategies 1.0 ")
    for edited in (installed / "site" / "my_strategies").glob("*_*.py"):
        with edited.open("a", encoding="utf-8") as file:
            file.write("# edited\n")
    again = run(*shlex.split(measure)[1:], code=2)
    assert "it differs in strategy head_and_tail, strategy last_turns" in again.stderr
