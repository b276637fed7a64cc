"""Automatic prefix caches: any prefix that a request has in common with an earlier one is read, in whole units.

    read      the longest common prefix with a request (or a request and its answer) of the last `lifetime` seconds,
              rounded down to `step` tokens, if it is at least `least`
    written   nothing that is billed

OpenAI before GPT-5.6: least 1 024, step 128, answers not counted. DeepSeek before 2026-04: 64 and 64, with the answer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from .prefixes import Request, Used


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


class Automatic:
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

    def request(self, asked: Request) -> Used:
        """What is read."""
        rules, path = self.rules, list(asked.prefixes)
        if rules.answers and asked.answer is not None:
            path.append(asked.answer)
        known = self._known(path, asked.started)
        for prefix in path[known + 1 :]:
            self._ready[prefix] = asked.answered
        self._path, self._started = path, asked.started
        hit = min(known, len(asked.prefixes) - 1)
        while hit >= 0 and self._ready[path[hit]] > asked.started:
            hit -= 1
        units = (asked.ends[hit] if hit >= 0 else 0) // rules.step * rules.step
        read = units if units >= rules.least else 0
        return Used(read, 0, 0, asked.tokens - read, hit if read else -1)

    def _known(self, path: list[int], started: float) -> int:
        """The last place of the longest prefix that is or will be cached, -1 if none. Leaves the last path."""
        shared, since = common(self._path, path), started - self.rules.lifetime
        for prefix in self._path[shared:]:
            self._asked[prefix] = self._started
        known = shared - 1 if self._started > since else -1
        if known == shared - 1:
            while known + 1 < len(path) and self._asked.get(path[known + 1], since) > since:
                known += 1
        return known


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many leading prefixes two paths share. Prefixes that are equal have equal starts, so halving finds it."""
    size = min(len(one), len(other))
    if size and one[size - 1] == other[size - 1]:
        return size
    return bisect_left(range(size), True, key=lambda at: one[at] != other[at])
