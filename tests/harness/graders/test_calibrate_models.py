"""`ctxbench lab calibrate` with a grader that asks a model: Ctrl-C, and how it goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.command import CTXBENCH, ctxbench
from tests.harness.graders.test_calibrate_command import written
from tests.harness.models.server import Server, serving

pytestmark = pytest.mark.slow
GRADER = ("-g", "llm(model='openai/m')")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with serving() as found:
        yield found


def words(server: Server, *more: object) -> list[str]:
    fixed = ("lab", "calibrate", "mine.jsonl", "-o", "kept", "--cassette", "c.sqlite")
    return [*map(str, fixed), *map(str, more)]


def test_stopped_half_way(tmp_path: Path, server: Server) -> None:
    """Ctrl-C ends it with a line that says how to go on; what was graded is not asked for again."""
    written(tmp_path, 60)
    server.text, server.pause = '{"reason": "same", "verdict": "CORRECT"}', 0.02
    command = [CTXBENCH, *words(server, *GRADER)]

    def hear() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear
    ) as process:
        while len(server.seen) < 40:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert not out
    assert "stopped; replies of models are in c.sqlite. To continue: " in err
    assert "Traceback" not in err
    before = len(server.seen)
    server.pause = 0.0
    ctxbench(*words(server, *GRADER), cwd=tmp_path)
    different = len({json.dumps(each["messages"]) for each in server.seen})
    assert before < len(server.seen) <= different + 8  # what was under way is asked again
