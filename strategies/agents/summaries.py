"""Agents that replace the head of their history by a model's summary: Claude Code, Codex, goose, Roo, OpenHands,
opencode, Gemini CLI, Cline, pi and aider.

What all of them share is in `parts/compaction.py`. Each class says its trigger, in which tokens, and what stays. Files
that an agent reads again from disk, lists of files and saved outputs are in no recording, and left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec.structs import replace

from ctxbench.scenarios.model import Message
from ctxbench.scenarios.spec import NonNegativeInt, PositiveInt, Share, ShareBelowOne
from ctxbench.scenarios.view import Messages

from ..events import Failed
from ..parts.compaction import ClientHistory, CompactingClient
from ..parts.units import NOTHING

OUTPUT_RESERVE, MARGIN = 20_000, 13_000
"""Tokens of the window that Claude Code leaves free: at most so many for an answer, and a margin."""

COLD = 300.0  # seconds after which Anthropic's cache of five minutes has nothing


@dataclass(frozen=True, slots=True)
class ClaudeCodeCompaction(CompactingClient, name="claude_code"):
    """Old results are cleared, and near the end of the window everything becomes a summary.

    The trigger is the usage of the last response, cache reads and output included: the window less 13,000 tokens and
    the answer's, at most 20,000 (167,000 of 200,000). `percent` of the window takes its place where that is lower. Only
    system messages stay: the files that it then reads again are in no recording.

    Older tool results are cleared first, but when is not documented. `microcompact`: beyond `clear_trigger` tokens all
    but the newest `keep`, as Anthropic's context editing does by default ("tokens"); the same after five minutes
    without a call, when the cache is cold ("cold"); or "never".
    """

    window: PositiveInt = 200_000
    max_output: PositiveInt = 32_000
    percent: Annotated[float, msgspec.Meta(ge=0, le=100)] = 100.0
    microcompact: Literal["tokens", "cold", "never"] = "tokens"
    clear_trigger: NonNegativeInt = 100_000
    keep: NonNegativeInt = 3

    @property
    def trigger(self) -> int:
        return min(self.window - min(self.max_output, OUTPUT_RESERVE) - MARGIN, int(self.window * self.percent / 100))

    def compact(self, history: ClientHistory) -> None:
        clears = self.microcompact == "tokens" and history.tokens() > self.clear_trigger
        now, answered = history.services.now, history.messages[history.answered - 1].time if history.answered else None
        if self.microcompact == "cold" and answered is not None and now is not None:
            clears = now - answered > COLD
        if clears:
            cleared = self.row["cleared"]
            results = [at for at, message in enumerate(history.messages) if message.role == "tool"]
            old = results[: max(0, len(results) - self.keep)]
            history.clear([at for at in old if history.messages[at].text != cleared], cleared)
        if history.used >= self.trigger:
            history.summarise(history.settled)


@dataclass(frozen=True, slots=True)
class CodexCompaction(CompactingClient, name="codex"):
    """At 90 % of the window a summary follows the newest user messages within 20,000 tokens.

    The trigger is the usage of the last response; `limit` can only lower it. No answer and no tool result stays. The
    oldest user message that does not fit whole keeps its first and its last part. The initial context that Codex puts
    in again is, in its recordings, among the user messages.
    """

    window: PositiveInt = 272_000
    limit: PositiveInt | None = None
    keep_users: NonNegativeInt = 20_000

    @property
    def trigger(self) -> int:
        most = self.window * 9 // 10
        return most if self.limit is None else min(self.limit, most)

    def compact(self, history: ClientHistory) -> None:
        if history.used >= self.trigger:
            history.summarise(history.settled, before=self._users(history))

    def _users(self, history: ClientHistory) -> Messages:
        """Return the newest user messages that fit, the oldest of them shortened."""
        services, room, kept = history.services, self.keep_users, list[Message]()
        for message in reversed(history.messages[: history.settled]):
            if message.role != "user" or history.wrote(message):
                continue
            tokens = services.text_tokens(message.text)
            if tokens > room:
                # 4,000 characters of 1,000 tokens with room for 500: 1,000 characters from either end.
                if half := len(message.text) * room // tokens // 2:
                    mark = self.row["truncated"].replace("{tokens}", str(tokens - room))
                    kept.append(replace(message, text=f"{message.text[:half]}{mark}{message.text[-half:]}"))
                break
            kept.append(message)
            room -= tokens
        return Messages.of(tuple(reversed(kept)))


@dataclass(frozen=True, slots=True)
class GooseCompaction(CompactingClient, name="goose"):
    """Above 80 % of the window everything becomes a summary with an answer, and the newest user message follows.

    The trigger is the usage of the last response; a `threshold` of 0, or of 1 and more, turns it off.
    """

    window: PositiveInt = 128_000
    threshold: float = 0.8

    def compact(self, history: ClientHistory) -> None:
        if 0 < self.threshold < 1 and history.used > self.threshold * self.window:
            said, stop = history.messages, history.settled
            waits = stop < len(said)
            newest = None if waits else next((message for message in reversed(said) if message.role == "user"), None)
            history.summarise(
                stop, after=NOTHING if newest is None or history.wrote(newest) else Messages.of((newest,))
            )


@dataclass(frozen=True, slots=True)
class RooCompaction(CompactingClient, name="roo"):
    """Near the end of the window everything becomes a summary, or the older half is hidden.

    The trigger is the request's tokens: `threshold` percent of the window, or 90 % of it less `max_tokens`. Without
    `condense`, or where the model fails, the older half after the first message is hidden instead: an even number of
    messages, rounded down.
    """

    window: PositiveInt = 200_000
    max_tokens: int = 8_192
    threshold: Annotated[float, msgspec.Meta(ge=5, le=100)] = 100.0
    condense: bool = True

    @property
    def trigger(self) -> int:
        return self.window * 9 // 10 - self.max_tokens

    def compact(self, history: ClientHistory) -> None:
        tokens = history.tokens()
        condenses = self.condense and (100 * tokens >= self.threshold * self.window or tokens > self.trigger)
        if (condenses and history.summarise(history.settled)) or tokens <= self.trigger:
            return
        # Of 12 messages 11 follow the first: 11 // 4 * 2 = 4 of them are hidden, the nearest even number below half.
        start, half = history.ceiling(1), 1 + (len(history.messages) - 1) // 4 * 2
        stop = min(max(history.floor(half), history.ceiling(start + 1)), history.settled)
        if count := len(history.forgotten(start, stop)):
            text = self.row["truncated"].replace("{messages}", str(count))
            history.replace(start, stop, Messages.of((history.note(text, stop),)))


@dataclass(frozen=True, slots=True)
class OpenHandsCondenser(CompactingClient, name="openhands"):
    """Above 80 events the first 4 and the newest stay, with a summary between.

    Also above `max_tokens`, and where a request is over the `window` and the agent asks for it. The tail is what is
    left of half of `max_size` (of half of the events, if asked for; of half of `max_tokens`), the smallest of these.
    Nothing happens if less than a tenth of the events would go. Events are messages here, system messages aside.
    """

    max_size: PositiveInt = 80
    keep_first: NonNegativeInt = 4
    max_tokens: PositiveInt | None = None
    window: PositiveInt | None = None

    def __post_init__(self) -> None:
        if self.keep_first >= self.max_size // 2 - 1:
            raise ValueError(f"keep_first must be below max_size / 2 - 1, {self.max_size // 2 - 1}")

    def compact(self, history: ClientHistory) -> None:
        count = len(history.messages)
        head = history.floor(min(self.keep_first, count))
        tails = []  # the events that may stay at the end, for each reason to forget any
        if count > self.max_size:
            # 80 / 2 less 4 at the start and 1 for the summary: 40 events are left in all.
            tails.append(self.max_size // 2 - self.keep_first - 1)
        if self.window is not None and history.tokens() > self.window:
            tails.append(count // 2 - self.keep_first - 1)
        if self.max_tokens is not None and history.tokens() > self.max_tokens:
            room = self.max_tokens // 2 - history.tokens(head)
            tails.append(count - history.fit(room))
        stop = history.floor(count - max(0, min(tails))) if tails else head
        if tails and stop - head >= count / 10:
            history.summarise(min(stop, history.settled), head)


@dataclass(frozen=True, slots=True)
class OpenCodeCompaction(CompactingClient, name="opencode"):
    """Near the end of the window the newest turns stay behind a summary; pruning clears old results.

    What stays has at most a quarter of the usable tokens, 2,000 to 15,000. The trigger is the usage of the last
    response, at the input limit (without one: the window less the output) less a reserve of at most 20,000 tokens. A
    turn may be split; `tail_turns` limits their number, which version 1.18.2 does to 2. Users report that it reserves
    nothing where there is no input limit: `reserve_without_limit`.

    With `prune`, after each turn, results before the newest 40,000 tokens of them are cleared, if together they have
    more than 20,000. Those of the newest two turns and of the tool `skill` are not looked at.
    """

    window: PositiveInt = 200_000
    max_output: PositiveInt = 32_000
    input_limit: PositiveInt | None = None
    tail_turns: NonNegativeInt | None = None
    reserve_without_limit: bool = True
    prune: bool = False

    max_result: ClassVar[int | None] = 2_000

    @property
    def trigger(self) -> int:
        output = min(self.max_output, 32_000)
        reserved = min(20_000, output)
        if self.input_limit is not None:
            return self.input_limit - reserved
        return self.window - output - (reserved if self.reserve_without_limit else 0)

    def compact(self, history: ClientHistory) -> None:
        stop = history.settled
        if self.prune and stop < len(history.messages):
            self._prune(history, stop)
        if history.used >= self.trigger:
            turns = [at for at in range(stop) if history.messages[at].role == "user"]
            start = history.fit(min(15_000, max(2_000, self.trigger // 4)), stop)
            if self.tail_turns is not None and len(turns) >= self.tail_turns:
                start = max(start, turns[-self.tail_turns] if self.tail_turns else stop)
            # Where all of it would fit into the tail, opencode summarises all of it.
            history.summarise(min(history.ceiling(start), stop) or stop)

    def _prune(self, history: ClientHistory, stop: int) -> None:
        messages, cleared = history.messages, self.row["cleared"]
        tools = {call.id: call.name for message in messages[:stop] for call in message.calls}
        turns = total = 0
        places: list[int] = []
        # From the newest back: what was cleared before, and a summary, end the look, as everything behind them is old.
        for at in range(stop - 1, -1, -1):
            message = messages[at]
            turns += message.role == "user"
            if history.wrote(message) or (message.role == "tool" and message.text == cleared):
                break
            if turns < 2 or message.role != "tool" or tools.get(message.answers or "") == "skill":
                continue
            tokens = history.services.text_tokens(message.text)
            total += tokens
            if total > 40_000:
                places.append(at)
        if sum(history.services.text_tokens(messages[at].text) for at in places) > 20_000:
            history.clear(reversed(places), cleared)


@dataclass(frozen=True, slots=True)
class GeminiCliCompaction(CompactingClient, name="gemini_cli"):
    """At half of the model's limit the newest 30 % by characters stay, behind a summary with an answer.

    The trigger is the last prompt. The cut is before a user's message; what is being answered is never in the summary.
    A second call checks the summary (`verify`). If the result would be larger than before, it is thrown away, and no
    other attempt is made.
    """

    limit: PositiveInt = 1_048_576
    threshold: Share = 0.5
    preserve: ShareBelowOne = 0.3
    verify: bool = True

    def compact(self, history: ClientHistory) -> None:
        prompted = history.tokens(history.answered - 1) if history.answered else 0
        if history.given_up or not history.answered or prompted < self.threshold * self.limit:
            return
        stop = history.floor(split_by_characters(history.messages[: history.answered], 1 - self.preserve))
        if not history.forgotten(0, stop):
            return
        text = history.write(history.messages[:stop])
        if text is not None and self.verify:
            text = history.write(history.messages[:stop], history.notes(text, stop)[0])
        if text is None:
            return
        notes, services = history.notes(text, stop), history.services
        if services.total(notes) > services.total(history.messages[:stop]):
            services.record(Failed("summary", "it is larger than what it replaces", "the history stays as it is"))
            history.given_up = True
            return
        history.replace(0, stop, notes, text)


def split_by_characters(messages: Messages, share: float) -> int:
    """Return the place of the first user's message with at least that share of the characters before it.

    If there is none, all are before the cut where the last is an answer without tool calls, else what is before the
    newest user's message.
    """
    sizes = [len(m.text) + sum(len(call.name) + len(call.arguments) for call in m.calls) for m in messages]
    before = list(accumulate(sizes, initial=0))
    users = [at for at, message in enumerate(messages) if message.role == "user"]
    first = next((at for at in users if before[at] >= share * before[-1]), None)
    if first is not None:
        return first
    last = messages[-1]
    return len(messages) if last.role == "assistant" and not last.calls else users[-1] if users else 0


@dataclass(frozen=True, slots=True)
class ClineCompaction(CompactingClient, name="cline"):
    """At 90 % of the input limit the newest 20,000 tokens stay behind a summary.

    The trigger is the request's tokens. This is the default, `agentic`; the mode `basic`, without a model, is not here.
    """

    input_limit: PositiveInt = 200_000
    keep_recent: PositiveInt = 20_000

    @property
    def trigger(self) -> int:
        return self.input_limit * 9 // 10

    def compact(self, history: ClientHistory) -> None:
        if history.tokens() >= self.trigger:
            history.summarise(min(history.fit(self.keep_recent), history.settled))


@dataclass(frozen=True, slots=True)
class PiCompaction(CompactingClient, name="pi"):
    """Near the end of the window the newest 20,000 tokens stay behind a summary.

    The trigger is the request's tokens, above the window less `reserve`. The message that reaches 20,000 tokens stays
    too, unless it is a tool's result. Where the cut splits a turn, its start has a summary of its own,
    half as long, after the other one.
    """

    window: PositiveInt = 200_000
    reserve: NonNegativeInt = 16_384
    keep_recent: PositiveInt = 20_000

    @property
    def trigger(self) -> int:
        return self.window - self.reserve

    def compact(self, history: ClientHistory) -> None:
        if history.tokens() <= self.trigger:
            return
        messages, services = history.messages, history.services
        # `fit` finds the longest end that stays below 20,000; the
        # message before it is the one that reaches them, and stays.
        stop = min(history.ceiling(max(0, services.fit(messages, self.keep_recent - 1) - 1)), history.settled)
        if not stop or not history.forgotten(0, stop):
            return
        turn = services.opening(messages, stop) if stop < len(messages) else None
        turn = stop if turn is None or history.wrote(messages[turn]) else turn
        parts = [history.write(messages[:turn])] if turn else []
        if turn < stop:
            parts.append(history.write(messages[turn:stop], most=max(1, self.max_summary_tokens // 2)))
        if None not in parts:
            text = f"\n\n---\n\n{self.row['turn']}\n".join(part for part in parts if part is not None)
            history.replace(0, stop, history.notes(text, stop), text)


@dataclass(frozen=True, slots=True)
class AiderCompaction(CompactingClient, name="aider"):
    """Finished turns become a summary with an answer above a sixteenth of the window.

    The trigger is their own tokens, 1,024 to 8,192. Their newest messages within half of that stay, with a head that
    ends in an answer; if four or fewer are before them, all go. If summary and tail are still over it, they are
    summarised again, at most three times. aider has no tool calls: in an agent's recording, a turn is everything from
    one user message to the next.
    """

    window: PositiveInt = 128_000

    @property
    def trigger(self) -> int:
        return min(max(self.window // 16, 1_024), 8_192)

    def compact(self, history: ClientHistory) -> None:
        for depth in range(4):
            done, newest = history.settled, len(history.messages) - 1
            if newest >= 0 and history.messages[newest].role != "user":
                # The place of the user message that opened the present turn; 0 if there is none.
                done = history.floor(history.services.opening(history.messages, newest) or 0)
            finished = history.messages[:done]
            if history.services.total(finished) <= self.trigger:
                return
            start = history.fit(self.trigger // 2 - 1, done)
            while start > 1 and history.messages[start - 1].role != "assistant":
                start = history.floor(start - 1)
            if start <= 4 or depth == 3:
                start = done
            if not history.summarise(start) or start == done:
                return
