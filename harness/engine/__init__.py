"""Run a plan: read recordings, replay them through strategies in worker processes, write the parts of a run folder."""

import os


def one_thread() -> None:
    """Keep numerical libraries to one thread, in this process and those that it starts. It works before numpy's import.

    Workers are processes, and more threads than cores slow all of them down.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
