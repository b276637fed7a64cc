"""How tables are shown: on a terminal, and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from ..metrics.figures import METRICS
from ..metrics.value import Missing, Value

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


GAP = 2
"""Spaces between columns."""
MARKS = ("*", "†")
"""What may stand after a figure or a name, and is explained under the table."""
_NAME = 32
"""A name is broken within its words only where one is longer than this."""


class Fitted(NamedTuple):
    """What is left of a table, its figures aligned on the right."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: tuple[int, ...]
    """Widths of the columns of names."""
    left_out: tuple[str, ...]
    """Heads of the columns that there was no room for."""


def fitted(heads: Sequence[str], rows: Sequence[Sequence[str]], names: int, spare: Sequence[str], width: int) -> Fitted:
    """A table whose first columns are names, so that it takes at most `width` if that can be had.

    `spare` are the heads of the columns that may be left out, the first to go first.
    """
    columns = [_Column(head, [row[at] for row in rows]) for at, head in enumerate(heads)]
    titles, figures = columns[:names], columns[names:]
    least = sum(each.least for each in titles) + GAP * (names - 1)
    for head in spare:
        if least + _taken(figures) <= width:
            break
        figures = [each for each in figures if each.head != head]
    left_out = tuple(head for head in heads[names:] if head not in {each.head for each in figures})
    widths = _shrunk(titles, width - _taken(figures))
    shown = [(each.head, *each.cells) for each in titles] + [tuple(each.aligned()) for each in figures]
    tall = max(each[0].count("\n") for each in shown)
    top, *body = zip(*shown, strict=True)
    return Fitted(tuple("\n" * (tall - head.count("\n")) + head for head in top), tuple(body), tuple(widths), left_out)


class _Column:
    """A head and its cells. As figures, the head is broken into lines no wider than the cells, if its words allow."""

    def __init__(self, head: str, cells: Sequence[str]) -> None:
        self.head, self.cells = head, cells
        words = [cell_len(word) for cell in (head, *cells) for word in cell.split()]
        self.whole = max(map(cell_len, (head, *cells)))
        self.least = min(self.whole, max(words, default=0), _NAME)
        """The widths that it takes as names, and the least that it may take."""
        self.marked = any(cell.endswith(MARKS) for cell in cells)
        longest = max(map(cell_len, head.split()))
        self.width = max([longest + self.marked, *map(cell_len, self._marked())])
        """The width that it takes as figures."""

    def aligned(self) -> Iterator[str]:
        """The head and the cells as figures, on the right. What has no mark leaves its place free."""
        lines = wrap(self.head, self.width - self.marked, break_on_hyphens=False)
        yield "\n".join(_right(line, self.width - self.marked) for line in lines)
        for cell in self._marked():
            yield _right(cell, self.width)

    def _marked(self) -> list[str]:
        return [cell + " " * (self.marked and not cell.endswith(MARKS)) for cell in self.cells]


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text


def _taken(figures: Sequence[_Column]) -> int:
    return sum(GAP + each.width for each in figures)


def _shrunk(titles: Sequence[_Column], room: int) -> Iterator[int]:
    """The widths of the names: whole if there is room, else the first ones give way first, down to their least."""
    over = sum(each.whole for each in titles) + GAP * (len(titles) - 1) - room
    for each in titles:
        less = min(max(over, 0), each.whole - each.least)
        over -= less
        yield each.whole - less


def figure(name: str, value: Value) -> str:
    """A figure under its metric's unit: 12,345 · 61.2 % · 14 µs. A missing one is its reason in brackets."""
    return amount(METRICS[name].unit, value)


def amount(unit: str, value: Value) -> str:
    """A figure in some unit."""
    if isinstance(value, Missing):
        return f"({value.why})"
    if unit == "share":
        return percent(value)
    if unit == "usd":
        return f"${value:,.4f}" if value else "$0"
    if unit == "us":
        return f"{value:,.0f} µs" if value >= 10 else f"{value:.1f} µs"
    return f"{value:,}"


def percent(value: Value) -> str:
    """A share: 61.2 %, −4.0 %. What is not quite nothing or all never reads as 0 or 100."""
    match value:
        case Missing(why=why):
            return f"({why})"
        case _:
            text = f"{value:.1%}"
    if (text == "100.0%" and value < 1) or (text in ("0.0%", "-0.0%") and value != 0):
        text = f"{value:.3%}"
    return text.replace("%", " %").replace("-", "−")


def shares(low: float, high: float) -> str:
    """From one share to another: 40.1 to 52.3 %."""
    return f"{percent(low).removesuffix(' %')} to {percent(high)}"


def tokens(value: float) -> str:
    """A rounded number of tokens: 950 · 12.3k · 1.45M."""
    if value < 1000:
        return f"{value:.0f}"
    return f"{value / 1000:.1f}k" if value < 999_950 else f"{value / 1e6:.2f}M"


def dollars(value: float) -> str:
    """What something costs: $12.30, $0.0042, $0. What is not known is no zero."""
    if math.isnan(value):
        return "(unknown)"
    return f"${value:,.2f}" if value >= 1 or not value else f"${value:.4f}"


def count(number: int, one: str, many: str = "") -> str:
    """1 conversation, 2 conversations."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def printable(text: str) -> str:
    """Text that a terminal prints and does not obey: control, bidirectional and other invisible characters as `·`."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else "·" for char in text)


MOST_REASONS = 4
"""Reasons for missing figures that stand under a table."""


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
