"""Requests to model APIs as they were sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec.structs import replace as changed

from ..errors import Place, RecordingError
from ..model import Call, Compaction, Mark, Message, Usage
from ..source import Problems, decode
from . import OBJECT, Fields, Reader, Recordings, as_object
from .exchanges import Exchange, exchanges, whole_response
from .messages import (
    COMPACTIONS,
    ENCRYPTED,
    HOSTED,
    IS_ENCRYPTED,
    OUTPUTS,
    Block,
    ChatMessage,
    ChatResponse,
    ChatTool,
    Content,
    Item,
    RecordedItem,
    assistant_message,
    blocks,
    chat_answer,
    chat_marks,
    chat_messages,
    chat_tools,
    in_order,
    is_answer,
    item_text,
    reply,
    role_of,
    texts,
    tool,
    user_messages,
    user_parts,
)
from .prompts import exchange as logged_call
from .requests import (
    LoggedRequest,
    Responses,
    asked_of,
    context_edits,
    effort,
    mark,
    other_than,
    response_usage,
    series,
    tier,
    usage,
)

_PROVIDERS = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "generativelanguage.googleapis.com": "gemini",
    "openrouter.ai": "openrouter",
}
_CLOUDS = {"bedrock": re.compile(r"bedrock-runtime"), "vertex": re.compile(r"(?:.*-)?aiplatform\.googleapis\.com$")}
_BREAKPOINT_TTL = "30m"
_CASSETTE = re.compile(rb"(?:\A|\n)interactions:\s*(?:#.*)?\n\s*- ")


class HttpRecordings(Reader):
    """HTTP recordings of model APIs: VCR cassettes (YAML or JSON) and HAR files, with whole prompts and reported usage.

    Read are OpenAI's chat form, which most hosts speak, OpenAI's Responses API, Anthropic's Messages (also as Vertex
    and Bedrock take them), Gemini's generateContent (also of Vertex) and Bedrock's Converse, streamed or not. Requests
    that extend each other are one conversation. Other requests are counted in the notes, and so are those that failed.
    Bedrock and Vertex follow the published schemas, and are tested on written cassettes: no recorded one was at hand.

    - Where the recorder has no times, those that the provider states are read: the start (`created`), the `date`.
    - `previous_response_id` stands for the messages of that response's request, its answer, and what comes new. The
      instructions are not carried over.
    - A `compaction` item stands for all messages before it. The history stays complete, and the compaction is beside
      it, with the prompt that was compacted in tokens. `/responses/compact` makes such items and is no call of its own.
    - `cachedContent` of Gemini stands for the contents that a request before it has stored.
    - A breakpoint within a message (`prompt_cache_breakpoint`, `cache_control`) counts as one after it.
    - What OpenAI ran itself (a web search) has no result: it is counted in the notes.
    """

    about = "HTTP recordings of model APIs: VCR cassettes (YAML, JSON) and HAR files"
    shapes = (
        frozenset({".interactions", ".interactions[].request.uri", ".interactions[].response"}),
        frozenset({".log", ".log.entries", ".log.entries[].request.url", ".log.entries[].response"}),
    )

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Return whether a file is a cassette in YAML."""
        yaml_file = path.suffix.lower() in (".yaml", ".yml")
        return yaml_file and b"uri:" in head and _CASSETTE.search(head) is not None

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            recording = HttpExchanges(problems)
            requests = (request for exchange in exchanges(path, problems) for request in recording.logged(exchange))
            for group in series(requests):
                place, conversation = group.conversation(path.stem)
                yield place, changed(conversation, messages=in_order(conversation.messages))


def _provider(url: str) -> str:
    host = urlsplit(url).hostname or ""
    return _PROVIDERS.get(host) or next((name for name, hosts in _CLOUDS.items() if hosts.match(host)), "")


def _model(url: str) -> str:
    """Return the model that the address of a request to Gemini, Vertex or Bedrock names."""
    # `…/models/NAME:generateContent`, `…/model/NAME/converse`, where NAME may end in `:0`
    return unquote(re.sub(r".*/models?/|/[\w-]+$|:\w+$", "", urlsplit(url).path))


class _ChatRequest(msgspec.Struct):
    messages: list[ChatMessage]
    model: str = ""
    tools: list[ChatTool] | None = None
    reasoning_effort: Any = None
    reasoning: Any = None
    thinking: Any = None
    prompt_cache_options: Any = None


class _ResponsesRequest(msgspec.Struct):
    input: str | list[Item] = ""
    model: str = ""
    instructions: str | None = None
    tools: list[dict[str, Any]] | None = None
    reasoning: Any = None
    previous_response_id: str | None = None
    prompt_cache_options: Any = None


class _ResponsesReply(msgspec.Struct):
    output: list[Item] = []
    id: str | None = None
    model: str = ""
    status: str = ""
    usage: Any = None
    service_tier: Any = None
    created_at: float | None = None
    completed_at: float | None = None


@dataclass(slots=True)
class _Thread:
    """Messages of the Responses API that later requests refer to, without instructions. Ids are given at the end."""

    messages: list[Message] = field(default_factory=list)
    cuts: list[tuple[int, int | None, float | None]] = field(default_factory=list)
    """Compactions: the number of messages before each, its prompt in tokens, and its time."""
    marked: list[int] = field(default_factory=list)
    """Indices of the messages with a breakpoint."""

    def copy(self) -> _Thread:
        return _Thread([*self.messages], [*self.cuts], [*self.marked])


class HttpExchanges:
    """Earlier responses, compactions and stored contents that the requests of one file refer to."""

    def __init__(self, problems: Problems) -> None:
        self.problems, self.responses = problems, Responses(problems)
        self._threads: dict[str, _Thread] = {}
        """By the id of a response, or of a compaction item."""
        self._stored: dict[str, dict[str, Any]] = {}

    def logged(self, exchange: Exchange) -> Iterator[LoggedRequest]:
        """Yield the request of an exchange as a logged one, if it is a call of a model."""
        with self.problems.collect():
            request: LoggedRequest | None = getattr(self, f"_{exchange.endpoint}")(exchange)
            yield from () if request is None else (request,)

    def _chat(self, exchange: Exchange) -> LoggedRequest | None:
        asked, answered = exchange.asked, exchange.answered
        request = decode(exchange.request, _ChatRequest, asked)
        response = decode(whole_response(exchange, "chat"), ChatResponse, answered)
        if not self.responses.new(response.id, answered.below("id")):
            return None
        messages = chat_messages(request.messages, asked.below("messages"), self.problems)
        call = Call(
            request.model,
            _provider(exchange.url),
            started=exchange.started or response.created,
            marks=tuple(chat_marks(request.messages, request.tools or (), _ttl(request.prompt_cache_options))),
            effort=effort(request.reasoning_effort, request.reasoning, request.thinking),
        )
        answer = chat_answer(response, f"m{len(messages)}", answered, self.problems, call, exchange.finished)
        return LoggedRequest(_file(asked), messages, answer, chat_tools(request.tools))

    def _messages(self, exchange: Exchange) -> LoggedRequest | None:
        request = decode(exchange.request, AnthropicRequest, exchange.asked)
        response = decode(whole_response(exchange, "messages"), AnthropicResponse, exchange.answered)
        if not self.responses.new(response.id, exchange.answered.below("id")):
            return None
        logged = anthropic_request(request, response, exchange.asked, exchange.answered, self.problems)
        if logged.answer is None or logged.answer.call is None:
            return logged
        call = changed(logged.answer.call, started=exchange.started)
        if (provider := _provider(exchange.url)) in _CLOUDS:
            # Bedrock's own names are those that its prices and cache rules go by.
            model = call.model if call.model and provider == "vertex" else _model(exchange.url)
            call = changed(call, provider=provider, model=model)
        return replace(logged, answer=changed(logged.answer, time=exchange.finished, call=call))

    def _invoke(self, exchange: Exchange) -> LoggedRequest | None:
        """Read a request whose body is that of the model's own API: Anthropic's, or Nova's, which is Converse."""
        body = decode(exchange.request, OBJECT, exchange.asked)
        if "anthropic_version" in body:
            return self._messages(exchange)
        if "messages" in body and not exchange.url.endswith("-stream"):
            return self._converse(exchange)
        self.problems.unknown("http: InvokeModel of a model that is neither Claude nor Nova", exchange.asked)
        return None

    def _converse(self, exchange: Exchange) -> LoggedRequest:
        asked, answered = exchange.asked, exchange.answered
        request = decode(exchange.request, OBJECT, asked)
        response = decode(whole_response(exchange, "converse"), OBJECT, answered)
        call = Call(
            _model(exchange.url),
            _provider(exchange.url),
            usage(response.get("usage"), answered.below("usage"), self.problems),
            effort=effort(as_object(request.get("additionalModelRequestFields")).get("thinking")),
        )
        logged = self._logged(exchange, request, response, call, as_object(request.get("toolConfig")).get("tools"))
        if logged.answer is None:
            raise RecordingError(answered.below("output"), "no answer", "leave the failed call out")
        return logged

    def _logged(
        self, exchange: Exchange, request: dict[str, Any], response: dict[str, Any], call: Call, tools: Any = None
    ) -> LoggedRequest:
        """Return a request and its response of any provider; the call gets its times, marks and stop reason."""
        asked, answered = exchange.asked, exchange.answered
        outer = asked.field.partition(".request.")[0] if ".request." in asked.field else ""
        names = asked.field.removeprefix(f"{outer}."), answered.field.removeprefix(f"{outer}.")
        said = logged_call(request, response, asked.at(outer), self.problems, "http", tools=tools, names=names)
        call = changed(call, started=exchange.started, marks=said.marks, stop=said.stop)
        answer = said.answer and changed(said.answer, time=exchange.finished, call=call)
        return LoggedRequest(_file(asked), said.messages, answer, said.tools)

    def _responses(self, exchange: Exchange) -> LoggedRequest | None:
        asked, answered = exchange.asked, exchange.answered
        request = decode(exchange.request, _ResponsesRequest, asked)
        response = decode(whole_response(exchange, "responses"), _ResponsesReply, answered)
        if not self.responses.new(response.id, answered.below("id")):
            return None
        thread = self._thread(request, asked)
        system = [Message("", "system", request.instructions)] if request.instructions else []
        offset = len(system)
        messages = tuple(changed(message, id=f"m{at}") for at, message in enumerate([*system, *thread.messages]))
        model, finished = response.model or request.model, response.completed_at or exchange.finished
        ttl = _ttl(request.prompt_cache_options)
        call = Call(
            model,
            _provider(exchange.url),
            usage(response.usage, answered.below("usage"), self.problems),
            exchange.started or response.created_at,
            tuple(Mark(f"m{offset + at}", ttl) for at in thread.marked),
            effort=effort(request.reasoning),
            stop=response.status,
            request_id=response.id or "",
            tier=tier({"service_tier": response.service_tier}),
            requested=other_than(model, request.model),
        )
        items = self._answers(response.output, answered.below("output"))
        answer, _ = reply(items, f"m{len(messages)}", self.problems, finished, call)
        compactions = (
            Compaction(f"m{offset + end - 1}", ENCRYPTED, tokens_before=tokens, time=time, hidden=IS_ENCRYPTED)
            for end, tokens, time in thread.cuts
        )
        self._remember(response, thread, answer, call.usage)
        tools = tuple(tool({"name": schema.get("type"), **schema}) for schema in request.tools or ())
        return LoggedRequest(_file(asked), messages, answer, tools, tuple(compactions))

    def _compact(self, exchange: Exchange) -> None:
        request = decode(exchange.request, _ResponsesRequest, exchange.asked)
        response = decode(whole_response(exchange, "responses"), _ResponsesReply, exchange.answered)
        used = usage(response.usage, exchange.answered.below("usage"), self.problems)
        self._remember(response, self._thread(request, exchange.asked), None, used)

    def _thread(self, request: _ResponsesRequest, place: Place) -> _Thread:
        """Return all messages that a request stands for."""
        thread = _Thread()
        if request.previous_response_id:
            known = self._threads.get(request.previous_response_id)
            if known is None:
                where = place.below("previous_response_id")
                self.problems.unknown("http: previous_response_id of a response that is not in the file", where)
            else:
                # A copy, as several requests may go on from one response, each in its own way.
                thread = known.copy()
        if isinstance(request.input, str):
            thread.messages.append(Message("", "user", request.input))
            return thread
        return self._with_items(thread, request.input, place.below("input"))

    def _with_items(self, thread: _Thread, items: Iterable[Item], place: Place) -> _Thread:
        """Return a thread with the items of a request behind it, or in the place of what they have compacted."""
        said: list[RecordedItem] = []

        def close() -> None:
            if said:
                thread.messages.append(reply(said, f"m{len(thread.messages)}", self.problems)[0])
                said.clear()

        for at, item in enumerate(items):
            where = place.at(f"{place.field}[{at}]")
            if is_answer(item):
                said.append(RecordedItem(item, where))
                continue
            close()
            # One made in this file stands for the messages that it was made of. Of another one nothing is known but
            # that it stands for what comes before it here.
            if item.type not in COMPACTIONS:
                self._add(thread, item, where)
            elif (known := self._threads.get(item.id or "")) is not None:
                thread = known.copy()
            elif thread.messages:
                thread.cuts.append((len(thread.messages), None, None))
            else:
                thread.messages.append(Message("", "user", ENCRYPTED))
        close()
        return thread

    def _add(self, thread: _Thread, item: Item, place: Place) -> None:
        """Add a message or the result of a tool call."""
        if item.type in OUTPUTS:
            called = {call.id for message in thread.messages for call in message.calls}
            text, media = item_text(item.output, place.below("output"), self.problems)
            if item.call_id in called:
                thread.messages.append(Message("", "tool", text, answers=item.call_id, media=media))
            else:
                what = f"tool result for {item.call_id!r}, which no item before it called"
                self.problems.add(RecordingError(place, what, "restore the item with the call"))
        elif item.type == "message":
            text, media = item_text(item.content, place.below("content"), self.problems)
            thread.messages.append(Message("", role_of(item.role, place), text, media=media))
            if isinstance(item.content, list) and any(block.prompt_cache_breakpoint for block in item.content):
                thread.marked.append(len(thread.messages) - 1)
        else:
            self.problems.unknown(f"http: item of type {item.type!r}", place)

    def _answers(self, items: Iterable[Item], place: Place) -> list[RecordedItem]:
        """Return the items of a response that its answer is made of."""
        answers = []
        for at, item in enumerate(items):
            where = place.at(f"{place.field}[{at}]")
            if item.type in HOSTED:
                self.problems.unknown(f"http: hosted tool call of type {item.type!r}", where)
            if is_answer(item):
                answers.append(RecordedItem(item, where))
            elif item.type not in COMPACTIONS:
                self.problems.unknown(f"http: item of type {item.type!r}", where)
        return answers

    def _remember(self, response: _ResponsesReply, thread: _Thread, answer: Message | None, used: Usage | None) -> None:
        """Keep the messages that later requests mean by the id of a response, or of a compaction in it."""
        after = thread.copy()
        after.messages += [] if answer is None else [changed(answer, call=None, time=None)]
        compacted = [item.id for item in response.output if item.type in COMPACTIONS and item.id]
        if compacted and after.messages:
            tokens, time = None if used is None else used.input, response.completed_at or response.created_at
            after.cuts.append((len(after.messages), tokens, time))
        self._threads |= dict.fromkeys(filter(None, (*compacted, response.id)), after)

    def _store(self, exchange: Exchange) -> None:
        name = Fields(decode(exchange.response, OBJECT, exchange.answered), exchange.answered).text("name")
        self._stored[name] = decode(exchange.request, OBJECT, exchange.asked)

    def _generate(self, exchange: Exchange) -> LoggedRequest | None:
        asked, answered = exchange.asked, exchange.answered
        request = Fields(decode(exchange.request, OBJECT, asked), asked)
        response = Fields(decode(whole_response(exchange, "generate"), OBJECT, answered), answered)
        name, requested, counts = response.text("responseId"), _model(exchange.url), response.at("usageMetadata")
        if not self.responses.new(name, answered.below("responseId")):
            return None
        model = response.text("modelVersion") or requested
        call = Call(
            model,
            _provider(exchange.url),
            usage(counts, answered.below("usageMetadata"), self.problems),
            effort=effort(request.at("generationConfig.thinkingConfig")),
            request_id=name,
            tier=tier(counts),
            requested=other_than(model, requested),
        )
        logged = self._logged(exchange, self._with_stored(request), response.record, call)
        if logged.answer is None:
            said = Message(f"m{len(logged.messages)}", "assistant", time=exchange.finished, call=call)
            return replace(logged, answer=said)
        return logged

    def _with_stored(self, request: Fields) -> dict[str, Any]:
        """Return a request of Gemini's with the contents in front that it refers to."""
        whole, stored = as_object(request.record), self._stored.get(name := request.text("cachedContent"))
        if stored is None:
            if name:
                where = request.place.below("cachedContent")
                self.problems.unknown("http: cachedContent that is not in the file", where)
            return whole
        before, after = stored.get("contents"), request.at("contents")
        contents = [*(before if isinstance(before, list) else ()), *(after if isinstance(after, list) else ())]
        kept = {name: stored.get(name) for name in ("systemInstruction", "tools")}
        return {**whole, **kept, "contents": contents}


def _ttl(options: Any) -> str:
    """Return how long a breakpoint of OpenAI's lives, from a request's `prompt_cache_options`."""
    return str(options.get("ttl") or _BREAKPOINT_TTL) if isinstance(options, dict) else _BREAKPOINT_TTL


def _file(place: Place) -> Place:
    """Return the place of the record: a conversation is more than one interaction."""
    return Place(place.file, place.line)


class _Turn(msgspec.Struct):
    role: str
    content: Content


class AnthropicRequest(msgspec.Struct):
    """A request."""

    messages: list[_Turn]
    model: Any = None
    system: Content | None = None
    tools: list[dict[str, Any]] = []
    thinking: Any = None
    output_config: Any = None
    cache_control: Any = None


class AnthropicResponse(msgspec.Struct):
    """The response to a request."""

    content: list[Block] | None = None
    id: str | None = None
    model: str = ""
    stop_reason: str | None = None
    usage: Any = None
    context_management: Any = None


def anthropic_request(
    request: AnthropicRequest, response: AnthropicResponse | None, place: Place, answered: Place, problems: Problems
) -> LoggedRequest:
    """Return a request and its response, which stand at `place` and `answered`."""
    messages: list[Message] = []
    compactions: list[Compaction] = []
    marks: list[Mark] = []
    names = (f"m{n}" for n in count())
    for schema in reversed(request.tools):
        if tool_mark := mark(None, schema.get("cache_control")):
            marks += tool_mark
            break
    if request.system:
        system = blocks(request.system)
        messages.append(Message(next(names), "system", "\n".join(block.text for block in system if block.text)))
        marks += _marks(messages[-1], system)
    for at, turn in enumerate(request.messages):
        said = place.below(f"messages[{at}].content")
        if turn.role == "assistant":
            parts = [blocks(turn.content)]
            if messages:
                compactions += _compactions(parts[0], messages[-1].id, said, problems)
            converted = [assistant_message(parts[0], next(names), said, problems)]
        elif turn.role == "user":
            parts = list(user_parts(turn.content))
            converted = list(user_messages(turn.content, names, said, problems))
        else:
            where = place.below(f"messages[{at}].role")
            raise RecordingError(where, f"unknown role {turn.role!r}", "use user, assistant")
        messages += converted
        for message, part in zip(converted, parts, strict=True):
            marks += _marks(message, part)
    if messages and all(set_mark.after != messages[-1].id for set_mark in marks):
        marks += mark(messages[-1].id, request.cache_control)
    answer = None
    if response is None:
        messages = list(asked_of(request.model, messages))
    elif response.content is not None:
        model = request.model if isinstance(request.model, str) else ""
        thinking = effort(request.thinking, request.output_config)
        call = Call(model, "anthropic", marks=tuple(marks), effort=thinking)
        answer = anthropic_answer(response, next(names), answered, problems, call)
    tools = tuple(tool(schema) for schema in request.tools)
    return LoggedRequest(Place(place.file, place.line), tuple(messages), answer, tools, tuple(compactions))


def anthropic_answer(response: AnthropicResponse, name: str, place: Place, problems: Problems, asked: Call) -> Message:
    """Return the answer of a response at `place`; its call is `asked` with all that the response reports."""
    used, iterations = response_usage(response.usage, place.below("usage"), problems)
    model = response.model or asked.model
    call = changed(
        asked,
        model=model,
        usage=used,
        stop=response.stop_reason or "",
        iterations=iterations,
        request_id=response.id or "",
        tier=tier(response.usage),
        edits=context_edits(response.context_management, place.below("context_management"), problems),
        requested=other_than(model, asked.model),
    )
    return assistant_message(response.content or [], name, place.below("content"), problems, call=call)


def _compactions(content: Sequence[Block], after: str, place: Place, problems: Problems) -> Iterator[Compaction]:
    """Yield the compactions by the API that a message begins with: what stands before it is not sent to the model."""
    for block in content:
        if block.type == "compaction" and not isinstance(block.content, dict):
            yield Compaction(after, texts(block.content, place, problems)[0])


def _marks(message: Message, content: Sequence[Block]) -> tuple[Mark, ...]:
    """Return the breakpoint after a message, at most one."""
    return tuple(block_mark for block in content for block_mark in mark(message.id, block.cache_control))[-1:]
