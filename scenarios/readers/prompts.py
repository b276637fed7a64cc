"""Logged prompts and answers as our messages, whatever framework logged them.

A tracer logs what its framework had in its hands: a list of messages, a whole request, a text with JSON, a response.

    messages   OpenAI's chat form · Anthropic's blocks · `parts` (OpenTelemetry, Gemini) · items of OpenAI's Responses ·
               LangChain's (`type: human`, or as `dumpd` writes them) · Vercel's and Bedrock's content parts
    requests   {messages | input | contents | prompt, system | instructions, tools …}, and lists of one such list
    responses  {choices} · {output} · {candidates} · {generations} · {content} · a message, or a list of one

Text that is no message is a message's text. Parts of another type are counted as unknown. A role that nobody knows is
the name of a tool. Tools that the provider ran stand within an answer, which stays one message: their results follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

import msgspec

from ..chat import ROLES
from ..errors import Place, RecordingError
from ..media import document_text, media_of, sized
from ..model import Call, Compaction, Mark, Media, Message, Role, Tool, ToolCall
from ..source import Problems, as_text
from . import as_object, decoded
from .messages import COMPACTIONS, ENCRYPTED, IS_ENCRYPTED, OUTPUTS, TOOL_CALLS, joined, reasoning, tool, transcript
from .requests import LoggedCall, mark

_ROLES = {
    **ROLES,
    **dict.fromkeys(("human", "HumanMessage", "HumanMessageChunk"), ROLES["user"]),
    **dict.fromkeys(("ai", "AIMessage", "AIMessageChunk", "model"), ROLES["assistant"]),
    **dict.fromkeys(("ToolMessage", "FunctionMessage"), ROLES["tool"]),
    "SystemMessage": ROLES["system"],
}
_SYSTEM = ("system", "instructions", "system_instruction", "systemInstruction", "system_prompt")
_PROMPT = ("messages", "contents", "input", "prompt")
_TOOLS = ("tools", "functions", "tool_definitions", "function_tools", "output_tools")
_DECLARATIONS = ("function_declarations", "functionDeclarations")
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema", "parametersJsonSchema", "schema")
# Objects around a message or part, by the key that holds it. The key tells the type where the inner object has none.
_AROUND = {
    **dict.fromkeys(("message", "message_content"), ""),
    **dict.fromkeys(("tool_call", "functionCall", "function_call"), "tool_call"),
    **dict.fromkeys(("toolResult", "functionResponse", "function_response"), "tool_result"),
    "toolUse": "tool_use",
    "reasoningContent": "reasoning",
}
_HOSTED = "_tool_result"  # end of the types of results of tools that the provider ran: mcp_tool_result …
_CALLS = frozenset(
    ("tool_call", "tool_use", "server_tool_use", "mcp_tool_use", "tool-call", "toolCall", "function", *TOOL_CALLS)
)
_RESULTS = frozenset(("tool_call_response", "tool_result", "tool-result", "toolResult", *OUTPUTS))
_THINKING = ("thinking", "reasoning", "redacted_thinking")
# Items of OpenAI's Responses API: those between two inputs are one answer.
_ITEMS = frozenset(("message", "reasoning", *_CALLS, *_RESULTS))
# Parts that may have no text: it is empty, or encrypted.
_EMPTY = ("text", "input_text", "output_text", "refusal", *_THINKING)
_IDS = ("call_id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "tool_id", "id")
_ARGUMENTS = ("arguments", "args", "input", "action")
_OUTPUTS = ("response", "result", "output", "content")
# What stands beside the text of an output, parts of one that are shown as their JSON, and what is not shown of these.
_ABOUT = ("type", "isError", "is_error", "success", "status", "providerMetadata", "providerOptions")
_SHOWN, _ENCRYPTED = ("web_search_result", "tool_reference"), ("encrypted_content", "encrypted_index")
_BREAKPOINT_TTL = "30m"  # lifetime of OpenAI's breakpoints unless a request says another


def exchange(
    prompt: Any,
    answer: Any,
    place: Place,
    problems: Problems,
    format_name: str,
    system: Any = None,
    tools: Any = None,
    names: tuple[str, str] = ("prompt", "answer"),
    answered: Place | None = None,
) -> LoggedCall:
    """Return a logged prompt and answer as messages. Either may be None, or JSON text.

    Tools stand in the prompt, or are given. A response that repeats the instructions and the tools of its request gives
    them to a prompt without any. `place` is that of the span, `answered` that of an answer elsewhere; errors name the
    fields below it by `names`. Raises RecordingError for what is no message.
    """
    prompt, answer = decoded(prompt), decoded(answer)
    repeated = answer if isinstance(answer, dict) else {}
    logged = _Messages(place, problems, format_name)
    if not system and not _begins_with_system(prompt):
        system = repeated.get("instructions")
    if system:
        logged.read(system, "system", "system")
    logged.read(prompt, names[0], "user")
    for offered in (tools, repeated.get("tools")):
        if not logged.tools:
            logged.read_tools(offered)
    messages = logged.take()
    # Behind the prompt: ids go on from there, and its open calls are known.
    reply = _Messages(answered or place, problems, format_name, messages)
    reply.read(*_answered(answer, names[1]), "assistant")
    others = reply.take()
    said = next((message for message in others if message.role == "assistant"), None)
    results = () if said is None else tuple(message for message in others if message.role == "tool")
    if said is None and others:
        problems.unknown(f"{format_name}: answer of role {others[0].role!r}", (answered or place).below(names[1]))
    marks = [*logged.tool_mark, *logged.marks]
    if messages and all(mark.after != messages[-1].id for mark in marks):
        marks += mark(messages[-1].id, as_object(prompt).get("cache_control"))
    compactions, stop = tuple(logged.compactions), _stop(answer)
    return LoggedCall(place, tuple(messages), said, tuple(logged.tools), compactions, results, stop, tuple(marks))


class Stored(NamedTuple):
    """A stored message: its field, itself, the model call that its answers get, and when the last was complete."""

    at: str
    logged: Any
    call: Call | None = None
    time: float | None = None


def stored_messages(
    stored: Iterable[Stored], place: Place, problems: Problems, format_name: str
) -> tuple[Message, ...]:
    """Return the messages of a conversation that was stored at `place`."""
    history = _Messages(place, problems, format_name)
    messages = history.take()
    for at, logged, call, time in stored:
        before = len(messages)
        history.read(logged, at, "user")
        if call is not None or time is not None:
            history.take()
            for number, message in enumerate(messages[before:], before):
                own = time if number == len(messages) - 1 and message.role != "tool" else None
                called = call if message.role == "assistant" else None
                messages[number] = msgspec.structs.replace(message, call=called, time=own)
    return tuple(history.take())


def recorded_messages(
    logged: dict[str, Any],
    place: Place,
    problems: Problems,
    format_name: str,
    time: float | None = None,
    call: Call | None = None,
) -> list[Message]:
    """Return the messages that one at `place` is, without ids: each result of a tool in it is a message of its own.

    They have the time, and answers the call.
    """
    above, _, name = place.field.rpartition(".")
    read = _Messages(place.at(above), problems, format_name)
    read.read(logged, name, "user")
    calls = {"assistant": call}
    return [msgspec.structs.replace(each, id="", time=time, call=calls.get(each.role)) for each in read.take()]


def _begins_with_system(prompt: Any) -> bool:
    if isinstance(prompt, dict):
        return any(prompt.get(key) for key in _SYSTEM) or _begins_with_system(prompt.get("messages"))
    first = prompt[0] if isinstance(prompt, list) and prompt else None
    return isinstance(first, dict) and first.get("role") in ("system", "developer")


def _answered(answer: Any, at: str) -> tuple[Any, str]:
    """Return the message, items or text within a response, and the field of it."""
    if isinstance(answer, list) and answer and isinstance(answer[0], dict) and _kind(answer[0]) not in _ITEMS:
        # Other choices are no answer.
        return answer[:1] if "role" in answer[0] or "message" in answer[0] else answer, at
    if not isinstance(answer, dict) or "role" in answer:
        return answer, at
    for key in ("choices", "candidates", "generations"):
        if isinstance(answer.get(key), list):
            first = answer[key][0] if answer[key] else None
            while isinstance(first, list):
                first = first[0] if first else None
            return _answered(first, f"{at}.{key}[0]".removeprefix(".")) if isinstance(first, dict) else (first, at)
    for key in ("message", "output", "content", "messages", "response", "text"):
        if (inner := answer.get(key)) is not None:
            at = f"{at}.{key}".removeprefix(".")
            if key == "messages" and isinstance(inner, list):
                return inner[-1:], at
            return _answered(inner, at) if key == "message" else (inner, at)
    return answer or None, at


def _stop(answer: Any) -> str:
    """Return the first stop reason in a response, down to its first choice."""
    while isinstance(answer, list):
        answer = answer[0] if answer else None
    if not isinstance(answer, dict):
        return ""
    for key in ("finish_reason", "stop_reason", "finishReason", "stopReason"):
        if isinstance(answer.get(key), str):
            return str(answer[key])
    return next((_stop(answer[key]) for key in ("choices", "candidates", "generations") if answer.get(key)), "")


class _Turn(msgspec.Struct):
    """A message that is being read."""

    role: Role
    name: str = ""
    answers: str | None = None
    is_item: bool = False
    field: str = ""
    texts: list[str] = []
    thinking: list[str] = []
    hides: bool = False  # whether reasoning stands in it without a text
    calls: list[ToolCall] = []
    media: list[Media] = []
    control: Any = None  # the last `cache_control` in it
    results: list[_Turn] = []  # results that follow it: of tools that the provider ran within it

    @property
    def is_empty(self) -> bool:
        return not (self.texts or self.thinking or self.calls or self.media)


class _Messages:
    """Messages that are read one after the other. `before` stand in front of them and keep their ids."""

    def __init__(self, place: Place, problems: Problems, format_name: str, before: Iterable[Message] = ()) -> None:
        self.tools: list[Tool] = []
        self.marks: list[Mark] = []
        self.compactions: list[Compaction] = []
        self.tool_mark: tuple[Mark, ...] = ()
        self._place, self._problems, self._format = place, problems, format_name
        self._messages: list[Message] = []
        before = list(before)
        self._first = len(before)
        self._open_calls = [call.id for message in before for call in message.calls]
        self._turn: _Turn | None = None
        self._ttl = _BREAKPOINT_TTL

    def take(self) -> list[Message]:
        """Return all messages that were read."""
        self._close()
        return self._messages

    def read(self, logged: Any, at: str, role: Role) -> None:
        """Read a text, a message, a list of messages or a request. `role` stands where none is recorded."""
        if isinstance(logged, list):
            if logged and all(isinstance(part, list) for part in logged):  # LangChain's batch of one prompt
                logged = logged[0]
            if any(_is_message(part) for part in logged):
                self._close()
                for number, part in enumerate(logged):
                    if not isinstance(part, (dict, str)):
                        self._wrong(f"{at}[{number}]", f"expected object, got {type(part).__name__}")
                    self._message(part, f"{at}[{number}]", role)
            else:
                self._message({"content": logged}, at, role)
        elif isinstance(logged, dict) and "role" not in logged:
            self._request(logged, at, role)
        elif logged is not None:
            self._message(logged, at, role)

    def read_tools(self, logged: Any) -> None:
        """Read tool schemas, in any of the forms that providers take."""
        logged = decoded(logged)
        for schema in logged if isinstance(logged, list) else [] if logged is None else [logged]:
            declared = decoded(schema)
            for key in ("", "tool", "json_schema", "toolSpec", "function", "custom"):
                if isinstance(declared, dict) and declared.get(key) is not None:
                    declared = decoded(declared[key])
                self.tool_mark = mark(None, self._control(as_object(declared))) or self.tool_mark
            if not isinstance(declared, dict):
                self._unknown("tool without a schema", "tools")
            elif several := next((declared[key] for key in _DECLARATIONS if declared.get(key)), None):
                self.read_tools(several)
            elif "cachePoint" in declared:
                continue
            elif isinstance(declared.get("name"), str):
                parameters: Any = next((decoded(declared[key]) for key in _SCHEMAS if declared.get(key)), {})
                if isinstance(parameters, dict) and isinstance(parameters.get("json"), dict):
                    parameters = parameters["json"]
                self.tools.append(tool({**declared, "parameters": parameters}))
            else:  # a tool that the provider runs: it has a type alone
                self._unknown(f"tool of type {_kind(declared)!r}", "tools")

    def _request(self, request: dict[str, Any], at: str, role: Role) -> None:
        key = next((key for key in _PROMPT if request.get(key) is not None), None)
        if key is None or _is_message(request):
            self._message(request, at, role)
            return
        self._ttl = as_object(request.get("prompt_cache_options")).get("ttl") or self._ttl
        config = request.get("config")
        for source in (request, config if isinstance(config, dict) else {}):
            for name in _SYSTEM:
                if told := decoded(source.get(name)):
                    if isinstance(told, dict):  # Gemini's SDKs give it the role of the user
                        told = {key: value for key, value in told.items() if key != "role"}
                    self.read(told, f"{at}.{name}".removeprefix("."), "system")
            for name in _TOOLS:
                self.read_tools(source.get(name))
        self.read(decoded(request[key]), f"{at}.{key}".removeprefix("."), role)

    def _message(self, logged: Any, at: str, role: Role) -> None:
        if not isinstance(logged, dict):
            logged = {"content": logged}
        logged, role = self._unwrapped(logged, at, role)
        kind = _kind(logged)
        is_item = kind in _ITEMS and (kind == "message" or "role" not in logged)
        if is_item and kind in _RESULTS:
            self._result(logged, at)
            return
        if kind in COMPACTIONS and "role" not in logged:
            self._compact(logged)
            return
        if is_item and (kind in _CALLS or kind in _THINKING):
            role = "assistant"
        turn = self._turn
        if not (is_item and turn is not None and turn.is_item and turn.role == role == "assistant"):
            self._close()
            speaker = "" if is_item and kind != "message" else as_text(logged.get("name") or "")  # a call's is the tool
            turn = self._turn = _Turn(role, speaker, is_item=is_item, field=at)
        results = logged.get("tool_results")
        if isinstance(results, list) and results:  # Datadog's
            turn.role = role = "user" if role == "tool" else role
        if role == "tool":
            turn.answers = self._answered_call(logged)
        turn.control = logged.get("cache_control")
        more = as_object(logged.get("additional_kwargs"))  # LangChain's
        thoughts = *map(logged.get, ("reasoning_content", "thinking", "reasoning")), more.get("reasoning_content")
        told, hides = reasoning(thoughts, logged.get("reasoning_details"))
        turn.thinking += [told] if told else []
        turn.hides = turn.hides or hides
        if is_item and kind != "message":
            self._part(logged, at)
            return
        self._content(logged, at, role)
        if role == "assistant" and not any(turn.texts):
            heard = transcript(logged.get("audio") or more.get("audio"))
            turn.texts += [
                text for text in (logged.get("refusal"), more.get("refusal"), heard) if isinstance(text, str)
            ]
        if isinstance(logged.get("images"), list) and self._turn is not None:  # Ollama's, beside the text
            self._turn.media += (sized("image", {"data": data}) for data in logged["images"])
        calls = logged.get("tool_calls") or more.get("tool_calls")
        calls = decoded(calls) or ([logged["function_call"]] if isinstance(logged.get("function_call"), dict) else [])
        known = {call.id for call in turn.calls}  # LangChain repeats the calls that Anthropic's blocks have
        for number, call in enumerate(calls if isinstance(calls, list) else [calls]):
            converted = self._call(call, f"{at}.tool_calls[{number}]", len(turn.calls))
            if converted.id not in known:
                turn.calls.append(converted)
        for number, result in enumerate(results if isinstance(results, list) else ()):
            self._part({**result, "type": "tool_result"} if isinstance(result, dict) else result, f"{at}[{number}]")

    def _unwrapped(self, logged: dict[str, Any], at: str, role: Role) -> tuple[dict[str, Any], Role]:
        """Return the message within objects that frameworks put around it, and its role."""
        if logged.get("lc") is not None and isinstance(logged.get("kwargs"), dict):  # LangChain's dumpd
            kinds = logged.get("id")
            kind = _kind({"type": kinds[-1]}) if isinstance(kinds, list) and kinds else ""
            logged = {**logged["kwargs"], **({"type": kind} if kind in _ROLES else {})}
        elif isinstance(logged.get("data"), dict) and _kind(logged) in _ROLES:
            logged = {**logged["data"], "type": logged["type"]}
        elif isinstance(logged.get("message"), dict):
            logged = logged["message"]
            if "lc" in logged:
                return self._unwrapped(logged, at, role)
        named = logged.get("role")
        if named is None and _kind(logged) in _ROLES and _kind(logged) not in _ITEMS:
            named = _kind(logged)
        if named is None:
            return logged, role
        if not isinstance(named, str) or not named:
            known = ", ".join(ROLES)
            self._wrong(f"{at}.role", f"unknown role {as_text(named)[:60]!r}", f"use {known}")
        if named not in _ROLES:
            self._unknown(f"role {named[:60]!r}, read as a tool's", f"{at}.role")
            return {"name": named, **logged}, "tool"
        return logged, _ROLES[named]

    def _content(self, logged: dict[str, Any], at: str, role: Role) -> None:
        for key in ("content", "contents", "parts", "text"):
            if (content := logged.get(key)) is not None:
                break
        else:
            if not {"role", "type", "tool_calls", "function_call"} & logged.keys() and logged:
                self._said(as_text(logged))  # an object that is no message is shown to the model as its JSON
            return
        inner = f"{at}.{key}".removeprefix(".")
        if role == "tool" and isinstance(content, dict) and content.get("type") == "function":
            self.read_tools(content)  # Langfuse logs LangChain's tools as messages
            self._turn = None
            return
        parts = content if role == "tool" and isinstance(content, list) else ()
        holds_result = any(
            _kind(part) in _RESULTS or any(_AROUND.get(key) == "tool_result" for key in part)
            for part in parts
            if isinstance(part, dict)
        )
        if role == "tool" and not holds_result:
            assert self._turn is not None
            for part in map(as_object, content if isinstance(content, list) else ()):
                self._turn.control = self._control(part, self._turn.control)
            text, media = self._output(content, inner)
            self._said(text, media)
            return
        if role == "tool":
            self._turn = _Turn("user")  # each result in it is a message of its own
        for number, part in enumerate(content if isinstance(content, list) else [content]):
            self._part(part, f"{inner}[{number}]" if isinstance(content, list) else inner)

    def _said(self, text: str, media: Iterable[Media] = ()) -> None:
        if self._turn is not None:
            self._turn.texts.append(text)
            self._turn.media += media

    def _part(self, part: Any, at: str) -> None:
        """Read one part of a message's content into the message, or as the result of a tool behind it."""
        turn = self._turn
        assert turn is not None
        if not isinstance(part, dict):
            turn.texts.append("" if part is None else as_text(part))
            return
        if not part.keys().isdisjoint(_AROUND):
            key = next((key for key in _AROUND if isinstance(part.get(key), dict)), "")
            part = {"type": _AROUND[key], **part[key]} if _AROUND.get(key) else part.get(key, part)
        kind = "thinking" if part.get("thought") is True else _kind(part)  # Gemini's
        if kind not in _RESULTS:
            turn.control = self._control(part, turn.control)
            if "cachePoint" in part:
                return
        if kind == "text" and isinstance(part.get("text"), str):
            turn.texts.append(part["text"])
            return
        text = next(
            (part[key] for key in ("text", "content", "refusal", "transcript") if isinstance(part.get(key), str)), None
        )
        self._check_text(part, at)
        if kind in _RESULTS or kind.endswith(_HOSTED):
            self._result(part, at)
        elif kind in COMPACTIONS:  # Anthropic's
            if self._messages and isinstance(content := part.get("content"), (str, list)):
                self.compactions.append(Compaction(self._messages[-1].id, self._output(content, f"{at}.content")[0]))
        elif kind in _CALLS:
            turn.calls.append(self._call(part, at, len(turn.calls)))
        elif kind in _THINKING:
            # A text, or lists of summaries and texts.
            lists, said = (part.get("summary"), part.get("content")), as_object(part.get("reasoningText")) or part
            shown = [said.get(key) for key in ("thinking", "reasoning", "text", "content")]
            shown += [as_object(line).get("text") for lines in lists if isinstance(lines, list) for line in lines]
            thoughts = [thought for thought in shown if isinstance(thought, str)]
            turn.thinking += thoughts
            turn.hides = turn.hides or not (any(thoughts) or part.keys() == {"type"})
        elif (medium := media_of(part)) is not None:
            turn.media.append(medium)
        elif (plain := document_text(part)) is not None or (plain := text) is not None:
            turn.texts.append(plain)
        elif kind not in _EMPTY:
            self._unknown(f"part of type {kind!r}" if kind else "part without a type or a text", at)

    def _compact(self, item: dict[str, Any]) -> None:
        """Add a compaction by OpenAI: it stands for all before it, or is a message where nothing stands before it."""
        self._close()
        if any(message.role != "system" for message in self._messages):
            told = {name: item.get(name) for name in ("tokens_before", "time")}
            self.compactions.append(Compaction(self._messages[-1].id, ENCRYPTED, hidden=IS_ENCRYPTED, **told))
        else:
            self._message(ENCRYPTED, "", "user")

    def _call(self, call: Any, at: str, number: int) -> ToolCall:
        if isinstance(call, dict) and isinstance(call.get("tool_call"), dict):
            call = call["tool_call"]
        function = call.get("function", call.get("custom", call)) if isinstance(call, dict) else None
        name = function.get("name", function.get("toolName")) if isinstance(function, dict) else None
        if name is None and isinstance(call, dict) and (kind := _kind(call)) in TOOL_CALLS[2:]:
            name = kind.removesuffix("_call")  # of OpenAI's own: local_shell, tool_search
        if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(name, str):
            self._wrong(at, "a tool call without a name", "correct it, or leave this call out")
        arguments: Any = next((function[key] for key in _ARGUMENTS if function.get(key) is not None), {})
        own = f"m{self._first + len(self._messages)}c{number}"
        return ToolCall(_named(call) or own, name, as_text(arguments))

    def _result(self, result: dict[str, Any], at: str) -> None:
        """Add the result of a tool as a message within the one around it; one that the provider ran comes behind it."""
        outer = self._turn
        is_hosted = outer is not None and outer.role == "assistant" and _kind(result).endswith(_HOSTED)
        if not is_hosted:
            self._close()
        key = next((key for key in _OUTPUTS if key in result), "")
        text, media = self._output(result.get(key), f"{at}.{key}")
        name = as_text(result.get("name") or result.get("toolName") or "")
        control = result.get("cache_control")
        turn = _Turn("tool", name, self._answered_call(result), False, at, [text], media=media, control=control)
        if outer is not None and is_hosted:
            outer.results.append(turn)
            return
        self._add(turn)
        # Anthropic's user messages mix results with text: what comes behind the result is a message of its own.
        if outer is not None and not outer.is_item:
            self._turn = _Turn(outer.role, outer.name)

    def _answered_call(self, result: dict[str, Any]) -> str | None:
        """Return the id of the call that a result answers: the one it names, else the oldest without an answer."""
        # The last name is `id`, which in a message is its own, and in a part that is a result that of the call.
        named = _named(result, _IDS if _kind(result) in _RESULTS else _IDS[:-1])
        if not named and self._open_calls:
            return self._open_calls[0]
        return named or None

    def _output(self, output: Any, at: str) -> tuple[str, list[Media]]:
        """Return a tool's output as text and media."""
        if isinstance(output, dict) and isinstance(output.get("content"), list) and "stdout" not in output:  # of MCP
            output, at = output["content"], f"{at}.content"
        elif isinstance(output, dict) and _kind(output) == "web_fetch_result":
            output, at = [output.get("content")], f"{at}.content"
        elif isinstance(output, dict):  # one text, or what is shown as its JSON
            key = next((key for key in ("output", "value", "text") if output.get(key) is not None), "")
            is_alone = all(name in (key, *_ABOUT) or not value for name, value in output.items())
            output = output[key] if key and (is_alone or _kind(output) == "text") else output
        if not isinstance(output, list) or not all(isinstance(part, (str, dict)) for part in output):
            return "" if output is None else as_text(output), []
        texts, media = [], list[Media]()
        for number, part in enumerate(output):
            text = part if isinstance(part, str) else part.get("text", document_text(part))
            self._check_text(part, f"{at}[{number}]")
            if isinstance(part, dict) and (medium := media_of(part)) is not None:
                media.append(medium)
            elif isinstance(text, str):
                texts.append(text)
            elif isinstance(part, dict) and _kind(part) not in ("", "json", *_SHOWN):
                self._unknown(f"part of type {_kind(part)!r}", f"{at}[{number}]")
            else:
                texts.append(as_text({key: value for key, value in part.items() if key not in _ENCRYPTED}))
        return "\n".join(texts), media

    def _close(self) -> None:
        """Make the message that is being read, if there is one, the next of the messages, and its results follow it."""
        turn, self._turn = self._turn, None
        if turn is not None:
            for one in (turn, *turn.results):
                self._add(one)

    def _add(self, turn: _Turn) -> None:
        if turn.is_empty and turn.role not in ("assistant", "tool"):
            return
        if turn.is_empty and turn.role == "assistant" and self._messages and self._messages[-1].role == "tool":
            return  # what is left of a message whose parts were all results
        at = f"m{self._first + len(self._messages)}"
        role, answers = turn.role, (turn.answers or "") if turn.role == "tool" else None
        if turn.calls and role != "assistant":
            self._wrong(turn.field, f"a message of role {role!r} calls tools", "only the assistant does")
        self.marks += mark(at, turn.control)
        text, calls = joined(turn.texts), tuple(turn.calls)
        thinking, media = joined(turn.thinking), tuple(turn.media)
        self._messages.append(Message(at, role, text, calls, answers, turn.name, None, thinking, turn.hides, media))
        if answers in self._open_calls:
            self._open_calls.remove(answers)
        self._open_calls += [call.id for call in calls]

    def _control(self, part: dict[str, Any], otherwise: Any = None) -> Any:
        """Return what sets a breakpoint: of Anthropic and OpenAI on the part itself, of Bedrock a part of its own."""
        if part.get("prompt_cache_breakpoint"):
            return {"ttl": self._ttl}
        control = part.get("cache_control", part.get("cachePoint"))
        return otherwise if control is None else control

    def _check_text(self, part: Any, at: str) -> None:
        text = part.get("text") if isinstance(part, dict) and _kind(part) in _EMPTY else None
        if not isinstance(text, str | None):
            self._wrong(f"{at}.text", f"expected str, got {type(text).__name__}")

    def _wrong(self, at: str, what: str, remedy: str = "correct it, or leave this record out") -> NoReturn:
        raise RecordingError(self._place.below(at.removeprefix(".")), what, remedy)

    def _unknown(self, what: str, at: str) -> None:
        self._problems.unknown(f"{self._format}: {what}", self._place.below(at.removeprefix(".")))


def _is_message(logged: Any) -> bool:
    if not isinstance(logged, dict):
        return False
    kind = _kind(logged)
    return (
        bool({"role", "lc"} & logged.keys()) or kind in _ITEMS or kind in _ROLES or _is_message(logged.get("message"))
    )


def _kind(logged: dict[str, Any]) -> str:
    """Return the type that an object names; empty if it names none."""
    kind = logged.get("type")
    return kind if isinstance(kind, str) else ""


def _named(logged: dict[str, Any], keys: Iterable[str] = _IDS) -> str:
    """Return the id of a tool call, under any of its names."""
    for key in keys:
        if isinstance(name := logged.get(key), str) and name:
            return name
    return ""
