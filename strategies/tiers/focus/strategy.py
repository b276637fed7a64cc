"""S9, `focus`: what is sent takes at most 8192 tokens, whatever was said (design document 004 §2.1, §5.4)."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from ....metrics.extract import extract
from ....metrics.grounding import said as spelled
from ....metrics.language import Language
from ....metrics.tokens import TokenCounter
from ....scenarios.model import Message
from ....scenarios.view import Messages
from ...base import Context, StrategyContext, View
from ...parts.rolling_summary import Rolling
from ...parts.summarize import RunningSummary, Summariser
from ...parts.units import Spoken, at_least, newest
from ...summary import PROMPTS
from ..quota import Quota
from .importance import Importance, ImportanceWeights
from .session import FocusSession, Tail, TokenBudget, Truncation, fitted, says
from .standalone import StandaloneContext

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
      it does not fit in the limit, or what is never cut does not, the request is refused (OverBudget). In a replay, which
      has no empty request, system messages are sent then, however long they are.
    - The user message that opened the turn stays where it fits: providers refuse requests that begin otherwise.
    - `warning` and `soft` are shares of the limit. What was said is measured by them, reserves included: LimitReached is
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

    def open(self, desk: StrategyContext | None = None, counter: TokenCounter | None = None) -> FocusSession:
        """The tier of one conversation. Without a desk it counts with `counter` (by default o200k_base) and extracts
        its summaries itself.
        """
        desk = desk or StandaloneContext(counter or TokenCounter())
        return FocusSession(self._space(), self._quota(), self._truncation(desk), desk)

    def start(self, desk: StrategyContext) -> View:
        tier = self.open(desk)

        def view(context: Context) -> Context:
            history = context.messages
            found = tier.send(history, context.tools)
            if found.refused is not None:
                return context.sending(desk.systems(history))
            return context if found.messages is history else context.sending(found.messages)

        return view

    def _space(self) -> TokenBudget:
        return TokenBudget(self.limit, self.system, self.functions)

    def _quota(self) -> Quota:
        return Quota(self.limit, self.soft, self.warning)

    def _truncation(self, desk: StrategyContext) -> Truncation:
        match self.truncation:
            case "tail_cutoff":
                return Tail(desk)
            case "importance":
                weights = ImportanceWeights(self.semantic, self.recency, self.emphasis, self.structure)
                return Importance(desk, weights, self.read)
            case "dynamic_summary":
                return DynamicSummary(desk, self._summariser(), self.keep)
            case "conversation_merge":
                return ConversationMerge(desk, self.run, self.ratio, self.language)

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


FORM: dict[Language, str] = {"zh": "[合并的对话]\n{text}", "en": "[Merged conversation]\n{text}"}
READ = 20_000
"""Characters of a message that sentences are extracted from, from its start."""


class _Run(NamedTuple):
    """A stretch of the spoken messages."""

    stop: int
    """Where it ends."""
    merged: Message | None
    """What stands for it; None if nothing of it fits into its share."""
    tokens: int
    """Of that."""


class ConversationMerge:
    """The oldest stretches, as many as must, are sent as one system message each: what matters of them, extracted.

    The document has the name only. A stretch is units of at least `run` tokens together: what stands for it takes at
    most `ratio` of its tokens, heading included, and at most `run`. No model is asked, and a stretch is merged once:
    what stands for it stays as it is. If all but the newest are merged and it is still too much, the oldest merged ones
    go.
    """

    __slots__ = ("_desk", "_form", "_ratio", "_run", "_runs")

    def __init__(self, desk: StrategyContext, run: int, ratio: float, language: Language) -> None:
        self._desk, self._run, self._ratio, self._form = desk, run, ratio, FORM[language]
        self._runs: list[_Run] = []

    def look(self, said: Messages, same: int) -> None:  # noqa: ARG002
        """Forget the stretches that are not as they were."""
        while self._runs and self._runs[-1].stop > same:
            self._runs.pop()

    def cut(self, history: Messages, spoken: Spoken, room: int) -> Messages:
        """System messages, what is merged, the rest."""
        runs = self._fewest(spoken, room)
        start = spoken.place(runs[-1].stop if runs else 0)
        rest = self._spoken(newest(self._desk, history, start).tail)
        merged = sum(run.tokens for run in runs)
        while runs and merged + rest > room:
            merged -= runs.pop(0).tokens
        head, tail = fitted(self._desk, history, spoken.messages[-1], start, room - merged)
        return head + Messages.of(tuple(run.merged for run in runs if run.merged is not None)) + tail

    def _fewest(self, spoken: Spoken, room: int) -> list[_Run]:
        """The oldest stretches that must be merged so that all fits, as far as it can."""
        said, starts = spoken.messages, spoken.units.starts
        self._whole(starts)
        left, start = self._desk.total(said), 0
        merged = count = 0
        while left + merged > room and (count < len(self._runs) or self._one_more(said, starts)):
            run = self._runs[count]
            left -= self._desk.total(said[start : run.stop])
            merged += run.tokens
            start, count = run.stop, count + 1
        return self._runs[:count]

    def _whole(self, starts: list[int]) -> None:
        """Forget stretches that a late result has joined with what comes after them."""
        for number, run in enumerate(self._runs):
            at = bisect_left(starts, run.stop)
            if at == len(starts) or starts[at] != run.stop:
                del self._runs[number:]
                break

    def _one_more(self, said: Messages, starts: list[int]) -> bool:
        """Merge the next stretch. False if there is none: the newest unit is never merged."""
        start = self._runs[-1].stop if self._runs else 0
        first = bisect_left(starts, start)
        for stop in starts[first + 1 :]:
            stretch = said[start:stop]
            tokens = self._desk.total(stretch)
            if tokens >= self._run:
                made = self._made(stretch, min(int(self._ratio * tokens), self._run))
                self._runs.append(_Run(stop, made, self._desk.tokens(made) if made is not None else 0))
                return True
        return False

    def _made(self, stretch: Messages, most: int) -> Message | None:
        """What stands for a stretch, in at most so many tokens."""
        empty = Message(f"focus:{stretch[-1].id}", "system", self._form)
        room = most - self._desk.tokens(empty)
        lines = [f"{message.role}: {spelled(message)[:READ]}" for message in stretch]
        while room > 0 and (text := extract(lines, room, self._desk.text_tokens)):
            made = Message(empty.id, "system", self._form.replace("{text}", text))
            if (over := self._desk.tokens(made) - most) <= 0:
                return made
            room -= over  # a text may have more tokens where it stands than alone
        return None

    def _spoken(self, messages: Messages) -> int:
        """Tokens of those that are not the system's."""
        return self._desk.total(messages) - self._desk.total(self._desk.systems(messages))


class DynamicSummary:
    """Once more is said than fits, all but what the newest `keep` of the room holds is summarised, merged with the
    summary before. What is summarised stays so.
    """

    __slots__ = ("_desk", "_keep", "_rolling")

    def __init__(self, desk: StrategyContext, summariser: Summariser, keep: float) -> None:
        self._desk, self._keep = desk, keep
        self._rolling = Rolling(desk, RunningSummary(desk, summariser))

    def look(self, said: Messages, same: int) -> None:
        """What is summarised knows by itself what has changed."""

    def cut(self, history: Messages, spoken: Spoken, room: int) -> Messages:
        """System messages, the summary, the rest."""
        rolling, desk = self._rolling, self._desk
        rolling.read(history)
        budget = rolling.system_tokens + room
        for _ in range(2):  # a summary may be longer than what it stands for
            if rolling.tokens <= budget or not rolling.summarise(self._old(room)):
                break
        sent, last = rolling.sending(Context(history), budget).messages, spoken.messages[-1]
        if says(sent, last):
            return sent
        head, tail = fitted(desk, history, last, spoken.place(spoken.units.starts[-1]), room)
        return head + tail

    def _old(self, room: int) -> int:
        """How many of the messages that are not summarised are to be."""
        kept = self._rolling.kept
        return self._rolling.beyond(self._desk.fit(kept, int(self._keep * room)))
