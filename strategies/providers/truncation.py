"""Truncation by providers without a model: OpenAI's `truncation: auto` and Gemini's sliding window.

Sources: docstrings of the openai package 2.54.0, and of `SlidingWindow` in google-genai with Vertex AI's reference;
both as of 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ctxbench.scenarios.spec import PositiveInt, Share
from ctxbench.scenarios.view import Messages, shared_prefix

from ..base import Context, StrategyContext, View
from ..events import OverBudget
from ..parts.compaction import Client
from ..parts.units import room_beside_systems


def _from_last_cut(services: StrategyContext, next_cut: Callable[[Context, int], int]) -> View:
    """Return a view that sends the history from its last cut on, which `next_cut` may move at each call."""
    read, start = Messages(), 0

    def view(context: Context) -> Context:
        nonlocal read, start
        history = context.messages
        if shared_prefix(read, history) < len(read):
            start = 0
        read, start = history, next_cut(context, start)
        return context.sending(_from(services, history, start)) if start else context

    return view


def _from(services: StrategyContext, history: Messages, start: int) -> Messages:
    return services.systems(history[:start]) + services.whole(history[start:]) if start else history


@dataclass(frozen=True, slots=True)
class TruncationAuto(Client, name="openai.truncation_auto"):
    """The oldest items are dropped until the request fits the window (`truncation: "auto"` of the Responses API).

    System messages and tool schemas stay, and count. The granularity is not documented, so `drop` has both readings:
    whole `items` with the results that would be left without their call, or whole `turns`. If
    nothing fits, only system messages are sent and OverBudget is recorded; if these alone do not, that is an error.
    """

    max_tokens: PositiveInt = 400_000
    drop: Literal["items", "turns"] = "items"

    def start(self, services: StrategyContext) -> View:
        def view(context: Context) -> Context:
            history, limit = context.messages, self.max_tokens - services.schemas(context.tools)
            if services.total(history) <= limit:
                return context
            start = services.fit(history, room_beside_systems(services, history, limit))
            if self.drop == "turns":
                turns = (at for at, message in enumerate(history[start:], start) if message.role == "user")
                start = next(turns, len(history))
            if start == len(history):
                services.record(OverBudget("the newest item does not fit", services.total(history), limit))
                return context.sending(services.systems(history))
            return context.sending(_from(services, history, start))

        return view


@dataclass(frozen=True, slots=True)
class ContextWindowCompression(Client, name="gemini.context_window_compression"):
    """A suffix of whole turns is kept when the context exceeds a trigger (`context_window_compression`, Gemini Live).

    Beyond `trigger_tokens` (None = 80 % of `window`) the oldest turns are dropped until at most `target_tokens` (None =
    half the trigger) are left; the cut is at the start of a user turn, and stays there until the next one. The newest
    turn stays however long it is. System messages stay. Whether they count toward the target is not documented:
    `count_system` has both readings. Tool schemas count toward the trigger.
    """

    window: PositiveInt = 32_768
    trigger_tokens: PositiveInt | None = None
    target_tokens: PositiveInt | None = None
    count_system: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.target < self.trigger:
            raise ValueError(f"target_tokens must be below the trigger, {self.trigger}, not {self.target}")

    @property
    def trigger(self) -> int:
        return self.window * 8 // 10 if self.trigger_tokens is None else self.trigger_tokens

    @property
    def target(self) -> int:
        return self.trigger // 2 if self.target_tokens is None else self.target_tokens

    def start(self, services: StrategyContext) -> View:
        def next_cut(context: Context, start: int) -> int:
            history = context.messages
            if services.total(_from(services, history, start)) + services.schemas(context.tools) <= self.trigger:
                return start
            systems = services.total(services.systems(history)) if self.count_system else 0
            fitting = services.fit(history, self.target - systems)
            turns = [at for at, message in enumerate(history[start:], start) if message.role == "user"]
            return next((at for at in turns if at >= fitting), turns[-1] if turns else start)

        return _from_last_cut(services, next_cut)


@dataclass(frozen=True, slots=True)
class RetentionRatio(Client, name="openai.realtime_truncation"):
    """Beyond a limit the oldest messages are dropped down to a share of it (`truncation` of the Realtime API).

    Beyond `post_instructions` tokens, which count neither system messages nor tools, the oldest messages are dropped
    until at most `retention_ratio` of them are left; the cut stays until the next one. With a ratio of 1 each message
    beyond the limit drops another (`truncation: "auto"`). The default limit is what a model with a window of 32k and
    4,096 tokens of output takes.
    """

    post_instructions: PositiveInt = 28_224
    retention_ratio: Share = 0.8

    def start(self, services: StrategyContext) -> View:
        def next_cut(context: Context, start: int) -> int:
            history = context.messages
            kept = history[start:]
            if services.total(kept) - services.total(services.systems(kept)) <= self.post_instructions:
                return start
            room = int(self.retention_ratio * self.post_instructions)
            # A cut never moves back, and never past the newest message, however long that is.
            return max(start, min(services.fit(history, room), len(history) - 1))

        return _from_last_cut(services, next_cut)
