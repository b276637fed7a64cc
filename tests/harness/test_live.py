"""Live runs of the same tasks: what a scripted agent reads again is found, counted and priced; pairs are by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxbench.harness.folder.run import load
from ctxbench.harness.live import Labels, LiveRuns, compared, labels, measures
from ctxbench.metrics.prices import Prices
from ctxbench.metrics.value import Missing
from ctxbench.reports.live import stored
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation, Message
from tests.harness.command import ctxbench
from tests.live_agent import FILES, MASKED, write


def test_what_a_live_agent_reads_again(tmp_path: Path) -> None:
    """Masking spares 40 % of the tokens and costs more: the agent reads each file again, and replay could not know."""
    write(tmp_path, 15)
    run = tmp_path / "run"
    done = ctxbench("live", tmp_path / "before", tmp_path / "after", "-s", MASKED, "--out", run, "--json", cwd=tmp_path)
    rows = {row["key"]: row for row in json.loads(done.stdout)}
    calls, again, bill, call = (rows[key] for key in ("calls", "repeated", "cost", "predicted"))
    assert (calls["before"], calls["after"]) == (15 * (2 * FILES + 1), 15 * (3 * FILES + 1))
    assert (again["before"], again["after"]) == (0, 15 * FILES)
    assert rows["input"]["change"] < -0.35
    assert bill["low"] > 0, "dearer for certain, though a call costs less"
    assert call["before"] < call["after"] < 1, "replay promised more than there was: its calls need no second reading"
    assert stored(load(run)) is not None
    report = ctxbench("report", run, cwd=tmp_path)
    assert "What did a live agent do with less?" in (run / "report/report.html").read_text("utf-8")
    assert "50.0 % of the recorded tool calls use or repeat" in " ".join(report.stdout.split())


def talk(task: str, calls: int, **meta: str | float | bool) -> Conversation:
    """A run of a task with so many calls."""
    messages = [Message("u", "user", f"Do {task}.")]
    messages += [Message(f"a{at}", "assistant", "Well.", time=float(at)) for at in range(calls)]
    return Conversation(f"{task}-{calls}", tuple(messages), meta={"task": task, **meta})


def test_pairs_repetitions_and_labels() -> None:
    """Repeated runs are their mean, the first two before are the floor, and a task on one side alone is named."""
    before = [talk("a", 4, reward=1.0), talk("a", 6, reward=0.0), talk("b", 10, resolved=True), talk("c", 3)]
    after = [talk("a", 10, reward=1.0), talk("b", 5, resolved=False), talk("d", 3)]
    found = compared(before, after, measures(Prices()))
    assert (found.by, found.tasks, found.runs, found.alone) == ("task", 2, (3, 2), (("c",), ("d",)))
    calls, floor = found.of("calls").change, found.of("calls").floor
    assert not isinstance(calls, Missing)
    assert not isinstance(floor, Missing)
    assert (calls.before, calls.after, floor.before, floor.after) == (15, 15, 4, 6)
    assert solved(found) == (0.75, 0.5)
    given: Labels = ({"a": 1.0, "b": 1.0}, {"a": 0.0, "b": 1.0})
    assert solved(compared(before, after, measures(Prices()), "task", given)) == (1.0, 0.5)
    assert compared(before, after, measures(Prices())).of("cost").change == Missing(
        "undefined", "a call has no recorded usage, or its model no known price"
    )


def solved(found: LiveRuns) -> tuple[object, object]:
    """Return the shares of tasks solved before and after."""
    change = found.of("solved").change
    assert not isinstance(change, Missing)
    return change.before, change.after


def test_how_many_tasks_it_takes() -> None:
    """Log ratios of ± 0.2 have a deviation of 0.2 · √(4/3): (2.8 · 0.2306 / log 1.1)² = 45.9, so 46 tasks."""
    before = [talk(name, 1000) for name in "abcd"]
    after = [talk(name, calls) for name, calls in zip("abcd", (1221, 819, 1221, 819), strict=True)]
    assert compared(before, after, measures(Prices())).of("calls").enough == 46


def test_no_pairs() -> None:
    """Sets without a common task are an error that says how to name what they share."""
    with pytest.raises(RunError, match="no task is on both sides by task or path or id or first: name what"):
        compared([talk("a", 2)], [talk("b", 3)], measures(Prices()))


def test_labels_of_a_file(tmp_path: Path) -> None:
    """An object of tasks and a report of SWE-bench are read; anything else is an error with the file's name."""
    file = tmp_path / "labels.json"
    file.write_text('{"resolved_ids": ["a"], "unresolved_ids": ["b"], "total": 2}')
    assert labels(file) == {"a": 1, "b": 0}
    file.write_text('{"a": true, "b": 0.5}')
    assert labels(file) == {"a": 1, "b": 0.5}
    file.write_text('{"a": "yes"}')
    with pytest.raises(RunError, match=r"labels.json: .*write \{task: true or false\}"):
        labels(file)
