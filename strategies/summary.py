"""S2, `summary` and `session_summary`: a summary of the old messages, then the newest messages unchanged.

`summary` is design document 003 §3.3 and §5 (multi-level: §10), `session_summary` is 000 §2.3 and §3.2. They differ in
when they summarise and how much they keep; both send the system messages, the summary as one more, the newest messages.

Both, where the documents are silent: a tool call and its results stay or go together, so rather more is kept than less.
If the model fails, nothing is replaced, the failure is recorded, and the next call tries again. If a stage before this
one takes away messages that the summary covers, the summary begins anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ctxbench.metrics.models import window_of
from ctxbench.metrics.tokens import FRAME, ROLE
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.spec import NonNegativeFloat, PositiveInt, Share, ShareWithoutEnds
from ctxbench.scenarios.view import Messages

from .base import Context, LongTermMemory, StoredSummary, StrategyContext, View
from .events import OverBudget, Summarised
from .parts.language import LanguageSetting
from .parts.summarize import KEPT, Summariser
from .parts.units import (
    Dialogue,
    OrphanedResults,
    require_one_limit,
    room_beside_systems,
    select_newest,
)


class RollingSummary:
    """A growing history whose first `covered` dialogue messages are summarised, and the context to send of it.

    The summary has one or more levels. Each merges new material into its summary. When the first has done so `fan_in`
    times, the level above takes its summary in and it begins anew; the highest level goes on for ever. One level is the
    design's single merged summary. A higher one is rewritten `fan_in` times less often: facts pass through fewer
    rounds, and the summary stays in a prompt cache for longer.
    """

    def __init__(
        self,
        services: StrategyContext,
        summariser: Summariser,
        user_first: bool = True,
        levels: int = 1,
        fan_in: int = 4,
        memory: LongTermMemory | None = None,
    ) -> None:
        """Start without a summary. Each one that is written is stored in the `memory`, if there is one."""
        self._summariser, self._user_first, self._fan_in, self._memory = summariser, user_first, fan_in, memory
        self._levels: list[Message | None] = [None] * levels
        # Per level: the ids of the messages that its summary covers, and how often it has merged since it began.
        self._merged: list[tuple[str, ...]] = [()] * levels
        self._rounds = [0] * levels
        self.summaries = Messages()
        """The highest level (the oldest messages) first."""
        self.covered = 0
        self.rest = self._history = Messages()
        """The dialogue messages that are not summarised."""
        self._services, self._dialogue, self._orphans = services, Dialogue(services), OrphanedResults(services)
        self._ids: set[str] = set()
        # Id of the user message that opened the turn that the rest continues, until it is summarised with its turn.
        self._opener = ""

    def read(self, history: Messages) -> None:
        """Take the history as it is now.

        A stage before this one may have dropped summarised messages from its start: the summary still covers them. One
        that comes again behind others is a message like any other.
        """
        same = self._dialogue.read(history)
        messages = self._dialogue.messages
        if same < self.covered:
            # Summarised a b c of a b c d e; now c d e comes: the first
            # that is not in the summary is d, so 1 message is covered.
            new = (at for at, m in enumerate(messages) if m.id not in self._ids and m.id != self._opener)
            self.covered = next(new, len(messages))
        self.rest, self._history = messages[self.covered :], history
        self._summariser.language.read(history)
        self._orphans.read(messages[max(same, self.covered) :])

    @property
    def system_tokens(self) -> int:
        """Tokens of the history's system messages."""
        return self._services.total(self._services.systems(self._history))

    @property
    def tokens(self) -> int:
        """Tokens of the messages that would be sent, without the user message that opened the turn."""
        return self.system_tokens + self._services.total(self.summaries) + self._services.total(self.rest)

    def upto(self, count: int) -> int:
        """Return how many of the first `count` unsummarised messages can go with calls and results together."""
        return max(0, self._dialogue.units.before(self.covered + count) - self.covered)

    def beyond(self, count: int) -> int:
        """Return the next number from `count` on that keeps calls and results together; the newest unit stays."""
        starts = self._dialogue.units.starts
        if not starts:
            return 0
        at = bisect_left(starts, self.covered + count)
        return max(0, starts[min(at, len(starts) - 1)] - self.covered)

    def summarise(self, count: int, again: int = 0, spare: int | None = None) -> bool:
        """Summarise the first `count` unsummarised messages. False if there are none, or if the model failed.

        The last `again` of them are sent behind the summary all the same, with the calls of their results. The user
        message that opened the turn of what stays is sent before it and not summarised, if it takes at most `spare`
        tokens (None = any number).
        """
        said, start, services = self._dialogue.messages, self.covered, self._services
        stays = self.upto(max(0, count - again)) if again else count
        opening = services.opening(said, start + stays) if self._user_first else None
        if opening is not None:
            fits = spare is None or services.tokens(said[opening]) <= spare
            opening = opening if fits and said[opening].id not in self._ids else None
        places = [at for at in range(start, start + count) if at != opening]
        earlier = services.opening(said, start) if self._opener else None
        if earlier is not None and earlier != opening and said[earlier].id == self._opener:
            places.insert(0, earlier)
        if not places or not self._absorb(0, [said[at] for at in places], tuple(said[at].id for at in places)):
            return False
        for level in range(len(self._levels) - 1):
            below = self._levels[level]
            if below is None or self._rounds[level] < self._fan_in:
                break
            if not self._absorb(level + 1, (below,), self._merged[level]):
                break
            self._levels[level], self._merged[level], self._rounds[level] = None, (), 0
        self.summaries = Messages.of(tuple(summary for summary in reversed(self._levels) if summary is not None))
        gone = [said[at] for at in places if at < start + stays]
        self._ids.update(message.id for message in gone)
        self._opener = "" if opening is None else said[opening].id
        self._orphans.note_summarised(gone)
        self.covered += stays
        self.rest = self.rest[stays:]
        return True

    def _absorb(self, level: int, messages: Sequence[Message], names: tuple[str, ...]) -> bool:
        """Merge messages into the summary of a level. False if that failed, which is recorded."""
        instead = "the level below goes on" if level else KEPT
        text = self._summariser.write(self._services, self._levels[level], messages, instead)
        if text is None:
            return False
        self._services.record(Summarised(names, text, level + 1, self._summariser.name))
        if self._memory is not None:
            self._memory.append(StoredSummary(names[-1], text))
        self._levels[level] = self._summariser.message(f"{level + 1}:{names[-1]}", text)
        self._merged[level] += names
        self._rounds[level] += 1
        return True

    def context(self, context: Context, budget: int | None) -> Context:
        """Return the context to send: system messages, summary, the rest, within the budget.

        If the rest continues a turn, the user message that opened it stays too, if `user_first` is set, it fits, and it
        is not summarised.
        """
        services, history, summary = self._services, context.messages, self.summaries
        if not self.covered and not summary and (budget is None or self.tokens <= budget):
            return context

        def newest(room: int | None) -> tuple[Messages, Messages]:
            at = self._dialogue.place(self.covered)
            return select_newest(services, history, at, room, self._user_first, self._ids)

        head, tail = newest(None)
        tokens = services.total(head) + services.total(summary) + services.total(tail)
        if budget is None or tokens <= budget:
            return context.sending(head + summary + tail)
        room = room_beside_systems(services, history, budget)
        services.record(OverBudget("what is not summarised is over it, with the summary", tokens, budget))
        head, tail = newest(room - services.total(summary))
        if not tail:
            head, tail = newest(room)
            if tail or services.total(summary) > room:
                summary = Messages()
        return context.sending(head + summary + tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SummarySettings:
    """The parameters of both: how summaries are written and stored, and whether the user message of a turn stays."""

    max_summary_tokens: PositiveInt = 500
    max_input_tokens: PositiveInt | None = None
    temperature: NonNegativeFloat = 0.3
    levels: PositiveInt = 1
    fan_in: PositiveInt = 4
    language: LanguageSetting = "auto"
    summariser: str = ""
    user_first: bool = True
    store: bool = True

    copyable: ClassVar[bool] = True
    shares_memory: ClassVar[bool] = True

    def _rolling(self, services: StrategyContext, name: str, memory: LongTermMemory | None) -> RollingSummary:
        """Return the summary of one conversation, which is stored in the memory of its chain."""
        summariser, stored = Summariser.of(self, name), memory if self.store else None
        return RollingSummary(services, summariser, self.user_first, self.levels, self.fan_in, stored)


@dataclass(frozen=True, slots=True)
class Summary(_SummarySettings):
    """The newest `threshold` messages stay, and a growing summary replaces all older ones.

    It summarises when at least `every` messages are over the `threshold` (25 messages → the first 5 are summarised, 20
    stay; 5 more → the next 5 are merged into the summary). With `every=1`, the design's letter, a long conversation is
    summarised at every call, and each time the start of the context changes.

    With `max_tokens` (or `model`, for that model's context window) it also summarises when the context would be over
    the share `trigger` of it. Then only the newest messages stay that take, with the system messages, at most the share
    `keep`: keeping more would mean to summarise again at once. The context never exceeds `max_tokens`. If the
    unsummarised messages do (the model failed, or the newest messages are long), OverBudget is recorded and the newest
    that fit are sent, as in a window. If none fits beside the summary, the summary is left out of that call; if none
    fits alone, the messages are. System messages that alone are over the limit are an error.

    `levels` is the number of summary levels: a level is merged into the next one after `fan_in` rounds, and begins
    anew. `max_input_tokens` limits what the model is shown of the messages (None = all; LangChain's default is 4000);
    the rest is lost. `summariser` names a model other than the run's. Prompt and heading are in `language`: "auto" is
    that of most user messages at the first summary, and stays.

    If the messages that stay continue a turn, the user message that opened it is sent as well, and summarised with the
    turn's last messages: providers reject requests without one. With `max_tokens` one that takes over the share
    1 - `trigger` is summarised at once. `user_first=False` sends exactly the newest `threshold`, the design's letter.

    `store` is as in `session_summary`.
    """

    threshold: PositiveInt = 20
    every: PositiveInt = 1
    max_tokens: PositiveInt | None = None
    model: str | None = None
    trigger: Share = 0.8
    keep: ShareWithoutEnds = 0.5

    fails: ClassVar[str] = "the summary left out a detail that matters: each round of summarising loses some more"

    def __post_init__(self) -> None:
        require_one_limit(self.max_tokens, self.model)
        if self.keep >= self.trigger:
            raise ValueError(f"keep must be below trigger, {self.trigger}, not {self.keep}")
        budget, written = self.budget, self.levels * self.max_summary_tokens
        # Of a budget of 10,000 with 0.8 and 0.5: at most 5,000 stay and 3,000 are left for summaries. Together they are
        # at the trigger and not over it, so no call summarises what the call before left.
        if budget is not None and written > (self.trigger - self.keep) * budget:
            raise ValueError(
                f"levels * max_summary_tokens, {written}, do not fit a budget of {budget}: "
                f"summaries may take {(self.trigger - self.keep) * budget:.0f} of it, trigger - keep"
            )

    @property
    def budget(self) -> int | None:
        """Tokens that the messages sent never exceed, if tokens are limited."""
        return window_of(self.model) if self.model is not None else self.max_tokens

    def start(self, services: StrategyContext, memory: LongTermMemory | None = None) -> View:
        rolling = self._rolling(services, "summary", memory)
        budget = self.budget
        spare = None if budget is None else int((1 - self.trigger) * budget)

        def over_budget() -> int:
            """Return how many messages must be summarised because of their tokens."""
            if budget is None or rolling.tokens <= self.trigger * budget:
                return 0
            room = int(self.keep * budget) - rolling.system_tokens
            return rolling.beyond(services.fit(rolling.rest, room) if room > 0 else len(rolling.rest))

        def view(context: Context) -> Context:
            rolling.read(context.messages)
            over = len(rolling.rest) - self.threshold
            over = rolling.upto(over) if over >= self.every else 0
            if rolling.summarise(max(over, over_budget()), spare=spare):
                # The summary may be longer than the messages that it replaced.
                rolling.summarise(over_budget(), spare=spare)
            return rolling.context(context, budget)

        return view


@dataclass(frozen=True, slots=True)
class SessionSummary(_SummarySettings):
    """Beyond `token_threshold` tokens a summary replaces everything but the last `preserve_recent` messages.

    A message counts its tokens and `overhead`. The summary counts as a message: the next round comes when it and the
    messages since are over the threshold again. `user_first`, `levels`, `fan_in` and the summariser's parameters are as
    in `summary`. There is no budget: the last messages are sent however long they are.

    With `store`, the design's default, each summary is stored in the long-term memory of the chain: a `layered` before
    this stage recalls earlier summaries, which have details that later ones lost. `store=False` leaves that out.
    """

    token_threshold: PositiveInt = 8000
    preserve_recent: PositiveInt = 4
    overhead: int = 4

    fails: ClassVar[str] = "the user asks for the exact words of something that was said more than four messages ago"

    def start(self, services: StrategyContext, memory: LongTermMemory | None = None) -> View:
        rolling = self._rolling(services, "session_summary", memory)
        overhead = self.overhead - FRAME - ROLE  # the chat format's own 4 tokens are counted already

        def view(context: Context) -> Context:
            rolling.read(context.messages)
            counted = rolling.summaries + rolling.rest
            over = len(rolling.rest) - self.preserve_recent
            if over > 0 and services.total(counted) + overhead * len(counted) > self.token_threshold:
                rolling.summarise(rolling.upto(over))
            return rolling.context(context, None)

        return view
