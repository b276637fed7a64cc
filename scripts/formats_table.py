"""Write the table of what is read of the sample recordings into docs/formats.md: `scripts/formats_table.py FOLDER`.

It is that of `ctxbench describe --coverage`. `tests/docs/test_formats.py` compares page and recordings.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from ctxbench.scenarios.coverage import COUNTS, compared
from ctxbench.scenarios.read import find
from ctxbench.scenarios.source import Problems

PAGE = Path(__file__).parents[1] / "docs" / "formats.md"
HEADS = (
    *("format", "files", "conversations", "messages", "calls", "with usage", "cache reads", "compactions"),
    *("not shown, characters", "shown, characters", "text read", "keys never looked at"),
)
_PLACE = re.compile(r"(<!-- table: formats -->\n).*?(<!-- end -->)", re.DOTALL)


def checked(folder: Path) -> list[dict[str, Any]]:
    """Return what is read of a folder, a row for each recording."""
    return [compared(batch, Problems()) for batch in find([folder], Problems())]


def by_format(rows: list[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Return the table's cells after the first, by format; the share of the text read is a number of 0 to 1."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["format"]].append(row)
    cells = {}
    for name, group in sorted(groups.items()):
        unread = sum(sum(row["not_read"].values()) for row in group)
        unshown = sum(sum(row["not_shown"].values()) for row in group)
        shown = sum(row["characters"] for row in group) - unshown
        keys = {key for row in group for key in row["keys_not_looked_at"]}
        counts = (sum(row[count] for row in group) for count in COUNTS)
        files = sum(row["files"] for row in group)
        cells[name] = (files, *counts, unshown, shown, 1 - unread / shown if shown else 1.0, len(keys))
    return cells


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table as Markdown."""
    lines = [f"| {' | '.join(HEADS)} |", "|---" + "|---:" * (len(HEADS) - 1) + "|"]
    for name, (*counts, share, keys) in by_format(rows).items():
        numbers = (*(f"{number:,}" for number in counts), f"{100 * share:.2f} %", str(keys))
        lines.append(f"| `{name}` | {' | '.join(numbers)} |")
    return "\n".join(lines)


def page(text: str, rows: list[dict[str, Any]]) -> str:
    """Return the page with its table renewed."""
    return _PLACE.sub(lambda place: f"{place[1]}\n{table(rows)}\n\n{place[2]}", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), checked(Path(sys.argv[1]))))
