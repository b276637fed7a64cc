"""C19: MEM-001, the Focus tier's hard limit (design document 004 §7)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...metrics.statistics.interval import Interval
from ...metrics.value import Missing
from ...scenarios.embedded import scenario
from ..gating.measured import measured
from ..loading import Run
from .claim import Claim, Claimed, Measured, Row
from .figures import against, of_groups, of_sums
from .inputs import Inputs

LIMIT = 8192
FOCUS, TIERED = "focus", "tiered"
NEVER = Claimed(most=0.0)


def limit(inputs: Inputs) -> Measured:
    """The acceptance scenario, and the run's own conversations, traps with results over the limit among them."""
    run = inputs.executed("mem_001", ("none", FOCUS, TIERED), list(scenario("mem_001")), answers=True)
    figures = measured(run, inputs.rows)
    rows: list[Row] = []
    for strategy in (FOCUS, TIERED):
        rows += _of_run(inputs, run, strategy, "mem_001")
        faults = figures.sums[strategy]["refused_openai"]
        calls = figures.sums[strategy]["steps"]
        rows.append(
            Row(
                setting=f"{strategy}, mem_001",
                figure="calls whose messages do not hang together (OpenAI would refuse them)",
                unit="share",
                found=of_sums(np.column_stack([faults[:, 0], calls[:, 0]]), "ratio"),
                claimed=NEVER,
                of=f"{len(faults)} conversations",
            )
        )
        for metric, what in (("evidence_sent", "evidence sent word for word"), ("correct", "answers that are right")):
            if metric in figures.sums[strategy]:
                found = of_sums(figures.sums[strategy][metric], figures.metrics[metric].form)
                rows.append(_beside(f"{strategy}, mem_001", what, found, f"{len(faults)} conversations"))
    rows += _of_run(inputs, inputs.run_of(FOCUS), FOCUS, "the run")
    rows.append(
        _beside(
            f"{FOCUS} − none, the run",
            "difference in grounded values",
            against(inputs, FOCUS, "none", "grounding"),
            inputs.of,
            points=True,
        )
    )
    return Measured(
        tuple(rows),
        "Coherent is taken to mean: calls and results together, a user message first, nothing orphaned. What answers "
        "rest on goes, and is shown.",
        "A Focus tier that refuses all that is over the limit.",
    )


def _of_run(inputs: Inputs, run: Run, strategy: str, name: str) -> list[Row]:
    """Calls over the limit, and those at which it could not be kept that were not refused."""
    steps = inputs.rows(run, "steps")
    steps = steps[steps.strategy.astype(str) == strategy]
    if steps.empty:
        return [
            Row(
                setting=f"{strategy}, {name}",
                figure=f"calls over {LIMIT:,} tokens",
                unit="share",
                found=Missing("failed", f"{strategy} finished no conversation"),
                claimed=NEVER,
            )
        ]
    over = steps.assign(over=steps.tokens_sent > LIMIT).groupby("conversation", observed=True).over
    pairs = list(zip(over.sum().astype(float), over.count().astype(float), strict=True))
    events = run.table("events")
    refused = events[(events.kind == "refused") & (events.strategy.astype(str) == strategy)]
    return [
        Row(
            setting=f"{strategy}, {name}",
            figure=f"calls over {LIMIT:,} tokens",
            unit="share",
            found=of_groups(pairs),
            claimed=NEVER,
            of=f"{len(steps):,} calls of {len(pairs)} conversations",
        ),
        _beside(
            f"{strategy}, {name}",
            "calls that it refused, since what must be sent is over the limit",
            of_groups(_refused(steps, refused)),
            f"{len(steps):,} calls",
        ),
    ]


def _refused(steps: pd.DataFrame, refused: pd.DataFrame) -> list[tuple[float, float]]:
    """By conversation: calls at which it was refused, and calls."""
    calls = steps.groupby("conversation", observed=True).size()
    times = refused.drop_duplicates(["conversation", "step"]).groupby("conversation", observed=True).size()
    return [(float(times.get(name, 0)), float(size)) for name, size in calls.items()]


def _beside(setting: str, figure: str, found: Interval | Missing, of: str, *, points: bool = False) -> Row:
    return Row(
        setting=setting,
        figure=figure,
        unit="points" if points else "share",
        found=found,
        of=of,
        decides=False,
    )


CLAIMS = (
    Claim(
        "C19",
        "MEM-001: Focus is never above 8192 tokens, what is over is refused or queued, the rest stays coherent",
        "004 §7",
        "the acceptance scenario and the run; coherence as structural validity, with what answers rest on beside it",
        limit,
        ("none", FOCUS),
    ),
)
