"""The page of promises: each names a test that is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| (.+) \| `(tests/\S+)::(\w+)` \|$", (ROOT / "docs" / "promises.md").read_text("utf-8"), re.M)


@pytest.mark.parametrize(("promise", "path", "name"), ROWS, ids=[row[2] for row in ROWS])
def test_a_promise_is_held_by_a_test(promise: str, path: str, name: str) -> None:
    """The test that a promise names is defined in that file."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, promise


def test_every_row_is_read() -> None:
    """No promise stands without its test, and there are few."""
    rows = re.findall(r"^\| .+ \|$", (ROOT / "docs" / "promises.md").read_text("utf-8"), re.M)
    assert len(ROWS) == len(rows) - rows.count("| promise | held by |") <= 12
