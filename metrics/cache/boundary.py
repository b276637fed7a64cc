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

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .prefixes import CacheRequest, CacheUsage, common

FIRST_MARKS, LATEST_MARKS, EARLIER_ENDS, WRITTEN_MARKS = 2, 50, 20, 3
MOST_WRITES = 4
"""In one request; the system's end, of which the guide does not say that it is written, stands back."""


@dataclass(frozen=True, slots=True)
class BoundaryRules:
    """What differs by model and date."""

    least: int = 1024
    """Tokens of the shortest prefix that is cached."""
    lifetime: float = 1800.0
    """Seconds after the last write or read; the provider promises no less."""
    system_written: bool = True


class BoundaryCache:
    """One cache. Requests are given in the order they started."""

    __slots__ = ("_entries", "rules")

    def __init__(self, rules: BoundaryRules | None = None) -> None:
        self.rules = rules or BoundaryRules()
        self._entries: dict[int, list[float]] = {}
        """Of each prefix, from when on it can be read, and until when."""

    def request(self, asked: CacheRequest) -> CacheUsage:
        """What is read and written."""
        ends, started = asked.ends, asked.started
        hit = next((block for block in self._looked_up(asked) if self._cached(asked, block)), -1)
        last = hit
        for block in self._written(asked):
            if ends[block] >= self.rules.least and (block > hit or self._cached(asked, block)):
                self._renew(asked, block)
                last = max(last, block)
        if hit >= 0:
            self._entries[asked.prefixes[hit]][1] = started + self.rules.lifetime
        read = ends[hit] if hit >= 0 else 0
        end = ends[last] if last >= 0 else 0
        return CacheUsage(read, end - read, 0, asked.tokens - end, hit)

    def _looked_up(self, asked: CacheRequest) -> Iterable[int]:
        """Blocks where a prefix may be found, the last first."""
        marks, system = asked.marks, asked.system
        if marks:
            places = [mark.block for mark in marks]
            looked_up = {*places[:FIRST_MARKS], *places[-LATEST_MARKS:], *asked.eligible[-1 - EARLIER_ENDS :], system}
            return sorted(looked_up - {-1}, reverse=True)
        latest = [*asked.eligible[-1 - EARLIER_ENDS :]]
        if system >= 0 and latest[:1] != [system]:
            latest.insert(0, system)
        return reversed(latest)

    def _written(self, asked: CacheRequest) -> set[int]:
        """Blocks whose prefixes are to be cached."""
        written = {mark.block for mark in asked.marks[-WRITTEN_MARKS:]}
        written.update(asked.eligible[-1:])
        if self.rules.system_written and asked.system >= 0 and len(written) < MOST_WRITES:
            written.add(asked.system)
        return written

    def _cached(self, asked: CacheRequest, block: int) -> bool:
        entry = self._entries.get(asked.prefixes[block])
        return entry is not None and entry[0] <= asked.started < entry[1] and asked.ends[block] >= self.rules.least

    def _renew(self, asked: CacheRequest, block: int) -> None:
        ready = self._entries[asked.prefixes[block]][0] if self._cached(asked, block) else asked.answered
        self._entries[asked.prefixes[block]] = [ready, asked.started + self.rules.lifetime]


@dataclass(frozen=True, slots=True)
class UnitRules:
    """What differs by model and date."""

    lifetime: float = 7200.0
    """Seconds; assumed, its page says "a few hours to a few days"."""


class UnitCache:
    """One cache. Requests are given in the order they started."""

    __slots__ = ("_ends", "_path", "_units", "rules")

    def __init__(self, rules: UnitRules | None = None) -> None:
        self.rules = rules or UnitRules()
        self._units: dict[int, tuple[float, float]] = {}
        """Of the prefix that ends with each unit, from when on it can be read, and until when."""
        self._path: list[int] = []
        """The last request's, with its answer."""
        self._ends: list[int] = []
        """Blocks of that path where a unit ends, in order."""

    def request(self, asked: CacheRequest) -> CacheUsage:
        """What is read."""
        prefixes, now, last = asked.prefixes, asked.started, len(asked.prefixes) - 1
        shared = self._enter(prefixes) - 1
        ends, units, hit = self._ends, self._units, -1
        for block in reversed(ends):
            ready, until = units[prefixes[block]]
            if ready <= now < until:
                hit = block
                break
        if hit >= 0:
            self._renew(prefixes[hit], asked)
        if shared >= 0 and shared != hit:
            self._renew(prefixes[shared], asked)
            at = bisect_left(ends, shared)
            if ends[at : at + 1] != [shared]:
                ends.insert(at, shared)
        if last not in (hit, shared):
            self._renew(prefixes[last], asked)
            if not ends or ends[-1] != last:
                ends.append(last)
        if asked.answer is not None:
            self._renew(asked.answer, asked)
            self._path.append(asked.answer)
            ends.append(last + 1)
        read = asked.ends[hit] if hit >= 0 else 0
        return CacheUsage(read, 0, 0, asked.tokens - read, hit)

    def _enter(self, prefixes: Sequence[int]) -> int:
        """Leave the last path for this one. How many leading prefixes they share."""
        path, ends = self._path, self._ends
        shared = common(path, prefixes)
        path[shared:] = prefixes[shared:]
        while ends and ends[-1] >= shared:
            ends.pop()
        units = self._units
        ends += [block for block in range(shared, len(path)) if path[block] in units]
        return shared

    def _renew(self, prefix: int, asked: CacheRequest) -> None:
        entry, now = self._units.get(prefix), asked.started
        ready = entry[0] if entry is not None and entry[0] <= now < entry[1] else asked.answered
        self._units[prefix] = (ready, now + self.rules.lifetime)
