"""How tables are shown: on a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from .words import printable

WIDE = 100_000
"""Columns enough for any row."""


@dataclass(frozen=True, slots=True)
class Table:
    """A title, column heads, rows of text, and a line that says how to read it. The first column is a name.

    Without heads it is the line alone. `prose`: all columns are text, which may be broken into lines.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    prose: bool = False


def show(console: Console, found: Sequence[Table]) -> None:
    """Print tables on a terminal. Names and figures keep their width; figures are on the right."""
    usual = console.width
    for table in found:
        console.print()
        console.print(f"[bold]{escape(printable(table.title))}[/bold]")
        if not table.heads:
            console.print(escape(printable(table.note)))
            continue
        made = RichTable(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        text = table.prose
        for at, head in enumerate(table.heads):
            made.add_column(head, justify="left" if text or at == 0 else "right", no_wrap=not text, overflow="fold")
        for row in table.rows:
            made.add_row(*(escape(printable(each)) for each in row))
        console.width = usual if text else WIDE  # a narrow terminal wraps a row: nothing of a figure is cut
        console.print(made, crop=False)
        console.width = usual
        if table.note:
            console.print(f"[dim]{escape(printable(table.note))}[/dim]")


def markdown(found: Sequence[Table]) -> str:
    """Tables as one Markdown text."""
    parts = []
    for table in found:
        parts.append(f"## {_cell(table.title)}\n")
        if not table.heads:
            parts.append(f"{_cell(table.note)}\n")
            continue
        parts.append("| " + " | ".join(map(_cell, table.heads)) + " |")
        parts.append("|" + "---|" + "---:|" * (len(table.heads) - 1))
        parts += ["| " + " | ".join(map(_cell, row)) + " |" for row in table.rows]
        parts.append(f"\n{_cell(table.note)}\n" if table.note else "")
    return "\n".join(parts).rstrip() + "\n"


def _cell(text: str) -> str:
    """Text that cannot break a Markdown table or carry HTML into it."""
    safe = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace("|", "\\|").replace("\r", " ").replace("\n", " ")
