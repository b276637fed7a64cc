"""Terminal-Bench trials: a record a call, over folders of episodes."""

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems


def said(role: str, words: str) -> dict[str, Any]:
    return {"role": role, "content": words}


def record(name: str, *messages: Any) -> str:
    choice = {"message": said("assistant", f"a{name}"), "finish_reason": "stop"}
    response = {"id": f"r{name}", "model": "gpt-4o-2024", "choices": [choice], "usage": {"prompt_tokens": 900}}
    about = {"model": "openai/gpt-4o", "optional_params": {}, "start_time": "2023-11-14 22:13:20.500000"}
    return json.dumps({**about, "messages": messages, "original_response": json.dumps(response)})


def test_a_trial_in_an_archive(tmp_path: Path) -> None:
    """The records of its folders are one batch, there as well."""
    first = said("user", "0")
    records = [record("0", first), record("1", first, said("assistant", "a0"), said("user", "1"))]
    with ZipFile(tmp_path / "run.zip", "w") as archive:
        for at, text in enumerate(records):
            archive.writestr(f"run/t.1-of-1.run/agent-logs/episode-{at + 8}/debug.json", text)
    problems = Problems()
    [batch] = find([tmp_path / "run.zip"], problems)
    [told] = read([batch], problems)
    assert not problems.errors
    assert (told.id, [m.text for m in told.messages]) == ("t.1-of-1.run", ["0", "a0", "1", "a1"])
