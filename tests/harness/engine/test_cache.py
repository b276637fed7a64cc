"""A run that grows, and what is found again in the cache: the same bytes as a run made at once, and less work."""

import json
import shutil
import sqlite3
from pathlib import Path
from random import Random

import pytest

from ctxbench.harness import cache
from ctxbench.harness.engine import plan as engine
from ctxbench.harness.engine import shard
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.models import Settings
from ctxbench.scenarios import files
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Probe
from ctxbench.strategies.bounds import LastTurn
from ctxbench.strategies.window import Window
from tests.builders import talk
from tests.harness.command import ctxbench
from tests.harness.runs import STRATEGIES, bytes_of, fail, plan, recording


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a cache of its own."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The conversations that are replayed, with the strategy's type: a list that grows."""
    done, replayed = list[str](), shard._replayed

    def counted(index: shard.ConversationIndex, strategy: object, *rest: object, **more: object) -> shard.Outcome:
        done.append(f"{index.conversation.id} {type(strategy).__name__}")
        return replayed(index, strategy, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(shard, "_replayed", counted)
    return done


def two_recordings(folder: Path) -> tuple[Path, Path]:
    """Two files of conversations, of which some are asked."""
    first = recording(folder, conversations=8)
    first.rename(folder / "first.jsonl")
    asked = talk(("user", "The code is 4711."), ("assistant", "Noted."), ("user", "And now?"), ("assistant", "Go on."))
    probe = Probe("q", "What is the code?", ("4711",), after=asked.messages[-1].id, evidence=(asked.messages[0].id,))
    asked = type(asked)("asked", asked.messages, probes=(probe,))
    (folder / "second.jsonl").write_bytes(asked.to_json() + b"\n")
    return folder / "first.jsonl", folder / "second.jsonl"


@pytest.mark.parametrize("kept", ["off", ""])
def test_a_run_that_grew_is_the_run_made_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch, kept: str) -> None:
    """More recordings, then strategies, of which one was a bound: every byte is the same, with a cache and without."""
    if kept:
        monkeypatch.setenv(cache.VARIABLE, kept)
    first, second = two_recordings(folder)
    execute(plan(first, strategies=STRATEGIES[:1]), folder / "grown")
    execute(plan(first, second, strategies=STRATEGIES[:1]), folder / "grown")
    execute(plan(first, second, strategies=("last_turn", "summary(every=2)")), folder / "grown", jobs=2)
    monkeypatch.setenv(cache.VARIABLE, "off")
    execute(plan(first, second, strategies=(STRATEGIES[0], "last_turn", "summary(every=2)")), folder / "whole")
    assert bytes_of(folder / "grown") == bytes_of(folder / "whole")


def test_only_what_is_missing_is_replayed(folder: Path, replays: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """In another folder, of a changed file, and after one more strategy, that alone is replayed which is new."""
    monkeypatch.setattr(shard, "UNIT_MESSAGES", 100)
    first, second = two_recordings(folder)
    execute(plan(first), folder / "a")
    replays.clear()
    execute(plan(first, second), folder / "b")
    assert {line.split()[0] for line in replays} == {"c6", "c7", "asked"}  # a unit has three; the last was not full
    replays.clear()
    execute(plan(first, second, strategies=("none", "window(max_tokens=300)")), folder / "b")
    assert {line.split()[1] for line in replays} == {"Window"}
    replays.clear()
    lines = first.read_bytes().splitlines(keepends=True)
    first.write_bytes(b"".join([*lines[:4], lines[4].replace(b"question 4 0", b"a question"), *lines[5:]]))
    execute(plan(first, second, strategies=("none",)), folder / "b")
    assert {line.split()[0] for line in replays} == {"c3", "c4", "c5"}


def test_a_changed_line_of_ours_changes_every_key(folder: Path, replays: list[str], tmp_path: Path) -> None:
    """With another digit in the code of a metric nothing is found, and with the code as it was all of it is."""
    path = recording(folder, conversations=2)
    execute(plan(path), folder / "a")
    rooms = [Path(shutil.copytree(room, tmp_path / room.name)) for room in files.ROOMS]
    metric = next(room for room in rooms if room.name == "metrics") / "grounding.py"
    metric.write_text(metric.read_text("utf-8") + "\nX = 1\n", "utf-8")
    replays.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "ROOMS", rooms)
        files.code_digest.cache_clear()
        execute(plan(path), folder / "b")
        assert replays
    files.code_digest.cache_clear()
    replays.clear()
    execute(plan(path), folder / "c")
    assert not replays


def test_nothing_of_other_code_is_kept(folder: Path, replays: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A strategy of a file, which may read what it likes, is replayed in each run; in a run its change is seen."""
    monkeypatch.chdir(folder)
    (folder / "mine.py").write_text("def newest(messages):\n    return messages[-1:]\n")
    path = recording(folder, conversations=2)
    execute(plan(path, strategies=("mine.py:newest", "none")), folder / "a")
    before = bytes_of(folder / "a")
    replays.clear()
    execute(plan(path, strategies=("mine.py:newest", "none")), folder / "b")
    assert {line.split()[1] for line in replays} == {"newest"}
    (folder / "mine.py").write_text("def newest(messages):\n    return messages[-2:]\n")
    manifest = execute(plan(path, strategies=("mine.py:newest",)), folder / "a")
    assert [text.partition("@")[0] for text in manifest.plan.strategies] == ["mine.py:newest", "none"]
    assert bytes_of(folder / "a")["steps/00000-000.parquet"] != before["steps/00000-000.parquet"]


def test_what_failed_is_tried_again(folder: Path, replays: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A strategy that raised in a conversation is not taken from the cache."""
    path = recording(folder, conversations=2)
    with monkeypatch.context() as patch:
        fail(patch, Window, "question 0")
        execute(plan(path, strategies=("window(max_tokens=400)",)), folder / "a")
    replays.clear()
    execute(plan(path, strategies=("window(max_tokens=400)",)), folder / "b")
    assert replays


def test_under_another_model_only_what_it_has_a_say_in_is_replayed(folder: Path, replays: list[str]) -> None:
    """A summary of the offline model is not one of another, and what that replied is for the cassette to keep."""
    path, strategies = recording(folder, conversations=1), ("none", "summary(every=2)")
    execute(plan(path, strategies=strategies), folder / "a")
    models = Settings(summariser="openai/gpt-4o-mini", replay=True)
    for name in "bc":
        replays.clear()
        execute(plan(path, strategies=strategies, models=models), folder / name)
        assert {line.split()[1] for line in replays} == {"Summary"}


def test_a_damaged_cache_is_no_loss(folder: Path, replays: list[str]) -> None:
    """Flipped bits are not believed, and a file that is no database is replaced: the run has the same bytes."""
    path, file = recording(folder, conversations=2), folder / "cache" / "results.sqlite"
    execute(plan(path), folder / "a")
    with sqlite3.connect(file) as database:
        database.execute("UPDATE value SET data = substr(data, 1, 20) || x'00' || substr(data, 22)")
    replays.clear()
    cache._opened.cache_clear()
    execute(plan(path), folder / "b")
    assert replays
    cache._opened.cache_clear()
    for name in folder.glob("cache/*"):
        name.write_bytes(b"no database at all, and longer than its head is" * 100)
    execute(plan(path), folder / "c")
    assert bytes_of(folder / "a") == bytes_of(folder / "b") == bytes_of(folder / "c")
    assert not file.exists()


def test_the_command_says_what_it_removed(folder: Path) -> None:
    """`ctxbench cache --clear` removes all there is, and says how much that was; again it is nothing."""
    execute(plan(recording(folder, conversations=2)), folder / "a")
    kept = json.loads(ctxbench("cache", "--json", cwd=folder).stdout)
    assert kept["bytes"] > 0
    cleared = json.loads(ctxbench("cache", "--clear", "--json", cwd=folder).stdout)
    assert cleared == {**kept, "bytes": 0, "removed": kept["bytes"]}
    assert "0.0 MB removed" in ctxbench("cache", "--clear", cwd=folder).stdout


def test_the_cache_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past its size what was not asked for longest goes, and what is new stays."""
    store = cache.ResultCache(folder / "cache" / "some.sqlite")
    monkeypatch.setattr(cache, "LARGEST", 1 << 20)
    for number in range(40):
        monkeypatch.setattr(cache, "time", lambda number=number: float(number))
        store.put({cache.key(str(number)): Random(number).randbytes(100_000)})
    assert store.size() <= 1 << 20
    assert store.get(cache.key("0")) is None
    assert store.get(cache.key("39")) == Random(39).randbytes(100_000)


def test_a_cache_that_is_held_is_waited_for_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After that it is as good as none; so is that of a user without a home."""
    file = folder / "some.sqlite"
    store, other = cache.ResultCache(file), sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store._open.execute("PRAGMA busy_timeout=1")  # type: ignore[union-attr]
    store.put({b"a": b"b"})
    assert store._open is None
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: Path("~nobody-of-this-name").expanduser())
    assert cache.path() is None


def test_a_run_does_not_grow_over_other_packages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run by another version of a library is not grown, also if its strategy is not named again."""
    path = recording(folder, conversations=1)
    for version in "12":
        found = {"last_turn": f"some {version}"}
        monkeypatch.setattr(engine, "packages", lambda of, found=found: found if isinstance(of, LastTurn) else {})
        if version == "1":
            execute(plan(path, strategies=("last_turn",)), folder / "a")
    with pytest.raises(RunError, match="differs in strategy last_turn"):
        execute(plan(path, strategies=("none",)), folder / "a")


def test_a_run_of_other_recordings_is_not_lost(folder: Path) -> None:
    """A folder has no place for the run of another file, unless the first one is named as well."""
    first, second = two_recordings(folder)
    execute(plan(first), folder / "a")
    with pytest.raises(RunError, match=r"holds a run of .*first.jsonl: name that as well"):
        execute(plan(second), folder / "a")
