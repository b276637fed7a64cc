"""Why a prediction and a report disagree, as far as the recording tells. What it does not tell is `unknown`.

changed prefix        the recording shows it: other tools, another thinking level, a prompt that is shorter than the
                      one it goes on from, thinking of the turn before, which older Claude models are not sent again
parallel requests     the request that wrote the prefix may not have been answered when this one began
TTL                   still there after its lifetime, or gone in the last tenth of it
warmed by …           what was read is in no recorded request to this cache before; or in one without usage, as of a
                      call that was stopped
not reported          the provider's usage says nothing of what was read
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ...scenarios.model import Message, Usage
from ..cache.prefixes import CacheRequest, CacheUsage
from ..cache.rules import CacheRule
from ..models import model_map
from .requests import RecordedRequest

UNKNOWN = "unknown: "
SILENT = "warmed by a call that reports no usage"
LATE = 0.9
"""Of a lifetime: what is gone later than that was on its way out."""
STALE = 2.0
"""Lifetimes: what is there after more of them was written anew by somebody."""
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
    """What was asked of one cache so far."""

    first: dict[int, float] = field(default_factory=dict)
    """Of each prefix, when the first request with it was answered."""
    last: dict[int, float] = field(default_factory=dict)
    """Of each prefix, when the last request with it began."""
    silent: dict[int, float] = field(default_factory=dict)
    """Of each prefix, when the last call with it that reports no usage began."""

    def add(self, request: CacheRequest) -> None:
        """A request has been asked. Whoever asked for a prefix asked for all that it begins with."""
        path = [*request.prefixes, *([] if request.answer is None else [request.answer])]
        for prefix in reversed(path):
            if prefix in self.first:
                break
            self.first[prefix] = request.answered
        self.last.update(dict.fromkeys(path, request.started))

    def pass_over(self, asked: RecordedRequest) -> None:
        """A call was made and reported nothing: it may have been stopped before it reached the cache, or not."""
        self.silent.update(dict.fromkeys(asked.context.blocks[: asked.size], asked.started))


def reason(
    asked: RecordedRequest, request: CacheRequest, used: CacheUsage, before: Before | None, trace: CallTrace
) -> str:
    """Why the tokens read are not as predicted; empty if they are."""
    usage = asked.call.usage
    reported = usage.cache_read if usage is not None else None
    if used.read == (reported or 0):
        return ""
    if usage is None or reported is None:
        return "not reported"
    hit = request.prefixes[used.hit] if used.hit >= 0 else None
    if hit in trace.silent and hit not in trace.last:
        return SILENT
    changes = before and _changes(before, asked)
    if changes:
        return f"changed prefix: {changes}"
    if reported > used.read:
        return _more(asked, request, used, trace)
    return _less(asked, request, used, before, trace)


def lifetime(rule: CacheRule, request: CacheRequest) -> float | None:
    """For how many seconds a request leaves what it asked for in the cache; None if it leaves nothing."""
    known = getattr(rule.rules, "lifetime", None)
    if known is not None:
        return float(known)
    return max((mark.lifetime for mark in request.marks), default=None)


def _more(asked: RecordedRequest, request: CacheRequest, used: CacheUsage, trace: CallTrace) -> str:
    """Why more was read than predicted."""
    known = _deepest(request, trace.last)
    silent = _deepest(request, trace.silent)
    if silent > max(used.hit, known):
        return SILENT
    read = (asked.call.usage and asked.call.usage.cache_read) or 0
    if known < 0 or read > request.ends[known] + CLOSE:
        return "warmed by another run"
    if trace.first[request.prefixes[known]] > asked.started:
        return "parallel requests: what another one wrote was there before it was answered"
    since, left = asked.started - trace.last[request.prefixes[known]], asked.rule and lifetime(asked.rule, request)
    if left and since > STALE * left:
        return "warmed by another run"
    if left and since > left:
        return "TTL: still there after its lifetime"
    return UNKNOWN + "a longer prefix was read"


def _less(
    asked: RecordedRequest, request: CacheRequest, used: CacheUsage, before: Before | None, trace: CallTrace
) -> str:
    """Why less was read than predicted."""
    if used.hit >= 0 and trace.first.get(request.prefixes[used.hit], asked.earliest) > asked.earliest:
        return "parallel requests: what another one wrote was not there yet"
    left = before and asked.rule and lifetime(asked.rule, before.request)
    if before and left and LATE * left <= asked.started - before.asked.started <= left:
        return "TTL: gone in the last tenth of its lifetime"
    if asked.call.usage and asked.call.usage.cache_read:
        return UNKNOWN + "a shorter prefix was read"
    turn = asked.conversation.messages[asked.at - 1].role == "user"
    return UNKNOWN + "gone before its lifetime" + (", at a user's turn" if turn else "")


def _changes(before: Before, asked: RecordedRequest) -> str:
    """What the recording shows to be different in the prompt that a call goes on from; empty if nothing."""
    was, now, usual = before.asked.call, asked.call, asked.conversation.tools
    if (usual if was.tools is None else was.tools) != (usual if now.tools is None else now.tools):
        return "other tools"
    if was.effort != now.effort:
        return f"thinking {was.effort or 'unset'}, now {now.effort or 'unset'}"
    same = before.asked.context is asked.context
    shorter = (before.usage.input or 0) - ((now.usage and now.usage.input) or 0)
    if same and shorter > 0:
        return "the prompt is shorter than the one before"
    if same and _forgets_thinking(now.model) and _thought(asked.conversation.messages[: asked.at]):
        return "thinking of the turn before"
    return ""


def _thought(messages: tuple[Message, ...]) -> bool:
    """Whether a prompt ends with a user's turn, and the answers before it since the turn before have thinking."""
    if messages[-1].role != "user":
        return False
    for message in reversed(messages[:-1]):
        if message.role == "user":
            return False
        if message.thinking:
            return True
    return False


def _forgets_thinking(model: str) -> bool:
    """Whether a model is not sent the thinking of earlier turns (Claude before Opus 4.5 and Sonnet 4.6, and Haiku)."""
    name = model.rpartition("/")[2]
    entries = (model_map().get(each, {}) for each in (model, name, name.replace(".", "-")))
    return "claude" in model and not any(each.get("supports_thinking_cache_preservation") for each in entries)


def _deepest(request: CacheRequest, known: dict[int, float]) -> int:
    """The last block of the longest prefix that is known; -1 if none is."""
    return next((at for at in range(len(request.prefixes) - 1, -1, -1) if request.prefixes[at] in known), -1)
