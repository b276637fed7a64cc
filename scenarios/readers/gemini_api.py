"""Contents of Google's Gemini API as messages: what Gemini CLI records, and what requests and responses hold.

    {"role": "user" | "model", "parts": [{"text"} · {"text", "thought": true} · {"inlineData"} · {"fileData"} ·
      {"functionCall": {"name", "args", "id"}} · {"functionResponse": {"name", "response", "id"}}]}

Source: ai.google.dev/api/caching#Content. A result of a function is a part of a user's content there and a message of
its own here. Calls often have no ids: a result then answers the first call of its name that has none yet. Inline and
uploaded data are media by their MIME type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ..errors import Place, RecordingError
from ..media import media_of
from ..model import Call, Media, Message, ToolCall
from ..source import Problems, as_text


class FunctionCall(msgspec.Struct):
    """A tool call."""

    name: str
    args: dict[str, Any] | None = None
    id: str | None = None


class FunctionResponse(msgspec.Struct):
    """The result of a tool call."""

    response: dict[str, Any] = {}
    name: str = ""
    id: str | None = None


class GeminiPart(msgspec.Struct, rename="camel"):
    """One part of a content."""

    text: str | None = None
    thought: bool = False
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    inline_data: dict[str, Any] | None = None
    file_data: dict[str, Any] | None = None
    media_resolution: Any = None
    thought_signature: str | None = None


class GeminiContent(msgspec.Struct):
    """One side's turn."""

    parts: list[GeminiPart] = []
    role: str = ""


def part_text(
    parts: Iterable[GeminiPart | str | None], place: Place, problems: Problems
) -> tuple[str, tuple[Media, ...]]:
    """Return parts as text and media, without thoughts; parts of another kind are counted as unknown."""
    texts, media = [], []
    for part in parts:
        if isinstance(part, GeminiPart):
            if part.text is not None:
                texts += [] if part.thought else [part.text]
            elif part.function_response is not None:
                texts.append(_response(part.function_response.response))
            elif (medium := media_of(msgspec.structs.asdict(part))) is not None:
                media.append(medium)
            elif part.function_call is None and part.thought_signature is None:
                problems.unknown("gemini: part without a text, a call, a result or a file", place)
        elif part:
            texts.append(part)
    return "\n".join(texts), tuple(media)


def content_messages(
    contents: Sequence[GeminiContent], names: Iterator[str], place: Place, problems: Problems
) -> Iterator[Message]:
    """Yield the messages of a request's contents. `place` is the place of the list, for errors."""
    unanswered: list[ToolCall] = []
    for at, content in enumerate(contents):
        where = place.at(f"{place.field}[{at}].parts")
        if content.role == "model":
            message = model_message(content.parts, next(names), where, problems)
            unanswered += message.calls
            yield message
            continue
        results = [part.function_response for part in content.parts if part.function_response is not None]
        for result in results:
            call = next((c for c in unanswered if c.id == result.id or (not result.id and c.name == result.name)), None)
            if call is None:
                what = f"a result of {result.name!r}, which no content before it called"
                problems.add(RecordingError(where, what, "restore the content with the call"))
                continue
            # So the next result of the same name answers the next call of it.
            unanswered.remove(call)
            yield Message(next(names), "tool", _response(result.response), answers=call.id, name=result.name)
        others = [part for part in content.parts if part.function_response is None]
        if others or not results:
            text, media = part_text(others, where, problems)
            yield Message(next(names), "user", text, media=media)


def model_message(
    parts: Sequence[GeminiPart],
    name: str,
    place: Place,
    problems: Problems,
    time: float | None = None,
    call: Call | None = None,
) -> Message:
    """Return a model's content as a message with the id `name`."""
    text, media = part_text(parts, place, problems)
    made = [part.function_call for part in parts if part.function_call is not None]
    calls = (ToolCall(one.id or f"{name}c{at}", one.name, as_text(one.args or {})) for at, one in enumerate(made))
    thinking = "\n".join(part.text for part in parts if part.thought and part.text)
    return Message(name, "assistant", text, tuple(calls), time=time, thinking=thinking, media=media, call=call)


def _response(response: dict[str, Any]) -> str:
    """Return what a tool answered: its output or error, or else the whole of it as JSON."""
    shown = response.get("output", response.get("error"))
    return shown if isinstance(shown, str) else as_text(response)
