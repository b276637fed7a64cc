"""`ctxbench lab calibrate` with graders that ask a model: two variants, what they cost, Ctrl-C, replay."""

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
GRADERS = ("-g", "llm(model='openai/m')", "-g", "llm(model='openai/m', variant='lenient')")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with serving() as found:
        yield found


def words(server: Server, *more: object) -> list[str]:
    fixed = ("lab", "calibrate", "mine.jsonl", "-o", "kept", "--cassette", "c.sqlite", "--api-base", server.url)
    return [*map(str, fixed), *map(str, more)]


def test_strict_and_lenient(tmp_path: Path, server: Server) -> None:
    """Both variants are asked, their span is shown; a second run replays all of it, at the same cost."""
    written(tmp_path, 20)
    server.text = '{"reason": "same", "verdict": "CORRECT"}'
    done = ctxbench(*words(server, *GRADERS), cwd=tmp_path)
    assert "mine: strict and lenient" in done.stdout
    assert "without a price" in done.stdout
    asked = len(server.seen)
    assert asked
    first, second = (json.loads(ctxbench(*words(server, *GRADERS, "--json"), cwd=tmp_path).stdout)[0] for _ in range(2))
    assert len(server.seen) == asked
    assert first["graders"] == second["graders"]
    assert [each["cost"]["calls"] for each in first["graders"]] == [60, 60]
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_a_model_that_gives_no_verdict(tmp_path: Path, server: Server) -> None:
    """What it says instead is no grade: nothing is guessed, the reason is shown, and the exit code is 2."""
    written(tmp_path, 5)
    server.text = "It depends."
    done = ctxbench(*words(server, *GRADERS[:2]), cwd=tmp_path, code=2)
    assert "mine: without a grade" in done.stdout
    assert "15 of 15 (100.0 %)" in done.stdout
    assert (
        "error: the grader openai/m gave no usable reply, of 15 asked for: the grader's reply is no verdict"
        in done.stderr
    )


def test_stopped_half_way(tmp_path: Path, server: Server) -> None:
    """Ctrl-C ends it with a line that says how to go on; what was graded is not asked for again."""
    written(tmp_path, 60)
    server.text, server.pause = '{"reason": "same", "verdict": "CORRECT"}', 0.02
    command = [CTXBENCH, *words(server, *GRADERS[:2])]

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
    ctxbench(*words(server, *GRADERS[:2]), cwd=tmp_path)
    different = len({json.dumps(each["messages"]) for each in server.seen})
    assert before < len(server.seen) <= different + 8  # what was under way is asked again
