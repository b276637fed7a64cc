"""Our own token counts in place of the provider's: a constant and a factor for each recording and model.

    tokens of a prompt  =  constant + factor × our count

The factor is the total growth of the recorded prompts from call to call over the growth of our counts. For each
conversation it is fitted on the others of its model, where there are others; else on itself. The constant is the rest
of the conversation's first prompt: system prompt and tools that the recording lacks, and what a provider puts around
them. So a first prompt has no error, and errors are those of later calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxbench.scenarios.errors import MissingExtra

from ..tokens import ENCODINGS, TokenCounter, encoding_of
from .prefix_ends import ComputedEnds
from .requests import RecordedRequest


class CalibratedEnds(ComputedEnds):
    """Where each block of a prompt ends by our own count, calibrated. An end is computed when it is asked for."""

    __slots__ = ("_constant", "_counts", "_factor")

    def __init__(self, counts: Sequence[int], size: int, constant: float, factor: float) -> None:
        """Take `counts` of a prompt that may be longer: its first `size` blocks are meant."""
        super().__init__(size)
        self._counts, self._constant, self._factor = counts, constant, factor

    def _end(self, block: int) -> int:
        return max(0, round(self._constant + self._factor * self._counts[block]))


class Counted(NamedTuple):
    """A recorded prompt by our own count."""

    raw: int
    """Our count alone."""
    ends: CalibratedEnds

    @property
    def tokens(self) -> int:
        """Calibrated tokens of the whole prompt."""
        return self.ends[-1]


Growth = tuple[int, int]
"""How much prompts grew from call to call, summed: by our count, as recorded."""


@dataclass(slots=True)
class Calibration:
    """Factors and constants of recorded calls, from all of them."""

    growths: dict[str, dict[str, Growth]] = field(default_factory=dict)
    """By model and conversation."""
    # By model.
    _all: dict[str, Growth] = field(default_factory=dict)
    # Our count and the provider's, for the first prompt of a model in a conversation.
    _firsts: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, calls: Iterable[RecordedRequest]) -> Calibration:
        """Fit on calls in the order of their conversations. Prompts continued from another context do not count."""
        calibration, before = cls(), dict[tuple[str, str], tuple[RecordedRequest, int, int]]()
        for recorded in calls:
            usage, name = recorded.call.usage, (recorded.call.model, recorded.conversation.id)
            if usage is None or usage.input is None:
                continue
            count = recorded.context.counts[recorded.size - 1]
            calibration._firsts.setdefault(name, (count, usage.input))
            if name in before and before[name][0].context is recorded.context:
                calibration._grew(*name, count - before[name][1], usage.input - before[name][2])
            before[name] = recorded, count, usage.input
        return calibration

    def _grew(self, model: str, conversation: str, ours: int, recorded: int) -> None:
        growths, whole = self.growths.setdefault(model, {}), self._all.get(model, (0, 0))
        own = growths.get(conversation, (0, 0))
        growths[conversation] = own[0] + ours, own[1] + recorded
        self._all[model] = whole[0] + ours, whole[1] + recorded

    def factor(self, model: str, conversation: str = "") -> float:
        """Return a model's factor in a conversation: fitted on the others, if there are any. 1 where nothing grew."""
        growths, (ours, recorded) = self.growths.get(model, {}), self._all.get(model, (0, 0))
        # Without its own growth: else the factor would be judged on what it was fitted on.
        if conversation in growths and len(growths) > 1:
            ours, recorded = ours - growths[conversation][0], recorded - growths[conversation][1]
        # Of sums. The median of the calls' ratios weighs short messages, which are all frame, as much as long ones
        # (7.9 % off for DeepSeek, up to 15 % for pi), least squares were up to 7.8 % off (decision 13).
        return recorded / ours if ours > 0 and recorded > 0 else 1.0

    def counted(self, call: RecordedRequest) -> Counted:
        """Count a prompt ourselves. There is no constant where no call of the conversation reports its prompt."""
        counts, size = call.context.counts, call.size
        factor = self.factor(call.call.model, call.conversation.id)
        ours, recorded = self._firsts.get((call.call.model, call.conversation.id), (0, 0))
        constant = recorded - factor * ours
        return Counted(counts[size - 1], CalibratedEnds(counts, size, constant, factor))


OTHERWISE = "o200k_base"


@dataclass(slots=True)
class Counters:
    """Token counters by model. An `encoding` replaces all of them."""

    encoding: str | None = None
    used: dict[str, str] = field(default_factory=dict)
    """Encoding of each model counted so far."""
    lacking: dict[str, str] = field(default_factory=dict)
    """Remedy for each model whose own encoding is not installed."""
    _made: dict[str, TokenCounter] = field(default_factory=dict)

    def of(self, model: str) -> TokenCounter:
        """Return the counter for a model."""
        if model not in self.used:
            self.used[model] = self._encoding(model)
        return self._counter(self.used[model])

    def _encoding(self, model: str) -> str:
        encoding = self.encoding or encoding_of(model)
        if encoding is None or (self.encoding is None and encoding not in ENCODINGS):
            return OTHERWISE
        try:
            self._counter(encoding)
        except MissingExtra as missing:
            if self.encoding is not None:
                raise
            self.lacking[model] = str(missing)
            return OTHERWISE
        return encoding

    def _counter(self, encoding: str) -> TokenCounter:
        if encoding not in self._made:
            self._made[encoding] = TokenCounter(encoding)
        return self._made[encoding]
