"""Logged requests, of which each repeats the messages before it, as conversations.

request 1:  S U            answered by A1
request 2:  S U A1 T       answered by A2        one conversation:  S U A1 T A2
request 3:  S U            answered by B1        a second one:      S U B1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ..errors import Place, RecordingError
from ..model import Conversation, Mark, Message, Tool
from ..source import Problems

OPEN = 8
"""How many conversations a log may have under way at once. One more closes the one that rested longest."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One logged model call. `asked` has the ids `m0`, `m1` …; `answer`, where there is one, the id that follows."""

    place: Place
    asked: tuple[Message, ...]
    answer: Message | None = None
    tools: tuple[Tool, ...] = ()


@dataclass(slots=True)
class Series:
    """Requests that extend each other."""

    number: int
    """From 1, in the order in which they began."""
    latest: LoggedRequest
    answers: dict[int, tuple[Message, tuple[Tool, ...]]] = field(default_factory=dict)
    """The logged answers by their position, with the tools that were offered."""

    def continues(self, request: LoggedRequest) -> bool:
        """Whether the request repeats the latest one, goes on with an answer, and does not stop there."""
        before, asked = self.latest.asked, request.asked
        if len(asked) <= len(before) or asked[len(before)].role != "assistant":
            return False
        return all(_same(old, new) for old, new in zip(before, asked, strict=False))

    def add(self, request: LoggedRequest) -> None:
        """Go on with a request that `continues` this, or begin with the first."""
        self.latest = request
        if request.answer is not None:
            self.answers[len(request.asked)] = request.answer, request.tools

    def conversation(self, name: str, source: str = "") -> tuple[Place, Conversation]:
        """The latest request and its answer. The answers before it have what the log says of their calls."""
        messages = list(self.latest.asked)
        for at, (answer, tools) in self.answers.items():
            if answer.call is not None and tools != self.latest.tools:
                answer = msgspec.structs.replace(answer, call=msgspec.structs.replace(answer.call, tools=tools))
            if at == len(messages):
                messages.append(answer)
            else:
                messages[at] = msgspec.structs.replace(
                    messages[at],
                    call=answer.call,
                    time=answer.time,
                    thinking=messages[at].thinking or answer.thinking,
                )
        name = numbered(name, self.number)
        return self.latest.place, Conversation(name, tuple(messages), tools=self.latest.tools, source=source)


def series(requests: Iterable[LoggedRequest]) -> Iterator[Series]:
    """The conversations of a log in the order of their requests, each as soon as it is known to be over."""
    under_way: list[Series] = []
    begun = 0
    for request in requests:
        for at in reversed(range(len(under_way))):
            if under_way[at].continues(request):
                found = under_way.pop(at)
                break
        else:
            begun += 1
            found = Series(begun, request)
            if len(under_way) == OPEN:
                yield under_way.pop(0)
        found.add(request)
        under_way.append(found)
    yield from sorted(under_way, key=lambda one: one.number)


def mark(after: str | None, control: object) -> tuple[Mark, ...]:
    """The breakpoint that a recorded `cache_control` sets after a message (None = after the tools), if it sets one."""
    if not isinstance(control, dict):
        return ()
    return (Mark(after, str(control.get("ttl") or "5m")),)


def effort(*settings: Any) -> str:
    """How much the model was to think, from what a request says of it: a word, or an object of words and numbers."""
    said = (each.values() if isinstance(each, dict) else [each] for each in settings)
    return " ".join(str(word) for words in said for word in words if isinstance(word, (str, int)))


def numbered(name: str, number: int) -> str:
    """The id of the number-th conversation of a file that gives its conversations none: `name`, `name.2`, `name.3` …"""
    return name if number == 1 else f"{name}.{number}"


def _same(old: Message, new: Message) -> bool:
    """Equal but for the thinking, which clients may leave out of later requests."""
    return old == new or msgspec.structs.replace(old, thinking="") == msgspec.structs.replace(new, thinking="")


@dataclass(slots=True)
class Responses:
    """The responses of one log or session that have been read."""

    problems: Problems
    _places: dict[str, Place] = field(default_factory=dict)

    def new(self, name: str | None, place: Place) -> bool:
        """Whether no response of this id has been read. Another one at `place` is a problem, and does not count."""
        if not name:
            return True
        first = self._places.setdefault(name, place)
        if first is not place:
            what = f"response {name!r} stands at {first} already"
            self.problems.add(RecordingError(place, what, "its call counts once; remove the second one"))
        return first is place
