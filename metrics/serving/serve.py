"""Conversations served by one server with a prefix cache, on one clock.

A call arrives when the answer before it and the pause after that are over. It begins at once if its prompt fits in
memory beside those that run, else it waits, first come, first served. An answer that does not fit when it is there
sends the calls that began last back to the head of the queue until it does (preemption); such a call computes again
what is no longer cached, and then goes on with its answer where it was. This is vLLM's default policy
(vllm/v1/core/sched/scheduler.py); SGLang sends back the call with the shortest answer so far. A call that does not fit
even alone is rejected; its conversation goes on as recorded.

The same calls give the same result: events at the same time happen in the order in which they were scheduled, ends
before beginnings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ctxbench.scenarios.model import Message, Tool

from ..tokens import text_encoder

Ids = NDArray[np.int32]

PAUSE = 10.0
"""Seconds between an answer and the next call, where the recording does not say."""
PREFILL, DECODE = 10_000.0, 50.0
"""Tokens per second of prefill and of decoding, where the recording does not say how long a call took."""

ENDS, ASKED = 0, 1  # in this order where the times are equal: memory is free before it is asked for


class Holding(Protocol):
    """A request that a cache holds memory for."""

    read: int


Held = TypeVar("Held", bound=Holding)


class KvCache(Protocol[Held]):
    """A server's cache. `begin` returns None and `finish` returns False where something does not fit."""

    evicted: int

    def fits(self, tokens: int) -> bool: ...
    def begin(self, ids: ArrayLike) -> Held | None: ...
    def finish(self, running: Held, output: ArrayLike) -> bool: ...
    def drop(self, running: Held) -> None: ...


class ServedCall(NamedTuple):
    """A call of a conversation."""

    prompt: Ids
    output: Ids
    pause: float | None
    """Seconds since the answer before it; None = not known."""
    took: float | None
    """Seconds to the end of its answer; None = not known."""


class Served(NamedTuple):
    """Outcome of a call."""

    tokens: int
    """Tokens of its prompt."""
    read: int
    """Tokens read from the cache when it first began."""
    computed: int
    """Tokens computed: the rest of the prompt, and recomputed tokens; 0 if it was rejected."""
    waited: bool
    preempted: int
    """Times it was sent back to the queue."""
    refused: bool


def serve(
    talks: Sequence[Iterator[ServedCall]], cache: KvCache[Any], starts: Sequence[float | None]
) -> list[list[Served]]:
    """Serve all conversations and return the outcome of each one's calls, in order.

    `starts`: when each conversation begins, in seconds. One without a start begins as another ends, in order.
    """
    return _Server(talks, cache, starts).run()


@dataclass(eq=False, slots=True)
class _PendingCall:
    """A call on its way."""

    talk: int
    call: ServedCall
    ids: Ids
    """The prompt; after the call was sent back, prompt and answer, which have to fit then."""
    output: Ids
    left: float
    """Seconds to the end of its answer, without the time that computing takes where the recording says nothing."""
    ends: float = 0.0
    """End of its answer, while it runs."""
    held: Any = None
    """Memory that the cache holds for it while it runs."""
    read: int | None = None
    computed: int = 0
    waited: bool = False
    preempted: int = 0


class _Server:
    def __init__(
        self, talks: Sequence[Iterator[ServedCall]], cache: KvCache[Any], starts: Sequence[float | None]
    ) -> None:
        self._talks, self._cache = talks, cache
        self._done: list[list[Served]] = [[] for _ in talks]
        # Time, kind, number, the call, and the memory held for it when its end was scheduled.
        self._events: list[tuple[float, int, int, _PendingCall, Any]] = []
        self._count = 0
        self._waiting: deque[_PendingCall] = deque()
        self._running: list[_PendingCall] = []  # in the order they began
        self._later = deque(at for at, start in enumerate(starts) if start is None)
        self._now = 0.0
        for at, start in enumerate(starts):
            if start is not None:
                self._ask(at, start, first=True)

    def run(self) -> list[list[Served]]:
        while self._events:
            self._now, kind, _, pending, held = heappop(self._events)
            if kind == ASKED:
                self._arrive(pending)
            elif held is pending.held:  # else it was sent back meanwhile
                self._finish(pending)
            self._admit()
        return self._done

    def _ask(self, talk: int, time: float, first: bool = False) -> None:
        """Schedule the next call of a conversation or, at its end, the first call of the next one that has any."""
        while (call := next(self._talks[talk], None)) is None:
            if not self._later:
                return
            talk, first = self._later.popleft(), True
        # The first call has no answer before it: its time is the conversation's own start.
        pause = 0.0 if first else PAUSE if call.pause is None else call.pause
        self._push(time + pause, ASKED, _PendingCall(talk, call, call.prompt, call.output, _left(call)))

    def _push(self, time: float, kind: int, pending: _PendingCall) -> None:
        # The count breaks ties in the order of scheduling. Without it the heap would compare two calls, which have no
        # order.
        self._count += 1
        heappush(self._events, (time, kind, self._count, pending, pending.held))

    def _arrive(self, pending: _PendingCall) -> None:
        # Less one, as everywhere here: the last token of an answer is never computed, so it takes no memory.
        if self._cache.fits(len(pending.ids) + max(len(pending.output) - 1, 0)):
            self._waiting.append(pending)
        else:
            self._close(pending, self._now + pending.left)

    def _admit(self) -> None:
        # First come, first served: a call that does not fit holds up all behind it, also those that would fit.
        while self._waiting:
            pending = self._waiting[0]
            pending.held = self._cache.begin(pending.ids)
            if pending.held is None:
                break
            self._running.append(self._waiting.popleft())
            computed = len(pending.ids) - pending.held.read
            pending.read = pending.held.read if pending.read is None else pending.read
            pending.computed += computed
            # A recorded time has the prompt in it, and nothing that is computed again.
            if pending.call.took is None or pending.preempted:
                pending.ends = self._now + computed / PREFILL + pending.left
            else:
                pending.ends = self._now + pending.left
            self._push(pending.ends, ENDS, pending)
        for pending in self._waiting:
            pending.waited = True

    def _finish(self, pending: _PendingCall) -> None:
        # The call itself may be the one that began last: then it is sent back too, and ends another time.
        while not self._cache.finish(pending.held, pending.output):
            last = self._running.pop()
            self._send_back(last)
            if last is pending:
                return
        self._running.remove(pending)
        self._close(pending, self._now)

    def _send_back(self, pending: _PendingCall) -> None:
        self._cache.drop(pending.held)
        pending.held = None
        # It computes its prompt and its answer again: both have to fit before it begins once more.
        pending.ids, pending.output = np.concatenate((pending.ids, pending.output[:-1])), pending.output[:0]
        # What it has said so far is not said again. It may have been sent back before it said anything.
        pending.left = min(pending.left, pending.ends - self._now)
        pending.preempted += 1
        self._waiting.appendleft(pending)

    def _close(self, pending: _PendingCall, time: float) -> None:
        """Record the outcome of a call, and schedule the next one."""
        # Only a call that never began has no `read`.
        refused = pending.read is None
        tokens = len(pending.call.prompt)
        done = Served(tokens, pending.read or 0, pending.computed, pending.waited, pending.preempted, refused)
        self._done[pending.talk].append(done)
        self._ask(pending.talk, time)


def _left(call: ServedCall) -> float:
    """Return the time of a call; where it is not known, that of its answer alone."""
    return len(call.output) / DECODE if call.took is None else call.took


START, SEPARATOR, END, NAME, CALL, ARGUMENTS, CALLED, TOOLS, SYSTEM, USER, ASSISTANT, TOOL, OTHERS = range(
    1 << 24, (1 << 24) + 13
)
"""Ids of the chat format, beyond those of any encoding; from `OTHERS` on ids are free."""
_ROLES = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT, "tool": TOOL}
REPLY = np.array((START, ASSISTANT, SEPARATOR), np.int32)


class TokenIds:
    """Encoder of messages to token ids. Raises SpecError for an encoding that has none."""

    __slots__ = ("_text",)

    def __init__(self, encoding: str) -> None:
        self._text = text_encoder(encoding)

    def message(self, message: Message) -> Ids:
        """Return the ids of a message as part of a prompt."""
        ids = [START, _ROLES[message.role], SEPARATOR]
        if message.name:
            ids += (NAME, *self._text(message.name))
        ids += self._text(message.text)
        for call in message.calls:
            ids += (CALL, *self._text(call.name), ARGUMENTS, *self._text(call.arguments), CALLED)
        ids.append(END)
        return np.array(ids, np.int32)

    def tools(self, tools: Iterable[Tool]) -> Ids:
        """Return the ids of the tool schemas, which stand before all messages; empty if there are none."""
        lines = [msgspec.json.encode((tool.name, tool.description, tool.parameters)).decode() for tool in tools]
        if not lines:
            return REPLY[:0]
        return np.array((START, TOOLS, SEPARATOR, *self._text("\n".join(lines)), END), np.int32)


def answer(message: Ids) -> Ids:
    """Return the ids of a message that the model generates: all but the start of the reply."""
    return message[len(REPLY) :]
