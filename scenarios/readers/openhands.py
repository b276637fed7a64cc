"""Conversations of OpenHands 1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..errors import Place
from ..model import Call, Tool, Usage
from ..source import Problems, convert, decode, records, whole_file
from . import OBJECT, Fields, Reader, Recordings
from .messages import History, iso_seconds
from .prompts import recorded_messages
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


class _Event(Fields):
    """One event, of which the first three fields are always there."""

    def __init__(self, raw: bytes, place: Place) -> None:
        super().__init__(decode(raw, OBJECT, place), place)
        self.kind, self.id = self.needed("kind", str), self.needed("id", str)
        self.time = iso_seconds(self.needed("timestamp", str), place.at("timestamp"))
        self.response = self.text("llm_response_id")


class OpenHands(Reader):
    """Events of OpenHands 1 (its SDK, CLI and server): a JSON file each, `<conversation>/events/event-<n>-<id>.json`.

        SystemPromptEvent  {system_prompt: {text}, dynamic_context, tools: [{title, description}]}
        MessageEvent       {llm_message: {role, content: [blocks], reasoning_content}, llm_response_id}
        ActionEvent        {thought, reasoning_content, tool_call: {id, name, arguments}, llm_response_id}
        ObservationEvent   {tool_call_id, observation: {content}} · AgentErrorEvent {error} · UserRejectObservation
        Condensation       {forgotten_event_ids, summary}

    Source: github.com/OpenHands/software-agent-sdk, `openhands/sdk/event`. Requests of the same SDK, which it logs with
    usage, are read by `litellm_log`. Events have the tools' descriptions and not their schemas, and no starts of calls.

    - Actions with one `llm_response_id` are one call: a message with all their tool calls in the place of the first.
    - Usage stands by that id in `base_state.json` beside the folder of events, where it is there
      (`stats.usage_to_metrics.*.token_usages`); the file is tested on written examples.
    - A condensation replaces the messages that it names by its summary. What it leaves in front of them is not told
      apart.
    - The output of a command is put as the model reads it (`to_llm_content`): with its folder, interpreter and exit
      code. What the SDK cuts from outputs of more than 30,000 characters is not cut.
    - Times without a zone are taken as UTC. Events that no model sees (states, pauses, hooks) are not read.
    """

    about = "OpenHands 1 events (one JSON file an event)"
    shapes = (frozenset({".kind", ".id", ".timestamp", ".source"}),)
    folder = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        events: list[_Event] = []
        for path in files:
            with problems.collect():  # the file has no records; the others of its folder may
                for place, raw in records(path, problems):
                    with problems.collect():
                        events.append(_Event(raw, place))
        if events:
            folder = files[0].resolve().parent
            name = folder.parent.name if folder.name == "events" else folder.name
            history, tools = _history(events, _usage(folder, problems), problems)
            if history.messages:
                yield Place(str(files[0].parent)), history.conversation(name, tools=tools)


def _usage(folder: Path, problems: Problems) -> dict[str, tuple[str, Usage | None]]:
    """Return model and usage by the id of the response, from the state beside the events, if it is there."""
    reported: dict[str, tuple[str, Usage | None]] = {}
    path = next((path for path in (folder / _STATE, folder.parent / _STATE) if path.is_file()), None)
    with problems.collect():
        place = Place(str(path), 1)
        state = Fields({} if path is None else decode(whole_file(path, problems), OBJECT, place), place)
        for use, one in (state.typed("stats.usage_to_metrics", dict[str, dict[str, Any]]) or {}).items():
            at = place.at(f"stats.usage_to_metrics.{use}.token_usages")
            for number, counts in enumerate(convert(one.get("token_usages", []), list[dict[str, Any]], at)):
                used = usage(counts, at.at(f"{at.field}[{number}]"), problems)
                reported[str(counts.get("response_id") or "")] = str(counts.get("model") or ""), used
    return reported


def _history(
    events: Sequence[_Event], reported: dict[str, tuple[str, Usage | None]], problems: Problems
) -> tuple[History, tuple[Tool, ...]]:
    """Return the history of some events, and the tools. `reported` has model and usage by response."""
    history, tools = History(problems), tuple[Tool, ...]()
    place_of: dict[str, int] = {}  # in the history, of the message that an event became
    actions: dict[str, list[_Event]] = {}
    for event in events:
        if event.kind == "ActionEvent":
            actions.setdefault(event.response or event.id, []).append(event)
    for event in events:
        with problems.collect():
            if event.kind == "Condensation":
                # What follows the last forgotten message is kept.
                forgotten = (place_of.get(name, -1) for name in event.typed("forgotten_event_ids", list[str]) or ())
                at = max(forgotten, default=-1) + 1
                if history.messages:
                    first = history.messages[at].id if at < len(history.messages) else None
                    history.compact(event.text("summary"), first, time=event.time)
                continue
            if event.kind == "SystemPromptEvent":
                keys = ("title|kind", "description")
                offered = (Tool(*(one.typed(key, str) or "" for key in keys)) for one in event.each("tools"))
                tools = tools or tuple(offered)
            together = actions.get(event.response or event.id, [event])
            if event.kind == "ActionEvent" and event is not together[0]:
                place_of[event.id] = place_of.get(together[0].id, -1)
                continue
            logged, place = _logged(event, together, problems)
            if logged is None:
                continue
            model, used = reported.get(event.response, ("", None))
            is_call = bool(event.response) or event.kind == "ActionEvent"
            call = Call(model, usage=used, request_id=event.response) if is_call else None
            for message in recorded_messages(logged, place, problems, "openhands", event.time, call):
                is_seen = message.call is None and event.at("observation") is not None
                history.add(replace(message, text=_shown(event, message.text)) if is_seen else message, event.place)
                place_of[event.id] = len(history.messages) - 1
    return history, tools


def _logged(event: _Event, actions: Sequence[_Event], problems: Problems) -> tuple[dict[str, Any] | None, Place]:
    """Return an event as a message in OpenAI's form, and its place; None if no model sees it.

    `actions` are those of the event's response, which make one answer.
    """
    where = event.place
    match event.kind:
        case "SystemPromptEvent":
            parts = (event.typed(name, str) for name in ("system_prompt.text", "dynamic_context.text"))
            return {"role": "system", "content": "\n\n".join(part for part in parts if part is not None)}, where
        case "MessageEvent" if event.at("llm_message") is not None:
            said = event.typed("llm_message.content", _Content) or []
            said = [*said, *(event.typed("extended_content", _Content) or ())]
            told = {name: event.at(f"llm_message.{name}") for name in ("role", "reasoning_content")}
            event.needed("llm_message.role", str)
            return {**told, "content": said or ""}, event.below("llm_message")
        case "ActionEvent":
            made = (action.needed("tool_call", OBJECT) for action in actions if action.at("tool_call") is not None)
            calls = [{**call, "arguments": call.get("arguments") or "{}"} for call in made]
            said, thought = event.typed("thought", _Content) or [], event.at("reasoning_content")
            return {"role": "assistant", "content": said, "tool_calls": calls, "reasoning_content": thought}, where
        case kind if kind in _RESULTS:
            paths = "observation.content" if event.at("observation") is not None else "error|rejection_reason"
            named = {"tool_call_id": event.text("tool_call_id"), "name": event.text("tool_name")}
            observed = event.typed(paths, str | _Content)  # type: ignore[arg-type]
            return {"role": "tool", **named, "content": observed or ""}, where
        case kind if kind not in _UNSEEN:
            problems.unknown(f"openhands: event of kind {kind!r}", where)
    return None, where


def _shown(event: _Event, text: str) -> str:
    """Return the text of an observation as the SDK shows it to the model (`TerminalObservation.to_llm_content`)."""
    if event.at("observation.kind") in _COMMANDS and event.at("observation.metadata") is not None:
        around = "observation.metadata"
        lines = [f"{event.text(f'{around}.prefix')}{text}{event.text(f'{around}.suffix')}"]
        if folder := event.typed(f"{around}.working_dir", str):
            lines.append(f"[Current working directory: {folder}]")
        if interpreter := event.typed(f"{around}.py_interpreter_path", str):
            lines.append(f"[Python interpreter: {interpreter}]")
        if (code := event.typed(f"{around}.exit_code", int)) not in (None, -1):
            lines.append(f"[Command finished with exit code {code}]")
        text = "\n".join(lines)
    return f"{_FAILED}\n{text}" if event.at("observation.is_error") is True else text
