"""`ctxbench describe`: sets of recordings side by side."""

from __future__ import annotations

import json
from pathlib import Path

from ctxbench.metrics.profile import FEATURES
from tests.harness.command import ctxbench


def test_sets_stand_side_by_side(tmp_path: Path) -> None:
    """Each set is a column of the table, by its name; with --json a missing figure has its reason."""
    printed = ctxbench("describe", "traps", "friends", cwd=tmp_path).stdout
    head = next(line for line in printed.splitlines() if line.startswith("feature"))
    assert head.split()[1:] == ["traps", "friends"]
    assert all(feature.name in printed for feature in FEATURES.values())
    profiles = json.loads(ctxbench("describe", "traps", "friends", "--json", cwd=tmp_path).stdout)
    assert profiles["traps"]["conversations"] == 14
    assert profiles["friends"]["tool_tokens"] == {"why": "undefined", "detail": "no such message"}


def test_a_set_that_cannot_be_read_loses_nothing_else(tmp_path: Path) -> None:
    """A path that is not there is named once, and the others are described; none at all is an error."""
    described = ctxbench("describe", "nowhere", "questions", cwd=tmp_path)
    assert "left out: nowhere: there is no such file or folder" in described.stderr
    assert "questions" in described.stdout
    assert "nothing to describe" in ctxbench("describe", "nowhere", cwd=tmp_path, code=2).stderr
