"""Predictions for recorded calls by the cache of their model and date, compared with what the provider reported.

Calls are taken in the order they began, over all conversations: runs of one agent share their prefixes. Each model at
each host has a cache of its own. `requests.py` rebuilds the prompts. A call without usage passes the cache by our own
count, except one that was stopped, perhaps before it got there.

Each call is put through two caches. One knows the provider's own counts: where a prefix ends in tokens is learned as
the calls come, from the prompt of a call, what it read and wrote up to its last mark, its prompt with the answer. For
prefixes of which nothing was reported, our own count is added to the nearest prefix before it that is known; before
the first call, what its prompt has over our count (system prompt and tools that the recording lacks) is put in front
(`constant`). So what is tested is the cache. The other knows our own counts alone, calibrated (`calibration.py`).

Reasoning is in prompts as the model's provider keeps it (`thinking.py`). Where a user's turn strips it, the prompt is
another one from the first answer of the turn before on.

A call that cannot be compared is left out with its place and the reason, and the others are compared.

Reasons why a prediction and a report disagree (`reason`), as far as the recording tells; otherwise `unknown`:

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

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ctxbench.scenarios.errors import Place, RecordingError
from ctxbench.scenarios.model import STOPPED, Conversation, Usage

from ..cache.mechanisms import MOST_MARKS, AutomaticRules, ExplicitRules, UnitRules
from ..cache.prefixes import CacheRequest, CacheUsage, Prefixes, SentPrefix, common
from ..cache.requests import Boundaries
from ..cache.rules import Cache, CacheRule, cache_of
from ..prices import Prices
from ..tokens import TokenCounter
from .calibration import Calibration, KnownEnds, integers
from .requests import Asking, Assumed, RecordedPrompt, RecordedRequest, numbering


class ComparedCall(NamedTuple):
    """One recorded call: the usage that the cache model predicts, and the one that the provider reported."""

    asked: RecordedRequest
    rule: CacheRule
    usage: Usage
    predicted: CacheUsage
    own: CacheUsage
    """Prediction by our own token counts, calibrated."""
    reason: str
    """Why prediction and report disagree, as far as can be told; empty if they agree."""
    gap: float | None
    """Seconds since the call before in the conversation and cache began; None for its first."""
    expired: tuple[bool, bool] | None = None
    """After a gap longer than the lifetime: whether the entry is predicted to be gone, and whether it was."""

    @property
    def conversation(self) -> str:
        return self.asked.conversation.id

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
    def exact(self) -> bool:
        """Whether the tokens read are as predicted."""
        return self.reported and self.predicted.read == self.read


TOOLS = 1
"""Blocks before the messages of a recorded prompt: the tools."""

Key = tuple[str, str, str]
"""Key of a cache: host, model, and the first day of its rule."""


@dataclass(slots=True)
class CacheReplay:
    """Recorded calls through the caches of their models."""

    counter: Callable[[str], TokenCounter]
    """Counts for a model."""
    prices: Prices = field(default_factory=Prices)
    without_rule: Counter[str] = field(default_factory=Counter)
    """Calls of models for which there is no rule."""
    left_out: list[RecordingError] = field(default_factory=list)
    """Calls that cannot be compared, each with its place and why."""
    calibration: Calibration = field(default_factory=Calibration)
    counted: list[RecordedRequest] = field(default_factory=list)
    """Calls whose token counts can be believed, in the order they began."""
    _asking: Asking = field(init=False)
    _numberings: dict[str, Prefixes] = field(default_factory=dict)  # by model
    _known: dict[str, KnownEnds] = field(default_factory=lambda: defaultdict(KnownEnds))  # by model
    _boundaries: dict[RecordedPrompt, Boundaries] = field(default_factory=dict)
    _caches: dict[Key, tuple[Cache, Cache]] = field(default_factory=dict)
    _traces: dict[Key, CallTrace] = field(default_factory=lambda: defaultdict(CallTrace))
    _before: dict[tuple[str, Key], Before] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._asking = Asking(self._prefixes, self.counter)

    def _prefixes(self, model: str) -> Prefixes:
        if model not in self._numberings:
            self._numberings[model] = numbering(self.counter(model).encoding)
        return self._numberings[model]

    @property
    def assumed(self) -> set[Assumed]:
        """Assumptions made about the recordings."""
        return self._asking.assumed

    def compare(self, conversations: Iterable[Conversation]) -> Iterator[ComparedCall]:
        """Yield each call that reports its usage and can be compared, in the order they began."""
        requests = self._once(
            recorded for conversation in conversations for recorded in self._asking.calls(conversation)
        )
        # Calls whose counts cannot be believed, and those whose time cannot.
        uncounted, mistimed = set[int](), set[int]()
        for recorded in requests:
            if recorded.call.usage is not None and (fault := fault_of(recorded, self.prices)) is not None:
                (mistimed if fault[0] == "started" else uncounted).add(id(recorded))
                self.left_out.append(_error(recorded, *fault))
        # Stable: calls that began at once stay in the order of their conversations.
        requests.sort(key=lambda recorded: recorded.started)
        self.counted = [
            recorded for recorded in requests if recorded.call.usage is not None and id(recorded) not in uncounted
        ]
        self.calibration = Calibration.of(self.counted)
        for recorded in requests:
            usage, rule = recorded.call.usage, recorded.rule
            if rule is None:
                if usage is not None:
                    self.without_rule[recorded.call.model] += 1
            elif usage is None or id(recorded) in uncounted:
                # If it was answered, its prompt went through the cache.
                self._traces[recorded.cache].pass_over(recorded)
                if recorded.call.stop not in STOPPED:
                    self._asked(recorded, rule, self._request(recorded, self.calibration.ends(recorded)[-1]))
            else:
                row = self._compared(recorded, rule, usage)
                if id(recorded) not in mistimed:
                    yield row

    def _once(self, calls: Iterable[RecordedRequest]) -> list[RecordedRequest]:
        """Return the calls without copies, which have the time, prompt, answer and usage of another one."""
        seen: set[tuple[object, ...]] = set()
        requests, copies = list[RecordedRequest](), dict[str, list[RecordedRequest]]()
        for recorded in calls:
            answer = SentPrefix.of(recorded.conversation.messages[recorded.at])
            prompt = recorded.context.blocks[recorded.size - 1]
            identity = (recorded.cache, recorded.started, prompt, answer, recorded.call.usage)
            if recorded.dated and identity in seen:
                copies.setdefault(recorded.conversation.id, []).append(recorded)
            else:
                seen.add(identity)
                requests.append(recorded)
        for first, *more in copies.values():
            others = f", and so do{'es' * (len(more) == 1)} {len(more):,} more of its conversation" if more else ""
            self.left_out.append(
                _error(first, "", f"the same call stands in another recording, or twice{others}", "give it once")
            )
        return requests

    def _compared(self, recorded: RecordedRequest, rule: CacheRule, usage: Usage) -> ComparedCall:
        trace, name = self._traces[recorded.cache], (recorded.conversation.id, recorded.cache)
        request = self._request(recorded, usage.input or 0)
        used, own = self._asked(recorded, rule, request)
        before = self._before.get(name)
        # Judged by what was known before it. Only then is its own report learnt, and the call added to the trace.
        why = reason(recorded, rule, usage, request, used, before, trace)
        gap = None if before is None else recorded.started - before.asked.started
        expired = None if before is None else _expired(before, recorded, rule, used, usage)
        self._learn(request, used, usage, self._known[recorded.call.model])
        trace.add(recorded, request, usage)
        self._before[name] = Before(recorded, request, used, usage)
        return ComparedCall(recorded, rule, usage, used, own, why, gap, expired)

    def _asked(
        self, recorded: RecordedRequest, rule: CacheRule, request: CacheRequest
    ) -> tuple[CacheUsage, CacheUsage]:
        """Put a request through both caches."""
        ends = self.calibration.ends(recorded)
        if rule.rules is None:
            return CacheUsage(0, 0, 0, request.tokens), CacheUsage(0, 0, 0, ends[-1])
        if recorded.cache not in self._caches:
            self._caches[recorded.cache] = cache_of(rule.rules), cache_of(rule.rules)
        cache, ours = self._caches[recorded.cache]
        return cache.request(request), ours.request(replace(request, ends=ends, tokens=ends[-1]))

    def _request(self, call: RecordedRequest, tokens: int) -> CacheRequest:
        context, size, known = call.context, call.size, self._known[call.call.model]
        if known.empty:
            self.assumed.add("constant")
        if context not in self._boundaries:
            self._boundaries[context] = Boundaries(context.roles, TOOLS)
        boundaries, prefixes = self._boundaries[context], self._prefixes(call.call.model)
        blocks, ends = integers(context.blocks[:size]), known.of(context, size, tokens)
        boundaries.reach(size - TOOLS)
        answer = prefixes.after(blocks[-1], context.answer(call.conversation.messages[call.at], call.at))
        explicit = call.rule is not None and isinstance(call.rule.rules, ExplicitRules)
        marks = call.marks[-MOST_MARKS:] if explicit else call.marks
        return CacheRequest(
            *(blocks, ends, tokens, call.started, call.answered, marks, answer, boundaries.eligible, boundaries.system),
            alike=prefixes.alike,
            places=context.places.each,
            run_places=context.places.runs,
        )

    def _learn(self, request: CacheRequest, used: CacheUsage, usage: Usage, known: KnownEnds) -> None:
        """Learn from the reported counts where prefixes end."""
        read, written = usage.cache_read or 0, usage.cache_write or 0
        if usage.input is not None:
            known.learn(request.prefixes[-1], usage.input)
            if request.answer is not None and usage.output is not None:
                known.learn(request.answer, usage.input + usage.output)
        if request.marks:
            if read or written:
                known.learn(request.prefixes[request.marks[-1].block], read + written)
            if read and (used.hit >= 0 or len(request.marks) > 1):
                prefix = request.prefixes[used.hit if used.hit >= 0 else request.marks[0].block]
                if prefix not in known:
                    known.learn(prefix, read)


def _expired(
    before: Before, recorded: RecordedRequest, rule: CacheRule, used: CacheUsage, usage: Usage
) -> tuple[bool, bool] | None:
    """Return whether the entry of the call before is predicted to have expired, and whether it had.

    None unless the gap is longer than the lifetime and nothing else changed."""
    seconds, gap = lifetime(rule, before.request), recorded.started - before.asked.started
    if seconds is None or gap <= seconds or recorded.context is not before.asked.context:
        return None
    cached = (before.usage.cache_read or 0) + (before.usage.cache_write or 0) or before.used.read + before.used.written
    return (used.read < cached, usage.cache_read < cached) if cached and usage.cache_read is not None else None


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


def _error(recorded: RecordedRequest, field: str, what: str, remedy: str) -> RecordingError:
    """Return an error about a field of a call, or about the call."""
    conversation, at = recorded.conversation, recorded.at
    place = Place(conversation.source or conversation.id, 0, f"messages[{at}].call{field and '.'}{field}")
    return RecordingError(place, f"{conversation.messages[at].id}: {what}", remedy)


UNKNOWN = "unknown: "

SILENT = "warmed by a call that reports no usage"

EARLIER = "an earlier prefix was read: another server answered, or the cache was written late"

LATE = 0.9
"""Share of a lifetime after which an entry may be gone early."""

STALE = 2.0
"""Number of lifetimes after which an entry that is still there was written anew by somebody."""

CLOSE = 16
"""Tokens by which the end of a prefix that was never reported may be off."""


class Before(NamedTuple):
    """The call before in the same conversation and cache."""

    asked: RecordedRequest
    request: CacheRequest
    used: CacheUsage
    usage: Usage


@dataclass(slots=True)
class CallTrace:
    """Requests to one cache so far."""

    first: dict[int, float] = field(default_factory=dict)
    """Time when the first request with each prefix was answered."""
    silent: set[int] = field(default_factory=set)
    """Prefixes of calls without usage."""
    left: set[int] = field(default_factory=set)
    """Prefixes of whole requests, or with their answers."""
    reads: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Tokens that calls of each conversation are reported to have read."""
    # Time when the last request with each prefix began that is not on the last path, and the last path with its time.
    _last: dict[int, float] = field(default_factory=dict)
    _path: list[int] = field(default_factory=list)
    _started: float = 0.0

    def add(self, recorded: RecordedRequest, request: CacheRequest, usage: Usage) -> None:
        """Record a request, for its prefix and every shorter one."""
        if usage.cache_read is not None:
            self.reads[recorded.conversation.id].add(usage.cache_read)
        path, shared = self._path, common(self._path, request.prefixes)
        self._last.update(dict.fromkeys(path[shared:], self._started))
        path[shared:] = request.prefixes[shared:]
        self.left.add(path[-1])
        if request.answer is not None:
            path.append(request.answer)
            self.left.add(request.answer)
        self._started = request.started
        # With a prefix all shorter ones are known, so the first that is known ends the walk.
        for prefix in reversed(path):
            if prefix in self.first:
                break
            self.first[prefix] = request.answered

    def pass_over(self, recorded: RecordedRequest) -> None:
        """Record a call without usage, which may or may not have reached the cache."""
        for prefix in recorded.context.blocks[: recorded.size].tolist()[::-1]:
            if prefix in self.silent:
                break
            self.silent.add(prefix)

    def last(self, prefix: int) -> float:
        """Return the time when the last request with a prefix began, which there was."""
        at = bisect_left(self._path, prefix)  # the numbers along a path rise
        return self._started if self._path[at : at + 1] == [prefix] else self._last[prefix]


def reason(
    recorded: RecordedRequest,
    rule: CacheRule,
    usage: Usage,
    request: CacheRequest,
    used: CacheUsage,
    before: Before | None,
    trace: CallTrace,
) -> str:
    """Return why the tokens read are not as predicted; empty if they are."""
    read = usage.cache_read
    if used.read == (read or 0):
        return ""
    if read is None:
        return "not reported"
    hit = request.prefixes[used.hit] if used.hit >= 0 else None
    if hit in trace.silent and hit not in trace.first:
        return SILENT
    if before and (changes := _changes(before, recorded, usage)):
        return f"changed prefix: {changes}"
    if read > used.read:
        return _more(recorded, lifetime(rule, request), request, used, read, trace)
    if hit is not None and trace.first.get(hit, recorded.earliest) > recorded.earliest:
        return "parallel requests: what another one wrote was not there yet"
    seconds = before and lifetime(rule, before.request)
    if before and seconds and LATE * seconds <= recorded.started - before.asked.started <= seconds:
        return "TTL: gone in the last tenth of its lifetime"
    if read:
        counted = rule.rules.read if isinstance(rule.rules, (AutomaticRules, UnitRules)) else int
        # Longer prefixes are read no shorter: those of so many tokens stand side by side.
        first = bisect_left(request.ends, read, 0, max(used.hit, 0), key=counted)
        last = bisect_right(request.ends, read, first, max(used.hit, 0), key=counted)
        could = any(request.prefixes[block] in trace.left for block in range(first, last))
        return (
            EARLIER if could or read in trace.reads[recorded.conversation.id] else f"{UNKNOWN}a shorter prefix was read"
        )
    turn = recorded.conversation.messages[recorded.at - 1].role == "user"
    return UNKNOWN + "gone before its lifetime" + (", at a user's turn" if turn else "")


def lifetime(rule: CacheRule, request: CacheRequest) -> float | None:
    """Return for how many seconds a request leaves its prefix in the cache; None if it leaves nothing."""
    seconds: float | None = getattr(rule.rules, "lifetime", None)
    return max((mark.lifetime for mark in request.marks), default=None) if seconds is None else seconds


def _more(
    recorded: RecordedRequest,
    seconds: float | None,
    request: CacheRequest,
    used: CacheUsage,
    read: int,
    trace: CallTrace,
) -> str:
    """Return why more was read than predicted."""
    written = _deepest(request, trace.first)
    if _deepest(request, trace.silent) > max(used.hit, written):
        return SILENT
    if written < 0 or read > request.ends[written] + CLOSE:
        return "warmed by another run"
    if trace.first[request.prefixes[written]] > recorded.started:
        return "parallel requests: what another one wrote was there before it was answered"
    since = recorded.started - trace.last(request.prefixes[written])
    if seconds and since > STALE * seconds:
        return "warmed by another run"
    if seconds and since > seconds:
        return "TTL: still there after its lifetime"
    return UNKNOWN + "a longer prefix was read"


def _changes(before: Before, recorded: RecordedRequest, usage: Usage) -> str:
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
