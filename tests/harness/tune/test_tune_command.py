"""`ctxbench tune`, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.command import ctxbench
from tests.harness.tune.builders import recording

SEARCH = ("tune", "window(max_tokens=?)", "codes.jsonl", "--model", "tokens", "-n", "6")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recordings, and one search over them."""
    made = tmp_path_factory.mktemp("tune")
    recording(made, turns=5)
    (made / "first.txt").write_text(ctxbench(*SEARCH, "-o", "one", cwd=made).stdout)
    return made


def test_what_is_printed(folder: Path) -> None:
    """The frontier, what was held out beside it, the space, and texts that `run` takes."""
    text = (folder / "first.txt").read_text()
    assert "The frontier of window(max_tokens=?): cost (tokens a conversation) and grounding" in text
    assert "Searched on 4 conversations; 4 conversations held out." in text
    assert "Held out: against the whole history" in text
    assert "up to the longest conversation" in text
    found = json.loads((folder / "one" / "tune.json").read_text())
    specs = [each["spec"] for each in found["settings"] if each["chosen"]]
    assert specs
    assert all(each in text for each in specs)
    ctxbench("run", "codes.jsonl", "-s", specs[0], "-o", "pasted", cwd=folder)
    assert not (folder / "one" / "running").exists()


def test_bad_input(folder: Path) -> None:
    """One line each, exit code 2, and no folder is made."""
    for words, says in (
        (("window(max_tokens=?)", "absent.jsonl"), "no such file"),
        (("window(max_token=?)", "codes.jsonl"), "did you mean 'max_tokens'"),
        (("window(max_tokens=?[9..1])", "codes.jsonl"), "9 is more than 1"),
    ):
        done = ctxbench("tune", *words, "-o", "bad", cwd=folder, code=2)
        assert says in done.stderr
        assert not (folder / "bad").exists()
    (folder / "single.jsonl").write_bytes((folder / "codes.jsonl").read_bytes().splitlines(keepends=True)[0])
    done = ctxbench("tune", "window(max_tokens=?)", "single.jsonl", "-o", "bad", cwd=folder, code=2)
    assert "one conversation: none can be held out" in done.stderr
