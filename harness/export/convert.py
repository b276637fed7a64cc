"""Conversations and requests for other programs: JSON Lines of whole recordings, and any messages as a request.

    ctxbench    a line per conversation, lossless
    openai      a line per conversation, `{"id", "messages", "tools"}`, as for fine-tuning; `reasoning_content` has
                reasoning. It has no model, usage, times or cache marks
    anthropic   a line per model call of which something was recorded, `{"request": {…}, "response": {…}}`, and one
                request more where these leave something out. It has no conversation id, names, times or costs

The same input gives the same bytes. Lines are streamed, one conversation at a time.

A request is the body of OpenAI's chat completions or Anthropic's Messages API, where alone cache marks stand, a later
system message is written as a user's, and tool results and the user's message behind them are one turn. What was not
recorded (`max_tokens`, the temperature) is left to whoever sends a request.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib.resources import files
from itertools import islice
from os.path import realpath
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from ctxbench.scenarios.chat import arguments_object, chat_message, chat_tool, schema_object
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Call, Conversation, Message, Tool, Usage

from ..folder.files import placed, write_file
from ..folder.run import Run

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
        if not at or message.role != "assistant" or message.call is None or message.call.copied:
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
"""Writers of conversations by the name of the format. A data set is a folder, and none of them."""


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


NO_MARKS: Mapping[int, str] = {}


class Request(NamedTuple):
    """Request of a strategy at one step."""

    messages: Sequence[Message]
    tools: Sequence[Tool]
    marks: Sequence[int]  # places in `messages` that have a cache breakpoint after them
    model: str  # the recorded model; empty where the recording does not say


def openai(request: Request) -> dict[str, Any]:
    """Return a request as the body of a chat completion."""
    body = {
        "model": request.model,
        "messages": [chat_message(message) for message in request.messages],
        "tools": [chat_tool(tool) for tool in request.tools],
    }
    return {key: value for key, value in body.items() if value or key == "messages"}


def anthropic(request: Request) -> dict[str, Any]:
    """Return a request as the body of Anthropic's Messages API. It has no thinking: that takes the API's signatures."""
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    return body | anthropic_prompt(request.messages, request.tools, dict.fromkeys(request.marks, "5m"))


BODIES: Mapping[str, Callable[[Request], dict[str, Any]]] = {"openai": openai, "anthropic": anthropic}
"""Bodies of requests by the name of their form."""


def step_requests(run: Run, conversation: Conversation, strategy: str) -> Iterator[Request]:
    """Yield what a strategy sent at each step of a conversation."""
    contexts = run.contexts(conversation, strategy)
    for messages, row in zip(contexts, run.rows("steps", conversation.id, strategy), strict=True):
        yield Request(
            messages, offered(conversation, row["tools_added"]), row["marks"], asked_model(conversation, row["at"])
        )


def offered(conversation: Conversation, added: Sequence[str]) -> tuple[Tool, ...]:
    """Return the recorded tools and those that a strategy added, given as JSON."""
    return (*conversation.tools, *(msgspec.json.decode(text, type=Tool) for text in added))


def asked_model(conversation: Conversation, said: int) -> str:
    """Return the model of the first recorded call after so many messages; empty if none is known."""
    calls = (message.call for message in conversation.messages[said:] if message.call is not None)
    return next((call.requested or call.model for call in calls), "")


AFTER_TOOLS = -1  # place of a cache mark that stands after the tools


def anthropic_prompt(
    messages: Sequence[Message], tools: Sequence[Tool], marks: Mapping[int, str] = NO_MARKS, *, thinking: bool = False
) -> dict[str, Any]:
    """Return `system`, `tools` and `messages`. `marks` has the lifetime of each cache breakpoint by its place."""

    def marked(at: int) -> list[dict[str, Any]]:
        blocks = anthropic_blocks(messages[at], thinking=thinking)
        if at in marks:  # it stands on a block, so a message without any is given an empty one to carry it
            blocks = blocks or [_text("")]
            blocks[-1] |= _control(marks[at])
        return blocks

    prompt: dict[str, Any] = {}
    opening = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    if system := [block for at in range(opening) for block in marked(at)]:
        prompt["system"] = system if len(system) > 1 or "cache_control" in system[0] else system[0]["text"]
    if tools:
        schemas = [
            {"name": tool.name, "description": tool.description, "input_schema": schema_object(tool)} for tool in tools
        ]
        if AFTER_TOOLS in marks:
            schemas[-1] |= _control(marks[AFTER_TOOLS])
        prompt["tools"] = schemas
    turns: list[dict[str, Any]] = []
    for at in range(opening, len(messages)):
        if turns and messages[at].role != "assistant" and messages[at - 1].role == "tool":
            turns[-1]["content"] += marked(at)
        else:
            role = "assistant" if messages[at].role == "assistant" else "user"
            turns.append({"role": role, "content": marked(at)})
    return prompt | {"messages": turns}


def anthropic_blocks(message: Message, *, thinking: bool) -> list[dict[str, Any]]:
    """Return the content blocks of a message."""
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.answers, "content": message.text}]
    if message.role != "assistant":
        return [_text(message.text)]
    blocks: list[dict[str, Any]] = []
    if message.thinking and thinking:
        blocks.append({"type": "thinking", "thinking": message.thinking, "signature": ""})
    if message.text:
        blocks.append(_text(message.text))
    for call in message.calls:
        arguments = arguments_object(call.arguments)
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
    return blocks


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _control(lifetime: str) -> dict[str, Any]:
    return {"cache_control": {"type": "ephemeral"} | ({} if lifetime == "5m" else {"ttl": lifetime})}


DATA, _ABOUT = "data/train-00000-of-00001.parquet", "dataset_info.json"
# Conversations of a row group: few enough that a viewer reads one without the others.
_GROUP = 100
# Categories of the hub for a number of rows.
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))

_TEXT = pa.string()
_FUNCTION = pa.struct({"name": _TEXT, "arguments": _TEXT})
_CALLS = pa.list_(pa.struct({"id": _TEXT, "type": _TEXT, "function": _FUNCTION}))
_MESSAGE = pa.struct({"role": _TEXT, "content": _TEXT, "name": _TEXT, "tool_calls": _CALLS, "tool_call_id": _TEXT})
_COLUMNS = ("id", "language", "licence", "messages", "tools", "ctxbench")
SCHEMA = pa.schema({name: pa.list_(_MESSAGE) if name == "messages" else _TEXT for name in _COLUMNS})
"""Columns of a data set, a row per conversation. `messages` and `tools` are in OpenAI's form, for anybody's programs;
`ctxbench` is the whole recording, from which the reader `huggingface` has it back. It and `tools` are JSON texts."""


def write_dataset(
    conversations: Iterator[Conversation], folder: Path, names: Sequence[str], option: str, origin: str = ""
) -> int:
    """Write a Hugging Face data set: Parquet, `dataset_info.json` and a card. Return the number of conversations.

    Its card names the recordings, and ends the words "Written by ctxbench" with their `origin`. Raises RunError if
    there is no conversation, or if the folder, which the user named by `option`, holds anything else than a data set of
    ours, or cannot be written.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise RunError(f"{folder}: is not a folder: name another with {option}")
        draft = f".{_ABOUT}."  # which a kill leaves behind
        if folder.exists() and not _is_ours(folder) and any(not at.name.startswith(draft) for at in folder.iterdir()):
            what = "holds something else than a data set of ctxbench"
            raise RunError(f"{folder}: {what}: name another folder with {option}")
        count, messages, languages, licences = 0, 0, set[str](), set[str]()
        if not (group := list(islice(conversations, _GROUP))):
            raise RunError("no conversation could be read")
        info: dict[str, Any] = {
            "description": "Conversations of language model agents.",
            "features": {column.name: _feature(column.type) for column in SCHEMA},
        }
        # Written first, so that the same command knows a folder of ours if this one is stopped.
        if not (folder / _ABOUT).exists():
            write_file(folder / _ABOUT, json.dumps(info))
        with placed(folder / DATA) as path, pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
            while group:
                writer.write_table(pa.Table.from_pylist(list(map(_row, group)), SCHEMA))
                count += len(group)
                messages += sum(len(conversation.messages) for conversation in group)
                languages |= {conversation.language for conversation in group if conversation.language}
                licences |= {conversation.licence for conversation in group if conversation.licence}
                group = list(islice(conversations, _GROUP))
        split = {"name": "train", "num_bytes": (folder / DATA).stat().st_size, "num_examples": count}
        info["splits"] = {"train": split | {"dataset_name": "ctxbench"}}
        card = {
            "languages": json.dumps(sorted(languages) or ["und"]),  # which YAML reads as well
            "conversations": f"{count:,}",
            "messages": f"{messages:,}",
            "size": next((size for most, size in _SIZES if count < most), "100K<n<1M"),
            "data": DATA,
            "licences": "; ".join(sorted(licences)) or "not recorded",
            "origin": origin,
            "recordings": ", ".join(Path(name).name for name in names),
        }
        text = files(__package__).joinpath("data/dataset_card.md").read_text("utf-8")
        for name, value in card.items():
            text = text.replace("{" + name + "}", value)
        write_file(folder / _ABOUT, json.dumps(info, indent=2) + "\n")
        write_file(folder / "README.md", text)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return count


def _is_ours(folder: Path) -> bool:
    """Return whether a folder holds a data set that this module wrote: it has a column of whole recordings."""
    try:
        return "ctxbench" in json.loads((folder / _ABOUT).read_text("utf-8"))["features"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _row(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "language": conversation.language,
        "licence": conversation.licence,
        "messages": [chat_message(message) for message in conversation.messages],
        "tools": json.dumps([chat_tool(tool) for tool in conversation.tools], ensure_ascii=False),
        "ctxbench": conversation.to_json().decode(),
    }


def _feature(kind: pa.DataType) -> Any:
    """Return a column's type in the words of the library `datasets`."""
    if pa.types.is_list(kind):
        return [_feature(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    return {"dtype": "string", "_type": "Value"}
