"""The recorded clock, made to go on: migration takes no other."""

from __future__ import annotations

import math


class Clock:
    """Seconds that never go back. A call that has no time is a second after the one before."""

    __slots__ = ("now",)

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def tick(self, recorded: float | None) -> float:
        """The time of the next call. What goes back stands still."""
        if recorded is None or not math.isfinite(recorded):
            self.now += 1
        else:
            self.now = max(self.now, recorded)
        return self.now
