"""Agents that make old results short and ask no model: SWE-agent, OpenHands of 2025, and Cline until 2026-05."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from ctxbench.scenarios.model import Message, Role
from ctxbench.scenarios.spec import PositiveInt
from ctxbench.scenarios.view import Messages

from ..base import Context, StrategyContext, View
from ..parts.compaction import Client, ClientHistory
from ..parts.units import SplicedHistory


def _shortening(
    roles: tuple[Role, ...], spared: int, due: Callable[[list[int], int], int], shorten: Callable[[Message], Message]
) -> View:
    """Return a view that sends stand-ins for old observations, the messages of the roles; the first `spared` stay.

    `due` says how many of the first observations are old, by how many messages of the dialogue come before each of
    them, and are there in all; the number only grows.
    """
    edited = SplicedHistory()
    # Place of each observation in the history, and number of the dialogue's messages before it.
    places, numbers = list[int](), list[int]()
    dialogue = short = 0

    def view(context: Context) -> Context:
        nonlocal edited, places, numbers, dialogue, short
        history, before = context.messages, len(edited.history)
        same = edited.read(history)
        if same < before:
            edited, places, numbers = SplicedHistory(), [], []
            edited.read(history)
            dialogue = short = same = 0
        for at, message in enumerate(history[same:], same):
            if message.role in roles:
                places.append(at)
                numbers.append(dialogue)
            dialogue += message.role != "system"
        old = max(0, due(numbers, dialogue))
        # Only those that have become old since the last call: what is short stays so.
        for at in places[max(short, spared) : old]:
            edited.put(at, shorten(history[at]))
        short = max(short, old)
        return context if short <= spared else context.sending(edited.messages())

    return view


@dataclass(frozen=True, slots=True)
class LastObservations(Client, name="swe_agent"):
    """All observations but the first and the last `n` become a line that says how long they were.

    At every step; with `polling`, only each time that so many more have come. The first observation is the task: an
    observation is each message that is not the agent's.
    """

    n: PositiveInt = 5
    polling: PositiveInt = 1

    def start(self, services: StrategyContext) -> View:  # noqa: ARG002
        form = self.row["omitted"]
        return _shortening(
            ("user", "tool"),
            1,
            lambda numbers, _: len(numbers) // self.polling * self.polling - self.n,
            lambda message: replace(message, text=form.replace("{lines}", str(len(message.text.splitlines())))),
        )


@dataclass(frozen=True, slots=True)
class ObservationMasking(Client, name="openhands.masking"):
    """Tool results that are not among the newest `window` events become `<MASKED>`, at every step.

    Events are messages here, system messages aside.
    """

    window: PositiveInt = 5

    def start(self, services: StrategyContext) -> View:  # noqa: ARG002
        masked = self.row["masked"]

        def due(numbers: list[int], dialogue: int) -> int:
            # The newest `window` messages have at most so many observations.
            recent = sum(number >= dialogue - self.window for number in numbers[-self.window :])
            return len(numbers) - recent

        return _shortening(("tool",), 0, due, lambda message: replace(message, text=masked))


@dataclass(frozen=True, slots=True)
class ClineTruncation(Client, name="cline.old"):
    """Near the end of the window the first pair of messages and the newer half of the rest stay.

    The trigger is the usage of the last response: 40,000 tokens below a window of 200,000 (30,000 of 128,000, 27,000 of
    64,000, else at most a fifth). If half of the usage is still over it, only the newer quarter stays. Before that, all
    but the newest result of the same call of one of the `read_tools` become a notice, which is enough where it saves 30
    % of the characters. The first answer's text becomes a notice of what is missing.
    """

    window: PositiveInt = 200_000
    read_tools: tuple[str, ...] = ("read_file",)

    @property
    def trigger(self) -> int:
        others = min(40_000, self.window - self.window * 8 // 10)
        return self.window - {64_000: 27_000, 128_000: 30_000, 200_000: 40_000}.get(self.window, others)

    def compact(self, history: ClientHistory) -> None:
        used = history.used
        if used < self.trigger or self._drops_duplicates(history):
            return
        start, rest = history.ceiling(2), len(history.messages) - 2
        # Of 21 messages behind the first pair 10 go, or 14 where only a quarter is to stay: both are even numbers.
        count = rest * 3 // 8 * 2 if used / 2 > self.trigger else rest // 4 * 2
        stop = min(max(history.floor(2 + count), history.ceiling(start + 1)), history.settled)
        if stop > start:
            head = tuple(history.messages[:start])
            first = next((at for at, message in enumerate(head) if message.role == "assistant"), None)
            if first is not None:
                notice = replace(head[first], text=self.row["notice"])
                head = (*head[:first], notice, *head[first + 1 :])
            history.replace(0, stop, Messages.of(head))

    def _drops_duplicates(self, history: ClientHistory) -> bool:
        """Clear results of files that were read again later. Return whether that is enough."""
        notice, messages = self.row["duplicate"], history.messages
        reads = {
            call.id: (call.name, call.arguments) for m in messages for call in m.calls if call.name in self.read_tools
        }
        newest: dict[tuple[str, str], int] = {}
        old: list[int] = []
        for at, message in enumerate(messages):
            call = reads.get(message.answers or "")
            if call is not None and message.text != notice:
                old += [newest[call]] if call in newest else []
                newest[call] = at
        # Counted before the results are cleared: the share saved is of the history as it was.
        characters = sum(len(message.text) for message in messages)
        saved = sum(len(messages[at].text) - len(notice) for at in old)
        history.clear(sorted(old), notice)
        return saved >= 0.3 * characters
