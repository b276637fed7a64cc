"""Do the tasks of a run in this process, or in several workers side by side.

Workers come from a fork server that has everything imported once. They get tasks as bytes and write their parts
themselves, so that nothing but step counts comes back. At most two tasks per worker are under way: memory does not
grow with the recordings.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from multiprocessing.process import BaseProcess
from threading import Thread, current_thread, main_thread
from types import ModuleType
from typing import TypeVar

import msgspec

from ctxbench.scenarios.errors import RunError
from ctxbench.strategies.adapters.process import Interpreter, interpreters_in_use, use_interpreters

from .schedule import PartSchedule
from .shard import Done, PartTask, PartWriter, do_packed
from .threads import one_thread

T = TypeVar("T")

LEFT_TO_THE_PARENT = {getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)}
"""Signals that a terminal sends to all processes at once. SIGTERM is none: the pool itself ends workers by that."""

SOCKET_ROOM = 104 - len("/pymp-xxxxxxxx/listener-xxxxxxxx") - 1
"""Bytes that the temporary folder may have in the path of the fork server's socket (macOS; 4 more on Linux)."""


Engine = Callable[[Iterable[list[PartTask]], Callable[[Done], None]], None]
"""Does the tasks of all shards, calling a function as each is finished."""


def run_shards(shards: Iterable[list[PartTask]], done: Callable[[Done], None], *, jobs: int = 1) -> None:
    """Do the tasks of all shards, calling `done` as each is finished.

    With one job everything happens in this process. An exception, Ctrl-C among them, ends the workers at once: parts
    that were finished are whole, others are not there.
    """
    if jobs == 1:
        worker = PartWriter()
        for tasks in shards:
            for task in tasks:
                done(worker.do(task))
        return
    schedule = PartSchedule(shards)

    def following(worker: int, ahead: bool) -> bytes | None:
        task = schedule.next(worker, ahead)
        return None if task is None else msgspec.msgpack.encode(task)

    def finished(task: Done) -> None:
        schedule.finished(task)
        done(task)

    _side_by_side(do_packed, following, jobs, finished)


FEWER = ", with fewer --jobs"
"""Advice where a worker died, behind that to run the command again."""


def side_by_side(
    task: Callable[[bytes], T], packed: Iterable[bytes], jobs: int, done: Callable[[T], None], fewer: str = FEWER
) -> None:
    """Give every piece of work to a worker that is free, calling `done` as each is finished.

    `fewer` is empty where the user gives no number of workers.
    """
    pieces = iter(packed)
    # None ahead: pieces are few and long, and one that waits for a busy worker keeps another one idle.
    _side_by_side(task, lambda _, ahead: None if ahead else next(pieces, None), jobs, done, fewer)


QUEUED = 2
"""Pieces of work that a worker has: one under way, and one to go on with at once."""


def _side_by_side(
    task: Callable[[bytes], T],
    following: Callable[[int, bool], bytes | None],
    jobs: int,
    done: Callable[[T], None],
    fewer: str = FEWER,
) -> None:
    """Give workers, which are numbered, what `following` has for each, until it has nothing and all is done.

    `following` is told whether the worker is busy.
    """
    # One pool of one process for each worker: a shared pool gives a task to any of its processes, and a worker is to go
    # on with the shard that it has in memory.
    pools: dict[int, ProcessPoolExecutor] = {}
    under_way: dict[Future[T], int] = {}
    try:
        while True:
            # Everyone has one piece before anyone has two.
            for queued in range(QUEUED):
                for worker in [worker for worker in range(jobs) if _count(under_way, worker) == queued]:
                    if (piece := following(worker, queued > 0)) is not None:
                        with _nameless_main(), _held_back():
                            if worker not in pools:
                                pools[worker] = _pool(task.__module__)
                            under_way[_submit(pools[worker], task, piece, fewer)] = worker
            if not under_way:
                return
            finished, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in finished:
                worker = under_way[future]
                # Before `del`: if the worker died this raises, and `worker` still says which.
                result = future.result()
                del under_way[future]
                done(result)
    except BrokenProcessPool:
        died = _processes(pools[worker])
        _kill([pool for at, pool in pools.items() if at != worker])
        pools[worker].shutdown(wait=True, cancel_futures=True)
        raise RunError(_why_broken(died[0].exitcode if died else None, fewer)) from None
    except BaseException:
        _kill(pools.values())
        raise
    finally:
        for pool in pools.values():
            pool.shutdown(wait=True, cancel_futures=True)


def _count(under_way: Mapping[Future[T], int], worker: int) -> int:
    return sum(1 for whose in under_way.values() if whose == worker)


def _kill(pools: Iterable[ProcessPoolExecutor]) -> None:
    for pool in pools:
        for process in _processes(pool):
            process.kill()


def _processes(pool: ProcessPoolExecutor) -> list[BaseProcess]:
    """Return the processes of a pool, which no public name leads to: to end them, or for their exit codes."""
    return list((pool._processes or {}).values())


def _submit(pool: ProcessPoolExecutor, task: Callable[[bytes], T], piece: bytes, fewer: str) -> Future[T]:
    """Give a piece to the pool, which starts a worker where it has too few. Raises RunError if none can be started."""
    try:
        return pool.submit(task, piece)
    except (EOFError, ConnectionError):  # the fork server was ended while a worker was asked of it
        raise RunError(
            f"the process that starts workers was ended, perhaps for want of memory; {_AGAIN}{fewer}"
        ) from None


_AGAIN = "what is finished is kept: run the same command again to go on"


def _why_broken(code: int | None, fewer: str) -> str:
    """Explain why a worker died, from its exit code, and what to do."""
    code = -signal.SIGTERM if code is None else code
    if code >= 0:
        return f"a worker ended with exit code {code}, as when a strategy calls os._exit: mend that; {_AGAIN}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    if name in ("SIGKILL", "SIGTERM"):
        return f"a worker was ended by {name}, perhaps for want of memory; {_AGAIN}{fewer}"
    return f"a worker crashed ({name}), in a strategy or in a library that it uses: mend that; {_AGAIN}"


def _pool(imported: str = do_packed.__module__) -> ProcessPoolExecutor:
    """Start one worker from a fork server that has a module, and this one, imported."""
    one_thread()  # with all threads for NumPy in each, two workers were 1.41 times as fast as one instead of 1.8
    # Plain fork is unsafe beside the progress bar's thread, spawn imports everything in each worker (decision 6).
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload([imported, __name__])  # of this module is what starts each worker
        _start_fork_server()
    return ProcessPoolExecutor(1, mp_context=context, initializer=_start_worker, initargs=(interpreters_in_use(),))


@contextmanager
def _nameless_main() -> Iterator[None]:
    """Keep the workers that start here from importing the script that they are started from.

    They need nothing of it, and a script that calls `ctxbench.run` without asking whether it is `__main__` would start
    a run in each of them.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


@contextmanager
def _held_back() -> Iterator[None]:
    """Let signals wait until the worker that starts here is known to the pool.

    One that is not known is not ended with the others, and prints a trace when it finds their semaphores gone.
    """
    if current_thread() is not main_thread():  # which alone hears signals
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (*LEFT_TO_THE_PARENT, signal.SIGTERM)}
    # Not `pthread_sigmask`: another thread would hear the signal, and this one run its handler.
    known = {number: handler for number, handler in handlers.items() if handler is not None}
    for number in known:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(came):
            signal.raise_signal(number)


def _start_fork_server() -> None:
    """Start the fork server with Ctrl-C blocked, which the workers inherit."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, LEFT_TO_THE_PARENT)
    try:
        resource_tracker.ensure_running()  # which unblocks SIGINT
        signal.pthread_sigmask(signal.SIG_BLOCK, LEFT_TO_THE_PARENT)
        with _room_for_a_socket():
            forkserver.ensure_running()
    except OSError as error:
        raise RunError(
            f"worker processes cannot be started ({error}): set TMPDIR to a short folder that can be written, or use "
            "--jobs 1"
        ) from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _room_for_a_socket() -> Iterator[None]:
    """Use another temporary folder where the usual one has too long a name for a socket in it."""
    usual = tempfile.tempdir
    if len(os.fsencode(tempfile.gettempdir())) > SOCKET_ROOM:
        tempfile.tempdir = "/tmp"
    try:
        yield
    finally:
        tempfile.tempdir = usual


def _start_worker(interpreters: Sequence[Interpreter]) -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone, however it went. Prints go to standard error.

    Adapters run in the interpreters that the parent uses.
    """
    sys.stdout = sys.stderr
    use_interpreters(interpreters)
    for number in LEFT_TO_THE_PARENT:
        signal.signal(number, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
