"""Trials of agents on benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Compaction, Conversation, Message, Scalar, ToolCall
from ..source import Problems, as_text, convert, decode, records
from . import Reader, Recordings, anywhere
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
    info: dict[str, Any] = {}


class TauBench(Reader):
    """τ-bench runs: `[{task_id, trial, reward, info: {task}, traj: [OpenAI messages]}]`.

    Source: github.com/sierra-research/tau-bench, `historical_trajectories/*.json`. The system prompt is the first
    message; the files have no tool schemas and no usage. A task is tried several times: each trial is a conversation.
    """

    about = "τ-bench trajectories (a JSON array of trials)"
    shapes = (frozenset({"[].traj", "[].traj[].role", "[].reward"}),)

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                with problems.collect():
                    trial = decode(raw, _Trial, place)
                    yield (
                        place,
                        Conversation(
                            id=f"{path.stem}/{trial.task_id}.{trial.trial}",
                            messages=chat_messages(trial.traj, place.at("traj"), problems),
                            meta={"reward": trial.reward, "task": str(trial.task_id), "trial": str(trial.trial)},
                        ),
                    )


class _Raw(msgspec.Struct):
    model: str | None = None
    usage: Any = None


class _ToolCall(msgspec.Struct):
    name: str
    arguments: dict[str, Any] | str = {}
    id: str = ""


class _Message(msgspec.Struct):
    role: str
    content: str | None = None
    id: str | None = None
    requestor: str = "assistant"
    tool_calls: list[_ToolCall] | None = None
    tool_messages: list[_Message] | None = None
    timestamp: str | None = None
    cost: Any = None
    usage: Any = None
    raw_data: _Raw | None = None
    is_audio: bool = False


class _Reward(msgspec.Struct):
    reward: float | None = None


class _Simulation(msgspec.Struct):
    task_id: str | int
    messages: list[_Message]
    id: str = ""
    trial: int | None = None
    start_time: str | None = None
    termination_reason: str | None = None
    reward_info: _Reward | None = None
    policy: str | None = None


class _Agent(msgspec.Struct):
    llm: str | None = None


class _User(msgspec.Struct):
    llm: str | None = None
    global_simulation_guidelines: str | None = None


class _Environment(msgspec.Struct):
    domain_name: str | None = None
    policy: str | None = None


class _Info(msgspec.Struct):
    agent_info: _Agent | None = None
    user_info: _User | None = None
    environment_info: _Environment | None = None


class _Results(msgspec.Struct):
    simulations: list[Any]
    info: _Info | None = None


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

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                with problems.collect():
                    results = decode(raw, _Results, place)
                    for at, run in enumerate(results.simulations):
                        where = place.at(f"simulations[{at}]")
                        with problems.collect():
                            simulation = convert(run, _Simulation, where)
                            for conversation in _conversations(simulation, results.info, path.stem, where, problems):
                                yield where, conversation


class _Side(NamedTuple):
    """One of the two models of a simulation: what it was called with, and what it saw."""

    suffix: str
    """Of the conversation's id."""
    model: str
    system: Message | None
    roles: dict[str, str]
    """Roles by the recorded ones, where they differ."""
    speaker: str
    """Recorded role of its own messages, and requestor of its tools."""
    hidden: str
    """Key of meta that counts the tool messages of the other side."""


def _conversations(
    run: _Simulation, info: _Info | None, file: str, place: Place, problems: Problems
) -> Iterator[Conversation]:
    """Yield the agent's conversation, and the user's if usage is recorded for any of its messages."""
    info = info or _Info()
    environment, agent, user = info.environment_info or _Environment(), info.agent_info or _Agent(), info.user_info
    policy, guidelines = run.policy or environment.policy, user.global_simulation_guidelines if user else None
    sides = [_Side("", agent.llm or "", _system("policy", policy), {}, "assistant", "users_tool_messages")]
    recorded = list(_flat(run.messages, place))
    if any(message.role == "user" and _reported(message)[1] for message, _ in recorded):
        swapped = {"user": "assistant", "assistant": "user"}
        model = (user and user.llm) or ""
        sides.append(_Side("/user", model, _system("guidelines", guidelines), swapped, "user", "agents_tool_messages"))
    for side in sides:
        visible = [(message, where) for message, where in recorded if not _hidden_from(side, message)]
        times, dropped = forward(
            iso_seconds(m.timestamp, w.at(f"{w.field}.timestamp")) if m.timestamp else None for m, w in visible
        )
        messages = [
            _message(m, f"m{at}", time, side, w, problems)
            for at, ((m, w), time) in enumerate(zip(visible, times, strict=True))
        ]
        yield Conversation(
            id=f"{file}/{run.task_id}.{run.id if run.trial is None else run.trial}{side.suffix}",
            messages=tuple(messages if side.system is None else [side.system, *messages]),
            language="en",
            meta={
                "task": str(run.task_id),
                "trial": run.trial,
                "simulation": run.id,
                "domain": environment.domain_name,
                "reward": run.reward_info.reward if run.reward_info else None,
                "ended": run.termination_reason,
                "started": run.start_time,
                side.hidden: len(recorded) - len(visible),
                "times_dropped": dropped,
            },
        )


def _system(name: str, text: str | None) -> Message | None:
    return Message(id=name, role="system", text=text) if text else None


def _flat(messages: Sequence[_Message], place: Place) -> Iterator[tuple[_Message, Place]]:
    """Yield the messages with their places; several results recorded as one message come one by one."""
    for at, message in enumerate(messages):
        where = place.at(f"{place.field}.messages[{at}]")
        if message.tool_messages is None:
            yield message, where
        else:
            yield from ((result, where.at(f"{where.field}.tool_messages")) for result in message.tool_messages)


def _hidden_from(side: _Side, message: _Message) -> bool:
    """Return whether the message is a tool call of the other side, or its result."""
    if message.role == "tool":
        return message.requestor != side.speaker
    return message.role != side.speaker and bool(message.tool_calls)


def _message(
    message: _Message, name: str, time: float | None, side: _Side, place: Place, problems: Problems
) -> Message:
    role = role_of(side.roles.get(message.role, message.role), place)
    if message.is_audio:
        raise RecordingError(place.at(f"{place.field}.is_audio"), "speech, not text", "read text runs only")
    return Message(
        id=name,
        role=role,
        text=message.content or "",
        calls=tuple(_tool_call(call) for call in message.tool_calls or ()),
        answers=(message.id or "") if role == "tool" else None,
        time=time,
        call=_call(message, side.model, place, problems) if role == "assistant" else None,
    )


def _tool_call(call: _ToolCall) -> ToolCall:
    text = as_text(call.arguments)
    return ToolCall(id=call.id, name=call.name, arguments=text)


def _call(message: _Message, model: str, place: Place, problems: Problems) -> Call | None:
    field, reported = _reported(message)
    if not reported:
        return None
    cost = dollars(message.cost, place.at(f"{place.field}.cost"), problems)
    used = usage(reported, place.at(f"{place.field}.{field}"), problems, cost)
    return Call(model=(message.raw_data and message.raw_data.model) or model, usage=used)


def _reported(message: _Message) -> tuple[str, Any]:
    """Return the fullest usage that the message has, behind its field."""
    raw = message.raw_data
    return ("raw_data.usage", raw.usage) if raw is not None and raw.usage else ("usage", message.usage)


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


class _Model(msgspec.Struct):
    model_name: str = ""


class _Config(msgspec.Struct):
    model: _Model = msgspec.field(default_factory=_Model)


class _MiniInfo(msgspec.Struct):
    exit_status: str | None = None
    mini_version: str | None = None
    config: _Config = msgspec.field(default_factory=_Config)


class _Trajectory(msgspec.Struct):
    messages: list[_MiniMessage]
    info: _MiniInfo
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

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                with problems.collect():
                    yield place, _conversation(decode(raw, _Trajectory, place), place, problems)


def _conversation(run: _Trajectory, place: Place, problems: Problems) -> Conversation:
    status = run.info.exit_status
    name = run.instance_id or Path(place.file).name.partition(".")[0]
    provider, slash, _ = run.info.config.model.model_name.partition("/")
    history, responses = History(problems), Responses(problems)
    for at, message in enumerate(run.messages):
        extra = message.extra
        if message.role == "exit":
            status = extra.exit_status or status
            continue
        where = place.at(f"messages[{at}]")
        call = None
        if message.role == "assistant" and responses.new(extra.response.id if extra.response else None, where):
            call = _mini_call(extra, provider if slash else "", where, problems)
        history.add(chat_message(message, f"m{at}", where, problems, time=extra.timestamp, call=call), where)
    meta: dict[str, Scalar] = {"task": name, "exit_status": status, "agent_version": run.info.mini_version}
    return Conversation(name, history.in_order(), meta={k: v for k, v in meta.items() if v is not None})


def _mini_call(extra: _Extra, provider: str, place: Place, problems: Problems) -> Call | None:
    response, field = extra.response, f"{place.field}.extra"
    if response is None:
        return None
    cost = dollars(extra.cost, place.at(f"{field}.cost"), problems)
    return Call(
        model=response.model,
        provider=provider,
        usage=usage(response.usage, place.at(f"{field}.response.usage"), problems, cost),
        started=response.created,
        stop=(response.choices[0].finish_reason if response.choices else None) or "",
        request_id=response.id or "",
    )


_TOTALS = ("tokens_sent", "tokens_received", "api_calls", "instance_cost")


class _Turn(ChatMessage):
    agent: str = ""
    is_demo: bool = False
    tool_call_ids: list[str] | None = None


class _SweInfo(msgspec.Struct):
    exit_status: str | None = None
    model_stats: dict[str, Any] = {}


class _SweTrajectory(msgspec.Struct):
    history: list[Any]
    info: _SweInfo = msgspec.field(default_factory=_SweInfo)
    environment: str = ""
    replay_config: Any = None


class _SweModel(msgspec.Struct):
    name: str = ""


class _SweAgent(msgspec.Struct):
    model: _SweModel = msgspec.field(default_factory=_SweModel)


class _Replay(msgspec.Struct):
    agent: _SweAgent = msgspec.field(default_factory=_SweAgent)


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

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                with problems.collect():
                    yield from _swe_conversations(decode(raw, _SweTrajectory, place), path.stem, place, problems)


def _swe_conversations(trajectory: _SweTrajectory, name: str, place: Place, problems: Problems) -> Recordings:
    model = _model(trajectory.replay_config, place.at("replay_config"), problems)
    histories: dict[str, History] = {}
    for at, recorded in enumerate(trajectory.history):
        where = place.at(f"history[{at}]")
        with problems.collect():
            turn = convert(recorded, _Turn, where)
            history = histories.setdefault(turn.agent, History(problems))
            for message in _messages(turn, f"m{at}", model, where, problems):
                history.add(message, where)
    stats, meta = trajectory.info.model_stats, dict[str, Scalar]()
    if trajectory.info.exit_status:
        meta["exit_status"] = trajectory.info.exit_status
    for total in _TOTALS:
        if isinstance(stats.get(total), (int, float)) and stats[total]:
            meta[total] = stats[total]
    main = next(iter(histories), "")
    for agent, history in histories.items():
        if history.messages and agent == main:
            yield place, Conversation(name, history.in_order(), meta=meta)
        elif history.messages:
            yield place, Conversation(f"{name}/{agent or 'main'}", history.in_order(), meta={"parent": name})


def _model(config: Any, place: Place, problems: Problems) -> str:
    """Return the name of the model in the configuration of the run; empty if there is none."""
    if config is None:
        return ""
    with problems.collect():
        if isinstance(config, str):
            return decode(config.encode(), _Replay, place).agent.model.name
        return convert(config, _Replay, place).agent.model.name
    return ""


def _messages(turn: _Turn, name: str, model: str, place: Place, problems: Problems) -> Iterator[Message]:
    """Yield a message; one for each call that a tool's message answers."""
    called = turn.role == "assistant" and not turn.is_demo
    message = chat_message(turn, name, place, problems, call=Call(model) if called else None)
    if message.role != "tool" or not turn.tool_call_ids:
        yield message
    else:
        for at, answers in enumerate(turn.tool_call_ids):
            yield msgspec.structs.replace(message, id=f"{name}.{at}" if at else name, answers=answers)


# Counts of Anthropic's usage that stand in `metrics.extra`.
_WRITTEN = ("cache_creation_input_tokens", "cache_creation")
_Content = str | list[dict[str, Any] | str] | None


class _AgentExtra(msgspec.Struct):
    parent_session_id: str | None = None


class _AtifAgent(msgspec.Struct):
    name: str = ""
    model_name: str | None = None
    tool_definitions: list[ChatTool] | None = None
    extra: _AgentExtra | None = None


class _StepCall(msgspec.Struct):
    tool_call_id: str
    function_name: str
    arguments: Any = None


class _Result(msgspec.Struct):
    source_call_id: str | None = None
    content: _Content = None
    subagent_trajectory_ref: list[dict[str, Any]] | None = None


class _Observation(msgspec.Struct):
    results: list[_Result] = []


class _Step(msgspec.Struct):
    source: str
    message: _Content = None
    timestamp: str | None = None
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    reasoning_content: str | None = None
    tool_calls: list[_StepCall] | None = None
    observation: _Observation | None = None
    metrics: dict[str, Any] | None = None
    extra: Any = None
    is_copied_context: bool = False


class _AtifTrajectory(msgspec.Struct):
    schema_version: str
    agent: _AtifAgent
    steps: list[Any]
    session_id: str = ""
    continued_trajectory_ref: str | None = None
    subagent_trajectories: list[Any] = []


class Atif(Reader):
    """Trajectories in ATIF, which Harbor writes for all of its agents: one JSON object each.

        {schema_version: "ATIF-v1.6", session_id, agent: {name, model_name, tool_definitions}, steps: [{step_id, source,
          timestamp, message, reasoning_content, tool_calls: [{tool_call_id, function_name, arguments}],
          observation: {results: [{source_call_id, content}]}, metrics: {prompt_tokens, completion_tokens, cached_tokens}}]}

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

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                with problems.collect():
                    yield from _atif_conversations(decode(raw, _AtifTrajectory, place), path.stem, {}, place, problems)


def _atif_conversations(
    trajectory: _AtifTrajectory, name: str, meta: dict[str, Scalar], place: Place, problems: Problems
) -> Recordings:
    """Yield a trajectory's conversation, then those of the agents that it started."""
    name, agent = trajectory.session_id or name, trajectory.agent
    history, compactions = History(problems), list[Compaction]()
    names = (f"m{number}" for number in count())
    for at, recorded in enumerate(trajectory.steps):
        where = place.below(f"steps[{at}]")
        with problems.collect():
            step = convert(recorded, _Step, where)
            if step.source == "system" and any(message.role == "assistant" for message in history.messages):
                compactions += _compactions(step, history, where, problems)
            else:
                for message in _atif_messages(step, agent, names, where, problems):
                    history.add(message, where)
    if history.messages:
        about: dict[str, Scalar] = {"agent": agent.name, **meta}
        if agent.extra is not None and agent.extra.parent_session_id:
            about["parent"] = agent.extra.parent_session_id
        if trajectory.continued_trajectory_ref:
            about["continued_in"] = trajectory.continued_trajectory_ref
        tools = chat_tools(agent.tool_definitions)
        yield place, Conversation(name, history.in_order(), tools=tools, compactions=tuple(compactions), meta=about)
    for at, recorded in enumerate(trajectory.subagent_trajectories):
        where = place.below(f"subagent_trajectories[{at}]")
        with problems.collect():
            started = convert(recorded, _AtifTrajectory, where)
            started.session_id = f"{name}/{started.agent.name or at}"
            yield from _atif_conversations(started, name, {"parent": name}, where, problems)


def _compactions(step: _Step, history: History, place: Place, problems: Problems) -> Iterator[Compaction]:
    """Yield the compaction that a system step stands for."""
    results = step.observation.results if step.observation is not None else []
    if any(result.subagent_trajectory_ref for result in results):
        text, _, _ = texts(step.message, place.below("message"), problems)
        yield Compaction(history.last, text, time=_time(step, place), hidden="another trajectory has it")
    else:
        problems.unknown("atif: step of the system behind the first answer", place)


def _atif_messages(
    step: _Step, agent: _AtifAgent, names: Iterator[str], place: Place, problems: Problems
) -> Iterator[Message]:
    """Yield a step's message and its results."""
    text, media, thinking = texts(step.message, place.below("message"), problems)
    time = _time(step, place)
    if step.source == "system":
        yield Message(next(names), "system", text, time=time, media=media)
    elif step.source == "user":
        yield Message(next(names), "user", text, time=time, media=media)
    elif step.source == "agent":
        name, calls = next(names), step.tool_calls or []
        made = (ToolCall(c.tool_call_id, c.function_name, as_text(c.arguments or {})) for c in calls)
        thinking = step.reasoning_content or thinking
        call = None if step.is_copied_context else _atif_call(step, agent, place, problems)
        yield Message(name, "assistant", text, tuple(made), time=time, thinking=thinking, media=media, call=call)
    else:
        raise RecordingError(place.below("source"), f"unknown source {step.source!r}", "use system, user or agent")
    only = step.tool_calls[0].tool_call_id if step.tool_calls and len(step.tool_calls) == 1 else None
    for at, result in enumerate(step.observation.results if step.observation is not None else ()):
        text, media, _ = texts(result.content, place.below(f"observation.results[{at}].content"), problems)
        answers = result.source_call_id or only
        if answers:
            yield Message(next(names), "tool", text, answers=answers, media=media)
        elif text:
            yield Message(next(names), "user", text, media=media)


def _atif_call(step: _Step, agent: _AtifAgent, place: Place, problems: Problems) -> Call:
    provider, _, model = (step.model_name or agent.model_name or "").rpartition("/")
    provider = provider or (agent.model_name or "").rpartition("/")[0]
    stop = step.extra.get("stop_reason") if isinstance(step.extra, dict) else None
    call = Call(model, provider, effort=str(step.reasoning_effort or ""), stop=stop if isinstance(stop, str) else "")
    metrics, where = step.metrics, place.below("metrics")
    if metrics is None:
        return call
    extra = metrics.get("extra")
    written = {name: extra.get(name) for name in _WRITTEN} if isinstance(extra, dict) else {}
    cost = dollars(metrics.get("cost_usd"), where.below("cost_usd"), problems)
    used = usage({**written, **metrics}, where, problems, cost)
    return msgspec.structs.replace(call, usage=used)


def _time(step: _Step, place: Place) -> float | None:
    return iso_seconds(step.timestamp, place.below("timestamp")) if step.timestamp else None
