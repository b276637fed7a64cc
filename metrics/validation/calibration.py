"""Where the prefixes of recorded prompts end, in tokens: by what usage has told, and by our own counts, calibrated.

Where usage reports the tokens of a prefix, its end is known (`KnownEnds`, one for each model). Others are estimated:

    before the first known end   our count, with what the prompt has over our count put in front
    behind a known end           its tokens, plus our count from there
    behind the last known end    the rest of the prompt, in proportion to our counts

No end lies beyond a known one behind it, below 0 or beyond the prompt.

Our own counts stand in place of the provider's with a constant and a factor for each recording and model:

    tokens of a prompt  =  constant + factor × our count

The factor is the total growth of the recorded prompts from call to call over the growth of our counts. For each
conversation it is fitted on the others of its model, where there are others; else on itself. The constant is the rest
of the conversation's first prompt: system prompt and tools that the recording lacks, and what a provider puts around
them. So a first prompt has no error, and errors are those of later calls.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.errors import MissingExtra

from ..tokens import ENCODINGS, TokenCounter, encoding_of
from .requests import RecordedPrompt, RecordedRequest


def integers(values: NDArray[np.int64]) -> array[int]:
    """Return an array whose items are Python's: as quick to copy, and nothing of NumPy gets into figures."""
    return array("q", values.tobytes())


_UNKNOWN, _NO_BOUND = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class KnownEnds:
    """Tokens up to the end of each prefix of a model, as the provider counted them."""

    def __init__(self) -> None:
        self._ends = np.full(1024, _UNKNOWN)  # by the number of the prefix
        self.empty = True

    def __contains__(self, prefix: int) -> bool:
        return prefix < len(self._ends) and self._ends[prefix] != _UNKNOWN

    def learn(self, prefix: int, tokens: int) -> None:
        """Record where a prefix ends; what was known of it before no longer counts."""
        self._reach(prefix)
        self._ends[prefix], self.empty = tokens, False

    def _reach(self, prefix: int) -> None:
        if prefix >= len(self._ends):
            self._ends = np.append(self._ends, np.full(max(prefix, len(self._ends)), _UNKNOWN))

    def of(self, prompt: RecordedPrompt, size: int, tokens: int) -> array[int]:
        """Return the ends of the first `size` blocks of a prompt of so many tokens."""
        blocks, counts = prompt.blocks[:size], prompt.counts[:size]
        self._reach(int(blocks[-1]))  # numbers along a prompt rise
        told = self._ends[blocks]
        known = told != _UNKNOWN
        # For each block, the last one up to it whose end is known, or -1.
        before = np.maximum.accumulate(np.where(known, np.arange(size), -1))
        ends = counts + np.where(before >= 0, told[before] - counts[before], tokens - counts[-1])
        # Known ends 10, 30, 20 and 40: no end before the third block is above 20, whatever was reported of the second.
        least = np.minimum.accumulate(np.where(known, told, _NO_BOUND)[::-1])[::-1]
        ends = np.minimum(np.maximum(ends, 0), tokens)
        ends[:-1] = np.minimum(ends[:-1], np.maximum(least[1:], 0))
        last = int(before[-1])
        if last >= 0 and counts[-1] > counts[last]:
            # Known up to 1,000 tokens, where we count 800, in a prompt of 1,300 that we count as 1,000: each of our
            # tokens behind it is 1.5 of the provider's, so that the last block ends with the prompt.
            start = min(max(int(told[last]), 0), tokens)
            scale = max(0, tokens - start) / (counts[-1] - counts[last])
            if scale:
                behind = start + np.rint((counts[last + 1 :] - counts[last]) * scale)
                ends[last + 1 :] = np.minimum(behind, tokens)
        return integers(ends)


class Calibration:
    """Factors and constants of recorded calls, from all of them."""

    def __init__(self, calls: Iterable[RecordedRequest] = ()) -> None:
        """Fit on calls in the order of their conversations. Prompts continued from another context do not count."""
        self.growths: dict[str, dict[str, tuple[int, int]]] = {}
        """How much prompts of a model in a conversation grew from call to call, summed: by our count, as recorded."""
        # Our count and the provider's, for the first prompt of a model in a conversation.
        self._firsts: dict[tuple[str, str], tuple[int, int]] = {}
        self._ends: dict[RecordedPrompt, array[int]] = {}
        before: dict[tuple[str, str], tuple[RecordedPrompt, int, int]] = {}
        for recorded in calls:
            usage, model, conversation = recorded.call.usage, recorded.call.model, recorded.conversation.id
            if usage is None or usage.input is None:
                continue
            count = recorded.counted
            self._firsts.setdefault((model, conversation), (count, usage.input))
            context, *counts = before.get((model, conversation), (None, 0, 0))
            if context is recorded.context:
                growths = self.growths.setdefault(model, {})
                ours, theirs = growths.get(conversation, (0, 0))
                growths[conversation] = ours + count - counts[0], theirs + usage.input - counts[1]
            before[model, conversation] = recorded.context, count, usage.input

    def factor(self, model: str, conversation: str = "") -> float:
        """Return a model's factor in a conversation: fitted on the others, if there are any. 1 where nothing grew."""
        growths = self.growths.get(model, {})
        # Without its own growth: else the factor would be judged on what it was fitted on.
        fitted = [growth for name, growth in growths.items() if name != conversation or len(growths) == 1]
        ours, recorded = (sum(growth[at] for growth in fitted) for at in range(2))
        # Of sums. The median of the calls' ratios weighs short messages, which are all frame, as much as long ones
        # (7.9 % off for DeepSeek, up to 15 % for pi), least squares were up to 7.8 % off (decision 13).
        return recorded / ours if ours > 0 and recorded > 0 else 1.0

    def ends(self, call: RecordedRequest) -> array[int]:
        """Return where each block of a prompt ends by our own count, calibrated.

        There is no constant where no call of the conversation reports its prompt.
        """
        if call.context not in self._ends:
            factor = self.factor(call.call.model, call.conversation.id)
            ours, recorded = self._firsts.get((call.call.model, call.conversation.id), (0, 0))
            ends = np.rint(recorded - factor * ours + factor * call.context.counts)
            self._ends[call.context] = integers(np.maximum(ends, 0).astype(np.int64))
        return self._ends[call.context][: call.size]


OTHERWISE = "o200k_base"  # encoding of models whose own is not published


class Counters(dict[str, TokenCounter]):
    """The token counter of each model, made when it is first asked for."""

    def __init__(self) -> None:
        self.lacking: dict[str, str] = {}
        """Remedy for each model whose own encoding is not installed."""
        self._counter = cache(TokenCounter)

    def __missing__(self, model: str) -> TokenCounter:
        encoding = encoding_of(model)
        try:
            counter = self._counter(encoding if encoding in ENCODINGS else OTHERWISE)
        except MissingExtra as missing:
            self.lacking[model], counter = str(missing), self._counter(OTHERWISE)
        self[model] = counter
        return counter
