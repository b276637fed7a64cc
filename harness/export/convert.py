"""Conversations as JSON Lines: our own form, OpenAI's chats, or logs of Anthropic's requests and responses.

    ctxbench    a line per conversation, lossless
    openai      a line per conversation, `{"id", "messages", "tools"}`, as for fine-tuning. Reasoning stands in
                `reasoning_content`, as servers of open models write it. It has no model, usage, times or cache marks
    anthropic   a line per model call of which something was recorded, `{"request": {…}, "response": {…}}`, and one
                request more where these leave something out. It has no conversation id, names, times or costs

The same input gives the same bytes. Lines are streamed, one conversation at a time.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from os.path import realpath
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import zstandard

from ctxbench.scenarios.chat import chat_message, chat_tool
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Call, Conversation, Message, Tool, Usage

from ..folder.files import placed
from .requests import AFTER_TOOLS, anthropic_blocks, anthropic_prompt

# Settings as the reader joins them: `enabled 2048`, `adaptive high`, `high`.
_EFFORT = re.compile(r"(?:(enabled|disabled|adaptive)(?: ([1-9]\d{0,8}))?(?: |$))?(.*)", re.DOTALL)


def openai_lines(conversation: Conversation) -> Iterator[bytes]:
    """Yield the conversation as one chat."""
    messages = [
        chat_message(message) | ({"reasoning_content": message.thinking} if message.thinking else {})
        for message in conversation.messages
    ]
    record: dict[str, Any] = {"id": conversation.id, "messages": messages}
    if conversation.tools:
        record["tools"] = [chat_tool(tool) for tool in conversation.tools]
    yield msgspec.json.encode(record)


def anthropic_lines(conversation: Conversation) -> Iterator[bytes]:
    """Yield a line per model call of which something was recorded, and one for what these leave out."""
    messages = conversation.messages
    places: dict[str | None, int] = {message.id: at for at, message in enumerate(messages)}
    places[None] = AFTER_TOOLS
    tools: tuple[Tool, ...] | None = None
    written = 0
    for at, message in enumerate(messages):
        if not at or message.role != "assistant" or message.call is None:
            continue
        call = message.call
        tools = conversation.tools if call.tools is None else call.tools
        marks = {places[mark.after]: mark.ttl for mark in call.marks}
        request = anthropic_prompt(messages[:at], tools, marks, thinking=True) | _effort(call.effort)
        if call.model:
            request["model"] = call.model
        yield msgspec.json.encode({"request": request, "response": _response(message, call)})
        written = at + 1
    if written < len(messages) or tools != conversation.tools:
        yield msgspec.json.encode(anthropic_prompt(messages, conversation.tools, thinking=True))


LINES: Mapping[str, Callable[[Conversation], Iterator[bytes]]] = {
    "ctxbench": lambda conversation: iter((conversation.to_json(),)),
    "openai": openai_lines,
    "anthropic": anthropic_lines,
}
"""Writers of conversations by the name of the format. A data set (`dataset.py`) is a folder, and none of them."""


def convert(conversations: Iterable[Conversation], name: str, to: Path) -> int:
    """Write conversations in a format to a file, and return their number. Raises RunError as `write_lines` does."""
    count = 0

    def lines() -> Iterator[bytes]:
        nonlocal count
        for conversation in conversations:
            count += 1
            yield from LINES[name](conversation)

    write_lines(lines(), to)
    return count


def write_lines(lines: Iterable[bytes], to: Path) -> int:
    """Write lines to a file and return their number.

    - is standard output. A file whose name ends in .gz or .zst is compressed. Raises RunError if there is no line, or
    if the file cannot be written: one that is there then stays as it is.
    """
    count = 0
    try:
        with nullcontext(sys.stdout.buffer) if str(to) == "-" else _packed(to) as file:
            for line in lines:
                count += 1
                for part in (line, b"\n"):  # added up, they would be a copy of what may be very long
                    file.write(part)
            if not count:
                raise RunError("there is no conversation to be written")
        sys.stdout.buffer.flush()
    except OSError as error:
        raise RunError(f"{to}: cannot be written: {error.strerror or error}") from None
    return count


@contextmanager
def _packed(to: Path) -> Iterator[IO[bytes]]:
    """Open a draft of a file that compresses as its suffix says, or a plain one."""
    suffix = to.suffix.lower()
    with placed(Path(realpath(to))) as draft, draft.open("wb") as file:
        if suffix == ".gz":
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:  # neither its name nor the time is in it
                yield cast("IO[bytes]", packed)
        elif suffix == ".zst":
            with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as packed:
                yield cast("IO[bytes]", packed)
        else:
            yield file


def _effort(effort: str) -> dict[str, Any]:
    """Return the settings of the request that stand for a recorded reasoning effort."""
    match = _EFFORT.fullmatch(effort)
    # "enabled 2048" is thinking with a budget, "adaptive high" thinking with an effort, "high" an effort alone.
    kind, budget, word = match.groups() if match else (None, None, effort)
    settings: dict[str, Any] = {}
    if kind:
        settings["thinking"] = {"type": kind} | ({"budget_tokens": int(budget)} if budget else {})
    if word:
        settings["output_config"] = {"effort": word}
    return settings


def _response(message: Message, call: Call) -> dict[str, Any]:
    response: dict[str, Any] = {"type": "message", "role": "assistant"}
    response["content"] = anthropic_blocks(message, thinking=True)
    response |= {name: value for name, value in (("model", call.model), ("stop_reason", call.stop)) if value}
    if call.usage is not None:
        response["usage"] = _usage(call.usage)
        if len(call.iterations) > 1:
            response["usage"]["iterations"] = [
                ({"type": "advisor_message", "model": inner.model} if inner.model else {"type": "message"})
                | _usage(inner.usage)
                for inner in call.iterations
            ]
    return response


def _usage(usage: Usage) -> dict[str, Any]:
    """Return token counts under Anthropic's names: `input_tokens` are those that were neither read nor written."""
    cached, hour = (usage.cache_read or 0) + (usage.cache_write or 0), usage.cache_write_1h
    counts: dict[str, Any] = {
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
        "output_tokens": usage.output,
        "input_tokens": None if usage.input is None else usage.input - cached,
        "cache_creation": None if hour is None else {"ephemeral_1h_input_tokens": hour},
    }
    return {name: count for name, count in counts.items() if count is not None}
