"""The tables of a run, as rows of text: printed on a terminal or as Markdown by the two functions at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from ..metrics.figures import METRICS
from ..metrics.structure import FAULTS
from ..metrics.value import Value
from .summary import Summary, growth_table
from .words import count, figure, percent, printable, tokens

COLUMNS = ("saving", "tokens_sent", "kept_prefix", "overflows", "refused_openai", "refused_anthropic", "decide_p50")
TITLES = {
    "saving": "saved",
    "tokens_sent": "tokens sent",
    "kept_prefix": "kept prefix",
    "overflows": "overflows",
    "refused_openai": "refused by OpenAI",
    "refused_anthropic": "refused by Anthropic",
    "decide_p50": "decides in",
}
SHOWN = (*FAULTS, "over_budget")


@dataclass(frozen=True, slots=True)
class Table:
    """A title, column heads, rows of text, and a line that says how to read it. The first column is a name."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def tables(summary: Summary) -> Iterator[Table]:
    """Every table that has something to show, the main one first."""
    yield _main(summary)
    yield _faults(summary)
    yield _growth(summary)
    if summary.counter:
        yield _counter(summary)
    if summary.failed:
        rows = tuple((row["strategy"], row["conversation"], row["detail"]) for row in summary.failed)
        yield Table("Failed", ("strategy", "conversation", "why"), rows)
    if summary.manifest["problems"]:
        yield _problems(summary)


def conversation_table(cells: Iterable[tuple[str, str, dict[str, Value]]]) -> Table:
    """One row per conversation and strategy, of the columns of the main table."""
    rows = tuple(
        (name, strategy, *(figure(column, values[column]) for column in ("steps", *COLUMNS)))
        for name, strategy, values in cells
    )
    heads = ("conversation", "strategy", "steps", *(TITLES[column] for column in COLUMNS))
    return Table("By conversation", heads, rows)


def _main(summary: Summary) -> Table:
    plan = summary.manifest["plan"]
    said = (
        f"{count(summary.conversations, 'conversation')}, {count(summary.messages, 'message')}, "
        f"{count(summary.calls, 'model call')}, {tokens(summary.tokens)} tokens of history ({plan['encoding']})"
    )
    rows = tuple(
        (name, *(figure(column, values[column]) for column in COLUMNS)) for name, values in summary.strategies.items()
    )
    note = (
        f"Tokens are summed over all model calls. Overflows: over {plan['model']}'s window of "
        f"{summary.manifest['window']:,}. Refused: calls that the provider would not accept."
    )
    return Table(said, ("strategy", *(TITLES[column] for column in COLUMNS)), rows, note)


def _faults(summary: Summary) -> Table:
    """A column for each fault that any strategy has."""
    there = [name for name in SHOWN if any(values[name] != 0 for values in summary.strategies.values())]
    rows = tuple(
        (name, *(figure(column, values[column]) for column in (*there, "decide_p99")))
        for name, values in summary.strategies.items()
    )
    heads = ("strategy", *(name.replace("_", " ") for name in there), "decides in, p99")
    note = (
        "Calls with each fault; those that no strategy has are left out. What none has is in the recordings themselves."
    )
    return Table("Faults", heads, rows, note)


def _growth(summary: Summary) -> Table:
    names = [name for name in summary.strategies if name != "none"]
    rows = tuple(
        (str(row["turn"]), str(row["conversations"]), tokens(row["full"]), *(_sent(row, name) for name in names))
        for row in growth_table(summary.growth)
    )
    note = "Mean tokens of a model call, each conversation counted once a turn. In brackets: saved against the history."
    return Table("Growth by turn", ("turn", "conversations", "history", *names), rows, note)


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
    return Table(f"Left out: {count(len(rows), 'recording')}", ("where", "field", "what"), rows)


def show(console: Console, found: Sequence[Table]) -> None:
    """Print tables on a terminal. Names keep their width; figures are on the right."""
    for table in found:
        console.print()
        console.print(f"[bold]{escape(printable(table.title))}[/bold]")
        made = RichTable(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        text = table.title.startswith(("Left out", "Failed"))
        for at, head in enumerate(table.heads):
            made.add_column(head, justify="left" if text or at == 0 else "right", no_wrap=not text, overflow="fold")
        for row in table.rows:
            made.add_row(*(escape(printable(each)) for each in row))
        console.print(made, crop=False, soft_wrap=not text)
        if table.note:
            console.print(f"[dim]{escape(printable(table.note))}[/dim]")


def markdown(found: Sequence[Table]) -> str:
    """Tables as one Markdown text."""
    parts = []
    for table in found:
        parts.append(f"## {_cell(table.title)}\n")
        parts.append("| " + " | ".join(map(_cell, table.heads)) + " |")
        parts.append("|" + "---|" + "---:|" * (len(table.heads) - 1))
        parts += ["| " + " | ".join(map(_cell, row)) + " |" for row in table.rows]
        parts.append(f"\n{_cell(table.note)}\n" if table.note else "")
    return "\n".join(parts).rstrip() + "\n"


def as_json(summary: Summary) -> dict[str, object]:
    """The figures for `--json`: exact numbers; a missing one is `{"missing": why, "detail": …}`."""
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
        "strategies": summary.strategies,
        "growth": growth_table(summary.growth),
        "counter_error": summary.counter,
        "failed": summary.failed,
        "problems": summary.manifest["problems"],
        "ignored": summary.manifest["ignored"],
    }


def _cell(text: str) -> str:
    """Text that cannot break a Markdown table or carry HTML into it."""
    safe = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace("|", "\\|").replace("\r", " ").replace("\n", " ")
