"""Explicit breakpoints (Anthropic): a prefix is cached where a request marks its end, and nowhere else.

    read      at each mark, the last first: is this prefix cached? If not, the prefixes that end one block earlier,
              two …, `look_back` places in all, the mark's own among them. The first one found is read.
    write     at each mark behind what was read, one entry. What is read lives anew, and every marked prefix within it.
    too short prefixes of fewer than `least` tokens are neither read nor written.

A lifetime begins with the start of the request that writes or reads; an entry can be read once the answer to the
request that wrote it has begun: requests side by side all pay. What is billed with two lifetimes: up to A, what was
read; up to B, the last mark of an hour behind A, written for an hour; up to C, the last mark, written for five minutes;
the rest is plain input. Source: platform.claude.com/docs/en/build-with-claude/prompt-caching (2026-08-21).
"""

from __future__ import annotations

from dataclasses import dataclass

from .prefixes import CacheMark, CacheRequest, CacheUsage

HOUR = 3600.0
MOST_MARKS = 4


class TooManyMarks(ValueError):
    """A request that the provider answers with status 400."""


@dataclass(frozen=True, slots=True)
class ExplicitRules:
    """What differs by model and date."""

    least: int = 1024
    """Tokens of the shortest prefix that is cached."""
    look_back: int = 20
    """Places looked at for each mark, its own among them; 1 before there was a look-back. A place is a content block:
    a message with five tool calls has five or, with a text, six."""


@dataclass(slots=True)
class _Entry:
    """One prefix in the cache."""

    until: float
    ready: float
    """From when on it can be read."""
    lifetime: float


class ExplicitCache:
    """One cache. Requests are given in the order they started."""

    __slots__ = ("_entries", "rules")

    def __init__(self, rules: ExplicitRules | None = None) -> None:
        self.rules = rules or ExplicitRules()
        self._entries: dict[int, _Entry] = {}

    def request(self, asked: CacheRequest) -> CacheUsage:
        """What is read and written. Raises TooManyMarks for more than four marks."""
        ends, least, marks = asked.ends, self.rules.least, asked.marks
        if len(marks) > MOST_MARKS:
            raise TooManyMarks(f"{len(marks)} cache breakpoints, {MOST_MARKS} are the most")
        while marks and ends[marks[0].block] < least:
            marks = marks[1:]
        if not marks:
            return CacheUsage(0, 0, 0, asked.tokens)
        hit = self._hit(asked, marks)
        read = end = 0
        if hit >= 0:
            found = self._entries[asked.prefixes[hit]]
            found.until = asked.started + found.lifetime
            read = end = ends[hit]
        for mark in marks:
            self._mark(asked, mark, mark.block <= hit)
            if mark.lifetime >= HOUR:
                end = max(end, ends[mark.block])
        last = max(end, ends[marks[-1].block])
        return CacheUsage(read, last - end, end - read, asked.tokens - last, hit)

    def _hit(self, asked: CacheRequest, marks: tuple[CacheMark, ...]) -> int:
        """The block at whose end the longest prefix ends that is found; -1 if none is."""
        prefixes, started, known, look_back = asked.prefixes, asked.started, self._entries.get, self.rules.look_back
        places = asked.places or range(len(prefixes))
        for mark in reversed(marks):
            block, last = mark.block, places[mark.block] - look_back
            while block >= 0 and places[block] > last:
                entry = known(prefixes[block])
                if entry is not None and entry.ready <= started < entry.until:
                    return block
                block -= 1
        return -1

    def _mark(self, asked: CacheRequest, mark: CacheMark, read: bool) -> None:
        """Renew the entry of a mark, or write it if what it marks was not read."""
        entry = self._entries.get(asked.prefixes[mark.block])
        if entry is not None and asked.started < entry.until:
            entry.until = max(entry.until, asked.started + mark.lifetime)
            entry.lifetime = max(entry.lifetime, mark.lifetime)
        elif not read:
            made = _Entry(asked.started + mark.lifetime, asked.answered, mark.lifetime)
            self._entries[asked.prefixes[mark.block]] = made
