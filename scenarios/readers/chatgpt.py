"""ChatGPT's data export, `conversations.json`: each conversation a tree of messages.

    [{id | conversation_id, current_node, mapping: {node: {parent, children, message: {author: {role, name},
      create_time, recipient, content: {content_type, parts | text | thoughts | result}, metadata: {model_slug}}}}}]

Source: unofficial descriptions of the export; tested on written examples alone. No usage, no tool schemas, and of the
system prompt only what the user wrote.

- The branch that ends in `current_node` is read. Messages on other branches (edited and regenerated ones) are counted
  in the notes.
- Messages of the assistant without a user's or tool's between them are one answer. One to a `recipient` other than
  `all` is a tool call, and what a tool says answers the last call.
- Custom instructions are a system message. Citations in the text stay as they stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..media import sized
from ..model import Call, Conversation, Media, Message, ToolCall
from ..source import Problems, convert, decode
from . import Recordings, anywhere
from .messages import History, role_of
from .requests import numbered
from .responses_api import joined
from .spans import span_records


class _Author(msgspec.Struct):
    role: str
    name: str | None = None


class _Said(msgspec.Struct):
    author: _Author
    content: dict[str, Any]
    create_time: float | None = None
    recipient: str | None = None
    metadata: dict[str, Any] | None = None


class _Node(msgspec.Struct):
    message: Any = None
    parent: str | None = None


class _Export(msgspec.Struct):
    mapping: dict[str, _Node]
    current_node: str
    id: str | None = None
    conversation_id: str | None = None
    default_model_slug: str | None = None


@dataclass(frozen=True, slots=True)
class ChatGpt:
    """Conversations of ChatGPT."""

    about: ClassVar[str] = "ChatGPT's data export (conversations.json)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = anywhere((".mapping", ".mapping.*.message", ".mapping.*.children"))
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            unnamed = 0
            for place, raw in span_records(path, problems):
                with problems.collect():
                    export = decode(raw, _Export, place)
                    name = export.conversation_id or export.id
                    unnamed += not name
                    messages = _messages(export, place, problems)
                    if messages:
                        yield place, Conversation(name or numbered(path.stem, unnamed), messages)
                    else:
                        problems.unknown("chatgpt: conversation without messages", place)


def _branch(export: _Export, place: Place, problems: Problems) -> Iterator[tuple[_Said, Place]]:
    """Yield the messages from the root to the current node."""
    names = dict[str, None]()
    name: str | None = export.current_node
    while name is not None and name not in names:
        if name not in export.mapping:
            where = place.below(f"mapping.{next(reversed(names))}.parent" if names else "current_node")
            raise RecordingError(where, f"{name!r} names no message", "restore it, or leave this conversation out")
        names[name] = None
        name = export.mapping[name].parent or None
    for other, node in export.mapping.items():
        if other not in names and node.message is not None:
            problems.unknown("chatgpt: message on another branch", place.below(f"mapping.{other}"))
    for node_name in reversed(names):
        if (message := export.mapping[node_name].message) is not None:
            where = place.below(f"mapping.{node_name}.message")
            yield convert(message, _Said, where), where


def _messages(export: _Export, place: Place, problems: Problems) -> tuple[Message, ...]:
    history = History(problems)
    last_call = ""
    for said, where in _branch(export, place, problems):
        role = role_of(said.author.role, where.below("author"))
        text, thinking, media = _content(said.content, where.below("content"), problems)
        called = said.recipient if role == "assistant" and said.recipient not in (None, "", "all") else None
        if not (text or thinking or media or called or role == "tool"):
            continue  # a placeholder: the root, hidden system messages
        name = f"m{len(history.messages)}"
        if role == "tool" and not last_call:
            problems.unknown("chatgpt: result of a tool that no message called, read as a user's message", where)
            role = "user"
        if role != "assistant":
            answers = last_call if role == "tool" else None
            tool_name = said.author.name or ""
            history.add(Message(name, role, text, (), answers, tool_name, said.create_time, media=media), where)
            continue
        model = (said.metadata or {}).get("model_slug") or export.default_model_slug
        call = Call(model=model if isinstance(model, str) else "", provider="openai")
        message = Message(name, role, text, time=said.create_time, thinking=thinking, media=media, call=call)
        if history.messages and history.messages[-1].role == "assistant":
            message = _merged(history.messages.pop(), message)
        if called:
            last_call = f"{message.id}c{len(message.calls)}"
            arguments = text if text.lstrip().startswith("{") else msgspec.json.encode({"input": text}).decode()
            # The text of this message is the call's arguments, and `_merged` has put it behind what was said before.
            without = message.text.removesuffix(text).rstrip("\n")
            calls = (*message.calls, ToolCall(last_call, called, arguments))
            message = msgspec.structs.replace(message, text=without, calls=calls)
        history.add(message, where)
    return history.in_order()


def _merged(first: Message, second: Message) -> Message:
    """Return two messages of the assistant as one; the time is when the answer was complete."""
    return msgspec.structs.replace(
        second,
        id=first.id,
        text=joined((first.text, second.text)),
        calls=first.calls,
        time=first.time if second.time is None else second.time,
        thinking=joined((first.thinking, second.thinking)),
        media=first.media + second.media,
    )


def _content(content: dict[str, Any], place: Place, problems: Problems) -> tuple[str, str, tuple[Media, ...]]:
    """Return content as (text, thinking, media)."""
    kind = content.get("content_type")
    if kind == "thoughts":
        thoughts = content.get("thoughts")
        listed = thoughts if isinstance(thoughts, list) else []
        return "", joined(str(one.get("content") or "") for one in listed if isinstance(one, dict)), ()
    if kind == "reasoning_recap":  # "Thought for 5 seconds": for the screen
        return "", "", ()
    if kind == "user_editable_context":
        return joined(str(content.get(key) or "") for key in ("user_profile", "user_instructions")), "", ()
    texts, media = [], []
    parts = content.get("parts")
    for at, part in enumerate(parts if isinstance(parts, list) else ()):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("content_type") == "image_asset_pointer":
            media.append(sized("image", part))
        elif isinstance(part, dict) and isinstance(part.get("text"), str):  # transcribed audio
            texts.append(part["text"])
        elif part is not None:
            shown = part.get("content_type") if isinstance(part, dict) else type(part).__name__
            problems.unknown(f"chatgpt: part of type {shown!r}", place.below(f"parts[{at}]"))
    texts += [content[key] for key in ("text", "result") if isinstance(content.get(key), str)]
    if parts is None and not texts:
        problems.unknown(f"chatgpt: content of type {kind!r}", place)
    return joined(texts), "", tuple(media)
