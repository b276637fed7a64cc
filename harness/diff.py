"""What became of every message of the history at a step: sent or not, and of what was sent what a cache could have."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec

from ..metrics.tokens import TokenCounter
from ..scenarios.errors import RunError
from ..scenarios.model import Conversation, Message
from ..strategies.events import Event, Summarised
from .folder.run import Run
from .probes.results import StoredProbe, asked_probes

Status = Literal["same", "again", "new", "summarised", "dropped"]
"""Sent: at the step before too, with the same before it (same) or something else (again); not at the step before (new).
Not sent: in a summary made up to this step (summarised), or in none (dropped)."""

Origin = Literal["recorded", "replaced", "written", "question"]
"""As it was said; with another text in the place of what was said; the strategy's own; a probe's question."""


class MessageDiff(NamedTuple):
    """What became of a message."""

    status: Status
    origin: Origin
    message: Message
    place: int | None = None
    """In the context; None = not sent."""


@dataclass(frozen=True, slots=True)
class StepDiff:
    """One step of a strategy in a conversation."""

    conversation: str
    strategy: str
    step: int
    steps: int
    """Of the whole conversation."""
    said: int
    """Recorded messages before the call."""
    fates: tuple[MessageDiff, ...]
    """The context in its order, with each message that is not sent where it was said."""
    tokens: dict[Message, int]
    marks: tuple[int, ...]
    """Places in the context of the messages that have a cache breakpoint after them."""
    tools_added: tuple[str, ...]
    tokens_full: int
    tokens_sent: int
    tokens_kept: int
    events: tuple[Event, ...]
    """What the strategy did at this step."""
    probe: StoredProbe | None = None
    """The probe that this is sent for, asked after the step; then all but `step` and `steps` is of its context."""

    def count(self, word: Status | Origin) -> int:
        """How many messages had this fate."""
        return sum(word in (fate.status, fate.origin) for fate in self.fates)

    @property
    def sent(self) -> int:
        """How many messages were sent."""
        return sum(fate.place is not None for fate in self.fates)

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            **{name: getattr(self, name) for name in ("conversation", "strategy", "step", "steps", "said", "sent")},
            **{name: getattr(self, name) for name in ("tokens_full", "tokens_sent", "tokens_kept")},
            **({} if self.probe is None else _asked_for(self.probe)),
            "messages": [self._row(fate) for fate in self.fates],
            "tools_added": self.tools_added,
            "events": [{"event": kind_of(each), **msgspec.structs.asdict(each)} for each in self.events],
        }

    def _row(self, fate: MessageDiff) -> dict[str, Any]:
        return {
            "status": fate.status,
            "origin": fate.origin,
            "place": fate.place,
            "mark": fate.place in self.marks,
            "tokens": self.tokens[fate.message],
            "message": fate.message,
        }


def kind_of(event: Event) -> str:
    """The word for an event: called, summarised, dropped …"""
    return str(event.__struct_config__.tag)


def step_diff(run: Run, name: str, strategy: str, step: int) -> StepDiff:
    """A step of a cell, counted from the end if it is negative. Raises RunError if it is not there, and why."""
    conversation = run.conversation(name)
    contexts = list(run.contexts(conversation, strategy))
    if not contexts:
        why = run.failure(name, strategy)
        raise RunError(f"{name!r}: " + (f"{strategy} failed: {why}" if why else "no model was called: it has no steps"))
    last = len(contexts) - 1
    if not -last - 1 <= step <= last:
        known = f"0 to {last}, or -1 to {-last - 1} from the end" if last else "0"
        raise RunError(f"{name!r} has {len(contexts)} {'steps' if last else 'step'}: give {known}, not {step}")
    number = step % len(contexts)
    row, events = run.steps(name, strategy)[number], run.events(name, strategy)
    before = frozenset(contexts[number - 1]) if number else frozenset()
    summarised = _summarised(events, number)
    return StepDiff(
        name,
        strategy,
        number,
        len(contexts),
        row["at"],
        tuple(_fates(conversation.messages[: row["at"]], contexts[number], row["kept"], before, summarised)),
        _tokens(run, conversation, strategy),
        tuple(row["marks"]),
        tuple(row["tools_added"]),
        row["tokens_full"],
        row["tokens_sent"],
        row["tokens_kept"],
        tuple(event for at, event in events if at == number),
    )


def probe_diff(run: Run, name: str, strategy: str, probe: int) -> StepDiff:
    """What was to be sent for a probe of a conversation, by its number in the list. Raises RunError if nothing was."""
    conversation = run.conversation(name)
    found = next((each for each in asked_probes(run, conversation, strategy) if each.number == probe), None)
    if found is None:
        why = run.failure(name, strategy)
        raise RunError(f"{name!r}: " + (f"{strategy} failed: {why}" if why else f"{strategy} was asked no probes"))
    if found.context is None:
        raise RunError(f"{name!r}: nothing was sent for probe {found.probe.id}: {found.failed}")
    ran = strategy in run.manifest["plan"]["strategies"]
    steps = list(run.contexts(conversation, strategy)) if ran else []
    step = found.step if found.step is not None else -1
    events = [*run.events(name, strategy), *((step, event) for event in found.events)]
    said, sent = conversation.messages[: found.said], found.context
    before = frozenset(steps[step]) if ran and step >= 0 else frozenset[Message]()
    fates = _fates(said, sent.messages, found.kept, before, _summarised(events, step))
    question = TokenCounter(run.manifest["plan"]["encoding"]).message(found.question)
    return StepDiff(
        name,
        strategy,
        step,
        len(steps),
        found.said,
        tuple(fate._replace(origin="question") if fate.message == found.question else fate for fate in fates),
        {**_tokens(run, conversation, strategy), **found.written, found.question: question},
        sent.marks,
        tuple(tool.name for tool in sent.tools if tool not in conversation.tools),
        found.tokens_full,
        found.tokens_sent,
        0,
        found.events,
        found,
    )


def _asked_for(probe: StoredProbe) -> dict[str, Any]:
    """What is said of the probe itself."""
    names = ("evidence", "loadable", "place", "answer", "tokens_evidence")
    return {"probe": probe.probe, **{name: getattr(probe, name) for name in names}}


def _tokens(run: Run, conversation: Conversation, strategy: str) -> dict[Message, int]:
    """Of every message that was said or written."""
    recorded = zip(conversation.messages, run.tokens(conversation.id), strict=True)
    return {**dict(run.written(conversation.id, strategy)), **dict(recorded)}


def _summarised(events: Iterable[tuple[int, Event]], step: int) -> set[str]:
    """Ids of the messages that summaries made up to a step stand for."""
    return {name for at, event in events if at <= step and isinstance(event, Summarised) for name in event.replaced}


def _fates(
    said: Sequence[Message], sent: Sequence[Message], kept: int, before: Collection[Message], summarised: set[str]
) -> Iterator[MessageDiff]:
    places = {message.id: place for place, message in enumerate(said)}
    here = {message.id for message in sent}
    left = deque(message for message in said if message.id not in here)

    def absent(stop: int) -> Iterator[MessageDiff]:
        while left and places[left[0].id] < stop:
            message = left.popleft()
            yield MessageDiff("summarised" if message.id in summarised else "dropped", "recorded", message)

    for number, message in enumerate(sent):
        place, origin = places.get(message.id), _origin(message, said, places)
        if place is not None:
            yield from absent(place)
        status: Status = "same" if number < kept else "again" if message in before else "new"
        yield MessageDiff(status, origin, message, number)
    yield from absent(len(said))


def _origin(message: Message, said: Sequence[Message], places: dict[str, int]) -> Origin:
    place = places.get(message.id)
    if place is None:
        return "written"
    return "recorded" if message == said[place] else "replaced"
