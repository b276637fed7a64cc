"""The message diff of a step: for every message, whether it was sent, is new, was replaced, summarised or dropped."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.strategies.events import Event, Summarised

from .export.convert import Request, asked_model, offered
from .folder.run import Run
from .probes import StoredProbe, asked_probes

_TOKENS = ("tokens_full", "tokens_sent", "tokens_kept")
# Fields of a probe that its diff has beside those of a step.
_OF_PROBES = ("probe", "evidence", "loadable", "place", "answer", "tokens_evidence")

Status = Literal["same", "again", "new", "summarised", "dropped"]
"""Sent: at the step before too, with the same before it (same) or something else (again); not at the step before (new).
Not sent: in a summary made up to this step (summarised), or in none (dropped)."""

Origin = Literal["recorded", "replaced", "written", "question"]
"""As recorded; recorded, with another text in its place; written by the strategy; the question of a probe."""


class MessageDiff(NamedTuple):
    """One message of the history or of the context, and what became of it."""

    status: Status
    origin: Origin
    message: Message
    place: int | None = None  # place in the context; None = not sent


@dataclass(frozen=True, slots=True)
class StepDiff:
    """The diff of one step of a strategy in a conversation."""

    conversation: str
    strategy: str
    step: int
    steps: int  # number of steps of the whole conversation
    said: int  # recorded messages before the call
    messages: tuple[MessageDiff, ...]
    """The context in its order, with each message that is not sent at its place in the history."""
    tokens: dict[Message, int]
    request: Request  # the request that was sent
    tools_added: tuple[str, ...]
    tokens_full: int
    tokens_sent: int
    tokens_kept: int
    events: tuple[Event, ...]  # the strategy's events of this step
    probe: StoredProbe | None = None
    """The probe whose context this is, asked after the step. Other fields than `step` and `steps` are then of it."""

    def count(self, word: Status | Origin) -> int:
        """Return how many messages have this status or origin."""
        return sum(word in (message.status, message.origin) for message in self.messages)

    @property
    def sent(self) -> int:
        """How many messages were sent."""
        return sum(message.place is not None for message in self.messages)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        named = ("conversation", "strategy", "step", "steps", "said", "sent", *_TOKENS)
        return {
            **{name: getattr(self, name) for name in named},
            **({} if self.probe is None else {name: getattr(self.probe, name) for name in _OF_PROBES}),
            "messages": [
                {
                    **{name: getattr(diff, name) for name in ("status", "origin", "place")},
                    "mark": diff.place in self.request.marks,
                    "tokens": self.tokens[diff.message],
                    "message": diff.message,
                }
                for diff in self.messages
            ],
            "tools_added": self.tools_added,
            "events": [{"event": kind_of(event), **msgspec.structs.asdict(event)} for event in self.events],
        }


def kind_of(event: Event) -> str:
    """Return the stored tag of an event: called, summarised, dropped …"""
    return str(event.__struct_config__.tag)


def step_diff(run: Run, name: str, strategy: str, step: int) -> StepDiff:
    """Return the diff of a step; negative steps count from the end. Raises RunError for a step that does not exist."""
    conversation = run.conversation(name)
    contexts = list(run.contexts(conversation, strategy))
    if not contexts:
        raise RunError(f"{name!r}: {_failed(run, name, strategy) or 'no model was called: it has no steps'}")
    last = len(contexts) - 1
    if not -last - 1 <= step <= last:
        known = f"0 to {last}, or -1 to {-last - 1} from the end" if last else "0"
        raise RunError(f"{name!r} has {len(contexts)} {'steps' if last else 'step'}: give {known}, not {step}")
    number = step % len(contexts)
    row, events = run.rows("steps", name, strategy)[number], run.events(name, strategy)
    tools, model = offered(conversation, row["tools_added"]), asked_model(conversation, row["at"])
    before = frozenset(contexts[number - 1]) if number else frozenset()
    return StepDiff(
        name,
        strategy,
        number,
        len(contexts),
        row["at"],
        tuple(_diffs(conversation.messages[: row["at"]], contexts[number], row["kept"], before, events, number)),
        _tokens(run, conversation, strategy),
        Request(contexts[number], tools, row["marks"], model),
        tuple(tool.name for tool in tools[len(conversation.tools) :]),
        row["tokens_full"],
        row["tokens_sent"],
        row["tokens_kept"],
        tuple(event for at, event in events if at == number),
    )


def probe_diff(run: Run, name: str, strategy: str, probe: int) -> StepDiff:
    """Return the diff of what would be sent for a probe, by its number. Raises RunError if nothing was sent."""
    conversation = run.conversation(name)
    probed = next(
        (stored for stored in asked_probes(run, conversation, strategy) if stored.row["number"] == probe), None
    )
    if probed is None:
        raise RunError(f"{name!r}: {_failed(run, name, strategy) or f'{strategy} was asked no probes'}")
    sent, question = probed.context, probed.question
    if sent is None:
        raise RunError(f"{name!r}: nothing was sent for probe {probed.probe.id}: {probed.row['failed']}")
    ran = strategy in run.manifest.plan.strategies
    steps = list(run.contexts(conversation, strategy)) if ran else []
    row = probed.row
    step = -1 if row["step"] is None else row["step"]
    events = [*run.events(name, strategy), *((step, event) for event in probed.events)]
    before = frozenset(steps[step]) if ran and step >= 0 else frozenset[Message]()
    diffs = _diffs(conversation.messages[: row["at"]], sent.messages, row["kept"], before, events, step)
    tokens = TokenCounter(run.manifest.plan.encoding).message(question)
    return StepDiff(
        name,
        strategy,
        step,
        len(steps),
        row["at"],
        tuple(diff._replace(origin="question") if diff.message == question else diff for diff in diffs),
        {**_tokens(run, conversation, strategy), **probed.written, question: tokens},
        Request(sent.messages, sent.tools, sent.marks, asked_model(conversation, row["at"])),
        tuple(tool.name for tool in sent.tools if tool not in conversation.tools),
        row["tokens_full"],
        row["tokens_sent"],
        0,
        probed.events,
        probed,
    )


def _failed(run: Run, conversation: str, strategy: str) -> str:
    why = run.failures.get(strategy, {}).get(conversation)
    return f"{strategy} failed: {why}" if why else ""


def _tokens(run: Run, conversation: Conversation, strategy: str) -> dict[Message, int]:
    """Map every message that was recorded or written to its tokens."""
    tokens = (row["tokens"] for row in run.rows("messages", conversation.id, columns=["tokens"]))
    return {**dict(run.written(conversation.id, strategy)), **dict(zip(conversation.messages, tokens, strict=True))}


def _diffs(
    recording: Sequence[Message],
    sent: Sequence[Message],
    kept: int,
    before: Collection[Message],
    events: Iterable[tuple[int, Event]],
    step: int,
) -> Iterator[MessageDiff]:
    """Yield the diff of a context, given the one before it and all events up to a step."""
    summaries = (event for at, event in events if at <= step and isinstance(event, Summarised))
    summarised = {name for event in summaries for name in event.replaced}
    places = {message.id: place for place, message in enumerate(recording)}
    here = {message.id for message in sent}
    # Recorded m1 m2 m3 m4, sent S m1 m4: S has no place, so it comes first; m1; then m2 and m3, which m4 follows; m4.
    left = deque(message for message in recording if message.id not in here)

    def absent(stop: int) -> Iterator[MessageDiff]:
        while left and places[left[0].id] < stop:
            message = left.popleft()
            yield MessageDiff("summarised" if message.id in summarised else "dropped", "recorded", message)

    for number, message in enumerate(sent):
        place = places.get(message.id)
        origin: Origin = "written"
        if place is not None:
            origin = "recorded" if message == recording[place] else "replaced"
            # A message that stands before an earlier one finds nothing left below its place: none is told twice.
            yield from absent(place)
        status: Status = "same" if number < kept else "again" if message in before else "new"
        yield MessageDiff(status, origin, message, number)
    yield from absent(len(recording))
