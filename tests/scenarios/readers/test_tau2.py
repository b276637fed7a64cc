from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Call, Conversation, Usage
from ctxbench.scenarios.read import Batch, detect, read
from ctxbench.scenarios.readers.trials import Tau2
from ctxbench.scenarios.source import Problems


def at(second: int) -> str:
    return f"2025-06-15T12:00:{second:02}.5"


USAGE = {"prompt_tokens": 900, "completion_tokens": 20}
RAW = {"model": "gpt-4.1-2025-04-14", "usage": {**USAGE, "prompt_tokens_details": {"cached_tokens": 768}}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "assistant", "content": "Hi!", "tool_calls": None, "timestamp": at(0), "cost": 0.0, "usage": None},
    {"role": "user", "content": "My phone is offline", "timestamp": at(1)},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "name": "get_line", "arguments": {"n": 7}, "requestor": "assistant"}],
        "timestamp": at(2),
        "cost": 0.002,
        "usage": USAGE,
        "raw_data": RAW,
    },
    {"id": "c1", "role": "tool", "content": "active", "requestor": "assistant", "error": False, "timestamp": at(3)},
    {"role": "assistant", "content": "Restart it", "timestamp": at(4), "usage": USAGE},
    {
        "role": "user",
        "content": None,
        "tool_calls": [{"id": "u1", "name": "reboot", "arguments": {}}],
        "timestamp": at(5),
    },
    {"id": "u1", "role": "tool", "content": "rebooted", "requestor": "user", "timestamp": at(6)},
    {"role": "user", "content": "It works ###STOP###", "timestamp": at(7)},
]
RUN = {
    "id": "s1",
    "task_id": "t1",
    "trial": 0,
    "start_time": at(0),
    "reward_info": {"reward": 1.0},
    "messages": MESSAGES,
}
INFO = {
    "git_commit": "0",
    "user_info": {"llm": "gpt-4.1"},
    "agent_info": {"llm": "gpt-4.1"},
    "environment_info": {"domain_name": "telecom", "policy": "Be kind."},
}


def load(folder: Path, results: object) -> tuple[list[Conversation], list[RecordingError]]:
    problems = Problems()
    (folder / "run.json").write_text(json.dumps(results, indent=2))
    return list(read([Batch(Tau2(), (folder / "run.json",))], problems)), problems.errors


def test_the_agent_sees_nothing_of_the_users_own_tools(tmp_path: Path) -> None:
    """The user's calls and their results are left out and counted; the agent's stay."""
    [conversation], problems = load(tmp_path, {"info": INFO, "tasks": [], "simulations": [RUN]})
    assert not problems
    assert [message.text for message in conversation.messages] == [
        "Be kind.",
        "Hi!",
        "My phone is offline",
        "",
        "active",
        "Restart it",
        "It works ###STOP###",
    ]
    assert conversation.meta["users_tool_messages"] == 2
    assert conversation.meta["domain"] == "telecom"
    assert conversation.meta["reward"] == 1.0


def test_calls_carry_the_fullest_usage(tmp_path: Path) -> None:
    """The provider's raw usage is taken before the message's own; the fixed greeting and the user have no call."""
    [conversation], _ = load(tmp_path, {"info": INFO, "tasks": [], "simulations": [RUN]})
    _, greeting, user, first, _, second, _ = conversation.messages
    assert greeting.call is None
    assert user.call is None
    assert first.call is not None
    assert first.call.model == "gpt-4.1-2025-04-14"
    assert first.call.usage == Usage(input=900, output=20, cache_read=768, cost=0.002)
    assert second.call is not None
    assert second.call.model == "gpt-4.1"
    assert second.call.usage == Usage(input=900, output=20)
    assert first.calls[0].arguments == '{"n":7}'
    assert first.time == 1749988802.5


USER_USAGE = {"prompt_tokens": 300, "completion_tokens": 9}


def with_user_usage() -> dict[str, Any]:
    """The same simulation, with the usage of the simulated user."""
    messages = [
        {**message, "usage": USER_USAGE, "cost": 0.001} if message["role"] == "user" else message
        for message in MESSAGES
    ]
    return {**RUN, "messages": messages}


def test_the_simulated_user_is_an_agent_of_its_own(tmp_path: Path) -> None:
    """With usage of the user, a second conversation has its calls: roles swapped, its tools, none of the agent's."""
    user_info = {"llm": "gpt-4o", "global_simulation_guidelines": "You are a customer."}
    info = {**INFO, "user_info": user_info}
    (agent, user), problems = load(tmp_path, {"info": info, "simulations": [with_user_usage()]})
    assert not problems
    assert (agent.id, user.id) == ("run/t1.0", "run/t1.0/user")
    assert [(message.role, message.text) for message in user.messages] == [
        ("system", "You are a customer."),
        ("user", "Hi!"),
        ("assistant", "My phone is offline"),
        ("user", "Restart it"),
        ("assistant", ""),
        ("tool", "rebooted"),
        ("assistant", "It works ###STOP###"),
    ]
    assert [user.messages[at].call for at in user.calls()] == [Call("gpt-4o", usage=Usage(300, 9, cost=0.001))] * 3
    assert user.messages[4].calls[0].name == "reboot"
    assert user.messages[5].answers == "u1"
    assert user.meta["agents_tool_messages"] == 2
    assert [message.role for message in agent.messages].count("user") == 2


def test_the_users_side_needs_usage_not_info(tmp_path: Path) -> None:
    """Without info its model is unknown and it has no system message; the first raw usage of a user is enough."""
    messages = [*MESSAGES[:1], {**MESSAGES[1], "raw_data": {**RAW, "model": None}}, *MESSAGES[2:]]
    (agent, user), problems = load(tmp_path, {"simulations": [{**RUN, "messages": messages}]})
    assert not problems
    assert [message.call for message in agent.messages if message.role == "user"] == [None, None]
    first, *others = (user.messages[at].call for at in user.calls())
    assert first == Call("", usage=Usage(input=900, output=20, cache_read=768))
    assert others == [None, None]


def test_a_file_without_info_and_tasks(tmp_path: Path) -> None:
    """Such files are read too: without the policy, the conversation starts with the greeting."""
    [conversation], problems = load(tmp_path, {"simulations": [RUN]})
    assert not problems
    assert conversation.messages[0].text == "Hi!"
    assert detect(tmp_path / "run.json") == Tau2()


def test_it_is_known_by_its_info_where_the_tasks_fill_the_head(tmp_path: Path) -> None:
    """Telecom's tasks are megabytes, and the simulations stand after them."""
    load(tmp_path, {"info": INFO, "tasks": [{"id": "x" * 1000}] * 1000, "simulations": [RUN]})
    assert detect(tmp_path / "run.json") == Tau2()


def test_several_results_kept_as_one_message_stand_apart(tmp_path: Path) -> None:
    """Each result of a multi-tool message answers its own call."""
    calls = [{"id": name, "name": "f", "arguments": {}} for name in "ab"]
    results = [{"id": name, "role": "tool", "content": name} for name in "ab"]
    said = [{"role": "assistant", "tool_calls": calls}, {"role": "tool", "tool_messages": results}]
    [conversation], problems = load(tmp_path, {"simulations": [{**RUN, "messages": said}]})
    assert not problems
    assert [message.answers for message in conversation.messages[1:]] == ["a", "b"]


def test_a_time_that_runs_backwards_is_dropped(tmp_path: Path) -> None:
    """The message stays, without its time, and meta counts it."""
    said = [
        {"role": "user", "content": "a", "timestamp": at(9)},
        {"role": "assistant", "content": "b", "timestamp": at(8)},
    ]
    [conversation], _ = load(tmp_path, {"simulations": [{**RUN, "messages": said}]})
    assert conversation.messages[1].time is None
    assert conversation.meta["times_dropped"] == 1


def test_damaged_simulations_cost_only_themselves(tmp_path: Path) -> None:
    """A role, a type, a time, a voice run: one problem each with its field, and the sound simulation is read."""
    wrong = [
        {"role": "robot", "content": "a"},
        {"role": "user", "content": 5},
        {"role": "user", "content": "a", "timestamp": "noon"},
        {"role": "user", "content": "UklGRg==", "is_audio": True},
    ]
    runs = [{**RUN, "messages": [message]} for message in wrong]
    conversations, problems = load(tmp_path, {"simulations": [*runs, RUN, {"messages": []}]})
    assert len(conversations) == 1
    assert [problem.place.field for problem in problems] == [
        "simulations[0].messages[0].role",
        "simulations[1].messages[0].content",
        "simulations[2].messages[0].timestamp",
        "simulations[3].messages[0].is_audio",
        "simulations[5]",
    ]


def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    """One object is one record: nothing of it is read, and the problem says why."""
    (tmp_path / "cut.json").write_text(json.dumps({"simulations": [RUN]})[:-30])
    problems = Problems()
    assert not list(read([Batch(Tau2(), (tmp_path / "cut.json",))], problems))
    assert "ends in the middle" in problems.errors[0].what
