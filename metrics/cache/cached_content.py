"""Explicit cached content (Gemini): the caller stores a prefix for a time, and pays for it by the hour.

    create    the prefix up to the last mark, at the plain input price, outside of any prompt
    read      every prompt that goes on from it, until its time is over
    anew      when its time is over, when a prompt no longer begins with it (it is deleted then), or when what is marked
              has grown to `grow` times its size: so what is created in all is at most twice what is there at the end

Storage is paid for from its creation until it is deleted or its time is over; nobody deletes the last one. Source:
ai.google.dev/gemini-api/docs/caching (2026-10-13): 60 minutes unless told otherwise. When to create it anew is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .prefixes import CacheRequest, CacheUsage


@dataclass(frozen=True, slots=True)
class CachedContentRules:
    """What differs by model and date."""

    least: int
    """Tokens of the shortest content that is stored."""
    lifetime: float = 3600.0
    """Seconds from its creation; reading does not prolong it."""
    grow: float = 2.0


class CachedContent:
    """One caller's cached content. Requests are given in the order they started."""

    __slots__ = ("_block", "_created", "_paid", "_prefix", "_tokens", "rules")

    def __init__(self, rules: CachedContentRules) -> None:
        self.rules = rules
        self._prefix, self._block, self._tokens = -1, 0, 0
        """What is stored; no prefix has the number -1."""
        self._created = self._paid = 0.0
        """When it was created, and until when its storage has been paid for."""

    def request(self, asked: CacheRequest) -> CacheUsage:
        """What is read, what was created for it, and storage until now."""
        stored, created = self._pay(asked.started), 0
        mark = asked.marks[-1].block if asked.marks else -1
        wanted = asked.ends[mark] if mark >= 0 else 0
        if not self._holds(asked) or wanted >= self.rules.grow * self._tokens:
            self._prefix = -1
            if wanted >= self.rules.least:
                self._prefix, self._block, self._tokens = asked.prefixes[mark], mark, wanted
                self._created = self._paid = asked.started
                created = wanted
        if self._prefix < 0:
            return CacheUsage(0, 0, 0, asked.tokens, token_seconds=stored)
        return CacheUsage(self._tokens, 0, 0, asked.tokens - self._tokens, self._block, created, stored)

    def finish(self) -> float:
        """No request follows: what is stored stays until its time is over. Tokens times seconds of it."""
        return self._pay(math.inf)

    def _holds(self, asked: CacheRequest) -> bool:
        if self._prefix < 0 or asked.started >= self._created + self.rules.lifetime:
            return False
        return self._block < len(asked.prefixes) and asked.prefixes[self._block] == self._prefix

    def _pay(self, until: float) -> float:
        until = min(until, self._created + self.rules.lifetime)
        if self._prefix < 0 or until <= self._paid:
            return 0.0
        paid, self._paid = self._paid, until
        return self._tokens * (until - paid)
