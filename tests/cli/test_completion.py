"""Shells complete strategies, scenarios, paths, models and runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ctxbench.cli import arguments
from tests.harness.command import CTXBENCH, forked


def names(choices: list[arguments.Choice]) -> list[str]:
    return [name for name, _ in choices]


def test_strategies_and_recipes() -> None:
    """By the start of the name, each with what it does; of a chain the next stage."""
    assert names(arguments.complete_strategies("win")) == ["window", "window_document"]
    assert dict(arguments.complete_strategies("archive_w"))["archive_window"].startswith(
        "Long tool results go to the archive"
    )
    assert names(arguments.complete_strategies("summary(every=5) | wind"))[0] == "summary(every=5) | window"
    assert "none" in names(arguments.complete_strategies(""))


def test_inputs_are_scenarios_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder ends in a slash, so that its files can follow; hidden ones are named only when asked for."""
    (tmp_path / "talks" / "old").mkdir(parents=True)
    (tmp_path / "talks" / "a.jsonl").touch()
    (tmp_path / ".hidden").touch()
    monkeypatch.chdir(tmp_path)
    assert names(arguments.complete_inputs("sm")) == ["smoke"]
    assert names(arguments.complete_inputs("ta")) == ["talks/"]
    assert names(arguments.complete_inputs("talks/")) == ["talks/a.jsonl", "talks/old/"]
    assert names(arguments.complete_inputs(f"{tmp_path}/ta")) == [f"{tmp_path}/talks/"]
    assert ".hidden" not in names(arguments.complete_inputs(""))
    assert names(arguments.complete_inputs("nowhere/")) == []


def test_runs_and_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is a folder with a manifest; models are those of the price map."""
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "manifest.json").touch()
    (tmp_path / "runs" / "none").mkdir()
    monkeypatch.chdir(tmp_path)
    assert names(arguments.complete_runs("")) == ["runs/mine"]
    assert names(arguments.complete_runs("ru")) == ["runs/mine"]
    assert "gpt-4o-mini" in names(arguments.complete_models("gpt-4o-m"))
    assert len(arguments.complete_models("")) == 50


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_asks_for_them(shell: str, tmp_path: Path) -> None:
    """The protocol of each shell, as `--install-completion` sets it up."""
    words = {"COMP_WORDS": "ctxbench run --strategy retr", "COMP_CWORD": "3"}
    others = {"_TYPER_COMPLETE_ARGS": "ctxbench run --strategy retr", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    asked = {**os.environ, **words, **others, "_CTXBENCH_COMPLETE": f"complete_{shell}"}
    done = forked("commands", [CTXBENCH], tmp_path, asked)
    assert "retrieval" in done.stdout
    assert "window" not in done.stdout.partition("\t")[0]
