"""Structural validity: whether a provider would accept a context, and which rules it breaks.

Tool calls and results are read by a small automaton whose state is the calls still open. A call opens when the
assistant makes it; its result closes it; any other message while calls are open leaves them unanswered. OpenAI and
Anthropic reject a request that breaks this, Anthropic also one that does not begin with a user's message or has a
blank text.

One pass over the recording (`Structure`) gives the state at every message. Contexts are mostly spans of the recording,
so `measure.py` judges them by that pass, and reads message by message only where the states differ.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages, Span, joined

Open = tuple[str, ...]

FAULTS = {
    "orphan_results": "tool results that do not follow their call, or whose call is not there",
    "unanswered_calls": "tool calls without their result, before the next message or at the end",
    "misordered": "recorded messages that stand before one which was said earlier",
    "blank_messages": "system, user or assistant messages that have no text, no tool call and no image or file",
    "dropped_system": "system messages of the history missing",
    "no_user": "no user message",
    "not_user_first": "another than a user's message first, system messages aside",
    "empty": "nothing but system messages",
}
"""Faults of one context. The first five are counted, the others are 0 or 1."""

OPENAI = frozenset({"orphan_results", "unanswered_calls", "empty"})  # faults for which OpenAI rejects a request

ANTHROPIC = frozenset({"orphan_results", "unanswered_calls", "blank_messages", "not_user_first", "empty"})
"""Faults for which Anthropic rejects a request."""


def step(state: Open, message: Message) -> tuple[Open, int, int]:
    """Advance the automaton: (open calls after the message, orphan results in it, calls it leaves unanswered)."""
    if message.role == "tool":
        # An assistant's calls a and b open (a, b), the result of a leaves (b), and a user's message then leaves () with
        # one call unanswered. Results may come in any order.
        if message.answers in state:
            return tuple(call for call in state if call != message.answers), 0, 0
        return state, 1, 0
    return tuple(call.id for call in message.calls) if message.calls else (), 0, len(state)


def is_blank(message: Message) -> bool:
    """Return whether a message has nothing for a model to read. Results of tools may be empty."""
    content = message.calls or message.media or (message.text and not message.text.isspace())
    return not content and message.role != "tool"


class Structure:
    """Index of a recording, built in one pass: its system messages, and the calls open at each message."""

    __slots__ = ("_recording", "_systems", "_users", "blank", "opened", "orphans", "unanswered")

    def __init__(self, recording: Sequence[Message]) -> None:
        self._recording = recording
        self.opened: list[Open] = [()]
        """Open calls before each message, and at the end."""
        self.orphans = [0]
        """Orphan results before each message, and at the end."""
        self.unanswered = [0]
        self.blank = [0]
        self._systems: list[int] = []
        self._users: list[int] = []

    def advance(self, to: int) -> None:
        """Read the recording's messages before `to`."""
        for at in range(len(self.opened) - 1, to):
            message = self._recording[at]
            state, orphan, left = step(self.opened[-1], message)
            self.opened.append(state)
            self.orphans.append(self.orphans[-1] + orphan)
            self.unanswered.append(self.unanswered[-1] + left)
            self.blank.append(self.blank[-1] + is_blank(message))
            if message.role == "system":
                self._systems.append(at)
            elif message.role == "user":
                self._users.append(at)

    def calls_and_results(self, spans: Iterable[Sequence[int]], written: Sequence[Message]) -> tuple[int, int]:
        """Count (orphan results, unanswered calls) of a context, from spans of the recording and of what was `written`,
        which is numbered behind it. A span is read up to where its state is that of the recording.
        """
        state: Open = ()
        size, orphans, unanswered = len(self._recording), 0, 0
        for start, stop in spans:
            at = start
            while at < stop and not (at < size and state == self.opened[at]):
                message = self._recording[at] if at < size else written[at - size]
                state, orphan, left = step(state, message)
                orphans, unanswered, at = orphans + orphan, unanswered + left, at + 1
            if at < stop:
                state = self.opened[stop]
                orphans += self.orphans[stop] - self.orphans[at]
                unanswered += self.unanswered[stop] - self.unanswered[at]
        return orphans, unanswered + len(state)

    def systems(self, messages: Messages) -> Messages:
        spans: list[Span] = []
        for store, start, stop in messages.spans:
            places: Iterable[int] = range(start, stop)
            if store is self._recording:
                self.advance(stop)
                places = self._systems[bisect_left(self._systems, start) : bisect_left(self._systems, stop)]
            spans += [Span(store, at, at + 1) for at in places if store[at].role == "system"]
        return joined(spans)

    def opening(self, messages: Messages, start: int) -> int | None:
        """Return the place of the user message that opened the turn continued by messages[start:].

        None if they open a turn themselves, if all are system messages, or if no user message precedes them.
        """
        roles = (messages[at].role for at in range(start, len(messages)))
        first = next((role for role in roles if role != "system"), "user")
        if first == "user":
            return None
        for store, low, high in reversed(messages[:start].spans):
            if store is self._recording:
                self.advance(high)
                before = bisect_left(self._users, high)
                place = self._users[before - 1] if before else -1
            else:
                place = next((at for at in range(high - 1, low - 1, -1) if store[at].role == "user"), -1)
            if place >= low:
                # The span ends at `start` of these messages and at `high` of its store: so far before the end stands
                # the user's.
                return start - high + place
            start -= high - low
        return None

    def whole(self, messages: Messages) -> Messages:
        """Return these messages without the tool results whose call is not among them.

        Once the automaton is in the same state as in the pass over the recording, only results that are orphans in the
        recording itself need a look.
        """
        spans: list[Span] = []
        state: Open = ()
        for span in messages.spans:
            store, start, stop = span
            lost, at, is_recorded = list[int](), start, store is self._recording
            if is_recorded and stop >= len(self.opened):
                self.advance(stop)
            while at < stop and not (is_recorded and state == self.opened[at]):
                state, orphan, _ = step(state, store[at])
                # A result that strays from its call in the recording itself is no fault of the cut: it stays while the
                # call is sent.
                strays = not is_recorded or self.orphans[at + 1] > self.orphans[at]
                if orphan and not (strays and _calls(messages, store[at].answers)):
                    lost.append(at)
                at += 1
            if at < stop:  # the states have met, and from there on they are the same
                state = self.opened[stop]
                for place in range(at, stop) if self.orphans[stop] > self.orphans[at] else ():
                    if self.orphans[place + 1] > self.orphans[place] and not _calls(messages, store[place].answers):
                        lost.append(place)
            if not lost:
                spans.append(span)
                continue
            for at in (*lost, stop):
                if at > start:
                    spans.append(Span(store, start, at))
                start = at + 1
        return messages if spans == list(messages.spans) else joined(spans)


def calls_and_results(messages: Sequence[Message]) -> tuple[int, int]:
    """Count (orphan results, unanswered calls) of a whole context, message by message."""
    index = Structure(messages)
    index.advance(len(messages))
    return index.orphans[-1], index.unanswered[-1] + len(index.opened[-1])


def _calls(messages: Messages, name: str | None) -> bool:
    return any(call.id == name for message in messages for call in message.calls)
