"""What a provider reported of one call, under any of the names that are in use, as our `Usage`.

    prompt, whole      prompt_tokens, promptTokenCount, and input_tokens beside input_tokens_details (OpenAI, DeepSeek,
                       LiteLLM, Gemini)
    prompt, the rest   input_tokens, inputTokens, input: without what a cache read or took in (Anthropic, Bedrock, pi)
    read               cache_read_input_tokens, prompt_cache_hit_tokens, cached_tokens, cacheRead …
    written            cache_creation_input_tokens, cache_write_tokens, cacheWrite …

`Usage.input` is the whole prompt always. A count that is none, or counts that contradict each other, are one problem
with its place; the message stays, its usage is left out. Nothing is corrected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..check import usage_faults
from ..errors import Place, RecordingError
from ..model import Usage
from ..source import Problems

WHOLE = ("prompt_tokens", "promptTokenCount", "prompt_token_count")
REST = ("input_tokens", "inputTokens", "input")
READ = (
    *("cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_tokens", "cacheRead", "cacheReadInputTokens"),
    *("cachedContentTokenCount", "cached_content_token_count", "cache_read_tokens"),
)
MISSED = ("prompt_cache_miss_tokens",)
WRITTEN = (
    *("cache_creation_input_tokens", "cache_write_input_tokens", "cacheWrite", "cacheWriteInputTokens"),
    *("cache_write_tokens", "cache_creation_tokens"),
)
WRITTEN_1H = ("ephemeral_1h_input_tokens",)
OUTPUT = ("completion_tokens", "output_tokens", "outputTokens", "output", "candidatesTokenCount")
RESPONSES = "input_tokens_details"
"""Where this stands beside them, `input_tokens` is the whole prompt."""
WITHIN = (RESPONSES, "prompt_tokens_details", "cache_creation", "cache_creation_token_details")
"""Blocks within the block that have counts of the same names."""
REMEDY = "correct it; the call counts as one that reported nothing"
MOST_SHOWN, LONGEST_SHOWN = 10**30, 60
MOST_DOLLARS = 1e12
"""Of one call: more is no number that anybody meant."""


def usage(reported: Any, place: Place, problems: Problems, cost: float | None = None) -> Usage | None:
    """The block at `place` in our form; None if there is none, if it is all zeros, or if it is a problem."""
    if reported is None:
        return None if cost is None else Usage(cost=cost)
    try:
        found = _usage(reported, place, cost)
        for _, what in usage_faults(found):
            raise RecordingError(place, what, REMEDY)
    except RecordingError as error:
        problems.add(error)
        return None
    counts = (found.input, found.output, found.cache_read, found.cache_write, found.cost)
    return found if any(counts) else None  # zeros stand where a call was stopped before anything came back


def dollars(recorded: Any, place: Place, problems: Problems) -> float | None:
    """A recorded cost; None if there is none, or if it is a problem."""
    if recorded is None:
        return None
    if isinstance(recorded, (int, float)) and not isinstance(recorded, bool) and 0 <= recorded < MOST_DOLLARS:
        return float(recorded)
    problems.add(RecordingError(place, f"{_shown(recorded)} is no cost in US dollars", "correct it; it is not read"))
    return None


def _usage(reported: Any, place: Place, cost: float | None) -> Usage:
    block = _Block(reported, place)
    whole, rest = block.count(WHOLE), block.count(REST)
    if whole is None and block.has(RESPONSES):
        whole, rest = rest, None
    read, written = block.count(READ), block.count(WRITTEN)
    missed = block.count(MISSED)
    if whole is None and rest is not None:
        whole = rest + (read or 0) + (written or 0)
    if missed is not None and read is not None:
        if whole is not None and read + missed != whole:
            what = f"{read:,} tokens hit and {missed:,} missed are not the prompt's {whole:,}"
            raise RecordingError(place, what, REMEDY)
        whole = read + missed
    return Usage(whole, block.count(OUTPUT), read, written, block.count(WRITTEN_1H), cost)


class _Block:
    """The counts of a usage block, with those of the blocks within it."""

    def __init__(self, reported: Any, place: Place) -> None:
        if not isinstance(reported, dict):
            raise RecordingError(place, f"expected an object of counts, got {type(reported).__name__}", REMEDY)
        self._place = place
        self._counts: dict[str, tuple[str, Any]] = {}
        """By the last part of their names, each with its whole name."""
        self._take(reported, "")

    def _take(self, reported: dict[str, Any], before: str) -> None:
        for name, value in reported.items():
            if isinstance(value, dict):
                if name in WITHIN:
                    self._counts.setdefault(name, (before + name, None))
                    self._take(value, f"{before}{name}.")
            elif value is not None:
                self._counts.setdefault(name, (before + name, value))

    def has(self, name: str) -> bool:
        """Whether there is a count or block of that name."""
        return name in self._counts

    def count(self, names: Sequence[str]) -> int | None:
        """The count that has one of the names; None if none has. Zero beside another count says nothing."""
        found = {name: self._checked(name) for name in names if self._counts.get(name, ("", None))[1] is not None}
        counts = {name: count for name, count in found.items() if count}
        if len(set(counts.values())) > 1:
            several = " and ".join(f"{self._counts[name][0]} {count:,}" for name, count in counts.items())
            raise RecordingError(self._place, f"{several} are to be the same", REMEDY)
        return next(iter(counts.values()), 0 if found else None)

    def _checked(self, name: str) -> int:
        at, value = self._counts[name]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
            where = self._place.at(f"{self._place.field}.{at}".removeprefix("."))
            raise RecordingError(where, f"{_shown(value)} is no number of tokens", REMEDY)
        return value


def _shown(value: object) -> str:
    """A recorded value in a line."""
    if isinstance(value, int) and abs(value) >= MOST_SHOWN:
        return f"a number of some {value.bit_length() * 3 // 10:,} digits"
    return repr(value)[:LONGEST_SHOWN]
