"""What the memory tiers of strategies did in a run: which tier answered, what went where, limits and alarms.

Counted from the events of strategies whose tiers have quotas (`focus`, `tiered`), or that move memories (`layered`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pandas as pd

from ..metrics.value import Missing, Value
from .render import Table, percent

TIERS = ("focus", "working", "archive", "rag")
LEVELS = ("warning", "soft", "hard")
NONE = Missing("undefined", "nothing was looked up below Focus")


@dataclass(slots=True)
class Moves:
    """From one tier to another."""

    messages: int = 0
    tokens: int = 0
    queue_time: float = 0.0
    """Recorded seconds, of all together."""
    times: int = 0


@dataclass(slots=True)
class TierActions:
    """Of one strategy, over all conversations that are compared."""

    found: Counter[str] = field(default_factory=Counter)
    """Messages that were looked up, by the tier that had them."""
    moves: dict[tuple[str, str], Moves] = field(default_factory=dict)
    limits_reached: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each tier came to each of its limits."""
    alarms: Counter[str] = field(default_factory=Counter)

    @property
    def has_quotas(self) -> bool:
        """Whether its tiers are counted in tokens: others do not say where they looked."""
        return bool(self.limits_reached)

    @property
    def hit_rate(self) -> Value:
        """Of what was looked up below Focus, the share that Working had."""
        below = sum(self.found[tier] for tier in TIERS[1:])
        return self.found["working"] / below if below else NONE


def tier_actions(events: pd.DataFrame) -> dict[str, TierActions]:
    """By strategy, those that have tiers."""
    told = events[events.kind.isin(("recalled", "moved", "limit_reached", "alarmed"))]
    having = set(told.strategy[told.kind.isin(("moved", "limit_reached"))])
    made: dict[str, TierActions] = {}
    for strategy, kind, text in zip(told.strategy, told.kind, told.event, strict=True):
        if strategy in having:
            _count(made.setdefault(str(strategy), TierActions()), str(kind), msgspec.json.decode(text))
    return made


def _count(deeds: TierActions, kind: str, event: dict[str, Any]) -> None:
    """Take one event in. What is at its default is not written."""
    if kind == "recalled":
        if event.get("kind") in TIERS:
            deeds.found[event["kind"]] += len(event["sources"])
    elif kind == "moved":
        edge = deeds.moves.setdefault((event["source"], event.get("to", "")), Moves())
        edge.times += 1
        edge.messages += len(event["sources"])
        edge.tokens += event.get("tokens", 0)
        edge.queue_time += event.get("queue_time", 0.0)
    elif event.get("up", True):
        if kind == "limit_reached":
            deeds.limits_reached[event["tier"], event["level"]] += 1
        else:
            deeds.alarms[event["reading"]] += 1


def tier_action_tables(found: dict[str, TierActions]) -> Iterator[Table]:
    """Which tier answered, and what went where; nothing where no strategy has tiers."""
    quotas = {name: deeds for name, deeds in found.items() if deeds.has_quotas}
    if quotas:
        yield _looked_up(quotas)
    if any(deeds.moves for deeds in found.values()):
        yield _moved(found)


def _looked_up(found: dict[str, TierActions]) -> Table:
    rows = tuple(
        (
            name,
            *(f"{deeds.found[tier]:,}" for tier in TIERS),
            percent(deeds.hit_rate),
            *(_by_tier(deeds, level) for level in LEVELS),
            ", ".join(f"{reading} {times:,}" for reading, times in sorted(deeds.alarms.items())) or "none",
        )
        for name, deeds in found.items()
    )
    heads = ("strategy", "Focus", "Working", "Archive", "RAG", "Working hits", *LEVELS, "alarms")
    notes = (
        "Focus to RAG: messages that were looked up, by the tier that had them. Working hits: of those below Focus, "
        "the share that Working had.",
        "Warning, soft, hard: how often Focus, Working, Archive and RAG came to that limit (F W A R). Of Focus, what "
        "was said counts: above hard it is cut. Alarms: readings beyond the document's limit, and how often they "
        "became so.",
    )
    return Table("Memory tiers: what was looked up", heads, rows, notes, spare=("warning", "soft", "alarms"))


def _by_tier(deeds: TierActions, level: str) -> str:
    told = ((tier[0].upper(), deeds.limits_reached[tier, level]) for tier in TIERS)
    return " ".join(f"{letter} {times:,}" for letter, times in told if times) or "none"


def _moved(found: dict[str, TierActions]) -> Table:
    rows = tuple(
        (
            name,
            f"{source} → {to or 'nowhere'}",
            f"{edge.messages:,}",
            *(
                (f"{edge.tokens:,}", f"{edge.queue_time / max(edge.messages, 1):,.1f} s")
                if deeds.has_quotas
                else ("not counted", "–")
            ),
        )
        for name, deeds in found.items()
        for (source, to), edge in sorted(deeds.moves.items(), key=_place)
    )
    note = (
        "Waited: recorded seconds from when a move was asked for until it was done, on average. What the move itself "
        "took is part of the time that the strategy decides in."
    )
    heads = ("strategy", "edge", "messages", "tokens", "queue time")
    return Table("Memory tiers: what was moved", heads, rows, (note,), names=2)


def _place(edge: tuple[tuple[str, str], Moves]) -> tuple[int, int]:
    source, to = edge[0]
    return tuple((*TIERS, "", to, source).index(each) for each in (source, to))  # type: ignore[return-value]


def tier_actions_json(found: dict[str, TierActions]) -> dict[str, Any]:
    """The same with exact figures."""
    return {
        name: {
            "found": {tier: deeds.found[tier] for tier in TIERS},
            "working_hit_rate": deeds.hit_rate,
            "moves": [
                {
                    "from": source,
                    "to": to,
                    "messages": edge.messages,
                    "tokens": edge.tokens,
                    "queue_time": edge.queue_time,
                }
                for (source, to), edge in sorted(deeds.moves.items(), key=_place)
            ],
            "limit_reached": [
                {"tier": tier, "level": level, "times": times}
                for (tier, level), times in sorted(deeds.limits_reached.items())
            ],
            "alarms": dict(sorted(deeds.alarms.items())),
        }
        for name, deeds in found.items()
    }
