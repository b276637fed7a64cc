"""What a reader leaves of a file's text: by the texts themselves, for any format."""

from __future__ import annotations

import json
from pathlib import Path

from ctxbench.scenarios.coverage import TextCoverage, coverage
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from tests.harness.command import ctxbench

QUESTION = "Which of the two trains is the faster one?"
ANSWER = "The night train takes an hour less than the other."
NOTE = "Nobody but the screen ever shows this sentence."


def chat(path: Path, **more: object) -> Path:
    messages = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}]
    path.write_text(json.dumps({"messages": messages, **more}) + "\n")
    return path


def of(path: Path) -> TextCoverage:
    [batch] = find([path], Problems())
    return coverage(batch, read([batch], Problems()), Problems())


def test_text_that_no_message_has_is_named_by_its_key(tmp_path: Path) -> None:
    """Two texts of three are read; the third stands under its key path, with its length."""
    compared = of(chat(tmp_path / "a.jsonl", screen={"lines": [NOTE]}))
    assert compared.missing == {".screen.lines[]": len(NOTE)}
    assert compared.covered == len(QUESTION) + len(ANSWER)
    assert compared.share == compared.covered / compared.characters


def test_a_copy_counts_once_and_names_hashes_and_times_do_not(tmp_path: Path) -> None:
    """A text that stands there twice is one text; identifiers, hashes, times and settings are none."""
    others = {"id": "call-9f86d081884c7d659a2feaa0c55ad015", "key": "A" * 900, "start": "2025-06-15 15:06:10.000000"}
    compared = of(chat(tmp_path / "a.jsonl", copy=ANSWER, **others))
    assert (compared.characters, compared.missing) == (len(QUESTION) + len(ANSWER), {})


def test_json_in_a_string_is_looked_into(tmp_path: Path) -> None:
    """A log that wraps what was said into JSON text, or into a longer text, has it all the same."""
    inner = json.dumps({"said": ANSWER, "drawn": NOTE})
    compared = of(chat(tmp_path / "a.jsonl", log=inner, wrapped=f"<b>{QUESTION}</b>"))
    assert compared.missing == {".log>.drawn": len(NOTE)}


def test_the_command_prints_counts_and_keys(tmp_path: Path) -> None:
    """A user sees what was read of each file, and which keys hold the rest; a file of no known format is an error."""
    path = chat(tmp_path / "a.jsonl", screen=NOTE)
    printed = ctxbench("lab", "check-reader", path, cwd=tmp_path).stdout
    assert "openai_chat" in printed
    assert ".screen" in printed
    [row] = json.loads(ctxbench("lab", "check-reader", path, "--json", cwd=tmp_path).stdout)
    assert (row["messages"], row["calls"], row["not_read"]) == (2, 1, {".screen": len(NOTE)})
    (tmp_path / "b.txt").write_text("hello")
    assert "nothing to check" in ctxbench("lab", "check-reader", tmp_path / "b.txt", cwd=tmp_path, code=2).stderr


def test_the_command_counts_what_providers_said_of_calls(tmp_path: Path) -> None:
    """A second table says how many calls have reasoning tokens, ids and the like; it has no column that would be 0."""
    usage = {"input": 9, "output": 5, "reasoning": 3}
    call = {"usage": usage, "request_id": "r-1", "tier": "priority"}
    messages = [{"id": "u", "role": "user"}, {"id": "a", "role": "assistant", "call": call}]
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"ctxbench": "1", "id": "c", "messages": messages}) + "\n")
    printed = ctxbench("lab", "check-reader", path, cwd=tmp_path).stdout
    assert "Of how many calls did the provider say more?" in printed
    assert "tier" in printed
    assert "audio" not in printed
    [row] = json.loads(ctxbench("lab", "check-reader", path, "--json", cwd=tmp_path).stdout)
    assert (row["reasoning"], row["request_id"], row["tier"], row["first_token"], row["audio_input"]) == (1, 1, 1, 0, 0)
