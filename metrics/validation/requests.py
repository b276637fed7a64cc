"""Recorded calls and their requests: prefixes, breakpoints and times, as far as the recording says.

Within a conversation a call cannot begin before the answer that it goes on from. Calls whose clock runs backwards, or
that alone have no time, are given that of the call before and are not compared (`clock`).

Assumptions, which are reported: a call without a start began when the message before it was there, or, without that
time, when it was answered (`no start`). A conversation without any time was recorded after the one before it, its
calls a second apart (`no time`). Where a recording reports the tokens written to the cache and not the breakpoints,
there was one at the end of each prompt (`marks`); if the tokens read or written are always the same while the prompts
grow, at the end of what stands before the messages (`head marks`). They lasted an hour where the usage says so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import floor, inf
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.model import Call, Conversation, Message, Tool, compacted_start, first_kept, placed_compactions
from ctxbench.scenarios.readers.messages import rising

from ..cache.mechanisms import FIVE_MINUTES, HOUR, ExplicitRules
from ..cache.prefixes import CacheMark, ContentBlocks, Prefixes, SentPrefix
from ..cache.requests import Boundaries
from ..cache.rules import CacheRule, in_force, rules_of
from ..thinking import KeptThinking, thinking_rule, thinking_tokens
from ..tokens import TokenCounter
from ..value import Missing

Ints = NDArray[np.int64]
Assumed = Literal["no start", "no time", "marks", "head marks", "constant"]
LIFETIMES = {"5m": FIVE_MINUTES, "1h": HOUR}
BACKWARDS = "it began before an earlier call of its conversation: the clock ran backwards"
NO_TIME = "it has no time, or one that runs backwards, among calls that have one"
TOOLS = 1  # blocks before the messages of a recorded prompt: the tools


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A recorded call and its request."""

    conversation: Conversation
    at: int  # place of the answer in the conversation
    call: Call
    rule: CacheRule | None
    context: RecordedPrompt
    marks: tuple[CacheMark, ...]
    started: float
    answered: float
    earliest: float  # earliest possible start; before `started` where the recording has no start
    dated: float | None  # `started`, if the recording has its time
    clock: str  # fault in its time, for which it is not compared

    @property
    def size(self) -> int:
        """Number of blocks of its prompt."""
        return self.at - self.context.base

    @property
    def counted(self) -> int:
        """Tokens of its prompt by our own count alone."""
        return int(self.context.counts[self.size - 1])

    @property
    def cache(self) -> tuple[str, str, str]:
        """Key of its cache: host, model, and the first day of its rule."""
        return self.call.provider, self.call.model, self.rule.since if self.rule else ""

    @property
    def lifetime(self) -> float | None:
        """Seconds for which it leaves its prefix in the cache; None if it leaves nothing."""
        seconds: float | None = getattr(self.rule and self.rule.rules, "lifetime", None)
        return max((mark.lifetime for mark in self.marks), default=None) if seconds is None else seconds


When = tuple[float, float, float, float | None, str]  # the last fields of a `RecordedRequest`, which are about its time
_rules_of = cache(rules_of)


@dataclass(slots=True)
class Asking:
    """Builder of requests from recorded calls. A model's equal prefixes have equal numbers in all conversations."""

    counters: Mapping[str, TokenCounter]  # the counter of each model
    prefixes: Callable[[str], Prefixes]  # returns the numbering of a model
    assumed: set[Assumed] = field(default_factory=set)
    _undated: float = 0.0  # the last time that was made up
    _firsts: dict[str, dict[str, int]] = field(default_factory=dict)  # by conversation, tokens of first prompts

    def calls(self, conversation: Conversation) -> Iterator[RecordedRequest]:
        """Yield the recorded calls of a conversation, in its order."""
        messages, prompts = conversation.messages, RecordedPrompts(conversation, self.counters, self.prefixes)
        # A fork's first prompts are in its parent, with the system prompt that neither shows.
        if any(message.call is not None and message.call.copied for message in messages):
            prompts.firsts |= self._firsts.get(str(conversation.meta.get("parent")), {})
        self._firsts[conversation.id] = prompts.firsts
        # Calls that were stopped are none of `conversation.calls()`, but may have written to the cache.
        asked = (at for at, message in enumerate(messages) if at and message.role == "assistant")
        calls = [(at, call) for at in asked if (call := messages[at].call) is not None and not call.copied]
        times = self._times([(call.started, messages[at - 1].time, messages[at].time) for at, call in calls])
        assumed, lifetimes = _placements(calls), _lifetimes(calls)
        for (at, call), when in zip(calls, times, strict=True):
            rules, prompt = _rules_of(call.model, host=call.provider), prompts.of(at, call)
            rule = in_force(rules, when[0] if when[3] else None)  # its start, where that is known
            placed = assumed.get(call.model)
            if placed is not None and rule is not None and isinstance(rule.rules, ExplicitRules):
                self.assumed.add(placed)
                block = at - prompt.base - 1 if placed == "marks" else prompt.system
                marks: tuple[CacheMark, ...] = (CacheMark(block, lifetimes[at]),)
            else:
                blocks = ((prompt.block(mark.after, prompts.place, at), mark.ttl) for mark in call.marks)
                marks = tuple(
                    CacheMark(block, LIFETIMES.get(ttl, FIVE_MINUTES)) for block, ttl in blocks if block is not None
                )
            yield RecordedRequest(conversation, at, call, rule, prompt, marks, *when)

    def _times(self, recorded: Sequence[tuple[float | None, float | None, float | None]]) -> list[When]:
        """Return the times of calls from their recorded starts, the messages before them and their answers."""
        firsts = [next((time for time in times if time is not None), None) for times in recorded]
        if firsts and not any(time is not None for time in firsts):
            self.assumed.add("no time")
            made_up = [self._undated + at for at in range(1, len(firsts) + 1)]
            self._undated = made_up[-1]
            return [(time, time, time, None, "") for time in made_up]
        rising_calls = set(rising([None if time is None else floor(time) for time in firsts]))
        clock = next((time for at, time in enumerate(firsts) if at in rising_calls and time is not None), 0.0)
        before, result = -inf, list[When]()
        for at, ((began, requested, answered), time) in enumerate(zip(recorded, firsts, strict=True)):
            wrong = NO_TIME if time is None else "" if at in rising_calls else BACKWARDS
            if time is not None and not wrong:
                # An answer at 10.7 and a next start noted as 10 s: it began at 10.7, and the clock was cut to whole
                # seconds.
                clock = before if time < before <= time + 1 else time
            earliest = clock
            if began is None and not wrong:
                self.assumed.add("no start")
                earliest = min(before, clock) if requested is None else clock
            before = max(clock, answered) if answered is not None and not wrong else clock
            result.append((clock, before, earliest, clock, wrong))
        return result


def _placements(calls: Sequence[tuple[int, Call]]) -> dict[str, Literal["marks", "head marks"]]:
    """Return where each model's breakpoints were, from the tokens read and written; nothing where some are recorded."""
    if any(call.marks for _, call in calls):
        return {}
    # The tokens up to the last breakpoint, and of the prompt.
    ends: dict[str, list[tuple[int, int | None]]] = {}
    for _, call in calls:
        if (usage := call.usage) is not None and (end := (usage.cache_read or 0) + (usage.cache_write or 0)):
            ends.setdefault(call.model, []).append((end, usage.input))
    same = {
        model: len(used) > 1 and len({end for end, _ in used}) == 1 and len({prompt for _, prompt in used}) > 1
        for model, used in ends.items()
    }
    return {model: "head marks" if alike else "marks" for model, alike in same.items()}


def _lifetimes(calls: Sequence[tuple[int, Call]]) -> Mapping[int, float]:
    """Return the lifetime of each call's assumed breakpoint, by its usage or that of an earlier or later call."""
    lifetime_of: dict[int, float] = {}
    last: dict[str, float] = {}
    # Backwards, to know the first write of each model before its first call; then forwards, so that every call has the
    # lifetime of the latest write up to it, and those before any write that of the first.
    for at, call in [*reversed(calls), *calls]:
        if call.usage is not None and (written := call.usage.cache_write):
            last[call.model] = HOUR if 2 * (call.usage.cache_write_1h or 0) > written else FIVE_MINUTES
        lifetime_of[at] = last.get(call.model, FIVE_MINUTES)
    return lifetime_of


@dataclass(frozen=True, slots=True, eq=False)
class RecordedPrompt:
    """Prompt shared by a span of a conversation's calls: each was sent a start of it.

    Block 0 is the tools; the messages follow, or what the agent's own compaction left of them, with the reasoning that
    the model's provider keeps (`thinking.py`). The reasoning effort stands before the first message, behind the
    system's: a change of it breaks what follows. A recording without system messages has a system prompt that it does
    not show; two conversations are assumed to share it only if their first prompts have the same size. A message that
    differs from one in an earlier prompt may begin alike (`SharedStarts`): caches that count tokens within a message
    read that too.
    """

    blocks: Ints  # the number of the prefix at the end of each block
    counts: Ints  # tokens up to there, by our count
    boundaries: Boundaries
    """Of the part of it that was sent last: where a provider may place breakpoints, and content blocks."""
    system: int  # the last block of the tools and system messages at the start
    base: int  # place of the message that block 0 would be
    heads: dict[str, int]  # blocks of the system messages that a compaction left, by their ids
    kept: KeptThinking  # answers that have their reasoning in it

    def answer(self, message: Message, at: int) -> SentPrefix:
        """Return the answer at `at` as the next prompt of the same turn has it."""
        return SentPrefix.of(message, thinking=_thought(message) if self.kept.of(at) else "")

    def block(self, after: str | None, place: dict[str, int], at: int) -> int | None:
        """Return the block of a message in the prompt of the call at `at`, or None. `after` None = the tools."""
        if after is None:
            return 0
        if after in self.heads:
            return self.heads[after]
        block = place[after] - self.base
        return block if len(self.heads) < block and place[after] < at else None


class RecordedPrompts:
    """Prompts of one conversation, each built once."""

    def __init__(
        self, conversation: Conversation, counters: Mapping[str, TokenCounter], prefixes: Callable[[str], Prefixes]
    ) -> None:
        messages = conversation.messages
        self._conversation, self._counters, self._prefixes = conversation, counters, prefixes
        self.place = {message.id: at for at, message in enumerate(messages)}
        """Place of each message, by its id."""
        self._compactions = placed_compactions(conversation)
        self.firsts: dict[str, int] = {}
        """Tokens of each model's first prompt."""
        for message in messages:
            if (call := message.call) is not None and call.usage is not None and call.usage.input is not None:
                self.firsts.setdefault(call.model, call.usage.input)
        self._made: dict[tuple[int, str, str, tuple[Tool, ...], int], RecordedPrompt] = {}
        self._kept: dict[str, KeptThinking] = {}  # by model

    def of(self, at: int, call: Call) -> RecordedPrompt:
        """Return the prompt of which the call that answered with the message at `at` was sent a start."""
        stretch = bisect_left(self._compactions, at, key=lambda placed: placed.after)
        tools = self._conversation.tools if call.tools is None else call.tools
        if call.model not in self._kept:
            rule = thinking_rule(call.model)
            self._kept[call.model] = KeptThinking(None if rule is None else rule.keeps, self._conversation.messages)
        stripped = self._kept[call.model].stripped(at)
        key = (stretch, call.model, call.effort, tools, stripped)
        if key in self._made:
            return self._made[key]
        compaction = self._compactions[stretch - 1].compaction if stretch else None
        counter, messages, kept = self._counters[call.model], self._conversation.messages, self._kept[call.model]
        first = 0 if compaction is None else first_kept(compaction, self.place)
        head = () if compaction is None else compacted_start(compaction, messages[:first])
        sent, base = [*head, *messages[first:]], first - len(head)
        # The number of system messages is the last block of theirs, since block 0 is the tools.
        system = next((at for at, message in enumerate(sent) if message.role != "system"), len(sent))
        hidden = None if system else self.firsts.get(call.model)
        prefixes, sizes = list[Hashable]([(tools, hidden)]), [counter.tools(tools)]
        for at, message in enumerate(sent):
            thought = at >= max(len(head), stripped - base) and kept.of(at + base)
            effort = call.effort if at == system else ""
            prefixes.append(SentPrefix.of(message, effort, _thought(message) if thought else ""))
            tokens = thinking_tokens(message, counter.text) if thought else 0
            sizes.append(counter.message(message) + (0 if isinstance(tokens, Missing) else tokens))
        # `base` - 1: a block less the place of its message is the same for all that follow the head, the first of which
        # has the place `first` and stands in block 1 + len(head).
        self._made[key] = RecordedPrompt(
            np.array(self._prefixes(call.model).of(prefixes), np.int64),
            np.cumsum(sizes),
            Boundaries([message.role for message in sent], TOOLS, list(map(ContentBlocks.of, sent))),
            system,
            base - 1,
            {message.id: at for at, message in enumerate(head, 1) if message.role == "system"},
            kept,
        )
        return self._made[key]


def _thought(message: Message) -> str:
    """Return what tells an answer's reasoning from another's: its text, or that there is some."""
    return message.thinking or "hidden"


def said(block: Hashable) -> tuple[str, str] | None:
    """Return the role and the text of a block, for `SharedStarts`; None for the tools."""
    # Reasoning comes before the text: where it differs, no text is shared.
    return (f"{block.role} {block.effort} {block.thinking}", block.text) if isinstance(block, SentPrefix) else None
