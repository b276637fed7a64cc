"""Do the tasks of a run on a Ray cluster, or on a Ray of this machine alone (extra `ray`).

Every machine needs ctxbench at the same version, and the run folder at the same path: tasks write their parts there.
A task that is lost with its worker is given to another one. A part is moved to its place whole: twice does no harm.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from time import sleep
from typing import Any

import msgspec

from ctxbench.scenarios.errors import MissingExtra, RunError
from ctxbench.strategies.adapters.process import Interpreter, interpreters_in_use, use_interpreters

from ..folder.remote import remote_folder
from ..folder.store import parts_of
from .shard import ANSWERS, Done, PartTask, do_bundle
from .workers import Bundle, Engine, dispatch, stages

HERE = "local"  # the address of a Ray that begins and ends with the run

TRIES = 10  # how often a task is begun again when its worker or machine is lost


def engine_of(text: str, cores: int | None = None) -> Engine | None:
    """Return the engine that `--engine` names; None = processes of this machine. Raises RunError for another text.

    ray                   a Ray of this machine alone, with so many cores, which begins and ends with the run
    ray:HOST:6379         the cluster with that head; ray:auto = the one that this machine is part of
    ray://HOST:10001      the same through Ray's client
    """
    if text == "local":
        return None
    kind, _, address = text.partition(":")
    if kind != "ray":
        raise RunError(f"--engine {text}: give local, ray, ray:HOST:PORT, ray://HOST:PORT or ray:auto")
    return on_ray(text if address.startswith("//") else address or HERE, cores)


def on_ray(address: str = HERE, cores: int | None = None) -> Engine:
    """Return an engine that does all tasks on Ray. `cores` is for a Ray of this machine alone."""

    def engine(shards: Iterable[list[PartTask]], done: Callable[[list[Done]], None]) -> None:
        with _connected(address, cores) as ray:
            do = ray.remote(max_retries=TRIES)(_do)
            interpreters = list(interpreters_in_use())
            under_way = set[Any]()

            def submit(bundle: Bundle) -> Any:
                ref = do.remote(msgspec.msgpack.encode(bundle), interpreters)
                under_way.add(ref)
                return ref

            def finished(refs: Sequence[Any]) -> Iterator[tuple[Any, list[Done]]]:
                # Not a wait without end: within it Ray answers Ctrl-C itself, and ends the process without a word.
                ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
                if not ready:
                    sleep(0.01)
                for ref in ready:
                    under_way.discard(ref)
                    try:
                        yield ref, ray.get(ref)
                    except ray.exceptions.RayTaskError as error:
                        raise error.cause from None
                    except ray.exceptions.RayError as error:
                        first = str(error).strip().partition("\n")[0]
                        raise RunError(
                            f"Ray has lost a task {TRIES} times ({type(error).__name__}: {first}): what is finished is "
                            "kept, run the same command again to go on"
                        ) from None

            try:
                processes = max(1, int(ray.cluster_resources().get("CPU", 1)))
                dispatch(stages(shards, processes), processes, submit, finished, done)
            except BaseException:
                for ref in under_way:
                    ray.cancel(ref, force=True)
                raise

    return engine


def _do(packed: bytes, interpreters: list[Interpreter]) -> list[Done]:
    """Do some tasks of a shard in a process of Ray."""
    use_interpreters(interpreters)
    tasks = msgspec.msgpack.decode(packed, type=list[PartTask])
    work, shard = tasks[0].work, tasks[0].shard
    if not work.remote:
        return do_bundle(tasks)
    work = msgspec.structs.replace(work, folder=_own_folder())
    remote = remote_folder(work.remote, work.folder)
    own, *parts = parts_of(remote.copy, shard, len(work.strategies))
    wanted = {task.part for task in tasks}
    try:
        remote.pull_parts([own, *(part for at, part in enumerate(parts) if ANSWERS in wanted or at in wanted)])
        return do_bundle([msgspec.structs.replace(task, work=work) for task in tasks])
    finally:
        for path in remote.copy.iterdir():
            shutil.rmtree(path, ignore_errors=True)


@cache
def _own_folder() -> str:
    """Return a folder of this process, which is gone with it: it holds the files of one task at a time."""
    folder = tempfile.mkdtemp(prefix="ctxbench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


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
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:  # whether anybody listens there: Ray would wait for minutes
            socket.create_connection((host.strip("[]"), int(port)), timeout=10.0).close()
        except (OSError, OverflowError) as error:
            raise RunError(f"--engine: no Ray cluster can be reached at {address} ({error})") from None
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    here: dict[str, Any] = {"num_cpus": cores, "include_dashboard": False} if address == HERE else {}
    if not address.startswith("ray://"):  # else workers import what lies in the working directory, before all else
        here["job_config"] = ray.job_config.JobConfig(_client_job=True)
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False, **here)
    except (OSError, ValueError, RuntimeError) as error:  # ConnectionError is an OSError
        first = str(error).strip().partition("\n")[0]
        why = "none runs here: start one with `ray start`, or name its head" if address == "auto" else first
        raise RunError(f"--engine: no Ray cluster can be reached at {address} ({why})") from None
    try:
        for number, handler in handlers.items():
            if handler is not None:
                signal.signal(number, handler)
        yield ray
    finally:
        ray.shutdown()
