"""docs/writing-a-strategy.md: its code is that of docs/examples, and its commands run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.harness.command import CTXBENCH, ctxbench

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples"
TEXT = (DOCS / "writing-a-strategy.md").read_text("utf-8")
NAMED = re.findall(r"^`(\S+)`\n\n```\w+\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = [line for block in re.findall(r"^```console\n(.*?)^```$", TEXT, re.M | re.S) for line in block.splitlines()]


@pytest.mark.parametrize(("name", "code"), NAMED, ids=[name for name, _ in NAMED])
def test_the_page_shows_the_files_that_are_tested(name: str, code: str) -> None:
    """Each code block is, to the letter, the file whose name stands over it."""
    assert code == (EXAMPLES / name).read_text("utf-8")


def test_every_example_is_on_the_page() -> None:
    """No example is left behind when the page changes."""
    files = {str(each.relative_to(EXAMPLES)) for each in EXAMPLES.rglob("*.*") if "__pycache__" not in each.parts}
    assert {name for name, _ in NAMED} == {name for name in files if name.endswith((".py", ".toml"))}


def test_the_commands_run(tmp_path: Path) -> None:
    """Each command of the page does what it says, beside the example files."""
    for each in EXAMPLES.glob("*.py"):
        shutil.copy(each, tmp_path)
    assert len(COMMANDS) == 3
    for command in COMMANDS:
        program, *words = shlex.split(command)
        assert program == "ctxbench"
        ctxbench(*words, cwd=tmp_path)


def test_the_example_keeps_the_laws(tmp_path: Path) -> None:
    """The page's own test passes."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, EXAMPLES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_package_s_strategies_are_known_by_their_names(tmp_path: Path) -> None:
    """Entry points as the page declares them, a class and a function, work like our own; a broken one breaks itself."""
    module = "\n".join((EXAMPLES / name).read_text("utf-8") for name in ("head_and_tail.py", "last_turns.py"))
    first, rest = module.split("from __future__ import annotations\n", 1)
    (tmp_path / "my_strategies.py").write_text(f"from __future__ import annotations\n{first}{rest}", "utf-8")
    project = tomllib.loads((EXAMPLES / "package" / "pyproject.toml").read_text("utf-8"))["project"]
    points = project["entry-points"]["ctxbench.strategies"] | {"gone": "no_such_module:Gone"}
    info = tmp_path / "my_strategies-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-strategies\nVersion: 1.0\n", "utf-8")
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[ctxbench.strategies]\n{lines}", "utf-8")

    def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        found = subprocess.run(
            [CTXBENCH, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == code, found.stdout + found.stderr
        return found

    listed = json.loads(run("list", "strategies", "--json").stdout)
    assert listed["head_and_tail"]["parameters"] == {"head": 4, "tail": 16}
    assert listed["head_and_tail"]["fails"] == "what matters was said in the middle"
    assert listed["last_turns"]["parameters"] == {"turns": 3}
    assert "cannot be used" in listed["gone"]["about"]
    ran = run("run", "smoke", "-s", "head_and_tail(tail=8) | last_turns(turns=1)", "-o", "out", "-j", "2", "--json")
    assert "head_and_tail(tail=8) | last_turns(turns=1)" in ran.stdout
    assert "no_such_module" in run("run", "smoke", "-s", "gone", code=2).stderr
    versions = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))["versions"]
    assert versions["strategy last_turns"].startswith("my-strategies 1.0 ")
    with (tmp_path / "my_strategies.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    again = run("run", "smoke", "-s", "head_and_tail(tail=8) | last_turns(turns=1)", "-o", "out", code=2)
    assert "it differs in strategy head_and_tail, strategy last_turns" in again.stderr
