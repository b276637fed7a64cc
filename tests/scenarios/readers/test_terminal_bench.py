"""Terminal-Bench trials: a record a call, over folders of episodes, with responses in two providers' forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.call_logs import TerminalBench
from ctxbench.scenarios.source import Problems


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
