"""Ctrl-C, SIGTERM and the end of a terminal: all stop a command in the same clean way."""

from __future__ import annotations

import signal
from types import FrameType

from ...scenarios.errors import Stopped

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def listen() -> None:
    """Raise Stopped when told to stop, but for what we were started to ignore (nohup, a job in the background)."""
    for each in SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _stop)


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise Stopped(128 + number)
