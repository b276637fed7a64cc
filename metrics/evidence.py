"""Published live runs: what became of an agent's calls and success once it was sent less, by family of strategy.

Replay cannot know how many calls an agent would make with less: no measure of a recording predicts it across agents
(docs/validity.md). So what others have seen stands beside every saving: a range of what was published, no forecast.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from statistics import median
from typing import Annotated, Literal, NamedTuple

import msgspec

FAMILIES = {
    "masking": "old tool results become a placeholder at every call",
    "clearing": "old tool results become a placeholder once a limit is reached",
    "summary": "a summary replaces old messages",
    "hybrid": "masking or clearing, and a summary",
    "window": "old messages are dropped",
    "retrieval": "old messages are dropped, and those that fit the newest one are brought back",
    "compression": "single tool results or messages are shortened",
    "archive": "tool results are stored, and a tool gives them back",
    "tiers": "messages move through tiers of memory",
    "facts": "facts are added to the history",
    "caching": "the same messages, with marks for the provider's cache",
    "other tools": "the agent is given other tools: no strategy of context",
}
"""Name of each family of strategies, and what these do to the history."""
DROPS = frozenset(FAMILIES) - {"facts", "caching", "other tools"}
"""Families whose strategies drop or rewrite something."""


class Arm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent with a strategy beside the same agent with its whole history."""

    family: str
    grade: Literal["A", "B"]  # A: computed anew from data per task; B: a table or counts in the source
    n: Annotated[int, msgspec.Meta(ge=1)] | Literal["not stated"]  # number of tasks
    agent: str
    model: str
    benchmark: str
    setting: str
    calls: float | None = None
    """Calls, as a multiple of those with the whole history; the next two with their 95 % intervals where computed."""
    cost: float | None = None
    success: float | None = None  # change in percentage points
    calls_interval: tuple[float, float] | None = None
    success_interval: tuple[float, float] | None = None
    cut_off: bool = False
    """True if the whole history outgrew the model's window: there less context is what lets an agent go on."""


class Study(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A source with its arms."""

    name: str
    source: str
    year: int
    arms: tuple[Arm, ...]


class Range(NamedTuple):
    """Lowest, median and highest figure of some arms, with the number of arms and of their studies, and all figures."""

    low: float
    median: float
    high: float
    arms: int
    studies: int
    figures: tuple[float, ...]


@cache
def studies() -> tuple[Study, ...]:
    """Return all published runs by study. Sources: `data/live_evidence.toml`."""
    text = (files(__package__) / "data/live_evidence.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)["studies"], tuple[Study, ...])


def published(figure: Literal["calls", "success"], family: str, *, cut_off: bool = False) -> Range | None:
    """Return the range of a figure over a family's published arms, `cut_off` ones apart; None where there are none."""
    found = [
        (study.name, value)
        for study in studies()
        for arm in study.arms
        if (arm.family, arm.cut_off) == (family, cut_off) and (value := getattr(arm, figure)) is not None
    ]
    if not found:
        return None
    names, values = zip(*found, strict=True)
    return Range(min(values), median(values), max(values), len(values), len(set(names)), values)


def family_of(members: Sequence[str]) -> str:
    """Return the family of a chain, by those of its stages that drop or rewrite, else by all; empty for a mixture.

    Several of masking, clearing and summary are a hybrid.
    """
    families = {family for family in members if family in DROPS} or set(members) - {"whole"}
    if len(families) > 1 and families <= {"masking", "clearing", "summary", "hybrid"}:
        return "hybrid"
    return families.pop() if len(families) == 1 else ""
