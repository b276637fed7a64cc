"""Run a plan: read recordings, replay them through strategies in worker processes, write the parts of a run folder."""

import os


def one_thread() -> None:
    """Keep numerical libraries to one thread, before NumPy is imported: workers are processes, as many as cores."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
