"""Live runs of the same tasks: what a scripted agent reads again is found, counted and priced; pairs are by hand."""

import json
import re
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from msgspec.structs import replace

from ctxbench import compare_live
from ctxbench.harness.export.bench import bench
from ctxbench.harness.folder.run import load
from ctxbench.harness.live import LiveRuns, compared, read_labels, read_task_runs, task_runs, with_replay
from ctxbench.metrics.prices import BUNDLED
from ctxbench.metrics.statistics.comparison import Difference
from ctxbench.metrics.value import Missing
from ctxbench.reports.live import live_headline, live_tables
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Call, Compaction, Conversation, Iteration, Message, Usage
from tests.harness.command import ctxbench
from tests.live_agent import FILES, MASKED, write


def test_what_a_live_agent_reads_again(tmp_path: Path) -> None:
    """Masking spares 40 % of the tokens and costs more: the agent reads each file again, and replay could not know."""
    write(tmp_path, 15)
    run = tmp_path / "run"
    done = ctxbench("live", "before", "after", "-s", MASKED, "--out", run, "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    calls, again, tokens, bill = (found["measures"][key] for key in ("calls", "repeated", "input", "cost"))
    assert (calls["before"], calls["after"]) == (2 * FILES + 1, 3 * FILES + 1)
    assert (again["before"], again["after"]) == (0, FILES)
    assert tokens["change"]["value"] < -0.35
    assert bill["change"]["shown"]["low"] > 0, "dearer for certain, though a call costs less"
    said, live = found["replay"]["cost_call"]
    assert said < live < 1, "replay promised more than there was: its calls need no second reading"
    assert bench(load(run)).live["live/cost/change"] == bill["change"]["value"], "what MLflow logs"
    assert "the run is in " in done.stderr
    assert f"ctxbench report {run}" in done.stderr
    ctxbench("report", run, cwd=tmp_path)
    with (tmp_path / "after" / "task-00.jsonl").open("a") as file:
        file.write("{\n")
    with pytest.warns(UserWarning, match=r"left out: .*task-00\.jsonl"):
        in_python = compare_live(tmp_path / "before", tmp_path / "after")
    assert in_python.headline.startswith("After, the agent costs more (15 tasks live): bill +")
    assert in_python.figures.low["cost"] == bill["change"]["shown"]["low"]
    assert in_python.figures.loc["calls", "tasks_needed"] != in_python.figures.loc["calls", "tasks_needed"], "unknown"
    assert "What did a live agent do with less?" in (run / "report/report.html").read_text("utf-8")


def talk(task: str, *said: Message, calls: int = 0, **meta: str | float | bool) -> Conversation:
    """A run of a task with some answers."""
    answers = [Message(f"a{at}", "assistant", "Well.") for at in range(calls)]
    return Conversation(
        f"{task}-{calls}", (Message("u", "user", f"Do {task}."), *answers, *said), meta={"task": task, **meta}
    )


def live(before: list[Conversation], after: list[Conversation], *labels: dict[str, float], **how: Any) -> LiveRuns:
    sides = zip((before, after), labels or (None, None), strict=True)
    return compared(*(task_runs(side, BUNDLED, labels=of_side) for side, of_side in sides), **how)


def test_pairs_repetitions_and_labels() -> None:
    """Repeated runs are their mean, the first two before are the floor, and a run of another task is named."""
    before = [talk("a", calls=4, reward=1.0), talk("a", calls=6, reward=0.0), talk("b", calls=10, resolved=True)]
    after = [talk("a", calls=10, reward=1.0), talk("b", calls=5, resolved=False), talk("d", calls=3)]
    found = live(before, after)
    assert (found.by, found.tasks, found.alone) == ("task", 2, ((), ("d-3",)))
    calls, solved = found.measures["calls"], found.measures["solved"]
    assert (calls.before, calls.after, solved.before, solved.after) == (7.5, 7.5, 0.75, 0.5)
    assert isinstance(calls.equal_runs, Difference)
    assert (calls.equal_runs.before, calls.equal_runs.after) == (4, 6)
    solved = live(before, after, {"a": 1.0, "b": 1.0}, {"a": 0.0, "b-5": 1.0}).measures["solved"]
    assert (solved.before, solved.after) == (1.0, 0.5)
    assert live_headline(found).endswith("; left out: 1 run only after")
    notes = " ".join(live_tables(found)[0].notes)
    assert "Only after, and left out: 1 run (d-3). Not known: prompt tokens, " in notes


def test_what_is_billed() -> None:
    """Every request counts: those of one call, of an agent that the run started, of a summary; a copied call does not.

    1,000 tokens in for gpt-4o cost $0.0025: two before; after two of a call, one of the agent, and one of a summary.
    """
    usage = Usage(input=1000, output=0)

    def answer(name: str, **call: Any) -> Message:
        return Message(name, "assistant", "So.", call=Call("gpt-4o", **call))

    one = talk("a", answer("x", usage=usage), answer("y", usage=usage))
    twice = answer("x", usage=usage, iterations=(Iteration(usage), Iteration(usage)))
    summary = Compaction("x", "Short.", call=Call("gpt-4o", usage=usage))
    said = talk("a", twice, answer("y", copied=True)).messages
    main = Conversation("main", said, compactions=(summary,), meta={"task": "a"})
    found = live([one], [main, Conversation("other", one.messages[:2], meta={"parent": "main"})]).measures
    assert (found["cost"].before, found["cost"].after) == pytest.approx((0.005, 0.01))
    assert (found["calls"].before, found["calls"].after, found["input"].after) == (2, 2, 4000)
    # A bill of a call is over the calls of the runs that are billed; without output it is not known.
    again = talk("a", answer("z"), calls=7)
    assert live([one, again], [one]).measures["cost_call"].before == 0.0025
    assert isinstance(live([talk("a", answer("z", usage=Usage(1000)))], [one]).measures["cost"].change, Missing)
    assert live([talk("a")], [one]).measures["cost"].change == Missing("undefined", "there was none before")


def test_what_is_one_run() -> None:
    """An agent belongs to the run that it is recorded beside, a task to its domain, a label to its run."""

    def run(name: str, source: str, calls: int, **meta: str) -> Conversation:
        return replace(talk("0", calls=calls, **meta), id=name, source=source)

    runs = [run("x", "1/x:1", 2), run("x~2", "2/x:1", 2), run("x/agent", "2/x:2", 1, parent="x")]
    rows = task_runs(runs, BUNDLED, labels={"x": 1.0, "x~2": 0.0})
    assert list(zip(rows.conversation, rows.calls, rows.solved, strict=True)) == [("x", 2, 1), ("x~2", 3, 0)]
    sample = [run("t/a", "1", 2), run("t/a.2", "1", 1), run("t/a.2~2", "2", 3)]  # Inspect's, two epochs
    rows = task_runs([replace(of, meta={**of.meta, "task": "t"}) for of in sample], BUNDLED)
    assert list(zip(rows.task, rows.calls, strict=True)) == [("t/a", 3), ("t/a", 3)]
    assert live([talk("0", domain="air"), talk("0", domain="shop")], [talk("0", domain="air")]).tasks == 1


def test_replay_of_what_failed() -> None:
    """Replay says nothing of recordings in which the strategy failed, or whose own calls have no known price."""
    runs = task_runs([talk("a", calls=2)], BUNDLED)
    bills = {"conversation": "a-2", "strategy": ["none", "own"], "tokens": 9, "cost": 1.0, "cost_own": [0.0, nan]}
    assert with_replay(compared(runs, runs), runs, pd.DataFrame(bills), "own").replay == {}


@pytest.mark.parametrize(
    ("ids", "said", "task", "by"),
    [("xy", ("Do.", "Do."), "", "first"), ("xx", ("Now.", "Then."), "", "id"), (["x/1"] * 2, ("1", "2"), "x", "task")],
)
def test_ways_to_pair(ids: str, said: tuple[str, str], task: str, by: str) -> None:
    """Tasks without names of their own are paired by the message that begins them, else by id; Inspect's by sample."""
    talks = [
        Conversation(name, (Message("u", "user", text),), meta={"task": task})
        for name, text in zip(ids, said, strict=True)
    ]
    found = live(talks[:1], talks[1:])
    assert (found.by, found.tasks, found.unlike) == (by, 1, by != "first")


def test_how_many_tasks_it_takes() -> None:
    """Log ratios of ± 0.2 have a deviation of 0.2 · √(4/3): (2.8 · 0.2306 / log 1.1)² = 45.9, so 46 tasks.

    Where no success changed, ten points are still one task in ten: 2.8² · (0.1 − 0.01) / 0.01 = 70.6.
    """
    before = [talk(name, calls=1000, success=True) for name in "abcd"]
    after = [talk(name, calls=calls, success=True) for name, calls in zip("abcd", (1221, 819) * 2, strict=True)]
    found = live(before, after).measures
    assert (found["calls"].needed, found["solved"].needed) == (46, 71)
    assert live(before, after, wanted=0.2).measures["calls"].needed == 15, "no interval stands on fewer"


def test_the_same_recordings_on_both_sides() -> None:
    """The headline says that a folder was named twice, a note how many tasks are the same, and no tasks are asked for
    where nothing varies."""
    one, other = [talk(name, calls=4) for name in "abc"], [talk(name, calls=5) for name in "abc"]
    found = live(one, one)
    assert live_headline(found) == "Before and after are the same recordings of 3 tasks: there is nothing to compare"
    assert found.measures["calls"].needed == Missing("undefined", "nothing varies between the tasks")
    notes = " ".join(live_tables(live(one, [*one[:1], *other[1:]]))[0].notes)
    assert "1 of 3 tasks have the same recordings before and after" in notes
    assert "same recordings" not in " ".join(live_tables(live(one, other))[0].notes)


@pytest.mark.parametrize(
    ("after", "title"),
    [
        ([1100] * 16, "After, the agent costs more (16 tasks live): bill +10.0 %,"),
        ([900] * 16, "After, the agent costs less (16 tasks live): bill −10.0 %,"),
        ([1100, 900] * 8, "After, the agent may cost more or less (16 tasks live): bill 0.0 % "),
        ([1100] * 3, "After, the agent may cost more or less (3 tasks live): bill +10.0 % ["),
        ([None] * 3, "After, the agent has no known bill (3 tasks live): model calls 0.0 "),
    ],
)
def test_the_title_judges_the_bill(after: list[int | None], title: str) -> None:
    """It goes by the interval, never by the point; the table says whether there is any, and whose prices it has."""

    def runs(tokens: list[int | None]) -> list[Conversation]:
        usage = [None if of is None else Call("gpt-4o", usage=Usage(of, 0)) for of in tokens]
        return [talk(f"{at}", Message("x", "assistant", "So.", call=of)) for at, of in enumerate(usage)]

    found = live(runs([1000] * len(after)), runs(after))
    assert live_headline(found).startswith(title)
    table = live_tables(found)[0]
    assert ("change (95 %)" in table.heads) is (len(after) > 3)
    assert any(note.endswith("recordings name it: gpt-4o.") for note in table.notes) is (after[0] is not None)


def test_bad_input(tmp_path: Path) -> None:
    """Sets without a common task, and labels of other tasks or of no form that is known, say what to do."""
    one, other = (replace(talk(name), source=f"logs/{name}.jsonl:1") for name in "ab")
    has = "'a-0' (a.jsonl), 'Do a.' and 'b-0' (b.jsonl), 'Do b.'"
    with pytest.raises(RunError, match=rf"begin with {re.escape(has)}: give recordings of the same tasks, or say with"):
        live([one], [other])
    with pytest.raises(RunError, match=r"begin with 'a-0', 'Do a.' and 'b-0', 'Do b.': give"):
        live([talk("a")], [talk("b")])
    with pytest.raises(RunError, match=r"--success: .* names 'z', the recordings 'a-0': name them alike"):
        live([talk("a")], [talk("a")], {"z": 1.0}, {"a": 1.0})
    with pytest.raises(RunError, match=r"^nowhere: there is no such file or folder$"):
        read_task_runs(Path("nowhere"), None, None, print)
    file = tmp_path / "labels.json"
    file.write_text('{"resolved_ids": ["a"], "unresolved_ids": ["b"], "total": 2}')
    assert read_labels(file) == {"a": 1, "b": 0}
    file.write_text('{"a": "yes"}')
    with pytest.raises(RunError, match=r"labels.json: .*write \{task: true or false\}"):
        read_labels(file)
