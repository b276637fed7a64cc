"""Recorded HTTP as exchanges with model APIs: VCR cassettes (YAML or JSON) and HAR files.

    interactions: [{request: {method, uri, body | parsed_body}, response: {status, headers, body | parsed_body}}]
    {"log": {"entries": [{"startedDateTime", "time", "request": {method, url, postData}, "response": {content}}]}}

Sources: vcrpy.readthedocs.io, w3c.github.io/web-performance/specs/HAR. Bodies may be text, base64 or gzip. A
cassette has no times but the `date` of a response.
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
from .messages import Moment

_MOST_VALUES = 20_000_000
"""Most values in a cassette: aliases of YAML can stand for more than any memory holds."""


class _Reply(msgspec.Struct):
    status: Any = None
    headers: dict[str, Any] | None = None
    body: Any = None
    parsed_body: Any = None
    content: Any = None


class _Asked(msgspec.Struct):
    uri: str
    method: str = "POST"
    body: Any = None
    parsed_body: Any = None


class _Interaction(msgspec.Struct):
    request: _Asked
    response: _Reply


class _PostData(msgspec.Struct):
    text: str = ""


class _HarRequest(msgspec.Struct, rename="camel"):
    url: str
    method: str = "POST"
    post_data: _PostData | None = None


class _HarContent(msgspec.Struct):
    text: str = ""
    encoding: str = ""


class _HarResponse(msgspec.Struct):
    status: int = 200
    content: _HarContent = msgspec.field(default_factory=_HarContent)


class _Entry(msgspec.Struct, rename="camel"):
    request: _HarRequest
    response: _HarResponse
    started_date_time: Moment | None = None
    time: float = 0.0


class _Har(msgspec.Struct):
    entries: list[Any]


class _File(msgspec.Struct):
    interactions: list[Any] | None = None
    log: _Har | None = None


class Exchange(NamedTuple):
    """A request with its response. The bodies are JSON, or a stream of events."""

    url: str
    endpoint: str
    """chat, responses, compact, messages, generate, store, converse or invoke."""
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
    if data.lstrip().startswith((b"{", b"[")):
        recorded = decode(data, _File, place)
    else:
        recorded = convert(_yaml(data, place), _File, place)
    entries = recorded.log.entries if recorded.log is not None else recorded.interactions or []
    name = "interactions" if recorded.log is None else "log.entries"
    for at, entry in enumerate(entries):
        where = place.at(f"{name}[{at}]")
        try:
            exchange = _har(entry, where) if recorded.log is not None else _cassette(entry, where)
        except RecordingError as error:
            problems.add(error)
            continue
        if exchange is None:
            problems.unknown("http: request that is no model call, or that failed", where)
        else:
            yield exchange


def _yaml(data: bytes, place: Place) -> Any:
    """Return a YAML document. Raises RecordingError if it is none, or if it is far larger than its text."""
    try:
        document = yaml.load(data, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        what = f"not YAML: {error.problem}"
        raise RecordingError(Place(place.file, line), what, "the file was cut off or changed: copy it again") from None
    # Scalars that YAML cannot make into what their tag says raise nearly anything.
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise RecordingError(place, f"not YAML: {error}", "the file was changed: copy it again") from None
    values, open_values = 0, [document]
    while open_values:
        value = open_values.pop()
        values += 1
        if values + len(open_values) > _MOST_VALUES:
            raise RecordingError(place, f"over {_MOST_VALUES:,} values", "split it")
        if isinstance(value, dict):
            open_values += value.values()
        elif isinstance(value, list):
            open_values += value
    return document


def _cassette(entry: Any, place: Place) -> Exchange | None:
    try:
        interaction = convert(entry, _Interaction, place)
    except (TypeError, OverflowError):  # keys that are no text, as only YAML has
        raise RecordingError(place, "a key that is no text", "leave this interaction out") from None
    request, response = interaction.request, interaction.response
    status = response.status.get("code") if isinstance(response.status, dict) else response.status
    endpoint = endpoint_of(request.uri)
    if request.method.upper() != "POST" or endpoint is None or _failed(status):
        return None
    asked = place.at(f"{place.field}.request.{'body' if request.parsed_body is None else 'parsed_body'}")
    answered = place.at(f"{place.field}.response.{'body' if response.parsed_body is None else 'parsed_body'}")
    body = request.body if request.parsed_body is None else request.parsed_body
    replied = response.body if response.parsed_body is None else response.parsed_body
    replied = response.content if replied is None else replied
    finished = _date(response.headers or {})
    return Exchange(
        request.uri, endpoint, _json(body, asked), _json(replied, answered), asked, answered, None, finished
    )


def _har(entry: Any, place: Place) -> Exchange | None:
    recorded = convert(entry, _Entry, place)
    request, response = recorded.request, recorded.response
    endpoint = endpoint_of(request.url)
    if request.method.upper() != "POST" or endpoint is None or _failed(response.status):
        return None
    asked, answered = place.below("request.postData.text"), place.below("response.content.text")
    body = {"base64_string": response.content.text} if response.content.encoding == "base64" else response.content.text
    started = recorded.started_date_time.timestamp() if recorded.started_date_time is not None else None
    finished = started + recorded.time / 1000 if started is not None and recorded.time >= 0 else None
    text = request.post_data.text if request.post_data is not None else ""
    return Exchange(request.url, endpoint, text.encode(), _json(body, answered), asked, answered, started, finished)


def _failed(status: Any) -> bool:
    return isinstance(status, int) and status >= 400


def _json(body: Any, place: Place) -> bytes:
    """Return a recorded body as its bytes; what the recorder has parsed becomes JSON again."""
    try:
        if isinstance(body, dict) and ("string" in body or "base64_string" in body or "data" in body):
            text = body.get("string") or body.get("base64_string") or body.get("data") or ""
            data = text if isinstance(text, bytes) else str(text).encode()
            data = data if body.get("string") else base64.b64decode(data, validate=True)
        elif isinstance(body, str):
            data = body.encode()
        else:
            data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        if data.startswith(b"\x1f\x8b"):
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
