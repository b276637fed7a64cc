"""Recorded HTTP as exchanges with model APIs: VCR cassettes (YAML or JSON) and HAR files.

    interactions: [{request: {method, uri, body | parsed_body}, response: {status, headers, body | parsed_body}}]
    {"log": {"entries": [{"startedDateTime", "time", "request": {method, url, postData}, "response": {content}}]}}

Sources: vcrpy.readthedocs.io, w3c.github.io/web-performance/specs/HAR. Bodies may be text, base64 or gzip. A
cassette has no times but the `date` of a response.

A streamed response is put together to the one that is not streamed, one that was cut off as far as it goes. Streams are
server-sent events, and AWS's binary frames (docs.aws.amazon.com/transcribe: event stream encoding):

    OpenAI chat        chunks of `choices[].delta`; the usage stands in the last one
    OpenAI Responses   events; the last one, `response.completed`, has the whole response, often without its output,
                       which stands in events of its items (`response.output_item.done`) and their texts (`delta`)
    Anthropic          `message_start` with the usage of the prompt, blocks with their deltas, `message_delta` with the
                       usage of the output
    Gemini             responses, one after the other, or one JSON array of them; the last usage counts
    Bedrock            Converse: `messageStart`, blocks with their deltas, `messageStop`, `metadata` with the usage;
                       InvokeModel: `chunk`s that hold the events of the model's own API
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import yaml

from ..errors import Place, RecordingError
from ..source import LONGEST, Problems, convert, decode, whole_file
from . import LIST, OBJECT, Fields, as_object
from .messages import Moment, reasoning

_DONE = b"[DONE]"
_MOST_VALUES, _DEEPEST = 2_000_000, 200
"""Most values in a cassette in YAML, and levels of them: aliases can stand for more than any memory holds."""
_LONGEST_NUMBER = 100
_TAG = "tag:yaml.org,2002:"
_MERGE = object()
_TEXT, _SCALARS = f"{_TAG}str", ("int", "float", "bool", "null", "timestamp", "binary")


class Exchange(NamedTuple):
    """A request with its response. The bodies are JSON, or a stream of events."""

    url: str
    endpoint: str  # chat, responses, compact, messages, generate, store, converse or invoke
    request: bytes
    response: bytes
    asked: Place
    answered: Place
    started: float | None
    finished: float | None


def exchanges(path: Path, problems: Problems) -> Iterator[Exchange]:
    """Yield the exchanges with a model API, as far as the address tells."""
    place = Place(str(path), 1)
    data = whole_file(path, problems)
    is_json = data.lstrip().startswith((b"{", b"["))
    recorded = Fields(convert(decode(data, Any, place) if is_json else _yaml(data, place), OBJECT, place), place)
    name, read = ("interactions", _cassette) if recorded.at("log") is None else ("log.entries", _har)
    for at, entry in enumerate(recorded.typed(name, LIST) or ()):
        where = place.at(f"{name}[{at}]")
        with problems.collect():
            if (exchange := read(Fields(convert(entry, OBJECT, where), where))) is None:
                problems.unknown("http: request that is no model call, or that failed", where)
            else:
                yield exchange


def _yaml(data: bytes, place: Place) -> Any:
    """Return a YAML document. Raises RecordingError for none, a foreign tag, or one too deep or large."""
    documents, line = list[Any](), 1
    # The collections that are open: what begins each, how many values stood before it, and its values.
    opened: list[tuple[Any, int, list[Any]]] = [(None, 0, documents)]
    anchors: dict[str, tuple[Any, int]] = {}  # with the number of values, its own ones and those of its aliases
    count = 0
    try:
        # The library's own composer calls itself for each level: some 10,000 brackets end the process.
        loader = yaml.CSafeLoader(data)
        while not isinstance(event := loader.get_event(), yaml.StreamEndEvent):
            before, anchor, line = count, getattr(event, "anchor", None), event.start_mark.line + 1
            if isinstance(event, yaml.ScalarEvent):
                value, count = _scalar(loader, event), count + 1
            elif isinstance(event, yaml.CollectionStartEvent):
                if event.tag not in (None, "!", _TAG + ("map" if isinstance(event, yaml.MappingStartEvent) else "seq")):
                    raise ValueError(f"the tag {event.tag} is none that is read here")
                if len(opened) > _DEEPEST:
                    raise RecordingError(Place(place.file, line), "nested too deep", "flatten it")
                opened.append((event, count, []))
                continue
            elif isinstance(event, yaml.CollectionEndEvent):
                start, before, value = opened.pop()
                count, anchor, line = count + 1, start.anchor, start.start_mark.line + 1
                if isinstance(start, yaml.MappingStartEvent):
                    value = _mapping(value)
            elif isinstance(event, yaml.AliasEvent):
                if anchor not in anchors:
                    raise ValueError(f"the alias {anchor} stands before its value, or within it")
                value, size = anchors[anchor]
                count, anchor = count + size, None
            elif isinstance(event, yaml.DocumentStartEvent) and documents:
                raise ValueError("another document begins here")
            else:
                continue
            if value is _MERGE and (not isinstance(opened[-1][0], yaml.MappingStartEvent) or len(opened[-1][2]) % 2):
                raise ValueError("<< is no key here, so it merges nothing")
            if count > _MOST_VALUES:
                raise RecordingError(Place(place.file, line), f"over {_MOST_VALUES:,} values", "split it")
            if anchor is not None:
                anchors[anchor] = value, count - before
            opened[-1][2].append(value)
    # Scalars that YAML cannot make into what their tag says raise nearly anything.
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:
        mark, what = getattr(error, "problem_mark", None), f"not YAML: {getattr(error, 'problem', None) or error}"
        where = Place(place.file, mark.line + 1 if mark else line)
        raise RecordingError(where, what, "the file was cut off or changed: copy it again") from None
    return documents[0] if documents else None


def _mapping(values: list[Any]) -> dict[Any, Any]:
    """Return a mapping of its keys and values in turn. Its own keys win over merged ones, of these the first."""
    pairs = list(zip(values[::2], values[1::2], strict=True))
    merged = [value[::-1] if isinstance(value, list) else [value] for key, value in pairs if key is _MERGE]
    if not all(isinstance(part, dict) for parts in merged for part in parts):
        raise ValueError("<< merges what is no mapping")
    whole = {key: value for parts in merged for part in parts for key, value in part.items()}
    return whole | {key: value for key, value in pairs if key is not _MERGE}


def _scalar(loader: Any, event: yaml.ScalarEvent) -> Any:
    """Return the value of a scalar. A plain one that is longer than any number or date is text."""
    tag = event.tag
    if tag in (None, "!"):
        plain = event.implicit[0] and len(event.value) <= _LONGEST_NUMBER
        tag = loader.resolve(yaml.ScalarNode, event.value, event.implicit) if plain else _TEXT
    if tag == _TEXT:
        return event.value
    kind = tag.removeprefix(_TAG)
    if kind == "merge":
        return _MERGE
    if kind not in _SCALARS or (kind != "binary" and len(event.value) > _LONGEST_NUMBER):
        raise ValueError(f"{event.value[:_LONGEST_NUMBER]!r} is no {kind} that is read")
    construct = loader.yaml_constructors[tag]
    return construct(loader, yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark))


def _cassette(entry: Fields) -> Exchange | None:
    request, response = entry.needed("request", OBJECT), entry.needed("response", OBJECT)
    url, status = entry.needed("request.uri", str), entry.at(entry.first("response.status.code|response.status"))
    if (endpoint := _called(url, request.get("method"), status)) is None:
        return None
    asked = "request.body" if request.get("parsed_body") is None else "request.parsed_body"
    answered = "response.body" if response.get("parsed_body") is None else "response.parsed_body"
    replied = response.get("content") if entry.at(answered) is None else entry.at(answered)
    places = entry.place.below(asked), entry.place.below(answered)
    finished = _date(entry.typed("response.headers", OBJECT) or {})
    bodies = _json(entry.at(asked), places[0]), _json(replied, places[1])
    return Exchange(url, endpoint, *bodies, *places, None, finished)


def _har(entry: Fields) -> Exchange | None:
    url, status = entry.needed("request.url", str), entry.needed("response", OBJECT).get("status")
    if (endpoint := _called(url, entry.at("request.method"), status)) is None:
        return None
    asked, answered = entry.place.below("request.postData.text"), entry.place.below("response.content.text")
    moment, took = entry.typed("startedDateTime", Moment), entry.typed("time", float) or 0.0
    started = None if moment is None else moment.timestamp()
    finished = started + took / 1000 if started is not None and took >= 0 else None
    bodies = _har_body(entry, "request.postData"), _har_body(entry, "response.content")
    return Exchange(url, endpoint, *bodies, asked, answered, started, finished)


def _har_body(entry: Fields, at: str) -> bytes:
    name = "base64_string" if entry.text(f"{at}.encoding").lower() == "base64" else "string"
    return _json({name: entry.typed(f"{at}.text", str) or ""}, entry.place.below(f"{at}.text"))


def _called(url: str, method: Any, status: Any) -> str | None:
    """Return the endpoint of a model API that was called; None for another request, or one that failed."""
    failed = isinstance(status, int) and status >= 400
    return None if str(method or "POST").upper() != "POST" or failed else endpoint_of(url)


def _json(body: Any, place: Place) -> bytes:
    """Return a recorded body as its bytes; what the recorder has parsed becomes JSON again."""
    try:
        if isinstance(body, dict) and ("string" in body or "base64_string" in body or "data" in body):
            text = body.get("string") or body.get("base64_string") or body.get("data") or ""
            data = text if isinstance(text, bytes) else str(text).encode()
            if not body.get("string") or str(body.get("encoding")).lower() == "base64":
                data = base64.b64decode(b"".join(data.split()), validate=True)
        elif isinstance(body, str):
            data = body.encode()
        else:
            data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        if data.startswith(b"\x1f\x8b"):
            # 31 = a gzip header and the largest window. No more than LONGEST comes out of it, whatever it holds.
            data = zlib.decompressobj(31).decompress(data, LONGEST)
        return data
    except (TypeError, ValueError, OverflowError, RecursionError, binascii.Error, zlib.error) as error:
        raise RecordingError(place, f"no text: {error}", "leave this interaction out") from None


def _date(headers: dict[str, Any]) -> float | None:
    """Return the time of a response's `date`, in whole seconds."""
    dates = next((value for name, value in headers.items() if name.lower() == "date"), None)
    date = dates[0] if isinstance(dates, list) and dates else dates
    try:
        return parsedate_to_datetime(date).timestamp() if isinstance(date, str) else None
    except (ValueError, OverflowError):
        return None


_ENDPOINTS = {
    "chat": re.compile(r"/chat/completions$"),
    "responses": re.compile(r"/responses$"),
    "compact": re.compile(r"/responses/compact$"),
    "messages": re.compile(r"/v\d+/messages$|/publishers/anthropic/models/[^/]+:(?:streamR|r)awPredict$"),
    "generate": re.compile(r":(?:stream)?[gG]enerateContent$"),
    "store": re.compile(r"/cachedContents$"),
    "converse": re.compile(r"/model/[^/]+/converse(?:-stream)?$"),
    "invoke": re.compile(r"/model/[^/]+/invoke(?:-with-response-stream)?$"),
}


def endpoint_of(url: str) -> str | None:
    """Return which endpoint of a model API a URL is, or None."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return None
    return next((name for name, pattern in _ENDPOINTS.items() if pattern.search(path)), None)


def events(body: bytes) -> list[bytes]:
    """Return the data of a stream's events; empty if the text is no event stream."""
    if not body.lstrip().startswith((b"data:", b"event:", b":", b"id:")):
        return []
    lines = (line[5:].strip() for line in body.splitlines() if line.startswith(b"data:"))
    return [line for line in lines if line and line != _DONE]


def frames(body: bytes, place: Place) -> list[tuple[str, bytes]]:
    """Return type and payload of each event in AWS's frames; empty for other bytes.

    A frame is the lengths of itself and of its headers (4 bytes each), a checksum, the headers, the payload and a
    checksum. A frame that was cut off is the end. Raises RecordingError for a chunk that is not base64.
    """
    found, start = [], 0
    while start + _PRELUDE <= len(body):
        size = int.from_bytes(body[start : start + 4], "big")
        headers = int.from_bytes(body[start + 4 : start + 8], "big")
        # Checksums are not looked at: damage shows in the payload, which is JSON.
        if not _PRELUDE + headers + _CHECKSUM <= size <= len(body) - start:
            break
        at = start + _PRELUDE
        # The header `:event-type` has its value behind its name, its type and its length (2 bytes).
        value, payload = (
            body[at : at + headers].partition(_EVENT_TYPE)[2],
            body[at + headers : start + size - _CHECKSUM],
        )
        kind = value[2 : 2 + int.from_bytes(value[:2], "big")].decode("utf-8", "replace")
        if kind == "chunk":
            coded = Fields(decode(payload, OBJECT, place), place).needed("bytes", str)
            payload = _json({"base64_string": coded}, place)
        found.append((kind, payload))
        start += size
    return found


_PRELUDE, _CHECKSUM, _EVENT_TYPE = 12, 4, b":event-type\x07"


def converse_response(stream: list[tuple[str, bytes]], place: Place) -> dict[str, Any]:
    """Return the response of a stream of Bedrock's Converse."""
    whole, blocks = dict[str, Any](), dict[int, dict[str, Any]]()
    for kind, payload in stream:
        event = Fields(decode(payload, OBJECT, place), place)
        index = event.typed("contentBlockIndex", int) or 0
        block = blocks.setdefault(index, {}) if kind.startswith("contentBlock") else {}
        block |= event.typed("start", OBJECT) or {}
        if isinstance(text := event.at("delta.text"), str):
            block["text"] = block.get("text", "") + text
        if isinstance(event.at("delta.toolUse"), dict) and isinstance(block.get("toolUse"), dict):
            used = str(event.at("delta.toolUse.input") or "")
            block["toolUse"]["input"] = block["toolUse"].get("input", "") + used
        if isinstance(event.at("delta.reasoningContent"), dict):
            shown = block.setdefault("reasoningContent", {"reasoningText": {"text": ""}})["reasoningText"]
            shown["text"] += str(event.at("delta.reasoningContent.text") or "")
        whole |= {name: event.at(name) for name in ("stopReason", "usage", "serviceTier") if event.at(name)}
    content = [blocks[index] for index in sorted(blocks)]
    return {"output": {"message": {"role": "assistant", "content": content}}, **whole}


def chat_response(stream: list[bytes], place: Place) -> dict[str, Any]:
    """Return the chat response of a stream. Raises RecordingError for an event that is no chunk."""
    text, thinking, finish = [], [], None
    calls: dict[int, dict[str, Any]] = {}
    whole: dict[str, Any] = {}
    for chunk in _events(stream, place):
        for name in ("id", "model", "created", "usage", "service_tier"):
            # The last that has one counts: the usage stands in the last chunk, and is null in those before it.
            whole[name] = updated(whole.get(name), chunk.at(name))
        for choice in chunk.each("choices"):
            if choice.at("index") or choice.typed("delta", OBJECT) is None:
                continue  # the others of several answers are not in the conversation
            finish = choice.typed("finish_reason", str) or finish
            text.append(choice.typed("delta.content", str) or choice.text("delta.refusal|delta.audio.transcript"))
            told = (choice.at(f"delta.{name}") for name in ("reasoning_content", "reasoning"))
            thinking.append(reasoning(told, choice.at("delta.reasoning_details"))[0])
            for part in choice.each("delta.tool_calls"):
                empty = {"id": None, "function": {"name": "", "arguments": ""}}
                call = calls.setdefault(part.typed("index", int) or 0, empty)
                call["id"] = call["id"] or part.at("id")
                for name, path in (("name", "custom.name"), ("arguments", "custom.input")):
                    call["function"][name] += part.typed(f"function.{name}|{path}", str) or ""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(text)}
    message["reasoning_content"] = "".join(thinking) or None
    message["tool_calls"] = [calls[index] for index in sorted(calls)] or None
    choices = [{"message": message, "finish_reason": finish}] if stream else []
    return {**{name: value for name, value in whole.items() if value}, "choices": choices}


def whole_response(exchange: Exchange, form: str) -> bytes:
    """Return the response in the form of an API (an endpoint's name); a streamed one as if it was not streamed."""
    body, place = exchange.response, exchange.answered
    stream, framed = [] if form == "converse" else events(body), list[tuple[str, bytes]]()
    if form == "generate" and body.lstrip().startswith(b"["):
        stream = [bytes(part) for part in decode(body, list[msgspec.Raw], place)]
    elif form in ("messages", "converse") and not stream:
        framed = frames(body, place)
        stream = [payload for _, payload in framed]
    if not stream:
        return body
    as_frames = framed and form == "converse"
    return msgspec.json.encode(converse_response(framed, place) if as_frames else _WHOLE[form](stream, place))


def streamed_response(stream: list[bytes], place: Place) -> Any:
    """Return the response of a stream whose API only its first event tells."""
    first = next(_events(stream, place), Fields({}, place))
    if first.text("type").startswith("response."):
        return responses_response(stream, place)
    return (anthropic_response if first.at("choices") is None else chat_response)(stream, place)


def responses_response(stream: list[bytes], place: Place) -> dict[str, Any]:
    """Return the response of a stream of the Responses API, of one that was cut off as far as it goes."""
    whole, items, said = dict[str, Any](), dict[int, dict[str, Any]](), dict[tuple[int, str], str]()
    for event in _events(stream, place):
        at, kind = event.typed("output_index", int) or 0, event.text("type").removeprefix("response.")
        whole |= event.typed("response", OBJECT) or {}
        if kind in ("output_item.added", "output_item.done"):
            items[at] = event.typed("item", OBJECT) or {}
        elif kind in _DELTAS and isinstance(event.at("delta"), str):
            said[at, kind] = said.get((at, kind), "") + event.at("delta")
            items.setdefault(at, {"type": "message", "role": "assistant"})
    if not whole and not items:
        raise RecordingError(place, "the stream ends before the response", "leave the failed call out")
    for (at, kind), text in said.items():
        name, part = _DELTAS[kind]
        items[at][name] = items[at].get(name) or ([{"type": part, "text": text}] if part else text)
    return whole | {"output": whole.get("output") or [items[at] for at in sorted(items)]}


# Where an item has what stands in parts in events of these types: as blocks of a type, or as a text.
_DELTAS = {
    "output_text.delta": ("content", "output_text"),
    "refusal.delta": ("content", "refusal"),
    "reasoning_text.delta": ("content", "reasoning_text"),
    "reasoning_summary_text.delta": ("summary", "summary_text"),
    "function_call_arguments.delta": ("arguments", ""),
    "custom_tool_call_input.delta": ("input", ""),
}


def anthropic_response(stream: list[bytes], place: Place) -> dict[str, Any]:
    """Return the message of a stream of Anthropic's."""
    whole, blocks, inputs = dict[str, Any](), dict[int, dict[str, Any]](), dict[int, str]()
    for event in _events(stream, place):
        kind, index = event.at("type"), event.typed("index", int) or 0
        delta = event.typed("delta", OBJECT) or {}
        if kind == "message_start":
            whole = event.typed("message", OBJECT) or {}
        elif kind == "content_block_start":
            blocks[index] = event.typed("content_block", OBJECT) or {}
        elif kind == "content_block_delta" and index in blocks:
            for name in ("text", "thinking"):
                if isinstance(delta.get(name), str):
                    blocks[index][name] = str(blocks[index].get(name) or "") + delta[name]
            if isinstance(delta.get("partial_json"), str):
                inputs[index] = inputs.get(index, "") + delta["partial_json"]
        elif kind == "message_delta":
            usage = updated(as_object(whole.get("usage")), event.typed("usage", OBJECT) or {})
            managed = event.typed("context_management", OBJECT) or whole.get("context_management")
            whole = {**whole, **delta, "usage": usage, "context_management": managed}
    for index, text in inputs.items():
        if text:
            blocks[index]["input"] = decode(text.encode(), OBJECT, place)
    return {**whole, "content": [blocks[index] for index in sorted(blocks)]}


def gemini_response(stream: list[bytes], place: Place) -> dict[str, Any]:
    """Return the response that the responses of a stream make together."""
    parts, whole, finish = list[Any](), dict[str, Any](), None
    for response in _events(stream, place):
        said = response.at("candidates.0.content.parts")
        parts += said if isinstance(said, list) else []
        finish = response.typed("candidates.0.finishReason", str) or finish
        for name in ("usageMetadata", "modelVersion", "responseId"):
            whole[name] = updated(whole.get(name), response.at(name))
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}], **whole}


def updated(before: Any, now: Any) -> Any:
    """Return a value of a stream with what came later but zeros and nulls: some hosts end with a usage of zeros."""
    if not isinstance(before, dict) or not isinstance(now, dict):
        return now or before
    return before | {name: updated(before.get(name), value) for name, value in now.items()}


def _events(stream: list[bytes], place: Place) -> Iterator[Fields]:
    return (Fields(decode(event, OBJECT, place), place) for event in stream)


_WHOLE = {
    "chat": chat_response,
    "messages": anthropic_response,
    **dict.fromkeys(("responses", "compact"), responses_response),
    **dict.fromkeys(("generate", "store"), gemini_response),
}
