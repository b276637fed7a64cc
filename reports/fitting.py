"""How a table of figures is fitted to a width: heads and names in several lines, then fewer columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

from rich.cells import cell_len

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
