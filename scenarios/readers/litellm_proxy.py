"""Spend logs of LiteLLM's proxy: rows of its table `LiteLLM_SpendLogs`, as `/spend/logs` or an export gives them.

    {request_id, call_type, session_id, startTime, endTime, model, custom_llm_provider, spend, prompt_tokens,
      completion_tokens, total_tokens, cache_hit, status, proxy_server_request: request, messages, response,
      metadata: {usage_object, additional_usage_values, status, user_api_key …}}

Source: github.com/BerriAI/litellm, `litellm/proxy/spend_tracking/spend_tracking_utils.py`; tested on written examples
alone. JSON, JSON Lines, or a table (CSV, Parquet). Keys, users and addresses are never read.

- Prompts are there with `store_prompts_in_spend_logs` alone. The request stands in `proxy_server_request`, in older
  versions in `messages`. The proxy cuts long texts: such a row is counted in the notes, its usage is that of the whole.
- Usage is `usage_object` of the metadata, with what was read from caches; else that of the response, else the columns.
- `session_id` is the thread. What the proxy answered from its own cache, and what is no chat, is
  counted in the notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place
from ..model import Call
from ..source import Problems, as_text, convert
from . import Recordings, anywhere
from .prompts import as_object, decoded, exchange, text_of
from .requests import dollars, tier, usage
from .spans import TraceSpan, counted, moments, number, paged_traces

_CUT = "litellm_truncated"
_NO_CHATS = ("embedding", "rerank", "moderation", "image", "speech", "transcription")


class _Row(msgspec.Struct):
    request_id: str
    call_type: str = ""
    session_id: str | None = None
    start: str | None = msgspec.field(default=None, name="startTime")
    end: str | None = msgspec.field(default=None, name="endTime")
    completion_start: str | None = msgspec.field(default=None, name="completionStartTime")
    model: str | None = None
    custom_llm_provider: str | None = None
    spend: Any = None
    prompt_tokens: Any = None
    completion_tokens: Any = None
    total_tokens: Any = None
    cache_hit: Any = None
    status: str | None = None
    proxy_server_request: Any = None
    messages: Any = None
    response: Any = None
    metadata: Any = None


@dataclass(frozen=True, slots=True)
class LitellmProxy:
    """Spend logs of LiteLLM's proxy."""

    about: ClassVar[str] = "LiteLLM proxy spend logs (rows of LiteLLM_SpendLogs)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = anywhere(
        (".request_id", ".call_type", ".spend", ".startTime", ".response"), under=("", "[]", ".data[]")
    )
    folder: ClassVar[bool] = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        yield from paged_traces(files, _span, problems, "litellm_proxy", "data")


def _span(fields: Any, place: Place, problems: Problems) -> TraceSpan:
    row = convert(fields, _Row, place)
    metadata, response = as_object(row.metadata), as_object(row.response)
    times = {"startTime": row.start, "endTime": row.end, "completionStartTime": row.completion_start}
    start, end, first_token = moments(place, **times)
    is_cached = str(row.cache_hit).lower() == "true"
    if is_cached or any(kind in row.call_type for kind in _NO_CHATS):
        what = "answer from the proxy's own cache" if is_cached else f"call of type {row.call_type!r}"
        problems.unknown(f"litellm_proxy: {what}", place)
        return TraceSpan(place, row.request_id, row.request_id)
    request = as_object(row.proxy_server_request)
    prompt = as_object(request.get("body")) or request or decoded(row.messages) or None
    if any(_CUT in as_text(logged) for logged in (prompt, response)):
        problems.unknown("litellm_proxy: request or response that the proxy cut", place)
    logged = exchange(prompt, response or None, place, problems, "litellm_proxy", names=("", "response"))
    failed = "failure" in (row.status, metadata.get("status"))
    cost = dollars(number(row.spend), place.below("spend"), problems)
    call = Call(
        model=row.model or "",
        provider=row.custom_llm_provider or "",
        usage=usage(_counts(row, metadata, response), place.below("metadata.usage_object"), problems, cost),
        started=start,
        stop="error" if failed and logged.answer is None else "",
        request_id=text_of(response.get("id")) or row.request_id,
        tier=tier(response),
        first_token=first_token,
        error=text_of(as_object(metadata.get("error_information")).get("error_message")),
    )
    thread = row.session_id or text_of(metadata.get("session_id"))
    return TraceSpan(
        place, row.request_id, row.request_id, kind="llm", thread=thread, end=end, exchange=logged, call=call
    )


def _counts(row: _Row, metadata: dict[str, Any], response: dict[str, Any]) -> Any:
    """Return the fullest usage of a row."""
    reported = as_object(metadata.get("usage_object")) or as_object(response.get("usage"))
    if reported:
        return reported
    more = as_object(metadata.get("additional_usage_values"))
    read, written = more.get("cache_read_input_tokens"), more.get("cache_creation_input_tokens")
    return counted(row.prompt_tokens, row.completion_tokens, read, written, row.total_tokens)
