"""ATIF trajectories: results stand in the step of their call, and history of other files is no call."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems

# File: messages, calls, tokens in, out, tool calls, compactions.
TRAJECTORIES = {
    "openhands": (7, 2, 220, 80, 2, 0),
    "terminus2_continuation": (7, 3, 2_252, 160, 0, 1),
    "terminus2_continuation_cont1": (12, 4, 4_250, 530, 0, 0),
    "terminus2_sub_answers": (9, 1, 700, 120, 2, 0),
    "terminus2_sub_questions": (2, 1, 100, 20, 0, 0),
    "terminus2_sub_summary": (7, 1, 500, 200, 2, 0),
    "terminus2_summarization": (16, 7, 6_502, 690, 7, 1),
    "terminus2_timeout": (7, 3, 882, 115, 3, 0),
}


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_recorded_trajectories(recordings: Path, name: str) -> None:
    """Eight trajectories; with those of the three agents that summarise, the sums are those of `final_metrics`."""
    problems = Problems()
    [told] = read(find([recordings / "atif" / f"harbor_{name}.json"], problems), problems)
    assert not problems.errors
    assert not problems.notes
    used = [m.call.usage for m in told.messages if m.call and m.call.usage]
    assert (
        len(told.messages),
        len(used),
        sum(one.input or 0 for one in used),
        sum(one.output or 0 for one in used),
        sum(len(m.calls) for m in told.messages),
        len(told.compactions),
    ) == TRAJECTORIES[name]
