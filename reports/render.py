"""How tables are shown: on a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from .fitting import GAP, fitted
from .words import printable

WIDE = 100_000
"""Columns enough for any row."""
SHORT, LINE = 20, 100
"""Characters of a line of prose, at least and at most, whatever the terminal."""


@dataclass(frozen=True, slots=True)
class Table:
    """A title, column heads, rows of text, and paragraphs that say how to read it. Without heads it is those alone."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    names: int = 1
    """How many of the first columns are names. The others are figures."""
    spare: tuple[str, ...] = ()
    """Heads of the columns that a narrow terminal does without, the first to go first."""
    prose: bool = False
    """All columns are text, which may be broken into lines."""


def show(console: Console, found: Sequence[Table]) -> None:
    """Print tables on a terminal. No figure is cut: where there is no room, columns are left out and named."""
    for table in found:
        console.print()
        _say(console, table.title, "bold")
        if table.heads:
            _show_prose(console, table) if table.prose else _show_figures(console, table)
        for note in table.notes:
            _say(console, note, "dim" if table.heads else "")


def _say(console: Console, text: str, style: str) -> None:
    """A paragraph, in lines that can be read."""
    width = min(max(console.width, SHORT), LINE)
    for line in wrap(printable(text), width, break_long_words=False, break_on_hyphens=False):
        console.print(line, style=style, markup=False, soft_wrap=True)


def _show_prose(console: Console, table: Table) -> None:
    made = _grid()
    for head in table.heads:
        made.add_column(head, overflow="fold")
    for row in table.rows:
        made.add_row(*(escape(printable(each)) for each in row))
    console.print(made, crop=False)


def _show_figures(console: Console, table: Table) -> None:
    rows = [[printable(each).replace("\n", "·") for each in row] for row in table.rows]
    fit = fitted(table.heads, rows, table.names, table.spare, console.width)
    made = _grid()
    for at, head in enumerate(fit.heads):
        if at < len(fit.names):
            made.add_column(escape(head), width=fit.names[at], overflow="fold")
        else:
            made.add_column(escape(head), no_wrap=True)
    for row in fit.rows:
        made.add_row(*map(escape, row))
    usual, console.width = console.width, WIDE  # a terminal that is too narrow all the same wraps a row
    console.print(made, crop=False)
    console.width = usual
    if fit.left_out:
        _say(console, f"No room for: {', '.join(fit.left_out)}.", "dim")


def _grid() -> RichTable:
    return RichTable(box=None, pad_edge=False, header_style="dim", padding=(0, GAP, 0, 0))


def markdown(found: Sequence[Table], level: int = 2) -> str:
    """Tables as one Markdown text, under headings of a level."""
    parts = []
    for table in found:
        parts.append(f"{'#' * level} {line(table.title)}\n")
        if table.heads:
            names = len(table.heads) if table.prose else table.names
            parts.append("| " + " | ".join(map(line, table.heads)) + " |")
            parts.append("|" + "---|" * names + "---:|" * (len(table.heads) - names))
            parts += ["| " + " | ".join(map(line, row)) + " |" for row in table.rows]
            parts.append("")
        parts += [f"{line(note)}\n" for note in table.notes]
    return "\n".join(parts).rstrip() + "\n"


def line(text: str) -> str:
    """Text that cannot break a Markdown table or carry HTML into it."""
    safe = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace("|", "\\|").replace("*", "\\*").replace("\r", " ").replace("\n", " ")
