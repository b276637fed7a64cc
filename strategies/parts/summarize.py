"""Summaries that a model writes: what it is shown, how a bad reply is handled.

The heading of a summary, and the rule that the earlier summary is summarised along with the new messages, are from
design document 000 §3.2, merging from 003 §5.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxbench.metrics.language import Language, language_of
from ctxbench.scenarios.model import Message

from ..base import ModelError, Prompt, StrategyContext, texts
from ..events import CUT, USED, Failed, PromptKind
from .language import ConversationLanguage
from .passages import cut

PROMPTS = texts("summary_prompt")  # the Chinese is that of 000 §3.2; 003 has no prompt
HEADINGS = texts("summary_heading")
CALLS = texts("tool_call")
KEPT = "what it would have replaced is kept, while it fits"


@dataclass(frozen=True, slots=True)
class Summariser:
    """How a strategy has its summaries written.

    The model is shown one line per message, `role: text`. For a message without text the design shows `[tool call]`
    alone; here the calls themselves follow, since an agent's history is mostly calls. `max_input_tokens` limits what is
    shown to the earlier summary and the newest messages that fit beside it (if none fits, the start of the newest).

    A reply that was cut at its limit, or refuses, is no summary, so nothing is replaced by it. A whole one over
    `max_tokens` in the run's encoding is cut after the last sentence that fits (else word, else character). A reply in
    another language than `language`, though the material is in it, is used. All three are recorded as Failed.
    """

    name: str  # the strategy's name, from which the ids of the summaries are made
    language: ConversationLanguage
    max_tokens: int
    model: str  # empty = the run's summariser
    max_input_tokens: int | None = None
    temperature: float = 0.3
    instructions: Mapping[Language, str] = field(default_factory=lambda: PROMPTS)
    """`{conversation}` is replaced by the material, `{limit}` by `max_tokens`."""
    kind: PromptKind = "separate"  # how the summary would be asked for in production, by which it is billed
    max_result: int | None = None  # characters of a tool's result that the model is shown; None = all

    @classmethod
    def of(cls, settings: Any, name: str, **others: Any) -> Summariser:
        """Return the summariser that the parameters of a strategy ask for."""
        same = {
            field: getattr(settings, field) for field in ("max_input_tokens", "temperature") if hasattr(settings, field)
        }
        language = ConversationLanguage(settings.language)
        return cls(name, language, settings.max_summary_tokens, settings.summariser, **same, **others)

    def write(
        self, services: StrategyContext, before: Message | None, messages: Sequence[Message], instead: str = KEPT
    ) -> str | None:
        """Return a summary of the earlier summary, if there is one, and of the messages.

        None if the model failed, which is recorded with what is done `instead`.
        """
        language = self.language.decided
        earlier = () if before is None else (before,)
        lines = [self._line(message) for message in messages]
        material = self._shown(services, [message.text for message in earlier], lines)
        instruction, about = self.instructions[language].replace("{limit}", str(self.max_tokens)), (*earlier, *messages)
        prompt = Prompt(instruction, material, self.max_tokens, about, self.temperature, self.model, self.kind)
        try:
            text = services.complete(prompt).strip().removeprefix(HEADINGS[language]).strip()
            if not text:
                raise ModelError("the reply has a heading and nothing under it")
        except ModelError as error:
            services.record(Failed("summary", str(error), instead))
            return None
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
