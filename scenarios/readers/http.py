"""Requests to model APIs as they were sent."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from ..errors import Place, RecordingError
from ..model import Call, Message, Usage
from ..source import Problems, convert
from . import LIST, OBJECT, Fields, Reader, Recordings, as_object, text_of
from .exchanges import Exchange, exchanges, whole_response
from .messages import COMPACTIONS, HOSTED, OUTPUTS, TOOL_CALLS, decoded_body, in_order
from .prompts import exchange
from .requests import (
    LoggedCall,
    Responses,
    asked_of,
    context_edits,
    effort,
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
_CASSETTE = re.compile(rb"(?:\A|\n)interactions:[^\S\n]*+(?:#.*+)?\n\s*+(?:#.*+\n\s*+)?- ")
# Of a request, and of a response, in the form of any API.
_EFFORT = (
    *("reasoning_effort", "reasoning", "thinking", "output_config"),
    *("generationConfig.thinkingConfig", "additionalModelRequestFields.thinking"),
)
_ANSWERS = {
    "chat": "choices",
    "messages": "content",
    "converse": "output",
    "responses": "output",
    "generate": "candidates",
}
_USAGE = "usage|usageMetadata"
_ITEMS = ("message", "reasoning", *TOOL_CALLS, *OUTPUTS, *COMPACTIONS)


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
                yield place, replace(conversation, messages=in_order(conversation.messages))


def logged_request(
    asked: Fields,
    answered: Fields,
    responses: Responses,
    format_name: str,
    call: Call,
    time: float | None = None,
    tools: Any = None,
    cost: float | None = None,
) -> LoggedCall:
    """Return a request and its response, if any, in the form of any API; the answer has `time` and `call` of both."""
    problems = responses.problems
    if answered.at("content") is not None:
        answered.record.setdefault("role", "assistant")
    for at, said in enumerate(asked.typed("messages", LIST) or ()):
        if "role" not in as_object(said):  # it would count as the user's
            Fields(said, asked.below(f"messages.{at}")).needed("role", str)
    (above, name), (answered_above, answer_name) = map(_split, (asked.place, answered.place))
    response = answered.record if any(answered.at(name) is not None for name in _ANSWERS.values()) else None
    if answered.at("choices") is not None:
        if not answered.needed("choices", LIST):
            raise RecordingError(answered.below("choices"), "no answer", "leave the failed call out")
        Fields(answered.at("choices.0.message"), answered.below("choices.0.message")).needed("role", str)
    names = name, answer_name
    said = exchange(asked.record, response, above, problems, format_name, None, tools, names, answered_above)
    answer = said.answer
    if answer is None and response is not None:
        answer = Message(f"m{len(said.messages)}", "assistant")
    if answer is not None:
        usage_at = answered.first(_USAGE)
        reported, requested = answered.at(usage_at), asked.text("model") or call.model
        used, iterations = response_usage(reported, answered.below(usage_at), problems, cost)
        managed, where = answered.at("context_management"), answered.below("context_management")
        model = answered.text("model|modelVersion") or requested
        call = replace(
            call,
            model=model,
            usage=used,
            marks=said.marks,
            effort=effort(*map(asked.at, _EFFORT)),
            stop=said.stop,
            iterations=iterations,
            request_id=answered.text("id|responseId"),
            tier=tier(answered.record, reported),
            requested=other_than(model, requested),
            edits=context_edits(managed, where, problems),
        )
        answer = replace(answer, time=time, call=call)
    messages = asked_of(asked.at("model"), said.messages) if answer is None else said.messages
    return dataclasses.replace(said, place=Place(above.file, above.line), messages=messages, answer=answer)


def _split(place: Place) -> tuple[Place, str]:
    """Return the place around a field, and the field's own name."""
    outer, _, name = place.field.rpartition(".")
    return place.at(outer), name


class HttpExchanges:
    """Earlier responses, compactions and stored contents that the requests of one file refer to."""

    def __init__(self, problems: Problems) -> None:
        self.problems, self.responses = problems, Responses(problems)
        self._threads: dict[str, list[dict[str, Any]]] = {}
        """Items of the Responses API, by the id of the response or compaction that stands for them."""
        self._stored: dict[str, dict[str, Any]] = {}
        self._hosted = set[str]()  # ids of tool calls that OpenAI ran itself, which later inputs repeat

    def logged(self, exchange: Exchange) -> Iterator[LoggedCall]:
        """Yield the request of an exchange as a logged one, if it is a call of a model."""
        with self.problems.collect():
            asked, form = Fields(decoded_body(exchange.request, exchange.asked), exchange.asked), exchange.endpoint
            if form == "invoke":  # the body is that of the model's own API: Anthropic's, or Nova's, which is Converse
                is_nova = "messages" in asked.record and not exchange.url.endswith("-stream")
                form = "messages" if "anthropic_version" in asked.record else "converse" if is_nova else ""
                if "/model/openai." in unquote(exchange.url):
                    form = "responses" if "input" in asked.record else "chat"
            if not form:
                self.problems.unknown("http: InvokeModel of a model that is neither Claude nor Nova", exchange.asked)
                return
            body = decoded_body(whole_response(exchange, form), exchange.answered)
            answered = Fields(body, exchange.answered)
            name = answered.typed("id|responseId", str)
            if form == "store":
                self._stored[answered.text("name")] = asked.record
            elif form == "compact":
                used = usage(answered.at("usage"), answered.below("usage"), self.problems)
                self._remember(answered, self._items(asked), used)
            elif self.responses.new(name, answered.place, body):
                yield self._request(exchange, form, asked, answered)

    def _request(self, exchange: Exchange, form: str, asked: Fields, answered: Fields) -> LoggedCall:
        host = urlsplit(exchange.url).hostname or ""
        provider = _PROVIDERS.get(host) or next((name for name, hosts in _CLOUDS.items() if hosts.match(host)), "")
        # `…/models/NAME:generateContent`, `…/model/NAME/converse`, where NAME may end in `:0`
        named = unquote(re.sub(r"(?m:^.*/models?/)|/[\w-]+$|:\w+$", "", urlsplit(exchange.url).path))
        if form == "messages" and provider not in _CLOUDS:
            provider = "anthropic"
        started = exchange.started or answered.typed("created|created_at", float)
        finished = answered.typed("completed_at", float) or exchange.finished
        call = Call(named if form in ("generate", "converse") else "", provider, started=started)
        tools, items = as_object(asked.at("toolConfig")).get("tools"), list[dict[str, Any]]()
        if form == "responses":
            items, answered.record["output"] = self._items(asked), self._known(answered, "output")
            # Tools that OpenAI runs itself have a type alone.
            tools = [{"name": kind.get("type"), **kind} for kind in asked.typed("tools", list[dict[str, Any]]) or ()]
            asked.record |= {"input": items, "tools": None}
        elif form == "generate":
            if (name := asked.text("cachedContent")) and name not in self._stored:
                self.problems.unknown("http: cachedContent that is not in the file", asked.below("cachedContent"))
            elif name:  # what it stands for comes before the contents of the request
                stored = self._stored[name]
                both = (stored.get("contents"), asked.at("contents"))
                asked.record["contents"] = [one for several in both if isinstance(several, list) for one in several]
                asked.record |= {key: stored.get(key) for key in ("systemInstruction", "tools")}
            answered.record.setdefault("candidates", [])
        else:
            asked.needed("messages", LIST)
        logged = logged_request(asked, answered, self.responses, "http", call, finished, tools)
        answer = logged.answer
        if answer is None or answer.call is None:
            if form != "messages":
                raise RecordingError(answered.below(_ANSWERS[form]), "no answer", "leave the failed call out")
            return logged
        call = answer.call
        if form == "messages" and (provider == "bedrock" or (provider == "vertex" and not call.model)):
            call = replace(call, model=named)  # Bedrock's own names are those that its prices and cache rules go by
        elif form == "responses":
            self._remember(answered, [*items, *answered.record["output"]], call.usage)
            call = replace(call, stop=answered.text("status"))
        return dataclasses.replace(logged, answer=replace(answer, call=call))

    def _items(self, asked: Fields) -> list[dict[str, Any]]:
        """Return all items that a request of the Responses API stands for."""
        items: list[dict[str, Any]] = []
        if name := asked.text("previous_response_id"):
            if name in self._threads:
                items += self._threads[name]
            else:
                where = asked.below("previous_response_id")
                self.problems.unknown("http: previous_response_id of a response that is not in the file", where)
        if isinstance(text := asked.at("input"), str):
            return [*items, {"type": "message", "role": "user", "content": text}]
        for item in self._known(asked, "input"):
            # A compaction made in this file stands for the items that it was made of. Of another one nothing is known
            # but that it stands for what comes before it here.
            known = self._threads.get(text_of(item.get("id"))) if item["type"] in COMPACTIONS else None
            if known is None:
                items.append(item)
            else:
                items = [*known]
        return items

    def _known(self, held: Fields, name: str) -> list[dict[str, Any]]:
        """Return the items at a field, without those of another type and what OpenAI ran itself."""
        items = []
        for item in held.each(name):
            kind = item.typed("type", str) or "message"
            if kind in _ITEMS:
                items.append({**convert(item.record, OBJECT, item.place), "type": kind})
            elif kind not in HOSTED:
                self.problems.unknown(f"http: item of type {kind!r}", item.place)
            elif name == "output" or item.text("id") not in self._hosted:
                self.problems.unknown(f"http: hosted tool call of type {kind!r}", item.place)
            self._hosted.add(item.text("id"))
        return items

    def _remember(self, answered: Fields, items: list[dict[str, Any]], used: Usage | None) -> None:
        """Keep the items that later requests mean by the id of a response, or of a compaction in it."""
        compacted = [item.text("id") for item in answered.each("output") if item.at("type") in COMPACTIONS]
        items = [item for item in items if item.get("id") not in compacted or item["type"] not in COMPACTIONS]
        if any(compacted) and items:
            time, tokens = answered.typed("completed_at|created_at", float), None if used is None else used.input
            items.append({"type": COMPACTIONS[0], "time": time, "tokens_before": tokens})
        self._threads |= dict.fromkeys(filter(None, (*compacted, answered.text("id"))), items)
