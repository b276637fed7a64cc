"""The table of traps in place of a verdict."""

from __future__ import annotations

from pathlib import Path

from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.harness.folder.run import load
from ctxbench.reports.html.sections import sections
from ctxbench.reports.results import Results
from ctxbench.reports.verdict_text import is_traps, trap_faults, trap_table

MODELS = ["claude-sonnet-5"]


def test_a_window_falls_into_the_traps_of_its_size(tmp_path: Path) -> None:
    """A window of 8,000 tokens loses the newest message where one is larger; the whole history loses none."""
    strategies = ("none", "last_turn", "window(max_tokens=8000)")
    execute(Plan(RunInputs(("traps",)), strategies), tmp_path / "run")
    results = Results(load(tmp_path / "run"), MODELS)
    assert is_traps(results)
    faults = trap_faults(results)
    assert faults["none"] == faults["last_turn"] == {}
    assert set(faults["window(max_tokens=8000)"]) == {"enormous_result", "long_single_user_message"}
    assert all("newest message missing: 1" in what for what in faults["window(max_tokens=8000)"].values())
    table = trap_table(results)
    assert table.title == "Which of 14 traps break a strategy? 2 of 3 strategies pass them all"
    assert [row[1] for row in table.rows] == ["0", "0", "2"]
    names = [section.name for section in sections(results)]
    assert names[0] == "traps"
    assert not {"overview", "strategies"} & set(names)  # neither a verdict nor savings
