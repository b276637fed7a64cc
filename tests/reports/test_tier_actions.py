"""What the memory tiers did: counted from events by hand, and of a run."""

import msgspec
import pandas as pd
import pytest

from ctxbench.metrics.figures import NOTHING_EVICTED
from ctxbench.metrics.value import Missing, Value
from ctxbench.reports.tier_actions import tier_action_tables as tier_tables
from ctxbench.reports.tier_actions import tier_actions
from ctxbench.strategies.events import Alarmed, Event, LimitReached, Moved, Recalled

NO_TIER = Missing("unsupported", "no Working tier")


def frame(**events: list[Event]) -> pd.DataFrame:
    rows = [(name, str(each.__struct_config__.tag), each) for name, told in events.items() for each in told]
    texts = [(name, kind, msgspec.json.encode(each).decode()) for name, kind, each in rows]
    return pd.DataFrame(texts, columns=["strategy", "kind", "event"])


def test_events_are_counted_by_tier_and_edge() -> None:
    """Two moves of one edge are one row, a crossing counts on its way up, and alarms when they begin. What memories
    weigh is said only of tiers that count it.
    """
    told: list[Event] = [
        LimitReached("working", "soft", 95, 90),
        LimitReached("working", "soft", 80, 90, up=False),
        LimitReached("focus", "hard", 9000, 8192),
        Recalled(("a", "b"), (0.5, 0.4), "working"),
        Recalled(("c",), (), "archive"),
        Recalled(("d",), (), "focus"),
        Moved(("a", "b"), "focus", "working", 300),
        Moved(("c",), "focus", "working", 100, 6.0),
        Moved(("c",), "archive", "working", 100, 2.0),
        Alarmed("working hit rate", 0.8, 0.85),
        Alarmed("working hit rate", 0.9, 0.85, up=False),
    ]
    layered: list[Event] = [Recalled(("x",), (), "working"), Moved(("x",), "working", "long")]
    rates: dict[str, Value] = {"tiered": 2 / 3, "layered": NO_TIER}
    found = tier_actions(frame(tiered=told, layered=layered, retrieval=[Recalled(("y",), (), "")]), rates)
    assert list(found) == ["tiered", "layered"]
    looked, moved = tier_tables(found)
    assert looked.rows == (("tiered", "1", "2", "1", "0", "66.7 %", "none", "W 1", "F 1", "working hit rate 1"),)
    assert moved.rows == (
        ("tiered", "focus → working", "3", "400", "2.0 s"),
        ("tiered", "archive → working", "1", "100", "2.0 s"),
        ("layered", "working → long", "1", "not counted", "–"),
    )


@pytest.mark.parametrize(
    ("rate", "shown"), [(NO_TIER, "–"), (Missing("undefined", NOTHING_EVICTED), NOTHING_EVICTED), (0.0, "0.0 %")]
)
def test_a_missing_hit_rate(rate: Value, shown: str) -> None:
    """Without a Working tier there is a dash, and where it evicted nothing the table says so; 0 is a figure."""
    (actions,) = tier_actions(frame(focus=[LimitReached("focus", "warning", 7000, 6500)]), {"focus": rate}).values()
    (table,) = tier_tables({"focus": actions})
    assert table.rows[0][5] == shown
