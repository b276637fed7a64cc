"""The page of recorded formats says what is read of the sample recordings."""

import re
from pathlib import Path
from typing import Any

import pytest

from ctxbench.reports.profile import coverage_by_format
from ctxbench.scenarios.readers import readers
from tests.docs.scripts import script

ENOUGH = 0.995  # share of the text shown to a model that a reader must read
LOWER = {"langfuse", "openclaw_telemetry"}  # formats of which less is read; the page says why


PAGE = Path(__file__).parents[2] / "docs" / "formats.md"


@pytest.fixture(scope="module")
def rows(recordings: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = script("renew_docs").read_of(recordings)
    return found


@pytest.mark.slow
def test_the_table_is_what_is_read(rows: list[dict[str, Any]]) -> None:
    """The page's table equals the one made of the recordings now; if not: `make formats`."""
    text = PAGE.read_text("utf-8")
    assert script("renew_docs").with_formats(text, rows) == text


@pytest.mark.slow
def test_nearly_all_text_is_read(rows: list[dict[str, Any]]) -> None:
    """Readers keep 99.5 % of the text that a model may have seen, but for the formats that the page explains."""
    shares = {sums["format"]: sums["share"] for sums in coverage_by_format(rows)}
    assert len(shares) > 20
    assert {name for name, share in shares.items() if share < ENOUGH} == LOWER


def test_every_format_is_on_the_page() -> None:
    """A format without samples is named as such."""
    text = PAGE.read_text("utf-8")
    named = set(re.findall(r"^\| (\w+) \||`(\w+)`", text, re.MULTILINE))
    assert {name for name in readers() if name != "ctxbench"} <= {name for pair in named for name in pair}
