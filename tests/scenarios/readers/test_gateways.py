"""Logs of gateways: LiteLLM's proxy and Helicone."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ctxbench.scenarios.model import Conversation, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers import readers
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.samples import helicone, litellm_proxy

LOGS = {"litellm_proxy": litellm_proxy, "helicone": helicone}


def load(path: Path, rows: list[dict[str, Any]]) -> tuple[list[Conversation], Problems]:
    path.write_text("\n".join(map(json.dumps, rows)))
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


@pytest.mark.parametrize("gateway", LOGS)
def test_requests_of_a_session_are_one_conversation(tmp_path: Path, gateway: str) -> None:
    """Two requests that extend each other are one conversation, with usage, cache reads, cost and times."""
    path = tmp_path / "log.jsonl"
    [chat], problems = load(path, LOGS[gateway]("s1"))
    assert isinstance(detect(path), readers()[gateway])
    assert not problems.errors
    assert not problems.notes
    assert chat.id == "s1"
    assert [message.role for message in chat.messages] == ["system", "user", "assistant", "tool", "assistant"]
    calls = [message.call for message in chat.messages if message.call]
    assert [call.usage for call in calls] == [Usage(input=100, output=5, cache_read=60, cost=0.5)] * 2
    assert {(call.model, call.provider) for call in calls} == {("m", "p")}
    assert chat.messages[2].time == 1700000001
    assert chat.tools[0].name == "look"


@pytest.mark.parametrize("gateway", LOGS)
def test_a_bad_row_is_named_and_costs_only_itself(tmp_path: Path, gateway: str) -> None:
    """A row whose request has an unknown role is one error with line and field; the other session is read."""
    bad = LOGS[gateway]("bad")[0]
    (bad.get("proxy_server_request") or bad["request_body"])["messages"] = [{"role": "wizard", "content": "?"}]
    [chat], problems = load(tmp_path / "log.jsonl", [bad, *LOGS[gateway]("s1")])
    [error] = problems.errors
    assert chat.id == "s1"
    assert error.place.line == 1
    assert error.place.field.endswith("messages[0].role")


def test_columns_count_where_nothing_else_does(tmp_path: Path) -> None:
    """A row of a CSV table without usage in its response has the tokens of the columns, and of its metadata."""
    row = litellm_proxy("s1")[0]
    del row["response"]["usage"]
    row["metadata"] = {"additional_usage_values": {"cache_read_input_tokens": 40}}
    path = tmp_path / "spend.csv"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, row)
        table.writeheader()
        table.writerow({key: json.dumps(cell) if isinstance(cell, dict) else cell for key, cell in row.items()})
    problems = Problems()
    [chat] = read(find([path], problems), problems)
    assert not problems.errors
    assert chat.messages[-1].call is not None
    assert chat.messages[-1].call.usage == Usage(input=100, output=5, cache_read=40, cost=0.5)


@pytest.mark.parametrize("gateway", LOGS)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_of_the_log_is_no_data_set(tmp_path: Path, gateway: str, suffix: str) -> None:
    """A column of messages beside those of the log does not hide the answers, and costs are numbers in CSV too."""
    path = tmp_path / f"log{suffix}"
    rows = [{**row, "messages": row.get("messages") or "[]"} for row in LOGS[gateway]("s1")]
    frame = pd.DataFrame(rows).map(lambda cell: json.dumps(cell) if isinstance(cell, dict | list) else cell)
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    assert isinstance(detect(path), readers()[gateway])
    problems = Problems()
    [chat] = read(find([path], problems), problems)
    assert not problems.errors
    calls = [message.call for message in chat.messages if message.call]
    assert [call.usage for call in calls] == [Usage(input=100, output=5, cache_read=60, cost=0.5)] * 2


def test_what_the_proxy_answered_itself_is_no_call(tmp_path: Path) -> None:
    """A hit in the proxy's own cache is in the notes, and so is a request that the proxy cut."""
    first, second = litellm_proxy("s1")
    [hit, _] = litellm_proxy("s2")
    second["proxy_server_request"]["messages"][3]["content"] = "a ... (litellm_truncated 9 chars)"
    chats, problems = load(tmp_path / "log.jsonl", [first, second, {**hit, "cache_hit": "True"}])
    assert [chat.id for chat in chats] == ["s1"]
    assert [note.partition(":")[2].partition(":")[0] for note in problems.notes] == [
        " request or response that the proxy cut",
        " answer from the proxy's own cache",
    ]
