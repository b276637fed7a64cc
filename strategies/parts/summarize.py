"""Summaries that a model writes: what it is asked and shown, what is done with a bad reply, summaries of summaries.

`[之前对话摘要]` and the rule that the earlier summary is summarised along with what came since are from design
document 000 §3.2, merging from 003 §5.1, summaries of summaries from 003 §10.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...metrics.language import HAN, Language, language_of
from ...scenarios.model import Message
from ...scenarios.view import Messages
from ..base import ModelError, Prompt, StrategyContext
from ..events import CUT, USED, Failed, Summarised
from .units import at_least

HEADINGS: dict[Language, str] = {"zh": "[之前对话摘要]", "en": "[Summary of the conversation so far]"}
CALLS: dict[Language, str] = {"zh": "[工具调用]", "en": "[tool call]"}

_ENDS = (re.compile(r"[.!?](?=\s)|[。！？；\n]"), re.compile(rf"(?=\s)|[{HAN}]"), re.compile(r"(?s)."))
"""Where a text may be cut: after a sentence, else after a word, else anywhere."""


@dataclass(frozen=True, slots=True)
class Summariser:
    """How a strategy has its summaries written.

    The model is shown a line a message, `role: text`, as the document does. Where the document has `[工具调用]` for a
    message without text, the calls themselves are shown: an agent's history is mostly calls. `max_input_tokens` limits
    what is shown to the earlier summary and the newest messages that fit beside it (if none does, the start of the
    newest).

    A reply over `max_tokens` is cut after the last sentence that fits (else word, else character). A reply in the
    other language than `language`, though the material is in it, is used. Both are recorded as Failed.
    """

    name: str
    """Of the strategy: its messages are named after it."""
    instruction: str
    """`{conversation}` stands where the material goes, `{limit}` for `max_tokens`."""
    language: Language
    max_tokens: int
    max_input_tokens: int | None
    temperature: float
    model: str

    def __post_init__(self) -> None:
        at_least(1, max_summary_tokens=self.max_tokens, max_input_tokens=self.max_input_tokens)
        at_least(0, temperature=self.temperature)

    def write(self, desk: StrategyContext, before: Message | None, messages: Sequence[Message]) -> str:
        """A summary of the earlier summary, if there is one, and the messages. Raises ModelError."""
        earlier = () if before is None else (before,)
        material = self._shown(desk, [each.text for each in earlier], [self._line(message) for message in messages])
        reply = desk.complete(
            Prompt(
                self.instruction.replace("{limit}", str(self.max_tokens)),
                material,
                self.max_tokens,
                (*earlier, *messages),
                self.temperature,
                self.model,
            )
        )
        text = reply.strip().removeprefix(HEADINGS[self.language]).strip()
        if not text:
            raise ModelError("the reply has a heading and nothing under it")
        if language_of(text) != self.language == language_of("\n".join(material)):
            desk.record(Failed("summary", f"the reply is not in the language asked for, {self.language}", USED))
        tokens = desk.text_tokens(text)
        if tokens > self.max_tokens:
            desk.record(Failed("summary", f"the reply has {tokens} tokens, over {self.max_tokens}", CUT))
            text = cut(text, self.max_tokens, desk.text_tokens)
        return text

    def message(self, name: str, text: str) -> Message:
        """The system message that a summary is sent as. `name` makes its id unique."""
        return Message(f"{self.name}:{name}", "system", f"{HEADINGS[self.language]}\n{text}")

    def _line(self, message: Message) -> str:
        if message.role == "system":  # a summary
            return message.text
        calls = [f"{CALLS[self.language]} {call.name} {call.arguments}" for call in message.calls]
        return f"{message.role}: {' '.join([message.text, *calls] if message.text else calls)}"

    def _shown(self, desk: StrategyContext, earlier: list[str], lines: list[str]) -> tuple[str, ...]:
        if self.max_input_tokens is None:
            return (*earlier, *lines)
        room = self.max_input_tokens - sum(map(desk.text_tokens, earlier))
        start = len(lines)
        while start and desk.text_tokens(lines[start - 1]) <= room:
            start -= 1
            room -= desk.text_tokens(lines[start])
        if start == len(lines):
            return (*earlier, cut(lines[-1], room, desk.text_tokens))
        return (*earlier, *lines[start:])


class RunningSummary:
    """A conversation's summary so far: one running summary a level.

    Each level takes in what comes, merged with what it has. When the first has done so `fan_in` times, the level above
    takes it in and it begins anew; the highest goes on for ever. One level is the document's single merged summary.
    What a higher level holds is rewritten `fan_in` times less often: facts go through fewer rounds, and it stays in a
    prompt cache for longer.
    """

    __slots__ = ("_desk", "_fan_in", "_levels", "_stands_for", "_summariser", "_taken", "messages")

    def __init__(self, desk: StrategyContext, summariser: Summariser, levels: int = 1, fan_in: int = 4) -> None:
        self._desk, self._summariser, self._fan_in = desk, summariser, fan_in
        self._levels: list[Message | None] = [None] * levels
        self._stands_for: list[tuple[str, ...]] = [()] * levels
        self._taken = [0] * levels
        self.messages = Messages()
        """The summaries, the highest level (the oldest messages) first."""

    def take(self, messages: Messages) -> bool:
        """Summarise these as well. False if that failed: nothing has changed, and it was recorded."""
        if not self._absorb(0, tuple(messages), tuple(message.id for message in messages)):
            return False
        for level in range(len(self._levels) - 1):
            below = self._levels[level]
            if below is None or self._taken[level] < self._fan_in:
                break
            if not self._absorb(level + 1, (below,), self._stands_for[level]):
                break
            self._levels[level], self._stands_for[level], self._taken[level] = None, (), 0
        self.messages = Messages.of(tuple(each for each in reversed(self._levels) if each is not None))
        return True

    def _absorb(self, level: int, messages: tuple[Message, ...], names: tuple[str, ...]) -> bool:
        try:
            text = self._summariser.write(self._desk, self._levels[level], messages)
        except ModelError as error:
            instead = "the level below goes on" if level else "what it would have replaced is kept, while it fits"
            self._desk.record(Failed("summary", str(error), instead))
            return False
        self._desk.record(Summarised(names, text, level + 1, self._summariser.name))
        self._levels[level] = self._summariser.message(f"{level + 1}:{names[-1]}", text)
        self._stands_for[level] += names
        self._taken[level] += 1
        return True


def cut(text: str, limit: int, count: Callable[[str], int]) -> str:
    """The longest start of a text within `limit` tokens, up to the end of a sentence, else of a word, else anywhere."""
    if count(text) <= limit:
        return text
    for ends in _ENDS:
        places = [found.end() for found in ends.finditer(text)]
        fits = bisect_right(places, limit, key=lambda at: count(text[:at].rstrip()))
        while fits and count(text[: places[fits - 1]].rstrip()) > limit:  # a longer text may have fewer tokens
            fits -= 1
        if fits and text[: places[fits - 1]].strip():
            return text[: places[fits - 1]].rstrip()
    return ""
