"""Tables on a terminal, as Markdown, HTML and CSV, and figures in words: shares, tokens, dollars, missing values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import reduce
from html import escape as escape_html
from io import StringIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from ctxbench.metrics.figures import METRICS, NOTHING_EVICTED
from ctxbench.metrics.statistics.intervals import Interval
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.text import csv_text, printable

if TYPE_CHECKING:
    import pandas as pd

WIDE = 100_000
"""A width that fits any row."""

# Characters of a line of prose, at least and at most, whatever the terminal.
_SHORT, _LINE = 20, 100
# Spaces between columns.
_GAP = 2
# A name is broken within its words only where one is longer than this.
_NAME = 32
# Reasons for missing figures that stand under a table.
_MOST_REASONS = 4
MARKS = ("*", "†")
"""Marks that may follow a figure or a name, and are explained under the table."""
CROSS = "✗"
"""Stands before the name of what is struck out."""


@dataclass(frozen=True, slots=True)
class Table:
    """Title, column heads, rows of text and notes. Without heads it is only a title with notes."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    names: int = 1
    """Number of columns, from the left, that are names. The others are figures."""
    spare: tuple[str, ...] = ()
    """Heads of the columns that a narrow terminal leaves out, the first to go first."""
    prose: bool = False
    """True if all columns are text, which may be broken into lines."""
    page: bool = False
    """True if no line is to be longer than 100 characters, however wide the terminal is."""
    model: str = ""
    """The billed model that the figures are of; the page shows one at a time."""


class Column(NamedTuple):
    """A column of a table of figures: one list of them is the head, the cells, and the keys of the rows in JSON."""

    head: str
    """Empty = only in JSON."""
    of: str | Callable[[Any], Any]
    """Key of the figure in its row, dotted where rows are nested; or a function of the row, which JSON lacks."""
    show: Callable[[Any], str] = str
    """Function from the figure to a cell."""

    def value(self, row: Any) -> Any:
        """Return the figure of a row."""
        if not isinstance(self.of, str):
            return self.of(row)
        return reduce(lambda part, key: part[key], self.of.split("."), row)


def table_of(
    title: str, columns: Sequence[Column], rows: Iterable[Any], notes: Sequence[str] = (), **options: Any
) -> Table:
    """Return a table of rows by its columns; `options` are other fields of the table."""
    shown = [column for column in columns if column.head]
    cells = tuple(tuple(column.show(column.value(row)) for column in shown) for row in rows)
    return Table(title, tuple(column.head for column in shown), cells, tuple(notes), **options)


def exact(value: Any) -> Any:
    """Return figures for JSON, however nested: what is missing, or not a number, is null."""
    match value:
        case Mapping():
            return {str(key): exact(each) for key, each in value.items()}
        case list():
            return [exact(each) for each in value]
        case Missing():
            return None
        case float() if math.isnan(value):
            return None
        case _:
            return value.item() if hasattr(value, "item") else value


def by_name(value: Any) -> Any:
    """Return dataclasses and named tuples as mappings of their fields, however nested; what is missing stays."""
    if isinstance(value, Missing):
        return value
    if is_dataclass(value):
        return {field.name: by_name(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        return by_name(value._asdict())
    if isinstance(value, Mapping):
        return {key: by_name(item) for key, item in value.items()}
    return [by_name(item) for item in value] if isinstance(value, (list, tuple)) else value


class LibraryColumn(NamedTuple):
    """The column with the packages of strategies, which a table without such strategies does not have."""

    head: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    """One for each row: empty without the column."""


def library_column(libraries: Mapping[str, str], strategies: Iterable[str]) -> LibraryColumn:
    """Return the packages of the strategies of a table's rows, each with its version."""
    names = list(strategies)
    if not any(name in libraries for name in names):
        return LibraryColumn((), ((),) * len(names))
    return LibraryColumn(("library",), tuple((libraries.get(name, "–"),) for name in names))


def show(console: Console, tables: Sequence[Table]) -> None:
    """Print tables on a terminal. No figure is cut: where there is no room, columns are left out and named."""
    for table in tables:
        console.print()
        _print_paragraph(console, table.title, "bold")
        if table.heads:
            _show_prose(console, table) if table.prose else _show_figures(console, table)
        for note in table.notes:
            _print_paragraph(console, note, "dim" if table.heads else "")


def plain(tables: Sequence[Table]) -> str:
    """Return tables as the text that a command writes into a pipe or a file."""
    text = StringIO()
    show(Console(file=text, width=WIDE, highlight=False, color_system=None), tables)
    return text.getvalue()


def as_csv(frame: pd.DataFrame) -> str:
    """Return a table as CSV with exact figures: a missing one is its reason in brackets, no text starts a formula."""
    columns = [frame.iloc[:, at] for at in range(frame.shape[1])]
    shown = {
        at: column if column.dtype.kind in "biuf" else list(map(_csv_value, column))
        for at, column in enumerate(columns)
    }
    heads = [csv_text(str(name)) for name in frame.columns]
    written: str = type(frame)(shown).to_csv(index=False, header=heads, lineterminator="\n")
    return written


def _csv_value(value: object) -> object:
    match value:
        case Missing(why=why, detail=detail):
            return csv_text(f"({why}: {detail})" if detail else f"({why})")
        case str():
            return csv_text(value)
        case _:
            return value


def _print_paragraph(console: Console, text: str, style: str) -> None:
    """Print a paragraph in lines of a readable length."""
    width = min(max(console.width, _SHORT), _LINE)
    for line in wrap(printable(text), width, break_long_words=False, break_on_hyphens=False):
        console.print(line, style=style, markup=False, soft_wrap=True)


def _show_prose(console: Console, table: Table) -> None:
    if not any(table.heads):
        _show_labelled(console, table)
        return
    grid = _grid()
    for head in table.heads:
        grid.add_column(head, overflow="fold")
    for row in table.rows:
        grid.add_row(*(escape(printable(cell)) for cell in row))
    console.print(grid, crop=False)


def _show_labelled(console: Console, table: Table) -> None:
    """Print rows of a label and a text, in lines of a readable length."""
    labels = max((cell_len(label) for label, _ in table.rows), default=0) + _GAP
    width = max(min(console.width, _LINE) - labels, _SHORT)
    for label, text in table.rows:
        lines = wrap(printable(text), width, break_long_words=False, break_on_hyphens=False)
        for line_label, part in zip((label, *[""] * len(lines)), lines, strict=False):
            console.print(f"{line_label:{labels}}{part}", markup=False, soft_wrap=True)


def _show_figures(console: Console, table: Table) -> None:
    rows = [[printable(cell).replace("\n", "·") for cell in row] for row in table.rows]
    width = min(console.width, _LINE) if table.page else console.width
    fit = fitted(table.heads, rows, table.names, table.spare, width)
    grid = _grid()
    for at, head in enumerate(fit.heads):
        if at < len(fit.names):
            grid.add_column(escape(head), width=fit.names[at], overflow="fold")
        else:
            grid.add_column(escape(head), no_wrap=True)
    for row in fit.rows:
        grid.add_row(*map(escape, row), style="dim strike" if row[0].startswith(CROSS) else None)
    # On a terminal that is too narrow all the same, rows wrap: rich would cut cells.
    usual, console.width = console.width, WIDE
    console.print(grid, crop=False)
    console.width = usual
    if fit.left_out:
        _print_paragraph(console, f"No room for: {', '.join(fit.left_out)}.", "dim")


def _grid() -> RichTable:
    return RichTable(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))


def markdown(tables: Sequence[Table], level: int = 2) -> str:
    """Return tables as one Markdown text, under headings of a level."""
    parts = []
    for table in tables:
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
    """Return text that cannot break a Markdown table or carry HTML into it."""
    safe = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace("|", "\\|").replace("*", "\\*").replace("\r", " ").replace("\n", " ")


def html(tables: Sequence[Table]) -> str:
    """Return tables as HTML for a notebook: no style sheet, no script, and no markup from what is in them."""
    return "<div>" + "".join(map(_html_table, tables)) + "</div>"


def _html_table(table: Table) -> str:
    names = len(table.heads) if table.prose else table.names
    aligned = ["left" if at < names else "right" for at in range(len(table.heads))]
    head = "".join(f"<th{_align(side)}>{_html(text)}</th>" for text, side in zip(table.heads, aligned, strict=True))
    rows = "".join(
        f"<tr{_STRUCK if row[0].startswith(CROSS) else ''}>"
        + "".join(f"<td{_align(side)}>{_html(text)}</td>" for text, side in zip(row, aligned, strict=True))
        + "</tr>"
        for row in table.rows
    )
    body = f"<thead><tr>{head}</tr></thead>" * any(table.heads) + f"<tbody>{rows}</tbody>" * bool(rows)
    notes = "".join(f"<p><small>{_html(note)}</small></p>" for note in table.notes)
    return f"<p><strong>{_html(table.title)}</strong></p>" + f"<table>{body}</table>" * bool(body) + notes


_STRUCK = ' style="opacity: 0.6; text-decoration: line-through"'


def _align(side: str) -> str:
    return f' style="text-align: {side}"'


def _html(text: str) -> str:
    return escape_html(printable(text)).replace("\n", " ")


class Fitted(NamedTuple):
    """Table that fits a width, its figures aligned on the right."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: tuple[int, ...]
    """Widths of the columns of names."""
    left_out: tuple[str, ...]
    """Heads of the columns that there was no room for."""


def fitted(heads: Sequence[str], rows: Sequence[Sequence[str]], names: int, spare: Sequence[str], width: int) -> Fitted:
    """Return a table whose first columns are names so that it takes at most `width`, if possible.

    `spare` are the heads of the columns that may be left out, the first to go first.
    """
    columns = [_Column(head, [row[at] for row in rows]) for at, head in enumerate(heads)]
    titles, figures = columns[:names], columns[names:]
    least = sum(column.least for column in titles) + _GAP * (names - 1)
    for head in spare:
        if least + _taken(figures) <= width:
            break
        figures = [column for column in figures if column.head != head]
    left_out = tuple(head for head in heads[names:] if head not in {column.head for column in figures})
    widths = _shrunk(titles, width - _taken(figures))
    shown = [(title.head, *title.cells) for title in titles] + [tuple(column.aligned()) for column in figures]
    tall = max(column[0].count("\n") for column in shown)
    top, *body = zip(*shown, strict=True)
    return Fitted(tuple("\n" * (tall - head.count("\n")) + head for head in top), tuple(body), tuple(widths), left_out)


class _Column:
    """Head and cells of a column. Over figures, the head is broken into lines no wider than the cells, if possible."""

    def __init__(self, head: str, cells: Sequence[str]) -> None:
        self.head, self.cells = head, cells
        words = [cell_len(word) for cell in (head, *cells) for word in cell.split()]
        # Width of the column as names, whole and at least.
        self.whole = max(map(cell_len, (head, *cells)))
        self.least = min(self.whole, max(words, default=0), _NAME)
        self.marked = any(cell.endswith(MARKS) for cell in cells)
        longest = max(map(cell_len, head.split()))
        # Width of the column as figures.
        self.width = max([longest + self.marked, *map(cell_len, self._marked())])

    def aligned(self) -> Iterator[str]:
        """Yield the head and the cells as figures, on the right. A cell without a mark leaves its place free."""
        lines = wrap(self.head, self.width - self.marked, break_on_hyphens=False)
        yield "\n".join(_right(line, self.width - self.marked) for line in lines)
        for cell in self._marked():
            yield _right(cell, self.width)

    def _marked(self) -> list[str]:
        return [cell + " " * (self.marked and not cell.endswith(MARKS)) for cell in self.cells]


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text


def _taken(figures: Sequence[_Column]) -> int:
    return sum(_GAP + column.width for column in figures)


def _shrunk(titles: Sequence[_Column], room: int) -> Iterator[int]:
    """Yield the widths of the names: whole if there is room, else the first ones shrink first, down to their least."""
    over = sum(title.whole for title in titles) + _GAP * (len(titles) - 1) - room
    for title in titles:
        less = min(max(over, 0), title.whole - title.least)
        over -= less
        yield title.whole - less


def figure(name: str, value: Value) -> str:
    """Return a figure in its metric's unit: 12,345 · 61.2 % · 14 µs. A missing one is its reason in brackets."""
    return amount(METRICS[name].unit, value)


def figure_of_few(name: str, value: Value) -> str:
    """Return a figure of a metric that most strategies have nothing to measure of: a dash then, not the reason."""
    match value:
        case Missing("undefined", detail) if detail == NOTHING_EVICTED:
            return detail
        case Missing("undefined" | "unsupported"):
            return "–"
        case _:
            return figure(name, value)


def amount(unit: str, value: Value) -> str:
    """Return a figure in some unit; a missing one is its reason in brackets."""
    if isinstance(value, Missing):
        return f"({value.why})"
    if unit == "share":
        return percent(value)
    if unit == "usd":
        return f"${value:,.4f}" if value else "$0"
    if unit == "times":
        return f"{value:,.2f}×" if value < 10 else f"{value:,.1f}×"
    if unit == "us":
        return f"{value:,.0f} µs" if value >= 10 else f"{value:.1f} µs"
    return f"{value:,}"


def percent(value: Value) -> str:
    """Return a share as 61.2 % or −4.0 %. A value close to 0 or 1 never reads as 0 or 100 %."""
    match value:
        case Missing(why=why):
            return f"({why})"
        case _:
            value += 0.0  # a zero has no sign
            text = f"{value:.1%}"
    if (text == "100.0%" and value < 1) or (text in ("0.0%", "-0.0%") and value != 0):
        text = f"{value:.3%}"
    return text.replace("%", " %").replace("-", "−")


REACH = "± is half the 95 % interval over independent units; – where there is only one."
"""Note of tables with figures by `with_reach`."""


def with_reach(share: Interval | Missing) -> str:
    """Return a share with half its 95 % interval in points: 61.2 % ± 8.3, or 61.2 % ± – where it has none."""
    if isinstance(share, Missing):
        return percent(share)
    _, low, high = share
    reach = "–" if isinstance(low, Missing) or isinstance(high, Missing) else f"{(high - low) * 50:.1f}"
    return f"{percent(share.mean)} ± {reach}"


def shares(low: float, high: float) -> str:
    """Return a range of shares: 40.1 to 52.3 %."""
    return f"{percent(low).removesuffix(' %')} to {percent(high)}"


def tokens(value: float) -> str:
    """Return a rounded number of tokens: 950 · 12.3k · 1.45M."""
    if value < 1000:
        return f"{value:.0f}"
    return f"{value / 1000:.1f}k" if value < 999_950 else f"{value / 1e6:.2f}M"


def dollars(value: float) -> str:
    """Return a cost: $12.30, $0.0042, $0. An unknown cost (NaN) is not a zero."""
    if math.isnan(value):
        return "(unknown)"
    return f"${value:,.2f}" if value >= 1 or not value else f"${value:.4f}"


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: 1 conversation, 2 conversations."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def sample(conversations: int, units: int) -> str:
    """Return the size of a sample: 24 conversations, 6 independent units."""
    return f"{count(conversations, 'conversation')}{independent(conversations, units)}"


def independent(conversations: int, units: int) -> str:
    """Return how many independent units there are, after a comma; nothing where every conversation is one."""
    return "" if units == conversations else f", {count(units, 'independent unit')}"


def reasons(values: Iterable[Value]) -> str:
    """Return why figures of a table are missing: `Undefined: no second step.`"""
    missing = dict.fromkeys((value.why, value.detail) for value in values if isinstance(value, Missing))
    shown: dict[str, list[str]] = {}
    for why, detail in list(missing)[:_MOST_REASONS]:
        shown.setdefault(why, []).append(detail)
    sentences = [f"{why.capitalize()}: {'; '.join(details)}." for why, details in shown.items()]
    if len(missing) > _MOST_REASONS:
        sentences.append(f"{count(len(missing) - _MOST_REASONS, 'more reason')}: all are in --json.")
    return " ".join(sentences)


def number(value: Value | None) -> float | None:
    """Return a figure for JSON; a missing one is null."""
    return None if value is None or isinstance(value, Missing) else float(value)
