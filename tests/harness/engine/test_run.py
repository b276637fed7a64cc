"""A run: bad input among good, strategies that fail, and tables that agree."""

from pathlib import Path

import pytest

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.schema import COLUMNS
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.errors import RecordingError, RunError
from ctxbench.strategies.window import Window
from tests.harness.runs import STRATEGIES, fail, plan, recording


def test_bad_conversations_are_counted_and_the_rest_runs(tmp_path: Path) -> None:
    """Bad lines among good are named with their line; the good ones are all measured."""
    path = recording(tmp_path, conversations=4)
    lines = path.read_bytes().splitlines()
    lines[1] = lines[1][:100]
    lines[2] = lines[2].replace(b'"role":"system"', b'"role":"sytem"')
    path.write_bytes(b"\n".join(lines) + b"\n")
    manifest = execute(plan(path), tmp_path / "run")
    assert manifest.conversations == 2
    assert [(problem.line, problem.field) for problem in manifest.problems] == [(2, ""), (3, "messages[0].role")]
    with pytest.raises(RecordingError, match=r"some\.jsonl:2"):
        execute_strict(path, tmp_path / "strict")


def execute_strict(path: Path, out: Path) -> None:
    execute(plan(path), out, strict=True)


def test_a_strategy_that_fails_loses_its_cell_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A strategy that raises on one conversation is failed there, with the reason; every other cell is measured."""
    fail(monkeypatch, Window, "question 2 ")
    path = recording(tmp_path, conversations=4)
    execute(plan(path), tmp_path / "run")
    cells = load(tmp_path / "run").table("results")
    failed = cells[cells.status == "failed"]
    assert list(zip(failed.conversation, failed.strategy, strict=True)) == [("c2", "window(max_tokens=400)")]
    assert failed.detail.iloc[0].startswith("IndexError: list index out of range (runs.py:")
    assert (cells.steps[cells.status == "ok"] > 0).all()


def test_the_tables_say_what_the_schemas_promise(tmp_path: Path) -> None:
    """Rows match: a step per model call and strategy, a message per recorded message, sums that agree."""
    path = recording(tmp_path, conversations=3)
    execute(plan(path), tmp_path / "run")
    run = load(tmp_path / "run")
    conversations, steps = run.table("conversations"), run.table("steps")
    assert list(conversations.conversation) == ["c0", "c1", "c2"]
    assert len(steps) == conversations.calls.sum() * len(STRATEGIES)
    assert len(run.table("messages")) == conversations.messages.sum()
    assert run.table("messages").tokens.sum() == conversations.tokens.sum()
    none = steps[steps.strategy == "none"]
    assert (none.tokens_sent == none.tokens_full).all()
    assert (steps.tokens_kept <= steps.tokens_sent).all()
    assert run.conversation("c1").id == "c1"
    with pytest.raises(RunError, match="no conversation 'c9'"):
        run.conversation("c9")


def test_names_that_are_not_there(tmp_path: Path) -> None:
    """A strategy or a table that the run has not is one clear error, with the nearest name or all of them."""
    execute(plan(recording(tmp_path, conversations=1)), tmp_path / "run")
    run = load(tmp_path / "run")
    with pytest.raises(RunError, match=r"last_trun was not run here; did you mean 'last_turn'\?"):
        run.contexts(run.conversation("c0"), "last_trun")
    with pytest.raises(RunError, match=r"xyz was not run here; these were: none, window\(max_tokens=400\), last_turn"):
        run.contexts(run.conversation("c0"), "xyz")
    with pytest.raises(RunError, match=r"no table 'step'; did you mean 'steps'\?"):
        run.table("step")
    with pytest.raises(RunError, match=r"no table 'xyz'; it has conversations, messages, steps"):
        run.table("xyz")


@pytest.mark.parametrize("table", COLUMNS)
def test_every_column_says_what_it_means(tmp_path: Path, table: str) -> None:
    """The tables of a run have the columns that `COLUMNS` explains, and no others."""
    execute(plan(recording(tmp_path, conversations=1)), tmp_path / "run")
    assert list(load(tmp_path / "run").table(table)) == list(COLUMNS[table])
    assert all(about.strip() for _, about in COLUMNS[table].values())


def test_ids_are_unique_over_scenarios_and_files(tmp_path: Path) -> None:
    """A scenario beside its converted file gives every conversation an id of its own; named twice it is read once."""
    converted = tmp_path / "traps.jsonl"
    converted.write_bytes(b"\n".join(each.to_json() for each in scenario("traps")))
    manifest = execute(plan("traps", converted, "traps", strategies=("none",)), tmp_path / "run")
    names = load(tmp_path / "run").table("conversations").conversation
    assert names.is_unique
    assert "traps/unicode~2" in set(names)
    assert "traps/unicode~3" not in set(names)
    assert manifest.notes[0] == "traps: named more than once, measured once"
    assert "traps/parallel_tool_calls~2" in manifest.notes[1]
