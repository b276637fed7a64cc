"""A growing history as units that can only stay or go together: a tool call and its results."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from itertools import repeat

import numpy as np

from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages, Span, joined, shared_prefix

from ..base import StrategyContext, SystemOverBudget
from ..events import Dropped

NOTHING = Messages()


class Units:
    """A growing history as units: a message, or everything from a tool call to the last of its results.

    Each message is read once, as long as the history only grows. If its start changes (a stage before this one rewrote
    it), reading begins again where it differs.
    """

    def __init__(self) -> None:
        self.starts = array("q")
        """Place of the first message of each unit, in order."""
        self._calls: dict[str, int] = {}
        self._read = NOTHING

    def read(self, history: Messages) -> int:
        """Bring the units up to date. Returns how many leading messages are as they were at the last reading."""
        same = shared_prefix(self._read, history)
        if same < len(self._read):
            if any(message.calls or message.answers is not None for message in self._read[same:]):
                self.starts, self._calls = array("q"), {}
                for at in range(same):
                    self._enter(at, history[at])
            else:  # each was a unit of its own, as a question is
                del self.starts[same - len(self._read) :]
        for at, message in enumerate(history[same:], same):
            if message.answers is None and not message.calls:
                self.starts.append(at)  # as `_enter` does with most messages
            else:
                self._enter(at, message)
        self._read = history
        return same

    def before(self, at: int) -> int:
        """Return the start of the unit of message `at`: the nearest place at or before it where a cut breaks nothing.

        The end of the history is such a place, so `at` = its length is returned as it is.
        """
        if at >= len(self._read):
            return at
        return self.starts[bisect_right(self.starts, at) - 1]

    def around(self, at: int) -> tuple[int, int]:
        """Return (start, stop) of the unit of message `at`."""
        unit = bisect_right(self.starts, at)
        return self.starts[unit - 1], self.starts[unit] if unit < len(self.starts) else len(self._read)

    def _enter(self, at: int, message: Message) -> None:
        call = self._calls.get(message.answers) if message.answers is not None else None
        if call is None:
            self.starts.append(at)
        else:
            # A late result joins all units since its call into one.
            while self.starts[-1] > call:
                self.starts.pop()
        for tool_call in message.calls:
            self._calls[tool_call.id] = at


class Dialogue:
    """The messages of a growing history except the system's, as units that stay or go together.

    A stage before this one may put different system messages into each call (facts, memories). Leaving them out, what
    was read before is still the start of what is read now.
    """

    def __init__(self, services: StrategyContext) -> None:
        self.messages = Messages()
        self.units = Units()
        self._services = services
        self.before: list[int] = []
        """For each system message, how many messages of the dialogue come before it."""
        self.users: list[int] = []
        """Places of the user messages in `messages`."""

    def read(self, history: Messages) -> int:
        """Take the history as it is now. Returns how many leading dialogue messages are as they were before."""
        systems = [
            (store, at) for store, start, stop in self._services.systems(history).spans for at in range(start, stop)
        ]
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
        self.before = before
        self.messages = Messages(spans)
        same = self.units.read(self.messages)
        del self.users[bisect_left(self.users, same) :]
        self.users += [at for at, message in enumerate(self.messages[same:], same) if message.role == "user"]
        return same

    def question(self) -> Message | None:
        """Return the newest user message with text; without user messages the newest message with text."""
        places = reversed(self.users) if self.users else range(len(self.messages) - 1, -1, -1)
        return next((message for at in places if (message := self.messages[at]).text.strip()), None)

    def place(self, at: int) -> int:
        """Return the place in the history of dialogue message `at`; the history's end if `at` is their number."""
        return at + bisect_right(self.before, at)

    def some(self, history: Messages, units: Sequence[int]) -> Messages:
        """Return the system messages of the history and these units, given in order, as they stand in it."""
        firsts, before = np.frombuffer(self.units.starts, np.int64), np.array(self.before, np.int64)
        chosen = np.array(units, np.int64)
        start, following = firsts[chosen], chosen + 1
        stop = firsts[np.minimum(following, len(firsts) - 1)]
        stop[following == len(firsts)] = len(self.messages)
        # In places of the history, where a unit has the system messages between its own.
        start, stop = start + before.searchsorted(start, "right"), stop + before.searchsorted(stop - 1, "right")
        systems = before + np.arange(len(before))
        start, stop = np.concatenate((start, systems)), np.concatenate((stop, systems + 1))
        order = start.argsort(kind="stable")
        start, stop = start[order], np.maximum.accumulate(stop[order])
        is_first = start > np.append(-1, stop)[:-1]  # neighbours are joined
        start, stop = start[is_first], stop[np.append(is_first, True)[1:]]
        spans: list[Span] = []
        passed = 0
        for store, first, last in history.spans:
            end = passed + last - first
            inside = slice(stop.searchsorted(passed, "right"), start.searchsorted(end))
            # Not `np.clip`, which takes three times as long for a few numbers.
            within = (np.minimum(np.maximum(places[inside], passed), end) for places in (start, stop))
            low, high = (places + (first - passed) for places in within)
            spans += map(Span, repeat(store), low.tolist(), high.tolist())
            passed = end
        return joined(spans) if len(history.spans) > 1 else Messages(spans)


class SplicedHistory:
    """A growing history with substitutes for some of its messages.

    The part before the last substitute is kept as spans from call to call; the part after it is the history's own.
    """

    def __init__(self) -> None:
        self.history = NOTHING
        self._substitutes: dict[int, Span] = {}
        # The history up to the last substitute as spans, and how many of its messages they replace.
        self._head: list[Span] = []
        self._covered = 0

    def read(self, history: Messages) -> int:
        """Take the history as it is now; substitutes of changed messages go. Return how many have not changed."""
        same, before = shared_prefix(self.history, history), len(self.history)
        self.history = history
        if same < before:
            self._substitutes = {at: span for at, span in self._substitutes.items() if at < same}
            self._rebuild()
        return same

    def put(self, at: int, message: Message) -> None:
        """Substitute a message for message `at` from now on. Cheapest in the order of the history."""
        if message is self.history[at]:  # it is sent as it is again
            if self._substitutes.pop(at, None) is not None:
                self._rebuild()
            return
        self._substitutes[at] = Span((message,), 0, 1)
        # Results come due in order, so this is the usual case: the spans before it stay. Only a result that had to wait
        # while a later one was archived, and what was changed, rebuilds all.
        if at >= self._covered:
            self._extend(at)
        else:
            self._rebuild()

    def at(self, at: int) -> Message:
        """Return what stands for message `at` of the history."""
        return self._substitutes[at].store[0] if at in self._substitutes else self.history[at]

    def messages(self) -> Messages:
        """Return the history with the substitutes."""
        return Messages((*self._head, *self.history[self._covered :].spans)) if self._substitutes else self.history

    def _rebuild(self) -> None:
        self._head, self._covered = [], 0
        for at in sorted(self._substitutes):
            self._extend(at)

    def _extend(self, at: int) -> None:
        self._head += (*self.history[self._covered : at].spans, self._substitutes[at])
        self._covered = at + 1


class OrphanedResults:
    """Results that arrive after their call was summarised. Providers reject them without the call: they are not sent.

    Each is recorded once (Dropped). A later summary may include it.
    """

    def __init__(self, services: StrategyContext) -> None:
        self._services = services
        self._calls: set[str] = set()
        self._recorded: set[str] = set()

    def note_summarised(self, messages: Iterable[Message]) -> None:
        """Remember the calls of messages that are summarised."""
        self._calls.update(call.id for message in messages for call in message.calls)

    def read(self, messages: Iterable[Message]) -> None:
        """Record which of these new, unsummarised messages are results of summarised calls."""
        orphans = [message.id for message in messages if message.role == "tool" and message.answers in self._calls]
        new = [name for name in orphans if name not in self._recorded]
        if new:
            self._recorded.update(new)
            self._services.record(Dropped(tuple(new)))


def room_beside_systems(services: StrategyContext, history: Messages, budget: int) -> int:
    """Return the tokens of a budget that system messages leave. Raises SystemOverBudget if these alone are over it."""
    systems = services.total(services.systems(history))
    if systems > budget:
        raise SystemOverBudget(systems, budget)
    return budget - systems


def select_newest(
    services: StrategyContext,
    history: Messages,
    start: int,
    room: int | None = None,
    user_first: bool = True,
    summarised: Collection[str] = (),
) -> tuple[Messages, Messages]:
    """Return every system message before `start`, and the messages from there on, fewer if `room` is too small.

    A summary of the rest goes between the two. `room` is in tokens, for all but system messages. The newest messages
    that fit are returned: none if the newest, with its call, does not. With `user_first` they begin with a user's
    message where they can: that which opened their turn, if it fits beside the newest message, or the first of a later
    turn, whichever leaves more of them. A message that is `summarised` opens no turn.
    """
    said = len(history)
    last = next((at for at in range(said - 1, start - 1, -1) if history[at].role != "system"), -1)
    is_result = last >= 0 and history[last].role == "tool"  # which goes without its call
    newest = _last_said(services.whole(history[start:])) if is_result else None

    def fitting(tokens: int) -> int:
        return max(start, services.fit(history, tokens) if tokens > 0 else said)

    def reaches(at: int) -> bool:
        if not is_result:
            return at <= last
        return newest is not None and _last_said(services.whole(history[at:])) is newest

    if room is not None:
        start = fitting(room)
        if not reaches(start):
            return services.systems(history), NOTHING
    opening = services.opening(history, start) if user_first else None
    if opening is not None and history[opening].id in summarised:
        opening = None
    if user_first and room is not None:
        beside = said if opening is None else fitting(room - services.tokens(history[opening]))
        beside = next((at for at in range(beside, said) if history[at].role != "system"), said)
        later = (at for at, message in enumerate(history[start : beside + 1], start) if message.role == "user")
        if (user := next(later, None)) is not None and reaches(user):
            start, opening = user, None
        elif opening is not None and reaches(beside):
            start = beside
        else:
            opening = None
    rest = services.whole(history[start:])
    if opening is None:
        return services.systems(history[:start]), rest
    between = services.systems(history[opening:start])
    return services.systems(history[:opening]), history[opening : opening + 1] + between + rest


def _last_said(messages: Messages) -> Message | None:
    return next((message for message in reversed(messages) if message.role != "system"), None)


def without(messages: Messages, ids: Collection[str], summary: Message | None) -> Messages:
    """Return the messages without those of the ids. The summary takes the place of the first of them, else the end."""
    spans: list[Span] = []
    for store, start, stop in messages.spans:
        for at in range(start, stop):
            if store[at].id not in ids:
                continue
            if at > start:
                spans.append(Span(store, start, at))
            if summary is not None:
                spans += Messages.of((summary,)).spans
                summary = None
            start = at + 1
        if start < stop:
            spans.append(Span(store, start, stop))
    return Messages(spans) + (() if summary is None else (summary,))


def require_one_limit(max_tokens: int | None, model: str | None) -> None:
    """Raise ValueError if both a number of tokens and a model, for its context window, are given as the limit."""
    if max_tokens is not None and model is not None:
        raise ValueError(f"give max_tokens or model, not both: max_tokens={max_tokens}, model={model!r}")
