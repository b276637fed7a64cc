"""Write the table of what is read of the sample recordings into docs/formats.md: `scripts/formats_table.py FOLDER`.

It is that of `ctxbench describe --coverage`. `tests/docs/test_formats.py` compares page and recordings.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from ctxbench.reports.profile import coverage_tables
from ctxbench.reports.render import markdown
from ctxbench.scenarios.coverage import compared
from ctxbench.scenarios.read import find
from ctxbench.scenarios.source import Problems

PAGE = Path(__file__).parents[1] / "docs" / "formats.md"
_PLACE = re.compile(r"(<!-- table: formats -->\n).*?(<!-- end -->)", re.DOTALL)


def checked(folder: Path) -> list[dict[str, Any]]:
    """Return what is read of a folder, a row for each recording."""
    return [compared(batch, Problems()) for batch in find([folder], Problems())]


def page(text: str, rows: list[dict[str, Any]]) -> str:
    """Return the page with its table renewed."""
    lines = [line for line in markdown(coverage_tables(rows)[:1]).splitlines() if line.startswith("|")]
    return _PLACE.sub(lambda place: "\n".join([place[1], *lines, "", place[2]]), text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), checked(Path(sys.argv[1]))))
