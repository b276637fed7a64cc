"""Workers: none outlives the run that started it."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing import popen_forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from ctxbench.harness.engine import workers
from ctxbench.harness.engine.workers import side_by_side
from ctxbench.scenarios.errors import RunError
from tests.harness.command import ctxbench, said
from tests.harness.runs import recording

POOL = """
import os, time
from ctxbench.harness.engine.workers import _executor

if __name__ == "__main__":
    pools = [_executor("ctxbench.harness.engine.shard", 1) for _ in range(2)]
    print(*{pool.submit(os.getpid).result() for pool in pools}, flush=True)
    time.sleep(60)
"""


def lives(pid: int) -> bool:
    """Whether a process is there and is not only waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    """When the parent is killed outright, its workers end too."""
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        workers = [int(word) for word in process.stdout.readline().split()]
        assert all(map(lives, workers))
        process.send_signal(signal.SIGKILL)
        process.wait()
    for _ in range(200):
        if not any(map(lives, workers)):
            return
        time.sleep(0.05)
    pytest.fail(f"still there: {[pid for pid in workers if lives(pid)]}")


PLUG_IN = """
import ctypes, os, signal
from dataclasses import dataclass

@dataclass(frozen=True)
class Ends:
    by: int = 7

    def start(self, services):
        if self.by < 0:
            os.kill(os.getpid(), -self.by)
        ctypes.CDLL(None)._exit(self.by)  # past os._exit, by which a strategy fails
"""


@pytest.mark.parametrize(
    ("by", "why"),
    [
        (7, "a worker ended with exit code 7, as when a library ends its process"),
        (-signal.SIGKILL, "a worker was ended by SIGKILL, perhaps for want of memory"),
        (-signal.SIGSEGV, "a worker crashed (SIGSEGV), in a strategy or in a library that it uses"),
    ],
)
def test_a_worker_that_dies(tmp_path: Path, by: int, why: str) -> None:
    """It is said what it died of, in one line, and that what is finished is kept."""
    recording(tmp_path, conversations=3)
    (tmp_path / "plug.py").write_text(PLUG_IN)
    done = ctxbench(
        "run", "some.jsonl", "-s", f"plug.py:Ends(by={int(by)})", "--jobs", 2, "-o", "r", cwd=tmp_path, code=2
    )
    [line] = said(done.stderr)
    assert line.startswith(f"error: {why}")
    assert "what is finished is kept" in line


def test_a_worker_that_is_killed_while_another_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends in one line: the pool would wait for the other, which it knows of too late to end it."""
    first = list[int]()
    start, launched = popen_forkserver.forkserver.connect_to_new_process, popen_forkserver.Popen._launch

    def slowly(files: list[int]) -> tuple[int, int]:
        if first:
            os.kill(first[0], signal.SIGKILL)
            time.sleep(0.5)
        return start(files)

    def launch(self: popen_forkserver.Popen, process: BaseProcess) -> None:
        launched(self, process)
        first.append(self.pid)

    monkeypatch.setattr(popen_forkserver.forkserver, "connect_to_new_process", slowly)
    monkeypatch.setattr(popen_forkserver.Popen, "_launch", launch)
    with pytest.raises(RunError, match="a worker was ended by SIGKILL"):
        side_by_side(time.sleep, [1, 1], 2, print)  # type: ignore[arg-type, list-item]


def half_a_result(_: bytes) -> None:
    """End as a worker that is killed while it writes a result: its length, and no more."""
    results = sys._getframe(1).f_locals["result_queue"]
    os.write(results._writer.fileno(), (1000).to_bytes(4, "big"))
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_while_it_writes_a_result() -> None:
    """The run ends in one line: the pool would wait for the rest of the result."""
    with pytest.raises(RunError, match="a worker was ended by SIGKILL"):
        side_by_side(half_a_result, [b"one"], 2, print)


def deaf(piece: bytes) -> None:
    """Ignore SIGTERM and go on, or be killed beside a worker that does."""
    path = Path(os.fsdecode(piece.removesuffix(b"!")))
    if piece.endswith(b"!"):
        while not path.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGSEGV)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    path.touch()
    time.sleep(30)
    path.write_text("not killed")


def test_a_worker_that_ignores_sigterm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed, and the run ends with what the other died of: the pool would wait for it."""
    monkeypatch.setattr(workers, "PATIENCE", 0.2)
    path = os.fsencode(tmp_path / "deaf")
    with pytest.raises(RunError, match="a worker crashed"):
        side_by_side(deaf, [path, path + b"!"], 2, print)
    assert not (tmp_path / "deaf").read_text()
