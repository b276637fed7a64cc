"""Keep numerical libraries to one thread: workers are processes, and more threads than cores slow all of them down."""

from __future__ import annotations

import os

_NAMES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def one_thread() -> None:
    """Set one thread for this process and those that it starts. It works only before numpy is imported."""
    for name in _NAMES:
        os.environ.setdefault(name, "1")
