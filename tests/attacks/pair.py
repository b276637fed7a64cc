"""Two processes that do a job on one path at once. No test module, since the processes import it by its name."""

import hashlib
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from threading import Barrier

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.invariants import steps
from ctxbench.scenarios.errors import RunError
from ctxbench.strategies.chain import parse
from tests.harness.runs import plan
from tests.strategies.tool_results import LONG, asking, conversation

WAIT = 60.0


def make_run(path: Path) -> str:
    """Run a plan into a folder."""
    return execute(plan(path.parent / "some.jsonl", strategies=("none", "archive(threshold=100)")), path).digest


def read_run(path: Path) -> str:
    """Read a folder that may not be complete yet."""
    return f"read {len(list(load(path).conversations()))}"


def replay_archive(path: Path) -> str:
    """Replay a conversation under `archive`, and return the digest of all that was sent."""
    talk = conversation(
        asking(1, "when?", "gate", LONG[:4000], time=1e9),
        asking(2, "and now?", "hall", LONG[:4100], time=2e9),
        asking(3, "what did you say earlier about the gate?", "x", "short", time=3e9),
    )
    strategy = parse(f"archive(threshold=1000, store='{path}', trigger='hybrid', wait={WAIT}, fresh=False)")
    digest = hashlib.sha256()
    for step in steps(strategy, talk):
        for message in step.context.messages:
            digest.update(f"{message.id} {message.text}\n".encode())
    return digest.hexdigest()


def serve(pipe: Connection, barrier: Barrier) -> None:
    """Do one job after the other, each at the same moment as the other process, until there are no more."""
    while (order := pipe.recv()) is not None:
        job, path, delay = order
        barrier.wait(WAIT)
        time.sleep(delay)
        try:
            pipe.send(job(path))
        except RunError as error:
            pipe.send(f"refused: {error}")
        except Exception as error:
            pipe.send(f"escaped: {type(error).__name__}: {error}")


Jobs = tuple[Callable[[Path], str], Callable[[Path], str]]
Both = Callable[[Jobs, Path, Random], list[str]]


@contextmanager
def pair() -> Iterator[Both]:
    """Start two processes, and yield a function that has both do a job on one path at once."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([__name__])  # what takes seconds is imported once
    barrier, ends = server.Barrier(2), [server.Pipe() for _ in range(2)]
    workers = [server.Process(target=serve, args=(theirs, barrier), daemon=True) for _, theirs in ends]
    for worker in workers:
        worker.start()

    def do(jobs: Jobs, path: Path, chance: Random) -> list[str]:
        most = chance.choice((0, 0.001, 0.3))
        for (ours, _), job in zip(ends, jobs, strict=True):
            ours.send((job, path, chance.uniform(0, most)))
        assert all(ours.poll(WAIT) for ours, _ in ends), "a process does not answer"
        return [ours.recv() for ours, _ in ends]

    yield do
    for worker in workers:
        worker.kill()
        worker.join(WAIT)
