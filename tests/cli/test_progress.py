"""What a run says of how far it is."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from ctxbench.cli import progress
from ctxbench.cli.progress import ProgressCounts, watching
from ctxbench.harness.engine.plan import execute
from tests.builders import talk
from tests.harness.runs import plan, recording

TALK = talk(*[("user", "a"), ("assistant", "b")] * 5)


def shares(size: int, read: list[int], shard: int = 2) -> list[int | None]:
    """The share of the work done, in percent, before each shard is done and at the end; with the bytes read by each."""
    counts, found = ProgressCounts(), []
    counts.begin(size, 1)
    for at, consumed in enumerate(read, 1):
        counts.read(TALK, consumed)
        if at % shard == 0:
            counts.measured(shard * len(TALK.messages), 1)
            found.append(None if counts.share is None else int(counts.share * 100))
    counts.all_read()
    assert counts.share == 1
    return found


def test_the_share_is_of_the_work() -> None:
    """Line by line it is that of the bytes; in a file that is read as a whole it is not known until all is read."""
    assert shares(80, [10, 20, 30, 40, 50, 60, 70, 80]) == [25, 50, 75, 98]
    assert shares(80, [80] * 8) == [None] * 4
    assert shares(0, [0] * 4) == [None, None]
    assert shares(80, [40] * 4 + [80] * 4) == [None, None, 75, 98]  # two files, each read as a whole


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line at every change."""
    monkeypatch.setattr(progress, "EVERY", 0)


@pytest.mark.usefixtures("talkative", "small_shards")
@pytest.mark.parametrize("jobs", [1, 2])
def test_the_last_line_is_the_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str], jobs: int) -> None:
    """Nothing says 100 % before all is done, and the last line says it, with all conversations and steps."""
    path = recording(tmp_path, conversations=7)
    with watching() as watcher:
        execute(plan(path), tmp_path / "r", jobs=jobs, watcher=watcher)
    *lines, last = capsys.readouterr().err.splitlines()
    assert last.startswith("100% 7 conversations, 504 steps, ")
    assert len(lines) > 7
    assert not [line for line in lines if line.startswith("100%")]


def test_a_terminal_shows_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar, the counts and the times stand on one line, which goes when the run is over."""
    terminal = Console(file=StringIO(), force_terminal=True, width=100, height=20)
    monkeypatch.setattr(progress, "Console", lambda **_: terminal)
    with watching() as watcher:
        execute(plan(recording(tmp_path), strategies=("none", "last_turn")), tmp_path / "r", watcher=watcher)
    assert "conversations" in terminal.file.getvalue()  # type: ignore[attr-defined]
