"""Actions of the memory tiers in a run: which tier had what was looked up, moves, limits reached and alarms.

Counted from the events of strategies whose tiers have quotas (`focus`, `tiered`), or that move memories (`layered`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

import msgspec
import pandas as pd

from ctxbench.metrics.value import Value

from .render import Column, Table, about, figure_of_few, integer, table_of

TIERS = {"focus": "Focus", "working": "Working", "archive": "Archive", "rag": "RAG"}
"""Names of the tiers, from the top down."""
LEVELS = {"warning": 1, "soft": 2, "hard": 0}  # limits of a tier, and how soon a narrow terminal leaves each out
_MOVED = ("messages", "tokens", "queue_time")


@dataclass(slots=True)
class TierActions:
    """Actions of one strategy's tiers, over all conversations that are compared."""

    working_hit_rate: Value  # the metric of this name
    found: Counter[str] = field(default_factory=Counter)
    """Number of messages that were looked up, by the tier that had them."""
    moves: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """From one tier to another: `messages`, `tokens`, and `queue_time`, recorded seconds that all waited."""
    limit_reached: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each tier reached each of its limits."""
    alarms: Counter[str] = field(default_factory=Counter)

    @property
    def has_quotas(self) -> bool:
        """True if its tiers are counted in tokens: other strategies do not say where they looked."""
        return bool(self.limit_reached)


def tier_actions(events: pd.DataFrame, hit_rates: Mapping[str, Value]) -> dict[str, TierActions]:
    """Return the actions of each strategy that has tiers, with its figure of `working_hit_rate`."""
    reported = events[events.kind.isin(("recalled", "moved", "limit_reached", "alarmed"))]
    reported = reported[reported.strategy.isin(reported.strategy[reported.kind.isin(("moved", "limit_reached"))])]
    by_strategy: dict[str, TierActions] = {}
    for strategy, kind, text in zip(reported.strategy, reported.kind, reported.event, strict=True):
        name, event = str(strategy), msgspec.json.decode(text)  # fields at their default are not in it
        actions = by_strategy.setdefault(name, TierActions(hit_rates[name]))
        if kind == "recalled":
            if event.get("kind") in TIERS:
                actions.found[event["kind"]] += len(event["sources"])
        elif kind == "moved":
            edge = actions.moves.setdefault((event["source"], event.get("to", "")), defaultdict(int))
            moved = {"messages": len(event["sources"]), "tokens": 0, "queue_time": 0.0, **event}
            for key in _MOVED:
                edge[key] += moved[key]
        elif event.get("up", True):
            if kind == "limit_reached":
                actions.limit_reached[event["tier"], event["level"]] += 1
            else:
                actions.alarms[event["reading"]] += 1
    return by_strategy


def tier_action_tables(by_strategy: dict[str, TierActions]) -> Iterator[Table]:
    """Yield which tier had what was looked up, and what moved where; nothing if no strategy has tiers."""
    quotas = {name: actions for name, actions in by_strategy.items() if actions.has_quotas}
    if quotas:
        yield _looked_up(quotas)
    if any(actions.moves for actions in by_strategy.values()):
        yield _moved(by_strategy)


def _looked_up(by_strategy: Mapping[str, TierActions]) -> Table:
    def found(tier: str) -> Column:
        return Column(TIERS[tier], lambda row: row[1].found[tier], integer)

    def limits(level: str, row: tuple[str, TierActions]) -> str:
        counts = ((tier[0].upper(), row[1].limit_reached[tier, level]) for tier in TIERS)
        return " ".join(f"{letter} {times:,}" for letter, times in counts if times) or "none"

    def alarms(row: tuple[str, TierActions]) -> str:
        return ", ".join(f"{at} {times:,}" for at, times in sorted(row[1].alarms.items())) or "none"

    columns = (
        Column("strategy", itemgetter(0)),
        *map(found, TIERS),
        Column("Working hit rate", lambda row: figure_of_few("working_hit_rate", row[1].working_hit_rate)),
        *(Column(level, partial(limits, level), spare=spare) for level, spare in LEVELS.items()),
        Column("alarms", alarms, spare=3),
    )
    notes, title = map(about, ("tiers_looked_up", "tiers_limits")), "Which tier had what was looked up?"
    return table_of(title, columns, by_strategy.items(), notes)


def _moved(by_strategy: dict[str, TierActions]) -> Table:
    rows = [
        (name, f"{source} → {to or 'nowhere'}", edge, actions.has_quotas)
        for name, actions in by_strategy.items()
        for (source, to), edge in sorted(actions.moves.items(), key=_place)
    ]
    columns = (
        Column("strategy", itemgetter(0)),
        Column("move", itemgetter(1)),
        Column("messages", lambda row: f"{row[2]['messages']:,}"),
        Column("tokens", lambda row: f"{row[2]['tokens']:,}" if row[3] else "not counted"),
        Column(
            "queue time", lambda row: f"{row[2]['queue_time'] / max(row[2]['messages'], 1):,.1f} s" if row[3] else "–"
        ),
    )
    return table_of("What moved between the tiers?", columns, rows, [about("tiers_moved")], names=2)


def _place(edge: tuple[tuple[str, str], object]) -> tuple[int, int]:
    source, to = edge[0]
    return tuple((*TIERS, "", to, source).index(tier) for tier in (source, to))  # type: ignore[return-value]


def tier_actions_json(by_strategy: Mapping[str, TierActions]) -> dict[str, Any]:
    """Return the exact figures."""
    return {
        name: {
            "found": {tier: actions.found[tier] for tier in TIERS},
            "working_hit_rate": actions.working_hit_rate,
            "moves": [
                {"from": source, "to": to} | {key: edge[key] for key in _MOVED}
                for (source, to), edge in sorted(actions.moves.items(), key=_place)
            ],
            "limit_reached": [
                {"tier": tier, "level": level, "times": times}
                for (tier, level), times in sorted(actions.limit_reached.items())
            ],
            "alarms": dict(sorted(actions.alarms.items())),
        }
        for name, actions in by_strategy.items()
    }
