"""Caches that match at boundaries alone: OpenAI since GPT-5.6, DeepSeek since V4. No part of a unit is ever read.

`Boundary` (OpenAI). A boundary is the end of an eligible message (a user's, the last of a row of tool results, the last
of the system messages that a prompt begins with) or of a block that the caller marks.

    looked up   the first 2 and latest 50 marks, the last eligible end, up to 20 before it, the end of the system's
    read        the longest of those that is cached
    written     behind what was read: the last eligible end and the latest 3 marks; billed once, up to the last of them

Source: developers.openai.com/api/docs/guides/prompt-caching (2026-10-02). It does not say whether the end of the system
messages is written too; that it is looked up is of no use otherwise, so it is (`system_written`).

`Units` (DeepSeek). The end of each prompt and of each answer is a unit, and so is a prefix that two requests turn out
to share: the second misses it, the third reads it. Nothing is billed for writing. Units at fixed intervals within long
texts, whose size is not published, are left out. Source: api-docs.deepseek.com/guides/kv_cache (2026).
"""

from __future__ import annotations

from dataclasses import dataclass

from .automatic import common
from .prefixes import Request, Used

FIRST_MARKS, LATEST_MARKS, EARLIER_ENDS, WRITTEN_MARKS = 2, 50, 20, 3


@dataclass(frozen=True, slots=True)
class BoundaryRules:
    """What differs by model and date."""

    least: int = 1024
    """Tokens of the shortest prefix that is cached."""
    lifetime: float = 1800.0
    """Seconds after the last write or read; the provider promises no less."""
    system_written: bool = True


class Boundary:
    """One cache. Requests are given in the order they started."""

    __slots__ = ("_entries", "rules")

    def __init__(self, rules: BoundaryRules | None = None) -> None:
        self.rules = rules or BoundaryRules()
        self._entries: dict[int, tuple[float, float]] = {}
        """Of each prefix, from when on it can be read, and until when."""

    def request(self, asked: Request) -> Used:
        """What is read and written."""
        marks = [mark.block for mark in asked.marks]
        ends = list(asked.eligible)
        system = [] if asked.system < 0 else [asked.system]
        looked_up = {*marks[:FIRST_MARKS], *marks[-LATEST_MARKS:], *ends[-1 - EARLIER_ENDS :], *system}
        hit = max((block for block in looked_up if self._cached(asked, block)), default=-1)
        writes = {*ends[-1:], *marks[-WRITTEN_MARKS:], *(system if self.rules.system_written else [])}
        last = hit
        for block in sorted(writes):
            if asked.ends[block] >= self.rules.least and (block > hit or self._cached(asked, block)):
                self._renew(asked, block)
                last = max(last, block)
        if hit >= 0:
            self._renew(asked, hit)
        read = asked.ends[hit] if hit >= 0 else 0
        end = asked.ends[last] if last >= 0 else 0
        return Used(read, end - read, 0, asked.tokens - end, hit)

    def _cached(self, asked: Request, block: int) -> bool:
        ready, until = self._entries.get(asked.prefixes[block], (0.0, asked.started))
        return asked.ends[block] >= self.rules.least and ready <= asked.started < until

    def _renew(self, asked: Request, block: int) -> None:
        ready = self._entries[asked.prefixes[block]][0] if self._cached(asked, block) else asked.answered
        self._entries[asked.prefixes[block]] = (ready, asked.started + self.rules.lifetime)


@dataclass(frozen=True, slots=True)
class UnitRules:
    """What differs by model and date."""

    lifetime: float = 7200.0
    """Seconds; assumed, its page says "a few hours to a few days"."""


class Units:
    """One cache. Requests are given in the order they started."""

    __slots__ = ("_path", "_units", "rules")

    def __init__(self, rules: UnitRules | None = None) -> None:
        self.rules = rules or UnitRules()
        self._units: dict[int, tuple[float, float]] = {}
        """Of the prefix that ends with each unit, from when on it can be read, and until when."""
        self._path: list[int] = []
        """The last request's."""

    def request(self, asked: Request) -> Used:
        """What is read."""
        prefixes, now = asked.prefixes, asked.started
        hit = len(prefixes) - 1
        while hit >= 0 and not self._cached(prefixes[hit], now):
            hit -= 1
        shared = common(self._path, prefixes) - 1
        for block in {hit, shared, len(prefixes) - 1} - {-1}:
            self._renew(prefixes[block], asked)
        self._path = list(prefixes)
        if asked.answer is not None:
            self._renew(asked.answer, asked)
            self._path.append(asked.answer)
        read = asked.ends[hit] if hit >= 0 else 0
        return Used(read, 0, 0, asked.tokens - read, hit)

    def _cached(self, prefix: int, now: float) -> bool:
        ready, until = self._units.get(prefix, (0.0, now))
        return ready <= now < until

    def _renew(self, prefix: int, asked: Request) -> None:
        ready = self._units[prefix][0] if self._cached(prefix, asked.started) else asked.answered
        self._units[prefix] = (ready, asked.started + self.rules.lifetime)
