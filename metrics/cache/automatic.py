"""Automatic prefix caches: any prefix that a request has in common with an earlier one is read, in whole units.

    read      the longest common prefix with a request (or a request and its answer) of the last `lifetime` seconds,
              rounded down to `step` tokens, if it is at least `least`
    written   nothing that is billed

A prefix that breaks within a block is common up to there: where the requests have texts (`Request.alike`), the tokens
that the block has in common with one that came after the same prefix are read too.

OpenAI before GPT-5.6: least 1 024, step 128, answers not counted. DeepSeek before 2026-04: 64 and 64, with the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .prefixes import START, CacheRequest, CacheUsage, common


@dataclass(frozen=True, slots=True)
class AutomaticRules:
    """What differs by provider, model and date."""

    least: int
    """Tokens of the shortest prefix that is read."""
    step: int
    """What is read is a multiple of this many tokens."""
    lifetime: float
    """Seconds for which a prefix that nobody asks for stays."""
    answers: bool = False
    """Whether the answer is cached as well, as what comes after its prompt."""


class AutomaticCache:
    """One cache. Requests are given in the order they started.

    Every request renews all prefixes on its path. That is written down only for those that the next request leaves:
    what a step costs is what it adds.
    """

    __slots__ = ("_asked", "_path", "_ready", "_started", "rules")

    def __init__(self, rules: AutomaticRules) -> None:
        self.rules = rules
        self._ready: dict[int, float] = {}
        """Of each prefix, from when on it can be read."""
        self._asked: dict[int, float] = {}
        """Of each prefix that is not on the last request's path, when it was last asked for."""
        self._path: list[int] = []
        self._started = 0.0
        """Of the last request."""

    def request(self, asked: CacheRequest) -> CacheUsage:
        """What is read."""
        rules, now, since, ready = self.rules, asked.started, asked.started - self.rules.lifetime, self._ready
        known = self._enter(asked.prefixes, since)
        path, size = self._path, len(asked.prefixes)
        hit, within = known, self._within(asked, known, since) if known + 1 < size else 0
        if rules.answers and asked.answer is not None:
            path.append(asked.answer)
            known += known + 1 == size and self._asked.get(asked.answer, since) > since
        while hit >= 0 and ready[path[hit]] > now:
            hit, within = hit - 1, 0
        for prefix in path[known + 1 :]:
            ready[prefix] = asked.answered
        self._started = now
        units = ((asked.ends[hit] if hit >= 0 else 0) + within) // rules.step * rules.step
        read = units if units >= rules.least else 0
        return CacheUsage(read, 0, 0, asked.tokens - read, hit if read else -1)

    def _enter(self, prefixes: Sequence[int], since: float) -> int:
        """Leave the last path for this one. The last place of the longest prefix that is or will be cached, or -1."""
        path = self._path
        shared = common(path, prefixes)
        for prefix in path[shared:]:
            self._asked[prefix] = self._started
        path[shared:] = prefixes[shared:]
        if self._started <= since:
            return -1
        known = shared - 1
        while known + 1 < len(path) and self._asked.get(path[known + 1], since) > since:
            known += 1
        return known

    def _within(self, asked: CacheRequest, known: int, since: float) -> int:
        """Tokens of the first block that is not known that another one after the same prefix begins with."""
        if asked.alike is None:
            return 0
        before = self._path[known] if known >= 0 else START
        for other, tokens in asked.alike.to(before, asked.prefixes[known + 1]):
            if self._asked.get(other, since) > since and self._ready[other] <= asked.started:
                return min(tokens, asked.ends[known + 1] - (asked.ends[known] if known >= 0 else 0))
        return 0
