"""What a reader leaves of a file's text: by the texts themselves, for any format."""

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
    """A user sees what was read of the files, and which keys hold the rest."""
    path = chat(tmp_path / "a.jsonl", screen=NOTE)
    [row] = json.loads(ctxbench("describe", path, "--coverage", "--json", cwd=tmp_path).stdout)["coverage"]
    assert (row["messages"], row["calls"], row["not_read"]) == (2, 1, {".screen": len(NOTE)})
