"""Structural validity: whether a provider would accept what a strategy would send, and what it broke.

Tool calls and results are read by a small automaton whose state is the calls still open. A call opens when the
assistant makes it; its result closes it; any other message while calls are open leaves them unanswered. Both OpenAI
and Anthropic refuse a request in which a result answers no open call, or a call is left unanswered
(platform.openai.com/docs/guides/function-calling; docs.anthropic.com, "tool use": results must come right after).

One pass over the recording gives the state at every message and the faults up to it. A stretch of the recording is
then judged by stepping until the automaton's state meets that of the pass, and jumping to the end of the stretch:
the same verdict as reading every message, at a cost that does not grow with the stretch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from ..scenarios.model import Message, Role
from ..scenarios.view import Messages, Span

Open = tuple[str, ...]


class Faults(NamedTuple):
    """What is wrong with one context. All are counts but the last four, which are 0 or 1."""

    orphan_results: int = 0
    """Tool results that do not follow their call, or whose call is not there."""
    unanswered_calls: int = 0
    """Tool calls without their result, before the next message or at the end."""
    misordered: int = 0
    """Recorded messages that stand before one which was said earlier."""
    blank_messages: int = 0
    """System, user and assistant messages with no text, no tool call and no image."""
    dropped_system: int = 0
    """System messages of the history that are not in the context."""
    no_user: int = 0
    """No user message in it."""
    not_user_first: int = 0
    """Its first message, system messages aside, is not the user's."""
    empty: int = 0
    """Nothing in it but system messages."""


OPENAI = frozenset({"orphan_results", "unanswered_calls", "empty"})
"""The faults for which OpenAI refuses a request."""

ANTHROPIC = frozenset({"orphan_results", "unanswered_calls", "blank_messages", "not_user_first", "empty"})
"""The faults for which Anthropic refuses a request."""


class Structure:
    """The faults of any context of one conversation."""

    __slots__ = ("_blank", "_open", "_orphans", "_recording", "_strays", "_systems", "_unanswered", "_users")

    def __init__(self, recording: Sequence[Message]) -> None:
        self._recording = recording
        self._open: list[Open] = [()]
        """State before each message; one longer than the messages read."""
        self._orphans = [0]
        self._unanswered = [0]
        self._blank = [0]
        self._systems: list[int] = []
        self._users: list[int] = []
        self._strays: list[int] = []
        """Results that are orphans in the recording itself."""

    def advance(self, to: int) -> None:
        """Read the recording's messages before `to`."""
        for at in range(len(self._open) - 1, to):
            message = self._recording[at]
            state, orphan, left = _step(self._open[-1], message)
            self._open.append(state)
            self._orphans.append(self._orphans[-1] + orphan)
            self._unanswered.append(self._unanswered[-1] + left)
            self._blank.append(self._blank[-1] + _blank(message))
            if orphan:
                self._strays.append(at)
            if message.role == "system":
                self._systems.append(at)
            elif message.role == "user":
                self._users.append(at)

    def turns(self, said: int) -> int:
        """User messages among the first `said` messages of the recording."""
        return bisect_left(self._users, said)

    def faults(self, sent: Messages, said: int) -> Faults:
        """The faults of what is sent, after the first `said` messages of the recording."""
        self.advance(said)
        state: Open = ()
        orphans = unanswered = blank = misordered = systems = 0
        users, spoken = False, False
        first: Role | None = None
        highest = 0
        for span in sent.spans:
            store, start, stop = span
            if store is not self._recording:
                for message in store[start:stop]:
                    state, orphan, left = _step(state, message)
                    orphans, unanswered, blank = orphans + orphan, unanswered + left, blank + _blank(message)
                    users = users or message.role == "user"
                    if message.role != "system":
                        spoken, first = True, first or message.role
                continue
            misordered += start < highest
            highest = max(highest, stop)
            state, at, orphan, left = self._meet(state, span)
            orphans += orphan + self._orphans[stop] - self._orphans[at]
            unanswered += left + self._unanswered[stop] - self._unanswered[at]
            blank += self._blank[stop] - self._blank[start]
            held = _between(self._systems, start, stop)
            systems += held
            users = users or bool(_between(self._users, start, stop))
            if first is None and held < stop - start:
                spoken, first = True, self._first_spoken(start)
        return Faults(
            orphans,
            unanswered + len(state),
            misordered,
            blank,
            dropped_system=max(0, bisect_left(self._systems, said) - systems),
            no_user=int(not users),
            not_user_first=int(spoken and first != "user"),
            empty=int(not spoken),
        )

    def systems(self, messages: Messages) -> Messages:
        """The system messages among these."""
        found: list[Span] = []
        for store, start, stop in messages.spans:
            if store is self._recording:
                self.advance(stop)
                low, high = bisect_left(self._systems, start), bisect_left(self._systems, stop)
                places: Sequence[int] = self._systems[low:high]
            else:
                places = [at for at in range(start, stop) if store[at].role == "system"]
            found += [Span(store, at, at + 1) for at in places]
        return _joined(found)

    def whole(self, messages: Messages) -> Messages:
        """These messages without the results whose call is not among them."""
        spans: list[Span] = []
        state: Open = ()
        for span in messages.spans:
            store, start, stop = span
            lost = []
            if store is self._recording:
                after, met, _, _ = self._meet(state, span)
                lost = self._cut_off(state, start, met, messages)
                strays = self._strays[bisect_left(self._strays, met) : bisect_left(self._strays, stop)]
                lost += [at for at in strays if not _calls(messages, self._recording[at].answers)]
                state = after
            else:
                for at in range(start, stop):
                    state, orphan, _ = _step(state, store[at])
                    if orphan and not _calls(messages, store[at].answers):
                        lost.append(at)
            for at in (*lost, stop):
                if at > start:
                    spans.append(Span(store, start, at))
                start = at + 1
        return _joined(spans)

    def _cut_off(self, state: Open, start: int, stop: int, messages: Messages) -> list[int]:
        """Where in recording[start:stop], read from `state`, a result stands whose call is not among the messages."""
        lost = []
        for at in range(start, stop):
            message = self._recording[at]
            state, orphan, _ = _step(state, message)
            stray = self._orphans[at + 1] > self._orphans[at]
            if orphan and not (stray and _calls(messages, message.answers)):
                lost.append(at)
        return lost

    def _meet(self, state: Open, span: Span) -> tuple[Open, int, int, int]:
        """Step from `state` until the reference pass is in the same state: (state at the end, where met, faults)."""
        at, orphans, unanswered = span.start, 0, 0
        self.advance(span.stop)
        while at < span.stop and state != self._open[at]:
            state, orphan, left = _step(state, self._recording[at])
            orphans, unanswered = orphans + orphan, unanswered + left
            at += 1
        return (self._open[span.stop] if at < span.stop else state), at, orphans, unanswered

    def _first_spoken(self, start: int) -> Role:
        """The role of the first message from `start` on that is not the system's."""
        while self._recording[start].role == "system":
            start += 1
        return self._recording[start].role


def _step(state: Open, message: Message) -> tuple[Open, int, int]:
    """The automaton: (open calls after the message, orphan results in it, calls it leaves unanswered)."""
    if message.role == "tool":
        if message.answers in state:
            return tuple(call for call in state if call != message.answers), 0, 0
        return state, 1, 0
    return tuple(call.id for call in message.calls), 0, len(state)


def _calls(messages: Messages, name: str | None) -> bool:
    return any(call.id == name for message in messages for call in message.calls)


def _blank(message: Message) -> int:
    empty = not message.calls and not message.images and (not message.text or message.text.isspace())
    return int(empty and message.role != "tool")


def _between(places: list[int], start: int, stop: int) -> int:
    return bisect_left(places, stop) - bisect_left(places, start)


def _joined(spans: list[Span]) -> Messages:
    """Spans as Messages, adjacent ones joined."""
    made: list[Span] = []
    for span in spans:
        if made and made[-1].store is span.store and made[-1].stop == span.start:
            made[-1] = Span(span.store, made[-1].start, span.stop)
        else:
            made.append(span)
    return Messages(made)
