"""A plain function `messages -> messages` as a strategy: what most libraries offer.

It is given, and gives back, a list of OpenAI-style message dicts:

    {"id": …, "role": "assistant", "content": "…", "tool_calls": [{"id": …, "type": "function", "function": {…}}]}
    {"id": …, "role": "tool", "content": "…", "tool_call_id": …}

`id` is the message's id in the recording. What comes back is recognised by it, or where a library drops it by content,
from the newest on. Recognised messages are those of the recording, so that they are known as sent unchanged; one whose
text was changed stands for the recorded one; any other was written by the function. Nothing is mended: calls that were
cut from their results, or messages out of order, are faults of the function, and count as such.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, field, fields, make_dataclass
from typing import Any, get_type_hints

import msgspec

from ..scenarios.errors import SpecError
from ..scenarios.model import Message, Role, ToolCall
from ..scenarios.view import Messages, Span
from .base import Context, Desk, Misfit, View

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


class PlainError(Misfit):
    """What a plain function gave back is no list of messages."""


def strategy_of(function: Callable[..., Any], name: str) -> type[Any]:
    """A strategy class that calls the function. Its parameters are those of the function after the first.

    Raises SpecError for a function that does not take messages and named parameters.
    """
    if inspect.iscoroutinefunction(function):
        raise SpecError(f"{name}: is an async function: give a plain one")
    try:
        takes = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        takes = []
    if not takes or takes[0].kind not in (takes[0].POSITIONAL_ONLY, takes[0].POSITIONAL_OR_KEYWORD):
        raise SpecError(f"{name}: a function takes a list of messages first, and returns one")
    try:
        hints = get_type_hints(function)
    except Exception:  # names that only a type checker knows
        hints = {}
    alone = inspect.isfunction(function) and function.__closure__ is None  # nothing of it is another for a question
    named = [each for each in takes[1:] if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]

    def start(self: Any, desk: Desk) -> View:  # noqa: ARG001
        given = {each.name: getattr(self, each.name) for each in fields(self)}

        def view(context: Context) -> Context:
            history = context.messages
            found = function([_dict(each) for each in history], **given)
            return context.sending(_recognised(found, history, name))

        return view

    made = make_dataclass(
        getattr(function, "__name__", "Plain"),
        [(each.name, _hint(hints.get(each.name, Any)), _default(each.default)) for each in named],
        namespace={"start": start, "copyable": alone, "__doc__": inspect.getdoc(function) or "A plain function."},
        frozen=True,
        slots=True,
        kw_only=True,
    )
    made.__module__ = getattr(function, "__module__", __name__)
    return made


def _hint(hint: Any) -> Any:
    """The hint, if a value that is written as text can be checked against it."""
    try:
        msgspec.inspect.type_info(hint)
    except TypeError:
        return Any
    return hint


def _default(default: Any) -> Field[Any]:
    made: Field[Any] = field() if default is inspect.Parameter.empty else field(default_factory=lambda: default)
    return made  # a factory, since a list or a dict is refused as a default


def _dict(message: Message) -> dict[str, Any]:
    made: dict[str, Any] = {"id": message.id, "role": message.role, "content": message.text}
    if message.name:
        made["name"] = message.name
    if message.calls:
        made["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    if message.answers is not None:
        made["tool_call_id"] = message.answers
    return made


def _recognised(found: Any, history: Messages, name: str) -> Messages:
    """What a function gave back, each message recognised if it can be. From the newest on: most cut the start away."""
    if isinstance(found, (str, Mapping)) or not isinstance(found, Iterable):
        raise PlainError(f"{name} returned {type(found).__name__}, not a list of messages")
    back = [_message(each, at, name) for at, each in enumerate(found)]
    known = _Known(history)
    sent: list[Messages] = []
    for message in reversed(back):
        at = known.place(message)
        if at is None:
            sent.append(Messages.of((known.written(message, name),)))
        elif message.text == history[at].text:
            sent.append(history[at : at + 1])
        else:
            sent.append(Messages.of((msgspec.structs.replace(history[at], text=message.text),)))
    return Messages(_joined(span for each in reversed(sent) for span in each.spans))


class _Known:
    """The messages that a function was given, each to be recognised once."""

    def __init__(self, history: Messages) -> None:
        self._history = history
        self._by_id = {message.id: at for at, message in enumerate(history)}
        self._by_content: dict[object, list[int]] = {}
        self._taken: set[str] = set()

    def place(self, message: Message) -> int | None:
        """The place of the message that this is, or stands for; None if it is none of them."""
        at = self._by_id.get(message.id)
        if at is None or _but_text(self._history[at]) != _but_text(message):
            at = self._same_content(message) if not message.id else None
        if at is None or self._history[at].id in self._taken:
            return None
        self._taken.add(self._history[at].id)
        return at

    def written(self, message: Message, name: str) -> Message:
        """The message under an id that is its own: the same for the same content at every step."""
        content = msgspec.json.encode(msgspec.structs.replace(message, id=""))
        first = made = f"{name}:{hashlib.sha256(content).hexdigest()[:12]}"
        again = 1
        while made in self._taken or made in self._by_id:
            again += 1
            made = f"{first}~{again}"
        self._taken.add(made)
        return msgspec.structs.replace(message, id=made)

    def _same_content(self, message: Message) -> int | None:
        """The newest message with this content that is not taken."""
        if not self._by_content:
            for at, each in enumerate(self._history):
                self._by_content.setdefault((each.text, _but_text(each)), []).append(at)
        places = self._by_content.get((message.text, _but_text(message)), [])
        while places and self._history[places[-1]].id in self._taken:
            places.pop()
        return places[-1] if places else None


def _but_text(message: Message) -> object:
    """What makes a message another one, whatever its text. Libraries are free to drop names."""
    return message.role, message.calls, message.answers


def _joined(spans: Iterable[Span]) -> list[Span]:
    """The spans, those that follow each other in one store as one."""
    made: list[Span] = []
    for span in spans:
        if made and made[-1].store is span.store and made[-1].stop == span.start:
            made[-1] = Span(span.store, made[-1].start, span.stop)
        else:
            made.append(span)
    return made


def _message(found: Any, at: int, name: str) -> Message:
    """One message dict. Raises PlainError."""
    where = f"{name}: message {at} of what it returned"
    if not isinstance(found, Mapping):
        raise PlainError(f"{where} is {type(found).__name__}, not a dict with role and content")
    role = ROLES.get(str(found.get("role")))
    if role is None:
        raise PlainError(f"{where} has role {found.get('role')!r}: give one of {', '.join(ROLES)}")
    answers = found.get("tool_call_id")
    if role == "tool" and not isinstance(answers, str):
        raise PlainError(f"{where} is a tool's and has no tool_call_id")
    return Message(
        str(found.get("id") or ""),
        role,
        _text(found.get("content"), where),
        tuple(_call(each, where) for each in found.get("tool_calls") or ()),
        answers if role == "tool" else None,
        str(found.get("name") or ""),
    )


def _text(content: Any, where: str) -> str:
    """A text, or the texts of content blocks."""
    if content is None or isinstance(content, str):
        return content or ""
    blocks: list[Any] = list(content) if isinstance(content, Sequence) else [None]
    if not all(isinstance(each, Mapping) and isinstance(each.get("text"), str) for each in blocks):
        raise PlainError(f"{where} has a content that is neither text nor blocks of text")
    return "\n".join(each["text"] for each in blocks)


def _call(found: Any, where: str) -> ToolCall:
    try:
        function = found["function"]
        arguments = function["arguments"]
        text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        return ToolCall(str(found["id"]), str(function["name"]), text)
    except (KeyError, TypeError):
        raise PlainError(f"{where} has a tool call without id, function.name or function.arguments") from None
