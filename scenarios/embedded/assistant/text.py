"""Frames of speech: text with choices and blanks, filled from one seeded source of chance.

    @trip.thanks                       a key
    - [Thanks|Thank you], {partner}    a frame under that key; `[a|b]` is a choice, nested if need be
      is delighted.¶See you soon.      an indented line continues it; ¶ is a line end

Blanks: `{partner}` is a word given by the caller, or else any frame under that key. `{n3_9}` is a number from 3 to 9,
`{m20_90}` an amount of money, `{t8_17}` a time of day, `{d5_40}` a day that
far ahead, `{p5_40}` one that long ago, `{c}` a capital letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_NUMBER = re.compile(r"([nmtdp])(\d+)_(\d+)")

Frames = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Tongue:
    """A language: its frames, and how it writes days and money."""

    frames: Frames
    glue: str
    """What stands between two sentences."""
    day: Callable[[date], str]
    days: Callable[[date], tuple[str, ...]]
    """All spellings of a day that count as right; the first is `day`'s."""
    money: Callable[[int], str]
    moneys: Callable[[int], tuple[str, ...]]
    month: Callable[[date], str]
    count: Callable[[int], tuple[str, ...]]
    """All spellings of a number of days."""
    dear: int
    """How many units of money buy what a pound buys."""
    finish: Callable[[str], str]
    """The last touch on a text: capitals where sentences start."""


def frames(text: str, glue: str) -> dict[str, tuple[str, ...]]:
    """Read frames as the module docstring shows them; `glue` joins a frame's continued lines."""
    found: dict[str, list[str]] = {}
    key = ""
    for line in text.splitlines():
        if line.startswith("@"):
            key = line[1:].strip()
            found[key] = []
        elif line.startswith("- "):
            found[key].append(line[2:].strip())
        elif line.strip():
            found[key][-1] += glue + line.strip()
    return {key: tuple(frame.replace("¶", "\n") for frame in variants) for key, variants in found.items()}


class Writer:
    """Fills frames. No frame comes twice before all under its key have come once."""

    def __init__(self, rng: Random, tongue: Tongue, names: Frames, today: Callable[[], date]) -> None:
        self._rng, self._tongue, self._today = rng, tongue, today
        self._frames = {**tongue.frames, **names}
        self._decks: dict[str, list[str]] = {}

    def __call__(self, key: str, **given: object) -> str:
        """One text under this key, its blanks filled with what is given and by chance."""
        return self.fill(self._draw(key), **given)

    def has(self, key: str) -> bool:
        """Whether there is anything under this key."""
        return key in self._frames

    def fill(self, frame: str, **given: object) -> str:
        """A frame's text."""
        while choice := _CHOICE.search(frame):
            frame = frame[: choice.start()] + self._rng.choice(choice[1].split("|")).strip() + frame[choice.end() :]
        return frame.format_map(_Blanks(given, self._blank))

    def some(self, key: str, count: int, **given: object) -> str:
        """So many sentences under a key, one after the other."""
        return self._tongue.glue.join(self._hand(key, count, given))

    def parts(self, key: str, **given: object) -> list[str]:
        """A text whose parts are kept apart by `= `."""
        return [part.strip() for part in self(key, **given).split("= ")]

    def lines(self, key: str, count: int, **given: object) -> str:
        """So many texts under a key as a list."""
        return "\n".join(f"- {text}" for text in self._hand(key, count, given))

    def _hand(self, key: str, count: int, given: Mapping[str, object]) -> list[str]:
        """So many texts, of different frames as long as there are enough."""
        hand: list[str] = []
        twice: list[str] = []
        while len(hand) < count:
            frame = self._draw(key)
            (twice if frame in hand and len(self._frames[key]) >= count else hand).append(frame)
        self._decks[key][:0] = twice
        return [self.fill(frame, **given) for frame in hand]

    def _draw(self, key: str) -> str:
        deck = self._decks.setdefault(key, [])
        if not deck:
            deck.extend(self._frames[key])
            self._rng.shuffle(deck)
        return deck.pop()

    def _blank(self, name: str) -> str:
        rng = self._rng
        if name == "c":
            return rng.choice("ABCDEFGHJKLMNPRSTUVWXYZ")
        if number := _NUMBER.fullmatch(name):
            value = rng.randint(int(number[2]), int(number[3]))
            match number[1]:
                case "n":
                    return str(value)
                case "m":
                    return self._tongue.money(value)
                case "t":
                    return f"{value:02d}:{5 * rng.randrange(12):02d}"
                case "d":
                    return self._tongue.day(self._today() + timedelta(days=value))
                case _:
                    return self._tongue.day(self._today() - timedelta(days=value))
        return self(name)


class _Blanks(dict[str, object]):
    def __init__(self, given: Mapping[str, object], fill: Callable[[str], str]) -> None:
        super().__init__(given)
        self._fill = fill

    def __missing__(self, name: str) -> str:
        return self._fill(name)
