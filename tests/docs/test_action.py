"""`action.yml`: its steps are run here as GitHub runs them, with variables and files of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.harness.command import ctxbench, with_ctxbench
from tests.harness.runs import recording

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def action() -> dict[str, Any]:
    """The file, as GitHub reads it."""
    yaml = pytest.importorskip("yaml")
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    return found


def gate(action: dict[str, Any], folder: Path, **inputs: str) -> tuple[int, str, dict[str, str]]:
    """Run the last step: its exit code, the job's summary, the outputs."""
    step = action["runs"]["steps"][-1]
    given = {name: each.get("default", "") for name, each in action["inputs"].items()} | inputs
    values = {name: given[text.removeprefix("${{ inputs.").removesuffix(" }}")] for name, text in step["env"].items()}
    files = {name: str(folder / name.lower()) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **values, **files, "PATH": with_ctxbench()}, capture_output=True
    )
    said = [Path(file).read_text("utf-8") if Path(file).exists() else "" for file in files.values()]
    outputs = dict(line.split("=", 1) for line in said[1].splitlines())
    return done.returncode, said[0], outputs


def test_it_passes_and_fails_and_says_why(action: dict[str, Any], tmp_path: Path) -> None:
    """The verdict and the gate's answer are the job's summary and the comment, whether the gate passes or fails."""
    recording(tmp_path, conversations=4)
    strategies = "none\nwindow(max_tokens=300)\n"
    ran = ["run", "some.jsonl", "-s", "none", "-s", "window(max_tokens=300)", "--out", "runs/before"]
    for words in (ran, ["gate", "runs/before", "--update"]):
        ctxbench(*words, cwd=tmp_path)
    code, summary, outputs = gate(action, tmp_path, recordings="some.jsonl", strategies=strategies)
    assert (code, Path(outputs["comment"]).read_text("utf-8")) == (0, summary)
    assert summary.startswith("```text\n\n")
    assert "conversations, " in summary
    assert "## " in summary.partition("```\n\n")[2]
    code, summary, _ = gate(action, tmp_path, recordings="some.jsonl", strategies="none")
    assert code == 1, "a strategy of the baseline is gone"
    assert "Lost: 1 strategy" in summary


def test_what_a_caller_writes_is_no_command(action: dict[str, Any], tmp_path: Path) -> None:
    """Texts reach the script as variables; a strategy that tries to be a command is an unknown strategy."""
    recording(tmp_path, conversations=1)
    code, _, _ = gate(action, tmp_path, recordings="some.jsonl", strategies="none\n$(touch broken); `touch broken`")
    assert code == 2
    assert not (tmp_path / "broken").exists()
    assert "${{" not in action["runs"]["steps"][-1]["run"]
