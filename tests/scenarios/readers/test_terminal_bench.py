"""Terminal-Bench trials: a record a call, over folders of episodes, with responses in two providers' forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from ctxbench.scenarios.model import Call, Conversation, Mark, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.call_logs import TerminalBench
from ctxbench.scenarios.source import Problems

START = 1_700_000_000


def user(words: str, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": words, **fields}]}


def said(words: str) -> dict[str, Any]:
    return {"role": "assistant", "content": words}


def chat(name: str, words: str) -> dict[str, Any]:
    counts = {"prompt_tokens": 900, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 600}}
    return {
        "id": name,
        "model": "gpt-4o-2024",
        "choices": [{"message": said(words), "finish_reason": "stop"}],
        "usage": counts,
    }


def record(response: Any, *messages: Any, **fields: Any) -> dict[str, Any]:
    text = response if isinstance(response, str) else json.dumps(response)
    about = {
        "model": "openai/gpt-4o",
        "optional_params": {"temperature": 1.0},
        "start_time": "2023-11-14 22:13:20.500000",
    }
    return {**about, "messages": messages, "original_response": text, **fields}


def load(folder: Path, *records: Any) -> tuple[list[Conversation], Problems]:
    """What is read of a trial with these records."""
    for at, one in enumerate(records):
        episode = folder / "t.1-of-1.run" / "agent-logs" / f"episode-{at + 8}"
        episode.mkdir(parents=True)
        (episode / "debug.json").write_text(json.dumps(one))
        (episode / "response.txt").write_text("x")
        assert isinstance(detect(episode / "debug.json"), TerminalBench)
    problems = Problems()
    return list(read(find([folder], problems), problems)), problems


def test_the_episodes_of_a_trial_are_a_conversation(tmp_path: Path) -> None:
    """They are taken by number, and each answer has what its own record reports."""
    texts = [user("0"), said("a0"), user("1"), said("a1"), user("2"), said("a2")]
    records = [record(chat(f"r{at}", f"a{at}"), *texts[: 2 * at + 1]) for at in range(3)]
    [told], problems = load(tmp_path, *records)
    assert not problems.errors
    assert told.id == "t.1-of-1.run"
    assert [m.text for m in told.messages] == ["0", "a0", "1", "a1", "2", "a2"]
    used = Usage(900, 7, 600)
    assert [m.call for m in told.messages if m.call] == [
        Call("gpt-4o-2024", "openai", used, START + 0.5, stop="stop", request_id=f"r{at}", requested="gpt-4o")
        for at in range(3)
    ]


def test_a_trial_in_an_archive(tmp_path: Path) -> None:
    """The records of its folders are one batch, there as well."""
    records = [record(chat("r0", "a0"), user("0")), record(chat("r1", "a1"), user("0"), said("a0"), user("1"))]
    load(tmp_path / "run", *records)
    with ZipFile(tmp_path / "run.zip", "w") as archive:
        for path in (tmp_path / "run").rglob("debug.json"):
            archive.write(path, path.relative_to(tmp_path))
    problems = Problems()
    [batch] = find([tmp_path / "run.zip"], problems)
    [told] = read([batch], problems)
    assert not problems.errors
    assert (told.id, [m.text for m in told.messages]) == ("t.1-of-1.run", ["0", "a0", "1", "a1"])


def test_a_response_of_anthropic(tmp_path: Path) -> None:
    """It is in its provider's form, and so is its usage; the request's marks are those of the chat form."""
    counts = {"input_tokens": 1, "cache_read_input_tokens": 9, "output_tokens": 7}
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Done"}]
    response = {"id": "msg", "model": "claude-x", "content": content, "stop_reason": "end_turn", "usage": counts}
    marked = user("Go", cache_control={"type": "ephemeral"})
    about = {"model": "anthropic/claude", "custom_llm_provider": "anthropic", "start_time": None}
    [told], problems = load(tmp_path, record(response, marked, **about))
    assert not problems.errors
    answer = told.messages[1]
    assert (answer.text, answer.thinking) == ("Done", "hm")
    assert answer.call == Call(
        "claude-x",
        "anthropic",
        Usage(10, 7, 9),
        marks=(Mark("m0"),),
        stop="end_turn",
        request_id="msg",
        requested="claude",
    )


@pytest.mark.parametrize(
    ("bad", "field", "what"),
    [
        (record("{", user("1")), "original_response", "the JSON ends in the middle"),
        (record({"choices": []}, user("1")), "original_response.choices", "no answer"),
        (record(chat("r", "a"), {"role": "oracle"}), "messages[0].role", "unknown role 'oracle'"),
        (record(chat("r", "a"), user("1"), start_time="noon"), "start_time", "'noon' is no time"),
        (record(chat("r0", "a0"), user("1")), "original_response", "stands at"),
    ],
)
def test_a_bad_record_is_one_clear_error(tmp_path: Path, bad: Any, field: str, what: str) -> None:
    """It is named by its file and field, and the other records are read."""
    told, problems = load(tmp_path, record(chat("r0", "a0"), user("0")), bad, record(chat("r2", "a2"), user("2")))
    assert [m.text for one in told for m in one.messages] == ["0", "a0", "2", "a2"]
    [error] = problems.errors
    assert error.place.file.endswith("episode-9/debug.json")
    assert error.place.field == field
    assert what in error.what
