"""Terminal-Bench trials: LiteLLM's record of each call, `<trial>/agent-logs/episode-<n>/debug.json`.

    {model, messages, original_response: the provider's response as JSON text, optional_params, start_time}

Source: github.com/laude-institute/terminal-bench, `terminal_bench/llms/lite_llm.py`, by its code; tested on written
examples alone. Its agents that call models through LiteLLM (Terminus) write it. Requests of one trial that extend each
other are one conversation, with the trial's name; `prompt.txt` and `response.txt` beside a record repeat it.

- The response is in the provider's own form: OpenAI's, which most speak, or Anthropic's.
- `start_time` has no zone and is taken as UTC. Keys and headers (`litellm_params` …) are never read.
- Newer runs of the benchmark (Harbor) are ATIF trajectories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place
from ..model import Call, Message
from ..source import Problems, decode, whole_file
from . import Recordings
from .anthropic_messages import AnthropicResponse, anthropic_answer
from .messages import (
    ChatMessage,
    ChatResponse,
    ChatTool,
    chat_answer,
    chat_marks,
    chat_messages,
    chat_tools,
    iso_seconds,
)
from .requests import LoggedRequest, Responses, conversations, effort

_EPISODE = re.compile(r"episode-(\d+)")


class _Options(msgspec.Struct):
    tools: list[ChatTool] | None = None
    thinking: Any = None
    reasoning_effort: Any = None


class _Record(msgspec.Struct):
    model: str
    messages: list[ChatMessage]
    original_response: str
    optional_params: _Options = msgspec.field(default_factory=_Options)
    start_time: str | None = None
    custom_llm_provider: str | None = None


@dataclass(frozen=True, slots=True)
class TerminalBench:
    """Trials of Terminal-Bench."""

    about: ClassVar[str] = "Terminal-Bench trials (LiteLLM's records, one call a file)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({".messages", ".messages[].role", ".model", ".original_response", ".litellm_call_id"}),
        frozenset({".messages", ".messages[].role", ".model", ".original_response", ".optional_params"}),
    )
    folder: ClassVar[bool] = True

    @staticmethod
    def folder_of(path: Path) -> Path:
        """Return the folder of a record's trial; the folder it stands in if that is no episode."""
        folder = path.parent
        return next((above.parent for above in folder.parents if above.name == "agent-logs"), folder)

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        if files:
            trial = self.folder_of(files[0])
            yield from conversations(_requests(sorted(files, key=_number), problems), trial.name, str(trial))


def _number(path: Path) -> int:
    """Return the number of a record's episode; 0 outside of any."""
    episode = _EPISODE.fullmatch(path.parent.name)
    return int(episode[1]) if episode else 0


def _requests(files: Sequence[Path], problems: Problems) -> Iterator[LoggedRequest]:
    responses = Responses(problems)
    for path in files:
        place = Place(str(path), 1)
        with problems.collect():
            record = decode(whole_file(path, problems), _Record, place)
            name, answer = _answer(record, place, problems)
            if responses.new(name, place.at("original_response")):
                messages = chat_messages(record.messages, place.at("messages"), problems)
                yield LoggedRequest(place, messages, answer, chat_tools(record.optional_params.tools))


def _answer(record: _Record, place: Place, problems: Problems) -> tuple[str | None, Message]:
    """Return the id of the response, and the answer in it."""
    where, text = place.at("original_response"), record.original_response.encode()
    keys = decode(text, dict[str, msgspec.Raw], where).keys()
    name, options = f"m{len(record.messages)}", record.optional_params
    asked = Call(
        record.model.rpartition("/")[2],
        record.custom_llm_provider or record.model.rpartition("/")[0],
        started=iso_seconds(record.start_time, place.at("start_time")) if record.start_time else None,
        marks=tuple(chat_marks(record.messages, options.tools or ())),
        effort=effort(options.thinking, options.reasoning_effort),
    )
    if "choices" in keys:
        response = decode(text, ChatResponse, where)
        return response.id, chat_answer(response, name, where, problems, asked)
    said = decode(text, AnthropicResponse, where)
    return said.id, anthropic_answer(said, name, where, problems, asked)
