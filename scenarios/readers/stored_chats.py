"""Stored conversations, whatever their dialect: a list of messages, or objects that hold one, as JSON or in SQLite.

    [message, …] · a list on each line · {messages: [message, …], id} on lines, in an array, or alone

An `id`, `thread_id`, `session_id` or `conversation_id` beside the list is the conversation's, else the file's name.
A copy of a SQLite database is opened, so that it may stand in an archive, with what the write-ahead log beside it
(`-wal`) has committed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import msgspec

from .. import packed
from ..errors import Place, RecordingError
from ..model import Call, Conversation, Message
from ..source import LONGEST, Problems, decode, file_head, record_head, records, whole_file
from . import LIST, OBJECT, UNNAMED, Fields, Reader, Recordings, anywhere, as_object, text_of
from .messages import COMPACTIONS, HOSTED, OUTPUTS
from .prompts import Stored, exchange, stored_messages
from .requests import LoggedCall, asked_of, conversations, numbered, tier, usage
from .spans import counted, span_records

_NAMES = ("thread_id", "session_id", "conversation_id", "id")


def around(*keys: str, list_name: str = "messages") -> Iterator[frozenset[str]]:
    """Yield the shapes of files whose messages have these key paths."""
    for outer in ("[]", "[][]", f".{list_name}[]", f"[].{list_name}[]"):
        yield frozenset(f"{outer}{key}" for key in keys)


class StoredChats(Reader):
    """A dialect of stored messages: it says how a list of them, or the object that holds one, is read."""

    lists: ClassVar[tuple[str, ...]] = ("messages",)  # fields that may hold the list

    def logged(self, record: Any, place: Place, problems: Problems) -> LoggedCall:
        """Return the messages of a list, or of the object that holds it. Raises RecordingError."""
        raise NotImplementedError

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for name, logged in self.stored(path, problems):
                yield logged.place, Conversation(name or UNNAMED, logged.messages, tools=logged.tools)

    def stored(self, path: Path, problems: Problems) -> Iterator[tuple[str, LoggedCall]]:
        """Yield the conversations of a file with their names, which may be empty."""
        elements: list[Any] = []  # of a list that is the file
        for place, raw in span_records(path, problems):
            with problems.collect():
                is_list = raw.startswith(b"[")
                record: Any = decode(raw, LIST, place) if is_list else decode(raw, OBJECT, place)
                if isinstance(record, dict) and not any(name in record for name in self.lists):
                    elements.append(record)
                    continue
                held = record if isinstance(record, dict) else {}
                name = next((str(held[key]) for key in _NAMES if isinstance(held.get(key), (str, int))), "")
                yield name, self.logged(record, place, problems)
        if elements:
            with problems.collect():
                yield "", self.logged(elements, Place(str(path)), problems)

    def listed(self, record: Any) -> tuple[str, list[Any]]:
        """Return the list of messages that a record is or holds, and its field."""
        if isinstance(record, list):
            return "", record
        name = next(name for name in self.lists if name in record)
        return name, record[name] if isinstance(record[name], list) else [record[name]]


_HEADER = b"SQLite format 3\0"
_MOST_STEPS, _STEPS = 600_000_000, 1_000_000  # of SQLite's machine in one query, and between two looks at their number
_READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
_WHY = {
    "interrupted": "to read it takes far longer than its size explains",
    "not authorized": "a view stands in the place of a table",
}


def has_tables(head: bytes, *names: str) -> bool:
    """Return whether a file begins as a database with tables of these names."""
    created = ([f"CREATE TABLE {quote}{name}{quote}".encode() for quote in ("", '"', "`")] for name in names)
    return head.startswith(_HEADER) and all(any(text in head for text in texts) for texts in created)


def rows(path: Path, query: str, problems: Problems) -> Iterator[tuple[Place, tuple[Any, ...]]]:
    """Yield the rows of a query, each with its number. Raises RecordingError if the database cannot be read.

    No view or trigger of the file is run, and no extension loaded. A query has some ten seconds, and a cell LONGEST.
    """
    number, steps, log = 0, iter(range(_MOST_STEPS // _STEPS)), path.with_name(f"{path.name}-wal")
    data = {"": whole_file(path, problems)}
    if packed.is_file(log) and file_head(log, 1):
        data["-wal"] = whole_file(log, problems)
    try:
        with TemporaryDirectory(prefix="ctxbench-") as folder:
            for suffix, held in data.items():
                Path(folder, f"copy{suffix}").write_bytes(held)
            with closing(sqlite3.connect(Path(folder, "copy"))) as database:
                database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
                _, frames, _ = database.execute("PRAGMA wal_checkpoint").fetchone()
                if "-wal" in data and frames < 1:
                    what, remedy = "its newest rows are not in the database yet", "close the program, or use `.backup`"
                    problems.add(RecordingError(Place(str(log)), what, remedy))
                most = sum(map(len, data.values()))  # a row takes more than a byte; pages may lead back to each other
                data.clear()
                database.executescript("PRAGMA trusted_schema=off; PRAGMA cell_size_check=on; PRAGMA query_only=on")
                # Tables may be read, and nothing within a view or a trigger, which the last argument names.
                allow, deny = sqlite3.SQLITE_OK, sqlite3.SQLITE_DENY
                database.set_authorizer(lambda action, *of: deny if of[-1] or action not in _READING else allow)
                database.set_progress_handler(lambda: next(steps, None) is None, _STEPS)
                for number, row in enumerate(database.execute(query), 1):
                    if number > most:
                        raise sqlite3.OperationalError("interrupted")
                    yield Place(str(path), number), row
    except (sqlite3.Error, OverflowError, UnicodeError) as error:  # its messages may hold bytes of the file
        why = _WHY.get(str(error), str(error))
        raise RecordingError(Place(str(path), number), f"cannot be read as SQLite: {why}", "copy it again") from None


class LangChain(StoredChats):
    """LangChain's messages: lists as `messages_to_dict`, `dumpd` or `model_dump` write them, or `{messages: list}`.

        messages_to_dict  {type: "human" | "ai" | "tool" | "system", data: {content, tool_calls, usage_metadata …}}
        dumpd             {lc: 1, type: "constructor", id: [… "AIMessage"], kwargs: {content, …}}
        model_dump        {type: "ai", content, additional_kwargs, response_metadata, tool_calls, usage_metadata}

    Source: github.com/langchain-ai/langchain, `libs/core/langchain_core/messages`; tested on what langchain-core 1.7
    writes. `convert_to_openai_messages` writes OpenAI's chat form, which `openai_chat` reads. An answer has its usage,
    its model and why it ended; no times and no tool schemas. JSON, a list on each line, or a JSON array of
    `{messages}`.
    """

    checked = "langchain-core 1.7"
    about = "LangChain messages (messages_to_dict, dumpd, model_dump)"
    shapes = (
        *around(".type", ".data", ".data.content", ".data.type"),
        *around(".lc", ".id", ".kwargs", ".kwargs.content"),
        *around(".type", ".content", ".additional_kwargs", ".response_metadata"),
    )

    def logged(self, record: Any, place: Place, problems: Problems) -> LoggedCall:
        name, messages = self.listed(record)
        return LoggedCall(place, history(messages, name, place, problems, "langchain"))


def history(
    messages: Sequence[Any], name: str, place: Place, problems: Problems, format_name: str
) -> tuple[Message, ...]:
    """Return LangChain's messages in our form, each answer with its call. The list stands at `name` below `place`."""
    stored = (
        Stored(f"{name}[{at}]", message, _call(message, place.below(f"{name}[{at}]"), problems))
        for at, message in enumerate(messages)
    )
    return stored_messages(stored, place, problems, format_name)


def metadata_counts(metadata: Mapping[str, Any], response: Any = None) -> dict[str, Any] | None:
    """Return the counts of `usage_metadata`, whose input is the whole prompt.

    Anthropic's own block is taken instead, if it stands beside it: older versions of langchain-anthropic leave the
    cached tokens out. Newer ones have 0 for what was written where they say for how long it was.
    """
    if isinstance(response, dict) and {"input_tokens", "cache_read_input_tokens"} <= response.keys():
        return response
    details, generated = (as_object(metadata.get(f"{side}_token_details")) for side in ("input", "output"))
    details = {name.replace("_1hr_", "_1h_"): count for name, count in details.items()}  # as LangSmith's SDK wrote it
    counts = (metadata.get("input_tokens"), metadata.get("output_tokens"), details.get("cache_read"))
    names = ("ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens")
    by_lifetime = [count for count in map(details.get, names) if isinstance(count, int)]
    written = details.get("cache_creation") or (sum(by_lifetime) if by_lifetime else None)
    reported = counted(*counts, written, metadata.get("total_tokens"), generated.get("reasoning"), cached_at="within")
    more = {"audio_input_tokens": details.get("audio"), "audio_output_tokens": generated.get("audio")}
    return reported and {**reported, **more, names[0]: details.get(names[0])}


def _call(message: Any, place: Place, problems: Problems) -> Call:
    """Return what a message says of the call that made it."""
    logged = as_object(message)
    fields = next((logged[key] for key in ("kwargs", "data") if isinstance(logged.get(key), dict)), logged)
    response = as_object(fields.get("response_metadata"))
    counts = fields.get("usage_metadata")
    names = ("model_name", "model", "model_id")
    return Call(
        model=next((response[name] for name in names if isinstance(response.get(name), str)), ""),
        provider=text_of(response.get("model_provider")),
        usage=usage(metadata_counts(as_object(counts), response.get("usage")), place.below("usage_metadata"), problems),
        stop=text_of(response.get("finish_reason")) or text_of(response.get("stop_reason")),
        request_id=text_of(response.get("id")),
        tier=tier(response),
    )


# Ends of branches alone: each checkpoint repeats the messages of its parent.
_LEAVES = """SELECT thread_id, checkpoint_ns, type, checkpoint FROM checkpoints AS one WHERE NOT EXISTS (SELECT 1 FROM
checkpoints AS two WHERE two.thread_id = one.thread_id AND two.checkpoint_ns = one.checkpoint_ns
AND two.parent_checkpoint_id = one.checkpoint_id) ORDER BY thread_id, checkpoint_ns, checkpoint_id"""
_ARRAY, _SNAPSHOT = 6, 7


class LangGraph(Reader):
    """LangGraph's checkpoints: the SQLite database of `SqliteSaver`, rows of other savers, states of threads as JSON.

        checkpoints(thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type: "msgpack" | "json", checkpoint)
        checkpoint: {ts, channel_values: {messages: [message]}}
        {thread_id, checkpoint_ns, checkpoint_id, checkpoint}    rows of the same table, on lines, in a list or a table
        {config: {configurable: {thread_id}}, checkpoint}        what `list` gives; a checkpoint may stand alone
        {values: {messages: [message]}, next, created_at, checkpoint: {thread_id, checkpoint_ns}}  state, or a list
        {thread_id, status, values: {messages: [message]}}       threads, as the platform's API gives them

    Source: github.com/langchain-ai/langgraph, `libs/checkpoint-sqlite` and `langgraph/checkpoint/serde/jsonplus.py`;
    the database is tested on what langgraph-checkpoint-sqlite 3.1 writes, rows in JSON on written examples. Messages
    are LangChain's, with usage; no tool schemas.

    - Of each thread the last states are read, one for each branch. A state whose messages begin another one is its
      past.
    - Messages that a graph removed before its last state are not there. Writes that are pending are not read.
    - A subgraph's thread is `<thread>/<name>`, with `meta["parent"]`.
    - Objects of Python stand as the values they are made of; nothing is imported to read them.
    """

    checked = "langgraph-checkpoint-sqlite 3.1"
    about = "LangGraph checkpoints (SQLite) and states of threads (JSON)"
    shapes = tuple(
        frozenset(f"{outer}{key}" for key in (values, f"{values}.messages", f"{values}.messages[].{kind}", beside))
        for outer in ("", "[]")
        for kind in ("type", "lc")
        for values, beside in (
            *((".values", name) for name in (".next", ".thread_id")),
            (".checkpoint.channel_values", ".checkpoint"),
            (".channel_values", ".channel_versions"),
        )
    )

    @staticmethod
    def recognises(_path: Path, head: bytes) -> bool:
        """Return whether a file is a database of checkpoints."""
        return has_tables(head, "checkpoints", "writes")

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            threads: dict[tuple[str, str], list[_State]] = {}
            for held in (_checkpoints if self.recognises(path, record_head(path)) else _states)(path, problems):
                with problems.collect():
                    thread = held.text("thread_id|checkpoint.thread_id|config.configurable.thread_id") or path.stem
                    namespace = held.text("checkpoint_ns|checkpoint.checkpoint_ns|config.configurable.checkpoint_ns")
                    names = ("values", "channel_values", "checkpoint.channel_values")
                    name = next((name for name in names if as_object(held.at(name))), names[0]) + ".messages"
                    if isinstance(messages := held.at(name), list) and messages:
                        said = history(messages, name, held.place, problems, "langgraph")
                        threads.setdefault((thread, namespace), []).append((held.place, said))
                    else:
                        problems.unknown("langgraph: state without messages", held.place)
            for thread_name, states in threads.items():
                yield from _branches(thread_name, states)


_State = tuple[Place, tuple[Message, ...]]  # state of a thread, which is named by its id and its namespace


def _checkpoints(path: Path, problems: Problems) -> Iterator[Fields]:
    for place, (thread, namespace, kind, stored) in rows(path, _LEAVES, problems):
        with problems.collect():
            names = {"thread_id": str(thread), "checkpoint_ns": str(namespace or "")}
            yield Fields({**names, "checkpoint": _loaded(kind, stored, place.at("checkpoint"))}, place)


def _states(path: Path, problems: Problems) -> Iterator[Fields]:
    for place, raw in records(path, problems):
        with problems.collect():
            yield Fields(decode(raw, OBJECT, place), place)


def _branches(thread: tuple[str, str], states: list[_State]) -> Recordings:
    """Yield the states of a thread that no other one goes on from."""
    last: list[_State] = []
    # The longest first, so that every state which another one begins with comes after that.
    for place, messages in sorted(states, key=lambda state: len(state[1]), reverse=True):
        if not any(longer[: len(messages)] == messages for _, longer in last):
            last.append((place, messages))
    name, agent = thread[0], thread[1].split("|")[-1].partition(":")[0]
    for number, (place, messages) in enumerate(last, 1):
        whole = numbered(f"{name}/{agent}" if agent else name, number)
        yield place, Conversation(whole, messages, meta={"parent": name} if agent else {})


def _loaded(kind: Any, stored: Any, place: Place) -> Any:
    data = stored.encode() if isinstance(stored, str) else stored
    if kind not in ("msgpack", "json") or not isinstance(data, bytes):
        raise RecordingError(place, f"stored as {kind!r}", "only msgpack and json are read; is it encrypted?")
    if kind == "json":
        return decode(data, Any, place)
    try:
        return msgspec.msgpack.decode(data, ext_hook=_extension)
    except (msgspec.MsgspecError, RecursionError, ValueError, TypeError) as error:
        raise RecordingError(place, f"not msgpack: {error}", "the row was cut off or changed") from None


def _extension(code: int, data: memoryview) -> Any:
    """Return the values of an object of Python: the fields of a model, the first argument of anything else."""
    held = None if code == _ARRAY else msgspec.msgpack.decode(data, ext_hook=_extension)
    if code == _SNAPSHOT:
        return held
    return held[2] if isinstance(held, list) and len(held) > 2 else None


_SCREEN = ("source-url", "source-document", "source", "data-")


class AiSdk(StoredChats):
    """Messages of Vercel's AI SDK: `UIMessage` of the user interface (versions 4 to 6), and `ModelMessage`.

        {id, role, parts: [{type: "text" | "reasoning", text} · {type: "tool-<name>" | "dynamic-tool", toolCallId,
          toolName, state, input, output, errorText} · {type: "tool-invocation", toolInvocation: {toolCallId, toolName,
          args, result}} · {type: "file", mediaType} · {type: "step-start"}]}
        {role, content: text | [{type: "text" | "reasoning" | "tool-call" | "tool-result" …, toolCallId, toolName,
          input, output: {type, value}}]}

    Source: github.com/vercel/ai, `packages/ai/src/ui`; tested on written examples alone. No usage and no times.

    - An assistant's `UIMessage` holds all steps of an answer: each is a call, with its tools' results behind it.
    - A tool's error is its result. Sources and `data-` parts are for the screen.
    """

    about = "Vercel AI SDK messages (UIMessage, ModelMessage)"
    shapes = (
        *around(".id", ".role", ".parts", ".parts[].type"),
        *around(".id", ".role", ".toolInvocations", ".toolInvocations[].toolCallId"),
        *around(".role", ".content", ".content[].type", ".content[].toolCallId"),
    )

    def logged(self, record: Any, place: Place, problems: Problems) -> LoggedCall:
        name, messages = self.listed(record)
        parts = ((at, part) for at, message in enumerate(messages) for part in _model_messages(message))
        stored = (Stored(f"{name}[{at}]", part, Call()) for at, part in parts)
        return LoggedCall(place, stored_messages(stored, place, problems, "ai_sdk"))


def _model_messages(message: Any) -> Iterator[Any]:
    """Yield a message as messages of a model: an answer for each step, and the results of its tools."""
    if not isinstance(message, dict):
        yield message
        return
    parts, said, invoked = message.get("parts"), message.get("content"), message.get("toolInvocations")
    if not isinstance(parts, list):
        calls = invoked if isinstance(invoked, list) else []
        parts = [{"type": "tool-invocation", "toolInvocation": call} for call in calls]
        parts += said if isinstance(said, list) else [{"type": "text", "text": said or ""}]
    content: list[Any] = []
    results: list[Any] = []
    for part in [*parts, {"type": "step-start"}]:
        kind = text_of(part.get("type")) if isinstance(part, dict) else ""
        call = _part_call(part, kind)
        # What follows a tool's result was said in the next step, also where no `step-start` says so.
        if kind == "step-start" or (results and call is None and not kind.startswith(_SCREEN)):
            yield from [{"role": message.get("role"), "content": content}] if content else ()
            yield from ({"role": "tool", "content": [result]} for result in results)
            content, results = [], []
        if call is not None:
            content.append({**call, "type": "tool-call"})
            name = next((name for name in ("output", "result", "errorText") if call.get(name) is not None), None)
            if name is not None:
                results.append({**call, "type": "tool-result", "output": _value(call[name]), "input": None})
        elif kind == "tool-result":
            content.append({**part, "output": _value(part.get("output", part.get("result")))})
        elif kind != "step-start" and not kind.startswith(_SCREEN):
            content.append(part)


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


_LISTS = ("data", "items")
_CALL = (".type", ".call_id", ".name", ".arguments")
_MESSAGE = (".type", ".role", ".content", ".content[].type", ".status")
_QUERY = "SELECT session_id, message_data FROM agent_messages ORDER BY session_id, id"


class OpenAIItems(StoredChats):
    """Items of OpenAI's Responses API that were stored: lists of them, and sessions of the Agents SDK.

        [item, …] · {object: "list", data: [item, …]}                     input items, items of a conversation
        agent_messages(id, session_id, message_data: item)                SQLite, `SQLiteSession` of the Agents SDK

    Source: platform.openai.com/docs/api-reference/conversations and github.com/openai/openai-agents-python,
    `src/agents/memory`; tested on what openai-agents 0.24 writes. No usage, no models, no times and no tool schemas.

    - The items between two inputs are one answer. What OpenAI ran itself (a web search) has no result: it is counted in
      the notes, and so are compactions.
    - The API lists items from the newest to the oldest by default: such a list is turned around.
    """

    checked = "openai-agents 0.24"
    about = "OpenAI Responses items (lists; Agents SDK sessions, SQLite or JSON)"
    shapes = (
        *(shape for name in _LISTS for keys in (_CALL, _MESSAGE) for shape in around(*keys, list_name=name)),
        frozenset(_CALL),
    )

    lists = _LISTS

    @staticmethod
    def recognises(_path: Path, head: bytes) -> bool:
        """Return whether a file is a database of sessions."""
        return has_tables(head, "agent_sessions", "agent_messages")

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            if self.recognises(path, record_head(path)):
                yield from _sessions(path, problems)
            else:
                yield from super().read([path], problems)

    def logged(self, record: Any, place: Place, problems: Problems) -> LoggedCall:
        name, items = self.listed(record)
        return LoggedCall(place, _messages([*_oldest_first(items)], name, place, problems))


def _sessions(path: Path, problems: Problems) -> Recordings:
    for session, stored in groupby(rows(path, _QUERY, problems), key=lambda row: row[1][0]):
        items, start = list[Any](), Place(str(path))
        for place, (_, item) in stored:
            start = start if items else place
            with problems.collect():
                items.append(decode(str(item).encode(), OBJECT, place.at("message_data")))
        with problems.collect():
            yield start, Conversation(str(session), _messages(items, "", start, problems))


def _messages(items: Sequence[Any], name: str, place: Place, problems: Problems) -> tuple[Message, ...]:
    read = list[Stored]()
    for at, item in enumerate(items):
        where, kind = f"{name}[{at}]", item.get("type") if isinstance(item, dict) else None
        if kind in (*HOSTED, *COMPACTIONS):
            problems.unknown(f"openai_items: item of type {kind!r}", place.below(where))
        else:
            read.append(Stored(where, item))
    return stored_messages(read, place, problems, "openai_items")


def _oldest_first(items: Sequence[Any]) -> Sequence[Any]:
    """Return the items turned around if an output stands before its call, or an answer before the first input."""
    outputs, held = set[str](), list(map(as_object, items))
    for item in held:
        name = text_of(item.get("call_id"))
        if name and item.get("type") in OUTPUTS:
            outputs.add(name)
        elif name and name in outputs:
            return items[::-1]
    is_answered = len(held) > 1 and (held[0].get("role"), held[-1].get("role")) == ("assistant", "user")
    return items[::-1] if is_answered and not outputs else items


class ProviderRequests(StoredChats):
    """Requests to model APIs as plain files: OpenAI's Responses, Gemini's contents, Bedrock's Converse, Ollama's chats.

        {input: text | [{role, content} · {type: "function_call"} …], instructions, model, tools}
        {contents: [{role, parts: [{text} · {functionCall} · {functionResponse}]}], systemInstruction, tools}
        {messages: [{role, content: [{text} · {toolUse} · {toolResult}]}], system: [{text}], toolConfig, modelId}
        {model, messages: [{role, content, images, tool_calls, tool_name}], tools, stream, options}

    Sources: platform.openai.com/docs/api-reference/responses, ai.google.dev/api/caching#Content,
    docs.aws.amazon.com/bedrock (API_runtime_Converse), github.com/ollama/ollama `docs/api.md`; tested on written
    examples alone. A file is one request, an array of them, or one on each line; those that extend each other are one
    conversation. Gemini's and Bedrock's lists of messages are read alone too. A request's model is that of the answers
    in it. No usage and no times: requests with their responses are read by `api_calls`.
    """

    about = "requests to OpenAI Responses, Gemini, Bedrock Converse and Ollama (plain JSON)"
    shapes = (
        *around(".role", ".parts", ".parts[].text", list_name="contents"),
        *(
            shape
            for part in ("toolUse.toolUseId", "toolResult.toolUseId")
            for shape in around(".role", ".content", f".content[].{part}")
        ),
        *anywhere(
            (".model", ".input", ".instructions"),
            (".model", ".input", ".previous_response_id"),
            (".model", ".input", ".input[].role", ".tools"),
            (".model", ".input", ".input[].call_id"),
            (".messages", ".messages[].role", ".messages[].content[].text", ".modelId"),
            (".messages", ".messages[].role", ".messages[].content[].text", ".inferenceConfig"),
            (".messages", ".messages[].role", ".model", ".options", ".stream"),
            (".messages", ".messages[].role", ".messages[].images"),
            (".messages", ".messages[].role", ".messages[].tool_name"),
        ),
    )

    lists = ("contents", "messages", "input")

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for is_named, run in groupby(self.stored(path, problems), key=lambda chat: bool(chat[0])):
                if is_named:
                    for name, logged in run:
                        yield logged.place, Conversation(name, logged.messages, tools=logged.tools)
                else:  # those without a name that extend each other are one
                    yield from conversations((logged for _, logged in run), path.stem)

    def logged(self, record: Any, place: Place, problems: Problems) -> LoggedCall:
        request = {"contents": record} if isinstance(record, list) else record
        tools = as_object(request.get("toolConfig")).get("tools")
        logged = exchange(request, None, place, problems, "provider_requests", tools=tools, names=("", ""))
        model = request.get("model") or request.get("modelId")
        return replace(logged, messages=asked_of(model, logged.messages), compactions=())
