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
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ctxbench.scenarios.errors import Place, RecordingError
from ctxbench.scenarios.model import STOPPED, Conversation, Usage

from ..cache.mechanisms import MOST_MARKS, AutomaticRules, ExplicitRules, UnitRules
from ..cache.prefixes import CacheRequest, CacheUsage, Prefixes, SentPrefix, common
from ..cache.requests import Boundaries
from ..cache.rules import Cache, CacheRule
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
        """Id of the conversation."""
        return self.asked.conversation.id

    @property
    def model(self) -> str:
        """Model as the recording names it."""
        return self.asked.call.model

    @property
    def read(self) -> int:
        """Number of tokens read as reported."""
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
    """Prices, which know how long a prompt may be."""
    without_rule: dict[str, int] = field(default_factory=dict)
    """Calls of models for which there is no rule."""
    left_out: list[RecordingError] = field(default_factory=list)
    """Calls that cannot be compared, each with its place and why."""
    calibration: Calibration = field(default_factory=Calibration)
    counted: list[RecordedRequest] = field(default_factory=list)
    """Calls whose token counts can be believed, in the order they began."""
    _asking: Asking = field(init=False)
    _numberings: dict[str, Prefixes] = field(default_factory=dict)  # by model
    _known: dict[str, KnownEnds] = field(default_factory=dict)  # by model
    _boundaries: dict[RecordedPrompt, Boundaries] = field(default_factory=dict)
    _caches: dict[Key, tuple[Cache | None, Cache | None]] = field(default_factory=dict)
    _traces: dict[Key, CallTrace] = field(default_factory=dict)
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
            [recorded for conversation in conversations for recorded in self._asking.calls(conversation)]
        )
        faults = [None if recorded.call.usage is None else fault_of(recorded, self.prices) for recorded in requests]
        self.left_out += [fault.said_of(recorded) for recorded, fault in zip(requests, faults, strict=True) if fault]
        # Stable: calls that began at once stay in the order of their conversations.
        calls = sorted(zip(requests, faults, strict=True), key=lambda pair: pair[0].started)
        self.counted = [a for a, fault in calls if a.call.usage is not None and (fault is None or fault.counted)]
        self.calibration = Calibration.of(self.counted)
        for recorded, fault in calls:
            usage, rule = recorded.call.usage, recorded.rule
            if rule is None and usage is None:
                continue
            if rule is None:
                self.without_rule[recorded.call.model] = self.without_rule.get(recorded.call.model, 0) + 1
            elif usage is None or (fault and not fault.counted):
                self._pass_over(recorded, rule)
            else:
                row = self._compared(recorded, rule, usage)
                if not fault:
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
        self.left_out += map(copied, copies.values())
        return requests

    def _compared(self, recorded: RecordedRequest, rule: CacheRule, usage: Usage) -> ComparedCall:
        trace = self._traces.setdefault(recorded.cache, CallTrace())
        known = self._known.setdefault(recorded.call.model, KnownEnds())
        request = self._request(recorded, usage.input or 0, known)
        used, own = self._asked(recorded, rule, request)
        before = self._before.get((recorded.conversation.id, recorded.cache))
        # Judged by what was known before it. Only then is its own report learnt, and the call added to the trace.
        why = reason(recorded, request, used, before, trace)
        gap = None if before is None else recorded.started - before.asked.started
        expired = None if before is None else _expired(before, recorded, rule, used)
        self._learn(request, used, usage, known)
        trace.add(recorded, request)
        self._before[recorded.conversation.id, recorded.cache] = Before(recorded, request, used, usage)
        return ComparedCall(recorded, rule, usage, used, own, why, gap, expired)

    def _pass_over(self, recorded: RecordedRequest, rule: CacheRule) -> None:
        """Pass a call without credible counts: if it was answered, its prompt went through the cache."""
        self._traces.setdefault(recorded.cache, CallTrace()).pass_over(recorded)
        if recorded.call.stop not in STOPPED:
            known = self._known.setdefault(recorded.call.model, KnownEnds())
            self._asked(recorded, rule, self._request(recorded, self.calibration.ends(recorded)[-1], known))

    def _asked(
        self, recorded: RecordedRequest, rule: CacheRule, request: CacheRequest
    ) -> tuple[CacheUsage, CacheUsage]:
        """Put a request through both caches."""
        if recorded.cache not in self._caches:
            self._caches[recorded.cache] = rule.cache(), rule.cache()
        cache, ours = self._caches[recorded.cache]
        ends = self.calibration.ends(recorded)
        if cache is None or ours is None:
            return CacheUsage(0, 0, 0, request.tokens), CacheUsage(0, 0, 0, ends[-1])
        return cache.request(request), ours.request(replace(request, ends=ends, tokens=ends[-1]))

    def _request(self, call: RecordedRequest, tokens: int, known: KnownEnds) -> CacheRequest:
        context, size = call.context, call.size
        if known.empty:
            self.assumed.add("constant")
        if context not in self._boundaries:
            self._boundaries[context] = Boundaries(context.roles, TOOLS)
        blocks, boundaries, ends = (
            integers(context.blocks[:size]),
            self._boundaries[context],
            known.of(context, size, tokens),
        )
        boundaries.reach(size - TOOLS)
        prefixes = self._prefixes(call.call.model)
        answer = prefixes.after(blocks[-1], context.answer(call.conversation.messages[call.at], call.at))
        marks = call.marks
        if call.rule is not None and isinstance(call.rule.rules, ExplicitRules):
            marks = marks[-MOST_MARKS:]
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


def _expired(before: Before, recorded: RecordedRequest, rule: CacheRule, used: CacheUsage) -> tuple[bool, bool] | None:
    """Return whether the entry of the call before is predicted to have expired, and whether it had.

    None unless the gap is longer than the lifetime and nothing else changed."""
    seconds, usage, gap = lifetime(rule, before.request), before.usage, recorded.started - before.asked.started
    if seconds is None or gap <= seconds or recorded.context is not before.asked.context:
        return None
    cached = (usage.cache_read or 0) + (usage.cache_write or 0) or before.used.read + before.used.written
    if not cached or recorded.call.usage is None or recorded.call.usage.cache_read is None:
        return None
    return used.read < cached, recorded.call.usage.cache_read < cached


class Fault(NamedTuple):
    """A reason why a call cannot be compared."""

    field: str
    what: str
    remedy: str
    counted: bool = False
    """Whether its token counts are right all the same."""

    def said_of(self, recorded: RecordedRequest) -> RecordingError:
        """Return the fault as an error with the place of the call."""
        what = f"{recorded.conversation.messages[recorded.at].id}: {self.what}"
        return RecordingError(place_of(recorded, f"call.{self.field}"), what, self.remedy)


def fault_of(recorded: RecordedRequest, prices: Prices) -> Fault | None:
    """Return why a call with usage cannot be compared, or None. `prices` know the context windows."""
    usage, rules, marks = recorded.call.usage, recorded.rule and recorded.rule.rules, len(recorded.call.marks)
    if usage is None or usage.input is None:
        return Fault("usage.input", "nothing says how long its prompt was", "add the count of its tokens")
    window = _window(recorded.call.model, prices)
    if window is not None and usage.input > window:
        what = f"a prompt of {usage.input:,} tokens, and {recorded.call.model} takes {window:,}"
        return Fault("usage.input", what, "correct the count or the model's name")
    if isinstance(rules, ExplicitRules) and marks > MOST_MARKS:
        what = f"{marks} cache breakpoints, of which a provider takes {MOST_MARKS}"
        return Fault("marks", what, "remove those that were not sent")
    if recorded.clock:
        return Fault("started", recorded.clock, "correct its time", counted=True)
    return None


def copied(copies: list[RecordedRequest]) -> RecordingError:
    """Return the error for calls of a conversation that are copies."""
    first, more = copies[0], len(copies) - 1
    others = f", and so do{'es' * (more == 1)} {more:,} more of its conversation" if more else ""
    what = f"{first.conversation.messages[first.at].id}: the same call stands in another recording, or twice{others}"
    return RecordingError(place_of(first, "call"), what, "give it once")


def place_of(recorded: RecordedRequest, field: str) -> Place:
    """Return the place of a field of a call."""
    return Place(recorded.conversation.source or recorded.conversation.id, 0, f"messages[{recorded.at}].{field}")


def _window(model: str, prices: Prices) -> int | None:
    """Return the most tokens that a model takes; None if unknown, or if longer prompts have a price."""
    tariff = prices.tariff(model)
    if tariff is None or tariff.window is None or tariff.tiers[-1][0] >= tariff.window:
        return None
    return tariff.window


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
    reads: dict[str, set[int]] = field(default_factory=dict)
    """Tokens that calls of each conversation are reported to have read."""
    # Time when the last request with each prefix began that is not on the last path, and the last path with its time.
    _last: dict[int, float] = field(default_factory=dict)
    _path: list[int] = field(default_factory=list)
    _started: float = 0.0

    def add(self, recorded: RecordedRequest, request: CacheRequest) -> None:
        """Record a request, for its prefix and every shorter one."""
        self.left |= {request.prefixes[-1]} if request.answer is None else {request.prefixes[-1], request.answer}
        if recorded.call.usage is not None and recorded.call.usage.cache_read is not None:
            self.reads.setdefault(recorded.conversation.id, set()).add(recorded.call.usage.cache_read)
        path, shared = self._path, common(self._path, request.prefixes)
        for prefix in path[shared:]:
            self._last[prefix] = self._started
        path[shared:] = request.prefixes[shared:]
        if request.answer is not None:
            path.append(request.answer)
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
    recorded: RecordedRequest, request: CacheRequest, used: CacheUsage, before: Before | None, trace: CallTrace
) -> str:
    """Return why the tokens read are not as predicted; empty if they are."""
    usage = recorded.call.usage
    reported = usage.cache_read if usage is not None else None
    if used.read == (reported or 0):
        return ""
    if usage is None or reported is None:
        return "not reported"
    hit = request.prefixes[used.hit] if used.hit >= 0 else None
    if hit in trace.silent and hit not in trace.first:
        return SILENT
    changes = before and _changes(before, recorded)
    if changes:
        return f"changed prefix: {changes}"
    if reported > used.read:
        return _more(recorded, request, used, trace)
    return _less(recorded, request, used, before, trace)


def lifetime(rule: CacheRule, request: CacheRequest) -> float | None:
    """Return for how many seconds a request leaves its prefix in the cache; None if it leaves nothing."""
    seconds = getattr(rule.rules, "lifetime", None)
    if seconds is not None:
        return float(seconds)
    return max((mark.lifetime for mark in request.marks), default=None)


def _more(recorded: RecordedRequest, request: CacheRequest, used: CacheUsage, trace: CallTrace) -> str:
    """Return why more was read than predicted."""
    written = _deepest(request, trace.first)
    silent = _deepest(request, trace.silent)
    if silent > max(used.hit, written):
        return SILENT
    read = (recorded.call.usage and recorded.call.usage.cache_read) or 0
    if written < 0 or read > request.ends[written] + CLOSE:
        return "warmed by another run"
    if trace.first[request.prefixes[written]] > recorded.started:
        return "parallel requests: what another one wrote was there before it was answered"
    since, seconds = (
        recorded.started - trace.last(request.prefixes[written]),
        recorded.rule and lifetime(recorded.rule, request),
    )
    if seconds and since > STALE * seconds:
        return "warmed by another run"
    if seconds and since > seconds:
        return "TTL: still there after its lifetime"
    return UNKNOWN + "a longer prefix was read"


def _less(
    recorded: RecordedRequest, request: CacheRequest, used: CacheUsage, before: Before | None, trace: CallTrace
) -> str:
    """Return why less was read than predicted."""
    if used.hit >= 0 and trace.first.get(request.prefixes[used.hit], recorded.earliest) > recorded.earliest:
        return "parallel requests: what another one wrote was not there yet"
    seconds = before and recorded.rule and lifetime(recorded.rule, before.request)
    if before and seconds and LATE * seconds <= recorded.started - before.asked.started <= seconds:
        return "TTL: gone in the last tenth of its lifetime"
    read = recorded.call.usage and recorded.call.usage.cache_read
    if read and _is_earlier(recorded, request, read, used.hit, trace):
        return EARLIER
    if read:
        return UNKNOWN + "a shorter prefix was read"
    turn = recorded.conversation.messages[recorded.at - 1].role == "user"
    return UNKNOWN + "gone before its lifetime" + (", at a user's turn" if turn else "")


def _is_earlier(recorded: RecordedRequest, request: CacheRequest, read: int, hit: int, trace: CallTrace) -> bool:
    """Return whether `read` tokens are what an earlier call of the conversation could read, or did."""
    if read in trace.reads.get(recorded.conversation.id, ()):
        return True
    rules = recorded.rule and recorded.rule.rules
    counted = rules.read if isinstance(rules, (AutomaticRules, UnitRules)) else int
    # Longer prefixes are read no shorter: those of so many tokens stand side by side.
    first = bisect_left(request.ends, read, 0, max(hit, 0), key=counted)
    last = bisect_right(request.ends, read, first, max(hit, 0), key=counted)
    return any(request.prefixes[block] in trace.left for block in range(first, last))


def _changes(before: Before, recorded: RecordedRequest) -> str:
    """Return what the recording shows to differ from the prompt that a call goes on from; empty if nothing."""
    was, now, usual = before.asked.call, recorded.call, recorded.conversation.tools
    if (usual if was.tools is None else was.tools) != (usual if now.tools is None else now.tools):
        return "other tools"
    if was.effort != now.effort:
        return f"thinking {was.effort or 'unset'}, now {now.effort or 'unset'}"
    same = before.asked.context is recorded.context
    shorter = (before.usage.input or 0) - ((now.usage and now.usage.input) or 0)
    if same and shorter > 0:
        return "the prompt is shorter than the one before"
    return ""


def _deepest(request: CacheRequest, known: Collection[int]) -> int:
    """Return the last block of the longest known prefix, or -1. With a prefix all shorter ones are known."""
    return bisect_left(request.prefixes, True, key=lambda prefix: prefix not in known) - 1
