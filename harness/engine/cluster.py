"""Do the tasks of a run on a Ray cluster, or on a Ray of this machine alone (extra `ray`).

Every machine needs ctxbench at the same version, and the run folder at the same path: tasks write their parts there.
Ray gives a task that was lost with its worker or its machine to another one. Parts are the same bytes whoever writes
them, and are moved to their places whole, so it does no harm when a task is done twice.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import socket
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from time import sleep
from typing import Any

import msgspec

from ctxbench.scenarios.errors import MissingExtra, RunError
from ctxbench.strategies.adapters.process import Interpreter, interpreters_in_use, use_interpreters

from ..folder.remote import remote_folder
from ..folder.store import parts_of
from .shard import ANSWERS, OWN, Done, PartTask, do_part
from .workers import Engine

HERE = "local"
"""The address of a Ray that begins and ends with the run."""

SHARDS_PER_CORE = 2
"""Shards that are under way for each core of the cluster, at most. One more for each is read ahead, to know whether
the last ones are to be divided. So the driver's memory does not grow with the run."""

GLANCE = 0.05
"""Seconds between looks at what is finished."""

TRIES = 10
"""How often a task is begun again when its worker or machine is lost."""


def on_ray(address: str = HERE, cores: int | None = None) -> Engine:
    """Return an engine that does all tasks on Ray.

    `address` is that of a cluster's head, such as `10.0.0.1:6379`, `ray://HOST:10001`, or `auto` for the one that this
    machine is part of. `cores` is for a Ray of this machine alone.
    """

    def engine(shards: Iterable[list[PartTask]], done: Callable[[Done], None]) -> None:
        with _connected(address, cores) as ray:
            _do_all(ray, shards, done)

    return engine


def _do_all(ray: Any, shards: Iterable[list[PartTask]], done: Callable[[Done], None]) -> None:
    do = ray.remote(max_retries=TRIES)(_do)
    interpreters = list(interpreters_in_use())
    cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
    under_way: dict[Any, int] = {}
    coming = divided(shards, cores)
    try:
        while True:
            while len(set(under_way.values())) < cores * SHARDS_PER_CORE and (bundles := next(coming, None)):
                for ref in _submitted(do, bundles, interpreters):
                    under_way[ref] = bundles[0][0].shard
            if not under_way:
                return
            # Not a wait without end: within it Ray answers Ctrl-C itself, and ends the process without a word.
            finished, _ = ray.wait(list(under_way), num_returns=len(under_way), timeout=0)
            if not finished:
                sleep(GLANCE)
            for ref in finished:
                results = _results(ray, ref)
                del under_way[ref]
                for result in results:
                    done(result)
    except BaseException:
        for ref in under_way:
            ray.cancel(ref, force=True)
        raise


def divided(shards: Iterable[list[PartTask]], cores: int) -> Iterator[list[list[PartTask]]]:
    """Yield the tasks of each shard in bundles, each for one process.

    As long as there are as many shards as cores, a bundle has all tasks of a shard: another process would have to read
    and count its conversations again, which costs more than most strategies do. The strategies of the last shards, if
    these are fewer than cores, are divided among several processes.
    """
    ahead: deque[list[PartTask]] = deque()
    coming, left = iter(shards), 0
    while True:
        while len(ahead) < cores and (tasks := next(coming, None)) is not None:
            ahead.append(tasks)
        if not ahead:
            return
        if len(ahead) == cores:
            yield [ahead.popleft()]
            continue
        left = left or len(ahead)
        yield _divided(ahead.popleft(), -(-cores // left))


def _divided(tasks: list[PartTask], number: int) -> list[list[PartTask]]:
    """Return the own part of a shard, its strategies in so many bundles, and the answers; all in one, if it is one."""
    if number == 1:
        return [tasks]
    strategies = [task for task in tasks if task.part not in (OWN, ANSWERS)]
    ends = [[task] for task in tasks if task.part in (OWN, ANSWERS)]
    return [ends[0], *filter(None, (strategies[at::number] for at in range(number))), *ends[1:]]


def _submitted(do: Any, bundles: list[list[PartTask]], interpreters: list[Interpreter]) -> Iterator[Any]:
    """Hand the bundles of a shard to Ray: the own part first, then strategies, and the answers when all are there."""
    refs: list[Any] = []
    for bundle in bundles:
        after = refs if bundle[0].part == ANSWERS else refs[:1]
        refs.append(do.remote(msgspec.msgpack.encode(bundle), interpreters, *after))
        yield refs[-1]


def _do(packed: bytes, interpreters: list[Interpreter], *after: list[Done]) -> list[Done]:  # noqa: ARG001
    """Do some tasks of a shard in a process of Ray. It begins when what it comes `after` is done."""
    use_interpreters(interpreters)
    tasks = msgspec.msgpack.decode(packed, type=list[PartTask])
    work, shard = tasks[0].work, tasks[0].shard
    if not work.remote:
        return [do_part(task) for task in tasks]
    work = msgspec.structs.replace(work, folder=_own_folder())
    remote = remote_folder(work.remote, work.folder)
    own, *parts = parts_of(remote.copy, shard, len(work.strategies))
    wanted = {task.part for task in tasks}
    try:
        remote.pull_parts([own, *(part for at, part in enumerate(parts) if ANSWERS in wanted or at in wanted)])
        return [do_part(msgspec.structs.replace(task, work=work)) for task in tasks]
    finally:
        for path in remote.copy.iterdir():
            shutil.rmtree(path, ignore_errors=True)


@cache
def _own_folder() -> str:
    """Return a folder of this process, which is gone with it: it holds the files of one task at a time."""
    folder = tempfile.mkdtemp(prefix="ctxbench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _results(ray: Any, ref: Any) -> list[Done]:
    """Return the reports of a bundle. Raises what a task has raised, and RunError where Ray has given it up."""
    try:
        results: list[Done] = ray.get(ref)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        first = str(error).strip().partition("\n")[0]
        raise RunError(
            f"Ray has lost a task {TRIES} times ({type(error).__name__}: {first}): what is finished is kept, run the "
            "same command again to go on"
        ) from None
    return results


@contextmanager
def _connected(address: str, cores: int | None) -> Iterator[Any]:
    """Connect with Ray, or start one here, and leave it at the end."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # which would be sent to Ray's makers
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else each start is a warning
    try:
        import ray
    except ImportError:
        raise MissingExtra("ray", "ray") from None
    if ray.is_initialized():  # by a notebook, or a test: not ours to end
        yield ray
        return
    _look_for(address)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    here: dict[str, Any] = {"num_cpus": cores, "include_dashboard": False} if address == HERE else {}
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False, **here)
    except (OSError, ValueError, RuntimeError) as error:  # ConnectionError is an OSError
        first = str(error).strip().partition("\n")[0]
        raise RunError(f"--address {address}: no Ray cluster can be reached there ({first})") from None
    try:
        for number, handler in handlers.items():
            if handler is not None:
                signal.signal(number, handler)
        yield ray
    finally:
        ray.shutdown()


LOOK = 10.0
"""Seconds to wait for the head of a cluster; Ray itself waits for minutes."""


def _look_for(address: str) -> None:
    """Raise RunError if an address with a host and a port has nobody who listens there."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdecimal()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), LOOK).close()
    except (OSError, OverflowError) as error:
        raise RunError(f"--address {address}: no Ray cluster can be reached there ({error})") from None
