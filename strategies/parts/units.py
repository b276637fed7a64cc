"""What of a history can only stay or go together: a tool call and its results."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...scenarios.model import Message
from ...scenarios.view import Messages, Span, shared
from ..base import StrategyContext
from ..events import Dropped

NOTHING = Messages()


class Units:
    """A growing history as units: a message, or everything from a tool call to the last of its results.

    Each message is looked at once, as long as the history only grows. If its start changes (a stage before this one
    rewrote it), reading begins again where it differs.
    """

    __slots__ = ("_calls", "_read", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        """Where each unit starts, in order."""
        self._calls: dict[str, int] = {}
        self._read = NOTHING

    def read(self, history: Messages) -> int:
        """Bring the units up to date. Returns how many leading messages are as they were at the last reading."""
        same = shared(self._read, history)
        if same < len(self._read):
            self._forget()
            for at in range(same):
                self._enter(at, history[at])
        for at, message in enumerate(history[same:], same):
            self._enter(at, message)
        self._read = history
        return same

    def before(self, at: int) -> int:
        """The start of the unit that message `at` is in: the nearest place at or before it where a cut breaks nothing.

        `at` = the length of the history, where nothing is in a unit yet, is such a place itself.
        """
        if at >= len(self._read):
            return at
        return self.starts[bisect_right(self.starts, at) - 1]

    def bounds(self) -> list[tuple[int, int]]:
        """(start, stop) of each unit."""
        return list(zip(self.starts, [*self.starts[1:], len(self._read)], strict=True))

    def _enter(self, at: int, message: Message) -> None:
        call = self._calls.get(message.answers) if message.answers is not None else None
        if call is None:
            self.starts.append(at)
        else:
            while self.starts[-1] > call:
                self.starts.pop()
        for each in message.calls:
            self._calls[each.id] = at

    def _forget(self) -> None:
        self.starts, self._calls = [], {}


def turns(messages: Sequence[Message]) -> list[int]:
    """Where each turn starts: at every user message."""
    return [at for at, message in enumerate(messages) if message.role == "user"]


class Spoken:
    """The messages of a growing history that are not the system's, as units that stay or go together.

    A stage before this one may put other system messages into each call (facts, memories): what was read before is
    still the start of what is read now.
    """

    __slots__ = ("_before", "_desk", "messages", "units")

    def __init__(self, desk: StrategyContext) -> None:
        self.messages = Messages()
        self.units = Units()
        self._desk = desk
        self._before: list[int] = []

    def read(self, history: Messages) -> int:
        """Take the history as it is now. Returns how many leading spoken messages are as they were at the last call."""
        systems = [(store, at) for store, start, stop in self._desk.systems(history).spans for at in range(start, stop)]
        systems.reverse()
        before: list[int] = []
        spans: list[Span] = []
        passed = 0
        for store, start, stop in history.spans:
            first = start
            while systems and systems[-1][0] is store and start <= systems[-1][1] < stop:
                at = systems.pop()[1]
                before.append(passed + at - first - len(before))
                if at > start:
                    spans.append(Span(store, start, at))
                start = at + 1
            if start < stop:
                spans.append(Span(store, start, stop))
            passed += stop - first
        self._before = before
        self.messages = Messages(spans)
        return self.units.read(self.messages)

    def place(self, at: int) -> int:
        """Where spoken message `at` stands in the history; the end of the history if `at` is their number."""
        return at + bisect_right(self._before, at)


class Late:
    """Results that come when their call is summarised: no provider takes them without it, so they are not sent.

    Each is recorded once (Dropped). A later round may take it into the summary.
    """

    __slots__ = ("_calls", "_desk", "_told")

    def __init__(self, desk: StrategyContext) -> None:
        self._desk = desk
        self._calls: set[str] = set()
        self._told: set[str] = set()

    def gone(self, messages: Iterable[Message]) -> None:
        """These are summarised."""
        self._calls.update(call.id for message in messages for call in message.calls)

    def read(self, messages: Iterable[Message]) -> None:
        """These were said since, and are not summarised."""
        found = [each.id for each in messages if each.role == "tool" and each.answers in self._calls]
        late = [name for name in found if name not in self._told]
        if late:
            self._told.update(late)
            self._desk.record(Dropped(tuple(late)))


class Newest(NamedTuple):
    """What is sent of a history. A summary of what is not sent goes between the two."""

    head: Messages
    """System messages."""
    tail: Messages
    """The user message that opened the turn, if the newest messages go on with one; then they, calls with results."""


def newest(
    desk: StrategyContext, history: Messages, start: int, room: int | None = None, user_first: bool = True
) -> Newest:
    """The messages from `start` on, fewer if they do not fit in `room` tokens, and every system message before them.

    `room` is for all that are not the system's. With `user_first` the user message that opened the turn stays, if it
    fits beside the newest message: providers take no request without one, Anthropic none that begins otherwise.
    """
    if room is not None:
        start = max(start, desk.fit(history, room) if room > 0 else len(history))
    first = start
    opening = desk.opening(history, start) if user_first else None
    while opening is not None and room is not None:
        later = desk.fit(history, room - desk.tokens(history[opening]))
        if later >= len(history):
            start, opening = first, None
        elif later > start:
            start, opening = later, desk.opening(history, later)
        else:
            break
    rest = desk.whole(history[start:])
    if opening is None:
        return Newest(desk.systems(history[:start]), rest)
    between = desk.systems(history[opening:start])
    return Newest(desk.systems(history[:opening]), history[opening : opening + 1] + between + rest)


def at_least(low: float, *, at_most: float | None = None, below: float | None = None, **given: float | None) -> None:
    """Raise ValueError for the first of the parameters that is out of bounds. One that is None has no value to check.

    at_least(1, limit=-1)  →  ValueError: limit must be at least 1, not -1
    """
    limits = f"at least {low}"
    limits += "" if at_most is None else f" and at most {at_most}"
    limits += "" if below is None else f" and below {below}"
    for name, value in given.items():
        if value is None:
            continue
        over = (at_most is not None and value > at_most) or (below is not None and value >= below)
        if over or not value >= low:
            raise ValueError(f"{name} must be {limits}, not {value}")


def one_limit(max_tokens: int | None, model: str | None) -> None:
    """Raise ValueError if both a number of tokens and a model, for its context window, are to be the limit."""
    if max_tokens is not None and model is not None:
        raise ValueError(f"give max_tokens or model, not both: max_tokens={max_tokens}, model={model!r}")
