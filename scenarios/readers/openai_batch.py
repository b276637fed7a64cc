"""OpenAI's batches: JSON Lines of requests, and those of their responses, joined by `custom_id`.

    {custom_id, method, url, body: request}                                the input
    {id, custom_id, response: {status_code, request_id, body}, error}      the output

Source: platform.openai.com/docs/guides/batch; tested on written examples alone. The files of a folder are read
together. Requests and responses are those of `http.py`. Each is a conversation of its own, named by its `custom_id`.
Requests and responses without the other are counted in the notes, and so are those that failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..source import Problems, decode, json_text, records
from . import Recordings
from .exchanges import Exchange, endpoint_of
from .http import HttpExchanges
from .requests import series

_API = "https://api.openai.com"


class _Response(msgspec.Struct):
    body: msgspec.Raw
    status_code: int = 200

    def __post_init__(self) -> None:
        json_text(self.body)


class _Line(msgspec.Struct):
    custom_id: str
    url: str = ""
    body: msgspec.Raw = msgspec.Raw()
    response: _Response | None = None
    error: Any = None

    def __post_init__(self) -> None:
        json_text(self.body)


@dataclass(frozen=True, slots=True)
class OpenAIBatch:
    """Requests of batches with their responses."""

    about: ClassVar[str] = "OpenAI batches (JSON Lines of requests and of responses)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({".custom_id", ".url", ".body"}),
        frozenset({".custom_id", ".response", ".response.body"}),
    )
    folder: ClassVar[bool] = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        asked: dict[str, tuple[Place, _Line]] = {}
        answered: dict[str, tuple[Place, bytes]] = {}
        for path in files:
            with problems.collect():
                for place, raw in records(path, problems):
                    try:
                        line = decode(raw, _Line, place)
                    except RecordingError as error:
                        problems.add(error)
                        continue
                    if bytes(line.body) not in (b"", b"null"):
                        asked.setdefault(line.custom_id, (place, line))
                    elif line.response is not None and line.response.status_code == 200 and not line.error:
                        answered.setdefault(line.custom_id, (place, bytes(line.response.body)))
                    else:
                        problems.unknown("openai_batch: request that failed", place)
        exchanges = HttpExchanges(problems)
        for name, (place, line) in asked.items():
            endpoint = endpoint_of(line.url)
            if name not in answered or endpoint is None:
                problems.unknown("openai_batch: request without a response of a model", place)
                continue
            where, response = answered.pop(name)
            body, reply = place.at("body"), where.at("response.body")
            url, request = _API + line.url, bytes(line.body)
            exchange = Exchange(url, endpoint, request, response, body, reply, None, None)
            for group in series(exchanges.logged(exchange)):
                yield group.conversation(name)
        for place, _ in answered.values():
            problems.unknown("openai_batch: response without its request", place)
