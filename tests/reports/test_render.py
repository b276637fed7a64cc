"""How tables are fitted to a terminal."""

import csv
import math
from io import StringIO

import pandas as pd
import pytest
from rich.console import Console

from ctxbench.metrics.value import Missing
from ctxbench.reports.render import Column, Table, as_csv, dollars, markdown, percent, plain, show, table_of

NAMES = ("none", "layered | smart | session_summary | cache_marks", "window(max_tokens=8000)")
HEADS = ("strategy", "saved", "tokens sent", "OpenAI refuses", "decides in")
TABLE = Table(
    "24 conversations",
    HEADS,
    (
        (NAMES[0], "0.0 %", "76,815,410", "3", "0.1 µs"),
        (NAMES[1], "90.4 %*", "7,364,459", "3", "165 µs"),
        (NAMES[2], "86.8 %*", "10,168,274", "22", "19 µs"),
    ),
    ("This says how it is read. " * 10, "* A mark."),
    spare=("decides in", "tokens sent"),
)


def printed(table: Table, width: int) -> list[str]:
    console = Console(file=StringIO(), width=width, color_system=None)
    show(console, [table])
    assert console.width == width
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("width", "left_out"), [(500, []), (100, []), (68, []), (67, ["decides in"]), (58, ["tokens sent", "decides in"])]
)
def test_what_is_left_out_for_want_of_room(width: int, left_out: list[str]) -> None:
    """Names are broken into two lines first, then columns go, and it is said which. No line is too long."""
    lines = printed(TABLE, width)
    assert max(map(len, lines)) <= min(width, 100)
    assert [line for line in lines if line.startswith("No room for")] == (
        [f"No room for: {', '.join(left_out)}."] if left_out else []
    )
    shown = [at for at, head in enumerate(HEADS) if head not in left_out and at]
    for row in TABLE.rows:
        [line] = [line for line in lines if line.startswith(row[0][:16])]
        assert [cell for cell in row[1:] if cell in line] == [row[at] for at in shown]
    assert all(word in " ".join(lines).split() for name in NAMES for word in name.split())


@pytest.mark.parametrize("width", [1, 30])
def test_a_terminal_that_is_too_narrow_all_the_same(width: int) -> None:
    """However narrow it is, no name and no figure is cut."""
    text = "".join(printed(TABLE, width))
    for row in TABLE.rows:
        assert row[1] in text
        assert all(word in text for word in row[0].split())


def test_figures_are_under_each_other() -> None:
    """A mark stands beside its figure and does not push it out of its column; so does a wide character."""
    table = Table("t", ("name", "saved"), (("a", "86.8 %*"), ("会话", "5.0 %"), ("c", "100.0 %")))
    assert printed(table, 80)[2:] == ["name    saved", "a      86.8 %*", "会话    5.0 %", "c     100.0 %"]


def test_a_line_of_text_in_a_name_is_no_line_of_the_table() -> None:
    """Whatever a recording calls itself, its row is one line."""
    table = Table("t", ("name", "saved"), (("two\nlines\x1b", "5.0 %"),))
    assert printed(table, 80)[3] == "two·lines·  5.0 %"


def test_marks_are_no_markup() -> None:
    """An asterisk is one in Markdown too: no list, no emphasis."""
    text = markdown([TABLE])
    assert "| 90.4 %\\* |" in text
    assert "\n\\* A mark.\n" in text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0.0 %"),
        (-0.0, "0.0 %"),
        (-0.04, "−4.0 %"),
        (-0.00001, "−0.001 %"),
        (0.99999, "99.999 %"),
        (1.0, "100.0 %"),
    ],
)
def test_shares(share: float, text: str) -> None:
    """A zero has no sign, and what is close to 0 or 1 does not read as it."""
    assert percent(share) == text


def test_csv() -> None:
    """A missing figure is its reason, a number is exact, and neither a cell nor a column's name is a formula."""
    frame = pd.DataFrame(
        {
            "a": [0.1 + 0.2, float("nan")],
            "@b": [Missing("failed", "why, not"), 3],
            "=c\x1b[2J": ["=1+1", "\u202e,\n"],
            "\t+d": ["-1", "\r=1"],
        }
    )
    rows = list(csv.reader(as_csv(frame).splitlines(keepends=True)))
    assert rows == [
        ["a", "'@b", "'=c·[2J", "'·+d"],
        [repr(0.1 + 0.2), "(failed: why, not)", "'=1+1", "'-1"],
        ["", "3", "·,\n", "'·=1"],
    ]


def test_a_column_without_any_figure_goes() -> None:
    """Where no row has a figure the column is left out, and what explains it; in a single row a dash is an answer."""
    columns = [Column("strategy", "name"), Column("LRU-K hit", "hit"), Column("saved", "saved")]
    rows = [{"name": "none", "hit": "–", "saved": "–"}, {"name": "archive", "hit": "–", "saved": "5 %"}]
    table = table_of("T", columns, rows, ["Saved: of all. LRU-K hit: of look-ups."])
    assert table.heads == ("strategy", "saved")
    assert table.rows == (("none", "–"), ("archive", "5 %"))
    assert "Saved: of all." in plain([table])
    assert "look-ups" not in plain([table])
    assert table_of("T", columns, rows[:1]).heads == ("strategy", "LRU-K hit", "saved")


def test_every_amount_can_be_seen() -> None:
    """Only nothing reads as $0: an amount has two digits at least, however small."""
    amounts = (1234.5, 0.9786, 0.0021, 0.000017, 0.0, math.nan)
    assert [*map(dollars, amounts)] == ["$1,234.50", "$0.9786", "$0.0021", "$0.000017", "$0", "(unknown)"]
