"""Recorded calls and their requests: prefixes, breakpoints and times, as far as the recording says.

Within a conversation a call cannot begin before the answer that it goes on from; starts in whole seconds, which may
seem to, are put right. Calls whose clock runs backwards, or that alone have no time, are given that of the call before
and are not compared (`clock`).

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
from math import floor, inf
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.model import (
    Call,
    Compaction,
    Conversation,
    Message,
    PlacedCompaction,
    Tool,
    compacted_start,
    first_kept,
    placed_compactions,
)
from ctxbench.scenarios.readers.messages import rising

from ..cache.mechanisms import FIVE_MINUTES, HOUR, ExplicitRules
from ..cache.prefixes import CacheMark, ContentBlocks, Places, Prefixes, SentPrefix, SharedStarts
from ..cache.rules import CacheRule, in_force, rules_of
from ..thinking import KeptThinking, thinking_rule, thinking_tokens
from ..tokens import FRAME, ROLE, TokenCounter, text_encoder
from ..value import Missing

Ints = NDArray[np.int64]
Assumed = Literal["no start", "no time", "marks", "head marks", "constant"]
LIFETIMES = {"5m": FIVE_MINUTES, "1h": HOUR}
BACKWARDS = "it began before an earlier call of its conversation: the clock ran backwards"
NO_TIME = "it has no time, or one that runs backwards, among calls that have one"


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A recorded call and its request."""

    conversation: Conversation
    at: int
    """Place of the answer in the conversation."""
    call: Call
    rule: CacheRule | None
    context: RecordedPrompt
    marks: tuple[CacheMark, ...]
    started: float
    answered: float
    earliest: float
    """Earliest possible start; before `started` where the recording has no start."""
    dated: bool
    """Whether the recording has its time."""
    clock: str = ""
    """Fault in its time, for which it is not compared."""

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


class _When(NamedTuple):
    started: float
    answered: float
    earliest: float
    dated: bool
    clock: str


@dataclass(slots=True)
class Asking:
    """Builder of requests from recorded calls. A model's equal prefixes have equal numbers in all conversations."""

    prefixes: Callable[[str], Prefixes]
    """Of a model."""
    counter: Callable[[str], TokenCounter]
    """Counts for a model."""
    assumed: set[Assumed] = field(default_factory=set)
    # Last time that was made up.
    _undated: float = 0.0
    # By model and host.
    _rules: dict[tuple[str, str], list[CacheRule]] = field(default_factory=dict)

    def calls(self, conversation: Conversation) -> Iterator[RecordedRequest]:
        """Yield the recorded calls of a conversation, in its order."""
        messages = conversation.messages
        # Calls that were stopped are none of `conversation.calls()`, but may have written to the cache.
        asked = (at for at, message in enumerate(messages) if at and message.role == "assistant")
        own_calls = [(at, call) for at in asked if (call := messages[at].call) is not None]
        contexts = RecordedPrompts(conversation, self.prefixes, self.counter)
        times = self._times([(call.started, messages[at - 1].time, messages[at].time) for at, call in own_calls])
        rules = list[CacheRule | None]()
        for (_, call), when in zip(own_calls, times, strict=True):
            key = call.model, call.provider
            if key not in self._rules:
                self._rules[key] = rules_of(call.model, host=call.provider)
            rules.append(in_force(self._rules[key], when.started if when.dated else None))
        marks = self._marks(own_calls, rules, contexts)
        for (at, call), rule, marked, when in zip(own_calls, rules, marks, times, strict=True):
            yield RecordedRequest(conversation, at, call, rule, contexts.of(at, call), marked, *when)

    def _times(self, recorded: Sequence[tuple[float | None, float | None, float | None]]) -> list[_When]:
        """Return the times of calls from their recorded starts, the messages before them and their answers."""
        first_times = [next((time for time in times if time is not None), None) for times in recorded]
        if first_times and not any(time is not None for time in first_times):
            self.assumed.add("no time")
            made_up = [self._undated + at for at in range(1, len(first_times) + 1)]
            self._undated = made_up[-1]
            return [_When(time, time, time, False, "") for time in made_up]
        rising_calls = set(rising([None if time is None else floor(time) for time in first_times]))
        clock = next((time for at, time in enumerate(first_times) if at in rising_calls and time is not None), 0.0)
        before, result = -inf, list[_When]()
        for at, (began, requested, answered) in enumerate(recorded):
            time, wrong = first_times[at], ""
            if at in rising_calls and time is not None:
                # An answer at 10.7 and a next start noted as 10 s: it began at 10.7, and the clock was cut to whole
                # seconds.
                clock = before if time < before <= time + 1 else time
            else:
                wrong = NO_TIME if time is None else BACKWARDS
            earliest = clock
            if began is None and not wrong:
                self.assumed.add("no start")
                earliest = min(before, clock) if requested is None else clock
            answered_at = max(clock, answered) if answered is not None and not wrong else clock
            result.append(_When(clock, answered_at, earliest, True, wrong))
            before = answered_at
        return result

    def _marks(
        self, calls: Sequence[tuple[int, Call]], rules: Sequence[CacheRule | None], contexts: RecordedPrompts
    ) -> Iterator[tuple[CacheMark, ...]]:
        """Yield the breakpoints of each call, by block: those recorded, or else those assumed."""
        marked = any(call.marks for _, call in calls)
        placed = {} if marked else {model: _placement(model, calls) for model in {call.model for _, call in calls}}
        lifetimes = _lifetimes(calls)
        for (at, call), rule in zip(calls, rules, strict=True):
            context = contexts.of(at, call)
            assumed = placed.get(call.model)
            if assumed is not None and rule is not None and isinstance(rule.rules, ExplicitRules):
                self.assumed.add(assumed)
                yield (CacheMark(at - context.base - 1 if assumed == "marks" else context.system, lifetimes[at]),)
                continue
            yield tuple(
                CacheMark(block, LIFETIMES.get(mark.ttl, FIVE_MINUTES))
                for mark in call.marks
                if (block := context.block(mark.after, contexts.place, at)) is not None
            )


def _placement(model: str, calls: Sequence[tuple[int, Call]]) -> Literal["marks", "head marks"] | None:
    """Return where a model's breakpoints were, from the tokens read and written; None if no tokens were."""
    used = [call.usage for _, call in calls if call.model == model and call.usage is not None]
    # The tokens up to the last breakpoint, and of the prompt.
    ends = [(end, usage.input) for usage in used if (end := (usage.cache_read or 0) + (usage.cache_write or 0))]
    if not ends:
        return None
    same = len(ends) > 1 and len({end for end, _ in ends}) == 1 and len({prompt for _, prompt in ends}) > 1
    return "head marks" if same else "marks"


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

    Block 0 is the tools; the messages follow, or what the agent's own compaction left of them. Answers have their
    reasoning as the model's provider keeps it (`thinking.py`). The reasoning effort
    stands before the first message, behind the system's: a change of it breaks what follows. A recording without system
    messages has a system prompt that it does not show; two conversations are assumed to share it only if their first
    prompts have the same size. A message that differs from one in an earlier prompt may begin alike (`SharedStarts`):
    caches that count tokens within a message read that too.
    """

    blocks: Ints
    """The number of the prefix at the end of each block."""
    counts: Ints
    """Tokens up to there, by our count."""
    roles: Sequence[str]
    """Roles of the messages, the first of which is block 1."""
    system: int
    """The last block of the tools and system messages at the start."""
    base: int
    """Place of the message that block 0 would be."""
    places: Places
    """Content blocks up to there."""
    heads: dict[str, int]
    """Blocks of the system messages that a compaction left, by their ids."""
    kept: KeptThinking
    """Answers that have their reasoning in it."""

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


@dataclass(slots=True)
class RecordedPrompts:
    """Prompts of one conversation, each built once."""

    conversation: Conversation
    prefixes: Callable[[str], Prefixes]
    """Of a model."""
    counter: Callable[[str], TokenCounter]
    """Counts for a model."""
    place: dict[str, int] = field(init=False)
    """Place of each message, by its id."""
    _compactions: tuple[PlacedCompaction, ...] = field(init=False)
    _firsts: dict[str, int] = field(init=False)
    _made: dict[tuple[int, str, str, tuple[Tool, ...], int], RecordedPrompt] = field(default_factory=dict)
    # By model.
    _kept: dict[str, KeptThinking] = field(default_factory=dict)

    def __post_init__(self) -> None:
        messages = self.conversation.messages
        self.place = {message.id: at for at, message in enumerate(messages)}
        self._compactions = placed_compactions(self.conversation)
        self._firsts = {}
        for message in messages:
            if (call := message.call) is not None and call.usage is not None and call.usage.input is not None:
                self._firsts.setdefault(call.model, call.usage.input)

    def of(self, at: int, call: Call) -> RecordedPrompt:
        """Return the prompt of which the call that answered with the message at `at` was sent a start."""
        stretch = bisect_left(self._compactions, at, key=lambda placed: placed.after)
        tools = self.conversation.tools if call.tools is None else call.tools
        if call.model not in self._kept:
            rule = thinking_rule(call.model)
            self._kept[call.model] = KeptThinking(None if rule is None else rule.keeps, self.conversation.messages)
        stripped = self._kept[call.model].stripped(at)
        key = (stretch, call.model, call.effort, tools, stripped)
        if key not in self._made:
            compaction = self._compactions[stretch - 1].compaction if stretch else None
            self._made[key] = self._make(compaction, call, tools, stripped)
        return self._made[key]

    def _make(
        self, compaction: Compaction | None, call: Call, tools: tuple[Tool, ...], stripped: int
    ) -> RecordedPrompt:
        counter, messages = self.counter(call.model), self.conversation.messages
        first, head = 0, tuple[Message, ...]()
        if compaction is not None:
            first = first_kept(compaction, self.place)
            head = compacted_start(compaction, messages[:first])
        sent = [*head, *messages[first:]]
        # The number of system messages is the last block of theirs, since block 0 is the tools.
        system = next((at for at, message in enumerate(sent) if message.role != "system"), len(sent))
        hidden = None if system else self._firsts.get(call.model)
        # The answers whose reasoning is in the prompt, by their places in it.
        kept, base = self._kept[call.model], first - len(head)
        thoughtful = [at >= max(len(head), stripped - base) and kept.of(at + base) for at in range(len(sent))]
        prefixes, sizes, places = list[Hashable]([(tools, hidden)]), [counter.tools(tools)], Places((1,))
        for at, (message, thought) in enumerate(zip(sent, thoughtful, strict=True)):
            thinking, effort = _thought(message) if thought else "", call.effort if at == system else ""
            prefixes.append(SentPrefix.of(message, effort, thinking))
            tokens = thinking_tokens(message, counter.text) if thought else 0
            sizes.append(counter.message(message) + (0 if isinstance(tokens, Missing) else tokens))
            places.add(message.role, ContentBlocks.of(message))
        roles = [message.role for message in sent]
        heads = {message.id: at for at, message in enumerate(head, 1) if message.role == "system"}
        blocks = np.array(self.prefixes(call.model).of(prefixes), np.int64)
        # `base`: a block less the place of its message is the same for all that follow the head, the first of which has
        # the place `first` and stands in block 1 + len(head).
        return RecordedPrompt(blocks, np.cumsum(sizes), roles, system, base - 1, places, heads, kept)


def numbering(encoding: str) -> Prefixes:
    """Return an empty numbering of prefixes for prompts in this encoding."""
    if encoding == "chars4":  # it has no tokens of which some could be shared
        return Prefixes()
    return Prefixes(SharedStarts(_said, text_encoder(encoding), FRAME + ROLE))


def _thought(message: Message) -> str:
    """Return what tells an answer's reasoning from another's: its text, or that there is some."""
    return message.thinking or "hidden"


def _said(block: Hashable) -> tuple[str, str] | None:
    # Reasoning comes before the text: where it differs, no text is shared.
    return (f"{block.role} {block.effort} {block.thinking}", block.text) if isinstance(block, SentPrefix) else None
