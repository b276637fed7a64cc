"""What strategies added, did, and kept in their summaries."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import load
from ctxbench.metrics.survival import Survival
from ctxbench.reports.render import Table
from ctxbench.reports.results import RunSummary, summarise
from ctxbench.reports.tables import survival_tables, tables
from tests.harness.runs import plan, recording


def summary_of(folder: Path, *strategies: str) -> RunSummary:
    execute(plan(recording(folder, conversations=2), strategies=strategies), folder / "run")
    return summarise(load(folder / "run"))


def titled(summary: RunSummary) -> dict[str, Table]:
    return {table.title: table for table in tables(summary)}


def test_a_negative_saving_is_explained(tmp_path: Path) -> None:
    """An archive that archives nothing has no events, and its note and tool are in the table: all that it loses."""
    summary = summary_of(tmp_path, "none", "archive(threshold=9999)")
    values = summary.strategies["archive(threshold=9999)"]
    assert values["saving"] == pytest.approx(-values["added_share"])  # type: ignore[operator]
    assert values["saving"] < 0  # type: ignore[operator]
    found = titled(summary)
    assert "What did the strategies do?" not in found
    [row] = found["What did strategies add?"].rows
    assert row[0] == "archive(threshold=9999)"
    assert row[1] == f"{values['tokens_added']:,}"
    assert row[3:] == ("0", "0", "$0", "")


def shown(monkeypatch: pytest.MonkeyPatch, summary: RunSummary, rows: list[Survival]) -> Table:
    for name in summary.survival:
        monkeypatch.setitem(summary.survival, name, rows)
    return next(survival_tables(summary))


@pytest.mark.parametrize(("kept", "told"), [(400, False), (600, True)])
def test_the_cliff_where_it_tells_something(
    kept: int, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If all strategies lose most facts in the first summary, there is no column that says so of each."""
    summary = summary_of(tmp_path, "none")
    table = shown(monkeypatch, summary, [Survival("number", 0, 1000, kept), Survival("number", 1, 1000, 100)])
    assert ("cliff" in table.heads) == told
    assert table.rows[0][-1] == ("round 1" if told else "")
    assert len(table.heads) == len(table.rows[0])
