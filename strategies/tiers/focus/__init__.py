"""S9, `focus`: requests of at most 8192 tokens, however long the conversation (design document 004 §2.1, §5.4).

    tier = Focus(limit=8192, truncation="importance").open(services)
    request = tier.send(messages)        # after each new message, the whole conversation
    request.messages, request.over_budget

It works without the harness. `truncation.py` has the four ways to cut a conversation. Decision 21 has the figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ctxbench.metrics.tokens import PRIMING
from ctxbench.scenarios.model import Tool
from ctxbench.scenarios.spec import NonNegativeFloat, NonNegativeInt, PositiveInt, Share, ShareWithoutEnds
from ctxbench.scenarios.view import Messages

from ...base import Context, StrategyContext, SystemOverBudget, View
from ...events import OverBudget
from ...parts.language import ConversationLanguage, LanguageSetting
from ...parts.summarize import Summariser
from ...parts.units import Dialogue
from ..quota import Quota, Quotas
from .truncation import ConversationMerge, DynamicSummary, Importance, ImportanceWeights, Truncation

TruncationMode = Literal["tail_cutoff", "importance", "dynamic_summary", "conversation_merge"]


@dataclass(frozen=True, slots=True)
class Focus:
    """A hard limit: system messages, tool schemas and conversation together take at most `limit` tokens.

    System messages and schemas are never cut. `system` and `functions` tokens are reserved for them. Tokens that they
    do not use stay free; tokens that they take beyond their reserve come off the conversation. The conversation has the
    rest: 6141 of 8192 tokens with the document's shares (3 prime the reply). A longer conversation is cut in one of the
    document's four ways:

    - `tail_cutoff`: keep the newest messages that fit.
    - `importance`: keep the messages with the best scores, `semantic` · 0.4 + `recency` · 0.3 + `emphasis` · 0.2 +
      `structure` · 0.1, in their order (`truncation.Importance` defines the four parts). Only words are compared, at
      most `read` characters of a message, half from each end. It needs no embedder.
    - `dynamic_summary`: replace all but the newest messages that fit in `keep` of the room by a summary of at most
      `max_summary_tokens`. When the room is full again, the next messages are summarised with the previous summary.
    - `conversation_merge`: replace the oldest spans of `run` tokens, as many as necessary, by one message each, with
      sentences extracted from the span in at most `ratio` of its tokens (never over `run`). A merged message does not
      change until the oldest ones have to be dropped.

    Where the document is silent, or providers would reject the request:

    - "Functions" are the schemas of the tools offered. Calls and results are conversation, and stay or go together.
    - The newest message stays, with its call, and the user message that opened the turn: providers reject requests that
      begin otherwise. If they do not fit in the conversation's share, they may use the reserves; if both do not fit in
      the limit, the user message goes.
    - If the newest message does not fit in the limit, the request is over budget (OverBudget). A replay has no empty
      request: it sends the system messages then. System messages and schemas that alone are over it are an error.
    - Summaries and merged messages are headed in `language`; "auto" is that of most user messages at the first of them.
    - `warning` and `soft` are shares of the limit. The uncut conversation with its reserves is measured by them:
      LimitReached is recorded whenever it rises to the warning, to the soft limit or over the limit, or falls below.
    """

    limit: PositiveInt = 8192
    truncation: TruncationMode = "importance"
    system: NonNegativeInt = 1024
    functions: NonNegativeInt = 1024
    warning: float = 0.8
    soft: float = 0.95
    semantic: NonNegativeFloat = 0.4
    recency: NonNegativeFloat = 0.3
    emphasis: NonNegativeFloat = 0.2
    structure: NonNegativeFloat = 0.1
    read: PositiveInt = 300
    keep: ShareWithoutEnds = 0.5
    max_summary_tokens: PositiveInt = 500
    temperature: NonNegativeFloat = 0.3
    summariser: str = ""
    run: PositiveInt = 1000
    ratio: Share = 0.25
    language: LanguageSetting = "auto"

    copyable: ClassVar[bool] = True
    fails: ClassVar[str] = "a tool's result alone is longer than the limit: every request with it is over budget"
    family: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        Quota(self.limit, self.soft, self.warning)
        if (room := self.limit - self.reserved(0, 0)) < 1:
            shares = f"system={self.system} and functions={self.functions}"
            raise ValueError(f"limit={self.limit} leaves no tokens for the conversation beside {shares}")
        if self.truncation == "dynamic_summary" and self.max_summary_tokens > (1 - self.keep) * room:
            raise ValueError(
                f"max_summary_tokens={self.max_summary_tokens} does not fit: the conversation has {room} tokens, and "
                f"keep={self.keep} of them are for its newest messages"
            )

    @property
    def budget(self) -> int:
        return self.limit

    def reserved(self, system: int, functions: int) -> int:
        """Return the tokens not available to the conversation: each reserve or what exceeds it, and the priming."""
        return PRIMING + max(self.system, system) + max(self.functions, functions)

    def open(self, services: StrategyContext) -> FocusSession:
        truncation: Truncation
        match self.truncation:
            case "tail_cutoff":
                truncation = Truncation(services)
            case "importance":
                weights = ImportanceWeights(self.semantic, self.recency, self.emphasis, self.structure)
                truncation = Importance(services, weights, self.read)
            case "dynamic_summary":
                truncation = DynamicSummary(services, Summariser.of(self, "focus"), self.keep)
            case "conversation_merge":
                truncation = ConversationMerge(services, self.run, self.ratio, ConversationLanguage(self.language))
        return FocusSession(self, truncation, services)

    def start(self, services: StrategyContext) -> View:
        tier = self.open(services)

        def view(context: Context) -> Context:
            history = context.messages
            request = tier.send(history, context.tools)
            if request.over_budget is not None:
                return context.sending(services.systems(history))
            return context if request.messages is history else context.sending(request.messages)

        return view


TIER = "focus"


@dataclass(frozen=True, slots=True)
class Focused:
    """One request."""

    messages: Messages
    """In order, summaries and merged messages included. Empty if the request is over budget."""
    used: int  # tokens of the request as a provider counts them
    over_budget: OverBudget | None = None  # set if no request fits: the newest message is over the limit


class FocusSession:
    """The Focus tier of one conversation. Every call is given the whole conversation."""

    def __init__(self, focus: Focus, truncation: Truncation, services: StrategyContext) -> None:
        self._focus, self._truncation, self._services = focus, truncation, services
        self._dialogue = Dialogue(services)
        self._quotas = Quotas({TIER: Quota(focus.limit, focus.soft, focus.warning)}, services.record)
        self._last: tuple[Messages, tuple[Tool, ...], int, Focused] | None = None

    def send(self, history: Messages, tools: tuple[Tool, ...] = (), spare: int = 0) -> Focused:
        """Return the request for a conversation. The same conversation gives the same request.

        If the conversation has to be cut, `spare` tokens are left free for the caller, as far as the newest message
        allows.
        """
        if self._last is None or self._last[:3] != (history, tools, spare):
            self._last = history, tools, spare, self._cut(history, tools, spare)
        return self._last[3]

    def _cut(self, history: Messages, tools: tuple[Tool, ...], spare: int) -> Focused:
        services, limit, dialogue = self._services, self._focus.limit, self._dialogue
        same = dialogue.read(history)
        conversation = dialogue.messages
        self._truncation.read(conversation, same)
        system, functions = services.total(services.systems(history)), services.schemas(tools)
        total = services.total(conversation)
        reserved = self._focus.reserved(system, functions)
        self._quotas.want(TIER, reserved + total)
        start = dialogue.units.starts[-1] if conversation else 0
        newest = services.total(conversation[start:])
        parts = system + functions
        fixed = parts and PRIMING + parts  # an empty request primes no reply
        if fixed > limit:
            raise SystemOverBudget(fixed, limit, "system messages and tool schemas")
        smallest = PRIMING + parts + newest if conversation else fixed
        if smallest > limit:
            over_budget = OverBudget("the newest message does not fit", smallest, limit)
            services.record(over_budget)
            return Focused(Messages(), 0, over_budget)
        least, opening = newest, services.opening(conversation, start)
        if opening is not None:
            turn = newest + services.tokens(conversation[opening])
            least = turn if PRIMING + parts + turn <= limit else newest
        room = max(limit - reserved, least)
        if total <= room:
            return Focused(history, smallest + total - newest)
        sent = self._truncation.cut(history, dialogue, max(room - spare, least))
        return Focused(sent, PRIMING + functions + services.total(sent))
