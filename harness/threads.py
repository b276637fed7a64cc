"""How many threads NumPy's libraries use: one, unless the environment says otherwise.

Workers that each use every core get in each other's way, and on a busy machine threads that wait for each other take a
hundred times as long as one. Set before NumPy is imported.
"""

from __future__ import annotations

import os

_NAMES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def one_thread() -> None:
    """For this process and those that it starts."""
    for name in _NAMES:
        os.environ.setdefault(name, "1")
