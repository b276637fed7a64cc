"""Recorded calls, and what they were asked with: prefixes, breakpoints and times, as far as the recording says.

Within a conversation a call cannot begin before the answer that it goes on from; starts in whole seconds, which may
seem to, are put right. Calls whose clock runs backwards, or that alone have no time, are given that of the call before
and are not compared (`clock`).

Assumed, and said: a call without a start began when the message before it was there, or, where that has no time either,
when it was answered (`no start`). A conversation without any time was recorded after the one before it, its calls a
second apart (`no time`). Where a recording reports what was written to the cache and not where its breakpoints were,
there was one at the end of each prompt (`marks`); if the tokens read or written are always the same while the prompts
grow, at the end of what stands before the messages (`head marks`). They were of an hour where the usage says that this
was written for an hour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, inf
from typing import Literal, NamedTuple

from ...scenarios.model import Call, Conversation, Usage
from ...scenarios.readers.clock import rising
from ..cache.explicit import HOUR, ExplicitRules
from ..cache.prefixes import CacheMark, Prefixes
from ..cache.rules import CacheRule, rule_for
from ..tokens import TokenCounter
from .contexts import RecordedPrompt, RecordedPrompts

Assumed = Literal["no start", "no time", "marks", "head marks", "constant"]
FIVE_MINUTES = 300.0
LIFETIMES = {"5m": FIVE_MINUTES, "1h": HOUR}
BACKWARDS = "it began before an earlier call of its conversation: the clock ran backwards"
NO_TIME = "it has no time, or one that runs backwards, among calls that have one"


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A recorded call and what it was asked with."""

    conversation: Conversation
    at: int
    """The answer's place in the conversation."""
    call: Call
    rule: CacheRule | None
    context: RecordedPrompt
    marks: tuple[CacheMark, ...]
    started: float
    answered: float
    earliest: float
    """When it can have begun at the earliest; before `started` where the recording has no start."""
    dated: bool
    """Whether the recording says when it was."""
    clock: str = ""
    """What is wrong with its time, so that it is not compared."""

    @property
    def size(self) -> int:
        """Blocks of its prompt."""
        return self.at - self.context.base

    @property
    def cache(self) -> tuple[str, str, str]:
        """Calls with the same have a cache in common: host, model, since when its rule is in force."""
        return self.call.provider, self.call.model, self.rule.since if self.rule else ""


class _When(NamedTuple):
    started: float
    answered: float
    earliest: float
    dated: bool
    clock: str


@dataclass(slots=True)
class Asking:
    """Finds what recorded calls were asked with. A model's equal prefixes have equal numbers in all conversations."""

    prefixes: Callable[[str], Prefixes]
    """Of a model."""
    counter: Callable[[str], TokenCounter]
    """Counts for a model."""
    assumed: set[Assumed] = field(default_factory=set)
    _undated: float = 0.0
    """The last time that was made up."""

    def calls(self, conversation: Conversation) -> list[RecordedRequest]:
        """The recorded calls of a conversation, in its order."""
        messages = conversation.messages
        made = [(at, call) for at in conversation.calls() if (call := messages[at].call) is not None]
        contexts = RecordedPrompts(conversation, self.prefixes, self.counter)
        times = self._times([(call.started, messages[at - 1].time, messages[at].time) for at, call in made])
        rules = [
            rule_for(call.model, when.started if when.dated else None)
            for (_, call), when in zip(made, times, strict=True)
        ]
        marks = list(self._marks(made, rules, contexts))
        return [
            RecordedRequest(conversation, at, call, rule, contexts.of(at, call), marked, *when)
            for (at, call), rule, marked, when in zip(made, rules, marks, times, strict=True)
        ]

    def _times(self, recorded: Sequence[tuple[float | None, float | None, float | None]]) -> list[_When]:
        """Of calls, from their starts, the times of the messages before them and their answers, as far as recorded."""
        known = [next((time for time in times if time is not None), None) for times in recorded]
        if not any(time is not None for time in known):
            return list(self._made_up(len(known)))
        kept = set(rising([None if time is None else floor(time) for time in known]))
        clock, made = next(time for at, time in enumerate(known) if at in kept and time is not None), list[_When]()
        before = -inf
        for at, (began, asked, answered) in enumerate(recorded):
            time, wrong = known[at], ""
            if at in kept and time is not None:
                clock = before if time < before <= time + 1 else time
            else:
                wrong = NO_TIME if time is None else BACKWARDS
            earliest = clock
            if began is None and not wrong:
                self.assumed.add("no start")
                earliest = min(before, clock) if asked is None else clock
            there = max(clock, answered) if answered is not None and not wrong else clock
            made.append(_When(clock, there, earliest, True, wrong))
            before = there
        return made

    def _made_up(self, calls: int) -> Iterator[_When]:
        for _ in range(calls):
            self.assumed.add("no time")
            self._undated += 1
            yield _When(self._undated, self._undated, self._undated, False, "")

    def _marks(
        self, made: Sequence[tuple[int, Call]], rules: Sequence[CacheRule | None], contexts: RecordedPrompts
    ) -> Iterator[tuple[CacheMark, ...]]:
        """Of each call its breakpoints, by block: those recorded, or else those assumed."""
        marked = any(call.marks for _, call in made)
        placed = {} if marked else {model: self._placement(model, made) for model in {call.model for _, call in made}}
        lifetimes = _lifetimes(made)
        for (at, call), rule in zip(made, rules, strict=True):
            context = contexts.of(at, call)
            assumed = placed.get(call.model)
            if assumed is not None and rule is not None and isinstance(rule.rules, ExplicitRules):
                self.assumed.add(assumed)
                yield (CacheMark(at - context.base - 1 if assumed == "marks" else context.system, lifetimes[at]),)
                continue
            blocks = [(context.block(mark.after, contexts.place, at), mark.ttl) for mark in call.marks]
            yield tuple(
                CacheMark(block, LIFETIMES.get(ttl, FIVE_MINUTES)) for block, ttl in blocks if block is not None
            )

    def _placement(self, model: str, made: Sequence[tuple[int, Call]]) -> Literal["marks", "head marks"] | None:
        """Where a model's breakpoints were, from what was read and written; None if nothing was."""
        used = [call.usage for _, call in made if call.model == model and call.usage is not None]
        ends = [(_cached(each), each.input) for each in used if _cached(each)]
        if not ends:
            return None
        same = len(ends) > 1 and len({end for end, _ in ends}) == 1 and len({prompt for _, prompt in ends}) > 1
        return "head marks" if same else "marks"


def _lifetimes(made: Sequence[tuple[int, Call]]) -> Mapping[int, float]:
    """Of the assumed breakpoint of each call: as its usage says, else as before it, else as first after it."""
    found: dict[int, float] = {}
    last: dict[str, float] = {}
    for at, call in [*reversed(made), *made]:
        written = call.usage.cache_write if call.usage is not None else None
        if call.usage is not None and written:
            last[call.model] = HOUR if 2 * (call.usage.cache_write_1h or 0) > written else FIVE_MINUTES
        found[at] = last.get(call.model, FIVE_MINUTES)
    return found


def _cached(usage: Usage) -> int:
    """Tokens up to the last breakpoint."""
    return (usage.cache_read or 0) + (usage.cache_write or 0)
