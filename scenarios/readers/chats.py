"""Plain chats: OpenAI's form, ShareGPT's, exports of chat programs, and ctxbench's own form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from mimetypes import guess_type
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ..errors import Place, RecordingError
from ..media import sized
from ..model import Call, Conversation, Media, Message, Role, Scalar, Tool, ToolCall
from ..source import Problems, decode, records, whole_file
from . import LIST, OBJECT, UNNAMED, Fields, Reader, Recordings, anywhere, as_object, text_of
from .messages import ChatMessage, History, chat_message, chat_messages, in_order, iso_time, joined, role_of, tool
from .prompts import Stored, exchange, stored_messages
from .requests import asked_of, numbered
from .spans import span_records


class CtxbenchJsonl(Reader):
    """ctxbench's own form: JSON Lines, one conversation a line, lossless (`docs/recording.schema.json`)."""

    about = "ctxbench's own JSON Lines, one conversation a line"
    shapes = (frozenset({".ctxbench", ".id", ".messages", ".messages[].id"}),)
    record_type = Conversation

    def conversations(self, record: Fields, problems: Problems) -> Recordings:  # noqa: ARG002
        yield record.place, record.record


class _Chat(msgspec.Struct):
    messages: list[ChatMessage]
    tools: Any = None
    model: Any = None
    id: str | int | None = None
    conversation_id: str | int | None = None
    thread_id: str | int | None = None


class _Kind(msgspec.Struct):
    role: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    messages: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class OpenAIChat(Reader):
    """OpenAI chat messages: `{"messages": […], "tools": […]}`, as one JSON object, a JSON array of them, or JSON Lines.

    Also read: a bare list of messages (a file, or a line of one), and one message per line, which makes one
    conversation per file. Source: platform.openai.com/docs/api-reference/chat. An `id`, `conversation_id` or
    `thread_id` becomes the conversation's id, else the file's name. A request's `model` is that of the answers in it.
    The form has no usage, no times and no cache marks.
    """

    about = "OpenAI chat messages (JSON or JSON Lines)"
    shapes = (*anywhere((".messages", ".messages[].role")), *anywhere((".role", ".content"), under=("", "[]", "[][]")))

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            single, last_call = History(problems), ""  # of messages that stand alone on their lines
            for place, raw in records(path, problems):
                with problems.collect():
                    kind = None if raw.startswith(b"[") else decode(raw, _Kind, place)
                    if kind is None or kind.role is msgspec.UNSET or kind.messages is not msgspec.UNSET:
                        conversation = _chat(raw, place, problems)
                        del raw  # it may take as much memory as the conversation, which is used for long
                        yield place, conversation
                    else:
                        message = decode(raw, ChatMessage, place)
                        said = chat_message(message, f"m{len(single.messages)}", place, problems, last_call)
                        single.add(said, place)
                        last_call = said.calls[-1].id if said.calls else last_call
            if single.messages:
                yield Place(str(path), 1), single.conversation(UNNAMED)


def _chat(raw: bytes, place: Place, problems: Problems) -> Conversation:
    if raw.startswith(b"["):
        return Conversation(UNNAMED, chat_messages(decode(raw, list[ChatMessage], place), place, problems))
    chat = decode(raw, _Chat, place)
    messages = asked_of(chat.model, chat_messages(chat.messages, place.at("messages"), problems))
    names = (str(name) for name in (chat.id, chat.conversation_id, chat.thread_id) if name is not None)
    tools = exchange(None, None, place, problems, "openai_chat", tools=chat.tools).tools
    return Conversation(next(names, UNNAMED), messages, tools=tools)


_ROLES: dict[str, Role] = {
    "system": "system",
    "human": "user",
    "user": "user",
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "function_call"), "assistant"),
    **dict.fromkeys(("observation", "function_response", "tool"), "tool"),
}
_HERMES = re.compile(r"<tool_call>\s*(\{(?:(?!<tool_call>).)*?\})\s*</tool_call>\s*", re.DOTALL)


class _Turn(msgspec.Struct):
    speaker: str | None = msgspec.field(name="from", default=None)
    value: str | msgspec.UnsetType | None = msgspec.UNSET
    role: str | None = None
    content: str | msgspec.UnsetType | None = msgspec.UNSET

    def __post_init__(self) -> None:
        if self.speaker is None and self.role is None:
            raise ValueError("a turn needs from or role")
        if self.value is msgspec.UNSET and self.content is msgspec.UNSET:
            raise ValueError("a turn needs value or content")


class Share(msgspec.Struct):
    """A recorded conversation."""

    conversations: list[_Turn]
    system: str | None = None
    tools: str | list[dict[str, Any]] | None = None
    id: str | int | None = None


class _Function(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class ShareGpt(Reader):
    """ShareGPT: `{"conversations": [{"from": "human", "value": "…"}], "system"?, "tools"?}`, an array or JSON Lines.

    Also read: turns as `{"role", "content"}` or `{"role", "value"}`. Source: the form that FastChat, Axolotl and
    LLaMA-Factory train on. `function_call` is the assistant calling a tool: its value is the JSON of one `{name,
    arguments}` or a list of them. `observation` and `tool` are a result: it answers the oldest call without a result.
    Hermes' way of calling, `<tool_call>{…}</tool_call>` in the assistant's text, is read too. The form has no ids of
    calls, no usage and no times.
    """

    about = "ShareGPT conversations ({from, value})"
    shapes = anywhere(
        *(
            (".conversations", f".conversations[].{speaker}", f".conversations[].{said}")
            for speaker, said in (("from", "value"), ("role", "value"), ("role", "content"))
        )
    )
    record_type = Share

    def conversations(self, record: Fields, problems: Problems) -> Recordings:  # noqa: ARG002
        share, place = record.record, record.place
        name = UNNAMED if share.id is None else str(share.id)
        messages = share_messages(share, place)
        yield place, Conversation(name, messages, tools=share_tools(share.tools, place.at("tools")))


def share_messages(share: Share, place: Place) -> tuple[Message, ...]:
    """Return all messages of a conversation in our form."""
    messages = [Message("m0", "system", share.system)] if share.system else []
    waiting = list[ToolCall]()  # calls that have no result yet
    for at, turn in enumerate(share.conversations):
        where, name, calls = place.at(f"conversations[{at}]"), f"m{len(messages)}", tuple[ToolCall, ...]()
        speaker = turn.role or "" if turn.speaker is None else turn.speaker
        if not speaker:
            field = where.below("role" if turn.speaker is None else "from")
            raise RecordingError(field, f"unknown role {speaker!r}", f"use {', '.join(_ROLES)}")
        role = _ROLES.get(speaker, "tool")  # get_weather: a result of that tool
        text = next((said for said in (turn.value, turn.content) if isinstance(said, str)), "")
        if role == "tool":
            # the last call stays, so a surplus result answers it again instead of being an error
            uncalled = ToolCall("", "" if speaker in _ROLES else speaker)
            call = waiting.pop(0) if len(waiting) > 1 else next(iter(waiting), uncalled)
            messages.append(Message(name, role, text, answers=call.id, name=call.name))
            continue
        if speaker == "function_call":
            where, raw = where.below("value" if isinstance(turn.value, str) else "content"), text.encode()
            several = text.lstrip().startswith("[")
            functions = decode(raw, list[_Function], where) if several else [decode(raw, _Function, where)]
            calls, text = tuple(_call(each, f"{name}c{n}", where) for n, each in enumerate(functions)), ""
        elif role == "assistant":
            calls, text = _hermes_calls(text, name, where)
        waiting = list(calls) or waiting
        messages.append(Message(name, role, text, calls))
    return tuple(messages)


def _hermes_calls(text: str, name: str, place: Place) -> tuple[tuple[ToolCall, ...], str]:
    """Return the calls in an assistant's text, and the text without them. A call that is no JSON stays text."""
    calls: list[ToolCall] = []

    def take(match: re.Match[str]) -> str:
        try:
            calls.append(_call(decode(match[1].encode(), _Function, place), f"{name}c{len(calls)}", place))
        except RecordingError:
            return match[0]
        return ""

    rest = _HERMES.sub(take, text)
    return tuple(calls), rest.strip() if calls else text


def _call(function: _Function, name: str, place: Place) -> ToolCall:
    """Return a call with the id `name`. Its arguments are recorded as an object, or as the text of one."""
    text = bytes(function.arguments).decode()
    return ToolCall(name, function.name, decode(text.encode(), str, place) if text.startswith('"') else text)


def share_tools(recorded: str | list[dict[str, Any]] | None, place: Place) -> tuple[Tool, ...]:
    """Return the tools of a list of `{name, …}` or `{"type": "function", "function": {name, …}}`, or of its text."""
    if not recorded or (isinstance(recorded, str) and not recorded.strip()):
        return ()
    schemas = decode(recorded.encode(), list[dict[str, Any]], place) if isinstance(recorded, str) else recorded
    functions = [schema.get("function", schema) for schema in schemas]
    return tuple(tool(function) for function in functions if isinstance(function, dict))


_UNSENT = ("flag", "token_budget", "redacted_thinking")


class ClaudeAi(Reader):
    """Claude.ai's data export, `conversations.json`: `[{uuid, name, chat_messages: [{uuid, sender, text, content}]}]`.

        chat_messages: {uuid, parent_message_uuid, sender: "human" | "assistant", created_at, text, attachments:
          [{file_name, extracted_content}], files: [{file_name}], content: [{type: "text", text} · {type: "thinking",
          thinking} · {type: "tool_use", id, name, input} · {type: "tool_result", tool_use_id, name, content}]}

    Source: unofficial descriptions of the export; tested on written examples alone. No usage, no models, no system
    prompt, no tool schemas.

    - An answer with tools is one message there. Here it is split at the results of its tools: what comes behind them is
      another call. Exports leave ids of tool calls out: a result without one answers the oldest open call.
    - Text extracted from attachments is part of the user's message. Other files have their kind alone.
    - If messages name their parents, the branch of the last one is read; the others are counted in the notes.
    """

    about = "Claude.ai's data export (conversations.json)"
    shapes = anywhere((".uuid", ".chat_messages", ".chat_messages[].sender"))
    each_record = staticmethod(span_records)

    def conversations(self, record: Fields, problems: Problems) -> Recordings:
        name, _ = record.needed("uuid", str), record.needed("chat_messages", LIST)
        said = list(record.each("chat_messages"))
        stored = (_exported(said[at], f"chat_messages[{at}]") for at in _branch(record, said, problems))
        if messages := stored_messages(stored, record.place, problems, "claude_ai"):
            yield record.place, Conversation(name, in_order(messages))
        else:
            problems.unknown("claude_ai: conversation without messages", record.place)


def _branch(chat: Fields, said: Sequence[Fields], problems: Problems) -> list[int]:
    """Return the indices of the messages that lead to the last one, in their order."""
    by_name = {message.text("uuid"): at for at, message in enumerate(said)}
    if by_name.keys().isdisjoint({message.text("parent_message_uuid") for message in said} - {""}):
        return list(range(len(said)))
    branch, at = dict[int, None](), by_name.get(chat.text("current_leaf_message_uuid"), len(said) - 1)
    while at not in branch:
        branch[at] = None
        # A message without a known parent gives itself, which ends the walk, as a circle of parents does.
        at = by_name.get(said[at].text("parent_message_uuid"), at)
    for other in sorted({*range(len(said))} - {*branch}):
        problems.unknown("claude_ai: message on another branch", said[other].place)
    return [*reversed(branch)]


def _exported(said: Fields, at: str) -> Stored:
    """Return a message of the export in Anthropic's form."""
    if (sender := said.needed("sender", str)) not in ("human", "assistant"):
        raise RecordingError(said.place.below("sender"), f"unknown sender {sender!r}", "use human, assistant")
    time, parts = iso_time(said, "created_at"), said.typed("content", list[dict[str, Any]])
    parts = parts or [{"type": "text", "text": said.typed("text", str) or ""}]
    if sender == "assistant":
        parts = [part for part in parts if part.get("type") not in _UNSENT]
        return Stored(at, {"role": sender, "content": parts}, Call(provider="anthropic"), time)
    attached = (one.get("extracted_content") for one in said.typed("attachments", list[dict[str, Any]]) or ())
    text = joined(map(text_of, chain((part.get("text") for part in parts), attached)))
    names = (as_object(shared).get("file_name") for shared in said.typed("files", LIST) or ())
    files = ({"type": "file", "mime": guess_type(str(name))[0] or ""} for name in names)
    return Stored(at, {"role": "user", "content": [{"type": "text", "text": text}, *files]}, None, time)


class ChatGpt(Reader):
    """ChatGPT's data export, `conversations.json`: each conversation a tree of messages.

        [{id | conversation_id, current_node, mapping: {node: {parent, children, message: {author: {role, name},
          create_time, recipient, content: {content_type, parts | text | thoughts | result}, metadata: {model_slug}}}}}]

    Source: unofficial descriptions of the export; tested on written examples alone. No usage, no tool schemas, and of
    the system prompt only what the user wrote.

    - The branch that ends in `current_node` is read. Messages on other branches (edited and regenerated ones) are
      counted in the notes.
    - Messages of the assistant without a user's or tool's between them are one answer. One to a `recipient` other than
      `all` is a tool call, and what a tool says answers the last call.
    - Custom instructions are a system message. Citations in the text stay as they stand.
    """

    about = "ChatGPT's data export (conversations.json)"
    shapes = anywhere((".mapping", ".mapping.*.message", ".mapping.*.children"))
    each_record = staticmethod(span_records)

    def conversations(self, record: Fields, problems: Problems) -> Recordings:
        history, last_call = History(problems), ""
        for said in _gpt_branch(record, problems):
            author = Fields(said.needed("author", OBJECT), said.place.below("author"))
            role = role_of(author.needed("role", str), author.place)
            text, thinking, media = _content(said.needed("content", OBJECT), said.place.below("content"), problems)
            time, recipient = said.typed("create_time", float), said.text("recipient")
            called = recipient if role == "assistant" and recipient != "all" else ""
            if not (text or thinking or media or called or role == "tool"):
                continue  # a placeholder: the root, hidden system messages
            name = f"m{len(history.messages)}"
            if role == "tool" and not last_call:
                problems.unknown(
                    "chatgpt: result of a tool that no message called, read as a user's message", said.place
                )
                role = "user"
            if role != "assistant":
                answers, tool_name = last_call if role == "tool" else None, author.text("name")
                history.add(Message(name, role, text, (), answers, tool_name, time, media=media), said.place)
                continue
            call = Call(model=said.text("metadata.model_slug") or record.text("default_model_slug"), provider="openai")
            message = Message(name, role, text, time=time, thinking=thinking, media=media, call=call)
            if history.messages and history.messages[-1].role == "assistant":
                first = history.messages.pop()  # both are one answer; its time is when it was complete
                message = replace(
                    message,
                    id=first.id,
                    text=joined((first.text, text)),
                    calls=first.calls,
                    time=first.time if time is None else time,
                    thinking=joined((first.thinking, thinking)),
                    media=first.media + media,
                )
            if called:
                last_call = f"{message.id}c{len(message.calls)}"
                arguments = text if text.lstrip().startswith("{") else msgspec.json.encode({"input": text}).decode()
                # The text of this message is the call's arguments, and stands behind what was said before.
                without = message.text.removesuffix(text).rstrip("\n")
                message = replace(message, text=without, calls=(*message.calls, ToolCall(last_call, called, arguments)))
            history.add(message, said.place)
        if history.messages:
            yield record.place, history.conversation(record.text("conversation_id|id") or UNNAMED)
        else:
            problems.unknown("chatgpt: conversation without messages", record.place)


def _gpt_branch(export: Fields, problems: Problems) -> Iterator[Fields]:
    """Yield the messages from the root to the current node."""
    names, place = dict[str, None](), export.place
    mapping, name = export.needed("mapping", dict[str, dict[str, Any]]), export.needed("current_node", str)
    while name and name not in names:
        if name not in mapping:
            where = place.below(f"mapping.{next(reversed(names))}.parent" if names else "current_node")
            raise RecordingError(where, f"{name!r} names no message", "restore it, or leave this conversation out")
        names[name] = None
        name = text_of(mapping[name].get("parent"))
    for other, node in mapping.items():
        if other not in names and node.get("message") is not None:
            problems.unknown("chatgpt: message on another branch", place.below(f"mapping.{other}"))
    for node_name in reversed(names):
        if (message := mapping[node_name].get("message")) is not None:
            yield Fields(message, place.below(f"mapping.{node_name}.message"))


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


_NAME = ".aider.chat.history.md"
_STARTED = "# aider chat started at "
_MODEL = re.compile(r"(?:Main model|Model|Models): (\S+)")
_CONFIRMED = re.compile(r"#### (?:<blank>|.*\(Y\)es/\(N\)o.*|Add [^?]*\?[^:]*: *(?:y|yes|n|no|a|all|s|skip|d))\s*")
_THOUGHT = re.compile(
    r"<(think[\w-]*)>(.*?)</\1>\s*|-+\s*► \**THINKING\**\s(.*?)(?<!-)-++\s*► \**ANSWER\**\s*", re.DOTALL
)


class Aider(Reader):
    """Aider's chat history, `.aider.chat.history.md`: Markdown, to which every session of a project is added.

        # aider chat started at 2025-06-19 14:32:16      begins a session
        > Model: gpt-4o with diff edit format            what the program prints
        #### Fix the bug                                 what the user says, each line
        The bug is …                                     everything else: the answer

    Source: github.com/Aider-AI/aider, `aider/io.py` and `aider/utils.py` (its own `split_chat_history_markdown`), by
    its code; tested on written examples alone. The file is what the screen shows: files that were sent along and the
    system prompt are not in it, and token counts are rounded there, so they are not read.

    - Lines of an answer that look like another kind (`> `, `#### `) are read as that kind, as Aider itself does.
    - Commands (`/add` …) that nothing answers are not sent, nor are empty inputs (`<blank>`) and answers to the
      program's own questions (`#### Add file to the chat? (Y)es/(N)o … [Yes]: skip`).
    - Reasoning, between `► **THINKING**` and `► **ANSWER**` or in a tag `<think…>`, is not sent again.
    - Sessions are conversations `<project>`, `<project>.2` … in the order of the file; those without an answer are
      counted in the notes. The model of an answer is the last one named before it.
    """

    about = "Aider chat histories (Markdown)"
    checked = "Aider 0.86"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Return whether a file is a chat history: Markdown that begins with the start of a session."""
        return path.suffix == ".md" and head.lstrip().startswith(_STARTED.encode())

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            name, number = path.resolve().parent.name if path.name == _NAME else path.stem, 0
            for place, started, lines in _sessions(path, problems):
                turns = list(_turns(lines))
                version = next((line for line in lines if line.startswith("> Aider v")), "")
                problems.written_by(version.removeprefix("> Aider v"), self.checked)
                if any(role == "assistant" for role, _, _ in turns):
                    number += 1
                    meta: dict[str, Scalar] = {"started": started}
                    yield place, Conversation(numbered(name, number), _aider_messages(turns), meta=meta)
                elif turns:
                    problems.unknown("aider: session without an answer", place)


def _sessions(path: Path, problems: Problems) -> Iterator[tuple[Place, str, list[str]]]:
    """Yield the sessions of a file: the line at which each begins, when it was started, and its lines."""
    data = whole_file(path, problems)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        where = Place(str(path), data[: error.start].count(b"\n") + 1)
        raise RecordingError(where, f"not UTF-8 ({error.reason})", "save the file as UTF-8") from None
    number = 1
    for session in re.split(rf"(?m)^(?={_STARTED})", text):
        lines = session.split("\n")
        started = lines.pop(0).removeprefix(_STARTED).strip() if session.startswith(_STARTED) else ""
        yield Place(str(path), number), started, lines
        number += session.count("\n")


def _turns(lines: Iterable[str]) -> Iterator[tuple[Literal["user", "assistant"], str, str]]:
    """Yield what was said as role, text and the last model named before it."""
    model = ""
    for role, group in groupby(lines, _role_of_line):
        if role == "program":
            model = next((named[1] for line in reversed([*group]) if (named := _MODEL.match(line[2:]))), model)
        elif text := "\n".join(line[5 * (role == "user") :].rstrip() for line in group).strip():
            yield role, text, model


def _role_of_line(line: str) -> Literal["program", "user", "assistant"]:
    if line.startswith("> ") or line.rstrip() == ">" or _CONFIRMED.fullmatch(line):
        return "program"
    return "user" if line.startswith("#### ") else "assistant"


def _aider_messages(turns: Sequence[tuple[Literal["user", "assistant"], str, str]]) -> tuple[Message, ...]:
    """Return the turns as messages, without commands that nothing answers."""
    messages = list[Message]()
    for at, (role, text, model) in enumerate(turns):
        answered = at + 1 < len(turns) and turns[at + 1][0] == "assistant"
        thoughts, end = list[str](), 0
        while role == "assistant" and (thought := _THOUGHT.match(text, end)):
            thoughts.append((thought[2] or thought[3] or "").strip())
            end = thought.end()
        text = text[end:]
        if role == "assistant" or answered or not text.startswith("/"):
            call = Call(model) if role == "assistant" else None
            messages.append(Message(f"m{len(messages)}", role, text, thinking=joined(thoughts), call=call))
    return tuple(messages)
