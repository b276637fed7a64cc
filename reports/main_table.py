"""The main table of a run, a row per strategy, and the same columns by conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..metrics.value import Missing, Value
from .fitting import MARKS
from .render import Table
from .summary import Summary
from .words import count, figure, tokens

TITLES = {
    "saving": "saved",
    "net_saving": "saved net",
    "tokens_sent": "tokens sent",
    "kept_prefix": "kept prefix",
    "grounding": "grounded",
    "overflows": "overflows",
    "refused_openai": "OpenAI refuses",
    "refused_anthropic": "Anthropic refuses",
    "decide_p50": "decides in",
}
"""The columns, and what stands over them."""
SPARE = ("decides in", "tokens sent", "overflows", "saved net")
"""What a narrow terminal does without, the first to go first."""
LACKS, UNANSWERED = MARKS
"""After a saving with calls that lack the newest message; after a strategy that no model answered."""
LACKING = "Part of this is saved by calls that lack the newest message"
MOST_REASONS = 4
"""Reasons for missing figures that stand under a table."""


def main_table(summary: Summary) -> Table:
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


def reasons(values: Iterable[Value]) -> str:
    """What the missing figures of a table are missing for: `Undefined: no second step.`"""
    found = dict.fromkeys((value.why, value.detail) for value in values if isinstance(value, Missing))
    shown: dict[str, list[str]] = {}
    for why, detail in list(found)[:MOST_REASONS]:
        shown.setdefault(why, []).append(detail)
    said = [f"{why.capitalize()}: {'; '.join(details)}." for why, details in shown.items()]
    if len(found) > MOST_REASONS:
        said.append(f"{count(len(found) - MOST_REASONS, 'more reason')}: all are in --json.")
    return " ".join(said)


def _figures(values: dict[str, Value]) -> Iterator[str]:
    for column in TITLES:
        yield figure(column, values[column]) + LACKS * (column == "saving" and _lacks(values))


def _lacks(values: dict[str, Value]) -> bool:
    """Whether some calls lack the newest message: what they save is no saving."""
    number = values["without_newest"]
    return not isinstance(number, Missing) and number > 0


def lacking(summary: Summary) -> Table | None:
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


def _unanswered(summary: Summary) -> str:
    if not summary.unanswered:
        return ""
    return (
        f"{UNANSWERED} No call of its models succeeded: the figures are of what the strategy does without an answer. "
        "The reasons are in the table Why."
    )


def _compared(summary: Summary) -> str:
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
