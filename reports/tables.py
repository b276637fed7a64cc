"""The tables of a run, as rows of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..metrics.figures import METRICS
from ..metrics.structure import FAULTS
from ..metrics.survival import Survival, cliff
from ..metrics.value import Missing, Value
from .render import Table
from .summary import Summary, growth_table
from .words import count, figure, percent, tokens

COLUMNS = (
    "saving",
    "net_saving",
    "tokens_sent",
    "kept_prefix",
    "grounding",
    "overflows",
    "refused_openai",
    "refused_anthropic",
    "decide_p50",
)
TITLES = {
    "saving": "saved",
    "net_saving": "saved net",
    "tokens_sent": "tokens sent",
    "kept_prefix": "kept prefix",
    "grounding": "grounded",
    "overflows": "overflows",
    "refused_openai": "refused by OpenAI",
    "refused_anthropic": "refused by Anthropic",
    "decide_p50": "decides in",
}
SHOWN = (*FAULTS, "over_budget")
AGES = (0, 1, 2, 5, 10, 20)
"""Rounds at which survival is shown."""
MOST_WHYS = 20
"""Rows of the table of what failed or was refused."""
MOST_REASONS = 4
"""Reasons for missing figures that stand under a table."""


def tables(summary: Summary) -> Iterator[Table]:
    """Every table that has something to show, the main one first."""
    yield _main(summary)
    yield _faults(summary)
    if any(summary.grounding.values()):
        yield _grounding(summary)
    if any(summary.did.values()):
        yield _did(summary)
    if summary.why:
        yield _why(summary)
    if any(summary.survival.values()):
        yield _survival(summary)
    if not summary.growth.empty:
        yield _growth(summary)
    if summary.counter:
        yield _counter(summary)
    if summary.failed:
        yield _failed(summary)
    if summary.manifest["problems"]:
        yield _problems(summary)


def conversation_table(cells: Iterable[tuple[str, str, dict[str, Value]]]) -> Table:
    """One row per conversation and strategy, of the columns of the main table."""
    cells, shown = list(cells), ("steps", *COLUMNS)
    rows = tuple(
        (name, strategy, *(figure(column, values[column]) for column in shown)) for name, strategy, values in cells
    )
    heads = ("conversation", "strategy", "steps", *(TITLES[column] for column in COLUMNS))
    note = _reasons(values[column] for _, _, values in cells for column in shown)
    return Table("By conversation", heads, rows, note)


def _reasons(values: Iterable[Value]) -> str:
    """What the missing figures of a table are missing for: `undefined: no second step.`"""
    found = dict.fromkeys(f"{value.why}: {value.detail}" for value in values if isinstance(value, Missing))
    shown = list(found)[:MOST_REASONS]
    if len(found) > MOST_REASONS:
        shown.append(f"{len(found) - MOST_REASONS} more reasons, all in --json")
    return "".join(f"{each[0].upper()}{each[1:]}. " for each in shown).rstrip()


def _main(summary: Summary) -> Table:
    plan = summary.manifest["plan"]
    said = (
        f"{count(summary.conversations, 'conversation')}, {count(summary.messages, 'message')}, "
        f"{count(summary.calls, 'model call')}, {tokens(summary.tokens)} tokens of history ({plan['encoding']})"
    )
    rows = tuple(
        (name, *(figure(column, values[column]) for column in COLUMNS)) for name, values in summary.strategies.items()
    )
    notes = [
        _compared(summary),
        "Tokens are summed over all model calls; net: with the strategy's own model calls. Grounded: of the values "
        f"that the recorded model used next, those still there. Overflows: over {plan['model']}'s window of "
        f"{summary.manifest['window']:,}. Refused: calls that the provider would not accept.",
        _reasons(values[column] for values in summary.strategies.values() for column in COLUMNS),
    ]
    heads = ("strategy", *(TITLES[column] for column in COLUMNS))
    return Table(said, heads, rows, " ".join(filter(None, notes)))


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


def _failed(summary: Summary) -> Table:
    """A row for each strategy and reason: in how many conversations, and the first of them."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in summary.failed:
        found.setdefault((row["strategy"], row["detail"]), []).append(row["conversation"])
    rows = tuple((strategy, f"{len(where):,}", where[0], why) for (strategy, why), where in found.items())
    return Table("Failed", ("strategy", "conversations", "for example", "why"), rows, prose=True)


def _faults(summary: Summary) -> Table:
    """A column for each fault that any strategy has."""
    found = summary.strategies.values()
    there = [name for name in SHOWN if any(not isinstance(values[name], Missing) and values[name] for values in found)]
    if not there:
        return Table("Faults", (), (), "No strategy made a context with a fault.")
    rows = tuple(
        (name, *(figure(column, values[column]) for column in (*there, "decide_p99")))
        for name, values in summary.strategies.items()
    )
    heads = ("strategy", *(name.replace("_", " ") for name in there), "decides in, p99")
    note = (
        "Calls with each fault; those that no strategy has are left out. What none has is in the recordings themselves."
    )
    return Table("Faults", heads, rows, note)


def _grounding(summary: Summary) -> Table:
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
    return Table("Grounding retention", heads, rows, note)


def _did(summary: Summary) -> Table:
    """What strategies reported: a column for each kind of event that any has, and their own model calls."""
    kinds = sorted({kind for counts in summary.did.values() for kind in counts} - {"called"})
    rows = tuple(
        (
            name,
            f"{summary.did[name].get('called', 0):,}",
            *(figure(column, values[column]) for column in ("own_tokens", "own_cost")),
            percent(summary.shown[name]) if summary.did[name].get("summarised") else "",
            *(f"{summary.did[name].get(kind, 0):,}" for kind in kinds),
        )
        for name, values in summary.strategies.items()
        if summary.did[name]
    )
    note = (
        "Model calls are the strategy's own and charged to it. Shown: of the tokens that summaries stand for, what the "
        "summariser was shown. Others: how often; every event is in the run's events table."
    )
    return Table("What strategies did", ("strategy", "model calls", "tokens", "cost", "shown", *kinds), rows, note)


def _why(summary: Summary) -> Table:
    """A row for each reason, the most frequent first."""
    rows = tuple(
        (str(row["strategy"]), str(row["what"]), str(row["why"]), str(row["instead"]), f"{row['times']:,}")
        for row in summary.why[:MOST_WHYS]
    )
    note = "Failed: what the strategy needed could not be had as it was asked for. Refused: its budget cannot be kept."
    if rest := summary.why[MOST_WHYS:]:
        times = sum(int(row["times"]) for row in rest)
        note += f" {count(len(rest), 'more reason')}, {count(times, 'time')} together: all are in --json."
    return Table("Why", ("strategy", "what", "reason", "instead", "times"), rows, note, prose=True)


def _survival(summary: Summary) -> Table:
    """The share of facts that outlive rounds of summarising, all kinds together, and of each kind the first round."""
    kinds = sorted({row.kind for found in summary.survival.values() for row in found})
    rows = []
    for name, found in summary.survival.items():
        if found:
            fallen = cliff(found)
            after = "never" if isinstance(fallen, Missing) else f"round {fallen}"
            first = (_survived(found, 0, kind) for kind in kinds)
            rows.append((name, *(_survived(found, age) for age in AGES), after, *first))
    note = (
        "Facts of replaced messages that the summary still has, by the rounds of summarising since; round 0 is the "
        "first summary that stands for them. Cliff: the first round that fewer than half survive. On the right: round "
        "0 by kind; every kind and round is in --json."
    )
    heads = ("strategy", *(f"round {age}" for age in AGES), "cliff", *kinds)
    return Table("Facts that survive summarising", heads, tuple(rows), note)


def _survived(found: list[Survival], age: int, kind: str = "") -> str:
    rows = [row for row in found if row.age == age and kind in ("", row.kind)]
    wanted = sum(row.values for row in rows)
    return percent(sum(row.kept for row in rows) / wanted) if wanted else ""


def _growth(summary: Summary) -> Table:
    """A column for each turn."""
    curve = growth_table(summary.growth)
    history = ("history", *(tokens(row["full"]) for row in curve))
    names = [name for name in summary.strategies if name != "none"]
    rows = (history, *((name, *(_sent(row, name) for row in curve)) for name in names))
    heads = ("strategy", *(f"turn {row['turn']} ({row['conversations']:,})" for row in curve))
    note = (
        "Mean tokens of a model call, each conversation counted once a turn, and what is saved against the history. In "
        "brackets above: conversations that get so far."
    )
    return Table("Growth by turn", heads, rows, note)


def _sent(row: dict[str, Any], name: str) -> str:
    if name not in row:
        return "(failed)"
    return f"{tokens(row[name]['tokens_sent'])} ({percent(row[name]['saving'])})"


def _counter(summary: Summary) -> Table:
    rows = tuple(
        (
            str(row["model"]),
            str(row["published"]),
            f"{row['calls']:,}",
            percent(row["total"]),  # type: ignore[arg-type]
            *(percent(row[f"growth_p{at}"]) for at in (10, 50, 90)),  # type: ignore[arg-type]
        )
        for row in summary.counter
    )
    note = (
        "Our count of the prompt against the provider's, as an error. Growth: from one call to the next, where what "
        "the recording does not hold (a system prompt, tool schemas) cancels."
    )
    reasons = _reasons(value for row in summary.counter for value in row.values() if isinstance(value, Missing))
    note = f"{note} {reasons}".rstrip()
    heads = ("recorded model", "published encoding", "calls", "total", "growth p10", "growth p50", "growth p90")
    return Table(f"Error of the token counter ({summary.manifest['plan']['encoding']})", heads, rows, note)


def _problems(summary: Summary) -> Table:
    rows = tuple(
        (
            f"{row['file']}:{row['line']}" if row["line"] else row["file"],
            row["field"],
            row["what"] + (f" ({row['remedy']})" if row["remedy"] else ""),
        )
        for row in summary.manifest["problems"]
    )
    return Table(f"Left out: {count(len(rows), 'recording')}", ("where", "field", "what"), rows, prose=True)


def as_json(summary: Summary) -> dict[str, object]:
    """The figures for `--json`: exact numbers; a missing one is `{"why": "undefined", "detail": "no second step"}`.

    `strategies` and `growth` are over the `compared` conversations, the numbers before them over all.
    """
    return {
        "complete": summary.manifest["complete"],
        "plan": summary.manifest["plan"],
        "versions": summary.manifest["versions"],
        "digest": summary.manifest["digest"],
        "conversations": summary.conversations,
        "messages": summary.messages,
        "calls": summary.calls,
        "tokens": summary.tokens,
        "metrics": {name: {"unit": each.unit, "version": each.version} for name, each in METRICS.items()},
        "compared": summary.compared,
        "lost": summary.lost,
        "strategies": summary.strategies,
        "did": summary.did,
        "why": summary.why,
        "shown": summary.shown,
        "grounding": {
            name: {kind: {"values": values, "kept": kept} for kind, (values, kept) in found.items()}
            for name, found in summary.grounding.items()
        },
        "survival": {name: [row._asdict() for row in found] for name, found in summary.survival.items()},
        "growth": growth_table(summary.growth),
        "counter_error": summary.counter,
        "failed": summary.failed,
        "problems": summary.manifest["problems"],
        "ignored": summary.manifest["ignored"],
    }
