"""S0, `none`, and two bounds: nothing is cut, nothing is remembered, only the evidence is sent (design 003 §3.1)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import ClassVar

from .base import Context, StrategyContext, View
from .parts.units import Dialogue


@dataclass(frozen=True, slots=True)
class Everything:
    """The whole history, the baseline of every comparison.

    A context over the model's window is not cut: it counts as an overflow.
    """

    copyable: ClassVar[bool] = True
    fails: ClassVar[str] = "the conversation outgrows the model's window, or its bill"
    family: ClassVar[str] = "whole"

    def start(self, services: StrategyContext) -> View:  # noqa: ARG002
        return lambda context: context


@dataclass(frozen=True, slots=True)
class LastTurn:
    """The system messages, and everything from the last user message on: no memory at all.

    A history without a user message is sent whole.
    """

    copyable: ClassVar[bool] = True
    fails: ClassVar[str] = "anything before the last user message matters"
    family: ClassVar[str] = "window"

    def start(self, services: StrategyContext) -> View:
        def view(context: Context) -> Context:
            history = context.messages
            start = len(history) - 1
            while start > 0 and history[start].role != "user":
                start -= 1
            if start <= 0:
                return context
            return context.sending(services.systems(history[:start]) + services.whole(history[start:]))

        return view


@dataclass(frozen=True, slots=True)
class EvidenceOnly:
    """System messages, the messages whose ids are in `evidence`, and everything from the newest user message on.

    This is a bound, not a strategy: it must know which messages matter, and no strategy knows that. A run gives it the
    evidence of each probe, and reports show it apart; it is rejected among strategies to compare. A tool call and its
    results stay together, so the call of a result that is evidence is sent as well.
    """

    evidence: tuple[str, ...] = ()

    copyable: ClassVar[bool] = True
    fails: ClassVar[str] = "the evidence of the answer is labelled wrongly, or only in part"

    def start(self, services: StrategyContext) -> View:
        dialogue = Dialogue(services)
        return lambda context: self.sent(context, dialogue, services)

    def sent(self, context: Context, dialogue: Dialogue, services: StrategyContext) -> Context:
        """Return what is sent of a context. Questions at one place share a dialogue, which is read once for them."""
        history, evidence = context.messages, frozenset(self.evidence)
        dialogue.read(history)
        messages = dialogue.messages
        if not messages:
            return context
        last = len(messages) - 1
        newest = next((at for at in range(last, -1, -1) if messages[at].role == "user"), last)
        starts = dialogue.units.starts
        units = {bisect_right(starts, at) - 1 for at, message in enumerate(messages) if message.id in evidence}
        units.update(range(bisect_right(starts, newest) - 1, len(starts)))
        sent = dialogue.some(history, sorted(units))
        return context if len(sent) == len(history) else context.sending(services.whole(sent))
