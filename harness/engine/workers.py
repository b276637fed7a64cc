"""Divide a run into bundles of tasks, and do them in this process or in several workers side by side.

Workers come from a fork server that has everything imported once. They get tasks as bytes and write their parts
themselves, so that nothing but step counts comes back.

One process does a bundle. As long as there are many shards it has all tasks of a shard: another process would have to
read and count the shard's conversations again, which costs more than most strategies do. The strategies of the last
shards are divided, so that no process is idle while others have work.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess
from threading import Thread, current_thread, main_thread
from time import monotonic
from types import ModuleType
from typing import TypeVar

import msgspec

from ctxbench.scenarios.errors import RunError
from ctxbench.strategies.adapters.process import Interpreter, interpreters_in_use, use_interpreters

from . import one_thread
from .shard import ANSWERS, OWN, Done, PartTask, PartWriter, do_bundle, do_packed

T = TypeVar("T")
Ref = TypeVar("Ref")
Piece = TypeVar("Piece")
Bundle = list[PartTask]

LEFT_TO_THE_PARENT = {getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)}
"""Signals that a terminal sends to all processes at once. SIGTERM is none: the pool itself ends workers by that."""

PATIENCE = 5.0  # seconds that workers have to end by SIGTERM, before they are killed

Engine = Callable[[Iterable[list[PartTask]], Callable[[list[Done]], None]], None]
"""Does the tasks of all shards, calling a function as some are finished."""


def run_shards(shards: Iterable[list[PartTask]], done: Callable[[list[Done]], None], *, jobs: int = 1) -> None:
    """Do the tasks of all shards, calling `done` as some are finished; one job is done in this process.

    An exception, Ctrl-C among them, ends the workers at once: parts that were finished are whole, others not there.
    """
    if jobs == 1:
        worker = PartWriter()
        for tasks in shards:
            for task in tasks:
                done([worker.do(task)])
        return
    with _pool(do_packed, jobs) as (submit_packed, finished):

        def submit(bundle: Bundle) -> Future[list[Done]]:
            if bundle[0].part not in bundle[0].work.here:
                return submit_packed(msgspec.msgpack.encode(bundle))
            here = Future[list[Done]]()
            here.set_result(do_bundle(bundle))  # meanwhile the workers do what was submitted before
            return here

        dispatch(stages(shards, jobs), jobs, submit, finished, done)


def side_by_side(task: Callable[[bytes], T], packed: Iterable[bytes], jobs: int, done: Callable[[T], None]) -> None:
    """Give every piece of work to a worker that is free, calling `done` as each is finished."""
    with _pool(task, jobs) as (submit, finished):
        dispatch(([[piece]] for piece in packed), jobs, submit, finished, done)


LAST = 4
"""Shards that count as the last ones, at least: each of their strategies is a bundle."""


def stages(shards: Iterable[list[PartTask]], processes: int) -> Iterator[list[list[Bundle]]]:
    """Yield the stages of each shard: bundles that may be done at once, after the stage before is done."""
    ahead, coming = deque[list[PartTask]](), iter(shards)
    last = max(LAST, processes)
    while True:
        while len(ahead) < last and (tasks := next(coming, None)) is not None:
            ahead.append(tasks)
        if not ahead:
            return
        tasks = ahead.popleft()
        here = [task for task in tasks if task.part in task.work.here]
        is_whole = len(ahead) == last - 1
        if is_whole and not here:
            yield [[tasks]]
            continue
        own, answers = ([task for task in tasks if task.part == part] for part in (OWN, ANSWERS))
        strategies = [task for task in tasks if task.part not in (OWN, ANSWERS, *task.work.here)]
        first, then = ([*own, *strategies], []) if is_whole else (own, [[task] for task in strategies])
        staged = [first], [bundle for bundle in (*then, here) if bundle], [answers]
        yield [stage for stage in staged if stage and stage[0]]


def dispatch(
    groups: Iterator[list[list[Piece]]],
    processes: int,
    submit: Callable[[Piece], Ref],
    finished: Callable[[Sequence[Ref]], Iterator[tuple[Ref, T]]],
    done: Callable[[T], None],
) -> None:
    """Have pieces of work done, calling `done` with the result of each. A group has stages, one after the other.

    `submit` gives a piece to the process that is free, and `finished` waits for some of those under way, of which there
    are as many as `processes`: memory does not grow with the recordings. A process stays with its group, whose shard it
    has in memory, then begins the next group, and helps with the first one that is not finished when there is none.
    """
    under_way, numbered, free = dict[Ref, int](), enumerate(groups), deque([-1] * processes)
    left, later, ready = Counter[int](), dict[int, list[list[Piece]]](), dict[int, deque[Piece]]()
    following = next(numbered, None)

    def begin(number: int, stages: list[list[Piece]]) -> None:
        left[number], later[number], ready[number] = len(stages[0]), stages[1:], deque(stages[0])

    while True:
        while free and (ready or following):
            number = free.popleft()  # the group of the process
            if number not in ready:
                if following:
                    begin(*following)
                    number, following = following[0], None
                else:
                    number = min(ready)
            under_way[submit(ready[number].popleft())] = number
            if not ready[number]:
                del ready[number]
            # Read before it is wanted, while all processes work.
            following = following or next(numbered, None)
        if not under_way:
            return
        for ref, result in finished(list(under_way)):
            number = under_way.pop(ref)
            free.append(number)
            done(result)
            left[number] -= 1
            if not left[number] and (stages := later.pop(number)):
                begin(number, stages)


Submit = Callable[[bytes], Future[T]]
Finished = Callable[[Sequence[Future[T]]], Iterator[tuple[Future[T], T]]]


@contextmanager
def _signals_held() -> Iterator[None]:
    """Let no signal to stop end the pool while a worker starts: one that nobody knows of yet prints a trace then."""
    came, numbers = list[int](), LEFT_TO_THE_PARENT | {signal.SIGTERM} if current_thread() is main_thread() else set()
    before = {number: handler for number in numbers if callable(handler := signal.getsignal(number))}
    for number in before:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


@contextmanager
def _pool(task: Callable[[bytes], T], jobs: int) -> Iterator[tuple[Submit[T], Finished[T]]]:
    """Start and end workers; yield functions that submit work and wait for some. Raises RunError if one dies."""
    executor = _executor(task.__module__, jobs)

    def submit(piece: bytes) -> Future[T]:
        # Workers need nothing of the script that they are started from, and would import it: one that calls
        # `ctxbench.run` without asking whether it is `__main__` would start a run in each of them.
        script, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            with _signals_held():
                return executor.submit(task, piece)
        except (EOFError, ConnectionError):  # the fork server was ended while a worker was asked of it
            raise RunError(f"the process that starts workers was ended, {_MEMORY}") from None
        finally:
            sys.modules["__main__"] = script

    def finished(futures: Sequence[Future[T]]) -> Iterator[tuple[Future[T], T]]:
        while not (done := wait(futures, 5.0, FIRST_COMPLETED).done):
            # The pool tells no future of a piece that was submitted while it broke, and waits for ever for the rest of
            # a result whose worker was killed while it wrote.
            if wait_for([process.sentinel for process in processes()], 0):
                raise BrokenProcessPool
        return ((future, future.result()) for future in done)

    def processes() -> list[BaseProcess]:  # which no public name leads to
        return list((executor._processes or {}).values())

    def end() -> None:
        if results := executor._result_queue:  # what waits for the rest of a result learns that none comes
            results._writer.close()  # type: ignore[attr-defined]
        executor.shutdown(wait=True, cancel_futures=True)

    try:
        yield submit, finished
    except BrokenProcessPool:
        # The pool itself ends the others by SIGTERM, but for one that was started meanwhile: for that it would wait.
        ended, until = processes(), monotonic() + PATIENCE
        for process in ended:
            process.terminate()
        deaf = [process for process in ended if not wait_for([process.sentinel], max(0.0, until - monotonic()))]
        for process in deaf:  # a strategy, or what it imports, may ignore SIGTERM
            process.kill()
        end()  # whose thread reads what they died of, as one thread alone can
        if {process.exitcode for process in ended} == {_SERVER_GONE} and len(ended) > 1:
            raise RunError(f"the process that starts workers was ended, {_MEMORY}") from None
        codes = {process.exitcode or 0 for process in ended if process not in deaf} - {-signal.SIGTERM}
        # One that finds its queue closed ends with 1: a signal, or a code of a strategy's own, says more.
        raise RunError(_why_broken(max(codes, key=abs, default=None))) from None
    except BaseException:
        # What writes a piece learns that no worker reads it, as later Pythons see to.
        if calls := executor._call_queue:  # type: ignore[attr-defined]
            calls._reader.close()
        for process in processes():
            process.kill()
        raise
    finally:
        end()


_SERVER_GONE = 255  # exit code that Python gives to every worker whose fork server has ended
_AGAIN = "what is finished is kept: run the same command again to go on"
_MEMORY = f"perhaps for want of memory; {_AGAIN}, with fewer --jobs"


def _why_broken(code: int | None) -> str:
    """Explain why a worker died, from its exit code, and what to do."""
    code = -signal.SIGTERM if code is None else code
    if code >= 0:
        return f"a worker ended with exit code {code}, as when a library ends its process: mend that; {_AGAIN}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    if name in ("SIGKILL", "SIGTERM"):
        return f"a worker was ended by {name}, {_MEMORY}"
    return f"a worker crashed ({name}), in a strategy or in a library that it uses: mend that; {_AGAIN}"


def _executor(imported: str, jobs: int) -> ProcessPoolExecutor:
    """Return a pool whose workers come from a fork server that has a module, and this one, imported."""
    one_thread()  # with all threads for NumPy in each, two workers were 1.41 times as fast as one instead of 1.8
    # Plain fork is unsafe beside the progress bar's thread, spawn imports everything in each worker (decision 3).
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        # Of this module is what starts each worker; that of the answers is imported late (`shard.py`).
        context.set_forkserver_preload([imported, __name__, "ctxbench.harness.answers.replies"])
        _start_fork_server()
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=_start_worker, initargs=(interpreters_in_use(),))


def _start_fork_server() -> None:
    """Start the fork server with Ctrl-C blocked, which the workers inherit."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, LEFT_TO_THE_PARENT)
    had = {name: os.environ[name] for name in ("PYTHONSAFEPATH",) if name in os.environ}
    os.environ["PYTHONSAFEPATH"] = "1"  # else both import what lies in the working directory
    try:
        resource_tracker.ensure_running()  # which unblocks SIGINT
        signal.pthread_sigmask(signal.SIG_BLOCK, LEFT_TO_THE_PARENT)
        forkserver.ensure_running()
    except OSError as error:
        raise RunError(
            f"worker processes cannot be started ({error}): set TMPDIR to a short folder that can be written, or use "
            "--jobs 1"
        ) from None
    finally:
        os.environ.pop("PYTHONSAFEPATH")
        os.environ.update(had)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(interpreters: Sequence[Interpreter]) -> None:
    """Leave Ctrl-C to the parent and end with it, print to standard error, and use the parent's interpreters."""
    sys.stdout = sys.stderr
    use_interpreters(interpreters)
    for number in LEFT_TO_THE_PARENT:
        signal.signal(number, signal.SIG_IGN)

    def end_with_parent() -> None:
        if (parent := multiprocessing.parent_process()) is not None:
            parent.join()
            os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()
