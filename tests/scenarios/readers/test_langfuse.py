"""Langfuse: traces of the API and of exports give the same conversation, each generation counted once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ctxbench.scenarios.model import Usage
from tests.scenarios.readers.traces import CALLED, LATER, PROMPT, SAID, SHOWN, load, sample_usages, shown, usages

USED = {"model": "m", "usageDetails": {"input": 100, "output": 5, "total": 105}}


def observation(name: str, second: int, kind: str = "GENERATION", parent: str | None = "a", **more: Any) -> Any:
    times = {"startTime": f"2025-01-01T00:00:0{second}.000Z", "endTime": f"2025-01-01T00:00:0{second + 1}.000Z"}
    ids = {"id": name, "traceId": "T", "parentObservationId": parent}
    return {**ids, "type": kind, "name": name, **times, **(USED if kind == "GENERATION" else {}), **more}


TRACE = {"id": "T", "timestamp": "2025-01-01T00:00:00.000Z", "sessionId": "s1", "bookmarked": False, "tags": []}
OBSERVATIONS = [
    observation("c", 5, input={"messages": LATER}, output=SAID),
    observation("b", 2, input=json.dumps(PROMPT), output=json.dumps({"choices": [{"message": CALLED}]})),
    observation("a", 1, "AGENT", None),
    observation("t", 4, "TOOL", input={"at": 1}, output="a cat"),
]


def snake(fields: dict[str, Any]) -> dict[str, Any]:
    """Names as the export to blob storage has them."""
    return {"".join(f"_{c.lower()}" if c.isupper() else c for c in name): value for name, value in fields.items()}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_of_observations_without_parents(suffix: str, tmp_path: Path) -> None:
    """It has no column of parents where all of them are empty, and its cells are JSON."""
    rows = [{**one, "parentObservationId": None, "sessionId": "s1"} for one in OBSERVATIONS[:2]]
    frame = pd.DataFrame(rows).map(lambda cell: json.dumps(cell) if isinstance(cell, dict | list) else cell)
    path = tmp_path / f"observations{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    [chat], problems = load(tmp_path)
    assert not problems.errors
    assert (chat.id, shown(chat)) == ("s1", SHOWN)
    assert usages(chat) == [Usage(100, 5)] * 2


@pytest.mark.parametrize(
    "files",
    [
        [{"trace": TRACE, "observations": OBSERVATIONS}],
        [{**TRACE, "observations": OBSERVATIONS}],
        [[{**TRACE, "observations": OBSERVATIONS}]],
        [{"data": OBSERVATIONS, "meta": {"page": 1}}, {"data": [TRACE], "meta": {}}],
        [json.dumps(OBSERVATIONS), [TRACE]],
        [[snake(one) for one in OBSERVATIONS], [snake(TRACE)]],
    ],
)
def test_every_export(files: list[Any], tmp_path: Path) -> None:
    """A trace with its observations, pages of the API, and exports with traces in a file of their own."""
    [chat], problems = load(tmp_path, *files)
    assert not problems.errors
    assert not problems.ignored
    assert (chat.id, chat.meta, shown(chat)) == ("s1", {"agent": "a"}, SHOWN)
    assert usages(chat) == [Usage(100, 5)] * 2
    first = chat.messages[2]
    assert first.call is not None
    assert first.time is not None
    assert first.call.started is not None
    assert (first.call.model, first.time - first.call.started) == ("m", 1)


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"input": 40, "input_cache_read": 60, "output": 5, "total": 105}, Usage(100, 5, 60)),
        ({"input": 30, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10, "output": 5, "total": 105},
         Usage(100, 5, 60, 10)),
        ({"input": 40, "input_cache_read": 50, "input_audio": 10, "output": 3, "output_reasoning": 2, "total": 105},
         Usage(100, 5, 50, reasoning=2)),
        ({"input": 100, "prompt_details.cache_read": 60, "output": 5, "completion_details.reasoning": 2, "total": 105},
         Usage(100, 5, 60, reasoning=2)),
        ({"input": 100, "output": 3, "reasoning_tokens": 2, "total": 105}, Usage(100, 5, reasoning=2)),
        ({"input": 100, "total": 100}, Usage(100)),
        ({}, None),
    ],
)  # fmt: skip
def test_the_kinds_of_tokens(details: Any, expected: Usage | None, tmp_path: Path) -> None:
    """Kinds that add up to the total are parts; kinds that do not are repeated within the input and the output."""
    [chat], problems = load(tmp_path, [observation("b", 1, input=PROMPT, output=SAID, usageDetails=details)])
    assert not problems.errors
    assert usages(chat) == [expected]


def test_langgraph(tmp_path: Path) -> None:
    """The thread of a checkpoint is the conversation; tools that are logged as messages are tools."""
    schema = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    logged = [*PROMPT, {"role": "tool", "content": schema}]
    [chat], _ = load(tmp_path, [observation("b", 1, input=logged, output=SAID, metadata={"thread_id": "thread"})])
    assert (chat.id, len(chat.messages), [tool.name for tool in chat.tools]) == ("thread", 3, ["look"])


def test_a_failed_generation(tmp_path: Path) -> None:
    """A generation with an error and without output and usage is counted in the notes."""
    found, problems = load(tmp_path, [observation("b", 1, input=PROMPT, level="ERROR", usageDetails={})])
    assert not found
    assert problems.notes[0].startswith("langfuse: failed model call: 1 not read")


def test_an_attempt_that_was_made_again(tmp_path: Path) -> None:
    """Langfuse estimates the usage of a failed generation; the next one with its prompt is the call."""
    estimated = {"input": 9, "output": 0, "total": 9}
    failed = observation("b", 1, input=PROMPT, level="ERROR", statusMessage="429", usageDetails=estimated)
    [chat], problems = load(tmp_path, [failed, observation("c", 3, input=PROMPT, output=SAID)])
    assert shown(chat) == [("system", "Be short."), ("user", "What is it?"), ("assistant", "A cat.")]
    assert problems.notes == [f"langfuse: failed model call: 1 not read ({tmp_path / 'trace0.json'}:1)"]


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"startTime": "soon"}, "observations[0].startTime: 'soon' is no time"),
        ({"id": None}, "observations[0].id: expected str, got null"),
        ({"input": [{"role": "pope"}]}, "observations[0].input[0].role: unknown role 'pope'"),
    ],
)
def test_a_bad_observation_costs_only_itself(fields: Any, what: str, tmp_path: Path) -> None:
    """Its error has file, line and field."""
    bad = {**observation("x", 8, input=PROMPT, output=SAID), **fields}
    [chat], problems = load(tmp_path, {"trace": TRACE, "observations": [bad, *OBSERVATIONS]})
    assert shown(chat) == SHOWN
    [error] = problems.errors
    assert str(error).startswith(f"{tmp_path / 'trace0.json'}:1: {what}")


def test_the_samples(recordings: Path) -> None:
    """Of generations inside each other one counts (Agno's four are two calls); two of BeeAI's have no prompt."""
    found = sample_usages(recordings / "langfuse")
    assert {name.partition("-20")[0]: rows for name, rows in found.items()} == {
        "agno": [("gpt-4o-mini", 163, 20, None), ("gpt-4o-mini", 663, 225, None)],
        "beeai": [("gpt-4o-mini", tokens, None, None) for tokens in (1195, 1988, 2359)],
        "claude-agent": [
            ("claude-sonnet-4-5-20250929", *counts, None) for counts in ((19, 29), (5, 53), (5, 56), (5, 94))
        ],
        "langgraph-python": [("gpt-4o-2024-08-06", 60, 15, 0), ("gpt-4o-2024-08-06", 108, 51, 0)],
        "openai-agents": [("gpt-4.1-2025-04-14", 55, 15, 0), ("gpt-4.1-2025-04-14", 85, 29, 0)],
        "pydantic-ai-tools": [
            ("gpt-4o-mini-2024-07-18", *counts, None) for counts in ((265, 73), (417, 53), (502, 14), (131, 69))
        ],
    }
