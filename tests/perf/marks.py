"""Marks around benchmarks that are counted by valgrind, for programs that `tests/perf/instructions.py` runs."""

import gc
import os
from collections.abc import Callable, Mapping

Benchmarks = Mapping[str, Callable[[], object]]


def mark() -> None:
    """Call a function of the C library that nothing else here calls: valgrind writes its counts at each call."""
    os.getpgid(0)


def count(benchmarks: Benchmarks) -> None:
    """Call each benchmark, call it again between two marks, and print its name: the first call fills what is kept."""
    for name, call in benchmarks.items():
        call()
        gc.collect()
        gc.disable()
        mark()
        call()
        mark()
        gc.enable()
        print(name, flush=True)
