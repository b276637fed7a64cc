"""S6, `cache_marks`: breakpoints that tell the provider's prompt cache to keep a prefix (design 000 §2.5, §3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, ClassVar, Literal

import msgspec

from ctxbench.scenarios.model import Tool
from ctxbench.scenarios.spec import NonNegativeInt
from ctxbench.scenarios.view import Messages, shared_prefix

from .base import Context, StrategyContext, View

MOST = 4
"""Marks that Anthropic takes in one request. The other providers cache automatically: marks change nothing there."""


@dataclass(frozen=True, slots=True)
class CacheMarks:
    """The same messages, with cache breakpoints on the system prompt and the memory after it.

    Only the leading system messages are marked, since the messages after them change: first the first of them (the
    system prompt, which changes least), then the last ones, which cover the most. With up to `marks` of them each has
    its own mark, so that a changed summary or changed facts do not take the system prompt's cache with them.

    A mark is set where everything up to it, tools too, takes at least `min_tokens`: a provider keeps no shorter
    prefix. That is 1024 for most models of Anthropic's, 512, 2048 or 4096 for some. With `count="chars4"`, the design's
    rule, the system message alone must have 4 · `min_tokens` characters: a short memory after a long prompt is never
    marked, nor are 3000 tokens of Chinese.

    `rolling` marks follow the newest messages: 1 = after the newest message that can carry a mark, as Anthropic's
    automatic placement does; 2 = also where that mark was at the call before, without which the rules of 2024, with no
    look-back, never read what the first mark wrote. They count among the `marks`.

    `provider` names the rules. Providers that cache automatically (openai, deepseek, gemini) get no marks; the design
    gives deepseek one, which it ignores. A later stage would drop the marks with their messages, so this must be the
    last stage of a chain, which keeps the budget of the stage before.
    """

    provider: Literal["anthropic", "openai", "deepseek", "gemini"] = "anthropic"
    marks: Annotated[int, msgspec.Meta(ge=1, le=MOST)] = MOST
    min_tokens: NonNegativeInt = 1024
    count: Literal["exact", "chars4"] = "exact"
    rolling: Annotated[int, msgspec.Meta(ge=0, le=2)] = 0

    copyable: ClassVar[bool] = True
    only_marks: ClassVar[bool] = True
    fails: ClassVar[str] = "a stage before it rewrites the start of the context: every write is paid and never read"
    family: ClassVar[str] = "caching"

    def __post_init__(self) -> None:
        if self.rolling > self.marks:
            raise ValueError(f"rolling={self.rolling} is more than marks={self.marks}: it is how many of them follow")

    def start(self, services: StrategyContext) -> View:
        # The context at the call before, and the places of the newest message that could carry a mark then and before.
        known, newest, older = Messages(), -1, -1
        # Tokens of the texts of the tools, which come before all messages; the frame of the schemas is not counted.
        priced: tuple[tuple[Tool, ...], int] = (), 0

        def view(context: Context) -> Context:
            nonlocal priced, known, newest, older
            sent = context.messages
            if self.provider != "anthropic":
                return Context(sent, (), context.tools)
            if context.tools is not priced[0]:
                texts = (text for tool in context.tools for text in (tool.name, tool.description, tool.parameters))
                priced = context.tools, sum(map(services.text_tokens, texts))
            before = priced[1]

            def long_enough(at: int) -> bool:
                return services.total(sent[: at + 1]) + before >= self.min_tokens

            same = shared_prefix(known, sent)
            # The same context again (asked twice at one place) is no new call: the marks stay where they are.
            if self.rolling and not same == len(sent) == len(known):
                older = newest if newest < same else -1  # it counts only if everything up to it is unchanged
                backwards = range(len(sent) - 1, -1, -1)
                newest = next((at for at in backwards if (m := sent[at]).text or m.calls or m.role == "tool"), -1)
                known = sent
            places = [at for at in dict.fromkeys((older, newest)) if at >= 0]
            rolling = [at for at in places[-self.rolling :] if long_enough(at)]
            # The leading system messages that can carry a mark: an empty text cannot.
            leading = takewhile(lambda at: sent[at].role == "system", range(len(sent)))
            places = [at for at in leading if sent[at].text]
            if self.count == "exact":
                places = [at for at in places if long_enough(at)]
            else:
                places = [at for at in places if len(sent[at].text) >= 4 * self.min_tokens]
            most = self.marks - len(rolling)
            if len(places) > most:  # the first and the last ones
                places = [places[0], *places[len(places) - most + 1 :]] if most > 0 else []
            return Context(sent, tuple(sorted({*places, *rolling})), context.tools)

        return view
