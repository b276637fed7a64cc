"""Shells complete strategies, scenarios, paths, models and runs."""

import os
from pathlib import Path

import pytest

from tests.harness.command import CTXBENCH, forked


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_asks_for_them(shell: str, tmp_path: Path) -> None:
    """The protocol of each shell, as `--install-completion` sets it up."""
    words = {"COMP_WORDS": "ctxbench run --strategy retr", "COMP_CWORD": "3"}
    others = {"_TYPER_COMPLETE_ARGS": "ctxbench run --strategy retr", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    asked = {**os.environ, **words, **others, "_CTXBENCH_COMPLETE": f"complete_{shell}"}
    done = forked("commands", [CTXBENCH], tmp_path, asked)
    assert "retrieval" in done.stdout
    assert "window" not in done.stdout.partition("\t")[0]
