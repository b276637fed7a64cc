"""How old the tool results are that recorded calls use: where a window would cut, as a table and a curve."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ctxbench.harness.folder.run import Run, values_of

from .render import Column, Table, about, count, integer, table_of

EVERY = "all tools"
_MOST = 8  # tools in the table, those with the most uses


def reuse(run: Run) -> pd.DataFrame:
    """Return `tool` (EVERY: any) and `age` of the oldest result that a call uses, 1 = the newest before the call."""
    rows, columns = list[tuple[str, int]](), ("conversation", "role", "tool", "uses")
    table = run.arrow("messages", columns)
    names, roles, tools, uses = (values_of(table.column(name)) for name in columns)
    starts = {name: len(names) - at for at, name in enumerate(reversed(names), start=1)}
    results = np.cumsum(np.array(roles) == "tool").tolist()
    for at in (at for at, used in enumerate(uses) if used):
        oldest = dict[str, int]()
        for place in (starts[names[at]] + used for used in uses[at]):
            for name in (EVERY, "?" if tools[place] is None else tools[place]):
                oldest[name] = max(oldest.get(name, 0), results[at] - results[place] + 1)
        rows += oldest.items()
    return pd.DataFrame(rows, columns=["tool", "age"]).astype({"age": int})


def reuse_table(rows: pd.DataFrame) -> Table:
    """Return how old the oldest result is that a call uses, for all tools and for the most used ones."""
    ages = {str(tool): own.age for tool, own in rows.groupby("tool", sort=False)}
    shown = sorted(ages, key=lambda tool: (tool != EVERY, -len(ages[tool])))[: _MOST + 1]
    table = [
        {"tool": tool, "calls": len(ages[tool]), **{at: _within(ages[tool], share) for at, share in _SHARES.items()}}
        for tool in shown
    ]
    named = (Column("results of", "tool"), Column("calls that use them", "calls", integer))
    columns = (*named, *(Column(head, head, integer) for head in _SHARES))
    every = ages[EVERY]
    half, tenth = (_within(every, share) for share in (0.5, 0.9))
    title = (
        f"How far back do calls reach? Half of the {count(len(every), 'call')} that use an earlier result use "
        f"{'the last one' if half == 1 else f'one of the last {half:,}'}, a tenth one older than {tenth:,}"
    )
    return table_of(title, columns, table, [about("reuse")])


_SHARES = {"half within": 0.5, "90 % within": 0.9, "99 % within": 0.99, "oldest": 1.0}


def _within(ages: pd.Series[int], share: float) -> int:
    """Return the age within which this share of the uses is."""
    return int(np.quantile(ages, share, method="inverted_cdf"))
