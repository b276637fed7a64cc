"""How long strategies take to decide what to send."""

from __future__ import annotations

from ....metrics.value import Missing
from ...figures.decisions import decisions
from ...render import Table
from ...results import Results
from ...words import figure
from ..section import Drawn, Section


def section(results: Results) -> Section | None:
    """None without steps."""
    times: dict[str, tuple[float, float]] = {}
    for name, values in results.summary.strategies.items():
        median, slowest = values["decide_p50"], values["decide_p99"]
        if not isinstance(median, Missing) and not isinstance(slowest, Missing):
            times[name] = (max(median, 1e-3), max(slowest, 1e-3))
    if not times:
        return None
    drawn = Drawn(
        "decisions",
        "Time to decide",
        "The median and the 99th percentile of the time that each strategy itself took at a step, without waiting for "
        "models, on the machine that made the run. The scale is logarithmic.",
        lambda: decisions(times),
    )
    rows = tuple(
        (name, *(figure(column, results.summary.strategies[name][column]) for column in ("decide_p50", "decide_p99")))
        for name in times
    )
    table = Table("Time to decide", ("strategy", "median", "99th percentile"), rows)
    return Section("decisions", "Decision time", "What a strategy adds to the latency of each call.", (drawn, table))
