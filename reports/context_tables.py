"""Tables of what was sent: faults, values that were still there, growth."""

from __future__ import annotations

from typing import Any

from ..metrics.structure import FAULTS
from ..metrics.value import Missing
from .main_table import LACKING, LACKS
from .render import Table
from .summary import Summary, growth_table
from .words import figure, percent, tokens

SHOWN = (*FAULTS, "over_budget")
SPARE_TURNS = (20, 2, 200, 5, 500, 50)
"""Turns that a narrow terminal does without, the first to go first."""


def faults(summary: Summary) -> Table:
    """A column for each fault that any strategy has."""
    found = summary.strategies.values()
    there = [name for name in SHOWN if any(not isinstance(values[name], Missing) and values[name] for values in found)]
    if not there:
        return Table("Faults", (), (), ("No strategy made a context with a fault.",))
    rows = tuple(
        (name, *(figure(column, values[column]) for column in (*there, "decide_p99")))
        for name, values in summary.strategies.items()
    )
    heads = ("strategy", *(name.replace("_", " ") for name in there), "decides in, p99")
    note = (
        "Calls with each fault; those that no strategy has are left out. What none has is in the recordings themselves."
    )
    return Table("Faults", heads, rows, (note,), spare=("decides in, p99",))


def grounding(summary: Summary) -> Table:
    """A column for each kind of value, the most frequent first."""
    wanted = next(kinds for kinds in summary.grounding.values() if kinds)
    kinds = sorted(wanted, key=lambda kind: -wanted[kind][0])
    rows = tuple(
        (name, *(percent(found[kind][1] / found[kind][0]) for kind in kinds))
        for name, found in summary.grounding.items()
        if found
    )
    heads = ("strategy", *(f"{kind} ({wanted[kind][0]:,})" for kind in kinds))
    note = (
        "Values in the recorded tool calls and final answers that a user or a tool had said before, and the share of "
        "them that is still in the context. In brackets: how many."
    )
    return Table("Grounding retention", heads, rows, (note,), spare=heads[:2:-1])


def growth(summary: Summary) -> Table:
    """A column for each turn."""
    curve = growth_table(summary.growth)
    history = ("history", *(tokens(row["full"]) for row in curve))
    names = [name for name in summary.strategies if name != "none"]
    rows = (history, *((name, *(_sent(row, name) for row in curve)) for name in names))
    turns = {row["turn"]: f"turn {row['turn']} ({row['conversations']:,})" for row in curve}
    notes = [
        "Mean tokens of a model call, each conversation counted once a turn, and what is saved against the history. In "
        "brackets above: conversations that get so far."
    ]
    if any(cell.endswith(LACKS) for row in rows for cell in row):
        notes.append(f"{LACKS} {LACKING}.")
    spare = tuple(turns[turn] for turn in SPARE_TURNS if turn in turns)
    return Table("Growth by turn", ("strategy", *turns.values()), rows, tuple(notes), spare=spare)


def _sent(row: dict[str, Any], name: str) -> str:
    if name not in row:
        return "(failed)"
    mark = LACKS if row[name]["without_newest"] else ""
    return f"{tokens(row[name]['tokens_sent'])} ({percent(row[name]['saving'])}){mark}"
