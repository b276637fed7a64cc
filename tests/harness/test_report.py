"""`ctxbench report`: what it takes, and what it says of which run it prints."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.harness.command import CTXBENCH, ctxbench
from tests.harness.runs import recording


def test_one_form_at_a_time(tmp_path: Path) -> None:
    """JSON and Markdown at once is an error, wherever the Markdown is to go, and nothing is written."""
    for target in ("-", "r.md"):
        done = ctxbench("report", "r", "--json", "--markdown", target, cwd=tmp_path, code=2)
        assert done.stderr == "error: give --json or --markdown, not both\n"
    assert not list(tmp_path.iterdir())


def test_which_run_is_printed(tmp_path: Path) -> None:
    """A run that was not named is named on standard error; one that was named is not named again."""
    path = recording(tmp_path, conversations=1)
    ctxbench("run", path, "-s", "none", "-o", "runs/one", cwd=tmp_path)
    for words in (("report",), ("report", "runs"), ("report", "--json"), ("show",)):
        assert ctxbench(*words, cwd=tmp_path).stderr == "runs/one: the newest run in runs\n"
    assert ctxbench("report", "runs/one", cwd=tmp_path).stderr == ""


def test_the_width_that_is_asked_for(tmp_path: Path) -> None:
    """Where standard output is no terminal, COLUMNS is kept to if it is set, and else no column is left out."""
    strategy = "layered | smart | session_summary | cache_marks"
    ctxbench("run", recording(tmp_path, conversations=1), "-s", strategy, "-o", "r", cwd=tmp_path)

    def report(**environment: str) -> str:
        return subprocess.run(
            [CTXBENCH, "report", "r"], cwd=tmp_path, env=environment, capture_output=True, text=True
        ).stdout

    assert max(map(len, report(COLUMNS="100").splitlines())) <= 100
    assert "No room for: " in report(COLUMNS="80")
    for environment in ({}, {"COLUMNS": ""}, {"COLUMNS": "0"}, {"COLUMNS": "wide"}):
        assert "No room for" not in report(**environment)
        assert strategy in report(**environment)
