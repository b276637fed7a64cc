"""The main table of a run, a row per strategy, and the same columns by conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..metrics.structure import FAULTS
from ..metrics.value import Missing, Value
from .render import MARKS, Table, count, figure, percent, reasons, tokens
from .summary import RunSummary, growth_table

TITLES = {
    "saving": "saved",
    "net_saving": "saved net",
    "tokens_sent": "tokens sent",
    "prefix_reuse": "kept prefix",
    "grounding": "grounded",
    "overflows": "overflows",
    "rejected_openai": "OpenAI refuses",
    "rejected_anthropic": "Anthropic refuses",
    "latency_p50": "decides in",
}
"""The columns, and what stands over them."""
SPARE = ("decides in", "tokens sent", "overflows", "saved net")
"""What a narrow terminal does without, the first to go first."""
LACKS, UNANSWERED = MARKS
"""After a saving with calls that lack the newest message; after a strategy that no model answered."""
LACKING = "Part of this is saved by calls that lack the newest message"


def main_table(summary: RunSummary) -> Table:
    """A row for each strategy."""
    plan = summary.manifest["plan"]
    title = (
        f"{count(summary.conversations, 'conversation')}, {count(summary.messages, 'message')}, "
        f"{count(summary.calls, 'model call')}, {tokens(summary.tokens)} tokens of history ({plan['encoding']})"
    )
    rows = tuple(
        (name + f" {UNANSWERED}" * (name in summary.unanswered), *_figures(values))
        for name, values in summary.strategies.items()
    )
    found = summary.strategies.values()
    notes = [
        _compared(summary),
        "Saved: tokens of all calls against those of the whole history; net: the strategy's own model calls charged. "
        "Kept prefix: of the tokens sent after a conversation's first call, the share in the same prefix as a call "
        "before. Grounded: of the values that the recorded model used next, the share still in the context. "
        f"Overflows: calls over {summary.manifest['window']:,} tokens, the window of {plan['model']} (--model). "
        "Refuses: calls that the provider would not accept.",
        f"{LACKS} {LACKING}: the next table." if any(map(_lacks, found)) else "",
        _unanswered(summary),
        reasons(values[column] for values in found for column in TITLES),
    ]
    return Table(title, ("strategy", *TITLES.values()), rows, tuple(filter(None, notes)), spare=SPARE)


def conversation_table(cells: Iterable[tuple[str, str, dict[str, Value]]]) -> Table:
    """A row for each conversation and strategy."""
    cells = list(cells)
    rows = tuple(
        (name, strategy, figure("steps", values["steps"]), *_figures(values)) for name, strategy, values in cells
    )
    notes = [
        f"{LACKS} {LACKING}." if any(_lacks(values) for _, _, values in cells) else "",
        reasons(values[column] for _, _, values in cells for column in TITLES),
    ]
    heads = ("conversation", "strategy", "steps", *TITLES.values())
    return Table("By conversation", heads, rows, tuple(filter(None, notes)), names=2, spare=("steps", *SPARE))


def _figures(values: dict[str, Value]) -> Iterator[str]:
    for column in TITLES:
        yield figure(column, values[column]) + LACKS * (column == "saving" and _lacks(values))


def _lacks(values: dict[str, Value]) -> bool:
    """Whether some calls lack the newest message: what they save is no saving."""
    number = values["without_newest"]
    return not isinstance(number, Missing) and number > 0


def lacking(summary: RunSummary) -> Table | None:
    """How many calls lack the newest message, and what is saved without them; None if no strategy makes such calls."""
    columns = ("without_newest", "steps", "saving", "saving_with_newest")
    rows = tuple(
        (name, *(figure(column, values[column]) for column in columns))
        for name, values in summary.strategies.items()
        if _lacks(values)
    )
    if not rows:
        return None
    note = "The newest message is not in them, nor one written in its place: such a call saves tokens and asks nothing."
    heads = ("strategy", "such calls", "of", "saved", "saved without them")
    return Table("Calls that lack the newest message", heads, rows, (note,))


def _unanswered(summary: RunSummary) -> str:
    if not summary.unanswered:
        return ""
    return (
        f"{UNANSWERED} No call of its models succeeded: the figures are of what the strategy does without an answer. "
        "The reasons are in the table Why."
    )


def _compared(summary: RunSummary) -> str:
    """Over which conversations strategies are compared, where some have failed."""
    lost = {name: number for name, number in summary.lost.items() if number}
    if not lost:
        return ""
    none = [name for name, number in lost.items() if number == summary.conversations]
    but = f" but {', '.join(none)}, which finished none" if none else ""
    failed = ", ".join(f"{name} in {number:,}" for name, number in lost.items())
    return (
        f"All figures are over the {summary.compared:,} of {count(summary.conversations, 'conversation')} that every "
        f"strategy finished{but}. Failed: {failed}."
    )


SHOWN = (*FAULTS, "over_budget")
SPARE_TURNS = (20, 2, 200, 5, 500, 50)
"""Turns that a narrow terminal does without, the first to go first."""


def faults(summary: RunSummary) -> Table:
    """A column for each fault that any strategy has."""
    found = summary.strategies.values()
    there = [name for name in SHOWN if any(not isinstance(values[name], Missing) and values[name] for values in found)]
    if not there:
        return Table("Faults", (), (), ("No strategy made a context with a fault.",))
    rows = tuple(
        (name, *(figure(column, values[column]) for column in (*there, "latency_p99")))
        for name, values in summary.strategies.items()
    )
    heads = ("strategy", *(name.replace("_", " ") for name in there), "decides in, p99")
    note = (
        "Calls with each fault; those that no strategy has are left out. What none has is in the recordings themselves."
    )
    return Table("Faults", heads, rows, (note,), spare=("decides in, p99",))


def grounding(summary: RunSummary) -> Table:
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
    return Table("Grounding recall", heads, rows, (note,), spare=heads[:2:-1])


def growth(summary: RunSummary) -> Table:
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
