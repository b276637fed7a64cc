"""Prompt-cache mechanisms of providers, simulated: one class each, with its rules. All take requests in order of start.

**Explicit breakpoints** (Anthropic). A prefix is cached where a request marks its end, and nowhere else.

    read      at each mark, the last first: is this prefix cached? If not, the prefixes that end one block earlier,
              two …, `look_back` places in all, the mark's own among them. The first cached one is read.
    write     one entry at each mark behind what was read. The entry that is read and every marked prefix within it
              get a new lifetime.
    too short prefixes of fewer than `least` tokens are neither read nor written.

A lifetime begins with the start of the request that writes or reads. An entry can be read once the answer to the
request that wrote it has begun, so requests side by side all pay. With two lifetimes the bill has four parts: up to A,
what was read; up to B, the last mark of an hour behind A, written for an hour; up to C, the last mark, written for five
minutes; the rest is plain input. A place is a content block; at the Claude API since autumn 2026 a run of tool calls is
one place, and so is a run of results. Source: platform.claude.com/docs/en/build-with-claude/prompt-caching
(2026-09-26).

**Automatic prefix caches** (OpenAI before GPT-5.6, DeepSeek before V4, Gemini). The longest common prefix with a
request, or with a request and its answer, of the last `lifetime` seconds is read, up to the last end of a `block`; what
is reported is rounded down to `step` tokens, and nothing below `least`. Blocks are counted with `hidden` tokens that
the provider puts in front of the prompt and does not report. Writing is not billed. A prefix that breaks within a block
is common up to there: where requests have texts (`CacheRequest.alike`), the tokens that the block shares with another
one after the same prefix are read too. OpenAI: least 1,024, step 128, answers not counted. DeepSeek before V4: 64 and
64, with the answer; of models that think, the prompt alone but for its last token (`hidden` = -1).

Another server may answer, or the cache may be written late: `CacheUsage.read` is what is read if all is found, `reuse`
the share of it that calls find.

**Boundaries** (OpenAI since GPT-5.6). A boundary is the end of an eligible message (a user's, the last of a row of tool
results, the last of the system messages that a prompt begins with) or of a block that the caller marks.

    looked up   the first 2 and latest 50 marks, the last eligible end, up to 20 before it, the end of the system's
    read        the longest of those that is cached
    written     behind what was read: the last eligible end and the latest 3 marks; billed once, up to the last of them

A request may leave it all to its marks (`CacheRequest.implicit` false): then nothing else is looked up or written, and
the latest 4 marks are written. The end of the system messages is looked up and not written, but where it is the last
eligible end: a static system message before a new user message reads nothing (the guide's own example). Source:
developers.openai.com/api/docs/guides/prompt-caching (2026-09-20).

**Units** (DeepSeek since V4). The end of each prompt and of each answer is a unit, and so is a prefix that two requests
turn out to share: the second misses it, the third reads it. What is reported is rounded down to `step` tokens. Writing
is not billed. Units at fixed intervals within long texts, whose size is not published, are left out. Source:
api-docs.deepseek.com/guides/kv_cache (2026).

**Cached content** (Gemini). The caller stores a prefix for a time, and pays for it by the hour.

    create    the prefix up to the last mark, at the plain input price, outside of any prompt
    read      by every prompt that goes on from it, until its time is over
    anew      when its time is over, when a prompt no longer begins with it (it is deleted then), or when the marked
              prefix has grown to `grow` times its size: so at most twice the final size is created in all

Storage is paid for from its creation until it is deleted or its time is over; nobody deletes the last one. Source:
ai.google.dev/gemini-api/docs/caching (2026-10-13): 60 minutes unless set otherwise. When to create it anew is our rule.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .prefixes import START, CacheMark, CacheRequest, CacheUsage, common

FIVE_MINUTES, HOUR = 300.0, 3600.0
MOST_MARKS = 4


class Cache:
    """A cache of one account at a provider. This one caches nothing."""

    def request(self, request: CacheRequest) -> CacheUsage:
        """Return what a request reads and writes."""
        return CacheUsage(0, 0, 0, request.tokens)


_Entries = dict[int, tuple[float, float, float]]
"""For each prefix in a cache, the time from which it can be read, the time until which it can, and its lifetime."""


def _renew(entries: _Entries, prefix: int, request: CacheRequest, lifetime: float) -> None:
    """Give a prefix a new lifetime, or write it."""
    ready, until, entry = request.answered, request.started + lifetime, entries.get(prefix)
    # Also of an entry that cannot be read yet: both requests pay for writing it, and the answer that begins first makes
    # it readable.
    if entry is not None and request.started < entry[1]:
        ready, until, lifetime = min(entry[0], ready), max(entry[1], until), max(entry[2], lifetime)
    entries[prefix] = ready, until, lifetime


@dataclass(frozen=True, slots=True)
class ExplicitRules:
    """Parameters of explicit breakpoints that differ by model and date."""

    least: int = 1024
    look_back: int = 20  # places looked at for each mark, its own among them; 1 before there was a look-back
    runs: bool = False
    """Whether a run of tool calls, or of tool results, is one place. Else each is: a message with five tool calls has
    five places or, with a text, six."""


class ExplicitCache(Cache):
    """Cache with explicit breakpoints."""

    def __init__(self, rules: ExplicitRules = ExplicitRules()) -> None:
        self.rules = rules
        self._entries: _Entries = {}

    def request(self, request: CacheRequest) -> CacheUsage:
        """Return what a request reads and writes. Raises ValueError for more than four marks: status 400."""
        ends, least, marks = request.ends, self.rules.least, request.marks
        if len(marks) > MOST_MARKS:
            raise ValueError(f"{len(marks)} cache breakpoints, {MOST_MARKS} are the most")
        # Marks come in the order of their blocks and ends never fall, so only the first ones can be too short.
        while marks and ends[marks[0].block] < least:
            marks = marks[1:]
        if not marks:
            return CacheUsage(0, 0, 0, request.tokens)
        entries, prefixes, started, hit = self._entries, request.prefixes, request.started, self._hit(request, marks)
        read = end = 0
        if hit >= 0:
            ready, _, lifetime = entries[prefixes[hit]]
            # The entry's own lifetime, not the mark's: what an hour's mark wrote lasts another hour, whichever mark
            # finds it.
            entries[prefixes[hit]] = ready, started + lifetime, lifetime
            read = end = ends[hit]
        for block, lifetime in marks:
            entry = entries.get(prefixes[block])
            if block > hit or (entry is not None and started < entry[1]):
                _renew(entries, prefixes[block], request, lifetime)
            if lifetime >= HOUR:
                end = max(end, ends[block])
        last = max(end, ends[marks[-1].block])
        # With 1,000 tokens read, a mark of an hour at 3,000, one of five minutes at 5,000 and a prompt of 6,000: `end`
        # is 3,000 and `last` 5,000, so 2,000 are written for five minutes, 2,000 for an hour, and 1,000 are plain.
        return CacheUsage(read, last - end, end - read, request.tokens - last, hit)

    def _hit(self, request: CacheRequest, marks: tuple[CacheMark, ...]) -> int:
        """Return the last block of the longest cached prefix, or -1."""
        prefixes, started, entry_of = request.prefixes, request.started, self._entries.get
        places = (request.run_places if self.rules.runs else request.places) or range(len(prefixes))
        for mark in reversed(marks):
            block, last = mark.block, places[mark.block] - self.rules.look_back
            # Entries end with whole messages, so the walk goes by message; how far it goes is counted in content
            # blocks.
            while block >= 0 and places[block] > last:
                entry = entry_of(prefixes[block])
                if entry is not None and entry[0] <= started < entry[1]:
                    return block
                block -= 1
        return -1


@dataclass(frozen=True, slots=True)
class AutomaticRules:
    """Parameters of automatic prefix caches that differ by provider, model and date."""

    least: int
    step: int  # tokens are reported in multiples of this number
    lifetime: float  # seconds for which an unused prefix stays
    answers: bool = False  # whether the answer is cached as well, as the continuation of its prompt
    block: int = 0  # tokens from one place at which a cached prefix can end to the next; 0 = `step`
    hidden: int = 0
    """Tokens before the prompt that count to the blocks and are not reported; -1 where the last token of a prefix is
    not stored."""
    reuse: float = 1.0  # share of the cached tokens that calls find, since another server may answer; 1 = all

    def read(self, shared: int) -> int:
        """Return the tokens read of a prompt whose first `shared` tokens are cached."""
        block = self.block or self.step
        # GPT-5.5 (512 a block, 128 hidden): of 3,000 shared tokens 3,128 // 512 = 6 blocks are whole, which end at
        # 3,072 - 128 = 2,944. DeepSeek's models that think (64, -1): 128 shared tokens read 64, and 129 read 128.
        end = (shared + self.hidden) // block * block - self.hidden
        read = max(0, end) // self.step * self.step
        return read if read >= self.least else 0


class AutomaticCache(Cache):
    """Automatic prefix cache. Times are stored only for prefixes that a request leaves: a step costs what it adds."""

    def __init__(self, rules: AutomaticRules) -> None:
        self.rules = rules
        self._ready: dict[int, float] = {}  # time from which each prefix can be read
        self._used: dict[int, float] = {}  # time of the last use of each prefix that is not on the last request's path
        self._path: list[int] = []
        self._started = 0.0  # start of the last request

    def request(self, request: CacheRequest) -> CacheUsage:
        rules, now, since, ready = self.rules, request.started, request.started - self.rules.lifetime, self._ready
        cached = self._enter(request.prefixes, since)
        path, size = self._path, len(request.prefixes)
        hit, within = cached, self._within(request, cached, since) if cached + 1 < size else 0
        if rules.answers and request.answer is not None:
            path.append(request.answer)
            # The same answer again: it keeps the time from which it can be read. The loop below would set it to this
            # one's.
            cached += cached + 1 == size and self._used.get(request.answer, since) > since
        while hit >= 0 and ready[path[hit]] > now:
            # Cached soon, not yet: the request that leaves it is still being answered, and so will this one be.
            # `within` lies behind it, so it goes too.
            ready[path[hit]] = min(ready[path[hit]], request.answered)
            hit, within = hit - 1, 0
        ready.update(dict.fromkeys(path[cached + 1 :], request.answered))
        self._started = now
        read = rules.read((request.ends[hit] if hit >= 0 else 0) + within)
        return CacheUsage(read, 0, 0, request.tokens - read, hit if read else -1)

    def _enter(self, prefixes: Sequence[int], since: float) -> int:
        """Leave the last path for this one. Return the last place of the longest (soon to be) cached prefix, or -1."""
        path = self._path
        shared = common(path, prefixes)
        # What the last request used and this one does not was used for the last time when that one began.
        self._used.update(dict.fromkeys(path[shared:], self._started))
        path[shared:] = prefixes[shared:]
        # All that is on the path was last used then or earlier, so nothing of it is left.
        if self._started <= since:
            return -1
        cached = shared - 1
        while cached + 1 < len(path) and self._used.get(path[cached + 1], since) > since:
            cached += 1
        return cached

    def _within(self, request: CacheRequest, cached: int, since: float) -> int:
        """Return the tokens that the first unknown block shares with the start of another one after the same prefix."""
        if request.alike is None:
            return 0
        prefix = request.prefixes[cached + 1]
        for other in request.alike.to(self._path[cached] if cached >= 0 else START, prefix):
            # Those that share the most come first, so the first one that is still cached is the best.
            if self._used.get(other, since) > since and self._ready[other] <= request.started:
                tokens = request.alike.tokens(prefix, other)
                return min(tokens, request.ends[cached + 1] - (request.ends[cached] if cached >= 0 else 0))
        return 0


# Of the guide: marks looked up from the first on and up to the latest, eligible ends looked up before the last one,
# marks written beside the last eligible end, and marks written in a request that leaves all to them.
FIRST_MARKS, LATEST_MARKS, EARLIER_ENDS, WRITTEN_MARKS, MOST_WRITES = 2, 50, 20, 3, 4


@dataclass(frozen=True, slots=True)
class BoundaryRules:
    """Parameters of boundary caches that differ by model and date."""

    least: int = 1024
    lifetime: float = 1800.0  # seconds after the last write or read; the provider promises no less


class BoundaryCache(Cache):
    """Cache that matches at boundaries alone."""

    def __init__(self, rules: BoundaryRules = BoundaryRules()) -> None:
        self.rules = rules
        self._entries: _Entries = {}

    def request(self, request: CacheRequest) -> CacheUsage:
        ends, prefixes, entry_of, marks = request.ends, request.prefixes, self._entries.get, request.marks
        started, rules = request.started, self.rules

        def cached(block: int) -> bool:
            entry = entry_of(prefixes[block])
            return entry is not None and entry[0] <= started < entry[1] and ends[block] >= rules.least

        last = hit = next(filter(cached, self._looked_up(request)), -1)
        written = {mark.block for mark in (marks[-WRITTEN_MARKS:] if request.implicit else marks[-MOST_WRITES:])}
        for block in written.union(request.eligible[-1:] if request.implicit else ()):
            # Within what is read, an entry gets a new lifetime if it is there; none is written, as those tokens are
            # read.
            if ends[block] >= rules.least and (block > hit or cached(block)):
                _renew(self._entries, prefixes[block], request, rules.lifetime)
                last = max(last, block)
        if hit >= 0:
            _renew(self._entries, prefixes[hit], request, rules.lifetime)
        read, end = (ends[block] if block >= 0 else 0 for block in (hit, last))
        return CacheUsage(read, end - read, 0, request.tokens - end, hit)

    def _looked_up(self, request: CacheRequest) -> Iterable[int]:
        """Return the blocks at which a cached prefix may end, the last first."""
        marks = [mark.block for mark in request.marks]
        own = (*request.eligible[-1 - EARLIER_ENDS :], request.system) if request.implicit else ()
        return sorted({*marks[:FIRST_MARKS], *marks[-LATEST_MARKS:], *own} - {-1}, reverse=True)


@dataclass(frozen=True, slots=True)
class UnitRules:
    """Parameters of unit caches that differ by model and date."""

    lifetime: float = 7200.0
    """Seconds. Assumed: its page says "a few hours to a few days"."""
    step: int = 1  # tokens are reported in multiples of this number
    reuse: float = 1.0

    def read(self, shared: int) -> int:
        """Return the tokens read of a prompt whose first `shared` tokens are a unit."""
        return shared // self.step * self.step


class UnitCache(Cache):
    """Cache of whole units."""

    def __init__(self, rules: UnitRules = UnitRules()) -> None:
        self.rules = rules
        self._units: _Entries = {}
        self._path: list[int] = []  # prefixes of the last request, and of its answer
        self._ends: list[int] = []  # blocks of that path where a unit ends, in order

    def request(self, request: CacheRequest) -> CacheUsage:
        prefixes, now, last = request.prefixes, request.started, len(request.prefixes) - 1
        path, ends, units, hit = self._path, self._ends, self._units, -1
        # Leave the last path for this one; `shared` is the last block that both have.
        shared = common(path, prefixes) - 1
        path[shared + 1 :] = prefixes[shared + 1 :]
        while ends and ends[-1] > shared:
            ends.pop()
        # An older request may have gone on here in the same way: its units behind the shared part are found again.
        ends += [block for block in range(shared + 1, len(path)) if path[block] in units]
        # `ends` has blocks where a unit ever ended. Some cannot be read yet, others no longer, so the times decide.
        for block in reversed(ends):
            ready, until, _ = units[prefixes[block]]
            if ready <= now < until:
                hit = block
                break
        read = self.rules.read(request.ends[hit] if hit >= 0 else 0)
        renewed = [prefixes[hit]] if hit >= 0 else []
        # The common prefix is stored only now that two requests are seen to share it: this one still reads the shorter
        # `hit`.
        if shared >= 0 and shared != hit:
            renewed.append(prefixes[shared])
            at = bisect_left(ends, shared)
            if ends[at : at + 1] != [shared]:
                ends.insert(at, shared)
        if last not in (hit, shared):
            renewed.append(prefixes[last])
            if not ends or ends[-1] != last:
                ends.append(last)
        if request.answer is not None:
            renewed.append(request.answer)
            path.append(request.answer)
            ends.append(last + 1)
        for prefix in renewed:
            _renew(units, prefix, request, self.rules.lifetime)
        return CacheUsage(read, 0, 0, request.tokens - read, hit)


@dataclass(frozen=True, slots=True)
class CachedContentRules:
    """Parameters of cached content that differ by model and date."""

    least: int
    lifetime: float = 3600.0  # seconds from its creation; reading does not prolong it
    grow: float = 2.0


class CachedContent(Cache):
    """One caller's cached content."""

    def __init__(self, rules: CachedContentRules) -> None:
        self.rules = rules
        self._prefix, self._block, self._tokens = -1, 0, 0  # the stored prefix; none has the number -1
        self._created = self._paid = 0.0  # time of its creation, and time until which its storage is paid for

    def request(self, request: CacheRequest) -> CacheUsage:
        """Return what a request reads, what is created for it, and the storage since the last one."""
        # Before the content is replaced: until now it is the old one that takes room, at its own size.
        stored, created = self._pay(request.started), 0
        mark = request.marks[-1].block if request.marks else -1
        marked = request.ends[mark] if mark >= 0 else 0
        # Created at 1,000, 2,000 and 4,000 tokens, that is 7,000 in all, less than twice the last size: the sizes
        # before make a geometric series. Creating it anew at every step would grow with the square of the conversation.
        over = self._prefix < 0 or request.started >= self._created + self.rules.lifetime
        parts = self._block >= len(request.prefixes) or request.prefixes[self._block] != self._prefix
        if over or parts or marked >= self.rules.grow * self._tokens:
            self._prefix = -1
            if marked >= self.rules.least:
                self._prefix, self._block, self._tokens = request.prefixes[mark], mark, marked
                self._created = self._paid = request.started
                created = marked
        if self._prefix < 0:
            return CacheUsage(0, 0, 0, request.tokens, token_seconds=stored)
        return CacheUsage(self._tokens, 0, 0, request.tokens - self._tokens, self._block, created, stored)

    def finish(self) -> float:
        """Return the token-seconds of storage after the last request: the content stays until its time is over."""
        return self._pay(math.inf)

    def _pay(self, until: float) -> float:
        until = min(until, self._created + self.rules.lifetime)
        if self._prefix < 0 or until <= self._paid:
            return 0.0
        paid, self._paid = self._paid, until
        return self._tokens * (until - paid)
