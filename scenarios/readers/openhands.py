"""Events of OpenHands 1 (its SDK, CLI and server): a JSON file each, `<conversation>/events/event-<number>-<id>.json`.

    SystemPromptEvent  {system_prompt: {text}, dynamic_context, tools: [{title, description}]}
    MessageEvent       {llm_message: {role, content: [blocks], reasoning_content}, extended_content, llm_response_id}
    ActionEvent        {thought, reasoning_content, tool_call: {id, name, arguments}, llm_response_id}
    ObservationEvent   {tool_call_id, observation: {content}} · AgentErrorEvent {error} · UserRejectObservation
    Condensation       {forgotten_event_ids, summary}

Source: github.com/OpenHands/software-agent-sdk, `openhands/sdk/event`. Requests of the same SDK, which it logs with
usage, are read by `litellm_log`. Events have the tools' descriptions and not their schemas, and no starts of calls.

- Actions with one `llm_response_id` are one call: a message with all their tool calls in the place of the first.
- Usage stands by that id in `base_state.json` beside the folder of events, where it is there
  (`stats.usage_to_metrics.*.token_usages`); the file is tested on written examples.
- A condensation replaces the messages that it names by its summary. What it leaves in front of them is not told apart.
- The output of a command is put as the model reads it (`to_llm_content`): with its folder, interpreter and exit code.
  What the SDK cuts from outputs of more than 30,000 characters is not cut.
- Times without a zone are taken as UTC. Events that no model sees (states, pauses, hooks) are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Compaction, Conversation, Message, Tool, ToolCall, Usage
from ..source import Problems, decode, records, whole_file
from . import Reader, Recordings
from .messages import History, iso_seconds, role_of, texts
from .requests import usage

_STATE = "base_state.json"
_UNSEEN = (
    *("ConversationStateUpdateEvent", "ConversationErrorEvent", "CondensationRequest", "PauseEvent", "TokenEvent"),
    *("LLMCompletionLogEvent", "HookExecutionEvent", "StreamingDeltaEvent", "InterruptEvent", "ACPToolCallEvent"),
)
_COMMANDS = ("TerminalObservation", "ExecuteBashObservation")
_FAILED = "[An error occurred during execution.]"
_RESULTS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")

_Content = list[dict[str, Any] | str]


class _Text(msgspec.Struct):
    text: str = ""


class _Tool(msgspec.Struct):
    kind: str = ""
    title: str | None = None
    description: str = ""


class _LlmMessage(msgspec.Struct):
    role: str
    content: _Content = []
    reasoning_content: str | None = None


class _ActionCall(msgspec.Struct):
    id: str
    name: str
    arguments: str = "{}"


class _CommandMetadata(msgspec.Struct):
    exit_code: int = -1
    working_dir: str | None = None
    py_interpreter_path: str | None = None
    prefix: str = ""
    suffix: str = ""

    def around(self, output: str) -> str:
        """Return a command's output as the model reads it: `TerminalObservation.to_llm_content`."""
        lines = [f"{self.prefix}{output}{self.suffix}"]
        if self.working_dir:
            lines.append(f"[Current working directory: {self.working_dir}]")
        if self.py_interpreter_path:
            lines.append(f"[Python interpreter: {self.py_interpreter_path}]")
        if self.exit_code != -1:
            lines.append(f"[Command finished with exit code {self.exit_code}]")
        return "\n".join(lines)


class _Observation(msgspec.Struct):
    content: str | _Content = []
    kind: str = ""
    is_error: bool = False
    metadata: msgspec.Raw = msgspec.Raw(b"null")


class _Event(msgspec.Struct):
    kind: str
    id: str
    timestamp: str
    llm_response_id: str | None = None
    system_prompt: _Text | None = None
    dynamic_context: _Text | None = None
    tools: list[_Tool] = []
    llm_message: _LlmMessage | None = None
    extended_content: _Content = []
    thought: _Content = []
    reasoning_content: str | None = None
    tool_call: _ActionCall | None = None
    tool_call_id: str | None = None
    tool_name: str = ""
    observation: _Observation | None = None
    error: str | None = None
    rejection_reason: str | None = None
    forgotten_event_ids: list[str] = []
    summary: str | None = None


class _Metrics(msgspec.Struct):
    token_usages: list[dict[str, Any]] = []


class _Stats(msgspec.Struct):
    usage_to_metrics: dict[str, _Metrics] = {}


class _State(msgspec.Struct):
    stats: _Stats = msgspec.field(default_factory=_Stats)


class OpenHands(Reader):
    """Conversations of OpenHands 1."""

    about = "OpenHands 1 events (one JSON file an event)"
    shapes = (frozenset({".kind", ".id", ".timestamp", ".source"}),)
    folder = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        events: list[tuple[_Event, Place]] = []
        for path in files:
            with problems.collect():  # the file has no records; the others of its folder may
                for place, raw in records(path, problems):
                    with problems.collect():
                        events.append((decode(raw, _Event, place), place))
        if events:
            folder = files[0].resolve().parent
            name = folder.parent.name if folder.name == "events" else folder.name
            conversation = _conversation(name, events, _usage(folder, problems), problems)
            if conversation is not None:
                yield Place(str(files[0].parent)), conversation


def _usage(folder: Path, problems: Problems) -> dict[str, tuple[str, Usage | None]]:
    """Return model and usage by the id of the response, from the state beside the events, if it is there."""
    reported: dict[str, tuple[str, Usage | None]] = {}
    path = next((path for path in (folder / _STATE, folder.parent / _STATE) if path.is_file()), None)
    if path is None:
        return reported
    place = Place(str(path), 1)
    try:
        metrics = decode(whole_file(path, problems), _State, place).stats.usage_to_metrics
    except RecordingError as error:
        problems.add(error)
        return reported
    for use, one in metrics.items():
        for at, counts in enumerate(one.token_usages):
            where = place.at(f"stats.usage_to_metrics.{use}.token_usages[{at}]")
            used = usage(counts, where, problems)
            reported[str(counts.get("response_id") or "")] = str(counts.get("model") or ""), used
    return reported


def _conversation(
    name: str,
    events: Sequence[tuple[_Event, Place]],
    reported: dict[str, tuple[str, Usage | None]],
    problems: Problems,
) -> Conversation | None:
    history, compactions = History(problems), list[Compaction]()
    names = (f"m{number}" for number in count())
    tools: tuple[Tool, ...] = ()
    actions: dict[str, list[_Event]] = {}
    message_of: dict[str, str] = {}  # the id of the message that an event became
    for event, _ in events:
        if event.kind == "ActionEvent":
            actions.setdefault(event.llm_response_id or event.id, []).append(event)
    for event, place in events:
        with problems.collect():
            if event.kind == "Condensation":
                if history.messages:
                    compactions.append(_compaction(event, history, message_of, place))
                continue
            if event.kind == "SystemPromptEvent":
                tools = tools or tuple(Tool(tool.title or tool.kind, tool.description) for tool in event.tools)
            if event.kind == "ActionEvent":
                response = event.llm_response_id or event.id
                if event is not actions[response][0]:
                    message_of[event.id] = message_of.get(actions[response][0].id, "")
                    continue
                message: Message | None = _action(actions[response], next(names), reported, place, problems)
            else:
                message = _message(event, names, reported, place, problems)
            if message is not None:
                history.add(message, place)
                message_of[event.id] = message.id
    if not history.messages:
        return None
    return Conversation(name, history.in_order(), tools=tools, compactions=tuple(compactions))


def _compaction(event: _Event, history: History, message_of: dict[str, str], place: Place) -> Compaction:
    """Return a condensation. What follows the last forgotten message is kept."""
    forgotten = {message_of.get(name) for name in event.forgotten_event_ids}
    ids = [message.id for message in history.messages]
    last = max((at for at, name in enumerate(ids) if name in forgotten), default=-1)
    first_kept = ids[last + 1] if last + 1 < len(ids) else None
    return Compaction(history.last, event.summary or "", first_kept, time=_time(event, place))


def _message(
    event: _Event,
    names: Iterator[str],
    reported: dict[str, tuple[str, Usage | None]],
    place: Place,
    problems: Problems,
) -> Message | None:
    """Return the message that an event is; None if no model sees it."""
    time = _time(event, place)
    if event.kind == "SystemPromptEvent":
        parts = (part.text for part in (event.system_prompt, event.dynamic_context) if part is not None)
        return Message(next(names), "system", "\n\n".join(parts), time=time)
    if event.kind == "MessageEvent" and event.llm_message is not None:
        said, where = event.llm_message, place.at("llm_message.content")
        text, media, thinking = texts([*said.content, *event.extended_content], where, problems)
        role = role_of(said.role, place.at("llm_message"))
        message = Message(next(names), role, text, time=time, thinking=said.reasoning_content or thinking, media=media)
        if role == "assistant" and event.llm_response_id:
            return msgspec.structs.replace(message, call=_call(event, reported))
        return message
    if event.kind in _RESULTS:
        shown = event.error if event.error is not None else event.rejection_reason
        content = shown if event.observation is None else event.observation.content
        text, media, _ = texts(content, place.at("observation.content"), problems)
        if event.observation is not None:
            text = _shown(event.observation, text, place)
        answers = event.tool_call_id or ""
        return Message(next(names), "tool", text, answers=answers, name=event.tool_name, time=time, media=media)
    if event.kind not in _UNSEEN:
        problems.unknown(f"openhands: event of kind {event.kind!r}", place)
    return None


def _shown(observation: _Observation, text: str, place: Place) -> str:
    """Return the text of an observation as the SDK shows it to the model."""
    if observation.kind in _COMMANDS and bytes(observation.metadata) != b"null":
        text = decode(bytes(observation.metadata), _CommandMetadata, place.at("observation.metadata")).around(text)
    return f"{_FAILED}\n{text}" if observation.is_error else text


def _action(
    actions: Sequence[_Event],
    name: str,
    reported: dict[str, tuple[str, Usage | None]],
    place: Place,
    problems: Problems,
) -> Message:
    """Return the answer that the actions of one response are."""
    first = actions[0]
    text, media, thinking = texts(first.thought, place.at("thought"), problems)
    calls = [one.tool_call for one in actions if one.tool_call is not None]
    return Message(
        name,
        "assistant",
        text,
        tuple(ToolCall(call.id, call.name, call.arguments) for call in calls),
        time=_time(first, place),
        thinking=first.reasoning_content or thinking,
        media=media,
        call=_call(first, reported),
    )


def _call(event: _Event, reported: dict[str, tuple[str, Usage | None]]) -> Call:
    model, used = reported.get(event.llm_response_id or "", ("", None))
    return Call(model, usage=used, request_id=event.llm_response_id or "")


def _time(event: _Event, place: Place) -> float:
    return iso_seconds(event.timestamp, place.at("timestamp"))
