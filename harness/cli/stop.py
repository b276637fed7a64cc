"""Ctrl-C, SIGTERM and the end of a terminal: all stop a command in the same clean way."""

from __future__ import annotations

import signal
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopped(SystemExit):
    """The user wants us to end. If nobody minds, that is what happens, with the code that shells give it."""


def listen() -> None:
    """Raise Stopped when told to stop, but for what we were started to ignore (nohup, a job in the background)."""
    for each in SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _stop)


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise Stopped(128 + number)
