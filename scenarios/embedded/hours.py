"""How time passes between the turns of somebody who works in an office."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from .script import Script

_PAUSES = ("short",) * 6 + ("break",) * 3 + ("long",) * 2 + ("night",)


class OfficeHours:
    """Pauses of all lengths: within a prompt cache's five minutes, beyond them, beyond an hour, and over night."""

    def __init__(self, script: Script, rng: Random) -> None:
        self._script, self._rng = script, rng
        self._left: list[str] = []

    def pause(self) -> bool:
        """Let some time pass; tells whether the next turn is on another day."""
        if not self._left:
            self._left = self._rng.sample(_PAUSES, len(_PAUSES))
        kind = self._left.pop()
        if kind == "short":
            self._script.wait(seconds=self._rng.randint(15, 200))
        elif kind == "break":
            self._script.wait(minutes=self._rng.randint(6, 45))
        elif kind == "long":
            self._script.wait(minutes=self._rng.randint(65, 200))
        over = kind == "night" or self._script.now.hour >= 18
        if over:
            morning = (self._script.now + timedelta(days=1)).replace(hour=7, minute=40, second=0, microsecond=0)
            self._script.until(f"{morning + timedelta(minutes=self._rng.randint(0, 100)):%Y-%m-%dT%H:%M:%S}")
        return over
