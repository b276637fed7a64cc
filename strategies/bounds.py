"""S0, `none`: the whole history is sent. The baseline of every comparison (design document 003 §3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..scenarios.view import Messages
from .base import Context, StrategyContext, View
from .parts.units import Spoken


@dataclass(frozen=True, slots=True)
class Everything:
    """The whole history. A context over the model's window is not cut: it is counted as an overflow."""

    copyable: ClassVar[bool] = True
    source: ClassVar[str] = "003 §3.1"
    fails: ClassVar[str] = "the conversation outgrows the model's window, or its bill"

    def start(self, desk: StrategyContext) -> View:  # noqa: ARG002
        return lambda context: context


@dataclass(frozen=True, slots=True)
class LastTurn:
    """The system messages, and everything from the last user message on: no memory at all.

    A history without a user message is sent whole.
    """

    copyable: ClassVar[bool] = True
    fails: ClassVar[str] = "anything said before the last user message matters"

    def start(self, desk: StrategyContext) -> View:
        def view(context: Context) -> Context:
            history = context.messages
            start = len(history) - 1
            while start > 0 and history[start].role != "user":
                start -= 1
            if start <= 0:
                return context
            return context.sending(desk.systems(history[:start]) + desk.whole(history[start:]))

        return view


@dataclass(frozen=True, slots=True)
class EvidenceOnly:
    """System messages, the messages whose ids are in `evidence`, and the newest user message with what follows it.

    A bound and no strategy: it has to be told what matters, and no strategy knows that. With each probe a run gives it
    the probe's own evidence, and reports show it apart; it is refused among strategies to compare. A tool call and its
    results stay together, so the call of a result that is evidence is sent as well.
    """

    evidence: tuple[str, ...] = ()

    copyable: ClassVar[bool] = True
    fails: ClassVar[str] = "what the answer rests on is named wrongly, or only in part"

    def start(self, desk: StrategyContext) -> View:
        spoken, wanted = Spoken(desk), frozenset(self.evidence)

        def view(context: Context) -> Context:
            history = context.messages
            spoken.read(history)
            said = spoken.messages
            if not said:
                return context
            newest = next((at for at in range(len(said) - 1, -1, -1) if said[at].role == "user"), len(said) - 1)
            chosen: list[Messages] = []
            passed = 0
            for start, stop in spoken.units.bounds():
                if stop > newest or any(message.id in wanted for message in said[start:stop]):
                    first, last = spoken.place(start), spoken.place(stop - 1) + 1
                    chosen += [desk.systems(history[passed:first]), history[first:last]]
                    passed = last
            sent = sum(chosen, Messages()) + desk.systems(history[passed:])
            return context if len(sent) == len(history) else context.sending(desk.whole(sent))

        return view
