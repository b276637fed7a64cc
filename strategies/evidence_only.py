"""`evidence_only`: the ceiling for probes. Nothing but what the answer rests on, and the question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..scenarios.view import Messages
from .base import Context, Desk, View
from .parts.spoken import Spoken


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

    def start(self, desk: Desk) -> View:
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
