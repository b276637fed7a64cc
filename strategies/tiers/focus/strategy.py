"""S9, `focus`: what is sent takes at most 8192 tokens, whatever was said (design document 004 §2.1, §5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ....metrics.language import Language
from ....metrics.tokens import TokenCounter
from ...base import Context, Desk, View
from ...parts.bounds import at_least
from ...parts.summarising import Summariser
from ...summary import PROMPTS
from ..quota import Quota
from .alone import Alone
from .importance import Importance, Weights
from .merged import Merged
from .newest import Tail
from .opened import Opened, Truncation
from .space import Space
from .summarised import Summarised

Truncating = Literal["tail_cutoff", "importance", "dynamic_summary", "conversation_merge"]


@dataclass(frozen=True, slots=True)
class Focus:
    """All that is sent takes at most `limit` tokens: system messages, tool schemas, conversation.

    System messages and schemas are never cut. `system` and `functions` tokens are reserved for them: what they do not
    use stays free, what they take beyond comes off the conversation, which has the rest: 6141 of 8192 tokens with the
    document's shares (3 prime the reply). Over that it is cut, by one of the document's four ways:

    - `tail_cutoff`: the newest messages that fit stay.
    - `importance`: what scores best stays, `semantic` · 0.4 + `recency` · 0.3 + `emphasis` · 0.2 + `structure` · 0.1,
      in the order it was said. What the four are is said in `strategies/tiers/focus/importance.py`; only words are
      compared, at most `read` characters of a message, half from each end. No embedder.
    - `dynamic_summary`: a summary of at most `max_summary_tokens` stands for all but the newest that fit in `keep` of
      the room; when it is full again, these are summarised with the summary before.
    - `conversation_merge`: the oldest stretches of `run` tokens, as many as must, become one message each, with
      sentences extracted from it in at most `ratio` of its tokens (never over `run`). It is made once and stays the
      same, until the oldest must go.

    Where the document is silent or no provider would take what it says:

    - "Functions" are the schemas of the tools offered. Calls and results are conversation, and stay or go together.
    - The newest message stays, with its call. If it does not fit in the conversation's share the reserves give way; if
      it does not fit in the limit, or what is never cut does not, the request is refused (Refused). In a replay, which
      has no empty request, system messages are sent then, however long they are.
    - The user message that opened the turn stays where it fits: providers refuse requests that begin otherwise.
    - `warning` and `soft` are shares of the limit. What was said is measured by them, reserves included: Crossed is
      recorded when it comes to the warning, to the soft limit, and when it is over the limit, and when it is below
      again.
    """

    limit: int = 8192
    truncation: Truncating = "importance"
    system: int = 1024
    functions: int = 1024
    warning: float = 0.8
    soft: float = 0.95
    semantic: float = 0.4
    recency: float = 0.3
    emphasis: float = 0.2
    structure: float = 0.1
    read: int = 300
    keep: float = 0.5
    max_summary_tokens: int = 500
    temperature: float = 0.3
    summariser: str = ""
    run: int = 1000
    ratio: float = 0.25
    language: Language = "zh"

    copyable: ClassVar[bool] = True
    source: ClassVar[str] = "004 §2.1, §3, §5.4"
    fails: ClassVar[str] = "a tool's result alone is longer than the limit: every request with it is refused"

    def __post_init__(self) -> None:
        at_least(1, limit=self.limit, read=self.read, run=self.run)
        at_least(0, system=self.system, functions=self.functions)
        at_least(0, semantic=self.semantic, recency=self.recency, emphasis=self.emphasis, structure=self.structure)
        at_least(0, at_most=1, ratio=self.ratio)
        self._quota()
        self._summariser()
        if not 0 < self.keep < 1:
            raise ValueError(f"keep must be above 0 and below 1, not {self.keep}")
        if (room := self._space().room(0, 0)) < 1:
            shares = f"system={self.system} and functions={self.functions}"
            raise ValueError(f"limit={self.limit} leaves no tokens for the conversation beside {shares}")
        if self.truncation == "dynamic_summary" and self.max_summary_tokens > (1 - self.keep) * room:
            raise ValueError(
                f"max_summary_tokens={self.max_summary_tokens} does not fit: the conversation has {room} tokens, and "
                f"keep={self.keep} of them are for its newest messages"
            )

    @property
    def budget(self) -> int:
        """Tokens that what is sent never exceeds."""
        return self.limit

    def open(self, desk: Desk | None = None, counter: TokenCounter | None = None) -> Opened:
        """The tier of one conversation. Without a desk it counts with `counter` (by default o200k_base) and extracts
        its summaries itself.
        """
        desk = desk or Alone(counter or TokenCounter())
        return Opened(self._space(), self._quota(), self._truncation(desk), desk)

    def start(self, desk: Desk) -> View:
        tier = self.open(desk)

        def view(context: Context) -> Context:
            history = context.messages
            found = tier.send(history, context.tools)
            if found.refused is not None:
                return context.sending(desk.systems(history))
            return context if found.messages is history else context.sending(found.messages)

        return view

    def _space(self) -> Space:
        return Space(self.limit, self.system, self.functions)

    def _quota(self) -> Quota:
        return Quota(self.limit, self.soft, self.warning)

    def _truncation(self, desk: Desk) -> Truncation:
        match self.truncation:
            case "tail_cutoff":
                return Tail(desk)
            case "importance":
                weights = Weights(self.semantic, self.recency, self.emphasis, self.structure)
                return Importance(desk, weights, self.read)
            case "dynamic_summary":
                return Summarised(desk, self._summariser(), self.keep)
            case "conversation_merge":
                return Merged(desk, self.run, self.ratio, self.language)

    def _summariser(self) -> Summariser:
        return Summariser(
            "focus",
            PROMPTS[self.language],
            self.language,
            self.max_summary_tokens,
            None,
            self.temperature,
            self.summariser,
        )
