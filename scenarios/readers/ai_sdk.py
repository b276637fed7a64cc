"""Messages of Vercel's AI SDK: `UIMessage` of the user interface (versions 4 to 6), and `ModelMessage`.

    {id, role, parts: [{type: "text" | "reasoning", text} · {type: "tool-<name>" | "dynamic-tool", toolCallId, toolName,
      state, input, output, errorText} · {type: "tool-invocation", toolInvocation: {toolCallId, toolName, args, result}}
      · {type: "file", mediaType} · {type: "step-start"}]}
    {role, content: text | [{type: "text" | "reasoning" | "tool-call" | "tool-result" …, toolCallId, toolName, input,
      output: {type, value}}]}

Source: github.com/vercel/ai, `packages/ai/src/ui`; tested on written examples alone. No usage and no times.

- An assistant's `UIMessage` holds all steps of an answer: each is a call, with its tools' results behind it.
- A tool's error is its result. Sources and `data-` parts are for the screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ..errors import Place
from ..model import Call
from ..source import Problems
from . import Recordings
from .prompts import LoggedCall, as_object, stored_messages, text_of
from .stored_chats import around, chats, listed

_SCREEN = ("source-url", "source-document", "source", "data-")


@dataclass(frozen=True, slots=True)
class AiSdk:
    """Chats of the AI SDK."""

    about: ClassVar[str] = "Vercel AI SDK messages (UIMessage, ModelMessage)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        *around(".id", ".role", ".parts", ".parts[].type"),
        *around(".id", ".role", ".toolInvocations", ".toolInvocations[].toolCallId"),
        *around(".role", ".content", ".content[].type", ".content[].toolCallId"),
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        yield from chats(files, problems, partial(_read, problems=problems))


def _read(record: Any, place: Place, problems: Problems) -> LoggedCall:
    name, messages = listed(record)
    stored = (
        (f"{name}[{at}]", part, Call()) for at, message in enumerate(messages) for part in _model_messages(message)
    )
    return LoggedCall(stored_messages(stored, place, problems, "ai_sdk"))


def _model_messages(message: Any) -> Iterator[Any]:
    """Yield a message as messages of a model: an answer for each step, and the results of its tools."""
    if not isinstance(message, dict):
        yield message
        return
    parts, invoked = message.get("parts"), message.get("toolInvocations")
    if not isinstance(parts, list):
        parts = message.get("content")
        parts = parts if isinstance(parts, list) else [{"type": "text", "text": parts or ""}]
        calls = invoked if isinstance(invoked, list) else []
        parts = [*({"type": "tool-invocation", "toolInvocation": call} for call in calls), *parts]
    content: list[Any] = []
    results: list[Any] = []
    for part in parts:
        kind = text_of(part.get("type")) if isinstance(part, dict) else ""
        # What follows a tool's result was said in the next step, also where no `step-start` says so.
        if kind == "step-start" or (results and _part_call(part, kind) is None and not kind.startswith(_SCREEN)):
            yield from _step(message, content, results)
            content, results = [], []
        if (call := _part_call(part, kind)) is not None:
            content.append({**call, "type": "tool-call"})
            for name in ("output", "result", "errorText"):
                if call.get(name) is not None:
                    results.append({**call, "type": "tool-result", "output": _value(call[name]), "input": None})
                    break
        elif kind == "tool-result":
            content.append({**part, "output": _value(part.get("output", part.get("result")))})
        elif kind != "step-start" and not kind.startswith(_SCREEN):
            content.append(part)
    yield from _step(message, content, results)


def _step(message: dict[str, Any], content: list[Any], results: list[Any]) -> Iterator[Any]:
    if content:
        yield {"role": message.get("role"), "content": content}
    for result in results:
        yield {"role": "tool", "content": [result]}


def _part_call(part: Any, kind: str) -> dict[str, Any] | None:
    """Return the tool call of a part of the user interface, with its name; None if the part is none."""
    if kind == "tool-invocation":
        return as_object(part.get("toolInvocation"))
    if kind == "dynamic-tool":
        return dict(part)
    if kind.startswith("tool-") and kind not in ("tool-call", "tool-result"):
        return {**part, "toolName": kind.removeprefix("tool-")}
    return None


def _value(output: Any) -> Any:
    """Return an output without its type: `{type: "json", value}`."""
    return output["value"] if isinstance(output, dict) and output.keys() >= {"type", "value"} else output
