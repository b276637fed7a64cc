"""Trials of agents on benchmarks, and logs of Inspect."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import zstandard
from msgspec.structs import replace

from .. import packed
from ..errors import Place, RecordingError
from ..model import Call, Conversation, Media, Message, Role, Scalar, ToolCall
from ..source import LONGEST, Problems, as_text, convert, decode, file_head, whole_file
from . import LIST, OBJECT, Fields, Reader, Recordings, anywhere
from .messages import (
    ChatMessage,
    History,
    chat_message,
    chat_messages,
    forward,
    in_order,
    iso_time,
    role_of,
    texts,
    tool,
    tool_call,
)
from .prompts import exchange
from .requests import LoggedCall, Responses, dollars, effort, numbered, other_than, series, usage


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

    record_type = _Trial

    def conversations(self, record: Fields, problems: Problems) -> Recordings:
        trial, place = record.record, record.place
        name = f"{Path(place.file).stem}/{trial.task_id}.{trial.trial}"
        meta: dict[str, Scalar] = {"reward": trial.reward, "task": str(trial.task_id), "trial": str(trial.trial)}
        yield place, Conversation(name, chat_messages(trial.traj, place.at("traj"), problems), meta=meta)


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

    def conversations(self, record: Fields, problems: Problems) -> Recordings:
        record.needed("simulations", LIST)
        for run in record.each("simulations"):
            with problems.collect():
                convert(run.record, OBJECT, run.place)
                for conversation in _simulation(run, record, Path(run.place.file).stem, problems):
                    yield run.place, conversation


class _Side(NamedTuple):
    """One of the two models of a simulation: what it was called with, and what it saw."""

    suffix: str  # of the conversation's id
    model: str
    system: tuple[Message, ...]
    roles: dict[str, str]  # roles by the recorded ones, where they differ
    speaker: str  # recorded role of its own messages, and requestor of its tools
    hidden: str  # key of meta that counts the tool messages of the other side

    def sees(self, message: Fields) -> bool:
        """Return whether a message is no tool call of the other side, and no result of one."""
        if message.at("role") == "tool":
            return (message.typed("requestor", str) or "assistant") == self.speaker
        return message.at("role") == self.speaker or not message.at("tool_calls")


def _simulation(run: Fields, results: Fields, file: str, problems: Problems) -> Iterator[Conversation]:
    """Yield the agent's conversation, and the user's if usage is recorded for any of its messages."""
    task = str(run.needed("task_id", str | int))  # type: ignore[arg-type]
    run.needed("messages", LIST)
    recorded = list[Fields]()
    for message in run.each("messages"):  # several results may be recorded as one message
        recorded += [message] if message.at("tool_messages") is None else message.each("tool_messages")
    trial, name = run.typed("trial", int), run.text("id")
    policy = run.text("policy") or results.text("info.environment_info.policy")
    model, system = results.text("info.agent_info.llm"), _system("policy", policy)
    sides = [_Side("", model, system, {}, "assistant", "users_tool_messages")]
    if any(message.at("role") == "user" and message.get(_USAGE) for message in recorded):
        swapped = {"user": "assistant", "assistant": "user"}
        system = _system("guidelines", results.text("info.user_info.global_simulation_guidelines"))
        model = results.text("info.user_info.llm")
        sides.append(_Side("/user", model, system, swapped, "user", "agents_tool_messages"))
    for side in sides:
        visible = [message for message in recorded if side.sees(message)]
        times, dropped = forward(iso_time(message, "timestamp") for message in visible)
        messages = [
            _tau2_message(message, f"m{at}", time, side, problems)
            for at, (message, time) in enumerate(zip(visible, times, strict=True))
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


_USAGE = "raw_data.usage|usage"  # usage of a message, the fullest first


def _tau2_message(message: Fields, name: str, time: float | None, side: _Side, problems: Problems) -> Message:
    recorded, place, call = message.needed("role", str), message.place, None
    role = role_of(side.roles.get(recorded, recorded), place)
    if message.at("is_audio") is True:
        raise RecordingError(place.below("is_audio"), "speech, not text", "read text runs only")
    if role == "assistant" and (reported := message.get(_USAGE)):
        cost = dollars(message.at("cost"), place.below("cost"), problems)
        where = place.below("raw_data.usage" if message.at("raw_data.usage") else "usage")
        call = Call(model=message.text("raw_data.model") or side.model, usage=usage(reported, where, problems, cost))
    calls = list[ToolCall]()
    for called in message.each("tool_calls"):
        arguments = as_text(called.typed("arguments", dict[str, Any] | str) or {})  # type: ignore[arg-type]
        calls.append(ToolCall(called.typed("id", str) or "", called.needed("name", str), arguments))
    answers = message.typed("id", str) or "" if role == "tool" else None
    text = message.typed("content", str | None) or ""  # type: ignore[arg-type]
    return Message(name, role, text, tuple(calls), answers=answers, time=time, call=call)


class MiniSwe(Reader):
    """mini-swe-agent trajectories: `<run>/<task>.traj.json`, `{info, messages, instance_id}`.

    Source: github.com/SWE-agent/mini-swe-agent (formats 1 and 1.1). A message is in the OpenAI form with an `extra`:
    the raw response of the model call, its cost, and when it was complete. `response.created` is when the provider took
    the request, in whole seconds, so it may be up to a second before the message that it answers. The last message,
    role `exit`, was never sent: its status goes to `meta`. The files have no tool schema (there is one tool, `bash`),
    and no times of system and user messages.
    """

    about = "mini-swe-agent trajectories (.traj.json)"
    checked = "mini-swe-agent 2.2"
    shapes = (
        frozenset({".info", ".info.exit_status", ".messages", ".messages[].role", ".messages[].extra"}),
        frozenset({".info", ".info.mini_version", ".messages", ".messages[].role"}),
    )

    def conversations(self, record: Fields, problems: Problems) -> Recordings:
        record.needed("info", OBJECT)
        record.needed("messages", LIST)
        status = record.typed("info.exit_status", str)
        name = record.typed("instance_id", str) or Path(record.place.file).name.partition(".")[0]
        provider, slash, _ = record.text("info.config.model.model_name").partition("/")
        history, responses = History(problems), Responses(problems)
        for at, recorded in enumerate(record.each("messages")):
            message, where, call = convert(recorded.record, ChatMessage, recorded.place), recorded.place, None
            recorded.typed("extra", OBJECT)
            if message.role == "exit":
                status = recorded.typed("extra.exit_status", str) or status
                continue
            answered, response = recorded.typed("extra.response", OBJECT), recorded.typed("extra.response.id", str)
            recorded.typed("extra.response.choices", list[dict[str, Any]])
            if message.role == "assistant" and answered is not None and not responses.new(response, where, answered):
                call = Call(copied=True)
            elif message.role == "assistant" and answered is not None:
                cost = dollars(recorded.at("extra.cost"), where.below("extra.cost"), problems)
                used = usage(answered.get("usage"), where.below("extra.response.usage"), problems, cost)
                call = Call(
                    recorded.typed("extra.response.model", str) or "",
                    provider if slash else "",
                    used,
                    recorded.typed("extra.response.created", float),
                    stop=recorded.typed("extra.response.choices.0.finish_reason", str) or "",
                    request_id=response or "",
                )
            time = recorded.typed("extra.timestamp", float)
            history.add(chat_message(message, f"m{at}", where, problems, time=time, call=call), where)
        version = record.typed("info.mini_version", str)
        problems.written_by(version or "", self.checked)
        meta = {"task": name, "exit_status": status, "agent_version": version}
        named = {key: value for key, value in meta.items() if value is not None}
        yield record.place, history.conversation(name, meta=named)


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

    def conversations(self, record: Fields, problems: Problems) -> Recordings:
        name, model, histories = Path(record.place.file).stem, "", dict[str, History]()
        with problems.collect():
            if isinstance(config := record.at("replay_config"), str):
                decode(config.encode(), OBJECT, record.below("replay_config"))
            model = record.typed("replay_config.agent.model.name", str) or ""
        record.needed("history", LIST)
        for at, recorded in enumerate(record.each("history")):
            where = recorded.place
            with problems.collect():
                turn, named = convert(recorded.record, ChatMessage, where), recorded.typed("tool_call_ids", list[str])
                history = histories.setdefault(recorded.typed("agent", str) or "", History(problems))
                call = Call(model) if turn.role == "assistant" and recorded.at("is_demo") is not True else None
                message = chat_message(turn, f"m{at}", where, problems, call=call)
                # One message for each call that a tool's message answers.
                answered = named if message.role == "tool" and named else [message.answers]
                for number, answers in enumerate(answered):
                    whole = f"m{at}.{number}" if number else f"m{at}"
                    history.add(replace(message, id=whole, answers=answers), where)
        meta: dict[str, Scalar] = {"exit_status": status} if (status := record.text("info.exit_status")) else {}
        for total in ("tokens_sent", "tokens_received", "api_calls", "instance_cost"):
            counted = record.at(f"info.model_stats.{total}")
            if isinstance(counted, (int, float)) and counted:
                meta[total] = counted
        main = next(iter(histories), "")
        for agent, history in histories.items():
            full, about = (name, meta) if agent == main else (f"{name}/{agent or 'main'}", {"parent": name})
            if history.messages:
                yield record.place, history.conversation(full, meta=about)


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
    - Steps with `is_copied_context` repeat another trajectory: their messages are context, their calls count there.
    - A system step behind the first answer is no message: one that refers to other agents' trajectories is a
      compaction, the rest are counted in the notes. The agents that summarised have files of their own, or stand in
      `subagent_trajectories`: these are conversations `<session>/<agent>`.
    """

    about = "ATIF trajectories (Harbor)"
    checked = "ATIF-v1.6"
    shapes = anywhere((".schema_version", ".agent", ".steps", ".steps[].step_id", ".steps[].source"))

    def conversations(self, record: Fields, problems: Problems) -> Recordings:
        yield from _trajectory(record, record.text("session_id") or Path(record.place.file).stem, {}, problems)


def _trajectory(trajectory: Fields, name: str, meta: dict[str, Scalar], problems: Problems) -> Recordings:
    """Yield a trajectory's conversation, then those of the agents that it started."""
    problems.written_by(trajectory.needed("schema_version", str), Atif.checked)
    trajectory.needed("steps", LIST)
    history = History(problems)
    for step in trajectory.each("steps"):
        with problems.collect():
            is_system = step.needed("source", str) == "system"
            if is_system and any(message.role == "assistant" for message in history.messages):
                if any(result.at("subagent_trajectory_ref") for result in step.each("observation.results")):
                    text, time = _atif_text(step, "message", problems)[0], iso_time(step, "timestamp")
                    history.compact(text, time=time, hidden="another trajectory has it")
                else:
                    problems.unknown("atif: step of the system behind the first answer", step.place)
            else:
                for message in _atif_messages(step, trajectory, problems):
                    history.add(message, step.place)
    if history.messages:
        about: dict[str, Scalar] = {"agent": trajectory.text("agent.name"), **meta}
        before = name.removesuffix(f"-cont-{trajectory.at('agent.extra.continuation_index')}")  # as Harbor names it
        parent = trajectory.text("agent.extra.parent_session_id") or (before if before != name else "")
        about |= {"parent": parent} if parent else {}
        is_copy = any(message.call is not None and message.call.copied for message in history.messages)
        if "parent" not in about and (is_copy or trajectory.text("trajectory_id|continued_trajectory_ref")):
            about["unit"] = name  # the session's id, which all trajectories of a run may have
        about |= {"continued_in": after} if (after := trajectory.text("continued_trajectory_ref")) else {}
        offered = trajectory.at("agent.tool_definitions")
        tools = exchange(None, None, trajectory.place, problems, "atif", tools=offered).tools
        yield trajectory.place, history.conversation(name, tools=tools, meta=about)
    for at, started in enumerate(trajectory.each("subagent_trajectories")):
        with problems.collect():
            helper = f"{name}/{started.text('agent.name') or at}"
            yield from _trajectory(started, helper, {"parent": name}, problems)


def _atif_text(fields: Fields, name: str, problems: Problems) -> tuple[str, tuple[Media, ...], str]:
    content = fields.typed(name, str | list[dict[str, Any] | str])  # type: ignore[arg-type]
    return texts(content, fields.below(name), problems)


def _atif_messages(step: Fields, trajectory: Fields, problems: Problems) -> Iterator[Message]:
    """Yield a step's message and its results."""
    text, media, thinking = _atif_text(step, "message", problems)
    time, calls, source = iso_time(step, "timestamp"), list(step.each("tool_calls")), step.at("source")
    if source in ("system", "user"):
        role: Role = "system" if source == "system" else "user"
        yield Message("", role, text, time=time, media=media)
    elif source == "agent":
        made = (tool_call(call, "tool_call_id", "function_name", "arguments") for call in calls)
        thinking = step.text("reasoning_content") or thinking
        answered = _atif_call(step, trajectory, problems)
        if step.at("is_copied_context") is True:
            answered = replace(answered, usage=None, copied=True)
            what = "atif: call of copied context, which counts in its own trajectory, read as context"
            problems.unknown(what, step.place)
        yield Message("", "assistant", text, tuple(made), time=time, thinking=thinking, media=media, call=answered)
    else:
        raise RecordingError(step.below("source"), f"unknown source {source!r}", "use system, user or agent")
    only = calls[0].text("tool_call_id") if len(calls) == 1 else None
    for result in step.each("observation.results"):
        text, media, _ = _atif_text(result, "content", problems)
        if answers := result.text("source_call_id") or only:
            yield Message("", "tool", text, answers=answers, media=media)
        elif text:
            yield Message("", "user", text, media=media)


def _atif_call(step: Fields, trajectory: Fields, problems: Problems) -> Call:
    named, metrics, used = trajectory.text("agent.model_name"), step.typed("metrics", OBJECT), None
    provider, _, model = (step.text("model_name") or named).rpartition("/")
    if metrics is not None:
        # Counts of Anthropic's usage that stand in `metrics.extra`.
        names = ("cache_creation_input_tokens", "cache_creation")
        written = {name: step.at(f"metrics.extra.{name}") for name in names}
        cost = dollars(metrics.get("cost_usd"), step.below("metrics.cost_usd"), problems)
        used = usage({**written, **metrics}, step.below("metrics"), problems, cost)
    thought, stop = str(step.at("reasoning_effort") or ""), step.text("extra.stop_reason")
    return Call(model, provider or named.rpartition("/")[0], used, effort=thought, stop=stop)


_LARGEST = 16 * LONGEST
_ZSTANDARD = 93  # the number of the method in zip archives, which Python 3.14 knows first
_REFERENCE = "attachment://"
# Kinds of spans whose calls are conversations of their own.
_OWN = ("agent", "scorer", "scorers")


class Inspect(Reader):
    """Logs of Inspect, the UK AI Security Institute's evaluation framework: `.eval` (a zip archive) and `.json`.

        {eval: {task, model}, samples: [{id, epoch, messages, scores, attachments: {hash: text},
          events: [{event: "model", model, input, tools, config, output: {choices, usage, time}, timestamp}]}]}

    Source: inspect.aisi.org.uk/eval-logs, github.com/UKGovernmentBEIS/inspect_ai. An archive has `header.json` and a
    file `samples/<id>_epoch_<n>.json` per sample, compressed by deflate or zstd.

    - Every `model` event is a call with its whole request; those that extend each other are one conversation, as in
      logs of requests. Calls of another agent, or of a scorer, are conversations of their own:
      `<task>/<sample>/<name>`.
    - Messages may stand in `message_pool`, to which `input_refs` refer by ranges, and long texts in `attachments`.
    - `input_tokens` holds what was read from the cache or not, by version and provider: `total_tokens` tells.
    - Answers from Inspect's own cache (`cache: "read"`) have no usage: nobody was billed. Behind the call that was, in
      the same log, they are context.
    - A sample without events has its last messages alone, without usage.
    """

    about = "Inspect logs (.eval and .json)"
    checked = "Inspect 0.3"
    shapes = (frozenset({".eval", ".eval.task", ".samples", ".samples[].epoch", ".samples[].messages[].role"}),)

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Return whether a file is an archive of Inspect."""
        return path.suffix.lower() == ".eval" and head.startswith(b"PK")

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            archived = file_head(path, 2) == b"PK"
            task, billed = "", set[int]()
            for place, raw in _archived(path, problems) if archived else _listed(path, problems):
                with problems.collect():
                    if place.field in ("header.json", "eval"):
                        log = Fields(decode(raw, OBJECT, place), place)
                        log.needed("eval", OBJECT)
                        task = log.text("eval.task")
                        problems.written_by(as_text(log.get("eval.packages.inspect_ai") or ""), self.checked)
                    else:
                        yield from _Sample(decode(raw, OBJECT, place), place, task, billed, problems).conversations()


def _listed(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
    """Yield the log in JSON, and its samples one by one."""
    data, place = whole_file(path, problems), Place(str(path), 1)
    samples = decode(data, dict[str, msgspec.Raw], place).get("samples", msgspec.Raw(b"null"))
    yield place.at("eval"), data
    is_listed = bytes(samples) != b"null"
    for at, raw in enumerate(decode(samples, list[msgspec.Raw], place.at("samples")) if is_listed else ()):
        yield place.at(f"samples[{at}]"), bytes(raw)


def _archived(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
    """Yield the header of an archive, then its samples, in the order of their names."""
    place, remedy = Place(str(path)), "the file was cut off or changed: copy it again"
    try:
        with packed.opened(path) as packed_file, packed.seekable(packed_file) as file, zipfile.ZipFile(file) as archive:
            problems.consumed += packed.size_of(path)
            infos = archive.infolist()
            for info in sorted(infos, key=lambda info: (info.filename != "header.json", info.filename)):
                if info.filename == "header.json" or info.filename.startswith("samples/"):
                    try:
                        yield place.at(info.filename), _member(archive, info)
                    except packed.DAMAGED as error:
                        problems.add(RecordingError(place.at(info.filename), f"cannot be unpacked: {error}", remedy))
    except packed.DAMAGED as error:
        raise RecordingError(place, f"no zip archive: {error}", remedy) from None


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a file in an archive. Raises ValueError if they are too many."""
    if info.compress_type == _ZSTANDARD:
        stored = archive.fp
        assert stored is not None, "the archive is open"
        # The local header has the lengths of name and extra field at 26 and 28, and both behind them; the extra field
        # may be of another length than in the directory, so it has to be read here.
        stored.seek(info.header_offset + 26)
        names = int.from_bytes(stored.read(2), "little") + int.from_bytes(stored.read(2), "little")
        stored.seek(names, 1)
        with zstandard.ZstdDecompressor().stream_reader(stored.read(info.compress_size)) as reader:
            data = reader.read(_LARGEST + 1)
    else:
        with archive.open(info) as file:
            data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"over {_LARGEST >> 20} MiB")
    return data


class _Sample(Fields):
    """A sample: its messages and events, with what they refer to."""

    def __init__(self, record: dict[str, Any], place: Place, task: str, billed: set[int], problems: Problems) -> None:
        super().__init__(record, place)
        self._task, self._billed, self._problems = task, billed, problems  # hashes of the log's calls with answers
        self._attachments = self.typed("attachments", dict[str, str]) or {}
        self._pool = self.typed("message_pool", LIST) or []
        self._spans: dict[str, Fields] = {}
        # Logs up to 2025 have steps instead of spans, which do not overlap.
        self._steps: list[str] = []

    def conversations(self) -> Recordings:
        """Yield the conversations of the agents and scorers, the first caller's under the name of the sample."""
        sample, problems = str(self.needed("id", str | int)), self._problems  # type: ignore[arg-type]
        name = numbered("/".join(part for part in (self._task, sample) if part), self.typed("epoch", int) or 1)
        meta: dict[str, Scalar] = {"task": self._task} if self._task else {}
        for score, given in (self.typed("scores", dict[str, dict[str, Any]]) or {}).items():
            if isinstance(value := given.get("value"), (str, int, float)):
                meta[f"score {score}"] = value
        requests: dict[str, list[LoggedCall]] = {}
        for event in self.each("events"):
            with problems.collect():
                kind = event.needed("event", str)
                step_name, is_step = event.typed("name", str) or "", kind == "step"
                if kind == "span_begin" and event.text("id"):
                    self._spans[event.text("id")] = event
                elif is_step and event.at("action") == "begin":
                    self._steps.append(step_name if event.at("type") in _OWN else "")
                elif is_step and self._steps:
                    self._steps.pop()
                elif kind == "model" and (request := self._request(self._resolved(event))) is not None:
                    requests.setdefault(self._owner(event.text("span_id")), []).append(request)
        main = next(iter(requests), "")
        for owner, calls in requests.items():
            for group in series(calls):
                full = name if owner == main else f"{name}/{owner or 'main'}"
                _, conversation = group.conversation(full)
                about = meta if owner == main else {**meta, "parent": name}
                yield self.place, replace(conversation, messages=in_order(conversation.messages), meta=about)
        if not requests:
            history = History(problems)
            for at, message in enumerate(self.each("messages")):
                with problems.collect():
                    history.add(self._message(self._resolved(message), f"m{at}"), message.place)
            if history.messages:
                yield self.place, history.conversation(name, meta=meta)

    def _owner(self, span: str) -> str:
        """Return the name of the innermost agent or scorer around an event; empty if there is none."""
        seen: set[str] = set()
        while span in self._spans and span not in seen:
            seen.add(span)
            around = self._spans[span]
            if around.at("type") in _OWN:
                return around.text("name|type")
            span = around.text("parent_id")
        return next((name for name in reversed(self._steps) if name), "")

    def _resolved(self, fields: Fields) -> Fields:
        """Return a value with the texts that stand among the attachments. Raises RecordingError if it is too deep."""

        def resolved(value: Any) -> Any:
            if isinstance(value, str):
                return self._attachments.get(value[len(_REFERENCE) :], value) if value.startswith(_REFERENCE) else value
            if isinstance(value, list):
                return [resolved(part) for part in value]
            if isinstance(value, dict):
                # `call` repeats request and response as they were sent
                return {name: resolved(part) for name, part in value.items() if name != "call"}
            return value

        try:
            return Fields(resolved(fields.record), fields.place)
        except RecursionError:
            raise RecordingError(fields.place, "nested too deep", "flatten it") from None

    def _request(self, event: Fields) -> LoggedCall | None:
        """Return a call; None if it was not answered."""
        if not event.typed("output.choices", LIST):
            return None
        place, output = event.place, event.place.below("output")
        sent = enumerate([*(event.typed("input", LIST) or ()), *self._pooled(event)])
        messages = tuple(self._message(Fields(sent, place.below(f"input[{at}]")), f"m{at}") for at, sent in sent)
        started, finished = iso_time(event, "timestamp"), iso_time(event, "completed")
        took = event.typed("output.time", float)
        if finished is None and started is not None and took is not None and took >= 0:
            finished = started + took
        provider, _, asked = event.text("model").rpartition("/")
        reported, model = event.typed("output.usage", OBJECT), event.text("output.model") or asked
        if is_cached := event.at("cache") == "read":
            reported = None
        cost = dollars((reported or {}).get("total_cost"), output.below("usage.total_cost"), self._problems)
        call = Call(
            model,
            provider.partition("/")[0],
            usage(reported, output.below("usage"), self._problems, cost, _has_whole_prompt(reported)),
            started,
            effort=effort(event.at("config.reasoning_effort"), event.at("config.reasoning_tokens")),
            stop=event.text("output.choices.0.stop_reason"),
            requested=other_than(model, asked),
            error=event.text("output.error"),
        )
        said = Fields(event.needed("output.choices.0.message", OBJECT), output.below("choices[0].message"))
        answer = self._message(said, f"m{len(messages)}")
        key = hash((model, messages, answer))
        if not is_cached:
            self._billed.add(key)
        elif key in self._billed:
            call = replace(call, copied=True)
            self._problems.repeated[place.file] += 1
        answer = replace(answer, time=finished, call=call)
        tools = event.typed("tools", list[dict[str, Any]]) or ()
        return LoggedCall(place, messages, answer, tuple(map(tool, tools)))

    def _pooled(self, event: Fields) -> Iterator[Any]:
        """Yield the messages of a request that stand in the sample's pool."""
        place = event.place.below("input_refs")
        for first, end in event.typed("input_refs", list[tuple[int, int]]) or ():
            if not 0 <= first <= end <= len(self._pool):
                what = f"messages {first} to {end} of a pool of {len(self._pool)}"
                raise RecordingError(place, what, "correct it, or leave this event out")
            yield from (self._resolved(Fields(message, place)).record for message in self._pool[first:end])

    def _message(self, message: Fields, name: str) -> Message:
        place, role = message.place, role_of(message.needed("role", str), message.place)
        content = message.typed("content", str | list[dict[str, Any] | str])  # type: ignore[arg-type]
        if isinstance(content, list):  # reasoning stands under its own name
            content = [
                {**block, "text": block.get("reasoning")} if isinstance(block, dict) and "reasoning" in block else block
                for block in content
            ]
        text, media, thinking = texts(content, place.below("content"), self._problems)
        if message.at("error") is not None:  # it is sent in the place of the result
            text = message.text("error.message")
        calls = (tool_call(call, "id", "function", "arguments") for call in message.each("tool_calls"))
        answers = message.typed("tool_call_id", str) or "" if role == "tool" else None
        tool_name = message.typed("function", str) or ""
        return Message(name, role, text, tuple(calls), answers, tool_name, thinking=thinking, media=media)


def _has_whole_prompt(reported: dict[str, Any] | None) -> bool:
    """Return whether the total says that `input_tokens` includes what was read from the cache and written to it."""
    names = ("input_tokens", "output_tokens", "total_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
    prompt, output, total, *cached = ((reported or {}).get(name) for name in names)
    if not (isinstance(prompt, int) and isinstance(output, int) and isinstance(total, int)):
        return False
    # Of 100 tokens with 80 cached and 10 of output: a total of 110 includes the cached ones (0 < 80), one of 190 does
    # not (80 < 80 is false).
    return total - output - prompt < sum(count for count in cached if isinstance(count, int))
