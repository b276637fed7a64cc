"""Requests that Helicone logged, with their bodies: its exports and the answers of its API.

    {request_id, request_created_at, response_created_at, request_path, provider, model, response_model, costUSD,
      prompt_tokens, completion_tokens, prompt_cache_read_tokens, prompt_cache_write_tokens, response_status,
      request_properties: {Helicone-Session-Id}, request_body: request, response_body: response}

Source: docs.helicone.ai (`/v1/request/query-clickhouse`) and `npx @helicone/export --include-body`; from the published
schema, without a recorded sample. JSON, JSON Lines or CSV. Keys, users and properties other than sessions are not read.
The session is the thread. Usage is that of the response, else the columns. Failed requests are counted in the notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place
from ..model import Call
from ..source import Problems, convert
from . import Recordings, anywhere
from .prompts import as_object, exchange, text_of
from .requests import dollars, other_than, tier, usage
from .spans import TraceSpan, counted, moments, number, paged_traces

_FAILED = 400


class _Logged(msgspec.Struct):
    request_id: str
    request_created_at: str | None = None
    response_created_at: str | None = None
    provider: str | None = None
    model: str | None = None
    request_model: str | None = None
    response_model: str | None = None
    response_status: Any = None
    prompt_tokens: Any = None
    completion_tokens: Any = None
    total_tokens: Any = None
    prompt_cache_read_tokens: Any = None
    prompt_cache_write_tokens: Any = None
    cost: Any = msgspec.field(default=None, name="costUSD")
    request_properties: Any = None
    properties: Any = None
    time_to_first_token: Any = None
    request_body: Any = None
    response_body: Any = None


@dataclass(frozen=True, slots=True)
class Helicone:
    """Requests logged by Helicone."""

    about: ClassVar[str] = "Helicone requests with their bodies (exports, API)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = anywhere(
        (".request_id", ".request_created_at", ".request_body", ".response_body"), under=("", "[]", ".data[]")
    )
    folder: ClassVar[bool] = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        yield from paged_traces(files, _span, problems, "helicone", "data")


def _span(fields: Any, place: Place, problems: Problems) -> TraceSpan:
    logged = convert(fields, _Logged, place)
    times = {"request_created_at": logged.request_created_at, "response_created_at": logged.response_created_at}
    start, end = moments(place, **times)
    response = as_object(logged.response_body)
    names = ("request_body", "response_body")
    said = exchange(logged.request_body, response or None, place, problems, "helicone", names=names)
    counts = (logged.prompt_tokens, logged.completion_tokens, logged.prompt_cache_read_tokens)
    columns = counted(*counts, logged.prompt_cache_write_tokens, logged.total_tokens)
    reported = response.get("usage") or response.get("usageMetadata") or columns
    status = number(logged.response_status)
    failed = isinstance(status, int) and not 0 <= status < _FAILED
    cost = dollars(number(logged.cost), place.below("costUSD"), problems)
    model = logged.response_model or logged.model or logged.request_model or ""
    wait = number(logged.time_to_first_token)
    call = Call(
        model=model,
        provider=(logged.provider or "").lower(),
        usage=usage(reported, place.below("response_body.usage"), problems, cost),
        started=start,
        stop="error" if failed and said.answer is None else "",
        request_id=text_of(response.get("id")),
        tier=tier(response, reported),
        requested=other_than(model, logged.request_model or model),
        first_token=start + wait / 1000 if start is not None and isinstance(wait, (int, float)) else None,
    )
    properties = {**as_object(logged.properties), **as_object(logged.request_properties)}
    session = next((properties[key] for key in properties if key.lower() == "helicone-session-id"), "")
    name = logged.request_id
    return TraceSpan(place, name, name, kind="llm", thread=text_of(session), end=end, exchange=said, call=call)
