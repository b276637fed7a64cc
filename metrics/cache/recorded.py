"""Recorded calls put through the cache of their model and date, beside what the provider reported of each.

Calls are taken in the order they began, over all conversations: runs of one agent share what they have in common. Each
model has a cache of its own. Where a prefix ends in tokens is learned from the provider's own counts as they come: the
prompt of a call, what it read and wrote up to its last mark, its prompt with the answer. For prefixes of which nothing
was reported, our own count is added to the nearest prefix before it that is known; before the first call, what its
prompt has over our count (system prompt and tools that the recording lacks) is put in front.

Assumed, and said: a call without a start began when it was answered (`no start`); one without any time came a second
after the one before (`no time`); where a recording says that something was written to the cache and not where, the mark
was at the end of the prompt (`marks`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal, NamedTuple

from ...scenarios.model import Compaction, Conversation, Message, Usage
from ..tokens import TokenCounter
from .explicit import MOST_MARKS
from .prefixes import Mark, Prefixes, Request, Used
from .rules import Cache, Rule, rule_for

Assumed = Literal["no start", "no time", "marks", "constant"]
LIFETIMES = {"5m": 300.0, "1h": 3600.0}


class Compared(NamedTuple):
    """One recorded call: what the cache model predicts, and what the provider reported."""

    conversation: str
    at: int
    """The answer's place in the conversation."""
    model: str
    rule: Rule
    usage: Usage
    predicted: Used
    reason: str
    """Why the two disagree, as far as can be told; empty if they agree."""
    gap: float | None
    """Seconds since the call before in the conversation began; None for its first."""

    @property
    def read(self) -> int:
        """Tokens read as reported."""
        return self.usage.cache_read or 0

    @property
    def exact(self) -> bool:
        """Whether the tokens read are as predicted."""
        return self.predicted.read == self.read


class _Context(NamedTuple):
    """What a stretch of a conversation's calls were asked with: each call with a start of it."""

    blocks: list[int]
    """The number of the prefix at the end of each block."""
    counts: list[int]
    """Our tokens up to there."""
    eligible: list[int]
    """Blocks at whose end a provider may place a breakpoint of its own."""
    system: int
    """The last block of the tools and system messages at the start."""
    base: int
    """The message that block 0 would be."""


class _Call(NamedTuple):
    """A recorded call and what it was asked with."""

    conversation: Conversation
    at: int
    started: float
    answered: float
    context: _Context
    marks: tuple[Mark, ...]
    dated: bool
    """Whether the recording says when it was."""

    @property
    def size(self) -> int:
        """Blocks of its prompt."""
        return self.at - self.context.base


@dataclass(slots=True)
class Replayed:
    """Recorded calls through the caches of their models."""

    counter: TokenCounter
    assumed: set[Assumed] = field(default_factory=set)
    without_rule: dict[str, int] = field(default_factory=dict)
    """Calls of models for which there is no rule."""
    overmarked: int = 0
    """Calls with more marks than a provider takes: they are not compared."""
    _prefixes: Prefixes = field(default_factory=Prefixes)
    _learned: dict[str, dict[int, int]] = field(default_factory=dict)
    """Of each model, the tokens up to the end of a prefix, as the provider counted them."""
    _seen: set[int] = field(default_factory=set)

    def compare(self, conversations: Iterable[Conversation]) -> Iterator[Compared]:
        """Each call that reports its usage, in the order they began."""
        calls = sorted((call for each in conversations for call in self._calls(each)), key=lambda call: call.started)
        caches: dict[tuple[str, str], Cache | None] = {}
        before: dict[str, float] = {}
        for call in calls:
            recorded = call.conversation.messages[call.at].call
            if recorded is None or recorded.usage is None:
                continue
            rule = rule_for(recorded.model, call.started if call.dated else None)
            if rule is None:
                self.without_rule[recorded.model] = self.without_rule.get(recorded.model, 0) + 1
                continue
            cache = caches.setdefault((recorded.model, rule.since), rule.cache())
            if len(call.marks) > MOST_MARKS:
                self.overmarked += 1
                continue
            learned = self._learned.setdefault(recorded.model, {})
            asked = self._request(call, recorded.usage, learned)
            used = cache.request(asked) if cache is not None else Used(0, 0, 0, asked.tokens)
            gap = call.started - before[call.conversation.id] if call.conversation.id in before else None
            before[call.conversation.id] = call.started
            reason = self._reason(call, asked, used, recorded.usage)
            self._learn(asked, used, recorded.usage, learned)
            yield Compared(call.conversation.id, call.at, recorded.model, rule, recorded.usage, used, reason, gap)

    def _calls(self, conversation: Conversation) -> Iterator[_Call]:
        messages, clock = conversation.messages, 0.0
        place = {message.id: at for at, message in enumerate(messages)}
        compactions = sorted(conversation.compactions, key=lambda each: place[each.after])
        reports = any(m.call and m.call.usage and m.call.usage.cache_write for m in messages)
        marked = any(m.call and m.call.marks for m in messages)
        context = self._context(conversation, None, place)
        for at in conversation.calls():
            while compactions and place[compactions[0].after] < at:
                context = self._context(conversation, compactions.pop(0), place)
            base = context.base
            recorded = messages[at].call
            if recorded is None:
                continue
            answered = messages[at].time
            started = recorded.started
            dated = started is not None or answered is not None
            if started is None:
                self.assumed.add("no start" if answered is not None else "no time")
                started = answered if answered is not None else clock + 1
            clock = started
            marks = tuple(
                Mark(0 if mark.after is None else place[mark.after] - base, LIFETIMES.get(mark.ttl, 300.0))
                for mark in recorded.marks
                if mark.after is None or base <= place[mark.after] < at
            )
            if reports and not marked:
                self.assumed.add("marks")
                marks = (Mark(at - base - 1),)
            yield _Call(conversation, at, started, max(started, answered or started), context, marks, dated)

    def _context(self, conversation: Conversation, compaction: Compaction | None, place: dict[str, int]) -> _Context:
        """The context from the start, or from a compaction on."""
        counter, messages = self.counter, conversation.messages
        first, head = 0, list[Message]()
        if compaction is not None:
            first = len(messages) if compaction.first_kept is None else place[compaction.first_kept]
            first = min(first, place[compaction.after] + 1)
            head = [each for each in messages[:first] if each.role == "system"]
            head.append(Message("", "user", compaction.summary))
        sent = [*head, *messages[first:]]
        keys = [conversation.tools, *map(_key, sent)]
        counts = [counter.tools(conversation.tools), *map(counter.message, sent)]
        system = next((at for at, each in enumerate(sent) if each.role != "system"), len(sent))
        eligible = [system] if system else []
        for at, each in enumerate(sent[system:], system):
            ends = each.role == "tool" and (at + 1 == len(sent) or sent[at + 1].role != "tool")
            if ends or each.role == "user":
                eligible.append(at + 1)
        base = first - 1 - len(head)
        return _Context(self._prefixes.of(keys), list(accumulate(counts)), eligible, system, base)

    def _request(self, call: _Call, usage: Usage, learned: dict[int, int]) -> Request:
        context, size = call.context, call.size
        blocks, counts = context.blocks[:size], context.counts[:size]
        tokens = usage.input if usage.input is not None else counts[-1]
        if not learned:
            self.assumed.add("constant")
        ends = _ends(blocks, counts, tokens, learned)
        answer = self._prefixes.after(blocks[-1], _key(call.conversation.messages[call.at]))
        eligible = context.eligible[: bisect_left(context.eligible, size)]
        system = min(context.system, size - 1)
        return Request(
            blocks, ends, tokens, call.started, call.answered, call.marks, answer, eligible, system if system else -1
        )

    def _learn(self, asked: Request, used: Used, usage: Usage, learned: dict[int, int]) -> None:
        """What the reported counts say of where prefixes end."""
        read, written = usage.cache_read or 0, usage.cache_write or 0
        if usage.input is not None:
            learned[asked.prefixes[-1]] = usage.input
            if asked.answer is not None and usage.output is not None:
                learned[asked.answer] = usage.input + usage.output
        if asked.marks:
            if read or written:
                learned[asked.prefixes[asked.marks[-1].block]] = read + written
            if read and (used.hit >= 0 or len(asked.marks) > 1):
                learned.setdefault(asked.prefixes[used.hit if used.hit >= 0 else asked.marks[0].block], read)
        self._seen.update(asked.prefixes)

    def _reason(self, call: _Call, asked: Request, used: Used, usage: Usage) -> str:
        read = usage.cache_read or 0
        if read == used.read:
            return ""
        if usage.cache_read is None:
            return "not reported"
        if not used.read:
            new = not asked.marks or asked.prefixes[asked.marks[0].block] not in self._seen
            return "warmed by another run" if new else "still there after its lifetime"
        if not read:
            turn = call.conversation.messages[call.at - 1].role == "user"
            return "gone before its lifetime" + (", at a user's turn" if turn else "")
        return "a longer prefix was read" if read > used.read else "a shorter prefix was read"


def _ends(blocks: list[int], counts: list[int], tokens: int, learned: dict[int, int]) -> list[int]:
    """Where each block ends, in the provider's tokens, as far as they are known before the call."""
    offset, made = tokens - counts[-1], list[int]()
    for number, count in zip(blocks, counts, strict=True):
        offset = learned[number] - count if number in learned else offset
        made.append(min(max(count + offset, 0), tokens))
    least = tokens
    for at in range(len(made) - 1, -1, -1):  # an estimate never reaches beyond what is known behind it
        least = made[at] = min(made[at], least)
    return made


def _key(message: Message) -> tuple[object, ...]:
    """What of a message a provider is sent."""
    return (message.role, message.text, message.calls, message.answers, message.name, message.images)
