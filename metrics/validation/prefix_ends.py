"""Ends of prefixes in the provider's tokens, as far as usage has told them, for each call in constant time.

Where usage reports the tokens of a prefix, its end is known (`KnownEnds`, one for each model). Ends between are
estimated for one call at a time:

    before the first known end   our count, with what the prompt has over our count put in front
    behind a known end           its tokens, plus our count from there
    behind the last known end    the rest of the prompt, in proportion to our counts

No end lies beyond a known one behind it, below 0 or beyond the prompt. A call asks for few of its ends, and few ends
become known from one call to the next: so `PromptEnds` keeps the known ends of a prompt with the least of those behind
each, and `EstimatedEnds` computes an end when it is asked for.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import overload

from .requests import RecordedPrompt


@dataclass(slots=True)
class KnownEnds:
    """Tokens up to the end of each prefix of a model, as the provider counted them."""

    tokens: dict[int, int] = field(default_factory=dict)
    """By the number of the prefix."""
    # Prompts by their identity, and those that each prefix is in: mostly one.
    _prompts: dict[RecordedPrompt, PromptEnds] = field(default_factory=dict)
    _first: dict[int, PromptEnds] = field(default_factory=dict)
    _others: dict[int, list[PromptEnds]] = field(default_factory=dict)

    def learn(self, prefix: int, tokens: int) -> None:
        """Record where a prefix ends; what was known of it before no longer counts."""
        if self.tokens.get(prefix) == tokens:
            return
        self.tokens[prefix] = tokens
        if prefix in self._first:
            self._first[prefix].learn(prefix)
            for prompt in self._others.get(prefix, ()):
                prompt.learn(prefix)

    def of(self, prompt: RecordedPrompt, size: int, tokens: int) -> EstimatedEnds:
        """Return the ends of the first `size` blocks of a prompt of so many tokens; they hold until the next `learn`
        or `of`."""
        ends = self._prompts.get(prompt)
        if ends is None:
            ends = self._prompts[prompt] = PromptEnds(prompt.blocks, prompt.counts, self.tokens)
            for prefix in prompt.blocks:
                if self._first.setdefault(prefix, ends) is not ends:
                    self._others.setdefault(prefix, []).append(ends)
        ends.cut(size)
        return EstimatedEnds(ends, size, tokens)


class PromptEnds:
    """Known ends of one prompt, by block, and the least of those behind each block."""

    __slots__ = ("_blocks", "_floors", "_known", "_size", "counts", "tokens")

    def __init__(self, blocks: Sequence[int], counts: Sequence[int], tokens: dict[int, int]) -> None:
        self.counts = counts
        self.tokens = tokens
        self._blocks = blocks
        self._size = 0
        # Blocks whose ends are known, in order.
        self._known = [block for block, prefix in enumerate(blocks) if prefix in tokens]
        # Blocks whose ends are below all known ones behind them, in order: so their ends rise.
        self._floors: list[int] = []

    def learn(self, prefix: int) -> None:
        """Take over what became known of a prefix of the prompt."""
        block = bisect_left(self._blocks, prefix)  # the numbers along a prompt rise
        at = bisect_left(self._known, block)
        if self._known[at : at + 1] != [block]:
            self._known.insert(at, block)
        self._size = min(self._size, block)

    def cut(self, size: int) -> None:
        """Count only the ends of the first `size` blocks."""
        floors = self._floors
        while floors and floors[-1] >= min(self._size, size):
            floors.pop()
        # Those between were perhaps above an end that is cut off or has changed.
        first = bisect_right(self._known, floors[-1]) if floors else 0
        # Known ends 10, 30, 20 and 40 of the blocks 0 to 3 leave the blocks 0, 2 and 3: no end before block 2 is above
        # 20, whatever was reported of block 1. A block comes and goes once, so a call costs what became known.
        for at in range(first, bisect_left(self._known, size)):
            block = self._known[at]
            end = self.end(block)
            while floors and self.end(floors[-1]) >= end:
                floors.pop()
            floors.append(block)
        self._size = size

    def end(self, block: int) -> int:
        """Return the known end of a block."""
        return self.tokens[self._blocks[block]]

    def last(self, block: int) -> int:
        """Return the last block up to this one whose end is known, or -1."""
        at = bisect_right(self._known, block)
        return self._known[at - 1] if at else -1

    def least(self, block: int) -> int | None:
        """Return the least known end behind a block; None if there is none."""
        at = bisect_right(self._floors, block)
        return self.end(self._floors[at]) if at < len(self._floors) else None


class ComputedEnds(Sequence[int]):
    """Ends of the blocks of a prompt. Each is computed when it is asked for."""

    __slots__ = ("_size",)

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, block: int) -> int: ...
    @overload
    def __getitem__(self, block: slice) -> list[int]: ...
    def __getitem__(self, block: int | slice) -> int | list[int]:
        if isinstance(block, slice):
            return [self[at] for at in range(self._size)[block]]
        if block < 0:
            block += self._size
        if not 0 <= block < self._size:
            raise IndexError(block)
        return self._end(block)

    @abstractmethod
    def _end(self, block: int) -> int:
        """Return the tokens up to the end of a block."""


class EstimatedEnds(ComputedEnds):
    """Tokens up to the end of each block of one prompt, as far as they are known before its call."""

    __slots__ = ("_from", "_last", "_prompt", "_scale", "_tokens")

    def __init__(self, prompt: PromptEnds, size: int, tokens: int) -> None:
        super().__init__(size)
        self._prompt, self._tokens = prompt, tokens
        counts = prompt.counts
        self._last = last = prompt.last(size - 1)
        self._from, self._scale = 0, 0.0
        if last >= 0 and counts[size - 1] > counts[last]:
            self._from = min(max(prompt.end(last), 0), tokens)
            # Known up to 1,000 tokens, where we count 800, in a prompt of 1,300 that we count as 1,000: each of our
            # tokens behind it is 1.5 of the provider's, so that the last block ends with the prompt.
            self._scale = max(0, tokens - self._from) / (counts[size - 1] - counts[last])

    def _end(self, block: int) -> int:
        prompt, tokens, counts = self._prompt, self._tokens, self._prompt.counts
        if self._scale and block > self._last:
            return min(self._from + round((counts[block] - counts[self._last]) * self._scale), tokens)
        known = prompt.last(block)
        offset = prompt.end(known) - counts[known] if known >= 0 else tokens - counts[self._size - 1]
        end = min(max(counts[block] + offset, 0), tokens)
        least = prompt.least(block)
        return end if least is None else min(end, max(least, 0))
