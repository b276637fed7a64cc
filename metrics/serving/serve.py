"""Conversations served by one server with a prefix cache, on one clock.

A call is asked when the answer before it and the pause after that are over. It begins at once if its prompt fits in
memory beside those that run, else it waits, first come, first served. An answer that does not fit when it is there
sends the calls that began last back to the head of the queue until it does; such a call computes again what is no
longer cached. So vLLM does it (vllm/v1/core/sched/scheduler.py, default policy; SGLang sends back the one with the
shortest answer so far). A call that does not fit even alone is refused, and the conversation goes on as recorded.

The same calls give the same result: what happens at the same time happens in the order in which it was settled, ends
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

from ...scenarios.model import Message, Tool
from ..tokens import text_encoder

Ids = NDArray[np.int32]

PAUSE = 10.0
"""Seconds between an answer and the next call, where the recording does not say."""
PREFILL, DECODE = 10_000.0, 50.0
"""Tokens a second that are computed of a prompt, and answered, where the recording does not say how long it took."""

ENDS, ASKED = 0, 1


class Holding(Protocol):
    """A request that a cache holds memory for."""

    read: int


Held = TypeVar("Held", bound=Holding)


class KvCache(Protocol[Held]):
    """A server's cache. `begin` and `finish` say None and False where something does not fit."""

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
    """What became of a call."""

    tokens: int
    """Of its prompt."""
    read: int
    """From the cache, when it first began."""
    computed: int
    """The rest of the prompt, and what was computed again; nothing if it was refused."""
    waited: bool
    preempted: int
    """How often it was sent back."""
    refused: bool


def serve(
    talks: Sequence[Iterator[ServedCall]], cache: KvCache[Any], starts: Sequence[float | None]
) -> list[list[Served]]:
    """The calls of each conversation, in order.

    `starts`: when each conversation begins, in seconds; those without begin in their order, each as another one ends.
    """
    return _Server(talks, cache, starts).run()


@dataclass(eq=False, slots=True)
class _Asked:
    """A call on its way."""

    talk: int
    call: ServedCall
    ids: Ids
    """The prompt; of a call that was sent back with its answer, which has to fit then."""
    output: Ids
    held: Any = None
    """What the cache holds for it while it runs."""
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
        self._events: list[tuple[float, int, int, _Asked, Any]] = []
        """Time, kind, number, the call, and what was held for it when its end was foreseen."""
        self._count = 0
        self._waiting: deque[_Asked] = deque()
        self._running: list[_Asked] = []
        """In the order they began."""
        self._later = deque(at for at, start in enumerate(starts) if start is None)
        self._now = 0.0
        for at, start in enumerate(starts):
            if start is not None:
                self._ask(at, start, first=True)

    def run(self) -> list[list[Served]]:
        while self._events:
            self._now, kind, _, asked, held = heappop(self._events)
            if kind == ASKED:
                self._arrive(asked)
            elif held is asked.held:  # else it was sent back meanwhile
                self._finish(asked)
            self._admit()
        return self._done

    def _ask(self, talk: int, time: float, first: bool = False) -> None:
        """Ask the next call of a conversation; the first of the next conversation that has any if there is none."""
        while (call := next(self._talks[talk], None)) is None:
            if not self._later:
                return
            talk, first = self._later.popleft(), True
        pause = 0.0 if first else PAUSE if call.pause is None else call.pause
        self._push(time + pause, ASKED, _Asked(talk, call, call.prompt, call.output))

    def _push(self, time: float, kind: int, asked: _Asked) -> None:
        self._count += 1
        heappush(self._events, (time, kind, self._count, asked, asked.held))

    def _arrive(self, asked: _Asked) -> None:
        if self._cache.fits(len(asked.ids) + max(len(asked.output) - 1, 0)):
            self._waiting.append(asked)
        else:
            self._close(asked, self._now + _took(asked.call, 0))

    def _admit(self) -> None:
        while self._waiting:
            asked = self._waiting[0]
            asked.held = self._cache.begin(asked.ids)
            if asked.held is None:
                break
            self._running.append(self._waiting.popleft())
            computed = len(asked.ids) - asked.held.read
            asked.read = asked.held.read if asked.read is None else asked.read
            asked.computed += computed
            self._push(self._now + _took(asked.call, computed), ENDS, asked)
        for asked in self._waiting:
            asked.waited = True

    def _finish(self, asked: _Asked) -> None:
        while not self._cache.finish(asked.held, asked.output):
            last = self._running.pop()
            self._send_back(last)
            if last is asked:
                return
        self._running.remove(asked)
        self._close(asked, self._now)

    def _send_back(self, asked: _Asked) -> None:
        self._cache.drop(asked.held)
        asked.held = None
        asked.ids, asked.output = np.concatenate((asked.ids, asked.output[:-1])), asked.output[:0]
        asked.preempted += 1
        self._waiting.appendleft(asked)

    def _close(self, asked: _Asked, time: float) -> None:
        """Enter a call, and ask the next one."""
        refused = asked.read is None
        tokens = len(asked.call.prompt)
        done = Served(tokens, asked.read or 0, asked.computed, asked.waited, asked.preempted, refused)
        self._done[asked.talk].append(done)
        self._ask(asked.talk, time)


def _took(call: ServedCall, computed: int) -> float:
    return computed / PREFILL + len(call.output) / DECODE if call.took is None else call.took


START, SEPARATOR, END, NAME, CALL, ARGUMENTS, CALLED, TOOLS, SYSTEM, USER, ASSISTANT, TOOL, OTHERS = range(
    1 << 24, (1 << 24) + 13
)
"""From `OTHERS` on ids are free."""
_ROLES = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT, "tool": TOOL}
REPLY = np.array((START, ASSISTANT, SEPARATOR), np.int32)


class TokenIds:
    """Token ids in one encoding. Raises SpecError for an encoding that has none."""

    __slots__ = ("_text",)

    def __init__(self, encoding: str) -> None:
        self._text = text_encoder(encoding)

    def message(self, message: Message) -> Ids:
        """A message as part of a prompt."""
        ids = [START, _ROLES[message.role], SEPARATOR]
        if message.name:
            ids += (NAME, *self._text(message.name))
        ids += self._text(message.text)
        for call in message.calls:
            ids += (CALL, *self._text(call.name), ARGUMENTS, *self._text(call.arguments), CALLED)
        ids.append(END)
        return np.array(ids, np.int32)

    def tools(self, tools: Iterable[Tool]) -> Ids:
        """The tool schemas, which stand before all messages; nothing if there are none."""
        lines = [msgspec.json.encode((each.name, each.description, each.parameters)).decode() for each in tools]
        if not lines:
            return REPLY[:0]
        return np.array((START, TOOLS, SEPARATOR, *self._text("\n".join(lines)), END), np.int32)


def answer(message: Ids) -> Ids:
    """What the model generates of its message: all but the start of the reply."""
    return message[len(REPLY) :]
