"""Summaries that a model writes: what it is shown, how a bad reply is handled, summaries of summaries.

The heading of a summary, and the rule that the earlier summary is summarised along with the new messages, are from
design document 000 §3.2, merging from 003 §5.1, summaries of summaries from 003 §10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ctxbench.metrics.language import Language, language_of
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages

from ..base import LongTermMemory, ModelError, Prompt, StoredSummary, StrategyContext, texts
from ..events import CUT, USED, Failed, PromptKind, Summarised
from .language import ConversationLanguage
from .passages import cut

PROMPTS = texts("summary_prompt")
"""The Chinese is that of 000 §3.2; 003 has no prompt."""
HEADINGS = texts("summary_heading")
CALLS = texts("tool_call")


@dataclass(frozen=True, slots=True)
class Summariser:
    """How a strategy has its summaries written.

    The model is shown one line per message, `role: text`. For a message without text the design shows `[tool call]`
    alone; here the calls themselves follow, since an agent's history is mostly calls. `max_input_tokens` limits what is
    shown to the earlier summary and the newest messages that fit beside it (if none fits, the start of the newest).

    A reply that was cut at its limit, or refuses, raises ModelError, so nothing is replaced by it. A whole one over
    `max_tokens` in the run's encoding is cut after the last sentence that fits (else word, else character). A reply in
    another language than `language`, though the material is in it, is used. Both are recorded as Failed.
    """

    name: str
    """The strategy's name, from which the ids of the summaries are made."""
    language: ConversationLanguage
    max_tokens: int
    model: str
    """Empty = the run's summariser."""
    max_input_tokens: int | None = None
    temperature: float = 0.3
    instructions: Mapping[Language, str] = field(default_factory=lambda: PROMPTS)
    """`{conversation}` is replaced by the material, `{limit}` by `max_tokens`."""
    kind: PromptKind = "separate"
    """How the summary would be asked for in production, by which it is billed."""
    max_result: int | None = None
    """Characters of a tool's result that the model is shown; None = all."""

    def write(self, services: StrategyContext, before: Message | None, messages: Sequence[Message]) -> str:
        """Return a summary of the earlier summary, if there is one, and of the messages. Raises ModelError."""
        language = self.language.decided
        earlier = () if before is None else (before,)
        lines = [self._line(message) for message in messages]
        material = self._shown(services, [message.text for message in earlier], lines)
        instruction, about = self.instructions[language].replace("{limit}", str(self.max_tokens)), (*earlier, *messages)
        reply = services.complete(
            Prompt(instruction, material, self.max_tokens, about, self.temperature, self.model, self.kind)
        )
        text = reply.strip().removeprefix(HEADINGS[language]).strip()
        if not text:
            raise ModelError("the reply has a heading and nothing under it")
        if language_of(text) != language == language_of("\n".join(material)):
            services.record(Failed("summary", f"the reply is not in the language asked for, {language}", USED))
        tokens = services.text_tokens(text)
        if tokens > self.max_tokens:
            services.record(Failed("summary", f"the reply has {tokens} tokens, over {self.max_tokens}", CUT))
            text = cut(text, self.max_tokens, services.text_tokens)
        return text

    def message(self, name: str, text: str) -> Message:
        """Return the system message of a summary. `name` makes its id unique."""
        return Message(f"{self.name}:{name}", "system", self.headed(text))

    def headed(self, text: str) -> str:
        """Return the text of a summary under its heading."""
        return f"{HEADINGS[self.language.decided]}\n{text}"

    def _line(self, message: Message) -> str:
        if message.role == "system":  # a summary
            return message.text
        if message.role == "tool":
            return f"tool: {message.text[: self.max_result]}"
        calls = [f"{CALLS[self.language.decided]} {call.name} {call.arguments}" for call in message.calls]
        return f"{message.role}: {' '.join([message.text, *calls] if message.text else calls)}"

    def _shown(self, services: StrategyContext, earlier: list[str], lines: list[str]) -> tuple[str, ...]:
        if self.max_input_tokens is None:
            return (*earlier, *lines)
        room = self.max_input_tokens - sum(map(services.text_tokens, earlier))
        start = len(lines)
        while start and services.text_tokens(lines[start - 1]) <= room:
            start -= 1
            room -= services.text_tokens(lines[start])
        if start == len(lines):
            return (*earlier, cut(lines[-1], room, services.text_tokens))
        return (*earlier, *lines[start:])


class RunningSummary:
    """The summary of a conversation so far, at one or more levels.

    Each level merges new material into its summary. When the first has done so `fan_in` times, the level above takes
    its summary in and it begins anew; the highest level goes on for ever. One level is the design's single merged
    summary. A higher level is rewritten `fan_in` times less often: facts pass through fewer rounds, and the summary
    stays in a prompt cache for longer.
    """

    def __init__(
        self,
        services: StrategyContext,
        summariser: Summariser,
        levels: int = 1,
        fan_in: int = 4,
        memory: LongTermMemory | None = None,
    ) -> None:
        """Start without a summary. Each one that is written is stored in the `memory`, if there is one."""
        self._services, self._summariser, self._fan_in, self._memory = services, summariser, fan_in, memory
        self._levels: list[Message | None] = [None] * levels
        # Per level: the ids of the messages that its summary covers, and how often it has merged since it began.
        self._covered: list[tuple[str, ...]] = [()] * levels
        self._rounds = [0] * levels
        self.messages = Messages()
        """The summaries, the highest level (the oldest messages) first."""

    def read(self, history: Messages) -> None:
        """Take the history as it is now: the language of the summaries follows from it."""
        self._summariser.language.read(history)

    def take(self, messages: Messages) -> bool:
        """Merge the messages into the summary. False if that failed: then nothing has changed, and it was recorded."""
        if not self._absorb(0, tuple(messages), tuple(message.id for message in messages)):
            return False
        for level in range(len(self._levels) - 1):
            below = self._levels[level]
            if below is None or self._rounds[level] < self._fan_in:
                break
            if not self._absorb(level + 1, (below,), self._covered[level]):
                break
            self._levels[level], self._covered[level], self._rounds[level] = None, (), 0
        self.messages = Messages.of(tuple(summary for summary in reversed(self._levels) if summary is not None))
        return True

    def _absorb(self, level: int, messages: tuple[Message, ...], names: tuple[str, ...]) -> bool:
        try:
            text = self._summariser.write(self._services, self._levels[level], messages)
        except ModelError as error:
            instead = "the level below goes on" if level else "what it would have replaced is kept, while it fits"
            self._services.record(Failed("summary", str(error), instead))
            return False
        self._services.record(Summarised(names, text, level + 1, self._summariser.name))
        if self._memory is not None:
            self._memory.append(StoredSummary(names[-1], text))
        self._levels[level] = self._summariser.message(f"{level + 1}:{names[-1]}", text)
        self._covered[level] += names
        self._rounds[level] += 1
        return True
