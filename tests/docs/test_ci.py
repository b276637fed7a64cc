"""docs/ci.md: its commands run, as they stand there and in its pipelines."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.embedded import scenario
from tests.harness.command import with_ctxbench

TEXT = (Path(__file__).parents[2] / "docs" / "ci.md").read_text("utf-8")
CONSOLE = re.findall(r"^```console\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
POLICY = re.findall(r"^`gate.toml`\n\n```toml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PIPELINES = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def scripts(pipeline: Any) -> Iterator[str]:
    """The commands of a pipeline, in order: what GitHub has under `run`, GitLab under `script`."""
    if isinstance(pipeline, dict):
        for key, value in pipeline.items():
            if key == "run":
                yield value
            elif key == "script":
                yield from value
            else:
                yield from scripts(value)
    elif isinstance(pipeline, list):
        for each in pipeline:
            yield from scripts(each)


def shell(command: str, folder: Path) -> str:
    """Run a command in the shell that CI gives it."""
    environment = {**os.environ, "PATH": with_ctxbench(), "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    done = subprocess.run(
        ["bash", "-e", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_commands_run(tmp_path: Path) -> None:
    """The baseline is made, both pipelines pass and leave what they say, and the comparisons at the end print."""
    yaml = pytest.importorskip("yaml")
    (tmp_path / "recordings").mkdir()
    for number, each in enumerate(islice(scenario("demo"), 2)):
        (tmp_path / "recordings" / f"{number}.jsonl").write_bytes(each.to_json())
    (policy,) = POLICY
    (tmp_path / "gate.toml").write_text(policy, "utf-8")
    once, by_hand = CONSOLE
    shell(once, tmp_path)
    found = [list(scripts(yaml.safe_load(each))) for each in PIPELINES]
    assert [commands[0] for commands in found] == ['pip install "$CTXBENCH"'] * 2
    for commands in found:
        assert [command.split()[:2] for command in commands[1:]] == [["ctxbench", "run"], ["ctxbench", "gate"]]
        assert "The gate passes" in [shell(command, tmp_path) for command in commands[1:]][-1]
        assert (tmp_path / "gate.xml").is_file()
    assert (tmp_path / "summary.md").read_text("utf-8").startswith("## The gate passes")
    assert "tokens_sent (lower is better" in shell(by_hand, tmp_path)
