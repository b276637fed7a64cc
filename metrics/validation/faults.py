"""What keeps a recorded call out of the comparison, though the recording could be read."""

from __future__ import annotations

from typing import NamedTuple

from ...scenarios.errors import Place, RecordingError
from ..cache.explicit import MOST_MARKS, ExplicitRules
from ..prices import Prices
from .asked import Asked


class Fault(NamedTuple):
    """What is wrong with a call."""

    field: str
    what: str
    remedy: str
    counted: bool = False
    """Whether its token counts are right all the same."""

    def said_of(self, asked: Asked) -> RecordingError:
        """As an error with the place of the call."""
        what = f"{asked.conversation.messages[asked.at].id}: {self.what}"
        return RecordingError(place_of(asked, f"call.{self.field}"), what, self.remedy)


def fault_of(asked: Asked, prices: Prices) -> Fault | None:
    """What is wrong with a call that reports its usage; None if it can be compared. `prices` know the windows."""
    usage, rules, marks = asked.call.usage, asked.rule and asked.rule.rules, len(asked.call.marks)
    if usage is None or usage.input is None:
        return Fault("usage.input", "nothing says how long its prompt was", "add the count of its tokens")
    window = _window(asked.call.model, prices)
    if window is not None and usage.input > window:
        what = f"a prompt of {usage.input:,} tokens, and {asked.call.model} takes {window:,}"
        return Fault("usage.input", what, "correct the count or the model's name")
    if isinstance(rules, ExplicitRules) and marks > MOST_MARKS:
        what = f"{marks} cache breakpoints, of which a provider takes {MOST_MARKS}"
        return Fault("marks", what, "remove those that were not sent")
    if asked.clock:
        return Fault("started", asked.clock, "correct its time", counted=True)
    return None


def copied(copies: list[Asked]) -> RecordingError:
    """That calls of a conversation stand elsewhere already."""
    first, more = copies[0], len(copies) - 1
    others = f", and so do{'es' * (more == 1)} {more:,} more of its conversation" if more else ""
    what = f"{first.conversation.messages[first.at].id}: the same call stands in another recording, or twice{others}"
    return RecordingError(place_of(first, "call"), what, "give it once")


def place_of(asked: Asked, field: str) -> Place:
    """Where something of a call stands."""
    return Place(asked.conversation.source or asked.conversation.id, 0, f"messages[{asked.at}].{field}")


def _window(model: str, prices: Prices) -> int | None:
    """The most tokens that a model takes; None if that is not known, or if longer prompts have a price."""
    tariff = prices.tariff(model)
    if tariff is None or tariff.window is None or tariff.tiers[-1][0] >= tariff.window:
        return None
    return tariff.window
