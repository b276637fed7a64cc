"""The page of recorded formats says what is read of the sample recordings."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ctxbench.reports.profile import coverage_by_format
from ctxbench.scenarios.readers import readers
from tests.docs.scripts import script

ENOUGH = 0.995
"""Share of the text shown to a model that a reader must read."""
LOWER = {"langfuse", "openclaw_telemetry"}
"""Formats of which less is read; the page says why."""


@pytest.fixture(scope="module")
def formats_table() -> ModuleType:
    return script("formats_table")


@pytest.fixture(scope="module")
def rows(formats_table: ModuleType, recordings: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = formats_table.checked(recordings)
    return found


@pytest.mark.slow
def test_the_table_is_what_is_read(formats_table: ModuleType, rows: list[dict[str, Any]]) -> None:
    """The page's table equals the one made of the recordings now; if not: `make formats`."""
    text = formats_table.PAGE.read_text("utf-8")
    assert formats_table.page(text, rows) == text


@pytest.mark.slow
def test_nearly_all_text_is_read(rows: list[dict[str, Any]]) -> None:
    """Readers keep 99.5 % of the text that a model may have seen, but for the formats that the page explains."""
    shares = {sums["format"]: sums["share"] for sums in coverage_by_format(rows)}
    assert len(shares) > 20
    assert {name for name, share in shares.items() if share < ENOUGH} == LOWER


def test_every_format_is_on_the_page(formats_table: ModuleType) -> None:
    """A format without samples is named as such."""
    text = formats_table.PAGE.read_text("utf-8")
    named = set(re.findall(r"^\| (\w+) \||`(\w+)`", text, re.MULTILINE))
    assert {name for name in readers() if name != "ctxbench"} <= {name for pair in named for name in pair}
