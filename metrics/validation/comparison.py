"""Predictions for recorded calls by the cache of their model and date, compared with what the provider reported.

Calls are taken in the order they began, over all conversations: runs of one agent share their prefixes. Each model at
each host has a cache of its own. A call without usage passes the cache by our own count, except one that was stopped,
perhaps before it got there. A call that cannot be compared is left out with its place and the reason.

Each call is put through two caches. One knows the provider's own counts (`KnownEnds`): where a prefix ends in tokens is
learned as the calls come, from their prompts and what they read and wrote. Where nothing was reported, our own count is
added to the nearest known prefix before it; before the first call, what its prompt has over our count (system prompt
and tools that the recording lacks) is put in front (`constant`). The other knows our own counts alone, with a constant
and a factor for each recording and model (`Calibration`).

Where a user's turn strips reasoning (`thinking.py`), the prompt is another from the first answer of the turn before.

Reasons why a prediction and a report disagree (`reason`), as far as the recording tells, or `unknown`:

    changed prefix      the recording shows it: other tools, another thinking level, a prompt that is shorter than the
                        one it goes on from
    parallel requests   the request that wrote the prefix may not have been answered when this one began
    TTL                 still there after its lifetime, or gone in the last tenth of it
    warmed by …         the tokens read are in no earlier recorded request to this cache; or in one without usage, as
                        of a call that was stopped
    not reported        the provider's usage says nothing of the tokens read
    an earlier prefix   what an earlier call could read, or did: another server answered, or the cache was written late
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.errors import MissingExtra, Place, RecordingError
from ctxbench.scenarios.model import STOPPED, Conversation, Usage

from ..cache.mechanisms import MOST_MARKS, AutomaticRules, ExplicitRules, UnitRules
from ..cache.prefixes import CacheRequest, CacheUsage, Prefixes, SharedStarts, common
from ..cache.rules import CacheRule, cache_of
from ..prices import Prices
from ..tokens import ENCODINGS, TokenCounter, encoding_of
from .requests import TOOLS, Asking, Assumed, RecordedPrompt, RecordedRequest, said


def integers(values: NDArray[np.int64]) -> array[int]:
    """Return an array whose items are Python's: as quick to copy, and nothing of NumPy gets into figures."""
    return array("q", values.tobytes())


OTHERWISE = "o200k_base"  # encoding of models whose own is not published
_UNKNOWN, _NO_BOUND = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class KnownEnds:
    """Tokens up to the end of each prefix of a model, as the provider counted them; ends that it has not told are

        before the first known end   our count, with what the prompt has over our count put in front
        behind a known end           its tokens, plus our count from there
        behind the last known end    the rest of the prompt, in proportion to our counts

    No end lies beyond a known one behind it, below 0 or beyond the prompt.
    """

    def __init__(self) -> None:
        self._ends = np.full(1024, _UNKNOWN)  # by the number of the prefix
        self.empty = True

    def __contains__(self, prefix: int) -> bool:
        return prefix < len(self._ends) and self._ends[prefix] != _UNKNOWN

    def learn(self, prefix: int, tokens: int) -> None:
        """Record where a prefix ends; what was known of it before no longer counts."""
        self._reach(prefix)
        self._ends[prefix], self.empty = tokens, False

    def _reach(self, prefix: int) -> None:
        if prefix >= len(self._ends):
            self._ends = np.append(self._ends, np.full(max(prefix, len(self._ends)), _UNKNOWN))

    def of(self, prompt: RecordedPrompt, size: int, tokens: int) -> array[int]:
        """Return the ends of the first `size` blocks of a prompt of so many tokens."""
        blocks, counts = prompt.blocks[:size], prompt.counts[:size]
        self._reach(int(blocks[-1]))  # numbers along a prompt rise
        told = self._ends[blocks]
        known = told != _UNKNOWN
        # For each block, the last one up to it whose end is known, or -1.
        before = np.maximum.accumulate(np.where(known, np.arange(size), -1))
        ends = counts + np.where(before >= 0, told[before] - counts[before], tokens - counts[-1])
        # Known ends 10, 30, 20 and 40: no end before the third block is above 20, whatever was reported of the second.
        least = np.minimum.accumulate(np.where(known, told, _NO_BOUND)[::-1])[::-1]
        ends = np.minimum(np.maximum(ends, 0), tokens)
        ends[:-1] = np.minimum(ends[:-1], np.maximum(least[1:], 0))
        last = int(before[-1])
        if last >= 0 and counts[-1] > counts[last]:
            # Known up to 1,000 tokens, where we count 800, in a prompt of 1,300 that we count as 1,000: each of our
            # tokens behind it is 1.5 of the provider's, so that the last block ends with the prompt.
            start = min(max(int(told[last]), 0), tokens)
            scale = max(0, tokens - start) / (counts[-1] - counts[last])
            if scale:
                behind = start + np.rint((counts[last + 1 :] - counts[last]) * scale)
                ends[last + 1 :] = np.minimum(behind, tokens)
        return integers(ends)


class Calibration:
    """Factors and constants of recorded calls, from all of them: tokens of a prompt = constant + factor × our count.

    The factor is the total growth of the recorded prompts from call to call over the growth of our counts. For each
    conversation it is fitted on the others of its model, where there are others; else on itself. The constant is the
    rest of the conversation's first prompt: system prompt and tools that the recording lacks, and what a provider puts
    around them. So a first prompt has no error, and errors are those of later calls.
    """

    def __init__(self, calls: Iterable[RecordedRequest] = ()) -> None:
        """Fit on calls in the order of their conversations. Prompts continued from another context do not count."""
        self.growths: dict[str, dict[str, tuple[int, int]]] = {}
        """How much prompts of a model in a conversation grew from call to call, summed: by our count, as recorded."""
        # Our count and the provider's, for the first prompt of a model in a conversation.
        self._firsts: dict[tuple[str, str], tuple[int, int]] = {}
        self._ends: dict[RecordedPrompt, array[int]] = {}
        before: dict[tuple[str, str], tuple[RecordedPrompt, int, int]] = {}
        for recorded in calls:
            usage, model, conversation = recorded.call.usage, recorded.call.model, recorded.conversation.id
            if usage is None or usage.input is None:
                continue
            count = recorded.counted
            self._firsts.setdefault((model, conversation), (count, usage.input))
            context, *counts = before.get((model, conversation), (None, 0, 0))
            if context is recorded.context:
                growths = self.growths.setdefault(model, {})
                ours, theirs = growths.get(conversation, (0, 0))
                growths[conversation] = ours + count - counts[0], theirs + usage.input - counts[1]
            before[model, conversation] = recorded.context, count, usage.input

    def factor(self, model: str, conversation: str = "") -> float:
        """Return a model's factor in a conversation: fitted on the others, if there are any. 1 where nothing grew."""
        growths = self.growths.get(model, {})
        # Without its own growth: else the factor would be judged on what it was fitted on.
        fitted = [growth for name, growth in growths.items() if name != conversation or len(growths) == 1]
        ours, recorded = (sum(growth[at] for growth in fitted) for at in range(2))
        # Of sums. The median of the calls' ratios weighs short messages, which are all frame, as much as long ones
        # (7.9 % off for DeepSeek, up to 15 % for pi), least squares were up to 7.8 % off (decision 33).
        return recorded / ours if ours > 0 and recorded > 0 else 1.0

    def ends(self, call: RecordedRequest) -> array[int]:
        """Return where a prompt's blocks end by our calibrated count; no constant where no call reports its prompt."""
        if call.context not in self._ends:
            factor = self.factor(call.call.model, call.conversation.id)
            ours, recorded = self._firsts.get((call.call.model, call.conversation.id), (0, 0))
            ends = np.rint(recorded - factor * ours + factor * call.context.counts)
            self._ends[call.context] = integers(np.maximum(ends, 0).astype(np.int64))
        return self._ends[call.context][: call.size]


class Counters(dict[str, TokenCounter]):
    """The token counter of each model, made when it is first asked for."""

    def __init__(self) -> None:
        self.lacking: dict[str, str] = {}
        """Remedy for each model whose own encoding is not installed."""
        self._counter = cache(TokenCounter)

    def __missing__(self, model: str) -> TokenCounter:
        encoding = encoding_of(model)
        try:
            counter = self._counter(encoding if encoding in ENCODINGS else OTHERWISE)
        except MissingExtra as missing:
            self.lacking[model], counter = str(missing), self._counter(OTHERWISE)
        self[model] = counter
        return counter


class ComparedCall(NamedTuple):
    """One recorded call: the usage that the cache model predicts, and the one that the provider reported."""

    asked: RecordedRequest
    rule: CacheRule
    usage: Usage
    predicted: CacheUsage
    own: CacheUsage  # prediction by our own token counts, calibrated
    reason: str  # why prediction and report disagree, as far as can be told; empty if they agree
    gap: float | None  # seconds since the call before in the conversation and cache began; None for its first
    expired: tuple[bool, bool] | None = None
    """After a gap longer than the lifetime: whether the entry is predicted to be gone, and whether it was."""

    @property
    def model(self) -> str:
        """Model as the recording names it."""
        return self.asked.call.model

    @property
    def read(self) -> int:
        return self.usage.cache_read or 0

    @property
    def reported(self) -> bool:
        """Whether the provider reports the tokens read, if any can have been."""
        return self.usage.cache_read is not None or not self.predicted.read

    @property
    def readable(self) -> bool:
        """Whether a call after the first of its conversation read something, or is predicted to."""
        return self.gap is not None and self.reported and bool(self.predicted.read or self.read)

    @property
    def exact(self) -> bool:
        """Whether the tokens read are as predicted."""
        return self.reported and self.predicted.read == self.read


class CacheReplay:
    """Recorded calls through the caches of their models."""

    def __init__(self, counters: Mapping[str, TokenCounter], prices: Prices | None = None) -> None:
        """`counters` has the token counter of each model, `prices` know the context windows."""
        self._prices = prices or Prices()
        self.without_rule = Counter[str]()
        """Calls of models for which there is no rule."""
        self.left_out: list[RecordingError] = []
        """Calls that cannot be compared, each with its place and why."""
        self.calibration = Calibration()
        self.counted: list[RecordedRequest] = []
        """Calls whose token counts can be believed, in the order they began."""
        self._prefixes = cache(lambda model: Prefixes(SharedStarts.under(counters[model].encoding, said)))
        self._asking = Asking(counters, self._prefixes)
        self.assumed: set[Assumed] = self._asking.assumed
        """Assumptions made about the recordings."""
        self._known = defaultdict[str, KnownEnds](KnownEnds)  # by model
        self._caches: dict[tuple[str, str, str], ReplayedCache] = {}

    def compare(self, conversations: Iterable[Conversation]) -> Iterator[ComparedCall]:
        """Yield each call that reports its usage and can be compared, in the order they began."""
        requests = [recorded for conversation in conversations for recorded in self._asking.calls(conversation)]
        # Calls whose counts cannot be believed, and those whose time cannot.
        uncounted, mistimed = set[int](), set[int]()
        for recorded in requests:
            if recorded.call.usage is not None and (fault := fault_of(recorded, self._prices)) is not None:
                (mistimed if fault[0] == "started" else uncounted).add(id(recorded))
                (field, what, remedy), talk = fault, recorded.conversation
                place = Place(talk.source or talk.id, 0, f"messages[{recorded.at}].call.{field}")
                self.left_out.append(RecordingError(place, f"{talk.messages[recorded.at].id}: {what}", remedy))
        # Stable: calls that began at once stay in the order of their conversations.
        requests.sort(key=lambda recorded: recorded.started)
        self.counted += [
            recorded for recorded in requests if recorded.call.usage is not None and id(recorded) not in uncounted
        ]
        self.calibration = Calibration(self.counted)
        for recorded in requests:
            usage, rule = recorded.call.usage, recorded.rule
            if rule is None:
                if usage is not None:
                    self.without_rule[recorded.call.model] += 1
                continue
            if recorded.cache not in self._caches:
                self._caches[recorded.cache] = ReplayedCache(rule)
            replayed = self._caches[recorded.cache]
            ends = self.calibration.ends(recorded)
            if usage is None or id(recorded) in uncounted:
                # If it was answered, its prompt went through the cache.
                replayed.pass_over(recorded)
                if recorded.call.stop not in STOPPED:
                    replayed.use(self._request(recorded, ends[-1]), ends)
            else:
                request = self._request(recorded, usage.input or 0)
                row = replayed.compare(recorded, request, ends, usage)
                hidden = 0 if recorded.context.kept.of(recorded.at) else usage.reasoning or 0
                self._learn(request, row.predicted, usage, self._known[recorded.call.model], hidden)
                if id(recorded) not in mistimed:
                    yield row

    def _request(self, recorded: RecordedRequest, tokens: int) -> CacheRequest:
        context, size, known = recorded.context, recorded.size, self._known[recorded.call.model]
        if known.empty:
            self.assumed.add("constant")
        boundaries, prefixes = context.boundaries, self._prefixes(recorded.call.model)
        boundaries.reach(size - TOOLS)
        blocks, answer = integers(context.blocks[:size]), recorded.conversation.messages[recorded.at]
        explicit = recorded.rule is not None and isinstance(recorded.rule.rules, ExplicitRules)
        ends, usage = known.of(context, size, tokens), recorded.call.usage
        if explicit and usage is not None and not recorded.call.marks and usage.cache_write:
            # The breakpoint that is assumed at the end of the prompt was where the tokens read and written end.
            for block in range(size - 1, -1, -1):
                if ends[block] <= (end := (usage.cache_read or 0) + usage.cache_write):
                    break
                ends[block] = end
        return CacheRequest(
            blocks,
            ends,
            tokens,
            recorded.started,
            recorded.answered,
            recorded.marks[-MOST_MARKS:] if explicit else recorded.marks,
            prefixes.after(blocks[-1], context.answer(answer, recorded.at)),
            boundaries.eligible,
            boundaries.system,
            prefixes.alike,
            boundaries.places,
            boundaries.run_places,
        )

    def _learn(self, request: CacheRequest, used: CacheUsage, usage: Usage, known: KnownEnds, hidden: int) -> None:
        """Learn from the reported counts of a call where prefixes end. `hidden`: reasoning that is not sent again."""
        read, written = usage.cache_read or 0, usage.cache_write or 0
        if usage.input is not None:
            known.learn(request.prefixes[-1], usage.input)
            if request.answer is not None and usage.output is not None:
                known.learn(request.answer, usage.input + usage.output - hidden)
        if request.marks:
            if read or written:
                known.learn(request.prefixes[request.marks[-1].block], read + written)
            if read and (used.hit >= 0 or len(request.marks) > 1):
                prefix = request.prefixes[used.hit if used.hit >= 0 else request.marks[0].block]
                if prefix not in known:
                    known.learn(prefix, read)


def fault_of(recorded: RecordedRequest, prices: Prices) -> tuple[str, str, str] | None:
    """Return why a call with usage cannot be compared (field, what, remedy), or None.

    Where its time (`started`) is wrong, its counts are right all the same. `prices` know the context windows.
    """
    usage, rules, marks = recorded.call.usage, recorded.rule and recorded.rule.rules, len(recorded.call.marks)
    if usage is None or usage.input is None:
        return "usage.input", "nothing says how long its prompt was", "add the count of its tokens"
    tariff = prices.tariff(recorded.call.model)
    # Where longer prompts than the window have a price, the window is not known.
    window = tariff.window if tariff is not None else None
    if tariff is not None and window is not None and tariff.tiers[-1][0] < window < usage.input:
        what = f"a prompt of {usage.input:,} tokens, and {recorded.call.model} takes {window:,}"
        return "usage.input", what, "correct the count or the model's name"
    if isinstance(rules, ExplicitRules) and marks > MOST_MARKS:
        what = f"{marks} cache breakpoints, of which a provider takes {MOST_MARKS}"
        return "marks", what, "remove those that were not sent"
    return ("started", recorded.clock, "correct its time") if recorded.clock else None


UNKNOWN = "unknown: "
SILENT = "warmed by a call that reports no usage"
OTHERS = "warmed by another run"
EARLIER = "an earlier prefix was read: another server answered, or the cache was written late"
LATE = 0.9  # share of a lifetime after which an entry may be gone early
STALE = 2.0  # number of lifetimes after which an entry that is still there was written anew by somebody
CLOSE = 16  # tokens by which the end of a prefix that was never reported may be off


class ReplayedCache:
    """The cache of a model at a host: predicted with the provider's token counts and with ours, and its requests."""

    def __init__(self, rule: CacheRule) -> None:
        self._rule, self._predicted, self._own = rule, cache_of(rule.rules), cache_of(rule.rules)
        self._before: dict[str, ComparedCall] = {}  # the last call of each conversation
        self._warm: dict[str, int] = {}  # tokens that the first call of each conversation read
        self._first: dict[int, float] = {}  # time when the first request with each prefix was answered
        self._silent: set[int] = set()  # prefixes of calls without usage
        self._left: set[int] = set()  # prefixes of whole requests, or with their answers
        self._reads = defaultdict[str, set[int]](set)  # tokens that calls of each conversation are reported to read
        # Time when the last request with each prefix began that is not on the last path, and the last path with its
        # time.
        self._last: dict[int, float] = {}
        self._path: list[int] = []
        self._started = 0.0

    def use(self, request: CacheRequest, ends: Sequence[int], warm: int = 0) -> tuple[CacheUsage, CacheUsage]:
        """Put a request through both caches; `ends` are those of its blocks by our own count, `warm` the tokens at its
        start that other runs keep in the cache."""
        used, own = self._predicted.request(request), self._own.request(replace(request, ends=ends, tokens=ends[-1]))
        if used.read < warm:
            used = used.with_read(warm)
        return used, own.with_read(warm) if own.read < warm else own

    def compare(
        self, recorded: RecordedRequest, request: CacheRequest, ends: Sequence[int], usage: Usage
    ) -> ComparedCall:
        """Put a request through both caches and compare the provider's usage with what is predicted."""
        name, gap, expired = recorded.conversation.id, None, None
        before, warm = self._before.get(name), 0
        if before is None:
            self._warm[name] = usage.cache_read or 0
        else:
            gap, lasts = recorded.started - before.asked.started, before.asked.lifetime
            # What the first call read, other runs keep. They pause with this one: after a pause it was gone in all
            # sessions of Claude Code; in Codex, all of whose users share it, it was there.
            is_gone = isinstance(self._rule.rules, ExplicitRules) and lasts is not None and gap > lasts
            warm = 0 if is_gone else self._warm[name]
        used, own = self.use(request, ends, warm)
        # Judged by what was known before it. Only then is it added.
        why = "" if used.read == (usage.cache_read or 0) else self._reason(recorded, usage, request, used, before)
        if before is not None:
            was = before.usage
            cached = (was.cache_read or 0) + (was.cache_write or 0) or before.predicted.read + before.predicted.written
            # Nothing else changed, and the gap is longer than the lifetime.
            alone = gap is not None and lasts is not None and gap > lasts and recorded.context is before.asked.context
            if alone and cached and usage.cache_read is not None:
                expired = used.read < cached, usage.cache_read < cached
        self._add(name, request, usage)
        self._before[name] = row = ComparedCall(recorded, self._rule, usage, used, own, why, gap, expired)
        return row

    def _add(self, conversation: str, request: CacheRequest, usage: Usage) -> None:
        """Record a request, for its prefix and every shorter one."""
        if usage.cache_read is not None:
            self._reads[conversation].add(usage.cache_read)
        path, shared = self._path, common(self._path, request.prefixes)
        self._last.update(dict.fromkeys(path[shared:], self._started))
        path[shared:] = request.prefixes[shared:]
        self._left.add(path[-1])
        if request.answer is not None:
            path.append(request.answer)
            self._left.add(request.answer)
        self._started = request.started
        # With a prefix all shorter ones are known, so the first that is known ends the walk.
        for prefix in reversed(path):
            if prefix in self._first:
                break
            self._first[prefix] = request.answered

    def pass_over(self, recorded: RecordedRequest) -> None:
        """Record a call without usage, which may or may not have reached the cache."""
        for prefix in recorded.context.blocks[: recorded.size].tolist()[::-1]:
            if prefix in self._silent:
                break
            self._silent.add(prefix)

    def _reason(
        self,
        recorded: RecordedRequest,
        usage: Usage,
        request: CacheRequest,
        used: CacheUsage,
        before: ComparedCall | None,
    ) -> str:
        """Return why the tokens read are not as predicted."""
        read, hit = usage.cache_read, request.prefixes[used.hit] if used.hit >= 0 else None
        if read is None:
            return "not reported"
        if hit in self._silent and hit not in self._first:
            return SILENT
        if before is not None and (changes := _changes(before, recorded, usage)):
            return f"changed prefix: {changes}"
        if read > used.read:
            return self._why_more(recorded, request, used, read)
        if hit is not None and self._first.get(hit, recorded.earliest) > recorded.earliest:
            return "parallel requests: what another one wrote was not there yet"
        lasts = before and before.asked.lifetime
        if before is not None and lasts and LATE * lasts <= recorded.started - before.asked.started <= lasts:
            return "TTL: gone in the last tenth of its lifetime"
        if read:
            rules = self._rule.rules
            counted = rules.read if isinstance(rules, (AutomaticRules, UnitRules)) else int
            # Longer prefixes are read no shorter: those of so many tokens stand side by side.
            first = bisect_left(request.ends, read, 0, max(used.hit, 0), key=counted)
            last = bisect_right(request.ends, read, first, max(used.hit, 0), key=counted)
            could = any(request.prefixes[block] in self._left for block in range(first, last))
            earlier = could or read in self._reads[recorded.conversation.id]
            return EARLIER if earlier else f"{UNKNOWN}a shorter prefix was read"
        turn = recorded.conversation.messages[recorded.at - 1].role == "user"
        return UNKNOWN + "gone before its lifetime" + (", at a user's turn" if turn else "")

    def _why_more(self, recorded: RecordedRequest, request: CacheRequest, used: CacheUsage, read: int) -> str:
        """Return why more was read than predicted."""
        written = _deepest(request, self._first)
        if _deepest(request, self._silent) > max(used.hit, written):
            return SILENT
        if written < 0 or read > request.ends[written] + CLOSE:
            return OTHERS
        prefix, lasts = request.prefixes[written], recorded.lifetime
        if self._first[prefix] > recorded.started:
            return "parallel requests: what another one wrote was there before it was answered"
        at = bisect_left(self._path, prefix)  # the numbers along a path rise
        last = self._started if self._path[at : at + 1] == [prefix] else self._last[prefix]
        since = recorded.started - last
        if lasts and since > STALE * lasts:
            return OTHERS
        return (
            "TTL: still there after its lifetime" if lasts and since > lasts else UNKNOWN + "a longer prefix was read"
        )


def _changes(before: ComparedCall, recorded: RecordedRequest, usage: Usage) -> str:
    """Return what the recording shows to differ from the prompt that a call goes on from; empty if nothing."""
    was, now, usual = before.asked.call, recorded.call, recorded.conversation.tools
    if (usual if was.tools is None else was.tools) != (usual if now.tools is None else now.tools):
        return "other tools"
    if was.effort != now.effort:
        return f"thinking {was.effort or 'unset'}, now {now.effort or 'unset'}"
    shorter = (before.usage.input or 0) > (usage.input or 0)
    return "the prompt is shorter than the one before" if shorter and before.asked.context is recorded.context else ""


def _deepest(request: CacheRequest, known: Collection[int]) -> int:
    """Return the last block of the longest known prefix, or -1. With a prefix all shorter ones are known."""
    return bisect_left(request.prefixes, True, key=lambda prefix: prefix not in known) - 1
