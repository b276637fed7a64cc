"""Trials of agents on benchmarks: τ-bench, τ²-bench, mini-swe-agent, SWE-agent, and Harbor's trajectories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Compaction, Conversation, Message, Role, Scalar, ToolCall
from ..source import Problems, as_text, convert, decode
from . import LIST, OBJECT, Fields, Reader, Recordings, anywhere
from .messages import (
    ChatMessage,
    ChatTool,
    History,
    chat_message,
    chat_messages,
    chat_tools,
    forward,
    iso_seconds,
    role_of,
    texts,
)
from .requests import Responses, dollars, usage


class _Trial(msgspec.Struct):
    task_id: int | str
    traj: list[ChatMessage]
    trial: int | str = 0
    reward: float | None = None


class TauBench(Reader):
    """τ-bench runs: `[{task_id, trial, reward, info: {task}, traj: [OpenAI messages]}]`.

    Source: github.com/sierra-research/tau-bench, `historical_trajectories/*.json`. The system prompt is the first
    message; the files have no tool schemas and no usage. A task is tried several times: each trial is a conversation.
    """

    about = "τ-bench trajectories (a JSON array of trials)"
    shapes = (frozenset({"[].traj", "[].traj[].role", "[].reward"}),)

    def conversations(self, raw: bytes, place: Place, problems: Problems) -> Recordings:
        trial = decode(raw, _Trial, place)
        name = f"{Path(place.file).stem}/{trial.task_id}.{trial.trial}"
        meta: dict[str, Scalar] = {"reward": trial.reward, "task": str(trial.task_id), "trial": str(trial.trial)}
        yield place, Conversation(name, chat_messages(trial.traj, place.at("traj"), problems), meta=meta)


class _Tau2Call(msgspec.Struct):
    name: str
    arguments: dict[str, Any] | str = {}
    id: str = ""


class _Tau2Message(msgspec.Struct):
    role: str
    content: str | None = None
    id: str | None = None
    requestor: str = "assistant"
    tool_calls: list[_Tau2Call] | None = None
    tool_messages: list[_Tau2Message] | None = None
    timestamp: str | None = None
    cost: Any = None
    usage: Any = None
    raw_data: dict[str, Any] | None = None
    is_audio: bool = False

    def reported(self) -> tuple[str, Any]:
        """Return the fullest usage that the message has, behind its field."""
        raw = (self.raw_data or {}).get("usage")
        return ("raw_data.usage", raw) if raw else ("usage", self.usage)


class Tau2(Reader):
    """τ²-bench results: `{info, tasks, simulations: [{id, task_id, trial, reward_info, messages}]}`, one object a file.

    Source: github.com/sierra-research/tau2-bench, `data/tau2/simulations/*.json`, schema in `src/tau2/data_model`. Some
    files have no info and no tasks. A simulation is a conversation of the agent, its id `<file>/<task>.<trial>`, and
    one of the simulated user, `<file>/<task>.<trial>/user`, if usage is recorded for the user's messages: two models
    were called.

    In τ² the simulated user has tools of its own (it restarts a phone, say). Neither side sees the other's tool calls
    and results, so they are left out (as in τ²'s own `is_valid_agent_history_message` and
    `is_valid_user_history_message`), and counted in meta. In the user's conversation the roles are swapped (as in
    `UserState.flip_roles`): what the user wrote are the assistant's messages, what the agent wrote the user's.

    If the file has the domain's policy, it becomes the agent's system message; the guidelines of the simulation become
    the user's. The agent was sent a few fixed sentences around it, the user also the scenario of the task, and both
    tool schemas; these are not in the messages. The agent's first greeting is a fixed text, no model call: it has no
    `call`. Times have no zone and are taken as UTC. Voice runs are rejected.
    """

    about = "τ²-bench results (one object with its simulations)"
    shapes = (
        frozenset({".simulations[].task_id", ".simulations[].messages", ".simulations[].messages[].role"}),
        frozenset({".info.environment_info", ".info.agent_info", ".info.user_info"}),  # tasks alone can fill the head
    )

    def conversations(self, raw: bytes, place: Place, problems: Problems) -> Recordings:
        results = Fields(decode(raw, OBJECT, place), place)
        for at, run in enumerate(results.needed("simulations", LIST)):
            where = place.at(f"simulations[{at}]")
            with problems.collect():
                simulation = Fields(convert(run, OBJECT, where), where)
                for conversation in _simulation(simulation, results, Path(place.file).stem, problems):
                    yield where, conversation


class _Side(NamedTuple):
    """One of the two models of a simulation: what it was called with, and what it saw."""

    suffix: str
    """Of the conversation's id."""
    model: str
    system: tuple[Message, ...]
    roles: dict[str, str]
    """Roles by the recorded ones, where they differ."""
    speaker: str
    """Recorded role of its own messages, and requestor of its tools."""
    hidden: str
    """Key of meta that counts the tool messages of the other side."""

    def sees(self, message: _Tau2Message) -> bool:
        """Return whether a message is no tool call of the other side, and no result of one."""
        if message.role == "tool":
            return message.requestor == self.speaker
        return message.role == self.speaker or not message.tool_calls


def _simulation(run: Fields, results: Fields, file: str, problems: Problems) -> Iterator[Conversation]:
    """Yield the agent's conversation, and the user's if usage is recorded for any of its messages."""
    run.needed("task_id", object)
    task, recorded = str(run.one_of("task_id", str | int)), list(_flat(run))
    trial, name = run.typed("trial", int), run.text("id")
    policy = run.text("policy") or results.text("info.environment_info.policy")
    model, system = results.text("info.agent_info.llm"), _system("policy", policy)
    sides = [_Side("", model, system, {}, "assistant", "users_tool_messages")]
    if any(message.role == "user" and message.reported()[1] for message, _ in recorded):
        swapped = {"user": "assistant", "assistant": "user"}
        system = _system("guidelines", results.text("info.user_info.global_simulation_guidelines"))
        model = results.text("info.user_info.llm")
        sides.append(_Side("/user", model, system, swapped, "user", "agents_tool_messages"))
    for side in sides:
        visible = [(message, where) for message, where in recorded if side.sees(message)]
        times, dropped = forward(
            iso_seconds(m.timestamp, w.below("timestamp")) if m.timestamp else None for m, w in visible
        )
        messages = [
            _tau2_message(message, f"m{at}", time, side, where, problems)
            for at, ((message, where), time) in enumerate(zip(visible, times, strict=True))
        ]
        yield Conversation(
            f"{file}/{task}.{name if trial is None else trial}{side.suffix}",
            (*side.system, *messages),
            language="en",
            meta={
                "task": task,
                "trial": trial,
                "simulation": name,
                "domain": results.typed("info.environment_info.domain_name", str),
                "reward": run.typed("reward_info.reward", float),
                "ended": run.typed("termination_reason", str),
                "started": run.typed("start_time", str),
                side.hidden: len(recorded) - len(visible),
                "times_dropped": dropped,
            },
        )


def _system(name: str, text: str) -> tuple[Message, ...]:
    return (Message(name, "system", text),) if text else ()


def _flat(run: Fields) -> Iterator[tuple[_Tau2Message, Place]]:
    """Yield the messages with their places; several results recorded as one message come one by one."""
    for at, message in enumerate(convert(run.at("messages"), list[_Tau2Message], run.place.below("messages"))):
        where = run.place.below(f"messages[{at}]")
        if message.tool_messages is None:
            yield message, where
        else:
            yield from ((result, where.below("tool_messages")) for result in message.tool_messages)


def _tau2_message(
    message: _Tau2Message, name: str, time: float | None, side: _Side, place: Place, problems: Problems
) -> Message:
    role = role_of(side.roles.get(message.role, message.role), place)
    if message.is_audio:
        raise RecordingError(place.below("is_audio"), "speech, not text", "read text runs only")
    call = None
    field, reported = message.reported()
    if role == "assistant" and reported:
        cost = dollars(message.cost, place.below("cost"), problems)
        model = Fields(message.raw_data, place).text("model") or side.model
        call = Call(model=model, usage=usage(reported, place.below(field), problems, cost))
    return Message(
        name,
        role,
        message.content or "",
        tuple(ToolCall(called.id, called.name, as_text(called.arguments)) for called in message.tool_calls or ()),
        answers=(message.id or "") if role == "tool" else None,
        time=time,
        call=call,
    )


class _Choice(msgspec.Struct):
    finish_reason: str | None = None


class _Response(msgspec.Struct):
    id: str | None = None
    model: str = ""
    created: float | None = None
    usage: Any = None
    choices: list[_Choice] = []


class _Extra(msgspec.Struct):
    response: _Response | None = None
    cost: Any = None
    timestamp: float | None = None
    exit_status: str | None = None


class _MiniMessage(ChatMessage):
    extra: _Extra = msgspec.field(default_factory=_Extra)


class _MiniRun(msgspec.Struct):
    messages: list[_MiniMessage]
    info: dict[str, Any]
    instance_id: str | None = None


class MiniSwe(Reader):
    """mini-swe-agent trajectories: `<run>/<task>.traj.json`, `{info, messages, instance_id}`.

    Source: github.com/SWE-agent/mini-swe-agent (formats 1 and 1.1). A message is in the OpenAI form with an `extra`:
    the raw response of the model call, its cost, and when it was complete. `response.created` is when the provider took
    the request, in whole seconds, so it may be up to a second before the message that it answers. The last message,
    role `exit`, was never sent: its status goes to `meta`. The files have no tool schema (there is one tool, `bash`),
    and no times of system and user messages.
    """

    about = "mini-swe-agent trajectories (.traj.json)"
    shapes = (
        frozenset({".info", ".info.exit_status", ".messages", ".messages[].role", ".messages[].extra"}),
        frozenset({".info", ".info.mini_version", ".messages", ".messages[].role"}),
    )

    def conversations(self, raw: bytes, place: Place, problems: Problems) -> Recordings:
        run = decode(raw, _MiniRun, place)
        info = Fields(run.info, place.at("info"))
        status = info.typed("exit_status", str)
        name = run.instance_id or Path(place.file).name.partition(".")[0]
        provider, slash, _ = info.text("config.model.model_name").partition("/")
        history, responses = History(problems), Responses(problems)
        for at, message in enumerate(run.messages):
            where = place.at(f"messages[{at}]")
            extra, response = message.extra, message.extra.response
            if message.role == "exit":
                status = extra.exit_status or status
                continue
            call = None
            if message.role == "assistant" and response and responses.new(response.id, where):
                cost = dollars(extra.cost, where.below("extra.cost"), problems)
                call = Call(
                    model=response.model,
                    provider=provider if slash else "",
                    usage=usage(response.usage, where.below("extra.response.usage"), problems, cost),
                    started=response.created,
                    stop=(response.choices[0].finish_reason if response.choices else None) or "",
                    request_id=response.id or "",
                )
            history.add(chat_message(message, f"m{at}", where, problems, time=extra.timestamp, call=call), where)
        meta = {"task": name, "exit_status": status, "agent_version": info.typed("mini_version", str)}
        named: dict[str, Scalar] = {key: value for key, value in meta.items() if value is not None}
        yield place, Conversation(name, history.in_order(), meta=named)


class _SweTurn(ChatMessage):
    agent: str = ""
    is_demo: bool = False
    tool_call_ids: list[str] | None = None


class SweAgent(Reader):
    """SWE-agent trajectories, `<instance>.traj`: one JSON object each.

        {environment, trajectory: [steps], info: {exit_status, model_stats}, replay_config: {agent: {model: {name}}},
          history: [{role, content, thought, action, agent, is_demo, tool_calls: [chat form], tool_call_ids: [id]}]}

    Source: github.com/SWE-agent/SWE-agent, `sweagent/agent/agents.py`. `history` is read; `trajectory` tells the same
    by steps. There are no times, no usage of single calls and no tool schemas: totals are in `meta`.

    - Messages of a demonstration are sent, and answers in one are no calls.
    - The history is whole: what a history processor left out of a request (old observations) is not recorded.
    - Further agents of a run are conversations of their own, `<instance>/<agent>`.
    - `replay_config` may be a JSON text; only the model's name is read of it.
    """

    about = "SWE-agent trajectories (.traj)"
    shapes = (frozenset({".trajectory", ".history", ".history[].role", ".history[].content", ".info"}),)

    def conversations(self, raw: bytes, place: Place, problems: Problems) -> Recordings:
        trajectory = Fields(decode(raw, OBJECT, place), place)
        name, model = Path(place.file).stem, _swe_model(trajectory, problems)
        histories: dict[str, History] = {}
        for at, recorded in enumerate(convert(trajectory.at("history"), LIST, place.at("history"))):
            where = place.at(f"history[{at}]")
            with problems.collect():
                turn = convert(recorded, _SweTurn, where)
                history = histories.setdefault(turn.agent, History(problems))
                call = Call(model) if turn.role == "assistant" and not turn.is_demo else None
                message = chat_message(turn, f"m{at}", where, problems, call=call)
                # One message for each call that a tool's message answers.
                answered = turn.tool_call_ids if message.role == "tool" and turn.tool_call_ids else [message.answers]
                for number, answers in enumerate(answered):
                    whole = f"m{at}.{number}" if number else f"m{at}"
                    history.add(msgspec.structs.replace(message, id=whole, answers=answers), where)
        meta: dict[str, Scalar] = {"exit_status": status} if (status := trajectory.text("info.exit_status")) else {}
        for total in ("tokens_sent", "tokens_received", "api_calls", "instance_cost"):
            counted = trajectory.at(f"info.model_stats.{total}")
            if isinstance(counted, (int, float)) and counted:
                meta[total] = counted
        main = next(iter(histories), "")
        for agent, history in histories.items():
            if history.messages and agent == main:
                yield place, Conversation(name, history.in_order(), meta=meta)
            elif history.messages:
                yield place, Conversation(f"{name}/{agent or 'main'}", history.in_order(), meta={"parent": name})


def _swe_model(trajectory: Fields, problems: Problems) -> str:
    """Return the name of the model in the configuration of the run; empty if there is none."""
    with problems.collect():
        config = trajectory.at("replay_config")
        if isinstance(config, str):
            decode(config.encode(), OBJECT, trajectory.place.at("replay_config"))
        return trajectory.typed("replay_config.agent.model.name", str) or ""
    return ""


_Content = str | list[dict[str, Any] | str] | None


class _AtifCall(msgspec.Struct):
    tool_call_id: str
    function_name: str
    arguments: Any = None


class _AtifResult(msgspec.Struct):
    source_call_id: str | None = None
    content: _Content = None
    subagent_trajectory_ref: list[dict[str, Any]] | None = None


class _AtifObservation(msgspec.Struct):
    results: list[_AtifResult] = []


class _AtifStep(msgspec.Struct):
    source: str
    message: _Content = None
    timestamp: str | None = None
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    reasoning_content: str | None = None
    tool_calls: list[_AtifCall] | None = None
    observation: _AtifObservation | None = None
    metrics: dict[str, Any] | None = None
    extra: Any = None
    is_copied_context: bool = False


class Atif(Reader):
    """Trajectories in ATIF, which Harbor writes for all of its agents: one JSON object each.

        {schema_version: "ATIF-v1.6", session_id, agent: {name, model_name, tool_definitions}, steps: [{step_id,
          source, timestamp, message, reasoning_content, tool_calls: [{tool_call_id, function_name, arguments}],
          observation: {results: [{source_call_id, content}]}, metrics: {prompt_tokens, cached_tokens}}]}

    Source: github.com/laude-institute/harbor, docs/rfcs/0001-trajectory-format.md (ATIF 1.0 to 1.6). There are no
    starts of calls and no cache marks; times are those of the steps.

    - A step of the agent is a call, and its results are messages behind it. A result that names no call answers the
      only one of its step; else it is a user's message, as it is sent.
    - `prompt_tokens` include `cached_tokens`. Tokens written to a cache stand in `metrics.extra`, as Anthropic names
      them, and a stop reason in the step's `extra.stop_reason`.
    - Steps with `is_copied_context` repeat another trajectory: they are messages without a call of their own.
    - A system step behind the first answer is no message: one that refers to other agents' trajectories is a
      compaction, the rest are counted in the notes. The agents that summarised have files of their own, or stand in
      `subagent_trajectories`: these are conversations `<session>/<agent>`.
    """

    about = "ATIF trajectories (Harbor)"
    shapes = anywhere((".schema_version", ".agent", ".steps", ".steps[].step_id", ".steps[].source"))

    def conversations(self, raw: bytes, place: Place, problems: Problems) -> Recordings:
        trajectory = Fields(decode(raw, OBJECT, place), place)
        yield from _trajectory(trajectory, trajectory.text("session_id") or Path(place.file).stem, {}, problems)


def _trajectory(trajectory: Fields, name: str, meta: dict[str, Scalar], problems: Problems) -> Recordings:
    """Yield a trajectory's conversation, then those of the agents that it started."""
    trajectory.needed("schema_version", str)
    place = trajectory.place
    history, compactions = History(problems), list[Compaction]()
    for at, recorded in enumerate(convert(trajectory.at("steps"), LIST, place.below("steps"))):
        where = place.below(f"steps[{at}]")
        with problems.collect():
            step = convert(recorded, _AtifStep, where)
            if step.source == "system" and any(message.role == "assistant" for message in history.messages):
                compactions += _compactions(step, history, where, problems)
            else:
                for message in _atif_messages(step, trajectory, where, problems):
                    history.add(message, where)
    if history.messages:
        about: dict[str, Scalar] = {"agent": trajectory.text("agent.name"), **meta}
        about |= {"parent": parent} if (parent := trajectory.text("agent.extra.parent_session_id")) else {}
        about |= {"continued_in": after} if (after := trajectory.text("continued_trajectory_ref")) else {}
        tools = chat_tools(trajectory.typed("agent.tool_definitions", list[ChatTool]))
        yield place, Conversation(name, history.in_order(), tools=tools, compactions=tuple(compactions), meta=about)
    for at, recorded in enumerate(trajectory.typed("subagent_trajectories", LIST) or ()):
        where = place.below(f"subagent_trajectories[{at}]")
        with problems.collect():
            started = Fields(convert(recorded, OBJECT, where), where)
            helper = f"{name}/{started.text('agent.name') or at}"
            yield from _trajectory(started, helper, {"parent": name}, problems)


def _compactions(step: _AtifStep, history: History, place: Place, problems: Problems) -> Iterator[Compaction]:
    """Yield the compaction that a system step stands for."""
    results = step.observation.results if step.observation is not None else []
    if any(result.subagent_trajectory_ref for result in results):
        text, _, _ = texts(step.message, place.below("message"), problems)
        yield Compaction(history.last, text, time=_atif_time(step, place), hidden="another trajectory has it")
    else:
        problems.unknown("atif: step of the system behind the first answer", place)


def _atif_messages(step: _AtifStep, trajectory: Fields, place: Place, problems: Problems) -> Iterator[Message]:
    """Yield a step's message and its results."""
    text, media, thinking = texts(step.message, place.below("message"), problems)
    time, calls = _atif_time(step, place), step.tool_calls or []
    if step.source in ("system", "user"):
        role: Role = "system" if step.source == "system" else "user"
        yield Message("", role, text, time=time, media=media)
    elif step.source == "agent":
        made = (ToolCall(call.tool_call_id, call.function_name, as_text(call.arguments or {})) for call in calls)
        thinking = step.reasoning_content or thinking
        answered = None if step.is_copied_context else _atif_call(step, trajectory, place, problems)
        yield Message("", "assistant", text, tuple(made), time=time, thinking=thinking, media=media, call=answered)
    else:
        raise RecordingError(place.below("source"), f"unknown source {step.source!r}", "use system, user or agent")
    only = calls[0].tool_call_id if len(calls) == 1 else None
    for at, result in enumerate(step.observation.results if step.observation is not None else ()):
        text, media, _ = texts(result.content, place.below(f"observation.results[{at}].content"), problems)
        answers = result.source_call_id or only
        if answers:
            yield Message("", "tool", text, answers=answers, media=media)
        elif text:
            yield Message("", "user", text, media=media)


def _atif_call(step: _AtifStep, trajectory: Fields, place: Place, problems: Problems) -> Call:
    named, fields, metrics = trajectory.text("agent.model_name"), Fields({"extra": step.extra}, place), step.metrics
    provider, _, model = (step.model_name or named).rpartition("/")
    provider, stop = provider or named.rpartition("/")[0], fields.text("extra.stop_reason")
    used = None
    if metrics is not None:
        extra, where = metrics.get("extra"), place.below("metrics")
        # Counts of Anthropic's usage that stand in `metrics.extra`.
        named_so = ("cache_creation_input_tokens", "cache_creation")
        written = {key: extra.get(key) for key in named_so} if isinstance(extra, dict) else {}
        cost = dollars(metrics.get("cost_usd"), where.below("cost_usd"), problems)
        used = usage({**written, **metrics}, where, problems, cost)
    return Call(model, provider, used, effort=str(step.reasoning_effort or ""), stop=stop)


def _atif_time(step: _AtifStep, place: Place) -> float | None:
    return iso_seconds(step.timestamp, place.below("timestamp")) if step.timestamp else None
