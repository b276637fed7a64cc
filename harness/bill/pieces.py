"""Work through the requests of a large run piece by piece, on the cores of the machine.

Pieces share nothing (`RunRequests.pieces`), so results are the same whatever the number of processes. Each process has
one piece in memory at a time.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, TypeVar

from .requests import RunRequests

T = TypeVar("T")


def cores() -> int:
    """Return the number of cores that this process may use; 1 in a worker, whose siblings use the others."""
    if multiprocessing.parent_process() is not None:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def over_pieces(
    work: Callable[..., T],
    pieces: Sequence[RunRequests],
    *values: object,
    done: Callable[[T], object] = lambda _: None,
) -> list[T]:
    """Return `work(piece, *values)` of each piece, in order; `done` is called with each result as it is there.

    `work` is a function of a module, and `values` can be pickled.
    """
    jobs = min(cores(), len(pieces))
    results: dict[int, T] = {}

    def collect(numbered: tuple[int, T]) -> None:
        number, results[number] = numbered
        done(results[number])

    if jobs <= 1:
        for number, piece in enumerate(pieces):
            # A copy has no tables yet: those of a piece are gone when the next one is worked on.
            collect((number, work(copy(piece), *values)))
    else:
        # Here: a command that reads stored bills needs nothing of the engine.
        from ..engine.workers import side_by_side

        packed = (pickle.dumps((number, work, piece, values)) for number, piece in enumerate(pieces))
        side_by_side(work_packed, packed, jobs, collect, fewer="")
    return [results[number] for number in range(len(pieces))]


def work_packed(packed: bytes) -> tuple[int, Any]:
    """Do the work on one piece, and return its number and the result."""
    number, work, piece, values = pickle.loads(packed)
    return number, work(piece, *values)
