"""LiteLLM request logs as OpenHands writes them, a call a file: `{messages, response, kwargs, timestamp, cost}`.

Source: github.com/OpenHands/OpenHands, `llm_completions/<task>/*.json`. Each request repeats the messages before it,
so a folder's files make one conversation; where the list starts again, the next begins (`<folder>`, `<folder>.2` …).
`timestamp` is when the answer was complete (`response.created` is the same in whole seconds), so only answers have a
time, and no call has a start. `cache_control` stands on a content block, or on the message if that is a tool's; a
message with several marked blocks gets one breakpoint, after it. `cost` is LiteLLM's estimate, which in that version
charged cached tokens in full. Headers and keys (`kwargs.extra_headers` …) are never read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Call
from ..source import Problems, decode, records
from . import Recordings
from .messages import ChatMessage, ChatResponse, ChatTool, chat_answer, chat_marks, chat_messages, chat_tools
from .requests import LoggedRequest, Responses, conversations, dollars, effort


class _Kwargs(msgspec.Struct):
    tools: list[ChatTool] | None = None
    thinking: Any = None
    reasoning_effort: Any = None


class _Stamp(msgspec.Struct):
    timestamp: float | None = None


class _Log(_Stamp, kw_only=True):
    messages: list[ChatMessage]
    response: ChatResponse
    kwargs: _Kwargs = msgspec.field(default_factory=_Kwargs)
    cost: Any = None


@dataclass(frozen=True, slots=True)
class LitellmLog:
    """Requests and responses of one agent's run; a folder is a run."""

    about: ClassVar[str] = "LiteLLM request logs, one call a file (OpenHands' llm_completions)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({".messages", ".messages[].role", ".response", ".response.choices"}),
    )
    folder: ClassVar[bool] = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        if files:
            ordered = sorted(files, key=_first_stamp)
            folder = files[0].resolve().parent
            yield from conversations(_requests(ordered, problems), folder.name, str(files[0].parent))


def _first_stamp(path: Path) -> float:
    """Return the time of a file's first answer. A damaged file gives 0; its errors come when it is read."""
    try:
        for place, raw in records(path, Problems()):
            return decode(raw, _Stamp, place).timestamp or 0.0
    except RecordingError:
        pass
    return 0.0


def _requests(files: Sequence[Path], problems: Problems) -> Iterator[LoggedRequest]:
    responses = Responses(problems)
    for path in files:
        with problems.collect():  # the file has no records; the others of its folder may
            for place, raw in records(path, problems):
                with problems.collect():
                    log = decode(raw, _Log, place)
                    if responses.new(log.response.id, place.at("response.id")):
                        yield _request(log, place, problems)


def _request(log: _Log, place: Place, problems: Problems) -> LoggedRequest:
    messages = chat_messages(log.messages, place.at("messages"), problems)
    call = Call(
        marks=tuple(chat_marks(log.messages, log.kwargs.tools or ())),
        effort=effort(log.kwargs.thinking, log.kwargs.reasoning_effort),
    )
    name, cost = f"m{len(messages)}", dollars(log.cost, place.at("cost"), problems)
    answer = chat_answer(log.response, name, place.at("response"), problems, call, log.timestamp, cost)
    return LoggedRequest(place, messages, answer, chat_tools(log.kwargs.tools))
