"""A run: killed and resumed, with any number of workers, with bad input among good, into any folder."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ctxbench.harness.inputs import Inputs
from ctxbench.harness.load import load
from ctxbench.harness.run import Plan, execute
from ctxbench.scenarios.errors import RecordingError, RunError
from ctxbench.scenarios.model import Conversation

from tests.making import answering, calling, talk

STRATEGIES = ("none", "window(max_tokens=400)", "last_turn")


def recording(folder: Path, conversations: int = 40, turns: int = 12) -> Path:
    """A JSONL file of conversations, each a little different."""
    path = folder / "some.jsonl"
    with path.open("wb") as file:
        for number in range(conversations):
            said = talk(("system", "You help."))
            messages = list(said.messages)
            for turn in range(turns):
                messages += [
                    talk(("user", f"question {number} {turn}"), name="x").messages[0],
                    calling("c", f"call{turn}"),
                    answering("r", f"call{turn}", f"result {number * turn} " * 20),
                    talk(("assistant", f"answer {turn}")).messages[0],
                ]
            named = tuple(_named(each, f"m{at}") for at, each in enumerate(messages))
            file.write(Conversation(f"c{number}", named).to_json() + b"\n")
    return path


def _named(message: object, name: str) -> object:
    import msgspec

    return msgspec.structs.replace(message, id=name)  # type: ignore[type-var]


def bytes_of(folder: Path) -> dict[str, str]:
    """A digest of every file of a run but the timings."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and "timings" not in path.parts]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def plan(*names: object, strategies: tuple[str, ...] = STRATEGIES) -> Plan:
    return Plan(Inputs(tuple(map(str, names))), strategies)


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of three conversations, so that small runs have many parts."""
    monkeypatch.setattr("ctxbench.harness.run.SHARD_CONVERSATIONS", 3)


def test_workers_change_nothing(tmp_path: Path, small_shards: None) -> None:
    """One process and three workers write the same bytes."""
    path = recording(tmp_path)
    execute(plan(path), tmp_path / "one", jobs=1)
    execute(plan(path), tmp_path / "three", jobs=3)
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "three")


def test_running_again_changes_nothing(tmp_path: Path) -> None:
    """A finished run given again is left as it is, and one asked to be replaced comes out the same."""
    path = recording(tmp_path)
    execute(plan(path), tmp_path / "run")
    before = bytes_of(tmp_path / "run")
    execute(plan(path), tmp_path / "run")
    assert bytes_of(tmp_path / "run") == before
    execute(plan(path), tmp_path / "run", overwrite=True)
    assert bytes_of(tmp_path / "run") == before


SLOW = """
import sys, time
from pathlib import Path
import ctxbench.harness.run as run, ctxbench.harness.store as store
from ctxbench.harness.inputs import Inputs
run.SHARD_CONVERSATIONS = 2
write = store.Part.write
def slow(self, *rest):
    time.sleep(0.004)
    write(self, *rest)
store.Part.write = slow
print("ready", flush=True)
run.execute(run.Plan(Inputs((sys.argv[1],)), ("none", "window(max_tokens=400)", "last_turn")), Path(sys.argv[2]))
"""


def test_killed_at_twenty_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run killed again and again, at any moment, ends with the bytes of one that was left alone."""
    monkeypatch.setattr("ctxbench.harness.run.SHARD_CONVERSATIONS", 2)
    path = recording(tmp_path, conversations=30)
    execute(plan(path), tmp_path / "whole")
    expected = bytes_of(tmp_path / "whole")
    chance = random.Random(7)
    kills = 0
    while kills < 20:
        out = tmp_path / f"killed{kills}"
        while kills < 20:
            command = [sys.executable, "-c", SLOW, str(path), str(out)]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                process.stdout.readline()
                time.sleep(chance.uniform(0, 0.5))
                process.send_signal(signal.SIGKILL)
                process.wait()
            kills += 1
            if (out / "manifest.json").exists() and json.loads((out / "manifest.json").read_text())["complete"]:
                break
        execute(plan(path), out)
        assert bytes_of(out) == expected


def test_a_changed_recording_is_not_resumed(tmp_path: Path) -> None:
    """If the file is another one when the run goes on, that is said, and nothing is mixed."""
    path = recording(tmp_path)
    execute(plan(path), tmp_path / "run")
    (tmp_path / "run" / "manifest.json").unlink()
    (tmp_path / "run" / "cells").rename(tmp_path / "cells")
    execute_again = plan(recording(tmp_path, turns=5))
    with pytest.raises(RunError, match="is not a run folder and not empty"):
        execute(execute_again, tmp_path / "run")
    (tmp_path / "other").mkdir()
    execute(plan(recording(tmp_path)), tmp_path / "again")
    recording(tmp_path, turns=5)
    with pytest.raises(RunError, match="are not what they were"):
        execute(plan(path), tmp_path / "again")


def test_another_run_is_not_written_over(tmp_path: Path) -> None:
    """A folder with another plan's run is refused, and what differs is named."""
    path = recording(tmp_path)
    execute(plan(path), tmp_path / "run")
    with pytest.raises(RunError, match=r"holds another run \(it differs in strategies\): add --overwrite"):
        execute(plan(path, strategies=("none",)), tmp_path / "run")
    execute(plan(path, strategies=("none",)), tmp_path / "run", overwrite=True)
    assert set(load(tmp_path / "run").table("cells").strategy) == {"none"}


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    """Neither a file nor a folder that holds something else is ever written to."""
    path = recording(tmp_path)
    with pytest.raises(RunError, match="not a run folder and not empty"):
        execute(plan(path), tmp_path)
    with pytest.raises(RunError, match="not a run folder and not empty"):
        execute(plan(path), path, overwrite=True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["some.jsonl"]


def test_no_room_on_the_disk(tmp_path: Path) -> None:
    """A disk that is full ends the run with one line, and what was written stays whole."""
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    path = recording(tmp_path)
    out = tmp_path / "run"

    import ctxbench.harness.store as store

    def full(table: object, where: object, **_: object) -> None:
        with open("/dev/full", "wb") as file:
            file.write(b"x" * 8192)
            file.flush()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.pq, "write_table", full)
        with pytest.raises(RunError, match="No space left on device"):
            execute(plan(path), out)
    assert not list(out.rglob(".*"))
    execute(plan(path), out)
    execute(plan(path), tmp_path / "whole")
    assert bytes_of(out) == bytes_of(tmp_path / "whole")


def test_bad_conversations_are_counted_and_the_rest_runs(tmp_path: Path) -> None:
    """Bad lines among good are named with their line; the good ones are all measured."""
    path = recording(tmp_path, conversations=4)
    lines = path.read_bytes().splitlines()
    lines[1] = lines[1][:100]
    lines[2] = lines[2].replace(b'"role":"system"', b'"role":"sytem"')
    path.write_bytes(b"\n".join(lines) + b"\n")
    manifest = execute(plan(path), tmp_path / "run")
    assert manifest["conversations"] == 2
    assert [(each["line"], each["field"]) for each in manifest["problems"]] == [(2, ""), (3, "messages[0].role")]
    with pytest.raises(RecordingError, match=r"some\.jsonl:2"):
        execute_strict(path, tmp_path / "strict")


def execute_strict(path: Path, out: Path) -> None:
    execute(plan(path), out, strict=True)


def test_a_strategy_that_fails_loses_its_cell_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A strategy that raises on one conversation is failed there, with the reason; every other cell is measured."""
    from ctxbench.strategies import window

    whole = window.Window.start

    def start(self: window.Window, desk: object) -> object:
        view = whole(self, desk)  # type: ignore[arg-type]

        def failing(context: object) -> object:
            if context.messages[1].text.startswith("question 2 "):  # type: ignore[attr-defined]
                raise IndexError("list index out of range")
            return view(context)  # type: ignore[arg-type]

        return failing

    monkeypatch.setattr(window.Window, "start", start)
    path = recording(tmp_path, conversations=4)
    execute(plan(path), tmp_path / "run")
    cells = load(tmp_path / "run").table("cells")
    failed = cells[cells.status == "failed"]
    assert list(zip(failed.conversation, failed.strategy, strict=True)) == [("c2", "window(max_tokens=400)")]
    assert failed.detail.iloc[0].startswith("IndexError: list index out of range (test_run.py:")
    assert (cells.steps[cells.status == "ok"] > 0).all()


def test_an_unfinished_run_is_not_read(tmp_path: Path) -> None:
    """A folder without a manifest, an unfinished and a damaged run are each one clear error."""
    with pytest.raises(RunError, match="no run is here"):
        load(tmp_path)
    path = recording(tmp_path)
    out = tmp_path / "run"
    execute(plan(path), out)
    text = (out / "manifest.json").read_text()
    (out / "manifest.json").write_text(text.replace('"complete": true', '"complete": false'))
    with pytest.raises(RunError, match="not finished"):
        load(out)
    (out / "manifest.json").write_text(text[:40])
    with pytest.raises(RunError, match="damaged"):
        load(out)
    (out / "manifest.json").write_text(text)
    next((out / "steps").iterdir()).write_bytes(b"PAR1")
    with pytest.raises(RunError, match="a part is damaged"):
        load(out).table("steps")


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


def test_a_strategy_that_always_fails_loses_every_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one strategy fails in every conversation, the run ends and the other strategies are measured."""
    from ctxbench.strategies.last_turn import LastTurn

    monkeypatch.setattr(LastTurn, "start", lambda self, desk: lambda context: None)
    execute(plan(recording(tmp_path, conversations=2)), tmp_path / "run")
    cells = load(tmp_path / "run").table("cells")
    assert set(cells.strategy[cells.status == "failed"]) == {"last_turn"}
    assert set(load(tmp_path / "run").table("steps").strategy) == set(STRATEGIES) - {"last_turn"}


def test_overwrite_removes_nothing_but_a_run(tmp_path: Path) -> None:
    """A folder with another program's manifest.json is refused; in a run folder, files of others stay."""
    path = recording(tmp_path, conversations=2)
    (tmp_path / "other" / "messages").mkdir(parents=True)
    (tmp_path / "other" / "manifest.json").write_text('{"name": "an extension"}')
    (tmp_path / "other" / "messages" / "en.json").write_text("{}")
    with pytest.raises(RunError, match="not of a run"):
        execute(plan(path), tmp_path / "other", overwrite=True)
    assert (tmp_path / "other" / "messages" / "en.json").exists()
    execute(plan(path), tmp_path / "run")
    (tmp_path / "run" / "steps" / "notes.txt").write_text("mine")
    execute(plan(path), tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / "steps" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("table", ["recordings", "conversations", "messages", "steps", "timings", "cells"])
def test_a_part_that_is_gone_is_noticed_and_made_again(tmp_path: Path, small_shards: None, table: str) -> None:
    """A run with a part missing is not read; the same command makes the part again."""
    path = recording(tmp_path, conversations=6)
    execute(plan(path), tmp_path / "run")
    whole = bytes_of(tmp_path / "run")
    max((tmp_path / "run" / table).iterdir()).unlink()
    with pytest.raises(RunError, match="1 parts are missing"):
        load(tmp_path / "run")
    execute(plan(path), tmp_path / "run")
    assert bytes_of(tmp_path / "run") == whole


def test_fewer_recordings_leave_no_stale_parts(tmp_path: Path, small_shards: None) -> None:
    """When the end of a recording is gone, so are its parts after the next run."""
    path = recording(tmp_path, conversations=6)
    execute(plan(path), tmp_path / "run")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    assert execute(plan(path), tmp_path / "run")["conversations"] == 3
    execute(plan(path), tmp_path / "small")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "small")


def test_ids_are_unique_over_scenarios_and_files(tmp_path: Path) -> None:
    """The same scenario twice, or beside its converted file, gives every conversation an id of its own."""
    execute(plan("traps", "traps", strategies=("none",)), tmp_path / "run")
    names = load(tmp_path / "run").table("conversations").conversation
    assert names.is_unique
    assert "traps/unicode~2" in set(names)
