"""Tables on a terminal, as Markdown, HTML and CSV, and figures in words: shares, tokens, dollars, missing values."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, partial, reduce
from html import escape as escape_html
from importlib import resources
from io import StringIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from ctxbench.harness.folder.schema import SHORT, short_names, with_recipe_names
from ctxbench.metrics.figures import LANGUAGE, METRICS, NOTHING_EVICTED
from ctxbench.metrics.statistics.intervals import Ends, Interval
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.errors import csv_text, printable

if TYPE_CHECKING:
    import pandas as pd

WIDE = 100_000  # a width that fits any row

_SHORT, LINE = 20, 100  # characters of a line of prose, at least and at most, whatever the terminal
_GAP = 2  # spaces between columns
_IN_FULL = "In full: "
_SENTENCE = re.compile(r"(?<=\.) ")  # between two
_NAME = 32  # a name is broken within its words only where one is longer than this
_MOST_REASONS = 4  # reasons for missing figures that stand under a table
OF_FEW = ("compression_ratio", "lru_k_hit_rate", "constraint_recall")
"""Metrics that most strategies, or runs, have nothing to measure of (`figure_of_few`)."""
MARKS = ("*", "†")  # marks that may follow a figure or a name, and are explained under the table
LACKING = f"{MARKS[0]} Part of this saving comes from calls that lack the newest message"
CROSS = "✗"  # stands before the name of what is struck out


@dataclass(frozen=True, slots=True)
class Table:
    """Title, column heads, rows of text and notes. Without heads it is only a title with notes."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    names: int = 1
    """Number of columns, from the left, that are names. The others are figures."""
    spare: tuple[str, ...] = ()  # heads of the columns that a narrow terminal leaves out, the first to go first
    empty: tuple[str, ...] = ()  # heads of the columns that went because no row has a figure for them
    prose: bool = False  # true if all columns are text, which may be broken into lines
    widest: int = 0  # characters of the longest line, of figures where there is no terminal; 0 = no such limit
    model: str = ""  # the billed model that the figures are of; the page shows one at a time

    @property
    def left(self) -> int:
        """Number of columns, from the left, that are aligned there."""
        return len(self.heads) if self.prose else self.names

    def legend(self, left_out: Sequence[str] = ()) -> list[str]:
        """Return the notes without the sentences that would explain columns that went, or are left out."""
        absent = tuple(f"{head.lower()}: " for head in (*left_out, *self.empty))
        parts = ([part for part in _SENTENCE.split(note) if not part.lower().startswith(absent)] for note in self.notes)
        return [" ".join(of) for of in parts if of]


class Column(NamedTuple):
    """A column of a table: a list of them gives the head and the cells."""

    head: str
    of: str | Callable[[Any], Any]
    """Key or attribute of the value in its row, dotted where rows are nested; or a function of the row."""
    show: Callable[[Any], str] = str  # function from the value to a cell
    spare: int = 0  # place among the columns that a narrow terminal leaves out, 1 the first to go; 0 = it always stays
    mark: Callable[[Any], str] = lambda _: ""  # function from the row to a mark behind the cell

    def value(self, row: Any) -> Any:
        """Return the value of a row."""
        if not isinstance(self.of, str):
            return self.of(row)
        return reduce(
            lambda part, key: part[key] if isinstance(part, Mapping) else getattr(part, key), self.of.split("."), row
        )


def table_of(
    title: str,
    columns: Iterable[Column],
    rows: Iterable[Any],
    notes: Iterable[str] = (),
    least: int = 2,
    **options: Any,
) -> Table:
    """Return a table of rows by its columns. The last note says why cells are a reason in brackets; empty ones go.

    A column of a dash in each of `least` or more rows has nothing to say, and goes as well.
    """
    columns, missing, body = list(columns), list[Missing](), []
    for row in rows:
        values = [column.value(row) for column in columns]
        cells = [column.show(value) for column, value in zip(columns, values, strict=True)]
        for value, cell in zip(values, cells, strict=True):
            if cell.startswith(("(", "[")) or cell.endswith("]"):
                missing += [
                    part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, Missing)
                ]
        body.append(tuple(cell + column.mark(row) for column, cell in zip(columns, cells, strict=True)))
    said = [at for at in range(len(columns)) if len(body) < least or any(row[at] != "–" for row in body)]
    empty = tuple(column.head for at, column in enumerate(columns) if at not in said)
    columns, body = [columns[at] for at in said], [tuple(row[at] for at in said) for row in body]
    ranked = [column.head for column in sorted(columns, key=lambda column: column.spare) if column.spare]
    reach = "± is half the 95 % interval." * any(re.search(r"± \d", cell) for row in body for cell in row)
    every_note = tuple(filter(None, (*notes, reach, reasons(missing))))
    heads = tuple(column.head for column in columns)
    return Table(title, heads, tuple(body), every_note, spare=tuple(ranked), empty=empty, **options)


def exact(value: Any) -> Any:
    """Return figures for JSON, however nested: a named tuple or data class by its fields, NaN as null.

    What is missing stays `{"why": "undefined", "detail": "no second step"}`.
    """
    match value:
        case Missing():
            return value
        case Mapping():
            return {str(key): exact(item) for key, item in value.items()}
        case tuple() if hasattr(value, "_asdict"):
            return exact(value._asdict())
        case list() | tuple() | frozenset():
            return [exact(item) for item in value]
        case float() if math.isnan(value):
            return None
        case _ if is_dataclass(value):
            return {item.name: exact(getattr(value, item.name)) for item in fields(value)}
        case _ if hasattr(value, "to_dict"):
            return exact(value.to_dict(orient="records"))
        case _:
            return value.item() if hasattr(value, "item") else value


@cache
def _texts() -> Mapping[str, str]:
    return tomllib.loads(resources.files(__package__).joinpath("notes.toml").read_text("utf-8"))


def about(name: str, /, **values: object) -> str:
    """Return a note of `notes.toml` with its {braces} filled with the values."""
    return " ".join(_texts()[name].split()).format(**values)


def library_column(libraries: Mapping[str, str], strategies: Iterable[str]) -> list[Column]:
    """Return the column with the package of each strategy and its version; none where no strategy has one."""
    if not any(name in libraries for name in strategies):
        return []
    return [Column("library", "strategy", lambda name: libraries.get(name, "–"))]


def in_full(strategies: Iterable[str]) -> list[str]:
    """Return a note with the whole texts of the strategies whose short names leave parameters out."""
    cut = [text for text, name in short_names(strategies, SHORT).items() if "…" in name and "…" not in text]
    return [f"{_IN_FULL}{', '.join(cut)}."] * bool(cut)


integer = "{:,}".format
STRATEGY = Column("strategy", "strategy")


def metric_column(key: str, head: str = "", spare: int = 0, mark: Callable[[Any], str] = lambda _: "") -> Column:
    """Return the column of a metric, under its display name unless another head is given."""
    show = partial(figure_of_few, key) if key in OF_FEW else partial(amount, METRICS[key].unit)
    return Column(head or METRICS[key].name, key, show, spare, mark)


def show(console: Console, tables: Sequence[Table]) -> None:
    """Print tables on a terminal. No figure is cut: where there is no room, columns are left out and named.

    Strategies have their short names, with a note below the first table that leaves any of their parameters out.
    """
    in_full_told = set[str]()
    for table in map(_short_named, tables):
        console.print()
        _print_paragraph(console, table.title, "bold")
        left_out = list[str]()
        if table.heads:
            left_out = _show_prose(console, table) if table.prose else _show_figures(console, table)
        for note in (note for note in table.legend(left_out) if note not in in_full_told):
            in_full_told.update({note} if note.startswith(_IN_FULL) else ())
            _print_paragraph(console, note, "dim" if table.heads else "")


def plain(tables: Sequence[Table]) -> str:
    """Return tables as the text that a command writes into a pipe or a file."""
    text = StringIO()
    show(Console(file=text, width=WIDE, highlight=False, color_system=None), tables)
    return text.getvalue()


def as_csv(frame: pd.DataFrame) -> str:
    """Return a table as CSV with exact figures: a missing one is its reason in brackets, no text starts a formula."""

    def cell(value: object) -> object:
        if isinstance(value, Missing):
            value = f"({value.why}: {value.detail})" if value.detail else f"({value.why})"
        return csv_text(value) if isinstance(value, str) else value

    columns = [frame.iloc[:, at] for at in range(frame.shape[1])]
    shown = {at: of if of.dtype.kind in "biuf" else list(map(cell, of)) for at, of in enumerate(columns)}
    heads = [csv_text(str(name)) for name in frame.columns]
    written: str = type(frame)(shown).to_csv(index=False, header=heads, lineterminator="\n")
    return written


def _short_named(table: Table) -> Table:
    at = table.heads.index(STRATEGY.head) if STRATEGY.head in table.heads else len(table.heads)
    texts = [row[at] for row in table.rows if at < len(row)]
    names = short_names(texts, SHORT)
    rows = ((*row[:at], *(names[text] for text in row[at : at + 1]), *row[at + 1 :]) for row in table.rows)
    return replace(table, rows=tuple(rows), notes=(*table.notes, *in_full(texts)))


def _lines(text: str, width: int) -> list[str]:
    return wrap(printable(text), width, break_long_words=False, break_on_hyphens=False)


def _print_paragraph(console: Console, text: str, style: str) -> None:
    """Print a paragraph in lines of a readable length."""
    for line in _lines(text, min(max(console.width, _SHORT), LINE)):
        console.print(line, style=style, markup=False, soft_wrap=True)


def _show_prose(console: Console, table: Table) -> list[str]:
    if any(table.heads):
        grid = _grid()
        for head in table.heads:
            grid.add_column(head, overflow="fold")
        for row in table.rows:
            grid.add_row(*map(escape, map(printable, row)))
        console.print(grid, crop=False, width=min(console.width, table.widest or WIDE))
        return []
    # Without heads the rows are labels and texts, in lines of a readable length.
    labels = max((cell_len(label) for label, _ in table.rows), default=0) + _GAP
    width = max(min(console.width, LINE) - labels, _SHORT)
    for label, text in table.rows:
        for at, part in enumerate(_lines(text, width)):
            console.print(f"{'' if at else label:{labels}}{part}", markup=False, soft_wrap=True)
    return []


def _show_figures(console: Console, table: Table) -> list[str]:
    """Print a table of figures, and return the heads of the columns that there is no room for."""
    width = table.widest if table.widest and console.width == WIDE else console.width
    rows = [[printable(cell).replace("\n", "·") for cell in row] for row in table.rows]
    columns = [_Fitted(head, [row[at] for row in rows]) for at, head in enumerate(table.heads)]
    names, figures = columns[: table.names], columns[table.names :]
    room = width + _GAP
    for head in table.spare:
        if sum(name.least + _GAP for name in names) + sum(figure.width + _GAP for figure in figures) <= room:
            break
        figures = [figure for figure in figures if figure.head != head]
    left_out = [column.head for column in columns[table.names :] if column not in figures]
    # Names share what is left: the first ones shrink first, down to their least.
    over = sum(name.whole + _GAP for name in names) + sum(figure.width + _GAP for figure in figures) - room
    grid = _grid()
    tall = max((figure.lines[0].count("\n") for figure in figures), default=0)
    for name in names:
        shrunk = name.whole - min(max(over, 0), name.whole - name.least)
        over -= name.whole - shrunk
        grid.add_column(escape("\n" * tall + name.head), width=shrunk, overflow="fold")
    for figure in figures:
        grid.add_column(escape("\n" * (tall - figure.lines[0].count("\n")) + figure.lines[0]), no_wrap=True)
    for at, row in enumerate(rows, 1):
        cells = (*row[: table.names], *(figure.lines[at] for figure in figures))
        grid.add_row(*map(escape, cells), style="dim strike" if row[0].startswith(CROSS) else None)
    # On a terminal that is too narrow all the same, rows wrap: rich would cut cells.
    usual, console.width = console.width, WIDE
    console.print(grid, crop=False)
    console.width = usual
    if left_out:
        _print_paragraph(console, f"No room for: {', '.join(left_out)}.", "dim")
    return left_out


class _Fitted:
    """Head and cells of a column, as names or as figures on the right under a head broken into lines."""

    def __init__(self, head: str, cells: Sequence[str]) -> None:
        self.head = head
        self.whole = max(map(cell_len, (head, *cells)))
        self.least = min(self.whole, max(map(_in_two_lines, (head, *cells))), _NAME)
        # A cell without a mark leaves its place free.
        marked = any(cell.endswith(MARKS) for cell in cells)
        padded = [cell + " " * (marked and not cell.endswith(MARKS)) for cell in cells]
        self.width = max([max(map(cell_len, head.split()), default=0) + marked, *map(cell_len, padded)])
        broken = wrap(head, max(1, self.width - marked), break_on_hyphens=False)
        top = [_right(line, self.width - marked) for line in broken]
        self.lines = ["\n".join(top), *(_right(cell, self.width) for cell in padded)]


def _in_two_lines(name: str) -> int:
    """Return the least width at which a name takes at most two lines; a cross stays beside its word."""
    words = name.replace(f"{CROSS} ", "✗_").split()
    halves = ((" ".join(words[:at]), " ".join(words[at:])) for at in range(len(words)))
    return min((max(map(cell_len, pair)) for pair in halves), default=0)


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text


_grid = partial(RichTable, box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))


def markdown(tables: Sequence[Table], level: int = 2) -> str:
    """Return tables as one Markdown text, under headings of a level."""
    parts = []
    for table in tables:
        parts.append(f"{'#' * level} {line(table.title)}\n")
        if table.heads:
            rule = "|" + "---|" * table.left + "---:|" * (len(table.heads) - table.left)
            head, *rows = ("| " + " | ".join(map(line, row)) + " |" for row in (table.heads, *table.rows))
            parts += [head, rule, *rows, ""]
        parts += [f"{line(note)}\n" for note in table.legend()]
    return "\n".join(parts).rstrip() + "\n"


def line(text: str) -> str:
    """Return text that cannot break a Markdown table or carry HTML into it."""
    safe = printable(with_recipe_names(text)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace("|", "\\|").replace("*", "\\*").replace("\r", " ").replace("\n", " ")


def html(tables: Sequence[Table]) -> str:
    """Return tables as HTML for a notebook: no style sheet, no script, and no markup from what is in them."""

    def text(cell: str) -> str:
        return escape_html(printable(with_recipe_names(cell))).replace("\n", " ")

    parts = []
    for table in tables:
        sides = ["left"] * table.left + ["right"] * (len(table.heads) - table.left)

        def cells(tag: str, row: Sequence[str], sides: Sequence[str] = sides) -> str:
            shown = zip(sides, row, strict=False)  # without heads there is no row
            return "".join(f'<{tag} style="text-align: {side}">{text(cell)}</{tag}>' for side, cell in shown)

        struck = ' style="opacity: 0.6; text-decoration: line-through"'
        rows = "".join(f"<tr{struck * row[0].startswith(CROSS)}>{cells('td', row)}</tr>" for row in table.rows)
        body = f"<thead><tr>{cells('th', table.heads)}</tr></thead>" * any(table.heads)
        body += f"<tbody>{rows}</tbody>" * bool(rows)
        parts.append(f"<p><strong>{text(table.title)}</strong></p>" + f"<table>{body}</table>" * bool(body))
        parts += [f"<p><small>{text(note)}</small></p>" for note in table.legend()]
    return f"<div>{''.join(parts)}</div>"


def figure_of_few(name: str, value: Value) -> str:
    """Return a figure of a metric that most strategies have nothing to measure of: a dash then, not the reason."""
    if isinstance(value, Missing) and value.why in ("undefined", "unsupported") and value.detail != LANGUAGE:
        return NOTHING_EVICTED if value.detail == NOTHING_EVICTED else "–"
    return amount(METRICS[name].unit, value)


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
    if not float(value).is_integer():  # a mean of a metric of the user's own
        return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.3g}"
    return f"{int(value):,}"  # figures of a comparison are floats, counts too


def percent(value: Value) -> str:
    """Return a share as 61.2 % or −4.0 %. A value close to 0 or 1 never reads as 0 or 100 %."""
    if isinstance(value, Missing):
        return f"({value.why})"
    value += 0.0  # a zero has no sign
    text = f"{value:.1%}"
    if (text == "100.0%" and value < 1) or (text in ("0.0%", "-0.0%") and value != 0):
        text = f"{value:.3%}"
    return text.replace("%", " %").replace("-", "−")


def with_reach(share: Interval | Missing) -> str:
    """Return a share with half its 95 % interval in points: 61.2 % ± 8.3; 61.2 % [40.0 to 80.0 %] where it has none."""
    if isinstance(share, Missing):
        return percent(share)
    mean, low, high = share
    if isinstance(low, Missing) or isinstance(high, Missing):
        none = no_interval(low if isinstance(low, Missing) else share.high, shares)
        return f"{percent(mean)} {none if none.startswith('[') else '± –'}"
    return f"{percent(mean)} ± {(high - low) * 50:.1f}"


def no_interval(interval: Value, show: Callable[[float, float], str]) -> str:
    """Return the range over single conversations in square brackets, or why there is neither it nor an interval."""
    assert isinstance(interval, Missing)
    return f"[{show(*interval.across)}]" if isinstance(interval.across, tuple) else f"({interval.why})"


def shares(low: float, high: float) -> str:
    """Return a range of shares: 40.1 to 52.3 %; ends that print alike are printed once."""
    first, last = percent(low), percent(high)
    return last if first == last else f"{first.removesuffix(' %')} to {last}"


def share_range(ends: Ends | Interval | Missing) -> str:
    """Return the interval of a share as text; without one, in brackets the range over conversations or the reason."""
    low, high = (ends, ends) if isinstance(ends, Missing) else ends[-2:]
    if isinstance(low, Missing) or isinstance(high, Missing):
        return no_interval(low if isinstance(low, Missing) else high, shares)
    return shares(low, high)


def tokens(value: float) -> str:
    """Return a rounded number of tokens: 950 · 12.3k · 1.45M."""
    if value < 1000:
        return f"{value:.0f}"
    return f"{value / 1000:.1f}k" if value < 999_950 else f"{value / 1e6:.2f}M"


def dollars(value: float) -> str:
    """Return a cost: $12.30, $0.0042, $0.000017, $0. Only nothing reads as $0: an unknown cost (NaN) does not."""
    if math.isnan(value) or not value:
        return "$0" if value == 0 else "(unknown)"
    return f"${value:,.2f}" if value >= 1 else f"${value:.{max(4, 1 - math.floor(math.log10(abs(value))))}f}"


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
    heads = {"few": "[ ] is the range over conversations, no interval"}
    # 7 and 5 independent conversations are too few: of details that end alike, the end once.
    ends = {detail.partition(" ")[2] for detail in shown.get("few", ())}
    if len(ends) == 1 < len(shown["few"]):
        shown["few"] = [" and ".join(detail.partition(" ")[0] for detail in shown["few"]) + f" {ends.pop()}"]
    sentences = [f"{heads.get(why, why.capitalize())}: {'; '.join(details)}." for why, details in shown.items()]
    if len(missing) > _MOST_REASONS:
        sentences.append(f"{count(len(missing) - _MOST_REASONS, 'more reason')}: all are in --json.")
    return " ".join(sentences)


def number(value: Value | None) -> float | None:
    """Return a figure for JSON; a missing one is null."""
    return None if value is None or isinstance(value, Missing) else float(value)
