"""Run shards in this process, or in several workers side by side.

Workers come from a fork server that has everything imported once. They get shards as bytes and write their parts
themselves, so that nothing but step counts comes back. At most two shards per worker are under way: memory does not
grow with the recordings.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from threading import Thread, current_thread, main_thread
from types import ModuleType
from typing import TypeVar

import msgspec

from ...scenarios.errors import RunError
from ...strategies.adapters.process import Interpreter, interpreters_in_use, use_interpreters
from .shard import Done, Shard, work, work_packed
from .threads import one_thread

T = TypeVar("T")

LEFT_TO_THE_PARENT = {getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)}
"""Signals that a terminal sends to all processes at once. SIGTERM is none: the pool itself ends workers by that."""

SOCKET_ROOM = 104 - len("/pymp-xxxxxxxx/listener-xxxxxxxx") - 1
"""Bytes that the temporary folder may have in the path of the fork server's socket (macOS; 4 more on Linux)."""


def run_shards(shards: Iterable[Shard], jobs: int, done: Callable[[Done], None]) -> None:
    """Work through all shards, calling `done` as each is finished.

    With one job everything happens in this process. An exception, Ctrl-C among them, ends the workers at once: parts
    that were finished are whole, others are not there.
    """
    if jobs == 1:
        for shard in shards:
            done(work(shard))
        return
    side_by_side(work_packed, map(msgspec.msgpack.encode, shards), jobs, done)


def side_by_side(task: Callable[[bytes], T], packed: Iterable[bytes], jobs: int, done: Callable[[T], None]) -> None:
    """Give every piece of work to a worker, at most two for each at a time, calling `done` as each is finished."""
    pool = _pool(jobs, task.__module__)
    under_way: set[Future[T]] = set()
    try:
        for piece in packed:
            if len(under_way) >= 2 * jobs:
                _collect(under_way, done)
            with _nameless_main(), _held_back():
                under_way.add(_submit(pool, task, piece))
        while under_way:
            _collect(under_way, done)
    except BrokenProcessPool:
        workers = list((pool._processes or {}).values())  # no public name leads to their exit codes
        pool.shutdown(wait=True, cancel_futures=True)
        raise RunError(_why_broken([process.exitcode for process in workers])) from None
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, task: Callable[[bytes], T], piece: bytes) -> Future[T]:
    """Give a piece to the pool, which starts a worker where it has too few. Raises RunError if none can be started."""
    try:
        return pool.submit(task, piece)
    except (EOFError, ConnectionError):  # the fork server was ended while a worker was asked of it
        raise RunError(
            f"the process that starts workers was ended, perhaps for want of memory; {_AGAIN}, with fewer --jobs"
        ) from None


_AGAIN = "what is finished is kept: run the same command again to go on"


def _why_broken(codes: Iterable[int | None]) -> str:
    """Explain why a worker died, from the exit codes of all, and what to do. The pool ends the others by SIGTERM."""
    code = next((exit_code for exit_code in codes if exit_code not in (None, -signal.SIGTERM)), -signal.SIGTERM)
    if code >= 0:
        return f"a worker ended with exit code {code}, as when a strategy calls os._exit: mend that; {_AGAIN}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    if name in ("SIGKILL", "SIGTERM"):
        return f"a worker was ended by {name}, perhaps for want of memory; {_AGAIN}, with fewer --jobs"
    return f"a worker crashed ({name}), in a strategy or in a library that it uses: mend that; {_AGAIN}"


def _pool(jobs: int, imported: str = work.__module__) -> ProcessPoolExecutor:
    """Start workers from a fork server that has a module imported."""
    one_thread()  # with all threads for NumPy in each, two workers were 1.41 times as fast as one instead of 1.8
    # Plain fork is unsafe beside the progress bar's thread, spawn imports everything in each worker (decision 6).
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload([imported])
        _start_fork_server()
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=_start_worker, initargs=(interpreters_in_use(),))


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


def _collect(under_way: set[Future[T]], done: Callable[[T], None]) -> None:
    finished, _ = wait(under_way, return_when=FIRST_COMPLETED)
    for future in finished:
        under_way.remove(future)
        done(future.result())
