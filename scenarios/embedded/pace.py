"""How much time passes between two turns: a person answers at once, after a coffee, after lunch, the next morning."""

from __future__ import annotations

from random import Random

from .script import Script


class Pace:
    """Gaps from a shuffled deck: of nine, five under 5 minutes, two under an hour, one of hours, one overnight."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._coming: list[str] = []

    def wait(self, script: Script) -> None:
        """Let the time to the next turn pass. Nobody works after 19:00 UTC."""
        if not self._coming:
            self._coming = ["soon"] * 5 + ["break"] * 2 + ["hours", "night"]
            self._rng.shuffle(self._coming)
        gap = self._coming.pop()
        chance = self._rng.random()
        if gap == "soon":
            script.wait(seconds=round(15 + 200 * chance))
        elif gap == "break":
            script.wait(minutes=round(6 + 45 * chance))
        elif gap == "hours":
            script.wait(minutes=round(65 + 120 * chance))
        now = script.now
        if gap == "night" or now.hour >= 19 or now.hour < 7:
            script.wait(minutes=(1440 - now.hour * 60 - now.minute) % 1440 + 450 + round(90 * chance))
